//! What warm containers were worth: how many tasks found one, and about how much time that saved.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::pool::Found;

/// Counted by all pools of a node. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tally(Arc<Mutex<PoolTally>>);

/// Since the node began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolTally {
    /// Tasks that got a container which was there.
    pub hits: u64,
    /// Tasks that waited for a start.
    pub misses: u64,
    /// Containers that started, and how long that took in all.
    pub starts: u64,
    pub starting: Duration,
    /// What the hits would have waited for a start of the usual length, less what they did wait.
    pub saved: Duration,
}

impl Tally {
    pub fn read(&self) -> PoolTally {
        *self.locked()
    }

    pub(super) fn started(&self, took: Duration) {
        let mut tally = self.locked();
        tally.starts += 1;
        tally.starting += took;
    }

    pub(super) fn handed(&self, found: Found, waited: Duration) {
        let mut tally = self.locked();
        match found {
            Found::Nothing => tally.misses += 1,
            Found::Idle | Found::Released | Found::Dormant => {
                tally.hits += 1;
                let starts = u32::try_from(tally.starts).unwrap_or(u32::MAX).max(1);
                let usual = tally.starting / starts;
                tally.saved += usual.saturating_sub(waited);
            }
        }
    }

    /// Held for a few additions.
    fn locked(&self) -> MutexGuard<'_, PoolTally> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_saves_what_a_start_usually_takes_less_its_own_wait() {
        let tally = Tally::default();
        tally.started(Duration::from_millis(400));
        tally.started(Duration::from_millis(200));
        tally.handed(Found::Nothing, Duration::from_millis(400));
        tally.handed(Found::Dormant, Duration::from_millis(100));
        tally.handed(Found::Released, Duration::from_secs(9));
        let read = tally.read();
        assert_eq!((read.hits, read.misses, read.saved), (2, 1, Duration::from_millis(200)));
    }
}
