//! What the items of a step with `for_each` wait for in their step, and what the step waits for: its items.

use std::collections::HashMap;

use super::{Cause, listed, names};
use crate::definition::Step;
use crate::gate::Gate;
use crate::run_state::{RunState, TaskState};
use crate::time::Millis;

/// By step: how many of its items have ended, and some that have not. Counted once for all of them.
#[derive(Default)]
pub(super) struct Grown<'s> {
    of: Option<HashMap<&'s str, (u32, Vec<&'s TaskState>)>>,
}

impl<'s> Grown<'s> {
    fn of(&mut self, state: &'s RunState, step: &str) -> (u32, Vec<&'s TaskState>) {
        let all = self.of.get_or_insert_with(|| {
            let mut all: HashMap<&str, (u32, Vec<&TaskState>)> = HashMap::new();
            for task in &state.tasks {
                let Some(item) = &task.item else { continue };
                let (ended, open) = all.entry(item.of.as_str()).or_default();
                match task.status.is_final() {
                    true => *ended += 1,
                    false => open.push(task),
                }
            }
            all
        });
        all.get(step).cloned().unwrap_or_default()
    }
}

/// Of a step that is parked for its items.
pub(super) fn parked<'s>(state: &'s RunState, task: &TaskState, grown: &mut Grown<'s>) -> Option<Cause> {
    let items = task.items?;
    let (ended, open) = grown.of(state, &task.step);
    Some(Cause {
        gate: "items",
        holders: names(&open),
        since: task.started_at.map(|at| at.to_string()),
        opens: "when its last item has ended".to_owned(),
        text: format!("{ended} of its {} items have ended", items.total),
        ..Cause::at(Gate::Needs)
    })
}

/// Of an item whose step lets only so many run at once.
pub(super) fn place(step: &Step, live: &[&TaskState]) -> Cause {
    let is_of = |task: &&&TaskState| task.item.as_ref().is_some_and(|item| item.of == step.name);
    let live: Vec<&TaskState> = live.iter().filter(is_of).copied().collect();
    let since: Option<Millis> = live.iter().filter_map(|task| task.started_at).min();
    let max = step.for_each.as_ref().and_then(|for_each| for_each.max_parallel);
    let verb = if live.len() == 1 { "holds" } else { "hold" };
    Cause {
        holders: names(&live),
        since: since.map(|at| at.to_string()),
        opens: "when one of them ends".to_owned(),
        text: format!(
            "waits for a place among the items of `{}`: max_parallel is {} and {} {verb} it",
            step.name,
            max.map_or(0, std::num::NonZeroU32::get),
            listed(&live, |task| task.step.clone())
        ),
        ..Cause::at(Gate::Group)
    }
}
