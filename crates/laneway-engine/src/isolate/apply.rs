//! Does to the run's directory what a merge decided: removals first, deepest first; then what is written, each file whole or
//! not at all. The decision is kept until it is done, so that doing it twice is doing it once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use laneway_core::merge::{Apply, Combined, Entry};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, mkdirat, openat, renameat, symlinkat, unlinkat};
use serde::{Deserialize, Serialize};

use super::walk::{self, Kind};
use super::{Error, changes, copy};

/// Under this name a file is written before it takes its own.
const FRESH: &CStr = c".laneway-merge.tmp";

#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    /// Whose changes these are: attempts that were run again make another decision.
    cells: Vec<String>,
    combined: Combined,
}

/// A decision about these cells that was begun before.
pub(super) fn begun(journal: &Path, cells: &[String]) -> Option<Combined> {
    let journal: Journal = serde_json::from_slice(&std::fs::read(journal).ok()?).ok()?;
    (journal.cells == cells).then_some(journal.combined)
}

/// Whole and on the disk before anything is touched.
pub(super) fn write_down(path: &Path, cells: &[String], combined: &Combined) -> Result<(), Error> {
    let journal = Journal { cells: cells.to_vec(), combined: combined.clone() };
    let fresh = path.with_extension("new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&fresh)?;
        file.write_all(&serde_json::to_vec(&journal).map_err(io::Error::other)?)?;
        file.sync_all()?;
        std::fs::rename(&fresh, path)
    };
    write().map_err(Error::files("write", path))
}

pub(super) fn note_applied(path: &Path, cells: &[String]) -> Result<(), Error> {
    let mut all = applied(path);
    all.extend(cells.iter().cloned());
    let text: String = all.iter().map(|cell| format!("{cell}\n")).collect();
    std::fs::write(path, text).map_err(Error::files("write", path))
}

/// Cells whose changes are in the run's directory.
pub(super) fn applied(path: &Path) -> BTreeSet<String> {
    std::fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// `trees` has the copy of each member by its place in the list.
pub(super) fn apply(base: &Path, trees: &BTreeMap<usize, PathBuf>, combined: &Combined) -> Result<(), Error> {
    let (root, _) = walk::root(base).map_err(Error::files("look into", base))?;
    for change in combined.applies.iter().rev().filter(|change| change.entry.is_none()) {
        remove(&root, &change.path).map_err(Error::files("remove", &base.join(&change.path)))?;
    }
    for change in &combined.applies {
        let Some(entry) = &change.entry else { continue };
        put(&root, base, trees, change, entry)?;
    }
    // What is told to the store is on the disk.
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&root).map_err(io::Error::from).map_err(Error::files("write", base))?;
    Ok(())
}

/// What is not there any more is removed already; a directory in which something is left stays.
fn remove(root: &OwnedFd, path: &Path) -> io::Result<()> {
    let (at, name) = match walk::parent(root, path) {
        Ok(found) => found,
        Err(error) if is_gone(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let Some(seen) = walk::look(&at, &name)? else { return Ok(()) };
    let flags = if seen.kind == Kind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(&at, &*name, flags) {
        Ok(()) | Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST | rustix::io::Errno::NOENT) => {
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// The way there is gone, or is no way any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn put(
    root: &OwnedFd,
    base: &Path,
    trees: &BTreeMap<usize, PathBuf>,
    change: &Apply,
    entry: &Entry,
) -> Result<(), Error> {
    let full = base.join(&change.path);
    let failed = || Error::files("write", &full);
    make_way(root, &change.path).map_err(failed())?;
    let (at, name) = walk::parent(root, &change.path).map_err(failed())?;
    let there = walk::look(&at, &name).map_err(failed())?;
    let is_directory = there.is_some_and(|seen| seen.kind == Kind::Directory);
    match entry {
        Entry::Directory { mode } => {
            let make = || -> io::Result<()> {
                if !is_directory {
                    if there.is_some() {
                        unlinkat(&at, &*name, AtFlags::empty())?;
                    }
                    mkdirat(&at, &*name, Mode::RWXU)?;
                }
                Ok(fchmod(&walk::directory(&at, &name)?.0, Mode::from_raw_mode(*mode as _))?)
            };
            return make().map_err(failed());
        }
        Entry::File { .. } | Entry::Symlink { .. } => {}
    }
    if is_directory {
        match unlinkat(&at, &*name, AtFlags::REMOVEDIR) {
            Ok(()) => {}
            Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => {
                return Err(Error::NotEmpty { path: full });
            }
            Err(error) => return Err(failed()(error.into())),
        }
    }
    // One of a merge that was interrupted.
    if let Ok(Some(_)) = walk::look(&at, FRESH) {
        unlinkat(&at, FRESH, AtFlags::empty()).map_err(io::Error::from).map_err(failed())?;
    }
    match entry {
        Entry::Symlink { target } => {
            symlinkat(target, &at, FRESH).map_err(io::Error::from).map_err(failed())?;
        }
        Entry::File { hash, .. } => {
            let Some(tree) = trees.get(&change.from) else { return Err(Error::Changed { path: full }) };
            let (tree, _) = walk::root(tree).map_err(failed())?;
            if !write(&tree, &change.path, &at, hash).map_err(failed())? {
                return Err(Error::Changed { path: full });
            }
        }
        Entry::Directory { .. } => {}
    }
    renameat(&at, FRESH, &at, &*name).map_err(io::Error::from).map_err(failed())
}

/// Copies a file of a member under its first name. Says whether it is what was decided.
fn write(tree: &OwnedFd, path: &Path, at: &OwnedFd, hash: &str) -> io::Result<bool> {
    let (from, name) = walk::parent(tree, path)?;
    let (source, seen) = walk::file(&from, &name)?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let into = File::from(openat(at, FRESH, flags, Mode::RUSR | Mode::WUSR)?);
    copy::content(&source, &into, true)?;
    let mut written = into.try_clone()?;
    io::Seek::rewind(&mut written)?;
    let is_right = changes::hash(&mut written)? == hash;
    copy::finish(&into, &seen)?;
    Ok(is_right)
}

/// Directories on the way that a member made and that nobody kept.
fn make_way(root: &OwnedFd, path: &Path) -> io::Result<()> {
    let parents: Vec<&Path> = path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).collect();
    for part in parents.into_iter().rev() {
        let (at, name) = walk::parent(root, part)?;
        if walk::look(&at, &name)?.is_none() {
            mkdirat(&at, &*name, Mode::from_raw_mode(0o755))?;
        }
    }
    Ok(())
}
