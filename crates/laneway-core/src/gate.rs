//! The gate keeper's predicate: may this task become available, and if not, what does it wait for?
//! Pure. The store applies it under its locks and stores only the gate and its key; the full cause is computed from
//! the same facts when somebody reads it (`cause.rs`), so that what is shown is what is decided.

use crate::definition::When;
use crate::event::Closing;
use crate::reason::Reason;
use crate::time::Millis;
use crate::words::words;

mod keys;
mod rate;
#[cfg(test)]
mod tests;

pub use keys::{Keys, Level, Limited, Locked, Ordered};
pub use rate::{Passage, Tat, gcra};

words! {
    /// What stands between pending and available, in the order in which it is looked at.
    ///
    /// What belongs to the run alone comes first, what all runs share last: a task that nobody can run, or that has
    /// no place in its run, stands in no line for a key and keeps nobody from it.
    pub enum Gate {
        /// Its run is queued, because the workflow has as many runs as it may.
        MaxRuns = "max_runs",
        Needs = "needs",
        /// Its `not_before`, or the delay of a retry.
        RunAt = "run_at",
        /// A person paused the run or its workflow.
        Paused = "paused",
        /// No live node can run it.
        Node = "node",
        /// Its group has as many members available or running as its `max_parallel` allows.
        Group = "group",
        /// Its level is taken as a whole, with the first of its steps.
        Level = "level",
        MaxParallel = "max_parallel",
        Order = "order",
        Lock = "lock",
        Limit = "limit",
        Rate = "rate",
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
pub struct Facts<'a> {
    pub when: When,
    /// `None` for a step that needs nothing.
    pub counts: Option<Counts>,
    pub closing: Option<Closing>,
    /// The run is being canceled, and the time for its clean-up is not over.
    pub is_cleaning_up: bool,
    /// It cleans up nothing, though it may run however others end: it brings a group together, or stands in a level.
    pub is_no_clean_up: bool,
    /// `None` as long as nobody had to evaluate it, or where there is no `if`.
    pub condition: Option<bool>,
    /// The delay of a retry.
    pub run_at: Option<Millis>,
    /// Of a step that has one, resolved; known once its needs are met.
    pub not_before: Option<Millis>,
    pub now: Millis,
    /// Tasks of the run that are available or running.
    pub live: u32,
    pub max_parallel: u32,
    /// The run has not started: it waits behind `max_runs`.
    pub is_queued: bool,
    /// The run or its workflow.
    pub is_paused: bool,
    /// Some node that is alive and takes new work can run its class (`class::can_run`).
    pub has_node: bool,
    /// Of a member of a group that bounds how many there may be at once.
    pub group: Option<Room>,
    /// Another step of its level is taken first, and this with it.
    pub is_led: bool,
    pub keys: Keys<'a>,
}

/// Places that a group has for its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Other members that are available or running.
    pub live: u32,
    pub max: u32,
}

impl Facts<'_> {
    /// Those of a task that may start: to be changed by what is found.
    pub fn open(now: Millis) -> Self {
        Self {
            when: When::default(),
            counts: None,
            closing: None,
            is_cleaning_up: false,
            is_no_clean_up: false,
            condition: None,
            run_at: None,
            not_before: None,
            now,
            live: 0,
            max_parallel: 1,
            is_queued: false,
            is_paused: false,
            has_node: true,
            group: None,
            is_led: false,
            keys: Keys::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// Available now; `Keys::spent` says what that leaves in its keys' rows.
    Open,
    Closed(Wait<'a>),
    /// It will never run.
    Skip(Reason),
    /// The run is being canceled, and this with it.
    Cancel(Reason),
}

/// A closed gate: all that is stored of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait<'a> {
    pub gate: Gate,
    /// The key, or the limit's name, of a gate that has one.
    pub key: Option<&'a str>,
    /// When it opens by itself: nothing happens then that would tell, so somebody has to look.
    pub until: Option<Millis>,
}

impl Wait<'_> {
    fn at(gate: Gate) -> Self {
        Self { gate, key: None, until: None }
    }
}

/// Gates in order: the run's closing, max_runs, needs, if, run_at (with not_before), paused, node, group, level, max_parallel, then the keys (order,
/// lock, limits, rates). The first that is closed is the cause; only a task behind none of them is open.
pub fn judge<'a>(facts: &Facts<'a>) -> Verdict<'a> {
    if let Some(closing) = facts.closing
        && (facts.is_no_clean_up || !closing.lets_start(facts.when, facts.is_cleaning_up))
    {
        return match closing {
            Closing::Canceled | Closing::RunTimeout => Verdict::Cancel(closing.reason()),
            // "Aborted" is for what was running; what never started is told the same as under halt.
            Closing::Halted | Closing::Aborted => Verdict::Skip(Reason::Halted),
        };
    }
    if facts.is_queued {
        return Verdict::Closed(Wait::at(Gate::MaxRuns));
    }
    match facts.counts.map_or(Needs::Met, |counts| needs(facts.when, counts)) {
        Needs::Wait => return Verdict::Closed(Wait::at(Gate::Needs)),
        Needs::Never => return Verdict::Skip(Reason::Upstream),
        Needs::Met => {}
    }
    if facts.condition == Some(false) {
        return Verdict::Skip(Reason::Condition);
    }
    if let Some(until) = facts.run_at.max(facts.not_before)
        && until > facts.now
    {
        return Verdict::Closed(Wait { until: Some(until), ..Wait::at(Gate::RunAt) });
    }
    if facts.is_paused {
        return Verdict::Closed(Wait::at(Gate::Paused));
    }
    if !facts.has_node {
        return Verdict::Closed(Wait::at(Gate::Node));
    }
    if facts.group.is_some_and(|group| group.live >= group.max) {
        return Verdict::Closed(Wait::at(Gate::Group));
    }
    if facts.is_led {
        return Verdict::Closed(Wait::at(Gate::Level));
    }
    if facts.live >= facts.max_parallel {
        return Verdict::Closed(Wait::at(Gate::MaxParallel));
    }
    match facts.keys.closed(facts.now) {
        Some(wait) => Verdict::Closed(wait),
        None => Verdict::Open,
    }
}
