//! Brings a file to the schema this program knows: forward only, idempotent, all or nothing.

use rusqlite::{Connection, TransactionBehavior};

/// In order; the number of a migration is its place, from 1 on. Both databases have the same numbers.
const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_first.sql"),
    include_str!("migrations/0002_pools.sql"),
    include_str!("migrations/0003_wishes.sql"),
    include_str!("migrations/0004_rooms.sql"),
    include_str!("migrations/0005_waits.sql"),
    include_str!("migrations/0006_effects.sql"),
    include_str!("migrations/0007_growth.sql"),
    include_str!("migrations/0008_levels.sql"),
    include_str!("migrations/0009_cache.sql"),
    include_str!("migrations/0010_children.sql"),
    include_str!("migrations/0011_no_cache.sql"),
    include_str!("migrations/0012_token_parents.sql"),
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
        connection
            .query_row(include_str!("sql/look.sql"), [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok(match (application, tables) {
        (APPLICATION_ID, _) => Found::Store { schema },
        (0, 0) => Found::Empty,
        _ => Found::Foreign,
    })
}

/// Applies what is missing. Two processes that open a new file at once: the second finds nothing to do.
pub(super) fn migrate(connection: &mut Connection, instance: &str) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let schema: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for (index, migration) in MIGRATIONS.iter().enumerate() {
        if (index as i64) < schema {
            continue;
        }
        transaction.execute_batch(migration)?;
        transaction.pragma_update(None, "user_version", index as i64 + 1)?;
    }
    if schema == 0 {
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.execute(include_str!("sql/made.sql"), [instance])?;
    }
    transaction.commit()
}
