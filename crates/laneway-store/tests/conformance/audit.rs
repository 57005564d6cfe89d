//! What must hold after every verb, whatever it was: the history tells the state, limits hold, and nothing
//! is left behind. `recount` looks beneath the verbs, at the counters that the store keeps for itself.

use std::collections::HashMap;
use std::path::Path;

use laneway_core::cause::Cause;
use laneway_core::definition::Placement;
use laneway_core::event::Event;
use laneway_core::gate::{self, Counts, Gate, Needs};
use laneway_core::id::RunId;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::{RunState, TaskState, replay};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Store;
use rusqlite::{Connection, OpenFlags};

use crate::server;

/// The history tells the state byte for byte, and the state is a possible one.
pub(crate) async fn check(store: &dyn Store, run: RunId) {
    // Somebody else may change the run between these looks: then all of them are taken again.
    let (events, stored, view) = loop {
        let events = store.events_since(run, 0, usize::MAX).await.expect("events");
        let stored = store.run_state(run).await.expect("a run");
        let view = store.run(run).await.expect("a view of the run");
        let again = store.events_since(run, 0, usize::MAX).await.expect("events");
        if again.len() == events.len() {
            break (events, stored, view);
        }
    };
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event.seq, index as u64 + 1, "events are numbered from 1 without gaps");
    }
    let plan = store.plan(&stored.version).await.expect("a plan");
    check_replay(&plan, &events, &stored);
    let elsewhere = |cause: &Option<Cause>| {
        let is_so = |gate: &str| gate == "not_before" || Gate::parse(gate).is_some_and(is_behind_others);
        cause.as_ref().is_some_and(|cause| is_so(cause.gate))
    };
    let outside = Outside {
        held_ahead: held_ahead(store, run).await,
        behind_others: view.causes.iter().map(elsewhere).collect(),
        places: match (plan.workflow.placement, &view.owner) {
            // One is offered until it has a node.
            (Placement::Pinned, None) => 1,
            (Placement::Pinned, Some(_)) | (Placement::Spread | Placement::Local, _) => {
                stored.max_parallel as usize
            }
        },
    };
    if plan.is_leveled() {
        check_levels(&plan, &stored, &outside);
    } else {
        check_state(&plan, &stored, &outside);
    }
}

/// Nothing of a run that goes level by level is live but of the level that is next; one of that is offered, or all of it is held.
fn check_levels(plan: &Plan, state: &RunState, outside: &Outside) {
    let next = state.levels.as_ref().map_or(0, |levels| levels.count);
    let is_settled = state.tasks.iter().all(|task| task.status.is_final());
    assert_eq!(state.status.is_final(), is_settled, "a run ends with its last task: {state:#?}");
    let of = |status: TaskStatus| state.tasks.iter().filter(move |task| task.status == status).count();
    assert!(of(TaskStatus::Available) <= 1, "one of a level is offered: {state:#?}");
    for (task, level) in state.tasks.iter().zip(&plan.level_of) {
        let is_begun = task.status.is_live() || task.status == TaskStatus::Parked;
        assert!(!is_begun || *level == next, "{} is not of level {next}: {state:#?}", task.step);
        let is_over = task.status.is_final();
        assert!(is_over || *level >= next, "{} is left behind: {state:#?}", task.step);
    }
    if state.status == RunStatus::Running {
        let moves = |task: &TaskState| task.status.is_live() || task.status == TaskStatus::Parked;
        assert!(
            state.tasks.iter().any(moves) || outside.behind_others.contains(&true),
            "nothing will ever move this run: {state:#?}"
        );
    }
}

/// What the history of a run does not tell about its tasks.
struct Outside {
    /// Somebody has claimed them, and to everybody else they wait for their place.
    held_ahead: Vec<Position>,
    /// By position: whether it waits for something that is not of its run, or for its moment.
    behind_others: Vec<bool>,
    /// How many may be live.
    places: usize,
}

fn is_behind_others(gate: Gate) -> bool {
    match gate {
        Gate::MaxRuns | Gate::Paused | Gate::Node | Gate::Order | Gate::Lock | Gate::Limit | Gate::Rate => {
            true
        }
        Gate::Needs | Gate::RunAt | Gate::Group | Gate::Level | Gate::MaxParallel => false,
    }
}

fn check_replay(plan: &Plan, events: &[Event], stored: &RunState) {
    let names = plan.workflow.steps.iter().map(|step| step.name.as_str());
    let told = replay(names, events).unwrap_or_else(|broken| panic!("{broken}\n{events:#?}"));
    let text = |state: &RunState| serde_json::to_string_pretty(state).expect("a state is plain data");
    assert_eq!(text(&told), text(stored), "what the events tell (left) is what is stored (right)");
}

/// Tasks that somebody has claimed, and that wait for their place to everybody else.
async fn held_ahead(store: &dyn Store, run: RunId) -> Vec<Position> {
    if let Some(beneath) = server::beneath(store.dir()).await {
        let ahead = "SELECT position FROM tasks WHERE is_ahead AND started_at IS NULL
                     AND run_no = (SELECT no FROM runs WHERE id = $1)";
        let rows = beneath.query(ahead, &[&run.to_string()]).await.expect("an answer");
        return rows.iter().map(|row| row.get::<_, i64>(0) as Position).collect();
    }
    let file = Connection::open_with_flags(store.dir().join("laneway.db"), OpenFlags::SQLITE_OPEN_READ_WRITE);
    file.and_then(|file| {
        file.prepare(
            "SELECT position FROM tasks WHERE is_ahead = 1 AND started_at IS NULL
             AND run_no = (SELECT no FROM runs WHERE id = ?1)",
        )?
        .query_map([run.to_string()], |row| row.get(0))?
        .collect()
    })
    .expect("the store's file")
}

fn check_state(plan: &Plan, state: &RunState, outside: &Outside) {
    let ahead = &outside.held_ahead;
    let live = state.tasks.iter().filter(|task| task.status.is_live()).count();
    assert!(live <= outside.places, "{live} live of {}", outside.places);
    let is_settled = state.tasks.iter().all(|task| task.status.is_final());
    assert_eq!(state.status.is_final(), is_settled, "a run ends with its last task: {state:#?}");
    for (place, task) in state.tasks.iter().enumerate() {
        let position = plan.position(&task.step).expect("a task of this plan");
        let is_full = live + ahead.len() >= outside.places;
        if ahead.contains(&position) || outside.behind_others[place] {
            continue;
        }
        match plan.item(position) {
            None => check_task(plan, state, position, task, is_full),
            Some((step, _)) => check_item(plan, state, step, task, is_full),
        }
    }
    check_growth(plan, state);
    if state.status == RunStatus::Running {
        let moves = |task: &TaskState| {
            task.status.is_live() || task.run_at.is_some() || task.status == TaskStatus::Parked
        };
        assert!(
            !ahead.is_empty() || state.tasks.iter().any(moves) || outside.behind_others.contains(&true),
            "nothing will ever move this run: {state:#?}"
        );
    }
}

/// A task is live only behind needs that are met, and waits only behind needs that are not.
fn check_task(plan: &Plan, state: &RunState, position: Position, task: &TaskState, is_full: bool) {
    let counts = count(&state.tasks, &plan.needs[position as usize]);
    let when = plan.step(position).when;
    let needs = if plan.needs[position as usize].is_empty() { Needs::Met } else { gate::needs(when, counts) };
    match task.status {
        TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked => {
            assert_eq!(needs, Needs::Met, "{} is live: {state:#?}", task.step);
        }
        TaskStatus::Pending => {
            assert_ne!(needs, Needs::Never, "{} waits for ever: {state:#?}", task.step);
            // What waits for a signal or a moment needs no place for that.
            let is_claimed = plan.step(position).wait().is_none() && !plan.is_growing(position);
            let has_reason = needs == Needs::Wait
                || task.run_at.is_some()
                || is_claimed && is_full
                || is_claimed && is_group_full(plan, state, position);
            assert!(has_reason, "{} waits for nothing: {state:#?}", task.step);
        }
        TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Canceled | TaskStatus::Skipped => {}
    }
}

/// Items are there, and move, only as long as their step is parked; one waits for a place or a moment.
fn check_item(plan: &Plan, state: &RunState, step: Position, task: &TaskState, is_full: bool) {
    let status = state.tasks[step as usize].status;
    match task.status {
        TaskStatus::Pending | TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked => {
            assert_eq!(status, TaskStatus::Parked, "{} has not ended: {state:#?}", task.step);
        }
        TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Canceled | TaskStatus::Skipped => {}
    }
    if task.status == TaskStatus::Pending {
        let has_reason = task.run_at.is_some() || is_full || are_items_full(plan, state, step);
        assert!(has_reason, "{} waits for nothing: {state:#?}", task.step);
    }
}

/// Whether the items of a step have all of its places. There are never more of these than may be.
fn are_items_full(plan: &Plan, state: &RunState, step: Position) -> bool {
    let Some(max) = plan.step(step).for_each.as_ref().and_then(|for_each| for_each.max_parallel) else {
        return false;
    };
    let name = &plan.step(step).name;
    // One that has started a run is parked, and keeps its place.
    let is_live = |task: &&TaskState| {
        let has_place = task.status.is_live() || task.status == TaskStatus::Parked;
        task.item.as_ref().is_some_and(|item| item.of == *name) && has_place
    };
    let live = state.tasks.iter().filter(is_live).count();
    assert!(live <= max.get() as usize, "{live} live items of {max}: {state:#?}");
    live == max.get() as usize
}

/// Items are tasks in their order, and a step that is parked has some that have yet to end.
fn check_growth(plan: &Plan, state: &RunState) {
    for step in &state.tasks {
        let Some(items) = step.items else { continue };
        let of_step: Vec<&TaskState> = state
            .tasks
            .iter()
            .filter(|task| task.item.as_ref().is_some_and(|item| item.of == step.step))
            .collect();
        assert!(plan.is_growing(plan.position(&step.step).expect("a step")));
        assert_eq!(of_step.len(), items.added as usize, "{}: {state:#?}", step.step);
        for (index, task) in of_step.iter().enumerate() {
            assert_eq!(task.item.as_ref().map(|item| item.index as usize), Some(index));
        }
        let is_open = of_step.iter().any(|task| !task.status.is_final());
        assert_eq!(step.status == TaskStatus::Parked, is_open, "{} and its items: {state:#?}", step.step);
    }
}

/// Whether a member waits behind others of its group. There are never more of these than may be.
fn is_group_full(plan: &Plan, state: &RunState, position: Position) -> bool {
    let Some(group) = plan.bounded_group_of(position) else { return false };
    let max = plan.group(group).max_parallel.map_or(0, std::num::NonZeroU32::get) as usize;
    let members = plan.members(group).iter().map(|member| &state.tasks[*member as usize]);
    let live = members.filter(|task| task.status.is_live()).count();
    assert!(live <= max, "{live} live in a group of {max}: {state:#?}");
    live == max
}

fn count(tasks: &[TaskState], needs: &[Position]) -> Counts {
    let mut counts = Counts::default();
    for need in needs {
        let task = &tasks[*need as usize];
        match (task.status, task.reason) {
            (TaskStatus::Succeeded, _) | (TaskStatus::Skipped, Some(Reason::SkippedByPerson)) => {
                counts.succeeded += 1;
            }
            (TaskStatus::Failed, _) => counts.failed += 1,
            (TaskStatus::Canceled | TaskStatus::Skipped, _) => counts.passed_over += 1,
            (TaskStatus::Pending | TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked, _) => {
                counts.unsettled += 1;
            }
        }
    }
    counts
}

/// The counters of a SQLite file equal a count of what they stand for.
pub(crate) fn recount(file: &Path, plan: &Plan, state: &RunState) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags).expect("the store's file");
    let (no, unsettled): (i64, usize) = connection
        .query_row("SELECT no, unsettled FROM runs WHERE id = ?1", [state.run.to_string()], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("the run's row");
    let open = state.tasks.iter().filter(|task| !task.status.is_final() && task.item.is_none()).count();
    assert_eq!(unsettled, open, "unsettled tasks of the run");
    let mut read = connection
        .prepare("SELECT set_no, unsettled, succeeded, failed, passed_over FROM needs_sets WHERE run_no = ?1")
        .expect("a statement");
    let stored: HashMap<usize, Counts> = read
        .query_map([no], |row| {
            let counts = Counts {
                unsettled: row.get(1)?,
                succeeded: row.get(2)?,
                failed: row.get(3)?,
                passed_over: row.get(4)?,
            };
            Ok((row.get(0)?, counts))
        })
        .and_then(Iterator::collect)
        .expect("the needs sets");
    for (set, needs) in plan.needs_sets.iter().enumerate() {
        assert_eq!(stored.get(&set), Some(&count(&state.tasks, &needs.needs)), "needs set {set}: {state:#?}");
    }
    let of_items = stored.keys().filter(|set| plan.step_of_set(**set as u32).is_some()).count();
    assert_eq!(stored.len(), plan.needs_sets.len() + of_items);
}
