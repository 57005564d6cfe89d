//! Bundles: the directory beside a workflow file as one archive, named by its hash, so that its scripts are there on
//! whichever node its steps run. Equal content is an equal archive.
//!
//! `pack` reads a directory under its ignore rules, `unpack` trusts nothing of what it is given. An archive is a tar of plain
//! files and directories, without times and owners; nothing else is ever packed or unpacked. See `docs/design/bytes.md`.

mod pack;
mod sensitive;
mod unpack;

use std::path::PathBuf;

pub use laneway_core::layer::readable_size as size;
pub use pack::{IGNORE_FILE, Packing, pack};
pub use sensitive::MAX_FILE_BYTES;
pub use unpack::{top_file, unpack};

/// What a bundle holds at most: all of its files together.
pub const MAX_BYTES: u64 = 32 << 20;

/// Files and directories together.
pub const MAX_ENTRIES: usize = 10_000;

/// A packed directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    pub bytes: Vec<u8>,
    /// Its files, in order, with their sizes.
    pub files: Vec<(PathBuf, u64)>,
}

impl Bundle {
    /// A bundle without files.
    pub fn empty() -> std::io::Result<Self> {
        Ok(Self { bytes: tar::Builder::new(Vec::new()).into_inner()?, files: Vec::new() })
    }
}

/// Why a directory is not packed, or an archive not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{}: {why}", path.display())]
    Rules { path: PathBuf, why: String },
    #[error(
        "the files beside the workflow, in {}, are too large to be packed: {}, and a bundle holds {}; the largest are {}",
        dir.display(), size(*total), size(MAX_BYTES), largest.join(", ")
    )]
    TooLarge { dir: PathBuf, total: u64, largest: Vec<String> },
    #[error(
        "there are too many files beside the workflow, in {}: a bundle holds {MAX_ENTRIES}; most are in {}",
        dir.display(), most.join(", ")
    )]
    TooMany { dir: PathBuf, most: Vec<String> },
    #[error(
        "{} of the files beside the workflow, in {}, are not packed unless they are named: {}",
        files.len(), dir.display(), files.join(", ")
    )]
    Sensitive { dir: PathBuf, files: Vec<String> },
    #[error("the link {} leads out of the workflow's directory, to {}", link.display(), target.display())]
    LeadsOut { link: PathBuf, target: PathBuf },
    #[error("{} is {what}, and only plain files and directories are packed", path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    /// Of an archive that nobody here has packed.
    #[error("the bundle is refused: {why}")]
    Refused { why: String },
    #[error("{} cannot be written: {source}", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::TooLarge { .. } | Self::TooMany { .. } | Self::NotAFile { .. } | Self::LeadsOut { .. } => {
                Some(format!(
                    "name what its steps do not need in {IGNORE_FILE} (as in .gitignore), or give the workflow a directory of its own"
                ))
            }
            Self::Sensitive { .. } => Some(format!(
                "name them in {IGNORE_FILE} (as in .gitignore) to leave them out, or ship one with --include PATH; \
                 values that steps need belong into `secrets`"
            )),
            Self::Unreadable { .. } => {
                Some(format!("make it readable, or name it in {IGNORE_FILE} (as in .gitignore)"))
            }
            Self::Rules { .. } | Self::Refused { .. } | Self::Unwritable { .. } => None,
        }
    }
}
