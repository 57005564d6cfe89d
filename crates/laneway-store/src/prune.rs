//! What may be forgotten, and when: the words of `prunable`, `prune` and `sweep`, and the spans that both databases keep to.
//! `docs/design/retention.md` says why.

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

/// Which of the oldest go so that what stays is within `keep`, of the sizes of all that are over. `oldest` are those that
/// may go, oldest first.
pub(crate) fn beyond(total: u64, keep: u64, oldest: impl Iterator<Item = u64>) -> usize {
    let mut excess = total.saturating_sub(keep);
    oldest
        .take_while(|bytes| {
            let goes = excess > 0;
            excess = excess.saturating_sub(*bytes);
            goes
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_runs_go_until_the_rest_fits() {
        assert_eq!(beyond(100, 100, [50, 50].into_iter()), 0);
        assert_eq!(beyond(101, 100, [50, 50].into_iter()), 1);
        assert_eq!(beyond(151, 100, [50, 50, 51].into_iter()), 2);
        assert_eq!(beyond(1_000, 0, [1, 2].into_iter()), 2, "what may not go stays, whatever its size");
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
