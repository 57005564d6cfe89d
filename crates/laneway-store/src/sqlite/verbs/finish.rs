//! `finish`: the heart. Checks the fence, keeps the attempt, appends events, decides on a retry, counts down
//! successors, opens gates, ends the run if it is done, and claims the next tasks, all in one transaction.

use super::claim::claim;
use super::promote;
use crate::model::{Answer, Ask, Finished};
use crate::sqlite::read;
use crate::sqlite::run_work::on_run;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn finish(txn: &Txn<'_>, finished: &[Finished], ask: Option<&Ask>) -> Done<Answer> {
    let mut answer = Answer::default();
    for of_run in finished.chunk_by(|a, b| a.claim.run == b.claim.run) {
        on_run(txn, of_run[0].claim.run, |keeper| {
            for one in of_run {
                answer.fates.push(keeper.finish(one)?);
            }
            answer.is_closing |= keeper.is_closing();
            Ok(())
        })?;
    }
    if let Some(ask) = ask {
        answer.claims = claim(txn, ask)?;
        answer.stops = read::stops(txn.connection, ask.session, |no| txn.run_id(no))?;
    }
    answer.wake_at = promote::next(txn)?;
    Ok(answer)
}
