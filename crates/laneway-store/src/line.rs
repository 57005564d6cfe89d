//! Who holds a lock or a limit, and who stands in line for it.

use laneway_core::id::RunId;
use laneway_core::rank;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;

use crate::keeper::Key;
use crate::model::RunHead;

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

/// A task that holds something, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InLine {
    pub run: RunId,
    pub workflow: String,
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
    pub(crate) position: u32,
    pub(crate) status: TaskStatus,
    pub(crate) node: Option<String>,
    pub(crate) started_at: Option<Millis>,
    /// Of one that waits.
    pub(crate) rank: Option<i64>,
}

pub(crate) fn told(row: Row, head: &RunHead) -> InLine {
    let Row { run, position, status, node, started_at, rank } = row;
    let is_known = head.plan.base(position).is_some();
    let priority = || if is_known { head.plan.step(position).demands().priority } else { 0 };
    let since = match rank {
        Some(rank) => Some(rank::since(rank, priority())),
        None => started_at,
    };
    let step = if is_known { head.plan.task_name(position) } else { String::new() };
    InLine { run, workflow: head.plan.workflow.name.clone(), step, status, node, since }
}
