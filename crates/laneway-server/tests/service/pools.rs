//! Wishes for pools over HTTP: who is told, who is not, and that both can be read about later.

use hyper::Method;
use laneway_core::class::Offer;
use laneway_core::id::SessionId;
use laneway_core::role::Role;
use laneway_store::Store;
use laneway_store::model::{KeptPool, NewSession, Wanted, Wish};
use serde_json::json;

use crate::support::Place;

const FLOW: &str = "
name: nightly
pools:
  agents: {image: 'busybox:1', max: 3}
  shared: {image: 'busybox:2', max: 3, mode: single}
steps: {a: {pool: agents, run: 'true'}, b: {pool: shared, run: 'true'}}
";

async fn node(store: &dyn Store, name: &str, has_container: bool) -> SessionId {
    let offer = Offer { node: name.to_owned(), has_process: true, has_container, ..Offer::default() };
    let session = NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 4) };
    store.register(session).await.expect("a session")
}

async fn wishes(store: &dyn Store, session: SessionId) -> Vec<Wish> {
    let orders = store.orders(session).await.expect("orders");
    orders.wishes.into_iter().map(|(_, wish)| wish).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_keep_a_pool_are_told_and_what_is_beyond_max_is_said() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let store = server.store.as_ref();
    let [one, other] = [node(store, "eu:1", true).await, node(store, "us:1", true).await];
    let kept = |max| KeptPool { name: "agents".to_owned(), image: "busybox:1".to_owned(), max };
    store.keep_pools(one, vec![kept(4)]).await.expect("kept");
    store.keep_pools(other, vec![kept(2)]).await.expect("kept");
    let told = server.post("/v1/pools/agents/warm", json!({ "count": 3 })).await;
    assert_eq!(
        (told.status.as_u16(), told.json()["nodes"].clone()),
        (
            200,
            json!([
                { "node": "eu:1", "image": "busybox:1", "max": 4, "count": 3 },
                { "node": "us:1", "image": "busybox:1", "max": 2, "count": 2 },
            ])
        ),
        "{told:?}"
    );
    let warm = Wish { pool: "agents".to_owned(), what: Wanted::Warm { count: 3, of: None } };
    assert_eq!(wishes(store, one).await, vec![warm.clone()]);
    let drained = server.post("/v1/pools/agents/drain", json!({ "node": "us:1" })).await;
    assert_eq!(drained.json()["nodes"].as_array().map(Vec::len), Some(1), "{drained:?}");
    let drain = Wish { pool: "agents".to_owned(), what: Wanted::Drain };
    assert_eq!(wishes(store, other).await, vec![drain.clone()]);
    assert_eq!(wishes(store, one).await, [warm], "only the other one was meant");
    // Nothing at all is a body as well, and once more does no harm.
    let all = server.ask(Method::POST, "/v1/pools/agents/drain").by(Role::Operator).send().await;
    assert_eq!(all.status, 200, "{all:?}");
    assert_eq!(wishes(store, one).await, [drain]);
    let listed = server.get("/v1/pools").await.json()["pools"].clone();
    assert_eq!(listed[0]["node"], "eu:1", "{listed}");
    assert_eq!(listed[0]["containers"], json!([]), "known, although nothing of it is there");
    let entries = store.audit(None, 3).await.expect("entries");
    let acts: Vec<String> =
        entries.iter().map(|entry| format!("{} {}", entry.deed.act, entry.deed.what)).collect();
    assert_eq!(
        acts,
        [
            "drain_pool pool agents on eu:1, us:1",
            "drain_pool pool agents on us:1",
            "warm_pool pool agents to 3 on eu:1, us:1"
        ]
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_nobody_could_warm_is_refused_in_words() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let store = server.store.as_ref();
    let submitted = server.post("/v1/runs", json!({ "document": FLOW, "name": "nightly" })).await;
    assert_eq!(submitted.status, 201, "{submitted:?}");
    node(store, "plain:1", false).await;
    let refused = async |path: &str, body: serde_json::Value| server.post(path, body).await.refusal();
    let nobody = (404, "no_such_pool".to_owned());
    assert_eq!(refused("/v1/pools/agents/warm", json!({ "count": 1 })).await, nobody);
    assert_eq!(refused("/v1/pools/agents/drain", json!({})).await, nobody);
    assert_eq!(refused("/v1/pools/agents/warm", json!({ "count": 1, "node": "plain:1" })).await, nobody);
    let gone = json!({ "count": 1, "node": "gone:1" });
    assert_eq!(refused("/v1/pools/agents/warm", gone).await, (404, "no_such_node".to_owned()));
    assert_eq!(refused("/v1/pools/agents/warm", json!({ "count": 0 })).await, (400, "bad_body".to_owned()));
    assert_eq!(refused("/v1/pools/agents/warm", json!({})).await, (400, "bad_body".to_owned()));
    let of = |workflow: &str| json!({ "count": 9, "workflow": workflow });
    assert_eq!(refused("/v1/pools/agents/warm", of("weekly")).await, (404, "no_such_workflow".to_owned()));
    assert_eq!(refused("/v1/pools/agent/warm", of("nightly")).await, nobody);
    let no_engine = (409, "no_containers".to_owned());
    assert_eq!(refused("/v1/pools/agents/warm", of("nightly")).await, no_engine);
    // With an engine somewhere, the workflow's pool is known before any of its tasks has run.
    let host = node(store, "host:1", true).await;
    let told = server.post("/v1/pools/agents/warm", of("nightly")).await;
    assert_eq!(
        told.json()["nodes"],
        json!([{ "node": "host:1", "image": "busybox:1", "max": 3, "count": 3 }]),
        "{told:?}"
    );
    let version = store.latest("nightly").await.expect("a workflow").version;
    let warm = Wish { pool: "agents".to_owned(), what: Wanted::Warm { count: 9, of: Some(version) } };
    assert_eq!(wishes(store, host).await, [warm]);
    // It is at it, and keeps no such pool yet: who changes their mind is heard all the same.
    let drained = server.post("/v1/pools/agents/drain", json!({})).await;
    assert_eq!(
        drained.json()["nodes"],
        json!([{ "node": "host:1", "image": "busybox:1", "max": 3, "count": null }]),
        "{drained:?}"
    );
    assert_eq!(wishes(store, host).await, [Wish { pool: "agents".to_owned(), what: Wanted::Drain }]);
    assert_eq!(refused("/v1/pools/agents/drain", json!({})).await, nobody, "nothing is under way any more");
    let shared = server.post("/v1/pools/shared/warm", of("nightly")).await;
    assert_eq!(shared.json()["nodes"][0]["max"], 1, "all tasks share one: {shared:?}");
    server.stop().await;
}
