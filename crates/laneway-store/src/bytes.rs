//! Where bytes lie, and how much of them there may be: bundles and artifacts by their hash, logs by claim. What is the same for
//! both databases; `docs/design/bytes.md` says why.

use std::path::{Path, PathBuf};

use laneway_core::hash::ContentHash;
use laneway_core::id::{InstanceId, RunId};

use crate::error::{Error, Result};

/// A blob lies in rows of this size, so that none is large.
pub(crate) const BLOB_CHUNK: usize = 256 << 10;

/// Chunks that are written by one transaction, so that nobody waits long for the writer.
pub(crate) const BLOB_BATCH: usize = 8;

/// No blob is larger: it is held in memory by whoever brings or fetches it.
pub const MAX_BLOB: usize = 64 << 20;

/// The largest artifact that is kept in a database for many nodes.
pub const MAX_SHARED_FILE: u64 = 8 << 20;

/// The most of a log that one answer has.
pub const MAX_LOG_PART: usize = 1 << 20;

/// Directories that a store or a node makes beside its file, or in its own directory.
pub const OWN_DIRS: [&str; 7] =
    ["artifacts", "bundles", "isolates", "logs", "scratch", "sessions", "workspaces"];

/// Files there that nobody but their owner may read.
pub const OWN_FILES: [&str; 2] = ["admin.token", "secret.key"];

/// A data directory that belongs to one store is named like its database, with this behind it.
pub(crate) const DATA_DIR_SUFFIX: &str = ".d";

/// Returns the files of the database beside which `dir` is its data directory, if it is named after one.
pub fn database_of(dir: &Path) -> Option<[PathBuf; 4]> {
    let path = dir.to_str()?.strip_suffix(DATA_DIR_SUFFIX)?;
    Some(["", "-wal", "-shm", "-journal"].map(|end| PathBuf::from(format!("{path}{end}"))))
}

/// Where the runs of a store have their workspaces, on a node.
pub fn workspaces_dir(dir: &Path, instance: InstanceId) -> PathBuf {
    dir.join("workspaces").join(instance.to_string())
}

/// Where a node keeps the copies in which members of groups work.
pub fn isolates_dir(dir: &Path, instance: InstanceId) -> PathBuf {
    dir.join("isolates").join(instance.to_string())
}

/// Where the output of an attempt is kept by an embedded store.
pub fn log_path(store_dir: &Path, run: RunId, step: &str, attempt: u32) -> PathBuf {
    store_dir.join("logs").join(run.to_string()).join(format!("{}.a{attempt}.log", file_name(step)))
}

/// A step's name in paths. Those of a document are safe: letters, digits, `_` and `-`. A merge has a `/` in its name, in whose
/// place stands what no other name can have.
pub fn file_name(step: &str) -> String {
    step.replace('/', ".")
}

/// The hash under which bytes are to be kept, if they may be.
pub(crate) fn admit(bytes: &[u8]) -> Result<ContentHash> {
    if bytes.len() > MAX_BLOB {
        return Err(Error::TooLarge { size: bytes.len() as u64, limit: MAX_BLOB as u64 });
    }
    Ok(ContentHash::of(bytes))
}

/// Bytes as they came out of a store, if they are what went in.
pub(crate) fn verify(hash: &ContentHash, bytes: Vec<u8>) -> Result<Vec<u8>> {
    if ContentHash::of(&bytes) != *hash {
        let why = format!("what is stored as {} has another content", hash.short());
        return Err(Error::Unreadable { what: "blob".to_owned(), why });
    }
    Ok(bytes)
}
