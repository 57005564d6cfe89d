//! Tokens and the audit log.

use std::time::Duration;

use laneway_core::role::Role;
use laneway_store::model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Moment;

/// A token that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateToken {
    /// Whose it is, or what for: what the audit log says.
    #[schema(min_length = 1, max_length = 100, pattern = "^[-A-Za-z0-9_.@]+$")]
    pub name: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    /// After how many seconds it is refused; without it, or null, it does not expire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 315_360_000)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub expires_in_s: Option<u64>,
}

/// How a token is to get a new secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateToken {
    /// After how many seconds the new secret is refused; without it, or null, after as long as the old one when it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 315_360_000)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub expires_in_s: Option<u64>,
    /// For how many seconds the old secret is still accepted; without it, or null, it ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2_592_000)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub grace_s: Option<u64>,
}

/// A token with a new secret, which is in this answer and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RotatedToken {
    pub token: String,
    pub name: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    pub expires_at: Option<Moment>,
    /// When the old secret ends.
    pub old_ends_at: Option<Moment>,
}

/// A new token. The secret is in this answer and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedToken {
    pub token: String,
    pub name: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    /// When it expires; null if it does not.
    #[serde(default)]
    pub expires_at: Option<Moment>,
}

/// A token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Token {
    pub name: String,
    #[schema(schema_with = super::role)]
    pub role: Role,
    /// The last characters of the secret.
    pub tail: String,
    pub created_by: String,
    pub created_at: Moment,
    /// The token that made the code with which somebody signed in, if it came so: it is revoked with that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub came_of: Option<String>,
    pub revoked_by: Option<String>,
    /// From when on it is refused; ahead of now for one that was rotated with a grace.
    pub revoked_at: Option<Moment>,
    /// When it expires; null if it does not.
    #[serde(default)]
    pub expires_at: Option<Moment>,
    /// When it was last used, to the minute.
    #[serde(default)]
    pub last_used_at: Option<Moment>,
    /// Whether it is accepted now.
    #[serde(default)]
    pub is_live: bool,
}

/// Those in use first, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    pub tokens: Vec<Token>,
    /// The next page is asked for with this; null on the last one.
    pub next_cursor: Option<String>,
}

/// A token that is good for nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Revoked {
    pub name: String,
    pub revoked_at: Option<Moment>,
    /// Those that came of it, and have ended with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<String>,
}

impl Revoked {
    /// What else has ended, as it stands behind its name.
    pub fn others(&self) -> String {
        match self.along.as_slice() {
            [] => String::new(),
            along => format!(", with what came of it: {}", along.join(", ")),
        }
    }
}

/// Something that was changed through the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub seq: u64,
    pub at: Moment,
    /// The name of the token.
    pub by: String,
    pub act: String,
    pub what: String,
    /// The address it was asked from.
    pub from: String,
}

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLog {
    pub entries: Vec<AuditEntry>,
    /// The next page is asked for with this; null on the last one.
    pub next_cursor: Option<String>,
}

impl From<&model::Token> for Token {
    fn from(token: &model::Token) -> Self {
        let (by, at) = token.revoked.clone().unzip();
        Self {
            name: token.name.clone(),
            role: token.role,
            tail: token.tail.clone(),
            created_by: token.created_by.clone(),
            created_at: Moment(token.created_at),
            // A code is made in the name of its token.
            came_of: token.parent.as_ref().map(|_| token.created_by.clone()),
            revoked_by: by,
            revoked_at: at.map(Moment),
            expires_at: token.expires_at.map(Moment),
            last_used_at: token.used_at.map(Moment),
            is_live: token.is_live(Duration::ZERO),
        }
    }
}

impl From<model::RevokedToken> for Revoked {
    fn from(revoked: model::RevokedToken) -> Self {
        let model::RevokedToken { token, along } = revoked;
        Self { name: token.name, revoked_at: token.revoked.map(|(_, at)| Moment(at)), along }
    }
}

impl From<&model::AuditEntry> for AuditEntry {
    fn from(entry: &model::AuditEntry) -> Self {
        let model::Deed { by, act, what, origin } = entry.deed.clone();
        Self { seq: entry.seq, at: Moment(entry.at), by, act, what, from: origin }
    }
}
