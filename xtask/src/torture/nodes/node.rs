//! Nodes: real `laneway worker` processes, each in its own namespace and directory, started again when they end, as a
//! service manager would. What is done to them is done to processes, never through the program.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use laneway_torture::Bug;
use rustix::process::{Pid, Signal, kill_process};

use super::super::processes;
use super::network::Network;
use super::{GRACE, HEARTBEAT, LEASE, MARK_LEDGER, MARK_NODE};

/// How soon a node that has ended is started again.
const SOON: Duration = Duration::from_millis(150);

/// How often somebody looks whether one has ended.
const LOOK: Duration = Duration::from_millis(10);

/// What all nodes of a case share.
#[derive(Debug, Clone)]
pub(super) struct Making {
    pub(super) program: PathBuf,
    pub(super) mark: String,
    pub(super) ledger: PathBuf,
    pub(super) bug: Option<Bug>,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) number: usize,
    dir: PathBuf,
    store: String,
    making: Making,
    network: Arc<Network>,
    /// What the next start is given besides.
    arms: Mutex<Vec<(&'static str, String)>>,
    /// For all of its lives.
    clock: Option<&'static str>,
    life: Mutex<Life>,
    has_to_live: AtomicBool,
}

#[derive(Debug, Default)]
struct Life {
    child: Option<Child>,
    start_at: Option<Instant>,
}

impl Node {
    pub(super) fn new(
        number: usize,
        dir: PathBuf,
        store: String,
        making: Making,
        network: Arc<Network>,
    ) -> Result<Self> {
        fs::create_dir_all(&dir)?;
        Ok(Self {
            number,
            dir,
            store,
            making,
            network,
            arms: Mutex::default(),
            clock: None,
            life: Mutex::default(),
            has_to_live: AtomicBool::new(true),
        })
    }

    /// Its wall clock is wrong by so much, as `faketime` writes it.
    pub(super) fn with_clock(mut self, clock: Option<&'static str>) -> Self {
        self.clock = clock;
        self
    }

    pub(super) fn name(&self) -> String {
        name(self.number)
    }

    /// Arms the next life of it.
    pub(super) fn arm(&self, arms: Vec<(&'static str, String)>) {
        *self.arms.lock().unwrap_or_else(PoisonError::into_inner) = arms;
    }

    pub(super) fn signal(&self, signal: Signal) -> bool {
        let life = self.life();
        let Some(child) = &life.child else { return false };
        kill_process(Pid::from_child(child), signal).is_ok()
    }

    /// Stops it and its warden. Returns whom to continue.
    pub(super) fn freeze_all(&self) -> Vec<Pid> {
        let life = self.life();
        let Some(child) = &life.child else { return Vec::new() };
        let whom = processes::warden_of(child).into_iter().chain([Pid::from_child(child)]);
        whom.filter(|pid| processes::freeze(*pid)).collect()
    }

    /// Of its present life.
    pub(super) fn pid(&self) -> Option<u32> {
        self.life().child.as_ref().map(Child::id)
    }

    /// Kills it; it starts again after a while.
    pub(super) fn kill(&self, rest: Duration) {
        let mut life = self.life();
        if let Some(mut child) = life.child.take() {
            let _ = (child.kill(), child.wait());
        }
        life.start_at = Some(Instant::now() + rest);
    }

    /// Asks it to stop, and does not start it again.
    pub(super) fn stop(&self) {
        self.has_to_live.store(false, Ordering::SeqCst);
        self.signal(Signal::TERM);
    }

    /// What became of it after `stop`; `None` if it has not ended in time and was killed.
    pub(super) fn wait(&self, patience: Duration) -> Option<Option<i32>> {
        let until = Instant::now() + patience;
        loop {
            let mut life = self.life();
            let Some(child) = &mut life.child else { return Some(Some(0)) };
            if let Ok(Some(status)) = child.try_wait() {
                return Some(status.code());
            }
            if Instant::now() > until {
                let _ = (child.kill(), child.wait());
                return None;
            }
            drop(life);
            std::thread::sleep(LOOK);
        }
    }

    /// Everything that it has said, in all of its lives.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(self.dir.join("said")).unwrap_or_default()
    }

    /// Processes of steps that it has started, in whatever life.
    pub(super) fn steps(&self) -> Vec<(Pid, String)> {
        let wanted = format!("{MARK_NODE}={}", self.name());
        processes::with(&[&format!("{}={}", processes::MARK, self.making.mark), &wanted, "LANEWAY_TASK="])
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) -> Result<()> {
        let mut life = self.life();
        if let Some(child) = &mut life.child {
            // What became of one that was asked to stop is for who asked.
            if child.try_wait()?.is_none() || !self.has_to_live.load(Ordering::SeqCst) {
                return Ok(());
            }
            life.child = None;
            life.start_at = Some(Instant::now() + SOON);
        }
        let is_due = life.start_at.is_none_or(|at| Instant::now() >= at);
        if is_due && self.has_to_live.load(Ordering::SeqCst) {
            life.child = Some(self.start()?);
        }
        Ok(())
    }

    fn start(&self) -> Result<Child> {
        let said = OpenOptions::new().append(true).create(true).open(self.dir.join("said"))?;
        let mut command = self.network.within(self.number);
        command.arg(&self.making.program).args([
            "worker",
            "--exit-with-parent",
            "--slots",
            "3",
            "--shutdown-grace",
            "1s",
        ]);
        command.args(["--node-address", &self.name(), "--store", &self.store]);
        for name in [processes::MARK, MARK_NODE, MARK_LEDGER] {
            command.args(["--pass-env", name]);
        }
        super::without_settings(&mut command);
        command.env(processes::MARK, &self.making.mark).env(MARK_NODE, self.name());
        command.env(MARK_LEDGER, &self.making.ledger);
        command.env("LANEWAY_KILL_GRACE", format!("{}ms", GRACE.as_millis()));
        command.env("LANEWAY_LEASE_TTL", format!("{}ms", LEASE.as_millis()));
        command.env("LANEWAY_HEARTBEAT_INTERVAL", format!("{}ms", HEARTBEAT.as_millis()));
        if let Some(bug) = self.making.bug {
            command.env("LANEWAY_BUG", bug.name());
        }
        if let Some(clock) = self.clock {
            // Only the wall clock is wrong: it is the one that machines disagree about.
            command.env("LD_PRELOAD", super::clock::library()?).env("FAKETIME", clock);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        let arms = std::mem::take(&mut *self.arms.lock().unwrap_or_else(PoisonError::into_inner));
        command.envs(arms);
        command.current_dir(&self.dir).stdin(Stdio::null()).stdout(said.try_clone()?).stderr(said);
        command.spawn().context("a worker cannot be started")
    }
}

pub(super) fn name(number: usize) -> String {
    format!("node{number}")
}

/// Keeps nodes running until it is dropped; then they are killed.
#[derive(Debug)]
pub(super) struct Keeper {
    nodes: Vec<Arc<Node>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn of(nodes: &[Arc<Node>]) -> Self {
        let (nodes, is_over) = (nodes.to_vec(), Arc::new(AtomicBool::new(false)));
        let (kept, over) = (nodes.clone(), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::SeqCst) {
                for node in &kept {
                    // One that cannot be started is missed by the case, which says so.
                    let _ = node.look();
                }
                std::thread::sleep(LOOK);
            }
        });
        Self { nodes, is_over, thread: Some(thread) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for node in &self.nodes {
            node.has_to_live.store(false, Ordering::SeqCst);
            let _ = node.signal(Signal::CONT);
            node.kill(Duration::ZERO);
        }
    }
}
