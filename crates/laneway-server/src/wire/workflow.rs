//! Workflows that the store has seen, and how the service is.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

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

/// How the service is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `alive`, `ready` or `not ready`.
    pub status: String,
    /// What is wrong, where something is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}
