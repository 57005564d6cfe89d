//! How often an idle worker looks for work without a hint: often at first, then ever more rarely, and often again as soon
//! as there was some. Pure; a hint may be lost, and correctness must not need one.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);

/// Looks that find nothing before it slows down: five seconds.
const EAGER: u32 = 50;

const GROWTH: f64 = 1.2;

/// Share of the interval by which it differs at random, so that many nodes do not look in step.
const JITTER: f64 = 0.1;

#[derive(Debug)]
pub(super) struct Poll {
    interval: Duration,
    empty: u32,
    dice: u64,
}

impl Poll {
    /// `seed` makes nodes differ.
    pub(super) fn new(seed: u64) -> Self {
        Self { interval: FIRST, empty: 0, dice: seed | 1 }
    }

    /// There was work.
    pub(super) fn busy(&mut self) {
        self.empty = 0;
        self.interval = FIRST;
    }

    /// A look found nothing: how long to wait for the next. `longest` bounds it as of now: how well a store hears
    /// of changes is known only after a while, and may become worse.
    pub(super) fn rest(&mut self, longest: Duration) -> Duration {
        self.empty = self.empty.saturating_add(1);
        if self.empty > EAGER {
            self.interval = self.interval.mul_f64(GROWTH);
        }
        self.interval = self.interval.min(longest);
        self.interval.mul_f64(1.0 - JITTER * self.roll())
    }

    /// From 0 up to 1 (xorshift: it need not be unforeseeable).
    fn roll(&mut self) -> f64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Duration = Duration::from_secs(15);

    #[test]
    fn it_looks_often_for_five_seconds_and_then_ever_more_rarely() {
        let mut poll = Poll::new(7);
        let eager: Vec<Duration> = (0..EAGER).map(|_| poll.rest(LONGEST)).collect();
        assert!(eager.iter().all(|rest| *rest <= FIRST && *rest >= FIRST.mul_f64(1.0 - JITTER)));
        let rare: Vec<Duration> = (0..60).map(|_| poll.rest(LONGEST)).collect();
        assert!(rare[0] > FIRST.mul_f64(GROWTH * (1.0 - JITTER) - 0.001));
        let last = *rare.last().expect("sixty");
        assert!(last <= LONGEST && last >= LONGEST.mul_f64(1.0 - JITTER), "{last:?}");
    }

    #[test]
    fn work_makes_it_eager_again() {
        let mut poll = Poll::new(7);
        for _ in 0..200 {
            poll.rest(LONGEST);
        }
        poll.busy();
        assert!(poll.rest(LONGEST) <= FIRST);
    }

    #[test]
    fn two_nodes_do_not_look_in_step() {
        let (mut one, mut two) = (Poll::new(7), Poll::new(8_000_000_000));
        let same = (0..EAGER).filter(|_| one.rest(LONGEST) == two.rest(LONGEST)).count();
        assert!(same < 5, "{same}");
    }

    #[test]
    fn bound_that_changes_holds_from_the_next_rest_on() {
        let mut poll = Poll::new(7);
        let second = Duration::from_secs(1);
        let bounded = (0..200).map(|_| poll.rest(second)).last().expect("a rest");
        assert!(bounded <= second && bounded >= second.mul_f64(1.0 - JITTER), "{bounded:?}");
        let grown = (0..60).map(|_| poll.rest(LONGEST)).last().expect("a rest");
        assert!(grown >= LONGEST.mul_f64(1.0 - JITTER), "{grown:?}");
        assert!(poll.rest(second) <= second);
    }
}
