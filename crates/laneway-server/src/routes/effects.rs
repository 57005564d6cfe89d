//! What the steps of a run did to the world, and what people say of it.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_core::effect::EffectId;

use crate::access::Caller;
use crate::extract::{Body, Path};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>, Path(run): Path<String>) -> Answer<Json<wire::EffectList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    Ok(Json(ask::effects(app.store.as_ref(), run).await?))
}

pub(crate) async fn settle(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((run, step)): Path<(String, String)>,
    Body(asked): Body<wire::SettleEffect>,
) -> Answer<Json<wire::SettledEffect>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let id = EffectId::new(&asked.name, &asked.key)
        .map_err(|error| Problem::new(Code::Unprocessable, error.to_string()))?;
    let how = (id, asked.settle);
    Ok(Json(ask::settle_effect(app.store.as_ref(), run, &step, how, &caller.author()).await?))
}
