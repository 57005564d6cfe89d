//! The store at a glance (`crate::overview`), along indexes and no further than so many rows.

use laneway_core::id::RunId;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::Shared;
use super::txn::{Done, read_head, sql};
use super::view;
use crate::keeper::unreadable;
use crate::overview::{
    Attempts, Deed, EVENTS, Ended, NAMED, NEWEST, OLDEST, Overview, TASKS, Unfinished, WINDOW_MS, Waiting,
    WaitingRow, by_minute, candidates, first_minute, longest, told,
};

pub(super) fn overview(connection: &Connection, shared: &Shared) -> Done<Overview> {
    let now = shared.moment(connection)?;
    let since = now.0.saturating_sub(WINDOW_MS);
    let named = i64::try_from(NAMED).unwrap_or(i64::MAX);
    let failing =
        view::listed(connection, &shared.locks, sql!("overview_failing"), params![since, NEWEST, named])?;
    Ok(Overview {
        observed_at: now,
        unfinished: unfinished(connection)?,
        ended: ended(connection, since)?,
        attempts: attempts(connection, now)?,
        failing,
        waiting: waiting(connection, shared)?,
    })
}

fn unfinished(connection: &Connection) -> Done<Unfinished> {
    let count = |row: &rusqlite::Row<'_>| {
        Ok(Unfinished { running: row.get(0)?, queued: row.get(1)?, paused: row.get(2)? })
    };
    Ok(connection.prepare_cached(sql!("overview_unfinished"))?.query_row([], count)?)
}

fn ended(connection: &Connection, since: i64) -> Done<Ended> {
    let mut ended =
        connection.prepare_cached(sql!("overview_ended"))?.query_row(params![since, NEWEST], |row| {
            Ok(Ended {
                succeeded: row.get(0)?,
                failed: row.get(1)?,
                canceled: row.get(2)?,
                is_partial: false,
            })
        })?;
    let last: Option<i64> = connection
        .prepare_cached(sql!("overview_reach"))?
        .query_row([NEWEST - 1], |row| row.get(0))
        .optional()?;
    ended.is_partial = last.is_some_and(|submitted_at| submitted_at >= since);
    Ok(ended)
}

/// Run by run, newest first, each from its newest event back to the first minute.
fn attempts(connection: &Connection, now: Millis) -> Done<Attempts> {
    let first = first_minute(now);
    let runs: Vec<i64> = connection
        .prepare_cached(sql!("overview_active"))?
        .query_map(params![first.0, NEWEST], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare_cached(sql!("overview_events"))?;
    let (mut deeds, mut read) = (Vec::new(), 0);
    for run in runs {
        let mut rows = statement.query([run])?;
        while read < EVENTS
            && let Some(row) = rows.next()?
        {
            read += 1;
            let at = Millis(row.get(0)?);
            if at < first {
                break;
            }
            let (name, status, took_ms) = (row.get(1)?, row.get(2)?, row.get(3)?);
            deeds.push(Deed { at, name, status, took_ms });
        }
    }
    Ok(Attempts { minutes: by_minute(now, deeds), is_partial: read >= EVENTS })
}

fn waiting(connection: &Connection, shared: &Shared) -> Done<Vec<Waiting>> {
    let runs: Vec<(i64, String)> = connection
        .prepare_cached(sql!("overview_oldest"))?
        .query_map([OLDEST], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare_cached(sql!("overview_waiting"))?;
    let mut found = Vec::new();
    for (no, id) in runs {
        let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
        let mut rows = statement.query(params![no, TASKS])?;
        while let Some(row) = rows.next()? {
            let (position, status, gate, key, order) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            found.push(WaitingRow { run, position, status, gate, key, order });
        }
        candidates(&mut found);
    }
    // One that cannot be read hides none of the others.
    let name = |row: &WaitingRow| told(row, &read_head(connection, &shared.plans, row.run).ok()?.head);
    Ok(longest(found.iter().filter_map(name).collect()))
}
