//! `claim`: picks and takes, in one statement. It checks no gate and appends no event; the holder's `start`
//! does.

use std::sync::Arc;

use rusqlite::params;

use crate::fence::ClaimRef;
use crate::model::{Ask, Claim};
use crate::sqlite::quarantine;
use crate::sqlite::txn::{Done, Txn, sql};

pub(in crate::sqlite) fn claim(txn: &Txn<'_>, ask: &Ask) -> Done<Vec<Claim>> {
    if ask.limit == 0 {
        return Ok(Vec::new());
    }
    let head = txn.head(ask.run)?;
    let limit = i64::try_from(ask.limit).unwrap_or(i64::MAX);
    let mut taken: Vec<(Option<i64>, Claim)> = txn
        .connection
        .prepare_cached(sql!("claim"))?
        .query_map(params![ask.session.to_string(), -head.no, limit], |row| {
            let at =
                ClaimRef { run: ask.run, position: row.get(1)?, attempt: row.get(2)?, session: ask.session };
            Ok((row.get(3)?, Claim { at, head: Arc::clone(&head.head) }))
        })?
        .collect::<rusqlite::Result<_>>()?;
    if taken.is_empty() {
        quarantine::check(txn.connection, head.no, ask.run)?;
    }
    // RETURNING promises no order; whoever starts them wants the oldest first.
    taken.sort_by_key(|(rank, claim)| (*rank, claim.at.position));
    Ok(taken.into_iter().map(|(_, claim)| claim).collect())
}
