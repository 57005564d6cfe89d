//! Pools: warm containers as they are now, and what they did.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use crate::extract::Query;
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only those of this node
    node: Option<String>,
    /// Only events numbered above this
    after: Option<u64>,
    /// At most so many, up to 1000; 100 without it
    limit: Option<usize>,
}

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::PoolList>> {
    Ok(Json(ask::pools(app.store.as_ref()).await?))
}

pub(crate) async fn events(
    State(app): State<App>,
    Query(query): Query<EventsQuery>,
) -> Answer<Json<wire::PoolEventList>> {
    let (after, limit) = (query.after.unwrap_or(0), page(query.limit)?);
    Ok(Json(ask::pool_events(app.store.as_ref(), query.node.as_deref(), after, limit).await?))
}
