//! E5 over HTTP: what steps did to the world is told without what they printed, and a person settles what nobody knows.

use hyper::Method;
use laneway_core::effect::{EffectId, EffectStatus, OnUnknown};
use laneway_core::role::Role;
use laneway_server::access::Secret;
use laneway_server::client::Client;
use laneway_server::wire;
use laneway_store::effect::{Begun, EffectEnd, EffectResult, NewEffect};
use serde_json::json;

use crate::support::{Actor, Place};

const FLOW: &str = "steps: {pay: {run: 'true'}}\n";

fn begin(name: &str) -> NewEffect {
    let id = EffectId::new(name, "17").expect("a name");
    NewEffect { id, execution: "x".to_owned(), on_unknown: OnUnknown::Fail, gone: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_are_listed_and_settled_over_http() {
    listed(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn effects_are_listed_and_settled_over_http_on_postgres() {
    listed(Place::postgres().await).await;
}

async fn listed(place: Place) {
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit(FLOW).await;
    let claim = actor.take(1).await.remove(0);
    for name in ["charge", "mail"] {
        let begun = actor.store.begin_effect(claim.at, begin(name)).await.expect("an answer");
        assert!(matches!(begun, Begun::Run { .. }));
    }
    let result = EffectResult { stdout: b"s3cret".to_vec(), ..EffectResult::default() };
    let end = EffectEnd {
        id: begin("charge").id,
        execution: "x".to_owned(),
        status: EffectStatus::Done,
        result,
        took_ms: Some(3),
    };
    actor.store.commit_effect(claim.at, end).await.expect("an answer");
    let path = format!("/v1/runs/{run}/tasks/pay/effects/settle");
    let asked = |name: &str, how: &str| json!({ "name": name, "key": "17", "settle": how });
    let running = server.post(&path, asked("mail", "done")).await;
    assert_eq!(running.refusal(), (409, "effect_runs".to_owned()));
    actor.end(&claim, false).await;
    let listed = server.get(&format!("/v1/runs/{run}/effects")).await.json();
    assert!(!listed.to_string().contains("s3cret"), "{listed}");
    let told = |at: usize| {
        let one = &listed["effects"][at];
        (one["name"].clone(), one["status"].clone(), one["unknown"].clone(), one["stdout_bytes"].clone())
    };
    assert_eq!(told(0), (json!("charge"), json!("done"), json!(false), json!(6)));
    assert_eq!(told(1), (json!("mail"), json!("started"), json!(true), json!(0)));
    let task = server.get(&format!("/v1/runs/{run}/tasks/pay")).await.json();
    assert_eq!(task["effects"][1], json!({ "name": "mail", "key": "17", "status": "started", "attempt": 1 }));
    for (body, status, code) in [
        (asked("nothing", "done"), 404, "no_such_effect"),
        (asked("a/b", "done"), 422, "unprocessable"),
        (asked("mail", "perhaps"), 400, "bad_body"),
    ] {
        assert_eq!(server.post(&path, body).await.refusal(), (status, code.to_owned()));
    }
    let viewer = server.ask(Method::POST, &path).by(Role::Viewer).json(&asked("mail", "done")).send().await;
    assert_eq!(viewer.refusal(), (403, "forbidden".to_owned()));
    let client =
        Client::new(&format!("http://{}", server.address), Secret::parse(server.token(Role::Operator)))
            .expect("an address");
    let settle =
        wire::SettleEffect { name: "mail".to_owned(), key: "17".to_owned(), settle: wire::Settle::Done };
    let settled = client.settle_effect(&run.to_string(), "pay", &settle).await.expect("settled");
    assert_eq!((settled.name.as_str(), settled.settle), ("mail", wire::Settle::Done));
    let entry = server.store.audit(None, 1).await.expect("entries").remove(0);
    assert_eq!(entry.deed.act, "settle_effect");
    assert_eq!(entry.deed.what, format!("effect mail (17) of step pay of run {run} has happened"));
    let effects = client.effects(&run.to_string()).await.expect("a list").effects;
    assert_eq!((effects[1].status, effects[1].unknown), (EffectStatus::Done, false));
    assert!(effects[1].settled_by.is_some());
    server.stop().await;
}
