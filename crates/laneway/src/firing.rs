//! Starts runs beside whatever else a node does, for as long as it is held: those of triggers, and those that steps wait for.

use std::sync::Arc;

use laneway_core::id::SessionId;
use laneway_engine::child::Starter;
use laneway_engine::fire::Firer;
use laneway_store::Store;
use tokio::task::JoinHandle;

/// Stops when it is dropped: at whatever moment, nothing is lost.
#[derive(Debug)]
pub(crate) struct Firing(Vec<JoinHandle<()>>);

impl Firing {
    pub(crate) fn begin(store: &Arc<dyn Store>, session: SessionId, max_parallel: u32) -> Self {
        let firer = Firer { store: Arc::clone(store), session, max_parallel };
        let starter = Starter { store: Arc::clone(store), session, max_parallel, is_local: false };
        Self(vec![tokio::spawn(firer.until_over()), tokio::spawn(starter.until_over())])
    }

    /// Those that steps wait for alone: of a run that this process drives.
    pub(crate) fn of_steps(store: &Arc<dyn Store>, session: SessionId, max_parallel: u32) -> Self {
        let starter = Starter { store: Arc::clone(store), session, max_parallel, is_local: true };
        Self(vec![tokio::spawn(starter.until_over())])
    }
}

impl Drop for Firing {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
