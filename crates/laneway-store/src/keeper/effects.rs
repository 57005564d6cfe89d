//! Durable effects: whether one begins, and what became of it, under the fence of the attempt that runs it. The row is the
//! store's to read and write, in the same transaction; what it means is core's to say (`effect.rs`). docs/design/effects.md.

use laneway_core::effect::{Asking, EffectId, EffectStatus, Verdict, judge};
use laneway_core::event::{EffectCommitted, EffectStarted};
use laneway_core::plan::Position;
use laneway_core::state::TaskStatus;

use super::{Facts, Keeper};
use crate::effect::{Begun, Decided, EffectEnd, EffectRow, NewEffect, Settlement};
use crate::error::Error;
use crate::fence::{ClaimRef, Fate};

impl<F: Facts> Keeper<F> {
    /// The session is alive, the row is as of now. The history hears of the attempt's start before it hears of its effects.
    pub(crate) fn begin_effect(
        &mut self,
        claim: &ClaimRef,
        row: Option<&EffectRow>,
        new: &NewEffect,
    ) -> Result<Decided, F::Error> {
        let task = self.task(claim.position)?;
        if !task.is_held_by(claim) {
            return Ok(Decided::Answer(Begun::ClaimLost));
        }
        let (is_stopping, item) = (task.stop.is_some(), task.item.clone());
        let fence = task.fence.and_then(|fence| u64::try_from(fence).ok());
        let first = || {
            let item = item.as_deref().map(|value| (value, claim.attempt));
            new.id.token(claim.run, &self.head.plan.task_name(claim.position), item)
        };
        let token = || row.and_then(|row| row.token.clone()).unwrap_or_else(first);
        let NewEffect { execution, on_unknown, gone, .. } = new;
        let asking = Asking { execution, on_unknown: *on_unknown, gone: gone.as_deref() };
        let verdict = judge(row.map(|row| row.standing(claim)), asking);
        let begun = match (verdict, row) {
            (Verdict::Replay, _) => return Ok(Decided::Read),
            (Verdict::Repeated, _) => Begun::Run { token: token(), fence },
            // What was canceled must not reach the world any more.
            (Verdict::Run, _) if is_stopping => Begun::Stopping,
            (Verdict::Taken, Some(row)) => Begun::Taken { execution: row.execution.clone() },
            (Verdict::Unknown, Some(row)) => {
                Begun::Unknown { attempt: row.attempt, started_at: row.started_at }
            }
            (Verdict::Run | Verdict::Taken | Verdict::Unknown, _) => {
                let token = token();
                if self.start(claim)? == Fate::ClaimLost {
                    return Ok(Decided::Answer(Begun::ClaimLost));
                }
                let (step, EffectId { name, key }) = (self.name(claim.position), new.id.clone());
                self.append(EffectStarted { step, attempt: claim.attempt, name, key });
                return Ok(Decided::Write(Begun::Run { token: token.clone(), fence }, token));
            }
        };
        Ok(Decided::Answer(begun))
    }

    /// What became of it, if the execution that says so is the one that was let begin, and still holds the task.
    pub(crate) fn commit_effect(
        &mut self,
        claim: &ClaimRef,
        row: Option<&EffectRow>,
        end: &EffectEnd,
    ) -> Result<Fate, F::Error> {
        let Some(row) = row.filter(|row| row.is_of(claim) && row.execution == end.execution) else {
            return Ok(Fate::ClaimLost);
        };
        if row.status != EffectStatus::Started {
            return Ok(Fate::Repeated);
        }
        if !self.task(claim.position)?.is_held_by(claim) {
            return Ok(Fate::ClaimLost);
        }
        let (exit_code, took_ms) = (Some(end.result.exit_code), end.took_ms);
        self.say_committed(claim.position, row, &end.id, (end.status, exit_code, took_ms, None));
        Ok(Fate::Recorded)
    }

    /// A person says it, of one that nobody runs. Says what is to be written, if anything.
    pub(crate) fn settle_effect(
        &mut self,
        step: &str,
        row: Option<&EffectRow>,
        (id, how, by): (&EffectId, Settlement, &str),
    ) -> Result<Option<EffectStatus>, F::Error> {
        let (run, position) = (self.head.run, self.find(step)?);
        let Some(row) = row else {
            return Err(Error::NoSuchEffect { run, step: step.to_owned(), effect: id.clone() }.into());
        };
        let task = self.task(position)?;
        let is_held = task.status == TaskStatus::Running
            && (task.attempt, task.session) == (row.attempt, Some(row.session));
        if row.status == EffectStatus::Started && is_held {
            let (step, effect, attempt) = (step.to_owned(), id.clone(), row.attempt);
            return Err(Error::EffectRuns { run, step, effect, attempt }.into());
        }
        let (status, exit_code) = match how {
            Settlement::Done => (EffectStatus::Done, Some(0)),
            Settlement::Again => (EffectStatus::Failed, None),
        };
        if row.status == status {
            return Ok(None);
        }
        self.say_committed(position, row, id, (status, exit_code, None, Some(by.to_owned())));
        Ok(Some(status))
    }

    fn say_committed(
        &mut self,
        position: Position,
        row: &EffectRow,
        id: &EffectId,
        (status, exit_code, took_ms, by): (EffectStatus, Option<i32>, Option<u64>, Option<String>),
    ) {
        let (step, EffectId { name, key }, attempt) = (self.name(position), id.clone(), row.attempt);
        self.append(EffectCommitted { step, attempt, name, key, status, exit_code, took_ms, by });
    }
}
