//! Layers unpacked on this node, in the form of overlayfs where this process may write that. Unpacking
//! trusts nothing: nothing is written outside of the new directory, and every content has its hash.
//!
//! ```text
//!   LAYER/
//!     manifest      a line about the directory, then the layer's manifest; written last
//!     tree/         its files
//! ```

use std::collections::HashMap;
use std::ffi::CStr;
use std::io::{self, BufRead as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use laneway_core::hash::ContentHash;
use laneway_core::layer::{ContentPlace, LayerEntry, LayerManifest};

use super::blocks::{BlockReader, damaged};
use super::pack::MAGIC;
use super::tree::{self, WrittenFile, create_file};
use super::{Error, capture};
use crate::isolate::{copy, walk};

/// Longest manifest: `MAX_ENTRIES` with paths of 500 bytes.
const MAX_MANIFEST_BYTES: u64 = 1 << 30;

const OVERLAY_HEAD: &str = "laneway layer directory 1 overlay";
const PLAIN_HEAD: &str = "laneway layer directory 1 plain";

/// A layer unpacked on this node. Cheap to clone; clones share the manifest once it is read.
#[derive(Debug, Clone)]
pub struct LayerDir(Arc<LayerDirParts>);

#[derive(Debug)]
struct LayerDirParts {
    path: PathBuf,
    hash: ContentHash,
    is_overlay: bool,
    manifest: OnceLock<Arc<LayerManifest>>,
}

impl LayerDir {
    /// Opens a directory that `unpack` finished. Its files are not read again.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = path.join("manifest");
        let read = || -> io::Result<String> {
            let mut head = String::new();
            io::BufReader::new(io::Read::take(std::fs::File::open(&file)?, 256)).read_line(&mut head)?;
            Ok(head)
        };
        let head = read().map_err(Error::files("read", &file))?;
        let (is_overlay, hash) = match head.trim_end().rsplit_once(' ') {
            Some((OVERLAY_HEAD, hash)) => (true, ContentHash::parse(hash)),
            Some((PLAIN_HEAD, hash)) => (false, ContentHash::parse(hash)),
            Some(_) | None => (false, None),
        };
        let hash = hash.ok_or_else(|| Error::files("read", &file)(io::Error::other("it is damaged")))?;
        Ok(Self::of(path, hash, is_overlay, OnceLock::new()))
    }

    fn of(path: &Path, hash: ContentHash, is_overlay: bool, manifest: OnceLock<Arc<LayerManifest>>) -> Self {
        Self(Arc::new(LayerDirParts { path: path.to_owned(), hash, is_overlay, manifest }))
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Hash of the bytes from which the layer was unpacked.
    pub fn hash(&self) -> &ContentHash {
        &self.0.hash
    }

    /// The manifest, read at first use.
    pub fn manifest(&self) -> Result<Arc<LayerManifest>, Error> {
        if let Some(manifest) = self.0.manifest.get() {
            return Ok(manifest.clone());
        }
        let file = self.0.path.join("manifest");
        let bytes = std::fs::read(&file).map_err(Error::files("read", &file))?;
        let start = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
        let manifest = LayerManifest::decode(&bytes[start..])
            .map_err(io::Error::other)
            .map_err(Error::files("read", &file))?;
        Ok(self.0.manifest.get_or_init(|| Arc::new(manifest)).clone())
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.0.path.join("tree")
    }

    /// Whether an overlay can have it as a lower directory.
    pub(super) fn is_overlay(&self) -> bool {
        self.0.is_overlay
    }
}

/// Unpacks a layer into a directory that must not exist. `fetch` brings the large file with a hash to
/// a path that does not exist yet. After an error nothing is left at `to`.
///
/// # Errors
/// `Rejected` for bytes that no `pack` has written, and for fetched files that do not have their hash.
pub fn unpack(
    bytes: &[u8],
    to: &Path,
    mut fetch: impl FnMut(&ContentHash, &Path) -> io::Result<()>,
) -> Result<LayerDir, Error> {
    let (manifest, mut small) = read_manifest(bytes)?;
    let mut written: HashMap<(ContentHash, u64), PathBuf> = HashMap::new();
    let mut end = 0;
    let write = |root: &OwnedFd, path: &Path, at: &OwnedFd, name: &CStr| {
        let Some(LayerEntry::File { size, content, .. }) = manifest.entries.get(path) else {
            return Err(damaged());
        };
        let failed = || Error::files("write", &to.join("tree").join(path));
        let is_new = match content.place {
            ContentPlace::Packed { offset } => offset == end && *size > 0,
            ContentPlace::Blob => false,
        };
        let key = (content.hash.clone(), *size);
        if !is_new && let Some(first) = written.get(&key) {
            let copied = || -> io::Result<std::fs::File> {
                let (from, from_name) = walk::parent(root, first)?;
                let into = create_file(at, name)?;
                copy::content(&walk::file(&from, &from_name)?.0, &into, true)?;
                Ok(into)
            };
            return Ok(WrittenFile::New(copied().map_err(failed())?));
        }
        let file = match content.place {
            ContentPlace::Packed { .. } => {
                let bytes = small.take(*size)?;
                if ContentHash::of(&bytes) != content.hash {
                    return Err(damaged());
                }
                end += *size;
                let written =
                    create_file(at, name).and_then(|mut file| file.write_all(&bytes).map(|()| file));
                written.map_err(failed())?
            }
            // By its path: nothing in the new directory is a symlink on the way to it.
            ContentPlace::Blob => {
                let full = to.join("tree").join(path);
                fetch(&content.hash, &full).map_err(Error::files("fetch", &full))?;
                let (mut file, seen) = walk::file(at, name).map_err(failed())?;
                let hash = capture::hash_of(&mut file).map_err(failed())?;
                if hash != content.hash || seen.stamp.size != *size {
                    return Err(Error::Rejected { why: format!("{} is not what it was", path.display()) });
                }
                file
            }
        };
        written.insert(key, path.to_owned());
        Ok(WrittenFile::New(file))
    };
    let layer = write_dir(to, ContentHash::of(bytes), &manifest, write)?;
    if small.is_at_end() {
        return Ok(layer);
    }
    drop(std::fs::remove_dir_all(to));
    Err(damaged())
}

/// Makes the directory of a layer. After an error nothing is left of it.
pub(super) fn write_dir(
    to: &Path,
    hash: ContentHash,
    manifest: &LayerManifest,
    mut write: impl FnMut(&OwnedFd, &Path, &OwnedFd, &CStr) -> Result<WrittenFile, Error>,
) -> Result<LayerDir, Error> {
    laneway_store::private::create_dir_all(to.parent().unwrap_or(to)).map_err(Error::files("make", to))?;
    std::fs::create_dir(to).map_err(Error::files("make", to))?;
    let tree = to.join("tree");
    let mut make = || -> Result<bool, Error> {
        std::fs::create_dir(&tree).map_err(Error::files("make", &tree))?;
        let (root, _) = walk::root(&tree).map_err(Error::files("look into", &tree))?;
        let is_overlay = tree::write_layer(&root, manifest, |path, at, name| write(&root, path, at, name))?;
        let head = if is_overlay { OVERLAY_HEAD } else { PLAIN_HEAD };
        let mut text = format!("{head} {hash}\n").into_bytes();
        text.extend_from_slice(&manifest.encode());
        let path = to.join("manifest");
        laneway_store::private::write(&path, &text).map_err(Error::files("write", &path))?;
        Ok(is_overlay)
    };
    match make() {
        Ok(is_overlay) => Ok(LayerDir::of(to, hash, is_overlay, Arc::new(manifest.clone()).into())),
        Err(error) => {
            drop(std::fs::remove_dir_all(to));
            Err(error)
        }
    }
}

pub(super) fn read_manifest(bytes: &[u8]) -> Result<(LayerManifest, BlockReader<'_>), Error> {
    let rest =
        bytes.strip_prefix(MAGIC).ok_or_else(|| rejected("it is no layer, or one of a later version"))?;
    let (length, rest) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
    let length = u64::from_le_bytes(*length);
    if length > MAX_MANIFEST_BYTES {
        return Err(rejected("its manifest is too long"));
    }
    let mut reader = BlockReader::new(rest);
    let manifest =
        LayerManifest::decode(&reader.take(length)?).map_err(|error| rejected(&error.to_string()))?;
    if !manifest.has_assigned_places() {
        return Err(rejected("its files are not in order"));
    }
    Ok((manifest, reader))
}

fn rejected(why: &str) -> Error {
    Error::Rejected { why: why.to_owned() }
}
