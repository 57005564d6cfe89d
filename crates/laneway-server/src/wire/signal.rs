//! Signals to steps that wait, and what is told of such a step.

use laneway_core::id::RunId;
use laneway_core::wait::Waiting;
use laneway_store::model;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Moment;

/// What somebody says to a step that waits, or will.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// The name, as the step has it in `wait: {signal: NAME}`.
    pub signal: String,
    /// Why. Kept with who says it, which is the name of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The output of the step.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub payload: Map<String, Value>,
}

/// What became of a signal. The payload is not said again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Signaled {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    pub signal: String,
    /// `woken`: the step waited for it, and is over. `kept`: it does not wait yet, and will be over as soon as it would.
    /// `before`: somebody was first, and nothing was changed.
    pub result: SignalResult,
    /// Who was first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignalResult {
    Woken,
    Kept,
    Before,
}

/// What a step waits for, or has waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Wait {
    /// When it is over by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Moment>,
    /// When it fails, if it is not over by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_at: Option<Moment>,
    /// Who has signaled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signaled_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signaled_at: Option<Moment>,
    /// Why, in their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The run that it has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = "uuid")]
    pub child: Option<RunId>,
}

impl Signaled {
    pub fn new(run: RunId, step: &str, signal: String, found: model::Signaled) -> Self {
        let (result, first) = match found {
            model::Signaled::Woken => (SignalResult::Woken, None),
            model::Signaled::Kept => (SignalResult::Kept, None),
            model::Signaled::Before { by, at } => (SignalResult::Before, Some((by, Moment(at)))),
        };
        let (by, at) = first.unzip();
        Self { run, step: step.to_owned(), signal, result, by, at }
    }
}

impl From<&Waiting> for Wait {
    fn from(wait: &Waiting) -> Self {
        let signal = wait.signal.as_ref();
        Self {
            until: wait.until.map(Moment),
            timeout_at: wait.timeout_at.map(Moment),
            signaled_by: signal.map(|signal| signal.by.clone()),
            signaled_at: signal.map(|signal| Moment(signal.at)),
            reason: signal.and_then(|signal| signal.reason.clone()),
            child: wait.child,
        }
    }
}
