//! `give_back`, `take_back`: claims that were never started return to the line. No retry is spent.

use super::by_run;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::GivenBackBy;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn give_back(txn: &Txn<'_>, claims: &[ClaimRef], by: GivenBackBy) -> Done<Vec<Fate>> {
    by_run(txn, claims, |keeper, claim| keeper.give_back(claim, by))
}
