//! Layers: what attempts of submitted runs changed in their views of the files, as the store keeps
//! it. What a layer holds is the engine's (`view/` there); the store knows its hash, its size and
//! where its bytes are. docs/design/files.md.

use laneway_core::hash::ContentHash;
use laneway_core::plan::Position;
use laneway_core::state::TaskStatus;

use crate::bytes::verify;
use crate::error::Result;
use crate::keeper::unreadable;

/// The largest packed layer that is stored in the row of its task's end. A larger one is a file.
pub const MAX_INLINE_LAYER: usize = 64 << 10;

/// A layer of an attempt that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLayer {
    /// Paths that were created, changed or removed.
    pub paths: u64,
    /// Size of the files in it.
    pub bytes: u64,
    /// Hash of the packed layer.
    pub hash: ContentHash,
    pub content: LayerContent,
    /// What `Store::keep_file` keeps of it: the packed layer if it is not small, and its large files.
    pub files: Vec<ContentHash>,
}

/// Where a packed layer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerContent {
    /// In the row of the layer. At most `MAX_INLINE_LAYER` bytes.
    Inline(Vec<u8>),
    /// A file under the layer's hash, kept by `Store::keep_file` and named in `NewLayer::files`.
    File,
    /// Only on the node that made it: it is too large for the store.
    OnNode,
}

impl NewLayer {
    /// The layer of an attempt that changed nothing: of a result, to tell it from one that was
    /// recorded outside of a view.
    pub fn empty() -> Self {
        let hash = ContentHash::of(&[]);
        Self { paths: 0, bytes: 0, hash, content: LayerContent::Inline(Vec::new()), files: Vec::new() }
    }

    /// A layer of a result as it is stored.
    pub(crate) fn stored(
        (paths, bytes): (u64, u64),
        hash: &str,
        packed: Option<Vec<u8>>,
        files: Vec<String>,
    ) -> Result<Self> {
        let parse = |hash: &str| ContentHash::parse(hash).ok_or_else(|| unreadable("hash of a layer", hash));
        let hash = parse(hash)?;
        let content = match packed {
            Some(packed) => LayerContent::Inline(verify(&hash, packed)?),
            None => LayerContent::File,
        };
        let files = files.iter().map(|hash| parse(hash)).collect::<Result<_>>()?;
        Ok(Self { paths, bytes, hash, content, files })
    }
}

impl LayerContent {
    pub(crate) fn inline(&self) -> Option<&[u8]> {
        match self {
            Self::Inline(bytes) => Some(bytes),
            Self::File | Self::OnNode => None,
        }
    }
}

/// A layer that counts: of the last attempt of a task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub position: Position,
    pub attempt: u32,
    /// Succeeded or failed.
    pub status: TaskStatus,
    pub paths: u64,
    pub bytes: u64,
    pub hash: ContentHash,
    /// The node that alone has it, if it is not in the store.
    pub node: Option<String>,
}
