//! What is read of everything that runs share: workflows, limits, nodes, pools. Views only: nothing
//! here changes the store. `contract/store_queries.rs` describes the verbs.

use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

use crate::model::{KeptPool, Tally};

/// Grows with every commit of any process. See `Store::stamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

/// A pool of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    pub node: String,
    pub session: SessionId,
    pub pool: KeptPool,
}

/// Number of recent losses for which the lost node is known. Losses of live nodes are kept beyond
/// it.
pub const LOSSES_KEPT: i64 = 100;

/// Sessions that were lost: their nodes died, froze, or could not reach the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Losses of all nodes since the store was created. Never decreases.
    pub total: u64,
    /// By node, live or not, the most recently lost first. Bounded to the last `LOSSES_KEPT` losses
    /// and those of live nodes.
    pub nodes: Vec<(String, u64)>,
}

/// Number of pool events kept. The current state of each container is kept beyond it.
pub const POOL_EVENTS_KEPT: i64 = 10_000;

/// What starts under a workflow's name.
#[derive(Debug, Clone)]
pub struct Known {
    pub version: Version,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    /// The number under which it was applied. `None` for a workflow that was only run.
    pub no: Option<u32>,
}

/// One applied version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    /// Counted from 1 for each name.
    pub no: u32,
    pub version: Version,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    pub applied_at: Millis,
    pub applied_by: String,
}

/// An applied workflow, for lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    /// The newest version.
    pub definition: Definition,
    /// Its newest run, of any version.
    pub last_run: Option<LastRun>,
    /// Who paused it, and since when.
    pub pause: Option<(String, Millis)>,
}

/// The state of the newest run of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub run: RunId,
    /// `None` if it is unreadable.
    pub status: Option<RunStatus>,
    pub submitted_at: Millis,
}

/// One run of a workflow, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    pub workflow: String,
    pub run: RunId,
    /// `None` if it is unreadable.
    pub status: Option<RunStatus>,
    pub submitted_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
}

/// A named limit, and how much of it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitView {
    pub name: String,
    pub limit: Limit,
    /// Tasks that hold it: available or running.
    pub holders: u32,
    /// Tasks that wait for it.
    pub waiting: u32,
    pub set_by: String,
    pub set_at: Millis,
}

/// A node that is alive as far as the store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub node: String,
    pub session: SessionId,
    pub pid: u32,
    pub registered_at: Millis,
    pub slots: u32,
    /// `None` for a node that runs only its own run.
    pub offer: Option<Offer>,
    pub is_draining: bool,
    /// Its process fires schedules and other triggers that are due.
    pub fires: bool,
    /// When it last renewed its lease.
    pub renewed_at: Millis,
    /// Time since the last renewal, if it missed more than one: the node is frozen or cut off.
    pub silent_for: Option<Duration>,
    /// The counters of the last renewal.
    pub tally: Tally,
    /// When `tally` last changed.
    pub last_active_at: Option<Millis>,
    /// How many sessions of this node were lost: it died, froze, or could not reach the store.
    pub lost_sessions: u64,
    /// When this was read, by the store's clock.
    pub observed_at: Millis,
    /// How many tasks it holds.
    pub held: u32,
    /// Some of those tasks, oldest first.
    pub claims: Vec<ClaimView>,
}

/// One task that a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    pub started_at: Option<Millis>,
}

/// Number of commits of the embedded store in this process, and of the verbs in them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Commits {
    pub commits: u64,
    pub verbs: u64,
}
