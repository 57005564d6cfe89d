//! Writes trees: a layer as a directory, a stack as a copy, decisions into a view. Goes by handles of
//! directories and follows no symlink. Attributes of a directory are set when all in it is written.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use laneway_core::layer::{Attributes, Decision, LayerEntry, LayerManifest};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, chownat, fchmod, fchown, futimens, mkdirat,
    openat, symlinkat, unlinkat, utimensat,
};

use super::stack::{Stack, StackDir, StackEntry};
use super::{Error, LayerDir, attributes};
use crate::isolate::walk::{self, Kind, Stamp};
use crate::isolate::{copy, links, mark};

/// What became of a file that was to be written.
pub(super) enum WrittenFile {
    /// It is new, and has no attributes yet.
    New(File),
    /// It is a hard link to a file that has its attributes.
    Linked,
}

/// Writes the entries of a layer in the form of overlayfs. Returns whether that was possible: if not,
/// the tree has all files, and only the manifest says what is removed.
pub(super) fn write_layer(
    root: &OwnedFd,
    manifest: &LayerManifest,
    mut write: impl FnMut(&Path, &OwnedFd, &CStr) -> Result<WrittenFile, Error>,
) -> Result<bool, Error> {
    let mut is_overlay = true;
    let mut open: Vec<OpenDirectory<'_>> = Vec::new();
    for (path, entry) in &manifest.entries {
        let failed = || Error::files("write", path);
        while open.last().is_some_and(|last| !path.starts_with(last.path)) {
            open.pop().map_or(Ok(()), OpenDirectory::close).map_err(failed())?;
        }
        let at = open.last().map_or(root, |last| &last.fd);
        let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"));
        let name = name.and_then(walk::c_name).map_err(failed())?;
        match entry {
            LayerEntry::Removed => is_overlay = is_overlay && make_whiteout(at, &name),
            LayerEntry::Directory { attributes, replaces } => {
                mkdirat(at, &*name, Mode::RWXU).map_err(io::Error::from).map_err(failed())?;
                let (fd, _) = walk::directory(at, &name).map_err(failed())?;
                if *replaces {
                    is_overlay = is_overlay && make_opaque(&fd);
                }
                open.push(OpenDirectory { path, fd, attributes });
            }
            LayerEntry::Symlink { attributes, target } => {
                make_symlink(at, &name, target, attributes).map_err(failed())?;
            }
            LayerEntry::File { attributes, .. } => match write(path, at, &name)? {
                WrittenFile::New(file) => set_attributes(&file, attributes).map_err(failed())?,
                WrittenFile::Linked => {}
            },
        }
    }
    while let Some(last) = open.pop() {
        let path = last.path;
        last.close().map_err(Error::files("write", path))?;
    }
    Ok(is_overlay)
}

struct OpenDirectory<'a> {
    path: &'a Path,
    fd: OwnedFd,
    attributes: &'a Attributes,
}

impl OpenDirectory<'_> {
    fn close(self) -> io::Result<()> {
        set_attributes(&self.fd, self.attributes)
    }
}

/// Copies a whole stack into an empty directory. Returns the stamps of the copies.
pub(super) fn copy_stack(
    stack: &Stack,
    layers: &[LayerDir],
    to: &OwnedFd,
) -> Result<BTreeMap<PathBuf, Stamp>, Error> {
    let roots = layers.iter().map(|layer| {
        let tree = layer.tree();
        walk::root(&tree).map(|(fd, _)| fd).map_err(Error::files("look into", &tree))
    });
    let roots = roots.collect::<Result<_, _>>()?;
    let mut copier = StackCopier { stack, roots, stamps: BTreeMap::new(), at: PathBuf::new() };
    let top = stack.root().map_err(copier.failed())?;
    copier.directory(&top, to, 0)?;
    Ok(copier.stamps)
}

struct StackCopier<'a> {
    stack: &'a Stack,
    roots: Vec<OwnedFd>,
    stamps: BTreeMap<PathBuf, Stamp>,
    at: PathBuf,
}

impl StackCopier<'_> {
    fn directory(&mut self, dir: &StackDir, to: &OwnedFd, depth: usize) -> Result<(), Error> {
        if depth >= walk::DEEPEST {
            return Err(Error::TooDeep { path: self.at.clone() });
        }
        for name in self.stack.names(dir, &self.at).map_err(self.failed())? {
            self.at.push(walk::os_name(&name));
            self.entry(dir, to, &name, depth)?;
            self.at.pop();
        }
        Ok(())
    }

    fn entry(&mut self, dir: &StackDir, to: &OwnedFd, name: &CStr, depth: usize) -> Result<(), Error> {
        let stack = self.stack;
        match stack.entry(dir, &self.at, name).map_err(self.failed())? {
            None => return Ok(()),
            Some(StackEntry::Directory { attributes, inner }) => {
                mkdirat(to, name, Mode::RWXU).map_err(io::Error::from).map_err(self.failed())?;
                let (into, _) = walk::directory(to, name).map_err(self.failed())?;
                self.directory(&inner, &into, depth + 1)?;
                set_attributes(&into, &attributes).map_err(self.failed())?;
                return Ok(());
            }
            Some(StackEntry::Layer { index, entry }) => {
                copy_entry(&self.roots[index], &self.at, entry, to, name).map_err(self.failed())?;
            }
            Some(StackEntry::Bundle { seen }) => {
                let from = dir.bundle().ok_or_else(|| io::Error::other("it has no bundle"));
                let from = from.map_err(self.failed())?;
                let attributes = attributes(&seen);
                let made = match seen.kind {
                    Kind::Symlink => links::target(from, name)
                        .and_then(|target| make_symlink(to, name, &target, &attributes)),
                    Kind::File | Kind::Directory | Kind::Other => {
                        copy_file(from, name, to, name, &attributes)
                    }
                };
                made.map_err(self.failed())?;
            }
        }
        if let Some(seen) = walk::look(to, name).map_err(self.failed())? {
            self.stamps.insert(self.at.clone(), seen.stamp);
        }
        Ok(())
    }

    fn failed(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        Error::files("copy", &self.at)
    }
}

/// Puts what `on_conflict` decided into a view, as the step itself could have done it.
pub(super) fn apply_decisions(
    tree: &OwnedFd,
    decisions: &BTreeMap<PathBuf, Decision>,
    layers: &[LayerDir],
) -> Result<(), Error> {
    let mut directories = Vec::new();
    for (path, decision) in decisions {
        let failed = || Error::files("write", path);
        let (at, name) = make_way(tree, path).map_err(failed())?;
        clear(&at, &name, &decision.entry).map_err(failed())?;
        let mut put = || -> io::Result<()> {
            if let LayerEntry::Directory { attributes, .. } = &decision.entry {
                match mkdirat(&at, &*name, Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                directories.push((path, attributes));
                return Ok(());
            }
            if decision.entry == LayerEntry::Removed {
                return Ok(());
            }
            let layer = layers.get(decision.layer).ok_or_else(|| io::Error::other("no such layer"))?;
            let (root, _) = walk::root(&layer.tree())?;
            copy_entry(&root, path, &decision.entry, &at, &name)
        };
        put().map_err(failed())?;
    }
    // Deepest first: one that is closed may not be entered any more.
    for (path, attributes) in directories.into_iter().rev() {
        let set = || -> io::Result<()> {
            let (at, name) = walk::parent(tree, path)?;
            set_attributes(walk::directory(&at, &name)?.0, attributes)
        };
        set().map_err(Error::files("write", path))?;
    }
    Ok(())
}

/// The directory in which a path stands, which is made if it is missing.
fn make_way(tree: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, std::ffi::CString)> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    above.pop();
    for part in above.into_iter().rev() {
        let (at, name) = walk::parent(tree, part)?;
        if walk::look(&at, &name)?.is_none() {
            mkdirat(&at, &*name, Mode::from_raw_mode(0o755))?;
        }
    }
    walk::parent(tree, path)
}

/// Removes what is in the way of an entry.
fn clear(at: &OwnedFd, name: &CStr, entry: &LayerEntry) -> io::Result<()> {
    let Some(seen) = walk::look(at, name)? else { return Ok(()) };
    if seen.kind != Kind::Directory {
        return Ok(unlinkat(at, name, AtFlags::empty())?);
    }
    if !entry.hides_below() {
        return Ok(());
    }
    let (inner, seen) = walk::directory(at, name)?;
    mark::empty(&inner, seen.stamp.identity.dev, None, 0)?;
    Ok(unlinkat(at, name, AtFlags::REMOVEDIR)?)
}

/// Copies a file or symlink of a layer.
fn copy_entry(layer: &OwnedFd, path: &Path, entry: &LayerEntry, to: &OwnedFd, name: &CStr) -> io::Result<()> {
    match entry {
        LayerEntry::File { attributes, .. } => {
            let (from, from_name) = walk::parent(layer, path)?;
            copy_file(&from, &from_name, to, name, attributes)
        }
        LayerEntry::Symlink { attributes, target } => make_symlink(to, name, target, attributes),
        LayerEntry::Removed | LayerEntry::Directory { .. } => Err(io::Error::other("it is no file")),
    }
}

fn copy_file(
    from: &OwnedFd,
    from_name: &CStr,
    to: &OwnedFd,
    name: &CStr,
    attributes: &Attributes,
) -> io::Result<()> {
    let (source, _) = walk::file(from, from_name)?;
    let into = create_file(to, name)?;
    copy::content(&source, &into, true)?;
    set_attributes(&into, attributes)
}

/// A new file; an error if the name is taken.
pub(super) fn create_file(at: &OwnedFd, name: &CStr) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(File::from(openat(at, name, flags, Mode::RUSR | Mode::WUSR)?))
}

fn make_symlink(at: &OwnedFd, name: &CStr, target: &Path, attributes: &Attributes) -> io::Result<()> {
    symlinkat(target, at, name)?;
    if let Some((user, group)) = restorable_owner(attributes) {
        chownat(at, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(utimensat(at, name, &times(attributes), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The owner first: a change of the owner takes away bits of the mode.
pub(super) fn set_attributes(file: impl AsFd, attributes: &Attributes) -> io::Result<()> {
    if let Some((user, group)) = restorable_owner(attributes) {
        fchown(&file, Some(user), Some(group))?;
    }
    fchmod(&file, Mode::from_raw_mode(attributes.mode as _))?;
    Ok(futimens(&file, &times(attributes))?)
}

fn restorable_owner(attributes: &Attributes) -> Option<(Uid, Gid)> {
    let owner = attributes.owner.filter(|_| rustix::process::geteuid().is_root())?;
    // All bits set means "leave as it is" to the system call.
    let is_valid = owner.user != u32::MAX && owner.group != u32::MAX;
    is_valid.then(|| (Uid::from_raw(owner.user), Gid::from_raw(owner.group)))
}

fn times(attributes: &Attributes) -> Timestamps {
    let modified = Timespec {
        tv_sec: attributes.modified.div_euclid(1_000_000_000),
        tv_nsec: attributes.modified.rem_euclid(1_000_000_000) as _,
    };
    Timestamps { last_access: modified, last_modification: modified }
}

#[cfg(target_os = "linux")]
fn make_whiteout(at: &OwnedFd, name: &CStr) -> bool {
    use rustix::fs::{FileType, makedev, mknodat};
    mknodat(at, name, FileType::CharacterDevice, Mode::empty(), makedev(0, 0)).is_ok()
}

#[cfg(target_os = "linux")]
fn make_opaque(dir: &OwnedFd) -> bool {
    use rustix::fs::{XattrFlags, fsetxattr};
    fsetxattr(dir, c"trusted.overlay.opaque", b"y", XattrFlags::empty()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn make_whiteout(_: &OwnedFd, _: &CStr) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn make_opaque(_: &OwnedFd) -> bool {
    false
}
