//! Tokens and the audit log.

use std::ops::RangeInclusive;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Paged, page};
use crate::access::{Caller, Rotate, check_name};
use crate::extract::{Body, Path, Query};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// From `next_cursor` of the page before
    cursor: Option<u64>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

pub(crate) async fn tokens(
    State(app): State<App>,
    Query(query): Query<Paged>,
) -> Answer<Json<wire::TokenList>> {
    Ok(Json(ask::tokens(app.store.as_ref(), query.cursor.as_deref(), page(query.limit)?).await?))
}

pub(crate) async fn create(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<wire::CreateToken>,
) -> Answer<impl IntoResponse> {
    let wire::CreateToken { name, role, expires_in_s } = asked;
    check_name(&name).map_err(|how| Problem::new(Code::BadBody, format!("`name`: {how}")))?;
    let lasts = span("expires_in_s", expires_in_s, 1..=MAX_LASTS_S)?;
    let created = ask::create_token(app.store.as_ref(), &name, (role, lasts), &caller.author()).await?;
    Ok((StatusCode::CREATED, Json(created)))
}

pub(crate) async fn rotate(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(asked): Body<wire::RotateToken>,
) -> Answer<Json<wire::RotatedToken>> {
    let wire::RotateToken { expires_in_s, grace_s } = asked;
    let lasts = span("expires_in_s", expires_in_s, 1..=MAX_LASTS_S)?;
    let grace = span("grace_s", grace_s, 0..=MAX_GRACE_S)?.unwrap_or_default();
    let rotated =
        ask::rotate_token(app.store.as_ref(), &name, Rotate { lasts, grace }, &caller.author()).await?;
    Ok(Json(rotated))
}

/// Ten years, and thirty days: the description has the same bounds (`wire::CreateToken`, `wire::RotateToken`).
const MAX_LASTS_S: u64 = 315_360_000;
const MAX_GRACE_S: u64 = 2_592_000;

fn span(name: &str, seconds: Option<u64>, within: RangeInclusive<u64>) -> Answer<Option<Duration>> {
    let bad = || {
        let (from, to) = within.clone().into_inner();
        Problem::new(Code::BadBody, format!("`{name}` is a number of seconds from {from} to {to}"))
    };
    seconds.map(|s| within.contains(&s).then(|| Duration::from_secs(s)).ok_or_else(bad)).transpose()
}

pub(crate) async fn revoke(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::Revoked>> {
    Ok(Json(ask::revoke_token(app.store.as_ref(), &name, &caller.author()).await?))
}

pub(crate) async fn audit(
    State(app): State<App>,
    Query(query): Query<AuditQuery>,
) -> Answer<Json<wire::AuditLog>> {
    Ok(Json(ask::audit(app.store.as_ref(), query.cursor, page(query.limit)?).await?))
}
