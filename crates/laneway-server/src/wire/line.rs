//! Who holds a lock or a limit, and who waits for it; who stands on the key of an order.

use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_store::line;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Limit, Moment};

/// A task that holds something, or waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InLine {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    pub step: String,
    #[schema(value_type = String)]
    pub status: TaskStatus,
    pub node: Option<String>,
    /// Since when it runs, or waits; null for one that has it and has yet to start.
    pub since: Option<Moment>,
}

/// A limit, who holds it and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitLine {
    pub name: String,
    /// Tasks at once, such as `3`, or in a time, such as `100/1m`.
    pub value: String,
    pub held: u64,
    pub waiting: u64,
    pub set_by: String,
    pub set_at: Moment,
    /// Up to 100, oldest first.
    pub holders: Vec<InLine>,
    /// Up to 100, the next one first.
    pub queue: Vec<InLine>,
}

/// A lock that somebody holds or waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lock {
    /// Its key.
    pub lock: String,
    /// One at most.
    pub holder: Option<InLine>,
    pub waiting: u64,
    /// Up to 10, the next one first.
    pub queue: Vec<InLine>,
}

/// A key of `order` on which somebody stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderLine {
    /// Its key.
    pub order: String,
    /// How many have yet to end.
    pub standing: u64,
    /// Up to 10, the smallest version first: it is its turn.
    pub line: Vec<Standing>,
}

/// A task on the key of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Standing {
    pub version: String,
    pub task: InLine,
}

/// Locks and orders that are in use, by key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LockList {
    /// Up to 100.
    pub locks: Vec<Lock>,
    /// There are more.
    pub has_more: bool,
    /// Up to 100.
    #[serde(default)]
    pub orders: Vec<OrderLine>,
    /// There are more.
    #[serde(default)]
    pub has_more_orders: bool,
}

impl From<&line::OrderLine> for OrderLine {
    fn from(found: &line::OrderLine) -> Self {
        let standing =
            |one: &line::Standing| Standing { version: one.version.clone(), task: InLine::from(&one.task) };
        Self {
            order: found.key.clone(),
            standing: found.standing,
            line: found.line.iter().map(standing).collect(),
        }
    }
}

impl From<&line::InLine> for InLine {
    fn from(task: &line::InLine) -> Self {
        Self {
            run: task.run,
            workflow: task.workflow.clone(),
            step: task.step.clone(),
            status: task.status,
            node: task.node.clone(),
            since: task.since.map(Moment),
        }
    }
}

impl LimitLine {
    pub fn new(limit: Limit, line: &line::Line) -> Self {
        let Limit { name, value, set_by, set_at, .. } = limit;
        Self {
            name,
            value,
            held: line.held,
            waiting: line.waiting,
            set_by,
            set_at,
            holders: line.holders.iter().map(InLine::from).collect(),
            queue: line.queue.iter().map(InLine::from).collect(),
        }
    }
}

impl Lock {
    pub fn new(lock: String, line: &line::Line) -> Self {
        Self {
            lock,
            holder: line.holders.first().map(InLine::from),
            waiting: line.waiting,
            queue: line.queue.iter().map(InLine::from).collect(),
        }
    }
}
