//! Runs stages side by side, each in a process of its own. Owns how many run at once, what each
//! prints and what it takes; `check.rs` says which there are. A stage prints into a file, which is
//! shown when the stage ends.
//!
//! ```text
//! start_ready ─▶ xtask stage NAME ─▶ its watcher's thread ─▶ Ended ─▶ show, record ─▶ start_ready …
//! ```

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::check::{Stage, ensure_complete};
use crate::program::{self, target_dir};
use crate::shell::{Shell, program};
use crate::stage::{Outcome, Stages};
use crate::{cpu, stage};

/// Stages that run at once, beside one compiler: as many as a small machine has cores. With three,
/// tests that wait for something to happen within seconds failed now and then.
const SLOTS: usize = 2;

/// Of a compiler beside tests: it takes what they leave, so that no test is late because of it.
const COMPILER_NICENESS: &str = "10";

/// What a stage needs of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Load {
    /// Runs whenever it can: it waits for a network.
    Light,
    /// Takes one of the slots.
    Slot,
    /// One at a time, since cargo locks its directory, and at a low priority.
    Compiler,
}

/// A stage and what it waits for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) stage: Stage,
    pub(crate) name: &'static str,
    pub(crate) after: &'static [Stage],
    pub(crate) load: Load,
    /// What to do when it fails.
    pub(crate) advice: &'static str,
}

#[derive(Debug)]
pub(crate) struct Schedule {
    waiting: Vec<Plan>,
    running: Vec<Running>,
    passed: Vec<Stage>,
    /// What stages find in their environment.
    variables: Vec<(&'static str, String)>,
    /// This program. Asked for once: a build may put another in its place.
    this: PathBuf,
    logs: PathBuf,
    ended: (Sender<Ended>, Receiver<Ended>),
}

#[derive(Debug)]
struct Running {
    plan: Plan,
    child: Child,
    begun: Instant,
    log: PathBuf,
}

/// A stage's process has ended, and was not waited for.
#[derive(Debug)]
struct Ended {
    stage: Stage,
    cpu: Option<Duration>,
}

impl Schedule {
    pub(crate) fn new(shell: &Shell, plans: Vec<Plan>) -> Result<Self> {
        ensure_complete(&plans)?;
        let logs = target_dir(shell)?.join("xtask/check");
        fs::create_dir_all(&logs).with_context(|| logs.display().to_string())?;
        let variables = vec![(program::BUILT, "1".to_owned())];
        let this = std::env::current_exe().context("the path of this program")?;
        let (running, passed) = (Vec::new(), Vec::new());
        Ok(Self { waiting: plans, running, passed, variables, this, logs, ended: channel() })
    }

    /// Adds variables for stages that start from now on.
    pub(crate) fn lend(&mut self, variables: impl IntoIterator<Item = (&'static str, String)>) {
        self.variables.extend(variables);
    }

    /// Notes that a stage has passed which ran elsewhere.
    pub(crate) fn provide(&mut self, stage: Stage) {
        self.passed.push(stage);
    }

    /// Runs everything that is left.
    pub(crate) fn run(mut self, stages: &mut Stages) {
        self.start_ready(stages);
        while !self.running.is_empty() {
            if let Ok(ended) = self.ended.1.recv() {
                self.finish(ended, stages);
            }
            self.start_ready(stages);
        }
        for plan in self.waiting {
            stages.record(plan.name, Duration::ZERO, None, Outcome::NotRun);
        }
    }

    /// Starts what waits for nothing more, as long as there is room.
    pub(crate) fn start_ready(&mut self, stages: &mut Stages) {
        while stages.goes_on()
            && let Some(index) = self.next()
        {
            let plan = self.waiting.remove(index);
            if let Err(error) = self.start(plan) {
                stages.run(plan.name, plan.advice, || Err(error));
            }
        }
    }

    fn next(&self) -> Option<usize> {
        let loads: Vec<Load> = self.running.iter().map(|running| running.plan.load).collect();
        next(&self.waiting, &loads, &self.passed)
    }

    fn start(&mut self, plan: Plan) -> Result<()> {
        let log = self.logs.join(format!("{}.log", plan.name.replace(' ', "-")));
        let out = File::create(&log).with_context(|| log.display().to_string())?;
        let errors = out.try_clone().context("a log cannot be shared")?;
        let niceness = if plan.load == Load::Compiler { COMPILER_NICENESS } else { "0" };
        let mut command = program("nice");
        command.args(["-n", niceness]).arg(&self.this).arg("stage").arg(plan.stage.argument());
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(out).stderr(errors);
        stage::begins(plan.name);
        let child =
            command.spawn().with_context(|| format!("the stage `{}` could not be started", plan.name))?;
        watch(&child, plan.stage, self.ended.0.clone());
        self.running.push(Running { plan, child, begun: Instant::now(), log });
        Ok(())
    }

    fn finish(&mut self, Ended { stage, cpu }: Ended, stages: &mut Stages) {
        let Some(index) = self.running.iter().position(|running| running.plan.stage == stage) else { return };
        let Running { plan, mut child, begun, log } = self.running.remove(index);
        let took = begun.elapsed();
        let has_passed = child.wait().is_ok_and(|status| status.success());
        if has_passed {
            self.passed.push(stage);
        }
        let outcome = if has_passed { Outcome::Passed } else { Outcome::Failed };
        stage::ends(plan.name, plan.advice, &log, outcome, (took, cpu));
        stages.record(plan.name, took, cpu, outcome);
    }
}

/// Returns which of the waiting stages may start beside those that run, by their loads.
fn next(waiting: &[Plan], running: &[Load], passed: &[Stage]) -> Option<usize> {
    let count = |wanted| running.iter().filter(|load| **load == wanted).count();
    waiting.iter().position(|plan| {
        plan.after.iter().all(|needed| passed.contains(needed))
            && match plan.load {
                Load::Light => true,
                Load::Slot => count(Load::Slot) < SLOTS,
                Load::Compiler => count(Load::Compiler) == 0,
            }
    })
}

/// Waits for a child on a thread of its own, and leaves it to be waited for: until then its times
/// can be read.
fn watch(child: &Child, stage: Stage, ended: Sender<Ended>) {
    let pid = child.id();
    std::thread::spawn(move || {
        if let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(id), options), Err(rustix::io::Errno::INTR)) {}
        }
        let _ = ended.send(Ended { stage, cpu: cpu::of(pid) });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(stage: Stage, load: Load, after: &'static [Stage]) -> Plan {
        Plan { stage, name: "", after, load, advice: "" }
    }

    #[test]
    fn a_stage_starts_when_all_that_it_waits_for_has_passed() {
        let waiting = [plan(Stage::Tests, Load::Slot, &[Stage::Build, Stage::Servers])];
        assert_eq!(next(&waiting, &[], &[Stage::Build]), None);
        assert_eq!(next(&waiting, &[], &[Stage::Servers, Stage::Build]), Some(0));
    }

    #[test]
    fn stages_beyond_the_slots_and_a_second_compiler_wait() {
        let waiting = [
            plan(Stage::Tests, Load::Slot, &[]),
            plan(Stage::Clippy, Load::Compiler, &[]),
            plan(Stage::WebTools, Load::Light, &[]),
        ];
        let full = [Load::Slot; SLOTS];
        assert_eq!(next(&waiting, &full, &[]), Some(1));
        assert_eq!(next(&waiting, &[&full[..], &[Load::Compiler]].concat(), &[]), Some(2));
        assert_eq!(next(&waiting, &[&full[1..], &[Load::Compiler]].concat(), &[]), Some(0));
    }
}
