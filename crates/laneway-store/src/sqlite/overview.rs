//! The store at a glance (`crate::overview`), along indexes and no further than so many rows.

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use rusqlite::{Connection, params};

use super::Shared;
use super::txn::{Done, Plans, Seen, seen};
use super::view;
use crate::overview::{
    Attempts, CANDIDATES, COUNTED, Deed, EVENTS, Ended, NAMED, NEWEST, OLDEST, OldRun, Overview, TASKS,
    Unfinished, WINDOW_MS, Waiting, WaitingRow, by_minute, candidates, first_minute, longest, told,
};
use crate::sqlite::statements::sql;

pub(super) fn overview(connection: &Connection, shared: &Shared) -> Done<Overview> {
    let now = shared.moment(connection)?;
    let since = now.0.saturating_sub(WINDOW_MS);
    let named = i64::try_from(NAMED).unwrap_or(i64::MAX);
    let asked = params![since, NEWEST, named];
    let failing = view::listed(connection, &shared.locks, sql!("overview_failing"), asked, Some(COUNTED))?;
    let has_more = has_more(connection)?;
    let (waiting, is_waiting_partial) = waiting(connection, &shared.plans)?;
    Ok(Overview {
        observed_at: now,
        unfinished: unfinished(connection)?,
        ended: Ended { is_partial: has_more, ..ended(connection, since)? },
        attempts: attempts(connection, now, has_more)?,
        failing,
        waiting,
        is_waiting_partial,
    })
}

/// Whether there are runs beyond the newest: one of them may have ended of late.
fn has_more(connection: &Connection) -> Done<bool> {
    Ok(connection.prepare_cached(sql!("overview_reach"))?.exists([NEWEST])?)
}

fn unfinished(connection: &Connection) -> Done<Unfinished> {
    let count = |row: &rusqlite::Row<'_>| {
        let is_partial = row.get::<_, i64>(3)? > NEWEST;
        Ok(Unfinished { running: row.get(0)?, queued: row.get(1)?, paused: row.get(2)?, is_partial })
    };
    Ok(connection.prepare_cached(sql!("overview_unfinished"))?.query_row([NEWEST + 1], count)?)
}

fn ended(connection: &Connection, since: i64) -> Done<Ended> {
    let count = |row: &rusqlite::Row<'_>| {
        let (succeeded, failed, canceled) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Ended { succeeded, failed, canceled, is_partial: false })
    };
    Ok(connection.prepare_cached(sql!("overview_ended"))?.query_row(params![since, NEWEST], count)?)
}

/// Run by run, newest first, each from its newest event back to the first minute. Those that go on
/// and are not looked at are runs beyond the newest as well: `has_more` tells of both.
fn attempts(connection: &Connection, now: Millis, has_more: bool) -> Done<Attempts> {
    let first = first_minute(now);
    let runs: Vec<i64> = connection
        .prepare_cached(sql!("overview_active"))?
        .query_map(params![first.0, NEWEST], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let mut statement = connection.prepare_cached(sql!("overview_events"))?;
    let (mut deeds, mut read) = (Vec::new(), 0);
    for run in runs {
        let mut rows = statement.query([run, first.0])?;
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
    let is_partial = has_more || read >= EVENTS;
    Ok(Attempts { minutes: by_minute(now, deeds), is_partial })
}

/// And whether there may be others.
fn waiting(connection: &Connection, plans: &Plans) -> Done<(Vec<Waiting>, bool)> {
    let oldest: Vec<Option<OldRun>> = connection
        .prepare_cached(sql!("overview_oldest"))?
        .query_map([OLDEST + 1, TASKS], |row| Ok(old_run(row)))?
        .collect::<rusqlite::Result<_>>()?;
    let is_partial = oldest.len() as u64 > OLDEST.unsigned_abs()
        || oldest.iter().any(|run| run.as_ref().is_none_or(|run| run.is_large));
    // One that cannot be read hides none of the others.
    let mut oldest: Vec<OldRun> = oldest.into_iter().flatten().collect();
    oldest.truncate(usize::try_from(OLDEST).unwrap_or(usize::MAX));
    let most = i64::try_from(CANDIDATES).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("overview_waiting"))?;
    let mut found = Vec::new();
    for (of, run) in oldest.iter().enumerate() {
        let mut rows = statement.query([run.no, TASKS, most])?;
        while let Some(row) = rows.next()? {
            let (position, status, gate, key, order) =
                (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?);
            found.push(WaitingRow { of, position, status, gate, key, order });
        }
        candidates(&mut found);
    }
    let mut known = Seen::new();
    let name = |row: &WaitingRow| {
        let of = &oldest[row.of];
        told(row, of, seen(connection, plans, &mut known, &of.version).as_deref())
    };
    Ok((longest(found.iter().filter_map(name).collect()), is_partial))
}

fn old_run(row: &rusqlite::Row<'_>) -> Option<OldRun> {
    Some(OldRun {
        no: row.get(0).ok()?,
        run: RunId::parse(&row.get::<_, String>(1).ok()?)?,
        workflow: row.get(2).ok()?,
        version: Version::from_stored(row.get(3).ok()?),
        is_large: row.get(4).ok()?,
    })
}
