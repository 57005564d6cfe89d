//! The fence: why no write of a lost claim is ever seen.
//!
//! A claim is task + generation + session. The claim itself mints the generation, which never goes
//! back. A task that was lost, returned or retried therefore has another one.
//!
//! Every write of a worker carries all three and names them in its own WHERE, together with
//! `status = 'running'`. Between a check and a write there is no moment in which the task could
//! change hands. Zero rows changed is `ClaimLost`, never success.
//!
//! The session is part of it for two reasons. A node that reclaims its own task cannot have it
//! completed by its older attempt. A store restored from a backup cannot have a task completed by a
//! claim that the backup never saw.
//!
//! The attempt numbers executions, and fences nothing. A claim mints the next number, and a holder
//! that gives the claim back before executing anything returns the number with it. It is stored as
//! such, and the generation as `attempt + given_back`. The generation thus also grows with the
//! claims of an older program beside this one.
//!
//! Whether the session is still alive is *not* checked here: a result that arrives before a reap is
//! valid.

use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Position;

/// A worker's hold on a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimRef {
    pub run: RunId,
    pub position: Position,
    /// The number of the execution, from 1 on. Two claims share it if the first was given back.
    pub attempt: u32,
    /// The number of the claim of the task, from 1 on. No two claims share it.
    pub generation: u32,
    pub session: SessionId,
}

impl ClaimRef {
    /// Returns a suffix that no other claim of the task has, for names of containers and scratch
    /// files.
    pub fn suffix(&self) -> String {
        claim_suffix(self.attempt, self.generation)
    }

    /// Returns how many claims of the task had been given back before this one.
    pub fn given_back(&self) -> u32 {
        self.generation.saturating_sub(self.attempt)
    }
}

/// Returns the suffix of an attempt whose claim is over.
pub fn claim_suffix(attempt: u32, generation: u32) -> String {
    if generation == attempt { format!("a{attempt}") } else { format!("a{attempt}g{generation}") }
}

/// The result of a write that carried a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Written by this call.
    Recorded,
    /// The same claim had written this before: the response was lost, the write was not.
    Repeated,
    /// The claim is no longer current, or its run is gone or in quarantine. Nothing was changed.
    /// The worker must kill what runs, and drop the result.
    ClaimLost,
}
