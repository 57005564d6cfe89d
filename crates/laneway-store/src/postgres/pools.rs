//! What warm containers did, and how they are now; which pools there are, and what people want of them. `laneway_core::pool`
//! says what may follow what.

use laneway_core::hash::Version;
use laneway_core::id::{RunId, SessionId};
use laneway_core::pool::{ContainerTaken, PoolEvent, PoolFact};
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::{Done, Failure};
use super::link::{Begin, Link, sql};
use super::row;
use super::run_work::Terms;
use crate::error::{Error, Teller};
use crate::model::{KeptPool, POOL_EVENTS_KEPT, PoolView, Wanted, Wish};
use crate::pool::{UNGRANTED, left_behind, subject};
use crate::readable::{Noted, add_event};

/// Nodes wait here for each other as long as a commit takes: without that, an event could become visible behind one of a larger
/// number, and whoever follows the stream would have gone on past it. None of them has a lock that is before a key's.
pub(super) async fn tell(link: &Link, terms: Terms, session: SessionId, facts: &[PoolFact]) -> Done<()> {
    link.begin(Begin::Write).land().await?;
    append(link, terms, session, facts).await?;
    link.flight().commit().await?;
    Ok(())
}

/// Ends the containers of a session that is about to go, within the transaction in which it does:
/// its history would leave them as they were.
pub(super) async fn end_left_behind(link: &Link, terms: Terms, session: SessionId) -> Done<()> {
    let facts = left_behind(&containers(link).await?, session);
    if facts.is_empty() { Ok(()) } else { append(link, terms, session, &facts).await }
}

async fn append(link: &Link, terms: Terms, session: SessionId, facts: &[PoolFact]) -> Done<()> {
    let containers: Vec<String> = facts.iter().map(|fact| subject(session, fact)).collect();
    let (now, session) = (terms.now.map(|now| now.0), session.to_string());
    let names: Vec<String> = facts.iter().map(|fact| fact.name().to_owned()).collect();
    let versions: Vec<i64> = facts.iter().map(|fact| i64::from(fact.version())).collect();
    let bodies: Vec<String> = facts.iter().map(PoolFact::body_text).collect();
    let keys = vec!["pools".to_owned()];
    let mut flight = link.flight();
    flight.ask(sql!("keys_lock", TEXT_ARRAY), vec![&keys]);
    flight.ask(
        sql!("pool_event_append", INT8, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY),
        vec![&now, &session, &containers, &names, &versions, &bodies],
    );
    flight.ask(sql!("pool_events_forget", INT8), vec![&POOL_EVENTS_KEPT]);
    flight.land().await?;
    Ok(())
}

pub(super) async fn keep(link: &Link, session: SessionId, pools: &[KeptPool]) -> Done<()> {
    let session = session.to_string();
    let names: Vec<String> = pools.iter().map(|pool| pool.name.clone()).collect();
    let images: Vec<String> = pools.iter().map(|pool| pool.image.clone()).collect();
    let maxima: Vec<i64> = pools.iter().map(|pool| i64::from(pool.max)).collect();
    let kept = sql!("pool_keep", TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY);
    let mut flight = link.begin(Begin::Write);
    flight.ask(kept, vec![&session, &names, &images, &maxima]);
    flight.commit().await?;
    Ok(())
}

/// By node and name.
pub(super) async fn all(link: &Link) -> Done<Vec<PoolView>> {
    let pool = |found: &Row| {
        Ok(PoolView {
            node: row::text(found, 0)?,
            session: row::word(found, 1, "session", SessionId::parse)?,
            pool: KeptPool {
                name: row::text(found, 2)?,
                image: row::text(found, 3)?,
                max: row::number(found, 4)?,
            },
        })
    };
    link.rows(sql!("pools"), &[]).await?.iter().map(pool).collect()
}

pub(super) async fn wish(link: &Link, sessions: &[SessionId], wish: &Wish) -> Done<()> {
    let sessions: Vec<String> = sessions.iter().map(ToString::to_string).collect();
    let (warm, version) = match &wish.what {
        Wanted::Warm { count, of } => (Some(i64::from(*count)), of.as_ref().map(ToString::to_string)),
        Wanted::Drain => (None, None),
    };
    let statement = sql!("pool_wish", TEXT_ARRAY, TEXT, INT8, TEXT);
    let mut flight = link.begin(Begin::Write);
    flight.ask(statement, vec![&sessions, &wish.pool, &warm, &version]);
    flight.commit().await?;
    Ok(())
}

/// The rows of `pool_wishes`, as far as they can be read.
pub(super) fn wishes(rows: &[Row]) -> Done<Noted<(u64, Wish)>> {
    let mut wishes = Noted::new();
    for found in rows {
        wishes.add(wish_of(found), Failure::to_blame, || UNGRANTED.to_owned())?;
    }
    Ok(wishes)
}

fn wish_of(found: &Row) -> Done<(u64, Wish)> {
    let warm: Option<i64> = found.try_get(2)?;
    let what = match warm {
        Some(_) => Wanted::Warm {
            count: row::number(found, 2)?,
            of: row::maybe_text(found, 3)?.map(Version::from_stored),
        },
        None => Wanted::Drain,
    };
    Ok((row::number(found, 0)?, Wish { pool: row::text(found, 1)?, what }))
}

/// In order, behind a number, up to one that cannot be read.
pub(super) async fn events(
    link: &Link,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Done<Vec<PoolEvent>> {
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = link.rows(sql!("pool_events", TEXT, INT8, INT8), &[&node, &after, &limit]).await?;
    let mut events = Vec::new();
    for found in &rows {
        let number = (Teller::Pools, row::number(found, 0)?);
        if !add_event(&mut events, event(found), number, Failure::to_blame)? {
            break;
        }
    }
    Ok(events)
}

/// The newest of each container that is there, and of the ports of each session. One that cannot be
/// read hides none of the others; it is named among the events.
pub(super) async fn containers(link: &Link) -> Done<Vec<PoolEvent>> {
    let mut events = Noted::new();
    for found in &link.rows(sql!("pool_containers"), &[]).await? {
        events.add(event(found), Failure::to_blame, String::new)?;
    }
    Ok(events.list)
}

/// What attempts of a task were given, in order.
pub(super) async fn taken(link: &Link, run: RunId, step: &str) -> Done<Vec<ContainerTaken>> {
    let mut taken = Vec::new();
    for found in link.rows(sql!("pool_taken", TEXT), &[&run.to_string()]).await? {
        let (name, version, body) = (row::text(&found, 0)?, row::number(&found, 1)?, row::text(&found, 2)?);
        taken.extend(crate::pool::taken(&name, version, &body, run, step));
    }
    Ok(taken)
}

fn event(found: &Row) -> Done<PoolEvent> {
    let (name, body) = (row::text(found, 4)?, row::text(found, 6)?);
    let fact = PoolFact::read(&name, row::number(found, 5)?, &body)
        .map_err(|error| Error::Unreadable { what: "event of a pool".to_owned(), why: error.to_string() })?;
    Ok(PoolEvent {
        seq: row::number(found, 0)?,
        at: Millis(found.try_get(1)?),
        node: row::text(found, 2)?,
        session: row::word(found, 3, "session", SessionId::parse)?,
        fact,
    })
}
