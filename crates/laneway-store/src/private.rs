//! Files and directories of a store, private to the user that runs Laneway, for any umask. They
//! hold documents, logs, artifacts and hashes of tokens. The mode of an existing directory is never
//! changed: `laneway doctor` reports those that other users can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Permissions of users outside the owner's group.
const OTHERS: u32 = 0o007;

/// Creates a directory and its missing parents.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Returns options that make every file they create private.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Writes a whole file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(path)?.write_all(bytes)
}

/// Returns the files and directories of a store that other users of this host can read or change,
/// with their modes. `dir` holds the store. If it is closed to others, its content is out of their
/// reach, in any mode.
pub fn open_to_others(dir: &Path, names: &[String]) -> Vec<(PathBuf, u32)> {
    let mode = |path: &Path| Some(std::fs::symlink_metadata(path).ok()?.permissions().mode() & 0o777);
    let own = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    if mode(own).is_none_or(|mode| mode & OTHERS == 0) {
        return Vec::new();
    }
    let paths = names.iter().map(|name| dir.join(name));
    let open =
        paths.filter_map(|path| mode(&path).filter(|mode| mode & OTHERS != 0).map(|mode| (path, mode)));
    open.collect()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_is_private_and_what_is_open_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("open");
        create_dir_all(&dir.path().join("logs/run")).expect("made");
        write(&dir.path().join("laneway.db"), b"x").expect("written");
        assert_eq!((mode(&dir.path().join("logs")), mode(&dir.path().join("logs/run"))), (0o700, 0o700));
        assert_eq!(mode(&dir.path().join("laneway.db")), 0o600);
        let names = ["logs", "laneway.db", "artifacts"].map(str::to_owned);
        assert_eq!(open_to_others(dir.path(), &names), []);
        let logs = dir.path().join("logs");
        std::fs::set_permissions(&logs, Permissions::from_mode(0o755)).expect("open");
        assert_eq!(open_to_others(dir.path(), &names), [(logs, 0o755)]);
        std::fs::set_permissions(dir.path(), Permissions::from_mode(0o750)).expect("closed");
        assert_eq!(open_to_others(dir.path(), &names), [], "others cannot get that far");
    }
}
