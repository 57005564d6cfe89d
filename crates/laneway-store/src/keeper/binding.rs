//! Runs that stay on one node, which owns them. A pinned run (`placement: pinned`) offers one task
//! at a time to all nodes that can run the whole, until one of them has started a task. Any other
//! run gets an owner when a step leaves files that are too large to follow it. The owner alone is
//! offered everything else that it can run. When it is gone, a pinned run begins anew on another
//! node, and the tasks of any other run are offered to all nodes again. docs/design/files.md.

use std::sync::Arc;

use laneway_core::definition::Action;
use laneway_core::event::{KeptFiles, RunBound, RunReleased};
use laneway_core::gate::Gate;
use laneway_core::id::SessionId;
use laneway_core::plan::Position;
use laneway_core::state::TaskStatus;

use super::{Facts, Keeper};
use crate::layer::Oversize;
use crate::model::Placed;

/// A layer that counts and that one node alone has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LayerOnNode {
    pub(crate) position: Position,
    pub(crate) attempt: u32,
    pub(crate) node: Arc<str>,
    /// A session of that node that takes new work.
    pub(crate) session: Option<SessionId>,
    pub(crate) oversize: Option<Oversize>,
}

impl<F: Facts> Keeper<F> {
    /// How many tasks of the run may be live.
    pub(super) fn places(&self) -> u32 {
        match (self.head.placed, self.run.owner) {
            (Placed::Pinned { .. }, None) => 1,
            (Placed::Pinned { .. }, Some(_)) | (Placed::Local | Placed::Spread, _) => self.head.max_parallel,
        }
    }

    /// Returns the class under which a task is offered now.
    ///
    /// The owner of a run that is not pinned is offered what it can run. A task that needs files
    /// which are on one node alone is offered to it in any case: it fails there by name, instead of
    /// waiting for a node that cannot come.
    pub(super) fn class_for(&mut self, position: Position) -> Result<i64, F::Error> {
        let class = self.task(position)?.class;
        let own_class = self.head.own_class;
        match (self.head.placed, self.run.owner) {
            (Placed::Local, _) => Ok(class),
            (Placed::Pinned { class }, None) => Ok(class),
            (Placed::Pinned { .. }, Some(_)) => Ok(own_class),
            (Placed::Spread, owner) => {
                let class = if class == own_class { self.facts.class_of(position)? } else { class };
                let Some(owner) = owner else { return Ok(class) };
                let is_bound = self.facts.takes(owner, class)? || self.needs_files_on_nodes(position)?;
                Ok(if is_bound { own_class } else { class })
            }
        }
    }

    /// Whether a node takes tasks of a class that `class_for` has returned.
    pub(super) fn has_node(&mut self, class: i64) -> Result<bool, F::Error> {
        let is_owned = match self.head.placed {
            // It has its owner.
            Placed::Local => return Ok(true),
            Placed::Spread => class == self.head.own_class,
            Placed::Pinned { .. } => self.run.owner.is_some(),
        };
        // A session that has just become the owner is alive, and its row says so only behind this
        // transaction.
        if is_owned && self.run.owner != self.was.owner {
            return Ok(true);
        }
        self.facts.has_node(if is_owned { self.head.own_class } else { class })
    }

    /// A session has started a task.
    pub(super) fn bind(&mut self, session: SessionId, node: &str) {
        if matches!(self.head.placed, Placed::Pinned { .. }) && self.run.owner.is_none() {
            self.run.owner = Some(session);
            self.append(RunBound { node: node.to_owned(), files: None });
            self.fill_later();
        }
    }

    /// A step has left files that only the node of this session has, and the run goes on there. A
    /// run that is bound already stays where it is: then only the steps that need these files fail.
    pub(super) fn bind_to_files(
        &mut self,
        session: SessionId,
        node: &str,
        (position, oversize): (Position, &Oversize),
    ) -> Result<(), F::Error> {
        // Nothing comes behind the last step.
        let is_last = self.run.unsettled <= 1 && self.plan().item(position).is_none();
        if self.head.placed != Placed::Spread || self.run.owner.is_some() || is_last {
            return Ok(());
        }
        self.own(session, node, position, Some(oversize));
        self.offer_again()
    }

    /// The run was over and goes on: where the files are that count and are on one node alone, if
    /// that node is alive.
    pub(super) fn bind_again(&mut self) -> Result<(), F::Error> {
        if self.head.placed == Placed::Local || self.run.owner.is_some() {
            return Ok(());
        }
        let layers = self.layers_on_nodes()?.into_iter().filter_map(|layer| Some((layer.session?, layer)));
        let size = |layer: &LayerOnNode| layer.oversize.as_ref().map_or(0, |oversize| oversize.bytes);
        if let Some((session, layer)) = layers.max_by_key(|(_, layer)| size(layer)) {
            self.own(session, &layer.node, layer.position, layer.oversize.as_ref());
        }
        Ok(())
    }

    fn own(&mut self, session: SessionId, node: &str, position: Position, oversize: Option<&Oversize>) {
        let step = self.name(position);
        let files =
            oversize.map(|Oversize { bytes, limit, .. }| KeptFiles { step, bytes: *bytes, limit: *limit });
        self.run.owner = Some(session);
        self.append(RunBound { node: node.to_owned(), files });
        self.fill_later();
    }

    /// What can be claimed and is not is offered to the nodes that may take it now.
    fn offer_again(&mut self) -> Result<(), F::Error> {
        let rows = self.facts.unstarted()?;
        self.keep_all(rows);
        for position in self.those_that_are(&[TaskStatus::Available]) {
            let class = self.class_for(position)?;
            if self.task(position)?.class != class {
                self.change(position, |task| task.class = class)?;
            }
        }
        Ok(())
    }

    /// Whether a task needs files that one node alone has. A task of a remote worker works with no
    /// files of its run.
    fn needs_files_on_nodes(&mut self, position: Position) -> Result<bool, F::Error> {
        let head = Arc::clone(&self.head);
        if matches!(head.plan.step(position).action, Action::Queue { .. }) {
            return Ok(false);
        }
        let sources = head.plan.file_sources(position);
        let is_source = |of: Position| head.plan.base(of).and_then(|step| sources.place(step)).is_some();
        if self.layers.iter().any(|kept| kept.node.is_some() && is_source(kept.position)) {
            return Ok(true);
        }
        Ok(self.layers_on_nodes()?.iter().any(|layer| is_source(layer.position)))
    }

    /// Layers of before this transaction that still count.
    fn layers_on_nodes(&mut self) -> Result<Vec<LayerOnNode>, F::Error> {
        let mut layers = self.facts.layers_on_nodes()?;
        layers.retain(|layer| {
            let task = self.tasks.get(&layer.position);
            task.is_none_or(|kept| kept.row.status.is_final() && kept.row.attempt == layer.attempt)
        });
        Ok(layers)
    }

    /// The session that owned the run is over. Comes before what it held is lost.
    pub(crate) fn release(&mut self, session: SessionId, node: &str) -> Result<(), F::Error> {
        if self.run.owner != Some(session) || self.head.placed == Placed::Local {
            return Ok(());
        }
        self.run.owner = None;
        let tasks = match self.head.placed {
            Placed::Pinned { .. } => self.withdraw(Gate::MaxParallel)?,
            Placed::Local | Placed::Spread => {
                self.offer_again()?;
                Vec::new()
            }
        };
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
