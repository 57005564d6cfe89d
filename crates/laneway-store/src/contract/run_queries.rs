//! Reads of one run, or of the list of runs. Short, and never blocked by a writer.

use std::sync::Arc;

use async_trait::async_trait;
use laneway_core::event::Event;
use laneway_core::hash::Version;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::pool::ContainerTaken;
use laneway_core::run_state::RunState;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;

use crate::error::Result;
use crate::model::{Attempt, ItemsAsked, RunFilter, RunHead, RunSummary, RunView, TaskView};

#[async_trait]
pub trait RunQueries {
    /// Finds a run by its id, by a unique beginning or end of it, or by `last`: the newest run that
    /// a person or a program submitted, and no step, hook or trigger.
    async fn find_run(&self, name: &str) -> Result<RunId>;

    /// Returns runs, newest first.
    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>>;

    /// Returns the run that stands `count` places after `before` (or after the start) in that list,
    /// and when it was submitted; `None` if the list is shorter. A caller that filters rare runs
    /// out of many reads the list in such spans.
    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>>;

    /// Returns a run and its tasks, with the cause of every task that waits.
    async fn run(&self, run: RunId) -> Result<RunView>;

    /// Returns items of a step in order, with the cause of those that wait. Reads no more than
    /// these, the steps of the run, and what is live of it.
    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>>;

    /// Returns the parts of a run that never change.
    async fn head(&self, run: RunId) -> Result<Arc<RunHead>>;

    async fn status(&self, run: RunId) -> Result<RunStatus>;

    /// Returns the stored side of a replay.
    async fn run_state(&self, run: RunId) -> Result<RunState>;

    /// Returns events numbered above `after`, in order, up to the first unreadable one.
    ///
    /// # Errors
    /// Names the unreadable event if it is the first, so that the reader can continue after it.
    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>>;

    /// Returns the attempts of a step that have ended, and the one that runs, oldest first.
    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>>;

    /// Returns the warm containers that attempts of a task had, in order, as far back as pool
    /// events are kept.
    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>>;

    async fn plan(&self, version: &Version) -> Result<Arc<Plan>>;

    /// Returns the text that a version was made from.
    async fn document(&self, version: &Version) -> Result<String>;
}
