//! One run inside one transaction: what happened to its tasks goes in, everything that follows comes out.
//!
//! ```text
//!   settle(task) ─▶ needs sets count down ─▶ waiters to examine ─▶ judge ─▶ promote | close | skip
//!                                                   ▲                                  │
//!                                                   └──────────── settle ◀─────────────┘
//! ```
//! Decisions are core's (`gate::judge`, `retry::next_delay`); this file reads the facts they need and writes
//! what they say, each change with its event. `conclude` must be called last: it writes the run's own row.

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::definition::{OnFailure, Step, When};
use laneway_core::event::{Closing, Fact, RunFinished, RunHalted, TaskAvailable, TaskFinished, TaskSkipped};
use laneway_core::gate::{self, Counts, Facts, Gate, Needs, Verdict};
use laneway_core::id::RunId;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::state::{RunMove, RunStatus, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{Row, params};
use serde_json::Map;

use super::read;
use super::txn::{Done, Head, Txn, sql, unreadable};
use crate::error::Error;
use crate::fence::ClaimRef;

/// How a task stands in the needs sets of its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    Succeeded,
    Failed,
    /// Canceled, or skipped by Laneway.
    PassedOver,
}

impl Settled {
    /// Where a task that has ended is counted; `None` for one that has not.
    pub(super) fn of(status: TaskStatus, reason: Option<Reason>) -> Option<Self> {
        match (status, reason) {
            (TaskStatus::Succeeded, _) | (TaskStatus::Skipped, Some(Reason::SkippedByPerson)) => {
                Some(Self::Succeeded)
            }
            (TaskStatus::Failed, _) => Some(Self::Failed),
            (TaskStatus::Canceled | TaskStatus::Skipped, _) => Some(Self::PassedOver),
            (TaskStatus::Pending | TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked, _) => {
                None
            }
        }
    }
}

/// A run, loaded for change.
pub(super) struct RunWork<'t, 'c> {
    pub(super) txn: &'t Txn<'c>,
    pub(super) head: Arc<Head>,
    pub(super) status: RunStatus,
    pub(super) reason: Option<String>,
    pub(super) closing: Option<Closing>,
    pub(super) owner: Option<String>,
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: Option<i64>,
    pub(super) deadline_at: Option<i64>,
    last_event: u64,
    pub(super) unsettled: u32,
    /// Counted once per transaction, then kept up to date.
    live: Option<u32>,
    /// Pending tasks whose gates may have changed.
    to_examine: VecDeque<Position>,
    /// Whether a place under `max_parallel` may be free, or may have somebody new to take it.
    may_fill: bool,
}

/// What the row of a task says.
pub(super) struct TaskFacts {
    pub(super) status: TaskStatus,
    pub(super) gate: Option<Gate>,
    pub(super) run_at: Option<Millis>,
    pub(super) attempt: u32,
    pub(super) retries: u32,
    pub(super) lost: u32,
    pub(super) started_at: Option<i64>,
    pub(super) session: Option<String>,
    /// Why its holder is asked to stop it, if it is.
    pub(super) stop: Option<Reason>,
}

impl TaskFacts {
    /// The fence, as far as a read can ask it; the write asks again in its own WHERE.
    pub(super) fn is_held_by(&self, claim: &ClaimRef) -> bool {
        self.status == TaskStatus::Running
            && self.attempt == claim.attempt
            && self.session.as_deref() == Some(claim.session.to_string().as_str())
    }
}

impl<'t, 'c> RunWork<'t, 'c> {
    pub(super) fn load(txn: &'t Txn<'c>, run: RunId) -> Done<Self> {
        let head = txn.head(run)?;
        let work = txn.connection.prepare_cached(sql!("run_load"))?.query_row([head.no], |row| {
            let (status, closing): (String, Option<String>) = (row.get(0)?, row.get(2)?);
            Ok((
                status,
                closing,
                Self {
                    txn,
                    head: Arc::clone(&head),
                    status: RunStatus::Queued,
                    reason: row.get(1)?,
                    closing: None,
                    owner: row.get(3)?,
                    started_at: row.get(4)?,
                    finished_at: row.get(5)?,
                    deadline_at: row.get(6)?,
                    last_event: row.get(7)?,
                    unsettled: row.get(8)?,
                    live: None,
                    to_examine: VecDeque::new(),
                    may_fill: false,
                },
            ))
        })?;
        let (status, closing, mut work) = work;
        work.status = RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?;
        work.closing = match closing {
            None => None,
            Some(word) => Some(Closing::parse(&word).ok_or_else(|| unreadable("closing of a run", &word))?),
        };
        Ok(work)
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.head.head.plan
    }

    pub(super) fn step(&self, position: Position) -> &Step {
        self.plan().step(position)
    }

    pub(super) fn name(&self, position: Position) -> String {
        self.step(position).name.clone()
    }

    pub(super) fn no_such_step(&self, step: &str) -> Error {
        read::no_such_step(self.plan(), self.head.head.run, step)
    }

    /// Numbers a fact and keeps it. The number is taken under the run's row, so there are no gaps.
    pub(super) fn append(&mut self, fact: impl Into<Fact>) -> Done<()> {
        let fact = fact.into();
        self.last_event += 1;
        self.txn.connection.prepare_cached(sql!("event_append"))?.execute(params![
            self.head.no,
            self.last_event,
            self.txn.now.0,
            fact.name(),
            fact.version(),
            fact.body_text()
        ])?;
        Ok(())
    }

    pub(super) fn task(&self, position: Position) -> Done<TaskFacts> {
        self.txn
            .connection
            .prepare_cached(sql!("task_facts"))?
            .query_row(params![self.head.no, position], |row| Ok(task_facts(row)))?
    }

    /// Looks at a pending task's gates when the pump runs.
    pub(super) fn examine_later(&mut self, position: Position) {
        self.may_fill = true;
        self.to_examine.push_back(position);
    }

    /// New tasks wait in line.
    pub(super) fn fill_later(&mut self) {
        self.may_fill = true;
    }

    /// A task that held a place under `max_parallel` holds it no more.
    pub(super) fn leave(&mut self) {
        self.may_fill = true;
        if let Some(live) = &mut self.live {
            *live = live.saturating_sub(1);
        }
    }

    /// A task has ended. Its row and its event are written already.
    pub(super) fn settle(&mut self, position: Position, settled: Settled) -> Done<()> {
        self.unsettled = self.unsettled.saturating_sub(1);
        if settled == Settled::Failed {
            self.close_after_failure(position)?;
        }
        let head = Arc::clone(&self.head);
        for set in &head.head.plan.counted_in[position as usize] {
            let after = self.count_down(*set, settled)?;
            let before = before(after, settled);
            // Waiters are looked at only when the outcome of their rule has just become certain.
            let decided = |when: When| {
                gate::needs(when, before) == Needs::Wait && gate::needs(when, after) != Needs::Wait
            };
            if !WHENS.into_iter().any(decided) {
                continue;
            }
            for waiter in &head.head.plan.needs_sets[*set as usize].waiters {
                if decided(self.step(*waiter).when) {
                    self.examine_later(*waiter);
                }
            }
        }
        Ok(())
    }

    fn count_down(&self, set: u32, settled: Settled) -> Done<Counts> {
        let one = |kind: Settled| u32::from(settled == kind);
        Ok(self.txn.connection.prepare_cached(sql!("needs_count"))?.query_row(
            params![
                self.head.no,
                set,
                one(Settled::Succeeded),
                one(Settled::Failed),
                one(Settled::PassedOver)
            ],
            counts,
        )?)
    }

    /// `on_failure`: decides what a failed task means for the rest of the run.
    fn close_after_failure(&mut self, position: Position) -> Done<()> {
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
    pub(super) fn end_unstarted(&mut self) -> Done<()> {
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

    /// What the run's closing alone says of a task that has not started; `None` where it says nothing.
    fn verdict_of_closing(&self, position: Position) -> Option<Verdict> {
        let facts = Facts {
            when: self.step(position).when,
            counts: None,
            closing: self.closing,
            condition: None,
            run_at: None,
            now: self.txn.now,
            live: 0,
            max_parallel: 1,
        };
        match gate::judge(&facts) {
            Verdict::Open | Verdict::Closed(_) => None,
            verdict @ (Verdict::Skip(_) | Verdict::Cancel(_)) => Some(verdict),
        }
    }

    /// Asks the holders of what runs to stop it. They finish it, or the reaper does.
    pub(super) fn stop_running(&self, closing: Closing) -> Done<()> {
        self.txn
            .connection
            .prepare_cached(sql!("stop_running"))?
            .execute(params![self.head.no, closing.as_str()])?;
        Ok(())
    }

    pub(super) fn skip(&mut self, position: Position, why: Reason, detail: Option<String>) -> Done<()> {
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

    fn cancel_task(&mut self, position: Position, attempt: u32, reason: Reason) -> Done<()> {
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

    /// Opens every gate that what happened has opened. First come those who waited for `max_parallel`, in
    /// their order; only then may somebody new take a free place.
    fn pump(&mut self) -> Done<()> {
        self.fill()?;
        while let Some(position) = self.to_examine.pop_front() {
            self.examine(position)?;
        }
        Ok(())
    }

    fn fill(&mut self) -> Done<()> {
        let room = self.head.head.max_parallel.saturating_sub(self.live()?);
        if room == 0 || self.status != RunStatus::Running {
            return Ok(());
        }
        let next: Vec<Position> = self
            .txn
            .connection
            .prepare_cached(sql!("promote_waiting"))?
            .query_map(params![self.head.no, room], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for position in next {
            self.promote(position)?;
        }
        Ok(())
    }

    fn live(&mut self) -> Done<u32> {
        if let Some(live) = self.live {
            return Ok(live);
        }
        let live =
            self.txn.connection.prepare_cached(sql!("live"))?.query_row([self.head.no], |row| row.get(0))?;
        self.live = Some(live);
        Ok(live)
    }

    fn examine(&mut self, position: Position) -> Done<()> {
        let task = self.task(position)?;
        if task.status != TaskStatus::Pending {
            return Ok(());
        }
        let step = self.step(position);
        let when = step.when;
        let counts = self.counts_of(position)?;
        let is_met = counts.is_none_or(|counts| gate::needs(when, counts) == Needs::Met);
        // Asked once, when the needs are met: behind that gate the answer is known to be yes.
        let condition = match (&step.condition, task.gate) {
            (Some(condition), Some(Gate::Needs)) if is_met => {
                let steps: Vec<&str> = condition.steps_read().collect();
                let scope = read::scope(self.txn.connection, &self.head, &steps)?;
                // What cannot be evaluated opens: its holder evaluates it again and fails the attempt with the
                // reason in words, which a gate could not tell anybody.
                condition.holds(&scope).ok()
            }
            (Some(_) | None, _) => None,
        };
        let facts = Facts {
            when,
            counts,
            closing: self.closing,
            condition,
            run_at: task.run_at,
            now: self.txn.now,
            live: self.live()?,
            max_parallel: self.head.head.max_parallel,
        };
        match gate::judge(&facts) {
            Verdict::Open => self.promote(position),
            Verdict::Closed(gate) => self.close_gate(position, gate, task.gate),
            Verdict::Skip(reason) => {
                let detail = self.why_skipped(position, reason)?;
                self.skip(position, reason, detail)
            }
            Verdict::Cancel(reason) => self.cancel_task(position, task.attempt, reason),
        }
    }

    fn counts_of(&self, position: Position) -> Done<Option<Counts>> {
        let Some(set) = self.plan().needs_set_of[position as usize] else { return Ok(None) };
        let counts = self
            .txn
            .connection
            .prepare_cached(sql!("needs_read"))?
            .query_row(params![self.head.no, set], counts)?;
        Ok(Some(counts))
    }

    fn close_gate(&self, position: Position, gate: Gate, before: Option<Gate>) -> Done<()> {
        if before == Some(gate) {
            return Ok(());
        }
        let rank = (gate == Gate::MaxParallel).then_some(self.txn.now.0);
        self.txn.connection.prepare_cached(sql!("gate_close"))?.execute(params![
            self.head.no,
            position,
            gate.as_str(),
            rank
        ])?;
        Ok(())
    }

    /// Names the predecessors that stand in the way, for `upstream`.
    fn why_skipped(&self, position: Position, reason: Reason) -> Done<Option<String>> {
        if reason != Reason::Upstream {
            return Ok(None);
        }
        let mut against = Vec::new();
        for need in &self.plan().needs[position as usize] {
            let task = self.task(*need)?;
            if task.status.is_final() && task.status != TaskStatus::Succeeded {
                against.push(format!("{} was {}", self.step(*need).name, task.status));
            }
            if against.len() == 3 {
                break;
            }
        }
        Ok(if against.is_empty() { None } else { Some(against.join(", ").replace("was failed", "failed")) })
    }

    fn promote(&mut self, position: Position) -> Done<()> {
        let live = self.live()?;
        self.txn.connection.prepare_cached(sql!("promote"))?.execute(params![
            self.head.no,
            position,
            self.txn.now.0
        ])?;
        self.live = Some(live + 1);
        self.append(TaskAvailable { step: self.name(position) })
    }

    /// Does everything that follows, ends the run if nothing is left, and writes its row.
    pub(super) fn conclude(mut self) -> Done<()> {
        if self.may_fill {
            self.live()?;
            self.pump()?;
        }
        if self.unsettled == 0 && self.status == RunStatus::Running {
            self.finish()?;
        }
        self.txn.connection.prepare_cached(sql!("run_save"))?.execute(params![
            self.head.no,
            self.status.as_str(),
            self.reason,
            self.closing.map(Closing::as_str),
            self.owner,
            self.started_at,
            self.finished_at,
            self.deadline_at,
            self.last_event,
            self.unsettled
        ])?;
        Ok(())
    }

    fn finish(&mut self) -> Done<()> {
        let failure = self.first_failure()?;
        let (step, reason) = match (self.closing, failure) {
            (Some(Closing::Canceled), _) => (RunMove::Cancel, self.reason.take()),
            (Some(Closing::RunTimeout), _) => (RunMove::Fail, self.reason.take()),
            (Some(Closing::Halted | Closing::Aborted) | None, Some(failure)) => {
                (RunMove::Fail, Some(failure))
            }
            (Some(Closing::Halted | Closing::Aborted) | None, None) => (RunMove::Succeed, None),
        };
        self.status = self.status.next(step)?;
        self.reason.clone_from(&reason);
        self.finished_at = Some(self.txn.now.0);
        self.deadline_at = None;
        self.owner = None;
        self.append(RunFinished { status: self.status, reason })
    }

    /// Which step failed and why, in one line.
    fn first_failure(&self) -> Done<Option<String>> {
        let row: Option<(Position, Option<String>, Option<String>, u64)> =
            rusqlite::OptionalExtension::optional(
                self.txn.connection.prepare_cached(sql!("run_failures"))?.query_row([self.head.no], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                }),
            )?;
        Ok(row.map(|(position, reason, detail, count)| {
            let why = detail.or(reason).unwrap_or_default();
            let more = if count > 1 { format!(" (and {} more failed)", count - 1) } else { String::new() };
            format!("{} failed: {why}{more}", self.step(position).name)
        }))
    }
}

const WHENS: [When; 6] =
    [When::AllSucceeded, When::AllDone, When::AllFailed, When::OneSucceeded, When::OneFailed, When::Always];

/// The counts as they were before one more was counted.
fn before(after: Counts, settled: Settled) -> Counts {
    let one = |kind: Settled| u32::from(settled == kind);
    Counts {
        unsettled: after.unsettled + 1,
        succeeded: after.succeeded - one(Settled::Succeeded),
        failed: after.failed - one(Settled::Failed),
        passed_over: after.passed_over - one(Settled::PassedOver),
    }
}

fn counts(row: &Row<'_>) -> rusqlite::Result<Counts> {
    Ok(Counts {
        unsettled: row.get(0)?,
        succeeded: row.get(1)?,
        failed: row.get(2)?,
        passed_over: row.get(3)?,
    })
}

fn task_facts(row: &Row<'_>) -> Done<TaskFacts> {
    let status: String = row.get(0)?;
    let gate: Option<String> = row.get(1)?;
    let run_at: Option<i64> = row.get(2)?;
    let stop: Option<String> = row.get(8)?;
    Ok(TaskFacts {
        status: TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?,
        gate: match gate {
            None => None,
            Some(word) => Some(Gate::parse(&word).ok_or_else(|| unreadable("gate of a task", &word))?),
        },
        run_at: run_at.map(Millis),
        attempt: row.get(3)?,
        retries: row.get(4)?,
        lost: row.get(5)?,
        started_at: row.get(6)?,
        session: row.get(7)?,
        stop: match stop {
            None => None,
            Some(word) => Some(Reason::parse(&word).ok_or_else(|| unreadable("request to stop", &word))?),
        },
    })
}
