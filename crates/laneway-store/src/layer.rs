//! Layers: what attempts of submitted runs changed in their views of the files, as stored. The
//! store knows a layer's hash, its size and the place of its bytes. It never reads the content: the
//! engine does (`view/` there). See `docs/design/files.md`.

use laneway_core::cause::BoundWait;
use laneway_core::event::KeptFiles;
use laneway_core::hash::ContentHash;
use laneway_core::plan::{Plan, Position};
use laneway_core::state::TaskStatus;
use serde::{Deserialize, Serialize};

use crate::bytes::verify;
use crate::error::Result;
use crate::keeper::unreadable;

/// Maximum size in bytes of a packed layer in the row of its task's end. A larger one is a file.
pub const MAX_INLINE_LAYER: usize = 64 << 10;

/// The layer of an attempt that ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewLayer {
    /// Number of paths that were created, changed or removed.
    pub paths: u64,
    /// Size of the files in it, in bytes.
    pub bytes: u64,
    /// Hash of the packed layer.
    pub hash: ContentHash,
    pub content: LayerContent,
    /// Files of the layer that `Store::keep_file` stores: its large files, and the packed layer
    /// unless it is small.
    pub files: Vec<ContentHash>,
}

/// The place of a packed layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayerContent {
    /// In the row of the layer. At most `MAX_INLINE_LAYER` bytes.
    Inline(Vec<u8>),
    /// A file under the layer's hash, stored by `Store::keep_file` and named in `NewLayer::files`.
    File,
    /// Only on the node that made it: it is too large for the store.
    OnNode(Oversize),
}

/// Why a layer is too large for the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oversize {
    /// Size of all that its step saw, with the layer.
    pub bytes: u64,
    /// `workspace_max_bytes` of the node.
    pub limit: u64,
    /// The largest files of the layer, with their sizes, the largest first.
    pub largest: Vec<(String, u64)>,
}

impl Oversize {
    /// As it is stored.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers")
    }

    /// `None` for what this program would not have written.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
}

impl NewLayer {
    /// Returns the layer of an attempt that changed nothing. A result with it differs from a result
    /// that was recorded outside a view.
    pub fn empty() -> Self {
        let hash = ContentHash::of(&[]);
        Self { paths: 0, bytes: 0, hash, content: LayerContent::Inline(Vec::new()), files: Vec::new() }
    }

    /// Builds the layer of a result from its stored form.
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
            Self::File | Self::OnNode(_) => None,
        }
    }

    /// Returns why it is not in the store, if it is not.
    pub fn oversize(&self) -> Option<&Oversize> {
        match self {
            Self::Inline(_) | Self::File => None,
            Self::OnNode(oversize) => Some(oversize),
        }
    }
}

/// A layer that counts: it belongs to the last attempt of a task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    pub position: Position,
    pub attempt: u32,
    /// Succeeded or failed.
    pub status: TaskStatus,
    pub paths: u64,
    pub bytes: u64,
    pub hash: ContentHash,
    /// The only node that has it, if it is not in the store.
    pub node: Option<String>,
    /// Why it is not, if an older program did not leave that out.
    pub oversize: Option<Oversize>,
}

/// Returns which files keep a run on the node that owns it: the largest of those that it alone has.
pub(crate) fn bound_to(plan: &Plan, layers: &[Layer], node: Option<&str>) -> Option<BoundWait> {
    let node = node?;
    let there = layers.iter().filter(|layer| layer.node.as_deref() == Some(node));
    let oversized = there.filter(|layer| layer.oversize.is_some());
    let layer = oversized.max_by_key(|layer| layer.bytes)?;
    let Oversize { bytes, limit, .. } = layer.oversize.as_ref()?;
    let files = KeptFiles { step: plan.task_name(layer.position), bytes: *bytes, limit: *limit };
    Some(BoundWait { node: node.to_owned(), files })
}
