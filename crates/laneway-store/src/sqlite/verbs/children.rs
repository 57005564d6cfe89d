//! Runs that steps start: which are to be started, that one is, or cannot be, and what the end of one means for the other.

use laneway_core::child::{ChildEnd, Parent};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use rusqlite::{Connection, params};
use serde_json::Value;

use crate::child::{WantedRow, WantedRun, outputs_of};
use crate::error::Error;
use crate::keeper::{Changes, unreadable};
use crate::sqlite::run_work::{Follows, follow, on_held};
use crate::sqlite::txn::{Done, Failure, Plans, Txn, read_head, sql};

pub(in crate::sqlite) fn save(txn: &Txn<'_>, no: i64, changes: &Changes) -> Done<()> {
    for (position, wanted) in &changes.wanted {
        match wanted {
            Some(wanted) => {
                let params = Value::Object(wanted.params.clone()).to_string();
                let again = wanted.again.map(|run| run.to_string());
                let kept = params![no, position, wanted.life, wanted.workflow, params, again];
                txn.connection.prepare_cached(sql!("wanted_add"))?.execute(kept)?;
            }
            None => {
                txn.connection.prepare_cached(sql!("wanted_remove"))?.execute(params![no, position])?;
            }
        }
    }
    Ok(())
}

pub(in crate::sqlite) fn wanted(
    connection: &Connection,
    plans: &Plans,
    session: SessionId,
    limit: usize,
) -> Done<Vec<WantedRun>> {
    let mut statement = connection.prepare_cached(sql!("wanted_runs"))?;
    let mut rows = statement.query(params![session.to_string(), limit])?;
    let mut wanted = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
        let head = read_head(connection, plans, run)?.head;
        let (position, life): (Position, u64) = (row.get(1)?, row.get(2)?);
        let row = WantedRow {
            position,
            life,
            workflow: row.get(3)?,
            params: row.get(4)?,
            again: row.get(5)?,
            is_local: row.get(6)?,
        };
        wanted.push(row.of(&head)?);
    }
    Ok(wanted)
}

/// A child is there. If nobody waits for it, it ends; if it is over by now, so is who waits for it.
pub(in crate::sqlite) fn began(txn: &Txn<'_>, parent: &Parent, child: RunId) -> Done<()> {
    let is_wanted = on_held(txn, parent.run, |keeper| keeper.child_began(&parent.step, parent.life, child))?;
    if is_wanted != Some(true) {
        return follow(txn, Follows::of_unwanted(child));
    }
    let (status, _) = end_of(txn, child)?;
    if status.is_final() { follow(txn, Follows::of_child(child)) } else { Ok(()) }
}

pub(in crate::sqlite) fn refused(txn: &Txn<'_>, parent: &Parent, why: &str) -> Done<()> {
    on_held(txn, parent.run, |keeper| keeper.child_refused(&parent.step, parent.life, why)).map(drop)
}

/// A child is to end. One that is gone, or set aside, is left as it is.
pub(in crate::sqlite) fn stop(txn: &Txn<'_>, child: RunId, follows: &mut Follows) -> Done<()> {
    let by = match txn.head(child) {
        Ok(head) => head.head.parent.as_ref().map(|parent| format!("run {}", parent.run.short())),
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let by = by.unwrap_or_default();
    let is_over = follows.change(txn, child, |keeper| {
        let was_over = keeper.run.status.is_final();
        keeper.cancel(&by)?;
        Ok(was_over)
    });
    // One that ended while its parent could not be told is told of now.
    if is_over.as_ref().is_ok_and(|is_over| *is_over) {
        follows.tell_of(child);
    }
    unless_away(is_over)
}

/// A child has ended: so does the step that waits for it.
pub(in crate::sqlite) fn tell(txn: &Txn<'_>, child: RunId, follows: &mut Follows) -> Done<()> {
    let head = txn.head(child)?;
    let Some(parent) = head.head.parent.clone() else { return Ok(()) };
    let (status, reason) = end_of(txn, child)?;
    let mut statement = txn.connection.prepare_cached(sql!("run_outputs"))?;
    let steps = head.head.plan.workflow.steps.len() as i64;
    let rows = statement.query_map(params![head.no, steps], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(Position, String)> = rows.collect::<rusqlite::Result<_>>()?;
    let output = outputs_of(&head.head.plan, rows)?;
    let end = ChildEnd { run: child, status, reason, output };
    unless_away(follows.change(txn, parent.run, |keeper| keeper.child_over(&parent.step, end)))
}

/// Who is gone, or set aside, is told nothing.
fn unless_away<T>(done: Done<T>) -> Done<()> {
    match done {
        Ok(_) | Err(Failure::Refused(Error::NoSuchRun { .. } | Error::SetAside { .. })) => Ok(()),
        Err(failure) => Err(failure),
    }
}

fn end_of(txn: &Txn<'_>, run: RunId) -> Done<(RunStatus, Option<String>)> {
    let no = txn.head(run)?.no;
    let (status, reason): (String, Option<String>) = txn
        .connection
        .prepare_cached(sql!("run_end"))?
        .query_row([no], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let status = RunStatus::parse(&status).ok_or_else(|| unreadable("status of a run", &status))?;
    Ok((status, reason))
}

/// Runs that a local run has started, and those below them, that have not ended.
pub(in crate::sqlite) fn of_root(txn: &Txn<'_>, run: RunId) -> Done<Vec<RunId>> {
    let no = txn.head(run)?.no;
    let mut statement = txn.connection.prepare_cached(sql!("runs_of_root"))?;
    let ids: Vec<String> = statement.query_map([no], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    ids.iter().map(|id| RunId::parse(id).ok_or_else(|| unreadable("run id", id).into())).collect()
}
