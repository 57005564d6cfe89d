//! How a run's directory reaches a container that runs already: each warm container has a place on the host that it follows
//! (`rslave`), and for the length of a task the run's directory is mounted there.
//!
//! The places are below /run and nowhere near a person's files: whoever removes a directory recursively walks into what is
//! mounted there. For the same reason nothing here is ever removed recursively. A node that may not mount has none of
//! this; its warm containers are made for one directory each.
//!
//! A container sees its place read-only, and so cannot put anything in the way of what is mounted there next; what is lent to it
//! it may write. Nobody else of the host gets here: who may not look into a run's directory may not do so by this way either.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use laneway_core::id::SessionId;
use rustix::fs::{Mode, OFlags};
use rustix::mount::{MountPropagationFlags, UnmountFlags};

/// Directories of sessions, each with a lock that its owner holds.
const BASE: &str = "/run/laneway/mounts";

/// The places of one session.
#[derive(Debug)]
pub(super) struct Mounts {
    dir: PathBuf,
    /// Held for life: whoever obtains it knows that the owner is dead.
    _lock: File,
}

impl Mounts {
    /// Removes the places of dead sessions, and makes those of this one. The error says why there can be none.
    pub(super) fn open(session: SessionId) -> io::Result<Self> {
        std::fs::create_dir_all(BASE)?;
        close(Path::new(BASE))?;
        // One at a time: a directory that is being made looks like one that was left.
        let gate = File::create(Path::new(BASE).join("lock"))?;
        gate.lock()?;
        sweep(Path::new(BASE));
        let dir = Path::new(BASE).join(session.to_string());
        std::fs::create_dir_all(&dir)?;
        let lock = File::create(dir.join("lock"))?;
        lock.try_lock().map_err(io::Error::from)?;
        let mounts = Self { dir, _lock: lock };
        // Tried once here, so that what is not allowed is known before anything depends on it.
        mounts.place("trial")?;
        Ok(mounts)
    }

    /// A place for one container.
    pub(super) fn place(&self, name: &str) -> io::Result<Place> {
        let path = self.dir.join(name);
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let place = Place { path };
        rustix::mount::mount_bind(&place.path, &place.path)?;
        // Only what is shared can be followed.
        rustix::mount::mount_change(&place.path, MountPropagationFlags::SHARED)?;
        Ok(place)
    }
}

impl Drop for Mounts {
    fn drop(&mut self) {
        clear(&self.dir);
    }
}

/// What a container follows. Gone when dropped, with whatever is mounted there.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
}

impl Place {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lends a directory to the container: as the place itself, or below it where others are lent some at the same time.
    pub(super) fn lend(&self, dir: &Path, below: Option<&str>) -> io::Result<Loan> {
        let at = match below {
            None => self.path.clone(),
            Some(name) => {
                let at = self.path.join(name);
                std::fs::create_dir(&at)?;
                at
            }
        };
        let loan = Loan { at, is_below: below.is_some() };
        rustix::mount::mount_bind(dir, &loan.at)?;
        Ok(loan)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        unmount_all(&self.path);
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// A directory that a container sees until this is dropped.
#[derive(Debug)]
pub(super) struct Loan {
    at: PathBuf,
    is_below: bool,
}

impl Drop for Loan {
    fn drop(&mut self) {
        // Also if something in there still uses it.
        let _ = rustix::mount::unmount(&self.at, UnmountFlags::DETACH);
        if self.is_below {
            let _ = std::fs::remove_dir(&self.at);
        }
    }
}

/// For its owner alone, also where an older node has made it open.
fn close(dir: &Path) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let dir = rustix::fs::open(dir, flags, Mode::empty())?;
    Ok(rustix::fs::fchmod(dir, Mode::RWXU)?)
}

/// Ends every mount at this very path.
fn unmount_all(path: &Path) {
    // A few lie on top of each other at most; a limit all the same.
    for _ in 0..16 {
        if rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW).is_err() {
            break;
        }
    }
}

/// What sessions have left that were killed.
fn sweep(base: &Path) {
    let is_dir = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten().filter(is_dir) {
        let Ok(lock) = File::open(entry.path().join("lock")) else {
            // Half made, or half removed: only an empty one goes.
            let _ = std::fs::remove_dir(entry.path());
            continue;
        };
        if lock.try_lock().is_ok() {
            clear(&entry.path());
        }
    }
}

/// Removes the places of a session, each only if nothing is mounted there any more. What cannot be removed keeps its lock: by that the
/// next one to look knows it again.
fn clear(dir: &Path) {
    let mut is_clear = true;
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path();
        // What is lent below a place goes with the mount of the place itself.
        unmount_all(&path);
        for below in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let _ = std::fs::remove_dir(below.path());
        }
        is_clear &= std::fs::remove_dir(&path).is_ok();
    }
    if is_clear {
        let _ = std::fs::remove_file(dir.join("lock"));
        let _ = std::fs::remove_dir(dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(number: u8) -> SessionId {
        SessionId::parse(&format!("0199f2a0-0000-7000-8000-{:08x}{number:04x}", std::process::id()))
            .expect("an id")
    }

    /// Those who may not mount are not told of a failure here: `open` says why, and that is all there is.
    fn mounts(number: u8) -> Option<Mounts> {
        match Mounts::open(session(number)) {
            Ok(mounts) => Some(mounts),
            Err(error) => {
                assert!(!rustix::process::geteuid().is_root(), "{error}");
                None
            }
        }
    }

    #[test]
    fn a_directory_is_lent_and_taken_back_and_nothing_of_it_is_removed() {
        let Some(mounts) = mounts(1) else { return };
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("mine"), "kept").expect("a file");
        let place = mounts.place("1").expect("a place");
        let at = place.path().to_owned();
        let loan = place.lend(dir.path(), None).expect("a loan");
        assert!(at.join("mine").exists());
        drop(loan);
        assert!(!at.join("mine").exists());
        let loans = [Some("a"), Some("b")].map(|name| place.lend(dir.path(), name).expect("a loan"));
        assert!(at.join("a/mine").exists() && at.join("b/mine").exists());
        let base = mounts.dir.clone();
        drop((loans, place, mounts));
        assert!(!base.exists(), "nothing is left");
        assert_eq!(std::fs::read_to_string(dir.path().join("mine")).expect("the file"), "kept");
    }

    #[test]
    fn nobody_else_of_the_host_sees_what_is_lent() {
        use std::os::unix::fs::PermissionsExt as _;
        let Some(_mounts) = mounts(4) else { return };
        assert_eq!(std::fs::metadata(BASE).expect("it is there").permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_place_that_cannot_be_removed_is_found_again() {
        let base = tempfile::tempdir().expect("a directory");
        let session = base.path().join("session");
        std::fs::create_dir_all(session.join("1")).expect("made");
        for file in ["lock", "1/left"] {
            std::fs::write(session.join(file), "").expect("written");
        }
        sweep(base.path());
        assert!(session.join("lock").exists());
        std::fs::remove_file(session.join("1/left")).expect("removed");
        sweep(base.path());
        assert!(!session.exists());
    }

    #[test]
    fn what_a_dead_session_left_mounted_goes_and_its_files_stay() {
        let Some(dead) = mounts(2) else { return };
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("mine"), "kept").expect("a file");
        let place = dead.place("1").expect("a place");
        let loans = (place.lend(dir.path(), None), dead.place("2").expect("a place").path().to_owned());
        let base = dead.dir.clone();
        // As if it had been killed: nothing of it is ended, only its lock is free.
        let Mounts { dir: _, _lock } = &dead;
        _lock.unlock().expect("the lock");
        std::mem::forget((loans, place));
        std::mem::forget(dead);
        let _other = mounts(3).expect("the same rights as before");
        assert!(!base.exists(), "the next one to start removes it");
        assert_eq!(std::fs::read_to_string(dir.path().join("mine")).expect("the file"), "kept");
    }
}
