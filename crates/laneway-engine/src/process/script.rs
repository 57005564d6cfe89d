//! Scripts as files, for those that cannot be handed to the shell as an argument.
//!
//! A file is named by its content, so that attempts and tasks share it. It appears under its name only
//! when it is whole and closed (write, close, rename): a file open for writing cannot be executed.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::explain::StartError;

/// Makes the script's file, or finds it, whole and unchanged.
pub(super) fn write(scratch: &Path, text: &str) -> Result<PathBuf, StartError> {
    let hash = blake3::hash(text.as_bytes()).to_hex();
    let path = scratch.join(format!("script-{}", &hash[..32]));
    if is_intact(&path, text) {
        return Ok(path);
    }
    match replace(&path, text) {
        Ok(()) => Ok(path),
        Err(source) => Err(StartError::ScriptFile { path, source }),
    }
}

/// Compares the content: a step may have written to it, and a machine's crash may have emptied it.
fn is_intact(path: &Path, text: &str) -> bool {
    let is_ours = std::fs::symlink_metadata(path).is_ok_and(|found| {
        found.is_file() && found.permissions().mode() & 0o777 == 0o700 && found.len() == text.len() as u64
    });
    is_ours && std::fs::read(path).is_ok_and(|found| found == text.as_bytes())
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    // Unique among threads and processes that make the same script at the same time.
    let temporary = path.with_extension(format!("{}-{count}", std::process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o700).open(&temporary)?;
        // The umask may have taken bits away.
        file.set_permissions(std::fs::Permissions::from_mode(0o700))?;
        file.write_all(text.as_bytes())?;
        drop(file);
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_file_is_shared_and_healed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let text = "#!/bin/sh\nexit 0\n";
        let path = write(dir.path(), text).expect("writes");
        let inode =
            |path: &Path| std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("exists"));
        let first = inode(&path);
        assert_eq!(write(dir.path(), text).expect("finds"), path);
        assert_eq!(inode(&path), first);
        assert_ne!(write(dir.path(), "#!/bin/sh\n").expect("writes"), path);

        let damages: [&dyn Fn(); 3] = [
            &|| std::fs::write(&path, "#!/bin/sh\nexit 1\n").expect("damage"),
            &|| std::fs::write(&path, "").expect("damage"),
            &|| {
                let mode = std::fs::Permissions::from_mode(0o600);
                std::fs::set_permissions(&path, mode).expect("damage");
            },
        ];
        for damage in damages {
            damage();
            write(dir.path(), text).expect("heals");
            assert!(is_intact(&path, text));
        }
        let left = std::fs::read_dir(dir.path()).expect("lists").count();
        assert_eq!(left, 2, "no temporary file stays");
    }
}
