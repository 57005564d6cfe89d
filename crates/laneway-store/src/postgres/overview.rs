//! The store at a glance (`crate::overview`), along indexes and no further than so many rows. Inside a transaction that reads.

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::Done;
use super::link::{Link, sql};
use super::row;
use super::shelf::{Seen, Shelf};
use super::view;
use crate::overview::{
    Attempts, CANDIDATES, COUNTED, Deed, EVENTS, Ended, NAMED, NEWEST, OLDEST, OldRun, Overview, TASKS,
    Unfinished, WINDOW_MS, Waiting, WaitingRow, by_minute, first_minute, longest, told,
};

pub(super) async fn overview(link: &Link, shelf: &Shelf, now: Option<Millis>) -> Done<Overview> {
    let observed_at = match now {
        Some(now) => now,
        None => Millis(one(link.row(sql!("moment", INT8), &[&None::<i64>]).await?)?.try_get(0)?),
    };
    let since = observed_at.0.saturating_sub(WINDOW_MS);
    let named = i64::try_from(NAMED).unwrap_or(i64::MAX);
    let failing = link.rows(sql!("overview_failing", INT8, INT8, INT8), &[&since, &NEWEST, &named]).await?;
    // Whether there are runs beyond the newest: one of them may have ended of late.
    let has_more = link.row(sql!("overview_reach", INT8), &[&NEWEST]).await?.is_some();
    let (waiting, is_waiting_partial) = waiting(link, shelf).await?;
    Ok(Overview {
        observed_at,
        unfinished: unfinished(link).await?,
        ended: Ended { is_partial: has_more, ..ended(link, since).await? },
        attempts: attempts(link, observed_at, has_more).await?,
        failing: view::listed(link, now, &failing, Some(COUNTED)).await?,
        waiting,
        is_waiting_partial,
    })
}

fn one(found: Option<Row>) -> Done<Row> {
    Ok(found.ok_or_else(|| row::unreadable("count", "nothing"))?)
}

async fn unfinished(link: &Link) -> Done<Unfinished> {
    let found = one(link.row(sql!("overview_unfinished", INT8), &[&(NEWEST + 1)]).await?)?;
    let (running, queued, paused) =
        (row::number(&found, 0)?, row::number(&found, 1)?, row::number(&found, 2)?);
    Ok(Unfinished { running, queued, paused, is_partial: found.try_get::<_, i64>(3)? > NEWEST })
}

async fn ended(link: &Link, since: i64) -> Done<Ended> {
    let found = one(link.row(sql!("overview_ended", INT8, INT8), &[&since, &NEWEST]).await?)?;
    let (succeeded, failed, canceled) =
        (row::number(&found, 0)?, row::number(&found, 1)?, row::number(&found, 2)?);
    Ok(Ended { succeeded, failed, canceled, is_partial: false })
}

/// Runs that go on and are not looked at are runs beyond the newest as well: `has_more` tells of both.
async fn attempts(link: &Link, now: Millis, has_more: bool) -> Done<Attempts> {
    let first = first_minute(now);
    let rows = link.rows(sql!("overview_events", INT8, INT8, INT8), &[&first.0, &NEWEST, &EVENTS]).await?;
    let is_partial = has_more || rows.len() as u64 >= EVENTS.unsigned_abs();
    let deed = |found: &Row| -> Done<Deed> {
        Ok(Deed {
            at: Millis(found.try_get(0)?),
            name: row::text(found, 1)?,
            status: row::maybe_text(found, 2)?,
            took_ms: row::maybe_number(found, 3)?,
        })
    };
    let deeds = rows.iter().map(deed).collect::<Done<Vec<Deed>>>()?;
    Ok(Attempts { minutes: by_minute(now, deeds), is_partial })
}

/// And whether there may be others.
async fn waiting(link: &Link, shelf: &Shelf) -> Done<(Vec<Waiting>, bool)> {
    let found = link.rows(sql!("overview_oldest", INT8, INT8), &[&(OLDEST + 1), &TASKS]).await?;
    let oldest: Vec<Option<OldRun>> = found.iter().map(old_run).collect();
    let is_partial = oldest.len() as u64 > OLDEST.unsigned_abs()
        || oldest.iter().any(|run| run.as_ref().is_none_or(|run| run.is_large));
    // One that cannot be read hides none of the others.
    let mut oldest: Vec<OldRun> = oldest.into_iter().flatten().collect();
    oldest.truncate(usize::try_from(OLDEST).unwrap_or(usize::MAX));
    let numbers: Vec<i64> = oldest.iter().map(|run| run.no).collect();
    let most = i64::try_from(CANDIDATES).unwrap_or(i64::MAX);
    let rows =
        link.rows(sql!("overview_waiting", INT8_ARRAY, INT8, INT8), &[&numbers, &TASKS, &most]).await?;
    let (mut waiting, mut known) = (Vec::with_capacity(rows.len()), Seen::new());
    for found in &rows {
        let no: i64 = found.try_get(0)?;
        let Ok(of) = numbers.binary_search(&no) else { continue };
        let row = WaitingRow {
            of,
            position: row::number(found, 1)?,
            status: row::text(found, 2)?,
            gate: row::maybe_text(found, 3)?,
            key: row::maybe_text(found, 4)?,
            order: found.try_get(5)?,
        };
        let plan = shelf.seen(link, &mut known, &oldest[of].version).await?;
        waiting.extend(told(&row, &oldest[of], plan.as_deref()));
    }
    Ok((longest(waiting), is_partial))
}

fn old_run(found: &Row) -> Option<OldRun> {
    Some(OldRun {
        no: found.try_get(0).ok()?,
        run: RunId::parse(&row::text(found, 1).ok()?)?,
        workflow: row::text(found, 2).ok()?,
        version: Version::from_stored(row::text(found, 3).ok()?),
        is_large: found.try_get(4).ok()?,
    })
}
