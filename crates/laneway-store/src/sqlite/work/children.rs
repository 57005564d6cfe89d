//! Runs that steps start: which are to be started, that one is, or cannot be, and what the end of
//! one means for the other.

use std::collections::HashMap;

use laneway_core::child::{ChildEnd, Parent};
use laneway_core::id::{RunId, SessionId};
use laneway_core::output::LIMIT;
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_torture::{Point, pass};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

use crate::child::{Resumed, ToStop, WantedPage, WantedPlace, WantedRow, Wanting, by, outputs_of};
use crate::error::Error;
use crate::keeper::{Changes, unreadable};
use crate::model::{CancelMode, Reopen};
use crate::sqlite::run_work::{Follows, follow, on_held, on_run};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Failure, Head, Plans, Txn, read_head};
use crate::sqlite::{operator, quarantine, sessions};

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
    wanting: &Wanting,
) -> Done<WantedPage> {
    let (run_no, position) = wanting.after.map_or((0, 0), |after| (after.run_no, after.position));
    let mut statement = connection.prepare_cached(sql!("wanted_runs"))?;
    let asked = params![wanting.session.to_string(), wanting.limit, wanting.is_own_only, run_no, position];
    let mut rows = statement.query(asked)?;
    let (mut runs, mut heads, mut read, mut end) = (Vec::new(), HashMap::new(), 0, None);
    while let Some(row) = rows.next()? {
        (read, end) = (read + 1, Some(WantedPlace { run_no: row.get(7)?, position: row.get(1)? }));
        let listed = || -> Done<(RunId, WantedRow)> {
            let id: String = row.get(0)?;
            let run = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
            let wanted = WantedRow {
                position: row.get(1)?,
                life: row.get(2)?,
                workflow: row.get(3)?,
                params: row.get(4)?,
                again: row.get(5)?,
                is_local: row.get(6)?,
            };
            Ok((run, wanted))
        };
        // What cannot be read of one run keeps no other from starting.
        let (run, row) = match listed() {
            Ok(listed) => listed,
            Err(failure) if quarantine::is_about_a_value(&failure) => continue,
            Err(failure) => return Err(failure),
        };
        // Most are of few runs.
        let head = heads.entry(run).or_insert_with(|| read_head(connection, plans, run).ok());
        let Some(head) = head else { continue };
        runs.extend(row.of(&head.head).ok());
    }
    Ok(WantedPage { runs, end: end.filter(|_| read == wanting.limit) })
}

/// A child is there, in the transaction that makes it. If it is over by now, so is who waits for
/// it; without somebody who waits it must not be.
pub(in crate::sqlite) fn began(txn: &Txn<'_>, parent: &Parent, child: RunId) -> Done<()> {
    pass(Point::ChildMade);
    if !on_run(txn, parent.run, |keeper| keeper.child_began(&parent.step, parent.life, child))? {
        return Err(Error::NotWanted { run: parent.run, step: parent.step.clone() }.into());
    }
    pass(Point::ChildTold);
    let (status, _) = end_of(txn, child)?;
    if status.is_final() { follow(txn, Follows::of_child(child)) } else { Ok(()) }
}

pub(in crate::sqlite) fn resume(
    txn: &Txn<'_>,
    parent: &Parent,
    child: RunId,
    session: Option<SessionId>,
) -> Done<Resumed> {
    if on_held(txn, parent.run, |keeper| keeper.wants_child(&parent.step, parent.life))? != Some(true) {
        return Ok(Resumed::Done);
    }
    match operator::retry(txn, child, Reopen::default(), &by(parent)) {
        Ok(_) | Err(Failure::Refused(Error::NotEnded { .. } | Error::NothingToRetry { .. })) => {}
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(Resumed::Gone),
        Err(Failure::Refused(Error::NotRunnable { .. })) => return Ok(Resumed::NoRoom),
        Err(failure) => return Err(failure),
    }
    if let Some(session) = session {
        match sessions::adopt(txn, child, session) {
            Ok(()) | Err(Failure::Refused(Error::Ended { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    began(txn, parent, child)?;
    Ok(Resumed::Done)
}

pub(in crate::sqlite) fn refused(txn: &Txn<'_>, parent: &Parent, why: &str) -> Done<()> {
    on_held(txn, parent.run, |keeper| keeper.child_refused(&parent.step, parent.life, why)).map(drop)
}

/// A child is to end. Of one that is gone, or set aside, nobody knows when it would: who waits for
/// it ends without it.
pub(in crate::sqlite) fn stop(txn: &Txn<'_>, to_stop: &ToStop, follows: &mut Follows) -> Done<()> {
    if end(txn, to_stop.child, follows)? {
        return Ok(());
    }
    let told = follows.change(txn, to_stop.parent, |keeper| {
        let step = keeper.name(to_stop.position);
        keeper.child_over(&step, to_stop.away())
    });
    unless_away(txn, to_stop.parent, told).map(drop)
}

/// Ends a child. Says whether it is there.
fn end(txn: &Txn<'_>, child: RunId, follows: &mut Follows) -> Done<bool> {
    let Some(head) = unless_away(txn, child, txn.head(child))? else { return Ok(false) };
    let who = head.head.parent.as_ref().map(by).unwrap_or_default();
    let mode = match &head.head.parent {
        Some(parent) if is_hurried(txn, parent.run)? => CancelMode::Now,
        Some(_) | None => CancelMode::CleanUp,
    };
    pass(Point::ChildStop);
    let is_over = follows.change(txn, child, |keeper| {
        let was_over = keeper.run.status.is_final();
        keeper.cancel(&who, mode)?;
        Ok(was_over)
    });
    pass(Point::ChildStopTold);
    // One that ended while its parent could not be told is told of now.
    if is_over.as_ref().is_ok_and(|is_over| *is_over) {
        follows.tell_of(child);
    }
    Ok(unless_away(txn, child, is_over)?.is_some())
}

/// Whether the time for the clean-up of a run is over, and with it that of its children.
fn is_hurried(txn: &Txn<'_>, run: RunId) -> Done<bool> {
    let mut statement = txn.connection.prepare_cached(sql!("run_is_hurried"))?;
    Ok(statement.query_row([run.to_string()], |row| row.get(0)).optional()?.unwrap_or_default())
}

/// A child that its step waits for no more ends, unless a person has let it go on by itself.
fn end_if_left(txn: &Txn<'_>, child: RunId, follows: &mut Follows) -> Done<()> {
    let Some(head) = unless_away(txn, child, txn.head(child))? else { return Ok(()) };
    let mut statement = txn.connection.prepare_cached(sql!("run_reopened_by"))?;
    let who: Option<Option<String>> = statement.query_row([head.no], |row| row.get(0)).optional()?;
    let own = head.head.parent.as_ref().map(by);
    if who.is_none_or(|who| who == own) && !end_of(txn, child)?.0.is_final() {
        end(txn, child, follows)?;
    }
    Ok(())
}

/// A child has ended: so does the step that waits for it.
pub(in crate::sqlite) fn tell(txn: &Txn<'_>, child: RunId, follows: &mut Follows) -> Done<()> {
    let head = txn.head(child)?;
    let Some(parent) = head.head.parent.clone() else { return Ok(()) };
    let (status, reason) = end_of(txn, child)?;
    let output = if status == RunStatus::Succeeded { outputs(txn, &head)? } else { None };
    let end = ChildEnd { run: child, status, reason, output };
    pass(Point::ChildOver);
    let told = follows.change(txn, parent.run, |keeper| keeper.child_over(&parent.step, end));
    pass(Point::ChildOverTold);
    unless_away(txn, parent.run, told).map(drop)
}

/// A run is back that was set aside, and to which nothing was told meanwhile: that it is to end, or
/// has ended, and the same of its children.
pub(in crate::sqlite) fn released(txn: &Txn<'_>, run: RunId) -> Done<()> {
    let mut follows = Follows::default();
    if let Some(parent) = txn.head(run)?.head.parent.clone() {
        let awaits = match follows.change(txn, parent.run, |keeper| keeper.awaits(&parent.step, run)) {
            Err(Failure::Refused(Error::NoSuchRun { .. })) => Some(None),
            awaits => unless_away(txn, parent.run, awaits)?,
        };
        match awaits {
            Some(Some(true)) => {
                end(txn, run, &mut follows)?;
            }
            Some(Some(false)) if end_of(txn, run)?.0.is_final() => follows.tell_of(run),
            Some(None) => end_if_left(txn, run, &mut follows)?,
            // It is told with the release of its parent, if that is away itself.
            Some(Some(false)) | None => {}
        }
    }
    for (of, is_to_end) in follows.change(txn, run, |keeper| keeper.children())? {
        match is_to_end {
            Some(true) => stop(txn, &of, &mut follows)?,
            Some(false) => {
                let end = unless_away(txn, of.child, end_of(txn, of.child))?;
                if end.is_some_and(|(status, _)| status.is_final()) {
                    follows.tell_of(of.child);
                }
            }
            None => end_if_left(txn, of.child, &mut follows)?,
        }
    }
    follow(txn, follows)
}

/// `None` if it is more than an output may be.
fn outputs(txn: &Txn<'_>, head: &Head) -> Done<Option<Map<String, Value>>> {
    let of = params![head.no, head.head.plan.workflow.steps.len() as i64];
    let size: i64 =
        txn.connection.prepare_cached(sql!("run_outputs_size"))?.query_row(of, |row| row.get(0))?;
    if size > LIMIT as i64 {
        return Ok(None);
    }
    let mut statement = txn.connection.prepare_cached(sql!("run_outputs"))?;
    let rows = statement.query_map(of, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(Position, String)> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(Some(outputs_of(&head.head.plan, rows)?))
}

/// Who is gone, or set aside, is told nothing.
fn unless_away<T>(txn: &Txn<'_>, run: RunId, done: Done<T>) -> Done<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Failure::Refused(Error::NoSuchRun { .. } | Error::SetAside { .. })) => Ok(None),
        // What cannot be read may be its document, without which nobody comes as far as to look.
        Err(Failure::Refused(Error::Unreadable { .. })) if quarantine::has(txn.connection, run)? => Ok(None),
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

/// Runs that a local run has started, and those below them.
pub(in crate::sqlite) fn family(connection: &Connection, plans: &Plans, run: RunId) -> Done<Vec<RunId>> {
    Ok(below(connection, plans, run)?.into_iter().map(|(run, _)| run).collect())
}

/// The same of those that have not ended.
pub(in crate::sqlite) fn unended(txn: &Txn<'_>, plans: &Plans, run: RunId) -> Done<Vec<RunId>> {
    let below = below(txn.connection, plans, run)?.into_iter();
    Ok(below.filter(|(_, is_open)| *is_open).map(|(run, _)| run).collect())
}

fn below(connection: &Connection, plans: &Plans, run: RunId) -> Done<Vec<(RunId, bool)>> {
    let root = -read_head(connection, plans, run)?.head.own_class;
    let mut statement = connection.prepare_cached(sql!("runs_of_root"))?;
    let rows = statement.query_map([root], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let rows: Vec<(String, bool)> = rows.collect::<rusqlite::Result<_>>()?;
    let mut below = vec![(run, false)];
    for (id, is_open) in rows {
        let found = RunId::parse(&id).ok_or_else(|| unreadable("run id", &id))?;
        let Ok(head) = read_head(connection, plans, found) else { continue };
        // A parent has the smaller number.
        let is_below = |parent: &Parent| below.iter().any(|(above, _)| *above == parent.run);
        if head.head.parent.as_ref().is_some_and(is_below) {
            below.push((found, is_open));
        }
    }
    Ok(below.split_off(1))
}
