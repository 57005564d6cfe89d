//! Holders and waiters of locks and limits, and live tasks on a key of `order`. Views only: opening
//! and closing gates is the keeper's work. See `docs/design/gates.md`.

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::rank;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_core::version::OrderVersion;

use crate::keeper::Key;

/// A lock or a limit: shared by the tasks of all runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shared {
    Limit(String),
    Lock(String),
}

impl Shared {
    /// Returns the stored form.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Limit(name) => Key::Limit(name.clone()).text(),
            Self::Lock(name) => Key::Lock(name.clone()).text(),
        }
    }
}

/// The holders and the waiters of a lock or a limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Some of the holders, oldest first.
    pub holders: Vec<InLine>,
    pub held: u64,
    /// Some of the waiters, the next one first.
    pub queue: Vec<InLine>,
    pub waiting: u64,
}

/// A key of `order`, and its tasks that have not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    pub key: String,
    /// How many there are.
    pub standing: u64,
    /// Some of them, the smallest version first: it may start.
    pub line: Vec<Standing>,
}

/// A task on a key of `order`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub task: InLine,
    /// As the document writes it. In stored form if that is unreadable.
    pub version: String,
}

impl Standing {
    pub(crate) fn new(task: InLine, stored: String) -> Self {
        let version = OrderVersion::from_stored(&stored).map_or(stored, |version| version.to_string());
        Self { task, version }
    }
}

/// A task that holds a lock, a limit or a key, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InLine {
    pub run: RunId,
    pub workflow: String,
    /// Empty if its plan is unreadable.
    pub step: String,
    pub status: TaskStatus,
    pub node: Option<String>,
    /// When it started running or waiting. `None` for a task that holds the key and has not started
    /// yet.
    pub since: Option<Millis>,
}

/// The row of a holder or a waiter.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) run: RunId,
    pub(crate) workflow: String,
    pub(crate) version: Version,
    pub(crate) position: u32,
    pub(crate) status: TaskStatus,
    pub(crate) node: Option<String>,
    pub(crate) started_at: Option<Millis>,
    /// Only of a task that waits.
    pub(crate) rank: Option<i64>,
}

/// Returns the task with its names, as far as its plan is readable and has it. An unreadable plan
/// hides no other task.
pub(crate) fn told(row: Row, plan: Option<&Plan>) -> InLine {
    let Row { run, workflow, position, status, node, started_at, rank, .. } = row;
    let plan = plan.filter(|plan| plan.base(position).is_some());
    let priority = plan.map_or(0, |plan| plan.step(position).demands().priority);
    let since = match rank {
        Some(rank) => Some(rank::since(rank, priority)),
        None => started_at,
    };
    let step = plan.map(|plan| plan.task_name(position)).unwrap_or_default();
    InLine { run, workflow, step, status, node, since }
}
