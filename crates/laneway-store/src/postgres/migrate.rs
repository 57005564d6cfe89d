//! Brings a schema of a database to what this program knows: forward only, idempotent, all or nothing, and by one
//! process at a time.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

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

pub(super) const KNOWN: i64 = MIGRATIONS.len() as i64;

/// What a first look at a server shows.
#[derive(Debug)]
pub(super) struct Server {
    /// 150004 for 15.4.
    pub(super) number: i64,
    pub(super) version: String,
    /// `ours` where what a connection is told at its start has arrived.
    pub(super) session: String,
    pub(super) found: Found,
}

/// What a schema turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Store {
        schema: i64,
    },
    /// Without any table of our names: ours to fill, whatever else is there.
    Empty,
    /// Tables of our names that are not ours.
    Foreign,
    /// There is no schema to make tables in.
    Nowhere,
}

/// Unnamed statements throughout: a pooler may stand in between, and each is said once.
pub(super) async fn look(client: &Client) -> Result<Server, tokio_postgres::Error> {
    let row = client.query_typed_one(include_str!("sql/look.sql"), &[]).await?;
    let (has_schema, is_store, tables): (bool, bool, i64) =
        (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
    let found = match (has_schema, is_store, tables) {
        (false, _, _) => Found::Nowhere,
        (true, true, _) => Found::Store { schema: schema(client).await? },
        (true, false, 0) => Found::Empty,
        (true, false, _) => Found::Foreign,
    };
    Ok(Server { number: row.try_get(0)?, version: row.try_get(1)?, session: row.try_get(2)?, found })
}

async fn schema(client: &Client) -> Result<i64, tokio_postgres::Error> {
    client.query_typed_one(include_str!("sql/migration_last.sql"), &[]).await?.try_get(0)
}

/// Applies what is missing. Of two processes that open a new store at once the second waits, and finds nothing to do.
pub(super) async fn migrate(client: &mut Client) -> Result<(), tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    // Larger stores take longer than a statement usually may.
    transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
    transaction.query_typed(include_str!("sql/migration_lock.sql"), &[]).await?;
    transaction.batch_execute(include_str!("sql/migration_table.sql")).await?;
    let schema: i64 =
        transaction.query_typed_one(include_str!("sql/migration_last.sql"), &[]).await?.try_get(0)?;
    for (number, migration) in (1_i64..).zip(MIGRATIONS).filter(|(number, _)| *number > schema) {
        transaction.batch_execute(migration).await?;
        let add = include_str!("sql/migration_add.sql");
        transaction.query_typed(add, &[(&number, Type::INT8)]).await?;
    }
    if schema == 0 {
        let instance = Uuid::now_v7().to_string();
        transaction.query_typed(include_str!("sql/made.sql"), &[(&instance, Type::TEXT)]).await?;
    }
    transaction.commit().await
}

pub(super) async fn instance(client: &Client) -> Result<String, tokio_postgres::Error> {
    client.query_typed_one(include_str!("sql/instance.sql"), &[]).await?.try_get(0)
}
