//! Classes of tasks and who takes them: written when a session begins and when a class is new, so
//! that neither a claim nor a gate has to compare labels.

use laneway_core::class::{self, Class, Room};
use laneway_core::id::SessionId;
use rusqlite::{OptionalExtension, params};

use super::txn::{Done, Txn};
use crate::keeper::unreadable;
use crate::offer;
use crate::sqlite::statements::sql;

/// Every class, with its number.
pub(super) fn all(txn: &Txn<'_>) -> Done<Vec<(i64, Class)>> {
    let rows: Vec<(i64, String)> = txn
        .connection
        .prepare_cached(sql!("classes"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    // One that a newer program wrote is none that this one could run.
    Ok(rows.into_iter().filter_map(|(no, text)| Some((no, Class::parse(&text)?))).collect())
}

/// The number of a class. A new one is offered to every session that takes work.
pub(super) fn number(txn: &Txn<'_>, class: &Class) -> Done<i64> {
    let text = class.to_string();
    let known =
        txn.connection.prepare_cached(sql!("class"))?.query_row([&text], |row| row.get(0)).optional()?;
    if let Some(no) = known {
        return Ok(no);
    }
    txn.connection.prepare_cached(sql!("class_add"))?.execute([&text])?;
    let no = txn.connection.last_insert_rowid();
    let offers: Vec<(String, String)> = txn
        .connection
        .prepare_cached(sql!("offers"))?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (session, offer) in offers {
        let session = SessionId::parse(&session).ok_or_else(|| unreadable("session", &session))?;
        if let Some(offer) = offer::from_text(&offer).filter(|offer| class::can_run(offer, class)) {
            let room = class.room.as_ref().map(|room| (room, offer.ports));
            add_taker(txn, no, session, class::reluctance(&offer, class), room)?;
        }
    }
    Ok(no)
}

/// `room` is the pool of the class, with the host ports that the session has for containers.
pub(super) fn add_taker(
    txn: &Txn<'_>,
    class: i64,
    session: SessionId,
    delay: i64,
    room: Option<(&Room, Option<u32>)>,
) -> Done<()> {
    let places = room.map(|(room, ports)| room.places_with(ports));
    let pool = room.map(|(room, _)| room.pool.as_str());
    let taker = params![class, session.to_string(), delay, places, pool];
    txn.connection.prepare_cached(sql!("taker_add"))?.execute(taker)?;
    Ok(())
}
