//! Brings a file to the schema this program knows: forward only, idempotent, all or nothing.

use rusqlite::{Connection, TransactionBehavior};

/// In order; the number of a migration is its place, from 1 on. Both databases have the same numbers.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001_first.sql")];

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
        transaction.execute("INSERT INTO meta (key, value) VALUES ('instance', ?1)", [instance])?;
        transaction.execute("INSERT INTO meta (key, value) VALUES ('clock', '0')", [])?;
    }
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statement that misses its index reads every task of a run, and a run becomes quadratic.
    #[test]
    fn every_statement_uses_the_index_that_its_head_names() {
        let mut connection = Connection::open_in_memory().expect("memory");
        migrate(&mut connection, "test").expect("a schema");
        let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite/sql");
        let mut checked = 0;
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let sql = std::fs::read_to_string(&path).expect("a statement");
            let Some((_, rest)) = sql.split_once("Index: ") else { continue };
            let index =
                rest.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next().unwrap_or_default();
            let mut explain = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("valid SQL");
            let count = explain.parameter_count();
            let plan: Vec<String> = explain
                .query_map(rusqlite::params_from_iter(vec![rusqlite::types::Null; count]), |row| row.get(3))
                .expect("a plan")
                .collect::<rusqlite::Result<_>>()
                .expect("a plan");
            assert!(plan.iter().any(|line| line.contains(index)), "{}: {plan:#?}", path.display());
            checked += 1;
        }
        assert!(checked >= 6, "only {checked} statements name an index");
    }
}
