//! The bytes of a layer: a head, then its manifest and the contents of its small files, each content
//! once, in compressed blocks. Equal changes give equal bytes.

use std::collections::HashSet;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use laneway_core::hash::ContentHash;
use laneway_core::layer::{ContentPlace, LayerEntry};

use super::blocks::BlockWriter;
use super::{Captured, CapturedFiles, Error, LayerDir};
use crate::isolate::walk;

/// What a packed layer begins with. The number counts forms that do not understand each other.
pub(super) const MAGIC: &[u8; 16] = b"laneway layer 1\n";

/// A layer as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedLayer {
    /// The manifest and the contents of small files, compressed.
    pub manifest_and_small: Vec<u8>,
    /// Files that are stored as blobs, each content once, by hash.
    pub large: Vec<LargeFile>,
    /// Paths that were created, changed or removed. Zero for no change only.
    pub paths: u64,
    /// Their size before compression.
    pub bytes: u64,
}

/// A file that is stored as a blob of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeFile {
    pub hash: ContentHash,
    /// In the view, or in a layer's directory: valid as long as that is.
    pub path: PathBuf,
    pub size: u64,
}

/// Packs what was captured. Equal changes give equal bytes. Call it before the view is left.
///
/// # Errors
/// `Changed` names a file that is not what was captured.
pub fn pack(captured: &Captured) -> Result<PackedLayer, Error> {
    let manifest = captured.manifest();
    let encoded = manifest.encode();
    let mut head = MAGIC.to_vec();
    head.extend_from_slice(&(encoded.len() as u64).to_le_bytes());
    let mut writer = BlockWriter::new(head);
    writer.write(&encoded);
    let files = OpenFiles::of(&captured.files)?;
    let (mut end, mut large, mut blobs) = (0, Vec::new(), HashSet::new());
    for (path, entry) in &manifest.entries {
        let LayerEntry::File { size, content, .. } = entry else { continue };
        match content.place {
            ContentPlace::Blob => {
                if blobs.insert(&content.hash) {
                    let (hash, path) = (content.hash.clone(), files.path(path));
                    large.push(LargeFile { hash, path, size: *size });
                }
            }
            ContentPlace::Packed { offset } if offset < end || *size == 0 => {}
            ContentPlace::Packed { .. } => {
                let bytes = files.read(path, *size)?;
                if ContentHash::of(&bytes) != content.hash {
                    return Err(Error::Changed { path: path.clone() });
                }
                writer.write(&bytes);
                end += *size;
            }
        }
    }
    large.sort_by(|one: &LargeFile, other| one.hash.cmp(&other.hash));
    Ok(PackedLayer {
        manifest_and_small: writer.finish(),
        large,
        paths: manifest.paths(),
        bytes: manifest.bytes(),
    })
}

/// Several layers as one, the lowest first, to be packed. The directories of the layers must stay until
/// it is. `Captured::written` is empty: no attempt wrote it.
pub fn squash(layers: &[LayerDir]) -> Result<Captured, Error> {
    let manifests = layers.iter().map(LayerDir::manifest).collect::<Result<Vec<_>, _>>()?;
    let squashed = laneway_core::layer::squash(manifests.iter().map(AsRef::as_ref));
    let trees = layers.iter().map(LayerDir::tree).collect();
    Ok(Captured {
        manifest: squashed.manifest,
        written: Default::default(),
        files: CapturedFiles::Layers { trees, sources: squashed.sources },
    })
}

/// The directories that hold the files of a layer.
struct OpenFiles<'a> {
    files: &'a CapturedFiles,
    roots: Vec<OwnedFd>,
}

impl<'a> OpenFiles<'a> {
    fn of(files: &'a CapturedFiles) -> Result<Self, Error> {
        let trees = match files {
            CapturedFiles::View { tree } => std::slice::from_ref(tree),
            CapturedFiles::Layers { trees, .. } => trees,
        };
        let open =
            |tree: &PathBuf| walk::root(tree).map(|(fd, _)| fd).map_err(Error::files("look into", tree));
        Ok(Self { files, roots: trees.iter().map(open).collect::<Result<_, _>>()? })
    }

    fn path(&self, path: &Path) -> PathBuf {
        match self.files {
            CapturedFiles::View { tree } => tree.join(path),
            CapturedFiles::Layers { trees, sources } => {
                trees[sources.get(path).copied().unwrap_or_default()].join(path)
            }
        }
    }

    fn read(&self, path: &Path, size: u64) -> Result<Vec<u8>, Error> {
        let index = match self.files {
            CapturedFiles::View { .. } => 0,
            CapturedFiles::Layers { sources, .. } => sources.get(path).copied().unwrap_or_default(),
        };
        let read = || -> std::io::Result<Vec<u8>> {
            let (at, name) = walk::parent(&self.roots[index], path)?;
            let (file, _) = walk::file(&at, &name)?;
            let mut bytes = Vec::new();
            // One more than expected, so that a file that has grown is not taken for what it was.
            file.take(size + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(Error::files("read", path))
    }
}
