//! The program under test: built once, in the profile and with the features of the tests, and
//! started without anything of the caller's that could change what it prints.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{Shell, cargo, program};

/// Set for stages of a check, which has built both programs before: cargo would wait for whatever
/// else it builds.
pub(crate) const BUILT: &str = "LANEWAY_XTASK_BUILT";

#[derive(Debug)]
pub(crate) struct Program {
    path: PathBuf,
    /// For files of a task's own: kept out of git, gone with `cargo clean`.
    pub(crate) scratch: PathBuf,
}

impl Program {
    /// Shares what the tests were built with: the features are the same (see Cargo.toml).
    pub(crate) fn build(shell: &Shell) -> Result<Self> {
        if std::env::var_os(BUILT).is_none() {
            shell.run(cargo(&["build", "--workspace", "--quiet"]))?;
        }
        Self::at(shell, "laneway")
    }

    /// The same with its hooks armed: only our own crates are built again, and nothing of the other
    /// is replaced.
    pub(crate) fn build_tortured(shell: &Shell) -> Result<Self> {
        if std::env::var_os(BUILT).is_none() {
            Self::compile_tortured(shell)?;
        }
        Self::at(shell, "laneway-tortured")
    }

    pub(crate) fn compile_tortured(shell: &Shell) -> Result<()> {
        let build =
            ["build", "--workspace", "--quiet", "--features", "laneway/torture", "--bin", "laneway-tortured"];
        shell.run(cargo(&build))
    }

    fn at(shell: &Shell, name: &str) -> Result<Self> {
        let target = target_dir(shell)?;
        Ok(Self { path: target.join("debug").join(name), scratch: target.join("xtask") })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The program with arguments, colourless and without the caller's settings.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = program(&self.path);
        command.args(args).env_remove("COLUMNS").env("NO_COLOR", "1");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LANEWAY_") {
                command.env_remove(name);
            }
        }
        command
    }

    /// What it prints to stdout when it succeeds; an error with all it said when it does not.
    pub(crate) fn stdout(&self, shell: &Shell, args: &[&str]) -> Result<String> {
        let output = shell.output(self.command(args))?;
        if !output.status.success() {
            bail!("`laneway {}` ended with {}:\n{}", args.join(" "), output.status, said(&output));
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("`laneway {}` prints no text", args.join(" ")))
    }
}

/// Where cargo builds to.
pub(crate) fn target_dir(shell: &Shell) -> Result<PathBuf> {
    let metadata = shell.output(cargo(&["metadata", "--no-deps", "--offline", "--format-version", "1"]))?;
    if !metadata.status.success() {
        bail!("`cargo metadata` failed: {}", String::from_utf8_lossy(&metadata.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&metadata.stdout).context("what cargo metadata prints")?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(target))
}

/// All that a program said, for an error.
pub(crate) fn said(output: &Output) -> String {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    text.concat().trim_end().to_owned()
}
