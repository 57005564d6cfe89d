//! `claim_level`: who holds the first task of a level takes all of it. `advance`: one level more.

use std::sync::Arc;

use laneway_core::id::RunId;

use crate::fence::ClaimRef;
use crate::model::Claim;
use crate::sqlite::run_work::{on_held, on_run};
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn claim_level(txn: &Txn<'_>, first: &ClaimRef) -> Done<Vec<Claim>> {
    let held = on_held(txn, first.run, |keeper| keeper.claim_level(first))?.unwrap_or_default();
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let head = Arc::clone(&txn.head(first.run)?.head);
    Ok(held
        .into_iter()
        .map(|at| Claim { at, head: Arc::clone(&head), start_by: None, is_bound: false })
        .collect())
}

pub(in crate::sqlite) fn advance(txn: &Txn<'_>, run: RunId, by: &str) -> Done<u32> {
    on_run(txn, run, |keeper| keeper.advance(by))
}
