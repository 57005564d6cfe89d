//! Content addresses. A workflow's version is the hash of its document's bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::hook::Which;
use crate::state::RunStatus;

/// BLAKE3 of a document, in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(String);

impl Version {
    /// The name is part of the content: two files with equal text and different names are two workflows.
    pub fn of(name: &str, document: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(name.as_bytes());
        hasher.update(&[0]);
        hasher.update(document.as_bytes());
        Self(hasher.finalize().to_hex().to_string())
    }

    /// That of the hooks for an end of its runs, which stand in the same document.
    pub fn of_hooks(&self, end: RunStatus, which: Which) -> Self {
        match which {
            Which::All => Self(format!("{}.{}", self.0, end.as_str())),
            Which::Steps | Which::Callbacks => {
                Self(format!("{}.{}.{}", self.0, end.as_str(), which.as_str()))
            }
        }
    }

    /// The end whose hooks it is the version of, and which of them.
    pub fn hooks(&self) -> Option<(RunStatus, Which)> {
        let (_, hooks) = self.0.split_once('.')?;
        match hooks.split_once('.') {
            Some((end, which)) => RunStatus::parse(end).zip(Which::parse(which)),
            None => Some((RunStatus::parse(hooks)?, Which::All)),
        }
    }

    /// Takes a version back from the store.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// BLAKE3 of some bytes, in hexadecimal: the name by which a bundle or an artifact is kept. It is safe in paths.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct ContentHash(String);

impl ContentHash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Sixty-four digits, as they are printed; anything else is no hash.
    pub fn parse(text: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_digit)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Enough of it for people.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

/// Makes a [`ContentHash`] of bytes that come one after the other.
#[derive(Debug, Default)]
pub struct Hasher(blake3::Hasher);

impl Hasher {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().to_hex().to_string())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_printed_is_a_hash() {
        let hash = ContentHash::of(b"bytes");
        assert_eq!(ContentHash::parse(hash.as_str()), Some(hash.clone()));
        assert_ne!(hash, ContentHash::of(b"other bytes"));
        for bad in ["", "../../etc/passwd", &hash.as_str()[1..], &hash.as_str().to_uppercase()] {
            assert_eq!(ContentHash::parse(bad), None, "{bad}");
        }
    }
}
