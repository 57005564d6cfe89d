//! What starts by itself.

use axum::extract::State;
use axum::{Extension, Json};

use crate::access::Caller;
use crate::extract::Path;
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::TriggerList>> {
    Ok(Json(ask::triggers(app.store.as_ref()).await?))
}

pub(crate) async fn pause(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::TriggersPaused>> {
    Ok(Json(ask::pause_triggers(app.store.as_ref(), &name, true, &caller.author()).await?))
}

pub(crate) async fn resume(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::TriggersPaused>> {
    Ok(Json(ask::pause_triggers(app.store.as_ref(), &name, false, &caller.author()).await?))
}

pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::Removed>> {
    Ok(Json(ask::remove_triggers(app.store.as_ref(), &name, &caller.author()).await?))
}
