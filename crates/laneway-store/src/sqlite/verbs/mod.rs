//! The verbs, one file each. Every function runs inside one transaction of the writer; what follows from it is decided
//! by the gate keeper (`keeper/`).

pub(super) mod apply;
pub(super) mod cancel;
pub(super) mod claim;
pub(super) mod finish;
pub(super) mod give_back;
pub(super) mod lives;
pub(super) mod people;
pub(super) mod promote;
pub(super) mod prune;
pub(super) mod reopen;
pub(super) mod secrets;
pub(super) mod start;
pub(super) mod submit;
pub(super) mod triggers;

use laneway_core::id::RunId;

use super::txn::Done;
use crate::fence::{ClaimRef, Fate};

/// Asks for the fates of claims, run by run, in the order in which they came.
fn by_run(
    claims: &[ClaimRef],
    mut ask: impl FnMut(RunId, &[ClaimRef]) -> Done<Vec<Fate>>,
) -> Done<Vec<Fate>> {
    let mut fates = Vec::with_capacity(claims.len());
    for of_run in claims.chunk_by(|a, b| a.run == b.run) {
        fates.extend(ask(of_run[0].run, of_run)?);
    }
    Ok(fates)
}
