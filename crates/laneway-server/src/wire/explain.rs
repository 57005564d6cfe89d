//! Why tasks wait, or why they ended as they did: the shapes of `laneway explain --json` and of its routes.

use laneway_core::cause;
use laneway_core::event::Closing;
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::run_state::TaskState;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CacheMiss, Cause, Moment, ReasonWord};

/// A run, with why each of its tasks is as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedRun {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    #[schema(value_type = String)]
    pub status: RunStatus,
    pub reason: Option<String>,
    pub interrupted: bool,
    /// Why it is being brought to its end, while it is: halted, aborted, canceled or run_timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub closing: Option<Closing>,
    /// Until when it may clean up, while it is being canceled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_up_until: Option<Moment>,
    pub tasks: Vec<ExplainedTask>,
}

/// A task, and why it is as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedTask {
    pub step: String,
    #[schema(value_type = String)]
    pub status: TaskStatus,
    pub attempt: u32,
    #[schema(value_type = Option<ReasonWord>)]
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub cause: Option<Cause>,
    #[serde(default)]
    pub node: Option<String>,
    #[serde(default)]
    pub started_at: Option<Moment>,
}

/// One step, with what it waits for through whatever waits itself, and all of its attempts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedStep {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    #[schema(value_type = String)]
    pub status: TaskStatus,
    pub attempt: u32,
    #[schema(value_type = Option<ReasonWord>)]
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub cause: Option<Cause>,
    pub chain: Vec<Link>,
    pub attempts: Vec<Attempt>,
    /// In what it runs, if that is a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<TaskContainer>,
    #[serde(default)]
    pub node: Option<String>,
    #[serde(default)]
    pub started_at: Option<Moment>,
    #[serde(default)]
    pub interrupted: bool,
    /// Of a submitted run whose files follow it: what the step saw, and what it left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<StepFiles>,
    /// Why it was executed although it has `cache`.
    #[serde(default)]
    pub cache: Option<CacheMiss>,
}

/// The files of one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepFiles {
    /// Layers in its view, the lowest first. Below them is the bundle.
    pub saw: Vec<StepLayer>,
    /// `None` if it changed nothing, or has not ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<StepLayer>,
}

/// What a step changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StepLayer {
    pub step: String,
    pub attempt: u32,
    /// Created, changed and removed.
    pub paths: u64,
    /// Size of the files.
    pub bytes: u64,
    /// The node that alone has the files, because they are too large for the store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// One task of a chain, and why it does not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Link {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    pub cause: Cause,
}

/// One numbered try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    pub attempt: u32,
    /// Of its claim. What people see of it is the name of its container.
    #[serde(skip)]
    pub generation: u32,
    pub node: Option<String>,
    /// `running`, or how it ended: succeeded, failed, canceled, lost, returned.
    pub outcome: String,
    #[schema(value_type = Option<ReasonWord>)]
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub exit_code: Option<i32>,
    pub started_at: Option<Moment>,
    pub took_ms: Option<u64>,
    pub finished_at: Option<Moment>,
    /// In what it ran, if that was a container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<TaskContainer>,
}

/// A container of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskContainer {
    /// As the document calls it.
    pub image: String,
    /// Of a warm one: its pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The name by which the engine of the attempt's node knows it. Null before an attempt, and of one that never started or took a result
    /// that was there; of a warm one also when it was so long ago that what its pool did is not kept any more.
    pub container: Option<String>,
}

/// The attempts of a step, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AttemptList {
    pub attempts: Vec<Attempt>,
}

impl From<&model::Attempt> for Attempt {
    fn from(attempt: &model::Attempt) -> Self {
        Self {
            attempt: attempt.attempt,
            generation: attempt.generation,
            node: attempt.node.clone(),
            outcome: attempt.outcome.clone(),
            reason: attempt.reason,
            detail: attempt.detail.clone(),
            exit_code: attempt.exit_code,
            started_at: attempt.started_at.map(Moment),
            took_ms: attempt.took_ms,
            finished_at: attempt.finished_at.map(Moment),
            container: None,
        }
    }
}

impl From<&cause::Link> for Link {
    fn from(link: &cause::Link) -> Self {
        Self { run: link.run, step: link.step.clone(), cause: Cause::from(&link.cause) }
    }
}

impl ExplainedTask {
    fn new(task: &TaskState, cause: Option<&cause::Cause>) -> Self {
        Self {
            step: task.step.clone(),
            status: task.status,
            attempt: task.attempt,
            reason: task.reason,
            detail: task.detail.clone(),
            cause: cause.map(Cause::from),
            node: task.node.clone(),
            started_at: task.started_at.map(Moment),
        }
    }
}

impl From<&model::RunView> for ExplainedRun {
    fn from(view: &model::RunView) -> Self {
        let tasks = view.state.tasks.iter().zip(&view.causes);
        Self {
            run: view.state.run,
            workflow: view.state.workflow.clone(),
            status: view.without_node().map_or(view.state.status, |_| RunStatus::Queued),
            reason: view.state.reason.clone(),
            interrupted: view.is_interrupted,
            closing: view.state.closing.filter(|_| !view.state.status.is_final()),
            clean_up_until: view.state.clean_up_until.filter(|_| !view.state.status.is_final()).map(Moment),
            tasks: tasks.map(|(task, cause)| ExplainedTask::new(task, cause.as_ref())).collect(),
        }
    }
}

impl ExplainedStep {
    pub fn new(
        view: &model::RunView,
        (task, cause): (&TaskState, Option<&cause::Cause>),
        chain: &[cause::Link],
        attempts: &[model::Attempt],
        missed: Option<&laneway_store::cache::Missed>,
    ) -> Self {
        let ExplainedTask { step, status, attempt, reason, detail, cause, node, started_at } =
            ExplainedTask::new(task, cause);
        Self {
            run: view.state.run,
            step,
            status,
            attempt,
            reason,
            detail,
            cause,
            chain: chain.iter().map(Link::from).collect(),
            attempts: attempts.iter().map(Attempt::from).collect(),
            container: None,
            node,
            started_at,
            interrupted: view.is_interrupted,
            files: None,
            cache: missed.map(CacheMiss::from),
        }
    }
}
