//! Directories by the hash of what they were made of: bundles and layers, unpacked. Several
//! processes of one host share them. A directory stays as long as a process holds it, and for an
//! hour after its last use.
//!
//! A hold is one locked file that lists what it holds: a view of 1,000 layers takes one handle. All
//! holds are made, and all directories are removed, under the lock of the home.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
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
}

/// Directories stay as long as this value lives, also those that are made later.
#[derive(Debug)]
pub(super) struct Hold {
    path: PathBuf,
    _lock: File,
}

impl Drop for Hold {
    fn drop(&mut self) {
        // Of a process that dies the file stays, without its lock.
        drop(std::fs::remove_file(&self.path));
    }
}

impl KeptDirs {
    pub(super) fn new(home: PathBuf) -> Self {
        Self { home }
    }

    /// Holds directories, whether they are there yet or not.
    pub(super) fn hold<'h>(&self, hashes: impl IntoIterator<Item = &'h ContentHash>) -> io::Result<Hold> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let list: Vec<&str> = hashes.into_iter().map(ContentHash::as_str).collect();
        let holds = self.holds();
        laneway_store::private::create_dir_all(&holds)?;
        let _turn = self.turn()?;
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let path = holds.join(format!("{}-{number}", std::process::id()));
            let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&path);
            let mut file = match file {
                // A process that is gone had this number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            let hold = |lock| Hold { path, _lock: lock };
            return match file.write_all(list.join("\n").as_bytes()) {
                Ok(()) => Ok(hold(file)),
                Err(error) => {
                    drop(hold(file));
                    Err(error)
                }
            };
        }
    }

    /// Returns the directory of a hash that the caller holds. `make` makes it where it is not there
    /// yet: whole at a new path, or not at all.
    pub(super) fn get<E: From<io::Error>>(
        &self,
        hash: &ContentHash,
        make: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        laneway_store::private::create_dir_all(&self.home)?;
        let path = self.path(hash);
        let mut lock = self.lock(hash, FlockOperation::LockShared)?;
        if !path.is_dir() {
            drop(lock);
            // What one process or thread makes the next finds.
            lock = self.lock(hash, FlockOperation::LockExclusive)?;
            if !path.is_dir() {
                let fresh = self.home.join(format!("{hash}.new"));
                remove_if_there(&fresh)?;
                make(&fresh)?;
                std::fs::rename(&fresh, &path)?;
            }
        }
        futimens(&lock, &Timestamps { last_access: NOW, last_modification: NOW }).map_err(io::Error::from)?;
        Ok(path)
    }

    /// Returns the directory of a hash that the caller holds if it is there.
    pub(super) fn find(&self, hash: &ContentHash) -> io::Result<Option<PathBuf>> {
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
        let used = std::fs::metadata(self.lock_path(hash)).and_then(|data| data.modified());
        // By the clock of files, which is the machine's: nothing but the age of this directory hangs on it.
        let is_idle = |used: SystemTime| used.elapsed().is_ok_and(|idle| idle > IDLE_TIME);
        if used.is_ok_and(|used| !is_idle(used)) {
            return Ok(());
        }
        let turn = self.turn()?;
        if self.held()?.contains(hash.as_str()) {
            return Ok(());
        }
        let Ok(_lock) = self.lock(hash, FlockOperation::NonBlockingLockExclusive) else { return Ok(()) };
        // Renamed first, so that no process finds half of it.
        let gone = self.home.join(format!("{hash}.gone"));
        remove_if_there(&gone)?;
        std::fs::rename(self.path(hash), &gone)?;
        std::fs::remove_file(self.lock_path(hash))?;
        // To remove a large directory takes a while, and no process finds it any more.
        drop(turn);
        remove_if_there(&gone)
    }

    /// What is held, by hash. Files of processes that are gone are removed. Called in its turn.
    fn held(&self) -> io::Result<HashSet<String>> {
        let mut held = HashSet::new();
        let holds = match std::fs::read_dir(self.holds()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(held),
            holds => holds?,
        };
        for entry in holds {
            let path = entry?.path();
            let file = match File::open(&path) {
                // A hold that ends needs no turn.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => file?,
            };
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => drop(std::fs::remove_file(&path)),
                Err(_) => held.extend(io::read_to_string(file)?.lines().map(str::to_owned)),
            }
        }
        Ok(held)
    }

    /// Locks the home: a hold is made, or a directory is removed.
    fn turn(&self) -> io::Result<File> {
        let path = self.home.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    fn holds(&self) -> PathBuf {
        self.home.join("holds")
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
        let (held, again) = (one.hold([&hash]).expect("held"), other.hold([&hash]).expect("held"));
        let path = one.get(&hash, make).expect("made");
        let found = other.get(&hash, |_| Err(io::Error::other("made twice"))).expect("found");
        assert_eq!(path, found);
        assert!(path.join("file").exists());
        let long_ago = || {
            let lock = File::options().write(true).open(one.lock_path(&hash)).expect("there");
            lock.set_modified(SystemTime::UNIX_EPOCH).expect("set");
        };
        long_ago();
        one.tidy(|_| false);
        assert!(path.exists(), "it is held twice");
        drop(held);
        one.tidy(|_| false);
        assert!(path.exists(), "it is held once");
        drop(again);
        one.tidy(|_| true);
        assert!(path.exists(), "it must stay");
        one.tidy(|_| false);
        assert!(!path.exists() && !home.path().join(format!("{hash}.lock")).exists());
        other.get(&hash, make).expect("made again");
        one.tidy(|_| false);
        assert!(path.exists(), "it was used just now");
        // As a process leaves it that dies.
        std::fs::write(one.holds().join("1-0"), hash.as_str()).expect("written");
        long_ago();
        one.tidy(|_| false);
        assert!(!path.exists());
    }

    #[test]
    fn a_hold_takes_one_handle_for_any_number_of_directories() {
        let home = tempfile::tempdir().expect("a directory");
        let dirs = KeptDirs::new(home.path().to_owned());
        let hashes: Vec<ContentHash> = (0..2_000_u32).map(|n| ContentHash::of(&n.to_le_bytes())).collect();
        let open = || std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        let before = open();
        let held = dirs.hold(&hashes).expect("held");
        for hash in &hashes {
            dirs.get(hash, |path| std::fs::create_dir(path)).expect("made");
        }
        // Other tests of this process may open some meanwhile.
        assert!(open() < before + 500, "{before}");
        drop(held);
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
