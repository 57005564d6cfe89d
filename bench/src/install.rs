//! Brings what the peers need, each by the name of its package. What cannot be brought is an error that says
//! what to do; nothing is ever left out in silence.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::meter::program;
use crate::subject::{Peer, Subject, text};

/// Under the tools' directory.
pub(crate) const DAGU: &str = "npm/node_modules/@dagu-org/dagu-linux-x64/bin/dagu";

/// The versions that are compared with: a newer major one may be another program.
const DAGU_PACKAGE: &str = "@dagu-org/dagu-linux-x64@1.30";
const HUEY_PACKAGE: &str = "huey>=3,<4";

/// What counts the calls of a counted pass.
pub(crate) fn strace() -> Result<()> {
    debian("strace", "strace")
}

pub(crate) fn peer(peer: Peer, tools: &Path) -> Result<()> {
    let brought = match peer {
        Peer::Make => debian("make", "make"),
        Peer::Xargs => debian("xargs", "findutils"),
        Peer::Ninja => debian("ninja", "ninja-build"),
        Peer::Huey => huey(tools),
        Peer::Dagu => dagu(tools),
    };
    brought
        .with_context(|| format!("{} cannot be measured; --peers leaves it out", Subject::Peer(peer).name()))
}

/// Its name and the number of its version.
pub(crate) fn version(peer: Peer, tools: &Path) -> Result<String> {
    let python = tools.join("venv/bin/python");
    let dagu = tools.join(DAGU);
    let words: Vec<&str> = match peer {
        Peer::Make => vec!["make", "--version"],
        Peer::Xargs => vec!["xargs", "--version"],
        Peer::Ninja => vec!["ninja", "--version"],
        Peer::Huey => {
            vec![text(&python)?, "-c", "import importlib.metadata as m; print(m.version('huey'))"]
        }
        Peer::Dagu => vec![text(&dagu)?, "version"],
    };
    let output = program(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} tells no version", words[0]))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().next().unwrap_or_default().trim();
    let number = line.split_whitespace().last().unwrap_or_default();
    Ok(format!("{} {number}", Subject::Peer(peer).name()))
}

fn debian(name: &str, package: &str) -> Result<()> {
    if is_on_path(name) {
        return Ok(());
    }
    if !rustix::process::getuid().is_root() || !is_on_path("apt-get") {
        bail!("{name} is not installed: install Debian's package {package}");
    }
    run(&["apt-get", "install", "--yes", "--no-install-recommends", package])
}

fn huey(tools: &Path) -> Result<()> {
    let venv = tools.join("venv");
    let python = venv.join("bin/python");
    let is_there = program(&python).args(["-c", "import huey"]).stderr(Stdio::null()).status();
    if is_there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    run(&["python3", "-m", "venv", text(&venv)?])
        .context("Debian's packages python3 and python3-venv are needed")?;
    run(&[text(&python)?, "-m", "pip", "install", "--quiet", HUEY_PACKAGE])
}

fn dagu(tools: &Path) -> Result<()> {
    if tools.join(DAGU).is_file() {
        return Ok(());
    }
    if std::env::consts::ARCH != "x86_64" {
        bail!("its package here is for x86_64 only");
    }
    let prefix = tools.join("npm");
    std::fs::create_dir_all(&prefix).with_context(|| format!("{} cannot be made", prefix.display()))?;
    run(&["npm", "install", "--silent", "--prefix", text(&prefix)?, DAGU_PACKAGE])
        .context("npm (Debian's package npm) is needed")
}

fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}

/// Installers talk on stderr: stdout is for the report.
fn run(words: &[&str]) -> Result<()> {
    let output = program(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("`{}` could not be started", words[0]))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", words.join(" "), output.status, said.trim_end());
    }
    Ok(())
}
