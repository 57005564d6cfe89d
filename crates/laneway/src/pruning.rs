//! Lets the past go beside whatever else a node does, for as long as it is held.

use std::sync::Arc;

use laneway_core::id::SessionId;
use laneway_engine::prune::Pruner;
use laneway_store::Store;
use tokio::task::JoinHandle;

use crate::exit::Refusal;
use crate::settings::{PRUNE_INTERVAL, Settings};

/// Stops when it is dropped: at whatever moment, the next one goes on.
#[derive(Debug)]
pub(crate) struct Pruning(JoinHandle<()>);

impl Pruning {
    pub(crate) fn begin(
        settings: &Settings,
        store: &Arc<dyn Store>,
        session: SessionId,
    ) -> Result<Self, Refusal> {
        let (keep, every) = (settings.keep()?, settings.duration(&PRUNE_INTERVAL)?);
        if every.is_zero() {
            return Err(Refusal::new("prune_interval is none").hint("write how often to look, such as 10m"));
        }
        let pruner = Pruner { store: Arc::clone(store), keep, every, session };
        Ok(Self(tokio::spawn(pruner.until_dropped())))
    }
}

impl Drop for Pruning {
    fn drop(&mut self) {
        self.0.abort();
    }
}
