//! A look into the bytes of a layer, without unpacking it.

use std::path::Path;

use laneway_core::hash::ContentHash;
use laneway_core::layer::{ContentPlace, LayerEntry, LayerManifest};

use super::Error;
use super::blocks::damaged;
use super::layer_dir::read_manifest;

/// What a layer has of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerFile {
    Bytes(Vec<u8>),
    /// The file is kept apart from the packed layer, under this hash.
    Apart(ContentHash),
}

/// Returns the manifest of a packed layer.
pub fn manifest_of(bytes: &[u8]) -> Result<LayerManifest, Error> {
    Ok(read_manifest(bytes)?.0)
}

/// Returns a file of a packed layer; `None` if the layer has no file at this path.
pub fn file_of(bytes: &[u8], path: &Path) -> Result<Option<LayerFile>, Error> {
    let (manifest, mut small) = read_manifest(bytes)?;
    let Some(LayerEntry::File { size, content, .. }) = manifest.entries.get(path) else { return Ok(None) };
    Ok(Some(match content.place {
        ContentPlace::Blob => LayerFile::Apart(content.hash.clone()),
        ContentPlace::Packed { offset } => {
            small.take(offset)?;
            let bytes = small.take(*size)?;
            if ContentHash::of(&bytes) != content.hash {
                return Err(damaged());
            }
            LayerFile::Bytes(bytes)
        }
    }))
}
