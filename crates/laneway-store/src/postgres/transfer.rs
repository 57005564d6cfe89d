//! The side of a move that is a schema of Postgres: one transaction on one connection takes
//! everything. It commits with a mark, which `end` removes; until then the store cannot be opened.

use std::error::Error as StdError;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::pin::pin;

use laneway_core::hash::ContentHash;
use lz4_flex::block::compress;
use rusqlite::types::Value;
use tokio::sync::mpsc::Receiver;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use crate::Open;
use crate::bytes::BLOB_CHUNK;
use crate::error::{Error, Result};
use crate::postgres::address::Address;
use crate::postgres::blobs::LOG_CHUNK;
use crate::postgres::connect::{Session, Target};
use crate::postgres::fault;
use crate::postgres::statements::statement;
use crate::transfer::{LogFile, Rows, SourceContents, TablePlan, TargetTables, refuse};

#[derive(Debug)]
pub(crate) struct MoveTarget {
    client: Client,
    address: Address,
    /// Names of the tables of the store, once they are locked.
    tables: Vec<String>,
}

impl MoveTarget {
    /// Connects to a schema, and makes a store in it if there is none.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let address = Address::parse(url)?;
        let (target, _, _) = Target::prepare(address, Open::Migrate, true).await?;
        let address = target.address.clone();
        if target.session == Session::Shared {
            let why = "a pooler stands in front of it".to_owned();
            let advice = "name the server itself in --to: the move is one long transaction";
            return Err(refuse(&address.path(), why, advice));
        }
        let client = target.dial().await.map_err(|error| fault::explain_connect(&error, &address))?;
        Ok(Self { client, address, tables: Vec::new() })
    }

    /// Begins the transaction, with all tables locked, and returns them. Rejects a store that has
    /// anything in it; what an unfinished move of the same source left is removed.
    pub(crate) async fn begin(&mut self, contents: &SourceContents) -> Result<TargetTables> {
        self.say(statement!("move_begin")).await?;
        let mut tables = TargetTables::new();
        for row in self.ask(statement!("move_columns"), &[]).await? {
            let (table, column, kind): (String, String, String) = (row.get(0), row.get(1), row.get(2));
            if let Some(kind) = column_type(&kind) {
                tables.entry(table).or_default().push((column, kind));
            }
        }
        // A foreign table may be in the schema as well.
        tables.retain(|table, _| contents.tables.contains_key(table) || OWN_TABLES.contains(&table.as_str()));
        // The mark is read behind the lock of `meta`, which comes last.
        let mut names: Vec<&str> = tables.keys().map(String::as_str).collect();
        names.sort_by_key(|name| *name == "meta");
        self.say(&format!("LOCK TABLE {} IN EXCLUSIVE MODE", names.join(", "))).await?;
        names.retain(|name| *name != "meta" && *name != "laneway_migrations");
        match self.mark().await? {
            Some(source) if source == contents.instance => {
                self.say(&format!("TRUNCATE {}", names.join(", "))).await?;
                self.say(statement!("move_unmark_all")).await?;
            }
            Some(_) => {
                let why = "an unfinished move of another store lies there".to_owned();
                return Err(refuse(&self.address.path(), why, "name another schema or database with --to"));
            }
            None => {}
        }
        for name in names {
            let is_empty = self.ask(&format!("SELECT 1 FROM {name} LIMIT 1"), &[]).await?.is_empty();
            if !is_empty {
                let why = format!("it is not empty: there are rows in {name}");
                return Err(refuse(&self.address.path(), why, "name an empty schema or database with --to"));
            }
        }
        let now: i64 = self.one(statement!("move_clock")).await?;
        if now < contents.clock {
            let why = format!("its clock is {} ms behind the last moment of the store", contents.clock - now);
            return Err(refuse(&self.address.path(), why, "set the clocks of both hosts, and move it again"));
        }
        self.tables = tables.keys().cloned().collect();
        Ok(tables)
    }

    /// Copies the rows of a table, and returns how many there were.
    pub(crate) async fn copy_rows(
        &self,
        table: &TablePlan,
        rows: &mut Receiver<Result<Rows>>,
        report: &dyn Fn(&str, u64),
    ) -> Result<u64> {
        let columns: Vec<&str> = table.columns.iter().map(|(name, _)| name.as_str()).collect();
        let types: Vec<Type> = table.columns.iter().map(|(_, kind)| kind.clone()).collect();
        let mut copied = 0;
        let mut writer = pin!(self.writer(&table.name, &columns, &types).await?);
        while let Some(batch) = rows.recv().await {
            let batch = batch?;
            copied += batch.len() as u64;
            for row in &batch {
                let written = writer.as_mut().write_raw(row.iter().map(Cell)).await;
                written.map_err(|error| self.explain_row(&table.name, &error))?;
            }
            report(&table.name, copied);
        }
        writer.finish().await.map_err(|error| self.explain_row(&table.name, &error))
    }

    /// Copies files as blobs: all of their bytes first, then which of them there are.
    pub(crate) async fn copy_files(
        &self,
        files: &[(ContentHash, PathBuf, u64)],
        report: &dyn Fn(&str, u64),
    ) -> Result<()> {
        let columns = ["hash", "no", "bytes"];
        let types = [Type::TEXT, Type::INT8, Type::BYTEA];
        let mut writer = pin!(self.writer("blob_chunks", &columns, &types).await?);
        for ((hash, path, _), count) in files.iter().zip(1..) {
            let mut file = File::open(path).map_err(|error| unreadable(path, &error))?;
            for no in 0_i64.. {
                let Some(chunk) = next_chunk(&mut file, path, BLOB_CHUNK)? else { break };
                let written = writer.as_mut().write(&[&hash.as_str(), &no, &chunk]).await;
                written.map_err(|error| self.explain_row("blob_chunks", &error))?;
            }
            report("artifacts", count);
        }
        writer.finish().await.map_err(|error| self.explain_row("blob_chunks", &error))?;
        let now: i64 = self.one(statement!("move_clock")).await?;
        let columns = ["hash", "size", "is_whole", "touched_at"];
        let types = [Type::TEXT, Type::INT8, Type::BOOL, Type::INT8];
        let mut writer = pin!(self.writer("blobs", &columns, &types).await?);
        for (hash, _, size) in files {
            let size = i64::try_from(*size).unwrap_or(i64::MAX);
            let written = writer.as_mut().write(&[&hash.as_str(), &size, &true, &now]).await;
            written.map_err(|error| self.explain_row("blobs", &error))?;
        }
        writer.finish().await.map(drop).map_err(|error| self.explain_row("blobs", &error))
    }

    /// Copies log files as chunks.
    pub(crate) async fn copy_logs(&self, logs: &[LogFile]) -> Result<()> {
        if logs.is_empty() {
            return Ok(());
        }
        let columns = ["run_no", "position", "attempt", "start", "length", "bytes"];
        let types = [Type::INT8, Type::INT8, Type::INT8, Type::INT8, Type::INT8, Type::BYTEA];
        let mut writer = pin!(self.writer("log_chunks", &columns, &types).await?);
        for log in logs {
            let mut file = File::open(&log.path).map_err(|error| unreadable(&log.path, &error))?;
            let mut start = 0_i64;
            while let Some(chunk) = next_chunk(&mut file, &log.path, LOG_CHUNK)? {
                let length = chunk.len() as i64;
                let bytes = compress(&chunk);
                let row: [&(dyn ToSql + Sync); 6] =
                    [&log.run_no, &log.position, &log.attempt, &start, &length, &bytes];
                let written = writer.as_mut().write(&row).await;
                written.map_err(|error| self.explain_row("log_chunks", &error))?;
                start += length;
            }
        }
        writer.finish().await.map(drop).map_err(|error| self.explain_row("log_chunks", &error))
    }

    /// Sets the counters behind the rows, and commits with the mark of an unfinished move.
    pub(crate) async fn commit(&self, contents: &SourceContents) -> Result<()> {
        for row in self.ask(statement!("move_identities"), &[]).await? {
            let (table, column): (String, String) = (row.get(0), row.get(1));
            if !self.tables.contains(&table) {
                continue;
            }
            let given = contents.numbers.get(&table).copied().unwrap_or_default();
            self.ask(
                &format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), \
                     greatest((SELECT max({column}) FROM {table}), $1) + 1, false)"
                ),
                &[&given],
            )
            .await?;
        }
        self.ask(statement!("move_instance"), &[&contents.instance]).await?;
        self.ask(statement!("move_mark"), &[&contents.instance]).await?;
        self.say("COMMIT").await
    }

    /// Ends a move of the source: the store can be opened. Returns `false` if no such move was
    /// unfinished.
    pub(crate) async fn end(&self, instance: &str) -> Result<bool> {
        Ok(!self.ask(statement!("move_unmark"), &[&instance]).await?.is_empty())
    }

    async fn mark(&self) -> Result<Option<String>> {
        let rows = self.ask(statement!("moving_from"), &[]).await?;
        Ok(rows.first().map(|row| row.get(0)))
    }

    async fn writer(&self, table: &str, columns: &[&str], types: &[Type]) -> Result<BinaryCopyInWriter> {
        let copy = format!("COPY {table} (\"{}\") FROM STDIN (FORMAT binary)", columns.join("\", \""));
        let sink = self.client.copy_in(&copy).await.map_err(|error| self.explain(&error))?;
        Ok(BinaryCopyInWriter::new(sink, types))
    }

    async fn say(&self, sql: &str) -> Result<()> {
        self.client.batch_execute(sql).await.map_err(|error| self.explain(&error))
    }

    async fn ask(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<tokio_postgres::Row>> {
        self.client.query(sql, values).await.map_err(|error| self.explain(&error))
    }

    async fn one(&self, sql: &str) -> Result<i64> {
        let row = self.client.query_one(sql, &[]).await.map_err(|error| self.explain(&error))?;
        Ok(row.get(0))
    }

    fn explain(&self, error: &tokio_postgres::Error) -> Error {
        fault::explain(error, &self.address)
    }

    fn explain_row(&self, table: &str, error: &tokio_postgres::Error) -> Error {
        match self.explain(error) {
            Error::Postgres { address, why } => {
                Error::Postgres { address, why: format!("table {table}: {why}") }
            }
            Error::Unreadable { why, .. } => Error::Unreadable { what: format!("row of {table}"), why },
            other => other,
        }
    }
}

/// Tables that only a store on Postgres has.
const OWN_TABLES: [&str; 3] = ["follow_ups", "laneway_migrations", "log_chunks"];

/// Types of columns that a store has; no other is copied.
fn column_type(name: &str) -> Option<Type> {
    Some(match name {
        "bigint" => Type::INT8,
        "text" => Type::TEXT,
        "bytea" => Type::BYTEA,
        "boolean" => Type::BOOL,
        _ => return None,
    })
}

/// A value of an embedded store, as its column in Postgres takes it.
#[derive(Debug)]
struct Cell<'a>(&'a Value);

impl ToSql for Cell<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) if *kind == Type::INT8 => number.to_sql(kind, out),
            Value::Integer(number) if *kind == Type::BOOL => (*number != 0).to_sql(kind, out),
            Value::Text(text) if *kind == Type::TEXT => text.to_sql(kind, out),
            Value::Blob(bytes) if *kind == Type::BYTEA => bytes.to_sql(kind, out),
            other => Err(format!("{} is no {kind}", other.data_type()).into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Reads as much of a file as a chunk has. `None` at its end.
fn next_chunk(file: &mut File, path: &Path, size: usize) -> Result<Option<Vec<u8>>> {
    let mut chunk = Vec::with_capacity(size);
    file.take(size as u64).read_to_end(&mut chunk).map_err(|error| unreadable(path, &error))?;
    Ok((!chunk.is_empty()).then_some(chunk))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), why: error.to_string() }
}
