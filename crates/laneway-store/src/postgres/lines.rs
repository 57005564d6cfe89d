//! Who holds a lock or a limit, who waits for it, and who stands on the key of an order (`crate::line`). Inside a transaction that reads.

use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;

use super::fault::Done;
use super::link::{Link, Sql, sql};
use super::row::{self, unreadable};
use super::shelf::{Seen, Shelf};
use crate::line::{InLine, Line, OrderLine, Row, Shared, Standing, told};

pub(super) async fn line(link: &Link, shelf: &Shelf, of: &Shared, limit: usize) -> Done<Line> {
    let (key, limit) = (of.key(), i64::try_from(limit).unwrap_or(i64::MAX));
    let counts = link.row(sql!("key_counts", TEXT), &[&key]).await?;
    let counts = counts.ok_or_else(|| unreadable("count", "nothing"))?;
    let mut known = Seen::new();
    let holders =
        tasks(link, shelf, sql!("key_held_by", TEXT, INT8), (&key, limit), &mut known, None).await?;
    let queue = tasks(link, shelf, sql!("key_queue", TEXT, INT8), (&key, limit), &mut known, Some(7)).await?;
    Ok(Line { holders, held: row::number(&counts, 0)?, queue, waiting: row::number(&counts, 1)? })
}

/// Locks that somebody holds or waits for, by name.
pub(super) async fn locks(link: &Link, limit: usize) -> Done<Vec<String>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    link.rows(sql!("locks", INT8), &[&limit]).await?.iter().map(|found| row::text(found, 0)).collect()
}

/// Keys of `order` on which somebody stands, by name.
pub(super) async fn orders(link: &Link, shelf: &Shelf, limit: usize, each: usize) -> Done<Vec<OrderLine>> {
    let (limit, each) = (i64::try_from(limit).unwrap_or(i64::MAX), i64::try_from(each).unwrap_or(i64::MAX));
    let (mut lines, mut known) = (Vec::new(), Seen::new());
    for found in link.rows(sql!("order_keys", INT8), &[&limit]).await? {
        let (key, standing) = (row::text(&found, 0)?, row::number(&found, 1)?);
        let mut line = Vec::new();
        for found in link.rows(sql!("order_line", TEXT, INT8), &[&key, &each]).await? {
            if let Some(task) = task(link, shelf, &found, Some(7), &mut known).await? {
                line.push(Standing::new(task, row::text(&found, 8)?));
            }
        }
        lines.push(OrderLine { key, standing, line });
    }
    Ok(lines)
}

async fn tasks(
    link: &Link,
    shelf: &Shelf,
    sql: &Sql,
    (key, limit): (&str, i64),
    known: &mut Seen,
    rank: Option<usize>,
) -> Done<Vec<InLine>> {
    let mut tasks = Vec::new();
    for found in link.rows(sql, &[&key, &limit]).await? {
        tasks.extend(task(link, shelf, &found, rank, known).await?);
    }
    Ok(tasks)
}

/// `None` where it cannot be read: one row must not hide the others.
async fn task(
    link: &Link,
    shelf: &Shelf,
    found: &tokio_postgres::Row,
    rank: Option<usize>,
    known: &mut Seen,
) -> Done<Option<InLine>> {
    let (Some(run), Some(status)) =
        (RunId::parse(&row::text(found, 0)?), TaskStatus::parse(&row::text(found, 2)?))
    else {
        tracing::warn!("a task is not listed, because its row cannot be read; `laneway doctor` names it");
        return Ok(None);
    };
    let row = Row {
        run,
        workflow: row::text(found, 5)?,
        version: Version::from_stored(row::text(found, 6)?),
        position: row::number(found, 1)?,
        status,
        node: row::maybe_text(found, 3)?,
        started_at: row::moment(found, 4)?,
        rank: match rank {
            Some(column) => row::maybe_number(found, column)?,
            None => None,
        },
    };
    let plan = shelf.seen(link, known, &row.version).await?;
    Ok(Some(told(row, plan.as_deref())))
}
