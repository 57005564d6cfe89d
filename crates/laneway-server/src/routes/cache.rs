//! Results that steps take instead of being executed again.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_store::cache::Which;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use crate::access::Caller;
use crate::extract::Query;
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// Only results of this workflow
    workflow: Option<String>,
    /// Only results of this step
    step: Option<String>,
    /// From `next_cursor` of the page before
    cursor: Option<String>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClearQuery {
    /// Only results of this workflow
    workflow: Option<String>,
    /// Only results of this step of it
    step: Option<String>,
}

pub(crate) async fn list(
    State(app): State<App>,
    Query(query): Query<ListQuery>,
) -> Answer<Json<wire::CacheList>> {
    let which = Which { workflow: query.workflow, step: query.step };
    let found = ask::results(app.store.as_ref(), which, query.cursor.as_deref(), page(query.limit)?);
    Ok(Json(found.await?))
}

pub(crate) async fn clear(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<ClearQuery>,
) -> Answer<Json<wire::CacheCleared>> {
    let ClearQuery { workflow, step } = query;
    if workflow.is_none() && step.is_some() {
        let what = "`step` is one of a workflow: give `workflow` as well";
        return Err(Problem::new(Code::Unprocessable, what.to_owned()));
    }
    Ok(Json(ask::clear_results(app.store.as_ref(), Which { workflow, step }, &caller.author()).await?))
}
