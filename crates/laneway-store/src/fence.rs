//! The fence: why no write of a lost claim is ever seen.
//!
//! A claim is task + attempt + session. The attempt number is minted by the claim itself and never goes back,
//! so a task that was lost, returned or retried has another one. Every write of a worker carries all three and
//! names them, together with `status = 'running'`, in its own WHERE: there is no moment between a check and a
//! write in which the task could change hands. Zero rows changed is `ClaimLost`, never success. The session is
//! part of it, so that a node which reclaims its own task cannot be completed by its older attempt and a
//! store restored from a backup cannot be completed by a claim that the backup never saw.
//!
//! Whether the session is still alive is *not* asked here: a result that arrives before anybody reaped is good.

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;

/// One worker's hold on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    pub run: RunId,
    pub position: Position,
    pub attempt: u32,
    pub session: SessionId,
}

/// What became of a write that carried a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Written by this call.
    Recorded,
    /// The same claim had written this before: the answer to it was lost, the write was not.
    Repeated,
    /// The claim is no longer current, or its run is gone or set aside: nothing was changed. Kill what runs, drop the result.
    ClaimLost,
}
