//! What the holders of claims say before their end, and who a run belongs to: `start`, `give_back`,
//! `adopt`, and a claim that is lost with its session.

use std::sync::Arc;

use laneway_core::definition::{Action, OnLost};
use laneway_core::event::{RunAdopted, TaskAvailable, TaskLost, TaskReturned, TaskStarted};
use laneway_core::gate::Gate;
use laneway_core::id::SessionId;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{TaskMove, TaskStatus};
use serde_json::Map;

use super::ending::{EndedBy, Ending};
use super::{Facts, Keeper, Record, Touch};
use crate::error::Error;
use crate::fence::{ClaimRef, Fate};
use crate::model::Placed;

/// Who gives a claim back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GivenBackBy {
    /// It lives, and knows that nothing was executed.
    Holder,
    /// The service, of a remote worker that did not begin.
    Other,
}

impl<F: Facts> Keeper<F> {
    /// A run whose owner is gone belongs to another session.
    pub(crate) fn adopt(&mut self, session: SessionId) -> Result<(), F::Error> {
        if self.run.status.is_final() {
            return Err(Error::Ended { run: self.head.run, status: self.run.status }.into());
        }
        if self.head.placed != Placed::Local {
            return Err(Error::Shared { run: self.head.run }.into());
        }
        if self.run.owner == Some(session) {
            return Ok(());
        }
        // A row of a session is there as long as nobody has proof of its death.
        if let Some(owner) = self.run.owner
            && let Some(node) = self.facts.node(owner)?
        {
            return Err(Error::Owned { run: self.head.run, node: node.to_string() }.into());
        }
        let node = self.facts.node(session)?.ok_or(Error::SessionOver { session })?;
        self.run.owner = Some(session);
        self.append(RunAdopted { node: node.to_string() });
        Ok(())
    }

    /// The holder of a claim says that its task runs. This is the claim's event.
    pub(crate) fn start(&mut self, claim: &ClaimRef) -> Result<Fate, F::Error> {
        let Some(node) = self.facts.node(claim.session)? else { return Ok(Fate::ClaimLost) };
        let now = self.now;
        let kept = self.kept(claim.position)?;
        if !kept.row.is_held_by(claim) {
            return Ok(Fate::ClaimLost);
        }
        // Said before, and still running: the answer was lost, the claim was not.
        if kept.row.started_at.is_some() {
            return Ok(Fate::Repeated);
        }
        kept.row.started_at = Some(now);
        kept.row.node = Some(Arc::clone(&node));
        kept.touch = kept.touch.max(Touch::Start);
        let was_ahead = kept.row.is_ahead;
        self.say_started(claim, was_ahead, &node)?;
        Ok(Fate::Recorded)
    }

    pub(super) fn say_started(
        &mut self,
        claim: &ClaimRef,
        was_ahead: bool,
        node: &str,
    ) -> Result<(), F::Error> {
        if was_ahead {
            self.admit(claim.position);
        }
        self.bind(claim.session, node);
        self.begin_lane(claim.position)?;
        let step = self.name(claim.position);
        self.append(TaskStarted { step, attempt: claim.attempt, node: node.to_owned() });
        Ok(())
    }

    /// A task that was claimed ahead has its place now: the history hears of that before it hears
    /// of the claim.
    pub(super) fn admit(&mut self, position: Position) {
        self.append(TaskAvailable { step: self.name(position) });
    }

    /// A claim that was never started returns to the line. It keeps its rank, so it is next again;
    /// one that was claimed ahead waits for its place as before. In a paused run it waits until
    /// that goes on, in one that is closing it ends. A task with rates did not start in time, and
    /// takes new passages.
    ///
    /// Its holder knows that nothing was executed: the claim was no attempt, and the next one has
    /// its number. Of one that is taken back in place of its holder that is not known: it spends a
    /// number, and leaves a record.
    pub(crate) fn give_back(&mut self, claim: &ClaimRef, by: GivenBackBy) -> Result<Fate, F::Error> {
        let task = self.task(claim.position)?;
        if !task.is_held_by(claim) || task.started_at.is_some() {
            return Ok(Fate::ClaimLost);
        }
        let (status, stop, is_ahead) = (task.status.next(TaskMove::GiveBack)?, task.stop, task.is_ahead);
        let has_to_pass_again = by == GivenBackBy::Holder && task.start_by.is_some() && !is_ahead;
        if by == GivenBackBy::Other {
            self.keep_record(Record::new(claim, "returned"))?;
        }
        let withdrawn = match (self.is_paused(), has_to_pass_again) {
            (false, false) => None,
            (false, true) => Some((status.next(TaskMove::Withdraw)?, Gate::Needs)),
            (true, _) => Some((status.next(TaskMove::Withdraw)?, Gate::Paused)),
        };
        // Nothing says whether this holder has begun: the next one needs a larger token.
        let fence = match (by, &withdrawn) {
            (GivenBackBy::Other, None) if !is_ahead => self.mint_fence(claim.position)?,
            (GivenBackBy::Other | GivenBackBy::Holder, _) => None,
        };
        // Its run may have got an owner meanwhile.
        let class = self.class_for(claim.position)?;
        self.change(claim.position, |task| {
            task.class = class;
            (task.status, task.gate) = match withdrawn {
                _ if task.is_ahead => (TaskStatus::Pending, Some(Gate::MaxParallel)),
                Some((withdrawn, gate)) => (withdrawn, Some(gate)),
                None => (status, None),
            };
            task.session = None;
            task.is_ahead = false;
            task.stop = None;
            task.fence = fence.or(task.fence);
            if by == GivenBackBy::Holder {
                task.attempt -= 1;
                task.given_back += 1;
            }
        })?;
        let step = self.name(claim.position);
        match by {
            GivenBackBy::Other => self.append(TaskReturned { step, attempt: Some(claim.attempt) }),
            // A claim appends nothing, and neither does its return, unless the task is seen to wait
            // again.
            GivenBackBy::Holder if withdrawn.is_some() && !is_ahead => {
                self.append(TaskReturned { step, attempt: None });
            }
            GivenBackBy::Holder => {}
        }
        if has_to_pass_again {
            self.line_up_later(claim.position);
        }
        self.end_if_closing(claim.position)?;
        // It was to be stopped together with its group, in a run that goes on.
        if let Some(reason) = stop
            && !self.task(claim.position)?.status.is_final()
        {
            let why = self.why_aborted(claim.position, reason)?;
            let attempt = self.task(claim.position)?.attempt;
            self.cancel_task(claim.position, attempt, reason, why)?;
        }
        Ok(Fate::Recorded)
    }

    /// One claim of a dead session. Whether it ever started does not matter: nobody can know that
    /// it did not. It comes back at most `max_lost` times: a step that kills its node must not do
    /// so for ever. A callback kills no node, and `laneway run` does not wait for one that hangs:
    /// only its retries end it.
    pub(crate) fn lose(&mut self, claim: &ClaimRef, node: &str, max_lost: u32) -> Result<(), F::Error> {
        let task = self.task(claim.position)?;
        let (lost, stop) = (task.lost, task.stop);
        let ending = |step, reason: Reason, detail: Option<String>| Ending {
            by: EndedBy::Reaper,
            step,
            reason: Some(reason),
            detail,
            exit_code: None,
            output: Map::new(),
            layer: None,
        };
        if let Some(reason) = stop {
            // It was to be stopped, and it has been.
            let why = self.why_aborted(claim.position, reason)?;
            return self.end(claim, ending(TaskMove::Cancel, reason, why));
        }
        let step = self.step(claim.position);
        let is_worn_out = lost >= max_lost && !matches!(step.action, Action::Post(_));
        if step.on_lost == OnLost::Fail || is_worn_out {
            let detail = match lost {
                0 => format!("its node {node} died"),
                before => format!("its node {node} died, as {before} before it"),
            };
            return self.end(claim, ending(TaskMove::Fail, Reason::Lost, Some(detail)));
        }
        self.lose_for_another_try(claim, node)
    }

    pub(super) fn lose_for_another_try(&mut self, claim: &ClaimRef, node: &str) -> Result<(), F::Error> {
        let task = self.task(claim.position)?;
        let status = task.status.next(TaskMove::Requeue)?;
        let (started_at, is_ahead, rank) = (task.started_at, task.is_ahead, task.rank);
        let lost = Record::new(claim, "lost");
        self.keep_record(Record { reason: Some(Reason::Lost), started_at, ..lost })?;
        self.change(claim.position, |task| {
            task.status = status;
            task.let_go();
            // Its place in line is that of when it was first ready: the loss was not its fault.
            task.rank = rank;
            task.gate = Some(Gate::Needs);
            task.node = Some(node.into());
            task.reason = Some(Reason::Lost);
            task.detail = None;
            task.exit_code = None;
            task.took_ms = None;
            task.lost += 1;
        })?;
        if is_ahead && started_at.is_none() {
            self.admit(claim.position);
        }
        let step = self.name(claim.position);
        self.append(TaskLost { step, attempt: claim.attempt, node: node.to_owned() });
        self.line_up_later(claim.position);
        Ok(())
    }
}
