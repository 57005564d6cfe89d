//! `promote`: what time alone opens or ends. Everything else is promoted where it happens. Many nodes do this at the same
//! time: what they find is looked at again under each run's lock.

use std::collections::BTreeMap;
use std::sync::Arc;

use laneway_core::id::RunId;
use laneway_core::plan::Position;
use laneway_core::time::Millis;

use super::on_run;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::link::{Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;

/// What time has opened: runs whose timeout passed, and tasks whose moment has come.
#[derive(Debug, Default)]
pub(in crate::postgres) struct Due {
    pub(in crate::postgres) runs: BTreeMap<i64, DueRun>,
}

#[derive(Debug, Clone)]
pub(in crate::postgres) struct DueRun {
    run: RunId,
    positions: Vec<Position>,
}

pub(in crate::postgres) async fn due(link: &Link, now: Option<Millis>) -> Done<Due> {
    let now = now.map(|now| now.0);
    let mut flight = link.flight();
    flight.ask(sql!("promote_overdue_runs", INT8), vec![&now]);
    flight.ask(sql!("promote_due", INT8), vec![&now]);
    let answers = flight.land().await?;
    let mut due = Due::default();
    for (found, is_task) in
        answers.iter().zip([false, true]).flat_map(|(rows, is)| rows.iter().map(move |row| (row, is)))
    {
        let run = row::word(found, 1, "run id", RunId::parse)?;
        let of_run =
            due.runs.entry(found.try_get(0)?).or_insert_with(|| DueRun { run, positions: Vec::new() });
        if is_task {
            of_run.positions.push(row::number(found, 2)?);
        }
    }
    Ok(due)
}

/// One run, one transaction: a large one holds up no other.
pub(in crate::postgres) async fn promote(shelf: &Shelf, link: &Link, terms: Terms, due: &DueRun) -> Done<()> {
    let head = shelf.head(link, due.run).await?;
    let mut seed = Missing::for_examining(&head.head.plan, &due.positions);
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
