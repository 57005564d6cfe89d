//! A wrong clock for one node: libfaketime, which stands between a program and the system's clock. It reaches whatever asks
//! through the C library, as Rust's standard library does; the clock that goes on while a machine sleeps is asked past it, and
//! is right on every machine anyhow.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{stage, tools};

/// What a clock may be off by.
pub(super) const OFFSETS: [&str; 2] = ["+10m", "-10m"];

/// Where the library is; brought where that is possible.
pub(super) fn library() -> Result<PathBuf> {
    if let Some(found) = installed() {
        return Ok(found);
    }
    stage::note("libfaketime is missing; installing Debian's package libfaketime");
    tools::install("libfaketime", "libfaketime")?;
    installed().context("libfaketime.so.1 was installed and cannot be found below /usr/lib")
}

fn installed() -> Option<PathBuf> {
    let places = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    places
        .chain([PathBuf::from("/usr/lib")])
        .map(|dir| dir.join("faketime/libfaketime.so.1"))
        .find(|path| path.is_file())
}
