//! The offline checker. When everything is dead it compares what the steps told the ledger with the store's rows
//! and events, and both with the rules of the product. It knows what was injected only as far as that explains how
//! a run may end. Every finding is a sentence.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use laneway_core::definition::{OnLost, Source, When, compile};
use laneway_core::plan::Plan;
use rusqlite::{Connection, OpenFlags};

use super::ledger::{Ledger, What};
use super::workload::MAX_PARALLEL;

/// What was done to a run, as far as it may show in its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble {
    pub(super) nodes_killed: u32,
    pub(super) wardens_killed: u32,
    pub(super) steps_killed: u32,
    pub(super) is_canceled: bool,
    /// A person had it run again what did not succeed. What was done before explains nothing any more.
    pub(super) is_retried: bool,
}

/// Looks at the store and the ledger of a case.
pub(super) fn check(store: &Path, document: &str, ledger: &Ledger, trouble: &Trouble) -> Result<Vec<String>> {
    let plan = plan(document)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(store, flags).context("the store cannot be opened")?;
    let mut findings = Vec::new();
    let sound: String = connection.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if sound != "ok" {
        findings.push(format!("the store's file is damaged: {sound}"));
    }
    let count = |what: &str| connection.query_row(what, [], |row| row.get::<_, i64>(0));
    if count("SELECT count(*) FROM sessions")? > 0 {
        findings.push("a session is on record although every process has ended".to_owned());
    }
    if count("SELECT count(*) FROM runs WHERE is_visible = 0")? > 0 {
        findings.push("half of a submit was left behind".to_owned());
    }
    let runs = count("SELECT count(*) FROM runs WHERE workflow = 'mix'")?;
    if runs != 1 {
        findings.push(format!("the store has {runs} runs and not 1"));
        return Ok(findings);
    }
    let run = Run::read(&connection, &plan)?;
    let mut checker = Checker { plan: &plan, run: &run, ledger, trouble, findings };
    checker.the_end();
    checker.counters();
    checker.events();
    checker.places();
    checker.attempts();
    checker.order();
    checker.values();
    ledger.check(&mut checker.findings);
    Ok(checker.findings)
}

fn plan(document: &str) -> Result<Plan> {
    let source = Source { file: "mix".to_owned(), default_name: "mix".to_owned(), text: document.to_owned() };
    compile(&source).map_err(|diagnostics| anyhow::anyhow!(diagnostics.render(false)))
}

/// The rows of the one run.
struct Run {
    status: String,
    unsettled: i64,
    last_event: i64,
    tasks: Vec<Task>,
    /// Unsettled, succeeded, failed, passed over.
    sets: BTreeMap<usize, [i64; 4]>,
    /// Outcome and reason by step and attempt.
    attempts: BTreeMap<(String, u32), (String, Option<String>)>,
    /// Number, name and body.
    events: Vec<(i64, String, serde_json::Value)>,
}

struct Task {
    step: String,
    status: String,
    reason: Option<String>,
    attempt: u32,
    output: Option<String>,
}

impl Run {
    fn read(connection: &Connection, plan: &Plan) -> Result<Self> {
        let (no, status, unsettled, last_event): (i64, String, i64, i64) = connection.query_row(
            "SELECT no, status, unsettled, last_event FROM runs WHERE workflow = 'mix'",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)),
        )?;
        let name = |position: usize| plan.workflow.steps[position].name.clone();
        let tasks = connection
            .prepare(
                "SELECT position, status, reason, attempt, output FROM tasks WHERE run_no = ?1 ORDER BY 1",
            )?
            .query_map([no], |row| {
                Ok(Task {
                    step: name(row.get(0)?),
                    status: row.get(1)?,
                    reason: row.get(2)?,
                    attempt: row.get(3)?,
                    output: row.get(4)?,
                })
            })?
            .collect::<rusqlite::Result<_>>()?;
        let sets = connection
            .prepare(
                "SELECT set_no, unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = ?1",
            )?
            .query_map([no], |row| Ok((row.get(0)?, [row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?])))?
            .collect::<rusqlite::Result<_>>()?;
        let attempts = connection
            .prepare("SELECT position, attempt, outcome, reason FROM attempts WHERE run_no = ?1")?
            .query_map([no], |row| Ok(((name(row.get(0)?), row.get(1)?), (row.get(2)?, row.get(3)?))))?
            .collect::<rusqlite::Result<_>>()?;
        let events = connection
            .prepare("SELECT seq, name, body FROM events WHERE run_no = ?1 ORDER BY seq")?
            .query_map([no], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?)))?
            .map(|row| {
                row.map(|(seq, name, body)| (seq, name, serde_json::from_str(&body).unwrap_or_default()))
            })
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { status, unsettled, last_event, tasks, sets, attempts, events })
    }

    fn task(&self, step: &str) -> &Task {
        self.tasks.iter().find(|task| task.step == step).expect("every step has a row")
    }
}

struct Checker<'a> {
    plan: &'a Plan,
    run: &'a Run,
    ledger: &'a Ledger,
    trouble: &'a Trouble,
    findings: Vec<String>,
}

impl Checker<'_> {
    fn find(&mut self, finding: String) {
        self.findings.push(finding);
    }

    /// The run has ended, and so has every task, in a way that somebody asked for or something explains.
    fn the_end(&mut self) {
        if !matches!(self.run.status.as_str(), "succeeded" | "failed" | "canceled") {
            self.find(format!("the run never ended: it is {}", self.run.status));
        }
        if self.run.tasks.len() != self.plan.workflow.steps.len() {
            self.find(format!("{} tasks of {}", self.run.tasks.len(), self.plan.workflow.steps.len()));
        }
        for task in &self.run.tasks {
            if !self.is_explained(task) {
                let reason = task.reason.as_deref().unwrap_or("no reason");
                self.find(format!("`{}` is {} ({reason}), which nothing explains", task.step, task.status));
            }
        }
    }

    fn is_explained(&self, task: &Task) -> bool {
        let trouble = self.trouble;
        match (task.status.as_str(), task.reason.as_deref()) {
            ("succeeded", _) => task.step != "slow",
            ("failed", Some("timeout")) => task.step == "slow",
            // A run that is canceled tries nothing again.
            ("failed", Some("exit")) => task.step == "flaky" && trouble.is_canceled,
            ("failed", Some("start_failed")) => trouble.wardens_killed > 0,
            ("failed", Some("signal")) => trouble.steps_killed > 0,
            ("failed", Some("lost")) => {
                let lost = self.outcomes(&task.step, "lost");
                let may_be_lost = lost == 1 && self.on_lost(&task.step) == OnLost::Fail;
                trouble.nodes_killed > 0 && (may_be_lost || lost > 3)
            }
            ("canceled" | "skipped", Some("canceled")) => trouble.is_canceled,
            ("skipped", Some("upstream")) => self
                .needs(&task.step)
                .any(|need| matches!(self.run.task(need).status.as_str(), "failed" | "skipped" | "canceled")),
            _ => false,
        }
    }

    /// What the store counts equals a count of what it stands for.
    fn counters(&mut self) {
        let is_open =
            |task: &&Task| !matches!(task.status.as_str(), "succeeded" | "failed" | "canceled" | "skipped");
        let open = self.run.tasks.iter().filter(is_open).count() as i64;
        if self.run.unsettled != open {
            self.find(format!("{} tasks are open, and the run counts {}", open, self.run.unsettled));
        }
        for (number, set) in self.plan.needs_sets.iter().enumerate() {
            let mut counts = [0; 4];
            for need in &set.needs {
                let kind = match self.run.tasks[*need as usize].status.as_str() {
                    "succeeded" => 1,
                    "failed" => 2,
                    "skipped" | "canceled" => 3,
                    _ => 0,
                };
                counts[kind] += 1;
            }
            if self.run.sets.get(&number) != Some(&counts) {
                let stored = self.run.sets.get(&number);
                self.find(format!("needs set {number} counts {stored:?}, and its steps {counts:?}"));
            }
        }
    }

    /// Numbered without a gap; said once what is said once. That they are legal and lead to the rows is told by
    /// `laneway replay`.
    fn events(&mut self) {
        for (index, (seq, _, _)) in self.run.events.iter().enumerate() {
            if *seq != index as i64 + 1 {
                self.find(format!("event {} is missing", index + 1));
                break;
            }
        }
        if self.run.events.len() as i64 != self.run.last_event {
            self.find(format!("{} events of {}", self.run.events.len(), self.run.last_event));
        }
        let mut said: BTreeMap<String, u32> = BTreeMap::new();
        for (_, name, body) in &self.run.events {
            let once = match name.as_str() {
                "run_submitted" | "run_finished" => name.clone(),
                "task_finished" | "task_started" => format!("{name} of {} {}", body["step"], body["attempt"]),
                _ => continue,
            };
            *said.entry(once).or_default() += 1;
        }
        let most = |what: &str| 1 + u32::from(self.trouble.is_retried && what == "run_finished");
        for (what, _) in said.into_iter().filter(|(what, times)| *times > most(what)).collect::<Vec<_>>() {
            self.find(format!("the event {what} was appended twice"));
        }
    }

    /// A promoted task has its place already, so the history never has more of them than there are places.
    fn places(&mut self) {
        let mut live = BTreeSet::new();
        for (seq, name, body) in &self.run.events {
            let step = body["step"].as_str().unwrap_or_default();
            match name.as_str() {
                "task_available" | "task_started" => drop(live.insert(step)),
                "task_finished" | "task_retrying" | "task_lost" | "task_skipped" => drop(live.remove(step)),
                _ => {}
            }
            if live.len() > MAX_PARALLEL {
                let finding = format!("event {seq} grants {} places of {MAX_PARALLEL}", live.len());
                self.findings.push(finding);
                return;
            }
        }
    }

    /// What the store says of every attempt is what its ledger says; and nothing ran of which the store knows nothing.
    fn attempts(&mut self) {
        let run = self.run;
        for ((step, attempt), (outcome, reason)) in &run.attempts {
            let has = |what| self.ledger.find(what, step, *attempt).is_some();
            match (outcome.as_str(), reason.as_deref()) {
                ("succeeded", _) if !has(What::End) => {
                    self.find(format!(
                        "attempt {attempt} of `{step}` succeeded and never said that it ended"
                    ));
                }
                ("failed", Some("exit")) if !has(What::Fail) => {
                    self.find(format!("attempt {attempt} of `{step}` failed and never said so"));
                }
                _ => {}
            }
        }
        for line in self.ledger.lines.iter().filter(|line| line.what == What::Begin) {
            if !run.attempts.contains_key(&(line.step.clone(), line.attempt)) {
                self.find(format!(
                    "attempt {} of `{}` ran, and the store knows nothing of it",
                    line.attempt, line.step
                ));
            }
        }
        for task in &run.tasks {
            let begins: Vec<u32> = self.ledger.begins(&task.step).map(|(_, attempt)| attempt).collect();
            if task.status == "succeeded" && begins.iter().any(|attempt| *attempt > task.attempt) {
                self.find(format!("`{}` succeeded with attempt {} and ran again", task.step, task.attempt));
            }
            let most = 1 + usize::from(self.trouble.is_retried);
            if self.on_lost(&task.step) == OnLost::Fail && begins.len() > most {
                self.find(format!("`{}` must not run twice, and ran {} times", task.step, begins.len()));
            }
            if self.outcomes(&task.step, "lost") > 4 {
                self.find(format!("`{}` was lost more often than allowed, and tried again", task.step));
            }
        }
    }

    /// A step begins when what it needs has ended: the attempt that counted, and every process of it.
    fn order(&mut self) {
        let ledger = self.ledger;
        for task in &self.run.tasks {
            // What a person has run again was legal the first time too, but against rows that are gone.
            let mut begins = ledger.begins(&task.step);
            let begun = if self.trouble.is_retried { begins.last() } else { begins.next() };
            let Some((begun, _)) = begun else { continue };
            let all_succeeded = self.step(&task.step).when == When::AllSucceeded;
            for need in self.needs(&task.step).map(str::to_owned).collect::<Vec<_>>() {
                let needed = self.run.task(&need);
                let ended = ledger.find(What::End, &need, needed.attempt);
                if all_succeeded && ended.is_none_or(|ended| ended > begun) {
                    self.find(format!("`{}` began before `{need}`, which it needs, had ended", task.step));
                }
                let is_of_it = |line: &super::ledger::Line| line.step == need;
                if ledger.lines[begun..].iter().any(is_of_it) && needed.attempt > 0 {
                    self.find(format!(
                        "something of `{need}` was alive after `{}`, which needs it, began",
                        task.step
                    ));
                }
            }
        }
    }

    /// An output that was read is the one that was committed.
    fn values(&mut self) {
        let made = self.run.task("make");
        if made.status == "succeeded" {
            let wanted = format!("{{\"made\":\"{}\"}}", made.attempt);
            if made.output.as_deref() != Some(wanted.as_str()) {
                self.find(format!("the output of `make` is {:?} and not {wanted}", made.output));
            }
        }
        for line in self.ledger.lines.iter().filter(|line| line.what == What::Took) {
            if line.value != made.attempt.to_string() {
                self.find(format!("`take` was given {} and not {}", line.value, made.attempt));
            }
        }
    }

    fn step(&self, name: &str) -> &laneway_core::definition::Step {
        self.plan.workflow.steps.iter().find(|step| step.name == name).expect("tasks are named by the plan")
    }

    fn on_lost(&self, name: &str) -> OnLost {
        self.step(name).on_lost
    }

    fn needs(&self, name: &str) -> impl Iterator<Item = &str> {
        let position = self.plan.workflow.steps.iter().position(|step| step.name == name);
        let needs = position.map(|position| self.plan.needs[position].as_slice()).unwrap_or_default();
        needs.iter().map(|need| self.plan.workflow.steps[*need as usize].name.as_str())
    }

    fn outcomes(&self, step: &str, outcome: &str) -> usize {
        self.run.attempts.iter().filter(|((of, _), (how, _))| of == step && how == outcome).count()
    }
}

/// What a step printed in the attempt that counted is in its log.
pub(super) fn logs(store: &Path, document: &str, printed: &str) -> Result<Vec<String>> {
    let plan = plan(document)?;
    let lines: Vec<serde_json::Value> =
        printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let connection = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let sql = "SELECT position, attempt FROM tasks JOIN runs ON runs.no = run_no
               WHERE workflow = 'mix' AND tasks.status = 'succeeded'";
    let mut findings = Vec::new();
    let mut finished = connection.prepare(sql)?;
    for row in finished.query_map([], |row| Ok((row.get::<_, usize>(0)?, row.get::<_, u32>(1)?)))? {
        let (position, attempt) = row?;
        let step = &plan.workflow.steps[position].name;
        let wanted = format!("log of {step} {attempt}");
        if !lines.iter().any(|line| line["step"] == step.as_str() && line["text"] == wanted.as_str()) {
            findings.push(format!("the log of `{step}`, attempt {attempt}, does not have what it printed"));
        }
    }
    Ok(findings)
}

/// Nothing of a session that is over is left beside the store.
pub(super) fn files(store: &Path) -> Vec<String> {
    let beside = store.parent().unwrap_or(store);
    let left = ["scratch", "sessions"]
        .map(|dir| std::fs::read_dir(beside.join(dir)).into_iter().flatten().flatten());
    let left = left.into_iter().flatten();
    left.map(|entry| format!("a file of a dead session is left: {}", entry.path().display())).collect()
}
