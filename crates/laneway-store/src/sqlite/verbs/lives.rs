//! Sessions begin and end, and runs change hands: `register`, `renew`, `offer_containers`, `drain`, `reap` (also `retire`), `adopt`. What nodes
//! that take work of others do is told in a stream of their own.

use std::collections::BTreeMap;

use laneway_core::class::{self, Offer};
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{
    Leaving, NodeDraining, NodeEngine, NodeFact, NodeJoined, NodeLost, NodeStopping,
};
use laneway_core::plan::Position;
use laneway_torture::{Bug, has};
use rusqlite::{OptionalExtension, params};

use super::children;
use crate::error::Error;
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::model::{LOSSES_KEPT, NewSession, Tally, Whom};
use crate::offer;
use crate::sqlite::classes;
use crate::sqlite::migrate::KNOWN;
use crate::sqlite::pools;
use crate::sqlite::read;
use crate::sqlite::run_work::{Follows, follow, on_run};
use crate::sqlite::txn::{Done, Failure, Txn, sql};
use crate::tally;

/// Gives what schema the store has, if this program is too old for it.
pub(in crate::sqlite) fn register(txn: &Txn<'_>, session: SessionId, node: &NewSession) -> Done<Option<i64>> {
    let offer = node.offer.as_ref().map(offer::to_text);
    let registered = txn.connection.prepare_cached(sql!("register"))?.execute(params![
        session.to_string(),
        node.node,
        node.pid,
        txn.now.0,
        node.slots,
        offer,
        node.token,
        node.token.as_ref().map(|_| i64::try_from(node.lease.ttl.as_millis()).unwrap_or(i64::MAX / 2)),
        KNOWN,
        node.fires
    ])?;
    if registered == 0 {
        return Ok(Some(txn.connection.pragma_query_value(None, "user_version", |row| row.get(0))?));
    }
    if let Some(offer) = &node.offer {
        let joined = NodeJoined { pid: node.pid, slots: node.slots, labels: offer.labels.clone() };
        tell(txn, session, &node.node, joined.into())?;
        offer_to_all(txn, session, offer)?;
    }
    Ok(None)
}

/// Notes what a session has done, and renews its lease, if it lives by one.
pub(in crate::sqlite) fn renew(txn: &Txn<'_>, session: SessionId, tally: Tally) -> Done<()> {
    let Tally { asks, contentions, .. } = tally;
    let noted = params![session.to_string(), tally::to_text(tally), asks, contentions, txn.now.0];
    match txn.connection.prepare_cached(sql!("renew"))?.execute(noted)? {
        0 => Err(Error::SessionOver { session }.into()),
        _ => Ok(()),
    }
}

/// Reads what a session holds as a verb: who only looks cannot set a run aside of which it could not read something, and nobody else may
/// ever look at it while its holder lives.
pub(in crate::sqlite) fn examine_held(txn: &Txn<'_>, session: SessionId) -> Done<()> {
    let id = session.to_string();
    let held: Vec<(i64, Position, u32, u32)> = txn
        .connection
        .prepare_cached(sql!("tasks_held"))?
        .query_map([&id], |row| Ok((txn.about(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (no, _, _, _) in held {
        txn.run_id(no)?;
    }
    let mut statement = txn.connection.prepare_cached(sql!("stops"))?;
    let mut rows = statement.query([&id])?;
    while let Some(row) = rows.next()? {
        let is_set_aside: bool = row.get(4)?;
        if !is_set_aside {
            read::stop(row, session, |no| txn.run_id(no))?;
        }
    }
    Ok(())
}

/// Its engine has come or gone: it takes other classes from here on.
pub(in crate::sqlite) fn offer_containers(txn: &Txn<'_>, session: SessionId, answers: bool) -> Done<()> {
    let id = session.to_string();
    let known: Option<(String, Option<String>, bool)> = txn
        .connection
        .prepare_cached(sql!("session_offer"))?
        .query_row([&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((node, stored, is_draining)) = known else { return Err(Error::SessionOver { session }.into()) };
    let Some(offer) = stored.as_deref().and_then(offer::from_text) else { return Ok(()) };
    if offer.has_container == answers {
        return Ok(());
    }
    let offer = Offer { has_container: answers, ..offer };
    txn.connection.prepare_cached(sql!("session_reoffer"))?.execute(params![id, offer::to_text(&offer)])?;
    txn.connection.prepare_cached(sql!("takers_of_others_remove"))?.execute([&id])?;
    if !is_draining {
        offer_to_all(txn, session, &offer)?;
    }
    tell(txn, session, &node, NodeEngine { answers }.into())
}

/// They keep what they hold, and are offered nothing more.
pub(in crate::sqlite) fn drain(txn: &Txn<'_>, whom: &Whom, why: &Leaving) -> Done<Vec<SessionId>> {
    let (node, session) = match whom {
        Whom::Node(node) => (Some(node.as_str()), None),
        Whom::Session(session) => (None, Some(session.to_string())),
    };
    let told: Vec<(String, String, bool)> = txn
        .connection
        .prepare_cached(sql!("drain"))?
        .query_map(params![node, session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (id, node, takes_others) in told {
        txn.connection.prepare_cached(sql!("takers_remove"))?.execute([&id])?;
        if takes_others {
            let session = SessionId::parse(&id).ok_or_else(|| unreadable("session", &id))?;
            tell(txn, session, &node, NodeDraining { why: why.clone() }.into())?;
        }
    }
    let all: Vec<String> = txn
        .connection
        .prepare_cached(sql!("sessions_of"))?
        .query_map(params![node, session], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    all.iter().map(|id| SessionId::parse(id).ok_or_else(|| unreadable("session", id).into())).collect()
}

fn tell(txn: &Txn<'_>, session: SessionId, node: &str, fact: NodeFact) -> Done<()> {
    let (id, body) = (session.to_string(), fact.body_text());
    let event = params![txn.now.0, node, id, fact.name(), fact.version(), body];
    txn.connection.prepare_cached(sql!("node_event_append"))?.execute(event)?;
    if matches!(fact, NodeFact::NodeLost(_)) {
        txn.connection.prepare_cached(sql!("loss_count"))?.execute([node])?;
        txn.connection.prepare_cached(sql!("losses_forget"))?.execute([LOSSES_KEPT])?;
    }
    Ok(())
}

/// A node takes what it can run, and what nobody could run before may go on.
fn offer_to_all(txn: &Txn<'_>, session: SessionId, offer: &Offer) -> Done<()> {
    for (class, asked) in classes::all(txn)? {
        if !class::can_run(offer, &asked) {
            continue;
        }
        let room = asked.room.as_ref().map(|room| (room, offer.ports));
        classes::add_taker(txn, class, session, class::reluctance(offer, &asked), room)?;
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

/// Returns everything that a session held, and forgets it. The caller has proof that it is over, or the session itself says
/// so, and why. Gives the number of tasks, or `None` when somebody else has reaped it before.
pub(in crate::sqlite) fn reap(
    txn: &Txn<'_>,
    session: SessionId,
    why: Option<&Leaving>,
    max_lost: u32,
) -> Done<Option<usize>> {
    // Another process may have reaped it since we last heard of it.
    txn.shelf.forget();
    let id = session.to_string();
    let known: Option<(String, bool)> = txn
        .connection
        .prepare_cached(sql!("session_leaving"))?
        .query_row([&id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((node, takes_others)) = known else { return Ok(None) };
    let mut held: Vec<(i64, Position, u32, u32)> = txn
        .connection
        .prepare_cached(sql!("tasks_held"))?
        .query_map([&id], |row| Ok((txn.about(row.get(0)?), row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    if has(Bug::LostDropped) {
        held.clear();
    }
    // First, so that what it held does not count on it: a task that nobody else can run waits for a node.
    txn.connection.prepare_cached(sql!("takers_remove"))?.execute([&id])?;
    txn.connection.prepare_cached(sql!("reap_queued"))?.execute([&id])?;
    // Pinned runs as a whole, whether it held something of them or not.
    let mut of_runs: BTreeMap<i64, Vec<(Position, u32, u32)>> = txn
        .connection
        .prepare_cached(sql!("runs_bound"))?
        .query_map([&id], |row| Ok((row.get(0)?, Vec::new())))?
        .collect::<rusqlite::Result<_>>()?;
    for (no, position, attempt, generation) in &held {
        of_runs.entry(*no).or_default().push((*position, *attempt, *generation));
    }
    // What one run lets go of is handed on when all of them have let go: a waiter may need keys of two.
    let mut follows = Follows::default();
    for (no, of_run) in of_runs {
        let run = txn.run_id(no)?;
        follows.change(txn, run, |keeper| {
            keeper.release(session, &node)?;
            for (position, attempt, generation) in &of_run {
                let (position, attempt, generation) = (*position, *attempt, *generation);
                let claim = ClaimRef { run, position, attempt, generation, session };
                keeper.lose(&claim, &node, max_lost)?;
            }
            Ok(())
        })?;
    }
    follow(txn, follows)?;
    discard_half_submitted(txn, &id)?;
    txn.connection.prepare_cached(sql!("reap_runs"))?.execute([&id])?;
    if takes_others {
        pools::end_left_behind(txn, session)?;
    }
    for delete in [sql!("reap_pools"), sql!("reap_wishes"), sql!("reap_session")] {
        txn.connection.prepare_cached(delete)?.execute([&id])?;
    }
    if takes_others {
        let returned = u32::try_from(held.len()).unwrap_or(u32::MAX);
        let fact = match why {
            Some(why) => NodeStopping { why: why.clone(), returned }.into(),
            None => NodeLost { returned }.into(),
        };
        tell(txn, session, &node, fact)?;
    }
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
    let workflow = txn.head(run)?.head.plan.workflow.name.clone();
    on_run(txn, run, |keeper| keeper.adopt(session))?;
    for child in children::unended(txn, txn.shelf.plans(), run)? {
        match on_run(txn, child, |keeper| keeper.adopt(session)) {
            // Somebody else goes on with it, or nobody may: that is no reason not to go on with the rest.
            Ok(()) | Err(Failure::Refused(Error::Owned { .. } | Error::SetAside { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    // One that was queued when its owner died has been passed over since.
    follow(txn, Follows::of_workflow(workflow))
}
