//! A run that starts nothing new: halted or aborted by a failure, canceled by a person, or out of time. What has
//! not started ends here; what runs is stopped by its holder.

use laneway_core::definition::OnFailure;
use laneway_core::event::{Closing, RunHalted, TaskFinished, TaskSkipped};
use laneway_core::gate::{self, Facts, Verdict};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::TaskStatus;
use rusqlite::params;
use serde_json::Map;

use super::{RunWork, Settled};
use crate::sqlite::txn::{Done, sql};

impl RunWork<'_, '_> {
    /// `on_failure`: decides what a failed task means for the rest of the run.
    pub(super) fn close_after_failure(&mut self, position: Position) -> Done<()> {
        let closing = match self.plan().workflow.on_failure {
            OnFailure::Continue => return Ok(()),
            OnFailure::Halt => Closing::Halted,
            OnFailure::Abort => Closing::Aborted,
        };
        if self.closing.is_some() {
            return Ok(());
        }
        self.closing = Some(closing);
        self.append(RunHalted { closing, step: self.name(position) })?;
        self.end_unstarted()?;
        if closing == Closing::Aborted {
            self.stop_running(closing)?;
        }
        Ok(())
    }

    /// Applies a closing to everything that nobody holds.
    pub(in crate::sqlite) fn end_unstarted(&mut self) -> Done<()> {
        let tasks: Vec<(Position, String, u32)> = self
            .txn
            .connection
            .prepare_cached(sql!("tasks_unstarted"))?
            .query_map([self.head.no], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for (position, status, attempt) in tasks {
            let is_live = status == TaskStatus::Available.as_str();
            match self.verdict_of_closing(position) {
                None => continue,
                Some(Verdict::Cancel(reason)) => self.cancel_task(position, attempt, reason)?,
                Some(Verdict::Skip(reason)) => self.skip(position, reason, None)?,
                Some(Verdict::Open | Verdict::Closed(_)) => continue,
            }
            if is_live {
                self.leave();
            }
        }
        Ok(())
    }

    /// A claim that was never started is given back, and its row says so.
    pub(in crate::sqlite) fn return_to_line(&mut self, position: Position) -> Done<()> {
        let task = self.task(position)?;
        match self.verdict_of_closing(position) {
            None | Some(Verdict::Open | Verdict::Closed(_)) => {
                // Pending again, it holds no place; somebody else may be next.
                if task.status == TaskStatus::Pending {
                    self.leave();
                }
                return Ok(());
            }
            Some(Verdict::Cancel(reason)) => self.cancel_task(position, task.attempt, reason)?,
            Some(Verdict::Skip(reason)) => self.skip(position, reason, None)?,
        }
        self.leave();
        Ok(())
    }

    /// What the run's closing alone says of a task that has not started; `None` where it says nothing.
    fn verdict_of_closing(&self, position: Position) -> Option<Verdict<'static>> {
        let facts =
            Facts { when: self.step(position).when, closing: self.closing, ..Facts::open(self.txn.now) };
        match gate::judge(&facts) {
            Verdict::Open | Verdict::Closed(_) => None,
            verdict @ (Verdict::Skip(_) | Verdict::Cancel(_)) => Some(verdict),
        }
    }

    /// Asks the holders of what runs to stop it. They finish it, or the reaper does.
    pub(in crate::sqlite) fn stop_running(&self, closing: Closing) -> Done<()> {
        self.txn
            .connection
            .prepare_cached(sql!("stop_running"))?
            .execute(params![self.head.no, closing.as_str()])?;
        Ok(())
    }

    pub(in crate::sqlite) fn skip(
        &mut self,
        position: Position,
        why: Reason,
        detail: Option<String>,
    ) -> Done<()> {
        self.txn.connection.prepare_cached(sql!("skip"))?.execute(params![
            self.head.no,
            position,
            why.as_str(),
            detail,
            self.txn.now.0
        ])?;
        self.append(TaskSkipped { step: self.name(position), why, detail })?;
        self.settle(position, Settled::PassedOver)
    }

    pub(super) fn cancel_task(&mut self, position: Position, attempt: u32, reason: Reason) -> Done<()> {
        self.txn.connection.prepare_cached(sql!("cancel_task"))?.execute(params![
            self.head.no,
            position,
            reason.as_str(),
            self.txn.now.0
        ])?;
        self.append(TaskFinished {
            step: self.name(position),
            attempt,
            status: TaskStatus::Canceled,
            reason: Some(reason),
            detail: None,
            exit_code: None,
            took_ms: None,
            output: Map::new(),
        })?;
        self.settle(position, Settled::PassedOver)
    }
}
