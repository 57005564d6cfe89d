//! What the gate keeper asks of a store. Answers are as of the beginning of the transaction's work
//! on the run: the keeper lays its own changes over them. The run is locked, so that nobody else
//! can make them untrue.

use std::sync::Arc;

use laneway_core::gate::{Counts, Tat};
use laneway_core::id::SessionId;
use laneway_core::limit::Limit;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{Illegal, TaskStatus};
use laneway_core::time::Millis;

use super::binding::LayerOnNode;
use super::keys::Key;
use super::rows::TaskRow;
use crate::error::Error;
use crate::fence::ClaimRef;

pub(crate) type Rows = Vec<(Position, TaskRow)>;

pub(crate) type Outputs = Vec<(Position, TaskStatus, Option<String>)>;

pub(crate) trait Facts {
    type Error: From<Error> + From<Illegal>;

    /// An item that is not there is answered by [`TaskRow::absent`].
    fn task(&mut self, position: Position) -> Result<TaskRow, Self::Error>;

    fn needs_set(&mut self, set: u32) -> Result<Counts, Self::Error>;

    /// What will be asked soon. A store to which every question is a journey fetches it all at
    /// once.
    fn prepare(&mut self, tasks: &[Position], sets: &[u32]) -> Result<(), Self::Error>;

    /// How many tasks are available or running.
    fn live(&mut self) -> Result<u32, Self::Error>;

    /// The first of those in line for a place under `max_parallel`.
    fn waiting(&mut self, limit: usize) -> Result<Rows, Self::Error>;

    /// Tasks that are pending or available, by position.
    fn unstarted(&mut self) -> Result<Rows, Self::Error>;

    fn running(&mut self) -> Result<Rows, Self::Error>;

    /// Every task, by position.
    fn all(&mut self) -> Result<Rows, Self::Error>;

    fn failures(&mut self) -> Result<Option<Failures>, Self::Error>;

    /// How many tasks of all runs hold a key. The key is locked until the transaction ends.
    fn holders(&mut self, key: &Key) -> Result<u32, Self::Error>;

    /// How many tasks on an order's key have a smaller version and have yet to end, counted up to a
    /// number.
    fn smaller(&mut self, key: &str, version: &str, up_to: u32) -> Result<u32, Self::Error>;

    fn limit(&mut self, name: &str) -> Result<Option<Limit>, Self::Error>;

    /// When the next may pass a rate; `None` if nobody has yet.
    fn tat(&mut self, name: &str) -> Result<Option<Tat>, Self::Error>;

    /// Returns the last fencing token of a lock, or `None` if it was never taken.
    fn fence(&mut self, lock: &Key) -> Result<Option<Tat>, Self::Error>;

    /// Whether another task waits at a key, and will be woken for it.
    fn is_awaited(&mut self, key: &str, by_other_than: Position) -> Result<bool, Self::Error>;

    /// Whether somebody waits at a key who comes before a task of this rank.
    fn has_before(&mut self, key: &str, rank: i64, position: Position) -> Result<bool, Self::Error>;

    /// Whether some node that lives and takes new work can run tasks of a class.
    fn has_node(&mut self, class: i64) -> Result<bool, Self::Error>;

    /// Whether a session takes tasks of a class.
    fn takes(&mut self, session: SessionId, class: i64) -> Result<bool, Self::Error>;

    /// The class of a task as its plan has it, whatever its row says.
    fn class_of(&mut self, position: Position) -> Result<i64, Self::Error>;

    /// Layers that count and that one node alone has.
    fn layers_on_nodes(&mut self) -> Result<Vec<LayerOnNode>, Self::Error>;

    /// The address of a session's node; `None` when that session is over.
    fn node(&mut self, session: SessionId) -> Result<Option<Arc<str>>, Self::Error>;

    /// Items of a step that are yet to be tasks, as they are stored.
    fn batch(&mut self, step: Position, no: u32) -> Result<String, Self::Error>;

    /// How many items of a step are available or running.
    fn items_live(&mut self, step: Position) -> Result<u32, Self::Error>;

    /// The first of the items of a step that wait for a place among them.
    fn items_line(&mut self, step: Position, limit: usize) -> Result<Rows, Self::Error>;

    /// The items of a step in their order, how each stands, and what it has put out.
    fn outputs(&mut self, step: Position) -> Result<Outputs, Self::Error>;

    /// How a claim has ended before, if it has.
    fn outcome_of(&mut self, claim: &ClaimRef) -> Result<Option<String>, Self::Error>;
}

/// The first failure of a run, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failures {
    pub(crate) position: Position,
    pub(crate) reason: Option<Reason>,
    pub(crate) detail: Option<String>,
    pub(crate) finished_at: Option<Millis>,
    pub(crate) count: u64,
}
