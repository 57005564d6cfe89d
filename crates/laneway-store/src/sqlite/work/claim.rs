//! `claim`: picks and takes, under the one writer's lock, so that two never get the same task. It
//! checks no gate and appends no event; the holder's `start` does.
//!
//! A claim *ahead* is made for a slot that is not free yet, so that a slot of short tasks does not
//! wait for a commit between two of them. It may take a task that only waits for a place under
//! `max_parallel`, because its holder starts it in the place of one that has ended.
//! docs/design/store.md: "Claims ahead".

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use laneway_core::definition::OnLost;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;
use laneway_core::time::Millis;
use laneway_torture::{Bug, has};
use rusqlite::params;

use crate::fence::ClaimRef;
use crate::keeper::unreadable;
use crate::model::{Ask, Claim};
use crate::sqlite::quarantine;
use crate::sqlite::statements::sql;
use crate::sqlite::txn::{Done, Head, Txn};

pub(in crate::sqlite) fn claim(txn: &Txn<'_>, ask: &Ask) -> Done<Vec<Claim>> {
    if ask.limit + ask.ahead == 0 {
        return Ok(Vec::new());
    }
    txn.about_none();
    let next = match ask.run {
        Some(run) => own_line(txn, ask, run)?,
        None => shared_line(txn, ask)?,
    };
    let mut claims = Vec::with_capacity(next.len());
    for next in next {
        // The oldest first, up to the first that must not be held: to pass it over would let it
        // wait for ever.
        let has_place = next.is_available && claims.len() < ask.limit;
        if !has_place && !next.may_be_held() {
            break;
        }
        if take(txn, ask, &next)? {
            let (run, position, attempt) = (next.head.head.run, next.position, minted(txn, &next)?);
            let generation = attempt + next.given_back;
            let at = ClaimRef { run, position, attempt, generation, session: ask.session };
            let left = next.start_by.map(|until| until.since(txn.now));
            let start_by = left.map(|left| Instant::now() + left);
            let (head, is_bound) = (Arc::clone(&next.head.head), next.is_bound);
            claims.push(Claim { at, head, start_by, is_bound });
        } else if ask.run.is_some() {
            break;
        }
    }
    // What gave something is not set aside, and needs no second question.
    if let (true, Some(run)) = (claims.is_empty(), ask.run) {
        quarantine::check(txn.connection, txn.head(run)?.no, run)?;
    }
    Ok(claims)
}

fn take(txn: &Txn<'_>, ask: &Ask, next: &Next) -> Done<bool> {
    txn.about(next.head.no);
    let claim = params![next.head.no, next.position, ask.session.to_string(), next.attempt, txn.now.0];
    Ok(txn.connection.prepare_cached(sql!("claim"))?.execute(claim)? == 1)
}

/// The number of the attempt that the claim has minted.
fn minted(txn: &Txn<'_>, next: &Next) -> Done<u32> {
    let attempt = next.attempt + 1;
    if has(Bug::OldAttempt) && attempt > 1 {
        let older = "UPDATE tasks SET attempt = attempt - 1 WHERE run_no = ?1 AND position = ?2";
        txn.connection.execute(older, params![next.head.no, next.position])?;
        return Ok(attempt - 1);
    }
    Ok(attempt)
}

/// A task that can be taken.
struct Next {
    head: Arc<Head>,
    position: Position,
    /// Its last one.
    attempt: u32,
    /// Claims of it that were none.
    given_back: u32,
    start_by: Option<Millis>,
    is_available: bool,
    /// Offered to the owner of its run alone.
    is_bound: bool,
    /// Nothing of its last attempt is shown any more: the row has room for one story.
    is_clean: bool,
}

impl Next {
    /// Whether it can wait for its place in a worker's hand. A claim that dies with its node counts
    /// as an execution of a step that must not run twice; and a key that is held unused keeps
    /// others waiting.
    fn may_be_held(&self) -> bool {
        let head = &self.head.head;
        self.is_clean
            && head.plan.step(self.position).on_lost != OnLost::Fail
            && !head.has_keys(self.position)
    }
}

/// Those of one run that are available, oldest first; behind them, as far as claims ahead are
/// wanted, those in line for a place.
fn own_line(txn: &Txn<'_>, ask: &Ask, run: RunId) -> Done<Vec<Next>> {
    let head = txn.head(run)?;
    let wanted = ask.limit + ask.ahead;
    let mut line = Vec::new();
    // Runs that this one has started are claimed with it; of them nothing is held ahead.
    for (_, no, position, (attempt, given_back, start_by)) in available(txn, head.head.own_class, wanted)? {
        let is_clean = txn.about(no) == head.no;
        if !is_clean && !is_owned(txn, no, ask.session)? {
            continue;
        }
        let head = if is_clean { Arc::clone(&head) } else { txn.head(txn.run_id(no)?)? };
        check_position(&head, position)?;
        line.push(Next {
            head,
            position,
            attempt,
            given_back,
            start_by,
            is_available: true,
            is_bound: true,
            is_clean,
        });
    }
    let rest = ask.ahead.min(wanted - line.len());
    if rest > 0 {
        txn.about(head.no);
        let mut waiting = txn.connection.prepare_cached(sql!("claim_waiting"))?;
        let waiting = waiting.query_map(params![head.no, count(rest)], |row| {
            Ok(Next {
                head: Arc::clone(&head),
                position: row.get(0)?,
                attempt: row.get(1)?,
                given_back: row.get(2)?,
                start_by: None,
                is_available: false,
                is_bound: true,
                is_clean: row.get(3)?,
            })
        })?;
        for next in waiting {
            let next = next?;
            check_position(&head, next.position)?;
            line.push(next);
        }
    }
    Ok(line)
}

/// Runs that one run has started are of one class, and may have been taken up by different
/// processes.
fn is_owned(txn: &Txn<'_>, no: i64, session: SessionId) -> Done<bool> {
    let mut statement = txn.connection.prepare_cached(sql!("run_owner"))?;
    let owner: Option<String> = statement.query_row([no], |row| row.get(1))?;
    Ok(owner == Some(session.to_string()))
}

/// What is available of everything that the session takes, of all runs, first in line first.
fn shared_line(txn: &Txn<'_>, ask: &Ask) -> Done<Vec<Next>> {
    let wanted = ask.limit + ask.ahead;
    let classes: Vec<(i64, i64, Option<String>, Option<i64>)> = txn
        .connection
        .prepare_cached(sql!("takers_of_session"))?
        .query_map([ask.session.to_string()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let mut rows = Vec::new();
    // Of a pool, how many more it has room for, whatever their classes.
    let mut rooms: HashMap<&str, usize> = HashMap::new();
    for (class, delay, pool, room) in &classes {
        // What its pool has no container for is left to others, and holds no slot here.
        let room = room.map_or(wanted, |room| usize::try_from(room).unwrap_or(0));
        if room == 0 {
            continue;
        }
        let next = available(txn, *class, wanted.min(room))?;
        let (later, pool) = (|rank: i64| rank.saturating_add(*delay), pool.as_deref());
        rooms.extend(pool.map(|pool| (pool, room)));
        rows.extend(
            next.into_iter()
                .map(|(rank, no, position, claims)| (later(rank), no, position, claims, pool, *class < 0)),
        );
    }
    rows.sort_unstable();
    if !rooms.is_empty() {
        rows.retain(|(_, _, _, _, pool, _)| match pool.and_then(|pool| rooms.get_mut(pool)) {
            None => true,
            Some(0) => false,
            Some(room) => {
                *room -= 1;
                true
            }
        });
    }
    rows.truncate(wanted);
    let mut line = Vec::with_capacity(rows.len());
    for (_, no, position, (attempt, given_back, start_by), _, is_bound) in rows {
        let head = txn.head(txn.run_id(no)?)?;
        check_position(&head, position)?;
        let (is_available, is_clean) = (true, true);
        line.push(Next { head, position, attempt, given_back, start_by, is_available, is_bound, is_clean });
    }
    Ok(line)
}

/// A task that stands nowhere in the plan of its run is given to nobody: who holds it could not
/// even name it.
fn check_position(head: &Head, position: Position) -> Done<()> {
    match head.head.plan.base(position) {
        Some(_) => Ok(()),
        None => Err(unreadable("position of a task", &position.to_string()).into()),
    }
}

/// Rank, run, position; last attempt, claims that were given back, and until when it may start.
type Available = (i64, i64, Position, (u32, u32, Option<Millis>));

/// What can be claimed of a class.
fn available(txn: &Txn<'_>, class: i64, limit: usize) -> Done<Vec<Available>> {
    Ok(txn
        .connection
        .prepare_cached(sql!("claim_available"))?
        .query_map(params![class, count(limit)], |row| {
            let no = txn.about(row.get(1)?);
            Ok((
                row.get(0)?,
                no,
                row.get(2)?,
                (row.get(3)?, row.get(4)?, row.get::<_, Option<i64>>(5)?.map(Millis)),
            ))
        })?
        .collect::<rusqlite::Result<_>>()?)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
