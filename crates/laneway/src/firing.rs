//! Starts runs beside whatever else a node does, for as long as it is held: those of triggers, and those that steps wait for.

use std::sync::Arc;

use laneway_core::definition::DocumentDefaults;
use laneway_core::id::SessionId;
use laneway_engine::child::Starter;
use laneway_engine::fire::Firer;
use laneway_store::Store;
use tokio::task::JoinHandle;

/// What counts where a document is silent.
#[derive(Debug, Clone)]
pub(crate) struct Policies {
    pub(crate) max_parallel: u32,
    pub(crate) defaults: DocumentDefaults,
}

impl Policies {
    fn starter(&self, store: &Arc<dyn Store>, session: SessionId, is_local: bool) -> Starter {
        let (max_parallel, defaults) = (self.max_parallel, self.defaults.clone());
        Starter { store: Arc::clone(store), session, max_parallel, is_local, defaults }
    }
}

/// Stops when it is dropped: at whatever moment, nothing is lost.
#[derive(Debug)]
pub(crate) struct Firing(Vec<JoinHandle<()>>);

impl Firing {
    pub(crate) fn begin(store: &Arc<dyn Store>, session: SessionId, policies: &Policies) -> Self {
        let max_parallel = policies.max_parallel;
        let firer = Firer { store: Arc::clone(store), session, max_parallel };
        let starter = policies.starter(store, session, false);
        Self(vec![tokio::spawn(firer.until_over()), tokio::spawn(starter.until_over())])
    }

    /// Those that steps wait for alone: of a run that this process drives.
    pub(crate) fn of_steps(store: &Arc<dyn Store>, session: SessionId, policies: &Policies) -> Self {
        Self(vec![tokio::spawn(policies.starter(store, session, true).until_over())])
    }
}

impl Drop for Firing {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
