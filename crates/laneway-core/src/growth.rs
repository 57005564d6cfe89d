//! Steps that grow: one task for each item of a list that is known only when the step is reached. Owns where items stand among the
//! positions of a plan, how many there may be, in which batches they come, and what is known of a step's items.
//! The gate keeper adds them (`laneway-store/src/keeper/growing.rs`). docs/design/growth.md.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::definition::ForEach;
use crate::expression::{Scope, kind_of};
use crate::plan::{Plan, Position};
use crate::reason::Reason;

/// Steps with `for_each` in one workflow.
pub const MAX_STEPS: usize = 1_000;

/// Items of one step. Each step has so many positions behind those of the plan, whether it uses them or not.
pub const MAX_ITEMS: u32 = 1 << 20;

/// The most that the outputs of a step's items may hold together, to be read as one list, in bytes.
pub const MAX_OUTPUTS: usize = 16 << 20;

/// What is known of the items of a step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// How many there are; `None` as long as its list is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items: Option<Items>,
    /// The highest attempt of items that were removed: those that come in their place go on behind it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// The item that failed first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// Why no more of them are added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Reason>,
}

/// How many items a step has, and how many of them are tasks by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Items {
    pub total: u32,
    pub added: u32,
}

/// The item of a task.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Item {
    /// Its step.
    pub of: String,
    pub index: u32,
    pub value: Value,
}

/// The name of the task of an item.
#[derive(Debug, Clone, Copy)]
pub struct ItemName<'a>(pub &'a str, pub u32);

impl fmt::Display for ItemName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.0, self.1)
    }
}

/// A name as people write it: a step, or one of its items.
pub fn parse_name(name: &str) -> (&str, Option<u32>) {
    let item = || {
        let (step, index) = name.strip_suffix(']')?.split_once('[')?;
        let is_plain =
            index.bytes().all(|byte| byte.is_ascii_digit()) && (index == "0" || !index.starts_with('0'));
        Some((step, index.parse().ok().filter(|_| is_plain)?))
    };
    item().map_or((name, None), |(step, index)| (step, Some(index)))
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl ForEach {
    /// The items, or why there are none to speak of.
    pub fn evaluate(&self, scope: &Scope) -> Result<Vec<Value>, String> {
        match self.items.evaluate(scope) {
            Err(error) => Err(format!("`for_each`: {error}")),
            Ok(Value::Array(items)) if items.len() > MAX_ITEMS as usize => {
                Err(format!("`for_each` has {} items, and {MAX_ITEMS} are allowed", items.len()))
            }
            Ok(Value::Array(items)) => Ok(items),
            Ok(other) => Err(format!("`for_each` must be a list, and it is {}", kind_of(&other))),
        }
    }

    /// Names of the steps that its list reads.
    pub fn steps_read(&self) -> Vec<String> {
        self.items.templates().into_iter().flat_map(|template| template.steps_read()).collect()
    }
}

impl Plan {
    /// Whether a position is that of a step with `for_each`: it is parked while its items run, and runs nothing itself.
    pub fn is_growing(&self, position: Position) -> bool {
        self.workflow.steps.get(position as usize).is_some_and(|step| step.for_each.is_some())
    }

    /// The step that a task belongs to: its own position, or that of the step whose item it is. `None` for a position that this plan
    /// does not have.
    pub fn base(&self, position: Position) -> Option<Position> {
        match position.checked_sub(self.workflow.steps.len() as Position) {
            None => Some(position),
            Some(behind) => self.growing.get((behind / MAX_ITEMS) as usize).copied(),
        }
    }

    /// The step and the index of an item; `None` for the task of a step itself.
    pub fn item(&self, position: Position) -> Option<(Position, u32)> {
        let behind = position.checked_sub(self.workflow.steps.len() as Position)?;
        Some((*self.growing.get((behind / MAX_ITEMS) as usize)?, behind % MAX_ITEMS))
    }

    /// Where the items of a step stand.
    pub fn items_of(&self, step: Position) -> std::ops::Range<Position> {
        match self.growing.binary_search(&step) {
            Ok(place) => {
                let first = self.workflow.steps.len() as Position + place as Position * MAX_ITEMS;
                first..first + MAX_ITEMS
            }
            Err(_) => 0..0,
        }
    }

    /// The countdown of a step's items: those of `needs` come before it.
    pub fn items_set(&self, step: Position) -> Option<u32> {
        let place = self.growing.binary_search(&step).ok()?;
        Some((self.needs_sets.len() + place) as u32)
    }

    /// The step whose items a countdown counts.
    pub fn step_of_set(&self, set: u32) -> Option<Position> {
        self.growing.get((set as usize).checked_sub(self.needs_sets.len())?).copied()
    }

    /// The name of a task: that of its step, with the index of its item if it is one. What is stored can be anything: a position that this
    /// plan does not have is told as such.
    pub fn task_name(&self, position: Position) -> String {
        match (self.item(position), self.base(position)) {
            (Some((step, index)), _) => ItemName(&self.step(step).name, index).to_string(),
            (None, Some(step)) => self.step(step).name.clone(),
            (None, None) => format!("position {position}"),
        }
    }
}

#[cfg(test)]
mod tests;
