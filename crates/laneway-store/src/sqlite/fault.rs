//! From SQLite's result codes to what a person or the writer can act on.

use std::path::Path;

use rusqlite::ErrorCode;

use super::transfer::MOVED_TO;
use crate::error::Error;

/// How far an error reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The verb failed, its batch is sound.
    Verb,
    /// The whole transaction may be gone.
    Batch,
    /// The disk did not keep what it was given: nothing may be written any more.
    Store,
}

pub(super) fn reach(error: &rusqlite::Error) -> Reach {
    const IOERR_FSYNC: i32 = 1034;
    const IOERR_DIR_FSYNC: i32 = 1290;
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return Reach::Verb };
    match failure.code {
        _ if matches!(failure.extended_code, IOERR_FSYNC | IOERR_DIR_FSYNC) => Reach::Store,
        ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::ReadOnly
        | ErrorCode::CannotOpen
        | ErrorCode::DatabaseBusy => Reach::Batch,
        _ => Reach::Verb,
    }
}

/// After an error of fsync: what the system has dropped cannot be written again.
pub(super) fn not_kept(error: &rusqlite::Error) -> Error {
    let why = format!("the disk did not keep what was written ({error}); nothing more is written");
    Error::Closed { why }
}

pub(super) fn explain(error: &rusqlite::Error, path: &Path) -> Error {
    let path = path.to_owned();
    if let rusqlite::Error::SqliteFailure(_, Some(message)) = error
        && let Some(to) = message.strip_prefix(MOVED_TO)
    {
        return Error::Moved { path, to: to.to_owned() };
    }
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy { path },
        Some(ErrorCode::NotADatabase) => Error::NotAStore { path },
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            Error::ReadOnly { path, why: error.to_string() }
        }
        Some(ErrorCode::FileLockingProtocolFailed) => Error::CannotLock { path, why: error.to_string() },
        Some(ErrorCode::DatabaseCorrupt) => Error::Damaged { path, why: error.to_string() },
        None if is_about_a_value(error) => {
            Error::Unreadable { what: "row".to_owned(), why: error.to_string() }
        }
        Some(_) | None => Error::Io { path, why: error.to_string() },
    }
}

/// A row was found and is not what the program can have written there.
pub(super) fn is_about_a_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
            | rusqlite::Error::QueryReturnedNoRows
    )
}
