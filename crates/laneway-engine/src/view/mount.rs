//! The overlay of a view. Directories are named by their handles, so that a path may have any
//! characters and hundreds of layers fit the one page that mount options may take.

use std::io;
use std::path::{Path, PathBuf};

/// Directories below the upper one. A name of a handle takes at most 21 bytes of the page.
pub(super) const MAX_LOWER_DIRS: usize = 128;

/// Mounts an overlay at `at/tree` of a cell, the highest of the lower directories first.
#[cfg(target_os = "linux")]
pub(super) fn mount_overlay(cell: &Path, to: &Path, lower: &[PathBuf]) -> io::Result<()> {
    use std::ffi::CString;
    use std::os::fd::{AsRawFd as _, OwnedFd};

    use rustix::fs::{CWD, Mode, OFlags, openat};
    use rustix::mount::{MountFlags, mount};

    const PAGE_BYTES: usize = 4096;

    let open = |path: &Path| -> io::Result<OwnedFd> {
        Ok(openat(CWD, path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
    };
    let lower = lower.iter().map(|path| open(path)).collect::<io::Result<Vec<_>>>()?;
    let (upper, work) = (open(&cell.join("upper"))?, open(&cell.join("work"))?);
    let named = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    let lower = lower.iter().map(named).collect::<Vec<_>>().join(":");
    // A directory that is renamed is copied, so that the upper directory says by itself what changed.
    let options = format!(
        "lowerdir={lower},upperdir={},workdir={},redirect_dir=off,metacopy=off,index=off",
        named(&upper),
        named(&work)
    );
    if options.len() + ",volatile".len() >= PAGE_BYTES {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let try_mount = |options: String| -> io::Result<()> {
        let options = CString::new(options).map_err(io::Error::other)?;
        Ok(mount("laneway", to, "overlay", flags, options.as_c_str())?)
    };
    // A view does not outlive its process, so nothing in it needs to be on the disk. Kernels before
    // 5.10 do not know the option.
    try_mount(format!("{options},volatile")).or_else(|_| try_mount(options))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn mount_overlay(_: &Path, _: &Path, _: &[PathBuf]) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}
