//! How attempts end: the fence, the record, a retry or the end of the task, and the start that
//! nobody has said yet.

use std::sync::Arc;

use laneway_core::event::{Closing, TaskCached, TaskFinished, TaskRetrying};
use laneway_core::gate::Gate;
use laneway_core::group;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::retry;
use laneway_core::state::{TaskMove, TaskStatus};
use laneway_core::time::Millis;
use laneway_torture::{Bug, has};
use serde_json::{Map, Value};

use super::rows::stored;
use super::{Facts, Keeper, KeptLayer, Record, Settled};
use crate::fence::{ClaimRef, Fate};
use crate::layer::{LayerContent, NewLayer};
use crate::model::{Finished, Outcome};

/// Who says that a task has ended. Only what the holder itself said is repeated to it later; a
/// claim that was ended in its place is lost to it.
#[derive(Debug, Clone, Copy)]
pub(super) enum EndedBy {
    Holder { took_ms: u64 },
    Reaper,
}

/// How a task ends for good.
pub(super) struct Ending {
    pub(super) by: EndedBy,
    pub(super) step: TaskMove,
    pub(super) reason: Option<Reason>,
    pub(super) detail: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) output: Map<String, Value>,
    pub(super) layer: Option<Box<NewLayer>>,
}

/// An attempt that failed, as its holder saw it.
struct Failure<'a> {
    reason: Reason,
    detail: &'a str,
    exit_code: Option<i32>,
    took_ms: u64,
    /// Of one that says by itself that it failed.
    output: Map<String, Value>,
}

impl<F: Facts> Keeper<F> {
    /// Holders of claims say how their attempts ended; of a level, how all of it did.
    pub(crate) fn finish_all<'a>(
        &mut self,
        finished: impl IntoIterator<Item = &'a Finished>,
    ) -> Result<Vec<Fate>, F::Error> {
        let finished: Vec<&Finished> = finished.into_iter().collect();
        if self.is_leveled() {
            return self.finish_level(&finished);
        }
        finished.into_iter().map(|one| self.finish(one)).collect()
    }

    /// The holder of a claim says how its attempt ended.
    pub(super) fn finish(&mut self, finished: &Finished) -> Result<Fate, F::Error> {
        let claim = &self.seeded(finished.claim)?;
        let task = self.task(claim.position)?;
        if !task.is_held_by(claim) {
            let status = task.status;
            let fate = self.earlier_fate(claim)?;
            if fate == Fate::Repeated
                && has(Bug::FinishTwice)
                && let Some(settled) = Settled::of(status, None)
            {
                self.settle(claim.position, settled)?;
            }
            return Ok(fate);
        }
        let took_ms = u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX);
        let ending = |step| Ending {
            by: EndedBy::Holder { took_ms },
            step,
            reason: None,
            detail: None,
            exit_code: None,
            output: Map::new(),
            layer: finished.layer.clone(),
        };
        match &finished.outcome {
            Outcome::Succeeded { output } if self.says_it_failed(claim.position, output) => {
                let (exit_code, output) = (Some(0), output.clone());
                let failure =
                    Failure { reason: Reason::Error, detail: group::SAID, exit_code, took_ms, output };
                self.fail_or_retry(claim, failure, ending(TaskMove::Fail))?;
            }
            Outcome::Succeeded { output } => {
                let (exit_code, output) = (Some(0), output.clone());
                self.end(claim, Ending { exit_code, output, ..ending(TaskMove::Succeed) })?;
            }
            Outcome::Cached(hit) => {
                let start = self.unsaid_start(claim)?;
                self.say_start(claim, start)?;
                self.append(TaskCached {
                    step: self.name(claim.position),
                    attempt: claim.attempt,
                    key: hit.key.to_string(),
                    from: hit.from,
                    recorded_at: hit.recorded_at,
                });
                let (reason, detail) = (Some(Reason::Cached), Some(hit.detail()));
                let (exit_code, output) = (hit.exit_code, hit.output.clone());
                let ending = Ending { reason, detail, exit_code, output, ..ending(TaskMove::Succeed) };
                self.end(claim, ending)?;
            }
            Outcome::Canceled { reason } => {
                let detail = self.why_aborted(claim.position, *reason)?;
                self.end(claim, Ending { reason: Some(*reason), detail, ..ending(TaskMove::Cancel) })?;
            }
            Outcome::Failed { reason, detail, exit_code } => {
                let (exit_code, output) = (*exit_code, Map::new());
                let failure = Failure { reason: *reason, detail, exit_code, took_ms, output };
                self.fail_or_retry(claim, failure, ending(TaskMove::Fail))?;
            }
        }
        Ok(Fate::Recorded)
    }

    /// Whether the output of a group's member counts as a failure.
    pub(super) fn says_it_failed(&self, position: Position, output: &Map<String, Value>) -> bool {
        self.plan().group_of(position).is_some() && group::says_it_failed(output)
    }

    fn fail_or_retry(
        &mut self,
        claim: &ClaimRef,
        failure: Failure<'_>,
        ending: Ending,
    ) -> Result<(), F::Error> {
        match self.next_try(claim, &failure)? {
            Some(run_at) => self.retry_later(claim, &failure, run_at),
            None => {
                let (reason, detail) = (Some(failure.reason), Some(failure.detail.to_owned()));
                let (exit_code, output) = (failure.exit_code, failure.output);
                self.end(claim, Ending { reason, detail, exit_code, output, ..ending })
            }
        }
    }

    /// The claim as it was said, unless a seeded bug takes it for another one.
    fn seeded(&mut self, claim: ClaimRef) -> Result<ClaimRef, F::Error> {
        let task = self.task(claim.position)?;
        if let Some(session) = task.session
            && (has(Bug::NoFence) || (has(Bug::NoAttempt) && session == claim.session))
        {
            let (attempt, generation) = (task.attempt, task.generation());
            return Ok(ClaimRef { attempt, generation, session, ..claim });
        }
        Ok(claim)
    }

    /// When the task may be tried again; `None` when its failure is final.
    fn next_try(&mut self, claim: &ClaimRef, failure: &Failure<'_>) -> Result<Option<Millis>, F::Error> {
        let task = self.task(claim.position)?;
        let (retries, is_stopped) = (task.retries, task.stop.is_some());
        let step = self.step(claim.position);
        // A closing run starts nothing but clean-up, and a retry is a start. So is one of what was
        // asked to stop.
        let (closing, is_cleaning_up) = (self.run.closing, self.is_cleaning_up());
        let is_clean_up =
            |closing: Closing| step.is_clean_up() && closing.lets_start(step.when, is_cleaning_up);
        let may_start = !is_stopped && closing.is_none_or(is_clean_up);
        if !may_start {
            return Ok(None);
        }
        let delay = retry::next_delay(&step.retry, retries, failure.reason, failure.exit_code, dice(claim));
        Ok(delay.map(|delay| self.now.after(delay)))
    }

    /// A task ends for good. Its claim is current.
    pub(super) fn end(&mut self, claim: &ClaimRef, ending: Ending) -> Result<(), F::Error> {
        let status = self.task(claim.position)?.status.next(ending.step)?;
        let (outcome, took_ms, start) = match ending.by {
            EndedBy::Holder { took_ms } => (status.as_str(), Some(took_ms), self.unsaid_start(claim)?),
            EndedBy::Reaper => ("lost", None, None),
        };
        self.say_start(claim, start)?;
        let started_at = self.task(claim.position)?.started_at;
        self.keep_record(Record {
            reason: ending.reason,
            detail: ending.detail.clone(),
            exit_code: ending.exit_code,
            started_at,
            took_ms,
            ..Record::new(claim, outcome)
        })?;
        self.keep_layer(claim, status, ending.layer)?;
        let (now, output) = (self.now, stored(ending.output.clone()));
        self.change(claim.position, |task| {
            task.status = status;
            task.let_go();
            task.reason = ending.reason;
            task.detail.clone_from(&ending.detail);
            task.exit_code = ending.exit_code;
            task.output = output;
            task.took_ms = took_ms;
            task.finished_at = Some(now);
        })?;
        if status == TaskStatus::Succeeded {
            self.say_merged(claim.position, &ending.output);
        }
        self.append(TaskFinished {
            step: self.name(claim.position),
            attempt: claim.attempt,
            status,
            reason: ending.reason,
            detail: ending.detail,
            exit_code: ending.exit_code,
            took_ms,
            output: ending.output,
        });
        match Settled::of(status, ending.reason) {
            Some(settled) => self.settle(claim.position, settled),
            None => Ok(()),
        }
    }

    /// Keeps what an attempt changed in its view, with its end. Of a task that was canceled nothing
    /// counts.
    fn keep_layer(
        &mut self,
        claim: &ClaimRef,
        status: TaskStatus,
        layer: Option<Box<NewLayer>>,
    ) -> Result<(), F::Error> {
        let Some(layer) = layer.filter(|_| matches!(status, TaskStatus::Succeeded | TaskStatus::Failed))
        else {
            return Ok(());
        };
        let oversize = match &layer.content {
            LayerContent::Inline(_) | LayerContent::File => None,
            LayerContent::OnNode(oversize) => Some(oversize.clone()),
        };
        let node = if oversize.is_some() { self.facts.node(claim.session)? } else { None };
        let (position, attempt) = (claim.position, claim.attempt);
        self.layers.push(KeptLayer { position, attempt, node: node.clone(), layer });
        match (node, oversize) {
            (Some(node), Some(oversize)) => self.bind_to_files(claim.session, &node, (position, &oversize)),
            (_, _) => Ok(()),
        }
    }

    /// The end of an attempt that will be followed by another, not before `run_at`.
    fn retry_later(
        &mut self,
        claim: &ClaimRef,
        failure: &Failure<'_>,
        run_at: Millis,
    ) -> Result<(), F::Error> {
        let status = self.task(claim.position)?.status.next(TaskMove::Requeue)?;
        let start = self.unsaid_start(claim)?;
        self.say_start(claim, start)?;
        let started_at = self.task(claim.position)?.started_at;
        self.keep_record(Record {
            reason: Some(failure.reason),
            detail: Some(failure.detail.to_owned()),
            exit_code: failure.exit_code,
            started_at,
            took_ms: Some(failure.took_ms),
            ..Record::new(claim, TaskStatus::Failed.as_str())
        })?;
        self.change(claim.position, |task| {
            task.status = status;
            task.let_go();
            task.gate = Some(Gate::RunAt);
            task.run_at = Some(run_at);
            task.wake_at = Some(run_at);
            task.reason = Some(failure.reason);
            task.detail = Some(failure.detail.to_owned());
            task.exit_code = failure.exit_code;
            task.took_ms = Some(failure.took_ms);
            task.retries += 1;
        })?;
        self.append(TaskRetrying {
            step: self.name(claim.position),
            attempt: claim.attempt,
            reason: failure.reason,
            detail: Some(failure.detail.to_owned()),
            exit_code: failure.exit_code,
            took_ms: failure.took_ms,
            run_at,
        });
        self.examine_later(claim.position);
        Ok(())
    }

    /// The node on which an attempt started, where its end is the first that its holder says of it.
    fn unsaid_start(&mut self, claim: &ClaimRef) -> Result<Option<Arc<str>>, F::Error> {
        if self.task(claim.position)?.started_at.is_some() {
            Ok(None)
        } else {
            self.facts.node(claim.session)
        }
    }

    fn say_start(&mut self, claim: &ClaimRef, start: Option<Arc<str>>) -> Result<(), F::Error> {
        let now = self.now;
        let task = self.task(claim.position)?;
        let was_ahead = task.is_ahead && task.started_at.is_none();
        match start {
            Some(node) => {
                self.change(claim.position, |task| {
                    task.started_at = Some(now);
                    task.node = Some(Arc::clone(&node));
                })?;
                self.say_started(claim, was_ahead, &node)?;
            }
            None if was_ahead => self.admit(claim.position),
            None => {}
        }
        Ok(())
    }

    /// Keeps the record of an attempt that ends now.
    pub(super) fn keep_record(&mut self, mut record: Record) -> Result<(), F::Error> {
        if let Some(node) = self.facts.node(record.claim.session)? {
            record.node = node;
        }
        self.attempts.push(record);
        Ok(())
    }

    /// The claim is not current. Either it has written its end before, or it has lost the task.
    pub(super) fn earlier_fate(&mut self, claim: &ClaimRef) -> Result<Fate, F::Error> {
        let said_now = self.attempts.iter().find(|record| record.claim == *claim);
        let outcome = match said_now {
            Some(record) => Some(record.outcome.to_owned()),
            None => self.facts.outcome_of(claim)?,
        };
        Ok(match outcome.as_deref() {
            Some("succeeded" | "failed" | "canceled") => Fate::Repeated,
            Some(_) | None => Fate::ClaimLost,
        })
    }
}

/// A number from 0 up to 1 that is the same whenever this claim asks again.
fn dice(claim: &ClaimRef) -> f64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let position: Position = claim.position;
    let mut hasher = DefaultHasher::new();
    (claim.run, position, claim.attempt).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}
