//! The bytes of a manifest. Decoding trusts nothing: a node reads manifests from a store that other
//! programs write to. A decoded manifest has plain relative paths, in order, with all ancestors.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use super::{Attributes, ContentPlace, FileContent, LayerEntry, LayerManifest, MAX_PACKED_BYTES, Owner};
use crate::hash::ContentHash;

/// Entries of one manifest.
pub const MAX_ENTRIES: usize = 2_000_000;

/// Directories within each other.
pub const MAX_DEPTH: usize = 256;

/// Longest target of a symlink that Linux allows, with its end.
const MAX_TARGET_BYTES: usize = 4096;

/// Longest path of an entry. Deep trees have paths that no system call takes as a whole.
const MAX_PATH_BYTES: usize = MAX_DEPTH * 256;

/// Permission bits: of files without set-user-id and set-group-id, of directories all.
const FILE_MODE_MASK: u32 = 0o1777;
const DIRECTORY_MODE_MASK: u32 = 0o7777;

/// Why bytes are not a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    #[error("the manifest ends too early")]
    Truncated,
    #[error("the manifest has bytes after its end")]
    Trailing,
    #[error("the manifest has more than {MAX_ENTRIES} entries")]
    TooManyEntries,
    #[error("entry {index} is malformed: {why}")]
    Malformed { index: usize, why: &'static str },
    #[error("the path {path:?} {why}")]
    Path { path: PathBuf, why: &'static str },
}

const REMOVED: u8 = 0;
const DIRECTORY: u8 = 1;
const REPLACING_DIRECTORY: u8 = 2;
const SYMLINK: u8 = 3;
const PACKED_FILE: u8 = 4;
const BLOB_FILE: u8 = 5;

impl LayerManifest {
    /// Encodes the manifest. Equal manifests have equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.entries.len() * 96);
        put_number(&mut out, self.entries.len() as u64);
        for (path, entry) in &self.entries {
            put_bytes(&mut out, path.as_os_str().as_bytes());
            match entry {
                LayerEntry::Removed => out.push(REMOVED),
                LayerEntry::Directory { attributes, replaces } => {
                    out.push(if *replaces { REPLACING_DIRECTORY } else { DIRECTORY });
                    put_attributes(&mut out, attributes);
                }
                LayerEntry::Symlink { attributes, target } => {
                    out.push(SYMLINK);
                    put_attributes(&mut out, attributes);
                    put_bytes(&mut out, target.as_os_str().as_bytes());
                }
                LayerEntry::File { attributes, size, content } => {
                    out.push(match content.place {
                        ContentPlace::Packed { .. } => PACKED_FILE,
                        ContentPlace::Blob => BLOB_FILE,
                    });
                    put_attributes(&mut out, attributes);
                    put_number(&mut out, *size);
                    put_bytes(&mut out, content.hash.as_str().as_bytes());
                    if let ContentPlace::Packed { offset } = content.place {
                        put_number(&mut out, offset);
                    }
                }
            }
        }
        out
    }

    /// Decodes and checks a manifest.
    ///
    /// # Errors
    /// Rejects everything that `encode` of a captured layer does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        let mut reader = Reader { rest: bytes, index: 0 };
        let count = reader.number()?;
        if count > MAX_ENTRIES as u64 {
            return Err(ManifestError::TooManyEntries);
        }
        let mut manifest = Self::default();
        for index in 0..count as usize {
            reader.index = index;
            let path = reader.path(MAX_PATH_BYTES)?;
            check_path(&path)?;
            let entry = reader.entry()?;
            let bad = |why| ManifestError::Path { path: path.clone(), why };
            if manifest.entries.last_key_value().is_some_and(|(last, _)| *last >= path) {
                return Err(bad("is out of order"));
            }
            match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                Some(parent) if !manifest.entries.get(parent).is_some_and(LayerEntry::is_directory) => {
                    return Err(bad("is not in a directory of the layer"));
                }
                Some(_) | None => {}
            }
            manifest.entries.insert(path, entry);
        }
        if !reader.rest.is_empty() {
            return Err(ManifestError::Trailing);
        }
        Ok(manifest)
    }
}

/// Plain names only, so that an entry is below the directory it is unpacked to.
fn check_path(path: &Path) -> Result<(), ManifestError> {
    let bad = |why| Err(ManifestError::Path { path: path.to_owned(), why });
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() || bytes.contains(&0) {
        return bad("is not a name");
    }
    let mut depth = 0;
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) if name.len() <= 255 => plain.push(name),
            Component::Normal(_) => return bad("has a name that is too long"),
            Component::CurDir | Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return bad("leads out of the layer");
            }
        }
        depth += 1;
    }
    if depth > MAX_DEPTH {
        return bad("is too deep");
    }
    if plain.as_os_str() != path.as_os_str() {
        return bad("is not in its plain form");
    }
    Ok(())
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_attributes(out: &mut Vec<u8>, attributes: &Attributes) {
    let owner = attributes.owner;
    put_number(out, u64::from(attributes.mode) << 1 | u64::from(owner.is_some()));
    out.extend_from_slice(&attributes.modified.to_le_bytes());
    if let Some(Owner { user, group }) = owner {
        put_number(out, user.into());
        put_number(out, group.into());
    }
}

struct Reader<'a> {
    rest: &'a [u8],
    index: usize,
}

impl<'a> Reader<'a> {
    fn bad(&self, why: &'static str) -> ManifestError {
        ManifestError::Malformed { index: self.index, why }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ManifestError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ManifestError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, ManifestError> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u64, ManifestError> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 || shift > 0 && byte == 0 {
                return Err(self.bad("a number is not in its shortest form"));
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.bad("a number is too large"))
    }

    fn small(&mut self) -> Result<u32, ManifestError> {
        u32::try_from(self.number()?).map_err(|_| self.bad("a number is too large"))
    }

    fn path(&mut self, max: usize) -> Result<PathBuf, ManifestError> {
        let length = self.number()?;
        if length > max as u64 {
            return Err(self.bad("a path is too long"));
        }
        Ok(PathBuf::from(OsString::from_vec(self.take(length as usize)?.to_vec())))
    }

    fn attributes(&mut self, mask: u32) -> Result<Attributes, ManifestError> {
        let mode = self.small()?;
        let (mode, has_owner) = (mode >> 1, mode & 1 == 1);
        if mode & !mask != 0 {
            return Err(self.bad("it has a mode that no layer has"));
        }
        let mut modified = [0; 8];
        modified.copy_from_slice(self.take(8)?);
        let owner = match has_owner {
            true => Some(Owner { user: self.small()?, group: self.small()? }),
            false => None,
        };
        Ok(Attributes { mode, modified: i64::from_le_bytes(modified), owner })
    }

    fn entry(&mut self) -> Result<LayerEntry, ManifestError> {
        Ok(match self.byte()? {
            REMOVED => LayerEntry::Removed,
            kind @ (DIRECTORY | REPLACING_DIRECTORY) => LayerEntry::Directory {
                attributes: self.attributes(DIRECTORY_MODE_MASK)?,
                replaces: kind == REPLACING_DIRECTORY,
            },
            SYMLINK => {
                let attributes = self.attributes(DIRECTORY_MODE_MASK)?;
                let target = self.path(MAX_TARGET_BYTES)?;
                let bytes = target.as_os_str().as_bytes();
                if bytes.is_empty() || bytes.contains(&0) {
                    return Err(self.bad("a symlink has no target"));
                }
                LayerEntry::Symlink { attributes, target }
            }
            kind @ (PACKED_FILE | BLOB_FILE) => {
                let attributes = self.attributes(FILE_MODE_MASK)?;
                let size = self.number()?;
                let length = self.number()?;
                let hash = self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
                let hash = std::str::from_utf8(hash).ok().and_then(ContentHash::parse);
                let hash = hash.ok_or_else(|| self.bad("a file has no hash"))?;
                let place = match kind {
                    PACKED_FILE if size <= MAX_PACKED_BYTES => {
                        let offset = self.number()?;
                        if offset.checked_add(size).is_none() {
                            return Err(self.bad("an offset is too large"));
                        }
                        ContentPlace::Packed { offset }
                    }
                    PACKED_FILE => return Err(self.bad("a packed file is too large")),
                    _blob => ContentPlace::Blob,
                };
                LayerEntry::File { attributes, size, content: FileContent { hash, place } }
            }
            _unknown => return Err(self.bad("it is of an unknown kind")),
        })
    }
}
