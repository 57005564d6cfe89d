//! Reads: short, and never blocked by a writer. `view.rs` builds what is shown.

use laneway_core::event::{Closing, Event, Fact};
use laneway_core::expression::Scope;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::run_state::{Committed, RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::error::{Error, Teller};
use crate::fence::ClaimRef;
use crate::keeper::{self, Outputs, list_of, place_of, read_levels, read_pauses, read_wait};
use crate::model::{Attempt, Known, Orders, Part, Stop};
use crate::postgres::fault::{self, Done, Failure};
use crate::postgres::link::{Link, sql};
use crate::postgres::row::{self, unreadable};
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::{effects, pools};
use crate::readable::Readable;

/// What expressions may see. Steps are loaded by name, so that a large run costs what is asked for.
pub(super) async fn scope(link: &Link, head: &Head, steps: &[&str]) -> Done<Scope> {
    let plan = &head.head.plan;
    let (items, positions): (Vec<Position>, Vec<Position>) = steps
        .iter()
        .filter_map(|step| plan.position(step))
        .partition(|position| plan.item(*position).is_some());
    let numbers: Vec<i64> = positions.into_iter().map(i64::from).collect();
    let mut seen = Vec::with_capacity(numbers.len());
    if !numbers.is_empty() {
        for found in link.rows(sql!("scope", INT8, INT8_ARRAY), &[&head.no, &numbers]).await? {
            let position: Position = row::number(&found, 0)?;
            let status = row::word(&found, 1, "status of a task", TaskStatus::parse)?;
            let output = match plan.is_growing(position) {
                true => Some(list_of(&outputs(link, head, position).await?, plan, position)?),
                false => row::maybe_text(&found, 2)?,
            };
            seen.push((position, status, output));
        }
    }
    let mut scope = keeper::scope(&head.head, seen)?;
    // Of the task itself, if it is one.
    if let Some((position, (_, index))) =
        items.last().and_then(|position| Some((position, plan.item(*position)?)))
    {
        let wanted = vec![i64::from(*position)];
        let found = link.row(sql!("item", INT8, INT8_ARRAY), &[&head.no, &wanted]).await?;
        let item = found.map(|found| row::maybe_text(&found, 1)).transpose()?.flatten();
        keeper::with_item(&mut scope, keeper::read_item(item.as_deref())?, index);
    }
    Ok(scope)
}

/// The items of a step in their order, how each stands, and what it has put out.
async fn outputs(link: &Link, head: &Head, step: Position) -> Done<Outputs> {
    let items = head.head.plan.items_of(step);
    let column = |value: i64| vec![value];
    let (runs, steps) = (column(head.no), column(i64::from(step)));
    let (first, behind) = (column(i64::from(items.start)), column(i64::from(items.end)));
    let outputs = sql!("outputs", INT8_ARRAY, INT8_ARRAY, INT8_ARRAY, INT8_ARRAY);
    let mut found = Vec::new();
    for row in link.rows(outputs, &[&runs, &steps, &first, &behind]).await? {
        let status = row::word(&row, 3, "status of a task", TaskStatus::parse)?;
        found.push((row::number(&row, 2)?, status, row::maybe_text(&row, 4)?));
    }
    Ok(found)
}

/// What a session is asked to do. Refuses a session of which nobody knows: it was reaped, and can
/// never come back. Also whether there is more, which cannot be read.
pub(super) async fn orders(link: &Link, session: SessionId) -> Done<(Orders, bool)> {
    let id = session.to_string();
    let mut flight = link.flight();
    flight.ask(sql!("session_node", TEXT), vec![&id]);
    flight.ask(sql!("stops", TEXT), vec![&id]);
    flight.ask(sql!("pool_wishes", TEXT), vec![&id]);
    let answers = flight.land().await?;
    let [known, stops, wishes] = answers.as_slice() else { return Ok((Orders::default(), false)) };
    if known.is_empty() {
        return Err(Error::SessionOver { session }.into());
    }
    let stops = self::stops(stops, session)?;
    let wishes = pools::wishes(wishes)?;
    let orders = Orders { stops: stops.list, wishes: wishes.list, unreadable: wishes.unreadable };
    Ok((orders, stops.has_trouble))
}

/// The rows of `stops`, as far as they can be read.
pub(super) fn stops(rows: &[Row], session: SessionId) -> Done<Readable<Stop>> {
    let mut stops = Readable::new();
    for found in rows {
        stops.add(stop(found, session), found.try_get(6)?, is_blamed)?;
    }
    Ok(stops)
}

/// A row of `stops`.
pub(super) fn stop(found: &Row, session: SessionId) -> Done<Stop> {
    let (no, claim) = claim_of(found, session)?;
    let reason = row::word(found, 5, "request to stop", Reason::parse);
    Ok(Stop { claim, reason: reason.map_err(|failure| failure.about(no, claim.run))? })
}

/// The rows of `session_claims`, as far as they can be read.
pub(super) fn claims(rows: &[Row], session: SessionId) -> Done<Readable<ClaimRef>> {
    let mut claims = Readable::new();
    for found in rows {
        let claim = claim_of(found, session).map(|(_, claim)| claim);
        claims.add(claim, found.try_get(5)?, is_blamed)?;
    }
    Ok(claims)
}

/// A row that begins with the run's number, its id, a position, an attempt and a generation.
pub(super) fn claim_of(found: &Row, session: SessionId) -> Done<(i64, ClaimRef)> {
    let (no, run) = run_of(found)?;
    let read = || -> Done<ClaimRef> {
        let (position, attempt) = (row::number(found, 2)?, row::number(found, 3)?);
        Ok(ClaimRef { run, position, attempt, generation: row::number(found, 4)?, session })
    };
    Ok((no, read().map_err(|failure| failure.about(no, run))?))
}

/// A row that begins with the run's number and its id.
pub(super) fn run_of(found: &Row) -> Done<(i64, RunId)> {
    let no: i64 = found.try_get(0)?;
    let run = row::word(found, 1, "run id", RunId::parse);
    Ok((no, run.map_err(|failure| failure.about(no, None))?))
}

pub(super) fn is_blamed(failure: &Failure) -> bool {
    matches!(failure, Failure::Blamed { .. })
}

pub(super) async fn status(link: &Link, run: RunId) -> Done<RunStatus> {
    let found = link.row(sql!("run_status", TEXT), &[&run.to_string()]).await?;
    let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
    row::word(&found, 0, "status of a run", RunStatus::parse)
}

/// By id, by a unique beginning of it or of its end, or `last`.
pub(super) async fn find_run(link: &Link, name: &str) -> Done<RunId> {
    let typed = name.to_ascii_lowercase();
    let found = if name == "last" {
        link.rows(sql!("run_last"), &[]).await?
    } else if typed.len() < 4 || !typed.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        // Four digits are the least that means one.
        Vec::new()
    } else {
        link.rows(sql!("run_find", TEXT), &[&typed]).await?
    };
    let ids: Vec<String> = found.iter().map(|found| row::text(found, 0)).collect::<Done<_>>()?;
    match ids.as_slice() {
        [] => Err(Error::NoSuchRun { name: name.to_owned() }.into()),
        [id] => Ok(RunId::parse(id).ok_or_else(|| unreadable("run id", id))?),
        [..] => Err(Error::AmbiguousRun { name: name.to_owned(), candidates: ids }.into()),
    }
}

pub(super) async fn events_since(link: &Link, run: RunId, after: u64, limit: usize) -> Done<Vec<Event>> {
    let (id, after) = (run.to_string(), i64::try_from(after).unwrap_or(i64::MAX));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut flight = link.flight();
    flight.ask(sql!("run_no", TEXT), vec![&id]);
    flight.ask(sql!("events_since", TEXT, INT8, INT8), vec![&id, &after, &limit]);
    let answers = flight.land().await?;
    let [known, rows] = answers.as_slice() else { return Ok(Vec::new()) };
    if known.is_empty() {
        return Err(Error::NoSuchRun { name: id }.into());
    }
    let mut events: Vec<Event> = Vec::with_capacity(rows.len());
    for found in rows {
        let seq: u64 = row::number(found, 0)?;
        match event(found, run, seq) {
            Ok(event) => events.push(event),
            // Whoever reads gets what stands before it, and hears of it with the next question.
            Err(_) if !events.is_empty() => break,
            Err(why) => return Err(Error::UnreadableEvent { of: Teller::Run(run), seq, why }.into()),
        }
    }
    Ok(events)
}

/// An event, or why it cannot be read.
fn event(found: &Row, run: RunId, seq: u64) -> Result<Event, String> {
    let read = || -> Result<(i64, String, i64, String), tokio_postgres::Error> {
        Ok((found.try_get(1)?, found.try_get(2)?, found.try_get(3)?, found.try_get(4)?))
    };
    let (at, name, version, body) = read().map_err(|error| fault::words(&error))?;
    let version = u32::try_from(version).map_err(|error| error.to_string())?;
    let fact = Fact::read(&name, version, &body).map_err(|error| error.to_string())?;
    Ok(Event { run, seq, at: Millis(at), fact })
}

/// The stored side of a replay: exactly what the events say, and nothing else. Inside a transaction
/// that reads: the run and its tasks are of one moment.
pub(super) async fn run_state(link: &Link, head: &Head) -> Done<RunState> {
    some_state(link, head, None).await
}

/// The ends of the ranges of a part.
pub(super) fn bounds(part: &Part) -> (Vec<i64>, Vec<i64>) {
    part.0.iter().map(|range| (i64::from(range.start), i64::from(range.end))).unzip()
}

/// The same with some of its tasks, which are all of its steps and more.
pub(super) async fn some_state(link: &Link, head: &Head, part: Option<&Part>) -> Done<RunState> {
    let bounds = part.map(bounds);
    let mut flight = link.flight();
    flight.ask(sql!("run_state", INT8), vec![&head.no]);
    match &bounds {
        None => flight.ask(sql!("task_states", INT8), vec![&head.no]),
        Some((first, behind)) => {
            flight.ask(sql!("task_states_part", INT8, INT8_ARRAY, INT8_ARRAY), vec![&head.no, first, behind])
        }
    }
    flight.ask(sql!("effect_states", INT8), vec![&head.no]);
    let answers = flight.land().await?;
    let (Some([found]), Some(tasks)) = (answers.first().map(Vec::as_slice), answers.get(1)) else {
        return Err(Error::NoSuchRun { name: head.head.run.to_string() }.into());
    };
    let mut state = run_row(found, head)?;
    for found in tasks {
        state.tasks.push(task_row(found, &head.head.plan)?);
    }
    let steps = head.head.plan.workflow.steps.len();
    let found = state.tasks.iter().filter(|task| task.item.is_none()).count();
    if found != steps {
        let why = format!("its workflow has {steps} steps, and {found} tasks are there");
        let what = format!("list of tasks of run {}", head.head.run.short());
        return Err(Error::Unreadable { what, why }.into());
    }
    for found in answers.get(2).into_iter().flatten() {
        let (position, effect) = effects::state(found)?;
        match place_of(&head.head.plan, &state.tasks, position) {
            Some(place) => state.tasks[place].effects.push(effect),
            None if part.is_some() => {}
            None => return Err(unreadable("position of an effect", &position.to_string()).into()),
        }
    }
    Ok(state)
}

/// Where its live tasks stand.
pub(super) async fn live(link: &Link, head: &Head) -> Done<Vec<Position>> {
    let rows = link.rows(sql!("positions_live", INT8), &[&head.no]).await?;
    rows.iter().map(|found| row::number(found, 0)).collect()
}

fn run_row(found: &Row, head: &Head) -> Done<RunState> {
    let status = row::word(found, 2, "status of a run", RunStatus::parse)?;
    let closing = row::maybe_word(found, 4, "closing of a run", Closing::parse)?;
    Ok(RunState {
        run: head.head.run,
        workflow: row::text(found, 0)?,
        version: Version::from_stored(row::text(found, 1)?),
        params: head.head.params.clone(),
        max_parallel: head.head.max_parallel,
        status,
        // While a run is being canceled its row knows why already; the history says it with the
        // run's end.
        reason: row::maybe_text(found, 3)?.filter(|_| status.is_final()),
        closing,
        clean_up_until: row::moment(found, 11)?.filter(|_| closing.is_some_and(Closing::is_canceling)),
        submitted_at: Millis(found.try_get(5)?),
        not_before: row::moment(found, 12)?,
        started_at: row::moment(found, 6)?,
        finished_at: row::moment(found, 7)?,
        last_event: row::number(found, 8)?,
        paused: row::maybe_word(found, 9, "pauses of a run", read_pauses)?
            .unwrap_or_default()
            .into_iter()
            .map(|pause| pause.scope)
            .collect(),
        levels: row::maybe_word(found, 10, "levels of a run", read_levels)?.and_then(Committed::of),
        parent: head.head.parent.clone(),
        no_cache: head.head.no_cache,
        tasks: Vec::new(),
    })
}

fn task_row(found: &Row, plan: &Plan) -> Done<TaskState> {
    let position: Position = row::number(found, 0)?;
    let (growth, item) = (row::maybe_text(found, 16)?, row::maybe_text(found, 17)?);
    let (item, items) = keeper::grown(plan, position, growth.as_deref(), item.as_deref())?;
    let mut task = TaskState {
        step: plan.task_name(position),
        status: row::word(found, 1, "status of a task", TaskStatus::parse)?,
        attempt: row::number(found, 2)?,
        node: row::maybe_text(found, 3)?,
        reason: row::reason(found, 4)?,
        detail: row::maybe_text(found, 5)?,
        exit_code: row::maybe_number(found, 6)?,
        output: row::output(found, 7)?,
        run_at: row::moment(found, 8)?,
        started_at: row::moment(found, 9)?,
        finished_at: row::moment(found, 10)?,
        retries: row::number(found, 11)?,
        lost: row::number(found, 12)?,
        took_ms: row::maybe_number(found, 13)?,
        wait: row::maybe_word(found, 15, "wait of a task", read_wait)?,
        effects: Vec::new(),
        item,
        items,
    };
    // A claim has no event until its holder says `start`: to the history it is what it was before,
    // and the number that the claim minted has not been heard of.
    if task.status == TaskStatus::Running && task.started_at.is_none() {
        let is_ahead: bool = found.try_get(14)?;
        task.status = if is_ahead { TaskStatus::Pending } else { TaskStatus::Available };
        task.attempt = task.attempt.saturating_sub(1);
    }
    Ok(task)
}

/// Attempts that have ended, and the one that is running.
pub(super) async fn attempts(link: &Link, head: &Head, position: Position) -> Done<Vec<Attempt>> {
    let rows = link.rows(sql!("attempts", INT8, INT8), &[&head.no, &i64::from(position)]).await?;
    rows.iter()
        .map(|found| {
            Ok(Attempt {
                attempt: row::number(found, 0)?,
                node: row::maybe_text(found, 1)?,
                outcome: row::text(found, 2)?,
                reason: row::maybe_text(found, 3)?.as_deref().and_then(Reason::parse),
                detail: row::maybe_text(found, 4)?,
                exit_code: row::maybe_number(found, 5)?,
                started_at: row::moment(found, 6)?,
                finished_at: row::moment(found, 7)?,
                took_ms: row::maybe_number(found, 8)?,
                generation: row::number(found, 9)?,
            })
        })
        .collect()
}

/// The newest version that was submitted under a name.
pub(super) async fn latest(link: &Link, workflow: &str) -> Done<Known> {
    let found = link.row(sql!("latest", TEXT), &[&workflow]).await?;
    let found = found.ok_or_else(|| Error::NoSuchWorkflow { name: workflow.to_owned() })?;
    Ok(Known {
        version: Version::from_stored(row::text(&found, 0)?),
        dir: row::text(&found, 1)?,
        bundle: row::maybe_word(&found, 2, "bundle", ContentHash::parse)?,
        no: row::maybe_number(&found, 3)?,
    })
}

pub(super) async fn document(link: &Link, version: &Version) -> Done<String> {
    let found = link.row(sql!("document", TEXT), &[&version.as_str()]).await?;
    let found = found.ok_or_else(|| unreadable("workflow", version.as_str()))?;
    row::text(&found, 0)
}

pub(super) fn position(head: &Head, step: &str) -> Done<Position> {
    Ok(head.head.plan.position(step).ok_or_else(|| keeper::no_such_step(&head.head, step))?)
}

/// Returns the fencing token of a claim, or `None` if the claim is lost.
pub(super) async fn fence(shelf: &Shelf, link: &Link, claim: &ClaimRef) -> Done<Option<Option<u64>>> {
    let Some(head) = shelf.held(link, claim.run).await? else { return Ok(None) };
    let (position, generation) = (i64::from(claim.position), i64::from(claim.generation));
    let session = claim.session.to_string();
    let asked = sql!("fence", INT8, INT8, INT8, TEXT);
    match link.row(asked, &[&head.no, &position, &generation, &session]).await? {
        Some(found) => Ok(Some(row::maybe_number(&found, 0)?)),
        None => Ok(None),
    }
}
