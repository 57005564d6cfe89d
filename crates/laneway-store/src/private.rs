//! Files and directories of a store: for the user that runs Laneway and nobody else, whatever the umask. They hold documents, logs,
//! artifacts and hashes of tokens. Directories that exist keep their mode; `laneway doctor` reports those that others can read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// What users outside of the owner's group may do.
const OTHERS: u32 = 0o007;

/// Makes a directory, with those above it that are missing.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// To open a file with which, if it makes one, makes it private.
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE_MODE);
    options
}

/// Writes a whole file.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(path)?.write_all(bytes)
}

/// Which files and directories of a store other users of this host can read or change, with their modes. `dir` holds the store; what
/// lies in a directory that is closed to others is out of their reach, whatever its own mode.
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
