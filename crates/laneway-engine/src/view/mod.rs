//! Private views of a run's files: one for each attempt, made of the bundle and of the layers that the
//! step needs; and the layers that attempts leave. Owns the directory of views and what is unpacked of
//! layers; knows no store. All functions block. Why: docs/design/files.md.
//!
//! ```text
//!   ROOT/
//!     lock                       held while a number is chosen, or a leftover is looked at
//!     squashed/HASH/             many layers as one directory
//!     RUN/N/                     a view, N is the lowest number that is free
//!       mark                     proves that Laneway made the directory (isolate/mark.rs)
//!       lock                     held as long as the process that entered the view lives
//!       upper  work              what the attempt wrote, where the view is an overlay
//!       at/tree                  the view, with nothing beside it
//! ```

mod blocks;
mod capture;
mod cell;
mod layer_dir;
mod look;
mod mount;
mod pack;
mod squashed;
mod stack;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_core::id::RunId;
use laneway_core::layer::{Attributes, Decision, LayerManifest, Owner};
use rustix::fs::{AtFlags, Timespec, Timestamps, utimensat};

use crate::isolate::walk::{self, Kind, Seen, Stamp};
use capture::Comparison;
use cell::Cell;
use stack::Stack;

pub use crate::isolate::Means;
pub use layer_dir::{LayerDir, unpack};
pub use look::{LayerFile, file_of, manifest_of};
pub use pack::{LargeFile, PackedLayer, pack, squash};

/// Permission bits that a layer keeps: a file that is set-user-id in a view is a plain one in the next.
const FILE_MODE_MASK: u32 = 0o1777;

/// The views of one node.
#[derive(Debug, Clone)]
pub struct Views {
    root: PathBuf,
    /// What `prefer` asked for, or what was found to be impossible.
    means: Arc<Mutex<Option<Means>>>,
    /// An overlay takes a handle for each layer while it is mounted: one at a time.
    mounting: Arc<Mutex<()>>,
}

/// How a view is entered.
#[derive(Debug, Clone, Default)]
pub struct EnterOptions {
    /// Conflicts between the layers that `on_conflict` decided: `Composition::decisions` of the layers
    /// that are entered, in the same order.
    pub decisions: BTreeMap<PathBuf, Decision>,
}

/// The files of one attempt. Its directory stays until `Views::leave`, or until `Views::tidy` after the
/// view was dropped.
#[derive(Debug)]
pub struct View {
    cell: Cell,
    dir: PathBuf,
    means: Option<Means>,
    bundle: PathBuf,
    layers: Vec<LayerDir>,
    /// Stamps of the files of a copy, as they were made.
    copied: Option<BTreeMap<PathBuf, Stamp>>,
    /// Paths that had a conflict. The layer of the attempt has all of them.
    decided: BTreeSet<PathBuf>,
    /// Holds squashed layers that are part of the overlay.
    _squashed: Vec<File>,
}

/// A file that Laneway put into a view before the attempt started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedFile {
    path: PathBuf,
    /// `None` if it is what the layers have there.
    stamp: Option<Stamp>,
    mode: u32,
}

/// What an attempt changed in its view.
#[derive(Debug, Clone)]
pub struct Captured {
    manifest: LayerManifest,
    written: BTreeSet<PathBuf>,
    files: CapturedFiles,
}

/// Where the files of a manifest are until they are packed.
#[derive(Debug, Clone)]
enum CapturedFiles {
    View { tree: PathBuf },
    Layers { trees: Vec<PathBuf>, sources: BTreeMap<PathBuf, usize> },
}

/// Why a view cannot be made, captured or removed, or a layer not packed or unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {what} {}: {source}", path.display())]
    Files { what: &'static str, path: PathBuf, source: io::Error },
    #[error("the step left {}, which cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} lies too deep: more than {} directories within each other", path.display(), laneway_core::layer::MAX_DEPTH)]
    TooDeep { path: PathBuf },
    #[error("{} changed while it was read", path.display())]
    Changed { path: PathBuf },
    #[error("something is mounted at {}", path.display())]
    Mounted { path: PathBuf },
    /// Of bytes that this program has not packed.
    #[error("the layer is rejected: {why}")]
    Rejected { why: String },
    #[error(transparent)]
    Cell(#[from] crate::isolate::Error),
}

impl Error {
    /// Whether the same call may succeed later: a full disk is not the step's fault.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Files { source, .. } => source.kind() == io::ErrorKind::StorageFull,
            Self::Cell(error) => error.is_passing(),
            Self::Unreadable { .. }
            | Self::TooDeep { .. }
            | Self::Changed { .. }
            | Self::Mounted { .. }
            | Self::Rejected { .. } => false,
        }
    }

    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Unreadable { .. } => Some(
                "let the container run as the node's user, or make the file readable at the end of the step",
            ),
            Self::Mounted { .. } => Some("unmount it at the end of the step"),
            Self::Files { .. }
            | Self::TooDeep { .. }
            | Self::Changed { .. }
            | Self::Rejected { .. }
            | Self::Cell(_) => None,
        }
    }

    fn files(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Files { what, path, source }
    }
}

impl Views {
    /// The views in a directory, which is made when it is needed.
    pub fn new(root: PathBuf) -> Self {
        Self { root, means: Arc::default(), mounting: Arc::default() }
    }

    /// Makes views by this means from now on, or by copying where it is impossible.
    pub fn prefer(&self, means: Means) {
        *self.means.lock().unwrap_or_else(PoisonError::into_inner) = Some(means);
    }

    /// Makes a view of a bundle and of layers, the lowest first. The directories of both must stay as
    /// they are until the view is left.
    pub fn enter(
        &self,
        run: RunId,
        bundle: &Path,
        layers: &[LayerDir],
        options: &EnterOptions,
    ) -> Result<View, Error> {
        let cell = Cell::claim(&self.root, run)?;
        let mut view = View {
            dir: cell.tree(),
            cell,
            means: None,
            bundle: bundle.to_owned(),
            layers: layers.to_vec(),
            copied: None,
            decided: options.decisions.keys().cloned().collect(),
            _squashed: Vec::new(),
        };
        match self.fill(&mut view, options) {
            Ok(()) => Ok(view),
            Err(error) => {
                if let Err(error) = view.cell.remove() {
                    tracing::debug!(%error, "a view that could not be made stays for `tidy`");
                }
                Err(error)
            }
        }
    }

    fn fill(&self, view: &mut View, options: &EnterOptions) -> Result<(), Error> {
        let (bundle, layers) = (view.bundle.clone(), view.layers.clone());
        let above = view.dir.parent().unwrap_or(&view.dir);
        laneway_store::private::create_dir_all(above).map_err(Error::files("make", above))?;
        let found = std::fs::metadata(&bundle).map_err(Error::files("look into", &bundle))?;
        make_open_dir(&view.dir, found.permissions().mode())?;
        let mut entries = std::fs::read_dir(&bundle).map_err(Error::files("look into", &bundle))?;
        // Nothing to show: what the attempt writes is all there is, and nothing needs to be mounted.
        if layers.is_empty() && entries.next().is_none() {
            return Ok(());
        }
        if !self.try_overlay(view, found.permissions().mode())? {
            let stack = Stack::of(&bundle, &layers)?;
            view.copied = Some(tree::copy_stack(&stack, &layers, &open(&view.dir)?)?);
            view.means = Some(Means::Copy);
        }
        if !options.decisions.is_empty() {
            tree::apply_decisions(&open(&view.dir)?, &options.decisions, &layers)?;
        }
        Ok(())
    }

    /// Returns whether the view is an overlay now. An error is one that a copy would meet as well.
    fn try_overlay(&self, view: &mut View, mode: u32) -> Result<bool, Error> {
        let means = *self.means.lock().unwrap_or_else(PoisonError::into_inner);
        let may_mount = match means {
            Some(Means::Overlay) | None => true,
            Some(Means::Copy | Means::Reflink) => false,
        };
        if !may_mount || !view.layers.iter().all(LayerDir::is_overlay) {
            return Ok(false);
        }
        let fitting = squashed::fit(&self.root, view.cell.path(), &view.layers)?;
        let Some(squashed::LowerDirs { dirs: mut lower, held }) = fitting else { return Ok(false) };
        lower.reverse();
        lower.push(view.bundle.clone());
        let (upper, work) = (view.cell.upper(), view.cell.path().join("work"));
        make_open_dir(&upper, mode)?;
        std::fs::create_dir(&work).map_err(Error::files("make", &work))?;
        let turn = self.mounting.lock().unwrap_or_else(PoisonError::into_inner);
        let mounted = mount::mount_overlay(view.cell.path(), &view.dir, &lower);
        drop(turn);
        match mounted {
            Ok(()) => {
                (view.means, view._squashed) = (Some(Means::Overlay), held);
                Ok(true)
            }
            Err(error) => {
                tracing::debug!(%error, "no overlay is possible, so files are copied");
                // It will not become possible while this process lives.
                if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported) {
                    self.prefer(Means::Copy);
                }
                Ok(false)
            }
        }
    }

    /// Finds what an attempt changed. Called once, after its last process has ended, and before `leave`.
    /// Files of `placed` that are untouched are no change.
    ///
    /// # Errors
    /// `Unreadable` names a file or directory that the step made and that this process cannot read.
    pub fn capture(&self, view: &View, placed: &[PlacedFile]) -> Result<Captured, Error> {
        let root = open(&view.changed_root())?;
        let files = CapturedFiles::View { tree: view.dir.clone() };
        let is_upper = view.means == Some(Means::Overlay);
        let has_entries = !walk::names(&root).map_err(Error::files("read", &view.dir))?.is_empty();
        if !has_entries && (is_upper || view.means.is_none()) && view.decided.is_empty() {
            return Ok(Captured { manifest: LayerManifest::default(), written: BTreeSet::new(), files });
        }
        let stack = match view.means {
            Some(_) => Some(Stack::of(&view.bundle, &view.layers)?),
            None => None,
        };
        let copied = view.copied.as_ref();
        let comparison = Comparison { stack: stack.as_ref(), copied, placed, is_upper };
        let (mut manifest, written) = capture::changes(&root, &comparison)?;
        let tree = open(&view.dir)?;
        for path in &view.decided {
            capture::add(&tree, path, &mut manifest)?;
        }
        manifest.assign_places();
        Ok(Captured { manifest, written, files })
    }

    /// Removes a view.
    pub fn leave(&self, view: View) -> Result<(), Error> {
        view.cell.remove()
    }

    /// Unmounts and removes the views of processes that are gone, and squashed layers that have not
    /// been used for long. What Laneway has not made stays.
    pub fn tidy(&self) -> Result<(), Error> {
        cell::tidy(&self.root)?;
        squashed::tidy(&self.root)
    }
}

impl View {
    /// The directory in which the step works.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// How the view was made; `None` if it is a plain directory, because there was nothing to show.
    pub fn means(&self) -> Option<Means> {
        self.means
    }

    /// Notes a file or symlink that was placed in the view, by its path in the view, so that `capture`
    /// can tell whether the step touched it. Directories that only lead to placed files are no change
    /// either. A file that was written just now gets a time one second earlier: the kernel's clock is
    /// coarse, and a write by the step must give it another one.
    pub fn placed(&self, path: &Path) -> Result<PlacedFile, Error> {
        let failed = || Error::files("look at", &self.dir.join(path));
        let (at, name) = walk::parent(&open(&self.dir)?, path).map_err(failed())?;
        let seen = walk::look(&at, &name).map_err(failed())?;
        let seen = seen.ok_or_else(|| failed()(io::Error::from(io::ErrorKind::NotFound)))?;
        if !capture::is_untouched(&seen.stamp, &seen.stamp) {
            let earlier = seen.stamp.changed.saturating_sub(1_000_000_000);
            let time = Timespec {
                tv_sec: earlier.div_euclid(1_000_000_000),
                tv_nsec: earlier.rem_euclid(1_000_000_000) as _,
            };
            let times = Timestamps { last_access: time, last_modification: time };
            utimensat(&at, &*name, &times, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(io::Error::from)
                .map_err(failed())?;
        }
        // As `capture` will see it: an overlay has numbers of its own for files.
        let own = open(&self.changed_root())?;
        let seen = match walk::parent(&own, path) {
            Ok((at, name)) => walk::look(&at, &name).map_err(failed())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed()(error)),
        };
        let mode = seen.map_or(0, |seen| seen.mode);
        Ok(PlacedFile { path: path.to_owned(), stamp: seen.map(|seen| seen.stamp), mode })
    }

    /// The directory in which changes appear.
    fn changed_root(&self) -> PathBuf {
        match self.means {
            Some(Means::Overlay) => self.cell.upper(),
            Some(Means::Copy | Means::Reflink) | None => self.dir.clone(),
        }
    }
}

impl PlacedFile {
    /// Relative to the view.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn is_untouched(&self, now: &Seen) -> bool {
        self.stamp == Some(now.stamp) && self.mode == now.mode
    }
}

fn open(path: &Path) -> Result<OwnedFd, Error> {
    walk::root(path).map(|(fd, _)| fd).map_err(Error::files("look into", path))
}

/// A directory with a mode that the umask does not change: containers of other users see it.
fn make_open_dir(path: &Path, mode: u32) -> Result<(), Error> {
    let mode = mode & 0o7777;
    let made = std::fs::DirBuilder::new().mode(0o700).create(path);
    made.and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)))
        .map_err(Error::files("make", path))
}

/// Whether nothing but the time differs.
fn is_same(one: &Attributes, other: &Attributes) -> bool {
    let is_same_owner = one.owner == other.owner || !rustix::process::geteuid().is_root();
    one.mode == other.mode && is_same_owner
}

/// What a layer keeps of a file, directory or symlink beside its content.
fn attributes(seen: &Seen) -> Attributes {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let mode = match seen.kind {
        Kind::Directory => seen.mode,
        // Linux has no modes of symlinks; elsewhere they mean nothing.
        Kind::Symlink => 0o777,
        Kind::File | Kind::Other => seen.mode & FILE_MODE_MASK,
    };
    let is_own = (seen.user, seen.group) == (user.as_raw(), group.as_raw());
    // Only root restores owners, so another user keeps none.
    let owner = (user.is_root() && !is_own).then_some(Owner { user: seen.user, group: seen.group });
    Attributes { mode, modified: seen.stamp.modified, owner }
}

impl Captured {
    /// Whether the attempt changed nothing.
    pub fn is_empty(&self) -> bool {
        self.manifest.is_empty()
    }

    pub fn manifest(&self) -> &LayerManifest {
        &self.manifest
    }

    /// The changed paths with their sizes, in order. Removed paths and directories have the size zero.
    pub fn changes(&self) -> impl Iterator<Item = (&Path, u64)> {
        self.manifest.entries.iter().map(|(path, entry)| (path.as_path(), entry.size()))
    }

    /// The largest files, the largest first.
    pub fn largest(&self, count: usize) -> Vec<(&Path, u64)> {
        let mut files: Vec<(&Path, u64)> = self.changes().filter(|(_, size)| *size > 0).collect();
        files.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
        files.truncate(count);
        files
    }

    /// Size of all changed files together.
    pub fn bytes(&self) -> u64 {
        self.manifest.bytes()
    }

    /// Files and symlinks that the attempt wrote, also with the content that they had. What it removed
    /// again, and untouched placed files, are not among them.
    pub fn written(&self) -> &BTreeSet<PathBuf> {
        &self.written
    }
}

#[cfg(test)]
mod tests;
