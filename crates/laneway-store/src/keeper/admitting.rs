//! How a run comes to run: submitted, perhaps for later, queued behind `max_runs` or started; and how people hold it up
//! and let it go on.

use std::sync::Arc;

use laneway_core::event::{PauseScope, RunDue, RunPaused, RunResumed, RunStarted, RunSubmitted};
use laneway_core::gate::Gate;
use laneway_core::plan::Position;
use laneway_core::state::{RunMove, RunStatus, TaskMove, TaskStatus};

use super::{Facts, Keeper, Pause};
use crate::error::Error;
use crate::model::Submission;

impl<F: Facts> Keeper<F> {
    /// The run and all of its tasks are there, and nothing of it has started. `pause` is that of its workflow.
    pub(crate) fn submitted(&mut self, submission: &Submission, pause: Option<Pause>) {
        let not_before = submission.waits_until(self.now);
        self.append(RunSubmitted {
            workflow: submission.plan.workflow.name.clone(),
            version: submission.plan.version.clone(),
            params: submission.params.clone(),
            max_parallel: submission.max_parallel,
            by: submission.by.clone(),
            parent: submission.parent.clone(),
            no_cache: submission.no_cache,
            not_before,
        });
        self.run.not_before = not_before;
        self.run.deadline_at = submission.end_by;
        if submission.is_paused {
            let by = submission.by.clone();
            self.pause_between(Pause { scope: PauseScope::Run, by, since: self.now });
        }
        if let Some(pause) = pause {
            self.pause_between(pause);
        }
    }

    /// It is paused while nothing of it is offered to anybody.
    pub(super) fn pause_between(&mut self, pause: Pause) {
        self.append(RunPaused { scope: pause.scope, by: pause.by.clone(), tasks: Vec::new() });
        self.run.pauses.push(pause);
        self.run.pauses.sort_unstable_by_key(|pause| pause.scope);
    }

    /// The moment has come for which the run was submitted: it is admitted as if it were submitted now.
    /// Returns whether that is new: another node may have been faster, or a person may have canceled it.
    pub(crate) fn come_due(&mut self) -> bool {
        let is_due = self.run.not_before.is_some_and(|at| at <= self.now);
        if !is_due || self.run.status != RunStatus::Queued {
            return false;
        }
        self.run.not_before = None;
        self.append(RunDue {});
        true
    }

    /// There is room for the run.
    pub(crate) fn begin(&mut self) -> Result<(), F::Error> {
        let node = match self.run.owner {
            Some(session) => self.facts.node(session)?.ok_or(Error::SessionOver { session })?.to_string(),
            None => self.head.submitted_from.clone(),
        };
        self.append(RunStarted { node });
        self.run.status = self.run.status.next(RunMove::Start)?;
        self.run.not_before = None;
        self.run.started_at = Some(self.now);
        let head = Arc::clone(&self.head);
        let of_timeout = head.plan.workflow.timeout.map(|timeout| self.now.after(timeout));
        self.run.deadline_at = of_timeout.into_iter().chain(self.run.deadline_at).min();
        for (position, set) in (0..).zip(&head.plan.needs_set_of) {
            if set.is_none() && !head.plan.is_ready(position) {
                self.examine_later(position);
            }
        }
        for position in head.keys.keys() {
            self.stand_in_order(*position, true);
        }
        self.fill_later();
        Ok(())
    }

    /// Nothing new starts. What is available and not claimed waits again. Says whether that is new.
    pub(crate) fn pause(&mut self, scope: PauseScope, by: &str) -> Result<bool, F::Error> {
        if self.run.status.is_final() {
            return Err(Error::Ended { run: self.head.run, status: self.run.status }.into());
        }
        if self.run.pauses.iter().any(|pause| pause.scope == scope) {
            return Ok(false);
        }
        if scope == PauseScope::Run {
            let _ = self.stop_advancing();
        }
        self.run.pauses.push(Pause { scope, by: by.to_owned(), since: self.now });
        self.run.pauses.sort_unstable_by_key(|pause| pause.scope);
        // Clean-up of a run that is being canceled waits for no person.
        let tasks = if self.is_paused() { self.withdraw(Gate::Paused)? } else { Vec::new() };
        self.append(RunPaused { scope, by: by.to_owned(), tasks });
        Ok(true)
    }

    /// What is available and not claimed waits again, at this gate. Gives the steps; every task that has not started is
    /// known behind this.
    pub(super) fn withdraw(&mut self, gate: Gate) -> Result<Vec<String>, F::Error> {
        let rows = self.facts.unstarted()?;
        self.keep_all(rows);
        let mut steps = Vec::new();
        for position in self.those_that_are(&[TaskStatus::Available]) {
            let status = self.task(position)?.status.next(TaskMove::Withdraw)?;
            self.change(position, |task| {
                task.status = status;
                task.gate = Some(gate);
            })?;
            steps.push(self.name(position));
        }
        Ok(steps)
    }

    /// Lets a paused run go on, unless it is paused otherwise too. Says whether it was paused like that, or would have been behind the
    /// level that it does.
    pub(crate) fn resume(&mut self, scope: PauseScope, by: &str) -> Result<bool, F::Error> {
        let was_advancing = scope == PauseScope::Run && self.stop_advancing();
        let before = self.run.pauses.len();
        self.run.pauses.retain(|pause| pause.scope != scope);
        if self.run.status.is_final() {
            return Ok(false);
        }
        if self.run.pauses.len() == before {
            return Ok(was_advancing);
        }
        self.append(RunResumed { scope, by: by.to_owned() });
        if self.run.status == RunStatus::Running && self.run.pauses.is_empty() {
            let rows = self.facts.unstarted()?;
            self.keep_all(rows);
            let paused = self.tasks.iter().filter(|(_, kept)| kept.row.gate == Some(Gate::Paused));
            let paused: Vec<Position> = paused.map(|(position, _)| *position).collect();
            paused.into_iter().for_each(|position| self.examine_later(position));
            self.fill_later();
        }
        Ok(true)
    }
}
