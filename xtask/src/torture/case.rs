//! One case: a run, something that goes wrong, and going on until the run has ended; then the
//! checker looks.
//!
//! ```text
//! start ─▶ injection ─▶ (everything is gone?) ─▶ resume … until ended ─▶ a neighbour tidies up ─▶ check
//! ```

use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::Result;
use laneway_torture::{Bug, Point};
use rustix::process::{Pid, Signal, kill_process};

use super::act::{Act, Scene};
use super::check::{self, Trouble};
use super::dice::Dice;
use super::place::{GRACE, Place, wait};
use super::processes;
use super::walk::Ground;

/// What is promised beyond the grace, and what a crowded machine gets on top.
const SOON: Duration = Duration::from_secs(1);
const SLACK: Duration = Duration::from_secs(2);

/// About as long as the run takes when nobody disturbs it.
const USUAL: Duration = Duration::from_millis(900);

/// How often a run may have to be taken up again before that is a finding of its own.
const ROUNDS: usize = 10;

#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) act: Act,
    pub(super) seed: u64,
    pub(super) bug: Option<Bug>,
    /// Before the run counts as stuck.
    pub(super) patience: Duration,
}

/// What became of a case.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Kills of nodes, wardens and steps, and what else was done.
    pub(super) injected: Vec<String>,
    pub(super) findings: Vec<String>,
    /// Whether the armed point was reached.
    pub(super) has_died: bool,
    /// The longest time that something was left after a node's death.
    pub(super) cleared: Duration,
    /// The directory, if there is something to look at.
    pub(super) kept: Option<PathBuf>,
}

impl Case {
    pub(super) fn play(&self, ground: &Ground) -> Result<Report> {
        let mut dice = Dice::new(self.seed);
        // Without cgroups nobody could find what is left of a node and a warden that die together.
        let needs_cgroups = matches!(self.act, Act::Crash { scene: Scene::Orphan, .. });
        let has_cgroups = ground.has_cgroups && (dice.is_lucky(0.7) || needs_cgroups);
        let place = Place::new(&ground.program, has_cgroups, self.bug)?;
        let mut play = Play {
            place,
            dice,
            has_cgroups,
            patience: self.patience,
            trouble: Trouble::default(),
            report: Report::default(),
        };
        play.act(&self.act)?;
        play.go_on()?;
        play.maybe_retry()?;
        play.tidy_up()?;
        play.look()?;
        let mut report = play.report;
        if !report.findings.is_empty() {
            report.kept = Some(play.place.keep());
        }
        Ok(report)
    }
}

struct Play {
    place: Place,
    dice: Dice,
    has_cgroups: bool,
    patience: Duration,
    trouble: Trouble,
    report: Report,
}

impl Play {
    fn act(&mut self, act: &Act) -> Result<()> {
        match act {
            Act::Crash { point, passing, scene } => self.crash(*point, *passing, *scene),
            Act::Kills(count) => self.kills(*count),
            Act::Echo { number, late_ms } => {
                let echo = format!("{number}:{late_ms}");
                let node = self.place.start(&["run", "mix.yaml"], &[("LANEWAY_ECHO", echo)])?;
                self.inject(format!("finish {number} twice"));
                self.expect_an_end(node, "run")
            }
            Act::Neighbour => {
                let node = self.place.start(&["run", "mix.yaml"], &[])?;
                self.wait_for_a_step();
                self.pause(0.5);
                let neighbour = self.place.start(&["run", "neighbour.yaml"], &[])?;
                self.inject("a neighbour".to_owned());
                self.expect_an_end(neighbour, "run neighbour.yaml")?;
                self.expect_an_end(node, "run")
            }
            Act::Nothing => {
                let node = self.place.start(&["run", "mix.yaml"], &[])?;
                self.expect_an_end(node, "run")
            }
        }
    }

    fn crash(&mut self, point: Point, passing: u32, scene: Scene) -> Result<()> {
        let passed = self.place.path("passed").to_string_lossy().into_owned();
        let crash = format!("{}:{passing}", point.name());
        let arms = [("LANEWAY_CRASH", crash), ("LANEWAY_PASSED", passed)];
        let run = ["run", "mix.yaml"];
        match scene {
            Scene::Run => {
                let node = self.place.start(&run, &arms)?;
                self.expect_a_death(node, "run")
            }
            Scene::Resume => {
                let node = self.place.start(&run, &[])?;
                self.wait_for_a_step();
                self.pause(0.4);
                self.kill_node(node)?;
                let Some((id, _)) = self.place.run()? else { return Ok(()) };
                let node = self.place.start(&["run", "--resume", &id], &arms)?;
                self.expect_a_death(node, "run --resume")
            }
            Scene::Interrupt => {
                let node = self.place.start(&run, &arms)?;
                self.wait_for_a_step();
                self.pause(0.3);
                self.trouble.is_canceled = true;
                let _ = kill_process(Pid::from_child(&node), Signal::INT);
                self.inject("an interrupt".to_owned());
                self.expect_a_death(node, "run")
            }
            Scene::Cancel => {
                let node = self.place.start(&run, &[])?;
                self.wait_for_a_step();
                let Some((id, _)) = self.place.run()? else { return Ok(()) };
                self.trouble.is_canceled = true;
                let cancel = self.place.start(&["cancel", &id], &arms)?;
                self.expect_a_death(cancel, "cancel")?;
                self.expect_an_end(node, "run")
            }
            Scene::Orphan => {
                let node = self.place.start(&run, &arms)?;
                self.wait_for_a_step();
                self.pause(0.4);
                self.kill_node(node)?;
                // Its warden is on its way to the point.
                let until = Instant::now() + SOON + SLACK;
                while self.place.died_at().is_none() && Instant::now() < until {
                    std::thread::sleep(Duration::from_millis(2));
                }
                self.note_death();
                Ok(())
            }
        }
    }

    /// Kills until the count is reached or the run has ended, going on each time.
    fn kills(&mut self, count: u32) -> Result<()> {
        for _ in 0..count {
            let Some(mut node) = self.take_up()? else { return Ok(()) };
            let moment = Instant::now() + USUAL.mul_f64(self.dice.fraction());
            while Instant::now() < moment && node.try_wait()?.is_none() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let victims = ["node", "node", "warden", "both", "step"];
            match self.dice.one_of(&victims) {
                "node" => {
                    self.kill_node(node)?;
                    self.maybe_look_for_leftovers();
                }
                // Without cgroups nobody could find what is left then; docs/design/warden.md says
                // so.
                "both" if self.has_cgroups => {
                    let warden = processes::warden_of(&node).filter(|warden| processes::freeze(*warden));
                    self.kill_node(node)?;
                    if warden.is_some_and(processes::kill) {
                        self.trouble.wardens_killed += 1;
                        self.inject("kill of a warden with its node".to_owned());
                    }
                }
                "step" => {
                    if processes::a_step_of(&node).is_some_and(processes::kill) {
                        self.trouble.steps_killed += 1;
                        self.inject("kill of a step".to_owned());
                    }
                    self.expect_an_end(node, "run")?;
                }
                _ => {
                    if processes::warden_of(&node).is_some_and(processes::kill) {
                        self.trouble.wardens_killed += 1;
                        self.inject("kill of a warden".to_owned());
                    }
                    self.expect_an_end(node, "run")?;
                }
            }
        }
        Ok(())
    }

    /// Goes on with the run until it has ended, as a person would.
    fn go_on(&mut self) -> Result<()> {
        for _ in 0..ROUNDS {
            let Some(node) = self.take_up()? else { return Ok(()) };
            let before = self.report.findings.len();
            self.expect_an_end(node, "run --resume")?;
            if self.report.findings.len() > before {
                return Ok(());
            }
        }
        self.find(format!("the run has not ended after {ROUNDS} resumptions"));
        Ok(())
    }

    /// Sometimes what did not succeed is run again, undisturbed: then everything has to succeed
    /// that can.
    fn maybe_retry(&mut self) -> Result<()> {
        let Some((id, status)) = self.place.run()? else { return Ok(()) };
        if !self.report.findings.is_empty() || status == "running" || !self.dice.is_lucky(0.3) {
            return Ok(());
        }
        let node = self.place.start(&["retry", &id], &[])?;
        self.inject("a retry".to_owned());
        self.trouble = Trouble { is_retried: true, ..Trouble::default() };
        self.expect_an_end(node, "retry")
    }

    /// Starts the run, or resumes it; `None` if it has ended.
    fn take_up(&mut self) -> Result<Option<Child>> {
        match self.place.run()? {
            None if self.place.has_begun() => {
                self.find("steps have run, and the store knows no run".to_owned());
                Ok(None)
            }
            None => Ok(Some(self.place.start(&["run", "mix.yaml"], &[])?)),
            Some((id, status)) if status == "running" => {
                Ok(Some(self.place.start(&["run", "--resume", &id], &[])?))
            }
            Some(_) => Ok(None),
        }
    }

    /// Returns what dead sessions held, and sweeps; then nothing may be left.
    fn tidy_up(&mut self) -> Result<()> {
        let neighbour = self.place.start(&["run", "neighbour.yaml"], &[])?;
        self.expect_an_end(neighbour, "run neighbour.yaml")?;
        self.look_for_leftovers();
        Ok(())
    }

    fn look(&mut self) -> Result<()> {
        let mut findings = Vec::new();
        let ledger = self.place.ledger(&mut findings);
        let store = self.place.store();
        let document = super::workload::document();
        match check::check(&store, &document, &ledger, &self.trouble) {
            Ok(found) => findings.extend(found),
            Err(error) => findings.push(format!("the store cannot be looked at: {error:#}")),
        }
        if let Some((id, _)) = self.place.run()? {
            let replay = self.place.laneway(&["replay", &id], &[]).output()?;
            if !replay.status.success() {
                findings.push(String::from_utf8_lossy(&replay.stdout).trim().replace('\n', " "));
            }
            let logs = self.place.laneway(&["logs", &id, "--json"], &[]).output()?;
            findings.extend(check::logs(&store, &document, &String::from_utf8_lossy(&logs.stdout))?);
        }
        findings.extend(check::files(&store));
        self.report.findings.extend(findings);
        Ok(())
    }

    /// Waits for an armed process, which may also end without having come past its point.
    fn expect_a_death(&mut self, mut process: Child, what: &str) -> Result<()> {
        let status = wait(&mut process, self.patience)?;
        let is_killed = status.is_some_and(|status| {
            use std::os::unix::process::ExitStatusExt as _;
            status.signal() == Some(9)
        });
        self.note_death();
        if is_killed && self.report.has_died {
            self.maybe_look_for_leftovers();
            return Ok(());
        }
        self.judge_end(process, status, what)
    }

    fn expect_an_end(&mut self, mut process: Child, what: &str) -> Result<()> {
        let status = wait(&mut process, self.patience)?;
        self.judge_end(process, status, what)
    }

    fn judge_end(
        &mut self,
        mut process: Child,
        status: Option<std::process::ExitStatus>,
        what: &str,
    ) -> Result<()> {
        let Some(status) = status else {
            self.find(format!("`laneway {what}` did not end within {:?}", self.patience));
            process.kill()?;
            process.wait()?;
            self.trouble.nodes_killed += 1;
            return Ok(());
        };
        // 0 succeeded, 1 failed, 130 interrupted.
        if !matches!(status.code(), Some(0 | 1 | 130)) {
            let words = self.place.last_words();
            self.find(format!("`laneway {what}` ended with {status}: {words}"));
        }
        Ok(())
    }

    fn note_death(&mut self) {
        let Some(at) = self.place.died_at() else { return };
        if !std::mem::replace(&mut self.report.has_died, true) {
            self.inject(format!("died at {at}"));
            match Point::named(&at).map(Point::place) {
                Some(laneway_torture::Place::Warden) => self.trouble.wardens_killed += 1,
                Some(
                    laneway_torture::Place::Node
                    | laneway_torture::Place::Shared
                    | laneway_torture::Place::Effect
                    | laneway_torture::Place::Telling
                    | laneway_torture::Place::Firing
                    | laneway_torture::Place::Calling,
                )
                | None => self.trouble.nodes_killed += 1,
            }
        }
    }

    fn kill_node(&mut self, mut node: Child) -> Result<()> {
        if node.try_wait()?.is_none() {
            self.trouble.nodes_killed += 1;
            self.inject("kill of a node".to_owned());
        }
        node.kill()?;
        node.wait()?;
        Ok(())
    }

    /// Sometimes the run is taken up at once, while the old warden is still busy.
    fn maybe_look_for_leftovers(&mut self) {
        // Nobody but the next warden can clear away what a dead one held.
        if self.trouble.wardens_killed == 0 && self.dice.is_lucky(0.5) {
            self.look_for_leftovers();
        }
    }

    fn look_for_leftovers(&mut self) {
        match processes::wait_until_gone(&self.place.mark, GRACE + SOON + SLACK) {
            Ok(took) => self.report.cleared = self.report.cleared.max(took),
            Err(left) => self.find(format!("still alive although nobody owns it: {}", left.join(", "))),
        }
    }

    fn wait_for_a_step(&self) {
        let until = Instant::now() + self.patience;
        while !self.place.has_begun() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Part of the usual time, at random.
    fn pause(&mut self, most: f64) {
        std::thread::sleep(USUAL.mul_f64(self.dice.fraction() * most));
    }

    fn inject(&mut self, what: String) {
        self.report.injected.push(what);
    }

    fn find(&mut self, finding: String) {
        self.report.findings.push(finding);
    }
}
