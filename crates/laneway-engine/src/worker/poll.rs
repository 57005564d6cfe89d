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
    longest: Duration,
    interval: Duration,
    empty: u32,
    dice: u64,
}

impl Poll {
    /// `seed` makes nodes differ.
    pub(super) fn new(longest: Duration, seed: u64) -> Self {
        Self { longest, interval: FIRST.min(longest), empty: 0, dice: seed | 1 }
    }

    /// There was work.
    pub(super) fn busy(&mut self) {
        self.empty = 0;
        self.interval = FIRST.min(self.longest);
    }

    /// A look found nothing: how long to wait for the next.
    pub(super) fn rest(&mut self) -> Duration {
        self.empty = self.empty.saturating_add(1);
        if self.empty > EAGER {
            self.interval = self.interval.mul_f64(GROWTH).min(self.longest);
        }
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
        let mut poll = Poll::new(LONGEST, 7);
        let eager: Vec<Duration> = (0..EAGER).map(|_| poll.rest()).collect();
        assert!(eager.iter().all(|rest| *rest <= FIRST && *rest >= FIRST.mul_f64(1.0 - JITTER)));
        let rare: Vec<Duration> = (0..60).map(|_| poll.rest()).collect();
        assert!(rare[0] > FIRST.mul_f64(GROWTH * (1.0 - JITTER) - 0.001));
        let last = *rare.last().expect("sixty");
        assert!(last <= LONGEST && last >= LONGEST.mul_f64(1.0 - JITTER), "{last:?}");
    }

    #[test]
    fn work_makes_it_eager_again() {
        let mut poll = Poll::new(LONGEST, 7);
        for _ in 0..200 {
            poll.rest();
        }
        poll.busy();
        assert!(poll.rest() <= FIRST);
    }

    #[test]
    fn two_nodes_do_not_look_in_step() {
        let (mut one, mut two) = (Poll::new(LONGEST, 7), Poll::new(LONGEST, 8_000_000_000));
        let same = (0..EAGER).filter(|_| one.rest() == two.rest()).count();
        assert!(same < 5, "{same}");
    }
}
