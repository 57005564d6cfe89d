//! The offline checker of nodes. When a case is over it compares what the steps told the ledger with the store's rows and
//! events, and both with the rules of the product; `story.rs` looks at the ledger alone. Every finding is a sentence.

use std::collections::{BTreeMap, BTreeSet};

use super::flows::{self, Flow, PACE, Step};
use super::node;
use super::rows::{Event, Rows, Task};
use super::story::{Story, named};
use super::{LEASE, NODES};

/// After a task was taken away, what the clocks of the ledger and of the store may differ by: the one counts in hundredths.
const BLUR_MS: f64 = 50.0;

/// A run that began to stand in a line so shortly before may not have been seen by who was just being let through.
const JUST_MS: i64 = 1000;

/// How often a task may be lost before it fails.
const MAX_LOST: usize = 3;

/// What the checker is told of a case.
#[derive(Debug)]
pub(super) struct Told<'a> {
    /// By the ids of their runs. Every submit that was acknowledged is among them.
    pub(super) flows: &'a BTreeMap<String, Flow>,
    pub(super) keys: &'a BTreeSet<String>,
    /// From seconds since the machine started to milliseconds of the database's clock.
    pub(super) offset_ms: f64,
}

pub(super) fn check(rows: &Rows, story: &Story<'_>, told: &Told<'_>) -> Vec<String> {
    let mut checker = Checker { rows, story, told, findings: Vec::new() };
    checker.runs();
    checker.tasks();
    checker.attempts();
    checker.executions();
    checker.needs();
    checker.order();
    checker.rate();
    checker.events();
    checker.lost();
    checker.ends();
    for (table, count) in &rows.left {
        if *count > 0 {
            checker.find(format!("`{table}` has {count} rows although everything is over"));
        }
    }
    story.check(&mut checker.findings);
    checker.findings
}

struct Checker<'a> {
    rows: &'a Rows,
    story: &'a Story<'a>,
    told: &'a Told<'a>,
    findings: Vec<String>,
}

impl<'a> Checker<'a> {
    fn find(&mut self, finding: String) {
        self.findings.push(finding);
    }

    fn step(&self, run: &str, place: usize) -> Option<&'a Step> {
        self.told.flows.get(run)?.steps.get(place)
    }

    /// Nothing that was acknowledged is missing, nothing is there twice, and everything has ended.
    fn runs(&mut self) {
        let rows = self.rows;
        for id in self.told.flows.keys().filter(|id| !rows.runs.iter().any(|run| run.id == **id)) {
            self.findings.push(format!("run {id} was acknowledged, and is not there"));
        }
        let keys: Vec<&str> = rows.runs.iter().filter_map(|run| run.key.as_deref()).collect();
        for key in self.told.keys.iter().filter(|key| keys.iter().filter(|known| known == key).count() > 1) {
            self.findings.push(format!("the key {key} has more than one run"));
        }
        for run in &rows.runs {
            let tasks: Vec<&Task> = rows.tasks.iter().filter(|task| task.run == run.id).collect();
            let open = tasks.iter().filter(|task| !is_over(&task.status)).count() as u64;
            let has_all = tasks.iter().all(|task| task.status == "succeeded");
            match run.status.as_str() {
                "succeeded" if has_all => {}
                "failed" if !has_all => {}
                "succeeded" | "failed" => {
                    self.find(format!("run {} is {}, which its tasks do not say", run.id, run.status));
                }
                other => self.find(format!("run {} never ended: it is {other}", run.id)),
            }
            if run.unsettled != open {
                self.find(format!(
                    "{open} tasks of {} are open, and the run counts {}",
                    run.id, run.unsettled
                ));
            }
        }
    }

    /// Every task ended in a way that its definition and what happened explain.
    fn tasks(&mut self) {
        for task in &self.rows.tasks {
            if !self.is_explained(task) {
                let (name, reason) = (self.named(task), task.reason.as_deref().unwrap_or("no reason"));
                self.find(format!("{name} is {} ({reason}), which nothing explains", task.status));
            }
        }
    }

    fn is_explained(&self, task: &Task) -> bool {
        let Some(step) = self.step(&task.run, task.step) else { return false };
        let lost = self.outcomes(task, "lost");
        match (task.status.as_str(), task.reason.as_deref()) {
            ("succeeded", _) => true,
            ("failed", Some("lost")) => lost > MAX_LOST || (step.must_run_once && lost == 1),
            ("skipped", Some("upstream")) => step.needs.iter().any(|need| {
                let is_need = |other: &&Task| other.run == task.run && other.step == *need;
                self.rows.tasks.iter().find(is_need).is_some_and(|need| need.status != "succeeded")
            }),
            _ => false,
        }
    }

    fn outcomes(&self, task: &Task, outcome: &str) -> usize {
        let attempts = self.rows.attempts.iter();
        attempts.filter(|one| one.run == task.run && one.step == task.step && one.outcome == outcome).count()
    }

    fn named(&self, task: &Task) -> String {
        named(&task.run, &flows::name(task.step))
    }

    /// What the store says of attempts is what these told themselves.
    fn attempts(&mut self) {
        let (rows, story) = (self.rows, self.story);
        for one in &rows.attempts {
            let step = flows::name(one.step);
            let told = story.of(&one.run, &step).find(|execution| execution.attempt == one.attempt);
            let name = format!("attempt {} of {}", one.attempt, named(&one.run, &step));
            match (one.outcome.as_str(), one.reason.as_deref()) {
                ("succeeded", _) if !told.is_some_and(|told| told.has_ended) => {
                    self.find(format!("{name} succeeded and never said that it ended"));
                }
                ("failed", Some("exit")) if !told.is_some_and(|told| told.has_failed) => {
                    self.find(format!("{name} failed and never said so"));
                }
                ("returned", _) if told.is_some() => {
                    self.find(format!("{name} was given back as never started, and ran"));
                }
                _ => {}
            }
        }
        for task in &rows.tasks {
            let name = self.named(task);
            if self.outcomes(task, "succeeded") > 1 {
                self.find(format!("{name} succeeded more than once"));
            }
            let last = rows
                .attempts
                .iter()
                .find(|one| one.run == task.run && one.step == task.step && one.attempt == task.attempt);
            if task.status == "succeeded" && last.is_none_or(|one| one.outcome != "succeeded") {
                self.find(format!("{name} succeeded, and its last attempt did not"));
            }
            if self.outcomes(task, "lost") > MAX_LOST + 1 {
                self.find(format!("{name} was lost more often than allowed, and tried again"));
            }
        }
    }

    /// Nothing ran of which the store knows nothing, or that was not to run any more.
    fn executions(&mut self) {
        let rows = self.rows;
        for one in &self.story.executions {
            let is_it = |step: usize, run: &str| run == one.run && flows::name(step) == one.step;
            let name = named(one.run, one.step);
            if !rows.attempts.iter().any(|row| is_it(row.step, &row.run) && row.attempt == one.attempt) {
                self.find(format!(
                    "attempt {} of {name} ran, and the store knows nothing of it",
                    one.attempt
                ));
            }
            let Some(task) = rows.tasks.iter().find(|task| is_it(task.step, &task.run)) else { continue };
            if task.status == "succeeded" && one.attempt > task.attempt {
                self.find(format!("{name} succeeded with attempt {} and ran again", task.attempt));
            }
            let must_run_once = self.step(&task.run, task.step).is_some_and(|step| step.must_run_once);
            let failed = self.story.of(one.run, one.step).filter(|other| other.has_failed).count();
            let times = self.story.of(one.run, one.step).count();
            // A failure that it told of itself may be tried again.
            if must_run_once && times > 1 + failed && one.attempt == task.attempt {
                self.find(format!("{name} must not run twice, and ran {times} times"));
            }
        }
    }

    /// A step begins when what it needs has ended, with every process of it.
    fn needs(&mut self) {
        for one in &self.story.executions {
            let Some(flow) = self.told.flows.get(one.run) else { continue };
            let Some(step) = flow.step(one.step) else { continue };
            for need in step.needs.iter().map(|need| flows::name(*need)) {
                let has_ended =
                    self.story.of(one.run, &need).any(|other| other.has_ended && other.last < one.first);
                let is_alive = self.story.of(one.run, &need).any(|other| other.last > one.first);
                if !has_ended || is_alive {
                    self.findings.push(format!(
                        "{} began before {need}, which it needs, had ended",
                        named(one.run, one.step)
                    ));
                }
            }
        }
    }

    /// Who stands in line with a smaller version has ended before a larger one begins.
    fn order(&mut self) {
        let with_order = |one: &&super::story::Execution<'_>| self.version(one.run, one.step).is_some();
        let ordered: Vec<_> = self.story.executions.iter().filter(with_order).collect();
        let mut findings = Vec::new();
        for later in &ordered {
            // When it was let through for this attempt.
            let Some(through) = self.let_through(later.run, later.step, later.begun_at) else { continue };
            for sooner in &ordered {
                let is_smaller = self.version(sooner.run, sooner.step) < self.version(later.run, later.step);
                let stood = self.event(sooner.run, "run_started").map(|event| event.at);
                if is_smaller
                    && sooner.last > later.first
                    && stood.is_some_and(|stood| stood + JUST_MS < through)
                {
                    let (sooner, later) = (named(sooner.run, sooner.step), named(later.run, later.step));
                    findings.push(format!("{later} began before {sooner}, which has a smaller version"));
                }
            }
        }
        self.findings.extend(findings);
    }

    fn version(&self, run: &str, step: &str) -> Option<usize> {
        self.told.flows.get(run)?.step(step)?.order
    }

    fn events_of(&self, run: &str) -> &'a [Event] {
        self.rows.events.get(run).map(Vec::as_slice).unwrap_or_default()
    }

    fn event(&self, run: &str, name: &str) -> Option<&'a Event> {
        self.events_of(run).iter().find(|event| event.name == name)
    }

    fn let_through(&self, run: &str, step: &str, begun_at: f64) -> Option<i64> {
        let begun = self.told.offset_ms + begun_at * 1000.0 + BLUR_MS;
        let events = self.events_of(run).iter().rev();
        let through = events.filter(|event| event.name == "task_available" && event.body["step"] == step);
        through.map(|event| event.at).find(|at| (*at as f64) < begun)
    }

    /// Never more than so many of a rate are let through in its window: they keep their distance.
    fn rate(&mut self) {
        let mut times: Vec<(i64, String)> = Vec::new();
        for (run, events) in &self.rows.events {
            let Some(flow) = self.told.flows.get(run) else { continue };
            for event in events.iter().filter(|event| event.name == "task_available") {
                let step = event.body["step"].as_str().unwrap_or_default();
                if flow.step(step).is_some_and(|step| step.has_pace) {
                    times.push((event.at, named(run, step)));
                }
            }
        }
        times.sort_unstable();
        // Two milliseconds for what is cut off.
        let least = 1000 / PACE.1 as i64 - 2;
        let close = times.windows(2).find(|pair| pair[1].0 - pair[0].0 < least);
        if let Some([(one, first), (two, second)]) = close {
            let apart = two - one;
            self.find(format!("{first} and {second} passed the rate {} within {apart} ms", PACE.0));
        }
    }

    /// Numbered without a gap; said once what is said once. `laneway replay` tells that they lead to the rows.
    fn events(&mut self) {
        for run in &self.rows.runs {
            let events = self.events_of(&run.id);
            let is_gapless = events.iter().enumerate().all(|(place, event)| event.seq == place as u64 + 1);
            if !is_gapless || events.len() as u64 != run.last_event {
                self.find(format!(
                    "run {} has {} events of {}, or a gap",
                    run.id,
                    events.len(),
                    run.last_event
                ));
            }
            let mut said: BTreeMap<String, u32> = BTreeMap::new();
            for event in events {
                let once = match event.name.as_str() {
                    "run_submitted" | "run_started" | "run_finished" => event.name.clone(),
                    "task_finished" => format!("task_finished of {}", event.body["step"]),
                    "task_started" | "task_lost" => {
                        format!("{} of {} {}", event.name, event.body["step"], event.body["attempt"])
                    }
                    _ => continue,
                };
                *said.entry(once).or_default() += 1;
            }
            for (what, _) in said.into_iter().filter(|(_, times)| *times > 1) {
                self.find(format!("the event {what} of {} was appended twice", run.id));
            }
        }
    }

    /// From the moment on at which an attempt was given up for its node, nothing of it is alive.
    fn lost(&mut self) {
        for (run, step, attempt, at) in self.losses() {
            let Some(one) = self.story.of(run, step).find(|one| one.attempt == attempt) else { continue };
            let late = self.told.offset_ms + one.last_at * 1000.0 - at as f64;
            if late > BLUR_MS {
                let name = named(run, step);
                let finding = format!(
                    "attempt {attempt} of {name} was alive on {} {late:.0} ms after it was given up",
                    one.node
                );
                self.findings.push(finding);
            }
        }
    }

    /// Run, step, attempt and moment.
    fn losses(&self) -> Vec<(&'a str, &'a str, u32, i64)> {
        let is_loss = |event: &&Event| {
            event.name == "task_lost" || (event.name == "task_finished" && event.body["reason"] == "lost")
        };
        let events = self.rows.events.values().flatten().filter(is_loss);
        let loss = |event: &'a Event| {
            let attempt = event.body["attempt"].as_u64().and_then(|attempt| u32::try_from(attempt).ok())?;
            Some((event.run.as_str(), event.body["step"].as_str()?, attempt, event.at))
        };
        events.filter_map(loss).collect()
    }

    /// A session is ended by its own node, or by one that is sure of its death.
    fn ends(&mut self) {
        let nodes: Vec<String> = (0..NODES).map(node::name).collect();
        let lease = LEASE.as_millis() as i64;
        for end in &self.rows.ends {
            // A person's command ends only its own.
            if end.by == end.node || !nodes.contains(&end.by) {
                continue;
            }
            let who = format!("{} ended the session of {}", end.by, end.node);
            if end.expires_at > end.at {
                self.find(format!("{who} {} ms before its lease was over", end.expires_at - end.at));
            } else if !end.has_renewed {
                self.find(format!("{who} without having renewed its own since that expired"));
            } else if end.at < end.server_started_at + lease {
                let after = end.at - end.server_started_at;
                self.find(format!("{who} {after} ms after the database had started"));
            }
        }
    }
}

/// How long it took from a fault to the next start of each task that was lost by it, in seconds.
pub(super) fn recoveries(
    rows: &Rows,
    story: &Story<'_>,
    told: &Told<'_>,
    faults: &[(Option<usize>, f64)],
) -> Vec<f64> {
    let checker = Checker { rows, story, told, findings: Vec::new() };
    let mut took = Vec::new();
    for (run, step, attempt, at) in checker.losses() {
        let next = story.of(run, step).filter(|one| one.attempt > attempt).map(|one| one.begun_at);
        let Some(next) = next.min_by(f64::total_cmp) else { continue };
        let lost = (at as f64 - told.offset_ms) / 1000.0;
        let node = story.of(run, step).find(|one| one.attempt == attempt).map(|one| one.node);
        let is_its =
            |hit: &Option<usize>| hit.is_none_or(|hit| node.is_none_or(|node| node == node::name(hit)));
        let fault = faults.iter().rev().find(|(hit, when)| *when <= lost && is_its(hit));
        took.extend(fault.map(|(_, when)| next - when));
    }
    took
}

fn is_over(status: &str) -> bool {
    matches!(status, "succeeded" | "failed" | "canceled" | "skipped")
}
