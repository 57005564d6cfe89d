//! One attempt from start to end: a single loop over exit, stop, deadline and output.
//!
//! ```text
//! running ──exit──────────────────────────────┐
//!    │ timeout, stop: TERM + CONT             ▼
//! stopping ──exit of the leader──► grace for its children ──► KILL what is left ─► reap ─► drain
//!    │ kill_grace over, kill now: KILL        ▲
//! killed ──exit───────────────────────────────┘
//! ```

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Map;
use tokio::time::Instant;

use super::explain::{StartError, explain, is_text_busy};
use super::launch::Launch;
use super::pump::Pump;
use super::spawn::{Exit, Group, spawn};
use super::stop::{Level, StopSignal};
use super::{Ending, Job, Outcome, output};
use crate::log;

/// Output is waited for no longer than this once the whole group is killed: a process that left the
/// group may keep the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(500);

/// Runs the job to its end. Whatever happens, the program's process group is gone afterwards; that is
/// so as well if the future is dropped.
pub async fn execute(job: Job, stop: StopSignal) -> Ending {
    let begun = Instant::now();
    let never_ran = |outcome| Ending {
        outcome,
        duration: begun.elapsed(),
        output: Ok(Map::new()),
        log: log::Summary::default(),
    };
    if stop.is_asked() {
        return never_ran(Outcome::Stopped);
    }
    let started = match start(&job).await {
        Ok((group, pump)) => Attempt {
            group,
            pump,
            level: Level::Run,
            cut_short: None,
            // A timeout beyond what a clock can hold is none.
            deadline: job.timeout.and_then(|timeout| begun.checked_add(timeout)),
        },
        Err(error) => return never_ran(Outcome::StartFailed(error.to_string())),
    };
    let (outcome, exited_at, log) = started.run(&stop, job.kill_grace).await;
    Ending { outcome, duration: exited_at - begun, output: output::take(&job.output), log }
}

async fn start(job: &Job) -> Result<(Group, Pump), StartError> {
    /// A fork of another thread holds a fresh script's file for less than a millisecond.
    const BUSY_TRIES: u32 = 100;
    const BUSY_PAUSE: Duration = Duration::from_millis(5);

    let launch = Launch::prepare(job)?;
    let mut tries = 0;
    let mut group = loop {
        match spawn(&launch) {
            Ok(group) => break group,
            Err(error) if is_text_busy(&error) && tries < BUSY_TRIES => {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => return Err(explain(&launch, error)),
        }
    };
    let log = log::Writer::new(job.log.clone(), job.log_cap);
    // Registering the pipes only fails at a limit of the system; the group is killed as it is dropped.
    let pump = Pump::new(&mut group, log).map_err(|source| StartError::Limit { source })?;
    Ok((group, pump))
}

struct Attempt {
    group: Group,
    pump: Pump,
    /// How urgently its end was asked for, be it by the timeout or from outside.
    level: Level,
    /// Why Laneway ended it; the first reason stays.
    cut_short: Option<Outcome>,
    /// Of the timeout, then of the grace.
    deadline: Option<Instant>,
}

impl Attempt {
    async fn run(mut self, stop: &StopSignal, grace: Duration) -> (Outcome, Instant, log::Summary) {
        loop {
            tokio::select! {
                // In this order: a program that ended in time did not time out, and a flood of output
                // must not hide the rest.
                biased;
                () = self.group.exited() => break,
                level = stop.beyond(self.level) => self.end(level, Outcome::Stopped, grace),
                () = at(self.deadline) => self.deadline_passed(grace),
                () = self.pump.turn() => {}
            }
        }
        let exited_at = Instant::now();
        self.wait_for_members(stop, grace, exited_at).await;
        self.group.signal(Signal::KILL);
        let exit = self.group.reap();
        if !self.pump.drain(DRAIN).await {
            self.pump.log.note(
                "a process that left the step's process group still holds its output; what it prints from here on is not kept",
            );
        }
        let outcome = match (self.cut_short, exit) {
            (Some(outcome), _) => outcome,
            (None, Ok(Exit::Code(code))) => Outcome::Exited(code),
            (None, Ok(Exit::Signal(signal))) => Outcome::Signaled(signal),
            (None, Err(error)) => {
                Outcome::StartFailed(format!("it ran, but its exit status was lost: {error}"))
            }
        };
        (outcome, exited_at, self.pump.log.finish())
    }

    fn deadline_passed(&mut self, grace: Duration) {
        match self.level {
            Level::Run => self.end(Level::Stop, Outcome::TimedOut, grace),
            Level::Stop => self.end(Level::Kill, Outcome::Stopped, grace),
            Level::Kill => self.deadline = None,
        }
    }

    /// Raises the level and acts on it.
    fn end(&mut self, level: Level, why: Outcome, grace: Duration) {
        self.level = level;
        self.cut_short.get_or_insert(why);
        match level {
            Level::Run => {}
            Level::Stop => {
                self.group.signal(Signal::TERM);
                // A stopped process does not see TERM before it is continued.
                self.group.signal(Signal::CONT);
                self.deadline = Instant::now().checked_add(grace);
            }
            Level::Kill => {
                self.group.signal(Signal::KILL);
                self.deadline = None;
            }
        }
    }

    /// A shell dies of TERM at once while the program it runs still cleans up: the grace is for all.
    /// After an exit that nobody asked for there is none.
    async fn wait_for_members(&mut self, stop: &StopSignal, grace: Duration, exited_at: Instant) {
        let mut pause = Duration::from_millis(10);
        while self.level == Level::Stop && self.group.has_members(exited_at.into_std()) {
            tokio::select! {
                biased;
                level = stop.beyond(self.level) => self.end(level, Outcome::Stopped, grace),
                () = at(self.deadline) => self.deadline_passed(grace),
                () = self.pump_for(pause) => pause = (pause * 2).min(Duration::from_millis(100)),
            }
        }
    }

    async fn pump_for(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while Instant::now() < until && tokio::time::timeout_at(until, self.pump.turn()).await.is_ok() {}
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
