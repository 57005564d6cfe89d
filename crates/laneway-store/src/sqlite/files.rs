//! Files of an embedded store, by the hash of what is in them: artifacts, which may be larger than a row should be.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use laneway_core::hash::{ContentHash, Hasher};
use uuid::Uuid;

use crate::error::{Error, Result};

/// Copies a file to its place. Whole, or not at all: it is renamed when all of it is on disk.
pub(super) fn keep(dir: &Path, path: &Path) -> Result<(ContentHash, u64)> {
    let home = dir.join("artifacts");
    let fresh = home.join(format!("{}.new", Uuid::now_v7()));
    let copied = || -> io::Result<(ContentHash, u64)> {
        std::fs::create_dir_all(&home)?;
        let (mut from, mut to) = (File::open(path)?, File::create_new(&fresh)?);
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
        std::fs::rename(&fresh, place(dir, &hash))?;
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

fn place(dir: &Path, hash: &ContentHash) -> PathBuf {
    dir.join("artifacts").join(hash.as_str())
}

fn failed(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ => Error::Io { path: path.to_owned(), why: error.to_string() },
    }
}
