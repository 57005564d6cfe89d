//! Fires triggers beside whatever else a node does, for as long as it is held.

use std::sync::Arc;

use laneway_core::id::SessionId;
use laneway_engine::fire::Firer;
use laneway_store::Store;
use tokio::task::JoinHandle;

/// Stops when it is dropped: at whatever moment, nothing is lost.
#[derive(Debug)]
pub(crate) struct Firing(JoinHandle<()>);

impl Firing {
    pub(crate) fn begin(store: &Arc<dyn Store>, session: SessionId, max_parallel: u32) -> Self {
        let firer = Firer { store: Arc::clone(store), session, max_parallel };
        Self(tokio::spawn(firer.until_over()))
    }
}

impl Drop for Firing {
    fn drop(&mut self) {
        self.0.abort();
    }
}
