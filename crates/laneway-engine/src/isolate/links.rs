//! Symlinks with an absolute target in the run's directory. In a copy they lead into the copy, or whoever writes through one would
//! change the files of the run itself; what a merge brings back leads into the run's directory again. Relative ones stay as they are, and
//! what leads elsewhere leads there. Owns which are meant and what they become; who makes them does so.

use std::ffi::{CStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::readlinkat;

use super::Error;
use super::walk::{self, Identity};

/// A run's directory and a copy of it.
#[derive(Debug)]
pub(super) struct Links {
    base: Place,
    tree: Place,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Several ways may lead to it, and all of them count.
    identity: Identity,
}

impl Links {
    pub(super) fn between(base: &Path, tree: &Path) -> Result<Self, Error> {
        let place = |path: &Path| -> io::Result<Place> {
            Ok(Place { path: std::path::absolute(path)?, identity: walk::identity(path)? })
        };
        let base = place(base).map_err(Error::files("look at", base))?;
        Ok(Self { base, tree: place(tree).map_err(Error::files("look at", tree))? })
    }

    /// What a link of the run's directory is in the copy; `None` if it is the same.
    pub(super) fn copied(&self, target: &Path) -> Option<PathBuf> {
        below(target, self.base.identity).map(|rest| joined(&self.tree.path, &rest))
    }

    /// What a link of either is in the run's directory.
    pub(super) fn settled(&self, target: PathBuf) -> PathBuf {
        let rest = below(&target, self.tree.identity).or_else(|| below(&target, self.base.identity));
        rest.map_or(target, |rest| joined(&self.base.path, &rest))
    }
}

/// The target of a link.
pub(crate) fn target(at: &OwnedFd, name: &CStr) -> io::Result<PathBuf> {
    let target = readlinkat(at, name, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// What an absolute path names below a directory, by whichever way it leads there. It may name nothing at all.
fn below(target: &Path, dir: Identity) -> Option<PathBuf> {
    if !target.is_absolute() {
        return None;
    }
    let is_it = |above: &&Path| walk::identity(above).is_ok_and(|found| found == dir);
    let rest = target.strip_prefix(target.ancestors().find(is_it)?).ok()?;
    // From there it may lead out again.
    let mut depth = 0_usize;
    for part in rest.components() {
        depth = match part {
            Component::ParentDir => depth.checked_sub(1)?,
            Component::Normal(_) => depth + 1,
            Component::CurDir | Component::RootDir | Component::Prefix(_) => depth,
        };
    }
    Some(rest.to_owned())
}

/// Without a slash behind it where nothing follows.
fn joined(dir: &Path, rest: &Path) -> PathBuf {
    if rest.as_os_str().is_empty() { dir.to_owned() } else { dir.join(rest) }
}
