//! Tasks of a run and their attempts.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_store::Error;

use super::runs::has_takers;
use crate::access::Caller;
use crate::extract::{Body, MEDIUM, Path};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>, Path(run): Path<String>) -> Answer<Json<wire::TaskList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(wire::TaskList { tasks: ask::run(app.store.as_ref(), run).await?.tasks }))
}

pub(crate) async fn show(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::Task>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    // Asked first: it refuses a step that the run does not have, and knows the nearest.
    app.store.attempts(run, &step).await?;
    let task = ask::run(app.store.as_ref(), run).await?.tasks.into_iter().find(|task| task.name() == step);
    Ok(Json(task.ok_or(Error::NoSuchStep { run, step, nearest: None })?))
}

pub(crate) async fn explain(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::ExplainedStep>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::explain_step(app.store.as_ref(), run, &step).await?))
}

pub(crate) async fn attempts(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::AttemptList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::attempts(app.store.as_ref(), run, &step).await?))
}

pub(crate) async fn skip(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::Reopened>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    has_takers(&app, run).await?;
    let steps = app.store.skip(run, &step, &caller.name).await?;
    app.record(&caller, "skip", format!("step {step} of run {run}")).await?;
    Ok(Json(wire::Reopened { run, steps }))
}

pub(crate) async fn signal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((run, step)): Path<(String, String)>,
    Body(signal): Body<wire::Signal, MEDIUM>,
) -> Answer<Json<wire::Signaled>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let why = signal.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let deed = format!("{} to step {step} of run {run}{why}", signal.signal);
    let signaled = ask::signal(app.store.as_ref(), run, &step, signal, &caller.name).await?;
    // One that came second has changed nothing.
    if signaled.result != wire::SignalResult::Before {
        app.record(&caller, "signal", deed).await?;
    }
    Ok(Json(signaled))
}
