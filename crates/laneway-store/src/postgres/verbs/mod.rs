//! The verbs, a file for each kind. Every function is one transaction, from its beginning to its commit; what follows
//! from it is decided by the gate keeper (`keeper/`).

pub(super) mod apply;
pub(super) mod cache;
pub(super) mod children;
pub(super) mod claim;
pub(super) mod effects;
pub(super) mod enroll;
pub(super) mod finish;
mod fresh;
pub(super) mod levels;
pub(super) mod lives;
pub(super) mod people;
pub(super) mod promote;
pub(super) mod prune;
pub(super) mod remove;
pub(super) mod secrets;
pub(super) mod submit;
pub(super) mod triggers;

use std::collections::BTreeMap;

use laneway_core::id::RunId;

use super::fault::Done;
use super::follow::work;
use super::link::Link;
use super::run_work::{Job, Terms};
use super::shelf::{Head, Shelf};
use crate::keeper::Keeper;

use std::sync::Arc;

use super::facts::Known;

/// The runs that a call is about, in the order of locks, each with the places of its items in that call.
async fn sorted(
    shelf: &Shelf,
    link: &Link,
    runs: impl Iterator<Item = (usize, RunId)>,
) -> Done<Vec<(Arc<Head>, Vec<usize>)>> {
    let mut places: BTreeMap<RunId, Vec<usize>> = BTreeMap::new();
    for (place, run) in runs {
        places.entry(run).or_default().push(place);
    }
    let mut sorted = Vec::with_capacity(places.len());
    for (run, places) in places {
        sorted.push((shelf.head(link, run).await?, places));
    }
    sorted.sort_unstable_by_key(|(head, _)| head.no);
    Ok(sorted)
}

/// Does something to one run, with everything that follows, and commits.
async fn on_run<T>(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    job: Job,
    mut verb: impl FnMut(&mut Keeper<&mut Known>) -> Done<T>,
) -> Done<(T, crate::keeper::RunRow)> {
    let (made, columns) = work(shelf, link, terms, vec![job], |_, keeper| verb(keeper)).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.commit().await?;
    let made = made.into_iter().next().expect("one run went in");
    Ok((made.answer, made.changes.run))
}
