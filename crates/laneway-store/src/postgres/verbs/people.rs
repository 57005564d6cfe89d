//! What people want of a run: `cancel`, `retry`, `skip`.

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;

use super::on_run;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::link::Link;
use crate::postgres::run_work::Terms;
use crate::postgres::shelf::Shelf;

/// Nothing of the run is claimed once this has committed. What runs is stopped by its holder.
pub(in crate::postgres) async fn cancel(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    by: &str,
) -> Done<RunStatus> {
    let head = shelf.head(link, run).await?;
    let seed = Missing { unstarted: true, running: true, live: true, line: 1, ..Missing::default() };
    let (_, row) = on_run(link, terms, head, seed, |keeper| keeper.cancel(by)).await?;
    Ok(row.status)
}

pub(in crate::postgres) async fn retry(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    words: (Option<&str>, &str),
) -> Done<Vec<String>> {
    let (from, by) = words;
    let head = shelf.head(link, run).await?;
    Ok(on_run(link, terms, head, everything(), |keeper| keeper.retry(from, by)).await?.0)
}

pub(in crate::postgres) async fn skip(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    words: (&str, &str),
) -> Done<Vec<String>> {
    let (step, by) = words;
    let head = shelf.head(link, run).await?;
    Ok(on_run(link, terms, head, everything(), |keeper| keeper.skip_by_person(step, by)).await?.0)
}

fn everything() -> Missing {
    Missing { all: true, live: true, line: 8, ..Missing::default() }
}
