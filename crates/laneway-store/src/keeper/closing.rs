//! A run that starts nothing new but clean-up: halted or aborted by a failure, canceled by a
//! person, or out of time. What has not started ends here; what runs is stopped by its holder. The
//! clean-up of a run that is canceled or out of time has a clock, `runs.deadline_at`: while it is
//! set and has not come, steps with `when: always` may start. docs/design/closing.md.

use std::sync::Arc;

use laneway_core::definition::{OnFailure, Step, When};
use laneway_core::event::{Closing, RunCanceling, RunHalted, TaskFinished, TaskSkipped};
use laneway_core::gate::{self, Facts as GateFacts, Gate, Verdict};
use laneway_core::hook;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskMove, TaskStatus};
use laneway_core::time::Millis;
use serde_json::Map;

use super::{Facts, Keeper, Kept, Settled};
use crate::model::{CancelMode, Placed};

/// Who ends what has taken too long.
const TIMEOUT: &str = "timeout";

impl<F: Facts> Keeper<F> {
    /// Nothing of the run but its clean-up starts any more, until a person retries it. With
    /// `CancelMode::Now` not even that does, and clean-up that is under way is stopped. Says
    /// whether anything changed.
    pub(crate) fn cancel(&mut self, by: &str, mode: CancelMode) -> Result<bool, F::Error> {
        if self.run.status.is_final() {
            return Ok(false);
        }
        if mode == CancelMode::Now && self.is_canceling() && self.run.deadline_at.is_some() {
            self.end_clean_up(by, &format!("its clean-up was ended by {by}"))?;
            return Ok(true);
        }
        if self.run.closing == Some(Closing::Canceled) {
            return Ok(false);
        }
        self.stop_everything(Closing::Canceled, by, format!("canceled by {by}"), mode)?;
        Ok(true)
    }

    /// The same, politely and for a reason of its own.
    pub(crate) fn cancel_because(&mut self, by: &str, why: String) -> Result<(), F::Error> {
        self.stop_everything(Closing::Canceled, by, why, CancelMode::CleanUp)
    }

    /// A moment has passed: that of the run's `timeout`, or that until which its clean-up may take.
    pub(crate) fn time_out(&mut self) -> Result<(), F::Error> {
        // It may have been canceled between the look at the clock and the lock of the run, and have
        // more time now.
        if self.run.deadline_at.is_none_or(|at| at > self.now) {
            return Ok(());
        }
        if self.is_canceling() {
            let limit = self.plan().workflow.cleanup_timeout;
            return self.end_clean_up(TIMEOUT, &format!("its clean-up took longer than {limit:?}"));
        }
        self.run.deadline_at = None;
        let why = match self.plan().workflow.timeout {
            Some(limit) => format!("timeout: the run took longer than {limit:?}"),
            // Hooks of a run that was canceled share its clock.
            None => "timeout: the time for clean-up of the run whose hooks these are is over".to_owned(),
        };
        self.stop_everything(Closing::RunTimeout, TIMEOUT, why, CancelMode::CleanUp)
    }

    /// Whether the run as a whole is being ended.
    pub(super) fn is_canceling(&self) -> bool {
        self.run.closing.is_some_and(Closing::is_canceling)
    }

    /// Whether steps with `when: always` may still start in a run that is being canceled.
    pub(super) fn is_cleaning_up(&self) -> bool {
        self.is_canceling() && self.run.deadline_at.is_some_and(|at| at > self.now)
    }

    /// Whether a person holds it up. Clean-up does not wait for that: its clock runs.
    pub(super) fn is_paused(&self) -> bool {
        !self.run.pauses.is_empty() && !self.is_canceling()
    }

    fn stop_everything(
        &mut self,
        closing: Closing,
        by: &str,
        why: String,
        mode: CancelMode,
    ) -> Result<(), F::Error> {
        let (until, has_steps) = match (mode, self.is_canceling()) {
            (CancelMode::Now, _) => (None, false),
            // Another reason gives it no more time.
            (CancelMode::CleanUp, true) => (self.run.deadline_at, true),
            (CancelMode::CleanUp, false) => self.clean_up(closing)?,
        };
        self.run.closing = Some(closing);
        self.run.reason = Some(why);
        self.append(RunCanceling { closing, by: by.to_owned(), clean_up_until: until, ends_clean_up: false });
        self.run.deadline_at = until.filter(|_| has_steps);
        self.end_unstarted()?;
        self.stop_running(closing)?;
        // Where no step cleans up, hooks still have the time.
        self.run.deadline_at = until;
        for position in self.those_that_are(&[TaskStatus::Pending]) {
            if self.task(position)?.gate == Some(Gate::Paused) {
                self.examine_later(position);
            }
        }
        Ok(())
    }

    /// Until when a run that is canceled now may clean up, and whether steps do: of one in which no
    /// task was ever claimed, or whose owner is gone, only hooks remain. `None` if it has nothing
    /// of the kind.
    fn clean_up(&mut self, closing: Closing) -> Result<(Option<Millis>, bool), F::Error> {
        let head = Arc::clone(&self.head);
        let limit = head.plan.workflow.cleanup_timeout;
        if limit.is_zero() || self.run.status != RunStatus::Running {
            return Ok((None, false));
        }
        let end = match closing {
            Closing::Canceled => RunStatus::Canceled,
            Closing::RunTimeout | Closing::Halted | Closing::Aborted => RunStatus::Failed,
        };
        let has_hooks = hook::ends(&head.plan.workflow).contains(&end);
        let until = Some(self.now.after(limit));
        let may_clean_up =
            |step: &Step| step.when == When::Always || step.wait().is_some_and(|wait| wait.child().is_some());
        if !head.plan.workflow.steps.iter().any(may_clean_up) || self.is_orphan()? {
            return Ok((until.filter(|_| has_hooks), false));
        }
        let rows = self.facts.all()?;
        self.keep_all(rows);
        let has_begun = self.tasks.values().any(|kept| kept.row.attempt > 0 || kept.row.started_at.is_some());
        let cleans_up = |(position, kept): (&Position, &Kept)| {
            let has_child = kept.row.wait.as_ref().is_some_and(|wait| wait.child.is_some());
            !kept.row.status.is_final() && (has_child || self.is_always(*position))
        };
        let has_steps = has_begun && self.tasks.iter().any(cleans_up);
        Ok((until.filter(|_| has_steps || has_hooks), has_steps))
    }

    /// Whether it is local to a process that is gone: until another one adopts it, nothing of it
    /// can run.
    fn is_orphan(&mut self) -> Result<bool, F::Error> {
        if self.head.placed != Placed::Local {
            return Ok(false);
        }
        match self.run.owner {
            Some(owner) => Ok(self.facts.node(owner)?.is_none()),
            None => Ok(true),
        }
    }

    fn is_always(&self, position: Position) -> bool {
        self.step(position).when == When::Always && !self.is_no_clean_up(position)
    }

    /// There is no time for clean-up any more: what of it has not started ends, and what runs is
    /// stopped.
    fn end_clean_up(&mut self, by: &str, why: &str) -> Result<(), F::Error> {
        let Some(closing) = self.run.closing else { return Ok(()) };
        self.run.deadline_at = None;
        if let Some(reason) = &mut self.run.reason {
            *reason = format!("{reason}; {why}");
        }
        self.append(RunCanceling { closing, by: by.to_owned(), clean_up_until: None, ends_clean_up: true });
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
            is_cleaning_up: self.is_cleaning_up(),
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

    /// Asks the holders of what runs to stop it. They finish it, or the reaper does. What cleans up
    /// goes on, as long as it has time for that.
    fn stop_running(&mut self, closing: Closing) -> Result<(), F::Error> {
        let rows = self.facts.running()?;
        self.keep_all(rows);
        for position in self.those_that_are(&[TaskStatus::Running]) {
            if self.is_cleaning_up() && self.is_always(position) {
                continue;
            }
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
