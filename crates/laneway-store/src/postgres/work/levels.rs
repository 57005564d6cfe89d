//! `claim_level`: who holds the first task of a level takes all of it. `advance`: one level more.

use std::sync::Arc;

use laneway_core::id::RunId;
use laneway_core::plan::Plan;

use crate::error::{Error, Result};
use crate::fence::ClaimRef;
use crate::model::Claim;
use crate::postgres::base::Base;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::on_run;

pub(in crate::postgres) async fn claim_level(base: &Base, first: ClaimRef) -> Result<Vec<Claim>> {
    let shelf = &base.shelf;
    let taken = base.change(|link, terms| async move { take(shelf, &link, terms, first).await }).await;
    match taken {
        // Nothing of what is gone, or set aside, is held by anybody.
        Err(Error::NoSuchRun { .. } | Error::SetAside { .. }) => {
            shelf.forget_run(first.run);
            Ok(Vec::new())
        }
        taken => taken,
    }
}

async fn take(shelf: &Shelf, link: &Link, terms: Terms, first: ClaimRef) -> Done<Vec<Claim>> {
    let head = shelf.head(link, first.run).await?;
    let mut seed = Missing::for_claims(&head.head.plan, std::iter::once(&first));
    let level = head.head.plan.level_of.get(first.position as usize).copied();
    seed.tasks.extend(level.map(|level| head.head.plan.level(level)).unwrap_or_default());
    let (session, now) = (first.session.to_string(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("level_alive", TEXT, INT8), vec![&session, &now]);
    if flight.land().await?.pop().unwrap_or_default().is_empty() {
        link.roll_back().await;
        return Ok(Vec::new());
    }
    let (job, terms) = (Job { seed, head: Arc::clone(&head) }, Terms { is_begun: true, ..terms });
    let (held, _) = on_run(shelf, link, terms, job, |keeper| keeper.claim_level(&first)).await?;
    Ok(held
        .into_iter()
        .map(|at| Claim { at, head: Arc::clone(&head.head), start_by: None, is_bound: false })
        .collect())
}

pub(in crate::postgres) async fn advance(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    by: &str,
) -> Done<u32> {
    let head = shelf.head(link, run).await?;
    let seed = Missing { unstarted: true, tasks: first_level(&head.head.plan), ..Missing::default() };
    let job = Job { seed, head };
    Ok(on_run(shelf, link, terms, job, |keeper| keeper.advance(by)).await?.0)
}

fn first_level(plan: &Plan) -> std::collections::BTreeSet<laneway_core::plan::Position> {
    plan.level(0).into_iter().collect()
}
