//! The embedded store: one SQLite file, one writer thread, readers of their own. Several processes
//! may use one file at the same time. See `docs/design/store.md`.

mod access;
mod backup;
mod blobs;
mod classes;
mod clock;
mod connect;
mod counts;
mod data_dir;
mod doctor;
mod effects;
mod fault;
mod files;
mod frozen;
mod layers;
mod lines;
mod maintenance;
mod migrate;
mod operator;
mod overview;
mod pools;
mod prune;
mod quarantine;
mod read;
mod remote;
mod result_cache;
mod run_queries;
mod run_work;
mod sessions;
mod stamp;
mod statements;
mod store_queries;
mod transfer;
mod triggers;
mod txn;
mod unrenewed;
mod view;
mod waits;
mod watch;
mod work;
mod write_lock;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use laneway_core::id::{InstanceId, RunId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::Connection;
use tokio::sync::watch as signal;
use uuid::Uuid;

use crate::contract::{Store, UNHINTED_POLL_INTERVAL};
use crate::error::{Error, Result};
use crate::keeper::{no_such_step, unreadable};
use crate::locks::SessionLocks;
use crate::model::{Commits, Stamp};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head, HeadRow, Plans, Shelf, read_head};
use crate::sqlite::writer::Writer;
use crate::tally::GateWaits;
use crate::{MAX_LOST, Open, SchemaChange};

pub(crate) use backup::check_copy;
#[cfg(test)]
pub(crate) const RUN_LAST: &str = statements::sql!("run_last");
pub use clock::Clock;
pub(crate) use data_dir::{data_dir, shares_dir};
pub(crate) use transfer::{MoveSource, moved_instance, undo_move};

#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    dir: PathBuf,
    instance: InstanceId,
    writer: Writer,
    shared: Arc<Shared>,
    changes: signal::Sender<u64>,
    watcher: Mutex<Option<watch::Watcher>>,
    max_lost: u32,
    schema_change: SchemaChange,
}

/// What readers need, on whatever thread they run.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    dir: PathBuf,
    plans: Arc<Plans>,
    locks: SessionLocks,
    /// Sessions that do not renew their leases, as this process has seen them.
    unrenewed: unrenewed::Unrenewed,
    /// Sessions whose process holds the write lock, as those who wait for it have watched them.
    frozen_writers: unrenewed::Unrenewed,
    clock: Arc<Clock>,
    waits: Arc<Mutex<GateWaits>>,
    /// Idle connections, few of them; one is made when none is idle.
    idle: Mutex<Vec<Connection>>,
    stamps: Mutex<stamp::Stamps>,
}

/// Connections that are kept for the next reader.
const IDLE: usize = 8;

/// Tasks of a run that is read on the caller's thread, or events: some tens of microseconds.
const SMALL: usize = 64;

impl SqliteStore {
    pub fn open(path: &Path, mode: Open) -> Result<Self> {
        Self::open_with(path, mode, Arc::new(Clock::system()))
    }

    /// With a clock of the caller's.
    pub fn open_with(path: &Path, mode: Open, clock: Arc<Clock>) -> Result<Self> {
        let schema_change = connect::prepare(path, mode)?;
        let connection = connect::reader(path)?;
        let look = || Ok((data_dir::recorded(&connection, path)?, transfer::moved_to(&connection)?));
        let (dir, moved_to) = look().map_err(|error| fault::explain(&error, path))?;
        if let Some(to) = moved_to {
            return Err(Error::Moved { path: path.to_owned(), to });
        }
        // A copy of the file alone has none.
        if mode != Open::Existing {
            data_dir::make(&dir).map_err(|error| files::failed(&dir, &error))?;
        }
        let plans = Arc::new(Plans::default());
        let (changes, _) = signal::channel(0);
        let shared = Shared {
            path: path.to_owned(),
            dir: dir.clone(),
            plans: Arc::clone(&plans),
            locks: SessionLocks::new(&dir),
            unrenewed: unrenewed::Unrenewed::default(),
            frozen_writers: unrenewed::Unrenewed::default(),
            clock: Arc::clone(&clock),
            waits: Arc::default(),
            idle: Mutex::new(vec![connection]),
            stamps: Mutex::default(),
        };
        let instance = shared.now(|connection| {
            let text: String = connection.query_row(sql!("instance"), [], |row| row.get(0))?;
            let uuid = Uuid::try_parse(&text).map_err(|_| unreadable("instance id", &text))?;
            Ok(InstanceId::new(uuid))
        })?;
        let shelf = Shelf::new(plans, Arc::clone(&shared.waits));
        let writer = Writer::start(path.to_owned(), shelf, clock, changes.clone())?;
        Ok(Self {
            path: path.to_owned(),
            dir,
            instance,
            writer,
            shared: Arc::new(shared),
            changes,
            watcher: Mutex::default(),
            max_lost: MAX_LOST,
            schema_change,
        })
    }

    /// What opening it has changed about its schema.
    pub fn schema_change(&self) -> SchemaChange {
        self.schema_change
    }

    /// How often a task may be lost with its node before it fails.
    pub fn with_max_lost(self, max_lost: u32) -> Self {
        Self { max_lost, ..self }
    }

    async fn write<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut txn::Txn<'_>) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let mut written = std::pin::pin!(self.writer.apply(verb));
        loop {
            // Another process may be frozen inside of a write transaction.
            match tokio::time::timeout(frozen::WRITER_LOOK, &mut written).await {
                Ok(written) => return written,
                Err(_) => self.look_for_a_frozen_writer().await,
            }
        }
    }

    /// A question of a few rows, answered on the caller's thread: to hand it to another one costs
    /// more than its answer.
    fn look<T>(&self, question: impl FnOnce(&Connection, &Shared) -> Done<T>) -> Result<T> {
        self.shared.now(|connection| question(connection, &self.shared))
    }

    /// Any other question, on a thread of its own.
    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection, &Shared) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let asked =
            tokio::task::spawn_blocking(move || shared.now(|connection| question(connection, &shared)));
        asked.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }
}

/// What lies beside the file, for whoever copies it.
pub(crate) mod beside {
    pub(crate) use super::connect::make_dir;
    pub(crate) use super::data_dir::{new_data_dir, parent};
    pub(crate) use super::files::hold;
}

impl Shared {
    /// What time it is, never before what the store has written.
    fn moment(&self, connection: &Connection) -> Done<Millis> {
        let floor: i64 = connection.prepare_cached(sql!("clock_read"))?.query_row([], |row| row.get(0))?;
        Ok(self.clock.now(Millis(floor)))
    }

    fn now<T>(&self, question: impl FnOnce(&Connection) -> Done<T>) -> Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect::reader(&self.path)?,
        };
        // One snapshot for all statements of a question.
        let run = |statement: &str| -> Done<usize> { Ok(connection.prepare_cached(statement)?.execute([])?) };
        let answer = run("BEGIN")
            .and_then(|_| quarantine::guard(|| question(&connection)))
            .and_then(|answer| run("COMMIT").map(|_| answer));
        match answer {
            Ok(answer) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                // Each keeps its pages and statements, and so many are seldom wanted at once.
                if idle.len() < IDLE {
                    idle.push(connection);
                }
                Ok(answer)
            }
            // The connection goes with its open transaction.
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Sqlite(error)) => Err(fault::explain(&error, &self.path)),
            Err(Failure::Panicked(why)) => Err(quarantine::panicked(why)),
        }
    }

    /// Of a run with few tasks, a plan that need not be made first, and nothing that waits for
    /// other runs, of which there may be many.
    fn small_head(&self, connection: &Connection, run: RunId) -> Done<Option<Head>> {
        let row = HeadRow::read(connection, run)?;
        let plan = self.plans.kept(&row.version).filter(|plan| plan.workflow.steps.len() <= SMALL);
        let Some(plan) = plan else { return Ok(None) };
        let head = row.with(plan)?;
        Ok(if read::waits_for_others(connection, head.no)? { None } else { Some(head) })
    }

    fn head(&self, connection: &Connection, run: RunId) -> Done<Head> {
        read_head(connection, &self.plans, run)
    }

    fn position(&self, head: &Head, step: &str) -> Done<Position> {
        let plan = &head.head.plan;
        plan.position(step).ok_or_else(|| no_such_step(&head.head, step).into())
    }
}

impl Store for SqliteStore {
    fn instance(&self) -> InstanceId {
        self.instance
    }

    fn is_embedded(&self) -> bool {
        true
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn stamp(&self) -> Option<Stamp> {
        let mut stamps = self.shared.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.now(&self.path)
    }

    fn changes(&self) -> signal::Receiver<u64> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_none() {
            *watcher = watch::Watcher::start(self.path.clone(), self.changes.clone());
        }
        self.changes.subscribe()
    }

    fn poll_interval(&self, setting: Duration) -> Duration {
        let is_watched = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_watched { setting } else { setting.min(UNHINTED_POLL_INTERVAL) }
    }

    fn gate_waits(&self) -> GateWaits {
        *self.shared.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commits(&self) -> Option<Commits> {
        Some(self.writer.commits())
    }
}
