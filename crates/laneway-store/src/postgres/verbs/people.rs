//! What people want: `cancel`, `retry`, `skip`, `signal`, `pause` and `resume` and limits.

use std::collections::BTreeSet;

use laneway_core::event::PauseScope;
use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Runs};
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

use super::on_run;
use crate::error::Error;
use crate::keeper::{Key, Pause};
use crate::model::{CancelMode, NewSignal, Pausable, Reopen, Signaled};
use crate::plans::{limit_is_gone, limits_named};
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{FollowUp, job, on_each, record, runs_of};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::lock_order::lock_runs;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;
use crate::postgres::{read, row};

/// Nothing of the run but its clean-up is claimed once this has committed. What runs is stopped by
/// its holder.
pub(in crate::postgres) async fn cancel(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    (by, mode): (&str, CancelMode),
) -> Done<RunStatus> {
    let seed = Missing { unstarted: true, running: true, live: true, line: 1, ..Missing::default() };
    let job = job(shelf, link, run, seed).await?;
    let (_, row) = on_run(shelf, link, terms, job, |keeper| keeper.cancel(by, mode)).await?;
    Ok(row.status)
}

pub(in crate::postgres) async fn retry(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    (what, by): (Reopen<'_>, &str),
) -> Done<Vec<String>> {
    let job = job(shelf, link, run, everything()).await?;
    let (terms, pause) = begin_to_go_on(link, terms, run, &job).await?;
    Ok(on_run(shelf, link, terms, job, |keeper| keeper.retry(what, by, pause.clone())).await?.0)
}

pub(in crate::postgres) async fn skip(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    words: (&str, &str),
) -> Done<Vec<String>> {
    let (step, by) = words;
    let job = job(shelf, link, run, everything()).await?;
    let (terms, pause) = begin_to_go_on(link, terms, run, &job).await?;
    Ok(on_run(shelf, link, terms, job, |keeper| keeper.skip_by_person(step, by, pause.clone())).await?.0)
}

/// Begins the transaction in which a run goes on: its workflow's pause holds for it, and it needs room, since it would jump
/// the queue of its workflow.
async fn begin_to_go_on(link: &Link, terms: Terms, run: RunId, job: &Job) -> Done<(Terms, Option<Pause>)> {
    link.begin(Begin::Write).land().await?;
    let pause = to_go_on(link, run, job).await?;
    Ok((Terms { is_begun: true, ..terms }, pause))
}

/// The pause of its workflow, if there is room for the run to go on. The transaction is open.
pub(super) async fn to_go_on(link: &Link, run: RunId, job: &Job) -> Done<Option<Pause>> {
    let workflow = &job.head.head.plan.workflow;
    let names = vec![workflow.name.as_str()];
    let mut flight = link.flight();
    flight.ask(sql!("workflows_hold", TEXT_ARRAY), vec![&names]);
    flight.ask(sql!("workflow_paused", TEXT), vec![&workflow.name]);
    let answers = flight.land().await?;
    let pause = answers.get(1).and_then(|rows| rows.first()).map(pause_of).transpose()?;
    let named = limits_named(&job.head.head.plan);
    if !named.is_empty() {
        let rows = link.rows(sql!("limits_named", TEXT_ARRAY), &[&named]).await?;
        let stored = rows.iter().map(|found| row::text(found, 0)).collect::<Done<BTreeSet<String>>>()?;
        if let Some(gone) = named.iter().find(|name| !stored.contains(*name)) {
            return Err(limit_is_gone(gone).into());
        }
    }
    if workflow.max_runs.is_some() && read::status(link, run).await?.is_final() {
        lock_runs(link, &[job.head.no]).await?;
        let runs = runs_of(link, &workflow.name, Vec::new()).await?;
        let runs = Runs { running: &runs.running, queued: &runs.queued };
        max_runs::may_reopen(&workflow.name, workflow.max_runs, runs)
            .map_err(|why| Error::NotRunnable { why })?;
    }
    Ok(pause)
}

pub(super) fn pause_of(found: &tokio_postgres::Row) -> Done<Pause> {
    let (by, since) = (row::text(found, 0)?, Millis(found.try_get(1)?));
    Ok(Pause { scope: PauseScope::Workflow, by, since })
}

/// One run is locked, and the row of the step with it: of two who signal at once one is first.
pub(in crate::postgres) async fn signal(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    (step, signal): (&str, &NewSignal),
) -> Done<Signaled> {
    signal.at(Millis(0)).check().map_err(Error::from)?;
    let mut job = job(shelf, link, run, Missing::default()).await?;
    if let Some(position) = job.head.head.plan.position(step) {
        job.seed = Missing::for_waking(&job.head.head.plan, position);
    }
    Ok(on_run(shelf, link, terms, job, |keeper| keeper.signal(step, signal)).await?.0)
}

pub(super) fn everything() -> Missing {
    Missing { all: true, live: true, line: 8, ..Missing::default() }
}

/// Returns whether it, or one of its runs, was not paused before.
pub(in crate::postgres) async fn pause(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    what: &Pausable,
    by: &str,
) -> Done<bool> {
    let now = terms.now.map(|now| now.0);
    let (is_new, runs, scope) = match what {
        Pausable::Run(run) => (false, begin_with(link, *run).await?, PauseScope::Run),
        Pausable::Workflow(name) => {
            let mut flight = link.begin(Begin::Write);
            flight.ask(sql!("workflow_lock", TEXT), vec![name]);
            flight.ask(sql!("workflow_pause", TEXT, TEXT, INT8), vec![name, &by, &now]);
            flight.ask(sql!("runs_of_workflow", TEXT), vec![name]);
            let (is_new, runs) = changed_and_runs(flight.land().await?)?;
            (is_new, runs, PauseScope::Workflow)
        }
    };
    let is_whole = scope == PauseScope::Workflow;
    let is_changed = on_each(shelf, link, terms, runs, |keeper| {
        // It may have ended since it was listed.
        if is_whole && keeper.run.status.is_final() { Ok(false) } else { keeper.pause(scope, by) }
    })
    .await?;
    link.flight().commit().await?;
    Ok(is_changed || is_new)
}

/// Returns whether it, or one of its runs, was paused.
pub(in crate::postgres) async fn resume(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    what: &Pausable,
    by: &str,
) -> Done<bool> {
    let (was_paused, runs, scope) = match what {
        Pausable::Run(run) => (false, begin_with(link, *run).await?, PauseScope::Run),
        Pausable::Workflow(name) => {
            let mut flight = link.begin(Begin::Write);
            flight.ask(sql!("workflow_lock", TEXT), vec![name]);
            flight.ask(sql!("workflow_resume", TEXT), vec![name]);
            flight.ask(sql!("runs_of_workflow", TEXT), vec![name]);
            let (was_paused, runs) = changed_and_runs(flight.land().await?)?;
            (was_paused, runs, PauseScope::Workflow)
        }
    };
    let is_changed = on_each(shelf, link, terms, runs, |keeper| keeper.resume(scope, by)).await?;
    link.flight().commit().await?;
    Ok(is_changed || was_paused)
}

/// Of the answers to a lock, a change of the workflow's own row and a list of its runs: whether the row changed, and the runs.
fn changed_and_runs(mut answers: Vec<Vec<tokio_postgres::Row>>) -> Done<(bool, Vec<RunId>)> {
    let runs = ids(answers.pop().unwrap_or_default())?;
    Ok((answers.pop().is_some_and(|changed| !changed.is_empty()), runs))
}

async fn begin_with(link: &Link, run: RunId) -> Done<Vec<RunId>> {
    link.begin(Begin::Write).land().await?;
    Ok(vec![run])
}

fn ids(rows: Vec<tokio_postgres::Row>) -> Done<Vec<RunId>> {
    rows.iter().map(|found| row::word(found, 0, "run id", RunId::parse)).collect()
}

/// Who waits at the limit is looked at again: there may be room now.
pub(in crate::postgres) async fn set_limit(
    link: &Link,
    terms: Terms,
    (name, limit, by): (&str, Limit, &str),
) -> Done<()> {
    let (value, now) = (limit.to_string(), terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("limit_set", TEXT, TEXT, TEXT, INT8), vec![&name, &value, &by, &now]);
    flight.land().await?;
    record(link, FollowUp::Key(Key::Limit(name.to_owned()))).await?;
    link.flight().commit().await?;
    Ok(())
}
