//! Retention: inputs and outputs of `prunable`, `prune` and `sweep`, and the periods that both
//! databases share. The choice of runs is here, the statements never. See
//! `docs/design/retention.md`.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

/// How long unreferenced bytes stay. A caller that stores bytes has this long to reference them.
pub(crate) const HOLD_BYTES: Duration = Duration::from_secs(24 * 3600);

/// How long the key of a removed run is remembered. A client that retries with the key within this
/// time starts nothing twice.
pub(crate) const HOLD_KEYS: Duration = Duration::from_secs(7 * 24 * 3600);

/// Bytes that are stored again within this time of the last record are not recorded again.
pub(crate) const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// Number of rows that one transaction of a sweep reads.
pub(crate) const SWEEP_ROWS: i64 = 200;

/// Number of records that one transaction reads.
pub(crate) const RECORDS_AT_ONCE: i64 = 1_000;

/// Maximum number of such transactions in one `prune_records`, for each kind. The rest waits for
/// the next call.
pub(crate) const RECORD_TURNS: u32 = 20;

/// The retention of runs. `None` keeps all of them. A run may go as soon as any bound releases it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Time since the end of a run.
    pub for_: Option<Duration>,
    /// Number of newest runs of each workflow.
    pub runs: Option<u32>,
    /// Total size of all ended runs, in bytes. The oldest go first.
    pub bytes: Option<u64>,
}

impl Keep {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// The retention of the audit log and of the events of nodes. `None` keeps them forever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepRecords {
    pub audit: Option<Duration>,
    pub node_events: Option<Duration>,
}

impl KeepRecords {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// Returns each kind of record that is pruned, with how long it stays.
    pub(crate) fn each(self) -> impl Iterator<Item = (Record, Duration)> {
        let kinds = [(Record::Audit, self.audit), (Record::NodeEvent, self.node_events)];
        kinds.into_iter().filter_map(|(record, kept)| Some((record, kept?)))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    Audit,
    NodeEvent,
}

/// A run that may be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prunable {
    pub run: RunId,
    pub workflow: String,
    pub status: RunStatus,
    pub finished_at: Millis,
    /// Size of its logs, artifacts, outputs and events. What it shares with other runs counts as
    /// well.
    pub bytes: u64,
}

/// Unreferenced objects that a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bundles, artifacts, and logs of removed runs.
    pub things: u64,
    pub bytes: u64,
}

impl Swept {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.things += 1;
        self.bytes += bytes;
    }
}

/// A binary search for the number of the first run that was submitted at or after a moment. Run
/// numbers grow in the order of submission, so that few lookups suffice. Its method `looked` takes
/// the first run at or above a number, with its moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    low: i64,
    high: i64,
}

impl Search {
    /// Searches the numbers from `low` to `high`, inclusive.
    pub(crate) fn new(low: i64, high: i64) -> Self {
        Self { low, high: high.saturating_add(1) }
    }

    /// Returns the next number to query, or `None` when the search is done.
    pub(crate) fn next(&self) -> Option<i64> {
        (self.low < self.high).then(|| self.low + (self.high - self.low) / 2)
    }

    pub(crate) fn looked(&mut self, at: i64, found: Option<(i64, Millis)>, before: Millis) {
        match found {
            Some((no, submitted_at)) if submitted_at < before => self.low = no.saturating_add(1),
            Some(_) | None => self.high = at,
        }
    }

    /// Returns the number below which every run was submitted before the moment.
    pub(crate) fn found(&self) -> i64 {
        self.low
    }
}

/// A run that may be removed, with its number.
pub(crate) type Choice = (i64, Prunable);

/// Returns which of the oldest runs to remove so that the rest fits into `keep` bytes. `total` is
/// the size of all ended runs. `going` are removed for another reason and make room already.
/// `oldest` are all that may be removed, oldest first.
pub(crate) fn beyond(total: u64, keep: u64, going: &[Choice], oldest: Vec<Choice>) -> Vec<Choice> {
    let gone: u64 = going.iter().map(|(_, choice)| choice.bytes).sum();
    let numbers: HashSet<i64> = going.iter().map(|(no, _)| *no).collect();
    let mut excess = total.saturating_sub(gone).saturating_sub(keep);
    let left = oldest.into_iter().filter(|(no, _)| !numbers.contains(no));
    left.take_while(|(_, choice)| {
        let goes = excess > 0;
        excess = excess.saturating_sub(choice.bytes);
        goes
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_runs_go_until_the_rest_fits() {
        let go = |total, keep, sizes: &[u64]| beyond(total, keep, &[], choices(sizes)).len();
        assert_eq!(go(100, 100, &[50, 50]), 0);
        assert_eq!(go(101, 100, &[50, 50]), 1);
        assert_eq!(go(151, 100, &[50, 50, 51]), 2);
        assert_eq!(go(1_000, 0, &[1, 2]), 2, "what may not go stays, whatever its size");
    }

    #[test]
    fn what_goes_anyway_makes_room_and_is_not_chosen_twice() {
        let all = choices(&[50, 40, 30, 20]);
        let numbers = |going: &[Choice], keep| -> Vec<i64> {
            beyond(140, keep, going, all.clone()).iter().map(|(no, _)| *no).collect()
        };
        assert_eq!(numbers(&all[1..3], 70), [0_i64; 0], "70 of 140 go already");
        assert_eq!(numbers(&all[1..3], 69), [0]);
        assert_eq!(numbers(&all[1..3], 0), [0, 3]);
    }

    fn choices(sizes: &[u64]) -> Vec<Choice> {
        let run = RunId::parse("0190d5a0-0000-7000-8000-000000000001").expect("an id");
        let choice = |bytes| Prunable {
            run,
            workflow: "flow".to_owned(),
            status: RunStatus::Succeeded,
            finished_at: Millis(0),
            bytes,
        };
        sizes.iter().zip(0..).map(|(bytes, no)| (no, choice(*bytes))).collect()
    }

    #[test]
    fn the_place_of_a_moment_is_found_among_numbers_with_gaps() {
        let runs = [(3, 10), (4, 20), (9, 30), (40, 40), (41, 50)];
        for before in [0, 10, 15, 30, 45, 51, 99] {
            let mut search = Search::new(3, 41);
            let mut looks = 0;
            while let Some(at) = search.next() {
                let found = runs.iter().find(|(no, _)| *no >= at).map(|(no, moment)| (*no, Millis(*moment)));
                search.looked(at, found, Millis(before));
                looks += 1;
            }
            let expected = runs.iter().filter(|(_, moment)| *moment < before).count();
            let smaller = runs.iter().filter(|(no, _)| *no < search.found()).count();
            assert_eq!(smaller, expected, "before {before}");
            assert!(looks < 10, "{looks} looks");
        }
    }
}
