//! Where webhooks arrive.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use crate::extract::{Path, Raw};
use crate::problem::Answer;
use crate::service::App;
use crate::{webhook, wire};

/// The largest body, counted before anything of it is looked at.
pub(crate) const MOST: usize = 1 << 20;

pub(crate) async fn take(
    State(app): State<App>,
    Path(path): Path<String>,
    headers: HeaderMap,
    body: Raw<MOST>,
) -> Answer<(StatusCode, Json<wire::Submitted>)> {
    let submitted = webhook::take(&app, &path, &headers, body).await?;
    Ok((StatusCode::CREATED, Json(submitted)))
}
