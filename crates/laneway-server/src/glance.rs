//! The overview, for everybody who looks at it: read at most once a second, by whoever is first, for all who ask meanwhile. It is a
//! look at thousands of rows, and every open page asks for it when something changes.

use std::time::Duration;

use laneway_store::{Result, Store};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::{ask, wire};

/// How old an answer may be. It says when it was observed.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Glance(Mutex<Option<(Instant, wire::Overview)>>);

impl Glance {
    /// The lock is held while the store is read, so that those who come meanwhile wait for that one look and start none.
    pub(crate) async fn look(&self, store: &dyn Store) -> Result<wire::Overview> {
        let mut last = self.0.lock().await;
        if let Some((at, overview)) = last.as_ref()
            && at.elapsed() < FRESH
        {
            return Ok(overview.clone());
        }
        let overview = ask::overview(store).await?;
        *last = Some((Instant::now(), overview.clone()));
        Ok(overview)
    }
}
