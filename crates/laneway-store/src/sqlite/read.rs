//! Reads: short, on connections of their own, never blocked by the writer. `view.rs` builds what is
//! shown.

use laneway_core::event::{Closing, Event, Fact, PauseScope};
use laneway_core::expression::Scope;
use laneway_core::hash::Version;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::{Committed, RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Map, Value};

use crate::error::{Error, Teller};
use crate::fence::ClaimRef;
use crate::keeper::{self, Outputs, list_of, place_of, read_levels, read_pauses, read_wait, unreadable};
use crate::model::{Attempt, Known, Part, Renewed, Stop, Tally};
use crate::readable::Readable;
use crate::sqlite::operator::apply::bundle_of;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head};
use crate::sqlite::{effects, quarantine};
use crate::tally;

/// What expressions may see. Steps are loaded by name, so that a large run costs what is asked for.
pub(super) fn scope(connection: &Connection, head: &Head, steps: &[&str]) -> Done<Scope> {
    let mut read = connection.prepare_cached(sql!("scope"))?;
    let mut seen = Vec::with_capacity(steps.len());
    let plan = &head.head.plan;
    let mut item = None;
    for position in steps.iter().filter_map(|step| plan.position(step)) {
        if let Some((_, index)) = plan.item(position) {
            item = Some((index, item_value(connection, head, position)?));
            continue;
        }
        let (status, output): (String, Option<String>) =
            read.query_row(params![head.no, position], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let status = TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?;
        let output = match plan.is_growing(position) {
            true => Some(list_of(&outputs(connection, head.no, plan, position)?, plan, position)?),
            false => output,
        };
        seen.push((position, status, output));
    }
    let mut scope = keeper::scope(&head.head, seen)?;
    if let Some((index, value)) = item {
        keeper::with_item(&mut scope, value, index);
    }
    Ok(scope)
}

/// The items of a step in their order, how each stands, and what it has put out.
pub(super) fn outputs(connection: &Connection, no: i64, plan: &Plan, step: Position) -> Done<Outputs> {
    let items = plan.items_of(step);
    let mut statement = connection.prepare_cached(sql!("outputs"))?;
    let mut rows = statement.query(params![no, items.start, items.end])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let status: String = row.get(1)?;
        let status = TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?;
        found.push((row.get(0)?, status, row.get(2)?));
    }
    Ok(found)
}

fn item_value(connection: &Connection, head: &Head, position: Position) -> Done<Value> {
    let mut statement = connection.prepare_cached(sql!("item"))?;
    let item: Option<Option<String>> =
        statement.query_row(params![head.no, position], |row| row.get(0)).optional()?;
    Ok(keeper::read_item(item.flatten().as_deref())?)
}

/// Claims of a session that its holder is asked to stop, as far as they can be read.
pub(super) fn stops(
    connection: &Connection,
    session: SessionId,
    run_id: impl Fn(i64) -> Done<RunId>,
) -> Done<Readable<Stop>> {
    let mut statement = connection.prepare_cached(sql!("stops"))?;
    let mut rows = statement.query([session.to_string()])?;
    let mut stops = Readable::new();
    while let Some(row) = rows.next()? {
        stops.add(stop(row, session, &run_id), row.get(4)?, quarantine::is_about_a_value)?;
    }
    Ok(stops)
}

/// A row of `stops`.
pub(super) fn stop(row: &Row<'_>, session: SessionId, run_id: impl Fn(i64) -> Done<RunId>) -> Done<Stop> {
    let run = run_id(row.get(0)?)?;
    let (position, attempt, generation) = (row.get(1)?, row.get(2)?, row.get(5)?);
    let claim = ClaimRef { run, position, attempt, generation, session };
    let word: String = row.get(3)?;
    let reason = Reason::parse(&word).ok_or_else(|| unreadable("request to stop", &word))?;
    Ok(Stop { claim, reason })
}

/// What a session holds, and what of it is to be stopped, as far as it can be read; and whether
/// there is more.
pub(super) fn renewed(connection: &Connection, session: SessionId) -> Done<(Renewed, bool)> {
    alive(connection, session)?;
    let mut statement = connection.prepare_cached(sql!("session_claims"))?;
    let mut rows = statement.query([session.to_string()])?;
    let mut held = Readable::new();
    // They come run by run.
    let mut last: Option<(i64, RunId)> = None;
    while let Some(row) = rows.next()? {
        let read = || -> Done<ClaimRef> {
            let no = row.get(0)?;
            let run = match last {
                Some((last, run)) if last == no => run,
                Some(_) | None => run_id(connection, no)?,
            };
            let (position, attempt, generation) = (row.get(1)?, row.get(2)?, row.get(4)?);
            Ok(ClaimRef { run, position, attempt, generation, session })
        };
        let read = read();
        if let Ok(claim) = &read {
            last = Some((row.get(0)?, claim.run));
        }
        held.add(read, row.get(3)?, quarantine::is_about_a_value)?;
    }
    let stops = stops(connection, session, |no| run_id(connection, no))?;
    let has_trouble = held.has_trouble || stops.has_trouble;
    Ok((Renewed { held: held.list, stops: stops.list }, has_trouble))
}

/// What a session has told of its doing, but for how often it asked, and whether it lives by a
/// lease.
pub(super) fn done(connection: &Connection, session: SessionId) -> Done<(Tally, bool)> {
    let told: Option<(Option<String>, bool)> = connection
        .prepare_cached(sql!("session_tally"))?
        .query_row([session.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (told, has_lease) = told.unwrap_or_default();
    Ok((tally::read(told.as_deref(), 0, 0), has_lease))
}

/// Refuses a session of which nobody knows: it was reaped, and can never come back.
pub(super) fn alive(connection: &Connection, session: SessionId) -> Done<()> {
    let is_known = connection.prepare_cached(sql!("session_known"))?.exists([session.to_string()])?;
    if is_known { Ok(()) } else { Err(Error::SessionOver { session }.into()) }
}

pub(super) fn status(connection: &Connection, run: RunId) -> Done<RunStatus> {
    let word: Option<String> = connection
        .prepare_cached(sql!("run_status"))?
        .query_row([run.to_string()], |row| row.get(0))
        .optional()?;
    let word = word.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
    Ok(RunStatus::parse(&word).ok_or_else(|| unreadable("status of a run", &word))?)
}

/// Who paused a workflow, and since when.
pub(super) fn workflow_paused(connection: &Connection, workflow: &str) -> Done<Option<(String, Millis)>> {
    let mut statement = connection.prepare_cached(sql!("workflow_paused"))?;
    Ok(statement.query_row([workflow], |row| Ok((row.get(0)?, Millis(row.get(1)?)))).optional()?)
}

/// Whether a run, or one of its tasks, stands in a line with those of other runs.
pub(super) fn waits_for_others(connection: &Connection, no: i64) -> Done<bool> {
    Ok(connection.prepare_cached(sql!("run_in_line"))?.query_row([no], |row| row.get(0))?)
}

pub(super) fn run_id(connection: &Connection, no: i64) -> Done<RunId> {
    let text: String = connection.prepare_cached(sql!("run_id"))?.query_row([no], |row| row.get(0))?;
    Ok(RunId::parse(&text).ok_or_else(|| unreadable("run id", &text))?)
}

/// By id, by a unique beginning of it or of its end, or `last`.
pub(super) fn find_run(connection: &Connection, name: &str) -> Done<RunId> {
    if name == "last" {
        let id: Option<String> = connection.query_row(sql!("run_last"), [], |row| row.get(0)).optional()?;
        return one_of(name, id.into_iter().collect());
    }
    let typed = name.to_ascii_lowercase();
    // Hexadecimal only: nothing of what was typed can be a pattern. Four digits are the least that
    // means one.
    if typed.len() < 4 || !typed.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return Err(Error::NoSuchRun { name: name.to_owned() }.into());
    }
    let ids: Vec<String> = connection
        .prepare_cached(sql!("run_find"))?
        .query_map([&typed], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    one_of(name, ids)
}

fn one_of(name: &str, ids: Vec<String>) -> Done<RunId> {
    match ids.as_slice() {
        [] => Err(Error::NoSuchRun { name: name.to_owned() }.into()),
        [id] => Ok(RunId::parse(id).ok_or_else(|| unreadable("run id", id))?),
        [..] => Err(Error::AmbiguousRun { name: name.to_owned(), candidates: ids }.into()),
    }
}

pub(super) fn events_since(
    connection: &Connection,
    run: RunId,
    after: u64,
    limit: usize,
) -> Done<Vec<Event>> {
    let no = run_no(connection, run)?;
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(sql!("events_since"))?;
    let mut rows = statement.query(params![no, after, limit])?;
    let mut events: Vec<Event> = Vec::new();
    while let Some(row) = rows.next()? {
        match event_row(row, run) {
            Ok(event) => events.push(event),
            // Whoever reads gets what stands before it, and hears of it with the next question.
            Err(_) if !events.is_empty() => break,
            Err((seq, why)) => return Err(Error::UnreadableEvent { of: Teller::Run(run), seq, why }.into()),
        }
    }
    Ok(events)
}

/// An event, or the number of one that cannot be read, and why.
fn event_row(row: &Row<'_>, run: RunId) -> Result<Event, (u64, String)> {
    let seq: u64 = row.get(0).unwrap_or_default();
    let read = || -> rusqlite::Result<(i64, String, u32, String)> {
        Ok((row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
    };
    let (at, name, version, body) = read().map_err(|error| (seq, error.to_string()))?;
    let fact = Fact::read(&name, version, &body).map_err(|error| (seq, error.to_string()))?;
    Ok(Event { run, seq, at: Millis(at), fact })
}

/// Returns the fencing token of a claim, or `None` if the claim is lost.
pub(super) fn fence(connection: &Connection, claim: &ClaimRef) -> Done<Option<Option<u64>>> {
    let no = match run_no(connection, claim.run) {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(None),
        no => no?,
    };
    let mut statement = connection.prepare_cached(sql!("fence"))?;
    let at = params![no, claim.position, claim.generation, claim.session.to_string()];
    Ok(statement.query_row(at, |row| row.get(0)).optional()?)
}

pub(super) fn run_no(connection: &Connection, run: RunId) -> Done<i64> {
    connection
        .prepare_cached(sql!("run_no"))?
        .query_row([run.to_string()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| Error::NoSuchRun { name: run.to_string() }.into())
}

/// The stored side of a replay: exactly what the events say, and nothing else.
pub(super) fn run_state(connection: &Connection, head: &Head) -> Done<RunState> {
    some_state(connection, head, None)
}

/// The same with some of its tasks, which are all of its steps and more.
pub(super) fn some_state(connection: &Connection, head: &Head, part: Option<&Part>) -> Done<RunState> {
    let mut state = connection
        .prepare_cached(sql!("run_state"))?
        .query_row([head.no], |row| Ok(run_row(row, head)))??;
    let plan = &head.head.plan;
    match part {
        None => {
            let mut tasks = connection.prepare_cached(sql!("task_states"))?;
            let mut rows = tasks.query([head.no])?;
            while let Some(row) = rows.next()? {
                state.tasks.push(task_row(row, plan)?);
            }
        }
        Some(Part(ranges)) => {
            let mut tasks = connection.prepare_cached(sql!("task_states_part"))?;
            for range in ranges {
                let mut rows = tasks.query(params![head.no, range.start, range.end])?;
                while let Some(row) = rows.next()? {
                    state.tasks.push(task_row(row, plan)?);
                }
            }
        }
    }
    let steps = head.head.plan.workflow.steps.len();
    let found = state.tasks.iter().filter(|task| task.item.is_none()).count();
    if found != steps {
        let why = format!("its workflow has {steps} steps, and {found} tasks are there");
        return Err(Error::Unreadable {
            what: format!("list of tasks of run {}", head.head.run.short()),
            why,
        }
        .into());
    }
    for (position, effect) in effects::states(connection, head.no)? {
        match place_of(plan, &state.tasks, position) {
            Some(place) => state.tasks[place].effects.push(effect),
            None if part.is_some() => {}
            None => return Err(unreadable("position of an effect", &position.to_string()).into()),
        }
    }
    Ok(state)
}

/// Where its live tasks stand.
pub(super) fn live(connection: &Connection, head: &Head) -> Done<Vec<Position>> {
    let mut statement = connection.prepare_cached(sql!("positions_live"))?;
    Ok(statement.query_map([head.no], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn run_row(row: &Row<'_>, head: &Head) -> Done<RunState> {
    let (status, closing): (String, Option<String>) = (row.get(2)?, row.get(4)?);
    let millis = |column: usize| -> rusqlite::Result<Option<Millis>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Millis))
    };
    let status = RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?;
    let closing = match closing {
        None => None,
        Some(word) => Some(Closing::parse(&word).ok_or_else(|| unreadable("closing of a run", &word))?),
    };
    // While a run is being canceled its row knows why already; the history says it with the run's
    // end.
    let reason: Option<String> = row.get(3)?;
    Ok(RunState {
        run: head.head.run,
        workflow: row.get(0)?,
        version: Version::from_stored(row.get(1)?),
        params: head.head.params.clone(),
        max_parallel: head.head.max_parallel,
        status,
        reason: reason.filter(|_| status.is_final()),
        closing,
        clean_up_until: millis(11)?.filter(|_| closing.is_some_and(Closing::is_canceling)),
        submitted_at: Millis(row.get(5)?),
        not_before: millis(12)?,
        started_at: millis(6)?,
        finished_at: millis(7)?,
        last_event: row.get(8)?,
        paused: read_pauses_of(row)?,
        levels: read_levels_of(row)?,
        parent: head.head.parent.clone(),
        no_cache: head.head.no_cache,
        tasks: Vec::new(),
    })
}

fn read_levels_of(row: &Row<'_>) -> Done<Option<Committed>> {
    let text: Option<String> = row.get(10)?;
    let Some(text) = text else { return Ok(None) };
    let levels = read_levels(&text).ok_or_else(|| unreadable("levels of a run", &text))?;
    Ok(Committed::of(levels))
}

fn read_pauses_of(row: &Row<'_>) -> Done<Vec<PauseScope>> {
    let text: Option<String> = row.get(9)?;
    let Some(text) = text else { return Ok(Vec::new()) };
    let pauses = read_pauses(&text).ok_or_else(|| unreadable("pauses of a run", &text))?;
    Ok(pauses.into_iter().map(|pause| pause.scope).collect())
}

fn task_row(row: &Row<'_>, plan: &Plan) -> Done<TaskState> {
    let position: Position = row.get(0)?;
    let status: String = row.get(1)?;
    let (reason, wait): (Option<String>, Option<String>) = (row.get(4)?, row.get(15)?);
    let millis = |column: usize| -> rusqlite::Result<Option<Millis>> {
        Ok(row.get::<_, Option<i64>>(column)?.map(Millis))
    };
    let (growth, item): (Option<String>, Option<String>) = (row.get(16)?, row.get(17)?);
    let grown = keeper::grown(plan, position, growth.as_deref(), item.as_deref())?;
    let mut task = TaskState {
        step: plan.task_name(position),
        status: TaskStatus::parse(&status).ok_or_else(|| unreadable("status of a task", &status))?,
        attempt: row.get(2)?,
        node: row.get(3)?,
        reason: match reason {
            None => None,
            Some(word) => Some(Reason::parse(&word).ok_or_else(|| unreadable("reason of a task", &word))?),
        },
        detail: row.get(5)?,
        exit_code: row.get(6)?,
        output: parse_output(row.get(7)?)?,
        run_at: millis(8)?,
        started_at: millis(9)?,
        finished_at: millis(10)?,
        retries: row.get(11)?,
        lost: row.get(12)?,
        took_ms: row.get(13)?,
        wait: match wait {
            None => None,
            Some(text) => Some(read_wait(&text).ok_or_else(|| unreadable("wait of a task", &text))?),
        },
        effects: Vec::new(),
        item: grown.0,
        items: grown.1,
    };
    // A claim has no event until its holder says `start`: to the history it is what it was before,
    // and the number that the claim minted has not been heard of.
    if task.status == TaskStatus::Running && task.started_at.is_none() {
        let is_ahead: bool = row.get(14)?;
        task.status = if is_ahead { TaskStatus::Pending } else { TaskStatus::Available };
        task.attempt = task.attempt.saturating_sub(1);
    }
    Ok(task)
}

fn parse_output(stored: Option<String>) -> Done<Map<String, Value>> {
    let Some(text) = stored else { return Ok(Map::new()) };
    Ok(serde_json::from_str(&text)
        .map_err(|error| Error::Unreadable { what: "output of a task".to_owned(), why: error.to_string() })?)
}

/// Attempts that have ended, and the one that is running.
pub(super) fn attempts(connection: &Connection, head: &Head, position: Position) -> Done<Vec<Attempt>> {
    let read = |row: &Row<'_>| -> rusqlite::Result<Attempt> {
        let reason: Option<String> = row.get(3)?;
        Ok(Attempt {
            attempt: row.get(0)?,
            node: row.get(1)?,
            outcome: row.get(2)?,
            reason: reason.as_deref().and_then(Reason::parse),
            detail: row.get(4)?,
            exit_code: row.get(5)?,
            started_at: row.get::<_, Option<i64>>(6)?.map(Millis),
            finished_at: row.get::<_, Option<i64>>(7)?.map(Millis),
            took_ms: row.get(8)?,
            generation: row.get(9)?,
        })
    };
    Ok(connection
        .prepare_cached(sql!("attempts"))?
        .query_map(params![head.no, position], read)?
        .collect::<rusqlite::Result<_>>()?)
}

/// The newest version that was submitted under a name.
pub(super) fn latest(connection: &Connection, workflow: &str) -> Done<Known> {
    let (version, dir, bundle, no) = connection
        .query_row(sql!("latest"), [workflow], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?
        .ok_or_else(|| Error::NoSuchWorkflow { name: workflow.to_owned() })?;
    Ok(Known { version: Version::from_stored(version), dir, bundle: bundle_of(bundle)?, no })
}

pub(super) fn document(connection: &Connection, version: &Version) -> Done<String> {
    connection
        .query_row(sql!("document"), [version.as_str()], |row| row.get(0))
        .optional()?
        .ok_or_else(|| unreadable("workflow", version.as_str()).into())
}
