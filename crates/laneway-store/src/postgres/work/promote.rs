//! `promote`: what time alone opens or ends. Everything else is promoted where it happens. Many
//! nodes do this at the same time: what they find is looked at again under each run's lock.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use tokio_postgres::Row;

use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::link::{Link, sql};
use crate::postgres::read::run_of;
use crate::postgres::row;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::{on_run, submit};

/// A run about which time has something to say: its timeout passed, or its moment has come, or that
/// of some of its tasks.
#[derive(Debug, Clone)]
pub(in crate::postgres) struct DueRun {
    run: RunId,
    /// It was submitted for a moment that has come.
    is_to_begin: bool,
    positions: BTreeSet<Position>,
}

/// Whether time has something to say at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) struct PromotionLook {
    /// Whether `due` would find something.
    pub(in crate::postgres) is_due: bool,
    /// The next moment at which there will be something to do, or the one that has come.
    pub(in crate::postgres) next: Option<Millis>,
}

/// One statement that reads the first entries of indexes: cheap enough for every idle node.
pub(in crate::postgres) async fn look(link: &Link, now: Option<Millis>) -> Done<PromotionLook> {
    let now = now.map(|now| now.0);
    let found = link.row(sql!("promote_look", INT8), &[&now]).await?;
    let Some(found) = found else { return Ok(PromotionLook { is_due: false, next: None }) };
    let next: Option<i64> = found.try_get(0)?;
    Ok(PromotionLook { is_due: found.try_get(1)?, next: next.map(Millis) })
}

/// Those whose timeout passed first: what they let go of is there for the others.
pub(in crate::postgres) async fn due(link: &Link, now: Option<Millis>) -> Done<Vec<DueRun>> {
    let now = now.map(|now| now.0);
    let mut flight = link.flight();
    flight.ask(sql!("promote_overdue_runs", INT8), vec![&now]);
    flight.ask(sql!("promote_due", INT8), vec![&now]);
    flight.ask(sql!("promote_due_runs", INT8), vec![&now]);
    let answers = flight.land().await?;
    let rows = |at: usize| answers.get(at).into_iter().flatten();
    let named =
        |found: &Row| Ok(DueRun { run: run_of(found)?.1, is_to_begin: false, positions: BTreeSet::new() });
    let overdue: Vec<DueRun> = rows(0).map(named).collect::<Done<_>>()?;
    let to_begin = rows(2).map(|found| Ok(DueRun { is_to_begin: true, ..named(found)? }));
    let to_begin: Vec<DueRun> = to_begin.collect::<Done<_>>()?;
    let mut with_tasks: BTreeMap<i64, DueRun> = BTreeMap::new();
    for found in rows(1) {
        let no = found.try_get(0)?;
        let of_run = match with_tasks.entry(no) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(named(found)?),
        };
        let position = row::number(found, 2).map_err(|failure| failure.about(no, of_run.run))?;
        of_run.positions.insert(position);
    }
    Ok(overdue.into_iter().chain(to_begin).chain(with_tasks.into_values()).collect())
}

/// One run, one transaction: a large one holds up no other.
pub(in crate::postgres) async fn promote(shelf: &Shelf, link: &Link, terms: Terms, due: &DueRun) -> Done<()> {
    if due.is_to_begin {
        return submit::come_due(shelf, link, terms, due.run).await;
    }
    let head = shelf.head(link, due.run).await?;
    head.check(&due.positions)?;
    let positions: Vec<Position> = due.positions.iter().copied().collect();
    let mut seed = Missing::for_examining(&head.head.plan, &positions);
    due.positions.iter().for_each(|position| seed.add_keys(&head.head, *position));
    let job = Job { head: Arc::clone(&head), seed };
    on_run(shelf, link, terms, job, |keeper| {
        let is_overdue = keeper.run.deadline_at.is_some_and(|at| at <= keeper.now);
        if is_overdue && !keeper.run.status.is_final() {
            keeper.time_out()?;
        }
        due.positions.iter().for_each(|position| keeper.examine_later(*position));
        Ok(())
    })
    .await?;
    Ok(())
}

/// The next moment at which there will be something to do.
pub(in crate::postgres) async fn next(link: &Link) -> Done<Option<Millis>> {
    let found = link.row(sql!("promote_next"), &[]).await?;
    Ok(found.map(|found| found.try_get::<_, Option<i64>>(0)).transpose()?.flatten().map(Millis))
}
