//! What starts runs by itself: schedules, ends of runs, hooks, webhooks
//! (`docs/design/triggers.md`).

use async_trait::async_trait;
use laneway_core::id::{RunId, SessionId};

use crate::error::Result;
use crate::trigger::{DueNow, End, Fired, Firing, LastFired, Listening, Outbox, TriggerRef, TriggerView};

#[async_trait]
pub trait Triggers {
    /// Returns what triggers must do now, up to `limit` of each kind. Every caller gets the same
    /// until it is done. An unreadable row hides none of the others.
    async fn due(&self, limit: usize) -> Result<DueNow>;

    /// Records how far a schedule has come. Returns `false`, and changes nothing, if another node
    /// was faster.
    async fn fire(&self, fired: Fired) -> Result<bool>;

    /// Records that the end of a run has fired its triggers, and the result.
    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()>;

    /// Returns the end of a run whose hooks have yet to run. `due` returns it too, unless the run
    /// is local to an owner that lives.
    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>>;

    /// Returns what a session can do about the callbacks of all runs. Several sessions may get the
    /// same: a claim decides which one sends.
    async fn outbox(&self, session: SessionId) -> Result<Outbox>;

    /// Returns the trigger that listens at the path of a webhook.
    async fn listening(&self, path: &str) -> Result<Option<Listening>>;

    /// Remembers which delivery first carried a signature at a path, for `HOLD_SIGNATURES`, and
    /// returns its name: this one, unless the same body came before under another name. Of two that
    /// arrive at once, both get the same name. Durable when it returns.
    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String>;

    /// Records the result of a trigger that was fired from outside.
    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()>;

    /// Stops the triggers of a workflow from firing. What is due meanwhile is skipped for good.
    /// Returns `false` if they were paused already.
    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool>;

    /// Lets them fire again. Returns whether any of them was paused.
    async fn resume_triggers(&self, workflow: &str) -> Result<bool>;

    /// Removes the triggers of a workflow until it is applied again, and returns how many there
    /// were.
    ///
    /// # Errors
    /// `NoTriggers` if it has none.
    async fn remove_triggers(&self, workflow: &str) -> Result<u64>;

    /// Returns all triggers, by workflow.
    async fn triggers(&self) -> Result<Vec<TriggerView>>;
}
