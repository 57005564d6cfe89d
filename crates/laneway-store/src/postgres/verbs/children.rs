//! Runs that steps start: which are to be started, that one is, or cannot be, and what the end of one means for the other.

use laneway_core::child::{ChildEnd, Parent};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::state::RunStatus;

use super::on_run;
use crate::child::{WantedRow, WantedRun, outputs_of};
use crate::error::Error;
use crate::postgres::facts::Missing;
use crate::postgres::fault::{Done, Failure};
use crate::postgres::follow::{Follows, change, follow, job, work};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::Shelf;

pub(in crate::postgres) async fn wanted(
    shelf: &Shelf,
    link: &Link,
    session: SessionId,
    limit: usize,
) -> Done<Vec<WantedRun>> {
    let (session, limit) = (session.to_string(), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut wanted = Vec::new();
    for found in link.rows(sql!("wanted_runs", TEXT, INT8), &[&session, &limit]).await? {
        let run = row::word(&found, 0, "run id", RunId::parse)?;
        let head = shelf.head(link, run).await?;
        let life: i64 = found.try_get(2)?;
        let row = WantedRow {
            position: row::number(&found, 1)?,
            life: life.unsigned_abs(),
            workflow: row::text(&found, 3)?,
            params: row::text(&found, 4)?,
            again: found.try_get(5)?,
            is_local: found.try_get(6)?,
        };
        wanted.push(row.of(&head.head)?);
    }
    Ok(wanted)
}

/// A child is there. If nobody waits for it, it ends; if it is over by now, so is who waits for it.
pub(in crate::postgres) async fn began(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    parent: &Parent,
    child: RunId,
) -> Done<()> {
    link.begin(Begin::Write).land().await?;
    let within = Terms { is_begun: true, ..terms };
    let is_wanted = match job(shelf, link, parent.run, Missing::default()).await {
        Ok(job) => {
            let say = work(shelf, link, within, vec![job], |_, keeper| {
                keeper.child_began(&parent.step, parent.life, child)
            });
            let (made, columns) = say.await?;
            let mut flight = link.flight();
            columns.say(&mut flight);
            flight.land().await?;
            made.first().is_some_and(|made| made.answer)
        }
        Err(Failure::Refused(Error::NoSuchRun { .. })) => false,
        Err(failure) => return Err(failure),
    };
    // Behind the lock of the parent: whoever ends the child asks for that too.
    let follows = match is_wanted {
        false => Follows::of_unwanted(child),
        true if end_of(shelf, link, child).await?.0.is_final() => Follows::of_child(child),
        true => Follows::default(),
    };
    follow(shelf, link, within, follows).await?;
    link.flight().commit().await?;
    Ok(())
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

/// A child is to end. One that is gone, or set aside, is left as it is.
pub(in crate::postgres) async fn stop(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    child: RunId,
    follows: &mut Follows,
) -> Done<()> {
    let by = match shelf.head(link, child).await {
        Ok(head) => head.head.parent.as_ref().map(|parent| format!("run {}", parent.run.short())),
        Err(Failure::Refused(Error::NoSuchRun { .. })) => return Ok(()),
        Err(failure) => return Err(failure),
    };
    let by = by.unwrap_or_default();
    let canceled = change(shelf, link, terms, (child, &[]), follows, |keeper| {
        let was_over = keeper.run.status.is_final();
        keeper.cancel(&by)?;
        Ok(was_over)
    });
    let was_over = canceled.await;
    // One that ended while its parent could not be told is told of now.
    if was_over.as_ref().is_ok_and(|was_over| *was_over) {
        follows.tell_of(child);
    }
    unless_away(was_over)
}

/// A child has ended: so does the step that waits for it.
pub(in crate::postgres) async fn tell(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    child: RunId,
    follows: &mut Follows,
) -> Done<()> {
    let head = shelf.head(link, child).await?;
    let Some(parent) = head.head.parent.clone() else { return Ok(()) };
    let (status, reason) = end_of(shelf, link, child).await?;
    let steps = i64::try_from(head.head.plan.workflow.steps.len()).unwrap_or(i64::MAX);
    let rows = link.rows(sql!("run_outputs", INT8, INT8), &[&head.no, &steps]).await?;
    let rows = rows.iter().map(|found| Ok((row::number(found, 0)?, row::text(found, 1)?)));
    let rows: Vec<(Position, String)> = rows.collect::<Done<_>>()?;
    let output = outputs_of(&head.head.plan, rows)?;
    let end = ChildEnd { run: child, status, reason, output };
    let told = change(shelf, link, terms, (parent.run, &[]), follows, |keeper| {
        keeper.child_over(&parent.step, end.clone())
    });
    unless_away(told.await)
}

/// Who is gone, or set aside, is told nothing.
fn unless_away<T>(done: Done<T>) -> Done<()> {
    match done {
        Ok(_) | Err(Failure::Refused(Error::NoSuchRun { .. } | Error::SetAside { .. })) => Ok(()),
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
    terms: Terms,
    root: RunId,
    session: SessionId,
) -> Done<()> {
    let no = shelf.head(link, root).await?.no;
    for found in link.rows(sql!("runs_of_root", INT8), &[&no]).await? {
        let run = row::word(&found, 0, "run id", RunId::parse)?;
        let seed = Missing { nodes: [session].into(), ..Missing::default() };
        let job = job(shelf, link, run, seed).await?;
        let (_, columns) = work(shelf, link, terms, vec![job], |_, keeper| keeper.adopt(session)).await?;
        let mut flight = link.flight();
        columns.say(&mut flight);
        flight.land().await?;
    }
    Ok(())
}
