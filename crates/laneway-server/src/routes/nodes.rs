//! Nodes: who is alive, what works where, what they told, and one that is to take nothing more.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_store::Teller;

use super::OfNodes;
use crate::access::Caller;
use crate::extract::{Path, Query};
use crate::problem::Answer;
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::NodeList>> {
    Ok(Json(ask::nodes(app.store.as_ref()).await?))
}

pub(crate) async fn workers(
    State(app): State<App>,
    Path(address): Path<String>,
) -> Answer<Json<wire::Workers>> {
    Ok(Json(ask::workers(app.store.as_ref(), &address).await?))
}

pub(crate) async fn events(
    State(app): State<App>,
    Query(query): Query<OfNodes>,
) -> Answer<Json<wire::NodeEventList>> {
    let (node, after, limit) = query.read()?;
    let events = ask::node_events(app.store.as_ref(), node, after, limit).await?;
    events.unreadable.iter().for_each(|gap| app.tell_of_gap(Teller::Nodes, gap));
    Ok(Json(events))
}

pub(crate) async fn drain(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(address): Path<String>,
) -> Answer<Json<wire::Drained>> {
    Ok(Json(ask::drain(app.store.as_ref(), &address, &caller.author()).await?))
}
