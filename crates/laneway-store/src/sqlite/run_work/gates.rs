//! The gate keeper inside a transaction: a task that settles counts down, waiters are examined, and what
//! `gate::judge` says is written. Nothing else makes a task available.

use std::sync::Arc;

use laneway_core::definition::When;
use laneway_core::event::TaskAvailable;
use laneway_core::gate::{self, Counts, Facts, Gate, Needs, Verdict};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_torture::{Bug, has};
use rusqlite::{Row, params};

use super::{RunWork, Settled};
use crate::sqlite::read;
use crate::sqlite::txn::{Done, sql};

impl RunWork<'_, '_> {
    /// A task has ended. Its row and its event are written already.
    pub(in crate::sqlite) fn settle(&mut self, position: Position, settled: Settled) -> Done<()> {
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
        self.txn.connection.prepare_cached(sql!("needs_count"))?.execute(params![
            self.head.no,
            set,
            one(Settled::Succeeded),
            one(Settled::Failed),
            one(Settled::PassedOver)
        ])?;
        self.counts(set)
    }

    fn counts(&self, set: u32) -> Done<Counts> {
        let mut read = self.txn.connection.prepare_cached(sql!("needs_read"))?;
        Ok(read.query_row(params![self.head.no, set], counts)?)
    }

    /// Opens every gate that what happened has opened. First come those who waited for `max_parallel`, in
    /// their order; only then may somebody new take a free place.
    pub(super) fn pump(&mut self) -> Done<()> {
        self.fill()?;
        while let Some(position) = self.to_examine.pop_front() {
            self.examine(position)?;
        }
        Ok(())
    }

    fn fill(&mut self) -> Done<()> {
        // Whether anybody waits is asked first: to count who is live takes the longer, the more there are.
        let mut line = self.txn.connection.prepare_cached(sql!("promote_waiting"))?;
        if self.status != RunStatus::Running || !line.exists(params![self.head.no, 1])? {
            return Ok(());
        }
        let live = if has(Bug::OverGrant) { 0 } else { self.live()? };
        let room = self.head.head.max_parallel.saturating_sub(live);
        if room == 0 {
            return Ok(());
        }
        let next: Vec<Position> = line
            .query_map(params![self.head.no, room], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        for position in next {
            self.promote(position)?;
        }
        Ok(())
    }

    pub(super) fn live(&mut self) -> Done<u32> {
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
            ..Facts::open(self.txn.now)
        };
        match gate::judge(&facts) {
            Verdict::Open => self.promote(position),
            Verdict::Closed(wait) => self.close_gate(position, wait.gate, task.gate),
            Verdict::Skip(reason) => {
                let detail = self.why_skipped(position, reason)?;
                self.skip(position, reason, detail)
            }
            Verdict::Cancel(reason) => self.cancel_task(position, task.attempt, reason),
        }
    }

    fn counts_of(&self, position: Position) -> Done<Option<Counts>> {
        let Some(set) = self.plan().needs_set_of[position as usize] else { return Ok(None) };
        self.counts(set).map(Some)
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
