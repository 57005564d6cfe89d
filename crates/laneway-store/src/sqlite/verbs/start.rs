//! `start`: the holder of a claim says that its task runs. This is the claim's event.

use super::by_run;
use crate::fence::{ClaimRef, Fate};
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn start(txn: &Txn<'_>, claims: &[ClaimRef]) -> Done<Vec<Fate>> {
    by_run(txn, claims, |keeper, claim| keeper.start(claim))
}
