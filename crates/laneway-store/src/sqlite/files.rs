//! Files of an embedded store, by the hash of what is in them: artifacts, which may be larger than a row should be.
//!
//! Whoever puts a file in its place or names it holds the lock with others, whoever removes one holds it alone, and looks again
//! at what it is about to remove.

use std::fs::{File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use laneway_core::hash::{ContentHash, Hasher};
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::private;

/// Copies a file to its place. Whole, or not at all: it is renamed when all of it is on disk.
pub(super) fn keep(dir: &Path, path: &Path) -> Result<(ContentHash, u64)> {
    let home = dir.join("artifacts");
    let fresh = home.join(format!("{}.new", Uuid::now_v7()));
    let copied = || -> io::Result<(ContentHash, u64)> {
        private::create_dir_all(&home)?;
        let mut to = private::options().write(true).create_new(true).open(&fresh)?;
        let mut from = File::open(path)?;
        let (mut hasher, mut size, mut buffer) = (Hasher::new(), 0, vec![0; 64 << 10]);
        loop {
            let read = from.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            to.write_all(&buffer[..read])?;
            size += read as u64;
        }
        to.sync_all()?;
        let hash = hasher.finish();
        let held = lock(dir)?;
        held.lock_shared()?;
        std::fs::rename(&fresh, place(dir, &hash))?;
        // What is answered here is named in the database, and must be found after a crash of the machine: a name is on disk when its
        // directory is. That one's own name too: somebody may have made it just now.
        for dir in [home.as_path(), dir] {
            File::open(dir)?.sync_all()?;
        }
        Ok((hash, size))
    };
    copied().map_err(|error| {
        drop(std::fs::remove_file(&fresh));
        failed(path, &error)
    })
}

pub(super) fn fetch(dir: &Path, hash: &ContentHash, to: &Path) -> Result<()> {
    let from = place(dir, hash);
    match std::fs::copy(&from, to) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !from.exists() => {
            Err(Error::NoSuchBlob { hash: hash.to_string() })
        }
        Err(error) => Err(failed(to, &error)),
    }
}

pub(super) fn open(dir: &Path, hash: &ContentHash) -> Result<File> {
    let path = place(dir, hash);
    File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::NoSuchBlob { hash: hash.to_string() },
        _ => failed(&path, &error),
    })
}

/// While this is held nothing is removed.
pub(crate) fn hold(dir: &Path) -> Result<File> {
    let held = lock(dir).and_then(|file| file.lock_shared().map(|()| file));
    held.map_err(|error| failed(&dir.join("artifacts"), &error))
}

/// While this is held nothing is put in its place or named.
pub(super) fn hold_alone(dir: &Path) -> Result<File> {
    let held = lock(dir).and_then(|file| file.lock().map(|()| file));
    held.map_err(|error| failed(&dir.join("artifacts"), &error))
}

/// Names of files that nobody has brought since a moment, among them what a dead process left half-done.
pub(super) fn older(dir: &Path, before: Millis) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("artifacts")).into_iter().flatten().flatten();
    let old = entries.filter(|entry| entry.metadata().is_ok_and(|file| is_older(&file, before)));
    let names = old.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| ContentHash::parse(name).is_some() || name.ends_with(".new")).collect()
}

/// Removes a file, if nobody has brought it since. Gives its size.
pub(super) fn remove(dir: &Path, name: &str, before: Millis) -> Result<Option<u64>> {
    let path = dir.join("artifacts").join(name);
    let Ok(file) = std::fs::metadata(&path) else { return Ok(None) };
    if !is_older(&file, before) {
        return Ok(None);
    }
    std::fs::remove_file(&path).map_err(|error| failed(&path, &error))?;
    Ok(Some(file.len()))
}

/// Directories that are named after runs and in which nothing has been made since a moment.
pub(super) fn runs_within(dir: &Path, before: Millis) -> Vec<(RunId, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let old = entries.filter(|entry| entry.metadata().is_ok_and(|found| is_older(&found, before)));
    old.filter_map(|entry| Some((RunId::parse(entry.file_name().to_str()?)?, entry.path()))).collect()
}

fn is_older(file: &Metadata, before: Millis) -> bool {
    let since = file.modified().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
    since.is_some_and(|since| Millis(0).after(since) < before)
}

fn lock(dir: &Path) -> io::Result<File> {
    let home = dir.join("artifacts");
    private::create_dir_all(&home)?;
    private::options().write(true).create(true).truncate(false).open(home.join(".lock"))
}

fn place(dir: &Path, hash: &ContentHash) -> PathBuf {
    dir.join("artifacts").join(hash.as_str())
}

pub(super) fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ => Error::Io { path: path.to_owned(), why: error.to_string() },
    }
}
