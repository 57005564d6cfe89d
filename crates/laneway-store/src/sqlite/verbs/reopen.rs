//! `retry` and `skip`: an ended run goes on. People do this rarely, so the countdowns are simply made anew.

use std::collections::BTreeSet;

use laneway_core::event::{Reopening, RunReopened, TaskSkipped};
use laneway_core::gate::Counts;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunMove, RunStatus, TaskMove, TaskStatus};
use rusqlite::params;

use crate::error::Error;
use crate::sqlite::run_work::{RunWork, Settled};
use crate::sqlite::txn::{Done, Txn, sql, unreadable};

/// Runs what did not succeed, or `from`, and everything behind it, again.
pub(in crate::sqlite) fn retry(txn: &Txn<'_>, run: RunId, from: Option<&str>, by: &str) -> Done<Vec<String>> {
    let work = ended(txn, run)?;
    let ends = ends(&work)?;
    let first: Vec<Position> = match from {
        Some(step) => {
            let mut first = vec![find(&work, step)?];
            // Branches beside it that were halted or canceled with the run are not left hanging.
            first.extend(positions(&ends, End::fell_with_the_run));
            first
        }
        // What a person skipped stays so; `--from` that step undoes it.
        None => positions(&ends, |end| end.settled != Some(Settled::Succeeded)),
    };
    if first.is_empty() {
        return Err(Error::NothingToRetry { run }.into());
    }
    let again = with_dependents(&work, first);
    reopen(work, ends, &again, Reopening::Retry, by, None)
}

/// Marks a failed step as passed by a person; what was skipped because of it runs, and everything behind that.
/// A canceled run stays canceled: only a retry brings it back.
pub(in crate::sqlite) fn skip(txn: &Txn<'_>, run: RunId, step: &str, by: &str) -> Done<Vec<String>> {
    let work = ended(txn, run)?;
    if work.status == RunStatus::Canceled {
        return Err(Error::Ended { run, status: work.status }.into());
    }
    let position = find(&work, step)?;
    let ends = ends(&work)?;
    let status = ends[position as usize].status;
    if status != TaskStatus::Failed {
        return Err(Error::NotFailed { run, step: step.to_owned(), status }.into());
    }
    let mut first = positions(&ends, End::fell_with_the_run);
    let behind = work.plan().dependents_of([position]);
    first.extend(behind.iter().filter(|behind| ends[**behind as usize].reason == Some(Reason::Upstream)));
    let mut again = with_dependents(&work, first);
    again.remove(&position);
    reopen(work, ends, &again, Reopening::Skip, by, Some(position))
}

struct End {
    status: TaskStatus,
    reason: Option<Reason>,
    settled: Option<Settled>,
}

impl End {
    /// It did not run, or not to its end, because of what happened to the run as a whole.
    fn fell_with_the_run(&self) -> bool {
        let is_so = matches!(
            self.reason,
            Some(Reason::Halted | Reason::Aborted | Reason::Canceled | Reason::RunTimeout)
        );
        is_so && self.settled == Some(Settled::PassedOver)
    }
}

/// Steps and everything behind them.
fn with_dependents(work: &RunWork<'_, '_>, first: Vec<Position>) -> BTreeSet<Position> {
    let mut all: BTreeSet<Position> = work.plan().dependents_of(first.iter().copied()).into_iter().collect();
    all.extend(first);
    all
}

fn ended<'t, 'c>(txn: &'t Txn<'c>, run: RunId) -> Done<RunWork<'t, 'c>> {
    let work = RunWork::load(txn, run)?;
    if !work.status.is_final() {
        return Err(Error::NotEnded { run, status: work.status }.into());
    }
    Ok(work)
}

fn find(work: &RunWork<'_, '_>, step: &str) -> Done<Position> {
    work.plan().position(step).ok_or_else(|| work.no_such_step(step).into())
}

fn positions(ends: &[End], wanted: impl Fn(&End) -> bool) -> Vec<Position> {
    ends.iter().enumerate().filter(|(_, end)| wanted(end)).map(|(position, _)| position as Position).collect()
}

fn ends(work: &RunWork<'_, '_>) -> Done<Vec<End>> {
    let rows: Vec<(String, Option<String>)> = work
        .txn
        .connection
        .prepare_cached(sql!("tasks_ended"))?
        .query_map([work.head.no], |row| Ok((row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    rows.into_iter()
        .map(|(status, reason)| {
            let status = TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?;
            let reason = reason.as_deref().and_then(Reason::parse);
            Ok(End { status, reason, settled: Settled::of(status, reason) })
        })
        .collect()
}

fn reopen(
    mut work: RunWork<'_, '_>,
    mut ends: Vec<End>,
    again: &BTreeSet<Position>,
    why: Reopening,
    by: &str,
    pardoned: Option<Position>,
) -> Done<Vec<String>> {
    let steps: Vec<String> = again.iter().map(|position| work.name(*position)).collect();
    work.status = work.status.next(RunMove::Reopen)?;
    work.reason = None;
    work.closing = None;
    work.finished_at = None;
    work.deadline_at = work.plan().workflow.timeout.map(|timeout| work.txn.now.after(timeout).0);
    work.append(RunReopened { why, by: by.to_owned(), tasks: steps.clone() })?;
    for position in again {
        let end = &mut ends[*position as usize];
        end.status = end.status.next(TaskMove::Reopen)?;
        end.settled = None;
        work.txn.connection.prepare_cached(sql!("reopen"))?.execute(params![work.head.no, position])?;
    }
    if let Some(position) = pardoned {
        pardon(&mut work, &mut ends[position as usize], position, by)?;
    }
    work.unsettled = ends.iter().filter(|end| end.settled.is_none()).count() as u32;
    count_anew(&work, &ends)?;
    for position in again {
        work.examine_later(*position);
    }
    work.conclude()?;
    Ok(steps)
}

fn pardon(work: &mut RunWork<'_, '_>, end: &mut End, position: Position, by: &str) -> Done<()> {
    end.status = end.status.next(TaskMove::Pardon)?;
    end.settled = Some(Settled::Succeeded);
    let detail = format!("skipped by {by}");
    work.txn.connection.prepare_cached(sql!("pardon"))?.execute(params![
        work.head.no,
        position,
        detail,
        work.txn.now.0
    ])?;
    let step = work.name(position);
    work.append(TaskSkipped { step, why: Reason::SkippedByPerson, detail: Some(detail) })
}

fn count_anew(work: &RunWork<'_, '_>, ends: &[End]) -> Done<()> {
    let mut write = work.txn.connection.prepare_cached(sql!("needs_write"))?;
    for (set, needs) in work.plan().needs_sets.iter().enumerate() {
        let mut counts = Counts::default();
        for position in &needs.needs {
            match ends[*position as usize].settled {
                None => counts.unsettled += 1,
                Some(Settled::Succeeded) => counts.succeeded += 1,
                Some(Settled::Failed) => counts.failed += 1,
                Some(Settled::PassedOver) => counts.passed_over += 1,
            }
        }
        write.execute(params![
            work.head.no,
            set as i64,
            counts.unsettled,
            counts.succeeded,
            counts.failed,
            counts.passed_over
        ])?;
    }
    Ok(())
}
