//! Files that attempts changed: the shapes of `laneway files --json` and of its route.

use laneway_core::layer::LayerEntry;
use serde::{Deserialize, Serialize};
use std::path::Path;
use utoipa::ToSchema;

/// What a task changed in its view of the files of its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFiles {
    pub step: String,
    /// The attempt that counts.
    pub attempt: u32,
    /// The node that alone has the files, because they are too large for the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub bytes: u64,
    /// By path. Not known while only a node has them.
    pub files: Vec<ChangedFile>,
}

/// A path that a task changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChangedFile {
    /// Relative to the directory of the run.
    pub path: String,
    pub kind: ChangedKind,
    pub bytes: u64,
    /// BLAKE3 of what is in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    pub executable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangedKind {
    File,
    Directory,
    Symlink,
    /// It is gone.
    Removed,
}

impl ChangedKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
            Self::Symlink => "symlink",
            Self::Removed => "removed",
        }
    }
}

impl ChangedFile {
    pub(crate) fn of(path: &Path, entry: &LayerEntry) -> Self {
        let (kind, hash) = match entry {
            LayerEntry::Removed => (ChangedKind::Removed, None),
            LayerEntry::Directory { .. } => (ChangedKind::Directory, None),
            LayerEntry::Symlink { .. } => (ChangedKind::Symlink, None),
            LayerEntry::File { content, .. } => (ChangedKind::File, Some(content.hash.to_string())),
        };
        let mode = entry.attributes().map_or(0, |attributes| attributes.mode);
        Self {
            path: path.to_string_lossy().into_owned(),
            kind,
            bytes: entry.size(),
            hash,
            executable: kind == ChangedKind::File && mode & 0o111 != 0,
        }
    }
}
