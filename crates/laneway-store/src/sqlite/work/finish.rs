//! `finish`: the heart. Checks the fence, keeps the attempt, appends events, decides on a retry,
//! counts down successors, opens gates, ends the run if it is done, and claims the next tasks, all
//! in one transaction.

use crate::fence::Fate;
use crate::model::{Answer, Ask, Finished};
use crate::sqlite::read;
use crate::sqlite::run_work::on_held;
use crate::sqlite::txn::{Done, Txn};
use crate::sqlite::work::claim::claim;
use crate::sqlite::work::promote;

pub(in crate::sqlite) fn finish(txn: &Txn<'_>, finished: &[Finished], ask: Option<&Ask>) -> Done<Answer> {
    let mut answer = Answer::default();
    for of_run in finished.chunk_by(|a, b| a.claim.run == b.claim.run) {
        let ended = on_held(txn, of_run[0].claim.run, |keeper| {
            Ok((keeper.finish_all(of_run)?, keeper.is_closing()))
        })?;
        let (fates, is_closing) = ended.unwrap_or_else(|| (vec![Fate::ClaimLost; of_run.len()], false));
        answer.fates.extend(fates);
        answer.is_closing |= is_closing;
    }
    if let Some(ask) = ask {
        answer.claims = claim(txn, ask)?;
        // Those that cannot be read are dealt with by who looks for orders.
        answer.stops = read::stops(txn.connection, ask.session, |no| txn.run_id(no))?.list;
    }
    txn.about_none();
    answer.wake_at = promote::next(txn.connection)?;
    Ok(answer)
}
