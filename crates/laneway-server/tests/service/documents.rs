//! S2, S3, S4: workflows with their ETags, nodes, limits, metrics, and how the service is.

use std::sync::Arc;

use hyper::Method;
use laneway_core::definition::{Source, compile};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::role::Role;
use laneway_server::wire;
use laneway_store::model::Application;
use serde_json::json;

use crate::support::{Actor, Place};

const FLOW: &str = "name: etl\nlimits: {api: 2}\nsteps: {a: {limits: [api], run: 'true'}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_is_sent_again_only_when_there_is_another_version() {
    let place = Place::sqlite();
    let server = place.serve().await;
    server.submit(FLOW).await;
    for path in ["/v1/workflows/etl", "/v1/workflows/etl/document", "/v1/workflows/etl/plan"] {
        let first = server.get(path).await;
        assert_eq!(first.status, 200, "{first:?}");
        let tag = first.header("etag").to_owned();
        let ask =
            |tag: &str| server.ask(Method::GET, path).by(Role::Viewer).with("if-none-match", tag).send();
        let same = ask(&tag).await;
        assert_eq!((same.status.as_u16(), same.body.len(), same.header("etag")), (304, 0, tag.as_str()));
        assert_eq!(ask(&format!("\"x\", W/{tag}")).await.status, 304);
        assert_eq!(ask("\"other\"").await.status, 200);
    }
    let before = server.get("/v1/workflows/etl").await;
    assert_eq!(server.get("/v1/workflows/etl/document").await.body, FLOW);
    assert_eq!(server.get("/v1/workflows/etl/plan").await.json()["order"], json!(["a"]));
    server.submit(&format!("{FLOW}# more\n")).await;
    let tag = before.header("etag");
    let newer =
        server.ask(Method::GET, "/v1/workflows/etl").by(Role::Viewer).with("if-none-match", tag).send().await;
    assert_eq!(newer.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_says_what_it_holds_and_has_done() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    server.submit(FLOW).await;
    let claims = actor.take(1).await;
    let workers: wire::Workers =
        serde_json::from_slice(&server.get("/v1/nodes/actor:1/workers").await.body).expect("workers");
    assert_eq!((workers.slots, workers.running_claims, workers.active_claims.len()), (4, 1, 1));
    assert_eq!((workers.active_claims[0].step.as_str(), workers.expired_leases), ("a", 0));
    let nodes: wire::NodeList = serde_json::from_slice(&server.get("/v1/nodes").await.body).expect("nodes");
    let told: Vec<(&str, &str)> =
        nodes.nodes.iter().map(|node| (node.node.as_str(), node.state.as_str())).collect();
    assert_eq!(told, [("actor:1", "takes work"), ("server:1", "runs its own")]);
    let limits = server.get("/v1/limits").await.json();
    assert_eq!((&limits["limits"][0]["name"], &limits["limits"][0]["held"]), (&json!("api"), &json!(1)));
    actor.end(&claims[0], true).await;
    let drained = server.post("/v1/nodes/actor:1/drain", json!({})).await;
    assert_eq!(drained.status, 200, "{drained:?}");
    let events = server.get("/v1/nodes/events?node=actor:1").await.json();
    assert_eq!(events["events"][1]["event"], "node_draining");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_tell_of_nodes_limits_and_requests() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let _actor = Actor::join(&place, "actor:1").await;
    server.submit(FLOW).await;
    let text = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    for line in [
        "laneway_claims_total{node=\"actor:1\"} 0",
        "laneway_claim_contention_total{node=\"actor:1\"} 0",
        "laneway_lease_expirations_total{node=\"actor:1\"} 0",
        "laneway_attempts_total{node=\"actor:1\",outcome=\"succeeded\"} 0",
        "laneway_slots{node=\"actor:1\"} 4",
        "laneway_queue_depth{cause=\"available\"} 1",
        "laneway_limit_held{limit=\"api\"} 1",
        "laneway_claim_to_start_seconds_count{node=\"actor:1\"} 0",
        "laneway_finish_to_start_seconds_bucket{le=\"+Inf\",node=\"actor:1\"} 0",
        "laneway_group_commits_total ",
        "laneway_http_requests_total{route=\"/v1/runs\",method=\"POST\",status=\"201\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_tell_of_a_node_that_was_lost_and_never_comes_back() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let text = async || String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    let before = text().await;
    assert!(
        before.contains("laneway_nodes_lost_total 0"),
        "whoever looks at growth sees the nothing before: {before}"
    );
    drop(Actor::join(&place, "worker:71").await);
    server.store.reap().await.expect("a reaped session");
    let after = text().await;
    for line in ["laneway_nodes_lost_total 1", "laneway_lease_expirations_total{node=\"worker:71\"} 1"] {
        assert!(after.contains(line), "{line} is not in\n{after}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_count_what_is_parked() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let parked = || async {
        let text = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
        let line = text.lines().find(|line| line.starts_with("laneway_parked_tasks ")).map(str::to_owned);
        line.unwrap_or_else(|| panic!("it is not in\n{text}"))
    };
    assert_eq!(parked().await, "laneway_parked_tasks 0");
    let flow = "name: gate\nsteps:\n  a: {wait: {signal: go}}\n  b: {wait: {for: 1h}}\n  \
                c: {run: x, for_each: [1, 2]}\n  d: {run: x, needs: [a]}\n";
    let run = server.submit(flow).await;
    // The step with items is one, its items are not.
    assert_eq!(parked().await, "laneway_parked_tasks 3");
    let signaled = server.post(&format!("/v1/runs/{run}/tasks/a/signal"), json!({ "signal": "go" })).await;
    assert_eq!(signaled.status, 200, "{signaled:?}");
    assert_eq!(parked().await, "laneway_parked_tasks 2");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_of_a_run_are_told_as_many_as_are_asked_for() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server
        .submit("name: each\nsteps:\n  one: {run: x}\n  each: {run: x, for_each: [a, b, c, d, e]}\n")
        .await;
    for (query, told) in [("", 7), ("?items=2", 4), ("?items=0", 2), ("?at=2&items=0", 2), ("?items=9", 7)] {
        let shown = server.get(&format!("/v1/runs/{run}{query}")).await.json();
        assert_eq!(shown["tasks"].as_array().map(Vec::len), Some(told), "{query}: {shown}");
    }
    let shown = server.get(&format!("/v1/runs/{run}?items=1")).await.json();
    assert_eq!(shown["tasks"][1]["items"]["total"], 5, "how many there are is told all the same: {shown}");
    assert_eq!(shown["tasks"][2]["item"], "a", "{shown}");
    let (mut after, mut found) = (String::new(), Vec::new());
    loop {
        let page = server.get(&format!("/v1/runs/{run}/tasks?step=each&limit=2{after}")).await.json();
        found.extend(page["tasks"].as_array().expect("tasks").iter().map(|task| task["item"].clone()));
        let Some(next) = page["next_after"].as_u64() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(found, ["a", "b", "c", "d", "e"], "page by page");
    assert_eq!(server.get(&format!("/v1/runs/{run}/tasks?step=none")).await.status, 404);
    for step in ["one", "each%5B3%5D"] {
        let none = server.get(&format!("/v1/runs/{run}/tasks?step={step}")).await;
        assert_eq!(none.refusal(), (422, "unprocessable".to_owned()), "{step} has no items");
    }
    let all = server.get(&format!("/v1/runs/{run}/tasks")).await.json();
    assert_eq!(all["tasks"].as_array().map(Vec::len), Some(7));
    let items = server.get(&format!("/v1/runs/{run}/tasks?step=each")).await.json();
    assert_eq!(items["tasks"].as_array(), all["tasks"].as_array().map(|all| all[2..].to_vec()).as_ref());
    for (task, name) in all["tasks"].as_array().expect("tasks").iter().zip(["one", "each", "each%5B0%5D"]) {
        assert_eq!(server.get(&format!("/v1/runs/{run}/tasks/{name}")).await.json(), *task, "{name}");
    }
    assert_eq!(server.get(&format!("/v1/runs/{run}/tasks/each%5B5%5D")).await.status, 404);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn service_whose_session_is_over_lives_and_is_not_ready() {
    let place = Place::sqlite();
    let server = place.serve().await;
    assert_eq!(server.get("/readyz").await.json()["status"], "ready");
    server.store.retire(server.session, Leaving::because(LeaveReason::Done)).await.expect("an end");
    let ready = server.get("/readyz").await;
    assert_eq!((ready.status.as_u16(), &ready.json()["problems"][0]), (503, &json!("its session is over")));
    assert_eq!(server.get("/healthz").await.json(), json!({ "status": "alive" }));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_are_compressed_for_who_can_read_that() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let plain = server.get("/openapi.json").await;
    let packed = server
        .ask(Method::GET, "/openapi.json")
        .by(Role::Viewer)
        .with("accept-encoding", "gzip")
        .send()
        .await;
    assert_eq!((plain.header("content-encoding"), packed.header("content-encoding")), ("", "gzip"));
    assert!(packed.body.len() * 2 < plain.body.len());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflows_that_were_applied_are_listed_with_their_versions() {
    let place = Place::sqlite();
    let server = place.serve().await;
    assert_eq!(server.get("/v1/workflows").await.json(), json!({ "workflows": [] }));
    for document in [FLOW.to_owned(), format!("{FLOW}# more\n")] {
        let source =
            Source { file: "etl.yaml".to_owned(), default_name: "etl".to_owned(), text: document.clone() };
        let plan = Arc::new(compile(&source).expect("a plan"));
        let (dir, by) = ("/work".to_owned(), "ada".to_owned());
        server.store.apply(Application { plan, document, dir, bundle: None, by }).await.expect("a version");
    }
    let started = server.post("/v1/runs", json!({ "workflow": "etl", "directory": "/" })).await;
    assert_eq!(started.status, 201, "{started:?}");
    let listed = server.get("/v1/workflows").await.json();
    let workflow = &listed["workflows"][0];
    assert_eq!((&workflow["workflow"], &workflow["version"]), (&json!("etl"), &json!(2)));
    assert_eq!(workflow["last_run"]["run"], started.json()["run"]);
    let versions = server.get("/v1/workflows/etl/versions").await.json();
    let numbers: Vec<_> =
        versions["versions"].as_array().expect("versions").iter().map(|one| &one["version"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    assert_eq!(
        server.get("/v1/workflows/none/versions").await.refusal(),
        (404, "no_such_workflow".to_owned())
    );
    server.stop().await;
}
