//! The overview, for everybody who looks at it: read at most once a second, by whoever is first, for all who ask meanwhile. It is a
//! look at thousands of rows, and every open page asks for it when something changes. One that was begun is ended and kept, also when
//! whoever asked for it has left.

use std::sync::Arc;
use std::time::Duration;

use laneway_store::Store;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::problem::{Answer, Code, Problem};
use crate::{ask, wire};

/// How old an answer may be. It says when it was observed.
const FRESH: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Glance(Arc<Mutex<Option<(Instant, wire::Overview)>>>);

impl Glance {
    pub(crate) async fn look(&self, store: &Arc<dyn Store>) -> Answer<wire::Overview> {
        let (last, store) = (Arc::clone(&self.0), Arc::clone(store));
        let look = async move {
            // Held while the store is read, so that those who come meanwhile wait for that one look and start none.
            let mut last = last.lock().await;
            if let Some((at, overview)) = last.as_ref()
                && at.elapsed() < FRESH
            {
                return Ok(overview.clone());
            }
            let overview = ask::overview(store.as_ref()).await?;
            *last = Some((Instant::now(), overview.clone()));
            Ok(overview)
        };
        tokio::spawn(look).await.unwrap_or_else(|error| {
            tracing::error!(%error, "the overview could not be read");
            Err(Problem::new(Code::Internal, "something inside went wrong; the server's log says what"))
        })
    }
}
