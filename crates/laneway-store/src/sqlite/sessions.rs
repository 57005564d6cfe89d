//! Sessions of nodes: register, renew, reap, retire, drain. Events of shared nodes go to a stream
//! of their own.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::class::{self, Offer};
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{
    Leaving, NodeDraining, NodeEngine, NodeFact, NodeJoined, NodeLost, NodeStopping,
};
use laneway_core::plan::Position;
use laneway_core::pool::PoolFact;
use laneway_torture::{Bug, Point, has, pass};
use rusqlite::{OptionalExtension, params};
use uuid::Uuid;

use crate::contract::Sessions;
use crate::error::{Error, Result, put_off};
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::lease::LeaseFile;
use crate::locks::Life;
use crate::model::{KeptPool, LOSSES_KEPT, NewSession, Orders, Reaped, RemoteView, Renewed, Tally, Whom};
use crate::sqlite::migrate::{self, KNOWN};
use crate::sqlite::run_work::{Follows, follow, on_run};
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{self, Done, Failure, Txn};
use crate::sqlite::work::children;
use crate::sqlite::{SqliteStore, classes, frozen, pools, read, remote};
use crate::{offer, tally};

#[async_trait]
impl Sessions for SqliteStore {
    async fn register(&self, node: NewSession) -> Result<SessionId> {
        let session = SessionId::new(Uuid::now_v7());
        if node.token.is_none() {
            // A stopped `laneway run` (Ctrl-Z) keeps its tasks: it owns its run.
            let expires = node.offer.is_some();
            self.shared.locks.hold_leased(session, node.lease, expires)?;
        }
        pass(Point::RegisterLocked);
        let written = self.write(move |txn| register(txn, session, &node)).await;
        if !matches!(written, Ok(None)) {
            self.shared.locks.release(session);
        }
        pass(Point::RegisterAfter);
        match written? {
            None => Ok(session),
            Some(found) => Err(Error::Newer { path: self.path.clone(), found, known: migrate::KNOWN }),
        }
    }

    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed> {
        let ((renewed, has_trouble), (told, has_lease)) = self.look(|connection, _| {
            let told = read::done(connection, session)?;
            Ok((read::renewed(connection, session)?, told))
        })?;
        if has_trouble {
            self.write(move |txn| examine_held(txn, session)).await?;
        }
        // Nothing is written for a node that only looks for work.
        if has_lease || told != (Tally { asks: 0, contentions: 0, ..tally }) {
            self.write(move |txn| renew(txn, session, tally)).await?;
        }
        Ok(renewed)
    }

    async fn orders(&self, session: SessionId) -> Result<Orders> {
        let (stops, wishes) = self.look(|connection, _| {
            read::alive(connection, session)?;
            let stops = read::stops(connection, session, |no| read::run_id(connection, no))?;
            Ok((stops, pools::wishes(connection, session)?))
        })?;
        if stops.has_trouble {
            self.write(move |txn| examine_held(txn, session)).await?;
        }
        Ok(Orders { stops: stops.list, wishes: wishes.list, unreadable: wishes.unreadable })
    }

    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()> {
        self.write(move |txn| offer_containers(txn, session, answers)).await
    }

    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()> {
        self.write(move |txn| pools::tell(txn, session, &facts)).await
    }

    async fn keep_pools(&self, session: SessionId, kept: Vec<KeptPool>) -> Result<()> {
        self.write(move |txn| pools::keep(txn, session, &kept)).await
    }

    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()> {
        pass(Point::RetireBefore);
        let max_lost = self.max_lost;
        self.write(move |txn| reap(txn, session, Some(&why), max_lost)).await?;
        pass(Point::RetireAfter);
        self.shared.locks.release(session);
        Ok(())
    }

    async fn reap(&self) -> Result<Reaped> {
        // Before the rows are read: a session whose file was seen then, and which has no row now,
        // is over or begins.
        let mut files = self.shared.locks.list();
        let sessions = self.read(remote::sessions).await?;
        files.retain(|file| !sessions.iter().any(|listed| listed.session == *file));
        self.shared.locks.sweep(files.into_iter());
        let (mut reaped, mut unread) = (Reaped::default(), Ok(()));
        for remote::Listed { session, node, lease } in sessions {
            if let Some(lease) = lease {
                frozen::look_again(&mut reaped, lease.look_again_in);
                if lease.has_ended {
                    let one = self.reap_one(session, node, remote::is_expired, &mut reaped).await;
                    put_off(&mut unread, one)?;
                }
                continue;
            }
            match self.look_for_a_freeze(session, &mut reaped).await? {
                Life::Alive => {}
                Life::Ending => {
                    tracing::warn!(%session, node, "its warden still has steps to kill; its tasks stay where they are");
                    reaped.stuck.extend(self.stuck(session, node));
                }
                // The proof is held until the transaction has committed.
                proof @ Life::Dead(_) => {
                    self.end_a_frozen_writer(session).await;
                    pass(Point::ReapBefore);
                    let one = self.reap_one(session, node, |_, _| Ok(true), &mut reaped).await;
                    put_off(&mut unread, one)?;
                    drop(proof);
                }
            }
        }
        unread.map(|()| reaped)
    }

    async fn end_stopped(&self, session: SessionId) -> Result<bool> {
        Ok(self.end_a_stopped_process(session).await)
    }

    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>> {
        self.read(move |connection, shared| remote::view(connection, shared, session)).await
    }

    async fn remotes(&self) -> Result<Vec<SessionId>> {
        self.read(|connection, _| remote::all(connection)).await
    }

    fn takes_lease(&self) -> bool {
        false
    }

    /// A session lives while its process holds a lock.
    fn lease_file(&self, session: SessionId) -> Option<Arc<LeaseFile>> {
        self.shared.locks.own_lease(session)
    }
}

impl SqliteStore {
    /// Reaps sessions of which we hold proof, one transaction each, so that a large one blocks
    /// nobody long. What is no proof for ever is asked again inside of it.
    async fn reap_one(
        &self,
        session: SessionId,
        node: String,
        is_still_over: impl Fn(&txn::Txn<'_>, SessionId) -> Done<bool> + Send + 'static,
        reaped: &mut Reaped,
    ) -> Result<()> {
        let max_lost = self.max_lost;
        let reap = move |txn: &mut txn::Txn<'_>| {
            if is_still_over(txn, session)? { reap(txn, session, None, max_lost) } else { Ok(None) }
        };
        let tasks = self.write(reap).await?;
        if let Some(tasks) = tasks {
            reaped.nodes.push(node);
            reaped.tasks += tasks;
        }
        pass(Point::ReapAfter);
        self.shared.locks.forget(session);
        Ok(())
    }
}

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

/// Reads what a session holds as a verb: who only looks cannot set a run aside of which it could
/// not read something, and nobody else may ever look at it while its holder lives.
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

/// Returns everything that a session held, and forgets it. The caller has proof that it is over, or
/// the session itself says so, and why. Gives the number of tasks, or `None` when somebody else has
/// reaped it before.
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
    // First, so that what it held does not count on it: a task that nobody else can run waits for a
    // node.
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
    // What one run lets go of is handed on when all of them have let go: a waiter may need keys of
    // two.
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

/// A large submit that its process did not live to complete: nobody has seen it, nobody was told of
/// it.
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
            // Somebody else goes on with it, or nobody may: that is no reason not to go on with the
            // rest.
            Ok(()) | Err(Failure::Refused(Error::Owned { .. } | Error::SetAside { .. })) => {}
            Err(failure) => return Err(failure),
        }
    }
    // One that was queued when its owner died has been passed over since.
    follow(txn, Follows::of_workflow(workflow))
}
