//! The path of a task: submit, promote, claim, start, finish; and the runs that steps start.
//!
//! ```text
//! submit ──▶ pending ──promote──▶ available ──claim──▶ running ──finish──▶ succeeded, failed, …
//!               ▲                     ▲                   │
//!               └────── retry ────────┴──── give_back ────┘
//! ```

use async_trait::async_trait;
use laneway_core::child::Parent;
use laneway_core::expression::Scope;
use laneway_core::id::{RunId, SessionId};
use laneway_core::time::Millis;

use crate::child::{Resumed, WantedPage, Wanting};
use crate::error::Result;
use crate::fence::{ClaimRef, Fate};
use crate::model::{Answer, Ask, Claim, Finished, Submission};

#[async_trait]
pub trait Work {
    /// Creates a run of a plan with all of its tasks, and opens the gates of those that wait for
    /// nothing. No reader sees half of it. With a key that was used before, returns the run of that
    /// key. With a parent, the step that waits for it has it from the same commit on.
    ///
    /// # Errors
    /// Rejects a parent that waits for no run, and a key that was used with other parameters or with
    /// another version.
    async fn submit(&self, submission: Submission) -> Result<RunId>;

    /// Makes `session` the owner of a local run whose former owner is dead.
    ///
    /// # Errors
    /// `Owned` while the former owner lives.
    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()>;

    /// Opens gates that time has opened, and ends runs whose timeout has passed. Returns the next
    /// moment at which there will be something to do.
    async fn promote(&self) -> Result<Option<Millis>>;

    /// Returns the next moment at which `promote` will have something to do, as far as is known
    /// now.
    async fn wake_at(&self) -> Result<Option<Millis>>;

    /// Claims up to `ask.limit` available tasks, oldest first, in one atomic step, and mints the
    /// attempt number of each. Two callers never get the same task. Checks no gate. Claims
    /// `ask.ahead` more tasks ahead of free slots; until they start, all readers see these as
    /// waiting.
    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>>;

    /// Claims the rest of a level whose first task is claimed, by name, and records that all of it
    /// has started. Returns what is held of it, or nothing if the claim is lost. Idempotent by
    /// claim.
    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>>;

    /// Records that claimed tasks have started. `finish` implies it.
    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// Records how attempts ended and all that follows: retries, successors, gates, the end of the
    /// run. Claims the next tasks too if `ask` is given, so that a chain costs one commit a step. A
    /// level ends as a whole, and counts as a whole. Idempotent by claim.
    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer>;

    /// Returns claimed tasks that never started. Only their live holder may call it, because it
    /// knows that it executed nothing: they were no attempts, and the next claims reuse their
    /// numbers. Spends no retry. In a run that is closing they end.
    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// The same on behalf of a holder that may have executed something without a record: each claim
    /// counts as an attempt.
    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// Returns the fencing token of a claim: `Some(None)` if its step has no lock, `None` if the
    /// claim is lost.
    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>>;

    /// Returns what the expressions of a task may read: `params`, `run`, and the named steps.
    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope>;

    /// Returns the runs that steps wait for and that no node has started yet: those of shared runs,
    /// and those of the local runs of a session.
    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage>;

    /// Reopens the run that a step started before, for a step that waits for it again: what did not
    /// succeed runs again. A local one then belongs to `session`. Does nothing if the step no
    /// longer waits. A new child is submitted with its parent instead.
    async fn resume_child(&self, parent: Parent, child: RunId, session: Option<SessionId>)
    -> Result<Resumed>;

    /// Returns the runs that a local run has started, and those below them, whatever their status.
    async fn family(&self, run: RunId) -> Result<Vec<RunId>>;

    /// Fails a step because the run that it waits for cannot be started. Does nothing if the step
    /// no longer waits.
    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()>;
}
