//! Workflows that the store has seen, and how the service is.

use laneway_core::definition;
use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Moment;

/// The newest version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workflow {
    pub name: String,
    /// By content.
    pub version: String,
    /// Where its steps ran last.
    pub directory: String,
    pub document: String,
    /// Hash of the files that came with it: to apply a changed document with the same files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    /// Who paused it: nothing of it starts until somebody resumes it.
    #[serde(default)]
    pub paused_by: Option<String>,
    #[serde(default)]
    pub paused_at: Option<Moment>,
}

impl Workflow {
    pub fn new(name: &str, known: model::Known, document: String, pause: Option<(String, Millis)>) -> Self {
        let (paused_by, paused_at) = pause.unzip();
        Self {
            name: name.to_owned(),
            version: known.version.to_string(),
            directory: known.dir,
            document,
            bundle: known.bundle.as_ref().map(ContentHash::to_string),
            paused_by,
            paused_at: paused_at.map(Moment),
        }
    }
}

/// One applied version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Definition {
    pub workflow: String,
    /// Counted from 1 for each name.
    pub version: u32,
    /// Hash of the document.
    pub document: String,
    /// Hash of the files that came with it.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    pub applied_at: Moment,
    pub applied_by: String,
    /// From where it was applied.
    pub dir: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionList {
    /// Newest first.
    pub versions: Vec<Definition>,
    /// The next page is asked for with this; null on the last one.
    pub next_cursor: Option<String>,
}

/// A workflow that was applied, and how it ran last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    pub workflow: String,
    pub version: u32,
    pub document: String,
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    pub applied_at: Moment,
    pub applied_by: String,
    pub dir: String,
    pub last_run: Option<LastRun>,
    /// Its last 20 runs, newest first.
    #[serde(default)]
    pub outcomes: Vec<Outcome>,
    /// What a run of it asks for, in the order of the document.
    #[serde(default)]
    pub params: Vec<Param>,
    /// When a schedule starts it next.
    #[serde(default)]
    pub next_at: Option<Moment>,
    /// Who paused it: nothing of it starts until somebody resumes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_at: Option<Moment>,
}

/// One run of a workflow, and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Outcome {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// Null when it cannot be read.
    #[schema(value_type = Option<String>)]
    pub status: Option<RunStatus>,
    /// From its start to its end, of one that has both.
    pub took_ms: Option<u64>,
    /// When it was submitted.
    pub at: Moment,
}

/// A parameter of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Param {
    pub name: String,
    /// string, integer, number, boolean, list or object.
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
    /// Null for none.
    pub default: Value,
    /// The values that it may have; any of its type without some.
    pub choices: Vec<Value>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastRun {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    /// Null when it cannot be read.
    #[schema(value_type = Option<String>)]
    pub status: Option<RunStatus>,
    pub submitted_at: Moment,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowList {
    /// By name.
    pub workflows: Vec<WorkflowSummary>,
}

/// A workflow to be known by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Apply {
    pub document: String,
    /// Its name, where the document gives none.
    pub name: Option<String>,
    /// Hash of the files that go with it, brought before.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    /// From where it is applied: told to people, and where its steps run if no files come with it. The directory of the
    /// server without it.
    #[schema(pattern = "^/[^\\x00]*$")]
    pub directory: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    pub workflow: String,
    pub version: u32,
    /// False if the newest was the same.
    pub changed: bool,
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub bundle: Option<String>,
    /// Addresses of the live nodes that fire its schedules; null for a workflow without one.
    #[serde(default)]
    pub fired_by: Option<Vec<String>>,
}

/// Files that were brought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Brought {
    pub hash: String,
    pub bytes: u64,
}

impl From<&model::Definition> for Definition {
    fn from(one: &model::Definition) -> Self {
        Self {
            workflow: one.name.clone(),
            version: one.no,
            document: one.version.to_string(),
            bundle: one.bundle.as_ref().map(ContentHash::to_string),
            applied_at: Moment(one.applied_at),
            applied_by: one.applied_by.clone(),
            dir: one.dir.clone(),
        }
    }
}

impl From<&model::WorkflowView> for WorkflowSummary {
    fn from(view: &model::WorkflowView) -> Self {
        let Definition { workflow, version, document, bundle, applied_at, applied_by, dir } =
            Definition::from(&view.definition);
        let last_run = view.last_run.as_ref().map(|last| LastRun {
            run: last.run,
            status: last.status,
            submitted_at: Moment(last.submitted_at),
        });
        let (outcomes, params, next_at) = (Vec::new(), Vec::new(), None);
        let (paused_by, paused_at) = view.pause.clone().unzip();
        Self {
            workflow,
            version,
            document,
            bundle,
            applied_at,
            applied_by,
            dir,
            last_run,
            outcomes,
            params,
            next_at,
            paused_by,
            paused_at: paused_at.map(Moment),
        }
    }
}

impl From<&model::RunOutcome> for Outcome {
    fn from(outcome: &model::RunOutcome) -> Self {
        let took =
            outcome.started_at.zip(outcome.finished_at).map(|(started, finished)| finished.since(started));
        Self {
            run: outcome.run,
            status: outcome.status,
            took_ms: took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
            at: Moment(outcome.submitted_at),
        }
    }
}

impl From<&definition::Param> for Param {
    fn from(param: &definition::Param) -> Self {
        Self {
            name: param.name.clone(),
            kind: param.kind.as_str().to_owned(),
            required: param.required,
            default: param.default.clone().unwrap_or_default(),
            choices: param.allowed.clone(),
            description: param.description.clone(),
        }
    }
}

/// How the service is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `alive`, `ready` or `not ready`.
    pub status: String,
    /// What is wrong, where something is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
