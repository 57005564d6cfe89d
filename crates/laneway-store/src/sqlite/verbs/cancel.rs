//! `cancel`: nothing of the run but its clean-up is claimed once this has committed. What runs is
//! stopped by its holder.

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;

use crate::model::CancelMode;
use crate::sqlite::read;
use crate::sqlite::run_work::on_run;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn cancel(txn: &Txn<'_>, run: RunId, by: &str, mode: CancelMode) -> Done<RunStatus> {
    on_run(txn, run, |keeper| keeper.cancel(by, mode))?;
    read::status(txn.connection, run)
}
