//! Steps that run another workflow: parked while a run of their own goes on. That it is to be started is written down with the
//! step, and whoever finds that starts it; its end, and that of the step, are told from run to run in one transaction. What an
//! end means is core's to say (`child.rs`). docs/design/children.md.

use laneway_core::child::{ChildEnd, step_end};
use laneway_core::event::ChildRunStarted;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{TaskMove, TaskStatus};
use serde_json::{Map, Value};

use super::waiting::Ending;
use super::{Facts, Keeper};
use crate::child::ToStop;

/// A run that is to be started.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) life: u64,
    pub(crate) workflow: String,
    pub(crate) params: Map<String, Value>,
    /// The child of an earlier life, which is to go on instead.
    pub(crate) again: Option<RunId>,
}

impl<F: Facts> Keeper<F> {
    pub(super) fn awaits_child(&self, position: Position) -> bool {
        self.step(position).wait().is_some_and(|wait| wait.child().is_some())
            && !self.plan().is_growing(position)
    }

    /// The step is parked: somebody is to start what it waits for, or to go on with what it had started before.
    pub(super) fn want_child(
        &mut self,
        position: Position,
        workflow: String,
        params: Map<String, Value>,
    ) -> Result<(), F::Error> {
        let wait = self.task(position)?.wait.as_ref();
        let (life, again) = wait.map_or((None, None), |wait| (wait.life, wait.again));
        let life = life.unwrap_or_default();
        self.wanted.insert(position, Some(Wanted { life, workflow, params, again }));
        Ok(())
    }

    /// Whether this life of a step waits for somebody who starts its run.
    pub(crate) fn wants_child(&mut self, step: &str, life: u64) -> Result<bool, F::Error> {
        let position = self.find(step)?;
        self.is_wanted(position, life)
    }

    /// It is started. Says whether somebody waits for it: if not, it must not be there.
    pub(crate) fn child_began(&mut self, step: &str, life: u64, child: RunId) -> Result<bool, F::Error> {
        let position = self.find(step)?;
        if !self.is_wanted(position, life)? {
            return Ok(false);
        }
        let workflow = self.workflow_of(position);
        self.append(ChildRunStarted { step: self.name(position), child, workflow });
        self.change(position, |task| {
            let wait = task.wait.get_or_insert_default();
            (wait.child, wait.again) = (Some(child), None);
        })?;
        self.wanted.insert(position, None);
        Ok(true)
    }

    /// It cannot be started.
    pub(crate) fn child_refused(&mut self, step: &str, life: u64, why: &str) -> Result<(), F::Error> {
        let position = self.find(step)?;
        if !self.is_wanted(position, life)? {
            return Ok(());
        }
        self.wanted.insert(position, None);
        let detail = Some(format!("`{}` could not be started: {why}", self.workflow_of(position)));
        let (reason, output) = (Some(Reason::Child), Map::new());
        self.end_wait(position, Ending { step: TaskMove::Fail, reason, detail, output })
    }

    /// It has ended, and the step with it, if that still waits for it.
    pub(crate) fn child_over(&mut self, step: &str, end: ChildEnd) -> Result<(), F::Error> {
        let position = self.find(step)?;
        let task = self.task(position)?;
        let is_its = task.wait.as_ref().is_some_and(|wait| wait.child == Some(end.run));
        if task.status != TaskStatus::Parked || !is_its {
            return Ok(());
        }
        let stop = task.stop;
        let ended = step_end(&self.workflow_of(position), stop, end);
        let (step, reason, output) = (ended.step, ended.reason, ended.output);
        // An item, or a member of a group, says which other one has ended it.
        let detail = match (ended.detail, reason) {
            (None, Some(reason)) => self.why_aborted(position, reason)?,
            (detail, _) => detail,
        };
        self.end_wait(position, Ending { step, reason, detail, output })
    }

    /// Whether the step waits for this child, and if so, whether it is to end.
    pub(crate) fn awaits(&mut self, step: &str, child: RunId) -> Result<Option<bool>, F::Error> {
        let position = self.find(step)?;
        let task = self.task(position)?;
        let is_its = task.wait.as_ref().is_some_and(|wait| wait.child == Some(child));
        Ok((task.status == TaskStatus::Parked && is_its).then_some(task.stop.is_some()))
    }

    /// The runs that its steps and items wait for, and whether these are to end; and those of tasks that may have ended without theirs,
    /// which wait for nothing any more.
    pub(crate) fn children(&mut self) -> Result<Vec<(ToStop, Option<bool>)>, F::Error> {
        let (all, parent) = (self.facts.all()?, self.head.run);
        self.keep_all(all);
        let children = self.tasks.iter().filter_map(|(position, kept)| {
            let row = &kept.row;
            let of = ToStop { child: row.wait.as_ref()?.child?, parent, position: *position };
            let ended_by_itself = row.status == TaskStatus::Canceled || row.reason == Some(Reason::Timeout);
            match row.status {
                TaskStatus::Parked => Some((of, Some(row.stop.is_some()))),
                TaskStatus::Canceled | TaskStatus::Failed if ended_by_itself => Some((of, None)),
                TaskStatus::Pending
                | TaskStatus::Available
                | TaskStatus::Running
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped => None,
            }
        });
        Ok(children.collect())
    }

    /// The step is to end, and first what it has started. Without that it ends at once.
    pub(super) fn stop_child(&mut self, position: Position, reason: Reason) -> Result<(), F::Error> {
        // A child that cleans up is told once more when there is no time for that any more.
        let is_over = self.is_canceling() && !self.is_cleaning_up();
        let task = self.task(position)?;
        if task.stop.is_some() && !is_over {
            return Ok(());
        }
        let (attempt, child) = (task.attempt, task.wait.as_ref().and_then(|wait| wait.child));
        if let Some(child) = child {
            self.to_stop.push(ToStop { child, parent: self.head.run, position });
            return self.change(position, |task| task.stop = Some(reason));
        }
        self.wanted.insert(position, None);
        if reason != Reason::Timeout {
            let why = self.why_aborted(position, reason)?;
            return self.cancel_now(position, attempt, reason, why);
        }
        let detail = self.step(position).wait().map(|wait| wait.timed_out());
        self.end_wait(
            position,
            Ending { step: TaskMove::Fail, reason: Some(reason), detail, output: Map::new() },
        )
    }

    fn is_wanted(&mut self, position: Position, life: u64) -> Result<bool, F::Error> {
        let task = self.task(position)?;
        let wait = task.wait.as_ref();
        Ok(task.status == TaskStatus::Parked
            && wait.is_some_and(|wait| wait.life == Some(life) && wait.child.is_none()))
    }

    fn workflow_of(&self, position: Position) -> String {
        let child = self.step(position).wait().and_then(|wait| wait.child());
        child.map(|child| child.workflow.clone()).unwrap_or_default()
    }
}
