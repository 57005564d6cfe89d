//! Content addresses. A workflow's version is the hash of its document's bytes.

use std::fmt;

use serde::{Deserialize, Serialize};

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
