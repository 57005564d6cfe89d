//! One attempt from start to end: a single loop over exit, stop, deadline and output.
//!
//! ```text
//! running ──exit──────────────────────────────┐
//!    │ timeout, stop: TERM + CONT             ▼
//! stopping ──exit of the leader──► grace for its children ──► KILL what is left ─► gone ─► drain
//!    │ kill_grace over, kill now: KILL        ▲
//! killed ──exit───────────────────────────────┘
//! ```
//! After an exit that nobody asked for, the warden kills what is left by itself.

use std::path::Path;
use std::time::Duration;

use laneway_store::monotonic_time;
use laneway_torture::{Point, pass};
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::explain::{StartError, explain, explain_handing_over, is_text_busy};
use super::launch::Launch;
use super::pump::Pump;
use super::stop::{Level, StopSignal};
use super::{Ending, Job, Outcome, output};
use crate::log;
use crate::secret::Masks;
use crate::warden::{Ended, Exit, Group, Limits, Warden};

/// Output is waited for no longer than this once everything is killed: a process that nobody can find may
/// keep the pipe open for ever.
const DRAIN: Duration = Duration::from_millis(500);

/// What is killed is gone in a moment, unless the kernel holds it back. The rest of the run does not wait.
const GONE: Duration = Duration::from_secs(1);

/// Runs the job to its end. Whatever happens, nothing that the program started is left afterwards; that is
/// so as well, a moment later, if the future is dropped.
pub async fn execute(warden: Warden, job: Job, stop: StopSignal) -> Ending {
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
    let launch = loop {
        match Launch::prepare(&job) {
            Ok(launch) => break launch,
            // It has not started yet: nothing but its start waits until there is space again.
            Err(error) if error.is_for_want_of_space() => {
                tracing::debug!("{error}; waiting for space");
                if tokio::time::timeout(SPACE_PAUSE, stop.beyond(Level::Run)).await.is_ok() {
                    return never_ran(Outcome::Stopped);
                }
            }
            Err(error) => return never_ran(Outcome::StartFailed(error.to_string())),
        }
    };
    pass(Point::LaunchPrepared);
    // What it waited for is no part of its time.
    let begun = Instant::now();
    // For the warden, which ends the step if this process is frozen then.
    let deadline = job.timeout.and_then(|timeout| monotonic_time().checked_add(timeout));
    let limits = Limits { deadline, grace: job.kill_grace };
    let mut tries = 0;
    loop {
        let log = log::Writer::new(job.log.clone(), job.log_cap).masking(&job.masks);
        let (group, pump) = match start(&warden, &launch, limits, log) {
            Ok(started) => started,
            Err(error) => return never_ran(Outcome::StartFailed(error.to_string())),
        };
        let attempt = Attempt {
            group,
            pump,
            level: Level::Run,
            cut_short: None,
            // A timeout beyond what a clock can hold is none.
            deadline: job.timeout.and_then(|timeout| begun.checked_add(timeout)),
        };
        match attempt.run(&stop, job.kill_grace).await {
            Ok((outcome, exited_at, log)) => {
                pass(Point::OutputBefore);
                let output = take_output(&job.output, &job.masks);
                pass(Point::OutputAfter);
                return Ending { outcome, duration: exited_at - begun, output, log };
            }
            Err(error) if is_text_busy(&error) && tries < BUSY_TRIES && !stop.is_asked() => {
                tries += 1;
                tokio::time::sleep(BUSY_PAUSE).await;
            }
            Err(error) => {
                return never_ran(Outcome::StartFailed(explain(&launch, error).to_string()));
            }
        }
    }
}

/// What a step left for others, without its secrets.
pub(crate) fn take_output(
    path: &Path,
    masks: &Masks,
) -> Result<Map<String, Value>, laneway_core::output::Error> {
    match output::take(path) {
        Ok(output) if !masks.is_empty() => Ok(masks.output(output)),
        Err(mut error) if !masks.is_empty() => {
            error.message = masks.text(&error.message);
            Err(error)
        }
        output => output,
    }
}

/// How long to wait before a full disk is tried again.
const SPACE_PAUSE: Duration = Duration::from_millis(250);

/// A fork of another thread holds a fresh script's file for less than a millisecond.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(5);

fn start(
    warden: &Warden,
    launch: &Launch,
    limits: Limits,
    log: log::Writer,
) -> Result<(Group, Pump), StartError> {
    let mut group = warden.spawn(launch, limits).map_err(|source| explain_handing_over(launch, source))?;
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
    /// The error is the system's word that the program could not be started.
    async fn run(
        mut self,
        stop: &StopSignal,
        grace: Duration,
    ) -> std::io::Result<(Outcome, Instant, log::Summary)> {
        let ended = loop {
            tokio::select! {
                // In this order: a program that ended in time did not time out, and a flood of output
                // must not hide the rest.
                biased;
                ended = self.group.ended() => break ended,
                level = stop.beyond(self.level) => self.end(level, Outcome::Stopped, grace),
                () = at(self.deadline) => self.deadline_passed(grace),
                () = self.pump.turn() => {}
            }
        };
        let exited_at = Instant::now();
        pass(Point::Exited);
        let outcome = match ended {
            Ended::Failed(error) => return Err(error),
            Ended::Exited(Exit::Code(code)) => Outcome::Exited(code),
            Ended::Exited(Exit::Signal(signal)) => Outcome::Signaled(signal),
            Ended::WardenDied => Outcome::StartFailed(
                "the warden died while the step ran; the step was killed, and how it would have ended is not known"
                    .to_owned(),
            ),
        };
        if self.group.has_timed_out() {
            self.cut_short.get_or_insert(Outcome::TimedOut);
            // The warden has begun the grace.
            if self.level == Level::Run {
                self.level = Level::Stop;
                self.deadline = Instant::now().checked_add(grace);
            }
        }
        let outcome = self.cut_short.take().unwrap_or(outcome);
        if !self.wait_for_members(stop, grace).await {
            self.pump
                .log
                .note("a process of the step was killed and is still not gone; the system holds it back");
        }
        pass(Point::Gone);
        if !self.pump.drain(DRAIN).await {
            self.pump.log.note(
                "a process that left the step still holds its output; what it prints from here on is not kept",
            );
        }
        Ok((outcome, exited_at, self.pump.log.finish()))
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
                self.group.term();
                self.deadline = Instant::now().checked_add(grace);
            }
            Level::Kill => {
                self.group.kill();
                self.deadline = None;
            }
        }
    }

    /// A shell dies of TERM at once while the program it runs still cleans up: the grace is for all.
    /// After an exit that nobody asked for there is none. Says whether everything is gone.
    async fn wait_for_members(&mut self, stop: &StopSignal, grace: Duration) -> bool {
        while self.level == Level::Stop {
            tokio::select! {
                biased;
                () = self.group.gone() => return true,
                level = stop.beyond(self.level) => self.end(level, Outcome::Stopped, grace),
                () = at(self.deadline) => self.deadline_passed(grace),
                () = self.pump.turn() => {}
            }
        }
        let until = Instant::now() + GONE;
        loop {
            tokio::select! {
                biased;
                () = self.group.gone() => return true,
                () = at(Some(until)) => return false,
                () = self.pump.turn() => {}
            }
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
