//! Rates: one timestamp for each, moved on whenever somebody passes (the generic cell rate algorithm).
//! Owns the arithmetic. The store keeps the timestamp in the key's row and calls this under that row's lock.

use crate::limit::Rate;
use crate::time::Millis;

/// When the next one may pass, in microseconds since 1970: finer than the store's clock, so that a rate of more than
/// one in a millisecond is kept as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tat(pub i64);

impl Tat {
    /// The millisecond in which it lies.
    fn millis(self) -> Millis {
        Millis(self.0.div_euclid(1000))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    /// What to keep if it is used.
    Open {
        next: Tat,
    },
    Closed {
        until: Millis,
    },
}

/// Whether one more may pass at `now`. `tat` is `None` for a rate that nobody has used yet.
///
/// Passages are evenly spaced and never burst, so *any* window has at most `count` starts. A burst
/// of `count` after a quiet time would allow twice as many in one window.
pub fn gcra(tat: Option<Tat>, now: Millis, rate: Rate) -> Passage {
    let start = now.0.saturating_mul(1000);
    let tat = tat.unwrap_or(Tat(start));
    if tat.millis() > now {
        return Passage::Closed { until: tat.millis() };
    }
    Passage::Open { next: Tat(tat.0.max(start).saturating_add(rate.spacing())) }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn rate(count: u32, window_ms: u64) -> Rate {
        Rate { count: NonZeroU32::new(count).expect("above 0"), window: Duration::from_millis(window_ms) }
    }

    /// The moments at which `wanted` pass if each tries as soon as it may, and not before `from`.
    fn eager(rate: Rate, from: Millis, wanted: usize) -> Vec<i64> {
        let (mut tat, mut now, mut passed) = (None, from, Vec::new());
        while passed.len() < wanted {
            match gcra(tat, now, rate) {
                Passage::Open { next } => {
                    tat = Some(next);
                    passed.push(now.0);
                }
                Passage::Closed { until } => {
                    assert!(until > now, "it must get on");
                    now = until;
                }
            }
        }
        passed
    }

    #[test]
    fn passages_are_spaced_evenly() {
        assert_eq!(eager(rate(2, 2000), Millis(70), 4), [70, 1145, 2220, 3295]);
        assert_eq!(eager(rate(3, 1000), Millis(0), 4), [0, 358, 716, 1075], "never early");
    }

    #[test]
    fn a_quiet_time_saves_nothing_up() {
        let Passage::Open { next } = gcra(None, Millis(0), rate(10, 1000)) else {
            panic!("nobody came before")
        };
        let Passage::Open { next } = gcra(Some(next), Millis(60_000), rate(10, 1000)) else {
            panic!("long open")
        };
        assert_eq!(next, Tat(60_107_500));
        assert_eq!(
            gcra(Some(next), Millis(60_001), rate(10, 1000)),
            Passage::Closed { until: Millis(60_107) }
        );
    }

    #[test]
    fn rates_beyond_one_in_a_millisecond_are_kept() {
        let passed = eager(rate(10_000, 1000), Millis(5), 25);
        assert_eq!((passed[0], passed[9], passed[10], passed[24]), (5, 5, 6, 7));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 500, ..ProptestConfig::default() })]

        #[test]
        fn no_window_ever_has_more_starts_than_the_rate_allows(
            count in 1..40u32,
            window in 1..2000u64,
            pauses in prop::collection::vec((0..200i64, 0..=100i64), 1..300),
        ) {
            let rate = rate(count, window);
            let lateness = i64::try_from(rate.passage().as_millis()).expect("small");
            let (mut tat, mut now, mut started) = (None, Millis(1_700_000_000_000), Vec::new());
            for (pause, late) in pauses {
                now = Millis(now.0 + pause);
                if let Passage::Open { next } = gcra(tat, now, rate) {
                    tat = Some(next);
                    started.push(now.0 + lateness * late / 100);
                }
            }
            for first in &started {
                let end = first + i64::try_from(window).expect("small");
                let inside = started.iter().filter(|at| (*first..end).contains(at)).count();
                prop_assert!(inside <= count as usize, "{} from {} on", inside, first);
            }
        }

        #[test]
        fn whoever_waits_until_the_given_moment_passes(count in 1..5000u32, window in 1..100_000u64, tries in 1..20usize) {
            let rate = rate(count, window);
            prop_assert_eq!(eager(rate, Millis(1_700_000_000_000), tries).len(), tries);
        }
    }
}
