//! The life of an engine: its loop, and what follows whatever ended that. The session is retired, so that what it held goes on
//! elsewhere, and whoever asks is told why it is over. Nobody has to wait for it: a shutdown that somebody gave up half-way comes to
//! its end here.
//!
//! ```text
//!   loop (a task) ──ends, errs or panics──▶ ending (a task): the heartbeat ends, the session is retired ──▶ over, with its cause
//! ```

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_store::Store;
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Error;
use crate::worker::{Cut, Heartbeat};

/// How soon a session is retired again that the store could not take leave of for a passing reason.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What follows the loop, as it goes on.
type Ending = JoinHandle<Result<Vec<Cut>, Error>>;

/// Dropping it ends everything where it stands, and retires nothing: that is a death, which the next one finds.
#[derive(Debug)]
pub(super) struct Life {
    /// `None` once somebody was told how it ended.
    ending: Mutex<Option<Ending>>,
    /// Why it is over, as soon as it is.
    over: watch::Receiver<Option<String>>,
    tasks: Vec<AbortHandle>,
}

/// What an engine is to its store.
pub(super) struct Session {
    pub(super) store: Arc<dyn Store>,
    pub(super) id: SessionId,
    pub(super) heartbeat: Option<Heartbeat>,
}

impl Life {
    /// Begins to work. `beside` are loops that end with it.
    pub(super) fn begin(
        work: impl Future<Output = Result<Vec<Cut>, crate::Error>> + Send + 'static,
        beside: Vec<JoinHandle<()>>,
        session: Session,
    ) -> Self {
        // A task of its own, so that a panic in it is an end like any other.
        let work = tokio::spawn(work);
        let mut tasks: Vec<AbortHandle> = beside.iter().map(JoinHandle::abort_handle).collect();
        let others = tasks.clone();
        tasks.push(work.abort_handle());
        let (say, over) = watch::channel(None);
        let ending = tokio::spawn(async move {
            let ended = match work.await {
                Ok(ended) => ended.map_err(Error::from),
                Err(error) => Err(Error::Stopped(format!("its worker broke off: {error}"))),
            };
            others.iter().for_each(AbortHandle::abort);
            let ended = session.end(ended).await;
            say.send_replace(Some(match &ended {
                Ok(_) => "it was shut down".to_owned(),
                Err(Error::Stopped(why)) => why.clone(),
                Err(error) => error.to_string(),
            }));
            ended
        });
        tasks.push(ending.abort_handle());
        Self { ending: Mutex::new(Some(ending)), over, tasks }
    }

    /// Waits for its end and says how it was, to the first who asks. Whoever gives up waiting may ask again.
    pub(super) async fn end(&self) -> Result<Vec<Cut>, Error> {
        let mut ending = self.ending.lock().await;
        let Some(task) = ending.as_mut() else { return Ok(Vec::new()) };
        let ended = task.await;
        *ending = None;
        ended.map_err(|error| Error::Stopped(error.to_string()))?
    }

    /// Why it is over, if it is.
    pub(super) fn why(&self) -> Option<String> {
        self.over.borrow().clone()
    }

    /// Waits until it is over, and says why.
    pub(super) async fn over(&self) -> String {
        let mut over = self.over.clone();
        match over.wait_for(Option::is_some).await {
            Ok(why) => why.clone().unwrap_or_default(),
            Err(_) => "its runtime has ended".to_owned(),
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Session {
    /// Its loop is over, and nothing runs under it any more.
    async fn end(self, ended: Result<Vec<Cut>, Error>) -> Result<Vec<Cut>, Error> {
        // First: nobody renews a life that does nothing. Should the store never hear of its end, its lease has one.
        drop(self.heartbeat);
        let why = Leaving::because(match &ended {
            Ok(_) => LeaveReason::Done,
            Err(Error::Worker(crate::Error::Fenced { .. })) => LeaveReason::Fenced,
            Err(_) => LeaveReason::Failed,
        });
        loop {
            match self.store.retire(self.id, why.clone()).await {
                Ok(_) => return ended,
                // What it held would stay held as long as this process lives.
                Err(error) if error.is_passing() => {
                    tracing::warn!("{error}; the session is retired when that has passed");
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                // What ended the loop is what came first.
                Err(error) => return ended.and(Err(error.into())),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::Open;
    use laneway_store::model::{NewSession, Tally};

    use super::*;

    #[tokio::test]
    async fn session_of_a_worker_that_panicked_is_retired() {
        let dir = tempfile::tempdir().expect("a directory");
        let store = laneway_store::open(&dir.path().join("laneway.db").to_string_lossy(), Open::Create);
        let store = store.expect("a store");
        let id = store.register(NewSession::ephemeral("one", 1)).await.expect("a session");
        let session = Session { store: Arc::clone(&store), id, heartbeat: None };
        let life = Life::begin(async { panic!("no moon tonight") }, Vec::new(), session);
        let why = life.over().await;
        assert!(why.starts_with("its worker broke off"), "{why}");
        let renewed = store.renew(id, Tally::default()).await;
        assert!(matches!(renewed, Err(laneway_store::Error::SessionOver { .. })), "{renewed:?}");
        assert!(matches!(life.end().await, Err(Error::Stopped(_))));
    }
}
