//! `claim`: picks and takes, in one statement. It checks no gate and appends no event; the holder's `start`
//! does.
//!
//! A claim *ahead* is made for a slot that is not free yet, so that a slot of short tasks does not wait for a
//! commit between two of them. It may take a task that only waits for a place under `max_parallel`, because its
//! holder starts it in the place of one that has ended. docs/design/store.md: "Claims ahead".

use std::sync::Arc;

use laneway_core::definition::OnLost;
use laneway_core::plan::Position;
use laneway_torture::{Bug, has};
use rusqlite::{OptionalExtension, params};

use crate::fence::ClaimRef;
use crate::model::{Ask, Claim};
use crate::sqlite::quarantine;
use crate::sqlite::txn::{Done, Head, Txn, sql};

pub(in crate::sqlite) fn claim(txn: &Txn<'_>, ask: &Ask) -> Done<Vec<Claim>> {
    if ask.limit + ask.ahead == 0 {
        return Ok(Vec::new());
    }
    let head = txn.head(ask.run)?;
    let mut claims = if ask.limit > 0 { available(txn, ask, &head)? } else { Vec::new() };
    // What gave something is not set aside, and needs no second question.
    if claims.is_empty() {
        quarantine::check(txn.connection, head.no, ask.run)?;
    }
    if ask.ahead > 0 {
        ahead(txn, ask, &head, &mut claims)?;
    }
    Ok(claims)
}

fn available(txn: &Txn<'_>, ask: &Ask, head: &Head) -> Done<Vec<Claim>> {
    let mut taken: Vec<(Option<i64>, Claim)> = txn
        .connection
        .prepare_cached(sql!("claim"))?
        .query_map(params![ask.session.to_string(), -head.no, count(ask.limit)], |row| {
            let at =
                ClaimRef { run: ask.run, position: row.get(1)?, attempt: row.get(2)?, session: ask.session };
            Ok((row.get(3)?, Claim { at, head: Arc::clone(&head.head) }))
        })?
        .collect::<rusqlite::Result<_>>()?;
    if has(Bug::OldAttempt) {
        for (_, claim) in taken.iter_mut().filter(|(_, claim)| claim.at.attempt > 1) {
            claim.at.attempt -= 1;
            let older = "UPDATE tasks SET attempt = attempt - 1 WHERE run_no = ?1 AND position = ?2";
            txn.connection.execute(older, params![head.no, claim.at.position])?;
        }
    }
    // RETURNING promises no order; whoever starts them wants the oldest first.
    taken.sort_by_key(|(rank, claim)| (*rank, claim.at.position));
    Ok(taken.into_iter().map(|(_, claim)| claim).collect())
}

/// In the order of the line, up to the first that must not be held: to pass it over would let it wait for ever.
fn ahead(txn: &Txn<'_>, ask: &Ask, head: &Head, claims: &mut Vec<Claim>) -> Done<()> {
    let next: Vec<Position> = txn
        .connection
        .prepare_cached(sql!("claim_available"))?
        .query_map(params![-head.no, count(ask.ahead)], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let rest = ask.ahead - next.len();
    let mut line: Vec<(Position, bool)> = next.into_iter().map(|position| (position, true)).collect();
    if rest > 0 {
        // What its last attempt has left is shown until it has its place, and the row has room for one story.
        let waiting = txn
            .connection
            .prepare_cached(sql!("claim_waiting"))?
            .query_map(params![head.no, count(rest)], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        line.extend(waiting);
    }
    let may_be_held = |(position, is_clean): &(Position, bool)| {
        // A claim that dies with its node counts as an execution of a step that must not run twice.
        *is_clean && head.head.plan.step(*position).on_lost != OnLost::Fail
    };
    for (position, _) in line.into_iter().take_while(may_be_held) {
        let attempt: Option<u32> = txn
            .connection
            .prepare_cached(sql!("claim_ahead"))?
            .query_row(params![head.no, position, ask.session.to_string()], |row| row.get(0))
            .optional()?;
        let Some(attempt) = attempt else { break };
        let at = ClaimRef { run: ask.run, position, attempt, session: ask.session };
        claims.push(Claim { at, head: Arc::clone(&head.head) });
    }
    Ok(())
}

fn count(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
