//! What a view showed before its attempt started, found in the manifests of its layers and in the
//! bundle. Follows the rules of overlayfs, so that it holds for a copy and for an overlay alike.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use laneway_core::layer::{Attributes, LayerEntry, LayerManifest};

use super::{Error, LayerDir, attributes};
use crate::isolate::walk::{self, Kind, Seen};

/// The bundle with layers on top of it.
#[derive(Debug)]
pub(super) struct Stack {
    /// The lowest first.
    manifests: Vec<Arc<LayerManifest>>,
    bundle: OwnedFd,
}

/// A directory of the stack: who has a part in it.
#[derive(Debug)]
pub(super) struct StackDir {
    /// The highest first.
    layers: Vec<usize>,
    bundle: Option<OwnedFd>,
}

/// What stands at a path of the stack.
#[derive(Debug)]
pub(super) enum StackEntry<'a> {
    Directory {
        attributes: Attributes,
        inner: StackDir,
    },
    /// A file or symlink of a layer.
    Layer {
        index: usize,
        entry: &'a LayerEntry,
    },
    /// A file or symlink of the bundle.
    Bundle {
        seen: Seen,
    },
}

impl Stack {
    pub(super) fn of(bundle: &Path, layers: &[LayerDir]) -> Result<Self, Error> {
        let manifests = layers.iter().map(LayerDir::manifest).collect::<Result<_, _>>()?;
        let (bundle, _) = walk::root(bundle).map_err(Error::files("look into", bundle))?;
        Ok(Self { manifests, bundle })
    }

    pub(super) fn root(&self) -> io::Result<StackDir> {
        let layers = (0..self.manifests.len()).rev().collect();
        Ok(StackDir { layers, bundle: Some(self.bundle.try_clone()?) })
    }

    /// What stands under a name of a directory. `path` is that of the entry, with its name.
    pub(super) fn entry(
        &self,
        dir: &StackDir,
        path: &Path,
        name: &CStr,
    ) -> io::Result<Option<StackEntry<'_>>> {
        let mut top: Option<Attributes> = None;
        let mut layers = Vec::new();
        for index in &dir.layers {
            let Some(entry) = self.manifests[*index].entries.get(path) else { continue };
            match entry {
                LayerEntry::Directory { attributes, replaces } => {
                    top.get_or_insert(*attributes);
                    layers.push(*index);
                    if !replaces {
                        continue;
                    }
                }
                LayerEntry::Removed if top.is_none() => return Ok(None),
                LayerEntry::File { .. } | LayerEntry::Symlink { .. } if top.is_none() => {
                    return Ok(Some(StackEntry::Layer { index: *index, entry }));
                }
                LayerEntry::Removed | LayerEntry::File { .. } | LayerEntry::Symlink { .. } => {}
            }
            // A directory above; what is here, and below, is hidden.
            return Ok(top.map(|attributes| StackEntry::Directory {
                attributes,
                inner: StackDir { layers, bundle: None },
            }));
        }
        let seen = match &dir.bundle {
            Some(bundle) => walk::look(bundle, name)?,
            None => None,
        };
        match (seen.map(|seen| seen.kind), &dir.bundle) {
            (Some(Kind::Directory), Some(bundle)) => {
                let (inner, seen) = walk::directory(bundle, name)?;
                let attributes = top.unwrap_or_else(|| attributes(&seen));
                Ok(Some(StackEntry::Directory {
                    attributes,
                    inner: StackDir { layers, bundle: Some(inner) },
                }))
            }
            (Some(Kind::File | Kind::Symlink), _) if top.is_none() => {
                Ok(seen.map(|seen| StackEntry::Bundle { seen }))
            }
            (Some(Kind::Directory | Kind::File | Kind::Symlink | Kind::Other) | None, _) => {
                Ok(top.map(|attributes| StackEntry::Directory {
                    attributes,
                    inner: StackDir { layers, bundle: None },
                }))
            }
        }
    }

    /// All names of a directory that one of its parts has; `entry` tells which of them are there.
    pub(super) fn names(&self, dir: &StackDir, path: &Path) -> io::Result<BTreeSet<CString>> {
        let mut names = BTreeSet::new();
        for index in &dir.layers {
            let manifest = &self.manifests[*index];
            let all = manifest.below(path).map(|(path, _)| path);
            for inner in all.filter(|inner| inner.parent() == Some(path)) {
                names.extend(inner.file_name().map(walk::c_name).transpose()?);
            }
        }
        if let Some(bundle) = &dir.bundle {
            names.extend(walk::names(bundle)?);
        }
        Ok(names)
    }
}

impl StackDir {
    /// The bundle's part of the directory.
    pub(super) fn bundle(&self) -> Option<&OwnedFd> {
        self.bundle.as_ref()
    }
}
