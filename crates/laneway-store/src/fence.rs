//! The fence: why no write of a lost claim is ever seen.
//!
//! A claim is task + generation + session. The generation is minted by the claim itself and never goes back,
//! so a task that was lost, returned or retried has another one. Every write of a worker carries all three and
//! names them, together with `status = 'running'`, in its own WHERE: there is no moment between a check and a
//! write in which the task could change hands. Zero rows changed is `ClaimLost`, never success. The session is
//! part of it, so that a node which reclaims its own task cannot be completed by its older attempt and a
//! store restored from a backup cannot be completed by a claim that the backup never saw.
//!
//! The attempt numbers executions, and fences nothing: a claim mints the next number, and a holder that gives the
//! claim back before it executed anything gives the number back with it. It is stored as what it is, and the
//! generation as `attempt + given_back`: so that it grows also with the claims of an older program beside this one.
//!
//! Whether the session is still alive is *not* asked here: a result that arrives before anybody reaped is good.

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;

/// One worker's hold on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    pub run: RunId,
    pub position: Position,
    /// Which execution of the task it is, from 1 on. Two claims have the same if the first was given back.
    pub attempt: u32,
    /// Which claim of the task it is, from 1 on. No two have the same.
    pub generation: u32,
    pub session: SessionId,
}

impl ClaimRef {
    /// Tells what it makes from what every other claim of the task makes: for names of containers and scratch files.
    pub fn suffix(&self) -> String {
        claim_suffix(self.attempt, self.generation)
    }

    /// How many claims of the task had been given back before this one.
    pub fn given_back(&self) -> u32 {
        self.generation.saturating_sub(self.attempt)
    }
}

/// The same of an attempt whose claim is over.
pub fn claim_suffix(attempt: u32, generation: u32) -> String {
    if generation == attempt { format!("a{attempt}") } else { format!("a{attempt}g{generation}") }
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
