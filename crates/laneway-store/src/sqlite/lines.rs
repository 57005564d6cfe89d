//! Who holds a lock or a limit, who waits for it, and who stands on the key of an order
//! (`crate::line`).

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_core::time::Millis;
use rusqlite::{Connection, params};

use super::txn::{Done, Plans, Seen, seen};
use crate::line::{InLine, Line, OrderLine, Row, Shared, Standing, told};
use crate::sqlite::statements::sql;

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

/// Keys of `order` on which somebody stands, by name.
pub(super) fn orders(
    connection: &Connection,
    plans: &Plans,
    limit: usize,
    each: usize,
) -> Done<Vec<OrderLine>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let keys: Vec<(String, u64)> = connection
        .prepare_cached(sql!("order_keys"))?
        .query_map([limit], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let (mut lines, mut known) = (Vec::with_capacity(keys.len()), Seen::new());
    let each = i64::try_from(each).unwrap_or(i64::MAX);
    for (key, standing) in keys {
        let mut statement = connection.prepare_cached(sql!("order_line"))?;
        let mut rows = statement.query(params![key, each])?;
        let mut line = Vec::new();
        while let Some(row) = rows.next()? {
            if let Some(task) = task(connection, plans, row, row.get(7)?, &mut known)? {
                line.push(Standing::new(task, row.get(8)?));
            }
        }
        lines.push(OrderLine { key, standing, line });
    }
    Ok(lines)
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
        found.extend(task(connection, plans, row, rank(row)?, known)?);
    }
    Ok(found)
}

/// `None` where it cannot be read: one row must not hide the others.
fn task(
    connection: &Connection,
    plans: &Plans,
    row: &rusqlite::Row<'_>,
    rank: Option<i64>,
    known: &mut Seen,
) -> Done<Option<InLine>> {
    let (id, status): (String, String) = (row.get(0)?, row.get(2)?);
    let (Some(run), Some(status)) = (RunId::parse(&id), TaskStatus::parse(&status)) else {
        tracing::warn!("a task is not listed, because its row cannot be read; `laneway doctor` names it");
        return Ok(None);
    };
    let row = Row {
        run,
        workflow: row.get(5)?,
        version: Version::from_stored(row.get(6)?),
        position: row.get(1)?,
        status,
        node: row.get(3)?,
        started_at: row.get::<_, Option<i64>>(4)?.map(Millis),
        rank,
    };
    let plan = seen(connection, plans, known, &row.version);
    Ok(Some(told(row, plan.as_deref())))
}
