//! Programs that the tests call besides our own: looked for before the tests, installed where that may be done.

use anyhow::{Result, bail};

use crate::shell::{Shell, program};
use crate::stage;

/// A program, and the Debian package that brings it.
const TOOLS: &[(&str, &str)] = &[("strace", "strace"), ("unshare", "util-linux"), ("mount", "mount")];

/// Sees to it that every tool is there. Without one, tests would fail later and say less.
pub(crate) fn ensure(shell: &Shell) -> Result<()> {
    let missing: Vec<&str> =
        TOOLS.iter().filter(|(tool, _)| !is_there(shell, tool)).map(|(_, package)| *package).collect();
    if missing.is_empty() {
        return Ok(());
    }
    stage::note(&format!("missing: {}; installing with apt-get", missing.join(", ")));
    let mut install = program("apt-get");
    install.args(["install", "--yes", "--no-install-recommends"]).args(&missing);
    if shell.run(install).is_err() {
        // A fresh machine has no lists of packages yet.
        let mut update = program("apt-get");
        update.args(["update", "--quiet"]);
        shell.run(update)?;
        let mut again = program("apt-get");
        again.args(["install", "--yes", "--no-install-recommends"]).args(&missing);
        shell.run(again)?;
    }
    match TOOLS.iter().find(|(tool, _)| !is_there(shell, tool)) {
        Some((tool, package)) => bail!("`{tool}` is still missing; install the package {package}"),
        None => Ok(()),
    }
}

fn is_there(shell: &Shell, tool: &str) -> bool {
    let mut ask = program(tool);
    ask.arg("--version");
    shell.output(ask).is_ok_and(|output| output.status.success())
}
