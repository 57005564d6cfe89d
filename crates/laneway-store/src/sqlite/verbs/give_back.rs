//! `give_back`: claims that were never started return to the line. No retry is spent. In a run that is closing they
//! end there as anything else that has not started.

use laneway_core::event::TaskReturned;
use rusqlite::params;

use super::finish::{Record, keep_attempt};
use crate::fence::{ClaimRef, Fate};
use crate::sqlite::run_work::RunWork;
use crate::sqlite::txn::{Done, Txn, sql};

pub(in crate::sqlite) fn give_back(txn: &Txn<'_>, claims: &[ClaimRef]) -> Done<Vec<Fate>> {
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
    let changed = work.txn.connection.prepare_cached(sql!("give_back"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string()
    ])?;
    if changed == 0 {
        return Ok(Fate::ClaimLost);
    }
    let record = Record {
        outcome: "returned",
        reason: None,
        detail: None,
        exit_code: None,
        started_at: None,
        took_ms: None,
    };
    keep_attempt(work, claim, &record)?;
    work.append(TaskReturned { step: work.name(claim.position), attempt: claim.attempt })?;
    work.return_to_line(claim.position)?;
    Ok(Fate::Recorded)
}
