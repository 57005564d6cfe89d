//! Why a task is not running, in full: which gate, who holds it, since when, what would open it.
//! Computed when somebody reads it, from what the gate keeper has stored (one word a task): rewriting the text of
//! every waiter at every release would be quadratic.

use std::collections::HashMap;

use serde::Serialize;

use crate::gate::Gate;
use crate::plan::{Plan, Position};
use crate::run_state::{RunState, TaskState};
use crate::state::TaskStatus;
use crate::time::Millis;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub gate: &'static str,
    /// Steps that stand in the way, by name; cut to a readable number.
    pub holders: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What would open it.
    pub opens: String,
    /// One sentence with all of it.
    pub text: String,
}

/// Holders named in a cause; a set of thousands is counted, not listed.
const NAMED: usize = 5;

/// By position: the cause of every task that waits. `gates` is what the store keeps of each pending task.
pub fn causes(
    plan: &Plan,
    state: &RunState,
    gates: &[Option<Gate>],
    is_interrupted: bool,
) -> Vec<Option<Cause>> {
    let live: Vec<&TaskState> = state.tasks.iter().filter(|task| task.status.is_live()).collect();
    // Steps with equal needs wait for the same, so that is looked up once for all of them.
    let mut waits: HashMap<u32, Holders> = HashMap::new();
    let cause = |(position, (task, gate)): (usize, (&TaskState, &Option<Gate>))| match (task.status, gate) {
        (TaskStatus::Pending, Some(Gate::Needs)) => {
            let set = plan.needs_set_of[position]?;
            let holders = waits.entry(set).or_insert_with(|| Holders::of_set(plan, state, set));
            Some(needs(plan, position as Position, holders))
        }
        (TaskStatus::Pending, Some(Gate::RunAt)) => Some(run_at(task)),
        (TaskStatus::Pending, Some(Gate::MaxParallel)) => Some(max_parallel(state, &live)),
        (TaskStatus::Available, _) => Some(slot(is_interrupted)),
        (TaskStatus::Pending, None)
        | (
            TaskStatus::Running
            | TaskStatus::Parked
            | TaskStatus::Succeeded
            | TaskStatus::Failed
            | TaskStatus::Canceled
            | TaskStatus::Skipped,
            _,
        ) => None,
    };
    state.tasks.iter().zip(gates).enumerate().map(cause).collect()
}

/// Those who stand in the way of a needs set.
struct Holders {
    names: Vec<String>,
    text: String,
    since: Option<Millis>,
}

impl Holders {
    fn of_set(plan: &Plan, state: &RunState, set: u32) -> Self {
        let waits: Vec<&TaskState> = plan.needs_sets[set as usize]
            .needs
            .iter()
            .map(|need| &state.tasks[*need as usize])
            .filter(|task| !task.status.is_final())
            .collect();
        Self {
            names: names(&waits),
            text: listed(&waits, |task| format!("{} ({})", task.step, task.status)),
            since: waits.iter().filter_map(|task| task.started_at).min(),
        }
    }
}

fn needs(plan: &Plan, position: Position, holders: &Holders) -> Cause {
    Cause {
        gate: Gate::Needs.as_str(),
        holders: holders.names.clone(),
        since: holders.since.map(|at| at.to_string()),
        opens: format!("when `{}` holds for what it needs", plan.step(position).when.as_str()),
        text: format!("waits for {}", holders.text),
    }
}

fn run_at(task: &TaskState) -> Cause {
    let moment = task.run_at.map(|at| at.to_string()).unwrap_or_default();
    let why = task.detail.clone().or(task.reason.map(|reason| reason.to_string())).unwrap_or_default();
    Cause {
        gate: Gate::RunAt.as_str(),
        holders: Vec::new(),
        since: None,
        opens: format!("at {moment}"),
        text: format!("waits until {moment} to be tried again (attempt {} ended with {why})", task.attempt),
    }
}

fn max_parallel(state: &RunState, live: &[&TaskState]) -> Cause {
    let since: Option<Millis> = live.iter().filter_map(|task| task.started_at).min();
    let verb = if live.len() == 1 { "holds" } else { "hold" };
    Cause {
        gate: Gate::MaxParallel.as_str(),
        holders: names(live),
        since: since.map(|at| at.to_string()),
        opens: "when one of them ends".to_owned(),
        text: format!(
            "waits for a place: max_parallel is {} and {} {verb} it",
            state.max_parallel,
            listed(live, |task| task.step.clone())
        ),
    }
}

fn slot(is_interrupted: bool) -> Cause {
    let (opens, text) = if is_interrupted {
        ("when somebody resumes the run", "ready, but the process that ran this run is gone")
    } else {
        ("when a slot of its node is free", "ready, waits for a free slot")
    };
    Cause { gate: "slot", holders: Vec::new(), since: None, opens: opens.to_owned(), text: text.to_owned() }
}

fn names(tasks: &[&TaskState]) -> Vec<String> {
    tasks.iter().take(NAMED).map(|task| task.step.clone()).collect()
}

fn listed(tasks: &[&TaskState], name: impl Fn(&TaskState) -> String) -> String {
    let mut text = tasks.iter().take(NAMED).map(|task| name(task)).collect::<Vec<_>>().join(", ");
    if tasks.len() > NAMED {
        text.push_str(&format!(" and {} more", tasks.len() - NAMED));
    }
    text
}
