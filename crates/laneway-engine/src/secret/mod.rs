//! Secrets: where their values come from on a node, how those of the store are sealed, and how they are kept out of what is
//! printed. A value is in memory for as long as its step runs, and nowhere else in the clear.
//!
//! `key` seals and opens, `mask` replaces, and here values are found. See `docs/design/bytes.md`.

mod key;
mod mask;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use laneway_core::definition::SecretSource;
use laneway_store::Store;

pub use key::{Error as KeyError, KEY_VARIABLE, Key};
pub(crate) use mask::Stream;
pub use mask::{MIN_LENGTH, Masks};

/// The longest value.
pub const MAX_LENGTH: usize = 64 << 10;

/// Why a value is not there. Names everything but the value.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("secret `{name}`: the variable {variable} is not set on this node")]
    NoVariable { name: String, variable: String },
    #[error("secret `{name}`: {} cannot be read: {why}", path.display())]
    NoFile { name: String, path: PathBuf, why: String },
    #[error("secret `{name}`: {source}")]
    Sealed {
        name: String,
        #[source]
        source: key::Error,
    },
    #[error("secret `{name}` has less than {MIN_LENGTH} characters: it could not be kept out of logs")]
    TooShort { name: String },
    #[error("secret `{name}` has more than {MAX_LENGTH} bytes, or is no text")]
    Unfit { name: String },
    #[error("secret `{name}`: the store has no secret `{stored}`; `laneway secret set {stored}` makes it")]
    NotStored { name: String, stored: String },
    #[error(transparent)]
    Store(#[from] laneway_store::Error),
}

/// Why a value cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    #[error("a secret has at most {MAX_LENGTH} bytes, and no NUL")]
    Unfit,
    #[error("a secret has at least {MIN_LENGTH} characters")]
    Short,
}

impl BadValue {
    /// What to do next.
    pub fn hint(self) -> &'static str {
        match self {
            Self::Unfit => "keep what is larger where the step can read it, and only its key as a secret",
            Self::Short => "a shorter one could not be kept out of logs: it would be found everywhere",
        }
    }
}

/// Whether a value can be kept, and kept out of logs.
pub fn check(value: &str) -> Result<(), BadValue> {
    if value.len() > MAX_LENGTH || value.contains('\0') {
        return Err(BadValue::Unfit);
    }
    if value.chars().count() < MIN_LENGTH { Err(BadValue::Short) } else { Ok(()) }
}

impl Error {
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_passing())
    }
}

/// Finds the value of a secret, on this node. Relative files are taken from the directory of the step's run.
pub async fn find(store: &dyn Store, name: &str, source: &SecretSource, dir: &Path) -> Result<String, Error> {
    let unfit = || Error::Unfit { name: name.to_owned() };
    let value = match source {
        SecretSource::Env(variable) => {
            let value = std::env::var_os(variable);
            let missing = || Error::NoVariable { name: name.to_owned(), variable: variable.clone() };
            value.ok_or_else(missing)?.into_string().map_err(|_| unfit())?
        }
        SecretSource::File(file) => {
            let path = dir.join(file);
            let unread = |error: std::io::Error| Error::NoFile {
                name: name.to_owned(),
                path: path.clone(),
                why: error.to_string(),
            };
            let mut bytes = Vec::new();
            let file = std::fs::File::open(&path).map_err(unread)?;
            file.take(MAX_LENGTH as u64 + 2).read_to_end(&mut bytes).map_err(unread)?;
            strip_newline(String::from_utf8(bytes).map_err(|_| unfit())?)
        }
        SecretSource::Store(stored) => {
            let missing = || Error::NotStored { name: name.to_owned(), stored: stored.clone() };
            let sealed = store.secret(stored).await.map_err(|error| match error {
                laneway_store::Error::NoSuchSecret { .. } => missing(),
                other => other.into(),
            })?;
            let failed = |source| Error::Sealed { name: name.to_owned(), source };
            let key = Key::load(store.dir()).map_err(failed)?;
            key.open(stored, &sealed).map_err(failed)?
        }
    };
    check(&value).map_err(|bad| match bad {
        BadValue::Unfit => unfit(),
        BadValue::Short => Error::TooShort { name: name.to_owned() },
    })?;
    Ok(value)
}

/// Files, and what is typed, end with a newline that is no part of the value.
pub fn strip_newline(mut text: String) -> String {
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}
