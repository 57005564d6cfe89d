//! What may be forgotten, and when: the words of `prunable`, `prune` and `sweep`, and the spans that both databases keep to.
//! `docs/design/retention.md` says why.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

/// How long bytes stay that nothing refers to: whoever brings some has this long to name them.
pub(crate) const HOLD_BYTES: Duration = Duration::from_secs(24 * 3600);

/// How long the key of a run that was removed is remembered: whoever still has it in hand starts nothing twice.
pub(crate) const HOLD_KEYS: Duration = Duration::from_secs(7 * 24 * 3600);

/// Bytes that were brought again within this are not noted again.
pub(crate) const TOUCH_AFTER: Duration = Duration::from_secs(3600);

/// Rows that one transaction of a sweep looks at.
pub(crate) const SWEEP_ROWS: i64 = 200;

/// Records that one transaction looks at.
pub(crate) const RECORDS_AT_ONCE: i64 = 1_000;

/// Such transactions of one `prune_records`, for each kind: what is left has time until the next.
pub(crate) const RECORD_TURNS: u32 = 20;

/// How much of the past is kept. `None` is all of it; what any of them lets go may go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Runs, for so long after their end.
    pub for_: Option<Duration>,
    /// So many runs of each workflow, the newest.
    pub runs: Option<u32>,
    /// So many bytes of all runs that are over; the oldest go first.
    pub bytes: Option<u64>,
}

impl Keep {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// For how long it is known what people did through the service, and what nodes told of themselves. `None` is for ever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepRecords {
    pub audit: Option<Duration>,
    pub node_events: Option<Duration>,
}

impl KeepRecords {
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// What goes, with how long it stays.
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

/// A run that may go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prunable {
    pub run: RunId,
    pub workflow: String,
    pub status: RunStatus,
    pub finished_at: Millis,
    /// What its steps printed and left behind, its outputs and its events. What it shares with others counts as well.
    pub bytes: u64,
}

/// What nothing referred to any more.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Bundles, artifacts, and logs of runs that are gone.
    pub things: u64,
    pub bytes: u64,
}

impl Swept {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.things += 1;
        self.bytes += bytes;
    }
}

/// The numbers of runs, between which those lie that were submitted before a moment: numbers are given out in the order of
/// submissions, so that a few looks find the place. `looked` is the first run at or above a number, with its moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    low: i64,
    high: i64,
}

impl Search {
    /// Among the numbers from `low` up to and with `high`.
    pub(crate) fn new(low: i64, high: i64) -> Self {
        Self { low, high: high.saturating_add(1) }
    }

    /// Where to look next; `None` when it is found.
    pub(crate) fn next(&self) -> Option<i64> {
        (self.low < self.high).then(|| self.low + (self.high - self.low) / 2)
    }

    pub(crate) fn looked(&mut self, at: i64, found: Option<(i64, Millis)>, before: Millis) {
        match found {
            Some((no, submitted_at)) if submitted_at < before => self.low = no.saturating_add(1),
            Some(_) | None => self.high = at,
        }
    }

    /// Every run of a smaller number was submitted before the moment.
    pub(crate) fn found(&self) -> i64 {
        self.low
    }
}

/// A run that may go, with its number.
pub(crate) type Choice = (i64, Prunable);

/// Which of the oldest go so that what stays is within `keep`, of the sizes of all that are over. `going` go for another reason
/// and make room by that; `oldest` are all that may go, oldest first.
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
