//! Tokens and the audit log.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Paged, page};
use crate::access::{Caller, check_name};
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
    let wire::CreateToken { name, role } = asked;
    check_name(&name).map_err(|how| Problem::new(Code::BadBody, format!("`name`: {how}")))?;
    let created = ask::create_token(app.store.as_ref(), &name, role, &caller.author()).await?;
    Ok((StatusCode::CREATED, Json(created)))
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
