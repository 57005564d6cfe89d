//! Sessions begin and end, and runs change hands: `register`, `reap` (also `retire`), `adopt`.

use laneway_core::definition::OnLost;
use laneway_core::event::{RunAdopted, TaskLost};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::TaskMove;
use laneway_torture::{Bug, has};
use rusqlite::params;
use serde_json::Map;

use super::finish::{EndedBy, Ending, Record, end, keep_attempt};
use crate::error::Error;
use crate::fence::ClaimRef;
use crate::model::NewSession;
use crate::sqlite::run_work::RunWork;
use crate::sqlite::txn::{Done, Txn, sql};

/// How often a task may be lost with its node before it fails: a step that kills its node must not do so for
/// ever.
const MAX_LOST: u32 = 3;

pub(in crate::sqlite) fn register(txn: &Txn<'_>, session: SessionId, node: &NewSession) -> Done<()> {
    txn.connection.prepare_cached(sql!("register"))?.execute(params![
        session.to_string(),
        node.node,
        node.pid,
        txn.now.0
    ])?;
    Ok(())
}

/// Returns everything that a session held, and forgets it. The caller has proof that it is over.
/// Gives the number of tasks, or `None` when somebody else has reaped it before.
pub(in crate::sqlite) fn reap(txn: &Txn<'_>, session: SessionId) -> Done<Option<usize>> {
    // Another process may have reaped it since we last heard of it.
    txn.shelf.forget();
    let Some(node) = txn.node(session)? else { return Ok(None) };
    let id = session.to_string();
    let mut held: Vec<(i64, Position, u32)> = txn
        .connection
        .prepare_cached(sql!("tasks_held"))?
        .query_map([&id], |row| Ok((txn.about(row.get(0)?), row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if has(Bug::LostDropped) {
        held.clear();
    }
    for of_run in held.chunk_by(|a, b| a.0 == b.0) {
        let run = txn.run_id(of_run[0].0)?;
        let mut work = RunWork::load(txn, run)?;
        for (_, position, attempt) in of_run {
            lose(&mut work, &ClaimRef { run, position: *position, attempt: *attempt, session }, &node)?;
        }
        work.conclude()?;
    }
    discard_half_submitted(txn, &id)?;
    txn.connection.prepare_cached(sql!("reap_runs"))?.execute([&id])?;
    txn.connection.prepare_cached(sql!("reap_session"))?.execute([&id])?;
    txn.shelf.forget();
    Ok(Some(held.len()))
}

/// One claim of a dead session. Whether it ever started does not matter: nobody can know that it did not.
pub(in crate::sqlite) fn lose(work: &mut RunWork<'_, '_>, claim: &ClaimRef, node: &str) -> Done<()> {
    let task = work.task(claim.position)?;
    let ending = |step, reason: Reason, detail: Option<String>| Ending {
        by: EndedBy::Reaper,
        step,
        reason: Some(reason),
        detail,
        exit_code: None,
        output: Map::new(),
    };
    if let Some(reason) = task.stop {
        // It was to be stopped, and it has been.
        end(work, claim, &task, ending(TaskMove::Cancel, reason, None))?;
        return Ok(());
    }
    if work.step(claim.position).on_lost == OnLost::Fail || task.lost >= MAX_LOST {
        let detail = match task.lost {
            0 => format!("its node {node} died"),
            before => format!("its node {node} died, as {before} before it"),
        };
        end(work, claim, &task, ending(TaskMove::Fail, Reason::Lost, Some(detail)))?;
        return Ok(());
    }
    task.status.next(TaskMove::Requeue)?;
    work.txn.connection.prepare_cached(sql!("finish_lost"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string(),
        node
    ])?;
    let record = Record {
        outcome: "lost",
        reason: Some(Reason::Lost),
        detail: None,
        exit_code: None,
        started_at: task.started_at,
        took_ms: None,
    };
    keep_attempt(work, claim, &record)?;
    if task.is_ahead && task.started_at.is_none() {
        work.admit(claim.position)?;
    }
    let step = work.name(claim.position);
    work.append(TaskLost { step, attempt: claim.attempt, node: node.to_owned() })?;
    work.leave();
    work.examine_later(claim.position);
    Ok(())
}

/// A large submit that its process did not live to complete: nobody has seen it, nobody was told of it.
fn discard_half_submitted(txn: &Txn<'_>, session: &str) -> Done<()> {
    for delete in [sql!("discard_tasks"), sql!("discard_needs_sets"), sql!("discard_runs")] {
        txn.connection.prepare_cached(delete)?.execute([session])?;
    }
    Ok(())
}

pub(in crate::sqlite) fn adopt(txn: &Txn<'_>, run: RunId, session: SessionId) -> Done<()> {
    let mut work = RunWork::load(txn, run)?;
    if work.status.is_final() {
        return Err(Error::Ended { run, status: work.status }.into());
    }
    let id = session.to_string();
    match work.owner.as_deref() {
        Some(owner) if owner == id => return Ok(()),
        Some(owner) => {
            // A row of a session is there as long as nobody has proof of its death.
            let owner = SessionId::parse(owner).map(|owner| txn.node(owner)).transpose()?.flatten();
            if let Some(node) = owner {
                return Err(Error::Owned { run, node: node.to_string() }.into());
            }
        }
        None => {}
    }
    let node = txn.node(session)?.ok_or(Error::SessionOver { session })?;
    work.owner = Some(id);
    work.append(RunAdopted { node: node.to_string() })?;
    work.conclude()
}
