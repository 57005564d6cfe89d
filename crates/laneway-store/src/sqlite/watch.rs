//! Notices what other processes wrote. The system tells when a file beside the store was written, and SQLite keeps a
//! counter that says whether it was somebody else. Where the system does not tell, the counter is looked at anyway,
//! less and less often (BEHAVIOURS C10). A hint only; nothing needs it to be right.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::Connection;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use tokio::sync::watch;

use super::connect;
use super::stamp::version;

/// Other processes cancel, retry and skip: a tenth of a second is quick for a person and nothing for a machine. Our own
/// commits wake the watcher too, and not more often than this.
const EVERY: Duration = Duration::from_millis(100);

/// So many looks in vain follow each other at [`EVERY`], before the pauses grow.
const QUICK_LOOKS: u32 = 50;

/// How long the pauses grow to: `max_poll_interval` of an embedded store. A look is one statement that reads shared
/// memory; with the thread's waking it was measured at 0.07 to 0.5 ms of CPU.
const LONGEST: Duration = Duration::from_secs(1);

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
        let ears = Ears::new(Arc::clone(&stop), writes_in(dir), Some(Pauses::new()));
        Self::listen(connection, ears, stop, changes)
    }

    fn listen(
        connection: Connection,
        mut ears: Ears,
        stop: Arc<OwnedFd>,
        changes: watch::Sender<u64>,
    ) -> Option<Self> {
        let mut seen = version(&connection).ok()?;
        let thread = std::thread::Builder::new()
            .name("laneway-watch".to_owned())
            .spawn(move || {
                while ears.wait() {
                    let Ok(version) = version(&connection) else { continue };
                    if version != seen {
                        seen = version;
                        changes.send_modify(|count| *count += 1);
                        ears.heard();
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

/// What the watcher listens to.
#[derive(Debug)]
struct Ears {
    stop: Arc<OwnedFd>,
    /// Becomes readable when something was written; `None` where the system cannot tell.
    writes: Option<OwnedFd>,
    /// When to look without having been told. `None`, in tests: never.
    pauses: Option<Pauses>,
    /// The system told of something a moment ago.
    is_told: bool,
}

impl Ears {
    fn new(stop: Arc<OwnedFd>, writes: Option<OwnedFd>, pauses: Option<Pauses>) -> Self {
        Self { stop, writes, pauses, is_told: false }
    }

    /// Waits until there may be something new. False at the end.
    fn wait(&mut self) -> bool {
        // Whoever writes often is listened to every now and then, to all that came meanwhile.
        if std::mem::take(&mut self.is_told) && self.is_stopped_within(EVERY) {
            return false;
        }
        let pause = self.pauses.as_mut().and_then(|pauses| Timespec::try_from(pauses.next()).ok());
        let mut any = vec![PollFd::new(&*self.stop, PollFlags::IN)];
        any.extend(self.writes.as_ref().map(|writes| PollFd::new(writes, PollFlags::IN)));
        while poll(&mut any, pause.as_ref()) == Err(rustix::io::Errno::INTR) {}
        let is_stopped = any[0].revents().contains(PollFlags::IN);
        self.is_told = any.get(1).is_some_and(|writes| writes.revents().contains(PollFlags::IN));
        if let (true, Some(writes)) = (self.is_told, &self.writes) {
            // What they were does not matter: all that came so far is one hint.
            let mut buffer = [0; 4096];
            while matches!(rustix::io::read(writes, &mut buffer), Ok(1..)) {}
        }
        !is_stopped
    }

    fn is_stopped_within(&self, pause: Duration) -> bool {
        let pause = Timespec::try_from(pause).ok();
        !matches!(poll(&mut [PollFd::new(&*self.stop, PollFlags::IN)], pause.as_ref()), Ok(0))
    }

    /// Somebody else is at work.
    fn heard(&mut self) {
        if let Some(pauses) = &mut self.pauses {
            *pauses = Pauses::new();
        }
    }
}

/// The pauses between looks: short at first, then longer and longer, and never quite the same, so that many
/// processes do not look in one moment.
#[derive(Debug)]
struct Pauses {
    looks: u32,
    pause: Duration,
    dice: u32,
}

impl Pauses {
    fn new() -> Self {
        Self { looks: 0, pause: EVERY, dice: std::process::id() | 1 }
    }

    fn next(&mut self) -> Duration {
        self.looks = self.looks.saturating_add(1);
        if self.looks > QUICK_LOOKS {
            self.pause = (self.pause * 6 / 5).min(LONGEST);
        }
        // A step of xorshift: no secret hangs on it.
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 17;
        self.dice ^= self.dice << 5;
        self.pause * (90 + self.dice % 11) / 100
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Whether a watcher with these ears tells of what another connection commits.
    async fn tells_of_others(ears: impl FnOnce(&Path, Arc<OwnedFd>) -> Ears) -> bool {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("laneway.db");
        connect::prepare(&path, crate::Open::Create).expect("a store");
        let other = Connection::open(&path).expect("another process");
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd"));
        let (sender, mut changes) = watch::channel(0);
        let ears = ears(dir.path(), Arc::clone(&stop));
        let connection = connect::reader(&path).expect("a reader");
        let watcher = Watcher::listen(connection, ears, stop, sender).expect("a thread");
        for _ in 0..3 {
            other.execute_batch("UPDATE meta SET value = value + 1 WHERE key = 'clock'").expect("a commit");
            if tokio::time::timeout(PATIENCE, changes.changed()).await.is_err() {
                return false;
            }
        }
        drop(watcher);
        true
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn nothing_that_others_write_needs_a_look_without_notice() {
        assert!(tells_of_others(|dir, stop| Ears::new(stop, writes_in(dir), None)).await);
    }

    #[tokio::test]
    async fn what_others_write_is_seen_although_the_system_tells_nothing() {
        assert!(tells_of_others(|_, stop| Ears::new(stop, None, Some(Pauses::new()))).await);
    }

    #[test]
    fn looks_without_notice_become_rare_and_are_never_rarer_than_every_second() {
        let mut pauses = Pauses::new();
        let all: Vec<Duration> = (0..100).map(|_| pauses.next()).collect();
        let bounds = |longest: Duration| longest * 9 / 10..=longest;
        assert!(all[..50].iter().all(|pause| bounds(EVERY).contains(pause)), "{all:?}");
        assert!(bounds(EVERY * 6 / 5).contains(&all[50]), "{all:?}");
        assert!(all[70..].iter().all(|pause| bounds(LONGEST).contains(pause)), "{all:?}");
        assert!(all[70..].iter().any(|pause| *pause != all[70]), "{all:?}");
    }
}
