//! Copies that are overlays: what is read comes from the run's directory, what is written lies beside. Made in a moment,
//! whatever the size, since names are looked at and no file is; only who may mount can, on Linux, and not on every file system: a failure
//! means that it cannot be.
//!
//! What others change in the run's directory meanwhile may show through, which a copy would not let happen.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Gid, Mode, Uid, fchown, fstat, mkdirat, symlinkat};

use super::copy;
use super::links::{self, Links};
use super::walk::{self, Identity, Kind};

/// What was written.
pub(super) fn upper(cell: &Path) -> PathBuf {
    cell.join("upper")
}

/// Whether something is mounted where the copy of a cell is.
pub(super) fn is_mounted(cell: &Path) -> bool {
    let dev = |path: &Path| walk::identity(path).map(|identity| identity.dev).ok();
    let at = cell.join("at");
    dev(&at).is_some() && dev(&at) != dev(&at.join("tree"))
}

/// Whether a file system is mounted somewhere below a directory, but for what is never part of a copy (`own`: the store, and the copies).
/// An overlay shows what is under it instead, so that its files would seem to be gone. True where nobody can tell.
pub(super) fn has_mounts_below(base: &Path, own: &[&Path]) -> bool {
    let Ok(base) = base.canonicalize() else { return true };
    let own: Vec<PathBuf> =
        own.iter().filter_map(|own| own.canonicalize().ok()).filter(|own| *own != base).collect();
    let is_own = |place: &Path| own.iter().any(|own| place.starts_with(own));
    let Ok(mounts) = std::fs::read("/proc/self/mountinfo") else { return true };
    let places =
        mounts.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b' ').nth(4));
    places.map(unescaped).any(|place| place != base && place.starts_with(&base) && !is_own(&place))
}

/// A path as that file writes it: blanks and the like as three octal digits behind a backslash.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        let digits = tail.first_chunk::<3>().filter(|_| *byte == b'\\');
        let code = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        path.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Lays links that lead into the copy over those that lead into the run's directory. Before the first mount, when nobody has written
/// anything. Every name is looked at, and nothing else is: that is what an overlay of many files takes.
pub(super) fn lead_within(
    cell: &Path,
    from: &OwnedFd,
    hidden: &BTreeSet<Identity>,
    links: &Links,
) -> io::Result<()> {
    let mut search = Search { hidden, links, at: PathBuf::new(), found: Vec::new() };
    search.directory(from, 0)?;
    if search.found.is_empty() {
        return Ok(());
    }
    let upper = upper(cell);
    std::fs::create_dir_all(&upper)?;
    let (upper, _) = walk::root(&upper)?;
    let ways = search.found.iter().flat_map(|(path, _)| path.ancestors().skip(1));
    let ways: BTreeSet<&Path> = ways.filter(|way| !way.as_os_str().is_empty()).collect();
    for way in &ways {
        let (at, name) = walk::parent(&upper, way)?;
        mkdirat(&at, &*name, Mode::RWXU)?;
    }
    for (path, target) in &search.found {
        let (at, name) = walk::parent(&upper, path)?;
        symlinkat(target, &at, &*name)?;
    }
    // These are what is seen of the directories from here on. Deepest first: what is put into one changes its time.
    for way in ways.iter().rev() {
        let (at, name) = walk::parent(from, way)?;
        let (was, seen) = walk::directory(&at, &name)?;
        let (at, name) = walk::parent(&upper, way)?;
        let (now, _) = walk::directory(&at, &name)?;
        let owner = fstat(&was)?;
        fchown(&now, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))?;
        copy::finish(&now, &seen)?;
    }
    Ok(())
}

struct Search<'a> {
    hidden: &'a BTreeSet<Identity>,
    links: &'a Links,
    at: PathBuf,
    /// Where they are, and where they are to lead.
    found: Vec<(PathBuf, PathBuf)>,
}

impl Search<'_> {
    fn directory(&mut self, from: &OwnedFd, depth: usize) -> io::Result<()> {
        if depth >= walk::DEEPEST {
            return Err(io::Error::other("it lies too deep"));
        }
        for entry in Dir::read_from(from)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Directory => Some(Kind::Directory),
                FileType::Symlink => Some(Kind::Symlink),
                // Not every file system says it here.
                FileType::Unknown => walk::look(from, name)?.map(|seen| seen.kind),
                FileType::RegularFile
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => None,
            };
            self.at.push(walk::os_name(name));
            match kind {
                Some(Kind::Directory) => match walk::directory(from, name) {
                    Ok((_, seen)) if self.hidden.contains(&seen.stamp.identity) => {}
                    Ok((inner, _)) => self.directory(&inner, depth + 1)?,
                    Err(error) if is_other_now(&error) => {}
                    Err(error) => return Err(error),
                },
                Some(Kind::Symlink) => match links::target(from, name) {
                    Ok(target) => {
                        let target = self.links.copied(&target);
                        self.found.extend(target.map(|target| (self.at.clone(), target)));
                    }
                    Err(error) if is_other_now(&error) => {}
                    Err(error) => return Err(error),
                },
                Some(Kind::File | Kind::Other) | None => {}
            }
            self.at.pop();
        }
        Ok(())
    }
}

/// Somebody has removed it meanwhile, or put something else in its place.
fn is_other_now(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::NOTDIR | Errno::INVAL | Errno::LOOP))
}

/// Mounts an overlay over `to`. Says whether that was possible; if not, empty layers are left in the cell.
#[cfg(target_os = "linux")]
pub(super) fn mount(
    cell: &Path,
    to: &Path,
    base: &Path,
    from: &OwnedFd,
    hidden: &BTreeSet<Identity>,
) -> bool {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt as _;

    use rustix::fs::{makedev, mknodat};
    use rustix::mount::{MountFlags, mount};

    let (upper, work) = (upper(cell), cell.join("work"));
    let made = std::fs::create_dir_all(&upper).and_then(|()| std::fs::create_dir_all(&work));
    let Ok(base) = std::path::absolute(base) else { return false };
    let mut options = Vec::new();
    for (name, path) in [("lowerdir=", &base), ("upperdir=", &upper), ("workdir=", &work)] {
        // These separate options and layers.
        if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b':' | b'\\')) {
            return false;
        }
        options.extend_from_slice(name.as_bytes());
        options.extend_from_slice(path.as_os_str().as_bytes());
        options.push(b',');
    }
    // A directory that is renamed is copied, so that the layers say by themselves what is where.
    options.extend_from_slice(b"redirect_dir=off,metacopy=off,index=off");
    let Ok(options) = CString::new(options) else { return false };
    // What is hidden stands at the top of the directory, and is, to those who look, removed.
    let hide = || -> std::io::Result<()> {
        let (upper, _) = walk::root(&upper)?;
        for name in walk::names(from)? {
            let is_hidden =
                walk::look(from, &name)?.is_some_and(|seen| hidden.contains(&seen.stamp.identity));
            if is_hidden && walk::look(&upper, &name)?.is_none() {
                mknodat(&upper, &*name, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?;
            }
        }
        Ok(())
    };
    made.is_ok()
        && hide().is_ok()
        && mount("laneway", to, "overlay", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str()).is_ok()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn mount(_: &Path, _: &Path, _: &Path, _: &OwnedFd, _: &BTreeSet<Identity>) -> bool {
    false
}

/// Takes it away again; what was written stays. Whoever still works there goes on, and is the last.
pub(super) fn unmount(cell: &Path) {
    #[cfg(target_os = "linux")]
    if is_mounted(cell) {
        use rustix::mount::{UnmountFlags, unmount};
        let flags = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
        if let Err(error) = unmount(cell.join("at").join("tree"), flags) {
            tracing::debug!(%error, "a copy could not be unmounted");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = cell;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_found_whatever_its_name_is() {
        assert_eq!(unescaped(br"/a\040b\134c"), Path::new("/a b\\c"));
        assert_eq!(unescaped(br"/a\04"), Path::new(r"/a\04"));
        let dir = tempfile::tempdir().expect("a directory");
        assert!(has_mounts_below(Path::new("/"), &[dir.path()]), "/proc is one");
        assert!(!has_mounts_below(dir.path(), &[]));
    }
}
