//! How long a node may be silent, where its lease is a file. The warden condemns a session only after it has itself
//! listened for all of that time: if it was frozen together with its node, both go on as if nothing had happened.
//! The clock is the one by which the lease is renewed: it stands still while the machine sleeps.

use std::path::PathBuf;
use std::time::Duration;

use laneway_store::{condemn, monotonic_time};

/// Since when the node is silent, as far as this warden has listened.
#[derive(Debug)]
pub(super) struct Hearing {
    span: Duration,
    lease: PathBuf,
    silent_since: Duration,
    listened_at: Duration,
    looked_at: Duration,
}

impl Hearing {
    /// The node was heard just now.
    pub(super) fn new(span: Duration, lease: PathBuf) -> Self {
        let now = monotonic_time();
        Self { span, lease, silent_since: now, listened_at: now, looked_at: now }
    }

    /// How often to listen, so that a gap means that the warden did not run.
    pub(super) fn tick(&self) -> Duration {
        self.span / 8
    }

    /// Whether nothing may run any more. Condemns the session if the node was silent for too long.
    pub(super) fn is_over(&mut self) -> bool {
        let now = monotonic_time();
        if self.was_silent(now) {
            return match condemn(&self.lease) {
                Ok(_) => true,
                // Nobody can take the tasks without that, so they may go on; tried again at the next tick.
                Err(error) => {
                    tracing::error!(%error, "a session whose node is frozen cannot be condemned");
                    false
                }
            };
        }
        // Another process may have condemned it.
        let is_due = now.saturating_sub(self.looked_at) >= self.tick();
        if is_due {
            self.looked_at = now;
        }
        is_due && matches!(self.lease.try_exists(), Ok(false))
    }

    fn was_silent(&mut self, now: Duration) -> bool {
        if now.saturating_sub(self.listened_at) > self.span / 2 {
            self.silent_since = now;
        }
        self.listened_at = now;
        now.saturating_sub(self.silent_since) >= self.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listens(at: &[u64]) -> Vec<bool> {
        let zero = Duration::ZERO;
        let (span, lease) = (Duration::from_secs(8), PathBuf::new());
        let mut hearing = Hearing { span, lease, silent_since: zero, listened_at: zero, looked_at: zero };
        at.iter().map(|at| hearing.was_silent(Duration::from_secs(*at))).collect()
    }

    #[test]
    fn silence_that_was_listened_to_ends_the_lease() {
        assert_eq!(listens(&[2, 4, 6, 8]), [false, false, false, true]);
    }

    #[test]
    fn warden_that_was_frozen_with_its_node_gives_it_a_whole_lease() {
        assert_eq!(listens(&[2, 60, 62, 64, 66, 68]), [false, false, false, false, false, true]);
    }
}
