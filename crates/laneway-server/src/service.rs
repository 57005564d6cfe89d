//! What every handler gets, and what a deployment chose of it.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::definition::DocumentDefaults;
use laneway_core::id::SessionId;
use laneway_core::role::Role;
use laneway_engine::faults::Faults;
use laneway_store::{Store, Teller};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access::{Caller, Codes, Names, TokenUses};
use crate::ask::{Documents, Forms};
use crate::callback::Reach;
use crate::canceling::Canceling;
use crate::extract::STRANGERS_BODIES_KIB;
use crate::glance::Glance;
use crate::graphs::Graphs;
use crate::memo::Memo;
use crate::metrics::Metrics;
use crate::problem::Answer;
use crate::pulse::Pulse;

/// Documents that are validated at once: so many processors at most, whoever writes.
const VALIDATIONS: usize = 2;

/// A service that is to be.
#[derive(Debug)]
pub struct Service {
    pub store: Arc<dyn Store>,
    /// In whose name runs are submitted, until [`App::rejoined`] names another.
    pub session: SessionId,
    /// Tasks of a run at once, where neither the request nor the document says so.
    pub max_parallel: u32,
    /// Keys of documents that are silent.
    pub document_defaults: DocumentDefaults,
    /// Where steps of a document run that comes without a directory.
    pub directory: PathBuf,
    pub names: Names,
    pub is_tls: bool,
    /// What is in front of it says who asks (`X-Forwarded-For`). From anybody else that would be a claim.
    pub is_behind_proxy: bool,
    /// On which terms remote workers work.
    pub remote: laneway_engine::remote::Terms,
    pub deadlines: Deadlines,
    /// Where callbacks may go.
    pub reach: Reach,
}

/// Ends a connection that makes no progress, in each of its phases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From its beginning to the end of the first request's head, and from an answer to the end of the next request's head.
    pub head: Duration,
    /// The TLS handshake, from its first message on.
    pub handshake: Duration,
    /// A body, to its end.
    pub body: Duration,
    /// A body of a request without a token, to its end.
    pub strangers_body: Duration,
    /// Until the client reads more of what it is sent.
    pub write: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(20),
            handshake: Duration::from_secs(10),
            body: Duration::from_secs(60),
            strangers_body: Duration::from_secs(20),
            write: Duration::from_secs(30),
        }
    }
}

/// The same with what it needs while it runs. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<Shared>);

pub struct Shared {
    pub(crate) store: Arc<dyn Store>,
    session: Mutex<SessionId>,
    pub(crate) max_parallel: u32,
    pub(crate) directory: PathBuf,
    pub(crate) names: Names,
    pub(crate) is_tls: bool,
    pub(crate) is_behind_proxy: bool,
    pub(crate) remote: laneway_engine::remote::Terms,
    pub(crate) deadlines: Deadlines,
    /// KiB that bodies without a token may still take.
    pub(crate) strangers_bodies: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) memo: Memo,
    pub(crate) pulse: Pulse,
    pub(crate) codes: Codes,
    pub(crate) token_uses: TokenUses,
    pub(crate) graphs: Graphs,
    pub(crate) forms: Forms,
    pub(crate) documents: Documents,
    pub(crate) glance: Glance,
    /// Whose histories cannot be read, as people were told.
    pub(crate) gaps: Faults,
    /// Canceled runs that have yet to end.
    pub(crate) canceling: Canceling,
    /// Documents that are validated at once.
    pub(crate) validations: Arc<Semaphore>,
    /// Requests that are done to their end, also if nobody waits for them any more.
    pub(crate) changes: TaskTracker,
    /// Ends streams.
    pub(crate) stop: CancellationToken,
}

impl Service {
    /// `stop` ends what would go on by itself: streams of events.
    pub fn app(self, stop: CancellationToken) -> App {
        let Self {
            store,
            session,
            max_parallel,
            document_defaults,
            directory,
            names,
            is_tls,
            is_behind_proxy,
            remote,
            deadlines,
            reach,
        } = self;
        let (metrics, memo) = (Metrics::default(), Memo::default());
        App(Arc::new(Shared {
            store,
            session: Mutex::new(session),
            max_parallel,
            directory,
            names,
            is_tls,
            is_behind_proxy,
            remote,
            deadlines,
            strangers_bodies: Arc::new(Semaphore::new(STRANGERS_BODIES_KIB)),
            metrics,
            memo,
            pulse: Pulse::default(),
            codes: Codes::default(),
            token_uses: TokenUses::default(),
            graphs: Graphs::default(),
            forms: Forms::default(),
            documents: Documents::new(document_defaults, reach),
            glance: Glance::default(),
            gaps: Faults::default(),
            canceling: Canceling::default(),
            validations: Arc::new(Semaphore::new(VALIDATIONS)),
            changes: TaskTracker::new(),
            stop,
        }))
    }
}

impl Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App").field("store", &self.store).finish_non_exhaustive()
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).finish_non_exhaustive()
    }
}

impl App {
    /// Acts for another session from here on: the one before is over, and its node has joined again.
    pub fn rejoined(&self, session: SessionId) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    pub(crate) fn session(&self) -> SessionId {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A code with which somebody signs in at the web page, once. `by` asked for it, with this token if it was over HTTP.
    pub fn code(&self, role: Role, by: &str, token: Option<&str>) -> io::Result<String> {
        self.codes.mint(role, (by, token), Instant::now())
    }

    /// Nobody depends on a history but who reads it, so it is the first reader of one through whom a node learns that it cannot be read.
    /// Once for each run, however many events of it, and however often they are asked for.
    pub(crate) fn tell_of_gap(&self, of: Teller, gap: &str) {
        if self.gaps.is_new(&format!("{of:?}")) {
            tracing::warn!("{gap}; work goes on, `laneway doctor` says more");
        }
    }

    /// Writes down what was changed and is no question of a store alone (`ask::Author::record`).
    pub(crate) async fn record(&self, caller: &Caller, act: &str, what: impl Into<String>) -> Answer<()> {
        Ok(caller.author().record(self.store.as_ref(), act, what).await?)
    }
}
