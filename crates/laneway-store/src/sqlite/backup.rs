//! A copy of a store while it is in use: one moment of it, whole, in a file that is on disk when
//! this returns.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::Connection;

use super::{connect, data_dir, fault};
use crate::Open;
use crate::error::{Error, Result};
use crate::sqlite::statements::sql;

/// Writes a copy to a file that must not be there yet. Readers and writers go on meanwhile.
pub(super) fn backup(from: &Path, to: &Path) -> Result<()> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: to.to_owned() },
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Error::ReadOnly { path: to.to_owned(), why: error.to_string() }
        }
        _ => Error::Io { path: to.to_owned(), why: error.to_string() },
    };
    if fs::symlink_metadata(to).is_ok() {
        return Err(Error::Exists { path: to.to_owned() });
    }
    // Under another name until it is whole: nobody takes half of a copy for one.
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = to.with_file_name(name);
    let made = copy(from, &part).and_then(|()| {
        File::open(&part).and_then(|file| file.sync_all()).map_err(failed)?;
        // Unlike a rename, a link never replaces what somebody else has put there meanwhile.
        fs::hard_link(&part, to).map_err(failed)?;
        File::open(data_dir::parent(to)).and_then(|dir| dir.sync_all()).map_err(failed)
    });
    let _ = fs::remove_file(&part);
    made
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let connection: Connection = connect::source(from)?;
    // One statement is one snapshot.
    connection
        .execute("VACUUM INTO ?1", [to.to_string_lossy()])
        .map(|_| ())
        .map_err(|error| fault::explain(&error, to))
}

/// What a copy turned out to be.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) runs: u64,
    pub(crate) secrets: u64,
    /// Artifacts that it names and that are not in their directory.
    pub(crate) missing: u64,
}

/// Looks at a copy before it is used: whether it is a store of a version that we know, and whole.
/// An older one is brought up to date. It is made the store at `target`.
pub(crate) fn check_copy(path: &Path, artifacts: &Path, target: &Path) -> Result<Found> {
    connect::prepare(path, Open::Migrate)?;
    let connection = connect::source(path)?;
    let look = || -> rusqlite::Result<(String, Found)> {
        let said: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        let mut found = Found {
            runs: connection.query_row(sql!("examine_count"), [], |row| row.get(0))?,
            secrets: connection.query_row(sql!("secrets_count"), [], |row| row.get(0))?,
            missing: 0,
        };
        let mut named = connection.prepare(sql!("artifact_hashes"))?;
        let mut rows = named.query([])?;
        while let Some(row) = rows.next()? {
            let hash: String = row.get(0)?;
            found.missing += u64::from(!artifacts.join(hash).exists());
        }
        data_dir::record(&connection, target)?;
        Ok((said, found))
    };
    let (said, found) = look().map_err(|error| fault::explain(&error, path))?;
    if said != "ok" {
        return Err(Error::Damaged { path: path.to_owned(), why: said });
    }
    Ok(found)
}
