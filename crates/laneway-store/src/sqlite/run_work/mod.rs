//! One run inside one transaction: what happened to its tasks goes in, everything that follows comes out.
//!
//! ```text
//!   settle(task) ─▶ needs sets count down ─▶ waiters to examine ─▶ judge ─▶ promote | close | skip
//!                                                   ▲                                  │
//!                                                   └──────────── settle ◀─────────────┘
//! ```
//! Decisions are core's (`gate::judge`, `retry::next_delay`); these files read the facts they need and write what
//! they say, each change with its event: `gates.rs` opens and closes gates, `closing.rs` ends what will not start.
//! `conclude` must be called last: it writes the run's own row.

mod closing;
mod gates;

use std::collections::VecDeque;
use std::sync::Arc;

use laneway_core::definition::Step;
use laneway_core::event::{Closing, Fact, RunFinished, TaskAvailable};
use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::state::{RunMove, RunStatus, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{Row, params};

use crate::error::Error;
use crate::fence::ClaimRef;
use crate::sqlite::txn::{Done, Head, Txn, sql, unreadable};
use crate::sqlite::{quarantine, read};

/// How a task stands in the needs sets of its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Settled {
    Succeeded,
    Failed,
    /// Canceled, or skipped by Laneway.
    PassedOver,
}

impl Settled {
    /// Where a task that has ended is counted; `None` for one that has not.
    pub(in crate::sqlite) fn of(status: TaskStatus, reason: Option<Reason>) -> Option<Self> {
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
pub(in crate::sqlite) struct RunWork<'t, 'c> {
    pub(in crate::sqlite) txn: &'t Txn<'c>,
    pub(in crate::sqlite) head: Arc<Head>,
    pub(in crate::sqlite) status: RunStatus,
    pub(in crate::sqlite) reason: Option<String>,
    pub(in crate::sqlite) closing: Option<Closing>,
    pub(in crate::sqlite) owner: Option<String>,
    pub(in crate::sqlite) started_at: Option<i64>,
    pub(in crate::sqlite) finished_at: Option<i64>,
    pub(in crate::sqlite) deadline_at: Option<i64>,
    /// What of these was loaded: most verbs change none of them.
    loaded: Option<Phase>,
    last_event: u64,
    pub(in crate::sqlite) unsettled: u32,
    /// Counted once per transaction, then kept up to date.
    live: Option<u32>,
    /// Pending tasks whose gates may have changed.
    to_examine: VecDeque<Position>,
    /// Whether a place under `max_parallel` may be free, or may have somebody new to take it.
    may_fill: bool,
}

/// The columns of a run that change when it enters another phase, and not with every event.
type Phase =
    (RunStatus, Option<String>, Option<Closing>, Option<String>, Option<i64>, Option<i64>, Option<i64>);

/// What the row of a task says.
pub(in crate::sqlite) struct TaskFacts {
    pub(in crate::sqlite) status: TaskStatus,
    pub(in crate::sqlite) gate: Option<Gate>,
    pub(in crate::sqlite) run_at: Option<Millis>,
    pub(in crate::sqlite) attempt: u32,
    pub(in crate::sqlite) retries: u32,
    pub(in crate::sqlite) lost: u32,
    pub(in crate::sqlite) started_at: Option<i64>,
    pub(in crate::sqlite) session: Option<String>,
    /// Claimed before there was a place for it under `max_parallel`.
    pub(in crate::sqlite) is_ahead: bool,
    /// Why its holder is asked to stop it, if it is.
    pub(in crate::sqlite) stop: Option<Reason>,
}

impl TaskFacts {
    /// The fence, as far as a read can ask it; the write asks again in its own WHERE.
    pub(in crate::sqlite) fn is_held_by(&self, claim: &ClaimRef) -> bool {
        self.status == TaskStatus::Running
            && self.attempt == claim.attempt
            && self.session.as_deref() == Some(claim.session.to_string().as_str())
    }
}

impl<'t, 'c> RunWork<'t, 'c> {
    pub(in crate::sqlite) fn load(txn: &'t Txn<'c>, run: RunId) -> Done<Self> {
        let head = txn.head(run)?;
        let work = txn.connection.prepare_cached(sql!("run_load"))?.query_row([head.no], |row| {
            let (status, closing): (String, Option<String>) = (row.get(0)?, row.get(2)?);
            let is_set_aside: bool = row.get(9)?;
            Ok((
                is_set_aside,
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
                    loaded: None,
                    last_event: row.get(7)?,
                    unsettled: row.get(8)?,
                    live: None,
                    to_examine: VecDeque::new(),
                    may_fill: false,
                },
            ))
        })?;
        let (is_set_aside, status, closing, mut work) = work;
        if is_set_aside {
            return Err(quarantine::refusal(txn.connection, head.no, run)?.into());
        }
        work.status = RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?;
        work.closing = match closing {
            None => None,
            Some(word) => Some(Closing::parse(&word).ok_or_else(|| unreadable("closing of a run", &word))?),
        };
        work.loaded = Some(work.phase());
        Ok(work)
    }

    fn phase(&self) -> Phase {
        (
            self.status,
            self.reason.clone(),
            self.closing,
            self.owner.clone(),
            self.started_at,
            self.finished_at,
            self.deadline_at,
        )
    }

    pub(in crate::sqlite) fn plan(&self) -> &Plan {
        &self.head.head.plan
    }

    pub(in crate::sqlite) fn step(&self, position: Position) -> &Step {
        self.plan().step(position)
    }

    pub(in crate::sqlite) fn name(&self, position: Position) -> String {
        self.step(position).name.clone()
    }

    pub(in crate::sqlite) fn no_such_step(&self, step: &str) -> Error {
        read::no_such_step(self.plan(), self.head.head.run, step)
    }

    /// Numbers a fact and keeps it. The number is taken under the run's row, so there are no gaps.
    pub(in crate::sqlite) fn append(&mut self, fact: impl Into<Fact>) -> Done<()> {
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

    /// A task that was claimed ahead has its place now: the history hears of that before it hears of the claim.
    pub(in crate::sqlite) fn admit(&mut self, position: Position) -> Done<()> {
        self.append(TaskAvailable { step: self.name(position) })
    }

    pub(in crate::sqlite) fn task(&self, position: Position) -> Done<TaskFacts> {
        if position as usize >= self.plan().workflow.steps.len() {
            return Err(unreadable("position of a task", &position.to_string()).into());
        }
        self.txn
            .connection
            .prepare_cached(sql!("task_facts"))?
            .query_row(params![self.head.no, position], |row| Ok(task_facts(row)))?
    }

    /// Looks at a pending task's gates when the pump runs.
    pub(in crate::sqlite) fn examine_later(&mut self, position: Position) {
        self.may_fill = true;
        self.to_examine.push_back(position);
    }

    /// New tasks wait in line.
    pub(in crate::sqlite) fn fill_later(&mut self) {
        self.may_fill = true;
    }

    /// A task that held a place under `max_parallel` holds it no more.
    pub(in crate::sqlite) fn leave(&mut self) {
        self.may_fill = true;
        if let Some(live) = &mut self.live {
            *live = live.saturating_sub(1);
        }
    }

    /// Does everything that follows, ends the run if nothing is left, and writes its row.
    pub(in crate::sqlite) fn conclude(mut self) -> Done<()> {
        if self.may_fill {
            self.pump()?;
        }
        if self.unsettled == 0 && self.status == RunStatus::Running {
            self.finish()?;
        }
        if self.loaded.as_ref() == Some(&self.phase()) {
            let counts = params![self.head.no, self.last_event, self.unsettled];
            self.txn.connection.prepare_cached(sql!("run_count"))?.execute(counts)?;
            return Ok(());
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
        is_ahead: row.get(9)?,
        stop: match stop {
            None => None,
            Some(word) => Some(Reason::parse(&word).ok_or_else(|| unreadable("request to stop", &word))?),
        },
    })
}
