//! Directories by the hash of what they were made of: bundles and layers, unpacked. Several
//! processes of one host share them. A directory stays as long as a process holds it, and for an
//! hour after its last use.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use laneway_core::hash::ContentHash;
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, futimens};

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };

/// How long a directory stays after its last use.
const IDLE_TIME: Duration = Duration::from_secs(3600);

/// The kept directories of one kind.
#[derive(Debug, Clone)]
pub(super) struct KeptDirs {
    home: PathBuf,
    held: Arc<Mutex<HashMap<ContentHash, Weak<KeptDir>>>>,
}

/// A directory that stays as long as this value lives.
#[derive(Debug)]
pub(super) struct KeptDir {
    path: PathBuf,
    _lock: File,
}

impl KeptDir {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl KeptDirs {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { home, held: Arc::default() }
    }

    /// Returns the directory of a hash. `make` makes it where it is not there yet: whole at a new
    /// path, or not at all.
    pub(super) fn get<E: From<io::Error>>(
        &self,
        hash: &ContentHash,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Arc<KeptDir>, E> {
        // One at a time: what one makes the next finds.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(dir) = held.get(hash).and_then(Weak::upgrade) {
            return Ok(dir);
        }
        laneway_store::private::create_dir_all(&self.home)?;
        let path = self.path(hash);
        let mut lock = self.lock(hash, FlockOperation::LockShared)?;
        if !path.is_dir() {
            drop(lock);
            lock = self.lock(hash, FlockOperation::LockExclusive)?;
            if !path.is_dir() {
                let fresh = self.home.join(format!("{hash}.new"));
                remove_if_there(&fresh)?;
                make(&fresh)?;
                std::fs::rename(&fresh, &path)?;
            }
        }
        futimens(&lock, &Timestamps { last_access: NOW, last_modification: NOW }).map_err(io::Error::from)?;
        flock(&lock, FlockOperation::LockShared).map_err(io::Error::from)?;
        let dir = Arc::new(KeptDir { path, _lock: lock });
        held.retain(|_, dir| dir.strong_count() > 0);
        held.insert(hash.clone(), Arc::downgrade(&dir));
        Ok(dir)
    }

    /// Returns the directory of a hash if it is there.
    pub(super) fn find(&self, hash: &ContentHash) -> io::Result<Option<Arc<KeptDir>>> {
        if !self.path(hash).is_dir() {
            return Ok(None);
        }
        let gone = |_: &Path| Err(io::Error::from(io::ErrorKind::NotFound));
        match self.get(hash, gone) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Removes what has not been used for an hour and is held by no process. `stays` names what must
    /// stay all the same.
    pub(super) fn tidy(&self, stays: impl Fn(&ContentHash) -> bool) {
        for hash in self.all().into_iter().filter(|hash| !stays(hash)) {
            if let Err(error) = self.remove_if_idle(&hash) {
                tracing::debug!(%error, %hash, "an unpacked directory stays");
            }
        }
    }

    /// Returns the hashes of all directories that are there.
    pub(super) fn all(&self) -> Vec<ContentHash> {
        let entries = std::fs::read_dir(&self.home).into_iter().flatten().flatten();
        entries.filter_map(|entry| ContentHash::parse(entry.file_name().to_str()?)).collect()
    }

    /// Where the directory of a hash is, or would be.
    pub(super) fn path(&self, hash: &ContentHash) -> PathBuf {
        self.home.join(hash.as_str())
    }

    fn remove_if_idle(&self, hash: &ContentHash) -> io::Result<()> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.get(hash).is_some_and(|dir| dir.strong_count() > 0) {
            return Ok(());
        }
        let used = std::fs::metadata(self.lock_path(hash)).and_then(|data| data.modified());
        // By the clock of files, which is the machine's: nothing but the age of this directory hangs on it.
        let is_idle = |used: SystemTime| used.elapsed().is_ok_and(|idle| idle > IDLE_TIME);
        if used.is_ok_and(|used| !is_idle(used)) {
            return Ok(());
        }
        let Ok(_lock) = self.lock(hash, FlockOperation::NonBlockingLockExclusive) else { return Ok(()) };
        // Renamed first, so that no process finds half of it.
        let gone = self.home.join(format!("{hash}.gone"));
        remove_if_there(&gone)?;
        std::fs::rename(self.path(hash), &gone)?;
        std::fs::remove_file(self.lock_path(hash))?;
        remove_if_there(&gone)
    }

    /// Locks the file of a hash. A process that removed the directory removed the file as well, so
    /// the lock counts only on the file that is there now.
    fn lock(&self, hash: &ContentHash, operation: FlockOperation) -> io::Result<File> {
        let path = self.lock_path(hash);
        loop {
            let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
            flock(&file, operation)?;
            let locked = file.metadata()?;
            match std::fs::metadata(&path) {
                Ok(there) if (there.dev(), there.ino()) == (locked.dev(), locked.ino()) => return Ok(file),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn lock_path(&self, hash: &ContentHash) -> PathBuf {
        self.home.join(format!("{hash}.lock"))
    }
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make(path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)?;
        std::fs::write(path.join("file"), "content")
    }

    #[test]
    fn a_directory_is_made_once_and_stays_while_it_is_held() {
        let home = tempfile::tempdir().expect("a directory");
        let (one, other) = (KeptDirs::new(home.path().to_owned()), KeptDirs::new(home.path().to_owned()));
        let hash = ContentHash::of(b"a");
        assert!(one.find(&hash).expect("an answer").is_none());
        let held = one.get(&hash, make).expect("made");
        let again = other.get(&hash, |_| Err(io::Error::other("made twice"))).expect("found");
        assert_eq!(held.path(), again.path());
        assert!(held.path().join("file").exists());
        let long_ago = std::fs::FileTimes::new().set_modified(SystemTime::UNIX_EPOCH);
        held._lock.set_times(long_ago).expect("set");
        one.tidy(|_| false);
        assert!(held.path().exists(), "it is held");
        let path = held.path().to_owned();
        drop((held, again));
        one.tidy(|_| true);
        assert!(path.exists(), "it must stay");
        one.tidy(|_| false);
        assert!(!path.exists() && !home.path().join(format!("{hash}.lock")).exists());
        other.get(&hash, make).expect("made again");
        one.tidy(|_| false);
        assert!(path.exists(), "it was used just now");
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_not_there() {
        let home = tempfile::tempdir().expect("a directory");
        let dirs = KeptDirs::new(home.path().to_owned());
        let hash = ContentHash::of(b"a");
        let half = |path: &Path| {
            std::fs::create_dir(path)?;
            Err(io::Error::other("the disk is full"))
        };
        assert!(dirs.get(&hash, half).is_err());
        assert!(dirs.find(&hash).expect("an answer").is_none());
        dirs.get(&hash, make).expect("made by the next try");
    }
}
