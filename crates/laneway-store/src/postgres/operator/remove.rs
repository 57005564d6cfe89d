//! `remove_limit`, `remove_triggers`, `remove_workflow`: objects that people made by hand and need
//! no more. Runs and their history stay.

use laneway_core::id::RunId;

use crate::error::Error;
use crate::keeper::Key;
use crate::plans::names_limit;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::row;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::Shelf;

/// Locks the limit alone, and first: a submission that names it is either seen here, or finds it
/// gone.
pub(in crate::postgres) async fn limit(shelf: &Shelf, link: &Link, name: &str) -> Done<()> {
    let key = Key::Limit(name.to_owned()).text();
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("limit_lock", TEXT), vec![&name]);
    let answers = flight.land().await?;
    let refused = if answers.first().is_none_or(Vec::is_empty) {
        Some(Error::NoSuchLimit { name: name.to_owned() })
    } else {
        let found = link.row(sql!("key_counts", TEXT), &[&key]).await?;
        let (held, waiting) = match &found {
            Some(found) => (row::number(found, 0)?, row::number(found, 1)?),
            None => (0, 0),
        };
        let run = unended_naming(shelf, link, name).await?;
        let is_used = held + waiting > 0 || run.is_some();
        is_used.then(|| Error::LimitInUse { name: name.to_owned(), held, waiting, run })
    };
    if let Some(error) = refused {
        link.roll_back().await;
        return Err(error.into());
    }
    let mut flight = link.flight();
    flight.ask(sql!("limit_remove", TEXT), vec![&name]);
    flight.commit().await?;
    Ok(())
}

/// A run that has not ended and of which a step may still come to the limit.
async fn unended_naming(shelf: &Shelf, link: &Link, name: &str) -> Done<Option<RunId>> {
    for found in link.rows(sql!("versions_unended"), &[]).await? {
        let run = row::word(&found, 0, "run id", RunId::parse)?;
        // A run that is set aside may come back; one that cannot be read says nothing.
        let Ok(head) = shelf.head(link, run).await else { continue };
        if names_limit(&head.head.plan, name) {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

pub(in crate::postgres) async fn triggers(link: &Link, workflow: &str) -> Done<u64> {
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("triggers_remove", TEXT), vec![&workflow]);
    let answers = flight.commit().await?;
    match answers.first().map_or(0, Vec::len) {
        0 => Err(Error::NoTriggers { workflow: workflow.to_owned() }.into()),
        count => Ok(count as u64),
    }
}

pub(in crate::postgres) async fn workflow(
    link: &Link,
    terms: Terms,
    name: &str,
    is_forced: bool,
) -> Done<()> {
    // As in `apply`: one behind the other.
    let key = vec![format!("applied:{name}")];
    let now = terms.now.map(|now| now.0);
    let mut flight = link.begin(Begin::Write);
    // A submission that is under way is seen.
    flight.ask(sql!("workflow_lock", TEXT), vec![&name]);
    let locks = link.locks.acquire_keys(&key)?;
    locks.send(&mut flight);
    flight.ask(sql!("definition_versions", TEXT, INT8, INT8), vec![&name, &i64::MAX, &1_i64]);
    flight.ask(sql!("runs_of_workflow", TEXT), vec![&name]);
    flight.ask(sql!("triggers_live", TEXT), vec![&name]);
    let answers = flight.land().await?;
    let rows = |at: usize| answers.get(at).map_or(&[][..], Vec::as_slice);
    let runs = rows(2).len() as u64;
    let triggers = rows(3).first().map_or(Ok(0), |found| row::number(found, 0))?;
    let refused = if rows(1).is_empty() {
        Some(Error::NoSuchWorkflow { name: name.to_owned() })
    } else {
        let is_used = !is_forced && runs + triggers > 0;
        is_used.then(|| Error::WorkflowInUse { workflow: name.to_owned(), runs, triggers })
    };
    if let Some(error) = refused {
        link.roll_back().await;
        return Err(error.into());
    }
    let mut flight = link.flight();
    flight.ask(sql!("triggers_remove", TEXT), vec![&name]);
    flight.ask(sql!("definitions_remove", TEXT), vec![&name]);
    flight.ask(sql!("workflow_removed", TEXT, INT8), vec![&name, &now]);
    flight.commit().await?;
    Ok(())
}
