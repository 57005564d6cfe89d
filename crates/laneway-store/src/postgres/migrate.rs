//! Brings a schema of a database to what this program knows: forward only, idempotent, all or
//! nothing, and by one process at a time.

use tokio_postgres::Client;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::migration::{Migration, breaking};
use crate::postgres::statements::statement;

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

impl Found {
    /// How many migrations it has.
    pub(super) fn schema(self) -> i64 {
        match self {
            Self::Store { schema } => schema,
            Self::Empty | Self::Foreign | Self::Nowhere => 0,
        }
    }
}

/// Unnamed statements throughout: a pooler may stand in between, and each is said once.
pub(super) async fn look(client: &Client) -> Result<Server, tokio_postgres::Error> {
    let row = client.query_typed_one(statement!("look"), &[]).await?;
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
    client.query_typed_one(statement!("migration_last"), &[]).await?.try_get(0)
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Migrated {
    /// The schema has all migrations now; it had so many before.
    From(i64),
    /// Nothing was changed: these nodes live, and could not go on. All of them are of older
    /// programs: newer ones have migrated the schema before they registered.
    OlderLive(Vec<String>),
}

/// Applies what is missing of `MIGRATIONS`. Of two processes that open a new store at once the
/// second waits, and finds nothing to do.
pub(super) async fn migrate(
    client: &mut Client,
    migrations: &[Migration],
) -> Result<Migrated, tokio_postgres::Error> {
    let transaction = client.transaction().await?;
    // Larger stores take longer than a statement usually may.
    transaction.batch_execute("SET LOCAL statement_timeout = 0").await?;
    transaction.query_typed(statement!("migration_lock"), &[]).await?;
    transaction.batch_execute(statement!("migration_table")).await?;
    let schema: i64 = transaction.query_typed_one(statement!("migration_last"), &[]).await?.try_get(0)?;
    let least = breaking(migrations, schema);
    if least.is_some() && schema > 0 {
        transaction.batch_execute(statement!("migration_alone")).await?;
        let living = transaction.query_typed(statement!("migration_lives"), &[]).await?;
        if !living.is_empty() {
            let nodes = living.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            return Ok(Migrated::OlderLive(nodes));
        }
    }
    for (number, migration) in (1_i64..).zip(migrations).filter(|(number, _)| *number > schema) {
        transaction.batch_execute(migration.sql).await?;
        let add = statement!("migration_add");
        transaction.query_typed(add, &[(&number, Type::INT8)]).await?;
    }
    if schema == 0 {
        let instance = Uuid::now_v7().to_string();
        transaction.query_typed(statement!("made"), &[(&instance, Type::TEXT)]).await?;
    }
    if let Some(least) = least {
        let say = statement!("migration_least");
        transaction.query_typed(say, &[(&least.to_string(), Type::TEXT)]).await?;
    }
    transaction.commit().await?;
    Ok(Migrated::From(schema))
}

pub(super) async fn instance(client: &Client) -> Result<String, tokio_postgres::Error> {
    client.query_typed_one(statement!("instance"), &[]).await?.try_get(0)
}

/// Returns whether a move into the store is unfinished.
pub(super) async fn is_half_moved(client: &Client) -> Result<bool, tokio_postgres::Error> {
    Ok(!client.query_typed(statement!("moving_from"), &[]).await?.is_empty())
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use tokio_postgres::NoTls;

    use super::*;
    use crate::contract::Sessions as _;
    use crate::model::NewSession;
    use crate::postgres::PostgresStore;
    use crate::{Error, Open};

    const FIRST: Migration = Migration::adds("CREATE TABLE extra (a BIGINT)");
    const SECOND: Migration = Migration::breaks("ALTER TABLE extra RENAME COLUMN a TO b");

    fn with(more: &[Migration]) -> Vec<Migration> {
        MIGRATIONS.iter().chain(more).copied().collect()
    }

    async fn connect(url: &str) -> Client {
        let (client, line) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
        tokio::spawn(line);
        client
    }

    /// A schema of its own on the tests' server, as a URL.
    pub(crate) async fn test_schema() -> String {
        let server = std::env::var("LANEWAY_TEST_POSTGRES").expect("run this with `cargo xtask postgres`");
        let name = format!("t{}", Uuid::now_v7().simple());
        let make = format!("CREATE SCHEMA {name}");
        connect(&server).await.batch_execute(&make).await.expect("a schema");
        format!("{server}?options=-csearch_path%3D{name}")
    }

    /// A store of this program in a schema of its own, and a connection to it for a newer one.
    async fn place(dir: &Path) -> (PostgresStore, Client) {
        let url = test_schema().await;
        let older = PostgresStore::open(&url, dir, Open::Create).expect("a store");
        (older, connect(&url).await)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn what_older_programs_cannot_live_with_waits_until_none_lives() {
        let dir = tempfile::tempdir().expect("a directory");
        let (older, mut newer) = place(dir.path()).await;
        let session = older.register(NewSession::ephemeral("older:1", 1)).await.expect("a session");
        let added = migrate(&mut newer, &with(&[FIRST])).await.expect("it only adds");
        assert_eq!((added, schema(&newer).await.expect("a number")), (Migrated::From(KNOWN), KNOWN + 1));
        let refused = migrate(&mut newer, &with(&[FIRST, SECOND])).await.expect("an answer");
        assert_eq!(refused, Migrated::OlderLive(vec!["older:1".to_owned()]));
        assert_eq!(schema(&newer).await.expect("a number"), KNOWN + 1, "nothing was changed");
        let leaving = laneway_core::node_event::Leaving::because(laneway_core::node_event::LeaveReason::Done);
        older.retire(session, leaving).await.expect("a session that can end");
        let broken = migrate(&mut newer, &with(&[FIRST, SECOND])).await.expect("an answer");
        assert_eq!((broken, schema(&newer).await.expect("a number")), (Migrated::From(KNOWN + 1), KNOWN + 2));
        let refused = older.register(NewSession::ephemeral("older:1", 1)).await.expect_err("too old");
        assert!(matches!(refused, Error::Newer { found, .. } if found == KNOWN + 2), "{refused}");
    }
}
