//! Decides whether a claim whose passages have expired is given back. Pure; `drive/say.rs` acts on it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use laneway_core::id::RunId;
use laneway_core::plan::Position;

/// How often one task takes new passages in a row before it starts late.
const MAX_PASSAGES: u32 = 8;

/// The count of a task starts again at zero when it was not late for this long.
const LATE_COUNT_MEMORY: Duration = Duration::from_secs(10);

/// Counts how often each task was claimed after its passages had expired, and when last.
///
/// A worker whose requests take longer than a passage would otherwise give its task back for ever.
#[derive(Debug, Default)]
pub(super) struct LateClaims {
    counts: HashMap<(RunId, Position), (u32, Instant)>,
}

impl LateClaims {
    /// Returns whether a claimed task may start, and counts it if it is late.
    pub(super) fn may_start(
        &mut self,
        task: (RunId, Position),
        start_by: Option<Instant>,
        now: Instant,
    ) -> bool {
        let Some(start_by) = start_by else { return true };
        if now < start_by {
            self.counts.remove(&task);
            return true;
        }
        self.counts.retain(|_, (_, last)| now.duration_since(*last) < LATE_COUNT_MEMORY);
        let (count, last) = self.counts.entry(task).or_insert((0, now));
        (*count, *last) = (*count + 1, now);
        let has_to_start = *count > MAX_PASSAGES;
        if has_to_start {
            self.counts.remove(&task);
        }
        has_to_start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> (RunId, Position) {
        (RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").expect("an id"), 0)
    }

    #[test]
    fn task_in_time_and_task_without_rates_start() {
        let (now, mut late) = (Instant::now(), LateClaims::default());
        assert!(late.may_start(task(), None, now));
        assert!(late.may_start(task(), Some(now + Duration::from_millis(1)), now));
        assert!(!late.may_start(task(), Some(now), now));
    }

    #[test]
    fn task_that_is_late_eight_times_in_a_row_starts() {
        let (now, mut late) = (Instant::now(), LateClaims::default());
        for _ in 0..8 {
            assert!(!late.may_start(task(), Some(now), now));
        }
        assert!(late.may_start(task(), Some(now), now));
        assert!(!late.may_start(task(), Some(now), now), "the count starts again");
    }

    #[test]
    fn start_in_time_resets_the_count() {
        let (now, mut late) = (Instant::now(), LateClaims::default());
        for _ in 0..8 {
            assert!(!late.may_start(task(), Some(now), now));
        }
        assert!(late.may_start(task(), Some(now + Duration::from_millis(1)), now));
        assert!(!late.may_start(task(), Some(now), now));
    }

    #[test]
    fn lateness_of_long_ago_does_not_count() {
        let (now, mut late) = (Instant::now(), LateClaims::default());
        for time in 0..100 {
            assert!(!late.may_start(task(), Some(now), now + Duration::from_secs(11 * time)));
        }
    }
}
