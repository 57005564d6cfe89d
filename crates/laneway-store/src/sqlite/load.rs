//! When to let go of the pages that a load has left in memory: once the store has been nearly left alone for a while.
//! It is never left alone entirely: an idle node looks for work every second, and gives its sign of life.

use std::time::{Duration, Instant};

/// How long it must have been quiet.
pub(super) const WHILE: Duration = Duration::from_secs(2);

/// Batches within that time that are still quiet.
const FEW: u32 = 10;

/// Batches since the pages were let go that make it worth while to do so again.
const MANY: u32 = 100;

/// What was written lately. Time is looked at in steps of [`WHILE`].
#[derive(Debug)]
pub(super) struct Load {
    step_began: Instant,
    in_step: u32,
    since_let_go: u32,
}

impl Load {
    pub(super) fn new(now: Instant) -> Self {
        Self { step_began: now, in_step: 0, since_let_go: 0 }
    }

    pub(super) fn add_batch(&mut self) {
        self.in_step = self.in_step.saturating_add(1);
    }

    /// Whether there may be something to let go of, so that it is worth to wake up for it.
    pub(super) fn has_left_pages(&self) -> bool {
        self.since_let_go.saturating_add(self.in_step) >= MANY
    }

    /// Whether now is the time to let the pages go. It counts as done when the answer is yes.
    pub(super) fn is_over(&mut self, now: Instant) -> bool {
        if now.duration_since(self.step_began) < WHILE {
            return false;
        }
        let (is_quiet, has_left_pages) = (self.in_step <= FEW, self.has_left_pages());
        let is_over = is_quiet && has_left_pages;
        self.since_let_go = if is_over { 0 } else { self.since_let_go.saturating_add(self.in_step) };
        (self.step_began, self.in_step) = (now, 0);
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it says at the end of steps with so many batches each.
    fn answers(steps: &[u32]) -> Vec<bool> {
        let mut now = Instant::now();
        let mut load = Load::new(now);
        let mut answer = |batches: &u32| {
            for _ in 0..*batches {
                load.add_batch();
                assert!(!load.is_over(now), "no step is over yet");
            }
            now += WHILE;
            load.is_over(now)
        };
        steps.iter().map(&mut answer).collect()
    }

    #[test]
    fn pages_are_let_go_once_a_load_is_over() {
        assert_eq!(answers(&[5_000, 700, 8]), [false, false, true]);
    }

    #[test]
    fn the_polls_of_an_idle_node_do_not_keep_them() {
        assert_eq!(answers(&[120, FEW]), [false, true]);
        assert_eq!(answers(&[120, FEW + 1, FEW]), [false, false, true]);
    }

    #[test]
    fn they_are_let_go_once_for_each_load() {
        assert_eq!(answers(&[200, 0, 3, 3, 100, 3]), [false, true, false, false, false, true]);
    }

    #[test]
    fn little_work_now_and_then_adds_up() {
        let steps = [FEW; 10];
        assert_eq!(answers(&steps).iter().filter(|is_over| **is_over).count(), 1);
    }
}
