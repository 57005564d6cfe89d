//! The key under which a store keeps secrets, and what it does: XChaCha20-Poly1305 with a random nonce, bound to the secret's
//! name, so that no value can be put in the place of another.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use chacha20poly1305::aead::{Aead as _, AeadCore as _, KeyInit as _, OsRng, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

/// Names the key in place of a file: 64 hexadecimal digits.
pub const KEY_VARIABLE: &str = "LANEWAY_SECRET_KEY";

/// In the directory of the store, or of the node.
const KEY_FILE: &str = "secret.key";

/// The first byte of what is sealed.
const VERSION: u8 = 1;
const NONCE: usize = 24;

/// Why a secret cannot be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no key at {} and {KEY_VARIABLE} is not set; give this node the key of the node that set the secret", path.display())]
    NoKey { path: PathBuf },
    #[error("{what} is no key: it takes 64 hexadecimal digits")]
    NotAKey { what: String },
    #[error("{} can be read by others; make it `chmod 600`", path.display())]
    Open { path: PathBuf },
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error(
        "it was sealed with another key, or changed since; set it again, or give this node the key with which it was set"
    )]
    Unopened,
}

/// The key of a store.
#[derive(Clone)]
pub struct Key(XChaCha20Poly1305);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

impl Key {
    /// The variable's, or the file's.
    pub fn load(dir: &Path) -> Result<Self, Error> {
        Self::given()?.map_or_else(|| Self::read(&dir.join(KEY_FILE)), Ok)
    }

    /// The same; a new one where there is none.
    pub fn load_or_make(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(KEY_FILE);
        match Self::load(dir) {
            Err(Error::NoKey { .. }) => {}
            known => return known,
        }
        let text: String =
            XChaCha20Poly1305::generate_key(&mut OsRng).iter().map(|byte| format!("{byte:02x}")).collect();
        let failed = |source| Error::File { path: path.clone(), source };
        laneway_store::private::create_dir_all(dir).map_err(failed)?;
        let mut options = OpenOptions::new();
        match options.write(true).create_new(true).mode(0o600).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
                Self::parse(&text, &path.display().to_string())
            }
            // Somebody else made one in the same moment.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::read(&path),
            Err(error) => Err(failed(error)),
        }
    }

    pub fn seal(&self, name: &str, value: &str) -> Result<Vec<u8>, Error> {
        let nonce = XChaCha20Poly1305::generate_nonce(&mut OsRng);
        let payload = Payload { msg: value.as_bytes(), aad: name.as_bytes() };
        let sealed = self.0.encrypt(&nonce, payload).map_err(|_| Error::Unopened)?;
        Ok([&[VERSION][..], nonce.as_slice(), &sealed].concat())
    }

    pub fn open(&self, name: &str, sealed: &[u8]) -> Result<String, Error> {
        let Some((&VERSION, rest)) = sealed.split_first() else { return Err(Error::Unopened) };
        let Some((nonce, sealed)) = rest.split_at_checked(NONCE) else { return Err(Error::Unopened) };
        let payload = Payload { msg: sealed, aad: name.as_bytes() };
        let opened = self.0.decrypt(XNonce::from_slice(nonce), payload).map_err(|_| Error::Unopened)?;
        String::from_utf8(opened).map_err(|_| Error::Unopened)
    }

    fn given() -> Result<Option<Self>, Error> {
        match std::env::var(KEY_VARIABLE) {
            Ok(text) if !text.is_empty() => Self::parse(&text, KEY_VARIABLE).map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    fn read(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        let data = match std::fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoKey { path: path.to_owned() });
            }
            data => data.map_err(failed)?,
        };
        if data.mode() & 0o077 != 0 {
            return Err(Error::Open { path: path.to_owned() });
        }
        Self::parse(&std::fs::read_to_string(path).map_err(failed)?, &path.display().to_string())
    }

    fn parse(text: &str, what: &str) -> Result<Self, Error> {
        let refused = || Error::NotAKey { what: what.to_owned() };
        let text = text.trim();
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(refused());
        }
        let mut key = [0; 32];
        for (place, byte) in key.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).map_err(|_| refused())?;
        }
        Ok(Self(XChaCha20Poly1305::new(&key.into())))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_its_own_key_and_name_alone() {
        let (dir, other) = (tempfile::tempdir().expect("dir"), tempfile::tempdir().expect("dir"));
        assert!(matches!(Key::read(&dir.path().join(KEY_FILE)), Err(Error::NoKey { .. })));
        let key = Key::load_or_make(dir.path()).expect("made");
        let sealed = key.seal("db", "hunter22").expect("sealed");
        assert!(!sealed.windows(8).any(|part| part == b"hunter22"));
        assert_ne!(sealed, key.seal("db", "hunter22").expect("sealed"), "never the same twice");
        let again = Key::load(dir.path()).expect("there");
        assert_eq!(again.open("db", &sealed).expect("opened"), "hunter22");
        assert!(matches!(again.open("api", &sealed), Err(Error::Unopened)));
        let stranger = Key::load_or_make(other.path()).expect("made");
        assert!(matches!(stranger.open("db", &sealed), Err(Error::Unopened)));
        for place in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[place] ^= 1;
            assert!(key.open("db", &changed).is_err(), "byte {place}");
            assert!(key.open("db", &sealed[..place]).is_err(), "cut at {place}");
        }
    }

    #[test]
    fn key_file_is_for_its_owner_alone() {
        let dir = tempfile::tempdir().expect("dir");
        Key::load_or_make(dir.path()).expect("made");
        let path = dir.path().join(KEY_FILE);
        assert_eq!(std::fs::metadata(&path).expect("there").mode() & 0o777, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("set");
        assert!(matches!(Key::load(dir.path()), Err(Error::Open { .. })));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        std::fs::write(&path, "short").expect("written");
        assert!(matches!(Key::load(dir.path()), Err(Error::NotAKey { .. })));
    }
}
