//! The Postgres that the tests share, and a schema of it for each of them.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use laneway_store::Open;
use laneway_store::postgres::PostgresStore;
use laneway_store::sqlite::Clock;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Set by `cargo xtask test`.
const VARIABLE: &str = "LANEWAY_TEST_POSTGRES";

/// In a store's directory: where it is, for those who look beneath the verbs.
const ADDRESS: &str = "address";

/// A test that needs it and does not find it fails: nothing is left out in silence.
pub(crate) fn url() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set: run `cargo xtask test`, or `cargo xtask postgres` in another terminal and export \
             what it prints"
        )
    })
}

/// The pooler in front of it.
const POOLER: &str = "LANEWAY_TEST_POOLER";

/// Whether stores of this suite go through the pooler.
const THROUGH: &str = "LANEWAY_TEST_THROUGH_POOLER";

/// A schema of its own; behind a pooler, which refuses to be told of schemas, a database.
pub(crate) struct Schema {
    pub(crate) name: String,
    pub(crate) url: String,
    /// Without a pooler in between.
    direct: String,
    /// In which its tables are.
    within: String,
    dir: TempDir,
}

impl Schema {
    pub(crate) fn new() -> Self {
        if std::env::var_os(THROUGH).is_some() { Self::pooled() } else { Self::plain() }
    }

    pub(crate) fn pooled() -> Self {
        let pooler = std::env::var(POOLER).unwrap_or_else(|_| {
            panic!("{POOLER} is not set: run `cargo xtask test`, or `cargo xtask postgres`")
        });
        let name = format!("t{}", Uuid::now_v7().simple());
        let make = format!("CREATE DATABASE {name}");
        at_once(async move { connect(&url()).await.batch_execute(&make).await.expect("a database") });
        let within =
            |url: &str| format!("{}/{name}", url.rsplit_once('/').expect("a URL names a database").0);
        Self::at(name.clone(), (within(&pooler), within(&url())), "public")
    }

    /// A database of its own, also without a pooler: what the server counts is of this test alone.
    pub(crate) fn alone() -> Self {
        if std::env::var_os(THROUGH).is_some() {
            return Self::pooled();
        }
        let name = format!("t{}", Uuid::now_v7().simple());
        let make = format!("CREATE DATABASE {name}");
        at_once(async move { connect(&url()).await.batch_execute(&make).await.expect("a database") });
        let url = format!("{}/{name}", url().rsplit_once('/').expect("a URL names a database").0);
        Self::at(name, (url.clone(), url), "public")
    }

    /// How many transactions of its database the server has ended in deadlocks. Its stores are
    /// closed: a connection counts at its end.
    pub(crate) async fn deadlocks(&self) -> i64 {
        let look = connect(&url()).await;
        let open = "SELECT 1 FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'";
        let closed = async { while !look.query(open, &[&self.name]).await.expect("an answer").is_empty() {} };
        tokio::time::timeout(Duration::from_secs(20), closed).await.expect("all connections are closed");
        let counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = $1";
        look.query_one(counted, &[&self.name]).await.expect("a row").get(0)
    }

    fn plain() -> Self {
        let name = format!("t{}", Uuid::now_v7().simple());
        let make = format!("CREATE SCHEMA {name}");
        at_once(async move { connect(&url()).await.batch_execute(&make).await.expect("a schema") });
        let url = format!("{}?options=-csearch_path%3D{name}", url());
        Self::at(name.clone(), (url.clone(), url), &name)
    }

    fn at(name: String, (url, direct): (String, String), within: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join(ADDRESS), &direct).expect("a file");
        Self { name, url, direct, within: within.to_owned(), dir }
    }

    pub(crate) fn open(&self) -> PostgresStore {
        self.try_open(Open::Create).expect("a store that opens")
    }

    pub(crate) fn open_by(&self, clock: &Arc<Clock>) -> PostgresStore {
        let opened = PostgresStore::open_with(&self.url, self.dir.path(), Open::Create, Arc::clone(clock));
        opened.expect("a store that opens")
    }

    pub(crate) fn try_open(&self, mode: Open) -> laneway_store::Result<PostgresStore> {
        PostgresStore::open(&self.url, self.dir.path(), mode)
    }

    /// Where its stores keep their files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The schema in which its tables are.
    pub(crate) fn within(&self) -> &str {
        &self.within
    }

    /// A connection that looks beneath the verbs.
    pub(crate) async fn beneath(&self) -> Client {
        connect(&self.direct).await
    }
}

/// Beneath the verbs of the store that lives here, if that is on Postgres.
pub(crate) async fn beneath(dir: &Path) -> Option<Client> {
    let url = std::fs::read_to_string(dir.join(ADDRESS)).ok()?;
    Some(connect(&url).await)
}

/// Runs to its end, on a thread of its own: where nobody can wait.
pub(crate) fn at_once<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let thread = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(work)
    });
    thread.join().expect("a thread that ends")
}

async fn connect(url: &str) -> Client {
    let (client, line) = tokio_postgres::connect(url, NoTls).await.expect("a connection");
    tokio::spawn(line);
    client
}
