//! What is known of a run while the gate keeper works on it. Every question to this database is a
//! journey, so the keeper is answered from here; what it asks for and is not here is noted, fetched
//! with everything else that is missing, and the keeper begins anew. It is pure, so that this is
//! safe, and most verbs know beforehand what it will ask.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use laneway_core::gate::{Counts, Tat};
use laneway_core::id::SessionId;
use laneway_core::limit::Limit;
use laneway_core::plan::{Plan, Position};

use super::fault::{Done, Failure};
use crate::fence::ClaimRef;
use crate::keeper::{Facts, Failures, Key, LayerOnNode, Outputs, Rows, TaskRow};
use crate::model::RunHead;

/// Beyond so many rows that may be needed, they are fetched only when they are.
const GUESS: usize = 256;

/// A run with so many steps more than those that have ended may be over with them.
const FEW: usize = 8;

/// Facts of one run, as of the moment at which it was locked.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) tasks: HashMap<Position, TaskRow>,
    pub(super) sets: HashMap<u32, Counts>,
    pub(super) live: Option<u32>,
    /// The first so many of the line.
    pub(super) line: Option<(usize, Rows)>,
    pub(super) unstarted: Option<Rows>,
    pub(super) running: Option<Rows>,
    pub(super) all: Option<Rows>,
    pub(super) failures: Option<Option<Failures>>,
    pub(super) nodes: HashMap<SessionId, Option<Arc<str>>>,
    pub(super) outcomes: HashMap<ClaimRef, Option<String>>,
    pub(super) holders: HashMap<Key, u32>,
    pub(super) smaller: HashMap<(String, String, u32), u32>,
    pub(super) limits: HashMap<String, Option<Limit>>,
    pub(super) tats: HashMap<String, Option<Tat>>,
    pub(super) awaited: HashMap<(String, Position), bool>,
    /// The numbers of the records by which keys became free, of those that have some.
    pub(super) freed: HashMap<Key, Vec<i64>>,
    /// Rank, run and position of the task that waits longest at a key.
    pub(super) first_in_line: HashMap<String, Option<(i64, i64, i64)>>,
    /// The number of this run: it parts tasks of one rank.
    pub(super) no: i64,
    pub(super) takers: HashMap<i64, bool>,
    pub(super) taken_by: HashMap<(SessionId, i64), bool>,
    /// The numbers of the classes of steps.
    pub(super) classes: HashMap<Position, i64>,
    pub(super) layers_on_nodes: Option<Vec<LayerOnNode>>,
    /// Whether runs of its workflow wait for others to end, if that was asked.
    pub(super) queued: Option<bool>,
    /// How many steps its plan has: items stand behind those.
    pub(super) steps: Position,
    pub(super) batches: HashMap<(Position, u32), String>,
    pub(super) items_live: HashMap<Position, u32>,
    /// The first so many of the items of a step that wait for a place.
    pub(super) items_line: HashMap<Position, (usize, Rows)>,
    pub(super) outputs: HashMap<Position, Outputs>,
    pub(super) missing: Missing,
}

/// What is to be fetched.
#[derive(Debug, Default, Clone)]
pub(super) struct Missing {
    pub(super) tasks: BTreeSet<Position>,
    pub(super) sets: BTreeSet<u32>,
    pub(super) live: bool,
    pub(super) line: usize,
    pub(super) unstarted: bool,
    pub(super) running: bool,
    pub(super) all: bool,
    pub(super) failures: bool,
    pub(super) nodes: BTreeSet<SessionId>,
    pub(super) outcomes: Vec<ClaimRef>,
    /// They are locked before they are counted.
    pub(super) holders: BTreeSet<Key>,
    /// Tasks that the ends of others will most likely let on: their keys are locked beforehand.
    pub(super) likely_next: BTreeSet<Position>,
    pub(super) smaller: BTreeSet<(String, String, u32)>,
    pub(super) limits: BTreeSet<String>,
    pub(super) tats: BTreeSet<String>,
    pub(super) awaited: BTreeSet<(String, Position)>,
    pub(super) takers: BTreeSet<i64>,
    pub(super) taken_by: BTreeSet<(SessionId, i64)>,
    pub(super) classes: BTreeSet<Position>,
    pub(super) layers_on_nodes: bool,
    /// Whether runs of its workflow wait for others to end; asked beforehand or not at all.
    pub(super) queued: bool,
    pub(super) batches: BTreeSet<(Position, u32)>,
    pub(super) items_live: BTreeSet<Position>,
    pub(super) items_line: BTreeMap<Position, usize>,
    pub(super) outputs: BTreeSet<Position>,
}

impl Missing {
    /// What an end of these tasks will most likely lead to.
    pub(super) fn for_ends<'c>(plan: &Plan, claims: impl Iterator<Item = &'c ClaimRef>) -> Self {
        let mut missing = Self::for_claims(plan, claims);
        let ended: Vec<Position> = missing.tasks.iter().copied().collect();
        for position in &ended {
            if let Some((step, _)) = plan.item(*position) {
                missing.add_item(plan, step, ended.len());
            }
            for set in plan.sets_with(*position) {
                missing.sets.insert(*set);
                let needs = &plan.needs_sets[*set as usize];
                // These ends alone may decide it: as in a chain.
                if needs.needs.len() <= ended.len() && missing.tasks.len() + needs.waiters.len() < GUESS {
                    missing.tasks.extend(&needs.waiters);
                    missing.likely_next.extend(&needs.waiters);
                }
            }
        }
        missing.live = true;
        missing.line = ended.len() + 8;
        missing.failures = plan.workflow.steps.len() <= ended.len();
        missing.queued = plan.workflow.max_runs.is_none() && plan.workflow.steps.len() <= ended.len() + FEW;
        missing
    }

    /// What the end of items of a step will most likely lead to. When the next are added is told by
    /// their countdown.
    fn add_item(&mut self, plan: &Plan, step: Position, ended: usize) {
        self.sets.extend(plan.items_set(step));
        let is_bounded = plan.step(step).for_each.as_ref().is_some_and(|each| each.max_parallel.is_some());
        if is_bounded {
            self.items_live.insert(step);
            self.items_line.insert(step, 2 * ended + 8);
        }
    }

    /// The same, in a run in which all may run at once: to count who is live takes the longer, the
    /// more there are, and nobody there waits for a place.
    pub(super) fn for_ends_of<'c>(head: &RunHead, claims: impl Iterator<Item = &'c ClaimRef>) -> Self {
        let mut missing = Self::for_ends(&head.plan, claims);
        for position in std::mem::take(&mut missing.likely_next) {
            missing.add_keys(head, position);
        }
        let may_grow = head.plan.workflow.steps.iter().any(|step| step.for_each.is_some());
        if !may_grow
            && missing.sets.is_empty()
            && head.plan.workflow.steps.len() <= head.max_parallel as usize
        {
            missing.live = false;
            missing.line = 1;
        }
        missing
    }

    /// What a word about these claims needs.
    pub(super) fn for_claims<'c>(plan: &Plan, claims: impl Iterator<Item = &'c ClaimRef>) -> Self {
        let mut missing = Self::default();
        for claim in claims {
            missing.nodes.insert(claim.session);
            // A position that the plan does not have is refused by the keeper, in words.
            if plan.base(claim.position).is_some() {
                missing.tasks.insert(claim.position);
            }
        }
        missing
    }

    /// What a look at some pending tasks needs.
    pub(super) fn for_examining(plan: &Plan, positions: &[Position]) -> Self {
        let within = || positions.iter().filter(|position| plan.base(**position).is_some());
        Self {
            tasks: within().copied().collect(),
            sets: within().filter_map(|position| plan.needs_set(*position)).collect(),
            live: true,
            line: positions.len() + 8,
            ..Self::default()
        }
    }

    /// What the end of a task that waits will most likely lead to.
    pub(super) fn for_waking(plan: &Plan, position: Position) -> Self {
        let mut missing = Self::for_examining(plan, &[position]);
        for set in plan.sets_with(position) {
            missing.sets.insert(*set);
            let waiters = &plan.needs_sets[*set as usize].waiters;
            if missing.tasks.len() + waiters.len() < GUESS {
                missing.tasks.extend(waiters);
            }
        }
        missing
    }

    /// What the keys of a task will lead to, in one go: they are locked in one order.
    pub(super) fn add_keys(&mut self, head: &RunHead, position: Position) {
        let Some(keys) = head.keys_of(position, None) else { return };
        for name in &keys.limits {
            self.limits.insert(name.clone());
            self.tats.insert(name.clone());
            self.holders.insert(Key::Limit(name.clone()));
        }
        if let Some(key) = &keys.lock {
            let lock = Key::Lock(key.clone());
            self.tats.insert(lock.text());
            self.holders.insert(lock);
        }
        if let Some((key, _)) = &keys.order {
            self.holders.insert(Key::Order(key.clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
            && self.sets.is_empty()
            && self.nodes.is_empty()
            && self.outcomes.is_empty()
            && self.holders.is_empty()
            && self.smaller.is_empty()
            && self.limits.is_empty()
            && self.tats.is_empty()
            && self.awaited.is_empty()
            && self.takers.is_empty()
            && self.taken_by.is_empty()
            && self.classes.is_empty()
            && self.batches.is_empty()
            && self.items_live.is_empty()
            && self.items_line.is_empty()
            && self.outputs.is_empty()
            && self.line == 0
            && !(self.live || self.unstarted || self.running || self.all || self.failures)
            && !self.layers_on_nodes
    }
}

fn found<T>(known: Option<T>) -> Done<T> {
    known.ok_or(Failure::Missing)
}

impl Facts for &mut Known {
    type Error = Failure;

    fn task(&mut self, position: Position) -> Done<TaskRow> {
        let known = self.tasks.get(&position).cloned();
        if known.is_none() {
            self.missing.tasks.insert(position);
        }
        found(known)
    }

    fn needs_set(&mut self, set: u32) -> Done<Counts> {
        let known = self.sets.get(&set).copied();
        if known.is_none() {
            self.missing.sets.insert(set);
        }
        found(known)
    }

    fn prepare(&mut self, tasks: &[Position], sets: &[u32]) -> Done<()> {
        let known = &**self;
        let tasks: Vec<Position> =
            tasks.iter().copied().filter(|position| !known.tasks.contains_key(position)).collect();
        let sets: Vec<u32> = sets.iter().copied().filter(|set| !known.sets.contains_key(set)).collect();
        if tasks.is_empty() && sets.is_empty() {
            return Ok(());
        }
        self.missing.tasks.extend(tasks);
        self.missing.sets.extend(sets);
        Err(Failure::Missing)
    }

    fn live(&mut self) -> Done<u32> {
        self.missing.live |= self.live.is_none();
        found(self.live)
    }

    fn waiting(&mut self, limit: usize) -> Done<Rows> {
        match &self.line {
            // Fewer than were asked for is all there are.
            Some((asked, rows)) if limit <= *asked || rows.len() < *asked => {
                Ok(rows.iter().take(limit).cloned().collect())
            }
            Some(_) | None => {
                self.missing.line = self.missing.line.max(limit);
                self.missing.live |= self.live.is_none();
                Err(Failure::Missing)
            }
        }
    }

    fn unstarted(&mut self) -> Done<Rows> {
        self.missing.unstarted |= self.unstarted.is_none();
        found(self.unstarted.clone())
    }

    fn running(&mut self) -> Done<Rows> {
        self.missing.running |= self.running.is_none();
        found(self.running.clone())
    }

    fn all(&mut self) -> Done<Rows> {
        self.missing.all |= self.all.is_none();
        found(self.all.clone())
    }

    fn failures(&mut self) -> Done<Option<Failures>> {
        self.missing.failures |= self.failures.is_none();
        found(self.failures.clone())
    }

    fn holders(&mut self, key: &Key) -> Done<u32> {
        let known = self.holders.get(key).copied();
        if known.is_none() {
            self.missing.holders.insert(key.clone());
        }
        found(known)
    }

    fn smaller(&mut self, key: &str, version: &str, up_to: u32) -> Done<u32> {
        let asked = (key.to_owned(), version.to_owned(), up_to);
        let known = self.smaller.get(&asked).copied();
        if known.is_none() {
            // Locked as the others are, though nobody holds an order.
            self.missing.holders.insert(Key::Order(asked.0.clone()));
            self.missing.smaller.insert(asked);
        }
        found(known)
    }

    fn limit(&mut self, name: &str) -> Done<Option<Limit>> {
        let known = self.limits.get(name).copied();
        if known.is_none() {
            self.missing.limits.insert(name.to_owned());
        }
        found(known)
    }

    fn tat(&mut self, name: &str) -> Done<Option<Tat>> {
        let known = self.tats.get(name).copied();
        if known.is_none() {
            self.missing.holders.insert(Key::Limit(name.to_owned()));
            self.missing.tats.insert(name.to_owned());
        }
        found(known)
    }

    fn fence(&mut self, lock: &Key) -> Done<Option<Tat>> {
        let text = lock.text();
        let known = self.tats.get(&text).copied();
        if known.is_none() {
            self.missing.holders.insert(lock.clone());
            self.missing.tats.insert(text);
        }
        found(known)
    }

    fn is_awaited(&mut self, key: &str, by_other_than: Position) -> Done<bool> {
        let asked = (key.to_owned(), by_other_than);
        let known = self.awaited.get(&asked).copied();
        if known.is_none() {
            self.missing.awaited.insert(asked);
        }
        found(known)
    }

    fn has_before(&mut self, key: &str, rank: i64, position: Position) -> Done<bool> {
        // Read with the holders of the key, which are asked for first.
        let first = found(self.first_in_line.get(key).copied())?;
        Ok(first.is_some_and(|first| first < (rank, self.no, i64::from(position))))
    }

    fn has_node(&mut self, class: i64) -> Done<bool> {
        let known = self.takers.get(&class).copied();
        if known.is_none() {
            self.missing.takers.insert(class);
        }
        found(known)
    }

    fn takes(&mut self, session: SessionId, class: i64) -> Done<bool> {
        let known = self.taken_by.get(&(session, class)).copied();
        if known.is_none() {
            self.missing.taken_by.insert((session, class));
        }
        found(known)
    }

    fn class_of(&mut self, position: Position) -> Done<i64> {
        let known = self.classes.get(&position).copied();
        if known.is_none() {
            self.missing.classes.insert(position);
        }
        found(known)
    }

    fn layers_on_nodes(&mut self) -> Done<Vec<LayerOnNode>> {
        self.missing.layers_on_nodes |= self.layers_on_nodes.is_none();
        found(self.layers_on_nodes.clone())
    }

    fn node(&mut self, session: SessionId) -> Done<Option<Arc<str>>> {
        let known = self.nodes.get(&session).cloned();
        if known.is_none() {
            self.missing.nodes.insert(session);
        }
        found(known)
    }

    fn batch(&mut self, step: Position, no: u32) -> Done<String> {
        let known = self.batches.get(&(step, no)).cloned();
        if known.is_none() {
            self.missing.batches.insert((step, no));
        }
        found(known)
    }

    fn items_live(&mut self, step: Position) -> Done<u32> {
        let known = self.items_live.get(&step).copied();
        if known.is_none() {
            self.missing.items_live.insert(step);
        }
        found(known)
    }

    fn items_line(&mut self, step: Position, limit: usize) -> Done<Rows> {
        match self.items_line.get(&step) {
            // Fewer than were asked for is all there are.
            Some((asked, rows)) if limit <= *asked || rows.len() < *asked => {
                Ok(rows.iter().take(limit).cloned().collect())
            }
            Some(_) | None => {
                let asked = self.missing.items_line.entry(step).or_default();
                *asked = limit.max(*asked);
                Err(Failure::Missing)
            }
        }
    }

    fn outputs(&mut self, step: Position) -> Done<Outputs> {
        let known = self.outputs.get(&step).cloned();
        if known.is_none() {
            self.missing.outputs.insert(step);
        }
        found(known)
    }

    fn outcome_of(&mut self, claim: &ClaimRef) -> Done<Option<String>> {
        let known = self.outcomes.get(claim).cloned();
        if known.is_none() {
            self.missing.outcomes.push(*claim);
        }
        found(known)
    }
}
