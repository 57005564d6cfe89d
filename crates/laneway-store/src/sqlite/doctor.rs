//! What is wrong with a store, in words, with what to do about it: the file, its rows, each run against its own
//! history, sessions, and files beside it. It only looks; `quarantine::release` is the one who changes something.

use std::collections::BTreeMap;
use std::path::Path;

use laneway_core::gate::Counts;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::run_state::{self, RunState};
use laneway_core::time::Millis;
use rusqlite::{Connection, Row};

use super::run_work::Settled;
use super::session::Life;
use super::txn::{Done, Failure, Head, Plans, read_head, sql};
use super::{Shared, connect, fault, read};
use crate::error::Error;
use crate::model::{About, Examination, Finding, Severity};

/// Events that are read at a time.
const PAGE: usize = 10_000;

/// Looks at the file, at the newest `limit` runs, and at what lies beside the store.
pub(super) fn examine(connection: &Connection, shared: &Shared, limit: usize) -> Done<Examination> {
    // Before the first statement, and so before its snapshot: what is made meanwhile is no leftover.
    let names = Names::beside(&connect::dir_of(&shared.path));
    let mut found = Vec::new();
    file(connection, shared, &mut found);
    let mut examination = Examination { runs: 0, total: 0, findings: Vec::new() };
    // A file that is damaged answers some questions and not others.
    let looked = runs(connection, limit, &mut found)
        .map(|(looked_at, total)| (examination.runs, examination.total) = (looked_at, total));
    let answers = [
        looked,
        rows(connection, &mut found),
        quarantined(connection, &mut found),
        sessions(connection, shared, &mut found),
        leftovers(connection, shared, &names, &mut found),
    ];
    found.extend(answers.into_iter().filter_map(Result::err).map(|failure| unanswered(failure, shared)));
    examination.findings = found;
    Ok(examination)
}

/// Everything of one run that does not fit: what cannot be read, a history that does not tell the state, counters
/// that count something else. What the disk refuses is an error.
pub(super) fn examine_run(connection: &Connection, plans: &Plans, run: RunId) -> Done<Vec<Error>> {
    let mut troubles = Vec::new();
    let head = match kept(read_head(connection, plans, run), &mut troubles)? {
        Some(head) => head,
        None => return Ok(troubles),
    };
    kept(attempts(connection, &head), &mut troubles)?;
    let state = kept(read::run_state(connection, &head), &mut troubles)?;
    let events = kept(history(connection, run), &mut troubles)?;
    let Some(state) = state else { return Ok(troubles) };
    if let Some(why) = events.and_then(|events| parts_from(&state, &events)) {
        troubles.push(unfit(run, "history", why));
    }
    for why in miscounts(connection, &head, &state)? {
        troubles.push(unfit(run, "counter", why));
    }
    Ok(troubles)
}

fn unfit(run: RunId, what: &str, why: String) -> Error {
    Error::Unreadable { what: format!("{what} of run {}", run.short()), why }
}

/// A value, or the trouble with it kept.
fn kept<T>(read: Done<T>, troubles: &mut Vec<Error>) -> Done<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Refused(error)) => {
            troubles.push(error);
            Ok(None)
        }
        Err(Failure::Sqlite(error)) if fault::is_about_a_value(&error) => {
            troubles.push(Error::Unreadable { what: "row".to_owned(), why: error.to_string() });
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

fn history(connection: &Connection, run: RunId) -> Done<Vec<laneway_core::event::Event>> {
    let mut all: Vec<laneway_core::event::Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = read::events_since(connection, run, after, PAGE)?;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// Where the history and the stored state part, if they do.
fn parts_from(state: &RunState, events: &[laneway_core::event::Event]) -> Option<String> {
    let gap = events.iter().zip(1..).find(|(event, number)| event.seq != *number);
    if let Some((event, number)) = gap {
        return Some(format!("event {} stands where event {number} should", event.seq));
    }
    if events.len() as u64 != state.last_event {
        return Some(format!("it has {} events, and {} are there", state.last_event, events.len()));
    }
    match run_state::replay(state.tasks.iter().map(|task| task.step.as_str()), events) {
        Err(broken) => Some(broken.to_string()),
        Ok(told) => {
            let text = |state: &RunState| serde_json::to_string(state).unwrap_or_default();
            (text(&told) != text(state)).then(|| {
                format!(
                    "it tells another state than the one that is stored; `laneway replay {}` shows where",
                    state.run.short()
                )
            })
        }
    }
}

fn attempts(connection: &Connection, head: &Head) -> Done<()> {
    let mut statement = connection.prepare_cached(sql!("examine_attempts"))?;
    let mut rows = statement.query([head.no])?;
    while let Some(row) = rows.next()? {
        let (position, attempt): (Position, u32) = (row.get(0)?, row.get(1)?);
        if let Err(why) = attempt_row(row) {
            let step = head.head.plan.workflow.steps.get(position as usize);
            let step = step.map_or_else(|| format!("position {position}"), |step| step.name.clone());
            let what = format!("attempt {attempt} of {step} in run {}", head.head.run.short());
            return Err(Error::Unreadable { what, why }.into());
        }
    }
    Ok(())
}

fn attempt_row(row: &Row<'_>) -> Result<(), String> {
    let read = || -> rusqlite::Result<(String, Option<String>)> {
        let _: (String, Option<String>) = (row.get(2)?, row.get(5)?);
        Ok((row.get(3)?, row.get(4)?))
    };
    let (outcome, reason) = read().map_err(|error| error.to_string())?;
    if !["succeeded", "failed", "canceled", "lost", "returned"].contains(&outcome.as_str()) {
        return Err(format!("`{outcome}` is not known"));
    }
    match reason {
        Some(word) if Reason::parse(&word).is_none() => Err(format!("`{word}` is not known")),
        Some(_) | None => Ok(()),
    }
}

/// Counters that differ from a count of what they stand for.
fn miscounts(connection: &Connection, head: &Head, state: &RunState) -> Done<Vec<String>> {
    let mut wrong = Vec::new();
    let counter: i64 =
        connection.prepare_cached(sql!("examine_counter"))?.query_row([head.no], |row| row.get(0))?;
    let open = state.tasks.iter().filter(|task| !task.status.is_final()).count();
    if counter != open as i64 {
        wrong.push(format!("it counts {counter} unsettled tasks, and {open} are there"));
    }
    let stored: BTreeMap<usize, Counts> = connection
        .prepare_cached(sql!("examine_needs"))?
        .query_map([head.no], |row| {
            let counts = Counts {
                unsettled: row.get(1)?,
                succeeded: row.get(2)?,
                failed: row.get(3)?,
                passed_over: row.get(4)?,
            };
            Ok((row.get(0)?, counts))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (set, needs) in head.head.plan.needs_sets.iter().enumerate() {
        if stored.get(&set) != Some(&count(state, &needs.needs)) {
            wrong.push(format!("what it counts for needs set {set} is not what its tasks say"));
        }
    }
    Ok(wrong)
}

fn count(state: &RunState, needs: &[Position]) -> Counts {
    let mut counts = Counts::default();
    for need in needs {
        // A plan refers to its own steps, and there are as many tasks as steps (`read::run_state`).
        let task = &state.tasks[*need as usize];
        match Settled::of(task.status, task.reason) {
            Some(Settled::Succeeded) => counts.succeeded += 1,
            Some(Settled::Failed) => counts.failed += 1,
            Some(Settled::PassedOver) => counts.passed_over += 1,
            None => counts.unsettled += 1,
        }
    }
    counts
}

fn file(connection: &Connection, shared: &Shared, found: &mut Vec<Finding>) {
    let check = || -> rusqlite::Result<Vec<String>> {
        connection.prepare("PRAGMA integrity_check(20)")?.query_map([], |row| row.get(0))?.collect()
    };
    let said = check().unwrap_or_else(|error| vec![error.to_string()]);
    let advice =
        "restore a copy made by `laneway backup`, or save what can be read with `sqlite3 FILE .recover`";
    found.extend(
        said.into_iter()
            .filter(|line| line != "ok")
            .map(|what| problem(About::File, shared.path.display().to_string(), what, advice)),
    );
}

fn rows(connection: &Connection, found: &mut Vec<Finding>) -> Done<()> {
    let broken: Vec<(String, String)> = connection
        .prepare("PRAGMA foreign_key_check")?
        .query_map([], |row| Ok((row.get(0)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (table, target) in broken {
        let what = format!("a row refers to one of `{target}` that is not there");
        found.push(problem(About::Row, format!("table {table}"), what, MEND));
    }
    let strays: Vec<(String, u64)> = connection
        .prepare(sql!("examine_strays"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (table, number) in strays.into_iter().filter(|(_, number)| *number > 0) {
        let what = format!("{number} of its rows belong to no run");
        found.push(problem(
            About::Row,
            format!("table {table}"),
            what,
            "they are in nobody's way; keep a copy before you delete them",
        ));
    }
    Ok(())
}

const MEND: &str = "mend the row in a copy with `sqlite3`, or restore a copy made by `laneway backup`";

fn runs(connection: &Connection, limit: usize, found: &mut Vec<Finding>) -> Done<(usize, usize)> {
    let total: usize = connection.query_row(sql!("examine_count"), [], |row| row.get(0))?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let runs: Vec<(i64, Option<String>)> = connection
        .prepare(sql!("examine_runs"))?
        .query_map([limit], |row| Ok((row.get(0)?, row.get(1).ok())))?
        .collect::<rusqlite::Result<_>>()?;
    let looked_at = runs.len();
    for (no, id) in runs {
        let Some(run) = id.as_deref().and_then(RunId::parse) else {
            let what = format!("its id `{}` cannot be read", id.unwrap_or_default());
            found.push(problem(About::Run, format!("run number {no}"), what, MEND));
            continue;
        };
        let advice = format!(
            "{MEND}; then `laneway doctor --release {}` if it was set aside. Other runs are not affected",
            run.short()
        );
        // A plan is made from its document anew: one from the shelf may be older than the fault.
        for trouble in examine_run(connection, &Plans::default(), run)? {
            let subject = format!("run {}", run.short());
            found.push(problem(About::Run, subject, trouble.to_string(), &advice));
        }
    }
    Ok((looked_at, total))
}

fn quarantined(connection: &Connection, found: &mut Vec<Finding>) -> Done<()> {
    let rows: Vec<(i64, Option<String>, String, String, i64)> = connection
        .prepare(sql!("quarantine_list"))?
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1).unwrap_or_default(), row.get(2)?, row.get(3)?, row.get(4)?))
        })?
        .collect::<rusqlite::Result<_>>()?;
    for (no, id, what, why, since) in rows {
        let run = id.as_deref().and_then(RunId::parse);
        let name = run.map_or_else(|| format!("number {no}"), |run| run.short());
        let what = format!("set aside since {}: a stored {what} could not be read: {why}", Millis(since));
        let advice = format!("`laneway doctor --release {name}` brings it back once it can be read");
        found.push(problem(About::Quarantine, format!("run {name}"), what, &advice));
    }
    Ok(())
}

fn sessions(connection: &Connection, shared: &Shared, found: &mut Vec<Finding>) -> Done<()> {
    let rows: Vec<(String, String, u64)> = connection
        .prepare_cached(sql!("sessions"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (id, node, held) in rows {
        let Some(session) = SessionId::parse(&id) else {
            found.push(problem(
                About::Session,
                format!("session {id}"),
                "its id cannot be read".to_owned(),
                MEND,
            ));
            continue;
        };
        if let Life::Dead(_) = shared.locks.look(session)? {
            let tasks = if held == 1 { "task" } else { "tasks" };
            let what = format!("its process is gone; it held {held} {tasks}");
            let advice = "nothing: the next `laneway run`, `--resume` or `cancel` returns what it held";
            found.push(note(About::Session, format!("session of {node}"), what, advice));
        }
    }
    Ok(())
}

/// Names of directories and files beside the store that carry an id.
struct Names {
    logs: Vec<RunId>,
    scratch: Vec<SessionId>,
    locks: Vec<SessionId>,
}

impl Names {
    fn beside(dir: &Path) -> Self {
        let names = |part: &str| -> Vec<String> {
            let entries = std::fs::read_dir(dir.join(part)).into_iter().flatten().flatten();
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
        };
        let lock = |name: &String| SessionId::parse(name.strip_suffix(".lock")?);
        Self {
            logs: names("logs").iter().filter_map(|name| RunId::parse(name)).collect(),
            scratch: names("scratch").iter().filter_map(|name| SessionId::parse(name)).collect(),
            locks: names("sessions").iter().filter_map(lock).collect(),
        }
    }
}

fn leftovers(connection: &Connection, shared: &Shared, names: &Names, found: &mut Vec<Finding>) -> Done<()> {
    let dir = connect::dir_of(&shared.path);
    let mut leave = |path: std::path::PathBuf, what: &str| {
        let advice = "it is in nobody's way and can be removed";
        found.push(note(About::Leftover, path.display().to_string(), what.to_owned(), advice));
    };
    let mut known = connection.prepare_cached(sql!("examine_known"))?;
    for run in &names.logs {
        if !known.exists([run.to_string()])? {
            leave(dir.join("logs").join(run.to_string()), "logs of a run that is not in this store");
        }
    }
    let mut is_known = connection.prepare_cached(sql!("session_known"))?;
    let mut is_over = |session: SessionId| -> Done<bool> {
        let is_dead = matches!(shared.locks.look(session)?, Life::Dead(_));
        Ok(is_dead && !is_known.exists([session.to_string()])?)
    };
    for session in &names.scratch {
        if is_over(*session)? {
            leave(dir.join("scratch").join(session.to_string()), "scratch files of a session that is over");
        }
    }
    for session in &names.locks {
        if is_over(*session)? {
            leave(dir.join("sessions").join(format!("{session}.lock")), "the lock of a session that is over");
        }
    }
    Ok(())
}

fn unanswered(failure: Failure, shared: &Shared) -> Finding {
    let error = match failure {
        Failure::Refused(error) => error,
        Failure::Sqlite(error) => fault::explain(&error, &shared.path),
        Failure::Panicked(why) => super::quarantine::panicked(why),
    };
    let advice = error.hint().unwrap_or_else(|| MEND.to_owned());
    problem(About::File, shared.path.display().to_string(), error.to_string(), &advice)
}

fn problem(about: About, subject: String, what: String, advice: &str) -> Finding {
    Finding { severity: Severity::Problem, about, subject, what, advice: advice.to_owned() }
}

fn note(about: About, subject: String, what: String, advice: &str) -> Finding {
    Finding { severity: Severity::Note, about, subject, what, advice: advice.to_owned() }
}
