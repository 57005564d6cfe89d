//! What can be wrong with a graph, and where in the document it stands.

use super::Position;

/// One refusal of the planner. The reader of documents turns `at` into line and column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub message: String,
    pub at: Place,
    pub hint: Option<String>,
}

/// A place in a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The `steps` key as a whole.
    Steps,
    /// A step's name.
    Step(Position),
    /// The `index`-th entry of a step's `needs`.
    Need { step: Position, index: usize },
    /// A step's `order`.
    Order(Position),
    /// A group's name, by its index.
    Group(usize),
    /// The `index`-th entry of a group's `steps`.
    Member { group: usize, index: usize },
}
