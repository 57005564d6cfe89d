//! A cell by its mark: which directory this is, by device and inode. Whoever removes a cell opens it by its handle, reads the
//! mark through that, and removes nothing if the two do not agree. A name proves nothing.

use std::ffi::{CStr, OsString};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};
use serde::{Deserialize, Serialize};

use super::walk::{self, Identity, Kind};
use super::{Error, Means, overlay};

/// What is written in a cell as soon as it is there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Of the cell itself.
    cell: Identity,
    /// Everything is copied.
    pub(super) is_ready: bool,
    pub(super) means: Option<Means>,
    /// What it is a copy of.
    base: Vec<u8>,
}

impl Mark {
    pub(super) fn base(&self) -> PathBuf {
        PathBuf::from(OsString::from_vec(self.base.clone()))
    }
}

/// Makes an empty cell.
pub(crate) fn make(cell: &Path) -> Result<(), Error> {
    let failed = || Error::files("make", cell);
    if let Some(above) = cell.parent() {
        laneway_store::private::create_dir_all(above).map_err(failed())?;
    }
    std::fs::create_dir(cell).map_err(failed())?;
    let (fd, identity) = walk::root(cell).map_err(failed())?;
    let mark = Mark { cell: identity, is_ready: false, means: None, base: Vec::new() };
    write(&fd, &mark).map_err(failed())
}

/// The copy is whole.
pub(super) fn seal(cell: &Path, means: Means, base: &Path) -> Result<(), Error> {
    let failed = || Error::files("make", cell);
    let (fd, identity) = walk::root(cell).map_err(failed())?;
    let base = base.as_os_str().as_bytes().to_vec();
    write(&fd, &Mark { cell: identity, is_ready: true, means: Some(means), base }).map_err(failed())
}

fn write(cell: &OwnedFd, mark: &Mark) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = openat(cell, c"mark.new", flags, Mode::RUSR | Mode::WUSR)?;
    let text = serde_json::to_vec(mark).map_err(io::Error::other)?;
    std::fs::File::from(fd).write_all(&text)?;
    Ok(renameat(cell, c"mark.new", cell, c"mark")?)
}

/// The mark of a cell that is there and was made here; an error for a directory that somebody else put in its place.
pub(crate) fn read(cell: &Path) -> Result<Option<Mark>, Error> {
    Ok(open(cell)?.map(|(_, mark)| mark))
}

fn open(cell: &Path) -> Result<Option<(OwnedFd, Mark)>, Error> {
    let failed = || Error::files("look at", cell);
    let not_ours = || Error::NotOurs { path: cell.to_owned() };
    let (Some(above), Some(name)) = (cell.parent(), cell.file_name()) else { return Err(not_ours()) };
    let above = match walk::root(above) {
        Ok((above, _)) => above,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed()(error)),
    };
    let name = walk::c_name(name).map_err(failed())?;
    let (fd, seen) = match walk::directory(&above, &name) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // A symlink, or a file.
        Err(_) => return Err(not_ours()),
    };
    let mark = match walk::file(&fd, c"mark") {
        Ok((mut file, _)) => {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map_err(failed())?;
            serde_json::from_slice::<Mark>(&text).ok()
        }
        Err(_) => None,
    };
    match mark {
        Some(mark) if mark.cell == seen.stamp.identity => Ok(Some((fd, mark))),
        Some(_) => Err(not_ours()),
        // One that was made and not marked yet is empty: then it can be removed as what it is.
        None if walk::names(&fd)
            .is_ok_and(|names| names.iter().all(|name| name.as_c_str() == c"mark.new")) =>
        {
            let _ = unlinkat(&fd, c"mark.new", AtFlags::empty());
            unlinkat(&above, &*name, AtFlags::REMOVEDIR).map_err(io::Error::from).map_err(failed())?;
            Ok(None)
        }
        None => Err(not_ours()),
    }
}

/// Removes a cell with all that is in it. Does nothing if it is not there.
pub(crate) fn remove(cell: &Path) -> Result<(), Error> {
    if open(cell)?.is_none() {
        return Ok(());
    }
    overlay::unmount(cell);
    // What was mounted has hidden something: it is looked at again.
    let Some((fd, mark)) = open(cell)? else { return Ok(()) };
    let failed = || Error::files("remove", cell);
    // The mark goes last: a removal that is interrupted goes on.
    empty(&fd, mark.cell.dev, Some(c"mark"), 0).map_err(failed())?;
    unlinkat(&fd, c"mark", AtFlags::empty()).map_err(io::Error::from).map_err(failed())?;
    let (Some(above), Some(name)) = (cell.parent(), cell.file_name()) else { return Ok(()) };
    let (above, _) = walk::root(above).map_err(failed())?;
    let name = walk::c_name(name).map_err(failed())?;
    unlinkat(&above, &*name, AtFlags::REMOVEDIR).map_err(io::Error::from).map_err(failed())
}

/// Removes what is in a directory, by handles, and never beyond its file system: what is mounted there is somebody else's.
pub(crate) fn empty(at: &OwnedFd, dev: u64, but: Option<&CStr>, depth: usize) -> io::Result<()> {
    if depth > 4 * walk::DEEPEST {
        return Err(io::Error::other("it lies too deep"));
    }
    for name in walk::names(at)? {
        if Some(name.as_c_str()) == but {
            continue;
        }
        let Some(seen) = walk::look(at, &name)? else { continue };
        if seen.kind != Kind::Directory {
            unlinkat(at, &*name, AtFlags::empty())?;
            continue;
        }
        let (inner, inside) = match walk::directory(at, &name) {
            // A directory that nobody may look into is made so that its owner may.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                rustix::fs::chmodat(at, &*name, Mode::RWXU, AtFlags::empty())?;
                walk::directory(at, &name)?
            }
            found => found?,
        };
        if inside.stamp.identity.dev != dev {
            return Err(io::Error::other("something is mounted in it"));
        }
        if inside.mode & 0o700 != 0o700 {
            rustix::fs::fchmod(&inner, Mode::RWXU)?;
        }
        empty(&inner, dev, None, depth + 1)?;
        unlinkat(at, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}
