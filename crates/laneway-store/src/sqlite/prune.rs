//! `prune`: a run that is over goes, with all that belongs to it. A small one in one transaction; a
//! large one in chunks, so that nobody waits long for the write lock: nobody sees it from the first
//! on, and the last takes its row.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::keeper::unreadable;
use crate::prune::{Choice, Keep, Prunable, RECORDS_AT_ONCE, Record, Search, beyond};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};

/// Tasks and events that one transaction removes: some milliseconds of work.
const TASKS: i64 = 2_000;
const EVENTS: i64 = 5_000;

/// A run whose removal has begun.
#[derive(Debug, Clone, Copy)]
pub(in crate::sqlite) struct Going {
    no: i64,
    tasks: i64,
    events: i64,
}

impl Going {
    /// How many transactions its rows take.
    pub(in crate::sqlite) fn chunks(self) -> i64 {
        let tasks = (self.tasks + TASKS - 1) / TASKS;
        tasks.max((self.events + EVENTS - 1) / EVENTS)
    }
}

/// Hides a run, if it may go. Its key stays for a while.
pub(in crate::sqlite) fn begin(txn: &Txn<'_>, run: RunId) -> Done<Option<Going>> {
    let mut check = txn.connection.prepare_cached(sql!("prune_check"))?;
    let found: Option<(i64, Option<String>, i64, i64)> = check
        .query_row([run.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((no, key, events, tasks)) = found else { return Ok(None) };
    if let Some(key) = key {
        let mut add = txn.connection.prepare_cached(sql!("used_key_add"))?;
        add.execute(params![key, run.to_string(), txn.now.0])?;
    }
    txn.connection.prepare_cached(sql!("prune_begin"))?.execute([no])?;
    txn.shelf.forget_run(run, no);
    Ok(Some(Going { no, tasks, events }))
}

/// Removes the next of its rows, counted from 1.
pub(in crate::sqlite) fn remove(txn: &Txn<'_>, going: Going, chunk: i64) -> Done<()> {
    let mut behind = txn.connection.prepare_cached(sql!("prune_behind"))?;
    let behind: Option<i64> = behind.query_row([going.no, TASKS], |row| row.get(0)).optional()?;
    let of_tasks = [
        sql!("prune_artifacts"),
        sql!("prune_layers"),
        sql!("prune_layer_files"),
        sql!("prune_cache_misses"),
        sql!("prune_attempts"),
        sql!("prune_effects"),
        sql!("prune_tasks"),
    ];
    for delete in of_tasks {
        txn.connection.prepare_cached(delete)?.execute([going.no, behind.unwrap_or(i64::MAX)])?;
    }
    txn.connection.prepare_cached(sql!("prune_events"))?.execute([going.no, chunk * EVENTS])?;
    Ok(())
}

pub(in crate::sqlite) fn end(txn: &Txn<'_>, going: Going) -> Done<()> {
    let rest = [
        sql!("prune_needs_sets"),
        sql!("prune_batches"),
        sql!("prune_laid_by"),
        sql!("prune_bytes"),
        sql!("prune_run"),
    ];
    for delete in rest {
        txn.connection.prepare_cached(delete)?.execute([going.no])?;
    }
    Ok(())
}

/// Which runs go by their age and by the number of those that are newer; and those that have begun
/// to.
pub(in crate::sqlite) fn choose(
    connection: &Connection,
    keep: Keep,
    now: Millis,
    limit: usize,
) -> Done<Vec<Choice>> {
    let mut chosen: Vec<Choice> =
        choices(connection.prepare_cached(sql!("prune_going"))?.query([])?)?.collect::<Done<_>>()?;
    if keep.for_.is_none() && keep.runs.is_none() {
        return Ok(chosen);
    }
    let cutoff = keep.for_.map(|span| now.before(span));
    let aged = cutoff.map_or(Ok(i64::MIN), |cutoff| submitted_before(connection, cutoff))?;
    let mut newest = connection.prepare_cached(sql!("prune_newest"))?;
    let mut pick = connection.prepare_cached(sql!("prune_choose"))?;
    let names: Vec<String> = connection
        .prepare_cached(sql!("prune_workflows"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    for name in names {
        let mut behind = |newer: u32| -> Done<Option<i64>> {
            Ok(newest.query_row(params![name, newer], |row| row.get(0)).optional()?)
        };
        let Some(last) = behind(0)? else { continue };
        let counted = match keep.runs {
            Some(kept) => behind(kept)?.unwrap_or(i64::MIN),
            None => i64::MIN,
        };
        let below = last.min(aged.max(counted.saturating_add(1)));
        let cutoff = cutoff.map_or(i64::MIN, |cutoff| cutoff.0);
        let rows = pick.query(params![name, below, counted, cutoff, most])?;
        for choice in choices(rows)? {
            chosen.push(choice?);
        }
    }
    chosen.sort_unstable_by_key(|(no, _)| *no);
    chosen.truncate(limit);
    Ok(chosen)
}

/// Which of the oldest go as well, so that what stays takes up no more than `keep`. All of them
/// have been measured.
pub(in crate::sqlite) fn choose_oldest(
    connection: &Connection,
    keep: u64,
    going: &[Choice],
    limit: usize,
) -> Done<Vec<Choice>> {
    let total: u64 = connection.prepare_cached(sql!("prune_total"))?.query_row([], |row| row.get(0))?;
    if total <= keep {
        return Ok(Vec::new());
    }
    let mut oldest = connection.prepare_cached(sql!("prune_oldest"))?;
    let most = i64::try_from(limit.saturating_add(going.len())).unwrap_or(i64::MAX);
    let oldest = choices(oldest.query([most])?)?.collect::<Done<_>>()?;
    Ok(beyond(total, keep, going, oldest))
}

/// Runs that are to be measured, with the events as of which they are.
pub(in crate::sqlite) fn unmeasured(connection: &Connection, limit: i64) -> Done<Vec<(i64, RunId, i64)>> {
    let mut statement = connection.prepare_cached(sql!("prune_unmeasured"))?;
    let mut rows = statement.query([limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((row.get(0)?, id(row, 1)?, row.get(2)?));
    }
    Ok(found)
}

/// What a run takes up, without its logs.
pub(in crate::sqlite) fn size(connection: &Connection, no: i64) -> Done<u64> {
    Ok(connection.prepare_cached(sql!("prune_size"))?.query_row([no], |row| row.get(0))?)
}

pub(in crate::sqlite) fn measured(txn: &Txn<'_>, sizes: &[(i64, i64, u64)]) -> Done<()> {
    let mut write = txn.connection.prepare_cached(sql!("prune_measured"))?;
    for (no, last_event, bytes) in sizes {
        write.execute(params![no, last_event, i64::try_from(*bytes).unwrap_or(i64::MAX)])?;
    }
    Ok(())
}

/// Some of the records that are kept no longer. Gives how many went.
pub(in crate::sqlite) fn forget_records(txn: &Txn<'_>, record: Record, kept: Duration) -> Done<usize> {
    let statement = match record {
        Record::Audit => sql!("prune_audit"),
        Record::NodeEvent => sql!("prune_node_events"),
    };
    Ok(txn.connection.prepare_cached(statement)?.execute([txn.now.before(kept).0, RECORDS_AT_ONCE])?)
}

/// Every run below this number was submitted before a moment.
fn submitted_before(connection: &Connection, moment: Millis) -> Done<i64> {
    let (low, high) =
        connection.prepare_cached(sql!("prune_ends"))?.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut look = connection.prepare_cached(sql!("prune_look"))?;
    let mut search = Search::new(low, high);
    while let Some(at) = search.next() {
        let found = look.query_row([at], |row| Ok((row.get(0)?, Millis(row.get(1)?)))).optional()?;
        search.looked(at, found, moment);
    }
    Ok(search.found())
}

fn choices(mut rows: rusqlite::Rows<'_>) -> Done<impl Iterator<Item = Done<Choice>>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(choice(row));
    }
    Ok(found.into_iter())
}

fn choice(row: &Row<'_>) -> Done<Choice> {
    let status: String = row.get(3)?;
    let choice = Prunable {
        run: id(row, 1)?,
        workflow: row.get(2)?,
        status: RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?,
        finished_at: Millis(row.get(4)?),
        bytes: row.get(5).unwrap_or_default(),
    };
    Ok((row.get(0)?, choice))
}

fn id(row: &Row<'_>, column: usize) -> Done<RunId> {
    let text: String = row.get(column)?;
    Ok(RunId::parse(&text).ok_or_else(|| unreadable("run id", &text))?)
}
