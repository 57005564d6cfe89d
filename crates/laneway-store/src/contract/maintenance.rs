//! What keeps a store small and sound: retention, checks, quarantine, backup
//! (`docs/design/retention.md`).

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::id::RunId;

use crate::error::Result;
use crate::model::{Examination, Horizon};
use crate::prune::{Keep, KeepRecords, Prunable, Swept};

#[async_trait]
pub trait Maintenance {
    /// Removes the oldest entries of the audit log and events of nodes beyond the retention, in
    /// short transactions, and not all at once if there are many. Returns how many. Keeps the
    /// events of live nodes, and the newest of both kinds, so that no number is used twice.
    async fn prune_records(&self, keep: KeepRecords) -> Result<u64>;

    /// Returns up to `limit` runs that `keep` releases, oldest first, with their size. Changes
    /// nothing. Never returns a run that has not ended, is quarantined, is the newest of its
    /// workflow, or whose end has yet to start something.
    async fn prunable(&self, keep: Keep, limit: usize) -> Result<Vec<Prunable>>;

    /// Removes a run with all its data, in short transactions. Returns `false`, and changes
    /// nothing, if it must stay. Its key is remembered for a week: a submission with it gets this
    /// run, and starts none.
    async fn prune(&self, run: RunId) -> Result<bool>;

    /// Removes bytes without references that are older than a day, logs of removed runs, and keys
    /// beyond their week. Safe while other processes store and reference bytes.
    async fn sweep(&self) -> Result<Swept>;

    /// Quarantines a run if a part of it is unreadable or its history contradicts its rows: it
    /// stops until it is released. Returns what is wrong, or `None` without a change if all of it
    /// fits.
    async fn set_aside(&self, run: RunId) -> Result<Option<String>>;

    /// Releases a run from quarantine.
    ///
    /// # Errors
    /// Fails as long as a part of it is unreadable.
    async fn release(&self, run: RunId) -> Result<()>;

    /// Looks for everything that is wrong with the store: the file, the newest `limit` runs, the
    /// files beside it. Changes nothing.
    async fn examine(&self, limit: usize) -> Result<Examination>;

    /// Returns the oldest transaction that keeps the database from removing dead rows, if it has
    /// been open for `at_least` as long. Every dead row slows claims down.
    async fn horizon(&self, at_least: Duration) -> Result<Option<Horizon>>;

    /// Writes a complete copy as of one moment to a file that does not exist yet, while work
    /// continues. Logs are not in it.
    async fn backup(&self, to: &Path) -> Result<()>;
}
