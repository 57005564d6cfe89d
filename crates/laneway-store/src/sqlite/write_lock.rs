//! Which process holds SQLite's write lock. A process that is frozen inside of a write transaction holds it for
//! ever, and every other process waits for it. SQLite keeps that lock in a byte of the shared-memory file of the
//! WAL, and the system tells whose it is.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Flock, FlockOffsetType, FlockType, Pid, fcntl_getlk};

/// The byte of the `-shm` file that a writer locks (SQLite's file format, "WAL-Index Locks").
const WRITE_LOCK_BYTE: u64 = 120;

/// Shared-memory files that were looked at, by device and inode. They stay open until the process ends: closing any
/// descriptor of such a file would release the locks that SQLite itself holds on it in this process.
static KEPT_OPEN: Mutex<Vec<((u64, u64), File)>> = Mutex::new(Vec::new());

/// The process that holds the write lock of a store; `None` if no other process does.
pub(super) fn holder(store: &Path) -> Option<Pid> {
    let mut path = std::fs::canonicalize(store).ok()?.into_os_string();
    path.push("-shm");
    let found = std::fs::metadata(&path).ok()?;
    let identity = (found.dev(), found.ino());
    let mut kept = KEPT_OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.iter().any(|(known, _)| *known == identity) {
        kept.push((identity, File::open(&path).ok()?));
    }
    let (_, file) = kept.iter().find(|(known, _)| *known == identity)?;
    let wanted = Flock {
        start: WRITE_LOCK_BYTE,
        length: 1,
        pid: None,
        typ: FlockType::WriteLock,
        offset_type: FlockOffsetType::Set,
    };
    fcntl_getlk(file, &wanted).ok().flatten().and_then(|lock| lock.pid)
}
