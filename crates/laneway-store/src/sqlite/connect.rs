//! Opening a store file: one connection that writes, others that only read, and clear words for every file
//! that cannot be one.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use laneway_torture::{Point, pass};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use uuid::Uuid;

use super::migrate::{self, Found};
use super::{data_dir, fault};
use crate::error::{Error, Result};
use crate::private;
use crate::{Open, SchemaChange};

/// Older ones can corrupt a WAL that several processes use.
const OLDEST_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// How long another process may hold the write lock before we say so. A group commit holds it for
/// milliseconds; only a large submit of another process comes near a second.
const BUSY: Duration = Duration::from_secs(20);

/// More statements than the verbs have, so that none is ever prepared twice.
const STATEMENTS: usize = 128;

/// Pages that the writer keeps, in KiB: what a batch touches, many times over. The system has the rest at hand, and what is kept here
/// stays with the process for good: the allocator gives none of it back.
const WRITER_PAGES: u32 = 8_192;

/// Those of a reader. Questions are short, or pass over a run once.
const READER_PAGES: u32 = 2_048;

/// Makes sure that the file is a store of the schema we know, creating or migrating it if asked. Returns what that changed.
pub(super) fn prepare(path: &Path, mode: Open) -> Result<SchemaChange> {
    if rusqlite::version_number() < OLDEST_SQLITE.0 {
        return Err(Error::OldSqlite { found: rusqlite::version().to_owned(), wanted: OLDEST_SQLITE.1 });
    }
    let exists = path.try_exists().map_err(|error| unusable(path, &error))?;
    match (exists, mode) {
        (false, Open::Existing) => return Err(Error::Missing { path: path.to_owned() }),
        (false, Open::Create | Open::Migrate) => {
            make_dir(path)?;
            pass(Point::StoreMade);
            // SQLite would make it as the umask says, and gives `-wal` and `-shm` the mode of this file. Another process may have
            // been first.
            match private::options().write(true).create_new(true).open(path) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(unusable(path, &error)),
            }
        }
        (true, _) if path.is_dir() => {
            return Err(Error::Io { path: path.to_owned(), why: "is a directory, not a file".to_owned() });
        }
        // Looked at before it is opened: to open an empty file for writing makes a database of it.
        (true, Open::Existing) if fs::metadata(path).is_ok_and(|file| file.len() == 0) => {
            return Err(Error::NotAStore { path: path.to_owned() });
        }
        (true, _) => {}
    }
    let mut connection = writer(path)?;
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    match migrate::look(&connection).map_err(tell)? {
        Found::Foreign => Err(Error::NotAStore { path: path.to_owned() }),
        Found::Store { schema } if schema > migrate::KNOWN => {
            Err(Error::Newer { path: path.to_owned(), found: schema, known: migrate::KNOWN })
        }
        Found::Store { schema } if schema == migrate::KNOWN => Ok(SchemaChange::Unchanged { schema }),
        Found::Store { schema } if mode != Open::Migrate => {
            Err(Error::NeedsMigration { path: path.to_owned(), found: schema, known: migrate::KNOWN })
        }
        Found::Empty if mode == Open::Existing => Err(Error::NotAStore { path: path.to_owned() }),
        Found::Store { .. } | Found::Empty => {
            let instance = Uuid::now_v7().to_string();
            let from = migrate::migrate(&mut connection, path, migrate::MIGRATIONS, &instance)?;
            pass(Point::StoreMigrated);
            Ok(SchemaChange::between(from, migrate::KNOWN))
        }
    }
}

/// The connection of the writer thread.
pub(super) fn writer(path: &Path) -> Result<Connection> {
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    let connection = Connection::open(path).map_err(tell)?;
    connection.busy_timeout(BUSY).map_err(tell)?;
    // Asked before the journal mode, which would change a file that is not ours.
    if migrate::look(&connection).map_err(tell)? == Found::Foreign {
        return Err(Error::NotAStore { path: path.to_owned() });
    }
    let mode = write_ahead(&connection).map_err(tell)?;
    if mode != "wal" {
        return Err(Error::CannotLock {
            path: path.to_owned(),
            why: format!("it offers journal mode {mode} only, and no shared memory"),
        });
    }
    // FULL: a commit is on disk before it is acknowledged. Checkpoints run between batches (writer.rs). What a savepoint
    // needs to take a verb back stays in memory: it is gone with the process anyway.
    connection
        .execute_batch(&format!(
            "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -{WRITER_PAGES};
             PRAGMA temp_store = MEMORY;",
        ))
        .map_err(tell)?;
    keep_statements(&connection).map_err(tell)?;
    Ok(connection)
}

/// Every statement is prepared once. Without the guarantee SQLite would plan one anew whenever a value is bound to it that
/// a partial index might know.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// Turns the journal to WAL. Of several processes that do so with a new file at once, SQLite tells all but one
/// at once that it is busy, without waiting: they would wait for each other. So we ask again.
fn write_ahead(connection: &Connection) -> rusqlite::Result<String> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && begun.elapsed() < BUSY =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            answer => return answer,
        }
    }
}

/// A connection that can only read, and never waits for a writer.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(tell)?;
    connection.busy_timeout(BUSY).map_err(tell)?;
    let pragmas = format!("PRAGMA query_only = 1; PRAGMA cache_size = -{READER_PAGES};");
    connection.execute_batch(&pragmas).map_err(tell)?;
    keep_statements(&connection).map_err(tell)?;
    Ok(connection)
}

/// A connection for a copy, which is no reader to SQLite: it writes, though elsewhere.
pub(super) fn source(path: &Path) -> Result<Connection> {
    let tell = |error: rusqlite::Error| fault::explain(&error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(tell)?;
    connection.busy_timeout(BUSY).map_err(tell)?;
    Ok(connection)
}

/// Makes the directories of a new store: that of its database and that of its files.
pub(crate) fn make_dir(path: &Path) -> Result<()> {
    for dir in [data_dir::parent(path), data_dir::new_data_dir(path)] {
        data_dir::make(&dir).map_err(|error| unusable(&dir, &error))?;
    }
    Ok(())
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: path.to_owned(), why: error.to_string() }
        }
        std::io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ => Error::Io { path: path.to_owned(), why: error.to_string() },
    }
}
