//! Paths and size limits of bytes, the same for both databases: bundles and artifacts by hash, logs
//! by claim. It checks sizes and hashes, and never reads or writes a file. See
//! `docs/design/bytes.md`.

use std::path::{Path, PathBuf};

use laneway_core::hash::ContentHash;
use laneway_core::id::{InstanceId, RunId};

use crate::error::{Error, Result};

/// Size of a chunk of a blob in bytes. Each chunk is a row, so that no row is large.
pub(crate) const BLOB_CHUNK: usize = 256 << 10;

/// Number of chunks that one transaction writes, so that other writers wait only briefly.
pub(crate) const BLOB_BATCH: usize = 8;

/// Maximum size of a blob in bytes. Storing or fetching one holds it in memory.
pub const MAX_BLOB: usize = 64 << 20;

/// Maximum size in bytes of an artifact in a database for many nodes.
pub const MAX_SHARED_FILE: u64 = 8 << 20;

/// Maximum number of bytes of a log in one response.
pub const MAX_LOG_PART: usize = 1 << 20;

/// Directories that a store or a node creates beside its file, or in its own directory.
pub const OWN_DIRS: [&str; 7] =
    ["artifacts", "bundles", "isolates", "logs", "scratch", "sessions", "workspaces"];

/// Files there that only their owner may read.
pub const OWN_FILES: [&str; 2] = ["admin.token", "secret.key"];

/// Suffix of a data directory that belongs to one store: the name of its database precedes it.
pub(crate) const DATA_DIR_SUFFIX: &str = ".d";

/// Returns the database files to which the data directory `dir` belongs, if its name shows one.
pub fn database_of(dir: &Path) -> Option<[PathBuf; 4]> {
    let path = dir.to_str()?.strip_suffix(DATA_DIR_SUFFIX)?;
    Some(["", "-wal", "-shm", "-journal"].map(|end| PathBuf::from(format!("{path}{end}"))))
}

/// Returns the directory of the workspaces of a store's runs on a node.
pub fn workspaces_dir(dir: &Path, instance: InstanceId) -> PathBuf {
    dir.join("workspaces").join(instance.to_string())
}

/// Returns the directory of the copies in which members of groups work, on a node.
pub fn isolates_dir(dir: &Path, instance: InstanceId) -> PathBuf {
    dir.join("isolates").join(instance.to_string())
}

/// Returns the path of an attempt's log in an embedded store.
pub fn log_path(store_dir: &Path, run: RunId, step: &str, attempt: u32) -> PathBuf {
    store_dir.join("logs").join(run.to_string()).join(format!("{}.a{attempt}.log", file_name(step)))
}

/// Returns a step's name for use in paths. Names in a document are safe: letters, digits, `_` and
/// `-`. The name of a merge has a `/`, which becomes a character that no other name can have.
pub fn file_name(step: &str) -> String {
    step.replace('/', ".")
}

/// Returns the hash under which to store bytes.
///
/// # Errors
/// `TooLarge` if they exceed `MAX_BLOB`.
pub(crate) fn admit(bytes: &[u8]) -> Result<ContentHash> {
    if bytes.len() > MAX_BLOB {
        return Err(Error::TooLarge { size: bytes.len() as u64, limit: MAX_BLOB as u64 });
    }
    Ok(ContentHash::of(bytes))
}

/// Returns stored bytes, checked against their hash.
///
/// # Errors
/// `Unreadable` if the hash differs.
pub(crate) fn verify(hash: &ContentHash, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if ContentHash::of(&bytes) != *hash {
        let why = format!("what is stored as {} has another content", hash.short());
        return Err(Error::Unreadable { what: "blob".to_owned(), why });
    }
    Ok(bytes)
}
