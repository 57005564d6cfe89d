//! Secrets, sealed: the store has no key to them.

use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::Error;
use crate::model::SecretView;
use crate::sqlite::txn::{Done, Txn, sql};

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
