//! What a session has done, counted where it happens. The loop adds; whoever renews the session tells the store.

use std::sync::{Arc, Mutex, PoisonError};

use laneway_store::Fate;
use laneway_store::model::{Finished, Outcome, Tally};

/// A handle that both share. The lock is held for an addition.
#[derive(Debug, Clone, Default)]
pub struct Counts(Arc<Mutex<Tally>>);

impl Counts {
    pub fn tally(&self) -> Tally {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Attempts whose end the store has heard of.
    pub(super) fn add_ends(&self, ended: &[Finished], fates: &[Fate]) {
        let recorded = ended.iter().zip(fates).filter(|(_, fate)| **fate != Fate::ClaimLost);
        self.add(|tally| {
            for (finished, _) in recorded {
                match finished.outcome {
                    Outcome::Succeeded { .. } | Outcome::Cached(_) => tally.succeeded += 1,
                    Outcome::Failed { .. } => tally.failed += 1,
                    Outcome::Canceled { .. } => tally.canceled += 1,
                }
            }
        });
    }
}
