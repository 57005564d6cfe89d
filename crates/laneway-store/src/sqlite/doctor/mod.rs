//! What is wrong with a store, in words, with what to do about it: the file, its rows, each run
//! against its own history, sessions, and files beside it. It only looks; `quarantine::release` is
//! the one who changes something.

mod run;

use std::path::Path;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::Connection;

pub(super) use run::examine_run;

use super::txn::{Done, Failure, Plans, read_head};
use super::{Shared, data_dir, fault};
use crate::child::{SLOW_MS, Unstarted};
use crate::lease::{LeaseRecord, monotonic_time};
use crate::locks::Life;
use crate::model::{About, Examination, Finding, Severity};
use crate::sqlite::statements::sql;

/// Looks at the file, at the newest `limit` runs, and at what lies beside the store.
pub(super) fn examine(connection: &Connection, shared: &Shared, limit: usize) -> Done<Examination> {
    // Before the first statement, and so before its snapshot: what is made meanwhile is no
    // leftover.
    let names = Names::beside(&shared.dir);
    let mut found = Vec::new();
    file(connection, shared, &mut found);
    shared_dir(shared, &mut found);
    let mut examination = Examination { runs: 0, total: 0, findings: Vec::new() };
    // A file that is damaged answers some questions and not others.
    let looked = runs(connection, limit, &mut found)
        .map(|(looked_at, total)| (examination.runs, examination.total) = (looked_at, total));
    let answers = [
        looked,
        rows(connection, &mut found),
        quarantined(connection, &mut found),
        unstarted(connection, shared, &mut found),
        sessions(connection, shared, &mut found),
        leftovers(connection, shared, &names, &mut found),
    ];
    found.extend(answers.into_iter().filter_map(Result::err).map(|failure| unanswered(failure, shared)));
    examination.findings = found;
    Ok(examination)
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

/// Files that an earlier version put beside the database, where other stores may keep theirs.
fn shared_dir(shared: &Shared, found: &mut Vec<Finding>) {
    if !data_dir::shares_dir(&shared.path, &shared.dir) {
        return;
    }
    let what = format!(
        "an earlier version made it: its logs, artifacts and scratch files stay in {}",
        shared.dir.display()
    );
    let advice = format!(
        "nothing; to keep them in {}, copy the store with `laneway backup` and `laneway restore`",
        data_dir::new_data_dir(&shared.path).display()
    );
    found.push(note(About::File, shared.path.display().to_string(), what, &advice));
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

/// Runs that steps wait for, and that nobody starts.
fn unstarted(connection: &Connection, shared: &Shared, found: &mut Vec<Finding>) -> Done<()> {
    let since = shared.moment(connection)?.0 - SLOW_MS;
    let mut statement = connection.prepare(sql!("examine_wanted"))?;
    let mut rows = statement.query([since])?;
    while let Some(row) = rows.next()? {
        let (id, position): (String, Position) = (row.get(0)?, row.get(1)?);
        // What cannot be read of a run is told with that run.
        let Some(run) = RunId::parse(&id) else { continue };
        let Ok(head) = read_head(connection, &Plans::default(), run) else { continue };
        let unstarted = Unstarted {
            run,
            step: head.head.plan.task_name(position),
            workflow: row.get(2)?,
            is_again: row.get(3)?,
            is_local: row.get(4)?,
            is_unwanted: row.get(5)?,
            since: row.get::<_, Option<i64>>(6)?.map(Millis),
        };
        found.push(unstarted.finding());
    }
    Ok(())
}

fn sessions(connection: &Connection, shared: &Shared, found: &mut Vec<Finding>) -> Done<()> {
    let rows: Vec<(String, String, u64, Option<i64>)> = connection
        .prepare_cached(sql!("sessions"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(4)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let now = shared.moment(connection)?;
    for (id, node, held, expires_at) in rows {
        let Some(session) = SessionId::parse(&id) else {
            found.push(problem(
                About::Session,
                format!("session {id}"),
                "its id cannot be read".to_owned(),
                MEND,
            ));
            continue;
        };
        if let Some(expires_at) = expires_at {
            if expires_at <= now.0 {
                let what = format!("its lease has ended; tasks that it holds: {held}");
                let advice = "nothing: a `laneway serve` or `laneway worker` returns them when it has waited as long as a lease";
                found.push(note(About::Session, format!("session of {node}"), what, advice));
            }
            continue;
        }
        let life = shared.locks.look(session)?;
        let silence =
            shared.locks.lease(session).and_then(|lease| Some((lease.silence(monotonic_time())?, lease)));
        if let (Life::Alive, Some((silence, lease))) = (&life, silence) {
            found.push(frozen(&node, held, silence, &lease));
        }
        if let Life::Dead(_) = life {
            let tasks = if held == 1 { "task" } else { "tasks" };
            let what = format!("its process is gone; it held {held} {tasks}");
            let advice = "nothing: the next `laneway run`, `--resume` or `cancel` returns what it held";
            found.push(note(About::Session, format!("session of {node}"), what, advice));
        }
    }
    Ok(())
}

/// A process that lives and does not run.
fn frozen(node: &str, held: u64, silence: Duration, lease: &LeaseRecord) -> Finding {
    let (pid, ttl) = (lease.pid.as_raw_nonzero(), lease.ttl.as_secs());
    let what = format!(
        "its process {pid} has not responded for {} s: it is stopped or frozen; tasks that it holds: {held}",
        silence.as_secs()
    );
    let advice = if lease.expires {
        format!(
            "continue it with `kill -CONT {pid}`, or leave it: its steps are killed when its lease of {ttl} s is over, and a \
             worker or `laneway cancel` returns its tasks"
        )
    } else {
        format!(
            "continue it with `kill -CONT {pid}` (or `fg`), or end its run with `laneway cancel`: nobody else takes over a run \
             that belongs to a process"
        )
    };
    problem(About::Session, format!("session of {node}"), what, &advice)
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
    let dir = &shared.dir;
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
