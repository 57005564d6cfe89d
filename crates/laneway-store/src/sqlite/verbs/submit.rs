//! `submit`: a run with all of its tasks. Small ones are one transaction; large ones come in chunks, so that
//! nobody waits long for the write lock, and become visible with the last.

use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::plan::Position;
use rusqlite::params;

use crate::error::Error;
use crate::model::Submission;
use crate::sqlite::run_work::on_run;
use crate::sqlite::txn::{Done, Txn, sql};

/// Tasks per transaction: some milliseconds of work. In a test build every submit is a large one.
pub(in crate::sqlite) const CHUNK: usize = if laneway_torture::ARMED { 6 } else { 2_000 };

/// Makes the run's row, invisible yet.
pub(in crate::sqlite) fn begin(txn: &Txn<'_>, run: RunId, submission: &Submission) -> Done<()> {
    let plan = &submission.plan;
    if let Some(group) = plan.workflow.groups.first() {
        let why = format!("`groups` can be planned but not run yet (group `{}`)", group.name);
        return Err(Error::NotRunnable { why }.into());
    }
    if submission.max_parallel == 0 {
        return Err(Error::NotRunnable { why: "`max_parallel` must be at least 1".to_owned() }.into());
    }
    txn.shelf.plans().keep(plan);
    let params = serde_json::Value::Object(submission.params.clone()).to_string();
    let (version, name) = (plan.version.as_str(), &plan.workflow.name);
    txn.connection.prepare_cached(sql!("submit_workflow"))?.execute(params![
        version,
        name,
        submission.document,
        txn.now.0
    ])?;
    let no: i64 = txn.connection.prepare_cached(sql!("submit_run"))?.query_row(
        params![
            run.to_string(),
            run.tail(),
            name,
            version,
            submission.dir,
            params,
            submission.max_parallel,
            submission.owner.to_string(),
            submission.by,
            txn.now.0,
            plan.workflow.steps.len() as i64
        ],
        |row| row.get(0),
    )?;
    let mut insert = txn.connection.prepare_cached(sql!("needs_write"))?;
    for (set, needs) in plan.needs_sets.iter().enumerate() {
        insert.execute(params![no, set as i64, needs.needs.len() as i64, 0, 0, 0])?;
    }
    Ok(())
}

/// Adds the tasks of some positions.
pub(in crate::sqlite) fn add(txn: &Txn<'_>, run: RunId, positions: std::ops::Range<Position>) -> Done<()> {
    let head = txn.head(run)?;
    let mut insert = txn.connection.prepare_cached(sql!("submit_task"))?;
    for position in positions {
        // What waits for nothing goes straight into the line for a place; `end` opens it from there.
        let is_ready = head.head.plan.needs_set_of[position as usize].is_none()
            && head.head.plan.step(position).condition.is_none();
        let (gate, rank) = if is_ready { (Gate::MaxParallel, Some(txn.now.0)) } else { (Gate::Needs, None) };
        insert.execute(params![head.no, position, -head.no, gate.as_str(), rank])?;
    }
    Ok(())
}

/// Makes the run visible, and starts it.
pub(in crate::sqlite) fn end(txn: &Txn<'_>, run: RunId, submission: &Submission) -> Done<()> {
    txn.connection.prepare_cached(sql!("submit_end"))?.execute(params![run.to_string(), txn.now.0])?;
    on_run(txn, run, |keeper| keeper.begin(submission))
}
