//! Warm containers of a node: pools by what their containers are made of, and tasks that run in them.
//!
//! ```text
//! attempt ─▶ task (exec) · call (HTTP) ─▶ Pools ─▶ keeper (a loop for each pool) ─▶ vessel (one container) ─▶ Docker
//!                                                    └ laneway_core::pool decides     ├ inside, outside: what clean means
//!                                                                                     └ files, mounts, ports, http
//! ```
//! A container belongs to the node's session, not to a run. Why it is so: docs/design/pools.md.

mod calm;
mod files;
mod http;
mod images;
mod inside;
mod keeper;
mod lease;
mod mounts;
mod outside;
mod pools;
mod ports;
mod recorder;
mod tally;
mod task;
mod vessel;

use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::pool::{ContainerState, ContainerTaken, Counts, EndReason, Mode, PoolFact};
use tokio::sync::mpsc;

pub use pools::{PoolMeans, Pools, Ready};
pub(crate) use recorder::Recorder;
pub use tally::{PoolTally, Tally};
pub use task::{Job, What, execute};

/// A pool as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    /// As the document calls it that was there first.
    pub name: String,
    pub image: String,
    pub mode: Mode,
    pub max: usize,
    pub counts: Counts,
    /// By name.
    pub containers: Vec<(String, ContainerState)>,
}

/// What a node tells of its pools.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// There is one more, or one has another name as well.
    Pool {
        name: String,
        image: String,
        max: usize,
    },
    Moved(Transition),
    Pulling(Pull),
    /// A task has a container, behind the transition that says so.
    Taken(ContainerTaken),
    /// How the ports of the host are used has changed.
    Ports(PoolFact),
}

/// Where pools publish what they do, until they are closed.
#[derive(Debug, Clone, Default)]
struct Outlet(Arc<Mutex<Option<mpsc::UnboundedSender<Told>>>>);

impl Outlet {
    fn new(sender: Option<mpsc::UnboundedSender<Told>>) -> Self {
        Self(Arc::new(Mutex::new(sender)))
    }

    fn tell(&self, what: Told) {
        if let Some(sender) = self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref() {
            let _ = sender.send(what);
        }
    }

    /// The receiver sees the end of the stream.
    fn close(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// How far the image of a pool is fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pull {
    pub pool: String,
    /// As the document calls it.
    pub image: String,
    pub bytes: u64,
    pub of: u64,
    pub is_done: bool,
}

/// A container went from one state to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    pub pool: String,
    pub container: String,
    /// As the document calls it.
    pub image: String,
    /// On the host.
    pub port: Option<u16>,
    pub to: ContainerState,
    pub why: Option<EndReason>,
}
