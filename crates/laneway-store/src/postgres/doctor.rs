//! What is wrong with a store, in words, with what to do about it: rows that belong to nobody, each
//! run against its own history, what is set aside, sessions whose lease has ended. The server has
//! its own tools for its files. It only looks; `release` is the one who changes something.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_core::event::Event;
use laneway_core::gate::Counts;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;

use crate::child::{SLOW_MS, Unstarted};
use crate::error::Error;
use crate::examine::{miscounts, parts_from, unfit, unknown_word};
use crate::fence::ClaimRef;
use crate::model::{About, Examination, Finding, Horizon, Severity};
use crate::postgres::facts::Missing;
use crate::postgres::fault::{self, Done, Failure};
use crate::postgres::follow::work;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::run_work::{Job, Terms, task_row};
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::work::children;
use crate::postgres::{read, row, view};

/// Events that are read at a time.
const PAGE: usize = 10_000;

const MEND: &str = "mend the row with `psql`, or restore a dump";

/// Looks at the newest `limit` runs and at what belongs to none. Inside a transaction that reads.
pub(super) async fn examine(link: &Link, now: Option<Millis>, limit: usize) -> Done<Examination> {
    let mut found = Vec::new();
    let total = link.row(sql!("examine_count"), &[]).await?;
    let total = total.map_or(Ok(0), |total| row::number(&total, 0))?;
    let runs = runs(link, limit, &mut found).await?;
    for stray in link.rows(sql!("examine_strays"), &[]).await? {
        let (table, number): (String, i64) = (row::text(&stray, 0)?, stray.try_get(1)?);
        if number > 0 {
            let advice = "they are in nobody's way; keep a copy before you delete them";
            let what = format!("{number} of its rows belong to no run");
            found.push(problem(About::Row, format!("table {table}"), what, advice));
        }
    }
    quarantined(link, &mut found).await?;
    unstarted(link, now, &mut found).await?;
    sessions(link, now, &mut found).await?;
    if let Some(held) = horizon(link, Horizon::LONG).await? {
        found.push(held_up(&held));
    }
    Ok(Examination { runs, total, findings: found })
}

/// Returns what keeps the server from removing dead rows.
pub(super) async fn horizon(link: &Link, at_least: Duration) -> Done<Option<Horizon>> {
    let seconds = i64::try_from(at_least.as_secs()).unwrap_or(i64::MAX);
    let Some(found) = link.row(sql!("horizon", INT8), &[&seconds]).await? else { return Ok(None) };
    let held_for = row::maybe_number(&found, 1)?.map(Duration::from_secs);
    Ok(Some(Horizon { holder: row::text(&found, 0)?, held_for }))
}

fn held_up(horizon: &Horizon) -> Finding {
    let since = match horizon.held_for {
        Some(held) => format!("for {} minutes", held.as_secs() / 60),
        None => "for more than 10,000 transactions".to_owned(),
    };
    let what = format!(
        "it has been open {since}: the server cannot remove rows that were changed since, and claims take longer"
    );
    let advice =
        "end it: a session with `SELECT pg_terminate_backend(PID)`, a prepared transaction with `ROLLBACK PREPARED`, \
         an unused slot with `SELECT pg_drop_replication_slot(NAME)`"
            .to_owned();
    let subject = horizon.holder.clone();
    Finding { severity: Severity::Note, about: About::Database, subject, what, advice }
}

async fn runs(link: &Link, limit: usize, found: &mut Vec<Finding>) -> Done<usize> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("examine_runs", INT8), &[&limit]).await?;
    for listed in &rows {
        let (no, id): (i64, String) = (listed.try_get(0)?, row::text(listed, 1)?);
        let Some(run) = RunId::parse(&id) else {
            let what = format!("its id `{id}` cannot be read");
            found.push(problem(About::Run, format!("run number {no}"), what, MEND));
            continue;
        };
        let short = run.short();
        let advice = format!(
            "{MEND}; then `laneway doctor --release {short}` if it was set aside. Other runs are not affected"
        );
        for trouble in examine_run(link, run).await? {
            found.push(problem(About::Run, format!("run {short}"), trouble.to_string(), &advice));
        }
    }
    Ok(rows.len())
}

/// Everything of one run that does not fit. What the server refuses is an error.
async fn examine_run(link: &Link, run: RunId) -> Done<Vec<Error>> {
    let mut troubles = Vec::new();
    // A shelf of its own: what lies on another one may be older than the fault.
    let shelf = Shelf::default();
    let Some(head) = kept(shelf.head(link, run).await, &mut troubles)? else { return Ok(troubles) };
    kept(attempts(link, &head).await, &mut troubles)?;
    let state = kept(read::run_state(link, &head).await, &mut troubles)?;
    kept(tasks(link, &head).await, &mut troubles)?;
    let events = kept(history(link, run).await, &mut troubles)?;
    let Some(state) = state else { return Ok(troubles) };
    if let Some(why) = events.and_then(|events| parts_from(&state, &events)) {
        troubles.push(unfit(run, "history", why));
    }
    let counters = kept(counters(link, &head).await, &mut troubles)?;
    let Some((unsettled, sets)) = counters else { return Ok(troubles) };
    for why in miscounts(&head.head.plan, &state, unsettled, &sets) {
        troubles.push(unfit(run, "counter", why));
    }
    Ok(troubles)
}

/// A value, or the trouble with it kept.
fn kept<T>(read: Done<T>, troubles: &mut Vec<Error>) -> Done<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Refused(error)) => {
            troubles.push(error);
            Ok(None)
        }
        Err(Failure::Postgres(error)) if fault::is_about_a_value(&error) => {
            troubles.push(Error::Unreadable { what: "row".to_owned(), why: fault::words(&error) });
            Ok(None)
        }
        // Whose it is, is known here.
        Err(Failure::Blamed { failure, .. }) => kept(Err(*failure), troubles),
        Err(failure) => Err(failure),
    }
}

async fn history(link: &Link, run: RunId) -> Done<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = read::events_since(link, run, after, PAGE).await?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// All that verbs read of its tasks, which is more than is shown of them.
async fn tasks(link: &Link, head: &Head) -> Done<()> {
    let numbers = vec![head.no];
    for found in link.rows(sql!("tasks_all", INT8_ARRAY), &[&numbers]).await? {
        let (position, _) = task_row(&found)?;
        head.check([&position])?;
    }
    Ok(())
}

async fn attempts(link: &Link, head: &Head) -> Done<()> {
    for found in link.rows(sql!("examine_attempts", INT8), &[&head.no]).await? {
        let (position, attempt): (Position, u32) = (row::number(&found, 0)?, row::number(&found, 1)?);
        let (outcome, reason) = (row::text(&found, 3)?, row::maybe_text(&found, 4)?);
        if let Some(why) = unknown_word(&outcome, reason.as_deref()) {
            let plan = &head.head.plan;
            let step = plan.task_name(position);
            let what = format!("attempt {attempt} of {step} in run {}", head.head.run.short());
            return Err(Error::Unreadable { what, why }.into());
        }
    }
    Ok(())
}

async fn counters(link: &Link, head: &Head) -> Done<(i64, BTreeMap<usize, Counts>)> {
    let mut flight = link.flight();
    flight.ask(sql!("examine_counter", INT8), vec![&head.no]);
    flight.ask(sql!("examine_needs", INT8), vec![&head.no]);
    let answers = flight.land().await?;
    let unsettled = answers.first().and_then(|rows| rows.first()).map_or(Ok(0), |found| found.try_get(0))?;
    let mut sets = BTreeMap::new();
    for found in answers.get(1).into_iter().flatten() {
        let counts = Counts {
            unsettled: row::number(found, 1)?,
            succeeded: row::number(found, 2)?,
            failed: row::number(found, 3)?,
            passed_over: row::number(found, 4)?,
        };
        sets.insert(row::number(found, 0)?, counts);
    }
    Ok((unsettled, sets))
}

async fn quarantined(link: &Link, found: &mut Vec<Finding>) -> Done<()> {
    for listed in link.rows(sql!("quarantine_list"), &[]).await? {
        let (no, since): (i64, i64) = (listed.try_get(0)?, listed.try_get(4)?);
        let run = row::maybe_text(&listed, 1)?.as_deref().and_then(RunId::parse);
        let name = run.map_or_else(|| format!("number {no}"), |run| run.short());
        let (what, why) = (row::text(&listed, 2)?, row::text(&listed, 3)?);
        let what = format!("set aside since {}: a stored {what} could not be read: {why}", Millis(since));
        let advice = format!("`laneway doctor --release {name}` brings it back once it can be read");
        found.push(problem(About::Quarantine, format!("run {name}"), what, &advice));
    }
    Ok(())
}

/// Runs that steps wait for, and that nobody starts.
async fn unstarted(link: &Link, now: Option<Millis>, found: &mut Vec<Finding>) -> Done<()> {
    let (now, shelf) = (now.map(|now| now.0), Shelf::default());
    for listed in link.rows(sql!("examine_wanted", INT8, INT8), &[&now, &SLOW_MS]).await? {
        // What cannot be read of a run is told with that run.
        let Some(run) = RunId::parse(&row::text(&listed, 0)?) else { continue };
        let Ok(head) = shelf.head(link, run).await else { continue };
        let unstarted = Unstarted {
            run,
            step: head.head.plan.task_name(row::number(&listed, 1)?),
            workflow: row::text(&listed, 2)?,
            is_again: listed.try_get(3)?,
            is_local: listed.try_get(4)?,
            is_unwanted: listed.try_get(5)?,
            since: listed.try_get::<_, Option<i64>>(6)?.map(Millis),
        };
        found.push(unstarted.finding());
    }
    Ok(())
}

async fn sessions(link: &Link, now: Option<Millis>, found: &mut Vec<Finding>) -> Done<()> {
    let now = now.map(|now| now.0);
    for listed in link.rows(sql!("sessions", INT8), &[&now]).await? {
        let (id, node, held, is_expired): (String, String, i64, bool) =
            (row::text(&listed, 0)?, row::text(&listed, 1)?, listed.try_get(2)?, listed.try_get(3)?);
        if is_expired {
            let tasks = if held == 1 { "task" } else { "tasks" };
            let what = format!("its lease has ended; it holds {held} {tasks}");
            let advice = "nothing: any node that lives returns what it held".to_owned();
            let subject = format!("session {id} on {node}");
            found.push(Finding { severity: Severity::Note, about: About::Session, subject, what, advice });
            continue;
        }
        let (pid, unrenewed_for): (i64, u64) = (listed.try_get(4)?, row::number(&listed, 5)?);
        let ttl = Duration::from_millis(row::number(&listed, 6)?);
        if let Some(silence) = view::silence(Duration::from_millis(unrenewed_for), ttl) {
            found.push(silent((&id, &node, pid), held, silence, ttl));
        }
    }
    Ok(())
}

/// A session that has missed a renewal and whose lease goes on.
fn silent((id, node, pid): (&str, &str, i64), held: i64, silence: Duration, ttl: Duration) -> Finding {
    let what = format!(
        "its process {pid} has not responded for {} s: it is stopped, frozen or cut off; tasks that it holds: {held}",
        silence.as_secs()
    );
    let advice = format!(
        "continue it with `kill -CONT {pid}` on its host, or leave it: its steps are killed when its lease of {} s is over, \
         and another node or `laneway cancel` returns its tasks",
        ttl.as_secs()
    );
    problem(About::Session, format!("session {id} on {node}"), what, &advice)
}

/// Sets a run aside of which something does not fit, though nobody has stumbled over it: a history
/// that does not tell the state.
pub(super) async fn set_aside_if_unfit(link: &Link, terms: Terms, run: RunId) -> Done<Option<String>> {
    let found = link.row(sql!("run_no", TEXT), &[&run.to_string()]).await?;
    let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
    let (numbers, now): (Vec<i64>, Option<i64>) = (vec![found.try_get(0)?], terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    let runs = link.locks.acquire_runs(&numbers)?;
    runs.send(&mut flight);
    flight.land().await?;
    let trouble = examine_run(link, run).await?.into_iter().next();
    let told = trouble.as_ref().map(ToString::to_string);
    let words = trouble.as_ref().map(Error::in_two);
    let mut flight = link.flight();
    if let Some((what, why)) = &words {
        flight.ask(sql!("quarantine_add", INT8, TEXT, TEXT, INT8), vec![&numbers[0], what, why, &now]);
    }
    flight.commit().await?;
    Ok(told)
}

/// Takes a run out of the quarantine, if everything of it can be read. What was running when its
/// node died comes back as lost, as it would have then.
pub(super) async fn release(shelf: &Shelf, link: &Link, terms: Terms, run: RunId) -> Done<()> {
    let found = link.row(sql!("run_no", TEXT), &[&run.to_string()]).await?;
    let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
    let numbers: Vec<i64> = vec![found.try_get(0)?];
    let no = numbers[0];
    let mut flight = link.begin(Begin::Write);
    let runs = link.locks.acquire_runs(&numbers)?;
    runs.send(&mut flight);
    flight.ask(sql!("quarantine_read", INT8_ARRAY), vec![&numbers]);
    if flight.land().await?.pop().unwrap_or_default().is_empty() {
        return Err(Error::NotSetAside { run }.into());
    }
    if let Some(trouble) = examine_run(link, run).await?.into_iter().next() {
        return Err(trouble.into());
    }
    let mut flight = link.flight();
    flight.ask(sql!("quarantine_remove", INT8), vec![&no]);
    flight.ask(sql!("tasks_orphaned", INT8), vec![&no]);
    let held = flight.land().await?.pop().unwrap_or_default();
    let mut orphans: Vec<(ClaimRef, String)> = Vec::with_capacity(held.len());
    for found in &held {
        let session = row::word(found, 2, "session of a task", SessionId::parse)?;
        let (position, attempt) = (row::number(found, 0)?, row::number(found, 1)?);
        let claim = ClaimRef { run, position, attempt, generation: row::number(found, 4)?, session };
        orphans.push((claim, row::text(found, 3)?));
    }
    let head = shelf.head(link, run).await?;
    let seed = Missing::for_ends_of(&head.head, orphans.iter().map(|(claim, _)| claim));
    let within = Terms { is_begun: true, ..terms };
    let (_, columns) = work(shelf, link, within, vec![Job { head, seed }], |_, keeper| {
        orphans.iter().try_for_each(|(claim, node)| keeper.lose(claim, node, terms.max_lost))
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    children::released(shelf, link, within, run).await?;
    link.flight().commit().await?;
    Ok(())
}

fn problem(about: About, subject: String, what: String, advice: &str) -> Finding {
    Finding { severity: Severity::Problem, about, subject, what, advice: advice.to_owned() }
}
