//! What tasks changed in the files of their runs.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::extract::{Path, Query};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
) -> Answer<Json<wire::ChangedFiles>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::changed_files(app.store.as_ref(), run, &step).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchQuery {
    /// The file, as the list of the task names it
    path: String,
}

pub(crate) async fn fetch(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
    Query(FetchQuery { path }): Query<FetchQuery>,
) -> Answer<Response> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let bytes = ask::changed_file(app.store.as_ref(), run, &step, &path).await?;
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    // Whatever it is, a browser saves it and shows nothing of it.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    Ok(response)
}
