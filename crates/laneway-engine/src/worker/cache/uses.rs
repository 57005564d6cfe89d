//! How often results were taken, told to the store now and then, some at once: nobody waits for a count, and one that is lost with
//! its node is no loss.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::hash::ContentHash;
use laneway_store::Store;

use crate::worker::attempt::Setting;

/// How long uses are collected before the store is told.
const COLLECT: Duration = Duration::from_millis(250);

/// How long a node that is done waits for the store to hear of the last ones.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(in crate::worker) struct Uses {
    untold: Mutex<HashMap<ContentHash, u64>>,
}

impl Uses {
    /// The first one of some sees to it that they are told.
    pub(super) fn note(self: &Arc<Self>, setting: &Setting, key: &ContentHash) {
        let mut untold = self.untold.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = untold.is_empty();
        *untold.entry(key.clone()).or_default() += 1;
        drop(untold);
        if is_first {
            let (uses, store) = (Arc::clone(self), Arc::clone(&setting.store));
            tokio::spawn(async move {
                tokio::time::sleep(COLLECT).await;
                uses.tell(store.as_ref()).await;
            });
        }
    }

    /// Tells what is left, if that can be done soon.
    pub(in crate::worker) async fn finish(&self, store: &dyn Store) {
        drop(tokio::time::timeout(PATIENCE, self.tell(store)).await);
    }

    async fn tell(&self, store: &dyn Store) {
        let untold = std::mem::take(&mut *self.untold.lock().unwrap_or_else(PoisonError::into_inner));
        if untold.is_empty() {
            return;
        }
        if let Err(error) = store.note_uses(untold.into_iter().collect()).await {
            tracing::debug!(%error, "uses of recorded results are not counted");
        }
    }
}
