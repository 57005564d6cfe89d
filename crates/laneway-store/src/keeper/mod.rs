//! The gate keeper: one run inside one transaction. What happened to its tasks goes in, everything
//! that follows comes out as rows and events to be written. Pure, and the same for both databases.
//!
//! ```text
//!   settle(task) ─▶ needs sets count down ─▶ waiters to examine ─▶ judge ─▶ promote | close | skip
//!                                                   ▲                                  │
//!                                                   └──────────── settle ◀─────────────┘
//! ```
//! Decisions are core's (`gate::judge`, `retry::next_delay`); these files look up the facts that they need: `gates.rs`
//! opens and closes gates, `keys.rs` looks at those that runs share, `admitting.rs` lets runs begin, wait and pause, `binding.rs`
//! keeps runs on one node, `grouping.rs` knows what members mean to their group,
//! `closing.rs` ends what will not start, `holding.rs` is told what holders say, `ending.rs` how attempts end,
//! `leveling.rs` does levels as one, `waiting.rs` parks what waits and takes signals, `children.rs` has runs started that steps wait for, `effects.rs` lets effects begin,
//! `growing.rs` makes tasks of the items of lists, `reopening.rs` what people want again. `conclude` comes last. docs/design/store.md.

mod admitting;
mod binding;
mod children;
mod closing;
mod effects;
mod ending;
mod facts;
mod gates;
mod grouping;
mod growing;
mod holding;
mod keys;
mod leveling;
mod reopening;
mod rows;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::definition::{GroupFailure, Step};
use laneway_core::event::{Closing, Fact, RunFinished};
use laneway_core::gate::{Counts, Gate};
use laneway_core::hook;
use laneway_core::nearest::nearest;
use laneway_core::plan::{Plan, Position};
use laneway_core::state::{RunMove, TaskStatus};
use laneway_core::time::Millis;

pub(crate) use binding::LayerOnNode;
pub(crate) use children::Wanted;
pub(crate) use facts::{Facts, Failures, Outputs, Rows};
pub(crate) use gates::{Settled, read_item, scope};
pub(crate) use growing::{grown, list_of, place_of, with_item};
pub(crate) use holding::GivenBackBy;
pub(crate) use keys::{Key, KeyChanges};
pub(crate) use rows::{Changed, Changes, KeptLayer, Record, RunRow, TaskRow, Touch};
pub(crate) use rows::{
    Pause, growth_text, levels_text, pauses_text, read_growth, read_levels, read_pauses, read_wait, stored,
    under_way, wait_text,
};

use crate::child::ToStop;
use crate::error::Error;
use crate::model::{Placed, RunHead};
use rows::Fence;

/// A run, open for change.
pub(crate) struct Keeper<F> {
    facts: F,
    pub(crate) head: Arc<RunHead>,
    pub(crate) now: Millis,
    was: RunRow,
    pub(crate) run: RunRow,
    tasks: BTreeMap<Position, Kept>,
    sets: BTreeMap<u32, (Counts, bool)>,
    events: Vec<Fact>,
    attempts: Vec<Record>,
    layers: Vec<KeptLayer>,
    keys: KeyChanges,
    waits: Vec<(Gate, Duration)>,
    /// Keys that others have let go of in this transaction, and that are yet to be handed on.
    promised: BTreeSet<Key>,
    /// Who was live before this transaction, once somebody asked, and by how many that has changed
    /// since.
    live: Option<u32>,
    live_since: i64,
    /// Pending tasks whose gates may have changed.
    to_examine: VecDeque<Position>,
    /// Those of them that keep their place in line: looked at before a free place is given to
    /// anybody.
    to_line_up: Vec<Position>,
    /// One of these is being looked at.
    is_lining_up: bool,
    /// Whether a place under `max_parallel` may be free, or may have somebody new to take it.
    may_fill: bool,
    /// Whether a task has left its place, or an item has come into the line, since that was last
    /// looked at.
    has_left: bool,
    /// How a step of the level that is next is being looked at, of a run that goes level by level.
    look: Option<leveling::Look>,
    /// Groups in which a place may be free for a member that waits for one.
    roomy: BTreeSet<u32>,
    /// The same for steps with `for_each`, and their items.
    roomy_steps: BTreeSet<Position>,
    /// By how many the live items of such a step have changed.
    items_live: BTreeMap<Position, i64>,
    /// Items that are yet to be tasks, by step and number: to be kept, or to be forgotten.
    batches: BTreeMap<(Position, u32), Option<String>>,
    /// Steps of which everything that is stored about items goes.
    removed: BTreeSet<Position>,
    /// Steps that have items in the places of such.
    regrown: BTreeSet<Position>,
    /// Runs that are to be started, or are so no more, by the task that waits for them.
    wanted: BTreeMap<Position, Option<Wanted>>,
    /// Runs that are to end, because who waits for them does.
    to_stop: Vec<ToStop>,
}

/// A task's row that was looked at.
#[derive(Debug)]
struct Kept {
    was: Fence,
    was_in_line: bool,
    row: TaskRow,
    touch: Touch,
}

impl<F: Facts> Keeper<F> {
    pub(crate) fn new(facts: F, head: Arc<RunHead>, run: RunRow, now: Millis) -> Self {
        Self {
            facts,
            head,
            now,
            was: run.clone(),
            run,
            tasks: BTreeMap::new(),
            sets: BTreeMap::new(),
            events: Vec::new(),
            attempts: Vec::new(),
            layers: Vec::new(),
            keys: KeyChanges::default(),
            waits: Vec::new(),
            promised: BTreeSet::new(),
            live: None,
            live_since: 0,
            to_examine: VecDeque::new(),
            to_line_up: Vec::new(),
            is_lining_up: false,
            may_fill: false,
            has_left: false,
            look: None,
            roomy: BTreeSet::new(),
            roomy_steps: BTreeSet::new(),
            items_live: BTreeMap::new(),
            batches: BTreeMap::new(),
            removed: BTreeSet::new(),
            regrown: BTreeSet::new(),
            wanted: BTreeMap::new(),
            to_stop: Vec::new(),
        }
    }

    /// Whether the run starts nothing but clean-up any more.
    pub(crate) fn is_closing(&self) -> bool {
        self.run.closing.is_some() || self.run.status.is_final()
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.head.plan
    }

    pub(crate) fn step(&self, position: Position) -> &Step {
        self.plan().step(position)
    }

    /// The name of a task: that of its step, or of the item that it is.
    pub(crate) fn name(&self, position: Position) -> String {
        self.plan().task_name(position)
    }

    /// Numbers a fact and keeps it. The run is locked, so there are no gaps.
    pub(crate) fn append(&mut self, fact: impl Into<Fact>) {
        self.run.last_event += 1;
        self.events.push(fact.into());
    }

    pub(crate) fn task(&mut self, position: Position) -> Result<&TaskRow, F::Error> {
        Ok(&self.kept(position)?.row)
    }

    fn kept(&mut self, position: Position) -> Result<&mut Kept, F::Error> {
        if self.plan().base(position).is_none() {
            return Err(unreadable("position of a task", &position.to_string()).into());
        }
        if !self.tasks.contains_key(&position) {
            let row = self.facts.task(position)?;
            self.keep(position, row);
        }
        Ok(self.tasks.get_mut(&position).expect("it was put there if it was missing"))
    }

    /// Takes in a row as it is stored, unless it has been looked at before.
    fn keep(&mut self, position: Position, row: TaskRow) {
        self.tasks.entry(position).or_insert_with(|| Kept {
            was: row.fence(),
            was_in_line: row.is_in_line(),
            row,
            touch: Touch::Nothing,
        });
    }

    fn keep_all(&mut self, rows: Rows) {
        for (position, row) in rows {
            self.keep(position, row);
        }
    }

    /// The one way in which a task's row changes.
    fn change(&mut self, position: Position, change: impl FnOnce(&mut TaskRow)) -> Result<(), F::Error> {
        let kept = self.kept(position)?;
        let (was, was_live) = (kept.row.status, kept.row.status.is_live());
        let watched = kept.row.watched_rate().map(str::to_owned);
        change(&mut kept.row);
        kept.touch = kept.touch.max(Touch::Whole);
        let status = kept.row.status;
        // Of those who wait at a rate one is woken for all. When that one goes, another has to be.
        if let Some(name) = watched.filter(|name| kept.row.watched_rate() != Some(name)) {
            self.keys.freed.insert(Key::Limit(name));
        }
        match (was_live, status.is_live()) {
            (true, false) => {
                self.live_since -= 1;
                self.may_fill = true;
                self.has_left = true;
                self.free_keys(position);
                self.leave_group(position);
            }
            (false, true) => self.live_since += 1,
            (true, true) | (false, false) => {}
        }
        // An item is parked while the run goes on that it has started: so many of them as may run
        // at once.
        let holds = |status: TaskStatus| status.is_live() || status == TaskStatus::Parked;
        match (holds(was), holds(status)) {
            (true, false) => {
                self.leave_group(position);
                self.count_item(position, -1);
            }
            (false, true) => self.count_item(position, 1),
            (true, true) | (false, false) => {}
        }
        if was.is_final() != status.is_final() {
            self.stand_in_order(position, !status.is_final());
        }
        Ok(())
    }

    /// An item is live, or is so no more.
    fn count_item(&mut self, position: Position, change: i64) {
        if let Some((step, _)) = self.bounded_items(position) {
            *self.items_live.entry(step).or_default() += change;
        }
    }

    /// These keys became free and are yet to be handed on: no newcomer takes one before a task that
    /// waits longer.
    pub(crate) fn promise(&mut self, keys: BTreeSet<Key>) {
        self.promised = keys;
    }

    /// Looks at a pending task's gates in the end.
    pub(crate) fn examine_later(&mut self, position: Position) {
        self.may_fill = true;
        self.to_examine.push_back(position);
    }

    /// A task that has a rank from before stands in line by that, before a free place of its run
    /// goes to the first.
    pub(crate) fn line_up_later(&mut self, position: Position) {
        // Steps of a level stand in no line of their own.
        if self.is_leveled() {
            return self.examine_later(position);
        }
        self.may_fill = true;
        self.to_line_up.push(position);
    }

    /// New tasks wait in line.
    pub(crate) fn fill_later(&mut self) {
        self.may_fill = true;
    }

    /// Does everything that follows, and ends the run if nothing is left.
    pub(crate) fn conclude(mut self) -> Result<Changes, F::Error> {
        if self.is_leveled() {
            if self.may_fill {
                self.pump_levels()?;
            }
        } else if self.may_fill || !self.roomy.is_empty() || !self.roomy_steps.is_empty() {
            self.pump()?;
        }
        if self.run.unsettled == 0 && !self.run.status.is_final() {
            self.finish_run()?;
        }
        let is_shared = self.head.placed != Placed::Local;
        let bound = (is_shared && self.run.owner != self.was.owner).then_some(self.run.owner);
        let tasks = self.tasks.into_iter().filter(|(_, kept)| kept.touch > Touch::Nothing);
        Ok(Changes {
            was: self.was,
            run: self.run,
            tasks: tasks
                .map(|(position, kept)| Changed { position, was: kept.was, row: kept.row, touch: kept.touch })
                .collect(),
            sets: self
                .sets
                .into_iter()
                .filter(|(_, (_, is_changed))| *is_changed)
                .map(|(set, (counts, _))| (set, counts))
                .collect(),
            events: self.events,
            attempts: self.attempts,
            layers: self.layers,
            keys: self.keys,
            waits: self.waits,
            bound,
            batches: self.batches,
            removed: self.removed.into_iter().map(|step| (step, self.head.plan.items_of(step))).collect(),
            regrown: self.regrown.into_iter().map(|step| (step, self.head.plan.items_of(step))).collect(),
            wanted: self.wanted,
            to_stop: self.to_stop,
        })
    }

    fn finish_run(&mut self) -> Result<(), F::Error> {
        let failure = self.first_failure()?;
        let (step, reason) = match (self.run.closing, failure) {
            (Some(Closing::Canceled), _) => (RunMove::Cancel, self.run.reason.take()),
            (Some(Closing::RunTimeout), _) => (RunMove::Fail, self.run.reason.take()),
            (Some(Closing::Halted | Closing::Aborted) | None, Some(failure)) => {
                (RunMove::Fail, Some(failure))
            }
            (Some(Closing::Halted | Closing::Aborted) | None, None) => (RunMove::Succeed, None),
        };
        self.run.status = self.run.status.next(step)?;
        self.run.reason.clone_from(&reason);
        self.run.finished_at = Some(self.now);
        self.run.not_before = None;
        // Of a run that was canceled it says how long its hooks have. None start that have no time
        // (`firings_add`).
        if !self.is_canceling() {
            self.run.deadline_at = None;
        }
        let has_time = !self.is_canceling() || self.run.deadline_at.is_some();
        // The hooks of a local run are its owner's as long as that lives, which is known by this.
        // It lets go when it has seen to them (`settle`), or with its end.
        let owes_hooks = self.head.placed == Placed::Local
            && has_time
            && hook::ends(&self.head.plan.workflow).contains(&self.run.status);
        self.run.owner = self.run.owner.filter(|_| owes_hooks);
        // What has ended is held up by nobody; one that is opened again asks its workflow anew.
        self.run.pauses.clear();
        self.append(RunFinished { status: self.run.status, reason });
        Ok(())
    }

    /// Which step failed and why, in one line.
    fn first_failure(&mut self) -> Result<Option<String>, F::Error> {
        if self.plan().workflow.groups.iter().any(|group| group.failure == GroupFailure::Lenient) {
            return self.first_that_counts();
        }
        let stored = self.facts.failures()?;
        let mut count = stored.as_ref().map_or(0, |failures| failures.count);
        // One that a person let pass failed no more. Whoever does that has looked at every task of
        // the run.
        let has_failed = |failures: &Failures| {
            self.tasks.get(&failures.position).is_none_or(|kept| kept.row.status == TaskStatus::Failed)
        };
        let mut first = stored.filter(has_failed);
        let steps = self.plan().workflow.steps.len() as Position;
        // Of items their step tells.
        for (position, kept) in self.tasks.range(..steps) {
            let (was, is) = (kept.was.status == TaskStatus::Failed, kept.row.status == TaskStatus::Failed);
            count = count + u64::from(is && !was) - u64::from(was && !is);
            let failed = Failures {
                position: *position,
                reason: kept.row.reason,
                detail: kept.row.detail.clone(),
                finished_at: kept.row.finished_at,
                count: 0,
            };
            let key = |failures: &Failures| (failures.finished_at, failures.position);
            if is && first.as_ref().is_none_or(|first| key(&failed) < key(first)) {
                first = Some(failed);
            }
        }
        Ok(first.map(|first| self.failure_in_words(first, count)))
    }

    fn failure_in_words(&self, first: Failures, count: u64) -> String {
        let why = first.detail.or(first.reason.map(|reason| reason.to_string())).unwrap_or_default();
        let more = if count > 1 { format!(" (and {} more failed)", count - 1) } else { String::new() };
        format!("{} failed: {why}{more}", self.name(first.position))
    }
}

pub(crate) fn unreadable(what: &str, found: &str) -> Error {
    Error::Unreadable { what: what.to_owned(), why: format!("`{found}` is not known") }
}

pub(crate) fn no_such_step(head: &RunHead, step: &str) -> Error {
    let names = head.plan.workflow.steps.iter().map(|known| known.name.as_str());
    let nearest = nearest(step, names).map(str::to_owned);
    Error::NoSuchStep { run: head.run, step: step.to_owned(), nearest }
}
