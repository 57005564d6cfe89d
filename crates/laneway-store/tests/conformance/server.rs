//! The Postgres that the tests share, and a schema of it for each of them.

use laneway_store::Open;
use laneway_store::postgres::PostgresStore;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Set by `cargo xtask test`.
const VARIABLE: &str = "LANEWAY_TEST_POSTGRES";

/// A test that needs it and does not find it fails: nothing is left out in silence.
pub(crate) fn url() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set: run `cargo xtask test`, or `cargo xtask postgres` in another terminal and export \
             what it prints"
        )
    })
}

/// A schema of its own.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) url: String,
    dir: TempDir,
}

impl Schema {
    pub(crate) async fn new() -> Self {
        let name = format!("t{}", Uuid::now_v7().simple());
        let admin = admin().await;
        admin.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("a schema");
        let url = format!("{}?options=-csearch_path%3D{name}", url());
        Self { name, url, dir: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn open(&self) -> PostgresStore {
        self.try_open(Open::Create).expect("a store that opens")
    }

    pub(crate) fn try_open(&self, mode: Open) -> laneway_store::Result<PostgresStore> {
        PostgresStore::open(&self.url, self.dir.path(), mode)
    }

    /// A connection that looks beneath the verbs.
    pub(crate) async fn beneath(&self) -> Client {
        connect(&self.url).await
    }
}

pub(crate) async fn admin() -> Client {
    connect(&url()).await
}

async fn connect(url: &str) -> Client {
    let (client, line) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(line);
    client
}
