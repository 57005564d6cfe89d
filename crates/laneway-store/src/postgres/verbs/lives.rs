//! Sessions begin and end, and runs change hands: `register`, `renew`, `reap` (also `retire`), `adopt`.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_torture::{Bug, has};
use tokio_postgres::types::Type;

use crate::fence::ClaimRef;
use crate::model::{Lease, NewSession};
use crate::offer;
use crate::postgres::classes;
use crate::postgres::facts::Missing;
use crate::postgres::fault::Done;
use crate::postgres::follow::{Follows, follow, work};
use crate::postgres::link::{Begin, Link, Sql, sql};
use crate::postgres::row;
use crate::postgres::run_work::{Job, Terms};
use crate::postgres::shelf::Shelf;

/// How long a session lives without being renewed, and how often it is: it may miss many before its lease ends.
const LEASE: Lease = Lease { ttl: Duration::from_secs(60), every: Duration::from_secs(5) };

static CHOSEN: OnceLock<Lease> = OnceLock::new();

/// Leases of this process, before it has any: the setting of a deployment.
pub fn use_lease(lease: Lease) {
    let _ = CHOSEN.set(lease);
}

pub(in crate::postgres) fn lease() -> Lease {
    CHOSEN.get().copied().unwrap_or(LEASE)
}

/// In milliseconds.
fn lease_ms() -> i64 {
    i64::try_from(lease().ttl.as_millis()).unwrap_or(i64::MAX)
}

pub(in crate::postgres) async fn register(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    session: SessionId,
    node: &NewSession,
) -> Done<()> {
    let (id, pid, slots) = (session.to_string(), i64::from(node.pid), i64::from(node.slots));
    let lease = lease_ms();
    let (now, offer) = (terms.now.map(|now| now.0), node.offer.as_ref().map(offer::to_text));
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("register", TEXT, TEXT, INT8, INT8, INT8, INT8, TEXT),
        vec![&id, &node.node, &pid, &lease, &now, &slots, &offer],
    );
    let Some(offer) = &node.offer else {
        flight.commit().await?;
        return Ok(());
    };
    flight.land().await?;
    // A node takes what it can run, and what nobody could run before may go on.
    let taken = classes::offer_to_all(link, session, offer).await?;
    let waiting = link.rows(sql!("tasks_for_nodes", INT8_ARRAY), &[&taken]).await?;
    let mut of_runs: BTreeMap<i64, (RunId, Vec<Position>)> = BTreeMap::new();
    for found in &waiting {
        let run = row::word(found, 1, "run id", RunId::parse)?;
        let of_run = of_runs.entry(found.try_get(0)?).or_insert_with(|| (run, Vec::new()));
        of_run.1.push(row::number(found, 2)?);
    }
    for (run, positions) in of_runs.values() {
        let head = shelf.head(link, *run).await?;
        let mut seed = Missing::for_examining(&head.head.plan, positions);
        positions.iter().for_each(|position| seed.add_keys(&head.head, *position));
        let within = Terms { is_begun: true, ..terms };
        let (_, columns) = work(shelf, link, within, vec![Job { head, seed }], |_, keeper| {
            positions.iter().for_each(|position| keeper.examine_later(*position));
            Ok(())
        })
        .await?;
        let mut flight = link.flight();
        columns.say(&mut flight);
        flight.land().await?;
    }
    link.flight().commit().await?;
    Ok(())
}

/// Says whether the session is still there.
pub(in crate::postgres) async fn renew(link: &Link, terms: Terms, session: SessionId) -> Done<bool> {
    let (id, now, lease) = (session.to_string(), terms.now.map(|now| now.0), lease_ms());
    let mut flight = link.begin(Begin::Write);
    flight.ask(sql!("renew", TEXT, INT8, INT8), vec![&id, &lease, &now]);
    let answers = flight.commit().await?;
    Ok(answers.first().is_some_and(|rows| !rows.is_empty()))
}

/// Sessions that the holder of these may return.
pub(in crate::postgres) async fn expired(
    link: &Link,
    terms: Terms,
    own: &[SessionId],
) -> Done<Vec<(SessionId, String)>> {
    let own: Vec<String> = own.iter().map(ToString::to_string).collect();
    let now = terms.now.map(|now| now.0);
    let lease = if has(Bug::ReapTooSoon) { 0 } else { lease_ms() };
    let sql = if has(Bug::ReapUnrenewed) { &UNRENEWED } else { sql!("reap_expired", TEXT_ARRAY, INT8, INT8) };
    let rows = link.rows(sql, &[&own, &lease, &now]).await?;
    rows.iter()
        .map(|found| Ok((row::word(found, 0, "session", SessionId::parse)?, row::text(found, 1)?)))
        .collect()
}

/// `reap_expired` as a seeded bug has it.
const UNRENEWED: Sql = Sql {
    text: "SELECT id, node FROM sessions WHERE id <> ALL ($1) AND $2 >= 0
           AND expires_at <= coalesce($3::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
    types: &[Type::TEXT_ARRAY, Type::INT8, Type::INT8],
};

/// Whether somebody says of himself that he is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::postgres) enum End {
    Retired,
    Expired,
}

/// Returns everything that a session held, and forgets it. Gives its node and the number of tasks, or `None` when it is not over after
/// all, or somebody else has reaped it before.
pub(in crate::postgres) async fn reap(
    shelf: &Shelf,
    link: &Link,
    terms: Terms,
    session: SessionId,
    end: End,
) -> Done<Option<(String, usize)>> {
    let (id, is_expired, now) = (session.to_string(), end == End::Expired, terms.now.map(|now| now.0));
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
    let node = row::text(node, 0)?;
    let mut claims: Vec<(i64, ClaimRef)> = Vec::with_capacity(held.len());
    for found in held {
        let run = row::word(found, 1, "run id", RunId::parse)?;
        let (position, attempt): (Position, u32) = (row::number(found, 2)?, row::number(found, 3)?);
        claims.push((found.try_get(0)?, ClaimRef { run, position, attempt, session }));
    }
    // All runs at once, in order: those that it owns are written as well.
    let mut numbers: Vec<i64> = owned.iter().map(|found| found.try_get(0)).collect::<Result<_, _>>()?;
    numbers.extend(claims.iter().map(|(no, _)| *no));
    let mut flight = link.flight();
    flight.ask(sql!("runs_lock", INT8_ARRAY), vec![&numbers]);
    // So that what it held does not count on it: a task that nobody else can run waits for a node.
    flight.ask(sql!("takers_remove", TEXT), vec![&id]);
    flight.land().await?;
    let of_runs: Vec<&[(i64, ClaimRef)]> = claims.chunk_by(|a, b| a.0 == b.0).collect();
    let mut jobs = Vec::with_capacity(of_runs.len());
    for of_run in &of_runs {
        let head = shelf.head(link, of_run[0].1.run).await?;
        let seed = Missing::for_ends(&head.head.plan, of_run.iter().map(|(_, claim)| claim));
        jobs.push(Job { head, seed });
    }
    let within = Terms { is_begun: true, ..terms };
    let (made, columns) = work(shelf, link, within, jobs, |index, keeper| {
        let mut lost = 0;
        for (_, claim) in of_runs[index] {
            // It may have ended between the two looks.
            if keeper.task(claim.position)?.is_held_by(claim) {
                keeper.lose(claim, &node)?;
                lost += 1;
            }
        }
        Ok(lost)
    })
    .await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.ask(sql!("reap_runs", TEXT), vec![&id]);
    flight.ask(sql!("reap_session", TEXT), vec![&id]);
    flight.commit().await?;
    Ok(Some((node, made.iter().map(|made| made.answer).sum())))
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
    let is_local = head.is_local;
    let workflow = head.head.plan.workflow.name.clone();
    link.begin(Begin::Write).land().await?;
    let within = Terms { is_begun: true, ..terms };
    let jobs = vec![Job { head, seed }];
    let (_, columns) = work(shelf, link, within, jobs, |_, keeper| keeper.adopt(session, is_local)).await?;
    let mut flight = link.flight();
    columns.say(&mut flight);
    flight.land().await?;
    // One that was queued when its owner died has been passed over since.
    follow(shelf, link, within, Follows::of_workflow(workflow)).await?;
    link.flight().commit().await?;
    Ok(())
}
