//! The store at a glance (`crate::overview`), along indexes and no further than so many rows. Inside a transaction that reads.

use laneway_core::id::RunId;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::Done;
use super::link::{Link, sql};
use super::row;
use super::shelf::Shelf;
use super::view;
use crate::overview::{
    Attempts, CANDIDATES, Deed, EVENTS, Ended, NAMED, NEWEST, OLDEST, Overview, TASKS, Unfinished, WINDOW_MS,
    Waiting, WaitingRow, by_minute, candidates, first_minute, longest, told,
};

pub(super) async fn overview(link: &Link, shelf: &Shelf, now: Option<Millis>) -> Done<Overview> {
    let observed_at = match now {
        Some(now) => now,
        None => Millis(one(link.row(sql!("moment", INT8), &[&None::<i64>]).await?)?.try_get(0)?),
    };
    let since = observed_at.0.saturating_sub(WINDOW_MS);
    let named = i64::try_from(NAMED).unwrap_or(i64::MAX);
    let failing = link.rows(sql!("overview_failing", INT8, INT8, INT8), &[&since, &NEWEST, &named]).await?;
    Ok(Overview {
        observed_at,
        unfinished: unfinished(link).await?,
        ended: ended(link, since).await?,
        attempts: attempts(link, observed_at).await?,
        failing: view::listed(link, now, &failing).await?,
        waiting: waiting(link, shelf).await?,
    })
}

fn one(found: Option<Row>) -> Done<Row> {
    Ok(found.ok_or_else(|| row::unreadable("count", "nothing"))?)
}

async fn unfinished(link: &Link) -> Done<Unfinished> {
    let found = one(link.row(sql!("overview_unfinished"), &[]).await?)?;
    let (running, queued, paused) =
        (row::number(&found, 0)?, row::number(&found, 1)?, row::number(&found, 2)?);
    Ok(Unfinished { running, queued, paused })
}

async fn ended(link: &Link, since: i64) -> Done<Ended> {
    let found = one(link.row(sql!("overview_ended", INT8, INT8), &[&since, &NEWEST]).await?)?;
    let last = link.row(sql!("overview_reach", INT8), &[&(NEWEST - 1)]).await?;
    let last: Option<i64> = last.map(|last| last.try_get(0)).transpose()?;
    Ok(Ended {
        succeeded: row::number(&found, 0)?,
        failed: row::number(&found, 1)?,
        canceled: row::number(&found, 2)?,
        is_partial: last.is_some_and(|submitted_at| submitted_at >= since),
    })
}

async fn attempts(link: &Link, now: Millis) -> Done<Attempts> {
    let first = first_minute(now);
    let rows = link.rows(sql!("overview_events", INT8, INT8, INT8), &[&first.0, &NEWEST, &EVENTS]).await?;
    let is_partial = rows.len() as u64 >= EVENTS.unsigned_abs();
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

async fn waiting(link: &Link, shelf: &Shelf) -> Done<Vec<Waiting>> {
    let most = i64::try_from(CANDIDATES).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("overview_waiting", INT8, INT8, INT8), &[&OLDEST, &TASKS, &most]).await?;
    let read = |found: &Row| -> Done<WaitingRow> {
        Ok(WaitingRow {
            run: row::word(found, 0, "run id", RunId::parse)?,
            position: row::number(found, 1)?,
            status: row::text(found, 2)?,
            gate: row::maybe_text(found, 3)?,
            key: row::maybe_text(found, 4)?,
            order: found.try_get(5)?,
        })
    };
    let mut rows = rows.iter().map(read).collect::<Done<Vec<WaitingRow>>>()?;
    candidates(&mut rows);
    let mut waiting = Vec::with_capacity(rows.len());
    for row in &rows {
        // One that cannot be read hides none of the others.
        if let Ok(head) = shelf.head(link, row.run).await {
            waiting.extend(told(row, &head.head));
        }
    }
    Ok(longest(waiting))
}
