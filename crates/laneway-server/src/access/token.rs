//! Tokens: `laneway_ID_SECRET`. The id finds the row, the SHA-256 of the whole is compared in constant time. The secret is
//! 256 random bits, so a fast hash is enough: there is nothing to guess.

use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_core::role::Role;
use laneway_store::model::{NewToken, RotatedToken, Token, TokenRotation};
use laneway_store::{Error, Store};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

const PREFIX: &str = "laneway_";
const ID_BYTES: usize = 6;
const SECRET_BYTES: usize = 32;

/// How much of a secret is shown, so that people can tell tokens apart.
const TAIL: usize = 4;

/// Longest name of a token.
const MAX_NAME: usize = 100;

/// How long somebody who signed in at the web page stays signed in.
pub const WEB_SESSION_LASTS: Duration = Duration::from_secs(7 * 24 * 3600);

/// Where the first token of a data directory is kept.
const ADMIN_FILE: &str = "admin.token";

/// A token as its holder has it. Never shown by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    fn mint() -> io::Result<Self> {
        let mut random = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let (id, secret) = random.split_at(ID_BYTES);
        Ok(Self(format!("{PREFIX}{}_{}", hex(id), hex(secret))))
    }

    /// What somebody gave as a token; `None` for what cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |text: &str, bytes: usize| {
            text.len() == 2 * bytes && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        (is_hex(id, ID_BYTES) && is_hex(secret, SECRET_BYTES)).then(|| Self(text.to_owned()))
    }

    /// Finds its row; no secret.
    pub fn id(&self) -> &str {
        &self.0[PREFIX.len()..PREFIX.len() + 2 * ID_BYTES]
    }

    /// The whole of it, for whoever hands it to its holder.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn tail(&self) -> String {
        self.0[self.0.len() - TAIL..].to_owned()
    }

    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.0.as_bytes()).into()
    }

    /// Whether it is the one that is kept, in a time that does not depend on how much of it is right.
    pub(super) fn is(&self, kept: &Token) -> bool {
        self.hash().ct_eq(&kept.hash).into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({}…)", self.id())
    }
}

/// Makes a token known and returns its secret, which cannot be read again. Without `lasts` it does not expire.
pub async fn make(
    store: &dyn Store,
    name: &str,
    role: Role,
    (by, lasts): (&str, Option<Duration>),
) -> Result<(Secret, Token), Error> {
    let secret = Secret::mint().map_err(no_random)?;
    let kept = store.make_token(new_token(&secret, name, role, (by, lasts))).await?;
    Ok((secret, kept))
}

/// Makes the token of a web session. It expires after `WEB_SESSION_LASTS`, and ends with the token that its code was made with.
pub(crate) async fn make_web_session(
    store: &dyn Store,
    name: &str,
    role: Role,
    (by, parent): (&str, Option<String>),
) -> Result<(Secret, Token), Error> {
    let secret = Secret::mint().map_err(no_random)?;
    let token = NewToken { parent, ..new_token(&secret, name, role, (by, Some(WEB_SESSION_LASTS))) };
    let kept = store.make_token(token).await?;
    Ok((secret, kept))
}

/// Gives the token of a name a new secret. The old one ends after the grace. Where it is the admin token of this data directory, the
/// new one takes its place in the file.
pub async fn rotate(
    store: &dyn Store,
    name: &str,
    by: &str,
    Rotate { lasts, grace }: Rotate,
) -> Result<(Secret, RotatedToken), Error> {
    let secret = Secret::mint().map_err(no_random)?;
    let rotation = TokenRotation {
        name: name.to_owned(),
        id: secret.id().to_owned(),
        hash: secret.hash(),
        tail: secret.tail(),
        by: by.to_owned(),
        lasts,
        grace,
    };
    let rotated = store.rotate_token(rotation).await?;
    let is_admins = read_admin_token(store.dir()).is_some_and(|kept| kept.id() == rotated.replaced.id);
    if is_admins {
        keep_admin_token(&store.dir().join(ADMIN_FILE), &secret)?;
    }
    Ok((secret, rotated))
}

/// How a token is rotated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rotate {
    /// How long the new secret is accepted; without it as long as the old one was when it was made.
    pub lasts: Option<Duration>,
    /// How long the old secret is still accepted.
    pub grace: Duration,
}

fn no_random(error: io::Error) -> Error {
    Error::Closed { why: format!("no random bytes: {error}") }
}

fn new_token(secret: &Secret, name: &str, role: Role, (by, lasts): (&str, Option<Duration>)) -> NewToken {
    NewToken {
        id: secret.id().to_owned(),
        name: name.to_owned(),
        role,
        hash: secret.hash(),
        tail: secret.tail(),
        by: by.to_owned(),
        parent: None,
        lasts,
    }
}

/// Sees to it that the data directory has an admin token, in a file that nobody else can read. Says where, and whether it is
/// new. A file that is there is left as it is, also if its token was revoked: somebody wanted that.
pub async fn admin_token(store: &dyn Store, host: &str, by: &str) -> Result<(PathBuf, bool), Error> {
    let path = store.dir().join(ADMIN_FILE);
    if path.exists() {
        return Ok((path, false));
    }
    let mut number = 1;
    let secret = loop {
        let name = if number == 1 { format!("admin@{host}") } else { format!("admin@{host}-{number}") };
        match make(store, &name, Role::Admin, (by, None)).await {
            // Of a data directory that is gone, or of another one on this host.
            Err(Error::TokenExists { .. }) => number += 1,
            made => break made?.0,
        }
    };
    keep_admin_token(&path, &secret)?;
    Ok((path, true))
}

fn keep_admin_token(path: &Path, secret: &Secret) -> Result<(), Error> {
    let failed =
        |error| Error::Io { path: path.to_owned(), why: format!("the admin token cannot be kept: {error}") };
    keep(path, secret).map_err(failed)
}

/// Whole or not at all: it is written aside and then given its name.
fn keep(path: &Path, secret: &Secret) -> io::Result<()> {
    let aside = path.with_extension(format!("token.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside)?;
    file.write_all(format!("{}\n", secret.reveal()).as_bytes())?;
    file.sync_all()?;
    std::fs::rename(aside, path)
}

/// The admin token of a data directory, for whoever may read it.
pub fn read_admin_token(dir: &Path) -> Option<Secret> {
    let text = std::fs::read_to_string(dir.join(ADMIN_FILE)).ok()?;
    Secret::parse(text.trim())
}

/// Names stand in addresses, events and the audit log.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.' | '@');
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_good) {
        return Ok(());
    }
    Err(format!("use 1 to {MAX_NAME} letters, digits and - _ . @"))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_read_back() {
        let (one, other) = (Secret::mint().expect("random"), Secret::mint().expect("random"));
        assert_ne!(one.reveal(), other.reveal());
        assert_eq!(Secret::parse(one.reveal()), Some(one.clone()));
        assert!(!format!("{one:?}").contains(&one.reveal()[one.reveal().len() - 32..]));
    }

    #[test]
    fn what_cannot_be_a_token_is_none() {
        let good = Secret::mint().expect("random").reveal().to_owned();
        for bad in ["", "laneway_", "laneway_12_34", &good[1..], &good.to_uppercase(), &format!("{good}0")] {
            assert_eq!(Secret::parse(bad), None, "{bad}");
        }
    }
}
