//! `retry` and `skip`: an ended run goes on.

use laneway_core::id::RunId;
use laneway_core::max_runs::{self, Runs};

use super::submit;
use crate::error::Error;
use crate::model::Reopen;
use crate::plans::{limit_is_gone, limits_named};
use crate::sqlite::read;
use crate::sqlite::run_work::{limit, on_run, runs_of};
use crate::sqlite::txn::{Done, Txn};

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
