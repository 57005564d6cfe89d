//! Notices what other processes wrote. The system tells when a file beside the store was written, and SQLite keeps a
//! counter that says whether it was somebody else. A hint only; nothing needs it to be right.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tokio::sync::watch;

use super::connect;

/// Other processes cancel, retry and skip: a tenth of a second is quick for a person and nothing for a machine. Our own
/// commits wake the watcher too, and not more often than this.
const EVERY: Duration = Duration::from_millis(100);

/// A thread that ends with its handle.
#[derive(Debug)]
pub(super) struct Watcher {
    /// Written to end the thread.
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// `None` when it could not be started: then there are no hints from other processes, and polls have to do.
    pub(super) fn start(path: PathBuf, changes: watch::Sender<u64>) -> Option<Self> {
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).ok()?);
        // Looked at before the caller is: what others write from here on is noticed.
        let connection = connect::reader(&path).ok()?;
        // A bare name has an empty parent.
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let writes = writes_in(dir);
        let mut seen = version(&connection).ok()?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("laneway-watch".to_owned())
            .spawn(move || {
                while wait(&stopped, writes.as_ref()) {
                    let Ok(version) = version(&connection) else { continue };
                    if version != seen {
                        seen = version;
                        changes.send_modify(|count| *count += 1);
                    }
                }
            })
            .ok()?;
        Some(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Fails only if it was told before.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Differs after every commit of another connection.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// Waits until there may be something new. False at the end.
fn wait(stop: &OwnedFd, writes: Option<&OwnedFd>) -> bool {
    let pause = Timespec::try_from(EVERY).ok();
    let mut stopped = [PollFd::new(stop, PollFlags::IN)];
    if !matches!(poll(&mut stopped, pause.as_ref()), Ok(0)) {
        return false;
    }
    let Some(writes) = writes else { return true };
    let mut any = [PollFd::new(stop, PollFlags::IN), PollFd::new(writes, PollFlags::IN)];
    while poll(&mut any, None) == Err(rustix::io::Errno::INTR) {}
    if any[0].revents().contains(PollFlags::IN) {
        return false;
    }
    // What they were does not matter: all that came so far is one hint.
    let mut buffer = [0; 4096];
    while matches!(rustix::io::read(writes, &mut buffer), Ok(1..)) {}
    true
}

/// Becomes readable when a file of this directory is written. `None` where the system cannot tell, or not any more.
#[cfg(target_os = "linux")]
fn writes_in(dir: &Path) -> Option<OwnedFd> {
    use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
    let writes = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
    add_watch(&writes, dir, WatchFlags::MODIFY | WatchFlags::CREATE).ok()?;
    Some(writes)
}

#[cfg(not(target_os = "linux"))]
fn writes_in(_: &Path) -> Option<OwnedFd> {
    None
}
