//! Reads of everything that runs share: workflows, limits, locks, nodes, pools. Short, and never
//! blocked by a writer.

use async_trait::async_trait;
use laneway_core::gate::Gate;
use laneway_core::node_event::NodeEvent;
use laneway_core::pool::PoolEvent;
use laneway_core::time::Millis;

use crate::error::Result;
use crate::line::{Line, OrderLine, Shared};
use crate::model::{Definition, Known, LimitView, Losses, NodeView, PoolView, RunOutcome, WorkflowView};
use crate::overview::Overview;

#[async_trait]
pub trait StoreQueries {
    /// Returns the newest version of each name that was applied, by name, each with its newest run.
    async fn workflows(&self) -> Result<Vec<WorkflowView>>;

    /// Returns the newest runs of workflows, up to `limit` of each, newest first, in the order of
    /// names.
    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>>;

    /// Returns the versions that were applied under a name, newest first, numbered below `below`.
    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>>;

    /// Returns what starts under a name: the version applied last, or else the one run last, with
    /// its directory.
    async fn latest(&self, workflow: &str) -> Result<Known>;

    /// Returns who paused a workflow and when, if it is paused.
    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>>;

    /// Returns what runs, ended, failed and waits of late. Its cost is bounded whatever the store
    /// holds.
    async fn overview(&self) -> Result<Overview>;

    /// Returns all limits by name.
    async fn limits(&self) -> Result<Vec<LimitView>>;

    /// Returns the holders and the waiters of a lock or a limit, up to `limit` of both.
    async fn line(&self, of: Shared, limit: usize) -> Result<Line>;

    /// Returns the locks that are held or waited for, by name. Its cost grows with the result only.
    async fn locks(&self, limit: usize) -> Result<Vec<String>>;

    /// Returns up to `limit` keys of `order` with live tasks, by name, each with its first `each`
    /// tasks.
    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>>;

    /// Counts the tasks that no worker has claimed, by the gate at which they wait. Those without a
    /// gate wait for a worker alone.
    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>>;

    /// Counts the tasks that wait for a signal, a moment, a run or their items.
    async fn parked(&self) -> Result<u64>;

    /// Returns live nodes by address, with up to `claims` of the claims of each.
    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>>;

    /// Returns which nodes were lost, and how often.
    async fn losses(&self) -> Result<Losses>;

    /// Returns events of shared nodes numbered above `after`, in order, up to the first unreadable
    /// one, as `RunQueries::events_since`. `node` restricts it to one address.
    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>>;

    /// Returns events of warm containers numbered above `after`, in order: the newest
    /// `POOL_EVENTS_KEPT`, up to the first unreadable one. `node` restricts it to one address.
    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>>;

    /// Returns the state of the warm containers of live nodes: the newest event of each, by node
    /// and name, and the newest of each node about its host ports.
    async fn pool_containers(&self) -> Result<Vec<PoolEvent>>;

    /// Returns the pools of nodes by node and name, also those without a container.
    async fn pools(&self) -> Result<Vec<PoolView>>;
}
