//! What the writer cost: commits, statements and pages of WAL, told once at its end. Owns no decision, and
//! costs nothing unless somebody listens: `LANEWAY_LOG=laneway_store::counts=debug`. Read by the regression
//! check (`laneway/tests/counted.rs`) and by `bench/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::Wal;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

use crate::model::Commits;

/// Shared with the hooks of every connection that the writer opens.
#[derive(Debug, Clone, Default)]
pub(super) struct Counts(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    commits: AtomicU64,
    verbs: AtomicU64,
    statements: AtomicU64,
    wal_frames: AtomicU64,
    /// How long the WAL was after the last commit.
    wal_pages: AtomicI32,
}

impl Counts {
    /// Counts what this connection does from now on.
    pub(super) fn watch(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        if tracing::enabled!(target: "laneway_store::counts", tracing::Level::DEBUG) {
            self.count_statements(connection)?;
        }
        let inner = Arc::clone(&self.0);
        connection.wal_hook(Some(move |_: &mut Wal, now: i32| {
            inner.committed(now);
            Ok(())
        }))
    }

    fn count_statements(&self, connection: &mut Connection) -> rusqlite::Result<()> {
        let inner = Arc::clone(&self.0);
        let count = move |_: TraceEvent<'_>| {
            inner.statements.fetch_add(1, Ordering::Relaxed);
        };
        connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(count))
    }

    /// Verbs that were committed together.
    pub(super) fn add_verbs(&self, number: usize) {
        self.0.verbs.fetch_add(number as u64, Ordering::Relaxed);
    }

    pub(super) fn commits(&self) -> Commits {
        let (commits, verbs) = (&self.0.commits, &self.0.verbs);
        Commits { commits: commits.load(Ordering::Relaxed), verbs: verbs.load(Ordering::Relaxed) }
    }

    pub(super) fn wal_pages(&self) -> i32 {
        self.0.wal_pages.load(Ordering::Relaxed)
    }

    pub(super) fn tell(&self) {
        tracing::debug!(
            target: "laneway_store::counts",
            commits = self.0.commits.load(Ordering::Relaxed),
            statements = self.0.statements.load(Ordering::Relaxed),
            wal_frames = self.0.wal_frames.load(Ordering::Relaxed),
            "the writer has ended"
        );
    }
}

impl Inner {
    fn committed(&self, now: i32) {
        let before = self.wal_pages.swap(now, Ordering::Relaxed);
        // A WAL that is shorter than before began anew after a checkpoint.
        let written = if now >= before { now - before } else { now };
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.wal_frames.fetch_add(u64::try_from(written).unwrap_or(0), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_counted_through_a_wal_that_begins_anew() {
        let inner = Inner::default();
        for length in [3, 10, 2, 4] {
            inner.committed(length);
        }
        assert_eq!(inner.wal_frames.into_inner(), 3 + 7 + 2 + 2);
        assert_eq!(inner.commits.into_inner(), 4);
    }

    #[test]
    fn every_commit_and_every_statement_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut connection = Connection::open(dir.path().join("test.db")).expect("a database");
        connection.pragma_update(None, "journal_mode", "WAL").expect("a WAL");
        let counts = Counts::default();
        counts.watch(&mut connection).expect("hooks");
        counts.count_statements(&mut connection).expect("a hook");
        connection.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").expect("written");
        connection.execute_batch("BEGIN; SELECT * FROM t; COMMIT").expect("read");
        assert_eq!(counts.0.statements.load(Ordering::Relaxed), 5);
        assert_eq!(counts.0.commits.load(Ordering::Relaxed), 2, "a transaction that only reads is no commit");
        assert!(counts.0.wal_frames.load(Ordering::Relaxed) >= 3);
    }
}
