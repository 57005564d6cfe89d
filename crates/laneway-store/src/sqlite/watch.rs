//! Notices what other processes wrote: SQLite keeps a counter that costs a glance at shared memory. A hint
//! only; nothing needs it to be right.

use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::watch;

use super::connect;

/// Other processes cancel, retry and skip: a tenth of a second is quick for a person and nothing for a machine.
const EVERY: Duration = Duration::from_millis(100);

/// A thread that ends with its handle.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Dropped to end the thread, which waits on the other side.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// `None` when it could not be started: then there are no hints from other processes, and polls have to do.
    pub(super) fn start(path: PathBuf, changes: watch::Sender<u64>) -> Option<Self> {
        let (stop, stopped) = mpsc::channel();
        // Looked at before the caller is: what others write from here on is noticed.
        let connection = connect::reader(&path).ok()?;
        let mut seen = version(&connection).ok()?;
        let thread = std::thread::Builder::new()
            .name("laneway-watch".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let Ok(version) = version(&connection) else { continue };
                    if version != seen {
                        seen = version;
                        changes.send_modify(|count| *count += 1);
                    }
                }
            })
            .ok()?;
        Some(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Differs after every commit of another connection.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}
