//! One run against itself: can all of it be read, does its history tell what is stored, do its
//! counters count right.

use std::collections::BTreeMap;

use laneway_core::event::Event;
use laneway_core::gate::Counts;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::run_state::RunState;
use rusqlite::{Connection, Row};

use crate::error::Error;
use crate::examine::{miscounts, parts_from, unfit, unknown_word};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head, Plans, read_head};
use crate::sqlite::{fault, read};

/// Events that are read at a time.
const PAGE: usize = 10_000;

/// Everything of one run that does not fit: what cannot be read, a history that does not tell the
/// state, counters that count something else. What the disk refuses is an error.
pub(in crate::sqlite) fn examine_run(connection: &Connection, plans: &Plans, run: RunId) -> Done<Vec<Error>> {
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
    for why in miscounted(connection, &head, &state)? {
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
        Err(Failure::Sqlite(error)) if fault::is_about_a_value(&error) => {
            troubles.push(Error::Unreadable { what: "row".to_owned(), why: error.to_string() });
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

fn history(connection: &Connection, run: RunId) -> Done<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = read::events_since(connection, run, after, PAGE)?;
        // In a damaged file events may stand out of order, and lead back to where this began.
        let leads_on = page.last().is_some_and(|last| last.seq > after);
        all.extend(page);
        if !leads_on {
            return Ok(all);
        }
    }
}

fn attempts(connection: &Connection, head: &Head) -> Done<()> {
    let mut statement = connection.prepare_cached(sql!("examine_attempts"))?;
    let mut rows = statement.query([head.no])?;
    while let Some(row) = rows.next()? {
        let (position, attempt): (Position, u32) = (row.get(0)?, row.get(1)?);
        if let Err(why) = attempt_row(row) {
            let plan = &head.head.plan;
            let step = plan.task_name(position);
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
    unknown_word(&outcome, reason.as_deref()).map_or(Ok(()), Err)
}

/// Counters that differ from a count of what they stand for.
fn miscounted(connection: &Connection, head: &Head, state: &RunState) -> Done<Vec<String>> {
    let unsettled: i64 =
        connection.prepare_cached(sql!("examine_counter"))?.query_row([head.no], |row| row.get(0))?;
    let sets: BTreeMap<usize, Counts> = connection
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
    Ok(miscounts(&head.head.plan, state, unsettled, &sets))
}
