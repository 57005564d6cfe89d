//! R11 over HTTP: results are listed and forgotten, a task says that it took one, and another why it did not.

use std::time::Duration;

use hyper::Method;
use laneway_core::cache::{Miss, Part, Parts};
use laneway_core::role::Role;
use laneway_store::cache::{Found, Look, NewResult};
use laneway_store::model::{CacheTally, Finished, Outcome, Tally};
use serde_json::json;

use crate::support::{Actor, Place, run_of};

const FLOW: &str = "name: flow\nsteps: {build: {run: x, cache: true}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_listed_explained_counted_and_forgotten() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit(FLOW).await;
    let claim = actor.take(1).await.remove(0);
    server.store.note_miss(claim.at, Miss::NeverSeen).await.expect("noted");
    let mut parts = Parts::default();
    parts.add(Part::Command, b"x");
    let key = parts.key("flow", "build");
    let result = NewResult {
        workflow: "flow".to_owned(),
        step: "build".to_owned(),
        key: key.clone(),
        parts,
        run,
        took: Duration::from_millis(70),
        exit_code: Some(0),
        output: serde_json::Map::new(),
        artifacts: Vec::new(),
        layer: None,
    };
    server.store.remember(result).await.expect("recorded");
    actor.end(&claim, true).await;
    let explained = server.get(&format!("/v1/runs/{run}/tasks/build/explain")).await.json();
    assert_eq!(explained["cache"]["why"], "never_seen", "{explained}");
    let listed = server.get("/v1/cache?workflow=flow").await.json();
    let entry = &listed["entries"][0];
    assert_eq!((&entry["step"], &entry["took_ms"]), (&json!("build"), &json!(70)), "{listed}");
    assert_eq!(entry["run"], json!(run));
    assert_eq!(
        server.get("/v1/cache?workflow=other").await.json(),
        json!({ "entries": [], "next_cursor": null })
    );

    let taken = server.submit(FLOW).await;
    let claim = actor.take(1).await.remove(0);
    let (workflow, step) = ("flow".to_owned(), "build".to_owned());
    let found = server.store.cached(Look { workflow, step, key, ttl: None }).await.expect("an answer");
    let Found::Hit(hit) = found else { panic!("{found:?}") };
    let finished = Finished::new(claim.at, Outcome::Cached(hit), Duration::ZERO);
    server.store.finish(vec![finished], None).await.expect("finished");
    let shown = server.get(&format!("/v1/runs/{taken}")).await.json();
    assert_eq!(shown["tasks"][0]["reason"], "cached", "{shown}");
    let explained = server.get(&format!("/v1/runs/{taken}/tasks/build/explain")).await.json();
    assert_eq!(explained["cache"], json!(null), "it took one");

    let cache = CacheTally { hits: 3, misses: 2 };
    let tally = Tally { cache, ..Tally::default() };
    server.store.renew(claim.at.session, tally).await.expect("renewed");
    let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    assert!(told.contains("laneway_cache_hits_total{node=\"actor:1\"} 3"), "{told}");
    assert!(told.contains("laneway_cache_misses_total{node=\"actor:1\"} 2"), "{told}");

    let clear = async |query: &str| server.ask(Method::DELETE, query).by(Role::Operator).send().await;
    assert_eq!(clear("/v1/cache?step=build").await.refusal(), (422, "unprocessable".to_owned()));
    assert_eq!(clear("/v1/cache?workflow=other").await.json()["entries"], 0);
    let viewer = server.ask(Method::DELETE, "/v1/cache").by(Role::Viewer).send().await;
    assert_eq!(viewer.status.as_u16(), 403);
    let cleared = clear("/v1/cache?workflow=flow&step=build").await.json();
    assert_eq!(cleared["entries"], 1, "{cleared}");
    assert_eq!(server.get("/v1/cache").await.json(), json!({ "entries": [], "next_cursor": null }));
    let audit = server.ask(Method::GET, "/v1/audit").by(Role::Admin).send().await.json();
    assert_eq!(audit["entries"][0]["what"], "results of build of flow", "{audit}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_may_be_asked_to_take_no_results() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    for no_cache in [true, false] {
        let reply = server.post("/v1/runs", json!({ "document": FLOW, "no_cache": no_cache })).await;
        let run = run_of(&reply.json());
        let claim = actor.take(1).await.remove(0);
        assert_eq!((claim.at.run, claim.head.no_cache), (run, no_cache), "whoever executes it is told so");
        let shown = server.get(&format!("/v1/runs/{run}")).await.json();
        assert_eq!(shown.get("no_cache"), no_cache.then_some(&json!(true)), "{shown}");
        actor.end(&claim, true).await;
    }
    server.stop().await;
}
