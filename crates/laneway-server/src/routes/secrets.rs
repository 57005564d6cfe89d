//! Secrets of the store.

use axum::extract::State;
use axum::{Extension, Json};

use crate::access::Caller;
use crate::extract::{Body, MEDIUM, Path};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::SecretList>> {
    Ok(Json(ask::secrets(app.store.as_ref()).await?))
}

pub(crate) async fn set(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Body(asked): Body<wire::SetSecret, MEDIUM>,
) -> Answer<Json<wire::SecretSet>> {
    Ok(Json(ask::set_secret(app.store.as_ref(), &name, &asked.value, &caller.author()).await?))
}

pub(crate) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
) -> Answer<Json<wire::SecretSet>> {
    Ok(Json(ask::remove_secret(app.store.as_ref(), &name, &caller.author()).await?))
}
