//! S4: the dashboard that comes with the project asks for nothing that is not there.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Actor, Place};

const DASHBOARD: &str = include_str!("../../../../packaging/grafana/laneway.json");

/// Every text under `expr`, however deep.
fn queries(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("expr").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| queries(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| queries(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Names of metrics in a query.
fn names(query: &str) -> BTreeSet<&str> {
    let words = query.split(|char: char| !(char.is_ascii_alphanumeric() || char == '_'));
    words.filter(|word| word.starts_with("laneway_")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_names_a_metric_that_exists() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let _actor = Actor::join(&place, "actor:1").await;
    server.submit("limits: {api: 2}\nname: etl\nsteps: {a: {limits: [api], run: 'true'}}\n").await;
    let text = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let there: BTreeSet<&str> =
        samples.filter_map(|line| line.split(['{', ' ']).next()).filter(|name| !name.is_empty()).collect();
    let mut asked = Vec::new();
    queries(&serde_json::from_str(DASHBOARD).expect("a dashboard"), &mut asked);
    let named: BTreeSet<&str> = asked.iter().flat_map(|query| names(query)).collect();
    assert!(named.len() > 10, "{named:?}");
    let missing: Vec<_> = named.difference(&there).collect();
    assert!(missing.is_empty(), "{missing:?} are not among {there:?}");
    server.stop().await;
}
