//! What is read of runs: lists, whole runs, items and attempts. Views only: nothing here changes a
//! run. `contract/run_queries.rs` describes the verbs. See `docs/design/gates.md` about causes.

use std::ops::Range;
use std::sync::Arc;

use laneway_core::cause::Cause;
use laneway_core::event::{Closing, PauseScope};
use laneway_core::gate::Gate;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;

use crate::model::Placed;

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Only runs in one of these states. Empty: runs in every state.
    pub statuses: Vec<RunStatus>,
    pub workflow: Option<String>,
    /// Only runs that were submitted before this one.
    pub before: Option<RunId>,
    /// Only this run and those that were submitted after it.
    pub down_to: Option<RunId>,
    /// Only runs that were submitted at this moment or later.
    pub since: Option<Millis>,
    /// Only runs that were submitted before this moment.
    pub until: Option<Millis>,
    /// Only runs whose id, short id (the end of the id that users type) or workflow starts with
    /// this.
    pub begins: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct RunSummary {
    pub run: RunId,
    pub workflow: String,
    /// `None` if it is unreadable.
    pub status: Option<RunStatus>,
    pub reason: Option<String>,
    pub submitted_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub submitted_by: String,
    /// Number of tasks in each state. Only states that occur.
    pub counts: Vec<(TaskStatus, u64)>,
    /// The run has not ended, and its process is gone. `laneway resume` continues it.
    pub is_interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// Why the run is closing, while it is.
    pub closing: Option<Closing>,
    /// What keeps it paused, while it is paused.
    pub paused: Vec<PauseScope>,
    /// When its first task started.
    pub first_task_at: Option<Millis>,
    /// Why no live node can run it, if nothing of it was executed yet.
    pub without_node: Option<String>,
    /// When a run that was submitted for later may begin.
    pub not_before: Option<Millis>,
}

impl RunSummary {
    /// Returns whether it is possible that no live node can run it.
    pub(crate) fn may_lack_node(&self, is_local: bool) -> bool {
        let is_untouched = |status: TaskStatus| {
            matches!(status, TaskStatus::Pending | TaskStatus::Available | TaskStatus::Skipped)
        };
        !is_local
            && self.status == Some(RunStatus::Running)
            && self.closing.is_none()
            && self.paused.is_empty()
            && self.counts.iter().all(|(status, _)| is_untouched(*status))
    }
}

/// Why a run is in quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// The part of the run that is unreadable.
    pub what: String,
    pub why: String,
    pub since: Millis,
}

/// A run for display.
#[derive(Debug, Clone)]
pub struct RunView {
    pub state: RunState,
    pub plan: Arc<Plan>,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    pub submitted_by: String,
    /// The node that owns it, while that node lives.
    pub owner: Option<String>,
    pub placed: Placed,
    pub is_interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// By position: why the task waits. `None` for a task that runs or has ended.
    pub causes: Vec<Option<Cause>>,
    /// When its first task started.
    pub first_task_at: Option<Millis>,
}

/// A task for display.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    pub state: TaskState,
    /// Why it waits. `None` for a task that runs or has ended.
    pub cause: Option<Cause>,
}

/// Selects items of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemsAsked {
    pub step: String,
    /// Only items with a greater index.
    pub after: Option<u32>,
    pub limit: usize,
}

/// Positions of a run's tasks to read, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) Vec<Range<Position>>);

impl Part {
    /// Returns the part of a run that explains why some of its items wait: its steps, these items,
    /// and everything live.
    pub(crate) fn of_items(plan: &Plan, items: Range<Position>, live: &[Position]) -> Self {
        let steps = 0..plan.workflow.steps.len() as Position;
        let others = live.iter().filter(|position| !steps.contains(position) && !items.contains(position));
        let mut ranges: Vec<Range<Position>> = others.map(|position| *position..*position + 1).collect();
        ranges.extend([steps, items]);
        ranges.sort_unstable_by_key(|range| range.start);
        Self(ranges)
    }
}

impl ItemsAsked {
    /// Returns the positions of the selected items. Empty for a step without items.
    pub(crate) fn positions(&self, plan: &Plan, step: Position) -> Range<Position> {
        let all = plan.items_of(step);
        let first = self.after.map_or(0, |after| after.saturating_add(1));
        let start = all.start.saturating_add(first).min(all.end);
        let limit = Position::try_from(self.limit).unwrap_or(Position::MAX);
        start..start.saturating_add(limit).min(all.end)
    }
}

impl RunView {
    /// Returns why no live node can run it, if nothing of it was executed yet.
    pub fn without_node(&self) -> Option<&Cause> {
        let state = &self.state;
        if self.placed == Placed::Local
            || state.status != RunStatus::Running
            || state.closing.is_some()
            || !state.paused.is_empty()
        {
            return None;
        }
        let mut found = None;
        for (task, cause) in state.tasks.iter().zip(&self.causes) {
            let at_node = cause.as_ref().filter(|cause| cause.gate == Gate::Node.as_str());
            match task.status {
                TaskStatus::Pending | TaskStatus::Skipped => {}
                TaskStatus::Available if at_node.is_some() => {}
                TaskStatus::Available
                | TaskStatus::Running
                | TaskStatus::Parked
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled => return None,
            }
            found = found.or(at_node);
        }
        found
    }

    /// Returns the selected items of a step, from a view that was read for them.
    pub(crate) fn items(self, asked: &ItemsAsked) -> Vec<TaskView> {
        let is_asked = |view: &TaskView| {
            let item = view.state.item.as_ref().filter(|item| item.of == asked.step);
            item.is_some_and(|item| asked.after.is_none_or(|after| item.index > after))
        };
        let tasks = self.state.tasks.into_iter().zip(self.causes);
        let views = tasks.map(|(state, cause)| TaskView { state, cause });
        views.filter(is_asked).take(asked.limit).collect()
    }
}

/// One numbered attempt of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub attempt: u32,
    /// The generation of its claim: part of the names of the containers and files it made.
    pub generation: u32,
    pub node: Option<String>,
    /// `running`, or how it ended: succeeded, failed, canceled, lost, returned.
    pub outcome: String,
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub exit_code: Option<i32>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub took_ms: Option<u64>,
}
