//! An ended run goes on: `retry` and `skip`. People do this rarely, so the countdowns are simply
//! made anew.

use std::collections::BTreeSet;
use std::sync::Arc;

use laneway_core::event::{Reopening, RunReopened, TaskSkipped};
use laneway_core::gate::{Counts, Gate};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunMove, RunStatus, TaskMove, TaskStatus};
use laneway_core::wait::Waiting;

use super::{Facts, Keeper, Kept, Pause, Settled, TaskRow, no_such_step};
use crate::error::Error;
use crate::model::Reopen;

impl<F: Facts> Keeper<F> {
    /// Runs what did not succeed, or `from`, and everything behind it, again. Gives the names of
    /// those steps. `pause` is that of its workflow.
    pub(crate) fn retry(
        &mut self,
        Reopen { from, seen }: Reopen<'_>,
        by: &str,
        pause: Option<Pause>,
    ) -> Result<Vec<String>, F::Error> {
        self.load_ended()?;
        let last = self.run.last_event;
        if let Some(seen) = seen.filter(|seen| *seen != last) {
            return Err(Error::WentOn { run: self.head.run, seen, last }.into());
        }
        let first: Vec<Position> = match from {
            Some(step) => {
                let from = self.find_known(step)?;
                let mut first = vec![from];
                first.extend(self.failed_beside(from));
                // Branches beside it that were halted or canceled with the run are not left
                // hanging; and no level counts in which something failed.
                let is_leveled = self.is_leveled();
                let falls = |task: &TaskRow| {
                    fell_with_the_run(task) || is_leveled && settled(task) == Some(Settled::Failed)
                };
                first.extend(self.fallen(falls, &first));
                first
            }
            // What a person skipped stays so; `--from` that step undoes it.
            None => self.open_positions(|task| settled(task) != Some(Settled::Succeeded)),
        };
        if first.is_empty() {
            return Err(Error::NothingToRetry { run: self.head.run }.into());
        }
        let anew = from.and_then(|step| self.plan().position(step));
        let again = self.with_dependents(first);
        self.reopen(again, (Reopening::Retry, anew, None), by, pause)
    }

    /// Marks a failed step as passed by a person; what was skipped because of it runs, and
    /// everything behind that. A canceled run stays canceled: only a retry brings it back.
    pub(crate) fn skip_by_person(
        &mut self,
        step: &str,
        by: &str,
        pause: Option<Pause>,
    ) -> Result<Vec<String>, F::Error> {
        self.load_ended()?;
        let run = self.head.run;
        if self.run.status == RunStatus::Canceled {
            return Err(Error::Ended { run, status: self.run.status }.into());
        }
        let position = self.find_known(step)?;
        let status = self.task(position)?.status;
        if status != TaskStatus::Failed {
            return Err(Error::NotFailed { run, step: step.to_owned(), status }.into());
        }
        let mut first = self.fallen(fell_with_the_run, &[position]);
        // The items of a step that is let pass are let pass with it.
        let items = self.plan().items_of(position);
        first.retain(|position| !items.contains(position));
        for behind in self.plan().dependents_of([position]) {
            if self.task(behind)?.reason == Some(Reason::Upstream) {
                first.push(behind);
            }
        }
        let mut again = self.with_dependents(first);
        again.remove(&position);
        // Whether a step has failed without this item is for that to say.
        again.extend(self.plan().item(position).map(|(step, _)| step));
        self.reopen(again, (Reopening::Skip, None, Some(position)), by, pause)
    }

    fn load_ended(&mut self) -> Result<(), F::Error> {
        if !self.run.status.is_final() {
            return Err(Error::NotEnded { run: self.head.run, status: self.run.status }.into());
        }
        let rows = self.facts.all()?;
        self.keep_all(rows);
        Ok(())
    }

    pub(super) fn find(&self, step: &str) -> Result<Position, F::Error> {
        self.plan().position(step).ok_or_else(|| no_such_step(&self.head, step).into())
    }

    /// The same, of an item that is there. All tasks are known.
    fn find_known(&self, step: &str) -> Result<Position, F::Error> {
        let position = self.find(step)?;
        let is_there = self.tasks.contains_key(&position);
        if is_there { Ok(position) } else { Err(no_such_step(&self.head, step).into()) }
    }

    fn positions(&self, wanted: impl Fn(&TaskRow) -> bool) -> Vec<Position> {
        let wanted = self.tasks.iter().filter(|(_, kept)| wanted(&kept.row));
        wanted.map(|(position, _)| *position).collect()
    }

    /// The same, without items of steps that count as succeeded: what became of these is settled
    /// with their step.
    fn open_positions(&self, wanted: impl Fn(&TaskRow) -> bool) -> Vec<Position> {
        let is_over = |step: Position| {
            let step = self.tasks.get(&step);
            step.is_some_and(|kept| settled(&kept.row) == Some(Settled::Succeeded))
        };
        let mut positions = self.positions(wanted);
        positions.retain(|position| self.plan().item(*position).is_none_or(|(step, _)| !is_over(step)));
        positions
    }

    /// Items of the same step that failed, where one failure ends the others: no item would get far
    /// without them.
    fn failed_beside(&self, position: Position) -> Vec<Position> {
        let step = self.plan().item(position).map(|(step, _)| step).filter(|step| self.is_fail_fast(*step));
        let items = step.map_or(0..0, |step| self.plan().items_of(step));
        let failed = |(_, kept): &(&Position, &Kept)| settled(&kept.row) == Some(Settled::Failed);
        self.tasks.range(items).filter(failed).map(|(position, _)| *position).collect()
    }

    /// What fell with the run. Not the items that `fail_fast` ended: these fell with their step,
    /// and stay as they are while one of its items has failed that neither falls nor is among
    /// `others`.
    fn fallen(&self, falls: impl Fn(&TaskRow) -> bool, others: &[Position]) -> Vec<Position> {
        let stays_failed = |(position, kept): (&Position, &Kept)| {
            let has_failed = settled(&kept.row) == Some(Settled::Failed);
            let (step, _) = self.plan().item(*position).filter(|_| has_failed)?;
            (self.is_fail_fast(step) && !falls(&kept.row) && !others.contains(position)).then_some(step)
        };
        let over: BTreeSet<Position> = self.tasks.iter().filter_map(stays_failed).collect();
        let mut fallen = self.open_positions(&falls);
        fallen.retain(|position| self.plan().item(*position).is_none_or(|(step, _)| !over.contains(&step)));
        fallen
    }

    /// Steps and everything behind them.
    fn with_dependents(&self, first: Vec<Position>) -> BTreeSet<Position> {
        let mut all: BTreeSet<Position> =
            self.plan().dependents_of(first.iter().copied()).into_iter().collect();
        // With an item its step goes on.
        all.extend(first.iter().filter_map(|position| self.plan().base(*position)));
        all.extend(first);
        all
    }

    /// Steps of these whose items run again as far as they are among these, and those whose list is
    /// made anew: what it is made of may change, or somebody wants all of it again.
    fn growing(
        &mut self,
        again: &BTreeSet<Position>,
        anew: Option<Position>,
    ) -> Result<(Vec<Position>, Vec<Position>), F::Error> {
        let head = Arc::clone(&self.head);
        let (mut resumed, mut removed) = (Vec::new(), Vec::new());
        for step in again.iter().copied().filter(|step| head.plan.is_growing(*step)) {
            let growth = self.task(step)?.growth.as_deref();
            // What failed before there were items has none to go on with.
            let has_items = growth.is_some_and(|growth| growth.items.is_some_and(|items| items.added > 0));
            let may_change = head.plan.needs[step as usize].iter().any(|need| again.contains(need));
            match has_items && !may_change && anew != Some(step) {
                true => resumed.push(step),
                false => removed.push(step),
            }
        }
        Ok((resumed, removed))
    }

    /// Tasks of these that go on with the run that they had started: what did not succeed of it
    /// runs again, and no more. Not where what it is given may change, or somebody wants all of it
    /// again.
    fn with_child(
        &mut self,
        again: &BTreeSet<Position>,
        anew: Option<Position>,
    ) -> Result<BTreeSet<Position>, F::Error> {
        let head = Arc::clone(&self.head);
        let mut kept = BTreeSet::new();
        for position in again.iter().copied() {
            let needs = head.plan.base(position).map(|step| &head.plan.needs[step as usize]);
            let may_change = needs.is_some_and(|needs| needs.iter().any(|need| again.contains(need)));
            let wait = self.task(position)?.wait.as_ref();
            let has_child = wait.is_some_and(|wait| wait.child.or(wait.again).is_some());
            if self.awaits_child(position) && has_child && !may_change && anew != Some(position) {
                kept.insert(position);
            }
        }
        Ok(kept)
    }

    fn reopen(
        &mut self,
        mut again: BTreeSet<Position>,
        (why, anew, pardoned): (Reopening, Option<Position>, Option<Position>),
        by: &str,
        pause: Option<Pause>,
    ) -> Result<Vec<String>, F::Error> {
        let (resumed, removed) = self.growing(&again, anew)?;
        let plan = Arc::clone(&self.head);
        let is_gone =
            |position: &Position| plan.plan.item(*position).is_some_and(|(step, _)| removed.contains(&step));
        again.retain(|position| !is_gone(position));
        let again = &again;
        let steps: Vec<String> = again.iter().map(|position| self.name(*position)).collect();
        self.run.status = self.run.status.next(RunMove::Reopen)?;
        self.run.reason = None;
        self.run.closing = None;
        self.run.finished_at = None;
        // One that ended in the queue, before its first start, starts with this.
        self.run.started_at = self.run.started_at.or(Some(self.now));
        self.run.deadline_at = self.plan().workflow.timeout.map(|timeout| self.now.after(timeout));
        let positions: Vec<Position> = again.iter().copied().collect();
        let level = self.reopen_levels(&positions)?;
        let with_child = self.with_child(again, anew)?;
        let children = with_child.iter().map(|position| self.name(*position)).collect();
        self.append(RunReopened { why, by: by.to_owned(), tasks: steps.clone(), level, children });
        // Whoever retries a run wants it to go on; its workflow stays as it is.
        if let Some(pause) = pause {
            self.pause_between(pause);
        }
        for position in again {
            self.reopen_task(*position, with_child.contains(position))?;
        }
        for step in removed {
            self.remove_items(step)?;
        }
        if let Some(position) = pardoned {
            self.pardon(position, by)?;
        }
        self.count_everything_anew()?;
        self.bind_again()?;
        for step in &resumed {
            self.resume_items(*step)?;
        }
        for step in resumed {
            self.go_on_with_items(step)?;
        }
        for position in again {
            self.examine_later(*position);
        }
        Ok(steps)
    }

    /// Pending again, as if new but for the attempt number, which never goes back.
    fn reopen_task(&mut self, position: Position, keeps_child: bool) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Reopen)?;
        self.change(position, |task| {
            task.status = status;
            task.let_go();
            task.forget_attempt();
            task.gate = Some(Gate::Needs);
            task.retries = 0;
            task.lost = 0;
            task.output = None;
            task.finished_at = None;
            // Whoever let it go on has said that of the former time.
            let child = task.wait.take().and_then(|wait| wait.child.or(wait.again));
            task.wait = child.filter(|_| keeps_child).map(Waiting::again);
        })
    }

    fn pardon(&mut self, position: Position, by: &str) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Pardon)?;
        let (now, why) = (self.now, Reason::SkippedByPerson);
        let detail = Some(format!("skipped by {by}"));
        self.change(position, |task| {
            task.status = status;
            task.reason = Some(why);
            task.detail.clone_from(&detail);
            task.finished_at = Some(now);
            task.run_at = None;
        })?;
        self.append(TaskSkipped { step: self.name(position), why, detail });
        Ok(())
    }

    fn count_everything_anew(&mut self) -> Result<(), F::Error> {
        // Items are counted by their step.
        let unsettled = self.positions(|task| settled(task).is_none() && task.item.is_none()).len();
        self.run.unsettled = unsettled as u32;
        let head = Arc::clone(&self.head);
        for (set, needs) in head.plan.needs_sets.iter().enumerate() {
            let mut counts = Counts::default();
            for position in &needs.needs {
                match settled(self.task(*position)?) {
                    None => counts.unsettled += 1,
                    Some(Settled::Succeeded) => counts.succeeded += 1,
                    Some(Settled::Failed) => counts.failed += 1,
                    Some(Settled::PassedOver) => counts.passed_over += 1,
                }
            }
            self.count_anew(set as u32, counts);
        }
        Ok(())
    }
}

fn settled(task: &TaskRow) -> Option<Settled> {
    Settled::of(task.status, task.reason)
}

/// It did not run, or not to its end, because of what happened to the run as a whole.
fn fell_with_the_run(task: &TaskRow) -> bool {
    let is_so =
        matches!(task.reason, Some(Reason::Halted | Reason::Aborted | Reason::Canceled | Reason::RunTimeout));
    is_so && settled(task) == Some(Settled::PassedOver)
}
