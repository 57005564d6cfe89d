//! Questions to a plan.

use super::{Plan, Position};
use crate::class::{Class, Room};
use crate::definition::{Execution, Housing, Pool, Step};
use crate::growth;

impl Plan {
    /// The pool that a step uses. Its group has the last word on how members share containers.
    pub fn pool_of(&self, position: Position) -> Option<Pool> {
        let name = match self.step(position).housing()? {
            Housing::Pool(name) => name,
            Housing::Own(_) => return None,
        };
        let pool = self.workflow.pools.iter().find(|pool| pool.name == *name)?;
        let mode = self.group_of(position).and_then(|group| self.group(group).mode);
        Some(Pool { mode: mode.unwrap_or(pool.mode), ..pool.clone() })
    }

    /// Which nodes can run a step, and in which of their pools it needs room.
    pub fn class_of(&self, position: Position) -> Class {
        let room = self.pool_of(position).as_ref().and_then(Room::of);
        Class { room, ..Class::of(self.step(position)) }
    }

    /// The pools of a name, each as its steps use it; as it is declared, if none does.
    pub fn pools_named(&self, name: &str) -> Vec<Pool> {
        let mut pools: Vec<Pool> = Vec::new();
        let positions = 0..Position::try_from(self.workflow.steps.len()).unwrap_or(Position::MAX);
        for pool in positions.filter_map(|position| self.pool_of(position)).filter(|pool| pool.name == name) {
            if !pools.contains(&pool) {
                pools.push(pool);
            }
        }
        if pools.is_empty() {
            pools.extend(self.workflow.pools.iter().find(|pool| pool.name == name).cloned());
        }
        pools
    }

    /// Whether runs go level by level.
    pub fn is_leveled(&self) -> bool {
        self.workflow.execution != Execution::Dataflow
    }

    /// The steps of a level, by name.
    pub fn level(&self, level: u32) -> Vec<Position> {
        let mut steps = self.levels.get(level as usize).cloned().unwrap_or_default();
        steps.sort_unstable_by(|one, other| self.step(*one).name.cmp(&self.step(*other).name));
        steps
    }

    /// Whether a step waits for nothing but a place, from the start of its run on. What waits for a signal or a moment is
    /// given no place, a condition has to be asked, and a level is taken as a whole.
    pub fn is_ready(&self, position: Position) -> bool {
        if self.is_leveled() {
            return false;
        }
        let step = self.step(position);
        self.needs_set(position).is_none()
            && step.condition.is_none()
            && step.wait().is_none()
            && step.demands().not_before.is_none()
            && !self.is_growing(position)
    }

    /// Finds a task by its name, in O(log steps): that of a step, or of an item of one, `parse[3]`, whether it has that item or not.
    pub fn position(&self, name: &str) -> Option<Position> {
        let (step, item) = growth::parse_name(name);
        let found = self.by_name.binary_search_by(|position| self.step(*position).name.as_str().cmp(step));
        let position = self.by_name[found.ok()?];
        match item {
            None => Some(position),
            Some(index) => self.items_of(position).nth(index as usize),
        }
    }

    /// The step at a position of this plan, or the one whose item stands there.
    pub fn step(&self, position: Position) -> &Step {
        &self.workflow.steps[self.base(position).unwrap_or(position) as usize]
    }

    /// The same of a position that somebody stored, or sent: it may be none of this plan.
    pub fn step_at(&self, position: Position) -> Option<&Step> {
        self.base(position).map(|step| self.step(step))
    }

    /// The needs set of a step; `None` for a root, and for an item, whose step has waited for it.
    pub fn needs_set(&self, position: Position) -> Option<u32> {
        self.needs_set_of.get(position as usize).copied().flatten()
    }

    /// The needs sets in which a step stands; items stand in none.
    pub fn sets_with(&self, position: Position) -> &[u32] {
        self.counted_in.get(position as usize).map_or(&[], Vec::as_slice)
    }

    /// The size of the widest level: how many steps can run at once when all take equally long.
    pub fn width(&self) -> usize {
        self.levels.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Everything behind these steps, directly or through others, sorted. One of `origins` is among it
    /// only where it stands behind another one.
    pub fn dependents_of(&self, origins: impl IntoIterator<Item = Position>) -> Vec<Position> {
        let mut reached = vec![false; self.workflow.steps.len()];
        let mut open: Vec<Position> = origins.into_iter().filter_map(|origin| self.base(origin)).collect();
        while let Some(position) = open.pop() {
            for successor in &self.successors[position as usize] {
                if !std::mem::replace(&mut reached[*successor as usize], true) {
                    open.push(*successor);
                }
            }
        }
        (0..).zip(reached).filter_map(|(position, reached)| reached.then_some(position)).collect()
    }
}
