//! Whether anybody has committed anything since: SQLite keeps a number for that, which each connection sees change by the
//! commits of all others. So a connection that does nothing else is asked; that is one look into shared memory.

use std::path::Path;

use rusqlite::Connection;

use super::connect;
use crate::model::Stamp;

/// The number may be any other after a commit. Ours grow.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    connection: Option<Connection>,
    seen: Option<i64>,
    count: u64,
}

impl Stamps {
    /// `None` when the file cannot be asked: then it has to be read, and that says why.
    pub(super) fn now(&mut self, path: &Path) -> Option<Stamp> {
        let version = self.version(path);
        if version.is_none() {
            // What comes back may have missed a commit.
            self.connection = None;
        }
        if version.is_none() || self.seen != version {
            self.count += 1;
        }
        self.seen = version;
        version.map(|_| Stamp(self.count))
    }

    fn version(&mut self, path: &Path) -> Option<i64> {
        if self.connection.is_none() {
            self.connection = connect::reader(path).ok();
        }
        version(self.connection.as_ref()?).ok()
    }
}

/// Differs after every commit of another connection.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamp_grows_with_commits_of_others_and_with_nothing_else() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        connect::prepare(&path, crate::Open::Create).expect("a store");
        let other = Connection::open(&path).expect("another process");
        let mut stamps = Stamps::default();
        let mut last = stamps.now(&path).expect("a stamp");
        for _ in 0..3 {
            other.query_row("SELECT count(*) FROM meta", [], |_| Ok(())).expect("a look");
            assert_eq!(stamps.now(&path), Some(last));
            other.execute_batch("UPDATE meta SET value = value + 1 WHERE key = 'clock'").expect("a commit");
            let now = stamps.now(&path).expect("a stamp");
            assert!(now > last, "{now:?} after {last:?}");
            last = now;
        }
    }

    #[test]
    fn what_could_not_be_asked_is_not_taken_for_unchanged() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        connect::prepare(&path, crate::Open::Create).expect("a store");
        let mut stamps = Stamps::default();
        let before = stamps.now(&path).expect("a stamp");
        stamps.connection = None;
        assert_eq!(stamps.now(&dir.path().join("nowhere/laneway.db")), None);
        assert!(stamps.now(&path).expect("a stamp") > before);
    }
}
