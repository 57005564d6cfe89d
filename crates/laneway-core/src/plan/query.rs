//! Questions to a plan.

use super::{Plan, Position};
use crate::class::{Class, Room};
use crate::definition::{Execution, Housing, Pool, Step};

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
        self.needs_set_of[position as usize].is_none() && step.condition.is_none() && step.wait().is_none()
    }

    /// Finds a step by its name, in O(log steps).
    pub fn position(&self, name: &str) -> Option<Position> {
        self.by_name
            .binary_search_by(|position| self.step(*position).name.as_str().cmp(name))
            .ok()
            .map(|index| self.by_name[index])
    }

    /// The step at a position of this plan.
    pub fn step(&self, position: Position) -> &Step {
        &self.workflow.steps[position as usize]
    }

    /// The size of the widest level: how many steps can run at once when all take equally long.
    pub fn width(&self) -> usize {
        self.levels.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Everything behind these steps, directly or through others, sorted. One of `origins` is among it
    /// only where it stands behind another one.
    pub fn dependents_of(&self, origins: impl IntoIterator<Item = Position>) -> Vec<Position> {
        let mut reached = vec![false; self.workflow.steps.len()];
        let mut open: Vec<Position> = origins.into_iter().collect();
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
