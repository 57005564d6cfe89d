//! More layers than an overlay takes: the lowest of them are squashed, a fixed number at a time, so that
//! every later step of a long chain finds the same squashed layers made. Owns `ROOT/squashed`.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use laneway_core::hash::{ContentHash, Hasher};
use laneway_core::layer::LayerEntry;
use rustix::fs::{AtFlags, FlockOperation, flock, linkat};

use super::mount::MAX_LOWER_DIRS;
use super::tree::{WrittenFile, create_file};
use super::{Error, LayerDir, cell, layer_dir};
use crate::isolate::{copy, walk};

/// Layers that become one.
const LAYERS_PER_SQUASH: usize = 64;

/// Squashed layers that are kept while no view uses them, those that were used last.
const MAX_UNUSED_SQUASHES: usize = 32;

/// The directories of layers for an overlay.
pub(super) struct LowerDirs {
    /// The lowest first.
    pub(super) dirs: Vec<PathBuf>,
    /// Squashed layers stay as long as these files are open.
    pub(super) held: Vec<File>,
}

/// Squashes layers until they fit beside the bundle. `None` if an overlay cannot have them.
pub(super) fn fit(root: &Path, cell: &Path, layers: &[LayerDir]) -> Result<Option<LowerDirs>, Error> {
    let mut layers = layers.to_vec();
    let mut held = Vec::new();
    while layers.len() >= MAX_LOWER_DIRS {
        let mut fewer = Vec::with_capacity(layers.len() / LAYERS_PER_SQUASH + LAYERS_PER_SQUASH);
        for chunk in layers.chunks(LAYERS_PER_SQUASH) {
            if chunk.len() < LAYERS_PER_SQUASH {
                fewer.extend_from_slice(chunk);
                continue;
            }
            let (layer, lock) = squashed(root, cell, chunk)?;
            fewer.push(layer);
            held.push(lock);
        }
        layers = fewer;
    }
    let is_overlay = layers.iter().all(LayerDir::is_overlay);
    Ok(is_overlay.then(|| LowerDirs { dirs: layers.iter().map(LayerDir::tree).collect(), held }))
}

/// The squashed layer of a list, made by the first who needs it.
fn squashed(root: &Path, cell: &Path, layers: &[LayerDir]) -> Result<(LayerDir, File), Error> {
    let mut hasher = Hasher::new();
    layers.iter().for_each(|layer| hasher.update(layer.hash().as_str().as_bytes()));
    let hash = hasher.finish();
    let home = root.join("squashed");
    let path = home.join(hash.as_str());
    if let Some(found) = hold(root, &path)? {
        return Ok(found);
    }
    // Made in the cell, which goes with its process, and put in its place when it is whole.
    let fresh = cell.join(format!("squashed-{}", hash.short()));
    make(&fresh, hash, layers)?;
    laneway_store::private::create_dir_all(&home).map_err(Error::files("make", &home))?;
    {
        let _turn = cell::lock_root(root)?;
        let is_whole = path.join("manifest").is_file();
        // One without a manifest was being removed when its process died. One that is whole was made
        // by another process meanwhile, with the same content.
        let gone = if is_whole { &fresh } else { &path };
        if gone.is_dir() {
            std::fs::remove_dir_all(gone).map_err(Error::files("remove", gone))?;
        }
        if !is_whole {
            std::fs::rename(&fresh, &path).map_err(Error::files("write", &path))?;
        }
    }
    hold(root, &path)?.ok_or_else(|| Error::files("read", &path)(io::ErrorKind::NotFound.into()))
}

fn hold(root: &Path, path: &Path) -> Result<Option<(LayerDir, File)>, Error> {
    // So that the directory is not removed between the look and the lock.
    let _turn = cell::lock_root(root)?;
    let manifest = path.join("manifest");
    let file = match File::options().read(true).open(&manifest) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::files("read", &manifest))?,
    };
    flock(&file, FlockOperation::NonBlockingLockShared)
        .map_err(io::Error::from)
        .map_err(Error::files("lock", &manifest))?;
    // Those that were used last are kept.
    let now = rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    let times = rustix::fs::Timestamps { last_access: now, last_modification: now };
    let _ = rustix::fs::futimens(&file, &times);
    Ok(Some((LayerDir::open(path)?, file)))
}

fn make(to: &Path, hash: ContentHash, layers: &[LayerDir]) -> Result<LayerDir, Error> {
    let manifests = layers.iter().map(LayerDir::manifest).collect::<Result<Vec<_>, _>>()?;
    let squashed = laneway_core::layer::squash(manifests.iter().map(AsRef::as_ref));
    let roots = layers.iter().map(|layer| super::open(&layer.tree())).collect::<Result<Vec<_>, _>>()?;
    layer_dir::write_dir(to, hash, &squashed.manifest, |_, path, at, name| {
        let write = || -> io::Result<WrittenFile> {
            let index = squashed.sources.get(path).copied().unwrap_or_default();
            let (from, from_name) = walk::parent(&roots[index], path)?;
            // No overlay writes to its lower directories, so they may share files.
            if linkat(&from, &*from_name, at, name, AtFlags::empty()).is_ok() {
                return Ok(WrittenFile::Linked);
            }
            let into = create_file(at, name)?;
            copy::content(&walk::file(&from, &from_name)?.0, &into, true)?;
            Ok(WrittenFile::New(into))
        };
        debug_assert!(matches!(squashed.manifest.entries.get(path), Some(LayerEntry::File { .. })));
        write().map_err(Error::files("write", path))
    })
}

/// Removes squashed layers beyond those that were used last, unless a view holds them.
pub(super) fn tidy(root: &Path) -> Result<(), Error> {
    let home = root.join("squashed");
    let entries = std::fs::read_dir(&home).into_iter().flatten().flatten();
    let mut kept: Vec<_> = entries
        .filter_map(|entry| {
            ContentHash::parse(entry.file_name().to_str()?)?;
            let manifest = entry.path().join("manifest");
            Some((manifest.metadata().ok()?.modified().ok()?, entry.path()))
        })
        .collect();
    kept.sort_unstable_by(|one, other| other.cmp(one));
    for (_, path) in kept.into_iter().skip(MAX_UNUSED_SQUASHES) {
        let _turn = cell::lock_root(root)?;
        let Ok(file) = File::open(path.join("manifest")) else { continue };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // The manifest first: without it the rest is nothing that a view takes.
            let manifest = path.join("manifest");
            let removed = std::fs::remove_file(manifest).and_then(|()| std::fs::remove_dir_all(&path));
            removed.map_err(Error::files("remove", &path))?;
        }
    }
    Ok(())
}
