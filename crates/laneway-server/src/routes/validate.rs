//! Documents that somebody is writing.

use axum::Json;

use crate::extract::{Body, LARGE};
use crate::problem::Answer;
use crate::{ask, wire};

pub(crate) async fn validate(Body(asked): Body<wire::Validate, LARGE>) -> Answer<Json<wire::Validated>> {
    Ok(Json(ask::validate(asked).await?))
}
