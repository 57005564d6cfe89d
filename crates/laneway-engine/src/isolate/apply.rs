//! Does to the run's directory what a merge decided: removals first, deepest first; then what is written, each file whole or
//! not at all; the modes of directories last. The decision is kept until it is done, so that doing it twice is doing it once.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{CStr, CString};
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
    find_in_the_way(&root, base, combined)?;
    let mut work = Work { root: &root, base, trees, modes: BTreeMap::new() };
    let done = work.apply(combined);
    // Also of what was done by half: nothing is left more open than it was.
    let closed = work.set_modes();
    done.and(closed)?;
    // What is told to the store is on the disk.
    #[cfg(target_os = "linux")]
    rustix::fs::syncfs(&root).map_err(io::Error::from).map_err(Error::files("write", base))?;
    Ok(())
}

/// A directory that is to become a file, and holds what nobody removed, is found before anything is touched.
fn find_in_the_way(root: &OwnedFd, base: &Path, combined: &Combined) -> Result<(), Error> {
    let removed = combined.applies.iter().filter(|change| change.entry.is_none());
    let removed: BTreeSet<&Path> = removed.map(|change| change.path.as_path()).collect();
    for change in &combined.applies {
        match &change.entry {
            Some(Entry::File { .. } | Entry::Symlink { .. }) => {}
            Some(Entry::Directory { .. }) | None => continue,
        }
        let path = base.join(&change.path);
        let look = || -> io::Result<bool> {
            let (at, name) = walk::parent(root, &change.path)?;
            let is_directory = walk::look(&at, &name)?.is_some_and(|seen| seen.kind == Kind::Directory);
            Ok(!is_directory || goes(&walk::directory(&at, &name)?.0, &change.path, &removed, 0)?)
        };
        match look() {
            Ok(true) => {}
            Ok(false) => return Err(Error::NotEmpty { path }),
            // The way there is made first.
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(Error::files("look into", &path)(error)),
        }
    }
    Ok(())
}

/// Whether all that a directory holds is to be removed.
fn goes(at: &OwnedFd, path: &Path, removed: &BTreeSet<&Path>, depth: usize) -> io::Result<bool> {
    if depth >= walk::DEEPEST {
        return Ok(false);
    }
    for name in walk::names(at)? {
        let inner = path.join(walk::os_name(&name));
        let is_directory = walk::look(at, &name)?.is_some_and(|seen| seen.kind == Kind::Directory);
        let goes = removed.contains(inner.as_path())
            && (!is_directory || goes(&walk::directory(at, &name)?.0, &inner, removed, depth + 1)?);
        if !goes {
            return Ok(false);
        }
    }
    Ok(true)
}

struct Work<'a> {
    root: &'a OwnedFd,
    base: &'a Path,
    trees: &'a BTreeMap<usize, PathBuf>,
    /// What directories are to have in the end. Set last: who is not root writes to none that is closed to writing.
    modes: BTreeMap<PathBuf, u32>,
}

impl Work<'_> {
    fn apply(&mut self, combined: &Combined) -> Result<(), Error> {
        let puts = combined.applies.iter().filter_map(|change| Some((change, change.entry.as_ref()?)));
        // A directory that is needed stays what it is, with its mode.
        let needed: BTreeSet<&Path> =
            puts.clone().flat_map(|(change, _)| change.path.ancestors().skip(1)).collect();
        for change in combined.applies.iter().rev().filter(|change| change.entry.is_none()) {
            let failed = Error::files("remove", &self.base.join(&change.path));
            self.remove(&change.path, needed.contains(change.path.as_path())).map_err(failed)?;
        }
        for (change, entry) in puts {
            self.put(change, entry)?;
        }
        Ok(())
    }

    /// Deepest first: one that is closed may not be entered any more.
    fn set_modes(&self) -> Result<(), Error> {
        for (path, mode) in self.modes.iter().rev() {
            let set = || -> io::Result<()> {
                let (at, name) = walk::parent(self.root, path)?;
                Ok(fchmod(&walk::directory(&at, &name)?.0, Mode::from_raw_mode(*mode as _))?)
            };
            match set() {
                Err(error) if is_gone(&error) => {}
                set => set.map_err(Error::files("write", &self.base.join(path)))?,
            }
        }
        Ok(())
    }

    /// The directory in which something is to be changed. One that its owner may not write to is opened for as long as that takes.
    fn parent(&mut self, path: &Path) -> io::Result<(OwnedFd, CString)> {
        let (at, name) = walk::parent(self.root, path)?;
        let mode = walk::again(&at)?.mode;
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty())
            && mode & 0o300 != 0o300
        {
            fchmod(&at, Mode::from_raw_mode((mode | 0o700) as _))?;
            self.modes.entry(parent.to_owned()).or_insert(mode);
        }
        Ok((at, name))
    }

    /// What is not there any more is removed already; a directory in which something is left, or will be, stays.
    fn remove(&mut self, path: &Path, is_needed: bool) -> io::Result<()> {
        let (at, name) = match self.parent(path) {
            Ok(found) => found,
            Err(error) if is_gone(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Some(seen) = walk::look(&at, &name)? else { return Ok(()) };
        let flags = match seen.kind {
            Kind::Directory if is_needed => return Ok(()),
            Kind::Directory => AtFlags::REMOVEDIR,
            Kind::File | Kind::Symlink | Kind::Other => AtFlags::empty(),
        };
        match unlinkat(&at, &*name, flags) {
            Ok(())
            | Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST | rustix::io::Errno::NOENT) => {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn put(&mut self, change: &Apply, entry: &Entry) -> Result<(), Error> {
        let full = self.base.join(&change.path);
        let failed = || Error::files("write", &full);
        self.make_way(&change.path).map_err(failed())?;
        let (at, name) = self.parent(&change.path).map_err(failed())?;
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
                    Ok(())
                };
                make().map_err(failed())?;
                self.modes.insert(change.path.clone(), *mode);
                return Ok(());
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
                let Some(tree) = self.trees.get(&change.from) else {
                    return Err(Error::Changed { path: full });
                };
                let (tree, _) = walk::root(tree).map_err(failed())?;
                if !write(&tree, &change.path, &at, hash).map_err(failed())? {
                    return Err(Error::Changed { path: full });
                }
            }
            Entry::Directory { .. } => {}
        }
        renameat(&at, FRESH, &at, &*name).map_err(io::Error::from).map_err(failed())
    }

    /// Directories on the way that a member made and that nobody kept.
    fn make_way(&mut self, path: &Path) -> io::Result<()> {
        let parents: Vec<&Path> =
            path.ancestors().skip(1).filter(|part| !part.as_os_str().is_empty()).collect();
        for part in parents.into_iter().rev() {
            let (at, name) = walk::parent(self.root, part)?;
            if walk::look(&at, &name)?.is_none() {
                let (at, name) = self.parent(part)?;
                mkdirat(&at, &*name, Mode::from_raw_mode(0o755))?;
            }
        }
        Ok(())
    }
}

/// The way there is gone, or is no way any more.
fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
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
