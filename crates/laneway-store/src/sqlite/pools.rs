//! What warm containers did, and how they are now. `laneway_core::pool` says what may follow what.

use laneway_core::id::SessionId;
use laneway_core::pool::{PoolEvent, PoolFact};
use laneway_core::time::Millis;
use rusqlite::{Connection, Row, params};

use super::txn::{Done, Txn, sql};
use crate::error::Error;
use crate::keeper::unreadable;
use crate::model::POOL_EVENTS_KEPT;

pub(super) fn tell(txn: &Txn<'_>, session: SessionId, facts: &[PoolFact]) -> Done<()> {
    let session = session.to_string();
    for fact in facts {
        let (_, container) = fact.names();
        let event = params![txn.now.0, session, container, fact.name(), fact.version(), fact.body_text()];
        txn.connection.prepare_cached(sql!("pool_event_append"))?.execute(event)?;
    }
    txn.connection.prepare_cached(sql!("pool_events_forget"))?.execute([POOL_EVENTS_KEPT])?;
    Ok(())
}

/// In order, behind a number.
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
    while let Some(row) = rows.next()? {
        events.push(event(row)?);
    }
    Ok(events)
}

/// The newest of each container that is there.
pub(super) fn containers(connection: &Connection) -> Done<Vec<PoolEvent>> {
    let mut statement = connection.prepare_cached(sql!("pool_containers"))?;
    let mut rows = statement.query([])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        events.push(event(row)?);
    }
    Ok(events)
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
