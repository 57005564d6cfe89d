//! The gate keeper's predicate: may this task become available, and if not, what does it wait for?
//! Pure. The store applies it under its locks and stores only the gate; the full cause is computed from the
//! same facts when somebody reads it, so that what is shown is what is decided.

use crate::definition::When;
use crate::event::Closing;
use crate::reason::Reason;
use crate::time::Millis;
use crate::words::words;

words! {
    /// What stands between pending and available, in the order in which it is looked at.
    pub enum Gate {
        Needs = "needs",
        RunAt = "run_at",
        MaxParallel = "max_parallel",
    }
}

/// How the predecessors of a needs set have ended so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub unsettled: u32,
    /// Includes those a person skipped.
    pub succeeded: u32,
    pub failed: u32,
    /// Canceled, or skipped by Laneway.
    pub passed_over: u32,
}

/// What `when` makes of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    Wait,
    Met,
    /// It can no longer be met.
    Never,
}

/// Decides as early as the outcome is certain.
pub fn needs(when: When, counts: Counts) -> Needs {
    let done = counts.unsettled == 0;
    match when {
        When::AllDone | When::Always => {
            if done {
                Needs::Met
            } else {
                Needs::Wait
            }
        }
        When::AllSucceeded => all(done, counts.failed + counts.passed_over),
        When::AllFailed => all(done, counts.succeeded + counts.passed_over),
        When::OneSucceeded => one(done, counts.succeeded),
        When::OneFailed => one(done, counts.failed),
    }
}

fn all(done: bool, against: u32) -> Needs {
    match (against, done) {
        (0, true) => Needs::Met,
        (0, false) => Needs::Wait,
        (1.., _) => Needs::Never,
    }
}

fn one(done: bool, found: u32) -> Needs {
    match (found, done) {
        (1.., _) => Needs::Met,
        (0, false) => Needs::Wait,
        (0, true) => Needs::Never,
    }
}

/// Everything the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub when: When,
    /// `None` for a step that needs nothing.
    pub counts: Option<Counts>,
    pub closing: Option<Closing>,
    /// `None` as long as nobody had to evaluate it, or where there is no `if`.
    pub condition: Option<bool>,
    pub run_at: Option<Millis>,
    pub now: Millis,
    /// Tasks of the run that are available or running.
    pub live: u32,
    pub max_parallel: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Available now.
    Open,
    Closed(Gate),
    /// It will never run.
    Skip(Reason),
    /// The run is being canceled, and this with it.
    Cancel(Reason),
}

/// Gates in order: the run's closing, needs, if, run_at, max_parallel. The first that is closed is the cause.
pub fn judge(facts: &Facts) -> Verdict {
    match facts.closing {
        Some(closing) if !closing.lets_clean_up() => return Verdict::Cancel(closing.reason()),
        // "Aborted" is for what was running; what never started is told the same as under halt.
        Some(_) if !facts.when.accepts_failure() => return Verdict::Skip(Reason::Halted),
        Some(_) | None => {}
    }
    match facts.counts.map_or(Needs::Met, |counts| needs(facts.when, counts)) {
        Needs::Wait => return Verdict::Closed(Gate::Needs),
        Needs::Never => return Verdict::Skip(Reason::Upstream),
        Needs::Met => {}
    }
    if facts.condition == Some(false) {
        return Verdict::Skip(Reason::Condition);
    }
    if facts.run_at.is_some_and(|run_at| run_at > facts.now) {
        return Verdict::Closed(Gate::RunAt);
    }
    if facts.live >= facts.max_parallel {
        return Verdict::Closed(Gate::MaxParallel);
    }
    Verdict::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(unsettled: u32, succeeded: u32, failed: u32, passed_over: u32) -> Counts {
        Counts { unsettled, succeeded, failed, passed_over }
    }

    #[test]
    fn every_rule_decides_as_early_as_it_can() {
        use Needs::{Met, Never, Wait};
        let table = [
            //                     none yet, one ok so far, one failed so far, one skipped so far, all ok, all failed, all skipped
            (When::AllSucceeded, [Wait, Wait, Never, Never, Met, Never, Never]),
            (When::AllDone, [Wait, Wait, Wait, Wait, Met, Met, Met]),
            (When::Always, [Wait, Wait, Wait, Wait, Met, Met, Met]),
            (When::AllFailed, [Wait, Never, Wait, Never, Never, Met, Never]),
            (When::OneSucceeded, [Wait, Met, Wait, Wait, Met, Never, Never]),
            (When::OneFailed, [Wait, Wait, Met, Wait, Never, Met, Never]),
        ];
        let situations = [
            counts(2, 0, 0, 0),
            counts(1, 1, 0, 0),
            counts(1, 0, 1, 0),
            counts(1, 0, 0, 1),
            counts(0, 2, 0, 0),
            counts(0, 0, 2, 0),
            counts(0, 0, 0, 2),
        ];
        for (when, expected) in table {
            assert_eq!(situations.map(|counts| needs(when, counts)), expected, "{when:?}");
        }
    }

    fn open() -> Facts {
        Facts {
            when: When::AllSucceeded,
            counts: Some(counts(0, 1, 0, 0)),
            closing: None,
            condition: None,
            run_at: None,
            now: Millis(100),
            live: 0,
            max_parallel: 4,
        }
    }

    #[test]
    fn gates_are_looked_at_in_order() {
        assert_eq!(judge(&open()), Verdict::Open);
        let full = Facts { live: 4, ..open() };
        assert_eq!(judge(&full), Verdict::Closed(Gate::MaxParallel));
        let early = Facts { run_at: Some(Millis(101)), ..full };
        assert_eq!(judge(&early), Verdict::Closed(Gate::RunAt));
        let refused = Facts { condition: Some(false), ..early };
        assert_eq!(judge(&refused), Verdict::Skip(Reason::Condition));
        let waiting = Facts { counts: Some(counts(1, 0, 0, 0)), ..refused };
        assert_eq!(judge(&waiting), Verdict::Closed(Gate::Needs));
        let halted = Facts { closing: Some(Closing::Halted), ..waiting };
        assert_eq!(judge(&halted), Verdict::Skip(Reason::Halted));
    }

    #[test]
    fn run_at_opens_at_its_very_moment() {
        assert_eq!(judge(&Facts { run_at: Some(Millis(100)), ..open() }), Verdict::Open);
    }

    #[test]
    fn clean_up_starts_in_a_halted_run_and_never_in_a_canceled_one() {
        let clean_up = Facts { when: When::AllDone, counts: Some(counts(0, 0, 1, 0)), ..open() };
        for closing in [Closing::Halted, Closing::Aborted] {
            assert_eq!(judge(&Facts { closing: Some(closing), ..clean_up }), Verdict::Open);
        }
        for closing in [Closing::Canceled, Closing::RunTimeout] {
            assert_eq!(
                judge(&Facts { closing: Some(closing), ..clean_up }),
                Verdict::Cancel(closing.reason())
            );
        }
    }
}
