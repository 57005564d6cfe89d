//! What people and programs change: runs, limits, workflows, nodes.

use async_trait::async_trait;
use laneway_core::id::{RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::node_event::Leaving;
use laneway_core::state::RunStatus;

use crate::error::Result;
use crate::model::{Application, Applied, CancelMode, NewSignal, Pausable, Reopen, Signaled, Whom, Wish};

#[async_trait]
pub trait Operator {
    /// Cancels a run. After this returns, nothing of it but its clean-up is ever claimed, until an
    /// operator retries it; with `CancelMode::Now` nothing at all, also in a run that is cleaning
    /// up. Clean-up ends with its `cleanup_timeout`, which counts from here on the store's clock.
    /// Canceling a run that has ended changes nothing and returns its status.
    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus>;

    /// Reopens an ended run: its failed, skipped and canceled steps and everything after them; or,
    /// with `from`, that step and everything after it. Returns the steps that will run again.
    ///
    /// # Errors
    /// Rejects a request that was made for an earlier end of the run (`seen`). Of two equal requests the
    /// second therefore changes nothing, however soon the run has ended again.
    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>>;

    /// Lets an ended run continue past a failed step. Returns the steps that will run now.
    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>>;

    /// Delivers the signal that a step waits for. The first one counts, and ends the step with the
    /// payload as its output. One that arrives before the step waits is kept for it.
    ///
    /// # Errors
    /// Rejects a step that waits for another signal, for none, or no longer.
    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled>;

    /// Pauses a run or a workflow: nothing of it starts until it is resumed; running tasks
    /// continue. Returns `false` if it was paused already.
    async fn pause(&self, what: Pausable, by: &str) -> Result<bool>;

    /// Resumes what was paused. Returns `false` if it was not paused in that way, or has ended.
    async fn resume(&self, what: Pausable, by: &str) -> Result<bool>;

    /// Lets a paused run that goes level by level do its next level, and pauses it again after
    /// that. Returns the number of the level.
    async fn advance(&self, run: RunId, by: &str) -> Result<u32>;

    /// Creates a named limit, or changes it for every run. Tasks that fit the new limit start at
    /// once.
    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()>;

    /// Removes a named limit. Later submissions that name it are rejected.
    ///
    /// # Errors
    /// `LimitInUse` if a task holds it or waits for it, or a run that has not ended names it.
    async fn remove_limit(&self, name: &str) -> Result<()>;

    /// Stores a workflow under its name with the files beside it, as the next version of that name,
    /// unless the newest version is equal. Existing runs keep their version. Arms its triggers and
    /// removes others of that name. A trigger that existed continues where it was; a new one does
    /// not fire for the past.
    async fn apply(&self, application: Application) -> Result<Applied>;

    /// Removes what was applied under a name, and its triggers. Runs and their history stay. No run
    /// starts by the name until something is applied or run under it again.
    ///
    /// # Errors
    /// `WorkflowInUse` if it has runs that have not ended, or triggers that fire, unless `is_forced`.
    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()>;

    /// Stops nodes from claiming new tasks; what they run continues to its end. Returns the
    /// sessions that will drain.
    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>>;

    /// Records a request for the pools of sessions, in place of an earlier one
    /// (`Sessions::orders`). Skips sessions that are over.
    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()>;
}
