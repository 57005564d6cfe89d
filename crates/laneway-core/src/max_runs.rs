//! `max_runs`: how many runs of a workflow there may be at once, and what becomes of one too many.
//! Decides, and says it in words; the store counts runs under the workflow's lock and does what is decided. Runs of a
//! workflow are those of its name, whatever the version of their documents.

use std::num::NonZeroU32;

use crate::id::RunId;
use crate::words::words;

/// The `max_runs` key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxRuns {
    pub limit: NonZeroU32,
    pub strategy: Strategy,
}

words! {
    /// What becomes of a run that would be one too many.
    pub enum Strategy {
        /// It waits until there is room, first come first served.
        Queue = "queue",
        /// It is recorded and ends `canceled` at once.
        Skip = "skip",
        /// The oldest is canceled, and it starts when that has ended.
        Replace = "replace",
        /// It is refused, and leaves no run.
        Fail = "fail",
    }
}

/// What the decision depends on: the runs of the workflow that have not ended, each list oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Runs<'a> {
    pub running: &'a [Running],
    pub queued: &'a [RunId],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// `None` where it cannot be read: the run counts all the same.
    pub run: Option<RunId>,
    /// It is being canceled: it counts until it has ended, and need not be canceled again.
    pub is_canceling: bool,
}

/// What to do with a new run. It is queued in any case but `Skip` and `Refuse`; `may_start` then says which of the queued
/// ones start, so that there is one way into running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// There is room, and nobody is before it.
    Start,
    /// Behind so many others.
    Queue { ahead: u32 },
    /// End it as `canceled`, with this reason.
    Skip { reason: String },
    /// Cancel these, oldest first, with this reason each; it starts when there is room.
    Replace { which: Vec<RunId>, reason: String },
    /// No run; the error in words.
    Refuse { why: String },
}

/// Decides about the new run `run` of `workflow`, when it is submitted.
pub fn admit(workflow: &str, run: RunId, max: Option<MaxRuns>, runs: Runs<'_>) -> Admission {
    let Some(max) = max else { return Admission::Start };
    let limit = max.limit.get() as usize;
    let waiting = runs.queued.len();
    if runs.running.len() + waiting < limit {
        return Admission::Start;
    }
    match max.strategy {
        Strategy::Queue => Admission::Queue { ahead: u32::try_from(waiting).unwrap_or(u32::MAX) },
        Strategy::Skip => Admission::Skip { reason: format!("skipped: {}", taken(workflow, max, runs)) },
        Strategy::Replace => {
            let lively =
                runs.running.iter().filter(|running| !running.is_canceling).filter_map(|running| running.run);
            let mut all: Vec<RunId> = lively.chain(runs.queued.iter().copied()).collect();
            // With the new one there are `limit` of those that are to go on.
            all.truncate((all.len() + 1).saturating_sub(limit));
            let reason =
                format!("replaced by run {}: `max_runs` of {workflow} is {}", run.short(), max.limit);
            Admission::Replace { which: all, reason }
        }
        Strategy::Fail => Admission::Refuse {
            why: format!(
                "{}; wait for it, or cancel it with `laneway cancel`, or let new runs wait with `max_runs: {{limit: {}, \
                 strategy: queue}}`",
                taken(workflow, max, runs),
                max.limit
            ),
        },
    }
}

/// Decides about a run that was submitted for later, when its moment has come. It is there already, so
/// that it cannot be refused any more: it ends as `canceled` instead.
pub fn admit_due(workflow: &str, run: RunId, max: Option<MaxRuns>, runs: Runs<'_>) -> Admission {
    match (admit(workflow, run, max, runs), max) {
        (Admission::Refuse { .. }, Some(max)) => {
            Admission::Skip { reason: format!("refused: {}", taken(workflow, max, runs)) }
        }
        (admission, _) => admission,
    }
}

/// Whether the oldest queued run starts now: asked with its own document's `max_runs`, whenever a run of the workflow has
/// ended or joined, until it says no.
pub fn may_start(max: Option<MaxRuns>, running: u32) -> bool {
    max.is_none_or(|max| running < max.limit.get())
}

/// Whether a run that had ended may go on (`retry`, `skip`). It would jump the queue, so it needs room; `Err` is the
/// refusal in words.
pub fn may_reopen(workflow: &str, max: Option<MaxRuns>, runs: Runs<'_>) -> Result<(), String> {
    match max {
        Some(max) if runs.running.len() + runs.queued.len() >= max.limit.get() as usize => {
            Err(format!("{}; try again when it has ended", taken(workflow, max, runs)))
        }
        Some(_) | None => Ok(()),
    }
}

/// Who has the places.
fn taken(workflow: &str, max: MaxRuns, runs: Runs<'_>) -> String {
    const NAMED: usize = 3;
    let all: Vec<String> = runs
        .running
        .iter()
        .map(|running| running.run)
        .chain(runs.queued.iter().copied().map(Some))
        .map(|run| run.map_or_else(|| "(one whose id cannot be read)".to_owned(), |run| run.short()))
        .collect();
    let more = all.len().saturating_sub(NAMED);
    let mut names = all[..all.len() - more].join(", ");
    if more > 0 {
        names.push_str(&format!(" and {more} more"));
    }
    let noun = if all.len() == 1 { "run" } else { "runs" };
    let verb = if all.len() == 1 { "has" } else { "have" };
    format!("`max_runs` of {workflow} is {}, and {noun} {names} {verb} not ended", max.limit)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    use super::*;

    fn id(number: u32) -> RunId {
        RunId::parse(&format!("0199f2a0-0000-7000-8000-{number:08x}0000")).expect("a well-formed id")
    }

    fn max(limit: u32, strategy: Strategy) -> Option<MaxRuns> {
        Some(MaxRuns { limit: NonZeroU32::new(limit).expect("above 0"), strategy })
    }

    fn running(number: u32) -> Running {
        Running { run: Some(id(number)), is_canceling: false }
    }

    #[test]
    fn a_run_starts_while_there_is_room() {
        for strategy in Strategy::ALL {
            let runs = Runs { running: &[running(1)], queued: &[] };
            assert_eq!(admit("nightly", id(9), max(2, *strategy), runs), Admission::Start, "{strategy}");
        }
        let many: Vec<Running> = (0..100).map(running).collect();
        assert_eq!(admit("nightly", id(999), None, Runs { running: &many, queued: &[] }), Admission::Start);
    }

    #[test]
    fn one_too_many_waits_ends_replaces_or_is_refused() {
        let runs = Runs { running: &[running(1)], queued: &[] };
        let decide = |strategy| admit("nightly", id(9), max(1, strategy), runs);
        assert_eq!(decide(Strategy::Queue), Admission::Queue { ahead: 0 });
        let reason = "skipped: `max_runs` of nightly is 1, and run 00000001 has not ended".to_owned();
        assert_eq!(decide(Strategy::Skip), Admission::Skip { reason });
        let reason = "replaced by run 00000009: `max_runs` of nightly is 1".to_owned();
        assert_eq!(decide(Strategy::Replace), Admission::Replace { which: vec![id(1)], reason });
        let why =
            "`max_runs` of nightly is 1, and run 00000001 has not ended; wait for it, or cancel it with \
                   `laneway cancel`, or let new runs wait with `max_runs: {limit: 1, strategy: queue}`"
                .to_owned();
        assert_eq!(decide(Strategy::Fail), Admission::Refuse { why });
    }

    #[test]
    fn one_that_is_due_is_admitted_like_a_new_one_and_cannot_be_refused() {
        let runs = Runs { running: &[running(1)], queued: &[] };
        for strategy in [Strategy::Queue, Strategy::Skip, Strategy::Replace] {
            let max = max(1, strategy);
            assert_eq!(admit_due("w", id(9), max, runs), admit("w", id(9), max, runs), "{strategy}");
        }
        let reason = "refused: `max_runs` of nightly is 1, and run 00000001 has not ended".to_owned();
        let refused = admit_due("nightly", id(9), max(1, Strategy::Fail), runs);
        assert_eq!(refused, Admission::Skip { reason });
        assert_eq!(admit_due("w", id(9), None, runs), Admission::Start);
    }

    #[test]
    fn nobody_jumps_the_queue() {
        let runs = Runs { running: &[running(1)], queued: &[id(2), id(3)] };
        assert_eq!(admit("nightly", id(9), max(3, Strategy::Queue), runs), Admission::Queue { ahead: 2 });
        assert!(may_reopen("nightly", max(3, Strategy::Queue), runs).is_err());
        assert!(may_reopen("nightly", max(4, Strategy::Queue), runs).is_ok());
        assert!(may_start(max(2, Strategy::Queue), 1) && !may_start(max(2, Strategy::Queue), 2));
    }

    #[test]
    fn what_is_being_canceled_is_not_replaced_again() {
        let dying = [Running { run: Some(id(1)), is_canceling: true }];
        let runs = Runs { running: &dying, queued: &[] };
        let Admission::Replace { which, .. } = admit("w", id(9), max(1, Strategy::Replace), runs) else {
            panic!("the place is still taken")
        };
        assert_eq!(which, [], "it waits for the one that is ending");
        let runs = Runs { running: &dying, queued: &[id(2)] };
        let Admission::Replace { which, .. } = admit("w", id(9), max(1, Strategy::Replace), runs) else {
            panic!("the place is still taken")
        };
        assert_eq!(which, [id(2)], "the newest is the one that will run");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 1000, ..ProptestConfig::default() })]

        /// Applies decisions as a store would, and looks at what must hold after each.
        #[test]
        fn there_are_never_more_runs_than_the_limit(
            limit in 1..4u32,
            strategy in prop::sample::select(Strategy::ALL.to_vec()),
            // Submit, or end one of those that run.
            steps in prop::collection::vec(prop::option::of(0..4usize), 1..60),
        ) {
            let max = max(limit, strategy);
            let (mut live, mut queued): (Vec<Running>, Vec<RunId>) = (Vec::new(), Vec::new());
            for (number, step) in (0..).zip(steps) {
                match step {
                    Some(ended) if !live.is_empty() => {
                        live.remove(ended % live.len());
                    }
                    Some(_) => {}
                    None => match admit("w", id(number), max, Runs { running: &live, queued: &queued }) {
                        Admission::Start | Admission::Queue { .. } => queued.push(id(number)),
                        Admission::Skip { .. } | Admission::Refuse { .. } => prop_assert!(live.len() >= limit as usize),
                        Admission::Replace { which, .. } => {
                            queued.retain(|run| !which.contains(run));
                            for running in &mut live {
                                running.is_canceling |= running.run.is_some_and(|run| which.contains(&run));
                            }
                            queued.push(id(number));
                            let lively = live.iter().filter(|running| !running.is_canceling).count();
                            prop_assert!(lively + queued.len() <= limit as usize);
                            prop_assert!(which.is_empty() || lively + queued.len() == limit as usize, "no more than need be");
                        }
                    },
                }
                while !queued.is_empty() && may_start(max, u32::try_from(live.len()).expect("few")) {
                    live.push(Running { run: Some(queued.remove(0)), is_canceling: false });
                }
                prop_assert!(live.len() <= limit as usize);
                prop_assert!(queued.is_empty() || live.len() == limit as usize, "nobody waits beside a free place");
            }
        }
    }
}
