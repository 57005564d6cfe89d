//! Workflows that were submitted before. A version is made of content, so it is the ETag of all that is said of it.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use laneway_engine::bundle;
use laneway_store::model::Pausable;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use super::tag::{of_document, of_graph, tagged, unchanged};
use crate::access::Caller;
use crate::extract::{Body, LARGE, Path, Query, Raw};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

/// All files of a bundle, with what the archive adds for each.
const MAX_BUNDLE: usize = bundle::MAX_BYTES as usize + 2 * bundle::MAX_ENTRIES * 1024;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionsQuery {
    /// From `next_cursor` of the page before: those below this number
    cursor: Option<u32>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// How a workflow is removed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveQuery {
    /// Also while runs of it have not ended, or triggers fire
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionQuery {
    /// As it was applied under this number; what starts now without it
    version: Option<u32>,
}

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::WorkflowList>> {
    Ok(Json(ask::workflows(app.store.as_ref(), Some(&app.forms)).await?))
}

pub(crate) async fn versions(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<VersionsQuery>,
) -> Answer<Json<wire::VersionList>> {
    Ok(Json(ask::versions(app.store.as_ref(), &name, query.cursor, page(query.limit)?).await?))
}

pub(crate) async fn apply(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<wire::Apply, LARGE>,
) -> Answer<Json<wire::Applied>> {
    let (store, documents) = (app.store.as_ref(), &app.documents);
    Ok(Json(ask::apply(store, documents, asked, &caller.author(), &app.directory).await?))
}

pub(crate) async fn bring(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(hash): Path<String>,
    Raw { bytes, .. }: Raw<MAX_BUNDLE>,
) -> Answer<Json<wire::Brought>> {
    Ok(Json(ask::bring(app.store.as_ref(), &hash, bytes, &caller.author()).await?))
}

pub(crate) async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let known = app.store.latest(&name).await?;
    let pause = app.store.paused(&name).await?;
    // The version alone does not say whether it is paused.
    let paused = pause.as_ref().map(|(_, since)| format!("-{}", since.0)).unwrap_or_default();
    let tag = format!("{}{paused}", of_document(&known.version));
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let document = app.store.document(&known.version).await?;
    let workflow = wire::Workflow::new(&name, known, document, pause);
    Ok(tagged(Json(workflow).into_response(), &tag))
}

pub(crate) async fn document(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<VersionQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let version = ask::version(app.store.as_ref(), &name, query.version).await?;
    let tag = of_document(&version);
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let document = app.store.document(&version).await?;
    let response = ([(header::CONTENT_TYPE, "application/yaml")], document).into_response();
    Ok(tagged(response, &tag))
}

pub(crate) async fn graph(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<VersionQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let version = ask::version(app.store.as_ref(), &name, query.version).await?;
    let tag = of_graph(&version);
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let drawn = app.graphs.draw(app.store.plan(&version).await?).await?;
    Ok(tagged(drawn.answer(&headers), &tag))
}

pub(crate) async fn plan(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let known = app.store.latest(&name).await?;
    let tag = of_document(&known.version);
    if let Some(unchanged) = unchanged(&headers, &tag) {
        return Ok(unchanged);
    }
    let plan = app.store.plan(&known.version).await?;
    let response = Json(laneway_core::plan::wire::Plan::from(plan.as_ref())).into_response();
    Ok(tagged(response, &tag))
}

pub(crate) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::Paused>> {
    Ok(Json(ask::pause(app.store.as_ref(), Pausable::Workflow(name), true, &caller.author()).await?))
}

pub(crate) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::Paused>> {
    Ok(Json(ask::pause(app.store.as_ref(), Pausable::Workflow(name), false, &caller.author()).await?))
}

pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(query): Query<RemoveQuery>,
) -> Answer<Json<wire::Removed>> {
    Ok(Json(ask::remove_workflow(app.store.as_ref(), &name, query.force, &caller.author()).await?))
}
