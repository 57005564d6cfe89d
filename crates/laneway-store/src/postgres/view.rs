//! What people are shown of runs: lists, and one run with the cause of everything that waits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::cause;
use laneway_core::gate::Gate;
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::node_event::{NodeEvent, NodeFact};
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::{Done, Failure};
use super::link::{Link, sql};
use super::shelf::{Head, Shelf};
use super::{pools, read, row, waits};
use crate::error::{Error, Teller};
use crate::keeper::under_way;
use crate::model::{
    ClaimView, ItemsAsked, LimitView, Losses, NodeView, Part, Placed, RunFilter, RunOutcome, RunSummary,
    RunView, SetAside, TaskView,
};
use crate::offer;
use crate::pool::{add_waits, uses_pools};
use crate::readable::{Readable, add_event};
use crate::summary::{Counted, Retried, first_start};
use crate::tally;

/// Inside a transaction that reads.
pub(super) async fn run(
    link: &Link,
    shelf: &Shelf,
    now: Option<Millis>,
    head: &Head,
    part: Option<&Part>,
) -> Done<RunView> {
    let state = read::some_state(link, head, part).await?;
    let numbers = vec![head.no];
    let mut flight = link.flight();
    flight.ask(sql!("run_owner", INT8), vec![&head.no]);
    flight.ask(sql!("quarantine_read", INT8_ARRAY), vec![&numbers]);
    let answers = flight.land().await?;
    let (mut by, mut owner) = (String::new(), None);
    if let Some(found) = answers.first().and_then(|rows| rows.first()) {
        by = row::text(found, 0)?;
        owner =
            living(link, now, row::maybe_text(found, 1)?.into_iter().collect()).await?.into_values().next();
    }
    let mut set_aside = set_aside(answers.get(1).map_or(&[][..], Vec::as_slice))?;
    let is_interrupted = head.head.placed == Placed::Local && !state.status.is_final() && owner.is_none();
    let mut waits = waits::of_run(link, shelf, head, part).await?;
    if uses_pools(&head.head.plan) && !state.status.is_final() {
        add_waits(&mut waits, &head.head.plan, &state, &pools::containers(link).await?);
    }
    let causes = cause::causes(&head.head.plan, &state, &waits, is_interrupted);
    let first_task_at = match first_start(&state) {
        Ok(at) => at,
        Err(Retried) => first_events(link, &[head.no]).await?.remove(&head.no),
    };
    Ok(RunView {
        first_task_at,
        state,
        plan: Arc::clone(&head.head.plan),
        dir: head.head.dir.clone(),
        bundle: head.head.bundle.clone(),
        submitted_by: by,
        owner,
        placed: head.head.placed,
        is_interrupted,
        set_aside: set_aside.remove(&head.no),
        causes,
    })
}

/// Inside a transaction that reads.
pub(super) async fn items(
    link: &Link,
    shelf: &Shelf,
    now: Option<Millis>,
    head: &Head,
    asked: &ItemsAsked,
) -> Done<Vec<TaskView>> {
    let plan = &head.head.plan;
    let step = read::position(head, &asked.step)?;
    let live = read::live(link, head).await?;
    let part = Part::of_items(plan, asked.positions(plan, step), &live);
    Ok(run(link, shelf, now, head, Some(&part)).await?.items(asked))
}

/// Of some sessions, those whose lease has not ended, with their nodes.
async fn living(link: &Link, now: Option<Millis>, sessions: Vec<String>) -> Done<HashMap<String, String>> {
    if sessions.is_empty() {
        return Ok(HashMap::new());
    }
    let now = now.map(|now| now.0);
    let rows = link.rows(sql!("sessions_living", TEXT_ARRAY, INT8), &[&sessions, &now]).await?;
    rows.iter().map(|found| Ok((row::text(found, 0)?, row::text(found, 1)?))).collect()
}

fn set_aside(rows: &[Row]) -> Done<HashMap<i64, SetAside>> {
    rows.iter()
        .map(|found| {
            let why = SetAside {
                what: row::text(found, 1)?,
                why: row::text(found, 2)?,
                since: Millis(found.try_get(3)?),
            };
            Ok((found.try_get(0)?, why))
        })
        .collect()
}

/// Newest first. Inside a transaction that reads.
pub(super) async fn runs(link: &Link, now: Option<Millis>, filter: &RunFilter) -> Done<Vec<RunSummary>> {
    let words: Vec<&str> = filter.statuses.iter().map(|status| status.as_str()).collect();
    let (statuses, limit) =
        ((!words.is_empty()).then_some(words), i64::try_from(filter.limit).unwrap_or(i64::MAX));
    let before = filter.before.map(|run| run.to_string());
    let (since, until) = (filter.since.map(|at| at.0), filter.until.map(|at| at.0));
    let down_to = filter.down_to.map(|run| run.to_string());
    let sql = match filter.workflow {
        None => sql!("runs", TEXT_ARRAY, TEXT, INT8, TEXT, INT8, INT8, TEXT, TEXT),
        Some(_) => sql!("runs_named", TEXT_ARRAY, TEXT, INT8, TEXT, INT8, INT8, TEXT, TEXT),
    };
    let rows = link
        .rows(sql, &[&statuses, &filter.workflow, &limit, &before, &since, &until, &filter.begins, &down_to])
        .await?;
    listed(link, now, &rows, None).await
}

/// The last of so many runs, newest first.
pub(super) async fn run_behind(
    link: &Link,
    of: Option<&str>,
    before: Option<RunId>,
    count: usize,
) -> Done<Option<(RunId, Millis)>> {
    let before = before.map(|run| run.to_string());
    let passed = i64::try_from(count.saturating_sub(1)).unwrap_or(i64::MAX);
    let found = match of {
        None => link.row(sql!("run_behind", TEXT, INT8), &[&before, &passed]).await?,
        Some(of) => link.row(sql!("run_behind_of", TEXT, INT8, TEXT), &[&before, &passed, &of]).await?,
    };
    let Some(found) = found else { return Ok(None) };
    Ok(Some((row::word(&found, 0, "run", RunId::parse)?, Millis(found.try_get(1)?))))
}

/// Who paused a workflow, and since when.
pub(super) async fn workflow_paused(link: &Link, workflow: &str) -> Done<Option<(String, Millis)>> {
    let found = link.row(sql!("workflow_paused", TEXT), &[&workflow]).await?;
    found.map(|found| Ok((row::text(&found, 0)?, Millis(found.try_get(1)?)))).transpose()
}

/// The runs of rows, with what a list says of them. Tasks of one that has more than `most` are not counted.
pub(super) async fn listed(
    link: &Link,
    now: Option<Millis>,
    rows: &[Row],
    most: Option<i64>,
) -> Done<Vec<RunSummary>> {
    let numbers: Vec<i64> = rows.iter().map(|found| row::number(found, 0)).collect::<Done<_>>()?;
    let mut flight = link.flight();
    let one_more = most.map(|most| most + 1);
    match &one_more {
        None => flight.ask(sql!("task_counts", INT8_ARRAY), vec![&numbers]),
        Some(one_more) => {
            flight.ask(sql!("task_counts_of_few", INT8_ARRAY, INT8), vec![&numbers, one_more]);
        }
    }
    flight.ask(sql!("quarantine_read", INT8_ARRAY), vec![&numbers]);
    let answers = flight.land().await?;
    let mut counts = counts(answers.first().map_or(&[][..], Vec::as_slice))?;
    let mut aside = set_aside(answers.get(1).map_or(&[][..], Vec::as_slice))?;
    let owners: Vec<Option<String>> =
        rows.iter().map(|found| row::maybe_text(found, 9)).collect::<Done<_>>()?;
    let living = living(link, now, owners.iter().flatten().cloned().collect()).await?;
    let retried: Vec<i64> =
        counts.iter().filter(|(_, counted)| counted.is_retried).map(|(no, _)| *no).collect();
    let first = first_events(link, &retried).await?;
    let mut lacking = Vec::new();
    let mut runs = Vec::with_capacity(rows.len());
    for ((found, no), owner) in rows.iter().zip(numbers).zip(owners) {
        // One row must not hide the others.
        let Some(mut run) = summary(found)? else {
            tracing::warn!("a run is not listed, because its id cannot be read; `laneway doctor` names it");
            continue;
        };
        let counted = counts.remove(&no).unwrap_or_default();
        let counted = if most.is_some_and(|most| counted.rows > most) { Counted::default() } else { counted };
        run.first_task_at = if counted.is_retried { first.get(&no).copied() } else { counted.first_task_at };
        run.counts = counted.states;
        if most.is_none() && run.may_lack_node(run.is_interrupted) {
            lacking.push((no, runs.len()));
        }
        run.is_interrupted = run.is_interrupted
            && run.status.is_some_and(|status| !status.is_final())
            && !owner.is_some_and(|owner| living.contains_key(&owner));
        run.set_aside = aside.remove(&no);
        runs.push(run);
    }
    let numbers: Vec<i64> = lacking.iter().map(|(no, _)| *no).collect();
    let mut causes = without_node(link, &numbers).await?;
    for (no, at) in lacking {
        runs[at].without_node = causes.remove(&no);
    }
    Ok(runs)
}

/// When the first attempt of some runs started.
async fn first_events(link: &Link, numbers: &[i64]) -> Done<HashMap<i64, Millis>> {
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = link.rows(sql!("first_starts", INT8_ARRAY), &[&numbers]).await?;
    rows.iter().map(|found| Ok((found.try_get(0)?, Millis(found.try_get(1)?)))).collect()
}

/// Why no live node can take those of some runs of which nothing was executed.
async fn without_node(link: &Link, numbers: &[i64]) -> Done<HashMap<i64, String>> {
    let mut causes = HashMap::new();
    if numbers.is_empty() {
        return Ok(causes);
    }
    // Many runs wait for the same few kinds of node.
    let mut by_class: HashMap<i64, Option<String>> = HashMap::new();
    for found in link.rows(sql!("runs_without_node", INT8_ARRAY), &[&numbers]).await? {
        let Some(class) = found.try_get::<_, Option<i64>>(1)? else { continue };
        let cause = match by_class.get(&class) {
            Some(cause) => cause.clone(),
            None => {
                let cause = waits::for_node(link, class, None).await?.map(|wait| wait.cause().text);
                by_class.entry(class).or_insert(cause).clone()
            }
        };
        causes.extend(found.try_get(0).ok().zip(cause));
    }
    Ok(causes)
}

fn summary(found: &Row) -> Done<Option<RunSummary>> {
    let Some(run) = RunId::parse(&row::text(found, 1)?) else { return Ok(None) };
    let status = RunStatus::parse(&row::text(found, 3)?);
    let (closing, paused) =
        under_way(status, row::maybe_text(found, 11)?.as_deref(), row::maybe_text(found, 12)?.as_deref());
    Ok(Some(RunSummary {
        run,
        workflow: row::text(found, 2)?,
        status,
        reason: row::maybe_text(found, 4)?,
        submitted_at: Millis(found.try_get(5)?),
        started_at: row::moment(found, 6)?,
        finished_at: row::moment(found, 7)?,
        submitted_by: row::text(found, 8)?,
        counts: Vec::new(),
        // As far as the row can tell: one that belongs to nobody cannot be.
        is_interrupted: row::text(found, 10)? == "local",
        set_aside: None,
        closing,
        paused,
        first_task_at: None,
        without_node: None,
        not_before: row::moment(found, 13)?,
    }))
}

fn counts(rows: &[Row]) -> Done<HashMap<i64, Counted>> {
    let mut counts: HashMap<i64, Counted> = HashMap::new();
    for found in rows {
        let counted = counts.entry(found.try_get(0)?).or_default();
        let first = row::moment(found, 3)?;
        counted.add(&row::text(found, 1)?, row::number(found, 2)?, (first, row::number(found, 4)?));
        counted.rows += found.try_get::<_, i64>(5)?;
    }
    Ok(counts)
}

/// The newest runs of each workflow, newest first.
pub(super) async fn outcomes(link: &Link, workflows: &[String], limit: usize) -> Done<Vec<RunOutcome>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("outcomes", TEXT_ARRAY, INT8), &[&workflows, &limit]).await?;
    let outcome = |found: &Row| {
        Ok(RunOutcome {
            workflow: row::text(found, 0)?,
            run: row::word(found, 1, "run id", RunId::parse)?,
            status: row::maybe_text(found, 2)?.as_deref().and_then(RunStatus::parse),
            submitted_at: Millis(found.try_get(3)?),
            started_at: row::moment(found, 4)?,
            finished_at: row::moment(found, 5)?,
        })
    };
    rows.iter().map(outcome).collect()
}

pub(super) async fn backlog(link: &Link) -> Done<Vec<(Option<Gate>, u64)>> {
    let rows = link.rows(sql!("backlog"), &[]).await?;
    rows.iter()
        .map(|found| {
            Ok((row::maybe_text(found, 0)?.as_deref().and_then(Gate::parse), row::number(found, 1)?))
        })
        .collect()
}

pub(super) async fn parked(link: &Link) -> Done<u64> {
    let found = link.row(sql!("parked_count"), &[]).await?;
    found.map_or(Ok(0), |found| row::number(&found, 0))
}

pub(super) async fn limits(link: &Link) -> Done<Vec<LimitView>> {
    let rows = link.rows(sql!("limits"), &[]).await?;
    rows.iter()
        .map(|found| {
            Ok(LimitView {
                name: row::text(found, 0)?,
                limit: row::word(found, 1, "limit", |text| Limit::parse(text).ok())?,
                set_by: row::text(found, 2)?,
                set_at: Millis(found.try_get(3)?),
                holders: row::number(found, 4)?,
                waiting: row::number(found, 5)?,
            })
        })
        .collect()
}

/// How long a session has not renewed its lease, if it has missed a renewal. A lease is renewed at
/// least three times in its length.
pub(super) fn silence(unrenewed_for: Duration, ttl: Duration) -> Option<Duration> {
    (unrenewed_for > ttl / 3 + Duration::from_secs(1)).then_some(unrenewed_for)
}

/// Those whose lease has not ended.
pub(super) async fn nodes(
    link: &Link,
    shelf: &Shelf,
    now: Option<Millis>,
    claims: usize,
) -> Done<Vec<NodeView>> {
    let mut nodes = Vec::new();
    for found in link.rows(sql!("nodes", INT8), &[&now.map(|now| now.0)]).await? {
        let session = row::word(&found, 0, "session", SessionId::parse)?;
        let (renewed_at, observed_at) = (Millis(found.try_get(8)?), Millis(found.try_get(14)?));
        let ttl = Duration::from_millis(row::number(&found, 15)?);
        nodes.push(NodeView {
            node: row::text(&found, 1)?,
            session,
            pid: row::number(&found, 2)?,
            registered_at: Millis(found.try_get(3)?),
            slots: row::number(&found, 4)?,
            offer: row::maybe_text(&found, 5)?.as_deref().and_then(offer::from_text),
            is_draining: found.try_get(6)?,
            renewed_at,
            silent_for: silence(observed_at.since(renewed_at), ttl),
            tally: tally::read(
                row::maybe_text(&found, 9)?.as_deref(),
                row::number(&found, 10)?,
                row::number(&found, 11)?,
            ),
            last_active_at: row::moment(&found, 12)?,
            lost_sessions: row::number(&found, 13)?,
            observed_at,
            held: row::number(&found, 7)?,
            fires: found.try_get(16)?,
            claims: node_claims(link, shelf, session, claims).await?,
        });
    }
    Ok(nodes)
}

/// Those that were lost last first: the first knows how many there were.
pub(super) async fn losses(link: &Link) -> Done<Losses> {
    let mut losses = Losses::default();
    for found in link.rows(sql!("losses"), &[]).await? {
        losses.total = losses.total.max(row::number(&found, 2)?);
        losses.nodes.push((row::text(&found, 0)?, row::number(&found, 1)?));
    }
    Ok(losses)
}

/// In order, behind a number, up to one that cannot be read.
pub(super) async fn node_events(
    link: &Link,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Done<Vec<NodeEvent>> {
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = link.rows(sql!("node_events", TEXT, INT8, INT8), &[&node, &after, &limit]).await?;
    let mut events = Vec::new();
    for found in &rows {
        let number = (Teller::Nodes, row::number(found, 0)?);
        if !add_event(&mut events, node_event(found), number, Failure::to_blame)? {
            break;
        }
    }
    Ok(events)
}

fn node_event(found: &Row) -> Done<NodeEvent> {
    let (name, body) = (row::text(found, 4)?, row::text(found, 6)?);
    let fact = NodeFact::read(&name, row::number(found, 5)?, &body)
        .map_err(|error| Error::Unreadable { what: "event of a node".to_owned(), why: error.to_string() })?;
    Ok(NodeEvent {
        seq: row::number(found, 0)?,
        at: Millis(found.try_get(1)?),
        node: row::text(found, 2)?,
        session: row::word(found, 3, "session", SessionId::parse)?,
        fact,
    })
}

async fn node_claims(link: &Link, shelf: &Shelf, session: SessionId, limit: usize) -> Done<Vec<ClaimView>> {
    let (id, limit) = (session.to_string(), i64::try_from(limit).unwrap_or(i64::MAX));
    // What cannot be read of one run hides no node: it is counted among what the node holds.
    let mut claims = Readable::new();
    for found in link.rows(sql!("node_claims", TEXT, INT8), &[&id, &limit]).await? {
        let claim = async || -> Done<ClaimView> {
            let run = row::word(&found, 0, "run id", RunId::parse)?;
            let position: Position = row::number(&found, 1)?;
            let head = shelf.head(link, run).await?;
            Ok(ClaimView {
                run,
                step: head.head.plan.task_name(position),
                attempt: row::number(&found, 2)?,
                started_at: row::moment(&found, 3)?,
            })
        };
        claims.add(claim().await, true, |failure| read::is_blamed(failure) || failure.is_about_a_value())?;
    }
    Ok(claims.list)
}
