//! The store of many nodes: one schema of a Postgres database. Whoever connects to it is one of
//! equals. See `docs/design/postgres.md`.

mod access;
mod address;
mod base;
mod blobs;
mod claim_cursor;
mod classes;
mod connect;
mod doctor;
mod effects;
mod facts;
mod fault;
mod follow;
mod layers;
mod lines;
mod link;
mod listen;
mod lock_order;
mod maintenance;
mod migrate;
mod node_facts;
mod operator;
mod overview;
mod password;
mod placed_tasks;
mod pools;
mod prune;
mod read;
mod remote;
mod result_cache;
mod row;
mod run_queries;
mod run_work;
mod save;
mod sessions;
mod settle;
mod shelf;
mod statements;
mod store_queries;
mod tls;
mod transfer;
mod triggers;
mod view;
mod waits;
mod work;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway_core::id::{InstanceId, SessionId};
use tokio::sync::watch;

use crate::contract::{Store, UNHINTED_POLL_INTERVAL};
use crate::error::{Error, Result};
use crate::locks::SessionLocks;
use crate::postgres::address::Address;
use crate::postgres::base::Base;
use crate::postgres::connect::Target;
use crate::sqlite::Clock;
use crate::tally::GateWaits;
use crate::{Open, SchemaChange};

pub use listen::Hearing;

/// Runs that are looked at again in one transaction when a node takes more than before: others wait
/// for what it holds.
const RUNS_AT_ONCE: usize = 20;

pub(crate) use address::without_password;
#[cfg(test)]
pub(crate) use migrate::tests::test_schema;
#[cfg(test)]
pub(crate) const RUN_LAST: &str = statements::statement!("run_last");
pub(crate) use transfer::MoveTarget;

/// A URL as people may see it. One that cannot be read may hold a password anywhere.
pub(crate) fn shown(url: &str) -> String {
    Address::parse(url).map_or_else(|_| "postgres://…".to_owned(), |address| address.shown)
}

#[derive(Debug)]
pub struct PostgresStore {
    base: Arc<Base>,
    dir: PathBuf,
    /// By these a process of this host is known to be dead before its lease ends.
    locks: SessionLocks,
    /// Sessions that were registered here: who reaps must itself be alive.
    own: Mutex<Vec<SessionId>>,
    schema_change: SchemaChange,
}

impl PostgresStore {
    /// `dir` is where logs and scratch files of this node go; the database is elsewhere.
    pub fn open(url: &str, dir: &Path, mode: Open) -> Result<Self> {
        Self::open_with(url, dir, mode, Arc::new(Clock::system()))
    }

    /// With a clock of the caller's: a manual one stands in place of the database's.
    pub fn open_with(url: &str, dir: &Path, mode: Open, clock: Arc<Clock>) -> Result<Self> {
        Self::open_any(url, dir, (mode, false), clock)
    }

    /// Opens a store into which a move is unfinished, to look at it.
    pub(crate) fn open_half_moved(url: &str, dir: &Path) -> Result<Self> {
        Self::open_any(url, dir, (Open::Existing, true), Arc::new(Clock::system()))
    }

    fn open_any(
        url: &str,
        dir: &Path,
        (mode, may_be_half_moved): (Open, bool),
        clock: Arc<Clock>,
    ) -> Result<Self> {
        let address = Address::parse(url)?;
        let prepare = Target::prepare(address, mode, may_be_half_moved);
        let (target, instance, schema_change) = at_once(prepare)?;
        crate::private::create_dir_all(&dir.join("sessions")).map_err(|error| Error::Io {
            path: dir.to_owned(),
            why: format!("the directory for logs and scratch files cannot be made: {error}"),
        })?;
        let pool = target.pool()?;
        Ok(Self {
            base: Arc::new(Base::new(target, pool, instance, clock)),
            dir: dir.to_owned(),
            locks: SessionLocks::new(dir),
            own: Mutex::default(),
            schema_change,
        })
    }

    /// What opening it has changed about its schema.
    pub fn schema_change(&self) -> SchemaChange {
        self.schema_change
    }

    /// How often a task may be lost with its node before it fails.
    pub fn with_max_lost(self, max_lost: u32) -> Self {
        self.base.set_max_lost(max_lost);
        self
    }

    /// Whether notifications arrive; for whoever decides how often to look.
    pub fn hearing(&self) -> Option<watch::Receiver<Hearing>> {
        self.base.hearing()
    }
}

/// Runs to its end on a thread of its own: a store is opened by whoever is in a runtime, and by
/// whoever is not.
fn at_once<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let failed = |why: String| Error::Closed { why };
    let thread = std::thread::Builder::new().name("laneway-open".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| Error::Closed { why: error.to_string() })?.block_on(work)
    });
    let thread = thread.map_err(|error| failed(error.to_string()))?;
    thread.join().map_err(|_| failed("the thread that opens it has panicked".to_owned()))?
}

impl Store for PostgresStore {
    fn instance(&self) -> InstanceId {
        self.base.instance
    }

    fn is_embedded(&self) -> bool {
        false
    }

    fn dir(&self) -> &Path {
        &self.dir
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.base.listen()
    }

    fn poll_interval(&self, setting: Duration) -> Duration {
        let is_heard = self.hearing().is_some_and(|hearing| *hearing.borrow() == Hearing::Listening);
        if is_heard { setting } else { setting.min(UNHINTED_POLL_INTERVAL) }
    }

    fn contentions(&self) -> u64 {
        self.base.shelf.contentions.load(Ordering::Relaxed)
    }

    fn gate_waits(&self) -> GateWaits {
        self.base.shelf.waits()
    }
}
