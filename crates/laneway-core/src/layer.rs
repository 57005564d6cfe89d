//! Layers: what one attempt changed in its view of the run's files. Owns the manifest of a layer, its
//! encoding, and how several manifests become one. Pure: the files are in `laneway-engine/src/view/`.
//! `compose` decides which of several unordered layers wins at a path. Why: docs/design/files.md.

mod compose;
mod encoding;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::path::{Path, PathBuf};

use crate::hash::ContentHash;

pub use compose::{
    Composition, ConflictReport, Decision, LayerConflict, LayerPosition, OrderedLayer, compose, is_chain,
};
pub use encoding::{MAX_DEPTH, MAX_ENTRIES, ManifestError};

/// Files up to this size are packed into the layer; larger ones are stored as blobs of their own.
pub const MAX_PACKED_BYTES: u64 = 256 * 1024;

/// Returns a size as people read it.
pub fn readable_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 10 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 10 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} bytes"),
    }
}

/// The changes of one layer, by path relative to the view.
///
/// The ancestors of a path are entries as well, so that a layer says by itself what each directory
/// on the way to a change looks like. A path sorts directly before what lies below it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LayerManifest {
    pub entries: BTreeMap<PathBuf, LayerEntry>,
}

/// What a layer has at a path. It replaces what lower layers have there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerEntry {
    /// The path is gone, with everything below it.
    Removed,
    /// What lower layers have in the directory stays visible, unless `replaces` is set.
    Directory {
        attributes: Attributes,
        replaces: bool,
    },
    Symlink {
        attributes: Attributes,
        target: PathBuf,
    },
    File {
        attributes: Attributes,
        size: u64,
        content: FileContent,
    },
}

/// What a file, directory or symlink has beside its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Permission bits. Files never carry the set-user-id and set-group-id bits.
    pub mode: u32,
    /// Nanoseconds since the epoch.
    pub modified: i64,
    /// `None` if the user that runs the node owns it. Restored only where a node runs as root.
    pub owner: Option<Owner>,
}

/// The user and the group that own a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    pub user: u32,
    pub group: u32,
}

/// The bytes of a file: their hash, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileContent {
    pub hash: ContentHash,
    pub place: ContentPlace,
}

/// Where the bytes of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentPlace {
    /// In the layer, at this offset among its small files.
    Packed { offset: u64 },
    /// In a blob that its hash names.
    Blob,
}

impl LayerEntry {
    /// Whether lower layers can show through below this entry.
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Whether the entry hides what lower layers have below its path.
    pub fn hides_below(&self) -> bool {
        !matches!(self, Self::Directory { replaces: false, .. })
    }

    /// The size of a file; zero for everything else.
    pub fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            Self::Removed | Self::Directory { .. } | Self::Symlink { .. } => 0,
        }
    }

    pub fn attributes(&self) -> Option<&Attributes> {
        match self {
            Self::Removed => None,
            Self::Directory { attributes, .. }
            | Self::Symlink { attributes, .. }
            | Self::File { attributes, .. } => Some(attributes),
        }
    }

    /// Whether two layers that leave these entries at one path agree. Times and owners may differ, and
    /// so may the modes of directories: the layer that comes last in plan order decides those.
    pub fn agrees_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Removed, Self::Removed) | (Self::Directory { .. }, Self::Directory { .. }) => true,
            (Self::Symlink { target, .. }, Self::Symlink { target: other, .. }) => target == other,
            (
                Self::File { attributes, content, .. },
                Self::File { attributes: other, content: other_content, .. },
            ) => attributes.mode == other.mode && content.hash == other_content.hash,
            (Self::Removed | Self::Directory { .. } | Self::Symlink { .. } | Self::File { .. }, _) => false,
        }
    }
}

impl LayerManifest {
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of paths that were created, changed or removed. A directory that only leads to others
    /// is not counted, so that only an empty manifest has none.
    pub fn paths(&self) -> u64 {
        let next = self.entries.keys().skip(1).map(Some).chain([None]);
        let leads = |path: &Path, next: Option<&PathBuf>| next.is_some_and(|next| next.starts_with(path));
        let counted = self.entries.iter().zip(next);
        counted.filter(|((path, entry), next)| !entry.is_directory() || !leads(path, *next)).count() as u64
    }

    /// Size of all files together.
    pub fn bytes(&self) -> u64 {
        self.entries.values().map(LayerEntry::size).sum()
    }

    /// Size of the small files together: equal contents count once.
    pub fn packed_bytes(&self) -> u64 {
        let ends = self.entries.values().map(|entry| match entry {
            LayerEntry::File {
                size,
                content: FileContent { place: ContentPlace::Packed { offset }, .. },
                ..
            } => offset.saturating_add(*size),
            LayerEntry::File { .. }
            | LayerEntry::Removed
            | LayerEntry::Directory { .. }
            | LayerEntry::Symlink { .. } => 0,
        });
        ends.max().unwrap_or(0)
    }

    /// The entries below a path, in order.
    pub fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a Path, &'a LayerEntry)> {
        let after = (Bound::Excluded(path), Bound::Unbounded);
        let range = self.entries.range::<Path, _>(after);
        range
            .take_while(move |(other, _)| other.starts_with(path))
            .map(|(path, entry)| (path.as_path(), entry))
    }

    /// Decides where the bytes of each file are stored. Equal manifests get equal places.
    pub fn assign_places(&mut self) {
        let mut packed: HashMap<(ContentHash, u64), u64> = HashMap::new();
        let mut end = 0;
        for entry in self.entries.values_mut() {
            let LayerEntry::File { size, content, .. } = entry else { continue };
            if *size > MAX_PACKED_BYTES {
                content.place = ContentPlace::Blob;
                continue;
            }
            let offset = *packed.entry((content.hash.clone(), *size)).or_insert_with(|| {
                let offset = end;
                end += *size;
                offset
            });
            content.place = ContentPlace::Packed { offset };
        }
    }

    /// Whether the bytes of all files are where `assign_places` puts them.
    pub fn has_assigned_places(&self) -> bool {
        let mut assigned = self.clone();
        assigned.assign_places();
        assigned == *self
    }
}

/// Several layers as one, and which of them each entry comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SquashedLayers {
    pub manifest: LayerManifest,
    /// Index of the layer whose entry won, for each path of the manifest.
    pub sources: BTreeMap<PathBuf, usize>,
}

/// Squashes layers, the lowest first. A view with the result equals a view with all of them.
pub fn squash<'a>(layers: impl IntoIterator<Item = &'a LayerManifest>) -> SquashedLayers {
    let mut squashed = SquashedLayers::default();
    for (index, layer) in layers.into_iter().enumerate() {
        for (path, entry) in &layer.entries {
            squashed.put(path, entry, index);
        }
    }
    squashed.manifest.assign_places();
    squashed
}

impl SquashedLayers {
    fn put(&mut self, path: &Path, entry: &LayerEntry, index: usize) {
        let mut entry = entry.clone();
        if entry.hides_below() {
            let hidden: Vec<PathBuf> = self.manifest.below(path).map(|(path, _)| path.to_owned()).collect();
            for path in hidden {
                self.manifest.entries.remove(&path);
                self.sources.remove(&path);
            }
        } else if let LayerEntry::Directory { replaces, .. } = &mut entry {
            // What was removed, or was a file, hides what lies below it; the directory must go on to.
            *replaces = self.manifest.entries.get(path).is_some_and(LayerEntry::hides_below);
        }
        self.manifest.entries.insert(path.to_owned(), entry);
        self.sources.insert(path.to_owned(), index);
    }
}

#[cfg(test)]
mod tests;
