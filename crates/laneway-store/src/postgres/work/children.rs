//! Runs that steps start: which are to be started, that one is, or cannot be, and what the end of
//! one means for the other.

use laneway_core::child::{ChildEnd, Parent};
use laneway_core::id::{RunId, SessionId};
use laneway_core::output::LIMIT;
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;
use laneway_torture::{Point, pass};
use serde_json::{Map, Value};
use tokio_postgres::Row;

use crate::child::{Resumed, ToStop, WantedPage, WantedPlace, WantedRow, Wanting, by, outputs_of};
use crate::error::Error;
use crate::keeper::Keeper;
use crate::model::{CancelMode, Reopen};
use crate::postgres::facts::{Known, Missing};
use crate::postgres::fault::{Done, Failure};
use crate::postgres::follow::{FollowUp, change, job, record, work};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::lock_order::lock_runs;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::{Head, Shelf};
use crate::postgres::work::on_run;
use crate::postgres::{operator, row};

pub(in crate::postgres) async fn wanted(shelf: &Shelf, link: &Link, wanting: &Wanting) -> Done<WantedPage> {
    let (run_no, position) = wanting.after.map_or((0, 0), |after| (after.run_no, after.position));
    let (session, limit) = (wanting.session.to_string(), i64::try_from(wanting.limit).unwrap_or(i64::MAX));
    let sql = sql!("wanted_runs", TEXT, INT8, BOOL, INT8, INT8);
    let rows = link.rows(sql, &[&session, &limit, &wanting.is_own_only, &run_no, &position]).await?;
    let place = |last: &Row| Done::Ok(WantedPlace { run_no: last.try_get(7)?, position: last.try_get(1)? });
    let end = rows.last().filter(|_| rows.len() == wanting.limit).map(place).transpose()?;
    let mut runs = Vec::new();
    for found in &rows {
        // What cannot be read of one run keeps no other from starting.
        let (run, row) = match wanted_row(found) {
            Ok(listed) => listed,
            Err(failure) if failure.is_about_a_value() => continue,
            Err(failure) => return Err(failure),
        };
        let Ok(head) = shelf.head(link, run).await else { continue };
        runs.extend(row.of(&head.head).ok());
    }
    Ok(WantedPage { runs, end })
}

fn wanted_row(found: &Row) -> Done<(RunId, WantedRow)> {
    let life: i64 = found.try_get(2)?;
    let wanted = WantedRow {
        position: row::number(found, 1)?,
        life: life.unsigned_abs(),
        workflow: row::text(found, 3)?,
        params: row::text(found, 4)?,
        again: found.try_get(5)?,
        is_local: found.try_get(6)?,
    };
    Ok((row::word(found, 0, "run id", RunId::parse)?, wanted))
}

/// A child is there, in the transaction that makes it. If it is over by now, so is who waits for
/// it; without somebody who waits it must not be. Asked behind the lock of the parent: whoever ends
/// the child asks for that too.
pub(super) async fn began(
    shelf: &Shelf,
    link: &Link,
    within: Terms,
    parent: &Parent,
    child: RunId,
) -> Done<()> {
    pass(Point::ChildMade);
    let job = job(shelf, link, parent.run, Missing::default()).await?;
    let said = said(shelf, link, within, job, |keeper| keeper.child_began(&parent.step, parent.life, child));
    if !said.await? {
        return Err(Error::NotWanted { run: parent.run, step: parent.step.clone() }.into());
    }
    pass(Point::ChildTold);
    if end_of(shelf, link, child).await?.0.is_final() {
        record(link, FollowUp::Ended(child)).await?;
    }
    Ok(())
}

pub(in crate::postgres) async fn resume(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    (parent, child): (&Parent, RunId),
    session: Option<SessionId>,
) -> Done<Resumed> {
    link.begin(Begin::Write).land().await?;
    let within = Terms { is_begun: true, ..terms };
    let of_parent = match job(shelf, link, parent.run, Missing::default()).await {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(Resumed::Done),
        job => job?,
    };
    let wants = said(shelf, link, within, of_parent, |keeper| keeper.wants_child(&parent.step, parent.life));
    if !wants.await? {
        link.roll_back().await;
        return Ok(Resumed::Done);
    }
    let of_child = match job(shelf, link, child, operator::everything()).await {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => {
            link.roll_back().await;
            return Ok(Resumed::Gone);
        }
        job => job?,
    };
    let retried = match operator::to_go_on(link, child, &of_child).await {
        Ok(pause) => {
            let who = by(parent);
            let retry =
                |keeper: &mut Keeper<&mut Known>| keeper.retry(Reopen::default(), &who, pause.clone());
            said(shelf, link, within, of_child, retry).await.map(drop)
        }
        Err(failure) => Err(failure),
    };
    match retried {
        Ok(()) | Err(Failure::Refused(Error::NotEnded { .. } | Error::NothingToRetry { .. })) => {}
        Err(Failure::Refused(Error::NotRunnable { .. })) => {
            link.roll_back().await;
            return Ok(Resumed::NoRoom);
        }
        Err(failure) => return Err(failure),
    }
    if let Some(session) = session {
        take(shelf, link, within, child, session).await?;
        adopt(shelf, link, within, child, session).await?;
    }
    began(shelf, link, within, parent, child).await?;
    link.flight().commit().await?;
    Ok(Resumed::Done)
}

/// Does something to one run, with everything that follows. The transaction stays open.
async fn said<T>(
    shelf: &Shelf,
    link: &Link,
    within: Terms,
    job: Job,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<T>,
) -> Done<T> {
    let (made, columns) = work(shelf, link, within, vec![job], |_, keeper| verb(keeper)).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    Ok(made.into_iter().next().expect("one run went in").answer)
}

pub(in crate::postgres) async fn refused(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    parent: &Parent,
    why: &str,
) -> Done<()> {
    let seed = Missing { live: true, line: 8, ..Missing::default() };
    let job = match job(shelf, link, parent.run, seed).await {
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(()),
        job => job?,
    };
    let refuse =
        on_run(shelf, link, terms, job, |keeper| keeper.child_refused(&parent.step, parent.life, why));
    refuse.await.map(drop)
}

/// A child is to end. Of one that is gone, or set aside, nobody knows when it would: who waits for
/// it ends without it.
pub(in crate::postgres) async fn stop(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    to_stop: &ToStop,
) -> Done<()> {
    if end(shelf, link, terms, to_stop.child).await? {
        return Ok(());
    }
    let told = change(shelf, link, terms, (to_stop.parent, &[]), |keeper| {
        let step = keeper.name(to_stop.position);
        keeper.child_over(&step, to_stop.away())
    });
    let told = told.await;
    unless_away(link, to_stop.parent, told).await.map(drop)
}

/// Ends a child. Says whether it is there.
async fn end(shelf: &Shelf, link: &Link, terms: Terms, child: RunId) -> Done<bool> {
    let found = shelf.head(link, child).await;
    let Some(head) = unless_away(link, child, found).await? else { return Ok(false) };
    let who = head.head.parent.as_ref().map(by).unwrap_or_default();
    let mode = match &head.head.parent {
        Some(parent) if is_hurried(link, parent.run).await? => CancelMode::Now,
        Some(_) | None => CancelMode::CleanUp,
    };
    pass(Point::ChildStop);
    let canceled = change(shelf, link, terms, (child, &[]), |keeper| {
        let was_over = keeper.run.status.is_final();
        keeper.cancel(&who, mode)?;
        Ok(was_over)
    });
    let was_over = canceled.await;
    pass(Point::ChildStopTold);
    // One that ended while its parent could not be told is told of now.
    if was_over.as_ref().is_ok_and(|was_over| *was_over) {
        record(link, FollowUp::Ended(child)).await?;
    }
    Ok(unless_away(link, child, was_over).await?.is_some())
}

/// Whether the time for the clean-up of a run is over, and with it that of its children.
async fn is_hurried(link: &Link, run: RunId) -> Done<bool> {
    let found = link.row(sql!("run_is_hurried", TEXT), &[&run.to_string()]).await?;
    Ok(found.map(|found| found.try_get(0)).transpose()?.unwrap_or_default())
}

/// A child that its step waits for no more ends, unless a person has let it go on by itself.
async fn end_if_left(shelf: &Shelf, link: &Link, terms: Terms, child: RunId) -> Done<()> {
    let found = shelf.head(link, child).await;
    let Some(head) = unless_away(link, child, found).await? else { return Ok(()) };
    let found = link.row(sql!("run_reopened_by", INT8), &[&head.no]).await?;
    let who: Option<Option<String>> = found.map(|found| found.try_get(0)).transpose()?;
    let own = head.head.parent.as_ref().map(by);
    if who.is_none_or(|who| who == own) && !end_of(shelf, link, child).await?.0.is_final() {
        end(shelf, link, terms, child).await?;
    }
    Ok(())
}

/// A child has ended: so does the step that waits for it.
pub(in crate::postgres) async fn tell(shelf: &Shelf, link: &Link, terms: Terms, child: RunId) -> Done<()> {
    let found = shelf.head(link, child).await;
    let Some(head) = unless_away(link, child, found).await? else { return Ok(()) };
    let Some(parent) = head.head.parent.clone() else { return Ok(()) };
    let Ok(of_parent) = shelf.head(link, parent.run).await else { return Ok(()) };
    // Both, so that the child cannot go on while its parent is told that it ended.
    lock_runs(link, &[of_parent.no, head.no]).await?;
    let end = end_of(shelf, link, child).await;
    let Some((status, reason)) = unless_away(link, child, end).await? else { return Ok(()) };
    if !status.is_final() {
        // It goes on, and is reported when it ends.
        return Ok(());
    }
    let output = if status == RunStatus::Succeeded { outputs(link, &head).await? } else { None };
    let end = ChildEnd { run: child, status, reason, output };
    pass(Point::ChildOver);
    let told =
        change(shelf, link, terms, (parent.run, &[]), |keeper| keeper.child_over(&parent.step, end.clone()));
    let told = told.await;
    pass(Point::ChildOverTold);
    unless_away(link, parent.run, told).await.map(drop)
}

/// A run is back that was set aside, and to which nothing was told meanwhile: that it is to end, or
/// has ended, and the same of its children. The transaction is open.
pub(in crate::postgres) async fn released(shelf: &Shelf, link: &Link, within: Terms, run: RunId) -> Done<()> {
    if let Some(parent) = shelf.head(link, run).await?.head.parent.clone() {
        let awaits =
            change(shelf, link, within, (parent.run, &[]), |keeper| keeper.awaits(&parent.step, run));
        let awaits = match awaits.await {
            Err(Failure::Refused(Error::NoSuchRun { .. })) => Some(None),
            awaits => unless_away(link, parent.run, awaits).await?,
        };
        match awaits {
            Some(Some(true)) => {
                end(shelf, link, within, run).await?;
            }
            Some(Some(false)) if end_of(shelf, link, run).await?.0.is_final() => {
                record(link, FollowUp::Ended(run)).await?;
            }
            Some(None) => end_if_left(shelf, link, within, run).await?,
            // It is told with the release of its parent, if that is away itself.
            Some(Some(false)) | None => {}
        }
    }
    let children = change(shelf, link, within, (run, &[]), |keeper| keeper.children());
    for (of, is_to_end) in children.await? {
        match is_to_end {
            Some(true) => record(link, FollowUp::Stop(of)).await?,
            Some(false) => {
                let end = end_of(shelf, link, of.child).await;
                if unless_away(link, of.child, end).await?.is_some_and(|(status, _)| status.is_final()) {
                    record(link, FollowUp::Ended(of.child)).await?;
                }
            }
            None => end_if_left(shelf, link, within, of.child).await?,
        }
    }
    Ok(())
}

/// `None` if it is more than an output may be.
async fn outputs(link: &Link, head: &Head) -> Done<Option<Map<String, Value>>> {
    let steps = i64::try_from(head.head.plan.workflow.steps.len()).unwrap_or(i64::MAX);
    let size = link.row(sql!("run_outputs_size", INT8, INT8), &[&head.no, &steps]).await?;
    let size: i64 = size.map(|found| found.try_get(0)).transpose()?.unwrap_or_default();
    if size > LIMIT as i64 {
        return Ok(None);
    }
    let rows = link.rows(sql!("run_outputs", INT8, INT8), &[&head.no, &steps]).await?;
    let rows = rows.iter().map(|found| Ok((row::number(found, 0)?, row::text(found, 1)?)));
    let rows: Vec<(Position, String)> = rows.collect::<Done<_>>()?;
    let outputs = outputs_of(&head.head.plan, rows);
    outputs.map(Some).map_err(|error| Failure::from(error).about(head.no, head.head.run))
}

/// Who is gone, or set aside, is told nothing.
async fn unless_away<T>(link: &Link, run: RunId, done: Done<T>) -> Done<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(Failure::Refused(Error::NoSuchRun { .. } | Error::SetAside { .. })) => Ok(None),
        // What cannot be read may be its document, without which nobody comes as far as to look.
        Err(Failure::Blamed { no, run: blamed, failure }) if blamed == Some(run) => {
            let is_readable = !matches!(*failure, Failure::Refused(Error::Unreadable { .. }));
            let numbers = vec![no];
            if is_readable || link.row(sql!("quarantine_read", INT8_ARRAY), &[&numbers]).await?.is_none() {
                return Err(Failure::Blamed { no, run: blamed, failure });
            }
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

async fn end_of(shelf: &Shelf, link: &Link, run: RunId) -> Done<(RunStatus, Option<String>)> {
    let no = shelf.head(link, run).await?.no;
    let found = link.row(sql!("run_end", INT8), &[&no]).await?;
    let found = found.ok_or_else(|| Error::NoSuchRun { name: run.to_string() })?;
    Ok((row::word(&found, 0, "status of a run", RunStatus::parse)?, found.try_get(1)?))
}

/// Runs that a local run has started, and those below them, go with it to its new owner.
pub(in crate::postgres) async fn adopt(
    shelf: &Shelf,
    link: &Link,
    within: Terms,
    run: RunId,
    session: SessionId,
) -> Done<()> {
    for (child, is_open) in below(shelf, link, run).await? {
        if is_open {
            take(shelf, link, within, child, session).await?;
        }
    }
    Ok(())
}

/// Somebody else goes on with it, or nobody may, or it has ended: that is no reason not to go on
/// with the rest.
async fn take(shelf: &Shelf, link: &Link, within: Terms, run: RunId, session: SessionId) -> Done<()> {
    let seed = Missing { nodes: [session].into(), ..Missing::default() };
    let job = job(shelf, link, run, seed).await?;
    match said(shelf, link, within, job, |keeper| keeper.adopt(session)).await {
        Err(Failure::Refused(Error::Owned { .. } | Error::SetAside { .. } | Error::Ended { .. })) => Ok(()),
        done => done,
    }
}

/// Runs that a local run has started, and those below them.
pub(in crate::postgres) async fn family(shelf: &Shelf, link: &Link, run: RunId) -> Done<Vec<RunId>> {
    Ok(below(shelf, link, run).await?.into_iter().map(|(run, _)| run).collect())
}

/// The same, with whether each has yet to end.
async fn below(shelf: &Shelf, link: &Link, run: RunId) -> Done<Vec<(RunId, bool)>> {
    let root = -shelf.head(link, run).await?.head.own_class;
    let mut below = vec![(run, false)];
    for found in link.rows(sql!("runs_of_root", INT8), &[&root]).await? {
        let (run, is_open) = (row::word(&found, 0, "run id", RunId::parse)?, found.try_get(1)?);
        let Ok(head) = shelf.head(link, run).await else { continue };
        // A parent has the smaller number.
        let is_below = |parent: &Parent| below.iter().any(|(above, _)| *above == parent.run);
        if head.head.parent.as_ref().is_some_and(is_below) {
            below.push((run, is_open));
        }
    }
    Ok(below.split_off(1))
}
