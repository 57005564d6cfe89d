//! A summary of a store: what runs, how runs and attempts ended lately, what failed, what waits.
//! Its cost is bounded for a store of any size: it reads a fixed number of the newest or oldest
//! rows, and never more. Where that was too few, `is_partial` reports it.

use std::collections::BTreeMap;

use laneway_core::gate::Gate;
use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::rank;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;

use crate::model::RunSummary;

/// How far back ends of runs are counted, in milliseconds.
pub const WINDOW_MS: i64 = 24 * 60 * 60 * 1_000;

/// How far back attempts are counted, in minutes. Each minute is counted apart.
pub const MINUTES: usize = 60;
const MINUTE_MS: i64 = 60_000;

/// Number of newest runs to read.
pub(crate) const NEWEST: i64 = 10_000;

/// Number of events to read, newest runs first.
pub(crate) const EVENTS: i64 = 40_000;

/// Number of oldest unfinished runs to read, and of tasks in each, in search of those that wait.
pub(crate) const OLDEST: i64 = 100;
pub(crate) const TASKS: i64 = 100;

/// Maximum number of tasks of a run to count. Those of a larger run are not counted.
pub(crate) const COUNTED: i64 = 1_000;

/// Number of runs and tasks to name.
pub(crate) const NAMED: usize = 10;

/// Number of tasks that may be among the longest waiting. They are found by rank, in which a
/// priority makes a task older or younger than it is.
pub(crate) const CANDIDATES: usize = 40;

#[derive(Debug, Clone)]
pub struct Overview {
    /// When this was read, by the store's clock.
    pub observed_at: Millis,
    pub unfinished: Unfinished,
    pub ended: Ended,
    pub attempts: Attempts,
    /// Runs that failed within the window, newest first, among those whose ends were counted. Tasks
    /// of a large run are not counted.
    pub failing: Vec<RunSummary>,
    /// Tasks that wait for something other than the steps they need, longest first.
    pub waiting: Vec<Waiting>,
    /// Some runs or tasks were not read.
    pub is_waiting_partial: bool,
}

/// Runs that have not ended, each counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unfinished {
    pub running: u64,
    /// Waiting for another run of their workflow.
    pub queued: u64,
    pub paused: u64,
    /// There are more: only the newest are counted.
    pub is_partial: bool,
}

/// Runs that ended within the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Some runs were not read.
    pub is_partial: bool,
}

/// Attempts by minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attempts {
    /// The last sixty minutes, oldest first, including those without attempts.
    pub minutes: Vec<Minute>,
    /// Some runs or events were not read.
    pub is_partial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minute {
    /// When the minute began.
    pub at: Millis,
    pub started: u64,
    pub succeeded: u64,
    /// Includes attempts that were retried.
    pub failed: u64,
    /// Percentile of the duration of attempts that ended in this minute. `None` if none did.
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
}

impl Minute {
    fn of(at: Millis) -> Self {
        Self { at, started: 0, succeeded: 0, failed: 0, p50_ms: None, p95_ms: None }
    }
}

/// A task that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub run: RunId,
    pub workflow: String,
    /// Empty if its plan is unreadable.
    pub step: String,
    pub status: TaskStatus,
    pub since: Millis,
    pub gate: Option<Gate>,
    /// The key at which it waits, in stored form.
    pub key: Option<String>,
    /// A description, for a step that waits for a signal or a moment.
    pub wait: Option<String>,
}

/// Something that an attempt did, as recorded in an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Deed {
    pub(crate) at: Millis,
    /// The name of the event.
    pub(crate) name: String,
    pub(crate) status: Option<String>,
    pub(crate) took_ms: Option<u64>,
}

/// One of the oldest runs that have not ended.
#[derive(Debug, Clone)]
pub(crate) struct OldRun {
    pub(crate) no: i64,
    pub(crate) run: RunId,
    pub(crate) workflow: String,
    pub(crate) version: Version,
    /// It has more tasks than are read.
    pub(crate) is_large: bool,
}

/// The row of a task that waits.
#[derive(Debug, Clone)]
pub(crate) struct WaitingRow {
    /// Index of its run among the oldest.
    pub(crate) of: usize,
    pub(crate) position: u32,
    pub(crate) status: String,
    pub(crate) gate: Option<String>,
    pub(crate) key: Option<String>,
    /// Its rank, or the moment since when it is parked.
    pub(crate) order: i64,
}

/// Returns the start of the oldest of the minutes.
pub(crate) fn first_minute(now: Millis) -> Millis {
    let span = i64::try_from(MINUTES - 1).expect("an hour") * MINUTE_MS;
    Millis(now.0.div_euclid(MINUTE_MS) * MINUTE_MS - span)
}

/// Counts what attempts did. Ignores everything before the first minute.
pub(crate) fn by_minute(now: Millis, deeds: impl IntoIterator<Item = Deed>) -> Vec<Minute> {
    let first = first_minute(now);
    let mut minutes: Vec<Minute> =
        (0..MINUTES).map(|number| Minute::of(Millis(first.0 + number as i64 * MINUTE_MS))).collect();
    let mut took: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    for deed in deeds {
        let number = usize::try_from((deed.at.0 - first.0).div_euclid(MINUTE_MS));
        let Some((number, minute)) = number.ok().and_then(|number| Some((number, minutes.get_mut(number)?)))
        else {
            continue;
        };
        match (deed.name.as_str(), deed.status.as_deref()) {
            ("task_started", _) => minute.started += 1,
            ("task_finished", Some("succeeded")) => minute.succeeded += 1,
            ("task_finished", Some("failed")) | ("task_retrying", _) => minute.failed += 1,
            // A canceled attempt does not show how long such a step takes.
            (_, _) => continue,
        }
        if let (Some(ms), true) = (deed.took_ms, deed.name != "task_started") {
            took.entry(number).or_default().push(ms);
        }
    }
    for (number, mut took) in took {
        took.sort_unstable();
        (minutes[number].p50_ms, minutes[number].p95_ms) = (share(&took, 50), share(&took, 95));
    }
    minutes
}

/// Returns the smallest value that is not exceeded by `of_hundred` percent of the values.
fn share(sorted: &[u64], of_hundred: usize) -> Option<u64> {
    let place = (sorted.len() * of_hundred).div_ceil(100);
    sorted.get(place.checked_sub(1)?).copied()
}

/// Keeps the rows that may have waited longest.
pub(crate) fn candidates(rows: &mut Vec<WaitingRow>) {
    rows.sort_by_key(|row| (row.order, row.of, row.position));
    rows.truncate(CANDIDATES);
}

/// Returns the tasks that have waited longest, in that order.
pub(crate) fn longest(mut waiting: Vec<Waiting>) -> Vec<Waiting> {
    waiting.sort_by(|one, other| (one.since, one.run, &one.step).cmp(&(other.since, other.run, &other.step)));
    waiting.truncate(NAMED);
    waiting
}

/// Returns the task with its names, as far as its plan is readable and has it. Returns `None` if
/// its status is unreadable.
pub(crate) fn told(row: &WaitingRow, of: &OldRun, plan: Option<&Plan>) -> Option<Waiting> {
    let status = TaskStatus::parse(&row.status)?;
    let plan = plan.filter(|plan| plan.base(row.position).is_some());
    let step = plan.map(|plan| plan.step(row.position));
    let since = match status {
        TaskStatus::Parked => Millis(row.order),
        _ => rank::since(row.order, step.map_or(0, |step| step.demands().priority)),
    };
    Some(Waiting {
        run: of.run,
        workflow: of.workflow.clone(),
        step: plan.map(|plan| plan.task_name(row.position)).unwrap_or_default(),
        status,
        since,
        gate: row.gate.as_deref().and_then(Gate::parse),
        key: row.key.clone(),
        wait: step.and_then(|step| step.wait()).map(ToString::to_string),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_700_000_030_000);

    fn deed(ago_ms: i64, name: &str, status: Option<&str>, took_ms: Option<u64>) -> Deed {
        let (name, status) = (name.to_owned(), status.map(str::to_owned));
        Deed { at: Millis(NOW.0 - ago_ms), name, status, took_ms }
    }

    #[test]
    fn attempts_are_counted_in_the_minute_in_which_they_ended() {
        let hour = 60 * MINUTE_MS;
        let minutes = by_minute(
            NOW,
            [
                deed(0, "task_started", None, None),
                deed(0, "task_finished", Some("succeeded"), Some(10)),
                deed(0, "task_retrying", None, Some(30)),
                deed(0, "task_finished", Some("canceled"), Some(9_999)),
                deed(MINUTE_MS, "task_finished", Some("failed"), None),
                deed(hour, "task_finished", Some("failed"), Some(1)),
            ],
        );
        assert_eq!(minutes.len(), MINUTES);
        assert_eq!(minutes[59].at.0 % MINUTE_MS, 0);
        assert!(minutes[59].at <= NOW && NOW.0 < minutes[59].at.0 + MINUTE_MS);
        let last = minutes[59];
        assert_eq!((last.started, last.succeeded, last.failed), (1, 1, 1));
        assert_eq!((last.p50_ms, last.p95_ms), (Some(10), Some(30)));
        assert_eq!((minutes[58].failed, minutes[58].p50_ms), (1, None));
        assert!(minutes[..58].iter().all(|minute| minute.failed == 0), "an hour ago is not in it");
    }

    #[test]
    fn share_is_one_of_those_that_are_there() {
        let hundred: Vec<u64> = (1..=100).collect();
        assert_eq!((share(&hundred, 50), share(&hundred, 95)), (Some(50), Some(95)));
        assert_eq!((share(&[7], 50), share(&[7], 95), share(&[], 50)), (Some(7), Some(7), None));
    }
}
