//! A run that starts nothing new: halted or aborted by a failure, canceled by a person, or out of time. What has
//! not started ends here; what runs is stopped by its holder.

use laneway_core::definition::OnFailure;
use laneway_core::event::{Closing, RunCanceling, RunHalted, TaskFinished, TaskSkipped};
use laneway_core::gate::{self, Facts as GateFacts, Verdict};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{TaskMove, TaskStatus};
use serde_json::Map;

use super::{Facts, Keeper, Settled};

impl<F: Facts> Keeper<F> {
    /// Nothing of the run starts any more, until somebody retries it. Says whether that is new.
    pub(crate) fn cancel(&mut self, by: &str) -> Result<bool, F::Error> {
        if self.run.status.is_final() || self.run.closing == Some(Closing::Canceled) {
            return Ok(false);
        }
        self.cancel_because(by, format!("canceled by {by}"))?;
        Ok(true)
    }

    /// The same, for a reason of its own.
    pub(crate) fn cancel_because(&mut self, by: &str, why: String) -> Result<(), F::Error> {
        self.stop_everything(Closing::Canceled, by, why)
    }

    /// The run's `timeout` has passed: nothing starts, what runs is stopped.
    pub(crate) fn time_out(&mut self) -> Result<(), F::Error> {
        self.run.deadline_at = None;
        if self.run.closing.is_none_or(Closing::lets_clean_up) {
            let limit = self.plan().workflow.timeout.unwrap_or_default();
            let why = format!("timeout: the run took longer than {limit:?}");
            self.stop_everything(Closing::RunTimeout, "timeout", why)?;
        }
        Ok(())
    }

    fn stop_everything(&mut self, closing: Closing, by: &str, why: String) -> Result<(), F::Error> {
        self.run.closing = Some(closing);
        self.run.reason = Some(why);
        self.append(RunCanceling { closing, by: by.to_owned() });
        self.end_unstarted()?;
        self.stop_running(closing)
    }

    /// `on_failure`: decides what a failed task means for the rest of the run.
    pub(super) fn close_after_failure(&mut self, position: Position) -> Result<(), F::Error> {
        let closing = match self.plan().workflow.on_failure {
            OnFailure::Continue => return Ok(()),
            OnFailure::Halt => Closing::Halted,
            OnFailure::Abort => Closing::Aborted,
        };
        if self.run.closing.is_some() {
            return Ok(());
        }
        self.run.closing = Some(closing);
        self.append(RunHalted { closing, step: self.name(position) });
        self.end_unstarted()?;
        if closing == Closing::Aborted {
            self.stop_running(closing)?;
        }
        Ok(())
    }

    /// Applies a closing to everything that nobody holds.
    fn end_unstarted(&mut self) -> Result<(), F::Error> {
        let rows = self.facts.unstarted()?;
        self.keep_all(rows);
        for position in self.those_that_are(&[TaskStatus::Pending, TaskStatus::Available, TaskStatus::Parked])
        {
            self.end_if_closing(position)?;
        }
        Ok(())
    }

    pub(super) fn those_that_are(&self, statuses: &[TaskStatus]) -> Vec<Position> {
        let are = self.tasks.iter().filter(|(_, kept)| statuses.contains(&kept.row.status));
        are.map(|(position, _)| *position).collect()
    }

    /// Ends a task that nobody holds, if the run's closing says so.
    pub(super) fn end_if_closing(&mut self, position: Position) -> Result<(), F::Error> {
        let facts = GateFacts {
            when: self.step(position).when,
            is_no_clean_up: self.is_no_clean_up(position),
            closing: self.run.closing,
            ..GateFacts::open(self.now)
        };
        let task = self.task(position)?;
        let (attempt, is_parked) = (task.attempt, task.status == TaskStatus::Parked);
        match gate::judge(&facts) {
            Verdict::Open | Verdict::Closed(_) => Ok(()),
            // Its items are ended as everything else is, and it ends with the last of them.
            Verdict::Skip(reason) | Verdict::Cancel(reason)
                if is_parked && self.plan().is_growing(position) =>
            {
                self.stop_items(position, reason)
            }
            // It has begun, so it is not skipped; and nobody would want a run that has failed to wait for it.
            Verdict::Skip(reason) if is_parked => self.cancel_task(position, attempt, reason, None),
            Verdict::Skip(reason) => self.skip(position, reason, None),
            Verdict::Cancel(reason) => self.cancel_task(position, attempt, reason, None),
        }
    }

    /// Asks the holders of what runs to stop it. They finish it, or the reaper does.
    fn stop_running(&mut self, closing: Closing) -> Result<(), F::Error> {
        let rows = self.facts.running()?;
        self.keep_all(rows);
        for position in self.those_that_are(&[TaskStatus::Running]) {
            self.change(position, |task| task.stop = Some(closing.reason()))?;
        }
        Ok(())
    }

    /// A task that will never run.
    pub(super) fn skip(
        &mut self,
        position: Position,
        why: Reason,
        detail: Option<String>,
    ) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Skip)?;
        let now = self.now;
        self.change(position, |task| {
            task.status = status;
            task.let_go();
            task.reason = Some(why);
            task.detail.clone_from(&detail);
            task.finished_at = Some(now);
        })?;
        self.append(TaskSkipped { step: self.name(position), why, detail });
        self.settle(position, Settled::PassedOver)
    }

    /// A task of a canceled run, or of a group that has failed, that was not running.
    pub(super) fn cancel_task(
        &mut self,
        position: Position,
        attempt: u32,
        reason: Reason,
        detail: Option<String>,
    ) -> Result<(), F::Error> {
        // It ends with its child.
        if self.task(position)?.status == TaskStatus::Parked && self.awaits_child(position) {
            return self.stop_child(position, reason);
        }
        self.cancel_now(position, attempt, reason, detail)
    }

    pub(super) fn cancel_now(
        &mut self,
        position: Position,
        attempt: u32,
        reason: Reason,
        detail: Option<String>,
    ) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Cancel)?;
        let now = self.now;
        self.change(position, |task| {
            task.status = status;
            task.let_go();
            task.reason = Some(reason);
            task.detail.clone_from(&detail);
            task.exit_code = None;
            task.output = None;
            task.took_ms = None;
            task.finished_at = Some(now);
        })?;
        self.append(TaskFinished {
            step: self.name(position),
            attempt,
            status,
            reason: Some(reason),
            detail,
            exit_code: None,
            took_ms: None,
            output: Map::new(),
        });
        self.settle(position, Settled::PassedOver)
    }
}
