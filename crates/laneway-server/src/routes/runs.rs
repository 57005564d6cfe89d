//! Runs: submitted, listed, looked at, explained, ended, tried again, held up.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{CancelMode, Pausable, Placed, Reopen, RunFilter};
use laneway_store::submission_key;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use super::tag::{of_graph, tagged, unchanged};
use crate::access::Caller;
use crate::extract::{Body, LARGE, Path, Query};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, canceling, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only runs that are so: queued, running, succeeded, failed or canceled; several with commas between them
    #[param(
        pattern = "^,*((queued|running|succeeded|failed|canceled)(,+(queued|running|succeeded|failed|canceled))*,*)?$"
    )]
    status: Option<String>,
    /// Only runs of this workflow
    workflow: Option<String>,
    /// Only runs that were submitted at this moment or later, such as 2026-01-31T12:00:00Z
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only runs that were submitted before this moment
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only runs whose id, the end of it that people type, or workflow begins so
    q: Option<String>,
    /// From `next_cursor` of the page before
    #[param(format = "uuid")]
    cursor: Option<String>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<wire::RunList>> {
    let bad = |what: &str| Problem::new(Code::Unprocessable, what.to_owned());
    let words = query.status.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty());
    let statuses = words.map(|word| {
        RunStatus::parse(word).ok_or_else(|| {
            let words: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
            bad(&format!("`status` is one of {}, or several with commas between them", words.join(", ")))
        })
    });
    let moment = |name: &str, text: Option<String>| {
        let read = |text: String| text.parse::<jiff::Timestamp>().map(|at| Millis(at.as_millisecond()));
        let how = format!("`{name}` is no moment, such as 2026-01-31T12:00:00Z");
        text.map(|text| read(text).map_err(|_| bad(&how))).transpose()
    };
    let before = query.cursor.map(|text| RunId::parse(&text).ok_or_else(ask::bad_cursor));
    let filter = RunFilter {
        statuses: statuses.collect::<Answer<_>>()?,
        workflow: query.workflow,
        before: before.transpose()?,
        down_to: None,
        since: moment("since", query.since)?,
        until: moment("until", query.until)?,
        begins: query.q.filter(|begins| !begins.is_empty()),
        limit: page(query.limit)?,
    };
    Ok(Json(ask::runs(app.store.as_ref(), filter).await?))
}

pub(crate) async fn submit(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(asked): Body<wire::Submit, LARGE>,
) -> Answer<impl IntoResponse> {
    let terms = ask::Terms {
        session: app.session(),
        by: caller.name,
        origin: Some(caller.origin),
        key: idempotency_key(&headers)?,
        max_parallel: app.max_parallel,
        directory: app.directory.clone(),
    };
    let submitted = ask::submit(app.store.as_ref(), &app.documents, asked, terms).await?;
    let location = format!("/v1/runs/{}", submitted.run);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(submitted)))
}

fn idempotency_key(headers: &HeaderMap) -> Answer<Option<String>> {
    let Some(given) = headers.get("idempotency-key") else { return Ok(None) };
    // What cannot be shown as text is refused as what is empty.
    let key = given.to_str().unwrap_or_default();
    submission_key::check(key).map_err(|why| {
        Problem::new(Code::Unprocessable, format!("the Idempotency-Key cannot be one: {why}"))
    })?;
    Ok(Some(key.to_owned()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowQuery {
    /// As it was after the event of this number; as it is now without it
    at: Option<u64>,
    /// How many items to tell of each step with `for_each`, from its first on; all of them without it. How many there are, by state, is told with
    /// the step, and the rest by `/tasks?step=`
    items: Option<u32>,
    /// Say why tasks wait only of a run with at most so many tasks; of all without it. A task that is asked for itself says so in any case
    causes_up_to: Option<usize>,
}

pub(crate) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    Query(query): Query<ShowQuery>,
) -> Answer<Response> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    if query.at.is_some() || query.items.is_some() {
        let mut view = match query.at {
            Some(at) => ask::run_at(app.store.as_ref(), run, at).await?,
            None => ask::run(app.store.as_ref(), run).await?,
        };
        view.tell_items(query.items.unwrap_or(u32::MAX));
        view.tell_causes_up_to(query.causes_up_to.unwrap_or(usize::MAX));
        return Ok(Json(view).into_response());
    }
    let is_json = [(header::CONTENT_TYPE, "application/json")];
    // One that has ended has no causes: what is remembered is the same for everybody.
    if let Some(body) = app.memo.run(caller.stamp, run) {
        return Ok((is_json, body).into_response());
    }
    let mut view = ask::run(app.store.as_ref(), run).await?;
    view.tell_causes_up_to(query.causes_up_to.unwrap_or(usize::MAX));
    let body = serde_json::to_vec(&view).map(Bytes::from).map_err(|error| {
        tracing::error!(%run, %error, "a run cannot be written as JSON");
        Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
    })?;
    // What is said of any other depends on more than the store: on who lives, and on the time.
    if view.status.is_final() && view.owner.is_none() {
        app.memo.keep_run(caller.stamp, run, &body);
    }
    Ok((is_json, body).into_response())
}

/// Of the version with which it runs.
pub(crate) async fn graph(
    State(app): State<App>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let head = app.store.head(run).await?;
    let tag = of_graph(&head.plan.version);
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let drawn = app.graphs.draw(Arc::clone(&head.plan)).await?;
    Ok(tagged(drawn.answer(&headers), &tag))
}

pub(crate) async fn explain(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Answer<Json<wire::ExplainedRun>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::explain_run(app.store.as_ref(), run).await?))
}

pub(crate) async fn cancel(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    Body(asked): Body<wire::Cancel>,
) -> Answer<Json<wire::Canceled>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let mode = if asked.now { CancelMode::Now } else { CancelMode::CleanUp };
    let canceled = ask::cancel(app.store.as_ref(), run, mode, &caller.author()).await?;
    if !canceled.status.is_final() {
        canceling::watch(&app, run);
    }
    Ok(Json(canceled))
}

pub(crate) async fn retry(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
    Body(asked): Body<wire::Retry>,
) -> Answer<Json<wire::Reopened>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    has_takers(&app, run).await?;
    let what = Reopen { from: asked.from.as_deref(), seen: asked.last_event };
    Ok(Json(ask::retry(app.store.as_ref(), run, what, &caller.author()).await?))
}

/// Refuses to open a run again that would then wait for ever: one of `laneway run` is driven by a process that has its directory
/// and its environment, and by no node.
pub(super) async fn has_takers(app: &App, run: RunId) -> Answer<()> {
    if app.store.head(run).await?.placed != Placed::Local {
        return Ok(());
    }
    let short = run.short();
    let what = format!(
        "run {short} is one of `laneway run`: it needs the directory and the environment in which it was started, and no node takes its tasks"
    );
    let hint = format!(
        "`laneway retry {short}` beside the store goes on with it there; `laneway submit` starts a run that nodes take"
    );
    Err(Problem::new(Code::RunLocal, what).hint(hint))
}

pub(crate) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Answer<Json<wire::Paused>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::pause(app.store.as_ref(), Pausable::Run(run), true, &caller.author()).await?))
}

pub(crate) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Answer<Json<wire::Paused>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::pause(app.store.as_ref(), Pausable::Run(run), false, &caller.author()).await?))
}

pub(crate) async fn advance(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(run): Path<String>,
) -> Answer<Json<wire::Advanced>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::advance(app.store.as_ref(), run, &caller.author()).await?))
}
