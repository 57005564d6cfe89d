//! Artifacts and logs. Plain values only: `contract/blobs.rs` describes the verbs. See
//! `docs/design/bytes.md`.

use laneway_core::artifact::ArtifactName;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;

use crate::fence::ClaimRef;

/// The content of a stored file, opened for reading.
#[derive(Debug)]
pub enum Opened {
    /// Positioned at its beginning. It stays readable after the store removes the file.
    File(std::fs::File),
    Bytes(Vec<u8>),
}

/// A file that a step left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub name: ArtifactName,
    pub hash: ContentHash,
    pub size: u64,
    pub is_executable: bool,
}

/// An artifact, with the step and the attempt that left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactView {
    pub step: String,
    pub attempt: u32,
    pub artifact: Artifact,
}

/// A piece of the output of an attempt: bytes of its framed log, from the offset `start` on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    pub claim: ClaimRef,
    pub start: u64,
    pub bytes: Vec<u8>,
}

/// Identifies the log of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName {
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
}

/// A range of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPart {
    /// Bytes from the requested offset on. Empty at the end of the log so far.
    pub bytes: Vec<u8>,
    /// Current length of the log, in bytes.
    pub size: u64,
    /// Its node died: output of the last second before that may be missing.
    pub may_lack_end: bool,
}
