//! Steps that grow: when the gates of a step with `for_each` open it is parked, its list becomes tasks, a batch at a time, and it ends
//! with the last of them. Items that have not ended are few at any time, however long the list: the next come in the transaction
//! in which earlier ones end. What is counted of them stands in a countdown of their own, so that an end costs the same
//! whichever item it is of. docs/design/growth.md.

use std::sync::Arc;

use laneway_core::event::{TaskParked, TasksAdded, TasksRemoved};
use laneway_core::expression::Scope;
use laneway_core::gate::{Counts, Gate, Room};
use laneway_core::growth::{Growth, Item, ItemName, Items, MAX_OUTPUTS};
use laneway_core::key;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::TaskState;
use laneway_core::state::{TaskMove, TaskStatus};
use serde_json::{Map, Value};

use super::gates::{counted, read_item};
use super::rows::read_growth;
use super::waiting::Ending;
use super::{Facts, Keeper, Kept, Outputs, Settled, TaskRow, Touch, unreadable};
use crate::error::Error;

/// Items are added so many at a time, when as many have ended. In a test build every list is a long one.
pub(super) const BATCH: u32 = if laneway_torture::ARMED { 3 } else { 500 };

impl<F: Facts> Keeper<F> {
    /// The gates of a step with `for_each` are open: its list is made, and its first items are tasks.
    pub(super) fn grow(&mut self, position: Position) -> Result<(), F::Error> {
        let head = Arc::clone(&self.head);
        let step = head.plan.step(position);
        let Some(for_each) = &step.for_each else { return Ok(()) };
        // A condition about items is asked for each of them.
        let condition = step.condition.as_ref().filter(|_| !step.condition_reads_item());
        let of_condition: Vec<String> =
            condition.iter().flat_map(|condition| condition.steps_read()).collect();
        let scope = self.scope_of(of_condition.into_iter().chain(for_each.steps_read()))?;
        // The gate lets through what it could not evaluate, so that it is told here.
        let condition = condition.map(|condition| condition.holds(&scope)).transpose();
        let items =
            condition.map_err(|error| format!("`if`: {error}")).and_then(|_| for_each.evaluate(&scope));
        let items = items.and_then(|items| self.with_good_locks(position, items));
        let (items, fault) = match items {
            Ok(items) => (items, None),
            Err(why) => (Vec::new(), Some(why)),
        };
        let total = u32::try_from(items.len()).unwrap_or(u32::MAX);
        self.change(position, |task| {
            let growth = task.growth.get_or_insert_default();
            growth.items = Some(Items { total, added: 0 });
            (growth.stopped, growth.failed) = (None, None);
        })?;
        self.park_for_items(position, total)?;
        if let Some(why) = fault {
            let (step, reason, detail) = (TaskMove::Fail, Some(Reason::Expression), Some(why));
            return self.end_wait(position, Ending { step, reason, detail, output: Map::new() });
        }
        for (no, batch) in (0..).zip(items.chunks(BATCH as usize)) {
            self.batches.insert((position, no), Some(Value::Array(batch.to_vec()).to_string()));
        }
        self.count_anew(self.items_set(position)?, Counts { unsettled: total, ..Counts::default() });
        self.add_or_end(position)
    }

    /// The locks of items are looked at together with the list: one that cannot be a key is a fault of that.
    fn with_good_locks(&self, position: Position, items: Vec<Value>) -> Result<Vec<Value>, String> {
        let step = self.plan().step(position);
        if !step.lock_reads_item() {
            return Ok(items);
        }
        for (index, item) in (0..).zip(&items) {
            let name = ItemName(&step.name, index);
            key::lock_of_item(step, &self.head.scope_of_item(item, index))
                .map_err(|why| format!("{name}: {why}"))?;
        }
        Ok(items)
    }

    fn park_for_items(&mut self, position: Position, total: u32) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Park)?;
        self.note_wait(position)?;
        let now = self.now;
        self.change(position, |task| {
            task.status = status;
            task.gate = None;
            task.gate_key = None;
            task.wake_at = None;
            task.rank = None;
            task.run_at = None;
            task.forget_attempt();
            task.started_at = Some(now);
        })?;
        let step = self.name(position);
        let (signal, until, timeout_at, items) = (None, None, None, Some(total));
        self.append(TaskParked { step, signal, until, timeout_at, items, workflow: None });
        Ok(())
    }

    fn items_set(&self, step: Position) -> Result<u32, F::Error> {
        let set = self.plan().items_set(step);
        set.ok_or_else(|| unreadable("position of a step with items", &step.to_string()).into())
    }

    fn growth(&mut self, step: Position) -> Result<Growth, F::Error> {
        Ok(self.task(step)?.growth.as_deref().cloned().unwrap_or_default())
    }

    /// Adds items if few are left that have not ended; ends the step if none is.
    fn add_or_end(&mut self, step: Position) -> Result<(), F::Error> {
        if self.task(step)?.status != TaskStatus::Parked {
            return Ok(());
        }
        let set = self.items_set(step)?;
        loop {
            let (counts, growth) = (self.counts(set)?, self.growth(step)?);
            let Some(items) = growth.items else { return Ok(()) };
            if counts.unsettled == 0 {
                return self.end_step(step, counts, &growth);
            }
            let is_enough = items.added.saturating_sub(ended(counts)) > self.enough(step);
            if growth.stopped.is_some() || items.added >= items.total || is_enough {
                return Ok(());
            }
            self.add_batch(step, items, growth.attempts)?;
        }
    }

    /// So many items that have not ended need no more behind them: a batch, and as many as may run at once, so that these never wait
    /// for a batch.
    fn enough(&self, step: Position) -> u32 {
        let of_step = self.step(step).for_each.as_ref().and_then(|for_each| for_each.max_parallel);
        let at_once = of_step.map_or(u32::MAX, std::num::NonZeroU32::get).min(self.head.max_parallel);
        BATCH.saturating_add(at_once)
    }

    fn add_batch(&mut self, step: Position, items: Items, attempts: u32) -> Result<(), F::Error> {
        let no = items.added / BATCH;
        let key = (step, no);
        let text = match self.batches.get(&key) {
            // Made in this transaction: it need not be stored at all.
            Some(Some(text)) => text.clone(),
            Some(None) => return Err(unreadable("batch of items", &no.to_string()).into()),
            None => self.facts.batch(step, no)?,
        };
        if self.batches.remove(&key).is_none() {
            self.batches.insert(key, None);
        }
        let values: Vec<Value> = serde_json::from_str(&text).map_err(|error| Error::Unreadable {
            what: "batch of items".to_owned(),
            why: error.to_string(),
        })?;
        let (first, total) = (items.added, items.total);
        let more = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if more == 0 {
            return Err(unreadable("batch of items", "[]").into());
        }
        self.append(TasksAdded { step: self.name(step), total, first, items: values.clone(), attempts });
        for (index, value) in (first..).zip(values) {
            self.add_item(step, index, &value, attempts)?;
        }
        // Only items that had an attempt can have done something that is laid by.
        if attempts > 0 {
            self.regrown.insert(step);
        }
        let items = Some(Items { total, added: first + more });
        self.change(step, |task| task.growth.get_or_insert_default().items = items)
    }

    fn add_item(&mut self, step: Position, index: u32, value: &Value, attempt: u32) -> Result<(), F::Error> {
        let position = self.plan().items_of(step).start + index;
        let (class, given_back) = (self.task(step)?.class, self.task(step)?.given_back);
        // What waits for nothing but a place in its run goes straight into that line, as at submit.
        let asks_more = self.step(step).condition_reads_item() || self.step(step).wait().is_some();
        let is_ready = !asks_more && !self.head.has_keys(position);
        let (gate, rank) =
            if is_ready { (Gate::MaxParallel, Some(self.rank(step))) } else { (Gate::Needs, None) };
        let item = Some(value.to_string().into());
        let row = TaskRow { gate: Some(gate), rank, attempt, given_back, item, ..TaskRow::new(class) };
        let (was, touch) = (row.fence(), Touch::New);
        self.tasks.insert(position, Kept { was, was_in_line: false, row, touch });
        if is_ready {
            self.fill_later();
            // The line may have been looked at before this one came.
            self.has_left = true;
        } else {
            self.examine_later(position);
        }
        Ok(())
    }

    /// An item has ended.
    pub(super) fn settle_item(
        &mut self,
        (step, index): (Position, u32),
        settled: Settled,
    ) -> Result<(), F::Error> {
        let set = self.items_set(step)?;
        self.facts.prepare(&[], &[set])?;
        let before = self.counts(set)?;
        let after = counted(before, settled);
        self.count_anew(set, after);
        if settled == Settled::Failed {
            if before.failed == 0 {
                self.change(step, |task| task.growth.get_or_insert_default().failed = Some(index))?;
            }
            if self.is_fail_fast(step) && self.growth(step)?.stopped.is_none() {
                self.fail_fast(step)?;
            }
        }
        // What was stopped from outside stops its step, also where that is clean-up which the run lets go on.
        let item = self.task(self.plan().items_of(step).start + index)?;
        if let Some(reason) = item.reason.filter(|_| item.status == TaskStatus::Canceled) {
            self.stop_growing(step, reason)?;
        }
        // In between nothing can follow: items come in batches, and a batch ends where its number does.
        let counts = self.counts(set)?;
        if counts.unsettled == 0 || ended(counts).is_multiple_of(BATCH) {
            self.add_or_end(step)?;
        }
        Ok(())
    }

    pub(super) fn is_fail_fast(&self, step: Position) -> bool {
        self.step(step).for_each.as_ref().is_some_and(|for_each| for_each.fail_fast)
    }

    /// The first failure ends the others: who has not started does not, who runs is asked to stop.
    fn fail_fast(&mut self, step: Position) -> Result<(), F::Error> {
        self.stop_growing(step, Reason::Aborted)?;
        let (unstarted, running) = (self.facts.unstarted()?, self.facts.running()?);
        self.keep_all(unstarted);
        self.keep_all(running);
        let items = self.plan().items_of(step);
        let of_step: Vec<Position> = self.tasks.range(items).map(|(position, _)| *position).collect();
        for position in of_step {
            let task = self.task(position)?;
            let (attempt, is_asked) = (task.attempt, task.stop.is_some());
            match task.status {
                TaskStatus::Pending | TaskStatus::Available | TaskStatus::Parked => {
                    let why = self.why_not_the_others(step)?;
                    self.cancel_task(position, attempt, Reason::Aborted, why)?;
                }
                TaskStatus::Running if !is_asked => {
                    self.change(position, |task| task.stop = Some(Reason::Aborted))?;
                }
                TaskStatus::Running
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped => {}
            }
        }
        Ok(())
    }

    /// Why an item was stopped because of another one; nothing where that is not so.
    pub(super) fn why_not_the_others(&mut self, step: Position) -> Result<Option<String>, F::Error> {
        let is_so = self.is_fail_fast(step);
        let failed = self.growth(step)?.failed.filter(|_| is_so);
        let name = &self.step(step).name;
        Ok(failed.map(|index| format!("`{}` failed, and `fail_fast` ends the others", ItemName(name, index))))
    }

    /// No more items are added. The step ends with those that there are.
    pub(super) fn stop_growing(&mut self, step: Position, reason: Reason) -> Result<(), F::Error> {
        let growth = self.growth(step)?;
        let Some(items) = growth.items.filter(|_| growth.stopped.is_none()) else { return Ok(()) };
        let set = self.items_set(step)?;
        let counts = self.counts(set)?;
        let unsettled = counts.unsettled.saturating_sub(items.total - items.added);
        self.count_anew(set, Counts { unsettled, ..counts });
        self.change(step, |task| task.growth.get_or_insert_default().stopped = Some(reason))
    }

    /// The same, because of what happened to the run; ends the step if none of its items is left.
    pub(super) fn stop_items(&mut self, step: Position, reason: Reason) -> Result<(), F::Error> {
        self.stop_growing(step, reason)?;
        self.add_or_end(step)
    }

    /// The last item has ended.
    fn end_step(&mut self, position: Position, counts: Counts, growth: &Growth) -> Result<(), F::Error> {
        let total = growth.items.map_or(0, |items| items.total);
        let output = Map::new();
        let ending = match (counts.failed, growth.stopped) {
            (0, None) => Ending { step: TaskMove::Succeed, reason: None, detail: None, output },
            (0, reason) => Ending { step: TaskMove::Cancel, reason, detail: None, output },
            (failed, _) => {
                let first = self.first_of(position, growth)?;
                let detail = Some(format!("{failed} of {total} items failed{first}"));
                Ending { step: TaskMove::Fail, reason: Some(Reason::Items), detail, output }
            }
        };
        self.end_wait(position, ending)
    }

    /// The item that failed first, in words.
    fn first_of(&mut self, step: Position, growth: &Growth) -> Result<String, F::Error> {
        let Some(index) = growth.failed else { return Ok(String::new()) };
        let position = self.plan().items_of(step).start + index;
        let task = self.task(position)?;
        if task.status != TaskStatus::Failed {
            return Ok(String::new());
        }
        let why = task.detail.clone().or(task.reason.map(|reason| reason.to_string())).unwrap_or_default();
        Ok(format!(", `{}` first: {why}", self.name(position)))
    }

    /// A step that has ended is to go on with its items: those that are to run again are pending by now, and all are known.
    pub(super) fn resume_items(&mut self, step: Position) -> Result<(), F::Error> {
        let growth = self.growth(step)?;
        let Some(items) = growth.items else { return Ok(()) };
        let range = self.plan().items_of(step);
        let mut counts = Counts { unsettled: items.total - items.added, ..Counts::default() };
        let mut failed = None;
        for (position, kept) in self.tasks.range(range.clone()) {
            match Settled::of(kept.row.status, kept.row.reason) {
                None => counts.unsettled += 1,
                Some(Settled::Succeeded) => counts.succeeded += 1,
                Some(Settled::Failed) => {
                    counts.failed += 1;
                    failed = failed.or(Some(*position - range.start));
                }
                Some(Settled::PassedOver) => counts.passed_over += 1,
            }
        }
        self.count_anew(self.items_set(step)?, counts);
        self.change(step, |task| {
            let growth = task.growth.get_or_insert_default();
            (growth.stopped, growth.failed) = (None, failed);
        })?;
        self.park_for_items(step, items.total)
    }

    /// What follows from that, when all steps that are to go on are parked: one that ends at once may close the run.
    pub(super) fn go_on_with_items(&mut self, step: Position) -> Result<(), F::Error> {
        let is_parked = self.task(step)?.status == TaskStatus::Parked;
        if is_parked && self.is_fail_fast(step) && self.growth(step)?.failed.is_some() {
            self.fail_fast(step)?;
        }
        self.add_or_end(step)
    }

    /// The list of a step is to be made anew, from what comes before it: its items are gone. All are known.
    pub(super) fn remove_items(&mut self, step: Position) -> Result<(), F::Error> {
        let growth = self.growth(step)?;
        if growth.items.is_none() {
            return Ok(());
        }
        let range = self.plan().items_of(step);
        let gone: Vec<Position> = self.tasks.range(range).map(|(position, _)| *position).collect();
        // Nobody claims the step itself: what was given back of items that are gone is kept with it.
        let mut attempts = growth.attempts;
        let mut generation = attempts + self.task(step)?.given_back;
        for kept in gone.iter().filter_map(|position| self.tasks.remove(position)) {
            attempts = attempts.max(kept.row.attempt);
            generation = generation.max(kept.row.generation());
        }
        let given_back = generation - attempts;
        self.removed.insert(step);
        self.batches.retain(|(other, _), _| *other != step);
        let growth = Growth { attempts, ..Growth::default() };
        let growth = (growth != Growth::default()).then(|| Box::new(growth));
        self.change(step, |task| {
            task.growth = growth;
            task.given_back = given_back;
        })?;
        self.append(TasksRemoved { step: self.name(step) });
        Ok(())
    }

    /// How much room there is for an item among those of its step, where that is bounded. Counted from the items themselves.
    pub(super) fn room_of_item(&mut self, position: Position) -> Result<Option<Room>, F::Error> {
        let Some((step, max)) = self.bounded_items(position) else { return Ok(None) };
        Ok(Some(Room { live: self.live_items(step)?, max }))
    }

    /// The step of an item that may have to wait for a place in it, and how many it has.
    pub(super) fn bounded_items(&self, position: Position) -> Option<(Position, u32)> {
        let (step, _) = self.plan().item(position)?;
        let max = self.plan().step(step).for_each.as_ref()?.max_parallel?;
        Some((step, max.get()))
    }

    fn live_items(&mut self, step: Position) -> Result<u32, F::Error> {
        let stored = self.facts.items_live(step)?;
        let changed = self.items_live.get(&step).copied().unwrap_or_default();
        Ok(u32::try_from(i64::from(stored) + changed).unwrap_or_default())
    }

    /// Gives free places among the items of steps to those who wait for one, first in line first.
    pub(super) fn fill_items(&mut self) -> Result<(), F::Error> {
        while let Some(step) = self.roomy_steps.pop_first() {
            let range = self.plan().items_of(step);
            let Some((_, max)) = self.bounded_items(range.start) else { continue };
            let room = max.saturating_sub(self.live_items(step)?) as usize;
            if room == 0 {
                continue;
            }
            // So many of the stored line may have left it since.
            let known = self.tasks.range(range.clone()).count();
            let rows = self.facts.items_line(step, room.saturating_add(known))?;
            self.keep_all(rows);
            let waiting = self.tasks.range(range).filter(|(_, kept)| kept.row.gate == Some(Gate::Group));
            let mut line: Vec<(Option<i64>, Position)> =
                waiting.map(|(position, kept)| (kept.row.rank, *position)).collect();
            line.sort_unstable();
            for (_, position) in line {
                if self.live_items(step)? >= max {
                    break;
                }
                self.examine(position)?;
            }
        }
        Ok(())
    }

    /// The outputs of a step's items as one list, as it is stored; `None` for one that is too large to be read as a whole.
    pub(super) fn outputs_of(&mut self, step: Position) -> Result<Option<String>, F::Error> {
        let mut outputs: std::collections::BTreeMap<_, _> = self
            .facts
            .outputs(step)?
            .into_iter()
            .map(|(position, status, output)| (position, (status, output)))
            .collect();
        for (position, kept) in self.tasks.range(self.plan().items_of(step)) {
            outputs.insert(*position, (kept.row.status, kept.row.output.clone()));
        }
        Ok(list_of_outputs(outputs.into_values()))
    }
}

/// A list in item order: what an item has put out; null for one that has not succeeded.
fn list_of_outputs(items: impl IntoIterator<Item = (TaskStatus, Option<String>)>) -> Option<String> {
    let mut text = String::from("[");
    for (status, output) in items {
        if text.len() > 1 {
            text.push(',');
        }
        match (status, output) {
            (TaskStatus::Succeeded, Some(output)) => text.push_str(&output),
            (TaskStatus::Succeeded, None) => text.push_str("{}"),
            (_, _) => text.push_str("null"),
        }
        if text.len() > MAX_OUTPUTS {
            return None;
        }
    }
    text.push(']');
    Some(text)
}

/// The same, of what was read; for whoever has to say why there is none.
pub(crate) fn list_of(outputs: &Outputs, plan: &Plan, step: Position) -> Result<String, Error> {
    let items = outputs.iter().map(|(_, status, output)| (*status, output.clone()));
    list_of_outputs(items).ok_or_else(|| Error::OutputsTooLarge { step: plan.step(step).name.clone() })
}

/// Where the task of a position stands among those of a run, which are sorted by that.
pub(crate) fn place_of(plan: &Plan, tasks: &[TaskState], position: Position) -> Option<usize> {
    let position_of = |task: &TaskState| plan.position(&task.step).unwrap_or(Position::MAX);
    tasks.binary_search_by_key(&position, position_of).ok()
}

/// What a task's row tells of items: which one it is, and how many it has.
pub(crate) fn grown(
    plan: &Plan,
    position: Position,
    growth: Option<&str>,
    item: Option<&str>,
) -> Result<(Option<Box<Item>>, Option<Items>), Error> {
    if plan.base(position).is_none() {
        return Err(unreadable("position of a task", &position.to_string()));
    }
    let item = match plan.item(position) {
        None => None,
        Some((step, index)) => {
            let of = plan.step(step).name.clone();
            Some(Box::new(Item { of, index, value: read_item(item)? }))
        }
    };
    let growth = match growth {
        None => None,
        Some(text) => read_growth(text).ok_or_else(|| unreadable("items of a task", text))?.items,
    };
    Ok((item, growth))
}

fn ended(counts: Counts) -> u32 {
    counts.succeeded + counts.failed + counts.passed_over
}

/// What the expressions of an item see beside what those of its step see.
pub(crate) fn with_item(scope: &mut Scope, value: Value, index: u32) {
    scope.insert("item".to_owned(), value);
    scope.insert("index".to_owned(), index.into());
}
