//! What a member made of its copy, found by content. A file whose stamp is what it was has not been touched; any other is
//! read, and so is what it was made of, if that is still there: a file that was only touched is no change.

use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use laneway_core::hash::Hasher;
use laneway_core::merge::{Changes, Entry};

use super::Error;
use super::given::{Entry as Was, Given};
use super::links::{self, Links};
use super::walk::{self, Identity, Kind, Seen, Stamp};

/// Of a copy: against what was given.
pub(super) fn of_copy(
    tree: &OwnedFd,
    origin: &OwnedFd,
    given: &Given,
    links: &Links,
) -> Result<Changes, Error> {
    let mut look = Look { changes: Changes::new(), at: PathBuf::new(), links };
    let mut found = BTreeSet::new();
    look.copy(tree, origin, given, &mut found, 0)?;
    for (path, _) in given.entries.iter().filter(|(path, _)| !found.contains(*path)) {
        look.changes.insert(path.clone(), None);
    }
    Ok(look.changes)
}

/// Of an overlay: what lies in the upper layer, against the lower one. `tree` is both of them together.
pub(super) fn of_overlay(
    tree: &OwnedFd,
    upper: &OwnedFd,
    lower: &OwnedFd,
    hidden: &BTreeSet<Identity>,
    links: &Links,
) -> Result<Changes, Error> {
    let mut look = Look { changes: Changes::new(), at: PathBuf::new(), links };
    look.overlay(tree, upper, Some(lower), 0)?;
    // What was never to be seen is not removed.
    for name in walk::names(lower).map_err(look.failed())? {
        if walk::look(lower, &name)
            .map_err(look.failed())?
            .is_some_and(|seen| hidden.contains(&seen.stamp.identity))
        {
            let name = Path::new(walk::os_name(&name));
            look.changes.retain(|path, _| !path.starts_with(name));
        }
    }
    Ok(look.changes)
}

struct Look<'a> {
    changes: Changes,
    at: PathBuf,
    links: &'a Links,
}

impl Look<'_> {
    fn copy(
        &mut self,
        tree: &OwnedFd,
        origin: &OwnedFd,
        given: &Given,
        found: &mut BTreeSet<PathBuf>,
        depth: usize,
    ) -> Result<(), Error> {
        self.check_depth(depth)?;
        for name in walk::names(tree).map_err(self.failed())? {
            self.at.push(walk::os_name(&name));
            let Some(seen) = walk::look(tree, &name).map_err(self.failed())? else {
                self.at.pop();
                continue;
            };
            let was = given.entries.get(&self.at);
            found.insert(self.at.clone());
            let now = match (seen.kind, was) {
                (Kind::Other, _) => None,
                (Kind::File, Some(Was::File { copy, .. })) if given.is_untouched(copy, &seen.stamp) => None,
                (Kind::File, Some(Was::File { origin: was, mode, .. })) => {
                    let now = self.file(tree, &name)?;
                    let before = hash_below(origin, &self.at, was).map_err(self.failed())?;
                    let is_same = matches!(&now, Entry::File { hash, mode: now }
                        if before.as_ref() == Some(hash) && now == mode);
                    (!is_same).then_some(now)
                }
                (Kind::Symlink, Some(Was::Symlink { target })) => {
                    let now = links::target(tree, &name).map_err(self.failed())?;
                    let was = Path::new(OsStr::from_bytes(target));
                    let is_same =
                        now == was || self.links.settled(now.clone()) == self.links.settled(was.to_owned());
                    (!is_same).then(|| self.symlink(now))
                }
                (Kind::Directory, Some(Was::Directory { mode })) => {
                    (seen.mode != *mode).then_some(Entry::Directory { mode: seen.mode })
                }
                (Kind::File | Kind::Symlink | Kind::Directory, _) => Some(self.entry(tree, &name, &seen)?),
            };
            if let Some(now) = now {
                self.changes.insert(self.at.clone(), Some(now));
            }
            if seen.kind == Kind::Directory {
                let (inner, _) = walk::directory(tree, &name).map_err(self.failed())?;
                self.copy(&inner, origin, given, found, depth + 1)?;
            }
            self.at.pop();
        }
        Ok(())
    }

    fn overlay(
        &mut self,
        tree: &OwnedFd,
        upper: &OwnedFd,
        lower: Option<&OwnedFd>,
        depth: usize,
    ) -> Result<(), Error> {
        self.check_depth(depth)?;
        for name in walk::names(tree).map_err(self.failed())? {
            self.at.push(walk::os_name(&name));
            let was = match lower {
                Some(lower) => walk::look(lower, &name).map_err(self.failed())?,
                None => None,
            };
            let above = walk::look(upper, &name).map_err(self.failed())?;
            let seen = walk::look(tree, &name).map_err(self.failed())?;
            // What is not in the upper layer is as it was.
            if let (Some(_), Some(seen)) = (above, seen) {
                let now = self.entry(tree, &name, &seen)?;
                let before = match (was, lower) {
                    (Some(was), Some(lower)) if was.kind == seen.kind && was.kind != Kind::Other => {
                        Some(self.entry(lower, &name, &was)?)
                    }
                    _ => None,
                };
                if seen.kind != Kind::Other && before.as_ref() != Some(&now) {
                    self.changes.insert(self.at.clone(), Some(now));
                }
                // What it was before it became something else is gone with all that was in it.
                if let (Some(was), Some(lower)) = (was, lower)
                    && was.kind == Kind::Directory
                    && seen.kind != Kind::Directory
                {
                    self.removed_below(lower, &name, depth)?;
                }
                if seen.kind == Kind::Directory {
                    let (inner, _) = walk::directory(tree, &name).map_err(self.failed())?;
                    let (above, _) = walk::directory(upper, &name).map_err(self.failed())?;
                    let below = match (was, lower) {
                        (Some(was), Some(lower)) if was.kind == Kind::Directory => {
                            Some(walk::directory(lower, &name).map_err(self.failed())?.0)
                        }
                        _ => None,
                    };
                    self.overlay(&inner, &above, below.as_ref(), depth + 1)?;
                }
            }
            self.at.pop();
        }
        let Some(lower) = lower else { return Ok(()) };
        for name in walk::names(lower).map_err(self.failed())? {
            self.at.push(walk::os_name(&name));
            let was = walk::look(lower, &name).map_err(self.failed())?;
            let is_there = walk::look(tree, &name).map_err(self.failed())?.is_some();
            if let Some(was) = was
                && !is_there
                && was.kind != Kind::Other
            {
                self.changes.insert(self.at.clone(), None);
                if was.kind == Kind::Directory {
                    self.removed_below(lower, &name, depth)?;
                }
            }
            self.at.pop();
        }
        Ok(())
    }

    /// Everything in a directory that is gone.
    fn removed_below(&mut self, lower: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Error> {
        self.check_depth(depth)?;
        let (inner, _) = walk::directory(lower, name).map_err(self.failed())?;
        for name in walk::names(&inner).map_err(self.failed())? {
            self.at.push(walk::os_name(&name));
            if let Some(was) = walk::look(&inner, &name).map_err(self.failed())?
                && was.kind != Kind::Other
            {
                self.changes.insert(self.at.clone(), None);
                if was.kind == Kind::Directory {
                    self.removed_below(&inner, &name, depth + 1)?;
                }
            }
            self.at.pop();
        }
        Ok(())
    }

    fn entry(&self, at: &OwnedFd, name: &CStr, seen: &Seen) -> Result<Entry, Error> {
        Ok(match seen.kind {
            Kind::Directory | Kind::Other => Entry::Directory { mode: seen.mode },
            Kind::File => self.file(at, name)?,
            Kind::Symlink => self.symlink(links::target(at, name).map_err(self.failed())?),
        })
    }

    /// As it is in the run's directory, whichever of the two it was found in.
    fn symlink(&self, target: PathBuf) -> Entry {
        Entry::Symlink { target: self.links.settled(target) }
    }

    fn file(&self, at: &OwnedFd, name: &CStr) -> Result<Entry, Error> {
        let read = || -> io::Result<Entry> {
            let (mut file, seen) = walk::file(at, name)?;
            Ok(Entry::File { hash: hash(&mut file)?, mode: seen.mode })
        };
        read().map_err(self.failed())
    }

    fn check_depth(&self, depth: usize) -> Result<(), Error> {
        if depth >= walk::DEEPEST { Err(Error::TooDeep { path: self.at.clone() }) } else { Ok(()) }
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::files("compare", &self.at)
    }
}

/// The content of what a file was made of, if it is still what it was then.
fn hash_below(root: &OwnedFd, path: &Path, was: &Stamp) -> io::Result<Option<String>> {
    let Ok((at, name)) = walk::parent(root, path) else { return Ok(None) };
    let Ok((mut file, seen)) = walk::file(&at, &name) else { return Ok(None) };
    if seen.stamp != *was { Ok(None) } else { hash(&mut file).map(Some) }
}

pub(crate) fn hash(file: &mut File) -> io::Result<String> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish().to_string()),
            Ok(read) => hasher.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
