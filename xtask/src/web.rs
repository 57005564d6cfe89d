//! The web page (`web/`): its types and its own tests, that the files in the server's crate are
//! what its source makes, and all of it in a real browser against the program. What it needs is
//! Node and Chromium; `cargo build` needs neither.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::getuid;

use crate::docker::{self, Docker};
use crate::postgres::{self, Durability, Postgres};
use crate::program::Program;
use crate::shell::{Shell, program};
use crate::{stage, tools};

/// Where the page's source is.
const SOURCE: &str = "web";

/// What the page is built with runs on these and newer ones.
const NODE: (u32, u32) = (20, 19);

/// With their Debian packages. `ip` sets up the network of its own in which the browser runs.
const NEEDED: &[(&str, &str)] =
    &[("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium"), ("ip", "iproute2")];

/// Where the tests find the browser.
pub(crate) const CHROMIUM: &str = "LANEWAY_TEST_CHROMIUM";

/// What the page is built and tested with, by the lock file and nothing else.
pub(crate) fn bring(shell: &Shell) -> Result<()> {
    ensure!(
        shell.root().join(SOURCE).join("package-lock.json").is_file(),
        "there is no {SOURCE}/package-lock.json: the page's source is not here"
    );
    for (name, package) in NEEDED {
        if tools::find(name).is_none() {
            stage::note(&format!("{name} is missing; installing Debian's package {package}"));
            tools::install(name, package)?;
        }
    }
    let mut node = program("node");
    node.arg("--version");
    let output = shell.output(node)?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let found = version(&text).with_context(|| format!("`node --version` says `{text}`"))?;
    if found < NODE {
        let (major, minor) = NODE;
        bail!("node is {text}, and {major}.{minor} or newer is needed: install it as nodejs.org says");
    }
    shell.run(npm(&["ci", "--no-audit", "--no-fund"]))
}

/// Types, the page's own tests, and the files that are committed. Needs no program.
pub(crate) fn check(shell: &Shell) -> Result<()> {
    shell.run(npm(&["run", "check"]))?;
    shell.run(npm(&["run", "test"]))?;
    shell.run(npm(&["run", "built"]))
}

/// Every page and act in Chromium, against the program, with a Postgres and a Docker engine where
/// the environment lends none.
pub(crate) fn browse(shell: &Shell, laneway: &Program) -> Result<()> {
    let chromium = chromium()?;
    let engine = match std::env::var_os(docker::VARIABLE) {
        Some(_) => None,
        None => Some(Docker::spawn()?),
    };
    let server = match std::env::var_os(postgres::VARIABLE) {
        Some(_) => None,
        None => Some(Postgres::start(Durability::None)?),
    };
    let engine = engine.map(Docker::ready).transpose()?;
    let mut tests = in_quiet_network(npm(&["run", "e2e"]));
    tests.env("LANEWAY_BIN", laneway.path()).env(CHROMIUM, chromium);
    tests.envs(server.iter().flat_map(Postgres::variables));
    tests.envs(engine.iter().flat_map(Docker::variables));
    shell.run(tests)
}

/// Moves a command into a network of its own, with nothing but the loopback: a container that
/// another stage starts is a change of the network, at which Chromium drops what is on its way.
/// Only root may; Postgres and Docker are reached by their sockets.
fn in_quiet_network(command: Command) -> Command {
    if !cfg!(target_os = "linux") || !getuid().is_root() {
        return command;
    }
    let mut quiet = program("unshare");
    quiet.args(["--net", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]);
    quiet.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => quiet.env(name, value),
            None => quiet.env_remove(name),
        };
    }
    quiet
}

/// The browser.
pub(crate) fn chromium() -> Result<PathBuf> {
    tools::find("chromium").context("there is no chromium")
}

fn npm(words: &[&str]) -> Command {
    let mut command = program(tools::find("npm").unwrap_or_else(|| PathBuf::from("npm")));
    command.args(["--prefix", SOURCE]).args(words);
    // Nothing of the caller's server: every test starts its own.
    command.env_remove("LANEWAY_SERVER").env_remove("LANEWAY_TOKEN").env_remove("LANEWAY_STORE");
    command
}

/// Of `v20.19.1`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v')?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_compare_by_their_numbers() {
        assert_eq!(version("v20.19.1"), Some((20, 19)));
        assert!(version("v18.20.4").is_some_and(|old| old < NODE));
        assert!(version("v22.3.0").is_some_and(|new| new > NODE));
        assert_eq!(version("20"), None);
    }
}
