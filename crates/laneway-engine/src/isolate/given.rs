//! What a member was given: every entry of its copy, as it was when it was made, beside what it was made of. Kept in the
//! cell, so that a merge after a restart compares with the same.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Error;
use super::walk::{self, Stamp};

/// Two changes of a file within this time may leave the same stamp: the kernel's clock for files ticks so slowly.
const TICK: i64 = 20_000_000;

#[derive(Debug, Default)]
pub(super) struct Given {
    pub(super) entries: BTreeMap<PathBuf, Entry>,
    /// When the last of it was there, by the clock of the file system.
    sealed: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Entry {
    File { origin: Stamp, copy: Stamp, mode: u32 },
    Symlink { target: Vec<u8> },
    Directory { mode: u32 },
}

impl Given {
    pub(super) fn write(&self, cell: &Path) -> Result<(), Error> {
        let path = cell.join("given");
        let entries: Vec<(&[u8], &Entry)> =
            self.entries.iter().map(|(path, entry)| (path.as_os_str().as_bytes(), entry)).collect();
        let text = serde_json::to_vec(&entries).map_err(std::io::Error::other);
        let written = text.and_then(|text| std::fs::write(&path, text));
        written.map_err(Error::files("write", &path))
    }

    pub(super) fn read(cell: &Path) -> Result<Self, Error> {
        let path = cell.join("given");
        let text = std::fs::read(&path).map_err(Error::files("read", &path))?;
        let entries: Vec<(Vec<u8>, Entry)> = serde_json::from_slice(&text)
            .map_err(std::io::Error::other)
            .map_err(Error::files("read", &path))?;
        let entries = entries
            .into_iter()
            .map(|(path, entry)| (PathBuf::from(OsString::from_vec(path)), entry))
            .collect();
        // The list is written when everything else is there.
        let (root, _) = walk::root(cell).map_err(Error::files("look into", cell))?;
        let sealed = walk::look(&root, c"given").map_err(Error::files("look at", &path))?;
        Ok(Self { entries, sealed: sealed.map_or(0, |seen| seen.stamp.changed) })
    }

    /// Whether a file that still looks like this has not been touched since.
    pub(super) fn is_untouched(&self, copy: &Stamp, now: &Stamp) -> bool {
        copy == now && copy.changed.saturating_add(TICK) < self.sealed
    }
}
