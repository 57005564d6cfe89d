//! `claim`: picks and takes, under the one writer's lock, so that two never get the same task. It checks no gate
//! and appends no event; the holder's `start` does.
//!
//! A claim *ahead* is made for a slot that is not free yet, so that a slot of short tasks does not wait for a
//! commit between two of them. It may take a task that only waits for a place under `max_parallel`, because its
//! holder starts it in the place of one that has ended. docs/design/store.md: "Claims ahead".

use std::sync::Arc;

use laneway_core::definition::OnLost;
use laneway_core::plan::Position;
use laneway_torture::{Bug, has};
use rusqlite::params;

use crate::fence::ClaimRef;
use crate::model::{Ask, Claim};
use crate::sqlite::quarantine;
use crate::sqlite::txn::{Done, Head, Txn, sql};

pub(in crate::sqlite) fn claim(txn: &Txn<'_>, ask: &Ask) -> Done<Vec<Claim>> {
    if ask.limit + ask.ahead == 0 {
        return Ok(Vec::new());
    }
    let head = txn.head(ask.run)?;
    let next = line(txn, ask, &head)?;
    let mut claims = Vec::with_capacity(next.len());
    for next in next {
        // The oldest first, up to the first that must not be held: to pass it over would let it wait for ever.
        let has_place = next.is_available && claims.len() < ask.limit;
        if !has_place && !next.may_be_held(&head) {
            break;
        }
        let taken = txn.connection.prepare_cached(sql!("claim"))?.execute(params![
            head.no,
            next.position,
            ask.session.to_string(),
            next.attempt
        ])?;
        if taken == 0 {
            break;
        }
        let mut attempt = next.attempt + 1;
        if has(Bug::OldAttempt) && attempt > 1 {
            attempt -= 1;
            let older = "UPDATE tasks SET attempt = attempt - 1 WHERE run_no = ?1 AND position = ?2";
            txn.connection.execute(older, params![head.no, next.position])?;
        }
        let at = ClaimRef { run: ask.run, position: next.position, attempt, session: ask.session };
        claims.push(Claim { at, head: Arc::clone(&head.head) });
    }
    // What gave something is not set aside, and needs no second question.
    if claims.is_empty() {
        quarantine::check(txn.connection, head.no, ask.run)?;
    }
    Ok(claims)
}

/// A task that can be taken.
struct Next {
    position: Position,
    /// Its last one.
    attempt: u32,
    is_available: bool,
    /// Nothing of its last attempt is shown any more: the row has room for one story.
    is_clean: bool,
}

impl Next {
    /// Whether it can wait for its place in a worker's hand. A claim that dies with its node counts as an execution
    /// of a step that must not run twice.
    fn may_be_held(&self, head: &Head) -> bool {
        self.is_clean && head.head.plan.step(self.position).on_lost != OnLost::Fail
    }
}

/// Those that are available, oldest first; behind them, as far as claims ahead are wanted, those in line for a place.
fn line(txn: &Txn<'_>, ask: &Ask, head: &Head) -> Done<Vec<Next>> {
    let mut next: Vec<Next> = txn
        .connection
        .prepare_cached(sql!("claim_available"))?
        .query_map(params![-head.no, count(ask.limit + ask.ahead)], |row| {
            Ok(Next { position: row.get(0)?, attempt: row.get(1)?, is_available: true, is_clean: true })
        })?
        .collect::<rusqlite::Result<_>>()?;
    let rest = ask.ahead.min(ask.limit + ask.ahead - next.len());
    if rest > 0 {
        let waiting = txn
            .connection
            .prepare_cached(sql!("claim_waiting"))?
            .query_map(params![head.no, count(rest)], |row| {
                Ok(Next {
                    position: row.get(0)?,
                    attempt: row.get(1)?,
                    is_available: false,
                    is_clean: row.get(2)?,
                })
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        next.extend(waiting);
    }
    Ok(next)
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
