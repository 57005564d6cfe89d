//! What people and programs change: runs, limits, workflows, nodes.

pub(super) mod apply;
pub(super) mod remove;

use async_trait::async_trait;
use laneway_core::event::PauseScope;
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::max_runs::{self, Runs};
use laneway_core::node_event::Leaving;
use laneway_core::state::RunStatus;
use laneway_torture::{Point, pass};
use rusqlite::params;

use crate::contract::Operator;
use crate::error::{Error, Result};
use crate::keeper::{Key, unreadable};
use crate::model::{Application, Applied, CancelMode, NewSignal, Pausable, Reopen, Signaled, Whom, Wish};
use crate::plans::{limit_is_gone, limits_named};
use crate::sqlite::run_work::{Follows, follow, limit, on_each, on_run, runs_of};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Txn};
use crate::sqlite::work::{self, submit};
use crate::sqlite::{SqliteStore, pools, read, sessions};

#[async_trait]
impl Operator for SqliteStore {
    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus> {
        let by = by.to_owned();
        pass(Point::CancelBefore);
        let canceled = self.write(move |txn| cancel(txn, run, &by, mode)).await;
        pass(Point::CancelAfter);
        canceled
    }

    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>> {
        let (from, seen, by) = (what.from.map(str::to_owned), what.seen, by.to_owned());
        self.write(move |txn| retry(txn, run, Reopen { from: from.as_deref(), seen }, &by)).await
    }

    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>> {
        let (step, by) = (step.to_owned(), by.to_owned());
        self.write(move |txn| skip(txn, run, &step, &by)).await
    }

    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled> {
        let step = step.to_owned();
        pass(Point::SignalBefore);
        let signaled = self.write(move |txn| deliver_signal(txn, run, &step, &signal)).await;
        pass(Point::SignalAfter);
        signaled
    }

    async fn pause(&self, what: Pausable, by: &str) -> Result<bool> {
        let by = by.to_owned();
        self.write(move |txn| pause(txn, &what, &by)).await
    }

    async fn resume(&self, what: Pausable, by: &str) -> Result<bool> {
        let by = by.to_owned();
        self.write(move |txn| resume(txn, &what, &by)).await
    }

    async fn advance(&self, run: RunId, by: &str) -> Result<u32> {
        let by = by.to_owned();
        self.write(move |txn| work::advance(txn, run, &by)).await
    }

    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| set_limit(txn, &name, limit, &by)).await
    }

    async fn remove_limit(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| remove::limit(txn, &name)).await
    }

    async fn apply(&self, application: Application) -> Result<Applied> {
        self.write(move |txn| apply::apply(txn, &application)).await
    }

    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| remove::workflow(txn, &name, is_forced)).await
    }

    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>> {
        let asked = whom.clone();
        let sessions = self.write(move |txn| sessions::drain(txn, &asked, &why)).await?;
        match whom {
            Whom::Node(node) if sessions.is_empty() => Err(Error::NoSuchNode { node }),
            Whom::Node(_) | Whom::Session(_) => Ok(sessions),
        }
    }

    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()> {
        self.write(move |txn| pools::wish(txn, &sessions, &wish)).await
    }
}

pub(in crate::sqlite) fn cancel(txn: &Txn<'_>, run: RunId, by: &str, mode: CancelMode) -> Done<RunStatus> {
    on_run(txn, run, |keeper| keeper.cancel(by, mode))?;
    read::status(txn.connection, run)
}

pub(in crate::sqlite) fn retry(txn: &Txn<'_>, run: RunId, what: Reopen<'_>, by: &str) -> Done<Vec<String>> {
    find_room(txn, run)?;
    let pause = submit::paused(txn, &txn.head(run)?.head.plan.workflow.name)?;
    on_run(txn, run, |keeper| keeper.retry(what, by, pause))
}

pub(in crate::sqlite) fn skip(txn: &Txn<'_>, run: RunId, step: &str, by: &str) -> Done<Vec<String>> {
    find_room(txn, run)?;
    let pause = submit::paused(txn, &txn.head(run)?.head.plan.workflow.name)?;
    on_run(txn, run, |keeper| keeper.skip_by_person(step, by, pause))
}

/// A run that goes on would jump the queue of its workflow, so it needs room. Its limits are still
/// there.
fn find_room(txn: &Txn<'_>, run: RunId) -> Done<()> {
    let head = txn.head(run)?;
    for name in limits_named(&head.head.plan) {
        limit(txn, &name)?.ok_or_else(|| limit_is_gone(&name))?;
    }
    let workflow = &head.head.plan.workflow;
    if workflow.max_runs.is_none() || !read::status(txn.connection, run)?.is_final() {
        return Ok(());
    }
    let runs = runs_of(txn, &workflow.name)?;
    let runs = Runs { running: &runs.running, queued: &runs.queued };
    Ok(max_runs::may_reopen(&workflow.name, workflow.max_runs, runs)
        .map_err(|why| Error::NotRunnable { why })?)
}

/// Who waits at the limit is looked at again: there may be room now.
pub(in crate::sqlite) fn set_limit(txn: &Txn<'_>, name: &str, limit: Limit, by: &str) -> Done<()> {
    let set = params![name, limit.to_string(), by, txn.now.0];
    txn.connection.prepare_cached(sql!("limit_set"))?.execute(set)?;
    follow(txn, Follows::of_key(Key::Limit(name.to_owned())))
}

pub(in crate::sqlite) fn deliver_signal(
    txn: &Txn<'_>,
    run: RunId,
    step: &str,
    signal: &NewSignal,
) -> Done<Signaled> {
    signal.at(txn.now).check().map_err(Error::from)?;
    on_run(txn, run, |keeper| keeper.signal(step, signal))
}

/// Returns whether it, or one of its runs, was not paused before.
pub(in crate::sqlite) fn pause(txn: &Txn<'_>, what: &Pausable, by: &str) -> Done<bool> {
    match what {
        Pausable::Run(run) => on_run(txn, *run, |keeper| keeper.pause(PauseScope::Run, by)),
        Pausable::Workflow(name) => {
            let mut paused = txn.connection.prepare_cached(sql!("workflow_pause"))?;
            let is_new = paused.execute(params![name, by, txn.now.0])? > 0;
            let runs = unended(txn, name)?;
            Ok(on_each(txn, runs, |keeper| keeper.pause(PauseScope::Workflow, by))? || is_new)
        }
    }
}

/// Returns whether it, or one of its runs, was paused.
pub(in crate::sqlite) fn resume(txn: &Txn<'_>, what: &Pausable, by: &str) -> Done<bool> {
    match what {
        Pausable::Run(run) => on_run(txn, *run, |keeper| keeper.resume(PauseScope::Run, by)),
        Pausable::Workflow(name) => {
            let was_paused = txn.connection.prepare_cached(sql!("workflow_resume"))?.execute([name])? > 0;
            let runs = unended(txn, name)?;
            Ok(on_each(txn, runs, |keeper| keeper.resume(PauseScope::Workflow, by))? || was_paused)
        }
    }
}

pub(super) fn unended(txn: &Txn<'_>, workflow: &str) -> Done<Vec<RunId>> {
    let ids: Vec<String> = txn
        .connection
        .prepare_cached(sql!("runs_of_workflow"))?
        .query_map([workflow], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    ids.iter().map(|id| RunId::parse(id).ok_or_else(|| unreadable("run id", id).into())).collect()
}
