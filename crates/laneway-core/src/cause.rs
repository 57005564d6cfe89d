//! Why a task is not running, in full: which gate, who holds it, since when, what would open it.
//! Computed when somebody reads it, from what the gate keeper has stored (a word and a key for each task): rewriting the
//! text of every waiter at every release would be quadratic. Here are the gates that a run knows of by itself;
//! `cause/shared.rs` has those that runs share, `cause/parked.rs` what a parked task waits for, `cause/items.rs` what items and their
//! step wait for, `cause/chain.rs` follows holders that wait themselves.

use std::collections::HashMap;

use serde::Serialize;

use crate::definition::{Housing, Step};
use crate::expression::Template;
use crate::gate::Gate;
use crate::id::RunId;
use crate::plan::{Plan, Position};
use crate::run_state::{RunState, TaskState};
use crate::state::TaskStatus;
use crate::time::Millis;

mod bound;
mod chain;
mod items;
mod parked;
mod pool;
mod port;
mod shared;
#[cfg(test)]
mod tests;

pub use bound::BoundWait;
pub use chain::{Link, chain};
pub use pool::{ImagePull, PoolHolder, PoolWait};
pub use port::PortWait;
pub use shared::{LimitWait, LockWait, MaxRunsWait, NodeWait, OrderWait, PausedWait, RateWait};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cause {
    pub gate: &'static str,
    /// The key of a lock or an order, or the name of a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who stands in the way, in words: steps of its own run by name; cut to a readable number.
    pub holders: Vec<String>,
    /// The same for holders of any run, for whoever follows them; cut to the same number.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<Holder>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What would open it.
    pub opens: String,
    /// The moment that opens it, if only time does.
    #[serde(serialize_with = "as_text", skip_serializing_if = "Option::is_none")]
    pub opens_at: Option<Millis>,
    /// One sentence with all of it.
    pub text: String,
}

/// A task that holds what another one waits for, or stands before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Holder {
    pub run: RunId,
    pub step: String,
    pub status: TaskStatus,
    /// Who runs it; `None` as long as nobody does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Since when it holds the key, or waits for it.
    #[serde(serialize_with = "as_text", skip_serializing_if = "Option::is_none")]
    pub since: Option<Millis>,
}

/// A place in a line, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Place {
    pub at: u32,
    pub of: u32,
}

/// What a pending task waits for: the gate, and what the store found behind it where the run alone cannot know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waits {
    Needs,
    /// Its `not_before`, or the delay of a retry.
    RunAt {
        until: Option<Millis>,
    },
    /// The run as a whole was submitted for later.
    NotBefore(Millis),
    MaxParallel,
    /// Its group has no place for it.
    Group,
    /// Its level is taken as a whole.
    Level,
    /// The run is to stay on one node, and that is not known yet.
    FirstTask,
    MaxRuns(MaxRunsWait),
    Paused(PausedWait),
    Node(NodeWait),
    Order(OrderWait),
    Lock(LockWait),
    Limit(LimitWait),
    Rate(RateWait),
    /// Its container needs a port of the host, and none is free.
    Port(PortWait),
    /// It needs a container of a pool.
    Pool(PoolWait),
    /// Only one node may take it, because of the files that are there.
    Bound(BoundWait),
}

impl Waits {
    /// For gates about which the run knows everything; `None` for those whose facts have to be read.
    pub fn of_run(gate: Gate) -> Option<Self> {
        match gate {
            Gate::Needs => Some(Self::Needs),
            Gate::MaxParallel => Some(Self::MaxParallel),
            Gate::Group => Some(Self::Group),
            Gate::Level => Some(Self::Level),
            Gate::RunAt
            | Gate::MaxRuns
            | Gate::Paused
            | Gate::Node
            | Gate::Order
            | Gate::Lock
            | Gate::Limit
            | Gate::Rate => None,
        }
    }
}

/// The gate of what waits for a moment that its document or its caller named.
const NOT_BEFORE: &str = "not_before";

/// Holders named in a cause; a set of thousands is counted, not listed.
const NAMED: usize = 5;

/// By position: the cause of every task that waits. `waits` is what the store keeps of each pending task.
pub fn causes(
    plan: &Plan,
    state: &RunState,
    waits: &[Option<Waits>],
    is_interrupted: bool,
) -> Vec<Option<Cause>> {
    let live: Vec<&TaskState> = state.tasks.iter().filter(|task| task.status.is_live()).collect();
    // Steps with equal needs wait for the same, so that is looked up once for all of them.
    let mut sets: HashMap<u32, Holders> = HashMap::new();
    let mut grown = items::Grown::default();
    let cause = |(place, (task, wait)): (usize, (&TaskState, &Option<Waits>))| {
        // Items stand behind the steps, as many as there are by now.
        let position = match &task.item {
            None => place as Position,
            Some(item) => plan.items_of(plan.position(&item.of)?).nth(item.index as usize)?,
        };
        match (task.status, wait) {
            (TaskStatus::Pending, Some(Waits::Needs)) => {
                let set = plan.needs_set(position)?;
                let holders = sets.entry(set).or_insert_with(|| Holders::of_set(plan, state, set));
                if holders.names.is_empty() && plan.is_leveled() {
                    return Some(level(plan, state, position));
                }
                Some(needs(plan, position, holders))
            }
            (TaskStatus::Pending, Some(Waits::Level)) => Some(level(plan, state, position)),
            (TaskStatus::Pending, Some(Waits::RunAt { until })) => Some(match (task.run_at, until) {
                (None, Some(until)) => not_before(plan.step(position), *until),
                (Some(_), _) | (None, None) => run_at(task),
            }),
            (TaskStatus::Pending, Some(Waits::NotBefore(at))) => Some(submitted_for_later(*at)),
            (TaskStatus::Pending, Some(Waits::MaxParallel)) => Some(max_parallel(state, &live)),
            (TaskStatus::Pending, Some(Waits::Group)) => match plan.item(position) {
                None => group(plan, state, position),
                Some((step, _)) => Some(items::place(plan.step(step), &live)),
            },
            (TaskStatus::Pending, Some(Waits::FirstTask)) => Some(first_task(&live)),
            (TaskStatus::Pending, Some(Waits::MaxRuns(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Paused(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Node(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Order(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Lock(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Limit(wait))) => Some(wait.cause()),
            (TaskStatus::Pending, Some(Waits::Rate(wait))) => Some(wait.cause()),
            // Whoever could run it has left, or its engine has.
            (TaskStatus::Available, Some(Waits::Node(wait))) => Some(wait.cause()),
            (TaskStatus::Available | TaskStatus::Running, Some(Waits::Port(wait))) if !is_interrupted => {
                Some(wait.cause())
            }
            (TaskStatus::Available | TaskStatus::Running, Some(Waits::Pool(wait))) if !is_interrupted => {
                Some(wait.cause())
            }
            (TaskStatus::Available, Some(Waits::Bound(wait))) => {
                Some(wait.cause(plan.step(position), is_interrupted))
            }
            (TaskStatus::Available, _) => Some(slot(plan.step(position), is_interrupted)),
            (TaskStatus::Parked, _) if plan.is_growing(position) => items::parked(state, task, &mut grown),
            (TaskStatus::Parked, _) => parked::cause(plan.step(position).wait()?, state.run, task),
            (TaskStatus::Pending, None | Some(Waits::Port(_) | Waits::Pool(_) | Waits::Bound(_)))
            | (
                TaskStatus::Running
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled
                | TaskStatus::Skipped,
                _,
            ) => None,
        }
    };
    state.tasks.iter().zip(waits).enumerate().map(cause).collect()
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
        holders: holders.names.clone(),
        since: holders.since.map(|at| at.to_string()),
        opens: format!("when `{}` holds for what it needs", plan.step(position).when.as_str()),
        text: format!("waits for {}", holders.text),
        ..Cause::at(Gate::Needs)
    }
}

fn run_at(task: &TaskState) -> Cause {
    let moment = task.run_at.map(|at| at.to_string()).unwrap_or_default();
    let why = task.detail.clone().or(task.reason.map(|reason| reason.to_string())).unwrap_or_default();
    Cause {
        opens: format!("at {moment}"),
        opens_at: task.run_at,
        text: format!("waits until {moment} to be tried again (attempt {} ended with {why})", task.attempt),
        ..Cause::at(Gate::RunAt)
    }
}

fn not_before(step: &Step, until: Millis) -> Cause {
    let written = step.demands().not_before.as_ref().map(Template::source).unwrap_or_default();
    Cause {
        gate: NOT_BEFORE,
        opens: format!("at {until}"),
        opens_at: Some(until),
        text: format!("waits until {until} (`not_before: {written}`)"),
        ..Cause::at(Gate::RunAt)
    }
}

fn submitted_for_later(at: Millis) -> Cause {
    Cause {
        gate: NOT_BEFORE,
        opens: format!("at {at}"),
        opens_at: Some(at),
        text: format!("its run {}", run_not_before(at)),
        ..Cause::at(Gate::MaxRuns)
    }
}

/// Why nothing of a run starts that was submitted for later.
pub fn run_not_before(at: Millis) -> String {
    format!("waits until {at}, for which it was submitted")
}

fn max_parallel(state: &RunState, live: &[&TaskState]) -> Cause {
    let since: Option<Millis> = live.iter().filter_map(|task| task.started_at).min();
    let verb = if live.len() == 1 { "holds" } else { "hold" };
    Cause {
        holders: names(live),
        since: since.map(|at| at.to_string()),
        opens: "when one of them ends".to_owned(),
        text: format!(
            "waits for a place: max_parallel is {} and {} {verb} it",
            state.max_parallel,
            listed(live, |task| task.step.clone())
        ),
        ..Cause::at(Gate::MaxParallel)
    }
}

/// Of a step whose level is not under way, or whose level is taken with another step.
fn level(plan: &Plan, state: &RunState, position: Position) -> Cause {
    let (own, next) =
        (plan.level_of[position as usize], state.levels.as_ref().map_or(0, |levels| levels.count));
    let mut open: Vec<&TaskState> = plan.levels[next.min(own) as usize]
        .iter()
        .map(|one| &state.tasks[*one as usize])
        .filter(|task| !task.status.is_final() && task.step != plan.step(position).name)
        .collect();
    open.sort_unstable_by(|one, other| one.step.cmp(&other.step));
    let others = listed(&open, |task| task.step.clone());
    let (opens, text) = if next < own {
        (
            "when the levels before its own are committed",
            format!("level {own} comes behind level {next}, of which {others} is not over"),
        )
    } else if plan.step(position).wait().is_some() {
        (
            "when the other steps of its level are done",
            format!("what waits comes behind the other steps of its level: {others}"),
        )
    } else {
        ("when somebody takes its level", format!("its level is taken as a whole, with {others}"))
    };
    Cause { holders: names(&open), opens: opens.to_owned(), text, ..Cause::at(Gate::Level) }
}

/// Of a member of a group that lets only so many at once.
fn group(plan: &Plan, state: &RunState, position: Position) -> Option<Cause> {
    let number = plan.group_of(position)?;
    let (group, members) = (plan.group(number), plan.members(number).iter());
    let live: Vec<&TaskState> =
        members.map(|member| &state.tasks[*member as usize]).filter(|task| task.status.is_live()).collect();
    let since: Option<Millis> = live.iter().filter_map(|task| task.started_at).min();
    let verb = if live.len() == 1 { "holds" } else { "hold" };
    Some(Cause {
        holders: names(&live),
        since: since.map(|at| at.to_string()),
        opens: "when one of them ends".to_owned(),
        text: format!(
            "waits for a place in its group `{}`: max_parallel is {} and {} {verb} it",
            group.name,
            group.max_parallel.map_or(0, std::num::NonZeroU32::get),
            listed(&live, |task| task.step.clone())
        ),
        ..Cause::at(Gate::Group)
    })
}

/// Of a pinned run that no node has yet.
fn first_task(live: &[&TaskState]) -> Cause {
    Cause {
        holders: names(live),
        opens: "when its first task has started, on whichever node".to_owned(),
        text: format!(
            "its run stays on one node (placement: pinned), which is known when {} has started",
            listed(live, |task| task.step.clone())
        ),
        ..Cause::at(Gate::MaxParallel)
    }
}

fn slot(step: &Step, is_interrupted: bool) -> Cause {
    let (opens, text) = match (is_interrupted, step.housing()) {
        (true, _) => (
            "when somebody resumes the run".to_owned(),
            "ready, but the process that ran this run is gone".to_owned(),
        ),
        (false, Some(Housing::Pool(pool))) => (
            format!("when a node has a slot free, and room in its pool `{pool}`"),
            format!("ready, waits for a free slot and for room in the pool `{pool}`"),
        ),
        (false, Some(Housing::Own(_)) | None) => {
            ("when a slot of its node is free".to_owned(), "ready, waits for a free slot".to_owned())
        }
    };
    Cause { gate: "slot", opens, text, ..Cause::at(Gate::MaxParallel) }
}

impl Cause {
    /// Without words yet.
    fn at(gate: Gate) -> Self {
        Self {
            gate: gate.as_str(),
            key: None,
            holders: Vec::new(),
            held_by: Vec::new(),
            place: None,
            since: None,
            opens: String::new(),
            opens_at: None,
            text: String::new(),
        }
    }
}

/// As all moments are written for other programs.
fn as_text<S: serde::Serializer>(moment: &Option<Millis>, to: S) -> Result<S::Ok, S::Error> {
    match moment {
        Some(moment) => to.collect_str(moment),
        None => to.serialize_none(),
    }
}

fn names(tasks: &[&TaskState]) -> Vec<String> {
    tasks.iter().take(NAMED).map(|task| task.step.clone()).collect()
}

fn listed<T: ?Sized>(items: &[&T], name: impl Fn(&T) -> String) -> String {
    let mut text = items.iter().take(NAMED).map(|item| name(item)).collect::<Vec<_>>().join(", ");
    if items.len() > NAMED {
        text.push_str(&format!(" and {} more", items.len() - NAMED));
    }
    text
}
