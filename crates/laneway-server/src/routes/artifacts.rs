//! Files that steps left behind.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use laneway_store::model::Opened;
use serde::Deserialize;
use tokio::fs::File;
use tokio_util::io::ReaderStream;
use utoipa::IntoParams;

use crate::extract::{Path, Query};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(
    State(app): State<App>,
    Path(run): Path<String>,
) -> Answer<Json<wire::ArtifactList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::artifacts(app.store.as_ref(), run).await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct FetchQuery {
    /// The artifact, as the list of the run names it
    name: String,
}

pub(crate) async fn fetch(
    State(app): State<App>,
    Path((run, step)): Path<(String, String)>,
    Query(FetchQuery { name }): Query<FetchQuery>,
) -> Answer<Response> {
    let store = app.store.as_ref();
    let run = ask::find(store, &run).await?;
    let found = store.artifacts(run).await?;
    let wanted = found.into_iter().find(|view| view.step == step && view.artifact.name.as_str() == name);
    let wanted = wanted.ok_or_else(|| {
        Problem::new(Code::NoSuchArtifact, format!("step `{step}` left no artifact `{name}` behind"))
            .hint("/v1/runs/RUN/artifacts lists them")
    })?;
    // Of an embedded store nothing is copied first: the answer begins at once, however large the file is.
    let body = match store.open_file(&wanted.artifact.hash).await? {
        Opened::File(file) => Body::from_stream(ReaderStream::new(File::from_std(file))),
        Opened::Bytes(bytes) => Body::from(bytes),
    };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    // Whatever it is, a browser keeps it and shows nothing of it.
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_LENGTH, wanted.artifact.size.into());
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{}\"", wanted.artifact.hash)) {
        headers.insert(header::ETAG, tag);
    }
    Ok(response)
}
