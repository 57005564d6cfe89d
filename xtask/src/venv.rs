//! Tools from PyPI, each in an environment of its own beside what was built: brought once, with their version pinned by whoever asks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell::{Shell, program};
use crate::tools;

/// The program of a package, which is called as the package is; `wanted` is `NAME==VERSION`.
pub(crate) fn bring(shell: &Shell, scratch: &Path, wanted: &str) -> Result<PathBuf> {
    let name = wanted.split('=').next().unwrap_or(wanted);
    // Another version is another environment.
    let home = scratch.join(wanted.replace("==", "-"));
    let (python, found) = (home.join("bin/python"), home.join("bin").join(name));
    if found.is_file() {
        return Ok(found);
    }
    let mut venv = program("python3");
    venv.args(["-m", "venv"]).arg(&home);
    if shell.run(venv).is_err() {
        tools::install("venv of python3", "python3-venv")?;
        let mut venv = program("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&home);
        shell.run(venv)?;
    }
    let mut pip = program(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted]);
    shell.run(pip).with_context(|| format!("{name} comes from PyPI, which has to be reached"))?;
    Ok(found)
}
