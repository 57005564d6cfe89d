//! Who holds a lock or a limit, and who waits for it (`crate::line`). Inside a transaction that reads.

use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;

use super::fault::Done;
use super::link::{Link, Sql, sql};
use super::row::{self, unreadable};
use super::shelf::Shelf;
use crate::line::{InLine, Line, Row, Shared, told};

pub(super) async fn line(link: &Link, shelf: &Shelf, of: &Shared, limit: usize) -> Done<Line> {
    let (key, limit) = (of.key(), i64::try_from(limit).unwrap_or(i64::MAX));
    let counts = link.row(sql!("key_counts", TEXT), &[&key]).await?;
    let counts = counts.ok_or_else(|| unreadable("count", "nothing"))?;
    let holders = tasks(link, shelf, sql!("key_held_by", TEXT, INT8), (&key, limit), None).await?;
    let queue = tasks(link, shelf, sql!("key_queue", TEXT, INT8), (&key, limit), Some(5)).await?;
    Ok(Line { holders, held: row::number(&counts, 0)?, queue, waiting: row::number(&counts, 1)? })
}

/// Locks that somebody holds or waits for, by name.
pub(super) async fn locks(link: &Link, limit: usize) -> Done<Vec<String>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    link.rows(sql!("locks", INT8), &[&limit]).await?.iter().map(|found| row::text(found, 0)).collect()
}

async fn tasks(
    link: &Link,
    shelf: &Shelf,
    sql: &Sql,
    (key, limit): (&str, i64),
    rank: Option<usize>,
) -> Done<Vec<InLine>> {
    let mut tasks = Vec::new();
    for found in link.rows(sql, &[&key, &limit]).await? {
        let run = row::word(&found, 0, "run id", RunId::parse)?;
        let row = Row {
            run,
            position: row::number(&found, 1)?,
            status: row::word(&found, 2, "status of a task", TaskStatus::parse)?,
            node: row::maybe_text(&found, 3)?,
            started_at: row::moment(&found, 4)?,
            rank: match rank {
                Some(column) => row::maybe_number(&found, column)?,
                None => None,
            },
        };
        tasks.push(told(row, &shelf.head(link, run).await?.head));
    }
    Ok(tasks)
}
