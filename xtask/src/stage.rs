//! Stages of a task: each with its name and time, loud when it fails, and all of them in a closing summary.
//! The only file here that prints.
#![expect(clippy::print_stderr, reason = "xtask talks to people at a terminal")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;

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
    end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
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
        if self.has_failed() && !self.keep_going {
            self.done.push(Done { name, took: Duration::ZERO, end: End::NotRun });
            return;
        }
        eprintln!("── {name}");
        let begun = Instant::now();
        let result = stage();
        let took = begun.elapsed();
        let end = match result {
            Ok(()) => {
                eprintln!("   {name}: ok, {}", seconds(took));
                End::Passed
            }
            Err(error) => {
                eprintln!("\n✗ {name} FAILED after {}: {error:#}", seconds(took));
                if !advice.is_empty() {
                    eprintln!("  what to do: {advice}");
                }
                eprintln!();
                End::Failed
            }
        };
        self.done.push(Done { name, took, end });
    }

    /// The summary, and the exit code of it all.
    pub(crate) fn close(self) -> ExitCode {
        let width = self.done.iter().map(|done| done.name.chars().count()).max().unwrap_or(0);
        eprintln!("── summary");
        for Done { name, took, end } in &self.done {
            match end {
                End::Passed => eprintln!("   ✓ {name:width$}  {:>7}", seconds(*took)),
                End::Failed => eprintln!("   ✗ {name:width$}  {:>7}  FAILED", seconds(*took)),
                End::NotRun => eprintln!("   · {name:width$}  not run"),
            }
        }
        let all = seconds(self.begun.elapsed());
        if self.has_failed() {
            eprintln!("   failed after {all}");
            ExitCode::FAILURE
        } else {
            eprintln!("   all passed in {all}");
            ExitCode::SUCCESS
        }
    }

    fn has_failed(&self) -> bool {
        self.done.iter().any(|done| done.end == End::Failed)
    }
}

/// A line of a stage's own.
pub(crate) fn note(text: &str) {
    eprintln!("   {text}");
}

pub(crate) fn failed_to_begin(error: &anyhow::Error) -> ExitCode {
    eprintln!("✗ {error:#}");
    ExitCode::FAILURE
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
        assert_eq!(stages.done[1].end, End::NotRun);
        assert_eq!(stages.close(), ExitCode::FAILURE);
    }

    #[test]
    fn keep_going_runs_them_all_and_still_fails() {
        let mut stages = Stages::new(true);
        stages.run("first", "", || Err(anyhow::anyhow!("broken")));
        stages.run("second", "", || Ok(()));
        assert_eq!(stages.done[1].end, End::Passed);
        assert_eq!(stages.close(), ExitCode::FAILURE);
    }
}
