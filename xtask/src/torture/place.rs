//! The place of a case: a directory with a store, a workflow and its ledger, and the program that is started there.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use laneway_torture::Bug;
use serde_json::Value;

use super::ledger::Ledger;
use super::processes;
use super::workload::{LEDGER, NEIGHBOUR, document};
use crate::shell::program;

/// Between TERM and KILL, in all cases.
pub(super) const GRACE: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(super) struct Place {
    dir: tempfile::TempDir,
    program: PathBuf,
    has_cgroups: bool,
    bug: Option<Bug>,
    /// Carried by everything that is started here.
    pub(super) mark: String,
}

impl Place {
    pub(super) fn new(program: &Path, has_cgroups: bool, bug: Option<Bug>) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let dir = tempfile::Builder::new().prefix("laneway-torture-").tempdir()?;
        fs::write(dir.path().join("mix.yaml"), document())?;
        fs::write(dir.path().join("neighbour.yaml"), NEIGHBOUR)?;
        Ok(Self { dir, program: program.to_owned(), has_cgroups, bug, mark })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn store(&self) -> PathBuf {
        self.path(".laneway/laneway.db")
    }

    /// The program, armed with variables of its own.
    pub(super) fn laneway(&self, args: &[&str], arms: &[(&str, String)]) -> Command {
        let mut command = program(&self.program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LANEWAY_") {
                command.env_remove(name);
            }
        }
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command
            .env(processes::MARK, &self.mark)
            .env("LANEWAY_KILL_GRACE", format!("{}ms", GRACE.as_millis()));
        command.env("LANEWAY_CGROUPS", if self.has_cgroups { "on" } else { "off" });
        if let Some(bug) = self.bug {
            command.env("LANEWAY_BUG", bug.name());
        }
        command.envs(arms.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Starts it; what it says goes to a file.
    pub(super) fn start(&self, args: &[&str], arms: &[(&str, String)]) -> Result<Child> {
        let said =
            || -> Result<File> { Ok(OpenOptions::new().append(true).create(true).open(self.path("said"))?) };
        let mut command = self.laneway(args, arms);
        command.stdout(said()?).stderr(said()?);
        command.spawn().context("the program cannot be started")
    }

    /// The id and the status of the run, if one was submitted.
    pub(super) fn run(&self) -> Result<Option<(String, String)>> {
        let output = self.laneway(&["runs", "--json"], &[]).output()?;
        let runs: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let run = runs.as_array().into_iter().flatten().find(|run| run["workflow"] == "mix");
        let text = |run: &Value, key: &str| run[key].as_str().unwrap_or_default().to_owned();
        Ok(run.map(|run| (text(run, "run"), text(run, "status"))))
    }

    pub(super) fn ledger(&self, findings: &mut Vec<String>) -> Ledger {
        let text = fs::read_to_string(self.path(LEDGER)).unwrap_or_default();
        Ledger::parse(&text, findings)
    }

    pub(super) fn has_begun(&self) -> bool {
        fs::metadata(self.path(LEDGER)).is_ok_and(|file| file.len() > 0)
    }

    /// The point at which an armed process died, as it wrote itself.
    pub(super) fn died_at(&self) -> Option<String> {
        let text = fs::read_to_string(self.path("passed")).ok()?;
        text.lines().rev().find_map(|line| line.strip_prefix("died ").map(str::to_owned))
    }

    /// The last that was said, for a finding.
    pub(super) fn last_words(&self) -> String {
        let said = fs::read_to_string(self.path("said")).unwrap_or_default();
        let lines: Vec<&str> = said.lines().rev().filter(|line| !line.is_empty()).take(3).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
    }

    /// Keeps the directory for whoever looks into a finding.
    pub(super) fn keep(self) -> PathBuf {
        self.dir.keep()
    }
}

/// Waits for a process; `None` if it takes longer.
pub(super) fn wait(child: &mut Child, patience: Duration) -> Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
