//! What the tests need beside Rust. Brought where that is possible, and named where it is not.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use crate::shell::program;
use crate::stage;

/// Programs with their Debian packages. `strace` counts the fsyncs of a run
/// (`laneway/tests/counted.rs`) and makes them fail (`laneway/tests/faults/`); `unshare` and
/// `mount` make small disks of a test's own; the Python client needs its Python; `tmux` is the
/// terminal on which `laneway top` is used (`laneway/tests/cli/screen.rs`); XFS and Btrfs share
/// blocks (`laneway-engine/tests/reflink.rs`).
const NEEDED: &[(&str, &str)] = &[
    ("strace", "strace"),
    ("unshare", "util-linux"),
    ("mount", "mount"),
    ("python3", "python3"),
    ("tmux", "tmux"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
];

pub(crate) fn bring() -> Result<()> {
    for (name, package) in NEEDED {
        if find(name).is_none() {
            stage::note(&format!("{name} is missing; installing Debian's package {package}"));
            install(name, package)?;
        }
    }
    Ok(())
}

/// Works for whoever may: in a container of CI that is everybody.
pub(crate) fn install(name: &str, package: &str) -> Result<()> {
    // One at a time: stages run side by side, and a second apt would fail.
    let installing = File::create(std::env::temp_dir().join("laneway-apt.lock")).context("no lock file")?;
    installing.lock().context("the lock for installing cannot be had")?;
    // Some packages ask questions, which nobody would answer.
    let apt = |words: &[&str]| {
        let mut command = program("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    // A fresh image has no lists of packages yet.
    if apt(&install) || (apt(&["update"]) && apt(&install)) {
        return Ok(());
    }
    bail!("{name} is needed and could not be installed: install Debian's package {package}, or your system's")
}

/// Debian puts what only root needs where only root looks.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")]);
    dirs.map(|dir| dir.join(name)).find(|path| path.is_file())
}
