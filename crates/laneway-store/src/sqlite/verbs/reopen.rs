//! `retry` and `skip`: an ended run goes on.

use laneway_core::id::RunId;

use crate::sqlite::run_work::on_run;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn retry(txn: &Txn<'_>, run: RunId, from: Option<&str>, by: &str) -> Done<Vec<String>> {
    on_run(txn, run, |keeper| keeper.retry(from, by))
}

pub(in crate::sqlite) fn skip(txn: &Txn<'_>, run: RunId, step: &str, by: &str) -> Done<Vec<String>> {
    on_run(txn, run, |keeper| keeper.skip_by_person(step, by))
}
