//! The levels that this node holds: which of their steps may begin, which are tried again, and when all of one is over. Nothing
//! of a level is said before that. Pure decisions; `drive/level.rs` acts on them. docs/design/levels.md.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::retry;
use laneway_store::ClaimRef;
use laneway_store::layer::NewLayer;
use laneway_store::model::{Claim, Finished, Outcome};

#[derive(Debug, Default)]
pub(super) struct Levels {
    of: HashMap<RunId, Level>,
}

#[derive(Debug)]
struct Level {
    at_once: usize,
    /// All of it.
    claims: HashSet<ClaimRef>,
    /// Not begun, or to be tried again, by name.
    waiting: VecDeque<Claim>,
    running: HashMap<ClaimRef, Claim>,
    /// Between two tries.
    resting: HashMap<ClaimRef, Claim>,
    /// Tries that have failed, and how long the log is that they have left.
    tries: HashMap<ClaimRef, (u32, u64)>,
    over: Vec<Finished>,
    /// Nothing more of it begins, and why.
    closed: Option<Reason>,
}

/// What follows from the end of a step.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Follows {
    /// It is tried again after this time.
    pub(super) again: Option<Duration>,
    /// The other steps of the level are to be stopped.
    pub(super) stop: Option<Reason>,
    /// All of it is over.
    pub(super) over: Option<Vec<Finished>>,
}

/// A step that has ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) claim: ClaimRef,
    pub(super) outcome: Outcome,
    pub(super) took: Duration,
    /// How long its log is.
    pub(super) log: u64,
    pub(super) layer: Option<Box<NewLayer>>,
}

impl Levels {
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A level is held from here on. `claims` are all of it, by name.
    pub(super) fn take(&mut self, claims: Vec<Claim>) {
        let Some(first) = claims.first() else { return };
        let at_once = usize::try_from(first.head.max_parallel).unwrap_or(usize::MAX);
        let (run, all) = (first.at.run, claims.iter().map(|claim| claim.at).collect());
        let waiting = claims.into();
        let level = Level {
            at_once,
            claims: all,
            waiting,
            running: HashMap::new(),
            resting: HashMap::new(),
            tries: HashMap::new(),
            over: Vec::new(),
            closed: None,
        };
        self.of.insert(run, level);
    }

    pub(super) fn holds(&self, claim: &ClaimRef) -> bool {
        self.of.get(&claim.run).is_some_and(|level| level.claims.contains(claim))
    }

    /// How many could begin now, if there were slots.
    pub(super) fn wanting(&self) -> usize {
        self.of.values().map(Level::wanting).sum()
    }

    /// A step that may begin now, with the length of the log that its tries have left.
    pub(super) fn next(&mut self) -> Option<(Claim, u64)> {
        let level = self.of.values_mut().find(|level| level.wanting() > 0)?;
        let claim = level.waiting.pop_front()?;
        level.running.insert(claim.at, claim.clone());
        let log = level.tries.get(&claim.at).map_or(0, |(_, log)| *log);
        Some((claim, log))
    }

    pub(super) fn ended(&mut self, end: End) -> Follows {
        let run = end.claim.run;
        let Some(level) = self.of.get_mut(&run) else { return Follows::default() };
        let follows = level.ended(end);
        if follows.over.is_some() {
            self.of.remove(&run);
        }
        follows
    }

    /// The time between two tries is over. Gives nothing of a level that was closed meanwhile.
    pub(super) fn rested(&mut self, claim: &ClaimRef) {
        if let Some(level) = self.of.get_mut(&claim.run)
            && let Some(claim) = level.resting.remove(claim)
        {
            level.waiting.push_front(claim);
        }
    }

    /// How long the log of a step is that rests.
    pub(super) fn note_log(&mut self, claim: ClaimRef, length: u64) {
        let level = self.of.get_mut(&claim.run);
        if let Some((_, log)) = level.and_then(|level| level.tries.get_mut(&claim)) {
            *log = length;
        }
    }

    /// Nothing more of a level begins. Gives its ends if nothing of it runs.
    pub(super) fn close(&mut self, run: RunId, reason: Reason) -> Option<Vec<Finished>> {
        let level = self.of.get_mut(&run)?;
        level.close(reason);
        let over = level.if_over()?;
        self.of.remove(&run);
        Some(over)
    }

    /// A level is somebody else's now, or will be.
    pub(super) fn forget(&mut self, run: RunId) {
        self.of.remove(&run);
    }

    pub(super) fn forget_all(&mut self) {
        self.of.clear();
    }
}

impl Level {
    fn wanting(&self) -> usize {
        self.waiting.len().min(self.at_once.saturating_sub(self.running.len()))
    }

    fn ended(&mut self, end: End) -> Follows {
        let End { claim, outcome, took, log, layer } = end;
        let Some(held) = self.running.remove(&claim) else { return Follows::default() };
        let mut follows = Follows::default();
        let outcome = match (outcome, self.closed) {
            // The first failure is the level's; whatever a step does that is being stopped is no other.
            (Outcome::Failed { .. }, Some(reason)) => Outcome::Canceled { reason },
            (Outcome::Failed { reason, detail, exit_code }, None) => {
                let (tries, _) = self.tries.get(&claim).copied().unwrap_or_default();
                let step = held.head.plan.step(claim.position);
                let delay = retry::next_delay(&step.retry, tries, reason, exit_code, dice(&claim, tries));
                if let Some(delay) = delay {
                    self.tries.insert(claim, (tries + 1, log));
                    self.resting.insert(claim, held);
                    return Follows { again: Some(delay), ..follows };
                }
                follows.stop = Some(Reason::Aborted);
                let detail = if tries > 0 { format!("{detail} (try {})", tries + 1) } else { detail };
                Outcome::Failed { reason, detail, exit_code }
            }
            (outcome @ (Outcome::Succeeded { .. } | Outcome::Cached(_) | Outcome::Canceled { .. }), _) => {
                outcome
            }
        };
        self.over.push(Finished { layer, ..Finished::new(claim, outcome, took) });
        if let Some(reason) = follows.stop {
            self.close(reason);
        }
        follows.over = self.if_over();
        follows
    }

    fn close(&mut self, reason: Reason) {
        self.closed.get_or_insert(reason);
        let resting = self.resting.drain().map(|(claim, _)| claim);
        let unbegun = self.waiting.drain(..).map(|claim| claim.at).chain(resting);
        let took = Duration::ZERO;
        self.over.extend(unbegun.map(|claim| Finished::new(claim, Outcome::Canceled { reason }, took)));
    }

    fn if_over(&mut self) -> Option<Vec<Finished>> {
        let is_over = self.waiting.is_empty() && self.running.is_empty() && self.resting.is_empty();
        is_over.then(|| std::mem::take(&mut self.over))
    }
}

/// A number from 0 up to 1, another one for each try.
fn dice(claim: &ClaimRef, tries: u32) -> f64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (claim.run, claim.position, claim.attempt, tries).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::definition::{Source, compile};
    use laneway_core::id::SessionId;
    use laneway_store::model::{Placed, RunHead};

    use super::*;

    /// Four steps of which two may run at once; `b` may be tried twice more.
    fn claims() -> Vec<Claim> {
        let text = "execution: levels
max_parallel_steps: 2
steps:
  a: {run: x}
  b: {run: x, retry: {max: 2, backoff: 3s, factor: 2}}
  c: {run: x}
  d: {run: x}
";
        let source = Source { file: "t".into(), default_name: "t".into(), text: text.to_owned() };
        let plan = compile(&source).unwrap_or_else(|errors| panic!("{}", errors.render(false)));
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let run = RunId::parse(id).expect("an id");
        let head = Arc::new(RunHead {
            bundle: None,
            run,
            max_parallel: plan.workflow.max_parallel.expect("a bound").get(),
            plan: Arc::new(plan),
            dir: "/".into(),
            params: serde_json::Map::new(),
            submitted_from: String::new(),
            keys: Default::default(),
            placed: Placed::Local,
            own_class: -1,
            parent: None,
            no_cache: false,
        });
        let session = SessionId::parse(id).expect("an id");
        let claim = |position| Claim {
            at: ClaimRef { run, position, attempt: 1, generation: 1, session },
            head: Arc::clone(&head),
            start_by: None,
            is_bound: false,
        };
        (0..4).map(claim).collect()
    }

    fn held() -> (Levels, Vec<ClaimRef>) {
        let claims = claims();
        let at = claims.iter().map(|claim| claim.at).collect();
        let mut levels = Levels::default();
        levels.take(claims);
        (levels, at)
    }

    fn begun(levels: &mut Levels) -> Vec<u32> {
        std::iter::from_fn(|| levels.next()).map(|(claim, _)| claim.at.position).collect()
    }

    fn good(claim: ClaimRef) -> End {
        let outcome = Outcome::Succeeded { output: serde_json::Map::new() };
        End { claim, outcome, took: Duration::ZERO, log: 0, layer: None }
    }

    fn bad(claim: ClaimRef, log: u64) -> End {
        let outcome =
            Outcome::Failed { reason: Reason::Exit, detail: "exit code 1".into(), exit_code: Some(1) };
        End { claim, outcome, took: Duration::ZERO, log, layer: None }
    }

    fn words(finished: &[Finished]) -> String {
        let mut words: Vec<(u32, &str)> = finished
            .iter()
            .map(|one| match &one.outcome {
                Outcome::Succeeded { .. } | Outcome::Cached(_) => (one.claim.position, "succeeded"),
                Outcome::Failed { .. } => (one.claim.position, "failed"),
                Outcome::Canceled { .. } => (one.claim.position, "canceled"),
            })
            .collect();
        words.sort_unstable();
        words.into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn so_many_run_at_once_and_all_of_it_is_said_together() {
        let (mut levels, at) = held();
        assert_eq!((levels.wanting(), begun(&mut levels)), (2, vec![0, 1]));
        assert_eq!(levels.ended(good(at[1])), Follows::default());
        assert_eq!(begun(&mut levels), [2]);
        assert!(at.iter().all(|claim| levels.holds(claim)));
        assert_eq!(levels.ended(good(at[0])), Follows::default());
        assert_eq!(begun(&mut levels), [3]);
        assert_eq!(levels.ended(good(at[2])), Follows::default());
        let over = levels.ended(good(at[3])).over.expect("the last one ends it");
        assert_eq!(words(&over), "succeeded succeeded succeeded succeeded");
        assert!(levels.is_empty());
    }

    #[test]
    fn a_step_is_tried_again_within_its_attempt_and_holds_no_place_meanwhile() {
        let (mut levels, at) = held();
        assert_eq!(begun(&mut levels), [0, 1]);
        let follows = levels.ended(bad(at[1], 70));
        assert_eq!(follows, Follows { again: Some(Duration::from_secs(3)), ..Follows::default() });
        assert!(levels.holds(&at[1]));
        assert_eq!(begun(&mut levels), [2]);
        levels.rested(&at[1]);
        levels.ended(good(at[2]));
        let again = levels.next().map(|(claim, log)| (claim.at.position, log));
        assert_eq!(again, Some((1, 70)), "behind what the first try has printed");
        assert_eq!(levels.ended(bad(at[1], 90)).again, Some(Duration::from_secs(6)));
        levels.rested(&at[1]);
        assert_eq!(begun(&mut levels), [1]);
        let last = levels.ended(bad(at[1], 95));
        assert_eq!((last.again, last.stop, last.over), (None, Some(Reason::Aborted), None), "a still runs");
        let over = levels.ended(good(at[0])).over.expect("nothing runs");
        assert_eq!(words(&over), "succeeded failed succeeded canceled");
        let Some(Outcome::Failed { detail, .. }) = over.iter().find_map(|one| match &one.outcome {
            failed @ Outcome::Failed { .. } => Some(failed),
            Outcome::Succeeded { .. } | Outcome::Cached(_) | Outcome::Canceled { .. } => None,
        }) else {
            panic!("one failed")
        };
        assert_eq!(detail, "exit code 1 (try 3)");
    }

    #[test]
    fn after_the_first_failure_nothing_begins_and_no_second_one_counts() {
        let (mut levels, at) = held();
        assert_eq!(begun(&mut levels), [0, 1]);
        assert_eq!(levels.ended(bad(at[0], 0)).stop, Some(Reason::Aborted));
        assert_eq!(begun(&mut levels), [0u32; 0]);
        let over = levels.ended(bad(at[1], 0)).over.expect("nothing runs");
        assert_eq!(words(&over), "failed canceled canceled canceled");
    }

    #[test]
    fn what_was_to_be_tried_again_is_canceled_with_its_level() {
        let (mut levels, at) = held();
        assert_eq!(begun(&mut levels), [0, 1]);
        levels.ended(bad(at[1], 0));
        levels.ended(good(at[0]));
        let over = levels.close(at[0].run, Reason::Canceled).expect("nothing runs");
        assert_eq!(words(&over), "succeeded canceled canceled canceled");
        levels.rested(&at[1]);
        assert!(levels.next().is_none());
    }
}
