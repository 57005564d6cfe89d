//! `finish`: the heart. Checks the fence, keeps the attempt, appends events, decides on a retry, counts down
//! successors, opens gates, ends the run if it is done, and claims the next tasks, all in one transaction.

use std::sync::Arc;

use laneway_core::event::{TaskFinished, TaskRetrying, TaskStarted};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::retry;
use laneway_core::state::{TaskMove, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{OptionalExtension, params};
use serde_json::Map;

use super::claim::claim;
use super::promote;
use crate::fence::{ClaimRef, Fate};
use crate::model::{Answer, Ask, Finished, Outcome};
use crate::sqlite::read;
use crate::sqlite::run_work::{RunWork, Settled, TaskFacts};
use crate::sqlite::txn::{Done, Txn, sql};

pub(in crate::sqlite) fn finish(txn: &Txn<'_>, finished: &[Finished], ask: Option<&Ask>) -> Done<Answer> {
    let mut answer = Answer::default();
    for of_run in finished.chunk_by(|a, b| a.claim.run == b.claim.run) {
        let mut work = RunWork::load(txn, of_run[0].claim.run)?;
        for one in of_run {
            answer.fates.push(finish_one(&mut work, one)?);
        }
        answer.is_closing |= work.closing.is_some() || work.status.is_final();
        work.conclude()?;
    }
    if let Some(ask) = ask {
        answer.claims = claim(txn, ask)?;
        answer.stops = read::stops(txn.connection, ask.session, |no| txn.run_id(no))?;
    }
    answer.wake_at = promote::next(txn)?;
    Ok(answer)
}

fn finish_one(work: &mut RunWork<'_, '_>, finished: &Finished) -> Done<Fate> {
    let claim = &finished.claim;
    let task = work.task(claim.position)?;
    if !task.is_held_by(claim) {
        return earlier_fate(work, claim);
    }
    let took_ms = u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX);
    let by = EndedBy::Holder { took_ms };
    match &finished.outcome {
        Outcome::Succeeded { output } => {
            let ending = Ending {
                by,
                step: TaskMove::Succeed,
                reason: None,
                detail: None,
                exit_code: Some(0),
                output: output.clone(),
            };
            end(work, claim, &task, ending)
        }
        Outcome::Canceled { reason } => {
            let ending = Ending {
                by,
                step: TaskMove::Cancel,
                reason: Some(*reason),
                detail: None,
                exit_code: None,
                output: Map::new(),
            };
            end(work, claim, &task, ending)
        }
        Outcome::Failed { reason, detail, exit_code } => {
            let failure = Failure { reason: *reason, detail, exit_code: *exit_code, took_ms };
            match delay(work, claim, &task, &failure) {
                Some(run_at) => retry_later(work, claim, &task, &failure, run_at),
                None => {
                    let (reason, detail) = (Some(*reason), Some(detail.clone()));
                    let ending = Ending {
                        by,
                        step: TaskMove::Fail,
                        reason,
                        detail,
                        exit_code: *exit_code,
                        output: Map::new(),
                    };
                    end(work, claim, &task, ending)
                }
            }
        }
    }
}

struct Failure<'a> {
    reason: Reason,
    detail: &'a str,
    exit_code: Option<i32>,
    took_ms: u64,
}

/// When the task may be tried again; `None` when its failure is final.
fn delay(
    work: &RunWork<'_, '_>,
    claim: &ClaimRef,
    task: &TaskFacts,
    failure: &Failure<'_>,
) -> Option<Millis> {
    let step = work.step(claim.position);
    // A closing run starts nothing but clean-up, and a retry is a start.
    let may_start = work.closing.is_none_or(|closing| closing.lets_clean_up() && step.when.accepts_failure());
    if !may_start {
        return None;
    }
    let dice = dice(claim);
    let delay = retry::next_delay(&step.retry, task.retries, failure.reason, failure.exit_code, dice)?;
    Some(work.txn.now.after(delay))
}

/// A number from 0 up to 1 that is the same whenever this claim asks again.
fn dice(claim: &ClaimRef) -> f64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (claim.run, claim.position, claim.attempt).hash(&mut hasher);
    (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64
}

/// Who says that a task has ended. Only what the holder itself said is repeated to it later; a claim that was
/// ended in its place is lost to it.
#[derive(Clone, Copy)]
pub(super) enum EndedBy {
    Holder { took_ms: u64 },
    Reaper,
}

impl EndedBy {
    /// What the attempt's record says.
    fn outcome(self, status: TaskStatus) -> &'static str {
        match self {
            Self::Holder { .. } => status.as_str(),
            Self::Reaper => "lost",
        }
    }

    fn took_ms(self) -> Option<u64> {
        match self {
            Self::Holder { took_ms } => Some(took_ms),
            Self::Reaper => None,
        }
    }
}

/// How a task ends for good.
pub(super) struct Ending {
    pub(super) by: EndedBy,
    pub(super) step: TaskMove,
    pub(super) reason: Option<Reason>,
    pub(super) detail: Option<String>,
    pub(super) exit_code: Option<i32>,
    pub(super) output: Map<String, serde_json::Value>,
}

pub(super) fn end(
    work: &mut RunWork<'_, '_>,
    claim: &ClaimRef,
    task: &TaskFacts,
    ending: Ending,
) -> Done<Fate> {
    let status = task.status.next(ending.step)?;
    let start = match ending.by {
        EndedBy::Holder { .. } => unsaid_start(work, claim, task)?,
        EndedBy::Reaper => None,
    };
    let started_at = task.started_at.or(start.as_ref().map(|_| work.txn.now.0));
    let output =
        (!ending.output.is_empty()).then(|| serde_json::Value::Object(ending.output.clone()).to_string());
    let changed = work.txn.connection.prepare_cached(sql!("finish"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string(),
        status.as_str(),
        ending.reason.map(Reason::as_str),
        ending.detail,
        ending.exit_code,
        output,
        work.txn.now.0,
        ending.by.took_ms(),
        started_at,
        start
    ])?;
    if changed == 0 {
        return Ok(Fate::ClaimLost);
    }
    let record = Record {
        outcome: ending.by.outcome(status),
        reason: ending.reason,
        detail: ending.detail.as_deref(),
        exit_code: ending.exit_code,
        started_at,
        took_ms: ending.by.took_ms(),
    };
    keep_attempt(work, claim, &record)?;
    say_start(work, claim, task, start)?;
    work.append(TaskFinished {
        step: work.name(claim.position),
        attempt: claim.attempt,
        status,
        reason: ending.reason,
        detail: ending.detail,
        exit_code: ending.exit_code,
        took_ms: ending.by.took_ms(),
        output: ending.output,
    })?;
    work.leave();
    if let Some(settled) = Settled::of(status, ending.reason) {
        work.settle(claim.position, settled)?;
    }
    Ok(Fate::Recorded)
}

fn retry_later(
    work: &mut RunWork<'_, '_>,
    claim: &ClaimRef,
    task: &TaskFacts,
    failure: &Failure<'_>,
    run_at: Millis,
) -> Done<Fate> {
    task.status.next(TaskMove::Requeue)?;
    let start = unsaid_start(work, claim, task)?;
    let started_at = task.started_at.or(start.as_ref().map(|_| work.txn.now.0));
    let changed = work.txn.connection.prepare_cached(sql!("finish_retrying"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string(),
        failure.reason.as_str(),
        failure.detail,
        failure.exit_code,
        run_at.0,
        failure.took_ms,
        started_at,
        start
    ])?;
    if changed == 0 {
        return Ok(Fate::ClaimLost);
    }
    let record = Record {
        outcome: TaskStatus::Failed.as_str(),
        reason: Some(failure.reason),
        detail: Some(failure.detail),
        exit_code: failure.exit_code,
        started_at,
        took_ms: Some(failure.took_ms),
    };
    keep_attempt(work, claim, &record)?;
    say_start(work, claim, task, start)?;
    work.append(TaskRetrying {
        step: work.name(claim.position),
        attempt: claim.attempt,
        reason: failure.reason,
        detail: Some(failure.detail.to_owned()),
        exit_code: failure.exit_code,
        took_ms: failure.took_ms,
        run_at,
    })?;
    work.leave();
    work.examine_later(claim.position);
    Ok(Fate::Recorded)
}

/// The node on which an attempt started, where its end is the first that its holder says of it.
fn unsaid_start(work: &RunWork<'_, '_>, claim: &ClaimRef, task: &TaskFacts) -> Done<Option<Arc<str>>> {
    if task.started_at.is_some() { Ok(None) } else { work.txn.node(claim.session) }
}

fn say_start(
    work: &mut RunWork<'_, '_>,
    claim: &ClaimRef,
    task: &TaskFacts,
    start: Option<Arc<str>>,
) -> Done<()> {
    if task.is_ahead && task.started_at.is_none() {
        work.admit(claim.position)?;
    }
    if let Some(node) = start {
        let step = work.name(claim.position);
        work.append(TaskStarted { step, attempt: claim.attempt, node: node.to_string() })?;
    }
    Ok(())
}

/// What the record of an attempt says of its end.
pub(super) struct Record<'a> {
    pub(super) outcome: &'a str,
    pub(super) reason: Option<Reason>,
    pub(super) detail: Option<&'a str>,
    pub(super) exit_code: Option<i32>,
    pub(super) started_at: Option<i64>,
    pub(super) took_ms: Option<u64>,
}

pub(super) fn keep_attempt(work: &RunWork<'_, '_>, claim: &ClaimRef, record: &Record<'_>) -> Done<()> {
    let node = work.txn.node(claim.session)?;
    work.txn.connection.prepare_cached(sql!("attempt_ended"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string(),
        node.as_deref().unwrap_or_default(),
        record.outcome,
        record.reason.map(Reason::as_str),
        record.detail,
        record.exit_code,
        record.started_at,
        work.txn.now.0,
        record.took_ms
    ])?;
    Ok(())
}

/// The claim is not current. Either it has written its end before, or it has lost the task.
fn earlier_fate(work: &RunWork<'_, '_>, claim: &ClaimRef) -> Done<Fate> {
    let position: Position = claim.position;
    let outcome: Option<String> = work
        .txn
        .connection
        .prepare_cached(sql!("attempt_known"))?
        .query_row(params![work.head.no, position, claim.attempt, claim.session.to_string()], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(match outcome.as_deref() {
        Some("succeeded" | "failed" | "canceled") => Fate::Repeated,
        Some(_) | None => Fate::ClaimLost,
    })
}
