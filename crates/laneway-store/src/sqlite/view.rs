//! What people are shown of runs: lists, and one run with the cause of everything that waits.

use std::collections::HashMap;

use laneway_core::cause;
use laneway_core::gate::Gate;
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::node_event::{NodeEvent, NodeFact};
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Shared;
use super::pools;
use super::quarantine;
use super::read;
use super::txn::{Done, Head, Plans, read_head};
use super::waits;
use crate::error::{Error, Teller};
use crate::keeper::{under_way, unreadable};
use crate::lease::monotonic_time;
use crate::locks::{Life, SessionLocks};
use crate::model::{
    ClaimView, ItemsAsked, LimitView, Losses, NodeView, Part, Placed, RunFilter, RunOutcome, RunSummary,
    RunView, TaskView,
};
use crate::offer;
use crate::pool::{add_waits, uses_pools};
use crate::readable::{Readable, add_event};
use crate::sqlite::statements::sql;
use crate::summary::{Counted, Retried, first_start};
use crate::tally;

pub(super) fn run(
    connection: &Connection,
    locks: &SessionLocks,
    plans: &Plans,
    head: &Head,
    part: Option<&Part>,
) -> Done<RunView> {
    let state = read::some_state(connection, head, part)?;
    let (by, owner): (String, Option<String>) = connection
        .prepare_cached(sql!("run_owner"))?
        .query_row([head.no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let owner = living_owner(connection, locks, owner.as_deref())?;
    let is_interrupted = head.head.placed == Placed::Local && !state.status.is_final() && owner.is_none();
    let mut waits = waits::of_run(connection, plans, head, part)?;
    if uses_pools(&head.head.plan) && !state.status.is_final() {
        add_waits(&mut waits, &head.head.plan, &state, &pools::containers(connection)?);
    }
    let causes = cause::causes(&head.head.plan, &state, &waits, is_interrupted);
    let first_task_at = match first_start(&state) {
        Ok(at) => at,
        Err(Retried) => first_event(connection, head.no)?,
    };
    Ok(RunView {
        first_task_at,
        state,
        plan: std::sync::Arc::clone(&head.head.plan),
        dir: head.head.dir.clone(),
        bundle: head.head.bundle.clone(),
        submitted_by: by,
        owner,
        placed: head.head.placed,
        is_interrupted,
        set_aside: quarantine::read(connection, head.no)?,
        causes,
    })
}

pub(super) fn items(
    connection: &Connection,
    locks: &SessionLocks,
    plans: &Plans,
    (head, step): (&Head, Position),
    asked: &ItemsAsked,
) -> Done<Vec<TaskView>> {
    let plan = &head.head.plan;
    let live = read::live(connection, head)?;
    let part = Part::of_items(plan, asked.positions(plan, step), &live);
    Ok(run(connection, locks, plans, head, Some(&part))?.items(asked))
}

/// The node of a session that holds its lock, or lives by a lease.
fn living_owner(connection: &Connection, locks: &SessionLocks, owner: Option<&str>) -> Done<Option<String>> {
    let Some(session) = owner.and_then(SessionId::parse) else { return Ok(None) };
    let known: Option<(String, Option<i64>)> = connection
        .prepare_cached(sql!("session_node"))?
        .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match (known, locks.look(session)?) {
        (Some((node, Some(_))), _) | (Some((node, None)), Life::Alive) => Some(node),
        (Some((_, None)) | None, Life::Alive | Life::Ending | Life::Dead(_)) => None,
    })
}

/// A run with its number, and the session to which it belongs.
type Listed = (i64, Option<String>, RunSummary);

/// Newest first.
pub(super) fn runs(
    connection: &Connection,
    locks: &SessionLocks,
    filter: &RunFilter,
) -> Done<Vec<RunSummary>> {
    let limit = i64::try_from(filter.limit).unwrap_or(i64::MAX);
    let words: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let statuses = (!words.is_empty()).then(|| format!(" {} ", words.join(" ")));
    let asked = params![
        statuses,
        filter.workflow,
        limit,
        filter.before.map(|run| run.to_string()),
        filter.since.map(|at| at.0),
        filter.until.map(|at| at.0),
        filter.begins,
        filter.down_to.map(|run| run.to_string()),
    ];
    let sql = if filter.workflow.is_some() { sql!("runs_named") } else { sql!("runs") };
    listed(connection, locks, sql, asked, None)
}

/// The last of so many runs, newest first.
pub(super) fn run_behind(
    connection: &Connection,
    of: Option<&str>,
    before: Option<RunId>,
    count: usize,
) -> Done<Option<(RunId, Millis)>> {
    let before = before.map(|run| run.to_string());
    let passed = i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX);
    let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?));
    let found = match of {
        None => {
            let mut statement = connection.prepare_cached(sql!("run_behind"))?;
            statement.query_row(params![before, passed], read).optional()?
        }
        Some(of) => {
            let mut statement = connection.prepare_cached(sql!("run_behind_of"))?;
            statement.query_row(params![before, passed, of], read).optional()?
        }
    };
    Ok(found.and_then(|(id, at)| Some((RunId::parse(&id)?, Millis(at)))))
}

/// The runs that a statement finds, with what a list says of them. Tasks of one that has more than
/// `most` are not counted.
pub(super) fn listed(
    connection: &Connection,
    locks: &SessionLocks,
    sql: &str,
    asked: impl rusqlite::Params,
    most: Option<i64>,
) -> Done<Vec<RunSummary>> {
    let rows: Vec<Done<Option<Listed>>> = connection
        .prepare_cached(sql)?
        .query_map(asked, |row| Ok(summary(row)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut runs = Vec::with_capacity(rows.len());
    // Many runs wait for the same few kinds of node.
    let mut by_class = HashMap::new();
    for row in rows {
        let Some((no, owner, mut run)) = row? else {
            tracing::warn!("a run is not listed, because its row cannot be read; `laneway doctor` names it");
            continue;
        };
        let counted = match most {
            None => task_counts(connection, sql!("task_counts"), [no])?,
            Some(most) => {
                let counted = task_counts(connection, sql!("task_counts_of_few"), [no, most + 1])?;
                if counted.rows > most { Counted::default() } else { counted }
            }
        };
        run.counts = counted.states;
        run.first_task_at =
            if counted.is_retried { first_event(connection, no)? } else { counted.first_task_at };
        if most.is_none() && run.may_lack_node(run.is_interrupted) {
            run.without_node = without_node(connection, no, &mut by_class)?;
        }
        run.is_interrupted = run.is_interrupted
            && run.status.is_some_and(|status| !status.is_final())
            && living_owner(connection, locks, owner.as_deref())?.is_none();
        run.set_aside = quarantine::read(connection, no)?;
        runs.push(run);
    }
    Ok(runs)
}

/// `None` where nobody could name the run: one row must not hide the others.
fn summary(row: &Row<'_>) -> Done<Option<Listed>> {
    let (Ok(id), Ok(workflow), Ok(by)) =
        (row.get::<_, String>(1), row.get::<_, String>(2), row.get::<_, String>(8))
    else {
        return Ok(None);
    };
    let Some(run) = RunId::parse(&id) else { return Ok(None) };
    let status = row.get::<_, String>(3).ok().and_then(|word| RunStatus::parse(&word));
    let (closing, paused): (Option<String>, Option<String>) =
        (row.get(11).unwrap_or_default(), row.get(12).unwrap_or_default());
    let (closing, paused) = under_way(status, closing.as_deref(), paused.as_deref());
    let run = RunSummary {
        run,
        workflow,
        status,
        reason: row.get(4).unwrap_or_default(),
        submitted_at: Millis(row.get(5)?),
        started_at: row.get::<_, Option<i64>>(6)?.map(Millis),
        finished_at: row.get::<_, Option<i64>>(7)?.map(Millis),
        submitted_by: by,
        counts: Vec::new(),
        // As far as the row can tell: one that belongs to nobody cannot be.
        is_interrupted: row.get::<_, String>(10).is_ok_and(|placement| placement == "local"),
        set_aside: None,
        closing,
        paused,
        first_task_at: None,
        without_node: None,
        not_before: row.get::<_, Option<i64>>(13)?.map(Millis),
    };
    Ok(Some((row.get(0)?, row.get(9).unwrap_or_default(), run)))
}

fn task_counts(connection: &Connection, sql: &str, asked: impl rusqlite::Params) -> Done<Counted> {
    let mut counted = Counted::default();
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(asked)?;
    while let Some(row) = rows.next()? {
        let status: String = row.get(0).unwrap_or_default();
        let first: Option<i64> = row.get(2)?;
        counted.add(&status, row.get(1)?, (first.map(Millis), row.get(3)?));
        counted.rows += row.get::<_, i64>(4)?;
    }
    Ok(counted)
}

fn first_event(connection: &Connection, no: i64) -> Done<Option<Millis>> {
    let mut statement = connection.prepare_cached(sql!("first_start"))?;
    let at: Option<i64> = statement.query_row([no], |row| row.get(0)).optional()?;
    Ok(at.map(Millis))
}

/// Why no live node can take a run of which nothing was executed.
fn without_node(
    connection: &Connection,
    no: i64,
    by_class: &mut HashMap<i64, Option<String>>,
) -> Done<Option<String>> {
    let mut statement = connection.prepare_cached(sql!("run_without_node"))?;
    let class: Option<Option<i64>> = statement.query_row([no], |row| row.get(0)).optional()?;
    let Some(class) = class.flatten() else { return Ok(None) };
    if let Some(cause) = by_class.get(&class) {
        return Ok(cause.clone());
    }
    let cause = waits::for_node(connection, class, None)?.map(|wait| wait.cause().text);
    Ok(by_class.entry(class).or_insert(cause).clone())
}

/// The newest runs of each workflow, newest first.
pub(super) fn outcomes(connection: &Connection, workflows: &[String], limit: usize) -> Done<Vec<RunOutcome>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("outcomes"))?;
    let mut outcomes = Vec::new();
    for workflow in workflows {
        let mut rows = statement.query(params![workflow, limit])?;
        while let Some(row) = rows.next()? {
            let id: String = row.get(0)?;
            outcomes.push(RunOutcome {
                workflow: workflow.clone(),
                run: RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?,
                status: row.get::<_, String>(1).ok().and_then(|word| RunStatus::parse(&word)),
                submitted_at: Millis(row.get(2)?),
                started_at: row.get::<_, Option<i64>>(3)?.map(Millis),
                finished_at: row.get::<_, Option<i64>>(4)?.map(Millis),
            });
        }
    }
    Ok(outcomes)
}

pub(super) fn limits(connection: &Connection) -> Done<Vec<LimitView>> {
    let mut statement = connection.prepare_cached(sql!("limits"))?;
    let mut rows = statement.query([])?;
    let mut limits = Vec::new();
    while let Some(row) = rows.next()? {
        let value: String = row.get(1)?;
        limits.push(LimitView {
            name: row.get(0)?,
            limit: Limit::parse(&value).map_err(|_| unreadable("limit", &value))?,
            set_by: row.get(2)?,
            set_at: Millis(row.get(3)?),
            holders: row.get(4)?,
            waiting: row.get(5)?,
        });
    }
    Ok(limits)
}

pub(super) fn backlog(connection: &Connection) -> Done<Vec<(Option<Gate>, u64)>> {
    let rows: Vec<(Option<String>, u64)> = connection
        .prepare_cached(sql!("backlog"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // A word that cannot be read is in no line of its own; its run is set aside by whoever works on
    // it.
    Ok(rows.into_iter().map(|(gate, tasks)| (gate.as_deref().and_then(Gate::parse), tasks)).collect())
}

pub(super) fn parked(connection: &Connection) -> Done<u64> {
    Ok(connection.prepare_cached(sql!("parked_count"))?.query_row([], |row| row.get(0))?)
}

/// Those that hold their lock.
pub(super) fn nodes(connection: &Connection, shared: &Shared, claims: usize) -> Done<Vec<NodeView>> {
    let observed_at = shared.moment(connection)?;
    let mut statement = connection.prepare_cached(sql!("nodes"))?;
    let mut rows = statement.query([])?;
    let mut nodes = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let session = SessionId::parse(&id).ok_or_else(|| unreadable("session", &id))?;
        let lives = match row.get::<_, Option<i64>>(14)? {
            Some(expires_at) => expires_at > observed_at.0,
            None => matches!(shared.locks.look(session)?, Life::Alive),
        };
        if !lives {
            continue;
        }
        let (offer, told): (Option<String>, Option<String>) = (row.get(5)?, row.get(9)?);
        let (lease, now) = (shared.locks.lease(session), monotonic_time());
        // Renewals are in the lease file. A caller that brings a clock of its own knows of none.
        let unrenewed_for = lease.as_ref().and_then(|lease| lease.unrenewed_for(now));
        let renewed_at = unrenewed_for
            .filter(|_| shared.clock.hand().is_none())
            .map_or_else(|| row.get(8).map(Millis), |unrenewed_for| Ok(observed_at.before(unrenewed_for)))?;
        nodes.push(NodeView {
            node: row.get(1)?,
            session,
            pid: row.get(2)?,
            registered_at: Millis(row.get(3)?),
            slots: row.get(4)?,
            offer: offer.as_deref().and_then(offer::from_text),
            is_draining: row.get(6)?,
            renewed_at,
            silent_for: lease.and_then(|lease| lease.silence(now)),
            tally: tally::read(told.as_deref(), row.get(10)?, row.get(11)?),
            last_active_at: row.get::<_, Option<i64>>(12)?.map(Millis),
            lost_sessions: row.get(13)?,
            observed_at,
            held: row.get(7)?,
            fires: row.get(15)?,
            claims: node_claims(connection, &shared.plans, session, claims)?,
        });
    }
    Ok(nodes)
}

/// Those that were lost last first: the first knows how many there were.
pub(super) fn losses(connection: &Connection) -> Done<Losses> {
    let mut statement = connection.prepare_cached(sql!("losses"))?;
    let mut rows = statement.query([])?;
    let mut losses = Losses::default();
    while let Some(row) = rows.next()? {
        losses.total = losses.total.max(row.get(2)?);
        losses.nodes.push((row.get(0)?, row.get(1)?));
    }
    Ok(losses)
}

/// In order, behind a number, up to one that cannot be read.
pub(super) fn node_events(
    connection: &Connection,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Done<Vec<NodeEvent>> {
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(sql!("node_events"))?;
    let mut rows = statement.query(params![node, after, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()?
        && add_event(&mut events, node_event(row), (Teller::Nodes, row.get(0)?), quarantine::blame)?
    {}
    Ok(events)
}

fn node_event(row: &Row<'_>) -> Done<NodeEvent> {
    let (session, name, body): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(6)?);
    let fact = NodeFact::read(&name, row.get(5)?, &body)
        .map_err(|error| Error::Unreadable { what: "event of a node".to_owned(), why: error.to_string() })?;
    Ok(NodeEvent {
        seq: row.get(0)?,
        at: Millis(row.get(1)?),
        node: row.get(2)?,
        session: SessionId::parse(&session).ok_or_else(|| unreadable("session", &session))?,
        fact,
    })
}

fn node_claims(
    connection: &Connection,
    plans: &Plans,
    session: SessionId,
    limit: usize,
) -> Done<Vec<ClaimView>> {
    let mut statement = connection.prepare_cached(sql!("node_claims"))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![session.to_string(), limit])?;
    // What cannot be read of one run hides no node: it is counted among what the node holds.
    let mut claims = Readable::new();
    while let Some(row) = rows.next()? {
        let read = || -> Done<ClaimView> {
            let id: String = row.get(0)?;
            let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
            let position: Position = row.get(1)?;
            let head = read_head(connection, plans, run)?;
            Ok(ClaimView {
                run,
                step: head.head.plan.task_name(position),
                attempt: row.get(2)?,
                started_at: row.get::<_, Option<i64>>(3)?.map(Millis),
            })
        };
        claims.add(read(), true, quarantine::is_about_a_value)?;
    }
    Ok(claims.list)
}
