//! The tests of all crates, in the ways in which the check runs them. Owns what is built for them
//! and which of them each way runs; the servers that they need come through the environment.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::program::{said, target_dir};
use crate::shell::{Shell, cargo};
use crate::{pooler, stage};

/// The store's verbs. What is about connections themselves has tests of its own.
const THROUGH_POOLER: &str =
    "package(laneway-store) & test(/::postgres::/) - test(/^(random|reference|looking|quarantine)::/)";

/// What depends most on cgroups; the rest of the suites is the same with and without.
const WITHOUT_CGROUPS: &str = "package(laneway-engine) & (binary(process) | binary(drive))";

/// Builds the program and all tests.
pub(crate) fn build(shell: &Shell) -> Result<()> {
    if !shell.has_nextest() {
        stage::note(
            "cargo-nextest is not installed; `cargo test` runs the same tests, but not each in a process of its own",
        );
        shell.run(cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-run"]))?;
        return shell.run(cargo(&["build", "--workspace"]));
    }
    // What was built is noted, so that tests can start while another cargo holds the lock of the
    // directory.
    let Built { binaries, metadata } = Built::at(shell)?;
    let lists = [
        (
            cargo(&["nextest", "list", "--workspace", "--list-type=binaries-only", "--message-format=json"]),
            binaries,
        ),
        (cargo(&["metadata", "--format-version=1", "--all-features"]), metadata),
    ];
    for (mut command, path) in lists {
        // The compiler's words go where ours go.
        command.stderr(std::process::Stdio::inherit());
        let printed = shell.output(command)?;
        if !printed.status.success() {
            bail!("the tests cannot be built: {}", said(&printed));
        }
        fs::write(&path, printed.stdout).with_context(|| path.display().to_string())?;
    }
    shell.run(cargo(&["build", "--workspace"]))
}

pub(crate) fn all(shell: &Shell) -> Result<()> {
    let tests = ["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"];
    shell.run(command(shell, "ci", None, &tests)?)
}

pub(crate) fn through_pooler(shell: &Shell) -> Result<()> {
    let tests =
        ["test", "--workspace", "--test", "conformance", "--", "gates::postgres::", "fence::postgres::"];
    let mut tests = command(shell, "pooler", Some(THROUGH_POOLER), &tests)?;
    tests.env(pooler::THROUGH, "1");
    shell.run(tests)
}

pub(crate) fn without_cgroups(shell: &Shell) -> Result<()> {
    let tests = ["test", "--workspace", "--test", "process", "--test", "drive"];
    let mut tests = command(shell, "without-cgroups", Some(WITHOUT_CGROUPS), &tests)?;
    tests.env("LANEWAY_CGROUPS", "off");
    shell.run(tests)
}

pub(crate) fn in_documentation(shell: &Shell) -> Result<()> {
    shell.run(cargo(&["test", "--workspace", "--doc", "--quiet"]))
}

/// Where `build` notes what it built.
struct Built {
    binaries: PathBuf,
    metadata: PathBuf,
}

impl Built {
    fn at(shell: &Shell) -> Result<Self> {
        let dir = target_dir(shell)?.join("xtask");
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        Ok(Self { binaries: dir.join("test-binaries.json"), metadata: dir.join("metadata.json") })
    }
}

/// `cargo nextest run` of some tests or of all, without another look at the sources; `otherwise`
/// where there is no nextest.
fn command(shell: &Shell, profile: &str, some: Option<&str>, otherwise: &[&str]) -> Result<Command> {
    if !shell.has_nextest() {
        return Ok(cargo(otherwise));
    }
    let Built { binaries, metadata } = Built::at(shell)?;
    let mut command = cargo(&["nextest", "run", "--profile", profile]);
    command.arg("--binaries-metadata").arg(binaries).arg("--cargo-metadata").arg(metadata);
    if let Some(some) = some {
        command.args(["-E", some]);
    }
    Ok(command)
}
