//! Moves an idle embedded store, with its logs and artifacts, to an empty schema of a Postgres
//! database.
//!
//! 1. The move acquires the write lock of the source, so that no process registers or changes
//!    anything meanwhile.
//! 2. One transaction on the target writes all rows, logs and artifacts. It commits with a mark,
//!    and a marked store cannot be opened.
//! 3. The caller compares both stores.
//! 4. The move marks the source as moved. Then it removes the mark of the target.
//!
//! A move that ends before step 4 leaves the source as it was. The next move empties the marked
//! target and starts again. If the source is marked already, it completes step 4 instead.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use rusqlite::types::Value;
use tokio_postgres::types::Type;

use crate::bytes::MAX_BLOB;
use crate::contract::{Sessions, Store};
use crate::error::{Error, Result};
use crate::postgres::{MoveTarget, PostgresStore};
use crate::sqlite::{MoveSource, SqliteStore};
use crate::{Open, Options};

/// Tables whose rows are not copied, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    ("meta", "each store has its own; the instance goes along"),
    ("sessions", "no session is alive"),
    ("takers", "belongs to sessions"),
    ("pools", "belongs to sessions"),
    ("pool_wishes", "belongs to sessions"),
    ("sqlite_sequence", "the counters of the target are set"),
    ("laneway_migrations", "the target has its own"),
    ("follow_ups", "an embedded store has none"),
    ("log_chunks", "filled from log files"),
];

/// Names of columns by table.
pub(crate) type SourceTables = BTreeMap<String, Vec<String>>;

/// Names and types of columns by table.
pub(crate) type TargetTables = BTreeMap<String, Vec<(String, Type)>>;

/// A table to copy, with its columns in the order of the target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TablePlan {
    pub(crate) name: String,
    pub(crate) columns: Vec<(String, Type)>,
}

impl TablePlan {
    /// Returns the statement that reads the table. It is built from the schema, so that a new table
    /// or column cannot be forgotten.
    fn select(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        // A process that died left the incomplete blobs behind.
        let whole = match self.name.as_str() {
            "blobs" => " WHERE is_whole = 1",
            "blob_chunks" => " WHERE hash IN (SELECT hash FROM blobs WHERE is_whole = 1)",
            _ => "",
        };
        format!("SELECT {} FROM \"{}\"{whole}", columns.join(", "), self.name)
    }
}

/// Returns the tables to copy.
///
/// # Errors
/// Describes how the two schemas differ if they do not match.
pub(crate) fn plan(source: &SourceTables, target: &TargetTables) -> Result<Vec<TablePlan>, String> {
    let is_left_out = |table: &str| LEFT_OUT.iter().any(|(name, _)| *name == table);
    let mut plans = Vec::new();
    for (name, columns) in source.iter().filter(|(name, _)| !is_left_out(name)) {
        let found = target.get(name).ok_or_else(|| format!("the target has no table {name}"))?;
        let (mut ours, mut theirs) = (columns.clone(), names(found));
        ours.sort_unstable();
        theirs.sort_unstable();
        if ours != theirs {
            return Err(format!("table {name} has other columns in the target"));
        }
        plans.push(TablePlan { name: name.clone(), columns: found.clone() });
    }
    Ok(plans)
}

fn names(columns: &[(String, Type)]) -> Vec<String> {
    columns.iter().map(|(name, _)| name.clone()).collect()
}

/// The state of a source beside its rows: instance, clock, schema and counters.
#[derive(Debug)]
pub(crate) struct SourceContents {
    pub(crate) instance: String,
    /// The latest moment that was written, in milliseconds.
    pub(crate) clock: i64,
    pub(crate) tables: SourceTables,
    /// The last number that was assigned, of tables that never reuse one.
    pub(crate) numbers: BTreeMap<String, i64>,
}

pub(crate) type Rows = Vec<Vec<Value>>;

/// The log of an attempt.
#[derive(Debug)]
pub(crate) struct LogFile {
    pub(crate) run_no: i64,
    pub(crate) position: i64,
    pub(crate) attempt: i64,
    pub(crate) path: PathBuf,
}

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Copied {
    /// Rows by table.
    pub rows: BTreeMap<String, u64>,
    pub logs: u64,
    pub artifacts: u64,
    /// Artifacts that the store names but does not have.
    pub missing: u64,
}

/// The result of [`begin`].
#[derive(Debug)]
pub enum Begun {
    Copied(Box<Move>),
    /// An earlier move had completed everything but its last step, which this call completed.
    Ended,
}

/// A move whose rows are in the target. Dropping it leaves the source as it was.
#[derive(Debug)]
pub struct Move {
    source: MoveSource,
    target: MoveTarget,
    /// The address of the new store, without a password.
    address: String,
    pub from: Arc<dyn Store>,
    pub to: Arc<dyn Store>,
    pub runs: Vec<RunId>,
    pub copied: Copied,
}

/// Copies a store to an empty one. Calls `report` with each table and the number of its rows so
/// far.
pub async fn begin(from: &Path, to: &str, options: &Options, report: &dyn Fn(&str, u64)) -> Result<Begun> {
    // The address that opens the new store, but without the password.
    let address = crate::without_password(to).unwrap_or_else(|| to.to_owned());
    let store = match SqliteStore::open(from, Open::Existing) {
        Err(Error::Moved { to: known, .. }) if known == address => {
            let instance = crate::sqlite::moved_instance(from)?;
            return match MoveTarget::open(to).await?.end(&instance).await? {
                true => Ok(Begun::Ended),
                false => Err(Error::Moved { path: from.to_owned(), to: known }),
            };
        }
        store => store?,
    };
    // Returns the tasks of dead processes to their queues.
    store.reap().await?;
    let (source, contents) = MoveSource::begin(from).await?;
    let mut target = MoveTarget::open(to).await?;
    let found = target.begin(&contents).await?;
    let plans =
        plan(&contents.tables, &found).map_err(|why| refuse(from, why, "use one version of Laneway"))?;
    let mut copied = Copied::default();
    for table in &plans {
        let mut rows = source.read(table.select())?;
        let copy = target.copy_rows(table, &mut rows, report).await?;
        copied.rows.insert(table.name.clone(), copy);
    }
    (copied.artifacts, copied.missing) = copy_artifacts(&store, &target, from, report).await?;
    let runs = store.all_runs().await?;
    for run in &runs {
        let logs = match store.logs_of(*run).await {
            Err(error) if error.is_about_what_is_stored() => {
                tracing::warn!(run = %run.short(), %error, "its logs are not copied: the run cannot be read");
                continue;
            }
            logs => logs?,
        };
        copied.logs += logs.len() as u64;
        target.copy_logs(&logs).await?;
        report("logs", copied.logs);
    }
    target.commit(&contents).await?;
    let opened = PostgresStore::open_half_moved(to, &options.data_dir)?;
    Ok(Begun::Copied(Box::new(Move {
        source,
        target,
        address,
        from: Arc::new(store),
        to: Arc::new(opened),
        runs,
        copied,
    })))
}

/// Copies artifacts, which are files beside an embedded store and blobs in a database.
async fn copy_artifacts(
    store: &SqliteStore,
    target: &MoveTarget,
    from: &Path,
    report: &dyn Fn(&str, u64),
) -> Result<(u64, u64)> {
    let (mut files, mut missing, mut large) = (Vec::new(), 0, Vec::new());
    for hash in store.file_hashes().await? {
        let path = store.dir().join("artifacts").join(hash.as_str());
        match std::fs::metadata(&path) {
            Ok(file) if file.len() > MAX_BLOB as u64 => large.push(hash),
            Ok(file) => files.push((hash, path, file.len())),
            Err(_) => missing += 1,
        }
    }
    if !large.is_empty() {
        let large: Vec<&str> = large.iter().map(ContentHash::as_str).collect();
        let why = format!("Postgres keeps no file above {} MiB: {}", MAX_BLOB >> 20, large.join(", "));
        return Err(refuse(from, why, "remove the runs that have them with `laneway prune`"));
    }
    target.copy_files(&files, report).await?;
    Ok((files.len() as u64, missing))
}

impl Move {
    /// Marks the source as moved, and opens the target for use.
    pub async fn end(self) -> Result<()> {
        let instance = self.from.instance().to_string();
        self.source.mark(&self.address).await?;
        self.target.end(&instance).await.map(drop)
    }
}

/// Opens a moved store again.
pub fn undo(path: &Path) -> Result<()> {
    crate::sqlite::undo_move(path)
}

pub(crate) fn refuse(path: &Path, why: String, advice: &str) -> Error {
    Error::CannotMove { path: path.to_owned(), why, advice: advice.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewSession;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_table_of_both_schemas_is_copied_or_left_out_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        drop(SqliteStore::open(&path, Open::Create).expect("a store"));
        let (_source, contents) = MoveSource::begin(&path).await.expect("an idle store");
        let url = crate::postgres::test_schema().await;
        let mut target = MoveTarget::open(&url).await.expect("a store");
        let found = target.begin(&contents).await.expect("an empty store");
        let plans = plan(&contents.tables, &found).expect("the same tables with the same columns");
        let is_named = |table: &String| {
            plans.iter().any(|plan| plan.name == *table) || LEFT_OUT.iter().any(|(name, _)| name == table)
        };
        let forgotten: Vec<&String> =
            contents.tables.keys().chain(found.keys()).filter(|table| !is_named(table)).collect();
        assert!(forgotten.is_empty(), "neither copied nor left out: {forgotten:?}");
        for (name, _) in LEFT_OUT {
            assert!(contents.tables.contains_key(*name) || found.contains_key(*name), "{name} is no table");
        }
    }

    #[tokio::test]
    async fn process_that_has_a_moved_store_open_changes_nothing_more() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        let open = SqliteStore::open(&path, Open::Create).expect("a store");
        let (source, _) = MoveSource::begin(&path).await.expect("an idle store");
        source.mark("postgres://db/lane's").await.expect("marked");
        let late = || open.register(NewSession::ephemeral("late:1", 1));
        let refused = late().await.expect_err("the store is elsewhere");
        assert!(matches!(&refused, Error::Moved { to, .. } if to == "postgres://db/lane's"), "{refused}");
        let refused = SqliteStore::open(&path, Open::Existing).expect_err("the store is elsewhere");
        assert!(matches!(refused, Error::Moved { .. }), "{refused}");
        undo(&path).expect("it was moved");
        late().await.expect("the store is here again");
        SqliteStore::open(&path, Open::Existing).expect("the store is here again");
    }

    #[test]
    fn a_table_or_a_column_that_only_one_side_has_is_refused() {
        let columns =
            |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).to_owned()).collect() };
        let typed = |names: &[&str]| columns(names).into_iter().map(|name| (name, Type::INT8)).collect();
        let source: SourceTables = [("runs".to_owned(), columns(&["no", "id"]))].into();
        let fits: TargetTables = [("runs".to_owned(), typed(&["id", "no"]))].into();
        let plans = plan(&source, &fits).expect("only the order differs");
        assert_eq!(plans[0].select(), "SELECT \"id\", \"no\" FROM \"runs\"");
        let lacks: TargetTables = [("runs".to_owned(), typed(&["no"]))].into();
        assert!(plan(&source, &lacks).is_err());
        assert!(plan(&source, &TargetTables::new()).is_err());
    }
}
