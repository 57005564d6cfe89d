//! What people change beside the ends of runs: `set_limit`, `signal`, `pause` and `resume` of a workflow.

use laneway_core::event::PauseScope;
use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use rusqlite::params;

use crate::error::Error;
use crate::keeper::{Key, unreadable};
use crate::model::{NewSignal, Pausable, Signaled};
use crate::sqlite::run_work::{Follows, follow, on_each, on_run};
use crate::sqlite::txn::{Done, Txn, sql};

/// Who waits at the limit is looked at again: there may be room now.
pub(in crate::sqlite) fn set_limit(txn: &Txn<'_>, name: &str, limit: Limit, by: &str) -> Done<()> {
    let set = params![name, limit.to_string(), by, txn.now.0];
    txn.connection.prepare_cached(sql!("limit_set"))?.execute(set)?;
    follow(txn, Follows::of_key(Key::Limit(name.to_owned())))
}

pub(in crate::sqlite) fn signal(txn: &Txn<'_>, run: RunId, step: &str, signal: &NewSignal) -> Done<Signaled> {
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
