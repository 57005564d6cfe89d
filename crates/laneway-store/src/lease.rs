//! The lease of a session on one host: `sessions/<id>.lease`, a line that its process rewrites. It
//! is never in the database, so that a busy writer never appears frozen.
//!
//! A session is *condemned* by renaming the file to `sessions/<id>.over`. From then on it cannot be
//! renewed, and its node starts no warden for it. It is dead as soon as its warden is gone.
//! Condemning is final: a process that thaws too late learns of it at its next renewal. See
//! `docs/design/store.md`, "Who is alive".

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_core::id::SessionId;
use rustix::process::Pid;
use rustix::time::{ClockId, clock_gettime};

use crate::model::Lease;
use crate::private;

/// Returns the path of a session's lease file. The file is gone once the session is condemned or
/// over.
pub fn lease_path(store_dir: &Path, session: SessionId) -> PathBuf {
    store_dir.join("sessions").join(format!("{session}.lease"))
}

/// Ends a lease for good. Returns `false` if it was over before.
///
/// # Errors
/// Fails if the file cannot be renamed. The session is then not condemned.
pub fn condemn(lease: &Path) -> io::Result<bool> {
    match fs::rename(lease, lease.with_extension("over")) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the time of a clock that all processes of the host share. It stands still while the
/// machine sleeps.
pub fn monotonic_time() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// The lease of a session of this process.
#[derive(Debug)]
pub struct LeaseFile {
    path: PathBuf,
    file: File,
    record: LeaseRecord,
}

impl LeaseFile {
    /// Creates the file and renews the lease for the first time. With `expires` the session loses
    /// its tasks if it is not renewed for `lease.ttl`.
    pub(crate) fn create(path: &Path, lease: Lease, expires: bool) -> io::Result<Self> {
        let file = private::options().write(true).create_new(true).open(path)?;
        let record = LeaseRecord {
            renewed: Duration::ZERO,
            ttl: lease.ttl,
            every: lease.every,
            pid: rustix::process::getpid(),
            pid_namespace: pid_namespace(),
            expires,
            boot: boot_id(),
        };
        // Absolute: the warden reads it too, and runs in another directory.
        let lease = Self { path: std::path::absolute(path)?, file, record };
        lease.renew()?;
        Ok(lease)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the session loses its tasks if it is not renewed.
    pub fn expires(&self) -> bool {
        self.record.expires
    }

    /// Renews the lease. Returns `false` if the session is condemned or over.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn renew(&self) -> io::Result<bool> {
        if self.is_over() {
            return Ok(false);
        }
        let record = LeaseRecord { renewed: monotonic_time(), ..self.record.clone() };
        self.file.write_all_at(record.to_line().as_bytes(), 0)?;
        Ok(true)
    }

    /// Returns whether the session is condemned or over. Nothing may run under it any more.
    pub fn is_over(&self) -> bool {
        matches!(self.path.try_exists(), Ok(false))
    }
}

/// The content of a lease file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// The last renewal, by `monotonic_time` of the boot `boot`.
    pub(crate) renewed: Duration,
    pub(crate) ttl: Duration,
    pub(crate) every: Duration,
    pub(crate) pid: Pid,
    /// Shows whether `pid` denotes the same process here.
    pid_namespace: u64,
    pub(crate) expires: bool,
    boot: String,
}

impl LeaseRecord {
    /// Reads a lease file. Returns `None` without a file, and for a half-written line. Neither
    /// proves anything.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        Self::from_line(&fs::read_to_string(path).ok()?)
    }

    /// Returns the pid of the process, if that number denotes the same process here.
    pub(crate) fn pid_here(&self) -> Option<Pid> {
        (self.pid_namespace == pid_namespace()).then_some(self.pid)
    }

    /// Returns the time since the last renewal, if the process has missed two: longer than any load
    /// delays one.
    pub(crate) fn silence(&self, now: Duration) -> Option<Duration> {
        const SLACK: Duration = Duration::from_secs(1);
        let silence = self.unrenewed_for(now)?;
        (silence > self.every * 2 + SLACK).then_some(silence)
    }

    /// Returns how long ago the process renewed, or `None` for a lease of another boot.
    pub(crate) fn unrenewed_for(&self, now: Duration) -> Option<Duration> {
        now.checked_sub(self.renewed).filter(|_| self.boot == boot_id())
    }

    /// Returns a line that always has the same length, so that a renewal overwrites the previous
    /// one as a whole.
    fn to_line(&self) -> String {
        let Self { renewed, ttl, every, pid, pid_namespace, expires, boot } = self;
        format!(
            "lease1 {:020} {} {} {} {pid_namespace} {} {boot} .\n",
            renewed.as_millis(),
            ttl.as_millis(),
            every.as_millis(),
            pid.as_raw_nonzero(),
            u8::from(*expires),
        )
    }

    fn from_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim_end().split(' ').collect();
        let ["lease1", renewed, ttl, every, pid, pid_namespace, expires, boot, "."] = fields[..] else {
            return None;
        };
        let millis = |text: &str| Some(Duration::from_millis(text.parse().ok()?));
        Some(Self {
            renewed: millis(renewed)?,
            ttl: millis(ttl)?,
            every: millis(every)?,
            pid: Pid::from_raw(pid.parse().ok()?)?,
            pid_namespace: pid_namespace.parse().ok()?,
            expires: expires == "1",
            boot: boot.to_owned(),
        })
    }
}

/// Returns the id of the current boot, or an empty string where the system has none. All boots then
/// compare equal, as they do in a lease without one.
fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn pid_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map(|namespace| namespace.ino()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(dir: &Path) -> LeaseFile {
        let lease = Lease { ttl: Duration::from_secs(6), every: Duration::from_secs(1) };
        LeaseFile::create(&dir.join("s.lease"), lease, true).expect("a lease")
    }

    #[test]
    fn condemned_lease_cannot_be_renewed() {
        let dir = tempfile::tempdir().expect("a directory");
        let lease = lease(dir.path());
        assert!(lease.renew().expect("written"));
        assert!(condemn(lease.path()).expect("renamed"));
        assert!(!lease.renew().expect("looked at"));
        assert!(lease.is_over());
        assert!(!condemn(lease.path()).expect("nothing to rename"), "once");
    }

    #[test]
    fn lease_is_read_back_and_silence_begins_after_two_missed_renewals() {
        let dir = tempfile::tempdir().expect("a directory");
        let lease = lease(dir.path());
        let record = LeaseRecord::read(lease.path()).expect("a whole line");
        assert_eq!((record.pid_here(), record.expires), (Some(rustix::process::getpid()), true));
        let after = |secs| record.silence(record.renewed + Duration::from_secs(secs));
        assert_eq!((after(3), after(4)), (None, Some(Duration::from_secs(4))));
        let other_boot = LeaseRecord { boot: "other".to_owned(), ..record.clone() };
        assert_eq!(other_boot.silence(record.renewed + Duration::from_secs(99)), None);
        let line = record.to_line();
        assert_eq!(LeaseRecord::from_line(&line), Some(record));
        assert_eq!(LeaseRecord::from_line(&line[..line.len() - 3]), None, "half a line is none");
    }
}
