//! The one place here that starts programs, all of them at the root of the workspace.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};

/// Knows where the workspace is.
#[derive(Debug)]
pub(crate) struct Shell {
    root: PathBuf,
}

impl Shell {
    pub(crate) fn at_the_root() -> Result<Self> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = here.parent().context("xtask lies in a directory of the workspace")?;
        if !root.join("Cargo.toml").is_file() {
            bail!("the workspace is not at {} any more; build xtask again", root.display());
        }
        Ok(Self { root: root.to_owned() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Runs to the end with this terminal; anything but success is an error.
    pub(crate) fn run(&self, mut command: Command) -> Result<()> {
        let status = command.current_dir(&self.root).stdin(Stdio::null()).status();
        let status = status.with_context(|| format!("`{}` could not be started", text(&command)))?;
        if !status.success() {
            bail!("`{}` ended with {status}", text(&command));
        }
        Ok(())
    }

    /// Runs to the end and keeps what it printed, whatever its exit code.
    pub(crate) fn output(&self, mut command: Command) -> Result<Output> {
        let output = command.current_dir(&self.root).stdin(Stdio::null()).output();
        output.with_context(|| format!("`{}` could not be started", text(&command)))
    }

    pub(crate) fn has_nextest(&self) -> bool {
        self.output(cargo(&["nextest", "--version"])).is_ok_and(|output| output.status.success())
    }
}

/// The cargo that runs us, so that a `+toolchain` holds for every stage.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // A check never writes into the sources; snapshots that differ are shown, and fail.
    command.args(args).env("INSTA_UPDATE", "no");
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_about_this_package(&name.to_string_lossy())) {
        command.env_remove(name);
    }
    command
}

/// Whether `cargo run` has set a variable to describe xtask. Build scripts look at some of them: a
/// cargo that inherits them compiles `ring` again, and the next one from a terminal once more.
fn is_about_this_package(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_BIN_", "CARGO_PRIMARY_"]
        .iter()
        .any(|prefix| variable.starts_with(prefix))
}

#[expect(clippy::disallowed_methods, reason = "this is the wrapper for tasks of the workspace")]
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

/// As it would be typed.
fn text(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> =
        std::iter::once(name).chain(command.get_args()).map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
