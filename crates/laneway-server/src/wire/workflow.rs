//! Workflows that the store has seen, and how the service is.

use laneway_core::hash::ContentHash;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_store::model;
use serde::{Deserialize, Serialize};
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
}

/// A workflow that was applied, and how it ran last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WorkflowSummary {
    pub workflow: String,
    pub version: u32,
    pub document: String,
    pub bundle: Option<String>,
    pub applied_at: Moment,
    pub applied_by: String,
    pub dir: String,
    pub last_run: Option<LastRun>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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
    pub bundle: Option<String>,
    /// From where it is applied: told to people, and where its steps run if no files come with it. The directory of the
    /// server without it.
    pub directory: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    pub workflow: String,
    pub version: u32,
    /// False if the newest was the same.
    pub changed: bool,
    pub bundle: Option<String>,
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
        Self { workflow, version, document, bundle, applied_at, applied_by, dir, last_run }
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
