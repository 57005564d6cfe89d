//! E4, S2 over HTTP: a signal wakes a step, is told who was first, and is in the audit log without what it brought.

use hyper::Method;
use laneway_core::role::Role;
use laneway_server::access::Secret;
use laneway_server::client::{Client, Error};
use laneway_server::wire;
use serde_json::json;

use crate::support::{Actor, Place, run_of};

const FLOW: &str = "
steps:
  approve: {wait: {signal: approved, timeout: 24h}}
  later: {needs: [approve], wait: {signal: done}}
  work: {needs: [approve], run: 'true'}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_over_http_wakes_the_step_and_says_who_and_why() {
    wakes(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_over_http_wakes_the_step_and_says_who_and_why_on_postgres() {
    wakes(Place::postgres().await).await;
}

async fn wakes(place: Place) {
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let reply = server.post("/v1/runs", json!({ "document": FLOW, "name": "flow" })).await;
    let run = run_of(&reply.json());
    assert_eq!(actor.work(true).await, 0, "nobody claims what is parked");
    let shown = server.get(&format!("/v1/runs/{run}/tasks/approve")).await.json();
    assert_eq!((&shown["status"], &shown["cause"]["gate"]), (&json!("parked"), &json!("signal")));
    assert_eq!(shown["cause"]["key"], "approved");
    assert!(shown["wait"]["timeout_at"].is_string(), "{shown}");
    let path = format!("/v1/runs/{run}/tasks/approve/signal");
    let signal = json!({ "signal": "approved", "reason": "checked", "payload": { "tag": "s3cret" } });
    let signaled = server.post(&path, signal.clone()).await;
    assert_eq!((signaled.status.as_u16(), signaled.json()["result"].as_str()), (200, Some("woken")));
    assert!(!signaled.json().to_string().contains("s3cret"), "what it brought is not said again");
    let by = format!("admin-{}", server.address.port());
    let entry = server.store.audit(None, 1).await.expect("entries").remove(0);
    assert_eq!((entry.deed.by.as_str(), entry.deed.act.as_str()), (by.as_str(), "signal"));
    assert_eq!(entry.deed.what, format!("approved to step approve of run {run}: checked"));
    let again = server.post(&path, signal).await.json();
    assert_eq!((&again["result"], again["by"].as_str()), (&json!("before"), Some(by.as_str())));
    let newest = server.store.audit(None, 1).await.expect("entries").remove(0);
    assert_eq!(newest.seq, entry.seq, "what changed nothing is not in it");
    let shown = server.get(&format!("/v1/runs/{run}/tasks/approve")).await.json();
    assert_eq!((&shown["status"], &shown["output"]), (&json!("succeeded"), &json!({ "tag": "s3cret" })));
    assert_eq!(
        (shown["wait"]["signaled_by"].as_str(), &shown["wait"]["reason"]),
        (Some(by.as_str()), &json!("checked"))
    );
    assert_eq!(actor.work(true).await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signal_that_cannot_be_taken_is_refused_by_a_code() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    let large = json!({ "signal": "approved", "payload": { "x": "y".repeat(300 * 1024) } });
    let nul = json!({ "signal": "approved", "payload": { "x": "a\u{0}b" } });
    for (step, body, status, code) in [
        ("approve", json!({ "signal": "refused" }), 409, "no_such_signal"),
        ("work", json!({ "signal": "approved" }), 409, "no_such_signal"),
        ("nothing", json!({ "signal": "approved" }), 404, "no_such_step"),
        ("approve", json!({}), 400, "bad_body"),
        ("approve", json!({ "signal": "approved", "payload": [1] }), 400, "bad_body"),
        ("approve", json!({ "signal": "approved", "by": "eve" }), 400, "bad_body"),
        ("approve", large, 413, "body_too_large"),
        ("approve", nul, 422, "unprocessable"),
    ] {
        let reply = server.post(&format!("/v1/runs/{run}/tasks/{step}/signal"), body).await;
        assert_eq!(reply.refusal(), (status, code.to_owned()), "{step}: {reply:?}");
    }
    assert_eq!(server.get(&format!("/v1/runs/{run}/tasks/approve")).await.json()["status"], "parked");
    server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await;
    let late =
        server.post(&format!("/v1/runs/{run}/tasks/approve/signal"), json!({ "signal": "approved" })).await;
    assert_eq!(late.refusal(), (409, "step_not_waiting".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_client_sends_signals_and_is_told_what_became_of_them() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await.to_string();
    let client =
        Client::new(&format!("http://{}", server.address), Secret::parse(server.token(Role::Operator)))
            .expect("an address");
    let signal = |name: &str| wire::Signal {
        signal: name.to_owned(),
        reason: None,
        payload: json!({ "n": 1 }).as_object().expect("an object").clone(),
    };
    let early = client.signal(&run, "later", &signal("done")).await.expect("kept");
    assert_eq!(early.result, wire::SignalResult::Kept);
    let woken = client.signal(&run, "approve", &signal("approved")).await.expect("taken");
    assert_eq!(woken.result, wire::SignalResult::Woken);
    let shown = client.run(&run).await.expect("the run");
    assert_eq!(shown.tasks[1].status.as_str(), "succeeded", "what was kept has ended it");
    let refusal = client.signal(&run, "work", &signal("done")).await.expect_err("it waits for none");
    assert!(matches!(refusal, Error::Refused(problem) if problem.code.as_str() == "no_such_signal"));
    let viewer = server.ask(Method::POST, &format!("/v1/runs/{run}/tasks/later/signal")).by(Role::Viewer);
    let reply = viewer.json(&json!({ "signal": "done" })).send().await;
    assert_eq!(reply.refusal(), (403, "forbidden".to_owned()));
    server.stop().await;
}
