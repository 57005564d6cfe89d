//! The store of many nodes: one schema of a Postgres database. Whoever connects to it is one of equals. See
//! `docs/design/postgres.md`.

mod address;
mod connect;
mod fault;
mod link;
mod listen;
mod migrate;
mod read;
mod row;
mod shelf;
mod tls;
mod view;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use deadpool_postgres::Pool;
use laneway_core::event::Event;
use laneway_core::expression::Scope;
use laneway_core::hash::Version;
use laneway_core::id::{InstanceId, RunId, SessionId};
use laneway_core::plan::Plan;
use laneway_core::run_state::RunState;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use tokio::sync::watch;

use address::Address;
use connect::Target;
use fault::Done;
use link::{Begin, Link};
pub use listen::Hearing;
use listen::Listener;
use shelf::Shelf;

use crate::Open;
use crate::error::{Error, Result};
use crate::model::{Attempt, Known, RunFilter, RunSummary, RunView, Stop};
use crate::sqlite::Clock;

#[derive(Debug)]
pub struct PostgresStore {
    target: Target,
    pool: Pool,
    instance: InstanceId,
    dir: PathBuf,
    shelf: Shelf,
    clock: Arc<Clock>,
    changes: watch::Sender<u64>,
    listener: Mutex<Option<Listener>>,
}

impl PostgresStore {
    /// `dir` is where logs and scratch files of this node go; the database is elsewhere.
    pub fn open(url: &str, dir: &Path, mode: Open) -> Result<Self> {
        Self::open_with(url, dir, mode, Arc::new(Clock::system()))
    }

    /// With a clock of the caller's: a manual one stands in place of the database's.
    pub fn open_with(url: &str, dir: &Path, mode: Open, clock: Arc<Clock>) -> Result<Self> {
        let address = Address::parse(url)?;
        let (target, instance) = at_once(Target::prepare(address, mode))?;
        std::fs::create_dir_all(dir.join("sessions")).map_err(|error| Error::Io {
            path: dir.to_owned(),
            why: format!("the directory for logs and scratch files cannot be made: {error}"),
        })?;
        let pool = target.pool()?;
        let (changes, _) = watch::channel(0);
        Ok(Self {
            target,
            pool,
            instance,
            dir: dir.to_owned(),
            shelf: Shelf::default(),
            clock,
            changes,
            listener: Mutex::default(),
        })
    }

    /// Whether notifications arrive; for whoever decides how often to look.
    pub fn hearing(&self) -> Option<watch::Receiver<Hearing>> {
        let listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        listener.as_ref().map(Listener::hearing)
    }

    /// The caller's time, where it has its own; otherwise statements take the database's.
    fn now(&self) -> Option<Millis> {
        self.clock.hand()
    }

    async fn link(&self) -> Done<Link> {
        Ok(Link::new(connect::take(&self.pool, &self.target.address).await?, self.target.session))
    }

    /// A question whose statements each stand for themselves.
    async fn ask<T, F: AsyncFnOnce(&Link) -> Done<T>>(&self, question: F) -> Result<T> {
        let answer = async { question(&self.link().await?).await }.await;
        answer.map_err(|failure| failure.explain(&self.target.address))
    }

    /// A question whose statements see one moment.
    async fn ask_at_once<T, F: AsyncFnOnce(&Link) -> Done<T>>(&self, question: F) -> Result<T> {
        self.ask(async |link| {
            link.begin(Begin::Read).land().await?;
            let answer = question(link).await;
            link.roll_back().await;
            answer
        })
        .await
    }
}

/// Runs to its end on a thread of its own: a store is opened by whoever is in a runtime, and by whoever is not.
fn at_once<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let failed = |why: String| Error::Closed { why };
    let thread = std::thread::Builder::new().name("laneway-open".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| Error::Closed { why: error.to_string() })?.block_on(work)
    });
    let thread = thread.map_err(|error| failed(error.to_string()))?;
    thread.join().map_err(|_| failed("the thread that opens it has panicked".to_owned()))?
}

// The reads of `store.rs`; the trait is implemented once the verbs are there.
impl PostgresStore {
    pub async fn find_run(&self, name: &str) -> Result<RunId> {
        self.ask(async |link| read::find_run(link, name).await).await
    }

    pub async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>> {
        self.ask_at_once(async |link| view::runs(link, self.now(), &filter).await).await
    }

    pub async fn run(&self, run: RunId) -> Result<RunView> {
        self.ask_at_once(async |link| {
            let head = self.shelf.head(link, run).await?;
            view::run(link, self.now(), &head).await
        })
        .await
    }

    pub async fn run_state(&self, run: RunId) -> Result<RunState> {
        self.ask_at_once(async |link| read::run_state(link, &*self.shelf.head(link, run).await?).await).await
    }

    pub async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        self.ask(async |link| read::events_since(link, run, after, limit).await).await
    }

    pub async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>> {
        self.ask_at_once(async |link| {
            let head = self.shelf.head(link, run).await?;
            read::attempts(link, &head, read::position(&head, step)?).await
        })
        .await
    }

    pub async fn plan(&self, version: &Version) -> Result<Arc<Plan>> {
        self.ask(async |link| self.shelf.plan(link, version).await).await
    }

    pub async fn document(&self, version: &Version) -> Result<String> {
        self.ask(async |link| read::document(link, version).await).await
    }

    pub async fn latest(&self, workflow: &str) -> Result<Known> {
        self.ask(async |link| read::latest(link, workflow).await).await
    }

    pub async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope> {
        self.ask(async |link| read::scope(link, &*self.shelf.head(link, run).await?, steps).await).await
    }

    pub async fn stops(&self, session: SessionId) -> Result<Vec<Stop>> {
        self.ask(async |link| read::stops(link, session).await).await
    }

    pub async fn status(&self, run: RunId) -> Result<RunStatus> {
        self.ask(async |link| read::status(link, run).await).await
    }

    pub async fn backup(&self, _: &Path) -> Result<()> {
        let why = format!("{} is copied by its own tools: `pg_dump`", self.target.address.shown);
        Err(Error::NotRunnable { why })
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            *listener = Listener::start(
                self.target.clone(),
                self.pool.clone(),
                self.instance,
                self.changes.clone(),
            );
        }
        self.changes.subscribe()
    }

    pub fn instance(&self) -> InstanceId {
        self.instance
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}
