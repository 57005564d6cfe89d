//! The Postgres that all of them share: a database for each subject and round, and what the server counts of it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tokio_postgres::{Client, NoTls};

/// Statements are counted by an extension that stands by until a database asks for it (`cargo xtask bench` loads it).
const COUNT_STATEMENTS: &str = "pg_stat_statements.track = 'top'";

/// What the server counted between two looks, for a task.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct Cost {
    pub(crate) commits: f64,
    pub(crate) statements: f64,
    pub(crate) wal_bytes: f64,
    pub(crate) syncs: f64,
}

/// Ever-growing counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Counts {
    commits: i64,
    statements: i64,
    wal_bytes: i64,
    syncs: i64,
}

impl Counts {
    pub(crate) fn per_task(self, before: Self, tasks: usize) -> Cost {
        let each = |now: i64, then: i64| (now - then) as f64 / tasks as f64;
        Cost {
            commits: each(self.commits, before.commits),
            statements: each(self.statements, before.statements),
            wal_bytes: each(self.wal_bytes, before.wal_bytes),
            syncs: each(self.syncs, before.syncs),
        }
    }
}

/// A running server, as its superuser sees it.
#[derive(Debug)]
pub(crate) struct Server {
    /// `postgres://…/` without a database.
    base: String,
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Server {
    /// All subjects connect in one way: over TCP on this host, without TLS.
    pub(crate) fn connect(base: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("no runtime")?;
        let base = base.trim_end_matches('/').to_owned();
        let client = runtime.block_on(async {
            let (client, line) =
                tokio_postgres::connect(&format!("{base}/postgres?sslmode=disable"), NoTls).await?;
            tokio::spawn(line);
            client.batch_execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements").await?;
            Ok::<_, tokio_postgres::Error>(client)
        });
        Ok(Self { base, client: client.context("the private Postgres cannot be used")?, runtime })
    }

    pub(crate) fn url(&self, database: &str) -> String {
        format!("{}/{database}?sslmode=disable", self.base)
    }

    /// An empty database, in the place of a former one. What others left to be written is written before, so that it is
    /// not done at the expense of whoever comes next.
    pub(crate) fn fresh(&self, database: &str, is_counted: bool) -> Result<()> {
        let counted = if is_counted {
            format!("ALTER DATABASE {database} SET {COUNT_STATEMENTS}")
        } else {
            String::new()
        };
        let words = [
            format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)"),
            format!("CREATE DATABASE {database}"),
            counted,
            "CHECKPOINT".to_owned(),
        ];
        self.runtime.block_on(async {
            for words in words.iter().filter(|words| !words.is_empty()) {
                self.client.batch_execute(words).await.with_context(|| words.clone())?;
            }
            Ok(())
        })
    }

    pub(crate) fn drop(&self, database: &str) -> Result<()> {
        let words = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
        self.runtime.block_on(self.client.batch_execute(&words)).context(words)
    }

    /// Processes of the server tell what they counted when they are idle, and when they end: looked at until two looks are
    /// alike.
    pub(crate) fn counts(&self, database: &str) -> Result<Counts> {
        let settled = async {
            let mut last = None;
            loop {
                let now = {
                    let row = self.client.query_one(COUNTS, &[&database]).await?;
                    Counts {
                        commits: row.try_get(0)?,
                        wal_bytes: row.try_get(1)?,
                        syncs: row.try_get(2)?,
                        statements: row.try_get(3)?,
                    }
                };
                if last == Some(now) {
                    return Ok::<_, tokio_postgres::Error>(now);
                }
                last = Some(now);
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        self.runtime.block_on(settled).context("the server's counts cannot be read")
    }

    /// One number, asked of a database.
    pub(crate) fn number(&self, database: &str, sql: &str) -> Result<i64> {
        let url = self.url(database);
        self.runtime
            .block_on(async {
                let (client, line) = tokio_postgres::connect(&url, NoTls).await?;
                tokio::spawn(line);
                client.query_one(sql, &[]).await?.try_get(0)
            })
            .with_context(|| format!("`{sql}` on {database}"))
    }
}

const COUNTS: &str =
    "SELECT (SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1), wal_bytes::bigint,
    wal_sync, (SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements
               JOIN pg_database ON pg_database.oid = dbid WHERE datname = $1)
    FROM pg_stat_wal";
