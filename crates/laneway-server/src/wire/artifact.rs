//! Artifacts: the shapes of `laneway artifacts --json` and of their routes.

use laneway_store::model;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A file that a step left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Artifact {
    pub step: String,
    pub attempt: u32,
    /// Its path, relative to where the step ran.
    pub name: String,
    pub bytes: u64,
    /// BLAKE3 of what is in it.
    pub hash: String,
    pub executable: bool,
}

impl From<&model::ArtifactView> for Artifact {
    fn from(view: &model::ArtifactView) -> Self {
        let model::ArtifactView { step, attempt, artifact } = view;
        Self {
            step: step.clone(),
            attempt: *attempt,
            name: artifact.name.as_str().to_owned(),
            bytes: artifact.size,
            hash: artifact.hash.to_string(),
            executable: artifact.is_executable,
        }
    }
}

/// What the steps of a run that succeeded left behind, in the order of steps and names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArtifactList {
    pub artifacts: Vec<Artifact>,
}
