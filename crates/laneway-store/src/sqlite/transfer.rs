//! The embedded side of a move: one connection that holds the write lock and streams rows, and the
//! mark that makes a moved store refuse every process, also one that has had it open.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use rusqlite::{Connection, OptionalExtension as _, params};
use tokio::sync::{mpsc as rows, oneshot};

use super::txn::Done;
use super::{SqliteStore, connect, fault};
use crate::bytes::log_path;
use crate::error::{Error, Result};
use crate::keeper::unreadable;
use crate::sqlite::statements::sql;
use crate::transfer::{LogFile, Rows, SourceContents, SourceTables, refuse};

/// Rows that are handed over at once, unless their size reaches `BATCH_BYTES` before.
const BATCH_ROWS: usize = 1_000;
const BATCH_BYTES: usize = 1 << 20;

/// Batches that are read ahead.
const BATCHES_AHEAD: usize = 2;

/// What begins the message of the triggers of a moved store, before the address of the new one.
pub(super) const MOVED_TO: &str = "moved to ";

/// The connection that holds the write lock, on a thread of its own. The lock is released when
/// this is dropped.
#[derive(Debug)]
pub(crate) struct MoveSource {
    requests: mpsc::Sender<Request>,
}

enum Request {
    Read { select: String, to: rows::Sender<Result<Rows>> },
    Mark { target: String, done: oneshot::Sender<Result<()>> },
}

impl MoveSource {
    /// Takes the write lock of an idle store.
    pub(crate) async fn begin(path: &Path) -> Result<(Self, SourceContents)> {
        let (requests, received) = mpsc::channel();
        let (begun, answer) = oneshot::channel();
        let path = path.to_owned();
        let serve = move || match begin(&path) {
            Ok((connection, contents)) => {
                if begun.send(Ok(contents)).is_ok() {
                    serve(connection, &path, &received);
                }
            }
            Err(error) => drop(begun.send(Err(error))),
        };
        let thread = std::thread::Builder::new().name("laneway-move".to_owned()).spawn(serve);
        thread.map_err(|error| Error::Closed { why: error.to_string() })?;
        let contents = answer.await.map_err(|error| Error::Closed { why: error.to_string() })??;
        Ok((Self { requests }, contents))
    }

    /// Reads the rows of a statement.
    pub(crate) fn read(&self, select: String) -> Result<rows::Receiver<Result<Rows>>> {
        let (to, batches) = rows::channel(BATCHES_AHEAD);
        self.request(Request::Read { select, to })?;
        Ok(batches)
    }

    /// Marks the store as moved.
    pub(crate) async fn mark(self, target: &str) -> Result<()> {
        let (done, answer) = oneshot::channel();
        self.request(Request::Mark { target: target.to_owned(), done })?;
        answer.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    fn request(&self, request: Request) -> Result<()> {
        self.requests.send(request).map_err(|error| Error::Closed { why: error.to_string() })
    }
}

fn begin(path: &Path) -> Result<(Connection, SourceContents)> {
    let connection = connect::writer(path)?;
    let explain = |error: rusqlite::Error| fault::explain(&error, path);
    connection.execute_batch("BEGIN IMMEDIATE").map_err(explain)?;
    let (nodes, running, contents) = look(&connection).map_err(explain)?;
    if !nodes.is_empty() {
        let why = format!("it is in use by {}", nodes.join(", "));
        return Err(refuse(path, why, "stop them, or wait until they end, and move it again"));
    }
    if running > 0 {
        let why = format!("{running} of its tasks are running");
        return Err(refuse(path, why, "`laneway doctor` says which of its runs cannot be read"));
    }
    Ok((connection, contents))
}

fn look(connection: &Connection) -> rusqlite::Result<(Vec<String>, u64, SourceContents)> {
    let nodes = connection
        .prepare(sql!("move_sessions"))?
        .query_map([], |row| Ok(format!("{} (process {})", row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let running = connection.query_row(sql!("move_running"), [], |row| row.get(0))?;
    let mut tables = SourceTables::new();
    let mut columns = connection.prepare(sql!("move_columns"))?;
    let mut rows = columns.query([])?;
    while let Some(row) = rows.next()? {
        tables.entry(row.get(0)?).or_default().push(row.get(1)?);
    }
    let numbers: BTreeMap<String, i64> = connection
        .prepare(sql!("move_numbers"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let contents = SourceContents {
        instance: connection.query_row(sql!("instance"), [], |row| row.get(0))?,
        clock: connection.query_row(sql!("clock_read"), [], |row| row.get(0))?,
        tables,
        numbers,
    };
    Ok((nodes, running, contents))
}

/// Serves requests until their sender is dropped. Without a mark the transaction is rolled back.
fn serve(connection: Connection, path: &Path, requests: &mpsc::Receiver<Request>) {
    for request in requests {
        match request {
            Request::Read { select, to } => {
                if let Err(error) = stream(&connection, &select, &to) {
                    let _ = to.blocking_send(Err(fault::explain(&error, path)));
                }
            }
            Request::Mark { target, done } => {
                let marked = mark(&connection, &target).map_err(|error| fault::explain(&error, path));
                let _ = done.send(marked);
                return;
            }
        }
    }
}

fn stream(connection: &Connection, select: &str, to: &rows::Sender<Result<Rows>>) -> rusqlite::Result<()> {
    let mut statement = connection.prepare(select)?;
    let width = statement.column_count();
    let mut found = statement.query([])?;
    let (mut batch, mut size) = (Rows::new(), 0);
    while let Some(row) = found.next()? {
        let mut values = Vec::with_capacity(width);
        for column in 0..width {
            let value: rusqlite::types::Value = row.get(column)?;
            size += match &value {
                rusqlite::types::Value::Text(text) => text.len(),
                rusqlite::types::Value::Blob(bytes) => bytes.len(),
                _ => size_of::<i64>(),
            };
            values.push(value);
        }
        batch.push(values);
        if batch.len() >= BATCH_ROWS || size >= BATCH_BYTES {
            size = 0;
            if to.blocking_send(Ok(std::mem::take(&mut batch))).is_err() {
                return Ok(());
            }
        }
    }
    if !batch.is_empty() {
        let _ = to.blocking_send(Ok(batch));
    }
    Ok(())
}

/// Records where the store went, and makes every table refuse changes.
fn mark(connection: &Connection, target: &str) -> rusqlite::Result<()> {
    connection.execute(sql!("move_mark"), [target])?;
    let message = format!("{MOVED_TO}{target}").replace('\'', "''");
    for table in tables(connection)? {
        for change in ["INSERT", "UPDATE", "DELETE"] {
            connection.execute_batch(&format!(
                "CREATE TRIGGER \"{}\" BEFORE {change} ON \"{table}\" BEGIN SELECT RAISE(ABORT, '{message}'); END",
                trigger(&table, change)
            ))?;
        }
    }
    connection.execute_batch("COMMIT")
}

fn trigger(table: &str, change: &str) -> String {
    format!("moved_{table}_{}", change.to_ascii_lowercase())
}

/// Names of tables that are the store's own and no part of SQLite.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut names: Vec<String> = connection
        .prepare(sql!("move_columns"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    names.dedup();
    names.retain(|name| !name.starts_with("sqlite_"));
    Ok(names)
}

/// Returns where an open store went, if it was moved.
pub(super) fn moved_to(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.query_row(sql!("move_target"), [], |row| row.get(0)).optional()
}

/// Returns the instance of a store that was moved.
pub(crate) fn moved_instance(path: &Path) -> Result<String> {
    let connection = connect::reader(path)?;
    connection.query_row(sql!("instance"), [], |row| row.get(0)).map_err(|error| fault::explain(&error, path))
}

/// Opens a moved store again.
pub(crate) fn undo_move(path: &Path) -> Result<()> {
    if !path.exists() {
        return Err(Error::Missing { path: path.to_owned() });
    }
    let mut connection = connect::writer(path)?;
    let undo = || -> rusqlite::Result<bool> {
        let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        if moved_to(&transaction)?.is_none() {
            return Ok(false);
        }
        for table in tables(&transaction)? {
            for change in ["INSERT", "UPDATE", "DELETE"] {
                transaction.execute_batch(&format!("DROP TRIGGER \"{}\"", trigger(&table, change)))?;
            }
        }
        transaction.execute(sql!("move_unmark"), [])?;
        transaction.commit()?;
        Ok(true)
    };
    let mut undo = undo;
    match undo().map_err(|error| fault::explain(&error, path))? {
        true => Ok(()),
        false => {
            Err(refuse(path, "it was not moved".to_owned(), "leave --undo out, and say where to with --to"))
        }
    }
}

impl SqliteStore {
    /// Returns all runs, oldest first.
    pub(crate) async fn all_runs(&self) -> Result<Vec<RunId>> {
        self.read(|connection, _| {
            let mut statement = connection.prepare(sql!("move_runs"))?;
            let ids =
                statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            let parse = |id: &String| Ok(RunId::parse(id).ok_or_else(|| unreadable("run id", id))?);
            ids.iter().map(parse).collect()
        })
        .await
    }

    /// Returns the log files of a run.
    pub(crate) async fn logs_of(&self, run: RunId) -> Result<Vec<LogFile>> {
        let dir: PathBuf = self.dir.clone();
        if !dir.join("logs").join(run.to_string()).exists() {
            return Ok(Vec::new());
        }
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            let mut statement = connection.prepare_cached(sql!("move_attempts"))?;
            let attempts: Vec<(u32, u32)> = statement
                .query_map(params![head.no], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let mut logs = Vec::new();
            for (position, attempt) in attempts {
                let path = log_path(&dir, run, &head.head.plan.task_name(position), attempt);
                if path.exists() {
                    let (position, attempt) = (i64::from(position), i64::from(attempt));
                    logs.push(LogFile { run_no: head.no, position, attempt, path });
                }
            }
            Done::Ok(logs)
        })
        .await
    }

    /// Returns the hashes of files beside the database that its rows name.
    pub(crate) async fn file_hashes(&self) -> Result<Vec<ContentHash>> {
        self.read(|connection, _| {
            let mut statement = connection.prepare(sql!("move_files"))?;
            let hashes =
                statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
            let parse = |hash: &String| {
                Ok(ContentHash::parse(hash).ok_or_else(|| unreadable("hash of a file", hash))?)
            };
            hashes.iter().map(parse).collect()
        })
        .await
    }
}
