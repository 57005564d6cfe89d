//! Runs and tasks: the shapes of `laneway show --json`, `laneway runs --json` and of their routes.

use std::collections::{BTreeMap, HashMap};

use laneway_core::cause;
use laneway_core::definition::Execution;
use laneway_core::event::Closing;
use laneway_core::growth::{self, ItemName};
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::model::{self, Placed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Moment, ReasonWord, TaskEffect, Wait};

/// A run and its tasks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Run {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    /// queued, running, succeeded, failed or canceled.
    #[schema(value_type = String)]
    pub status: RunStatus,
    /// Why it ended so.
    pub reason: Option<String>,
    /// In definition order; behind them the items of steps with `for_each`, step by step.
    pub tasks: Vec<Task>,
    #[schema(value_type = Object)]
    pub params: Map<String, Value>,
    /// How many of its tasks may run at once.
    pub max_parallel: u32,
    /// `dataflow`, or `levels`: it goes level by level, and can be told to go one level on.
    #[serde(default = "dataflow")]
    pub execution: String,
    pub submitted_by: String,
    pub submitted_at: Moment,
    /// Until when it waits, of one that was submitted for later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    pub started_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    /// Where its steps run.
    pub directory: String,
    /// Of its workflow, by content.
    pub version: String,
    /// The node that owns it, while that lives.
    pub owner: Option<String>,
    /// One of `laneway run`: no node takes its tasks, and only `laneway retry` beside its store opens it again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub local: bool,
    /// Not ended, and the process that ran it is gone.
    pub interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// What keeps it paused: `run`, `workflow`, or nothing.
    #[serde(default)]
    pub paused: Vec<String>,
    /// Why it is being brought to its end, while it is: halted, aborted, canceled or run_timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub closing: Option<Closing>,
    /// Until when it may clean up, while it is being canceled: steps with `when: always` and hooks
    /// run until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_up_until: Option<Moment>,
    /// The number of its last event: whoever follows it goes on from there.
    #[serde(default)]
    pub last_event: u64,
    /// The step that started it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentStep>,
    /// Its steps are executed also where a result of before would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_cache: bool,
    /// When its first task started. Before that it waited.
    #[serde(default)]
    pub first_task_at: Option<Moment>,
    /// Of one that is `queued` because no live node can take it, or because it is for later: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A step that has started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ParentStep {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    /// How many runs are above its child.
    pub depth: u32,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Task {
    pub step: String,
    /// The item of `for_each` that it is; the task of a step itself has none.
    pub item: Option<Value>,
    /// The place of the item in its list, from 0 on. The task is asked for as `STEP[INDEX]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// Of a step with `for_each`, since its list is known: its items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    /// pending, available, running, parked, succeeded, failed, canceled or skipped.
    #[schema(value_type = String)]
    pub status: TaskStatus,
    /// The last one; 0 before the first.
    pub attempt: u32,
    pub node: Option<String>,
    #[schema(value_type = Option<ReasonWord>)]
    pub reason: Option<Reason>,
    /// Why it waits; of tasks that do.
    pub cause: Option<Cause>,
    pub exit_code: Option<i32>,
    #[schema(value_type = Object)]
    pub output: Map<String, Value>,
    pub started_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    pub detail: Option<String>,
    pub took_ms: Option<u64>,
    /// Not before this moment.
    pub run_at: Option<Moment>,
    /// Of a step that waits, since it is parked or somebody has signaled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// What it did to the world, by name and key; `/v1/runs/{run}/effects` tells more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<TaskEffect>,
}

/// The items of a step with `for_each`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Items {
    /// How many there are.
    pub total: u32,
    /// How many of them are tasks by now.
    pub added: u32,
    /// How many tasks are in each state; only states that occur.
    #[schema(value_type = Object)]
    pub states: Map<String, Value>,
}

/// Why a task is not running: which gate, who holds it, since when, what would open it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Cause {
    pub gate: String,
    /// The key of a lock or an order, or the name of a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who stands in the way, in words.
    pub holders: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<Holder>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What would open it.
    pub opens: String,
    /// The moment that opens it, if only time does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Moment>,
    /// One sentence with all of it.
    pub text: String,
}

/// A task that holds what another one waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Holder {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    #[schema(value_type = String)]
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Moment>,
}

/// A place in a line, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Place {
    pub at: u32,
    pub of: u32,
}

/// Why a run is set aside: something of it cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SetAside {
    pub what: String,
    pub why: String,
    pub since: Moment,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    /// Null when it cannot be read.
    #[schema(value_type = Option<String>)]
    pub status: Option<RunStatus>,
    pub reason: Option<String>,
    pub submitted_at: Moment,
    /// Until when it waits, of one that was submitted for later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    pub started_at: Option<Moment>,
    pub finished_at: Option<Moment>,
    pub submitted_by: String,
    /// How many tasks are in each state; only states that occur.
    #[schema(value_type = Object)]
    pub tasks: Map<String, Value>,
    pub interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// What keeps it paused: `run`, `workflow`, or nothing.
    #[serde(default)]
    pub paused: Vec<String>,
    /// Why it is being brought to its end, while it is: halted, aborted, canceled or run_timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub closing: Option<Closing>,
    /// When its first task started. Before that it waited.
    #[serde(default)]
    pub first_task_at: Option<Moment>,
    /// Of one that is `queued` because no live node can take it, or because it is for later: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A page of runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<RunSummary>,
    /// The next page is asked for with this; null on the last one. With a filter a page may have few runs, or none, and yet a cursor: only
    /// so many runs are looked at for one page.
    pub next_cursor: Option<String>,
}

/// The tasks of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TaskList {
    pub tasks: Vec<Task>,
    /// The next page is asked for with this, if there is one: the index of an item, or the place of a task in its run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_after: Option<u32>,
}

/// A page of the events of a run, in their order. Each has `event`, `run`, `seq` and `at`, and its own fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct EventList {
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Value>,
    /// Go on behind this number.
    pub next_after: u64,
    /// Events in front of `next_after` that cannot be read, and why.
    pub unreadable: Vec<String>,
}

impl From<&cause::Cause> for Cause {
    fn from(cause: &cause::Cause) -> Self {
        let holder = |holder: &cause::Holder| Holder {
            run: holder.run,
            step: holder.step.clone(),
            status: holder.status,
            node: holder.node.clone(),
            since: holder.since.map(Moment),
        };
        Self {
            gate: cause.gate.to_owned(),
            key: cause.key.clone(),
            holders: cause.holders.clone(),
            held_by: cause.held_by.iter().map(holder).collect(),
            place: cause.place.map(|place| Place { at: place.at, of: place.of }),
            since: cause.since.clone(),
            opens: cause.opens.clone(),
            opens_at: cause.opens_at.map(Moment),
            text: cause.text.clone(),
        }
    }
}

impl From<&model::SetAside> for SetAside {
    fn from(found: &model::SetAside) -> Self {
        Self { what: found.what.clone(), why: found.why.clone(), since: Moment(found.since) }
    }
}

impl Task {
    pub fn new(task: &TaskState, cause: Option<&cause::Cause>) -> Self {
        let time = |at: Option<Millis>| at.map(Moment);
        Self {
            step: task.item.as_ref().map_or(&task.step, |item| &item.of).clone(),
            item: task.item.as_ref().map(|item| item.value.clone()),
            index: task.item.as_ref().map(|item| item.index),
            items: task.items.map(|growth::Items { total, added }| Items {
                total,
                added,
                states: Map::new(),
            }),
            status: task.status,
            attempt: task.attempt,
            node: task.node.clone(),
            reason: task.reason,
            cause: cause.map(Cause::from),
            exit_code: task.exit_code,
            output: task.output.clone(),
            started_at: time(task.started_at),
            finished_at: time(task.finished_at),
            detail: task.detail.clone(),
            took_ms: task.took_ms,
            run_at: time(task.run_at),
            wait: task.wait.as_deref().map(Wait::from),
            effects: task.effects.iter().map(TaskEffect::from).collect(),
        }
    }
}

impl Task {
    /// By which it is asked for: that of its step, or of the item that it is.
    pub fn name(&self) -> String {
        match self.index {
            None => self.step.clone(),
            Some(index) => ItemName(&self.step, index).to_string(),
        }
    }
}

impl From<&model::TaskView> for Task {
    fn from(view: &model::TaskView) -> Self {
        Self::new(&view.state, view.cause.as_ref())
    }
}

/// Counts the items of steps by their states.
fn count_items(tasks: &mut [Task]) {
    let mut counts: HashMap<String, BTreeMap<TaskStatus, u64>> = HashMap::new();
    for task in tasks.iter().filter(|task| task.index.is_some()) {
        *counts.entry(task.step.clone()).or_default().entry(task.status).or_default() += 1;
    }
    for task in tasks.iter_mut() {
        if let (Some(items), Some(counts)) = (&mut task.items, counts.get(&task.step)) {
            let states = counts.iter().map(|(status, count)| (status.to_string(), (*count).into()));
            items.states = states.collect();
        }
    }
}

fn is_canceling(closing: Option<Closing>) -> bool {
    closing.is_some_and(Closing::is_canceling)
}

/// What servers meant that did not say so.
fn dataflow() -> String {
    "dataflow".to_owned()
}

impl Run {
    /// What its events say of it, and what never changes; nothing of what is so only now.
    pub fn past(view: &model::RunView, state: &RunState) -> Self {
        Self {
            run: state.run,
            workflow: state.workflow.clone(),
            status: state.status,
            reason: state.reason.clone(),
            tasks: {
                let mut tasks: Vec<Task> = state.tasks.iter().map(|task| Task::new(task, None)).collect();
                count_items(&mut tasks);
                tasks
            },
            params: state.params.clone(),
            max_parallel: state.max_parallel,
            execution: match view.plan.workflow.execution {
                Execution::Dataflow => dataflow(),
                Execution::Levels => "levels".to_owned(),
            },
            submitted_by: view.submitted_by.clone(),
            submitted_at: Moment(state.submitted_at),
            not_before: state.not_before.map(Moment),
            started_at: state.started_at.map(Moment),
            finished_at: state.finished_at.map(Moment),
            directory: view.dir.clone(),
            version: state.version.to_string(),
            owner: None,
            local: view.placed == Placed::Local,
            interrupted: false,
            set_aside: None,
            paused: state.paused.iter().map(ToString::to_string).collect(),
            closing: state.closing.filter(|_| !state.status.is_final()),
            clean_up_until: state.clean_up_until.filter(|_| !state.status.is_final()).map(Moment),
            last_event: state.last_event,
            parent: state.parent.as_ref().map(|parent| ParentStep {
                run: parent.run,
                step: parent.step.clone(),
                depth: parent.depth,
            }),
            no_cache: state.no_cache,
            // Of the past it is known from the first attempt on.
            first_task_at: view
                .first_task_at
                .filter(|_| state.tasks.iter().any(|task| task.attempt > 0))
                .map(Moment),
            cause: state.not_before.map(cause::run_not_before),
        }
    }
}

impl Run {
    /// What runs of it is being stopped, and nothing more of it starts but its clean-up.
    pub fn is_canceling(&self) -> bool {
        is_canceling(self.closing)
    }

    /// Leaves out all but the first items of each step. What is counted of them stays.
    pub fn tell_items(&mut self, most: u32) {
        self.tasks.retain(|task| task.index.is_none_or(|index| index < most));
    }

    /// Leaves out why tasks wait if there are more of them than that.
    pub fn tell_causes_up_to(&mut self, most: usize) {
        if self.tasks.len() > most {
            self.tasks.iter_mut().for_each(|task| task.cause = None);
        }
    }
}

impl From<&model::RunView> for Run {
    fn from(view: &model::RunView) -> Self {
        let mut run = Self::past(view, &view.state);
        for (task, cause) in run.tasks.iter_mut().zip(&view.causes) {
            task.cause = cause.as_ref().map(Cause::from);
        }
        if let Some(cause) = view.without_node() {
            run.status = RunStatus::Queued;
            run.cause = Some(cause.text.clone());
        }
        run.owner.clone_from(&view.owner);
        run.interrupted = view.is_interrupted;
        run.set_aside = view.set_aside.as_ref().map(SetAside::from);
        run
    }
}

impl RunSummary {
    /// What runs of it is being stopped, and nothing more of it starts but its clean-up.
    pub fn is_canceling(&self) -> bool {
        is_canceling(self.closing)
    }
}

impl From<&model::RunSummary> for RunSummary {
    fn from(run: &model::RunSummary) -> Self {
        Self {
            run: run.run,
            workflow: run.workflow.clone(),
            status: if run.without_node.is_some() { Some(RunStatus::Queued) } else { run.status },
            reason: run.reason.clone(),
            submitted_at: Moment(run.submitted_at),
            not_before: run.not_before.map(Moment),
            started_at: run.started_at.map(Moment),
            finished_at: run.finished_at.map(Moment),
            submitted_by: run.submitted_by.clone(),
            tasks: run.counts.iter().map(|(status, number)| (status.to_string(), (*number).into())).collect(),
            interrupted: run.is_interrupted,
            set_aside: run.set_aside.as_ref().map(SetAside::from),
            paused: run.paused.iter().map(ToString::to_string).collect(),
            closing: run.closing,
            first_task_at: run.first_task_at.map(Moment),
            cause: run.not_before.map(cause::run_not_before).or_else(|| run.without_node.clone()),
        }
    }
}
