//! Events of a run, page by page. As they happen: `sse.rs`.

use axum::Json;
use axum::extract::State;
use laneway_store::Teller;
use serde::Deserialize;
use utoipa::IntoParams;

use super::page;
use crate::extract::{Path, Query};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only events numbered above this
    after: Option<u64>,
    /// At most so many, up to 1000; 100 without it
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

pub(crate) async fn of_run(
    State(app): State<App>,
    Path(run): Path<String>,
    Query(query): Query<EventsQuery>,
) -> Answer<Json<wire::EventList>> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let limit = page(query.limit)?;
    let events = ask::events(app.store.as_ref(), run, query.after.unwrap_or(0), limit).await?;
    events.unreadable.iter().for_each(|gap| app.tell_of_gap(Teller::Run(run), gap));
    Ok(Json(events))
}
