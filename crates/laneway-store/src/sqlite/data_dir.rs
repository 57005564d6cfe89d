//! Where an embedded store keeps its logs, artifacts, sessions and scratch files.
//!
//! A store named `laneway.db` has its directory to itself and keeps its files there. A store of any
//! other name keeps them in `NAME.d` beside it, so that two stores in one directory never see each
//! other's files. Earlier versions kept the files of every store in the directory of the database:
//! a store has the row `data_dir` in `meta` if it keeps them in `NAME.d`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

use crate::bytes::DATA_DIR_SUFFIX;
use crate::private;
use crate::sqlite::statements::sql;

/// The name of the default store.
const DEFAULT_NAME: &str = "laneway.db";

/// Returns the data directory of the store at `path`, or of the one that would be made there.
pub(crate) fn data_dir(path: &Path) -> PathBuf {
    let found = fs::metadata(path).is_ok_and(|file| file.len() > 0).then(|| read(path));
    match found {
        Some(Ok(dir)) => dir,
        // The store itself reports what is wrong with its file.
        Some(Err(_)) | None => new_data_dir(path),
    }
}

/// Returns the data directory of an open store.
pub(super) fn recorded(connection: &Connection, path: &Path) -> rusqlite::Result<PathBuf> {
    Ok(if has_own(connection)? { own(path) } else { parent(path) })
}

/// Returns the data directory of a store that is about to be made.
pub(crate) fn new_data_dir(path: &Path) -> PathBuf {
    if path.file_name().is_some_and(|name| name == DEFAULT_NAME) { parent(path) } else { own(path) }
}

/// Records which directory a new store uses; also that of a copy, which has another name.
pub(super) fn record(connection: &Connection, path: &Path) -> rusqlite::Result<()> {
    if new_data_dir(path) == own(path) {
        connection.execute(sql!("data_dir_own"), [])?;
    } else {
        connection.execute(sql!("data_dir_parent"), [])?;
    }
    Ok(())
}

/// Makes the data directory of a new store. A directory that was not there keeps itself out of
/// version control.
pub(super) fn make(dir: &Path) -> io::Result<()> {
    let is_new = !dir.exists();
    private::create_dir_all(dir)?;
    if is_new {
        private::write(&dir.join(".gitignore"), b"*\n")?;
    }
    Ok(())
}

/// Returns the directory of the database.
pub(crate) fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Whether a store keeps its files in a directory that other stores may use as well: it was made
/// by an earlier version, and its name is not that of the default store.
pub(crate) fn shares_dir(path: &Path, dir: &Path) -> bool {
    dir == parent(path) && new_data_dir(path) != dir
}

/// Whether another store keeps its files in the same directory. Errs on the side of yes.
pub(super) fn has_neighbor(path: &Path, dir: &Path) -> bool {
    if dir != parent(path) {
        return false;
    }
    let own_name = path.file_name();
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut others = entries.filter(|entry| {
        let name = entry.file_name();
        // Closing a descriptor of a journal would release the locks that SQLite holds on it.
        let text = name.to_string_lossy();
        let is_journal = ["-wal", "-shm", "-journal"].iter().any(|end| text.ends_with(end));
        Some(name.as_os_str()) != own_name
            && !is_journal
            && entry.file_type().is_ok_and(|kind| kind.is_file())
    });
    others.any(|entry| keeps_files_beside(&entry.path()))
}

fn keeps_files_beside(path: &Path) -> bool {
    // Read-only: it may be the database of another program.
    match open(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|connection| has_own(&connection)) {
        Ok(is_own) => !is_own,
        Err(error) => error.sqlite_error_code() != Some(ErrorCode::NotADatabase),
    }
}

fn read(path: &Path) -> rusqlite::Result<PathBuf> {
    recorded(&open(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?, path)
}

fn open(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn has_own(connection: &Connection) -> rusqlite::Result<bool> {
    let found: Option<String> = connection.query_row(sql!("data_dir"), [], |row| row.get(0)).optional()?;
    Ok(found.is_some())
}

/// Returns `NAME.d`. A symlink to a store leads to the directory of that store: session locks that
/// lie in two directories would prove live sessions dead.
fn own(path: &Path) -> PathBuf {
    let is_link = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_symlink());
    let target = is_link.then(|| fs::canonicalize(path).ok()).flatten();
    let mut name = target.unwrap_or_else(|| path.to_owned()).into_os_string();
    name.push(DATA_DIR_SUFFIX);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Open;
    use crate::sqlite::SqliteStore;

    #[test]
    fn a_store_of_another_name_has_a_directory_of_its_own() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        for (name, expected) in [("laneway.db", ""), ("my.db", "my.db.d")] {
            assert_eq!(data_dir(&at(name)), at(expected), "{name} before it is made");
            drop(SqliteStore::open(&at(name), Open::Create).expect("a store"));
            assert_eq!(data_dir(&at(name)), at(expected), "{name}");
        }
        assert!(!has_neighbor(&at("laneway.db"), dir.path()), "my.db keeps its files elsewhere");
    }

    #[test]
    fn a_store_that_an_earlier_version_made_keeps_its_files_where_they_are() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("my.db");
        drop(SqliteStore::open(&path, Open::Create).expect("a store"));
        open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .expect("a file")
            .execute("DELETE FROM meta WHERE key = 'data_dir'", [])
            .expect("as before");
        assert_eq!(data_dir(&path), dir.path());
        assert!(shares_dir(&path, dir.path()));
        drop(SqliteStore::open(&dir.path().join("laneway.db"), Open::Create).expect("another store"));
        assert!(has_neighbor(&path, dir.path()), "both keep their files in one directory");
    }

    #[test]
    fn a_link_to_a_store_leads_to_its_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, link) = (dir.path().join("my.db"), dir.path().join("link.db"));
        drop(SqliteStore::open(&path, Open::Create).expect("a store"));
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        assert_eq!(data_dir(&link), fs::canonicalize(&path).expect("a file").with_extension("db.d"));
    }
}
