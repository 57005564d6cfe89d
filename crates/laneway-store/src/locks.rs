//! Liveness of sessions on one host, by file locks. A session lives while its process holds the
//! lock on `sessions/<id>.lock`. It is ending while its warden, which kills what is left of its
//! steps, holds the one on `sessions/<id>.warden`. A process that obtains both, shared, has proof
//! of death. No clock is involved, so that a laptop's sleep is never mistaken for death.
//!
//! A session whose process is frozen is condemned first (`lease.rs`). It is dead when its warden is
//! gone, although its process still holds its lock (PROTOCOL: Identity and liveness).

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_torture::{Bug, has};

use crate::error::{Error, Result};
use crate::lease::{self, LeaseFile, LeaseRecord, lease_path};
use crate::model::Lease;
use crate::private;

/// The lock files of one store.
#[derive(Debug)]
pub(crate) struct SessionLocks {
    store_dir: PathBuf,
    dir: PathBuf,
    /// Held until the process dies or the session retires.
    held: Mutex<HashMap<SessionId, Held>>,
}

/// Files that this process keeps open for a session of its own.
#[derive(Debug)]
struct Held {
    _lock: File,
    lease: Option<Arc<LeaseFile>>,
}

/// Returns the path of the lock that a session's warden holds while it lives. A session is dead
/// only when both its process and its warden are.
pub fn warden_lock(store_dir: &Path, session: SessionId) -> PathBuf {
    store_dir.join("sessions").join(format!("{session}.warden"))
}

/// Returns the directory for files that a session needs only while it lives. It is removed when the
/// session is over, however it ended.
pub fn scratch_dir(store_dir: &Path, session: SessionId) -> PathBuf {
    store_dir.join("scratch").join(session.to_string())
}

/// The liveness of a session, as its locks show it.
#[derive(Debug)]
pub(crate) enum Life {
    Alive,
    /// Its process is dead, its warden is not. Steps of it may still run for a moment.
    Ending,
    /// Proven: nothing runs under it, and nothing can be started. `None` without a lock file, as in
    /// a copy of a store, whose sessions live elsewhere. Also `None` for a condemned session,
    /// because that is final.
    Dead(#[expect(dead_code, reason = "held for its lock, never read")] Option<File>),
}

impl SessionLocks {
    pub(crate) fn new(store_dir: &Path) -> Self {
        Self { store_dir: store_dir.to_owned(), dir: store_dir.join("sessions"), held: Mutex::default() }
    }

    /// Acquires the lock of a new session. Its row must be written afterwards, so that no row is
    /// ever without a lock while its process lives.
    pub(crate) fn hold(&self, session: SessionId) -> Result<()> {
        self.hold_with(session, || Ok(None))
    }

    /// Acquires the lock of a new session, and begins its lease. With `expires` it loses its tasks
    /// when its process freezes for longer than the lease.
    pub(crate) fn hold_leased(&self, session: SessionId, lease: Lease, expires: bool) -> Result<()> {
        let path = lease_path(&self.store_dir, session);
        self.hold_with(session, || {
            LeaseFile::create(&path, lease, expires)
                .map(|lease| Some(Arc::new(lease)))
                .map_err(|error| self.failed(error))
        })
    }

    fn hold_with(
        &self,
        session: SessionId,
        lease: impl FnOnce() -> Result<Option<Arc<LeaseFile>>>,
    ) -> Result<()> {
        private::create_dir_all(&self.dir).map_err(|error| self.failed(error))?;
        let path = self.path(session);
        let file = loop {
            let file = private::options()
                .write(true)
                .create_new(true)
                .open(&path)
                .map_err(|error| self.failed(error))?;
            // A sweep may have locked the new file first. Wait for it, and create another file if
            // it has removed this one.
            file.lock().map_err(|error| Error::CannotLock { path: path.clone(), why: error.to_string() })?;
            if path.try_exists().map_err(|error| self.failed(error))? {
                break file;
            }
        };
        // After the lock: the sweep finds an orphaned lease by the lock file.
        let held = Held { lease: lease()?, _lock: file };
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(session, held);
        Ok(())
    }

    /// Returns the lease of a session of this process.
    pub(crate) fn own_lease(&self, session: SessionId) -> Option<Arc<LeaseFile>> {
        let held = self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        held.get(&session).and_then(|held| held.lease.clone())
    }

    /// Returns the content of a session's lease, or `None` if it has none or is condemned.
    pub(crate) fn lease(&self, session: SessionId) -> Option<LeaseRecord> {
        LeaseRecord::read(&lease_path(&self.store_dir, session))
    }

    /// Returns the content of a session's lease, also of one that is condemned.
    pub(crate) fn last_lease(&self, session: SessionId) -> Option<LeaseRecord> {
        let path = lease_path(&self.store_dir, session);
        LeaseRecord::read(&path).or_else(|| LeaseRecord::read(&path.with_extension("over")))
    }

    /// Ends the lease of a session whose process is frozen. The caller must have watched it for the
    /// whole length of the lease.
    pub(crate) fn condemn(&self, session: SessionId) -> Result<bool> {
        lease::condemn(&lease_path(&self.store_dir, session)).map_err(|error| self.failed(error))
    }

    fn is_condemned(&self, session: SessionId) -> bool {
        let over = lease_path(&self.store_dir, session).with_extension("over");
        matches!(over.try_exists(), Ok(true))
    }

    /// Returns whether the process of a session lives, frozen or not.
    pub(crate) fn is_held(&self, session: SessionId) -> bool {
        let file = OpenOptions::new().write(true).open(self.path(session));
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Returns the warden's note about itself, or an empty string if it has not written one yet.
    pub(crate) fn warden_note(&self, session: SessionId) -> String {
        fs::read_to_string(self.warden_path(session)).unwrap_or_default()
    }

    /// Releases a session of this process, after its row is gone.
    pub(crate) fn release(&self, session: SessionId) {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(&session);
        self.forget(session);
    }

    /// Returns the sessions that have a lock file, over or not.
    pub(crate) fn list(&self) -> Vec<SessionId> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        names.filter_map(|name| SessionId::parse(name.strip_suffix(".lock")?)).collect()
    }

    /// Removes the files of sessions without a row. Their process died between two steps of its
    /// beginning or of its end. A session that is just beginning holds its lock.
    pub(crate) fn sweep(&self, without_row: impl Iterator<Item = SessionId>) {
        for session in without_row {
            let Ok(file) = OpenOptions::new().write(true).open(self.path(session)) else { continue };
            if file.try_lock().is_ok() && self.has_warden(session).is_ok_and(|has_warden| !has_warden) {
                self.forget(session);
            }
        }
    }

    /// Removes the files of a session that is over. Its id is never used again.
    pub(crate) fn forget(&self, session: SessionId) {
        if let Err(error) = fs::remove_dir_all(scratch_dir(&self.store_dir, session))
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%session, %error, "scratch files of a session that is over could not be removed");
        }
        // The session's lock goes last: if this process dies in between, the next sweep finds the
        // rest by it.
        let lease = lease_path(&self.store_dir, session);
        let over = lease.with_extension("over");
        for path in [self.warden_path(session), lease, over, self.path(session)] {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                tracing::warn!(%session, %error, "a lock file of a session that is over could not be removed");
            }
        }
    }

    pub(crate) fn look(&self, session: SessionId) -> Result<Life> {
        let file = match OpenOptions::new().write(true).open(self.path(session)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Life::Dead(None)),
            Err(error) => return Err(self.failed(error)),
        };
        // Shared, so that concurrent checks do not see each other as alive. Only a living process
        // locks exclusively, and a dead session is never locked exclusively again.
        match file.try_lock_shared() {
            Ok(()) if self.has_warden(session)? => Ok(Life::Ending),
            Ok(()) => Ok(Life::Dead(Some(file))),
            Err(TryLockError::WouldBlock) if has(Bug::ReapLive) && !self.is_ours(session) => {
                Ok(Life::Dead(None))
            }
            Err(TryLockError::WouldBlock) if !self.is_condemned(session) => Ok(Life::Alive),
            Err(TryLockError::WouldBlock) if self.has_warden(session)? => Ok(Life::Ending),
            // Its node starts no other warden: it acquires that lock first, and checks the lease
            // afterwards.
            Err(TryLockError::WouldBlock) => Ok(Life::Dead(None)),
            Err(TryLockError::Error(error)) => {
                Err(Error::CannotLock { path: self.path(session), why: error.to_string() })
            }
        }
    }

    /// Returns the liveness of a session, after waiting for the warden of a dead node to end. What
    /// the warden is killing must not run beside what is started in its place. This takes
    /// milliseconds, unless the system cannot end a process.
    pub(crate) async fn look_after_its_warden(&self, session: SessionId) -> Result<Life> {
        const PATIENCE: Duration = Duration::from_secs(10);
        const PAUSE: Duration = Duration::from_millis(2);
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            match self.look(session)? {
                Life::Ending if tokio::time::Instant::now() < until => tokio::time::sleep(PAUSE).await,
                proof @ Life::Dead(_) => {
                    self.end_what_its_warden_left(session).await;
                    return Ok(proof);
                }
                life => return Ok(life),
            }
        }
    }

    /// Kills the steps of a warden that was killed together with its node, where they are in
    /// cgroups. The next warden on the host sweeps them too, but it may have started before this
    /// one was dead.
    async fn end_what_its_warden_left(&self, session: SessionId) {
        const PATIENCE: Duration = Duration::from_secs(1);
        const PAUSE: Duration = Duration::from_millis(2);
        let note = self.warden_note(session);
        let Some(dir) = left_cgroup(&note) else { return };
        let is_populated = || {
            let events = fs::read_to_string(dir.join("cgroup.events"));
            events.is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
        };
        if !is_populated() {
            return;
        }
        tracing::warn!(%session, "its warden was killed; the steps that it has left are killed as well");
        if let Err(error) = fs::write(dir.join("cgroup.kill"), "1") {
            tracing::error!(%session, %error, "the steps of a warden that was killed cannot be killed");
            return;
        }
        let until = tokio::time::Instant::now() + PATIENCE;
        while is_populated() && tokio::time::Instant::now() < until {
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn is_ours(&self, session: SessionId) -> bool {
        self.held.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains_key(&session)
    }

    /// Returns whether a session has a warden. The node acquires the warden's lock before starting
    /// it, so that with the node dead the lock can only become free.
    fn has_warden(&self, session: SessionId) -> Result<bool> {
        let path = self.warden_path(session);
        let file = match OpenOptions::new().write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(self.failed(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(Error::CannotLock { path, why: error.to_string() }),
        }
    }

    fn warden_path(&self, session: SessionId) -> PathBuf {
        self.dir.join(format!("{session}.warden"))
    }

    fn path(&self, session: SessionId) -> PathBuf {
        self.dir.join(format!("{session}.lock"))
    }

    fn failed(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::StorageFull => Error::Full { path: self.dir.clone() },
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Error::ReadOnly { path: self.dir.clone(), why: error.to_string() }
            }
            _ => Error::Io { path: self.dir.clone(), why: error.to_string() },
        }
    }
}

/// Returns the cgroup directory in a warden's note about itself (`MARK PID DIRECTORY`).
fn left_cgroup(note: &str) -> Option<PathBuf> {
    let dir = Path::new(note.trim_end().splitn(3, ' ').nth(2)?);
    // Only the directory of a warden is ever killed.
    let name = dir.file_name()?.to_str()?;
    (dir.is_absolute() && name.starts_with("laneway-")).then(|| dir.to_owned())
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn condemned_session_is_dead_once_its_warden_is_gone_although_its_process_lives() {
        let dir = tempfile::tempdir().expect("a directory");
        let session = SessionId::new(Uuid::now_v7());
        let locks = SessionLocks::new(dir.path());
        locks.hold_leased(session, Lease::default(), true).expect("a lock and a lease");
        let warden = File::create(warden_lock(dir.path(), session)).expect("a file");
        warden.try_lock().expect("free");
        assert!(matches!(locks.look(session), Ok(Life::Alive)));
        assert!(locks.condemn(session).expect("renamed"));
        assert!(matches!(locks.look(session), Ok(Life::Ending)), "its warden still kills");
        drop(warden);
        assert!(matches!(locks.look(session), Ok(Life::Dead(_))));
        assert!(locks.is_held(session), "its process is only frozen");
        locks.forget(session);
        let left = std::fs::read_dir(dir.path().join("sessions")).expect("a directory").count();
        assert_eq!(left, 0, "nothing of it is left");
    }

    #[test]
    fn those_who_look_at_a_dead_session_do_not_take_each_other_for_it() {
        let dir = tempfile::tempdir().expect("a directory");
        let session = SessionId::new(Uuid::now_v7());
        let locks = SessionLocks::new(dir.path());
        locks.hold(session).expect("a lock");
        assert!(matches!(locks.look(session), Ok(Life::Alive)));
        // As after a death: the lock is gone, its file is not.
        locks.held.lock().expect("no panic").clear();
        let first = locks.look(session).expect("an answer");
        let second = locks.look(session).expect("an answer");
        assert!(matches!((&first, &second), (Life::Dead(_), Life::Dead(_))), "{second:?}");
    }
}
