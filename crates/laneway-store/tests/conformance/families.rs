//! Random families of runs: steps with items, steps that run other workflows, and both at once, under random verbs of nodes that
//! fail, die, are slow and start what others have started already. After every verb `audit.rs` holds for every run, and the laws between
//! runs do; at the end everything is drained, and every run must end. docs/design/children.md and growth.md.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use laneway_core::definition::Step;
use laneway_core::event::Fact;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::reason::Reason;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::child::{WantedRun, Wanting};
use laneway_store::model::{Outcome, Pausable, Submission};
use laneway_store::{Error, Fate};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::audit;
use crate::harness::{
    Database, Held, Node, Place, block_on, canceled, failed, for_each_database, submission, succeeded_with,
};
use crate::random::prove;

for_each_database! { by name:
    every_family_is_sound_and_every_run_of_it_ends,
}

/// What steps call, by name. One of them calls another one, so that ends pass through two depths.
const CALLED: [(&str, &str); 3] = [
    ("leaf", "name: leaf\nsteps:\n  a: {run: x}\n  b: {run: x, needs: [a]}\n"),
    ("deep", "name: deep\non_failure: abort\nsteps:\n  a: {workflow: leaf}\n  b: {run: x}\n"),
    ("wide", "name: wide\nsteps:\n  a: {run: x, for_each: [1, 2], max_parallel: 1}\n"),
];

const RULES: [&str; 4] = ["all_succeeded", "all_done", "one_failed", "always"];

/// A document whose steps are tasks, lists of them, runs, and lists of runs.
fn documents() -> impl Strategy<Value = String> {
    let heads = (0..3_usize, 1..4_u8, any::<bool>());
    let step = (any::<u8>(), 0..RULES.len(), 0..8_u8, any::<u8>());
    (heads, vec(step, 1..5)).prop_map(|((on_failure, max_parallel, has_timeout), steps)| {
        let on_failure = ["halt", "abort", "continue"][on_failure];
        let timeout = if has_timeout { "12s" } else { "0s" };
        let mut text = format!(
            "name: top\non_failure: {on_failure}\nmax_parallel: {max_parallel}\ntimeout: {timeout}\nsteps:\n"
        );
        for (index, (mask, rule, kind, dice)) in steps.into_iter().enumerate() {
            let needs: Vec<String> =
                (0..index).filter(|need| mask & (1 << need) != 0).map(|need| format!("s{need}")).collect();
            let (needs, when) = (needs.join(", "), RULES[rule]);
            writeln!(text, "  s{index}: {{{}, needs: [{needs}], when: {when}}}", action(kind, dice))
                .expect("a string takes all");
        }
        text
    })
}

fn action(kind: u8, dice: u8) -> String {
    let called = CALLED[usize::from(dice) % CALLED.len()].0;
    let list: Vec<String> = (0..dice / 4 % 5).map(|item| item.to_string()).collect();
    let bound = match dice / 20 % 3 {
        0 => String::new(),
        max => format!(", max_parallel: {max}"),
    };
    let items = format!("for_each: [{}], fail_fast: {}{bound}", list.join(", "), dice.is_multiple_of(2));
    match kind {
        0 => "run: x".to_owned(),
        1 => "run: x, retry: {max: 1, backoff: 1s}".to_owned(),
        2 | 3 => format!("run: x, {items}"),
        4 => format!("workflow: {called}"),
        5 => format!("workflow: {called}, timeout: 3s"),
        _ => format!("workflow: {called}, {items}"),
    }
}

/// One verb and two numbers that say on what.
type Command = (u8, u8, u8);

fn every_family_is_sound_and_every_run_of_it_ends(database: Database) {
    let cases = (documents(), vec((0..32_u8, any::<u8>(), any::<u8>()), 1..60));
    let name = "every_family_is_sound_and_every_run_of_it_ends";
    prove(name, database.cases(200), cases, |(document, commands)| {
        block_on(async {
            let mut world = World::begin(database, &document).await;
            for command in commands {
                world.apply(command).await;
                world.look().await;
            }
            world.drain().await;
        });
    });
}

struct World {
    place: Place,
    nodes: Vec<Node>,
    runs: Vec<RunId>,
    held: Vec<Holding>,
    /// Claims that are no longer current.
    stale: Vec<Held>,
    /// What nodes have read that it is to be started, perhaps long ago.
    read: Vec<WantedRun>,
    /// Children that a person has opened again: nobody need wait for these.
    alone: BTreeSet<RunId>,
}

struct Holding {
    node: usize,
    held: Held,
    is_started: bool,
}

impl World {
    async fn begin(database: Database, document: &str) -> Self {
        let place = Place::quick(database);
        let nodes =
            vec![Node::worker(place.open(), "one", &[]).await, Node::worker(place.open(), "two", &[]).await];
        let run = nodes[0].share(document).await;
        let (held, stale, read, alone) = (Vec::new(), Vec::new(), Vec::new(), BTreeSet::new());
        Self { place, nodes, runs: vec![run], held, stale, read, alone }
    }

    async fn apply(&mut self, (verb, a, b): Command) {
        let (node, one) = (usize::from(a) % 2, usize::from(a) % self.held.len().max(1));
        let run = self.runs[usize::from(a) % self.runs.len()];
        match verb {
            0..=5 => self.claim(node, usize::from(b) % 3 + 1).await,
            6..=8 if !self.held.is_empty() => self.start(one).await,
            9..=15 if !self.held.is_empty() => self.finish(one, b).await,
            16 if !self.held.is_empty() => self.give_back(one).await,
            17 => self.die(node).await,
            18..=19 => self.advance(u64::from(b) * 50).await,
            20 if !self.stale.is_empty() => self.be_stale(usize::from(a) % self.stale.len()).await,
            21 if b.is_multiple_of(3) => drop(self.nodes[node].cancel(run).await),
            22..=23 => self.retry(run, b).await,
            24 => self.skip(run, b).await,
            25 => self.pause(run, b.is_multiple_of(2)).await,
            26 => self.read(node).await,
            27 if b.is_multiple_of(4) => self.refuse(a).await,
            27..=31 => self.start_child(node, a).await,
            _ => {}
        }
    }

    async fn claim(&mut self, node: usize, limit: usize) {
        for held in self.nodes[node].take_any(limit).await {
            self.held.push(Holding { node, held, is_started: false });
        }
    }

    async fn start(&mut self, one: usize) {
        let holding = &mut self.held[one];
        let expected = if holding.is_started { Fate::Repeated } else { Fate::Recorded };
        assert_eq!(self.nodes[holding.node].start(&holding.held).await, expected);
        holding.is_started = true;
    }

    async fn finish(&mut self, one: usize, dice: u8) {
        let Holding { node, held, .. } = self.held.swap_remove(one);
        let stops = self.nodes[node].stops().await;
        let stop = stops.iter().find(|stop| stop.claim == held.at);
        let outcome = match (stop, dice % 8) {
            (Some(stop), 0..=3) => canceled(stop.reason),
            (Some(_) | None, 4) => failed(2),
            (Some(_) | None, 5) => {
                Outcome::Failed { reason: Reason::Timeout, detail: "too long".to_owned(), exit_code: None }
            }
            (Some(_) | None, _) => succeeded_with(json!({ "of": held.step, "attempt": held.at.attempt })),
        };
        assert_eq!(self.nodes[node].finish(&held, outcome).await, Fate::Recorded);
        self.stale.push(held);
    }

    async fn give_back(&mut self, one: usize) {
        let holding = &self.held[one];
        let fate = self.nodes[holding.node].give_back(&holding.held).await;
        assert_eq!(fate, if holding.is_started { Fate::ClaimLost } else { Fate::Recorded });
        if fate == Fate::Recorded {
            self.stale.push(self.held.swap_remove(one).held);
        }
    }

    async fn die(&mut self, node: usize) {
        let heir = Node::worker(self.place.open(), "heir", &[]).await;
        drop(std::mem::replace(&mut self.nodes[node], heir));
        let (lost, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.held).into_iter().partition(|held| held.node == node);
        self.held = kept;
        let reaped = self.nodes[1 - node].store.reap().await.expect("an answer");
        assert_eq!((reaped.nodes.len(), reaped.tasks), (1, lost.len()));
        self.stale.extend(lost.into_iter().map(|holding| holding.held));
    }

    async fn advance(&self, millis: u64) {
        self.place.advance(Duration::from_millis(millis));
        self.nodes[0].promote().await;
    }

    async fn be_stale(&self, one: usize) {
        let (node, stale) = (&self.nodes[0], &self.stale[one]);
        let before = node.state(stale.at.run).await;
        assert_ne!(node.finish(stale, failed(9)).await, Fate::Recorded);
        assert_eq!(node.start(stale).await, Fate::ClaimLost);
        assert_eq!(node.state(stale.at.run).await, before);
    }

    async fn retry(&mut self, run: RunId, dice: u8) {
        let before = self.nodes[0].state(run).await;
        let step = before.tasks[usize::from(dice) % before.tasks.len()].step.clone();
        let from = dice.is_multiple_of(2).then_some(step.as_str());
        match self.nodes[0].retry(run, from).await {
            Ok(again) => {
                assert!(before.status.is_final() && !again.is_empty());
                self.note_alone(run, &before);
            }
            Err(Error::NotEnded { .. }) => assert!(!before.status.is_final()),
            Err(Error::NothingToRetry { .. }) => assert!(before.status.is_final() && from.is_none()),
            Err(error) => panic!("{error}"),
        }
    }

    async fn skip(&mut self, run: RunId, dice: u8) {
        let before = self.nodes[0].state(run).await;
        let failed: Vec<&TaskState> =
            before.tasks.iter().filter(|task| task.status == TaskStatus::Failed).collect();
        if failed.is_empty() || !before.status.is_final() || before.status == RunStatus::Canceled {
            return;
        }
        let step = failed[usize::from(dice) % failed.len()].step.clone();
        self.nodes[0].skip(run, &step).await.expect("a step that failed can be skipped");
        self.note_alone(run, &before);
    }

    fn note_alone(&mut self, run: RunId, state: &RunState) {
        if state.parent.is_some() {
            self.alone.insert(run);
        }
    }

    async fn pause(&self, run: RunId, is_paused: bool) {
        let (node, what) = (&self.nodes[0], Pausable::Run(run));
        let done = match is_paused {
            true => node.store.pause(what, "ada").await,
            false => node.store.resume(what, "ada").await,
        };
        assert!(matches!(done, Ok(_) | Err(Error::Ended { .. })), "{done:?}");
    }

    async fn wanted(&self, node: usize) -> Vec<WantedRun> {
        let wanting = Wanting::first(self.nodes[node].session, 1_000);
        self.nodes[node].store.wanted_runs(wanting).await.expect("an answer").runs
    }

    /// A node reads what is wanted, and is slow from there on.
    async fn read(&mut self, node: usize) {
        let wanted = self.wanted(node).await;
        self.read.extend(wanted);
    }

    /// What is wanted now, or what somebody has read before.
    async fn start_child(&mut self, node: usize, dice: u8) {
        let mut choice = self.wanted(node).await;
        if choice.is_empty() || dice.is_multiple_of(4) {
            choice.extend(self.read.iter().cloned());
        }
        if let Some(wanted) = choice.get(usize::from(dice) % choice.len().max(1)).cloned() {
            self.start_wanted(node, &wanted).await;
        }
    }

    async fn start_wanted(&mut self, node: usize, wanted: &WantedRun) {
        let node = &self.nodes[node];
        if let Some(again) = wanted.again {
            node.store.resume_child(wanted.parent.clone(), again, None).await.expect("an answer");
            return;
        }
        let document = CALLED.iter().find(|(name, _)| *name == wanted.workflow).expect("it is called so").1;
        let given = serde_json::Value::Object(wanted.params.clone());
        let submission = Submission {
            is_shared: true,
            key: Some(wanted.parent.key()),
            parent: Some(wanted.parent.clone()),
            ..submission(document, given, node.session)
        };
        match node.store.submit(submission).await {
            Ok(run) if !self.runs.contains(&run) => self.runs.push(run),
            Ok(_) | Err(Error::NotWanted { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    async fn refuse(&self, dice: u8) {
        let wanted = self.wanted(0).await;
        if let Some(wanted) = wanted.get(usize::from(dice) % wanted.len().max(1)) {
            self.nodes[0].store.child_refused(wanted.parent.clone(), "no").await.expect("it is told");
        }
    }

    /// Everything that must hold now.
    async fn look(&self) {
        let (mut states, mut running) = (Vec::new(), 0);
        for run in &self.runs {
            audit::check(&*self.nodes[0].store, *run).await;
            let state = self.nodes[1].state(*run).await;
            running += state.tasks.iter().filter(|task| task.status == TaskStatus::Running).count();
            states.push(state);
        }
        let started = self.held.iter().filter(|holding| holding.is_started).count();
        assert_eq!(running, started, "what runs is held");
        let wanted = self.wanted(0).await;
        for state in &states {
            self.look_up(state, &states).await;
            self.look_down(state, &states, &wanted);
            let plan = self.nodes[0].store.plan(&state.version).await.expect("a plan");
            self.check_fail_fast(&plan, state);
            self.check_ends(&plan, state, &states).await;
        }
    }

    /// A step has ended as its items, or its child, say that it must have; and its output is theirs.
    async fn check_ends(&self, plan: &Plan, state: &RunState, states: &[RunState]) {
        for task in state.tasks.iter().filter(|task| task.reason != Some(Reason::SkippedByPerson)) {
            let is_item = |item: &&TaskState| item.item.as_ref().is_some_and(|item| item.of == task.step);
            let items: Vec<&TaskState> = state.tasks.iter().filter(is_item).collect();
            if let Some(told) = task.items.filter(|_| task.reason != Some(Reason::Expression)) {
                assert_eq!(told.added as usize, items.len(), "{}: {state:#?}", task.step);
                let may_end = may_end_with_items(&items, told.total as usize);
                assert!(may_end.contains(&task.status), "{} is not {may_end:?}: {state:#?}", task.step);
            }
            let is_growing = plan.position(&task.step).is_some_and(|position| plan.is_growing(position));
            if is_growing && task.status == TaskStatus::Succeeded {
                let scope = self.nodes[1].store.scope(state.run, &[&task.step]).await.expect("a scope");
                assert_eq!(scope["steps"][&task.step]["output"], list_of(&items), "{}", task.step);
            }
            let child = task.wait.as_ref().and_then(|wait| wait.child);
            let child = child.filter(|child| !self.alone.contains(child));
            let Some(child) = child.and_then(|child| states.iter().find(|one| one.run == child)) else {
                continue;
            };
            let may_end = may_end_with_child(task.reason, child.status);
            assert!(may_end.contains(&task.status), "{} is not {may_end:?}: {child:#?}", task.step);
            if task.status == TaskStatus::Succeeded {
                assert_eq!(task.output, outputs_of(child), "{} has what its child put out", task.step);
            }
        }
    }

    /// Somebody waits for every run that a step has started, and knows of it.
    async fn look_up(&self, state: &RunState, states: &[RunState]) {
        let Some(parent) = &state.parent else { return };
        let above = states.iter().find(|above| above.run == parent.run).expect("a parent is there");
        let events = self.nodes[0].events(parent.run).await;
        let is_start = |fact: &Fact| matches!(fact, Fact::ChildRunStarted(fact) if fact.child == state.run);
        assert!(events.iter().any(|event| is_start(&event.fact)), "its parent was told of it");
        if !state.status.is_final() && !self.alone.contains(&state.run) {
            let waits = |task: &TaskState| task.step == parent.step && waits_for(task) == Some(state.run);
            assert!(above.tasks.iter().any(waits), "nobody waits for it: {state:#?}\n{above:#?}");
        }
    }

    /// A step that is parked waits for a run that goes on, or for somebody who starts it; and only such a step wants one.
    fn look_down(&self, state: &RunState, states: &[RunState], wanted: &[WantedRun]) {
        for task in &state.tasks {
            let Some(wait) = &task.wait else { continue };
            let is_parked = task.status == TaskStatus::Parked;
            let is_wanted = wanted.iter().any(|wanted| {
                let of = &wanted.parent;
                of.run == state.run && of.step == task.step && Some(of.life) == wait.life
            });
            assert_eq!(is_wanted, is_parked && wait.child.is_none(), "{}: {state:#?}", task.step);
            let Some(child) = wait.child else { continue };
            let child = states.iter().find(|state| state.run == child).expect("it was started");
            assert!(!is_parked || !child.status.is_final(), "{} waits for what has ended", task.step);
            if task.status == TaskStatus::Succeeded && !self.alone.contains(&child.run) {
                assert_eq!(child.status, RunStatus::Succeeded, "{} has its end", task.step);
            }
        }
    }

    /// Nothing of a list begins behind the first failure, where that is asked for: what runs is stopped. What was claimed by then is held, and
    /// told as available until its holder starts it.
    fn check_fail_fast(&self, plan: &Plan, state: &RunState) {
        let is_fast = |step: &&Step| step.for_each.as_ref().is_some_and(|for_each| for_each.fail_fast);
        for step in plan.workflow.steps.iter().filter(is_fast) {
            let is_item = |task: &&TaskState| task.item.as_ref().is_some_and(|item| item.of == step.name);
            let items: Vec<&TaskState> = state.tasks.iter().filter(is_item).collect();
            let is_held = |task: &TaskState| {
                self.held.iter().any(|one| one.held.at.run == state.run && one.held.step == task.step)
            };
            let begins = |task: &&&TaskState| match task.status {
                TaskStatus::Pending => true,
                TaskStatus::Available => !is_held(task),
                TaskStatus::Running
                | TaskStatus::Parked
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped => false,
            };
            let has_failed = items.iter().any(|task| task.status == TaskStatus::Failed);
            assert!(
                !has_failed || items.iter().find(begins).is_none(),
                "{} has failed: {state:#?}",
                step.name
            );
        }
    }

    async fn drain(&mut self) {
        for run in self.runs.clone() {
            self.pause(run, false).await;
        }
        for _ in 0..400 {
            let mut is_over = true;
            for run in &self.runs {
                is_over &= self.nodes[0].status(*run).await.is_final();
            }
            if is_over {
                self.look().await;
                assert!(self.wanted(0).await.is_empty(), "nothing is wanted of what has ended");
                return;
            }
            for wanted in self.wanted(0).await {
                self.start_wanted(0, &wanted).await;
            }
            self.claim(0, 3).await;
            while !self.held.is_empty() {
                self.finish(0, 7).await;
            }
            self.advance(500).await;
        }
        panic!("this family never ends: {}", self.nodes[0].tasks(self.runs[0]).await);
    }
}

/// How a step may stand with these items, of as many as there are to be. It may have been stopped before it could end with the last.
fn may_end_with_items(items: &[&TaskState], total: usize) -> Vec<TaskStatus> {
    let is = |status: TaskStatus| items.iter().any(|item| item.status == status);
    if items.iter().any(|item| !item.status.is_final()) {
        return vec![TaskStatus::Parked];
    }
    if is(TaskStatus::Failed) {
        return vec![TaskStatus::Failed];
    }
    let fell = |item: &&TaskState| {
        matches!(item.reason, Some(Reason::Halted | Reason::Aborted | Reason::Canceled | Reason::RunTimeout))
    };
    if items.len() < total || items.iter().any(fell) {
        return vec![TaskStatus::Canceled];
    }
    vec![TaskStatus::Succeeded, TaskStatus::Canceled]
}

/// How a step may stand whose child stands so.
fn may_end_with_child(reason: Option<Reason>, child: RunStatus) -> Vec<TaskStatus> {
    match child {
        // It is to go on, or nobody has begun to go on with it yet.
        RunStatus::Queued | RunStatus::Running => vec![TaskStatus::Parked, TaskStatus::Pending],
        _ if reason == Some(Reason::Timeout) => vec![TaskStatus::Failed],
        RunStatus::Succeeded => vec![TaskStatus::Succeeded],
        RunStatus::Failed | RunStatus::Canceled => {
            vec![TaskStatus::Failed, TaskStatus::Canceled, TaskStatus::Pending]
        }
    }
}

/// The outputs of items, as one list.
fn list_of(items: &[&TaskState]) -> Value {
    let output = |item: &&TaskState| match item.status {
        TaskStatus::Succeeded => Value::Object(item.output.clone()),
        _ => Value::Null,
    };
    items.iter().map(output).collect()
}

/// What the steps of a run have put out, by name.
fn outputs_of(state: &RunState) -> Map<String, Value> {
    let steps = state.tasks.iter().filter(|task| task.item.is_none() && !task.output.is_empty());
    steps.map(|task| (task.step.clone(), Value::Object(task.output.clone()))).collect()
}

fn waits_for(task: &TaskState) -> Option<RunId> {
    task.wait.as_ref().filter(|_| task.status == TaskStatus::Parked).and_then(|wait| wait.child)
}
