//! `give_back`: claims that were never started return to the line. No retry is spent.

use laneway_core::event::TaskReturned;
use laneway_core::state::TaskMove;
use rusqlite::params;

use super::finish::{EndedBy, Ending, Record, end, keep_attempt};
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
    let task = work.task(claim.position)?;
    if !task.is_held_by(claim) || task.started_at.is_some() {
        return Ok(Fate::ClaimLost);
    }
    if let Some(closing) = work
        .closing
        .filter(|closing| !(closing.lets_clean_up() && work.step(claim.position).when.accepts_failure()))
    {
        // Its run starts nothing any more: back in the line it would wait for ever.
        let ending = Ending {
            by: EndedBy::GiveBack,
            step: TaskMove::Cancel,
            reason: Some(closing.reason()),
            detail: None,
            exit_code: None,
            output: serde_json::Map::new(),
        };
        return end(work, claim, &task, ending);
    }
    task.status.next(TaskMove::GiveBack)?;
    let changed = work.txn.connection.prepare_cached(sql!("give_back"))?.execute(params![
        work.head.no,
        claim.position,
        claim.attempt,
        claim.session.to_string()
    ])?;
    if changed == 0 {
        return Ok(Fate::ClaimLost);
    }
    let record = Record { outcome: "returned", reason: None, detail: None, exit_code: None, took_ms: None };
    keep_attempt(work, claim, &task, &record)?;
    work.append(TaskReturned { step: work.name(claim.position), attempt: claim.attempt })?;
    Ok(Fate::Recorded)
}
