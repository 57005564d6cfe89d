//! Pools: warm containers as they are now, what they did, and what is wanted of them.

use axum::extract::State;
use axum::{Extension, Json};
use laneway_store::Teller;

use super::OfNodes;
use crate::access::Caller;
use crate::extract::{Body, Path, Query};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::{ask, wire};

pub(crate) async fn list(State(app): State<App>) -> Answer<Json<wire::PoolList>> {
    Ok(Json(ask::pools(app.store.as_ref()).await?))
}

pub(crate) async fn events(
    State(app): State<App>,
    Query(query): Query<OfNodes>,
) -> Answer<Json<wire::PoolEventList>> {
    let (node, after, limit) = query.read()?;
    let events = ask::pool_events(app.store.as_ref(), node, after, limit).await?;
    events.unreadable.iter().for_each(|gap| app.tell_of_gap(Teller::Pools, gap));
    Ok(Json(events))
}

pub(crate) async fn warm(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(pool): Path<String>,
    Body(asked): Body<wire::WarmPool>,
) -> Answer<Json<wire::AskedPool>> {
    if asked.count == 0 {
        let why = "`count` is at least 1; to let go of what is warm, drain the pool".to_owned();
        return Err(Problem::new(Code::BadBody, why));
    }
    Ok(Json(ask::warm_pool(app.store.as_ref(), &pool, &asked, &caller.author()).await?))
}

pub(crate) async fn drain(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(pool): Path<String>,
    Body(asked): Body<wire::DrainPool>,
) -> Answer<Json<wire::AskedPool>> {
    Ok(Json(ask::drain_pool(app.store.as_ref(), &pool, &asked, &caller.author()).await?))
}
