//! Who holds a lock or a limit, and who stands in line for it; who stands on the key of an order.

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::rank;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use laneway_core::version::OrderVersion;

use crate::keeper::Key;

/// Something that tasks of all runs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shared {
    Limit(String),
    Lock(String),
}

impl Shared {
    /// As it is stored.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Limit(name) => Key::Limit(name.clone()).text(),
            Self::Lock(name) => Key::Lock(name.clone()).text(),
        }
    }
}

/// Who has it, and who wants it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Line {
    /// Some of those who hold it, oldest first.
    pub holders: Vec<InLine>,
    pub held: u64,
    /// Some of those who wait, the next one first.
    pub queue: Vec<InLine>,
    pub waiting: u64,
}

/// A key of `order`, and who has yet to end there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    pub key: String,
    /// How many there are.
    pub standing: u64,
    /// Some of them, the smallest version first: it is its turn.
    pub line: Vec<Standing>,
}

/// A task on the key of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub task: InLine,
    /// As it is written; as it is stored, where that cannot be read.
    pub version: String,
}

impl Standing {
    pub(crate) fn new(task: InLine, stored: String) -> Self {
        let version = OrderVersion::from_stored(&stored).map_or(stored, |version| version.to_string());
        Self { task, version }
    }
}

/// A task that holds something, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InLine {
    pub run: RunId,
    pub workflow: String,
    /// Empty where its plan cannot be read.
    pub step: String,
    pub status: TaskStatus,
    pub node: Option<String>,
    /// Since when it runs, or waits; none for one that has the key and has yet to start.
    pub since: Option<Millis>,
}

/// The row of one.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) run: RunId,
    pub(crate) workflow: String,
    pub(crate) version: Version,
    pub(crate) position: u32,
    pub(crate) status: TaskStatus,
    pub(crate) node: Option<String>,
    pub(crate) started_at: Option<Millis>,
    /// Of one that waits.
    pub(crate) rank: Option<i64>,
}

/// By its names, as far as its plan can be read and has it: one that cannot hides none of the others.
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
