//! The directory of one view, and who holds it. A mark proves that Laneway made the directory; a lock on
//! the mark, held for the life of the process, tells the views of dead processes from those in use.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use laneway_core::id::RunId;
use rustix::fs::{FlockOperation, flock};

use super::Error;
use crate::isolate::{mark, walk};

/// Numbers that are tried before a node has too many views of one run.
const MAX_VIEWS_PER_RUN: u32 = 100_000;

/// A directory that this process has claimed for a view.
#[derive(Debug)]
pub(super) struct Cell {
    path: PathBuf,
    /// The mark, locked.
    _lock: File,
}

impl Cell {
    /// Claims the lowest number of a run that is free on this node.
    pub(super) fn claim(root: &Path, run: RunId) -> Result<Self, Error> {
        let of_run = root.join(run.to_string());
        // Until the mark is locked, a process that tidies would take the cell for a leftover.
        let _turn = lock_root(root)?;
        for number in 1..=MAX_VIEWS_PER_RUN {
            let path = of_run.join(number.to_string());
            if path.symlink_metadata().is_ok() {
                continue;
            }
            mark::make(&path)?;
            let locked = lock_mark(&path).map_err(Error::files("lock", &path))?;
            let lock = locked.ok_or_else(|| Error::files("lock", &path)(io::ErrorKind::WouldBlock.into()))?;
            return Ok(Self { path, _lock: lock });
        }
        Err(Error::files("make", &of_run)(io::Error::other("too many views of one run")))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the view is, as in a copy for a member of a group.
    pub(super) fn tree(&self) -> PathBuf {
        self.path.join("at").join("tree")
    }

    pub(super) fn upper(&self) -> PathBuf {
        self.path.join("upper")
    }

    pub(super) fn remove(self) -> Result<(), Error> {
        remove(&self.path)
    }
}

/// Removes the cells of processes that are gone. One that cannot be removed does not keep the others.
pub(super) fn tidy(root: &Path) -> Result<(), Error> {
    if !root.is_dir() {
        return Ok(());
    }
    let runs = std::fs::read_dir(root).map_err(Error::files("look into", root))?;
    let runs = runs.flatten().filter(|entry| {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        is_dir && entry.file_name().to_str().is_some_and(|name| RunId::parse(name).is_some())
    });
    for run in runs {
        for entry in std::fs::read_dir(run.path()).into_iter().flatten().flatten() {
            if let Err(error) = tidy_cell(root, &entry.path()) {
                tracing::debug!(%error, "a leftover view stays");
            }
        }
        let _ = std::fs::remove_dir(run.path());
    }
    Ok(())
}

fn tidy_cell(root: &Path, cell: &Path) -> Result<(), Error> {
    let turn = lock_root(root)?;
    // This also removes a cell that was made and not marked any more.
    if mark::read(cell)?.is_none() {
        return Ok(());
    }
    let Some(_lock) = lock_mark(cell).map_err(Error::files("lock", cell))? else { return Ok(()) };
    // The name is taken as long as the directory is there, so others may go on meanwhile.
    drop(turn);
    remove(cell)
}

fn remove(cell: &Path) -> Result<(), Error> {
    mark::remove(cell)?;
    if let Some(of_run) = cell.parent() {
        // Only the last view of a run leaves it empty.
        let _ = std::fs::remove_dir(of_run);
    }
    Ok(())
}

/// `None` if another holder has it. The lock ends with the file, also when the process is killed.
fn lock_mark(cell: &Path) -> io::Result<Option<File>> {
    let (dir, _) = walk::root(cell)?;
    let (file, _) = walk::file(&dir, c"mark")?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Held for moments: nothing is copied, mounted or removed meanwhile.
pub(super) fn lock_root(root: &Path) -> Result<File, Error> {
    let path = root.join("lock");
    let lock = || -> io::Result<File> {
        laneway_store::private::create_dir_all(root)?;
        let file = laneway_store::private::options().write(true).create(true).truncate(false).open(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    };
    lock().map_err(Error::files("lock", &path))
}
