//! Copies a directory: blocks are shared where the file system can. Permissions and times of change stay; whoever runs steps
//! owns the copy. What is neither file, directory nor symlink is left out, and hard links become files of their own.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, fchmod, futimens, mkdirat, openat, symlinkat};

use super::Error;
use super::given::{Entry, Given};
use super::links::{self, Links};
use super::walk::{self, Identity, Kind, Seen};

/// How often a name is looked at again that became something else in between.
const TRIES: usize = 3;

/// Entries among which a file is looked for to try it.
const PROBED: usize = 1_000;

/// How a copy is made.
#[derive(Debug, Clone, Copy)]
pub(super) struct How<'a> {
    pub(super) hidden: &'a BTreeSet<Identity>,
    pub(super) can_clone: bool,
    pub(super) links: &'a Links,
}

/// Copies everything but what is hidden, and tells what it copied.
pub(super) fn tree(from: &OwnedFd, to: &OwnedFd, base: &Path, how: &How<'_>) -> Result<Given, Error> {
    let mut copier = Copier { how: *how, given: Given::default(), base, at: PathBuf::new() };
    let top = walk::again(from).map_err(Error::files("look at", base))?;
    copier.directory(from, to, 0)?;
    copier.finish_directory(to, &top)?;
    Ok(copier.given)
}

struct Copier<'a> {
    how: How<'a>,
    given: Given,
    base: &'a Path,
    /// Relative to `base`.
    at: PathBuf,
}

impl Copier<'_> {
    fn directory(&mut self, from: &OwnedFd, to: &OwnedFd, depth: usize) -> Result<(), Error> {
        if depth >= walk::DEEPEST {
            return Err(Error::TooDeep { path: self.base.join(&self.at) });
        }
        let names = walk::names(from).map_err(self.failed("read"))?;
        for name in names {
            self.at.push(walk::os_name(&name));
            self.entry(from, to, &name, depth)?;
            self.at.pop();
        }
        Ok(())
    }

    /// Somebody may change it meanwhile: then it is looked at again, and in the end it is whatever it was last.
    fn entry(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            let Some(seen) = walk::look(from, name).map_err(self.failed("look at"))? else { return Ok(()) };
            if self.how.hidden.contains(&seen.stamp.identity) {
                return Ok(());
            }
            let done = match seen.kind {
                Kind::Directory => match walk::directory(from, name) {
                    Ok((_, seen)) if self.how.hidden.contains(&seen.stamp.identity) => return Ok(()),
                    Ok((inner, seen)) => return self.inner(&inner, &seen, to, name, depth),
                    Err(error) => Err(error),
                },
                Kind::File => match walk::file(from, name) {
                    Ok((file, seen)) => return self.file(&file, &seen, to, name),
                    Err(error) => Err(error),
                },
                Kind::Symlink => self.symlink(from, to, name),
                Kind::Other => return Ok(()),
            };
            tries += 1;
            match done {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(_) if tries < TRIES => {}
                Err(error) => return Err(self.failed("copy")(error)),
            }
        }
    }

    fn inner(
        &mut self,
        from: &OwnedFd,
        seen: &Seen,
        to: &OwnedFd,
        name: &CStr,
        depth: usize,
    ) -> Result<(), Error> {
        let made = mkdirat(to, name, Mode::RWXU).map_err(io::Error::from);
        let made = made.and_then(|()| walk::directory(to, name));
        let (into, _) = made.map_err(self.failed("make a copy of"))?;
        self.given.entries.insert(self.at.clone(), Entry::Directory { mode: seen.mode });
        self.directory(from, &into, depth + 1)?;
        self.finish_directory(&into, seen)
    }

    fn finish_directory(&self, into: &OwnedFd, seen: &Seen) -> Result<(), Error> {
        finish(into, seen).map_err(self.failed("make a copy of"))
    }

    fn file(&mut self, from: &File, seen: &Seen, to: &OwnedFd, name: &CStr) -> Result<(), Error> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let copied = || -> io::Result<Seen> {
            let into = File::from(openat(to, name, flags, Mode::RUSR | Mode::WUSR)?);
            content(from, &into, self.how.can_clone)?;
            finish(&into, seen)?;
            walk::again(&into)
        };
        let copy = copied().map_err(self.failed("copy"))?;
        let entry = Entry::File { origin: seen.stamp, copy: copy.stamp, mode: copy.mode };
        self.given.entries.insert(self.at.clone(), entry);
        Ok(())
    }

    fn symlink(&mut self, from: &OwnedFd, to: &OwnedFd, name: &CStr) -> io::Result<()> {
        let target = links::target(from, name)?;
        let target = self.how.links.copied(&target).unwrap_or(target);
        symlinkat(&target, to, name)?;
        let entry = Entry::Symlink { target: target.into_os_string().into_vec() };
        self.given.entries.insert(self.at.clone(), entry);
        Ok(())
    }

    fn failed(&self, what: &'static str) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::files(what, &self.base.join(&self.at))
    }
}

/// Permissions and time as they were.
pub(super) fn finish(into: impl AsFd, seen: &Seen) -> io::Result<()> {
    fchmod(&into, Mode::from_raw_mode(seen.mode as _))?;
    let modified = Timespec {
        tv_sec: seen.stamp.modified.div_euclid(1_000_000_000),
        tv_nsec: seen.stamp.modified.rem_euclid(1_000_000_000) as _,
    };
    futimens(&into, &Timestamps { last_access: modified, last_modification: modified })?;
    Ok(())
}

/// The bytes of a file, shared where that is possible, else copied within the kernel where that is.
pub(crate) fn content(mut from: &File, mut into: &File, can_clone: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if can_clone && rustix::fs::ioctl_ficlone(into, from).is_ok() {
        return Ok(());
    }
    let _ = can_clone;
    // On Linux this is `copy_file_range`, and reading and writing where that cannot be.
    io::copy(&mut from, &mut into)?;
    Ok(())
}

/// Whether blocks can be shared between a directory and another one: tried with a file of it. Where it has none at its top, a file of
/// the cell's own tells as much, if both are on one file system.
pub(super) fn can_clone(from: &OwnedFd, cell: &Path) -> bool {
    let Ok(names) = walk::names(from) else { return false };
    let first = names.iter().take(PROBED).find_map(|name| {
        let is_some = matches!(walk::look(from, name), Ok(Some(seen)) if seen.kind == Kind::File && seen.stamp.size > 0);
        is_some.then(|| walk::file(from, name).ok()).flatten()
    });
    let (probe, own) = (cell.join("probe"), cell.join("probe.own"));
    let file = match first {
        Some((file, _)) => Some(file),
        None if is_one_file_system(from, cell) => {
            std::fs::write(&own, [1; 4096]).and_then(|()| File::open(&own)).ok()
        }
        None => None,
    };
    let is_possible = file.is_some_and(|file| File::create(&probe).is_ok_and(|into| clones(&file, &into)));
    for left in [probe, own] {
        drop(std::fs::remove_file(left));
    }
    is_possible
}

fn is_one_file_system(from: &OwnedFd, cell: &Path) -> bool {
    let of_cell = walk::identity(cell).map(|identity| identity.dev);
    walk::again(from).map(|seen| seen.stamp.identity.dev).ok() == of_cell.ok()
}

#[cfg(target_os = "linux")]
fn clones(from: &File, into: &File) -> bool {
    rustix::fs::ioctl_ficlone(into, from).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn clones(_: &File, _: &File) -> bool {
    false
}
