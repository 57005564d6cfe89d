//! How the service is, for those who look after it.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use laneway_store::model::Horizon;

use crate::ask;
use crate::metrics::Stored;
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire::Health;

/// Says no more than that the process answers: whoever restarts it when it does not must not do so because a database
/// elsewhere is down.
pub(crate) async fn alive() -> Json<Health> {
    Json(Health { status: "alive".to_owned(), problems: Vec::new() })
}

/// Whether the store answers, and still knows the session in whose name this process works: one that was reaped can neither
/// take work nor submit any.
pub(crate) async fn ready(State(app): State<App>) -> Response {
    let problem = if app.stop.is_cancelled() {
        Some("it is shutting down".to_owned())
    } else {
        match app.store.orders(app.session()).await {
            Ok(_) => None,
            Err(laneway_store::Error::SessionOver { .. }) => Some("its session is over".to_owned()),
            Err(error) => {
                tracing::warn!(%error, "not ready");
                Some("the store does not answer".to_owned())
            }
        }
    };
    match problem {
        None => Json(Health { status: "ready".to_owned(), problems: Vec::new() }).into_response(),
        Some(problem) => {
            let health = Health { status: "not ready".to_owned(), problems: vec![problem] };
            (StatusCode::SERVICE_UNAVAILABLE, Json(health)).into_response()
        }
    }
}

pub(crate) async fn metrics(State(app): State<App>) -> Answer<Response> {
    let store = app.store.as_ref();
    let nodes = store.nodes(0).await?;
    let own = nodes.iter().find(|node| node.session == app.session()).map(|node| node.node.clone());
    // Where there is a worker beside it, that one tells.
    let own_waits = own.filter(|_| app.remote.is_alone).map(|node| (node, store.gate_waits()));
    let stored = Stored {
        own_waits,
        nodes,
        losses: store.losses().await?,
        limits: store.limits().await?,
        backlog: store.backlog().await?,
        parked: store.parked().await?,
        horizon: store.horizon(Horizon::LONG).await?,
        commits: store.commits(),
        pools: ask::pools(store).await?.pools,
    };
    let text = app.metrics.text(&stored).map_err(|error| {
        tracing::error!(%error, "figures could not be written");
        Problem::new(Code::Internal, "figures could not be written")
    })?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

pub(crate) async fn openapi() -> Response {
    Json(crate::openapi::openapi()).into_response()
}
