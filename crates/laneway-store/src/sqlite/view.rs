//! What people are shown of runs, with the cause of everything that waits. The text comes from the gate
//! keeper's own facts, and is computed when it is read: rewriting every waiter at every release would be
//! quadratic.

use laneway_core::gate::{Cause, Gate};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::read;
use super::session::{Life, SessionLocks};
use super::txn::{Done, Head, unreadable};
use crate::model::{RunFilter, RunSummary, RunView};

/// Holders named in a cause; a set of thousands is counted, not listed.
const NAMED: usize = 5;

pub(super) fn run(connection: &Connection, locks: &SessionLocks, head: &Head) -> Done<RunView> {
    let state = read::run_state(connection, head)?;
    let (by, owner): (String, Option<String>) = connection
        .prepare_cached("SELECT submitted_by, owner FROM runs WHERE no = ?1")?
        .query_row([head.no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let owner = living_owner(connection, locks, owner.as_deref())?;
    let is_interrupted = !state.status.is_final() && owner.is_none();
    let gates: Vec<Option<String>> = connection
        .prepare_cached("SELECT gate FROM tasks WHERE run_no = ?1 ORDER BY position")?
        .query_map([head.no], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let live = live_names(&state);
    let causes = state
        .tasks
        .iter()
        .zip(gates)
        .enumerate()
        .map(|(position, (task, gate))| {
            cause(
                &state,
                head,
                position as Position,
                task,
                gate.as_deref().and_then(Gate::parse),
                &live,
                is_interrupted,
            )
        })
        .collect();
    Ok(RunView {
        state,
        plan: std::sync::Arc::clone(&head.head.plan),
        dir: head.head.dir.clone(),
        submitted_by: by,
        owner,
        is_interrupted,
        causes,
    })
}

/// The node of a session that holds its lock.
fn living_owner(connection: &Connection, locks: &SessionLocks, owner: Option<&str>) -> Done<Option<String>> {
    let Some(session) = owner.and_then(SessionId::parse) else { return Ok(None) };
    let node: Option<String> = connection
        .prepare_cached("SELECT node FROM sessions WHERE id = ?1")?
        .query_row([session.to_string()], |row| row.get(0))
        .optional()?;
    Ok(match (node, locks.look(session)?) {
        (Some(node), Life::Alive) => Some(node),
        (Some(_) | None, Life::Alive | Life::Ending | Life::Dead(_)) => None,
    })
}

fn live_names(state: &RunState) -> Vec<&TaskState> {
    state.tasks.iter().filter(|task| task.status.is_live()).collect()
}

fn cause(
    state: &RunState,
    head: &Head,
    position: Position,
    task: &TaskState,
    gate: Option<Gate>,
    live: &[&TaskState],
    is_interrupted: bool,
) -> Option<Cause> {
    match (task.status, gate) {
        (TaskStatus::Pending, Some(Gate::Needs)) => Some(needs(state, head, position)),
        (TaskStatus::Pending, Some(Gate::RunAt)) => Some(run_at(task)),
        (TaskStatus::Pending, Some(Gate::MaxParallel)) => Some(max_parallel(state, live)),
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
    }
}

fn needs(state: &RunState, head: &Head, position: Position) -> Cause {
    let waits: Vec<&TaskState> = head.head.plan.needs[position as usize]
        .iter()
        .map(|need| &state.tasks[*need as usize])
        .filter(|task| !task.status.is_final())
        .collect();
    let when = head.head.plan.step(position).when;
    let since = waits.iter().filter_map(|task| task.started_at).min();
    Cause {
        gate: Gate::Needs.as_str(),
        holders: waits.iter().take(NAMED).map(|task| task.step.clone()).collect(),
        since: since.map(|at| at.to_string()),
        opens: format!("when `{}` holds for what it needs", when.as_str()),
        text: format!("waits for {}", listed(&waits, |task| format!("{} ({})", task.step, task.status))),
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
    Cause {
        gate: Gate::MaxParallel.as_str(),
        holders: live.iter().take(NAMED).map(|task| task.step.clone()).collect(),
        since: since.map(|at| at.to_string()),
        opens: "when one of them ends".to_owned(),
        text: format!(
            "waits for a place: max_parallel is {} and {} hold it",
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

fn listed(tasks: &[&TaskState], name: impl Fn(&TaskState) -> String) -> String {
    let mut text = tasks.iter().take(NAMED).map(|task| name(task)).collect::<Vec<_>>().join(", ");
    if tasks.len() > NAMED {
        text.push_str(&format!(" and {} more", tasks.len() - NAMED));
    }
    text
}

/// Newest first.
pub(super) fn runs(
    connection: &Connection,
    locks: &SessionLocks,
    filter: &RunFilter,
) -> Done<Vec<RunSummary>> {
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let rows: Vec<Done<(i64, Option<String>, RunSummary)>> = connection
        .prepare_cached(
            "SELECT no, id, workflow, status, reason, submitted_at, started_at, finished_at, submitted_by, owner
             FROM runs
             WHERE is_visible = 1 AND (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR workflow = ?2)
             ORDER BY no DESC LIMIT ?3",
        )?
        .query_map(params![filter.status.map(RunStatus::as_str), filter.workflow, limit], |row| Ok(summary(row)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut runs = Vec::with_capacity(rows.len());
    for row in rows {
        let (no, owner, mut run) = row?;
        run.counts = task_counts(connection, no)?;
        run.is_interrupted =
            !run.status.is_final() && living_owner(connection, locks, owner.as_deref())?.is_none();
        runs.push(run);
    }
    Ok(runs)
}

fn summary(row: &Row<'_>) -> Done<(i64, Option<String>, RunSummary)> {
    let (id, status): (String, String) = (row.get(1)?, row.get(3)?);
    let run = RunSummary {
        run: RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?,
        workflow: row.get(2)?,
        status: RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?,
        reason: row.get(4)?,
        submitted_at: Millis(row.get(5)?),
        started_at: row.get::<_, Option<i64>>(6)?.map(Millis),
        finished_at: row.get::<_, Option<i64>>(7)?.map(Millis),
        submitted_by: row.get(8)?,
        counts: Vec::new(),
        is_interrupted: false,
    };
    Ok((row.get(0)?, row.get(9)?, run))
}

fn task_counts(connection: &Connection, no: i64) -> Done<Vec<(TaskStatus, u64)>> {
    let rows: Vec<(String, u64)> = connection
        .prepare_cached("SELECT status, count(*) FROM tasks WHERE run_no = ?1 GROUP BY status")?
        .query_map([no], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut counts: Vec<(TaskStatus, u64)> =
        rows.into_iter().filter_map(|(status, count)| Some((TaskStatus::parse(&status)?, count))).collect();
    counts.sort_unstable();
    Ok(counts)
}
