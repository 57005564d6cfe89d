//! Tokens, secrets and the audit log.

use async_trait::async_trait;

use crate::error::Result;
use crate::model::{
    AuditEntry, Deed, NewToken, RevokedToken, RotatedToken, SecretView, Token, TokenRotation,
};

#[async_trait]
pub trait Access {
    /// Creates a token. An expired token gives up its name.
    ///
    /// # Errors
    /// Rejects a name that a valid token has, and a `parent` that is revoked or has expired.
    async fn make_token(&self, token: NewToken) -> Result<Token>;

    /// Revokes the token of a name and all tokens derived from it, at any depth. Every lookup after
    /// this returns finds them revoked, and none can be derived from them.
    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken>;

    /// Gives the token of a name a new secret, with the same role. The old secret and the tokens
    /// derived from it expire after a grace period. Works on an expired token too.
    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken>;

    /// Records that a token was used now, unless a use was recorded less than `TOKEN_USE_GRAIN`
    /// ago.
    async fn note_token_use(&self, id: &str) -> Result<()>;

    /// Returns a token by its id, also a revoked one. One index lookup: every request does it.
    async fn token(&self, id: &str) -> Result<Option<Token>>;

    /// Returns all tokens, valid ones first, then by name.
    async fn tokens(&self) -> Result<Vec<Token>>;

    /// Stores a secret that was sealed with a key that the store does not have. Replaces one of the
    /// same name.
    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()>;

    /// Returns a sealed secret, for nodes. People never read it back.
    ///
    /// # Errors
    /// Fails if there is none of that name.
    async fn secret(&self, name: &str) -> Result<Vec<u8>>;

    /// Returns all secrets by name, without values.
    async fn secrets(&self) -> Result<Vec<SecretView>>;

    /// Removes a secret.
    ///
    /// # Errors
    /// Fails if there is none of that name.
    async fn remove_secret(&self, name: &str) -> Result<()>;

    /// Appends to the audit log. Returns the number of the entry.
    async fn record(&self, deed: Deed) -> Result<u64>;

    /// Returns entries of the audit log numbered below `before`, newest first.
    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>>;
}
