//! Why a task waits for one node alone: files of its run are on that node and too large to follow.

use super::{Cause, slot};
use crate::definition::Step;
use crate::event::KeptFiles;
use crate::layer::readable_size;

/// A task that is offered to the node of its run only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundWait {
    pub node: String,
    /// The largest of what is on that node alone.
    pub files: KeptFiles,
}

impl BoundWait {
    /// The cause of a task that could be taken.
    pub(super) fn cause(&self, step: &Step, is_interrupted: bool) -> Cause {
        let ready = slot(step, is_interrupted);
        let KeptFiles { step, bytes, limit } = &self.files;
        Cause {
            opens: format!("when a slot of node {} is free", self.node),
            text: format!(
                "{}; its run is bound to node {}, where its files are {} with what `{step}` left, more than \
                 `workspace_max_bytes` ({}) lets follow a run",
                ready.text,
                self.node,
                readable_size(*bytes),
                readable_size(*limit)
            ),
            ..ready
        }
    }
}
