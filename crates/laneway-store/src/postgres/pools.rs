//! What warm containers did, and how they are now. `laneway_core::pool` says what may follow what.

use laneway_core::id::SessionId;
use laneway_core::pool::{PoolEvent, PoolFact};
use laneway_core::time::Millis;
use tokio_postgres::Row;

use super::fault::Done;
use super::link::{Begin, Link, sql};
use super::row;
use super::run_work::Terms;
use crate::error::Error;
use crate::model::POOL_EVENTS_KEPT;

pub(super) async fn tell(link: &Link, terms: Terms, session: SessionId, facts: &[PoolFact]) -> Done<()> {
    let (now, session) = (terms.now.map(|now| now.0), session.to_string());
    let containers: Vec<String> = facts.iter().map(|fact| fact.names().1.to_owned()).collect();
    let names: Vec<String> = facts.iter().map(|fact| fact.name().to_owned()).collect();
    let versions: Vec<i64> = facts.iter().map(|fact| i64::from(fact.version())).collect();
    let bodies: Vec<String> = facts.iter().map(PoolFact::body_text).collect();
    let mut flight = link.begin(Begin::Write);
    flight.ask(
        sql!("pool_event_append", INT8, TEXT, TEXT_ARRAY, TEXT_ARRAY, INT8_ARRAY, TEXT_ARRAY),
        vec![&now, &session, &containers, &names, &versions, &bodies],
    );
    flight.ask(sql!("pool_events_forget", INT8), vec![&POOL_EVENTS_KEPT]);
    flight.commit().await?;
    Ok(())
}

/// In order, behind a number.
pub(super) async fn events(
    link: &Link,
    node: Option<&str>,
    after: u64,
    limit: usize,
) -> Done<Vec<PoolEvent>> {
    let (after, limit) = (i64::try_from(after).unwrap_or(i64::MAX), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = link.rows(sql!("pool_events", TEXT, INT8, INT8), &[&node, &after, &limit]).await?;
    rows.iter().map(event).collect()
}

/// The newest of each container that is there.
pub(super) async fn containers(link: &Link) -> Done<Vec<PoolEvent>> {
    link.rows(sql!("pool_containers"), &[]).await?.iter().map(event).collect()
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
