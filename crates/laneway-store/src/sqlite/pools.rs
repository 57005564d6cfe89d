//! What warm containers did, and how they are now; which pools there are, and what people want of
//! them. `laneway_core::pool` says what may follow what.

use laneway_core::hash::Version;
use laneway_core::id::{RunId, SessionId};
use laneway_core::pool::{ContainerTaken, PoolEvent, PoolFact};
use laneway_core::time::Millis;
use rusqlite::{Connection, Row, params};

use super::quarantine;
use super::txn::{Done, Txn};
use crate::error::{Error, Teller};
use crate::keeper::unreadable;
use crate::model::{KeptPool, POOL_EVENTS_KEPT, PoolView, Wanted, Wish};
use crate::pool::{UNGRANTED, left_behind, subject};
use crate::readable::{Noted, add_event};
use crate::sqlite::statements::sql;

pub(super) fn tell(txn: &Txn<'_>, session: SessionId, facts: &[PoolFact]) -> Done<()> {
    let (teller, session) = (session, session.to_string());
    for fact in facts {
        let subject = subject(teller, fact);
        let event = params![txn.now.0, session, subject, fact.name(), fact.version(), fact.body_text()];
        txn.connection.prepare_cached(sql!("pool_event_append"))?.execute(event)?;
    }
    txn.connection.prepare_cached(sql!("pool_events_forget"))?.execute([POOL_EVENTS_KEPT])?;
    Ok(())
}

/// Ends the containers of a session that is about to go: its history would leave them as they were.
pub(super) fn end_left_behind(txn: &Txn<'_>, session: SessionId) -> Done<()> {
    tell(txn, session, &left_behind(&containers(txn.connection)?, session))
}

pub(super) fn keep(txn: &Txn<'_>, session: SessionId, pools: &[KeptPool]) -> Done<()> {
    let session = session.to_string();
    for pool in pools {
        let kept = params![session, pool.name, pool.image, pool.max];
        txn.connection.prepare_cached(sql!("pool_keep"))?.execute(kept)?;
    }
    Ok(())
}

/// By node and name.
pub(super) fn all(connection: &Connection) -> Done<Vec<PoolView>> {
    let mut statement = connection.prepare_cached(sql!("pools"))?;
    let mut rows = statement.query([])?;
    let mut pools = Vec::new();
    while let Some(row) = rows.next()? {
        let session: String = row.get(1)?;
        pools.push(PoolView {
            node: row.get(0)?,
            session: SessionId::parse(&session).ok_or_else(|| unreadable("session", &session))?,
            pool: KeptPool { name: row.get(2)?, image: row.get(3)?, max: row.get(4)? },
        });
    }
    Ok(pools)
}

pub(super) fn wish(txn: &Txn<'_>, sessions: &[SessionId], wish: &Wish) -> Done<()> {
    let (warm, version) = match &wish.what {
        Wanted::Warm { count, of } => (Some(*count), of.as_ref().map(ToString::to_string)),
        Wanted::Drain => (None, None),
    };
    for session in sessions {
        let wish = params![session.to_string(), wish.pool, warm, version];
        txn.connection.prepare_cached(sql!("pool_wish"))?.execute(wish)?;
    }
    Ok(())
}

/// The newest for each pool of a session, as far as they can be read.
pub(super) fn wishes(connection: &Connection, session: SessionId) -> Done<Noted<(u64, Wish)>> {
    let mut statement = connection.prepare_cached(sql!("pool_wishes"))?;
    let mut rows = statement.query([session.to_string()])?;
    let mut wishes = Noted::new();
    while let Some(row) = rows.next()? {
        let read = || -> Done<(u64, Wish)> {
            let (warm, of): (Option<u32>, Option<String>) = (row.get(2)?, row.get(3)?);
            let what = match warm {
                Some(count) => Wanted::Warm { count, of: of.map(Version::from_stored) },
                None => Wanted::Drain,
            };
            Ok((row.get(0)?, Wish { pool: row.get(1)?, what }))
        };
        wishes.add(read(), quarantine::blame, || UNGRANTED.to_owned())?;
    }
    Ok(wishes)
}

/// In order, behind a number, up to one that cannot be read.
pub(super) fn events(
    connection: &Connection,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Done<Vec<PoolEvent>> {
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let mut statement = connection.prepare_cached(sql!("pool_events"))?;
    let mut rows = statement.query(params![node, after, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()?
        && add_event(&mut events, event(row), (Teller::Pools, row.get(0)?), quarantine::blame)?
    {}
    Ok(events)
}

/// The newest of each container that is there, and of the ports of each session. One that cannot be
/// read hides none of the others; it is named among the events.
pub(super) fn containers(connection: &Connection) -> Done<Vec<PoolEvent>> {
    let mut statement = connection.prepare_cached(sql!("pool_containers"))?;
    let mut rows = statement.query([])?;
    let mut events = Noted::new();
    while let Some(row) = rows.next()? {
        events.add(event(row), quarantine::blame, String::new)?;
    }
    Ok(events.list)
}

/// What attempts of a task were given, in order.
pub(super) fn taken(connection: &Connection, run: RunId, step: &str) -> Done<Vec<ContainerTaken>> {
    let mut statement = connection.prepare_cached(sql!("pool_taken"))?;
    let mut rows = statement.query([run.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (name, body): (String, String) = (row.get(0)?, row.get(2)?);
        found.extend(crate::pool::taken(&name, row.get(1)?, &body, run, step));
    }
    Ok(found)
}

fn event(row: &Row<'_>) -> Done<PoolEvent> {
    let (session, name, body): (String, String, String) = (row.get(3)?, row.get(4)?, row.get(6)?);
    let fact = PoolFact::read(&name, row.get(5)?, &body)
        .map_err(|error| Error::Unreadable { what: "event of a pool".to_owned(), why: error.to_string() })?;
    Ok(PoolEvent {
        seq: row.get(0)?,
        at: Millis(row.get(1)?),
        node: row.get(2)?,
        session: SessionId::parse(&session).ok_or_else(|| unreadable("session", &session))?,
        fact,
    })
}
