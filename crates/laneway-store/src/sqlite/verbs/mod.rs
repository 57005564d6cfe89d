//! The verbs, one file each. Every function runs inside one transaction of the writer; what follows from it is decided
//! by the gate keeper (`keeper/`).

pub(super) mod apply;
pub(super) mod cache;
pub(super) mod cancel;
pub(super) mod children;
pub(super) mod claim;
pub(super) mod effects;
pub(super) mod finish;
pub(super) mod give_back;
pub(super) mod levels;
pub(super) mod lives;
pub(super) mod people;
pub(super) mod promote;
pub(super) mod prune;
pub(super) mod remove;
pub(super) mod reopen;
pub(super) mod secrets;
pub(super) mod start;
pub(super) mod submit;
pub(super) mod triggers;

use super::run_work::{Stored, on_held};
use super::txn::{Done, Txn};
use crate::fence::{ClaimRef, Fate};
use crate::keeper::Keeper;

/// Says something about claims, run by run, and gives their fates in the order in which they came. Claims of a run that is gone
/// are lost, and take nothing of the others with them.
fn by_run(
    txn: &Txn<'_>,
    claims: &[ClaimRef],
    mut say: impl FnMut(&mut Keeper<Stored<'_, '_>>, &ClaimRef) -> Done<Fate>,
) -> Done<Vec<Fate>> {
    let mut fates = Vec::with_capacity(claims.len());
    for of_run in claims.chunk_by(|a, b| a.run == b.run) {
        let said = on_held(txn, of_run[0].run, |keeper| {
            of_run.iter().map(|claim| say(keeper, claim)).collect::<Done<Vec<Fate>>>()
        })?;
        fates.extend(said.unwrap_or_else(|| vec![Fate::ClaimLost; of_run.len()]));
    }
    Ok(fates)
}
