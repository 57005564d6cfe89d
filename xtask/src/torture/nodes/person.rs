//! Somebody on this machine, beside the nodes, who submits runs and looks at them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::super::processes;
use super::flows::Flow;
use super::{HEARTBEAT, LEASE};

/// A run that somebody asked for.
#[derive(Debug)]
pub(super) struct Submitted {
    pub(super) key: String,
    pub(super) flow: Flow,
    /// `None` for who died before it could know.
    pub(super) run: Option<String>,
}

/// Somebody on this machine, beside the nodes, who submits runs and looks at them.
#[derive(Debug)]
pub(super) struct Person {
    program: PathBuf,
    dir: PathBuf,
    store: String,
    mark: String,
    known: Mutex<Vec<Submitted>>,
}

impl Person {
    pub(super) fn new(program: PathBuf, dir: PathBuf, store: String, mark: String) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self { program, dir, store, mark, known: Mutex::default() })
    }

    /// Everything that was asked for so far, once.
    pub(super) fn submitted(&self) -> Vec<Submitted> {
        std::mem::take(&mut self.known.lock().expect("nobody panics with it"))
    }

    /// Carried by everything that is started in this case.
    pub(super) fn mark(&self) -> &str {
        &self.mark
    }

    pub(super) fn laneway(&self, args: &[&str], arms: &[(&str, String)]) -> Command {
        let mut command = crate::shell::program(&self.program);
        super::without_settings(&mut command);
        command.args(args).args(["--store", &self.store]).current_dir(&self.dir).stdin(Stdio::null());
        command.env(processes::MARK, &self.mark);
        command.env("LANEWAY_LEASE_TTL", format!("{}ms", LEASE.as_millis()));
        command.env("LANEWAY_HEARTBEAT_INTERVAL", format!("{}ms", HEARTBEAT.as_millis()));
        command.envs(arms.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(super) fn say(&self, args: &[&str], arms: &[(&str, String)]) -> Result<Vec<u8>> {
        let output = self.laneway(args, arms).output()?;
        if !output.status.success() {
            bail!("`laneway {}`: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output.stdout)
    }

    /// Repeats it with the same key until it is acknowledged: the database may be away. Returns why
    /// earlier tries failed.
    pub(super) fn submit(&self, number: usize, flow: &Flow) -> Result<Vec<String>> {
        let mut refusals = Vec::new();
        let (file, key) = (format!("flow{number}.yaml"), format!("key{number}"));
        fs::write(self.dir.join(&file), flow.yaml())?;
        let until = Instant::now() + Duration::from_secs(60);
        let run = loop {
            match self.say(&["submit", &file, "--key", &key, "--json"], &[]) {
                Ok(said) => {
                    let said: Value = serde_json::from_slice(&said).context("what submit prints")?;
                    break said["run"].as_str().context("submit names no run")?.to_owned();
                }
                Err(error) if Instant::now() > until => return Err(error),
                Err(error) => {
                    refusals.push(error.to_string());
                    thread::sleep(Duration::from_millis(200));
                }
            }
        };
        let submitted = Submitted { key, flow: flow.clone(), run: Some(run) };
        self.known.lock().expect("nobody panics with it").push(submitted);
        Ok(refusals)
    }

    /// Dies with the commit of its submit, before it could say so.
    pub(super) fn submit_and_die(&self, passed: &Path) -> Result<()> {
        let number = self.known.lock().expect("nobody panics with it").len();
        let (file, key) = (format!("last{number}.yaml"), format!("last{number}"));
        let flow = Flow::chain();
        fs::write(self.dir.join(&file), flow.yaml())?;
        let point = laneway_torture::Point::SharedCommitAfter.name();
        // The first passing is that of its session.
        let arms = [
            ("LANEWAY_CRASH", format!("{point}:2")),
            ("LANEWAY_PASSED", passed.to_string_lossy().into_owned()),
        ];
        let _ = self.laneway(&["submit", &file, "--key", &key], &arms).output()?;
        self.known.lock().expect("nobody panics with it").push(Submitted { key, flow, run: None });
        Ok(())
    }
}
