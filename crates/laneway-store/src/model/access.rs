//! Tokens, secrets and the audit log. Plain values only: `contract/access.rs` describes the verbs.
//! No value of a secret is here in the clear. See `docs/design/service.md`.

use std::time::Duration;

use laneway_core::role::Role;
use laneway_core::time::Millis;

/// A secret of the store, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    pub name: String,
    pub set_at: Millis,
    pub set_by: String,
}

/// Length of the hash of a token's secret, in bytes.
pub const TOKEN_HASH: usize = 32;

/// A token to create.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Public: identifies the token in output and logs.
    pub id: String,
    /// The owner of the token or its purpose. Unique among tokens that are not revoked.
    pub name: String,
    pub role: Role,
    /// SHA-256 of the secret.
    pub hash: [u8; TOKEN_HASH],
    /// The last characters of the secret.
    pub tail: String,
    pub by: String,
    /// The id of the token whose code it is made with, if any. Revoking that token revokes this
    /// one.
    pub parent: Option<String>,
    /// How long it is accepted. `None`: until it is revoked. Never longer than `parent`.
    pub lasts: Option<Duration>,
}

/// A new secret for the token of a name.
#[derive(Debug, Clone)]
pub struct TokenRotation {
    pub name: String,
    /// Id, hash and tail of the new secret, as in `NewToken`.
    pub id: String,
    pub hash: [u8; TOKEN_HASH],
    pub tail: String,
    pub by: String,
    /// How long the new secret is accepted. `None`: as long as the previous one was when it was
    /// created.
    pub lasts: Option<Duration>,
    /// How long the old secret is still accepted.
    pub grace: Duration,
}

/// The result of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedToken {
    pub token: Token,
    /// The token with the old secret.
    pub replaced: Token,
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub hash: [u8; TOKEN_HASH],
    pub tail: String,
    pub created_by: String,
    pub created_at: Millis,
    /// The id of the token whose code it was made with.
    pub parent: Option<String>,
    /// Who revoked it, and the moment from which it is rejected. That moment is in the future for a
    /// token that was rotated with a grace period.
    pub revoked: Option<(String, Millis)>,
    /// The moment from which it is rejected, revoked or not.
    pub expires_at: Option<Millis>,
    /// When it was last used, to the minute.
    pub used_at: Option<Millis>,
    /// The store's clock when this was read. Expiry is judged by it, not by the clock of a node.
    pub read_at: Millis,
}

impl Token {
    /// Returns whether the token is accepted `age` after it was read.
    pub fn is_live(&self, age: Duration) -> bool {
        let now = self.read_at.after(age);
        let revoked_at = self.revoked.as_ref().map(|(_, at)| *at);
        [revoked_at, self.expires_at].into_iter().flatten().all(|end| now < end)
    }

    /// Returns whether its use must be recorded again, `age` after it was read.
    pub fn is_use_stale(&self, age: Duration) -> bool {
        self.used_at.is_none_or(|used| self.read_at.after(age).since(used) >= TOKEN_USE_GRAIN)
    }
}

/// Precision of a token's last use: a request costs a write at most this often.
pub const TOKEN_USE_GRAIN: Duration = Duration::from_secs(60);

/// A token that was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    pub token: Token,
    /// Names of the derived tokens that were in use, in order. They are revoked with it.
    pub along: Vec<String>,
}

/// A change that a client made through the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The name of the token.
    pub by: String,
    /// The verb.
    pub act: String,
    /// The object of the change.
    pub what: String,
    /// The network address of the request.
    pub origin: String,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub seq: u64,
    pub at: Millis,
    pub deed: Deed,
}
