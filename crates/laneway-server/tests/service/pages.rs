//! S2: lists that grow are read page by page. Together the pages are the list, each entry once, also while somebody changes it.

use std::time::Duration;

use hyper::Method;
use laneway_core::cache::{Part, Parts};
use laneway_core::role::Role;
use laneway_store::cache::NewResult;
use serde_json::{Value, json};

use crate::support::{Actor, Place, Server};

/// The entries of all pages, each of at most two; `between` happens behind each page.
async fn pages(
    server: &Server,
    path: &str,
    (list, cursor): (&str, &str),
    between: impl AsyncFn(),
) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), None::<String>);
    let joint = if path.contains('?') { '&' } else { '?' };
    loop {
        let name = cursor.trim_start_matches("next_");
        let behind = next.map(|next| format!("&{name}={next}")).unwrap_or_default();
        let page = server.get(&format!("{path}{joint}limit=2{behind}")).await.json();
        let entries = page[list].as_array().unwrap_or_else(|| panic!("{page}")).clone();
        assert!(entries.len() <= 2, "{page}");
        all.extend(entries);
        between().await;
        next = match &page[cursor] {
            Value::Null => return all,
            Value::String(text) => Some(text.clone()),
            number => Some(number.to_string()),
        };
        assert!(all.len() < 100, "it has no end: {page}");
    }
}

fn texts(entries: &[Value], field: &str) -> Vec<String> {
    entries.iter().map(|entry| entry[field].as_str().unwrap_or_default().to_owned()).collect()
}

async fn nothing() {}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn versions_of_a_workflow_are_read_page_by_page() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for number in 0..5 {
        let document = format!("name: nightly\nsteps: {{a: {{run: 'echo {number}'}}}}\n");
        server.post("/v1/workflows", json!({ "document": document })).await;
    }
    let list = ("versions", "next_cursor");
    let all = pages(&server, "/v1/workflows/nightly/versions", list, nothing).await;
    let numbers: Vec<u64> = all.iter().filter_map(|one| one["version"].as_u64()).collect();
    assert_eq!(numbers, [5, 4, 3, 2, 1]);
    let third = server.get("/v1/workflows/nightly/document?version=3").await;
    assert!(String::from_utf8_lossy(&third.body).contains("echo 2"), "{third:?}");
    let none = server.get("/v1/workflows/nightly/document?version=6").await;
    assert_eq!(none.refusal(), (404, "no_such_version".to_owned()));
    let bad = server.get("/v1/workflows/nightly/versions?limit=0").await;
    assert_eq!(bad.refusal(), (400, "bad_request".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_read_page_by_page_while_some_are_revoked() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for name in ["a", "b", "c:d", "e", "f"] {
        server.post("/v1/tokens", json!({ "name": name, "role": "viewer" })).await;
    }
    let before = texts(server.get("/v1/tokens").await.json()["tokens"].as_array().expect("tokens"), "name");
    let list = ("tokens", "next_cursor");
    assert_eq!(texts(&pages(&server, "/v1/tokens", list, nothing).await, "name"), before);
    // The last of a page goes elsewhere in the list. Nobody else is left out for that.
    let revoke = async || {
        server.ask(Method::DELETE, "/v1/tokens/b").by(Role::Admin).send().await;
    };
    let mut seen = texts(&pages(&server, "/v1/tokens", list, revoke).await, "name");
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), before.len(), "{seen:?}");
    let bad = server.get("/v1/tokens?cursor=b").await;
    assert_eq!(bad.refusal(), (422, "unprocessable".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_read_page_by_page() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit("steps: {build: {run: x, cache: true}}\n").await;
    for number in 0..5 {
        let mut parts = Parts::default();
        parts.add(Part::Command, format!("x {number}").as_bytes());
        let result = NewResult {
            workflow: "flow".to_owned(),
            step: "build".to_owned(),
            key: parts.key("flow", "build"),
            parts,
            run,
            took: Duration::from_millis(7),
            exit_code: Some(0),
            output: serde_json::Map::new(),
            artifacts: Vec::new(),
            layer: None,
        };
        server.store.remember(result).await.expect("recorded");
    }
    let whole = texts(server.get("/v1/cache").await.json()["entries"].as_array().expect("entries"), "key");
    assert_eq!(whole.len(), 5);
    let list = ("entries", "next_cursor");
    assert_eq!(texts(&pages(&server, "/v1/cache?workflow=flow", list, nothing).await, "key"), whole);
    for cursor in ["x", "7-x", "-"] {
        let bad = server.get(&format!("/v1/cache?cursor={cursor}")).await;
        assert_eq!(bad.refusal(), (422, "unprocessable".to_owned()), "{cursor}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_of_a_run_are_read_page_by_page_while_it_grows() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server
        .submit("steps: {a: {run: x}, each: {needs: [a], for_each: [p, q, r], run: x}, z: {needs: [each], run: x}}\n")
        .await;
    let path = format!("/v1/runs/{run}/tasks");
    let work = async || {
        actor.work(true).await;
    };
    let all = pages(&server, &path, ("tasks", "next_after"), work).await;
    let whole = server.get(&path).await.json();
    assert_eq!(texts(&all, "step"), texts(whole["tasks"].as_array().expect("tasks"), "step"), "{whole}");
    assert_eq!(all.len(), 6, "{whole}");
    let behind = server.get(&format!("{path}?after=100")).await.json();
    assert_eq!(behind, json!({ "tasks": [] }));
    server.stop().await;
}
