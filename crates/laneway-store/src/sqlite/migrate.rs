//! Brings a file to the schema this program knows: forward only, idempotent, all or nothing.

use std::path::Path;

use laneway_core::id::SessionId;
use rusqlite::{Connection, TransactionBehavior};

use super::{data_dir, fault};
use crate::error::{Error, Result};
use crate::keeper::unreadable;
use crate::locks::{Life, SessionLocks};
use crate::migration::{Migration, breaking};
use crate::sqlite::statements::sql;

/// In order; the number of a migration is its place, from 1 on. Both databases have the same
/// numbers.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration::adds(include_str!("migrations/0001_first.sql")),
    Migration::adds(include_str!("migrations/0002_pools.sql")),
    Migration::adds(include_str!("migrations/0003_wishes.sql")),
    Migration::adds(include_str!("migrations/0004_rooms.sql")),
    Migration::adds(include_str!("migrations/0005_waits.sql")),
    Migration::adds(include_str!("migrations/0006_effects.sql")),
    Migration::adds(include_str!("migrations/0007_growth.sql")),
    Migration::adds(include_str!("migrations/0008_levels.sql")),
    Migration::adds(include_str!("migrations/0009_cache.sql")),
    Migration::adds(include_str!("migrations/0010_children.sql")),
    Migration::adds(include_str!("migrations/0011_no_cache.sql")),
    Migration::adds(include_str!("migrations/0012_token_parents.sql")),
    Migration::adds(include_str!("migrations/0013_losses.sql")),
    Migration::adds(include_str!("migrations/0014_laid_by.sql")),
    Migration::adds(include_str!("migrations/0015_follow_ups.sql")),
    Migration::adds(include_str!("migrations/0016_given_back.sql")),
    Migration::adds(include_str!("migrations/0017_token_expiry.sql")),
    Migration::adds(include_str!("migrations/0018_passages.sql")),
    Migration::adds(include_str!("migrations/0019_layers.sql")),
    Migration::adds(include_str!("migrations/0020_firing.sql")),
    Migration::adds(include_str!("migrations/0021_not_before.sql")),
    Migration::adds(include_str!("migrations/0022_oversize.sql")),
];

/// "LANE": tells a Laneway store from other SQLite files.
const APPLICATION_ID: i64 = 0x4C41_4E45;

pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// What a file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Store {
        schema: i64,
    },
    /// A database without any table: ours to fill.
    Empty,
    Foreign,
}

pub(super) fn look(connection: &Connection) -> rusqlite::Result<Found> {
    // One statement is one snapshot: another process may be migrating the file just now.
    let (application, schema, tables): (i64, i64, i64) =
        connection.query_row(sql!("look"), [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(match (application, tables) {
        (APPLICATION_ID, _) => Found::Store { schema },
        (0, 0) => Found::Empty,
        _ => Found::Foreign,
    })
}

/// Applies what is missing of `MIGRATIONS`, and returns the schema before. Two processes that open
/// a new file at once: the second finds nothing to do.
pub(super) fn migrate(
    connection: &mut Connection,
    path: &Path,
    migrations: &[Migration],
    instance: &str,
) -> Result<i64> {
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(tell)?;
    let schema: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(tell)?;
    let least = breaking(migrations, schema);
    if least.is_some() && schema > 0 {
        let nodes = living(&transaction, path)?;
        if !nodes.is_empty() {
            return Err(Error::OlderLives { path: path.to_owned(), nodes });
        }
    }
    let apply = || -> rusqlite::Result<()> {
        for (number, migration) in (1_i64..).zip(migrations).filter(|(number, _)| *number > schema) {
            transaction.execute_batch(migration.sql)?;
            transaction.pragma_update(None, "user_version", number)?;
        }
        if schema == 0 {
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.execute(sql!("made"), [instance])?;
            data_dir::record(&transaction, path)?;
        }
        if let Some(least) = least {
            transaction.execute(sql!("migration_least"), [least.to_string()])?;
        }
        Ok(())
    };
    apply().and_then(|()| transaction.commit()).map_err(tell)?;
    Ok(schema)
}

/// Nodes of this host that are alive. All of them are of older programs: newer ones have migrated
/// the file before they registered.
fn living(connection: &Connection, path: &Path) -> Result<Vec<String>> {
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    let mut statement = connection.prepare(sql!("migration_lives")).map_err(tell)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).map_err(tell)?;
    let sessions: Vec<(String, String)> = rows.collect::<rusqlite::Result<_>>().map_err(tell)?;
    let dir = data_dir::recorded(connection, path).map_err(tell)?;
    let (locks, mut nodes) = (SessionLocks::new(&dir), Vec::new());
    for (id, node) in sessions {
        let session = SessionId::parse(&id).ok_or_else(|| unreadable("session", &id))?;
        if matches!(locks.look(session)?, Life::Alive) {
            nodes.push(node);
        }
    }
    nodes.dedup();
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Open;
    use crate::contract::Sessions as _;
    use crate::model::NewSession;
    use crate::sqlite::SqliteStore;

    const FIRST: Migration = Migration::adds("CREATE TABLE extra (a INTEGER) STRICT");
    const SECOND: Migration = Migration::breaks("ALTER TABLE extra RENAME COLUMN a TO b");

    fn with(more: &[Migration]) -> Vec<Migration> {
        MIGRATIONS.iter().chain(more).copied().collect()
    }

    #[tokio::test]
    async fn what_older_programs_cannot_live_with_waits_until_none_lives() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        let older = SqliteStore::open(&path, Open::Create).expect("a store");
        older.register(NewSession::ephemeral("older:1", 1)).await.expect("a session");
        let mut newer = Connection::open(&path).expect("the file");
        let schema = |newer: &Connection| -> i64 {
            newer.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number")
        };
        migrate(&mut newer, &path, &with(&[FIRST]), "").expect("it only adds");
        assert_eq!(schema(&newer), KNOWN + 1);
        let refused = migrate(&mut newer, &path, &with(&[FIRST, SECOND]), "").expect_err("one lives");
        assert!(matches!(&refused, Error::OlderLives { nodes, .. } if nodes == &["older:1"]), "{refused}");
        assert_eq!(schema(&newer), KNOWN + 1, "nothing was changed");
        drop(older);
        let another = SqliteStore::open(&path, Open::Existing).expect_err("an older program");
        assert!(matches!(another, Error::Newer { .. }), "{another}");
        migrate(&mut newer, &path, &with(&[FIRST, SECOND]), "").expect("nobody lives any more");
        assert_eq!(schema(&newer), KNOWN + 2);
    }

    #[tokio::test]
    async fn older_program_that_is_open_registers_no_session_behind_what_it_cannot_live_with() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        let older = SqliteStore::open(&path, Open::Create).expect("a store");
        let mut newer = Connection::open(&path).expect("the file");
        migrate(&mut newer, &path, &with(&[FIRST]), "").expect("it only adds");
        let session = older.register(NewSession::ephemeral("older:1", 1)).await.expect("it goes on");
        let leaving = laneway_core::node_event::Leaving::because(laneway_core::node_event::LeaveReason::Done);
        older.retire(session, leaving).await.expect("a session that can end");
        migrate(&mut newer, &path, &with(&[FIRST, SECOND]), "").expect("nobody lives");
        let refused = older.register(NewSession::ephemeral("older:1", 1)).await.expect_err("too old");
        assert!(matches!(refused, Error::Newer { found, .. } if found == KNOWN + 2), "{refused}");
    }
}
