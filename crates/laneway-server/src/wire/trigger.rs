//! Triggers: the shape of `laneway schedule list --json` and of their routes.

use laneway_store::trigger::{Outcome, TriggerView};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Moment;

/// Something that starts a workflow by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trigger {
    pub workflow: String,
    /// In words: its pattern with its zone, or whose end it is.
    pub trigger: String,
    /// When a schedule starts a run next; null for one that is paused, and for ends of other workflows.
    pub next: Option<Moment>,
    pub paused_by: Option<String>,
    pub fired_at: Option<Moment>,
    /// What the last time started.
    pub run: Option<String>,
    /// Why it started nothing.
    pub fault: Option<String>,
    /// Whether a live node starts what is due. Without one a time in the past stays `next`.
    #[serde(default)]
    pub has_node: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggerList {
    /// By workflow.
    pub triggers: Vec<Trigger>,
}

/// Whether a workflow's triggers are paused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TriggersPaused {
    pub workflow: String,
    pub paused: bool,
    /// Whether it was not so before.
    pub changed: bool,
}

impl Trigger {
    pub fn new(view: &TriggerView, has_node: bool) -> Self {
        let (run, fault) = match view.last.as_ref().map(|last| &last.outcome) {
            None => (None, None),
            Some(Outcome::Started(run)) => (Some(run.to_string()), None),
            Some(Outcome::Refused(why)) => (None, Some(why.clone())),
        };
        Self {
            workflow: view.at.workflow.clone(),
            trigger: view.at.key.clone(),
            next: view.next().map(Moment),
            paused_by: view.pause.as_ref().map(|(by, _)| by.clone()),
            fired_at: view.last.as_ref().map(|last| Moment(last.at)),
            run,
            fault,
            has_node,
        }
    }
}
