//! Results that steps reuse instead of running again (`docs/design/cache.md`).

use async_trait::async_trait;
use laneway_core::cache::Miss;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;

use crate::cache::{Behind, Forgotten, Found, KeepResults, Look, Missed, NewResult, ResultView, Which};
use crate::error::Result;
use crate::fence::{ClaimRef, Fate};

#[async_trait]
pub trait ResultCache {
    /// Looks up the result of a key. A read: never blocked by a writer, and writes nothing.
    async fn cached(&self, look: Look) -> Result<Found>;

    /// Stores the result of an attempt that succeeded, with its artifacts and layer. Replaces an
    /// older result of the same key.
    async fn remember(&self, result: NewResult) -> Result<()>;

    /// Adds to the use counts of results, by key. Best effort: skips rows that another transaction
    /// holds.
    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()>;

    /// Records why an attempt runs although its step has a cache. The last reason of a task stays.
    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate>;

    /// Returns the recorded reason why a task ran although its step has a cache.
    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>>;

    /// Returns results, the most recently used first, after the given one.
    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>>;

    /// Removes results, in short transactions. Their files go with the next `sweep`.
    async fn forget_results(&self, which: Which) -> Result<Forgotten>;

    /// Removes results beyond the retention, in the same way.
    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten>;
}
