//! Lets the past go beside whatever else a node does, for as long as it is held.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_engine::prune::Pruner;
use laneway_store::Store;
use laneway_store::cache::KeepResults;
use laneway_store::prune::{Keep, KeepRecords};
use tokio::task::JoinHandle;

use crate::exit::Refusal;
use crate::settings::{PRUNE_INTERVAL, Settings};

/// What the deployment keeps, and how often to look. Read before anything begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kept {
    keep: Keep,
    results: KeepResults,
    records: KeepRecords,
    every: Duration,
}

impl Kept {
    pub(crate) fn read(settings: &Settings) -> Result<Self, Refusal> {
        let (keep, results, records) = (settings.keep()?, settings.keep_results()?, settings.keep_records()?);
        let every = settings.duration(&PRUNE_INTERVAL)?;
        if every.is_zero() {
            return Err(Refusal::new("prune_interval is none").hint("write how often to look, such as 10m"));
        }
        Ok(Self { keep, results, records, every })
    }
}

/// Stops when it is dropped: at whatever moment, the next one goes on.
#[derive(Debug)]
pub(crate) struct Pruning(JoinHandle<()>);

impl Pruning {
    pub(crate) fn begin(kept: Kept, store: &Arc<dyn Store>, session: SessionId) -> Self {
        let Kept { keep, results, records, every } = kept;
        let pruner = Pruner { store: Arc::clone(store), keep, results, records, every, session };
        Self(tokio::spawn(pruner.until_dropped()))
    }
}

impl Drop for Pruning {
    fn drop(&mut self) {
        self.0.abort();
    }
}
