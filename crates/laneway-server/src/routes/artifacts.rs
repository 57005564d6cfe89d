//! Files that steps left behind.

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
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
    let file = opened(&app, &wanted.artifact.hash).await?;
    let mut response = Body::from_stream(ReaderStream::new(file)).into_response();
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

/// What is kept under a hash, as a file that is gone when it is closed.
async fn opened(app: &App, hash: &laneway_core::hash::ContentHash) -> Answer<tokio::fs::File> {
    let inside = |error: std::io::Error| {
        tracing::error!(%error, "an artifact cannot be given out");
        Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
    };
    // A name that nobody else has: two may ask for the same at once.
    let mut digits = [0; 16];
    getrandom::fill(&mut digits).map_err(|error| inside(std::io::Error::other(error)))?;
    let name: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
    let dir = app.store.dir().join("scratch");
    tokio::fs::create_dir_all(&dir).await.map_err(inside)?;
    let path = dir.join(format!("fetched-{name}"));
    let (store, hash) = (app.store.clone(), hash.clone());
    // On its own: whoever asked may be gone before it is there, and it must not stay.
    let fetched = tokio::spawn(async move {
        let file = match store.fetch_file(&hash, &path).await {
            Ok(()) => tokio::fs::File::open(&path).await.map_err(inside),
            Err(error) => Err(error.into()),
        };
        // On Linux what is open is still there.
        let _ = tokio::fs::remove_file(&path).await;
        file
    });
    fetched.await.unwrap_or_else(|error| Err(inside(std::io::Error::other(error))))
}
