//! `promote`: what time alone opens or ends. Everything else is promoted where it happens.

use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use rusqlite::Connection;

use crate::sqlite::run_work::on_run;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};
use crate::sqlite::work::submit;

pub(in crate::sqlite) fn promote(txn: &Txn<'_>) -> Done<Option<Millis>> {
    for run in overdue(txn)? {
        on_run(txn, run, |keeper| keeper.time_out())?;
    }
    for run in runs_due(txn)? {
        submit::come_due(txn, run)?;
    }
    let due = due(txn)?;
    for of_run in due.chunk_by(|a, b| a.0 == b.0) {
        on_run(txn, txn.run_id(of_run[0].0)?, |keeper| {
            for (_, position) in of_run {
                keeper.examine_later(*position);
            }
            Ok(())
        })?;
    }
    next(txn.connection)
}

/// The next moment at which there will be something to do.
pub(in crate::sqlite) fn next(connection: &Connection) -> Done<Option<Millis>> {
    let at: Option<i64> = connection.prepare_cached(sql!("promote_next"))?.query_row([], |row| row.get(0))?;
    Ok(at.map(Millis))
}

fn due(txn: &Txn<'_>) -> Done<Vec<(i64, Position)>> {
    let mut due: Vec<(i64, Position)> = txn
        .connection
        .prepare_cached(sql!("promote_due"))?
        .query_map([txn.now.0], |row| Ok((txn.about(row.get(0)?), row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    due.sort_unstable();
    Ok(due)
}

fn overdue(txn: &Txn<'_>) -> Done<Vec<RunId>> {
    runs_by_now(txn, sql!("promote_overdue_runs"))
}

fn runs_due(txn: &Txn<'_>) -> Done<Vec<RunId>> {
    runs_by_now(txn, sql!("promote_due_runs"))
}

fn runs_by_now(txn: &Txn<'_>, sql: &str) -> Done<Vec<RunId>> {
    let numbers: Vec<i64> = txn
        .connection
        .prepare_cached(sql)?
        .query_map([txn.now.0], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    numbers.into_iter().map(|no| txn.run_id(no)).collect()
}
