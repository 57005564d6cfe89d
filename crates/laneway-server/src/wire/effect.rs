//! Effects: the shapes of `laneway effects --json` and of their routes, for people and for remote workers.

use std::borrow::Cow;

use laneway_core::effect::{EffectState, EffectStatus, OnUnknown};
use laneway_core::id::RunId;
use laneway_store::Fate;
use laneway_store::effect::EffectView;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::{ClaimWord, Moment};

/// What a step did to the world, or was about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Effect {
    pub step: String,
    pub name: String,
    /// Empty where the step has one of that name only.
    pub key: String,
    /// `started`, `done` or `failed`: it said that it did not happen, and runs again when it is asked for.
    #[schema(value_type = String)]
    pub status: EffectStatus,
    /// It was started, nobody runs it, and nobody knows whether it happened.
    pub unknown: bool,
    /// The attempt that ran it last.
    pub attempt: u32,
    pub started_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How much of what it printed is recorded; nobody but a later attempt gets to see it.
    pub stdout_bytes: u64,
    pub output_bytes: u64,
    /// Why its result is not recorded, although it has happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacks: Option<String>,
    /// The person who said what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
}

impl From<&EffectView> for Effect {
    fn from(view: &EffectView) -> Self {
        Self {
            step: view.step.clone(),
            name: view.id.name.clone(),
            key: view.id.key.clone(),
            status: view.status,
            unknown: view.is_unknown,
            attempt: view.attempt,
            started_at: Moment(view.started_at),
            finished_at: view.finished_at.map(Moment),
            took_ms: view.took_ms,
            exit_code: view.exit_code,
            stdout_bytes: view.stdout_bytes,
            output_bytes: view.output_bytes,
            lacks: view.lacks.clone(),
            settled_by: view.settled_by.clone(),
        }
    }
}

/// The same in short, beside its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskEffect {
    pub name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// `started`, `done` or `failed`.
    #[schema(value_type = String)]
    pub status: EffectStatus,
    /// The attempt that ran it last.
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

impl From<&EffectState> for TaskEffect {
    fn from(effect: &EffectState) -> Self {
        let EffectState { name, key, status, attempt, exit_code, by: _ } = effect.clone();
        Self { name, key, status, attempt, exit_code }
    }
}

/// Of a run, in the order of steps, names and keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EffectList {
    pub effects: Vec<Effect>,
}

/// What a person says of an effect that nobody runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleEffect {
    #[schema(min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9][-A-Za-z0-9_.]*$")]
    pub name: String,
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub key: String,
    /// `done`: it has happened, and never runs again. `again`: it has not, and runs when it is asked for.
    pub settle: Settle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Settle {
    Done,
    Again,
}

/// What was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SettledEffect {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    pub name: String,
    pub key: String,
    pub settle: Settle,
}

/// A remote worker is about to do something to the world.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginEffect {
    pub claim: ClaimWord,
    #[schema(min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9][-A-Za-z0-9_.]*$")]
    pub name: String,
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub key: String,
    /// Made by the worker, another one each time that it is about to run something; asked again with the same it is told the same.
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    pub execution: String,
    /// `fail` or `retry`: what to do where nobody knows whether it has happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OnUnknownWord>)]
    pub on_unknown: Option<OnUnknown>,
    /// An earlier execution of this attempt of which the worker knows that it is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    pub gone: Option<String>,
}

/// What is to be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct BegunEffect {
    pub answer: EffectAnswer,
    /// One word for this effect, the same in every attempt, for services that take an idempotency key. Empty where nothing is to be run.
    pub id: String,
    /// Fencing token of a step with a `lock`, where something is to be run: the `fence` of its task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    /// What is recorded.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub result: Value,
    /// Why there is no result, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectAnswer {
    /// That it begins is recorded: run it, and say what became of it.
    Run,
    /// It has happened.
    Recorded,
    /// It has happened, and its result could not be recorded.
    Lacking,
    /// Another execution of this attempt is at it.
    Taken,
    /// It was started, and nobody knows whether it happened.
    Unknown,
    /// The attempt is to be stopped.
    Stopping,
    /// The task is held no longer.
    Lost,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitEffect {
    pub claim: ClaimWord,
    #[schema(min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9][-A-Za-z0-9_.]*$")]
    pub name: String,
    #[serde(default)]
    #[schema(max_length = 500, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]*$")]
    pub key: String,
    #[schema(min_length = 1, max_length = 64, pattern = "^[^\\u0000-\\u001f\\u007f-\\u009f]+$")]
    pub execution: String,
    /// `done`, or `failed`: it did not happen, and runs again when it is asked for.
    pub status: EffectEndWord,
    /// Any JSON, up to 256 KiB of it.
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    #[serde(deserialize_with = "super::integer::maybe_integer")]
    pub took_ms: Option<u64>,
}

/// How an effect ended, as a remote worker reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectEndWord {
    Done,
    Failed,
}

impl From<EffectEndWord> for EffectStatus {
    fn from(word: EffectEndWord) -> Self {
        match word {
            EffectEndWord::Done => Self::Done,
            EffectEndWord::Failed => Self::Failed,
        }
    }
}

/// Describes the words of `OnUnknown`, for which nothing can be derived here.
pub(crate) struct OnUnknownWord;

impl PartialSchema for OnUnknownWord {
    fn schema() -> RefOr<Schema> {
        let words = OnUnknown::ALL.iter().map(|word| word.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
    }
}

impl ToSchema for OnUnknownWord {
    fn name() -> Cow<'static, str> {
        "OnUnknown".into()
    }
}

/// Whether that is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommittedEffect {
    pub fate: EffectFate,
    /// Of a result that could not be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EffectFate {
    Recorded,
    /// It was said before.
    Repeated,
    /// That it has happened is recorded, its result is not.
    Lacking,
    /// The task is held no longer, or this execution was never let begin: drop the result.
    Lost,
}

impl From<Fate> for EffectFate {
    fn from(fate: Fate) -> Self {
        match fate {
            Fate::Recorded => Self::Recorded,
            Fate::Repeated => Self::Repeated,
            Fate::ClaimLost => Self::Lost,
        }
    }
}
