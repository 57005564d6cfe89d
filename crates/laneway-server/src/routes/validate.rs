//! Documents that somebody is writing.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;

use crate::extract::{Body, LARGE};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

/// All of it on a thread of its own, and few at a time: a large document takes its time, and others are asking.
pub(crate) async fn validate(
    State(app): State<App>,
    Body(asked): Body<wire::Validate, LARGE>,
) -> Answer<impl IntoResponse> {
    // The place goes along: who leaves does not make room for another one before this is done.
    let place = Arc::clone(&app.validations).acquire_owned().await;
    let validate = move || {
        let answer = ask::validate(asked, app.documents.reach())
            .and_then(|found| serde_json::to_vec(&found).map_err(|error| wrong(&error)));
        drop(place);
        answer
    };
    let found = tokio::task::spawn_blocking(validate).await.unwrap_or_else(|error| Err(wrong(&error)))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], found))
}

fn wrong(error: &dyn std::error::Error) -> Problem {
    tracing::error!(%error, "a document cannot be validated");
    Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
}
