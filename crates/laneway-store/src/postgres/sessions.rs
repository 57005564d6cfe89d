//! Sessions of nodes: register, renew, reap, retire, drain. Events of shared nodes go to a stream
//! of their own.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::class::Offer;
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{
    Leaving, NodeDraining, NodeEngine, NodeFact, NodeJoined, NodeLost, NodeStopping,
};
use laneway_core::plan::Position;
use laneway_core::pool::PoolFact;
use laneway_torture::{Bug, Point, has, pass};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::contract::Sessions;
use crate::error::{Error, Result, put_off};
use crate::fence::ClaimRef;
use crate::locks::Life;
use crate::model::{KeptPool, LOSSES_KEPT, NewSession, Orders, Reaped, RemoteView, Renewed, Tally, Whom};
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{FollowUp, record, work};
use crate::postgres::link::{Begin, Link, Sql, sql};
use crate::postgres::lock_order::Acquisition;
use crate::postgres::migrate::{self, KNOWN};
use crate::postgres::read::{self, claim_of, run_of};
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::settle::{self, Progress};
use crate::postgres::shelf::Shelf;
use crate::postgres::work::children;
use crate::postgres::{PostgresStore, RUNS_AT_ONCE, classes, pools, remote, row};
use crate::{offer, tally};

#[async_trait]
impl Sessions for PostgresStore {
    async fn register(&self, node: NewSession) -> Result<SessionId> {
        let session = SessionId::new(Uuid::now_v7());
        let (node, is_remote) = (&node, node.token.is_some());
        if !is_remote {
            self.locks.hold(session)?;
        }
        let written =
            self.base.change(|link, terms| async move { register(&link, terms, session, node).await }).await;
        if !matches!(written, Ok(None)) {
            self.locks.release(session);
        }
        if let Some(found) = written? {
            let path = self.base.target.address.path();
            return Err(Error::Newer { path, found, known: migrate::KNOWN });
        }
        if !is_remote {
            self.own.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
        Ok(session)
    }

    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed> {
        let renewed =
            self.base.write(|link, terms| async move { renew(&link, terms, session, tally).await }).await?;
        let (renewed, has_trouble) = renewed.ok_or(Error::SessionOver { session })?;
        if has_trouble {
            self.examine_held(session).await?;
        }
        Ok(renewed)
    }

    async fn orders(&self, session: SessionId) -> Result<Orders> {
        let (orders, has_trouble) =
            self.base.ask(|link| async move { read::orders(&link, session).await }).await?;
        if has_trouble {
            self.examine_held(session).await?;
        }
        Ok(orders)
    }

    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()> {
        let said = self
            .base
            .change(|link, terms| async move { offer_containers(&link, terms, session, answers).await })
            .await?;
        if !said {
            return Err(Error::SessionOver { session });
        }
        // Also when nothing is new: the one who said so before may not have got to the end of this.
        let waiting = self.base.ask(|link| async move { waiting_for(&link, session).await }).await?;
        for runs in waiting.chunks(RUNS_AT_ONCE) {
            self.base
                .change(|link, terms| async move { go_on(&self.base.shelf, &link, terms, runs).await })
                .await?;
        }
        Ok(())
    }

    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()> {
        let facts = &facts;
        self.base.write(|link, terms| async move { pools::tell(&link, terms, session, facts).await }).await
    }

    async fn keep_pools(&self, session: SessionId, kept: Vec<KeptPool>) -> Result<()> {
        let kept = &kept;
        self.base.write(|link, _| async move { pools::keep(&link, session, kept).await }).await
    }

    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()> {
        self.reap_one(session, &End::Retired(why)).await?;
        self.own.lock().unwrap_or_else(PoisonError::into_inner).retain(|own| *own != session);
        self.locks.release(session);
        Ok(())
    }

    async fn reap(&self) -> Result<Reaped> {
        let own = &self.own();
        let next_in = || self.base.write(|link, terms| async move { next_expiry(&link, terms, own).await });
        let (mut reaped, mut unread) = (Reaped::default(), Ok(()));
        self.reap_neighbours(&mut reaped, &mut unread).await?;
        // Every node asks this every few seconds, and usually all others are alive: one statement
        // then.
        reaped.next_in = next_in().await?;
        if reaped.next_in.is_none_or(|left| !left.is_zero()) {
            unread?;
            return Ok(reaped);
        }
        let expired = self.base.write(|link, terms| async move { expired(&link, terms, own).await }).await?;
        for (session, _) in expired {
            pass(Point::ExpiredFound);
            let one = self.reap_one(session, &End::Expired).await;
            if let Some((node, tasks)) = put_off(&mut unread, one)?.flatten() {
                pass(Point::ExpiredReaped);
                reaped.nodes.push(node);
                reaped.tasks += tasks;
            }
        }
        unread?;
        reaped.next_in = next_in().await?;
        Ok(reaped)
    }

    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>> {
        let now = self.base.now();
        self.base.ask(|link| async move { remote::view(&link, now, session).await }).await
    }

    async fn remotes(&self) -> Result<Vec<SessionId>> {
        self.base.ask(|link| async move { remote::all(&link).await }).await
    }

    fn takes_lease(&self) -> bool {
        true
    }
}

impl PostgresStore {
    fn own(&self) -> Vec<SessionId> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Processes of this host, in this directory, that are proven to be dead: after a restart
    /// nobody waits for a lease.
    async fn reap_neighbours(&self, reaped: &mut Reaped, unread: &mut Result<()>) -> Result<()> {
        let own = self.own();
        for session in self.locks.list().into_iter().filter(|session| !own.contains(session)) {
            match self.locks.look_after_its_warden(session).await? {
                Life::Alive | Life::Ending => {}
                // The proof is held until the transaction has committed.
                proof @ Life::Dead(_) => {
                    let one = put_off(unread, self.reap_one(session, &End::Dead).await)?;
                    if let Some((node, tasks)) = one.clone().flatten() {
                        reaped.nodes.push(node);
                        reaped.tasks += tasks;
                    }
                    if one.is_some() {
                        self.locks.forget(session);
                    }
                    drop(proof);
                }
            }
        }
        Ok(())
    }

    async fn reap_one(&self, session: SessionId, end: &End) -> Result<Option<(String, usize)>> {
        self.base
            .change(|link, terms| async move { reap(&self.base.shelf, &link, terms, session, end).await })
            .await
    }

    /// Sets runs aside of which something that a session holds cannot be read.
    async fn examine_held(&self, session: SessionId) -> Result<()> {
        self.base.write(|link, _| async move { examine_held(&link, session).await }).await
    }
}

/// Gives what schema the store has, if this program is too old for it.
pub(in crate::postgres) async fn register(
    link: &Link,
    terms: Terms,
    session: SessionId,
    node: &NewSession,
) -> Done<Option<i64>> {
    let (id, pid, slots) = (session.to_string(), i64::from(node.pid), i64::from(node.slots));
    let (now, offer) = (terms.now.map(|now| now.0), node.offer.as_ref().map(offer::to_text));
    let ttl = i64::try_from(node.lease.ttl.as_millis()).unwrap_or(i64::MAX);
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("register", TEXT, TEXT, INT8, INT8, INT8, INT8, TEXT, TEXT, INT8, BOOL),
        vec![&id, &node.node, &pid, &ttl, &now, &slots, &offer, &node.token, &KNOWN, &node.fires],
    );
    let answers = if node.offer.is_some() { flight.land().await? } else { flight.commit().await? };
    if answers.first().is_none_or(Vec::is_empty) {
        link.roll_back().await;
        let found = link.row(sql!("migration_last"), &[]).await?;
        return Ok(Some(found.map_or(Ok(KNOWN), |found| found.try_get(0))?));
    }
    let Some(offer) = &node.offer else { return Ok(None) };
    classes::offer_to_all(link, session, offer).await?;
    // What waited for a node like it goes on behind this transaction: runs are locked before
    // classes.
    record(link, FollowUp::Node(session)).await?;
    let joined = NodeJoined { pid: node.pid, slots: node.slots, labels: offer.labels.clone() };
    tell(link, terms, vec![(session, node.node.clone(), joined.into())]).await?;
    link.flight().commit().await?;
    Ok(None)
}

/// Its engine has come or gone: it takes other classes from here on; what waited for one that does
/// goes on behind that (`waiting_for`). False: the session is over.
pub(in crate::postgres) async fn offer_containers(
    link: &Link,
    terms: Terms,
    session: SessionId,
    answers: bool,
) -> Done<bool> {
    let id = session.to_string();
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("session_offer", TEXT), vec![&id]);
    let found = flight.land().await?.pop().unwrap_or_default();
    let Some(found) = found.first() else {
        link.roll_back().await;
        return Ok(false);
    };
    let (node, stored) = (row::text(found, 0)?, row::maybe_text(found, 1)?);
    let Some(offer) = stored.as_deref().and_then(offer::from_text).filter(|it| it.has_container != answers)
    else {
        link.roll_back().await;
        return Ok(true);
    };
    let offer = Offer { has_container: answers, ..offer };
    let (is_draining, text): (bool, String) = (found.try_get(2)?, offer::to_text(&offer));
    // Before anything is removed: who makes a class now and has read the old offer adds what is
    // removed here.
    let lock = link.locks.acquire_classes()?;
    let mut flight = link.flight();
    lock.send(&mut flight);
    flight.ask(sql!("session_reoffer", TEXT, TEXT), vec![&id, &text]);
    flight.ask(sql!("takers_of_others_remove", TEXT), vec![&id]);
    flight.land().await?;
    if !is_draining {
        classes::offer_to_all(link, session, &offer).await?;
    }
    tell(link, terms, vec![(session, node, NodeEngine { answers }.into())]).await?;
    link.flight().commit().await?;
    Ok(true)
}

/// Tasks of one run that wait for a node.
pub(in crate::postgres) type Waiting = (RunId, Vec<Position>);

/// What waits for a node though this session takes it, in the order of locks. Asked behind its
/// offer, whose transaction holds the session's row and must be over before its lease is renewed:
/// there may be many runs.
pub(in crate::postgres) async fn waiting_for(link: &Link, session: SessionId) -> Done<Vec<Waiting>> {
    let rows = link.rows(sql!("tasks_for_session", TEXT), &[&session.to_string()]).await?;
    by_run(&rows)
}

/// Looks again at some runs that waited for a node. Whoever has been let go since stays as it is.
pub(in crate::postgres) async fn go_on(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    waiting: &[Waiting],
) -> Done<()> {
    let mut jobs = Vec::with_capacity(waiting.len());
    for (run, positions) in waiting {
        let head = shelf.head(link, *run).await?;
        head.check(positions)?;
        let mut seed = Missing::for_examining(&head.head.plan, positions);
        positions.iter().for_each(|position| seed.add_keys(&head.head, *position));
        jobs.push(Job { head, seed });
    }
    let (_, columns) = work(shelf, link, terms, jobs, |index, keeper| {
        waiting[index].1.iter().for_each(|position| keeper.examine_later(*position));
        Ok(())
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.commit().await?;
    Ok(())
}

/// A session takes work: tasks that waited for a node like it are looked at again, some runs at a
/// time.
pub(in crate::postgres) async fn take_what_waits(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    session: SessionId,
) -> Done<Progress> {
    let follow_up = FollowUp::Node(session);
    let (kind, subject) = (follow_up.kind(), follow_up.subject());
    let seen = link.rows(sql!("follow_ups_of", TEXT, TEXT), &[&kind, &subject]).await?;
    let seen: Vec<i64> = seen.iter().map(|found| Ok(found.try_get(0)?)).collect::<Done<_>>()?;
    let waiting = waiting_for(link, session).await?;
    for runs in waiting.chunks(crate::postgres::RUNS_AT_ONCE) {
        go_on(shelf, link, terms, runs).await?;
    }
    link.begin(Begin::Write).land().await?;
    settle::end(link, &seen).await
}

fn by_run(rows: &[Row]) -> Done<Vec<Waiting>> {
    let mut of_runs: BTreeMap<i64, Waiting> = BTreeMap::new();
    for found in rows {
        let (no, run) = run_of(found)?;
        let position = row::number(found, 2).map_err(|failure| failure.about(no, run))?;
        of_runs.entry(no).or_insert_with(|| (run, Vec::new())).1.push(position);
    }
    Ok(of_runs.into_values().collect())
}

/// What the session holds, as far as it can be read, and whether there is more; `None` when it is
/// over.
pub(in crate::postgres) async fn renew(
    link: &Link,
    terms: Terms,
    session: SessionId,
    tally: Tally,
) -> Done<Option<(Renewed, bool)>> {
    let (id, now, done) = (session.to_string(), terms.now.map(|now| now.0), tally::to_text(tally));
    let [asks, contentions] = [tally.asks, tally.contentions].map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("renew", TEXT, TEXT, INT8, INT8, INT8), vec![&id, &done, &asks, &contentions, &now]);
    // Behind the commit of whatever this session said before; a claim that is under way is not in
    // it yet.
    flight.ask(sql!("session_claims", TEXT), vec![&id]);
    flight.ask(sql!("stops", TEXT), vec![&id]);
    let answers = flight.commit().await?;
    let [renewed, held, stops] = answers.as_slice() else { return Ok(None) };
    if renewed.is_empty() {
        return Ok(None);
    }
    // Its lease has been renewed, whatever can be read of what it holds.
    let (held, stops) = (read::claims(held, session)?, read::stops(stops, session)?);
    let has_trouble = held.has_trouble || stops.has_trouble;
    Ok(Some((Renewed { held: held.list, stops: stops.list }, has_trouble)))
}

/// Reads what a session holds as a verb: who only looks cannot set a run aside of which it could
/// not read something, and nobody else may ever look at it while its holder lives.
pub(in crate::postgres) async fn examine_held(link: &Link, session: SessionId) -> Done<()> {
    let id = session.to_string();
    let mut flight = link.flight();
    flight.ask(sql!("tasks_held", TEXT), vec![&id]);
    flight.ask(sql!("stops", TEXT), vec![&id]);
    let answers = flight.land().await?;
    let [held, stops] = answers.as_slice() else { return Ok(()) };
    for found in held {
        claim_of(found, session)?;
    }
    for found in stops {
        if !found.try_get::<_, bool>(6)? {
            read::stop(found, session)?;
        }
    }
    Ok(())
}

/// They keep what they hold, and are offered nothing more.
pub(in crate::postgres) async fn drain(
    link: &Link,
    terms: Terms,
    whom: &Whom,
    why: &Leaving,
) -> Done<Vec<SessionId>> {
    let (node, session) = match whom {
        Whom::Node(node) => (Some(node.clone()), None),
        Whom::Session(session) => (None, Some(session.to_string())),
    };
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("drain", TEXT, TEXT), vec![&node, &session]);
    flight.ask(sql!("sessions_of", TEXT, TEXT), vec![&node, &session]);
    let answers = flight.land().await?;
    let [told, all] = answers.as_slice() else { return Ok(Vec::new()) };
    let ids: Vec<String> = told.iter().map(|found| row::text(found, 0)).collect::<Done<_>>()?;
    // As in `offer_containers`.
    let lock = if ids.is_empty() { Acquisition::default() } else { link.locks.acquire_classes()? };
    let mut flight = link.flight();
    lock.send(&mut flight);
    for id in &ids {
        flight.ask(sql!("takers_remove", TEXT), vec![id]);
    }
    flight.land().await?;
    let mut facts = Vec::new();
    for found in told {
        if found.try_get(2)? {
            let session = row::word(found, 0, "session", SessionId::parse)?;
            facts.push((session, row::text(found, 1)?, NodeDraining { why: why.clone() }.into()));
        }
    }
    tell(link, terms, facts).await?;
    link.flight().commit().await?;
    all.iter().map(|found| row::word(found, 0, "session", SessionId::parse)).collect()
}

/// Comes last in a transaction: everybody who tells something waits for the same lock.
async fn tell(link: &Link, terms: Terms, facts: Vec<(SessionId, String, NodeFact)>) -> Done<()> {
    if facts.is_empty() {
        return Ok(());
    }
    let (names, now) = (vec!["nodes".to_owned()], terms.now.map(|now| now.0));
    let rows: Vec<_> = facts
        .iter()
        .map(|(session, _, fact)| {
            (session.to_string(), fact.name(), i64::from(fact.version()), fact.body_text())
        })
        .collect();
    let mut flight = link.flight();
    flight.ask(sql!("keys_lock", TEXT_ARRAY), vec![&names]);
    for ((_, node, _), (session, name, version, body)) in facts.iter().zip(&rows) {
        flight.ask(
            sql!("node_event_append", INT8, TEXT, TEXT, TEXT, INT8, TEXT),
            vec![&now, node, session, name, version, body],
        );
    }
    for (_, node, _) in facts.iter().filter(|(_, _, fact)| matches!(fact, NodeFact::NodeLost(_))) {
        flight.ask(sql!("loss_count", TEXT), vec![node]);
        flight.ask(sql!("losses_forget", INT8), vec![&LOSSES_KEPT]);
    }
    flight.land().await?;
    Ok(())
}

/// Sessions that the holder of these may return.
pub(in crate::postgres) async fn expired(
    link: &Link,
    terms: Terms,
    own: &[SessionId],
) -> Done<Vec<(SessionId, String)>> {
    let own: Vec<String> = own.iter().map(ToString::to_string).collect();
    let now = terms.now.map(|now| now.0);
    let sql = match (has(Bug::ReapUnrenewed), has(Bug::ReapTooSoon)) {
        (true, _) => &UNRENEWED,
        (_, true) => &TOO_SOON,
        (false, false) => sql!("reap_expired", TEXT_ARRAY, INT8),
    };
    let rows = link.rows(sql, &[&own, &now]).await?;
    rows.iter()
        .map(|found| Ok((row::word(found, 0, "session", SessionId::parse)?, row::text(found, 1)?)))
        .collect()
}

/// `reap_expired` as seeded bugs have it.
const UNRENEWED: Sql = Sql {
    text: "SELECT id, node FROM sessions WHERE id <> ALL ($1)
           AND expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
           AND pg_postmaster_start_time() + ttl_ms * interval '1 millisecond' <= clock_timestamp()",
    types: &[Type::TEXT_ARRAY, Type::INT8],
};
const TOO_SOON: Sql = Sql {
    text: "SELECT id, node FROM sessions AS victim WHERE id <> ALL ($1)
           AND expires_at <= coalesce($2::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
           AND EXISTS (SELECT 1 FROM sessions WHERE id = ANY ($1) AND renewed_at >= victim.expires_at)",
    types: &[Type::TEXT_ARRAY, Type::INT8],
};

/// When the next lease of others ends.
pub(in crate::postgres) async fn next_expiry(
    link: &Link,
    terms: Terms,
    own: &[SessionId],
) -> Done<Option<Duration>> {
    let own: Vec<String> = own.iter().map(ToString::to_string).collect();
    let now = terms.now.map(|now| now.0);
    let found = link.row(sql!("reap_due", TEXT_ARRAY, INT8), &[&own, &now]).await?;
    let left: Option<i64> = found.map(|found| found.try_get(0)).transpose()?.flatten();
    Ok(left.map(|left| Duration::from_millis(u64::try_from(left).unwrap_or_default())))
}

/// How a session is known to be over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::postgres) enum End {
    /// It says so itself.
    Retired(Leaving),
    /// Its process is gone: somebody holds its lock.
    Dead,
    Expired,
}

/// Returns everything that a session held, and forgets it. Gives its node and the number of tasks,
/// or `None` when it is not over after all, or somebody else has reaped it before.
pub(in crate::postgres) async fn reap(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    session: SessionId,
    end: &End,
) -> Done<Option<(String, usize)>> {
    let (id, is_expired, now) = (session.to_string(), *end == End::Expired, terms.now.map(|now| now.0));
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("reap_lock", TEXT, BOOL, INT8), vec![&id, &is_expired, &now]);
    // Read behind that lock; what it holds can only become less, since it claims nothing any more.
    flight.ask(sql!("tasks_held", TEXT), vec![&id]);
    flight.ask(sql!("runs_owned", TEXT), vec![&id]);
    let answers = flight.land().await?;
    let [locked, held, owned] = answers.as_slice() else { return Ok(None) };
    let Some(node) = locked.first() else {
        link.roll_back().await;
        return Ok(None);
    };
    let (node, takes_others): (String, bool) = (row::text(node, 0)?, node.try_get(1)?);
    let claims: Vec<(i64, ClaimRef)> =
        held.iter().map(|found| claim_of(found, session)).collect::<Done<_>>()?;
    // All runs at once, in order: those that it owns are written as well.
    let mut numbers: Vec<i64> = owned.iter().map(|found| found.try_get(0)).collect::<Result<_, _>>()?;
    numbers.extend(claims.iter().map(|(no, _)| *no));
    let runs = link.locks.acquire_runs(&numbers)?;
    let mut flight = link.flight();
    runs.send(&mut flight);
    // So that what it held does not count on it: a task that nobody else can run waits for a node.
    flight.ask(sql!("takers_remove", TEXT), vec![&id]);
    flight.ask(sql!("reap_queued", TEXT), vec![&id]);
    flight.land().await?;
    // Pinned runs as a whole, whether it held something of them or not.
    let mut of_runs: BTreeMap<i64, (RunId, Vec<ClaimRef>)> = BTreeMap::new();
    for found in owned {
        if found.try_get(2)? {
            let (no, run) = run_of(found)?;
            of_runs.insert(no, (run, Vec::new()));
        }
    }
    for (no, claim) in claims {
        of_runs.entry(no).or_insert_with(|| (claim.run, Vec::new())).1.push(claim);
    }
    let of_runs: Vec<(RunId, Vec<ClaimRef>)> = of_runs.into_values().collect();
    let mut jobs = Vec::with_capacity(of_runs.len());
    for (run, of_run) in &of_runs {
        let head = shelf.head(link, *run).await?;
        head.check(of_run.iter().map(|claim| &claim.position))?;
        let seed = Missing::for_ends_of(&head.head, of_run.iter());
        jobs.push(Job { head, seed });
    }
    let within = Terms { is_begun: true, ..terms };
    let (made, columns) = work(shelf, link, within, jobs, |index, keeper| {
        keeper.release(session, &node)?;
        let mut lost = 0;
        for claim in &of_runs[index].1 {
            // It may have ended between the two looks.
            if keeper.task(claim.position)?.is_held_by(claim) {
                keeper.lose(claim, &node, terms.max_lost)?;
                lost += 1;
            }
        }
        Ok(lost)
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.ask(sql!("reap_runs", TEXT), vec![&id]);
    flight.land().await?;
    if takes_others {
        pools::end_left_behind(link, terms, session).await?;
    }
    let mut flight = link.flight();
    flight.ask(sql!("reap_session", TEXT), vec![&id]);
    // Behind it: nobody adds to them any more.
    flight.ask(sql!("reap_pools", TEXT), vec![&id]);
    flight.ask(sql!("reap_wishes", TEXT), vec![&id]);
    flight.land().await?;
    let tasks: usize = made.iter().map(|made| made.answer).sum();
    if takes_others {
        let returned = u32::try_from(tasks).unwrap_or(u32::MAX);
        let fact = match end {
            End::Retired(why) => NodeStopping { why: why.clone(), returned }.into(),
            End::Dead | End::Expired => NodeLost { returned }.into(),
        };
        tell(link, terms, vec![(session, node.clone(), fact)]).await?;
    }
    link.flight().commit().await?;
    Ok(Some((node, tasks)))
}

pub(in crate::postgres) async fn adopt(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    run: RunId,
    session: SessionId,
) -> Done<()> {
    let head = shelf.head(link, run).await?;
    let seed = Missing { nodes: [session].into(), ..Missing::default() };
    let workflow = head.head.plan.workflow.name.clone();
    link.begin(Begin::Write).land().await?;
    let within = Terms { is_begun: true, ..terms };
    let jobs = vec![Job { head, seed }];
    let (_, columns) = work(shelf, link, within, jobs, |_, keeper| keeper.adopt(session)).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    children::adopt(shelf, link, within, run, session).await?;
    // One that was queued when its owner died has been passed over since.
    record(link, FollowUp::Workflow(workflow)).await?;
    link.flight().commit().await?;
    Ok(())
}
