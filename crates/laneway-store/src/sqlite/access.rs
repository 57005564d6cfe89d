//! Tokens, secrets and the audit log. The store holds hashes of tokens, and no key to the secrets.

use std::time::Duration;

use async_trait::async_trait;
use laneway_core::role::Role;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::contract::Access;
use crate::error::{Error, Result};
use crate::keeper::unreadable;
use crate::model::{
    AuditEntry, Deed, NewToken, RevokedToken, RotatedToken, SecretView, TOKEN_USE_GRAIN, Token, TokenRotation,
};
use crate::sqlite::SqliteStore;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};

#[async_trait]
impl Access for SqliteStore {
    async fn make_token(&self, token: NewToken) -> Result<Token> {
        self.write(move |txn| make_token(txn, &token)).await
    }

    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| revoke_token(txn, &name, &by)).await
    }

    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken> {
        self.write(move |txn| rotate_token(txn, &rotation)).await
    }

    async fn note_token_use(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(move |txn| note_token_use(txn, &id)).await
    }

    async fn token(&self, id: &str) -> Result<Option<Token>> {
        self.look(|connection, shared| token(connection, id, shared.moment(connection)?))
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.read(|connection, shared| tokens(connection, shared.moment(connection)?)).await
    }

    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| set(txn, &name, &sealed, &by)).await
    }

    async fn secret(&self, name: &str) -> Result<Vec<u8>> {
        let name = name.to_owned();
        self.read(move |connection, _| sealed(connection, &name)).await
    }

    async fn secrets(&self) -> Result<Vec<SecretView>> {
        self.read(|connection, _| list(connection)).await
    }

    async fn remove_secret(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| remove(txn, &name)).await
    }

    async fn record(&self, deed: Deed) -> Result<u64> {
        self.write(move |txn| record(txn, &deed)).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.read(move |connection, _| audit(connection, before, limit)).await
    }
}

pub(super) fn make_token(txn: &Txn<'_>, token: &NewToken) -> Done<Token> {
    let parent = match &token.parent {
        None => None,
        Some(id) => {
            let parent =
                self::token(txn.connection, id, txn.now)?.filter(|parent| parent.is_live(Duration::ZERO));
            Some(parent.ok_or_else(|| Error::NoSuchToken { name: id.clone() })?)
        }
    };
    txn.connection.prepare_cached(sql!("token_clear_expired"))?.execute(params![token.name, txn.now.0])?;
    let expires_at =
        [token.lasts.map(|lasts| txn.now.after(lasts)), parent.and_then(|parent| parent.expires_at)];
    insert(txn, token, expires_at.into_iter().flatten().min())
}

fn insert(txn: &Txn<'_>, token: &NewToken, expires_at: Option<Millis>) -> Done<Token> {
    let NewToken { id, name, role, hash, tail, by, parent, lasts: _ } = token;
    let (role, now, expires_at) = (role.as_str(), txn.now.0, expires_at.map(|at| at.0));
    let made = params![id, name, role, hash.as_slice(), tail, by, now, parent, expires_at];
    if txn.connection.prepare_cached(sql!("token_make"))?.execute(made)? == 0 {
        return Err(Error::TokenExists { name: name.clone() }.into());
    }
    kept(txn, id)
}

pub(super) fn revoke_token(txn: &Txn<'_>, name: &str, by: &str) -> Done<RevokedToken> {
    let (id, along) = revoke(txn, name, by, Duration::ZERO)?;
    let id = id.ok_or_else(|| Error::NoSuchToken { name: name.to_owned() })?;
    Ok(RevokedToken { token: kept(txn, &id)?, along })
}

/// Returns the id of one that had the name, and the names of those that came of it.
fn revoke(txn: &Txn<'_>, name: &str, by: &str, grace: Duration) -> Done<(Option<String>, Vec<String>)> {
    let mut statement = txn.connection.prepare_cached(sql!("token_revoke"))?;
    let mut rows = statement.query(params![name, by, txn.now.0, txn.now.after(grace).0])?;
    let (mut id, mut along): (Option<String>, Vec<String>) = (None, Vec::new());
    while let Some(row) = rows.next()? {
        match row.get::<_, String>(1)? {
            revoked if revoked == name => id = Some(row.get(0)?),
            revoked => along.push(revoked),
        }
    }
    along.sort_unstable();
    along.dedup();
    Ok((id, along))
}

pub(super) fn rotate_token(txn: &Txn<'_>, rotation: &TokenRotation) -> Done<RotatedToken> {
    let TokenRotation { name, id, hash, tail, by, lasts, grace } = rotation;
    let mut statement = txn.connection.prepare_cached(sql!("token_live"))?;
    let mut rows = statement.query([name])?;
    let Some(row) = rows.next()? else { return Err(Error::NoSuchToken { name: name.clone() }.into()) };
    let (replaced, role, parent): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let (parent_expires_at, lasted): (Option<i64>, Option<i64>) = (row.get(3)?, row.get(4)?);
    drop(rows);
    revoke(txn, name, by, *grace)?;
    let lasted = lasted.and_then(|lasted| u64::try_from(lasted).ok()).map(Duration::from_millis);
    let expires_at = [lasts.or(lasted).map(|lasts| txn.now.after(lasts)), parent_expires_at.map(Millis)];
    let token = NewToken {
        id: id.clone(),
        name: name.clone(),
        role: Role::parse(&role).ok_or_else(|| unreadable("role", &role))?,
        hash: *hash,
        tail: tail.clone(),
        by: by.clone(),
        parent,
        lasts: *lasts,
    };
    let token = insert(txn, &token, expires_at.into_iter().flatten().min())?;
    Ok(RotatedToken { token, replaced: kept(txn, &replaced)? })
}

pub(super) fn note_token_use(txn: &Txn<'_>, id: &str) -> Done<()> {
    let grain = i64::try_from(TOKEN_USE_GRAIN.as_millis()).unwrap_or(i64::MAX);
    txn.connection.prepare_cached(sql!("token_used"))?.execute(params![id, txn.now.0, grain])?;
    Ok(())
}

pub(super) fn record(txn: &Txn<'_>, deed: &Deed) -> Done<u64> {
    let Deed { by, act, what, origin } = deed;
    txn.connection
        .prepare_cached(sql!("audit_append"))?
        .execute(params![txn.now.0, by, act, what, origin])?;
    Ok(u64::try_from(txn.connection.last_insert_rowid()).unwrap_or_default())
}

pub(super) fn token(connection: &Connection, id: &str, now: Millis) -> Done<Option<Token>> {
    let mut statement = connection.prepare_cached(sql!("token"))?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(|row| read(row, now)).transpose()
}

pub(super) fn tokens(connection: &Connection, now: Millis) -> Done<Vec<Token>> {
    let mut statement = connection.prepare_cached(sql!("tokens"))?;
    let mut rows = statement.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(read(row, now)?);
    }
    Ok(tokens)
}

pub(super) fn audit(connection: &Connection, before: Option<u64>, limit: usize) -> Done<Vec<AuditEntry>> {
    let before = before.and_then(|before| i64::try_from(before).ok()).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("audit"))?;
    let mut rows = statement.query(params![before, i64::try_from(limit).unwrap_or(i64::MAX)])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let deed = Deed { by: row.get(2)?, act: row.get(3)?, what: row.get(4)?, origin: row.get(5)? };
        entries.push(AuditEntry { seq: row.get(0)?, at: Millis(row.get(1)?), deed });
    }
    Ok(entries)
}

/// One that was just written.
fn kept(txn: &Txn<'_>, id: &str) -> Done<Token> {
    token(txn.connection, id, txn.now)?.ok_or_else(|| unreadable("token", id).into())
}

fn read(row: &Row<'_>, now: Millis) -> Done<Token> {
    let (role, hash): (String, Vec<u8>) = (row.get(2)?, row.get(3)?);
    let revoked: (Option<String>, Option<i64>) = (row.get(7)?, row.get(8)?);
    Ok(Token {
        id: row.get(0)?,
        name: row.get(1)?,
        role: Role::parse(&role).ok_or_else(|| unreadable("role", &role))?,
        hash: hash.try_into().map_err(|_| unreadable("hash of a token", "its length"))?,
        tail: row.get(4)?,
        created_by: row.get(5)?,
        created_at: Millis(row.get(6)?),
        parent: row.get(9)?,
        revoked: revoked.0.zip(revoked.1.map(Millis)),
        expires_at: row.get::<_, Option<i64>>(10)?.map(Millis),
        used_at: row.get::<_, Option<i64>>(11)?.map(Millis),
        read_at: now,
    })
}

pub(in crate::sqlite) fn set(txn: &Txn<'_>, name: &str, sealed: &[u8], by: &str) -> Done<()> {
    txn.connection.prepare_cached(sql!("secret_set"))?.execute(params![name, sealed, txn.now.0, by])?;
    Ok(())
}

pub(in crate::sqlite) fn sealed(connection: &Connection, name: &str) -> Done<Vec<u8>> {
    let mut statement = connection.prepare_cached(sql!("secret"))?;
    let sealed = statement.query_row([name], |row| row.get(0)).optional()?;
    sealed.ok_or_else(|| Error::NoSuchSecret { name: name.to_owned() }.into())
}

pub(in crate::sqlite) fn list(connection: &Connection) -> Done<Vec<SecretView>> {
    let mut statement = connection.prepare_cached(sql!("secrets"))?;
    let rows = statement.query_map([], |row| {
        Ok(SecretView { name: row.get(0)?, set_at: Millis(row.get(1)?), set_by: row.get(2)? })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(in crate::sqlite) fn remove(txn: &Txn<'_>, name: &str) -> Done<()> {
    let mut statement = txn.connection.prepare_cached(sql!("secret_remove"))?;
    let removed: Option<i64> = statement.query_row([name], |row| row.get(0)).optional()?;
    removed.map(drop).ok_or_else(|| Error::NoSuchSecret { name: name.to_owned() }.into())
}
