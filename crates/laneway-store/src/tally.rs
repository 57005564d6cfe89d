//! The counters of a session, as they are stored. They are JSON, so that a later program may count
//! more. The number of its requests for work is stored in a column of its own. No decision depends
//! on them.

use std::time::Duration;

use laneway_core::gate::Gate;
use serde::{Deserialize, Serialize};

use crate::model::Tally;

/// A histogram of durations: how many fell into each bucket, each counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// By `BOUNDS`. The last bucket counts everything longer.
    pub counts: [u64; BOUNDS.len() + 1],
    pub micros: u64,
}

/// Upper bounds of the buckets, in milliseconds.
pub const BOUNDS: [u64; 8] = [1, 2, 5, 25, 100, 500, 2_500, 10_000];

/// Upper bounds for tasks that wait, in milliseconds.
pub const WAIT_BOUNDS: [u64; BOUNDS.len()] = [10, 100, 1_000, 5_000, 30_000, 120_000, 600_000, 3_600_000];

/// Gates at which tasks queue, so that the moment since when they wait is known.
pub const GATES: [Gate; 7] =
    [Gate::Paused, Gate::Node, Gate::MaxParallel, Gate::Order, Gate::Lock, Gate::Limit, Gate::Rate];

/// How long tasks waited until they became available, by the gate at which they waited last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateWaits(pub [Spread; GATES.len()]);

impl GateWaits {
    pub(crate) fn add(&mut self, gate: Gate, waited: Duration) {
        if let Some(at) = GATES.iter().position(|known| *known == gate) {
            self.0[at].add_by(&WAIT_BOUNDS, waited);
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Spread {
    pub fn add(&mut self, took: Duration) {
        self.add_by(&BOUNDS, took);
    }

    fn add_by(&mut self, bounds: &[u64; BOUNDS.len()], took: Duration) {
        let at = bounds.iter().position(|bound| took <= Duration::from_millis(*bound));
        self.counts[at.unwrap_or(BOUNDS.len())] += 1;
        self.micros = self.micros.saturating_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub fn merge(&mut self, other: Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.micros = self.micros.saturating_add(other.micros);
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

pub(crate) fn to_text(tally: Tally) -> String {
    serde_json::to_string(&tally).expect("numbers can be written")
}

/// Reads stored counters. Unreadable ones count as zero: they are displayed only, and decide
/// nothing.
pub(crate) fn read(text: Option<&str>, asks: u64, contentions: u64) -> Tally {
    let done: Tally = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    Tally { asks, contentions, ..done }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_as_long_as_a_bound_is_within_it() {
        let mut spread = Spread::default();
        for millis in [0, 1, 3, 5, 10_000, 10_001] {
            spread.add(Duration::from_millis(millis));
        }
        assert_eq!(spread.counts, [2, 0, 2, 0, 0, 0, 0, 1, 1]);
        assert_eq!(spread.micros, 20_010_000);
        let tally = Tally { claim_to_start: spread, ..Tally::default() };
        assert_eq!(read(Some(&to_text(tally)), 0, 0), tally);
    }
}
