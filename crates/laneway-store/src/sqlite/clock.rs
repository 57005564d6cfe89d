//! The store's clock: the only one that gates and events know. It never goes back, neither behind itself nor
//! behind what the store has written, and it does not stand still when the machine's clock is set back.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use laneway_core::time::Millis;

/// Where moments come from. Tests pass their own hand.
#[derive(Debug)]
pub enum Clock {
    System(SystemClock),
    /// Stands where it is put.
    Manual(AtomicI64),
}

impl Clock {
    pub fn system() -> Self {
        Self::System(SystemClock::default())
    }

    pub fn manual(start: Millis) -> Self {
        Self::Manual(AtomicI64::new(start.0))
    }

    /// Now, and not before `floor`, which is the last moment that the store has written.
    pub fn now(&self, floor: Millis) -> Millis {
        match self {
            Self::System(clock) => clock.now(floor),
            Self::Manual(hand) => Millis(hand.load(Ordering::Relaxed)).max(floor),
        }
    }

    /// Where a manual clock stands; `None` for a system clock. A database with a clock of its own asks this one only.
    pub(crate) fn hand(&self) -> Option<Millis> {
        match self {
            Self::System(_) => None,
            Self::Manual(hand) => Some(Millis(hand.load(Ordering::Relaxed))),
        }
    }

    /// Moves a manual clock; a system clock moves by itself.
    pub fn advance(&self, by: std::time::Duration) {
        if let Self::Manual(hand) = self {
            hand.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
        }
    }
}

/// Follows the wall clock forward, and a monotonic one where the wall clock was set back.
pub struct SystemClock {
    /// A moment and when it was; their sum with the elapsed time is the least that now can be.
    anchor: Mutex<(Millis, Instant)>,
}

impl SystemClock {
    fn now(&self, floor: Millis) -> Millis {
        let mut anchor = self.anchor.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = anchor.0.after(anchor.1.elapsed()).max(wall()).max(floor);
        *anchor = (now, Instant::now());
        now
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { anchor: Mutex::new((wall(), Instant::now())) }
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemClock")
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the wrapper around the machine's clock")]
fn wall() -> Millis {
    // A machine whose clock stands before 1970 gets 1970: the floor and the anchor take over from there.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_behind_what_the_store_has_written() {
        let ahead = Millis(wall().0 + 3_600_000);
        let clock = Clock::system();
        let first = clock.now(ahead);
        assert!(first >= ahead);
        assert!(clock.now(Millis(0)) >= first, "the anchor keeps what was seen");
    }
}
