//! A task that settles counts down, waiters are examined, and what `gate::judge` says is noted.
//! Nothing else makes a task available.

use std::sync::Arc;

use laneway_core::definition::When;
use laneway_core::event::TaskAvailable;
use laneway_core::expression::Scope;
use laneway_core::gate::{self, Counts, Facts as GateFacts, Gate, Needs, Verdict, Wait};
use laneway_core::key;
use laneway_core::not_before::{self, Ended};
use laneway_core::plan::Position;
use laneway_core::rank;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskMove, TaskStatus};
use laneway_core::time::Millis;
use laneway_torture::{Bug, has};
use serde_json::{Map, Value, json};

use super::growing::with_item;
use super::keys::Found;
use super::leveling::Look;
use super::{Facts, Keeper, Key};
use crate::error::Error;
use crate::model::{Placed, RunHead};

/// How a task stands in the needs sets of its successors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Succeeded,
    Failed,
    /// Canceled, or skipped by Laneway.
    PassedOver,
}

impl Settled {
    /// Where a task that has ended is counted; `None` for one that has not.
    pub(crate) fn of(status: TaskStatus, reason: Option<Reason>) -> Option<Self> {
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

impl<F: Facts> Keeper<F> {
    /// A task has ended. Its row and its event say so already.
    pub(super) fn settle(&mut self, position: Position, settled: Settled) -> Result<(), F::Error> {
        if let Some(item) = self.plan().item(position) {
            return self.settle_item(item, settled);
        }
        self.run.unsettled = self.run.unsettled.saturating_sub(1);
        self.may_fill |= self.is_leveled();
        if settled == Settled::Failed {
            self.fail(position)?;
        }
        let head = Arc::clone(&self.head);
        let merge = head.plan.group_of(position).map(|group| (group, head.plan.merge_of(group)));
        let sets = head.plan.sets_with(position);
        self.facts.prepare(&[], sets)?;
        for set in sets {
            let before = self.counts(*set)?;
            let after = counted(before, settled);
            self.sets.insert(*set, (after, true));
            if let Some((group, merge)) = merge
                && after.unsettled == 0
                && head.plan.needs_set_of[merge as usize] == Some(*set)
            {
                self.end_lane(group)?;
            }
            // Waiters are looked at only when the outcome of their rule has just become certain.
            let decided = |when: When| {
                gate::needs(when, before) == Needs::Wait && gate::needs(when, after) != Needs::Wait
            };
            if !WHENS.into_iter().any(decided) {
                continue;
            }
            for waiter in &head.plan.needs_sets[*set as usize].waiters {
                if decided(self.step(*waiter).when) {
                    self.examine_later(*waiter);
                }
            }
        }
        Ok(())
    }

    pub(super) fn counts(&mut self, set: u32) -> Result<Counts, F::Error> {
        if let Some((counts, _)) = self.sets.get(&set) {
            return Ok(*counts);
        }
        let counts = self.facts.needs_set(set)?;
        self.sets.insert(set, (counts, false));
        Ok(counts)
    }

    /// A countdown is set anew.
    pub(super) fn count_anew(&mut self, set: u32, counts: Counts) {
        self.sets.insert(set, (counts, true));
    }

    /// Opens every gate that what happened has opened. First come those who waited for
    /// `max_parallel`, in their order; only then may somebody new take a free place.
    pub(super) fn pump(&mut self) -> Result<(), F::Error> {
        self.line_up()?;
        self.fill()?;
        let soon: Vec<Position> = self.to_examine.iter().copied().collect();
        self.facts.prepare(&soon, &[])?;
        self.has_left = false;
        loop {
            while let Some(position) = self.to_examine.pop_front() {
                self.examine(position)?;
            }
            // What is parked may fail while it is looked at, and halt what was available: its place
            // is free then.
            if std::mem::take(&mut self.has_left) {
                self.fill()?;
                continue;
            }
            // Those who wait in their group, or among the items of their step, come behind those
            // who wait in the run, and may settle others in turn.
            if self.roomy.is_empty() && self.roomy_steps.is_empty() {
                return Ok(());
            }
            self.fill_groups()?;
            self.fill_items()?;
        }
    }

    /// Looks at those that keep their place in line as if the run had no place to spare: if nothing
    /// else is in their way, they stand in line for one, and `fill` gives them out by rank.
    fn line_up(&mut self) -> Result<(), F::Error> {
        let lost = std::mem::take(&mut self.to_line_up);
        self.facts.prepare(&lost, &[])?;
        self.is_lining_up = true;
        for position in lost {
            self.examine(position)?;
        }
        self.is_lining_up = false;
        Ok(())
    }

    fn fill(&mut self) -> Result<(), F::Error> {
        // Whether anybody waits is asked first: to count who is live takes the longer, the more
        // there are.
        let is_over = self.is_canceling() && !self.is_cleaning_up();
        let is_open = self.run.status == RunStatus::Running && !self.is_paused() && !is_over;
        if !is_open || self.in_line(1)?.is_empty() {
            return Ok(());
        }
        let mut look = 0;
        loop {
            let live = if has(Bug::OverGrant) { 0 } else { self.live()? };
            let room = self.places().saturating_sub(live) as usize;
            let next = if room == 0 { Vec::new() } else { self.in_line(room.max(look))? };
            if next.is_empty() {
                return Ok(());
            }
            // Where those in front have to wait for something else, many behind them will have to
            // as well: to look at so few at a time would take a long line for ever.
            look = next.len().saturating_mul(2);
            let mut is_all_taken = true;
            for position in next {
                if self.head.has_keys(position) || self.head.placed != Placed::Local {
                    // Beside its place in the run it needs a node, one in its group, and keys that
                    // others may hold. One that has to wait for those leaves the line, and another
                    // one may have the place.
                    self.examine(position)?;
                    is_all_taken &= self.task(position)?.status == TaskStatus::Available;
                } else {
                    let class = self.task(position)?.class;
                    self.promote(position, class)?;
                }
                if !has(Bug::OverGrant) && self.live()? >= self.places() {
                    return Ok(());
                }
            }
            if is_all_taken {
                return Ok(());
            }
        }
    }

    /// The first of those who wait for a place now.
    fn in_line(&mut self, limit: usize) -> Result<Vec<Position>, F::Error> {
        // So many of the stored line may have left it since.
        let left = self.tasks.values().filter(|kept| kept.was_in_line).count();
        let rows = self.facts.waiting(limit.saturating_add(left))?;
        self.keep_all(rows);
        let mut line: Vec<(Option<i64>, Position)> = self
            .tasks
            .iter()
            .filter(|(_, kept)| kept.row.is_in_line())
            .map(|(position, kept)| (kept.row.rank, *position))
            .collect();
        line.sort_unstable();
        line.truncate(limit);
        Ok(line.into_iter().map(|(_, position)| position).collect())
    }

    fn live(&mut self) -> Result<u32, F::Error> {
        let before = match self.live {
            Some(before) => before,
            None => *self.live.insert(self.facts.live()?),
        };
        Ok(u32::try_from(i64::from(before) + self.live_since).unwrap_or_default())
    }

    /// Looks at the gates of a pending task, and does what they say.
    pub(crate) fn examine(&mut self, position: Position) -> Result<(), F::Error> {
        let task = self.task(position)?;
        let (status, closed, run_at, attempt) = (task.status, task.gate, task.run_at, task.attempt);
        if status == TaskStatus::Parked {
            return self.look_at_parked(position);
        }
        if status != TaskStatus::Pending {
            return Ok(());
        }
        // Steps of a level are looked at together, in the order of their names (`pump_levels`).
        if self.is_leveled() && self.look.is_none() && !self.is_closing() {
            self.may_fill = true;
            return Ok(());
        }
        // Nobody runs it, so that it needs neither a node nor a place.
        let is_growing = self.plan().is_growing(position);
        let is_wait = is_growing || self.step(position).wait().is_some();
        let class = if is_wait { self.task(position)?.class } else { self.class_for(position)? };
        let when = self.step(position).when;
        let counts = match self.plan().needs_set(position) {
            Some(set) => Some(self.counts(set)?),
            None => None,
        };
        let is_met = counts.is_none_or(|counts| gate::needs(when, counts) == Needs::Met);
        if is_met
            && self.run.closing.is_none()
            && let Some(why) = self.against_merging(position)?
        {
            return self.skip(position, Reason::Upstream, Some(why));
        }
        // Asked once, when the needs are met: behind that gate the answer is known to be yes.
        let condition = if is_met && closed == Some(Gate::Needs) { self.condition(position)? } else { None };
        let not_before = if is_met { self.not_before(position)? } else { None };
        let facts = GateFacts {
            when,
            counts,
            closing: self.run.closing,
            is_cleaning_up: self.is_cleaning_up(),
            is_no_clean_up: self.is_no_clean_up(position),
            condition,
            run_at,
            not_before,
            is_queued: self.run.status == RunStatus::Queued,
            is_paused: self.is_paused(),
            has_node: is_wait || self.has_node(class)?,
            // How many of a level run at once is for its holder to see to.
            live: match (is_wait || self.is_leveled(), self.is_lining_up) {
                (true, _) => 0,
                (false, true) => self.places(),
                (false, false) => self.live()?,
            },
            is_led: self.look == Some(Look::Led),
            max_parallel: self.places(),
            group: match (is_wait, self.room(position)?) {
                (_, None) => self.room_of_item(position)?,
                (true, _) => None,
                (false, room) => room,
            },
            ..GateFacts::open(self.now)
        };
        // Behind keys of others is looked only if nothing of its own stands in the way.
        let found = match gate::judge(&facts) {
            Verdict::Open if self.head.has_keys(position) => self.find_keys(position)?,
            Verdict::Open | Verdict::Closed(_) | Verdict::Skip(_) | Verdict::Cancel(_) => Found::default(),
        };
        let mut limits = Vec::new();
        match gate::judge(&GateFacts { keys: found.lend(&mut limits), ..facts }) {
            Verdict::Open if is_growing => self.grow(position),
            Verdict::Open if is_wait => self.park(position),
            Verdict::Open => self.promote(position, class),
            Verdict::Closed(wait) => self.close_gate(position, wait, class),
            Verdict::Skip(reason) => {
                let detail = self.why_skipped(position, reason)?;
                self.skip(position, reason, detail)
            }
            Verdict::Cancel(reason) => self.cancel_task(position, attempt, reason, None),
        }
    }

    /// Whether it stays undone in a run that has failed, though its `when` accepts failure.
    pub(super) fn is_no_clean_up(&self, position: Position) -> bool {
        self.is_leveled() || self.step(position).merges().is_some()
    }

    /// What a step's `if` says. What cannot be evaluated opens: its holder evaluates it again and
    /// fails the attempt with the reason in words, which a gate could not tell anybody.
    fn condition(&mut self, position: Position) -> Result<Option<bool>, F::Error> {
        let head = Arc::clone(&self.head);
        let step = head.plan.step(position);
        let Some(condition) = &step.condition else { return Ok(None) };
        // One about items is asked for each of them, any other one once for all.
        if step.for_each.is_some() && head.plan.item(position).is_some() != step.condition_reads_item() {
            return Ok(None);
        }
        let mut scope = self.scope_of(condition.steps_read())?;
        if let Some((_, index)) = head.plan.item(position) {
            let item = self.task(position)?.item.clone();
            with_item(&mut scope, read_item(item.as_deref())?, index);
        }
        Ok(condition.holds(&scope).ok())
    }

    /// The moment before which a step does not start. Depends on its document and on how its needs
    /// have ended, and on nothing that changes later: a lost or retried task does not wait a second
    /// time.
    fn not_before(&mut self, position: Position) -> Result<Option<Millis>, F::Error> {
        let head = Arc::clone(&self.head);
        // Items start with their step.
        if head.plan.item(position).is_some() {
            return Ok(None);
        }
        let step = head.plan.step(position);
        // `key::bind` has refused at submit what cannot be read.
        let Some(not_before) = key::not_before(step, &head.params).ok().flatten() else { return Ok(None) };
        let needs = head.plan.needs.get(position as usize).map_or(&[][..], Vec::as_slice);
        self.facts.prepare(needs, &[])?;
        let mut ended = Vec::with_capacity(needs.len());
        for need in needs {
            let task = self.task(*need)?;
            ended.extend(task.finished_at.map(|at| Ended { status: task.status, reason: task.reason, at }));
        }
        let base = not_before::base(step.when, ended.into_iter()).or(self.run.started_at);
        Ok(Some(not_before.moment(base.unwrap_or(self.now))))
    }

    /// What expressions see that read these steps.
    pub(super) fn scope_of(&mut self, steps: impl Iterator<Item = String>) -> Result<Scope, F::Error> {
        let head = Arc::clone(&self.head);
        let steps: Vec<Position> = steps.filter_map(|step| head.plan.position(&step)).collect();
        self.facts.prepare(&steps, &[])?;
        let mut seen = Vec::with_capacity(steps.len());
        for step in steps {
            let task = self.task(step)?;
            let (status, output) = (task.status, task.output.clone());
            let output = if head.plan.is_growing(step) { self.outputs_of(step)? } else { output };
            seen.push((step, status, output));
        }
        Ok(scope(&head, seen)?)
    }

    /// Notes which gate it waits for, and where in that line; the full cause is computed when it is
    /// read.
    fn close_gate(&mut self, position: Position, wait: Wait<'_>, class: i64) -> Result<(), F::Error> {
        let key = wait.key.map(|key| waiting_key(wait.gate, key));
        let task = self.task(position)?;
        let is_known = task.gate == Some(wait.gate) && task.gate_key == key;
        // Of those who wait for a moment the first is woken; when it passes, it names the next.
        let wake_at = match (wait.gate, wait.until) {
            (Gate::Rate, Some(_)) if self.is_behind_another(position, key.as_deref())? => None,
            (_, until) => until,
        };
        let task = self.task(position)?;
        // Whoever waits for a node is found by the class that it waits for.
        let class = if wait.gate == Gate::Node { class } else { task.class };
        if is_known && task.wake_at == wake_at && task.class == class {
            return Ok(());
        }
        let rank = match (is_a_line(wait.gate), self.step(position).merges()) {
            (true, _) => Some(self.rank(position)),
            // It has one since its group began, or none.
            (false, Some(_)) => self.task(position)?.rank,
            (false, None) => None,
        };
        if !matches!(wait.gate, Gate::Group | Gate::MaxParallel) {
            self.leave_group(position);
        }
        self.change(position, |task| {
            task.gate = Some(wait.gate);
            task.gate_key = key;
            task.wake_at = wake_at;
            task.class = class;
            task.rank = rank.map(|rank| task.rank.unwrap_or(rank));
        })
    }

    /// Its place in any line: by priority, then by age.
    pub(super) fn rank(&self, position: Position) -> i64 {
        rank::rank(self.now, self.step(position).demands().priority)
    }

    /// Names the predecessors that stand in the way, for `upstream`.
    fn why_skipped(&mut self, position: Position, reason: Reason) -> Result<Option<String>, F::Error> {
        if reason != Reason::Upstream {
            return Ok(None);
        }
        let head = Arc::clone(&self.head);
        let needs = head.plan.needs.get(position as usize).map_or(&[][..], Vec::as_slice);
        self.facts.prepare(needs, &[])?;
        let mut against = Vec::new();
        for need in needs {
            let status = self.task(*need)?.status;
            if status.is_final() && status != TaskStatus::Succeeded {
                against.push(format!("{} was {status}", head.plan.step(*need).name));
            }
            if against.len() == 3 {
                break;
            }
        }
        Ok(if against.is_empty() { None } else { Some(against.join(", ").replace("was failed", "failed")) })
    }

    /// A task is through its gates: how long it stood at the last of them is known now.
    pub(super) fn note_wait(&mut self, position: Position) -> Result<(), F::Error> {
        let task = self.task(position)?;
        // A lost task keeps the rank from before its execution: how long it waits now cannot be
        // told from that.
        if task.reason == Some(Reason::Lost) {
            return Ok(());
        }
        if let Some((gate, rank)) = task.gate.zip(task.rank) {
            let waited = self.now.since(rank::since(rank, self.step(position).demands().priority));
            // Who passed in the moment in which it came has not waited.
            if !waited.is_zero() {
                self.waits.push((gate, waited));
            }
        }
        Ok(())
    }

    fn promote(&mut self, position: Position, class: i64) -> Result<(), F::Error> {
        let status = self.task(position)?.status.next(TaskMove::Promote)?;
        self.note_wait(position)?;
        let (start_by, fence) = (self.take_keys(position)?, self.mint_fence(position)?);
        let rank = self.rank(position);
        self.change(position, |task| {
            task.class = class;
            task.status = status;
            task.gate = None;
            task.gate_key = None;
            task.wake_at = None;
            task.rank = task.rank.or(Some(rank));
            task.run_at = None;
            task.start_by = start_by;
            task.fence = fence;
            task.forget_attempt();
        })?;
        self.append(TaskAvailable { step: self.name(position) });
        Ok(())
    }
}

/// The key as its line is known by.
fn waiting_key(gate: Gate, key: &str) -> String {
    match gate {
        Gate::Order => Key::Order(key.to_owned()).text(),
        Gate::Lock => Key::Lock(key.to_owned()).text(),
        Gate::Limit | Gate::Rate => Key::Limit(key.to_owned()).text(),
        Gate::Needs
        | Gate::RunAt
        | Gate::MaxRuns
        | Gate::Paused
        | Gate::Node
        | Gate::Group
        | Gate::Level
        | Gate::MaxParallel => key.to_owned(),
    }
}

/// Whether tasks wait there in the order in which they will be let through.
fn is_a_line(gate: Gate) -> bool {
    match gate {
        Gate::MaxParallel
        | Gate::Group
        | Gate::Node
        | Gate::Paused
        | Gate::Order
        | Gate::Lock
        | Gate::Limit
        | Gate::Rate => true,
        Gate::Needs | Gate::RunAt | Gate::MaxRuns | Gate::Level => false,
    }
}

/// What expressions may see: steps with how they stand and what they have put out, as it is stored.
pub(crate) fn scope(
    head: &RunHead,
    steps: impl IntoIterator<Item = (Position, TaskStatus, Option<String>)>,
) -> Result<Scope, Error> {
    let (mut seen, mut groups) = (Map::new(), Map::new());
    for (position, status, output) in steps {
        let unreadable = |error: serde_json::Error| Error::Unreadable {
            what: "output of a task".to_owned(),
            why: error.to_string(),
        };
        let step = head.plan.step(position);
        // That of a step with items is their list, if it can be read as a whole.
        if head.plan.is_growing(position) {
            let mut fields = Map::from_iter([("status".to_owned(), status.as_str().into())]);
            if let Some(text) = output {
                let list: Value = serde_json::from_str(&text).map_err(unreadable)?;
                fields.insert("output".to_owned(), list);
            }
            seen.insert(step.name.clone(), Value::Object(fields));
            continue;
        }
        let output: Map<String, Value> = match output {
            None => Map::new(),
            Some(text) => serde_json::from_str(&text).map_err(unreadable)?,
        };
        match step.merges() {
            None => {
                seen.insert(step.name.clone(), json!({ "status": status.as_str(), "output": output }));
            }
            Some(group) => {
                let name = head.plan.group(group).name.clone();
                groups.insert(name, json!({ "status": status.as_str(), "result": output }));
            }
        }
    }
    let mut scope = head.scope(seen);
    scope.insert("groups".into(), Value::Object(groups));
    Ok(scope)
}

const WHENS: [When; 6] =
    [When::AllSucceeded, When::AllDone, When::AllFailed, When::OneSucceeded, When::OneFailed, When::Always];

/// The value of an item as it is stored.
pub(crate) fn read_item(stored: Option<&str>) -> Result<Value, Error> {
    let unreadable = |why: String| Error::Unreadable { what: "item of a task".to_owned(), why };
    let text = stored.ok_or_else(|| unreadable("it has none".to_owned()))?;
    serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))
}

/// The counts after one more has settled.
pub(super) fn counted(before: Counts, settled: Settled) -> Counts {
    let one = |kind: Settled| u32::from(settled == kind);
    Counts {
        unsettled: before.unsettled.saturating_sub(1),
        succeeded: before.succeeded + one(Settled::Succeeded),
        failed: before.failed + one(Settled::Failed),
        passed_over: before.passed_over + one(Settled::PassedOver),
    }
}
