//! Effects of remote workers: begun and committed under their claim, as every other word of theirs. Who of one attempt is at what
//! the worker knows, and the store refuses the second one.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_core::effect::{EffectId, EffectStatus, MAX_STDOUT, OnUnknown};
use laneway_store::ClaimRef;
use laneway_store::effect::{Begun, EffectEnd, EffectResult, NewEffect};
use serde_json::Value;

use super::{OUTPUT, Worker};
use crate::access::Caller;
use crate::extract::{Body, Path};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire::{self, ClaimWord, EffectAnswer, EffectFate};

/// Longest name of an execution, in characters.
const MAX_EXECUTION: usize = 64;

pub(crate) async fn begin(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::BeginEffect>,
) -> Answer<Json<wire::BegunEffect>> {
    let (worker, _) = Worker::known(app, &caller, &session).await?;
    let id = checked(&asked.name, &asked.key, &asked.execution)?;
    asked.gone.as_deref().map_or(Ok(()), |gone| check_execution("gone", gone))?;
    let Some(claim) = held(&worker, asked.claim).await? else {
        return Ok(Json(told(EffectAnswer::Lost, None)));
    };
    let new = NewEffect {
        id: id.clone(),
        execution: asked.execution,
        on_unknown: asked.on_unknown.unwrap_or(OnUnknown::Fail),
        gone: asked.gone,
    };
    let begun = worker.app.store.begin_effect(claim, new).await.map_err(Worker::refusal)?;
    Ok(Json(match begun {
        Begun::Run { token, fence } => {
            wire::BegunEffect { id: token, fence, ..told(EffectAnswer::Run, None) }
        }
        Begun::Recorded(EffectResult { lacks: Some(why), .. }) => told(EffectAnswer::Lacking, Some(why)),
        Begun::Recorded(result) => {
            let result = serde_json::from_slice(&result.stdout).unwrap_or(Value::Null);
            wire::BegunEffect { result, ..told(EffectAnswer::Recorded, None) }
        }
        Begun::Taken { execution } => {
            let why = format!("execution {execution} of this attempt is at it");
            told(EffectAnswer::Taken, Some(why))
        }
        Begun::Unknown { attempt, started_at } => {
            let why = format!(
                "the effect {id} was started by attempt {attempt} at {started_at}, and nobody knows whether it happened; \
                 `laneway effects {}` shows it, and how to settle it",
                claim.run.short()
            );
            told(EffectAnswer::Unknown, Some(why))
        }
        Begun::Stopping => told(EffectAnswer::Stopping, None),
        Begun::ClaimLost => told(EffectAnswer::Lost, None),
    }))
}

pub(crate) async fn commit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::CommitEffect, OUTPUT>,
) -> Answer<Json<wire::CommittedEffect>> {
    let (worker, _) = Worker::known(app, &caller, &session).await?;
    let id = checked(&asked.name, &asked.key, &asked.execution)?;
    let Some(claim) = held(&worker, asked.claim).await? else {
        return Ok(Json(wire::CommittedEffect { fate: EffectFate::Lost, why: None }));
    };
    let text = asked.result.to_string();
    let lacks = (text.len() > MAX_STDOUT).then(|| {
        format!(
            "its result has more than {} KiB, which is not recorded; leave it elsewhere, and return where",
            MAX_STDOUT / 1024
        )
    });
    let status = EffectStatus::from(asked.status);
    let exit_code = i32::from(status == EffectStatus::Failed);
    let stdout = if lacks.is_none() { text.into_bytes() } else { Vec::new() };
    let result = EffectResult { exit_code, stdout, output: String::new(), lacks: lacks.clone() };
    let wire::CommitEffect { execution, took_ms, .. } = asked;
    let end = EffectEnd { id, execution, status, result, took_ms };
    let fate = worker.app.store.commit_effect(claim, end).await.map_err(Worker::refusal)?;
    let fate = match (EffectFate::from(fate), &lacks) {
        (EffectFate::Recorded, Some(_)) if status == EffectStatus::Done => EffectFate::Lacking,
        (fate, _) => fate,
    };
    Ok(Json(wire::CommittedEffect { fate, why: lacks.filter(|_| fate == EffectFate::Lacking) }))
}

fn told(answer: EffectAnswer, why: Option<String>) -> wire::BegunEffect {
    wire::BegunEffect { answer, id: String::new(), fence: None, result: Value::Null, why }
}

fn checked(name: &str, key: &str, execution: &str) -> Answer<EffectId> {
    check_execution("execution", execution)?;
    EffectId::new(name, key).map_err(|error| Problem::new(Code::Unprocessable, error.to_string()))
}

/// Rejects what cannot name an execution, as the description does (`wire::BeginEffect`).
fn check_execution(field: &str, execution: &str) -> Answer<()> {
    let is_short = (1..=MAX_EXECUTION).contains(&execution.chars().count());
    if is_short && !execution.chars().any(char::is_control) {
        return Ok(());
    }
    let detail =
        format!("`{field}` must be 1 to {MAX_EXECUTION} characters, and none of them a control character");
    Err(Problem::new(Code::Unprocessable, detail))
}

/// The claim, of a run that can be read.
async fn held(worker: &Worker, word: ClaimWord) -> Answer<Option<ClaimRef>> {
    let Some(claim) = worker.claim(word).await? else { return Ok(None) };
    match worker.app.store.head(claim.run).await {
        Ok(_) => Ok(Some(claim)),
        Err(error) if super::is_about_a_run(&error) => Ok(None),
        Err(error) => Err(Worker::refusal(error)),
    }
}
