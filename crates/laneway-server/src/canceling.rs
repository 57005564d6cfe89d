//! Canceled runs that have yet to end: lets each of them end whatever state its holder is in, until
//! it has ended or the server stops. The command line does the same for a store of its own
//! (`laneway cancel`).

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_store::Error;

use crate::ask;
use crate::service::App;

/// Often enough to notice a frozen process soon after the store counts it as one.
const SETTLE_INTERVAL: Duration = Duration::from_secs(1);

/// Runs that a task of this server looks after: one task for each, however often it is canceled.
#[derive(Debug, Default)]
pub(crate) struct Canceling(Mutex<HashSet<RunId>>);

impl Canceling {
    fn runs(&self) -> MutexGuard<'_, HashSet<RunId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after a canceled run in the background.
pub(crate) fn watch(app: &App, run: RunId) {
    if !app.canceling.runs().insert(run) {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        while app.stop.run_until_cancelled(tokio::time::sleep(SETTLE_INTERVAL)).await.is_some() {
            match settle(&app, run).await {
                Ok(false) => {}
                Err(error) if error.is_passing() => {}
                Ok(true) => break,
                Err(error) => {
                    tracing::warn!(%error, "the end of canceled run {} is left to its node", run.short());
                    break;
                }
            }
        }
        app.canceling.runs().remove(&run);
    });
}

/// Returns whether the run has ended, or is not there any more.
async fn settle(app: &App, run: RunId) -> Result<bool, Error> {
    ask::settle_cancel(app.store.as_ref(), run).await?;
    match app.store.status(run).await {
        Ok(status) => Ok(status.is_final()),
        Err(Error::NoSuchRun { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
