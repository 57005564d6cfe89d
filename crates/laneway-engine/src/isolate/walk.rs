//! Looking at directories by their handles. No name is followed that is a symlink; what was looked at and what is opened are
//! compared by kind, and whatever somebody swapped in between is an error or something else, never a way out.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

/// Directories within each other. A handle is open for each on the way down.
pub(crate) const DEEPEST: usize = 256;

/// What a file or directory is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub(crate) struct Identity {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    /// Pipes, sockets, devices: not copied, not compared.
    Other,
}

/// One look at something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// How an overlay notes that a path is removed: a character device with this number is nothing else.
    pub(crate) is_whiteout: bool,
    pub(crate) stamp: Stamp,
}

/// As long as this stays the same, so does the content: nobody but the kernel sets the time of the last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Stamp {
    pub(crate) identity: Identity,
    pub(crate) size: u64,
    /// Both in nanoseconds.
    pub(crate) modified: i64,
    pub(crate) changed: i64,
}

/// A directory by its path, which may lead through symlinks: it is the one place that somebody has named.
pub(crate) fn root(path: &Path) -> io::Result<(OwnedFd, Identity)> {
    let fd = openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let identity = seen(&fstat(&fd)?).stamp.identity;
    Ok((fd, identity))
}

pub(crate) fn identity(path: &Path) -> io::Result<Identity> {
    Ok(seen(&statat(CWD, path, AtFlags::empty())?).stamp.identity)
}

/// A directory within another one.
pub(crate) fn directory(at: impl AsFd, name: &CStr) -> io::Result<(OwnedFd, Seen)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(at, name, flags, Mode::empty())?;
    let seen = seen(&fstat(&fd)?);
    Ok((fd, seen))
}

/// A file within a directory; an error for anything else. Without waiting: it may have become a pipe.
pub(crate) fn file(at: impl AsFd, name: &CStr) -> io::Result<(File, Seen)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let fd = openat(at, name, flags, Mode::empty())?;
    let seen = seen(&fstat(&fd)?);
    match seen.kind {
        Kind::File => Ok((File::from(fd), seen)),
        Kind::Directory | Kind::Symlink | Kind::Other => Err(io::Error::other("it is no file any more")),
    }
}

/// What stands under a name; `None` for nothing.
pub(crate) fn look(at: impl AsFd, name: &CStr) -> io::Result<Option<Seen>> {
    match statat(at, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(seen(&stat))),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(crate) fn again(file: impl AsFd) -> io::Result<Seen> {
    Ok(seen(&fstat(file)?))
}

/// Everything in a directory, by name.
pub(crate) fn names(at: impl AsFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(at)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// The directory in which a relative path stands, and its name there. Every part of the way is a real directory.
pub(crate) fn parent(root: &OwnedFd, path: &Path) -> io::Result<(OwnedFd, CString)> {
    let name = path.file_name().ok_or_else(|| io::Error::other("it has no name"))?;
    let mut at = root.try_clone()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(part) = part else {
            return Err(io::Error::other("it leads out of its directory"));
        };
        at = directory(&at, &c_name(part)?)?.0;
    }
    Ok((at, c_name(name)?))
}

pub(crate) fn c_name(name: &OsStr) -> io::Result<CString> {
    CString::new(name.as_bytes()).map_err(|_| io::Error::other("a name with a NUL"))
}

pub(crate) fn os_name(name: &CStr) -> &OsStr {
    OsStr::from_bytes(name.to_bytes())
}

#[expect(clippy::unnecessary_cast, reason = "the types of these fields differ from platform to platform")]
fn seen(stat: &Stat) -> Seen {
    let kind = match FileType::from_raw_mode(stat.st_mode as _) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        _ => Kind::Other,
    };
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Seen {
        kind,
        mode: stat.st_mode as u32 & 0o7777,
        user: stat.st_uid,
        group: stat.st_gid,
        is_whiteout: FileType::from_raw_mode(stat.st_mode as _) == FileType::CharacterDevice
            && stat.st_rdev == 0,
        stamp: Stamp {
            identity: Identity { dev: stat.st_dev as u64, ino: stat.st_ino as u64 },
            size: stat.st_size as u64,
            modified: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            changed: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        },
    }
}
