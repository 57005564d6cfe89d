//! What people and programs change: runs, limits, workflows, nodes.

pub(super) mod apply;
pub(super) mod remove;

use std::collections::BTreeSet;

use async_trait::async_trait;
use laneway_core::event::PauseScope;
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Runs};
use laneway_core::node_event::Leaving;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_torture::{Point, pass};

use crate::contract::Operator;
use crate::error::{Error, Result};
use crate::keeper::{Key, Pause};
use crate::model::{Application, Applied, CancelMode, NewSignal, Pausable, Reopen, Signaled, Whom, Wish};
use crate::plans::{limit_is_gone, limits_named};
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{FollowUp, job, on_each, record, runs_of};
use crate::postgres::link::{Begin, Link, sql};
use crate::postgres::lock_order::lock_runs;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::{levels, on_run};
use crate::postgres::{PostgresStore, pools, read, row, sessions};

#[async_trait]
impl Operator for PostgresStore {
    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus> {
        self.base
            .change(
                |link, terms| async move { cancel(&self.base.shelf, &link, terms, run, (by, mode)).await },
            )
            .await
    }

    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>> {
        self.base
            .change(|link, terms| async move { retry(&self.base.shelf, &link, terms, run, (what, by)).await })
            .await
    }

    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>> {
        self.base
            .change(|link, terms| async move { skip(&self.base.shelf, &link, terms, run, (step, by)).await })
            .await
    }

    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled> {
        let signal = &signal;
        pass(Point::SignalBefore);
        let signaled = self
            .base
            .change(|link, terms| async move {
                deliver_signal(&self.base.shelf, &link, terms, run, (step, signal)).await
            })
            .await;
        pass(Point::SignalAfter);
        signaled
    }

    async fn pause(&self, what: Pausable, by: &str) -> Result<bool> {
        let what = &what;
        self.base
            .change(|link, terms| async move { pause(&self.base.shelf, &link, terms, what, by).await })
            .await
    }

    async fn resume(&self, what: Pausable, by: &str) -> Result<bool> {
        let what = &what;
        self.base
            .change(|link, terms| async move { resume(&self.base.shelf, &link, terms, what, by).await })
            .await
    }

    async fn advance(&self, run: RunId, by: &str) -> Result<u32> {
        let shelf = &self.base.shelf;
        self.base
            .change(|link, terms| async move { levels::advance(shelf, &link, terms, run, by).await })
            .await
    }

    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()> {
        let set = (name, limit, by);
        self.base.change(|link, terms| async move { set_limit(&link, terms, set).await }).await
    }

    async fn remove_limit(&self, name: &str) -> Result<()> {
        let shelf = &self.base.shelf;
        self.base.change(|link, _| async move { remove::limit(shelf, &link, name).await }).await
    }

    async fn apply(&self, application: Application) -> Result<Applied> {
        let application = &application;
        self.base
            .change(
                |link, terms| async move { apply::apply(&self.base.shelf, &link, terms, application).await },
            )
            .await
    }

    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()> {
        self.base
            .change(|link, terms| async move { remove::workflow(&link, terms, name, is_forced).await })
            .await
    }

    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>> {
        let (asked, why) = (&whom, &why);
        let sessions = self
            .base
            .change(|link, terms| async move { sessions::drain(&link, terms, asked, why).await })
            .await?;
        match whom {
            Whom::Node(node) if sessions.is_empty() => Err(Error::NoSuchNode { node }),
            Whom::Node(_) | Whom::Session(_) => Ok(sessions),
        }
    }

    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()> {
        let (sessions, wish) = (&sessions, &wish);
        self.base.change(|link, _| async move { pools::wish(&link, sessions, wish).await }).await
    }
}

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

/// Begins the transaction in which a run goes on: its workflow's pause holds for it, and it needs
/// room, since it would jump the queue of its workflow.
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
pub(in crate::postgres) async fn deliver_signal(
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

/// Of the answers to a lock, a change of the workflow's own row and a list of its runs: whether the
/// row changed, and the runs.
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
