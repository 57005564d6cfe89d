//! Workers that are elsewhere. No lock of theirs can be looked at, so their sessions live by a
//! lease, by this store's clock: the same rules as on Postgres. Owns what is known of them, and
//! when one of them is over.
//!
//! A lease that has ended by the clock is not enough: while nobody served, or the machine slept,
//! they could not renew it. So a process that reaps one has itself seen it unrenewed for as long as
//! a lease is (`unrenewed.rs`), by a watch that stands still while the machine sleeps.

use std::time::Duration;

use laneway_core::id::SessionId;
use laneway_core::time::Millis;
use rusqlite::{Connection, OptionalExtension, params};

use super::Shared;
use super::quarantine;
use super::read::{self, run_id};
use super::txn::{Done, Txn};
use super::unrenewed::next_look;
use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::lease::monotonic_time;
use crate::model::RemoteView;
use crate::readable::Readable;
use crate::sqlite::statements::sql;

/// A session that nobody has reaped.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) session: SessionId,
    pub(super) node: String,
    /// `None` for one that lives by its lock.
    pub(super) lease: Option<ListedLease>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ListedLease {
    pub(super) has_ended: bool,
    /// How soon to look at it again, if it may be ending.
    pub(super) look_again_in: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
struct Lease {
    renewed_at: Millis,
    expires_at: Millis,
}

/// All of them, with what their leases say.
pub(super) fn sessions(connection: &Connection, shared: &Shared) -> Done<Vec<Listed>> {
    let now = shared.moment(connection)?;
    let mut statement = connection.prepare_cached(sql!("sessions"))?;
    let mut rows = statement.query([])?;
    let mut listed = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, node): (String, String) = (row.get(0)?, row.get(1)?);
        let Some(session) = SessionId::parse(&id) else { continue };
        let (expires_at, ttl): (Option<i64>, Option<u64>) = (row.get(4)?, row.get(5)?);
        let lease = expires_at.zip(ttl).map(|(expires_at, ttl)| {
            let ttl = Duration::from_millis(ttl);
            let lease = Lease { renewed_at: Millis(row.get(3)?), expires_at: Millis(expires_at) };
            let renewed = Duration::from_millis(u64::try_from(lease.renewed_at.0).unwrap_or_default());
            let has_watched = shared.unrenewed.has_watched(session, renewed, ttl, monotonic_time());
            // A caller that brings a clock of its own knows of no watch.
            let has_ended = lease.expires_at <= now && (has_watched || shared.clock.hand().is_some());
            let is_silent = now.since(lease.renewed_at) > ttl / 3;
            let look_again_in = is_silent.then(|| next_look(ttl));
            Ok::<_, rusqlite::Error>(ListedLease { has_ended, look_again_in })
        });
        listed.push(Listed { session, node, lease: lease.transpose()? });
    }
    shared.unrenewed.keep(|session| listed.iter().any(|one| one.session == session));
    Ok(listed)
}

/// Asked again in the transaction that returns its tasks: it may have been renewed meanwhile.
pub(super) fn is_expired(txn: &Txn<'_>, session: SessionId) -> Done<bool> {
    Ok(txn
        .connection
        .prepare_cached(sql!("remote_expired"))?
        .exists(params![session.to_string(), txn.now.0])?)
}

pub(super) fn view(connection: &Connection, shared: &Shared, session: SessionId) -> Done<Option<RemoteView>> {
    let id = session.to_string();
    let known: Option<(String, String, u32, bool, u64)> = connection
        .prepare_cached(sql!("remote"))?
        .query_row([&id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .optional()?;
    let Some((node, token, slots, is_draining, ttl)) = known else { return Ok(None) };
    let mut statement = connection.prepare_cached(sql!("remote_claims"))?;
    let mut rows = statement.query([&id])?;
    let mut held = Readable::new();
    while let Some(row) = rows.next()? {
        let read = || -> Done<(ClaimRef, Option<Millis>)> {
            let run = run_id(connection, row.get(0)?)?;
            let (position, attempt, generation) = (row.get(1)?, row.get(2)?, row.get(4)?);
            let at = ClaimRef { run, position, attempt, generation, session };
            Ok((at, row.get::<_, Option<i64>>(3)?.map(Millis)))
        };
        held.add(read(), false, quarantine::is_about_a_value)?;
    }
    let (held, stops) = (held.list, read::stops(connection, session, |no| run_id(connection, no))?.list);
    let observed_at = shared.moment(connection)?;
    let lease = Duration::from_millis(ttl);
    Ok(Some(RemoteView { session, node, token, slots, lease, is_draining, held, stops, observed_at }))
}

pub(super) fn all(connection: &Connection) -> Done<Vec<SessionId>> {
    let ids: Vec<String> = connection
        .prepare_cached(sql!("remotes"))?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    ids.iter().map(|id| Ok(SessionId::parse(id).ok_or_else(|| unreadable("session", id))?)).collect()
}
