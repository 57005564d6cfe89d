//! Stages of a task: each with its name and time, loud when it fails, and all of them in a closing
//! summary. The only file here that prints.
#![expect(clippy::print_stderr, reason = "xtask talks to people at a terminal")]

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cpu;

/// What became of the stages so far.
#[derive(Debug)]
pub(crate) struct Stages {
    keep_going: bool,
    done: Vec<Done>,
    begun: Instant,
}

#[derive(Debug)]
struct Done {
    name: &'static str,
    took: Duration,
    /// User and system time, where it is known.
    cpu: Option<Duration>,
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    /// A stage before it failed.
    NotRun,
}

impl Stages {
    pub(crate) fn new(keep_going: bool) -> Self {
        Self { keep_going, done: Vec::new(), begun: Instant::now() }
    }

    /// Runs a stage, unless one before it failed. `advice` is what to do when it fails.
    pub(crate) fn run(&mut self, name: &'static str, advice: &str, stage: impl FnOnce() -> Result<()>) {
        if !self.goes_on() {
            return self.record(name, Duration::ZERO, None, Outcome::NotRun);
        }
        begins(name);
        let (begun, cpu_before) = (Instant::now(), cpu::of_this());
        let result = stage();
        let took = begun.elapsed();
        let cpu = Some(cpu::of_this().saturating_sub(cpu_before));
        let outcome = match result {
            Ok(()) => {
                eprintln!("   {name}: ok, {}", times(took, cpu));
                Outcome::Passed
            }
            Err(error) => {
                eprintln!("\n✗ {name} FAILED after {}: {error:#}", seconds(took));
                advise(advice);
                Outcome::Failed
            }
        };
        self.record(name, took, cpu, outcome);
    }

    /// Whether another stage is to start.
    pub(crate) fn goes_on(&self) -> bool {
        self.keep_going || !self.has_failed()
    }

    /// Adds a stage that ran elsewhere to the summary.
    pub(crate) fn record(
        &mut self,
        name: &'static str,
        took: Duration,
        cpu: Option<Duration>,
        outcome: Outcome,
    ) {
        self.done.push(Done { name, took, cpu, outcome });
    }

    /// The summary, and the exit code of it all.
    pub(crate) fn close(self) -> ExitCode {
        let width = self.done.iter().map(|done| done.name.chars().count()).max().unwrap_or(0);
        eprintln!("── summary");
        for Done { name, took, cpu, outcome } in &self.done {
            match outcome {
                Outcome::Passed => eprintln!("   ✓ {name:width$}  {}", times(*took, *cpu)),
                Outcome::Failed => eprintln!("   ✗ {name:width$}  {}  FAILED", times(*took, *cpu)),
                Outcome::NotRun => eprintln!("   · {name:width$}  not run"),
            }
        }
        // Stages run side by side: together they take longer than all of it.
        let all = times(self.begun.elapsed(), Some(cpu::of_this())).trim_start().to_owned();
        if self.has_failed() {
            eprintln!("   failed after {all}");
            ExitCode::FAILURE
        } else {
            eprintln!("   all passed in {all}");
            ExitCode::SUCCESS
        }
    }

    fn has_failed(&self) -> bool {
        self.done.iter().any(|done| done.outcome == Outcome::Failed)
    }
}

/// A line of a stage's own.
pub(crate) fn note(text: &str) {
    eprintln!("   {text}");
}

/// The exit code of one stage of a check, which shows the rest.
pub(crate) fn alone(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn failed_to_begin(error: &anyhow::Error) -> ExitCode {
    eprintln!("✗ {error:#}");
    ExitCode::FAILURE
}

pub(crate) fn begins(name: &str) {
    eprintln!("── {name}");
}

/// Shows what a stage printed that ran beside others, and how it ended.
pub(crate) fn ends(
    name: &str,
    advice: &str,
    log: &Path,
    outcome: Outcome,
    (took, cpu): (Duration, Option<Duration>),
) {
    let printed = std::fs::read(log).unwrap_or_default();
    let printed = String::from_utf8_lossy(&printed);
    eprintln!("── {name}, to its end");
    if !printed.trim().is_empty() {
        eprintln!("{}", printed.trim_end());
    }
    if outcome == Outcome::Passed {
        eprintln!("   {name}: ok, {}", times(took, cpu));
    } else {
        eprintln!("\n✗ {name} FAILED after {}; {}", seconds(took), log.display());
        advise(advice);
    }
}

fn advise(advice: &str) {
    if !advice.is_empty() {
        eprintln!("  what to do: {advice}");
    }
    eprintln!();
}

/// As `12.0s (cpu 20.5s)`.
fn times(took: Duration, cpu: Option<Duration>) -> String {
    let cpu = cpu.map(|cpu| format!("  (cpu {:>7})", seconds(cpu))).unwrap_or_default();
    format!("{:>7}{cpu}", seconds(took))
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_behind_a_failed_one_is_not_run() {
        let mut stages = Stages::new(false);
        stages.run("first", "", || Err(anyhow::anyhow!("broken")));
        stages.run("second", "", || panic!("it must not run"));
        assert_eq!(stages.done[1].outcome, Outcome::NotRun);
        assert_eq!(stages.close(), ExitCode::FAILURE);
    }

    #[test]
    fn keep_going_runs_them_all_and_still_fails() {
        let mut stages = Stages::new(true);
        stages.run("first", "", || Err(anyhow::anyhow!("broken")));
        stages.run("second", "", || Ok(()));
        assert_eq!(stages.done[1].outcome, Outcome::Passed);
        assert_eq!(stages.close(), ExitCode::FAILURE);
    }
}
