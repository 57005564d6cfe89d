//! S2, S8, T1: workflows that are applied with their files, their versions, and what starts by itself.

use hyper::Method;
use laneway_core::hash::ContentHash;
use laneway_core::role::Role;
use serde_json::json;

use crate::support::Place;

const NIGHTLY: &str =
    "name: nightly\nschedule: {cron: '0 2 * * *', timezone: Europe/Berlin}\nsteps: {a: {run: 'true'}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_is_applied_with_its_files_and_started_by_its_name() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let files = b"an archive".to_vec();
    let hash = ContentHash::of(&files).to_string();
    let apply = |bundle: &str| json!({ "document": NIGHTLY, "bundle": bundle });
    let missing = server.post("/v1/workflows", apply(&hash)).await;
    assert_eq!(missing.refusal(), (404, "no_such_bytes".to_owned()));
    let path = format!("/v1/bundles/{hash}");
    let brought = server.ask(Method::PUT, &path).by(Role::Operator).raw(files.clone()).send().await;
    assert_eq!((brought.status.as_u16(), &brought.json()["bytes"]), (200, &json!(10)));
    let applied = server.post("/v1/workflows", apply(&hash)).await.json();
    assert_eq!(
        applied,
        json!({ "workflow": "nightly", "version": 1, "changed": true, "bundle": hash, "fired_by": [] })
    );
    let again = server.post("/v1/workflows", apply(&hash)).await.json();
    assert_eq!((&again["version"], &again["changed"]), (&json!(1), &json!(false)));
    server.post("/v1/workflows", json!({ "document": format!("{NIGHTLY}# more\n") })).await;
    let versions = server.get("/v1/workflows/nightly/versions").await.json();
    let told: Vec<_> =
        versions["versions"].as_array().expect("versions").iter().map(|one| &one["version"]).collect();
    assert_eq!(told, [2, 1]);
    let run = server.post("/v1/runs", json!({ "workflow": "nightly" })).await;
    assert_eq!(run.status, 201, "{run:?}");
    let list = server.get("/v1/workflows").await.json();
    assert_eq!(list["workflows"][0]["last_run"]["run"], run.json()["run"]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_that_is_paused_says_so_wherever_it_is_shown() {
    let place = Place::sqlite();
    let server = place.serve().await;
    server.post("/v1/workflows", json!({ "document": NIGHTLY })).await;
    let one = server.get("/v1/workflows/nightly").await;
    assert!(one.json()["paused_by"].is_null());
    server.post("/v1/workflows/nightly/pause", json!({})).await;
    // Whoever has it from before is not told that nothing has changed.
    let asking = server.ask(Method::GET, "/v1/workflows/nightly").by(Role::Viewer);
    let paused = asking.with("if-none-match", one.header("etag")).send().await;
    assert_eq!(paused.status, 200, "{paused:?}");
    assert!(paused.json()["paused_by"].is_string() && paused.json()["paused_at"].is_string());
    let list = server.get("/v1/workflows").await.json();
    assert_eq!(list["workflows"][0]["paused_by"], paused.json()["paused_by"]);
    server.post("/v1/workflows/nightly/resume", json!({})).await;
    assert!(server.get("/v1/workflows/nightly").await.json()["paused_by"].is_null());
    assert!(server.get("/v1/workflows").await.json()["workflows"][0]["paused_by"].is_null());
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_that_are_not_what_their_address_says_are_refused() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let put = |path: String| server.ask(Method::PUT, &path).by(Role::Operator).raw(b"other".to_vec()).send();
    let wrong = put(format!("/v1/bundles/{}", "0".repeat(64))).await;
    assert_eq!(wrong.refusal(), (422, "unprocessable".to_owned()));
    let none = put("/v1/bundles/rubbish".to_owned()).await;
    assert_eq!(none.refusal(), (400, "bad_request".to_owned()));
    let bad = server.post("/v1/workflows", json!({ "document": "steps: {a: {rum: x}}" })).await;
    assert_eq!(bad.refusal(), (422, "bad_document".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_starts_by_itself_is_listed_and_paused() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let none = server.post("/v1/workflows/nightly/triggers/pause", json!({})).await;
    assert_eq!(none.refusal(), (404, "no_triggers".to_owned()));
    server.post("/v1/workflows", json!({ "document": NIGHTLY })).await;
    let listed = server.get("/v1/triggers").await.json();
    let trigger = &listed["triggers"][0];
    assert_eq!(
        (&trigger["workflow"], &trigger["trigger"], &trigger["paused_by"]),
        (&json!("nightly"), &json!("schedule 0 2 * * * Europe/Berlin"), &json!(null))
    );
    let paused = server.post("/v1/workflows/nightly/triggers/pause", json!({})).await.json();
    assert_eq!(paused, json!({ "workflow": "nightly", "paused": true, "changed": true }));
    assert!(server.get("/v1/triggers").await.json()["triggers"][0]["paused_by"].is_string());
    server.post("/v1/workflows/nightly/triggers/resume", json!({})).await;
    assert!(server.get("/v1/triggers").await.json()["triggers"][0]["paused_by"].is_null());
    server.stop().await;
}
