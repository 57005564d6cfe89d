//! The contract of the store: a trait for each subject, and [`Store`] as all of them together.
//!
//! Read [`Work`] first: it is the path of a task from submit to finish. Each changing verb is one
//! transaction. Its events commit with it, and it returns after the commit is on disk. Both
//! databases pass the same suite, `tests/conformance/`.

mod access;
mod blobs;
mod cache;
mod effects;
mod maintenance;
mod operator;
mod run_queries;
mod sessions;
mod store_queries;
mod triggers;
mod work;

use std::fmt;
use std::path::Path;
use std::time::Duration;

use laneway_core::id::InstanceId;
use tokio::sync::watch;

pub use access::Access;
pub use blobs::Blobs;
pub use cache::ResultCache;
pub use effects::Effects;
pub use maintenance::Maintenance;
pub use operator::Operator;
pub use run_queries::RunQueries;
pub use sessions::Sessions;
pub use store_queries::StoreQueries;
pub use triggers::Triggers;
pub use work::Work;

use crate::model::{Commits, Stamp};
use crate::tally::GateWaits;

/// How often a caller polls that receives no change notifications.
pub(crate) const UNHINTED_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// One store: the only coordinator of all nodes that use it.
///
/// State changes through the verbs of its supertraits and in no other way. Every write by a worker
/// carries its claim (`fence.rs`).
pub trait Store:
    Sessions
    + Work
    + Effects
    + Triggers
    + Blobs
    + ResultCache
    + Operator
    + Access
    + Maintenance
    + RunQueries
    + StoreQueries
    + Send
    + Sync
    + fmt::Debug
{
    fn instance(&self) -> InstanceId;

    /// Returns whether all nodes of this store are on this host, with the files of its users.
    fn is_embedded(&self) -> bool;

    /// Returns the directory of the logs and scratch files of this node.
    fn dir(&self) -> &Path;

    /// Returns a mark that stays equal as long as no process commits anything, or `None` where
    /// reading the mark would cost as much as reading the data.
    fn stamp(&self) -> Option<Stamp> {
        None
    }

    /// Ticks after every commit of this process, and when another process changed the store. A
    /// hint: correctness never needs it.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Returns how often a caller that waits for `changes` polls as well. Call it after `changes`.
    fn max_poll_interval(&self) -> Duration {
        self.poll_interval(Duration::from_secs(15))
    }

    /// The same for a caller that polls at most every `setting` while notifications arrive.
    fn poll_interval(&self, setting: Duration) -> Duration {
        setting.min(UNHINTED_POLL_INTERVAL)
    }

    /// Returns how often a claim through this handle got fewer tasks than it wanted because other
    /// transactions held their rows. Always 0 where one writer works at a time.
    fn contentions(&self) -> u64 {
        0
    }

    /// Returns how long the tasks had waited that this process made available. Tasks of a
    /// transaction that was rolled back are rare and count too. Tasks that were claimed ahead do
    /// not count.
    fn gate_waits(&self) -> GateWaits;

    /// Returns how the verbs of this process were grouped into commits, or `None` where the
    /// database groups them.
    fn commits(&self) -> Option<Commits> {
        None
    }
}
