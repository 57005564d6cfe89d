//! `cancel`: nothing of the run is claimed once this has committed. What runs is stopped by its holder.

use laneway_core::event::{Closing, RunCanceling};
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;

use crate::sqlite::run_work::RunWork;
use crate::sqlite::txn::{Done, Txn};

pub(in crate::sqlite) fn cancel(txn: &Txn<'_>, run: RunId, by: &str) -> Done<RunStatus> {
    let mut work = RunWork::load(txn, run)?;
    if work.status.is_final() || work.closing == Some(Closing::Canceled) {
        return Ok(work.status);
    }
    let closing = Closing::Canceled;
    work.closing = Some(closing);
    work.reason = Some(format!("canceled by {by}"));
    work.append(RunCanceling { closing, by: by.to_owned() })?;
    work.end_unstarted()?;
    work.stop_running(closing)?;
    work.conclude()?;
    Ok(RunWork::load(txn, run)?.status)
}
