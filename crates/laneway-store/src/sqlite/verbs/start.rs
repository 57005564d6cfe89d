//! `start`: the holder of a claim says that its task runs. This is the claim's event.

use laneway_core::event::TaskStarted;
use rusqlite::{OptionalExtension, params};

use crate::fence::{ClaimRef, Fate};
use crate::sqlite::run_work::RunWork;
use crate::sqlite::txn::{Done, Txn, sql};

pub(in crate::sqlite) fn start(txn: &Txn<'_>, claims: &[ClaimRef]) -> Done<Vec<Fate>> {
    let mut fates = Vec::with_capacity(claims.len());
    for of_run in claims.chunk_by(|a, b| a.run == b.run) {
        let mut work = RunWork::load(txn, of_run[0].run)?;
        for claim in of_run {
            fates.push(one(&mut work, claim)?);
        }
        work.conclude()?;
    }
    Ok(fates)
}

fn one(work: &mut RunWork<'_, '_>, claim: &ClaimRef) -> Done<Fate> {
    let txn = work.txn;
    let Some(node) = txn.node(claim.session)? else { return Ok(Fate::ClaimLost) };
    let was_ahead: Option<bool> = txn
        .connection
        .prepare_cached(sql!("start"))?
        .query_row(
            params![
                work.head.no,
                claim.position,
                claim.attempt,
                claim.session.to_string(),
                txn.now.0,
                &*node
            ],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(was_ahead) = was_ahead {
        if was_ahead {
            work.admit(claim.position)?;
        }
        let step = work.name(claim.position);
        work.append(TaskStarted { step, attempt: claim.attempt, node: node.to_string() })?;
        return Ok(Fate::Recorded);
    }
    // Said before, and still running: the answer was lost, the claim was not.
    let is_current = work.task(claim.position)?.is_held_by(claim);
    Ok(if is_current { Fate::Repeated } else { Fate::ClaimLost })
}
