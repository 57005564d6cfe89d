//! Runs that stay on one node (`placement: pinned`). Until somebody has started a task of it, one task at a time is offered
//! to all who can run the whole; who starts it owns the run, and everything else is offered to him alone. When he is gone,
//! what was offered waits again, and it begins anew.

use laneway_core::event::{RunBound, RunReleased};
use laneway_core::gate::Gate;
use laneway_core::id::SessionId;
use laneway_core::state::TaskStatus;

use super::{Facts, Keeper};
use crate::model::Placed;

impl<F: Facts> Keeper<F> {
    /// How many tasks of the run may be live.
    pub(super) fn places(&self) -> u32 {
        match (self.head.placed, self.run.owner) {
            (Placed::Pinned { .. }, None) => 1,
            (Placed::Pinned { .. }, Some(_)) | (Placed::Local | Placed::Spread, _) => self.head.max_parallel,
        }
    }

    /// The class of a task that becomes available now, where that is not its own for good.
    pub(super) fn offered_to(&self) -> Option<i64> {
        match (self.head.placed, self.run.owner) {
            (Placed::Local | Placed::Spread, _) => None,
            (Placed::Pinned { class }, None) => Some(class),
            (Placed::Pinned { .. }, Some(_)) => Some(self.head.own_class),
        }
    }

    /// Whether somebody can run a task of the run whose row says `class`.
    pub(super) fn has_node(&mut self, class: i64) -> Result<bool, F::Error> {
        match (self.head.placed, self.run.owner) {
            // It has its owner.
            (Placed::Local, _) => Ok(true),
            (Placed::Spread, _) => self.facts.has_node(class),
            (Placed::Pinned { class }, None) => self.facts.has_node(class),
            // Who has just become its owner lives.
            (Placed::Pinned { .. }, owner) if owner != self.was.owner => Ok(true),
            (Placed::Pinned { .. }, Some(_)) => self.facts.has_node(self.head.own_class),
        }
    }

    /// A session has started a task.
    pub(super) fn bind(&mut self, session: SessionId, node: &str) {
        if matches!(self.head.placed, Placed::Pinned { .. }) && self.run.owner.is_none() {
            self.run.owner = Some(session);
            self.append(RunBound { node: node.to_owned() });
            self.fill_later();
        }
    }

    /// The session that owned the run is over. Comes before what it held is lost.
    pub(crate) fn release(&mut self, session: SessionId, node: &str) -> Result<(), F::Error> {
        if self.run.owner != Some(session) || !matches!(self.head.placed, Placed::Pinned { .. }) {
            return Ok(());
        }
        self.run.owner = None;
        let tasks = self.withdraw(Gate::MaxParallel)?;
        // Who waits for this node waits for any node now.
        for position in self.those_that_are(&[TaskStatus::Pending]) {
            if self.task(position)?.gate == Some(Gate::Node) {
                self.examine_later(position);
            }
        }
        self.append(RunReleased { node: node.to_owned(), tasks });
        self.fill_later();
        Ok(())
    }
}
