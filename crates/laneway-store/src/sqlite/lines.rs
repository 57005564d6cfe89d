//! Who holds a lock or a limit, and who waits for it (`crate::line`).

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use rusqlite::{Connection, params};

use super::txn::{Done, Plans, Seen, seen, sql};
use crate::line::{InLine, Line, Row, Shared, told};

pub(super) fn line(connection: &Connection, plans: &Plans, of: &Shared, limit: usize) -> Done<Line> {
    let (key, limit) = (of.key(), i64::try_from(limit).unwrap_or(i64::MAX));
    let (held, waiting) = connection
        .prepare_cached(sql!("key_counts"))?
        .query_row([&key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut known = Seen::new();
    let holders = tasks(connection, plans, sql!("key_held_by"), &key, limit, &mut known, |_| Ok(None))?;
    let queue = tasks(connection, plans, sql!("key_queue"), &key, limit, &mut known, |row| row.get(7))?;
    Ok(Line { holders, held, queue, waiting })
}

/// Locks that somebody holds or waits for, by name.
pub(super) fn locks(connection: &Connection, limit: usize) -> Done<Vec<String>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(sql!("locks"))?;
    Ok(statement.query_map([limit], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

fn tasks(
    connection: &Connection,
    plans: &Plans,
    sql: &str,
    key: &str,
    limit: i64,
    known: &mut Seen,
    rank: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<Option<i64>>,
) -> Done<Vec<InLine>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![key, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, status): (String, String) = (row.get(0)?, row.get(2)?);
        let (Some(run), Some(status)) = (RunId::parse(&id), TaskStatus::parse(&status)) else {
            tracing::warn!("a task is not listed, because its row cannot be read; `laneway doctor` names it");
            continue;
        };
        let row = Row {
            run,
            workflow: row.get(5)?,
            version: Version::from_stored(row.get(6)?),
            position: row.get(1)?,
            status,
            node: row.get(3)?,
            started_at: row.get::<_, Option<i64>>(4)?.map(Millis),
            rank: rank(row)?,
        };
        let plan = seen(connection, plans, known, &row.version);
        found.push(told(row, plan.as_deref()));
    }
    Ok(found)
}
