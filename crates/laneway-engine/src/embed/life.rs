//! The life of an engine: its sessions, one after the other, and what follows whatever ended the last one. A session
//! that others ended, because this process was frozen or could not reach the store, is followed by another.
//! After any other end the session is retired, so that what it held goes on elsewhere, and callers are told why.
//! No caller has to wait for that: a shutdown whose caller gave up still completes here.
//!
//! ```text
//!           ┌──────────────── joins again ◀── its session was ended by others ──┐
//!   session: loop (a task) ──ends, errs or panics──▶ the heartbeat ends, the session is retired ──▶ over, with its cause
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_store::Store;
use tokio::sync::{Mutex, watch};
use tokio::task::{AbortHandle, JoinHandle};

use super::Error;
use crate::worker::{Control, Cut, Heartbeat};

/// Delay before a session is retired again, when the store could not do it for a passing reason.
const RETIRE_RETRY_DELAY: Duration = Duration::from_millis(500);

/// Delay before the engine joins again, when the store could not be used for a passing reason.
const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// What ends a life, as it goes on.
type Ending = JoinHandle<Result<Vec<Cut>, Error>>;

/// The loop of a worker.
pub(super) type Work = Pin<Box<dyn Future<Output = Result<Vec<Cut>, crate::Error>> + Send>>;

/// Dropping it ends everything where it stands, and retires nothing: that is a death, which the next engine finds.
#[derive(Debug)]
pub(super) struct Life {
    /// `None` once a caller was told how it ended.
    ending: Mutex<Option<Ending>>,
    /// Why it is over, as soon as it is.
    over: watch::Receiver<Option<String>>,
    session: watch::Receiver<SessionId>,
    task: AbortHandle,
}

/// A session that has begun, and what works under it.
pub(super) struct Joined {
    pub(super) work: Work,
    /// Loops that end with the session.
    pub(super) beside: Vec<JoinHandle<()>>,
    pub(super) session: Session,
}

/// What an engine is to its store.
pub(super) struct Session {
    pub(super) store: Arc<dyn Store>,
    pub(super) id: SessionId,
    pub(super) heartbeat: Option<Heartbeat>,
}

impl Life {
    /// Works under a session that has begun, and under others that `join` begins.
    pub(super) fn begin<J, F>(first: Joined, control: Control, join: J) -> Self
    where
        J: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<Joined, Error>> + Send,
    {
        let (tell_session, session) = watch::channel(first.session.id);
        let (tell_over, over) = watch::channel(None);
        let ending = tokio::spawn(async move {
            let mut joined = first;
            let ended = loop {
                let ended = joined.live().await;
                let Err(error) = &ended else { break ended };
                if !error.is_loss_of_session() {
                    break ended;
                }
                // It was to end, and nothing of it is left.
                if control.is_raised() {
                    break Ok(Vec::new());
                }
                tracing::warn!("{error}; what it ran is dropped, and the engine joins again");
                joined = match join_again(&control, &join).await {
                    Ok(Some(joined)) => joined,
                    Ok(None) => break Ok(Vec::new()),
                    Err(error) => break Err(error),
                };
                tell_session.send_replace(joined.session.id);
            };
            tell_over.send_replace(Some(match &ended {
                Ok(_) => "it was shut down".to_owned(),
                Err(Error::Stopped(why)) => why.clone(),
                Err(error) => error.to_string(),
            }));
            ended
        });
        let task = ending.abort_handle();
        Self { ending: Mutex::new(Some(ending)), over, session, task }
    }

    /// Waits for its end and says how it was, to the first caller. A caller that gives up waiting may ask again.
    pub(super) async fn end(&self) -> Result<Vec<Cut>, Error> {
        let mut ending = self.ending.lock().await;
        let Some(task) = ending.as_mut() else { return Ok(Vec::new()) };
        let ended = task.await;
        *ending = None;
        ended.map_err(|error| Error::Stopped(error.to_string()))?
    }

    /// Returns the session under which the engine works.
    pub(super) fn session(&self) -> SessionId {
        *self.session.borrow()
    }

    /// Waits until the engine works under another session than this one.
    ///
    /// # Errors
    /// [`Error::Stopped`] if the engine is over before that.
    pub(super) async fn session_after(&self, former: SessionId) -> Result<SessionId, Error> {
        let mut session = self.session.clone();
        // The guard of the value is not `Send`, so it must be gone before the next wait.
        let next = session.wait_for(|session| *session != former).await.map(|session| *session);
        match next {
            Ok(session) => Ok(session),
            Err(_) => Err(Error::Stopped(self.over().await)),
        }
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
        self.task.abort();
    }
}

/// Begins a new session as soon as the store can be used. `None` if the engine is shut down before that.
async fn join_again<J, F>(control: &Control, join: &J) -> Result<Option<Joined>, Error>
where
    J: Fn() -> F,
    F: Future<Output = Result<Joined, Error>>,
{
    loop {
        match join().await {
            Ok(joined) => return Ok(Some(joined)),
            Err(error) if error.is_passing() => tracing::warn!("the engine cannot join again yet: {error}"),
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = tokio::time::sleep(REJOIN_DELAY) => {}
            () = control.raised() => return Ok(None),
        }
    }
}

/// A task that ends with the future that waits for it.
struct Bound(AbortHandle);

impl Drop for Bound {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Joined {
    /// Works until the loop ends, and retires the session.
    async fn live(self) -> Result<Vec<Cut>, Error> {
        let beside: Vec<Bound> = self.beside.iter().map(|task| Bound(task.abort_handle())).collect();
        // A task of its own, so that a panic in it is an end like any other.
        let work = tokio::spawn(self.work);
        let bound = Bound(work.abort_handle());
        let ended = match work.await {
            Ok(ended) => ended.map_err(Error::from),
            Err(error) => Err(Error::Stopped(format!("its worker broke off: {error}"))),
        };
        drop((bound, beside));
        self.session.end(ended).await
    }
}

impl Session {
    /// Its loop is over, and nothing runs under it any more.
    async fn end(self, ended: Result<Vec<Cut>, Error>) -> Result<Vec<Cut>, Error> {
        // First: a session under which nothing works is not renewed. If the store never hears of its end, its lease has one.
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
                    tokio::time::sleep(RETIRE_RETRY_DELAY).await;
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
        let joined =
            Joined { work: Box::pin(async { panic!("no moon tonight") }), beside: Vec::new(), session };
        let again = || async { Err(Error::Stopped("it joined again".to_owned())) };
        let life = Life::begin(joined, Control::new(), again);
        let why = life.over().await;
        assert!(why.starts_with("its worker broke off"), "{why}");
        let renewed = store.renew(id, Tally::default()).await;
        assert!(matches!(renewed, Err(laneway_store::Error::SessionOver { .. })), "{renewed:?}");
        assert!(matches!(life.end().await, Err(Error::Stopped(_))));
    }
}
