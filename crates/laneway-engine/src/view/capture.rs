//! What an attempt changed: its view against the stack that it was made of. Walks the upper directory of
//! an overlay, or the whole of a copy; both give the same manifest for the same changes.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use laneway_core::hash::ContentHash;
use laneway_core::layer::{Attributes, ContentPlace, FileContent, LayerEntry, LayerManifest};
use rustix::fs::{AtFlags, Mode, chmodat};

use super::stack::{Stack, StackDir, StackEntry};
use super::{Error, PlacedFile, attributes, is_same};
use crate::isolate::walk::{self, Kind, Seen, Stamp};
use crate::isolate::{changes, links};

/// Two writes of a file within this time may get the same time from the kernel's coarse clock.
pub(super) const CLOCK_TICK_NANOS: i64 = 20_000_000;

/// What a view is compared with.
pub(super) struct Comparison<'a> {
    /// `None` if there was nothing before.
    pub(super) stack: Option<&'a Stack>,
    /// Stamps of files and symlinks as they were copied into the view.
    pub(super) copied: Option<&'a BTreeMap<PathBuf, Stamp>>,
    pub(super) placed: &'a [PlacedFile],
    /// Whether the directory is an overlay's upper one, which has only what changed.
    pub(super) is_upper: bool,
}

pub(super) fn changes(
    root: &OwnedFd,
    comparison: &Comparison<'_>,
) -> Result<(LayerManifest, BTreeSet<PathBuf>), Error> {
    let ways = comparison.placed.iter().flat_map(|placed| placed.path.ancestors().skip(1));
    let mut capture = Capture {
        stack: comparison.stack,
        copied: comparison.copied,
        placed: comparison.placed.iter().map(|placed| (placed.path.as_path(), placed)).collect(),
        placed_ways: ways.collect(),
        device: walk::again(root).map_err(Error::files("look at", Path::new("the view")))?.stamp.identity.dev,
        manifest: LayerManifest::default(),
        written: BTreeSet::new(),
        at: PathBuf::new(),
    };
    let top = match capture.stack {
        Some(stack) => Some(stack.root().map_err(capture.failed())?),
        None => None,
    };
    capture.directory(root, top.as_ref(), !comparison.is_upper, 0)?;
    Ok((capture.manifest, capture.written))
}

struct Capture<'a> {
    stack: Option<&'a Stack>,
    copied: Option<&'a BTreeMap<PathBuf, Stamp>>,
    placed: BTreeMap<&'a Path, &'a PlacedFile>,
    /// Directories that lead to placed files.
    placed_ways: BTreeSet<&'a Path>,
    device: u64,
    manifest: LayerManifest,
    written: BTreeSet<PathBuf>,
    at: PathBuf,
}

impl<'a> Capture<'a> {
    /// Returns whether anything in the directory changed. `is_whole`: a name that is not there is gone;
    /// otherwise it is as it was.
    fn directory(
        &mut self,
        dir: &OwnedFd,
        before: Option<&StackDir>,
        is_whole: bool,
        depth: usize,
    ) -> Result<bool, Error> {
        if depth >= walk::DEEPEST {
            return Err(Error::TooDeep { path: self.at.clone() });
        }
        let names = walk::names(dir).map_err(self.failed())?;
        let mut has_changed = false;
        for name in &names {
            self.at.push(walk::os_name(name));
            has_changed |= self.entry(dir, name, before, is_whole, depth)?;
            self.at.pop();
        }
        let (Some(stack), Some(before), true) = (self.stack, before, is_whole) else {
            return Ok(has_changed);
        };
        for name in stack.names(before, &self.at).map_err(self.failed())? {
            if names.binary_search(&name).is_ok() {
                continue;
            }
            self.at.push(walk::os_name(&name));
            if stack.entry(before, &self.at, &name).map_err(self.failed())?.is_some() {
                has_changed |= self.put(LayerEntry::Removed);
            }
            self.at.pop();
        }
        Ok(has_changed)
    }

    fn entry(
        &mut self,
        dir: &OwnedFd,
        name: &CStr,
        before: Option<&StackDir>,
        is_whole: bool,
        depth: usize,
    ) -> Result<bool, Error> {
        let Some(seen) = walk::look(dir, name).map_err(self.failed())? else { return Ok(false) };
        if matches!(seen.kind, Kind::File | Kind::Symlink)
            && let Some(placed) = self.placed.get(self.at.as_path())
            && placed.is_untouched(&seen)
        {
            return Ok(false);
        }
        let copied = self.copied.and_then(|copied| copied.get(&self.at)).copied();
        if copied.is_some_and(|stamp| is_untouched(&stamp, &seen.stamp)) && seen.kind == Kind::Symlink {
            return Ok(false);
        }
        let was = match (self.stack, before) {
            (Some(stack), Some(before)) => stack.entry(before, &self.at, name).map_err(self.failed())?,
            _ => None,
        };
        match seen.kind {
            // A whiteout, or what no layer keeps: either way the path is not what it was.
            Kind::Other => Ok(was.is_some() && self.put(LayerEntry::Removed)),
            Kind::Symlink => {
                let target = links::target(dir, name).map_err(self.failed())?;
                if copied != Some(seen.stamp) {
                    self.written.insert(self.at.clone());
                }
                let is_unchanged = match &was {
                    Some(StackEntry::Layer {
                        entry: LayerEntry::Symlink { attributes: was, target: old },
                        ..
                    }) => *old == target && is_same(was, &attributes(&seen)),
                    Some(StackEntry::Bundle { seen: old }) if old.kind == Kind::Symlink => {
                        let bundle = before.and_then(StackDir::bundle);
                        bundle.is_some_and(|at| links::target(at, name).is_ok_and(|old| old == target))
                            && is_same(&attributes(old), &attributes(&seen))
                    }
                    Some(_) | None => false,
                };
                Ok(!is_unchanged && self.put(LayerEntry::Symlink { attributes: attributes(&seen), target }))
            }
            Kind::File => {
                let now = attributes(&seen);
                let old = match &was {
                    Some(StackEntry::Layer { entry: LayerEntry::File { attributes, .. }, .. }) => {
                        Some(*attributes)
                    }
                    Some(StackEntry::Bundle { seen }) if seen.kind == Kind::File => Some(attributes(seen)),
                    Some(_) | None => None,
                };
                let has_same_attributes = old.is_some_and(|old: Attributes| is_same(&old, &now));
                if copied.is_some_and(|stamp| is_untouched(&stamp, &seen.stamp)) && has_same_attributes {
                    return Ok(false);
                }
                let hash = self.hash(dir, name, &seen)?;
                let is_unchanged = has_same_attributes
                    && match &was {
                        Some(StackEntry::Layer { entry: LayerEntry::File { content, .. }, .. }) => {
                            content.hash == hash
                        }
                        Some(StackEntry::Bundle { seen: old }) if old.stamp.size == seen.stamp.size => {
                            let bundle = before.and_then(StackDir::bundle);
                            let old = bundle
                                .map(|at| walk::file(at, name).and_then(|(mut file, _)| hash_of(&mut file)));
                            old.transpose().map_err(self.failed())?.as_ref() == Some(&hash)
                        }
                        Some(_) | None => false,
                    };
                if copied != Some(seen.stamp) || !is_unchanged {
                    self.written.insert(self.at.clone());
                }
                Ok(!is_unchanged && self.put(file_entry(&seen, hash)))
            }
            Kind::Directory => {
                if seen.stamp.identity.dev != self.device {
                    return Err(Error::Mounted { path: self.at.clone() });
                }
                let inner = open_directory(dir, name, &seen).map_err(self.unreadable())?;
                let is_whole = is_whole || is_opaque(&inner);
                let (old, was) = match was {
                    Some(StackEntry::Directory { attributes, inner }) => (Some(attributes), Some(inner)),
                    Some(StackEntry::Layer { .. } | StackEntry::Bundle { .. }) | None => (None, None),
                };
                let now = attributes(&seen);
                let has_changed = self.directory(&inner, was.as_ref(), is_whole, depth + 1)?;
                let is_own_change = match old {
                    Some(old) => !is_same(&old, &now),
                    None => !self.placed_ways.contains(self.at.as_path()),
                };
                if !has_changed && !is_own_change {
                    return Ok(false);
                }
                Ok(self.put(LayerEntry::Directory { attributes: now, replaces: false }))
            }
        }
    }

    fn put(&mut self, entry: LayerEntry) -> bool {
        self.manifest.entries.insert(self.at.clone(), entry);
        true
    }

    fn hash(&self, dir: &OwnedFd, name: &CStr, seen: &Seen) -> Result<ContentHash, Error> {
        let mut file = open_file(dir, name, seen).map_err(self.unreadable())?;
        hash_of(&mut file).map_err(self.unreadable())
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::files("compare", &self.at)
    }

    fn unreadable(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = self.at.clone();
        move |source| match source.kind() {
            io::ErrorKind::PermissionDenied => Error::Unreadable { path, source },
            _other => Error::Files { what: "read", path, source },
        }
    }
}

/// Adds what stands at a path now to a manifest that has nothing about it: also if it did not change.
pub(super) fn add(tree: &OwnedFd, path: &Path, manifest: &mut LayerManifest) -> Result<(), Error> {
    let failed = || Error::files("compare", path);
    let mut above: Vec<&Path> = path.ancestors().collect();
    above.pop();
    for path in above.into_iter().rev() {
        match manifest.entries.get(path) {
            Some(LayerEntry::Directory { .. }) => continue,
            Some(_) => return Ok(()),
            None => {}
        }
        let (at, name) = walk::parent(tree, path).map_err(failed())?;
        let entry = match walk::look(&at, &name).map_err(failed())? {
            None => LayerEntry::Removed,
            Some(seen) => match seen.kind {
                Kind::Other => LayerEntry::Removed,
                Kind::Directory => LayerEntry::Directory { attributes: attributes(&seen), replaces: false },
                Kind::Symlink => LayerEntry::Symlink {
                    attributes: attributes(&seen),
                    target: links::target(&at, &name).map_err(failed())?,
                },
                Kind::File => {
                    let (mut file, seen) = walk::file(&at, &name).map_err(failed())?;
                    file_entry(&seen, hash_of(&mut file).map_err(failed())?)
                }
            },
        };
        manifest.entries.insert(path.to_owned(), entry);
    }
    Ok(())
}

fn file_entry(seen: &Seen, hash: ContentHash) -> LayerEntry {
    // The place is assigned when the manifest is whole.
    let content = FileContent { hash, place: ContentPlace::Blob };
    LayerEntry::File { attributes: attributes(seen), size: seen.stamp.size, content }
}

pub(super) fn hash_of(file: &mut std::fs::File) -> io::Result<ContentHash> {
    let text = changes::hash(file)?;
    ContentHash::parse(&text).ok_or_else(|| io::Error::other("no hash"))
}

/// A copy keeps the old time of a file's content, so a later write gives it another one. Where the time
/// was new when the file was copied, the stamp proves nothing.
pub(super) fn is_untouched(copied: &Stamp, now: &Stamp) -> bool {
    copied == now && copied.modified.saturating_add(CLOCK_TICK_NANOS) < copied.changed
}

/// Opens a directory, also one that its owner closed to itself. The view is about to be removed, so it
/// stays open; its mode was noted before.
fn open_directory(dir: &OwnedFd, name: &CStr, seen: &Seen) -> io::Result<OwnedFd> {
    if seen.mode & 0o500 != 0o500 && seen.user == rustix::process::geteuid().as_raw() {
        chmodat(dir, name, Mode::from_raw_mode((seen.mode | 0o700) as _), AtFlags::empty())?;
    }
    Ok(walk::directory(dir, name)?.0)
}

fn open_file(dir: &OwnedFd, name: &CStr, seen: &Seen) -> io::Result<std::fs::File> {
    let is_own = seen.user == rustix::process::geteuid().as_raw();
    if seen.mode & 0o400 == 0 && is_own && seen.user != 0 {
        chmodat(dir, name, Mode::from_raw_mode((seen.mode | 0o400) as _), AtFlags::empty())?;
    }
    Ok(walk::file(dir, name)?.0)
}

/// Whether an overlay's upper directory hides what lies below it.
#[cfg(target_os = "linux")]
fn is_opaque(dir: &OwnedFd) -> bool {
    let mut value = [0; 8];
    rustix::fs::fgetxattr(dir, c"trusted.overlay.opaque", &mut value).is_ok_and(|read| value[..read] == *b"y")
}

#[cfg(not(target_os = "linux"))]
fn is_opaque(_: &OwnedFd) -> bool {
    false
}
