//! Named limits and locks, which every run of the store shares.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_core::definition::{BadName, check_limit_name};
use laneway_core::limit::Limit;

use crate::access::Caller;
use crate::extract::{Body, Path};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::LimitList>> {
    Ok(Json(ask::limits(app.store.as_ref()).await?))
}

pub(crate) async fn show(State(app): State<App>, Path(name): Path<String>) -> Answer<Json<wire::LimitLine>> {
    Ok(Json(ask::limit(app.store.as_ref(), &name).await?))
}

pub(crate) async fn locks(State(app): State<App>) -> Answer<Json<wire::LockList>> {
    Ok(Json(ask::locks(app.store.as_ref()).await?))
}

pub(crate) async fn set(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(asked): Body<wire::SetLimit>,
) -> Answer<Json<wire::Limit>> {
    check_limit_name(&name)
        .map_err(|bad| Problem::new(Code::Unprocessable, bad.to_string()).hint(BadName::HINT))?;
    let limit = Limit::parse(&asked.value)
        .map_err(|error| Problem::new(Code::Unprocessable, format!("`value`: {error}")))?;
    Ok(Json(ask::set_limit(app.store.as_ref(), &name, limit, &caller.author()).await?))
}

pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::Removed>> {
    Ok(Json(ask::remove_limit(app.store.as_ref(), &name, &caller.author()).await?))
}
