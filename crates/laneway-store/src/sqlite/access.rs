//! Who may ask the service for what, and what they changed: tokens and the audit log. Nothing here knows a secret.

use laneway_core::role::Role;
use laneway_core::time::Millis;
use rusqlite::{Connection, Row, params};

use super::txn::{Done, Txn, sql};
use crate::error::Error;
use crate::keeper::unreadable;
use crate::model::{AuditEntry, Deed, NewToken, RevokedToken, Token};

pub(super) fn make_token(txn: &Txn<'_>, token: &NewToken) -> Done<Token> {
    let NewToken { id, name, role, hash, tail, by, parent } = token;
    if let Some(parent) = parent
        && self::token(txn.connection, parent)?.is_none_or(|parent| parent.revoked.is_some())
    {
        return Err(Error::NoSuchToken { name: parent.clone() }.into());
    }
    let made = params![id, name, role.as_str(), hash.as_slice(), tail, by, txn.now.0, parent];
    if txn.connection.prepare_cached(sql!("token_make"))?.execute(made)? == 0 {
        return Err(Error::TokenExists { name: name.clone() }.into());
    }
    kept(txn.connection, id)
}

pub(super) fn revoke_token(txn: &Txn<'_>, name: &str, by: &str) -> Done<RevokedToken> {
    let mut statement = txn.connection.prepare_cached(sql!("token_revoke"))?;
    let mut rows = statement.query(params![name, by, txn.now.0])?;
    let (mut id, mut along): (Option<String>, Vec<String>) = (None, Vec::new());
    while let Some(row) = rows.next()? {
        match row.get::<_, String>(1)? {
            revoked if revoked == name => id = Some(row.get(0)?),
            revoked => along.push(revoked),
        }
    }
    along.sort_unstable();
    let id = id.ok_or_else(|| Error::NoSuchToken { name: name.to_owned() })?;
    Ok(RevokedToken { token: kept(txn.connection, &id)?, along })
}

pub(super) fn record(txn: &Txn<'_>, deed: &Deed) -> Done<u64> {
    let Deed { by, act, what, origin } = deed;
    txn.connection
        .prepare_cached(sql!("audit_append"))?
        .execute(params![txn.now.0, by, act, what, origin])?;
    Ok(u64::try_from(txn.connection.last_insert_rowid()).unwrap_or_default())
}

pub(super) fn token(connection: &Connection, id: &str) -> Done<Option<Token>> {
    let mut statement = connection.prepare_cached(sql!("token"))?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(read).transpose()
}

pub(super) fn tokens(connection: &Connection) -> Done<Vec<Token>> {
    let mut statement = connection.prepare_cached(sql!("tokens"))?;
    let mut rows = statement.query([])?;
    let mut tokens = Vec::new();
    while let Some(row) = rows.next()? {
        tokens.push(read(row)?);
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
fn kept(connection: &Connection, id: &str) -> Done<Token> {
    token(connection, id)?.ok_or_else(|| unreadable("token", id).into())
}

fn read(row: &Row<'_>) -> Done<Token> {
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
    })
}
