//! S4: the dashboard that comes with the project asks for nothing that is not there, and counts nothing twice.

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

/// What a process counts of itself. Everything else is of the store, and every node tells the same of it.
const OF_A_PROCESS: [&str; 3] = ["laneway_http_", "laneway_event_streams", "laneway_group_commit"];

/// Labels of a metric, as `/metrics` has them.
fn labels<'a>(text: &'a str, name: &str) -> BTreeSet<&'a str> {
    let of_it = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('{')?.split_once('}'));
    let pairs = of_it.flat_map(|(pairs, _)| pairs.split(','));
    pairs.filter_map(|pair| pair.split_once('=')).map(|(label, _)| label).collect()
}

/// The labels of the `max by (…) (` that stands around a metric, or around its growth, if one does.
fn largest_by(before: &str) -> Option<BTreeSet<&str>> {
    let before = ["rate(", "increase("].iter().find_map(|of| before.strip_suffix(of)).unwrap_or(before);
    let (_, labels) = before.strip_suffix(") (")?.rsplit_once("max by (")?;
    (!labels.contains(')')).then(|| labels.split(", ").collect())
}

/// However many nodes are asked: each of them tells what is counted of all.
fn counts_once(query: &str, text: &str) -> bool {
    let of_the_store =
        names(query).into_iter().filter(|name| !OF_A_PROCESS.iter().any(|of| name.starts_with(of)));
    let mut places = of_the_store.flat_map(|name| query.match_indices(name));
    places.all(|(at, name)| {
        largest_by(&query[..at]).is_some_and(|largest| labels(text, name).is_subset(&largest))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_query_of_the_dashboard_names_a_metric_that_exists_and_counts_it_once() {
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
    let doubled: Vec<_> = asked.iter().filter(|query| !counts_once(query, &text)).collect();
    assert!(doubled.is_empty(), "with two nodes these count twice: {doubled:#?}");
    for (query, is_right) in [
        ("sum(rate(laneway_claims_total[5m]))", false),
        ("sum by (outcome) (max by (node) (rate(laneway_attempts_total[5m])))", false),
        ("sum by (outcome) (max by (node, outcome) (rate(laneway_attempts_total[5m])))", true),
        ("sum(laneway_event_streams)", true),
    ] {
        assert_eq!(counts_once(query, &text), is_right, "{query}");
    }
    server.stop().await;
}
