//! The store of a case, looked at beneath the product: a schema of its own, read with `psql`, and what is added to it so
//! that the end of every session is on record.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::node::name;
use crate::shell::program;

/// Who ended which session, and whether that was right by then. Sessions leave no trace otherwise.
const AUDIT: &str = "
CREATE TABLE torture_ends (
    at BIGINT NOT NULL, victim TEXT NOT NULL, node TEXT NOT NULL, expires_at BIGINT NOT NULL, by TEXT NOT NULL,
    has_renewed BOOLEAN NOT NULL, server_started_at BIGINT NOT NULL
);
CREATE FUNCTION torture_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO torture_ends
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint, OLD.id, OLD.node, OLD.expires_at,
           current_setting('application_name'),
           EXISTS (SELECT 1 FROM sessions WHERE node = current_setting('application_name') AND id <> OLD.id
                   AND renewed_at >= OLD.expires_at),
           (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint;
    RETURN OLD;
END $$;
CREATE TRIGGER torture_end BEFORE DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION torture_end();
";

/// A schema of the private Postgres.
#[derive(Debug, Clone)]
pub(in crate::torture) struct Store {
    /// Through the server's socket, whatever becomes of the network.
    url: String,
    schema: String,
}

impl Store {
    pub(in crate::torture) fn make(server: &str, schema: &str) -> Result<Self> {
        let store = Self { url: server.to_owned(), schema: schema.to_owned() };
        store.psql(&format!("CREATE SCHEMA {schema}"))?;
        Ok(store)
    }

    /// Once the tables are there.
    pub(super) fn audit(&self) -> Result<()> {
        self.psql(AUDIT).map(drop)
    }

    /// How many deadlocks the server has parted.
    pub(super) fn deadlocks(&self) -> Result<u64> {
        let counted = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
        self.count(counted)
    }

    pub(in crate::torture) fn remove(&self) -> Result<()> {
        self.psql(&format!("DROP SCHEMA {} CASCADE", self.schema)).map(drop)
    }

    /// For `--store`, on this machine.
    pub(in crate::torture) fn address(&self) -> String {
        format!("{}?{}&application_name=person", self.url, self.options())
    }

    /// For `--store`, for a node, which has its connections named after it.
    pub(super) fn address_for(&self, node: usize, host: &str, port: u16) -> String {
        format!(
            "postgres://laneway:laneway@{host}:{port}/postgres?{}&application_name={}&sslmode=disable",
            self.options(),
            name(node)
        )
    }

    fn options(&self) -> String {
        format!("options=-csearch_path%3D{}", self.schema)
    }

    /// The rows of a query, each as a JSON object.
    pub(super) fn rows<T: DeserializeOwned>(&self, query: &str) -> Result<Vec<T>> {
        let text = self.psql(&format!("SELECT coalesce(json_agg(found), '[]') FROM ({query}) AS found"))?;
        serde_json::from_str(&text).with_context(|| format!("what `{query}` gives"))
    }

    pub(super) fn count(&self, query: &str) -> Result<u64> {
        Ok(self.psql(query)?.trim().parse()?)
    }

    fn psql(&self, words: &str) -> Result<String> {
        let mut psql = program("psql");
        psql.arg(format!("{}?{}", self.url, self.options()));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]);
        let output = psql.args(["--command", words]).env("PGCONNECT_TIMEOUT", "5").output();
        let output = output.context("psql cannot be started; install Debian's package postgresql-client")?;
        if !output.status.success() {
            bail!("psql: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8(output.stdout)?)
    }
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
pub(super) struct Session {
    pub(super) node: String,
    pub(super) pid: u32,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) key: Option<String>,
    pub(super) status: String,
    pub(super) last_event: u64,
    pub(super) unsettled: u64,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Task {
    pub(super) run: String,
    pub(super) step: usize,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) attempt: u32,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Attempt {
    pub(super) run: String,
    pub(super) step: usize,
    pub(super) attempt: u32,
    pub(super) outcome: String,
    pub(super) reason: Option<String>,
}

#[derive(Debug, serde::Deserialize)]
pub(super) struct Event {
    pub(super) run: String,
    pub(super) seq: u64,
    pub(super) at: i64,
    pub(super) name: String,
    pub(super) body: Value,
}

/// The end of a session.
#[derive(Debug, serde::Deserialize)]
pub(super) struct End {
    pub(super) at: i64,
    pub(super) node: String,
    pub(super) expires_at: i64,
    pub(super) by: String,
    pub(super) has_renewed: bool,
    pub(super) server_started_at: i64,
}

/// Everything of a case that the checker looks at.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) runs: Vec<Run>,
    pub(super) tasks: Vec<Task>,
    pub(super) attempts: Vec<Attempt>,
    pub(super) events: BTreeMap<String, Vec<Event>>,
    pub(super) ends: Vec<End>,
    /// What must be empty when all is over, with how many rows it has.
    pub(super) left: Vec<(&'static str, u64)>,
}

impl Rows {
    pub(super) fn read(store: &Store) -> Result<Self> {
        let events: Vec<Event> = store.rows(
            "SELECT runs.id AS run, seq, at, name, body::json FROM events JOIN runs ON runs.no = run_no
             ORDER BY run_no, seq",
        )?;
        let mut of_runs: BTreeMap<String, Vec<Event>> = BTreeMap::new();
        for event in events {
            of_runs.entry(event.run.clone()).or_default().push(event);
        }
        let left = ["sessions", "takers", "holds", "orders", "quarantine"];
        let left = left.map(|table| Ok((table, store.count(&format!("SELECT count(*) FROM {table}"))?)));
        let rows = Self {
            runs: store.rows("SELECT id, key, status, last_event, unsettled FROM runs ORDER BY no")?,
            tasks: store.rows(
                "SELECT runs.id AS run, position AS step, tasks.status, tasks.reason, attempt
                 FROM tasks JOIN runs ON runs.no = run_no ORDER BY run_no, position",
            )?,
            attempts: store.rows(
                "SELECT runs.id AS run, position AS step, attempt, outcome, attempts.reason
                 FROM attempts JOIN runs ON runs.no = run_no ORDER BY run_no, position, attempt",
            )?,
            ends: store.rows(
                "SELECT at, node, expires_at, by, has_renewed, server_started_at FROM torture_ends ORDER BY at",
            )?,
            events: of_runs,
            left: left.into_iter().collect::<Result<_>>()?,
        };
        ensure!(rows.runs.len() < 10_000, "a case is small");
        Ok(rows)
    }
}
