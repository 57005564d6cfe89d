//! A plan: a validated, immutable workflow with its order. Positions are indices into `workflow.steps`.
//! Owns order, levels, lanes, needs sets and the critical path; never runs anything and never fails for
//! a reason of the environment.

use crate::definition::Workflow;
use crate::hash::Version;
use crate::state::RunStatus;

mod build;
mod cycle;
mod fault;
mod groups;
mod lanes;
mod merges;
mod needs;
mod order;
mod ordering;
mod query;
#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod scale;
mod sources;
mod support;
pub mod text;
pub mod variables;
pub mod wire;

pub use fault::{Fault, Place};
pub use merges::merge_name;
pub use sources::FileSources;

/// Index of a step in its workflow, in document order; those of items of `for_each` stand behind all of them (`growth.rs`).
pub type Position = u32;

#[derive(Debug, Clone)]
pub struct Plan {
    /// Content address of the document this was made from.
    pub version: Version,
    pub workflow: Workflow,
    /// Of the hooks of a workflow: the end of a run after which they run.
    pub after: Option<RunStatus>,
    /// Kahn's order, ties in definition order.
    pub order: Vec<Position>,
    /// By position: length of the longest path from a root.
    pub level_of: Vec<u32>,
    /// Positions of each level, in definition order.
    pub levels: Vec<Vec<Position>>,
    pub lanes: Vec<Lane>,
    /// By position: what it needs, and what needs it. Sorted, without repeats.
    pub needs: Vec<Vec<Position>>,
    pub successors: Vec<Vec<Position>>,
    /// Distinct `needs` lists. Steps with equal `needs` share one, so that a stage of n steps behind a
    /// stage of m costs m countdowns and not m x n.
    pub needs_sets: Vec<NeedsSet>,
    /// By position: its needs set; `None` for a root.
    pub needs_set_of: Vec<Option<u32>>,
    /// By position: the needs sets in which it stands.
    pub counted_in: Vec<Vec<u32>>,
    /// One longest path, from its root on.
    pub critical_path: Vec<Position>,
    pub prewarm: Prewarm,
    /// By position: the number of the group in which it is a member.
    group_of: Vec<Option<u32>>,
    /// Positions of the steps with `for_each`, sorted.
    pub(crate) growing: Vec<Position>,
    /// By group: its members, as they are listed.
    members: Vec<Vec<Position>>,
    /// Positions sorted by the steps' names, so that a name is found without a second copy of it.
    by_name: Vec<Position>,
}

/// Steps that wait for exactly the same predecessors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeedsSet {
    /// Sorted.
    pub needs: Vec<Position>,
    /// Who waits, in definition order.
    pub waiters: Vec<Position>,
}

/// An entry of the plan in its order: a group, or a step of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lane {
    Step(Position),
    Group { name: String, steps: Vec<Position> },
}

/// Where pre-warming starts. `lane: None` with a width above zero is "at once".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prewarm {
    pub lane: Option<usize>,
    pub width: usize,
}
