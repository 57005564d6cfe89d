//! Steps that wait, also for a run that they start (`children.rs`): parked when their gates open, ended by a signal or by the store's clock. Whoever is parked is held by
//! nobody, so that nothing of a process or a node can end it. What counts is core's to say (`wait.rs`). docs/design/waits.md.

use std::sync::Arc;

use laneway_core::event::{TaskFinished, TaskParked, TaskSignaled};
use laneway_core::group;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{TaskMove, TaskStatus};
use laneway_core::wait::{Over, Waiting};
use serde_json::{Map, Value};

use super::growing::with_item;
use super::rows::stored;
use super::{Facts, Keeper, Settled, read_item};
use crate::error::Error;
use crate::model::{NewSignal, Signaled};

/// How what is parked ends, if it was not ended from outside.
pub(super) struct Ending {
    pub(super) step: TaskMove,
    pub(super) reason: Option<Reason>,
    pub(super) detail: Option<String>,
    pub(super) output: Map<String, Value>,
}

impl<F: Facts> Keeper<F> {
    /// The gates of a step that waits are open. What has come by now ends it in the same transaction.
    pub(super) fn park(&mut self, position: Position) -> Result<(), F::Error> {
        let head = Arc::clone(&self.head);
        let step = head.plan.step(position);
        let Some(wait) = step.wait() else { return Ok(()) };
        let of_condition = step.condition.iter().flat_map(|condition| condition.steps_read());
        let mut scope = self.scope_of(of_condition.chain(wait.steps_read()))?;
        if let Some((_, index)) = head.plan.item(position) {
            let item = self.task(position)?.item.clone();
            with_item(&mut scope, read_item(item.as_deref())?, index);
        }
        // The gate lets through what it could not evaluate, so that it is told here.
        let condition = step.condition.as_ref().map(|condition| condition.holds(&scope)).transpose();
        let begun =
            condition.map_err(|error| format!("`if`: {error}")).and_then(|_| wait.begin(&scope, self.now));
        let child = wait.child();
        let begun = begun.and_then(|waiting| {
            let params = child.map(|child| child.params(&scope)).transpose()?;
            Ok((waiting, params))
        });
        let (waiting, params, fault) = match begun {
            Ok((waiting, params)) => (waiting, params, None),
            Err(why) => (Waiting::default(), None, Some(why)),
        };
        let status = self.task(position)?.status.next(TaskMove::Park)?;
        self.note_wait(position)?;
        self.begin_lane(position)?;
        let (now, until, timeout_at) = (self.now, waiting.until, waiting.timeout_at);
        let life = child.map(|_| self.run.last_event + 1);
        self.change(position, |task| {
            task.status = status;
            task.gate = None;
            task.gate_key = None;
            task.wake_at = None;
            task.rank = None;
            task.run_at = None;
            task.forget_attempt();
            task.started_at = Some(now);
            // A signal may have come before.
            let wait = task.wait.get_or_insert_default();
            (wait.until, wait.timeout_at, wait.life) = (until, timeout_at, life);
        })?;
        self.append(TaskParked {
            step: self.name(position),
            signal: wait.signal().map(str::to_owned),
            until,
            timeout_at,
            items: None,
            workflow: child.map(|child| child.workflow.clone()),
        });
        if let Some((child, params)) = child.zip(params) {
            self.want_child(position, child.workflow.clone(), params)?;
        }
        match fault {
            Some(why) => {
                let (reason, detail) = (Some(Reason::Expression), Some(why));
                self.end_wait(position, Ending { step: TaskMove::Fail, reason, detail, output: Map::new() })
            }
            None => self.look_at_parked(position),
        }
    }

    /// Ends a parked task if what it waits for has come, or its time is up.
    pub(super) fn look_at_parked(&mut self, position: Position) -> Result<(), F::Error> {
        let now = self.now;
        let Some(waiting) = self.task(position)?.wait.as_deref() else { return Ok(()) };
        if let Some(signal) = &waiting.signal {
            let payload = signal.payload.clone();
            return self.end_signaled(position, payload);
        }
        let Some(over) = waiting.over(now) else { return Ok(()) };
        if self.awaits_child(position) {
            return self.stop_child(position, Reason::Timeout);
        }
        let timed_out = self.step(position).wait().map(|wait| wait.timed_out());
        let output = Map::new();
        self.end_wait(
            position,
            match over {
                Over::Come => Ending { step: TaskMove::Succeed, reason: None, detail: None, output },
                Over::TimedOut => {
                    Ending { step: TaskMove::Fail, reason: Some(Reason::Timeout), detail: timed_out, output }
                }
            },
        )
    }

    /// Somebody says what a step waits for. The first one counts; one that comes before the step is parked is kept for it.
    pub(crate) fn signal(&mut self, step: &str, signal: &NewSignal) -> Result<Signaled, F::Error> {
        let (run, position) = (self.head.run, self.find(step)?);
        let expected = self.step(position).wait().and_then(|wait| wait.signal()).map(str::to_owned);
        let Some(expected) = expected else {
            return Err(Error::NoSignal { run, step: step.to_owned() }.into());
        };
        if expected != signal.name {
            let (step, found) = (step.to_owned(), signal.name.clone());
            return Err(Error::OtherSignal { run, step, expected, found }.into());
        }
        // One that comes when the time is up comes too late, whoever was to look at the clock.
        if self.task(position)?.status == TaskStatus::Parked {
            self.look_at_parked(position)?;
        }
        let task = self.task(position)?;
        let status = task.status;
        let earlier = task.wait.as_ref().and_then(|wait| wait.signal.as_ref());
        let earlier = earlier.map(|signal| Signaled::Before { by: signal.by.clone(), at: signal.at });
        match (status, earlier) {
            (TaskStatus::Pending | TaskStatus::Succeeded | TaskStatus::Failed, Some(earlier)) => Ok(earlier),
            (TaskStatus::Pending | TaskStatus::Parked, _) => self.take_signal(position, signal, status),
            (
                TaskStatus::Available
                | TaskStatus::Running
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped,
                _,
            ) => {
                let why = self.task(position)?.reason;
                Err(Error::NotWaiting { run, step: step.to_owned(), status, why }.into())
            }
        }
    }

    fn take_signal(
        &mut self,
        position: Position,
        signal: &NewSignal,
        status: TaskStatus,
    ) -> Result<Signaled, F::Error> {
        let taken = signal.at(self.now);
        self.append(TaskSignaled {
            step: self.name(position),
            signal: signal.name.clone(),
            by: taken.by.clone(),
            reason: taken.reason.clone(),
            payload: taken.payload.clone(),
        });
        self.change(position, |task| task.wait.get_or_insert_default().signal = Some(taken))?;
        if status == TaskStatus::Pending {
            return Ok(Signaled::Kept);
        }
        self.look_at_parked(position)?;
        Ok(Signaled::Woken)
    }

    /// What was brought is the output; of a member of a group it may say that it failed.
    fn end_signaled(&mut self, position: Position, output: Map<String, Value>) -> Result<(), F::Error> {
        let ending = if self.says_it_failed(position, &output) {
            let (reason, detail) = (Some(Reason::Error), Some(group::SAID.to_owned()));
            Ending { step: TaskMove::Fail, reason, detail, output }
        } else {
            Ending { step: TaskMove::Succeed, reason: None, detail: None, output }
        };
        self.end_wait(position, ending)
    }

    pub(super) fn end_wait(&mut self, position: Position, ending: Ending) -> Result<(), F::Error> {
        let task = self.task(position)?;
        let (status, attempt) = (task.status.next(ending.step)?, task.attempt);
        let parked = task.started_at.map_or_else(Default::default, |at| self.now.since(at));
        let took_ms = Some(u64::try_from(parked.as_millis()).unwrap_or(u64::MAX));
        let (now, output) = (self.now, stored(ending.output.clone()));
        self.change(position, |task| {
            task.status = status;
            task.let_go();
            task.reason = ending.reason;
            task.detail.clone_from(&ending.detail);
            task.output = output;
            task.took_ms = took_ms;
            task.finished_at = Some(now);
        })?;
        self.append(TaskFinished {
            step: self.name(position),
            attempt,
            status,
            reason: ending.reason,
            detail: ending.detail,
            exit_code: None,
            took_ms,
            output: ending.output,
        });
        match Settled::of(status, ending.reason) {
            Some(settled) => self.settle(position, settled),
            None => Ok(()),
        }
    }
}
