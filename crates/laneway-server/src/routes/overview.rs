//! The store at a glance.

use axum::Json;
use axum::extract::State;

use crate::problem::Answer;
use crate::service::App;
use crate::wire;

pub(crate) async fn show(State(app): State<App>) -> Answer<Json<wire::Overview>> {
    Ok(Json(app.glance.look(&app.store).await?))
}
