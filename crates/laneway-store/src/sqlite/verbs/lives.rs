//! Sessions begin and end, and runs change hands: `register`, `reap` (also `retire`), `adopt`.

use laneway_core::class::{self, Offer};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_torture::{Bug, has};
use rusqlite::params;

use crate::fence::ClaimRef;
use crate::model::NewSession;
use crate::offer;
use crate::sqlite::classes;
use crate::sqlite::run_work::{Follows, follow, on_run};
use crate::sqlite::txn::{Done, Txn, sql};

pub(in crate::sqlite) fn register(txn: &Txn<'_>, session: SessionId, node: &NewSession) -> Done<()> {
    let offer = node.offer.as_ref().map(offer::to_text);
    txn.connection.prepare_cached(sql!("register"))?.execute(params![
        session.to_string(),
        node.node,
        node.pid,
        txn.now.0,
        node.slots,
        offer
    ])?;
    match &node.offer {
        Some(offer) => offer_to_all(txn, session, offer),
        None => Ok(()),
    }
}

/// A node takes what it can run, and what nobody could run before may go on.
fn offer_to_all(txn: &Txn<'_>, session: SessionId, offer: &Offer) -> Done<()> {
    for (class, text) in classes::all(txn)? {
        if !class::can_run(offer, &text) {
            continue;
        }
        classes::add_taker(txn, class, session)?;
        let waiting: Vec<(i64, Position)> = txn
            .connection
            .prepare_cached(sql!("tasks_for_nodes"))?
            .query_map([class], |row| Ok((txn.about(row.get(0)?), row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        for of_run in waiting.chunk_by(|a, b| a.0 == b.0) {
            on_run(txn, txn.run_id(of_run[0].0)?, |keeper| {
                of_run.iter().for_each(|(_, position)| keeper.examine_later(*position));
                Ok(())
            })?;
        }
    }
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
    // First, so that what it held does not count on it: a task that nobody else can run waits for a node.
    txn.connection.prepare_cached(sql!("takers_remove"))?.execute([&id])?;
    for of_run in held.chunk_by(|a, b| a.0 == b.0) {
        let run = txn.run_id(of_run[0].0)?;
        on_run(txn, run, |keeper| {
            for (_, position, attempt) in of_run {
                keeper.lose(&ClaimRef { run, position: *position, attempt: *attempt, session }, &node)?;
            }
            Ok(())
        })?;
    }
    discard_half_submitted(txn, &id)?;
    txn.connection.prepare_cached(sql!("reap_runs"))?.execute([&id])?;
    txn.connection.prepare_cached(sql!("reap_session"))?.execute([&id])?;
    txn.shelf.forget();
    Ok(Some(held.len()))
}

/// A large submit that its process did not live to complete: nobody has seen it, nobody was told of it.
fn discard_half_submitted(txn: &Txn<'_>, session: &str) -> Done<()> {
    for delete in [sql!("discard_tasks"), sql!("discard_needs_sets"), sql!("discard_runs")] {
        txn.connection.prepare_cached(delete)?.execute([session])?;
    }
    Ok(())
}

pub(in crate::sqlite) fn adopt(txn: &Txn<'_>, run: RunId, session: SessionId) -> Done<()> {
    let is_local = txn.head(run)?.is_local;
    let workflow = txn.head(run)?.head.plan.workflow.name.clone();
    on_run(txn, run, |keeper| keeper.adopt(session, is_local))?;
    // One that was queued when its owner died has been passed over since.
    follow(txn, Follows::of_workflow(workflow))
}
