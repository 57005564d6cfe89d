//! Bytes: blobs by hash, artifacts, layers and logs (`docs/design/bytes.md`,
//! `docs/design/files.md`).

use std::path::Path;

use async_trait::async_trait;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::Position;

use crate::error::Result;
use crate::fence::{ClaimRef, Fate};
use crate::layer::Layer;
use crate::model::{Artifact, ArtifactView, LogName, LogPart, LogPiece, Opened};

#[async_trait]
pub trait Blobs {
    /// Stores bytes under their hash, all or nothing. Does nothing if they are stored.
    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash>;

    /// Returns the bytes of a hash, checked against it.
    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>>;

    /// Stores the content of a file by its hash: beside an embedded store, of any size; else as a
    /// blob of at most `shared_cap` bytes.
    async fn keep_file(&self, path: &Path, shared_cap: u64) -> Result<(ContentHash, u64)>;

    /// Writes the content of a hash to a file that does not exist yet.
    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()>;

    /// Opens the content of a hash. Of an embedded store it is the file itself: nothing is copied.
    async fn open_file(&self, hash: &ContentHash) -> Result<Opened>;

    /// Records the files that an attempt leaves, which are stored already. They become its
    /// artifacts if it succeeds.
    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate>;

    /// Returns the artifacts of the steps that succeeded, in the order of steps and names.
    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>>;

    /// Returns the layers of a run that count, by position: of tasks that have ended, and of their
    /// last attempts.
    async fn layers(&self, run: RunId) -> Result<Vec<Layer>>;

    /// Returns the packed layer of a task, or `None` if it is large and stored as a file of its
    /// hash.
    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>>;

    /// Stores pieces of the logs of attempts, by claim, of any number of attempts at once.
    /// Idempotent. A piece need not be on disk before the end of its attempt is.
    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>>;

    /// Returns a range of bytes of the framed log of an attempt, at most `MAX_LOG_PART` of them.
    /// Works from any node, while the log grows, and after the death of its node.
    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart>;
}
