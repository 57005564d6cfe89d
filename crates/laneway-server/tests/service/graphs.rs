//! U1: graphs as they are drawn, documents that are being written, versions of them, and changes of any kind on a stream.

use hyper::Method;
use laneway_core::role::Role;
use serde_json::{Value, json};

use crate::support::{Actor, Place};

const FLOW: &str = "params: {depth: {type: integer, default: 2, enum: [1, 2]}}
steps:
  a: {run: 'true'}
  b: {needs: [a], image: 'busybox:1', run: 'true'}
  c: {needs: [a], for_each: [1, 2], run: 'true'}
  d: {needs: [b, c], wait: {signal: go}}
  e: {needs: [a], run: 'true'}
groups: {g: {steps: [b, e]}}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_graph_is_the_same_compressed_and_as_it_is() {
    use std::io::Read as _;
    let place = Place::sqlite();
    let server = place.serve().await;
    let steps: Vec<String> = (0..100).map(|step| format!("s{step}: {{run: 'true'}}")).collect();
    let run = server.submit(&format!("steps: {{{}}}\n", steps.join(", "))).await;
    let path = format!("/v1/runs/{run}/graph");
    let plain = server.get(&path).await;
    assert_eq!(plain.json()["nodes"].as_array().map(Vec::len), Some(100));
    let asking = server.ask(Method::GET, &path).by(Role::Viewer).with("accept-encoding", "gzip");
    let packed = asking.send().await;
    assert_eq!((packed.header("content-encoding"), packed.header("etag")), ("gzip", plain.header("etag")));
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(packed.body.as_ref()).read_to_end(&mut unpacked).expect("gzip");
    assert!(unpacked == plain.body, "once compressed, and not twice");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graph_of_a_run_and_of_its_workflow_is_the_layout_of_its_plan() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    let reply = server.get(&format!("/v1/runs/{run}/graph")).await;
    assert_eq!((reply.status.as_u16(), reply.header("content-type")), (200, "application/json"), "{reply:?}");
    let graph = reply.json();
    let nodes = graph["nodes"].as_array().expect("nodes").clone();
    let told: Vec<(&str, &str, &Value, bool)> = nodes
        .iter()
        .map(|node| {
            let text = |name: &str| node[name].as_str().expect("text");
            (text("step"), text("kind"), &node["group"], node["for_each"] == true)
        })
        .collect();
    let (none, g) = (Value::Null, json!("g"));
    let wanted = [
        ("a", "process", &none, false),
        ("b", "container", &g, false),
        ("c", "process", &none, true),
        ("d", "wait", &none, false),
        ("e", "process", &g, false),
        ("g/merge", "merge", &none, false),
    ];
    assert_eq!(told, wanted);
    let edges = graph["edges"].as_array().expect("edges");
    assert!(edges.iter().any(|edge| edge["from"] == 0 && edge["to"] == 1), "{edges:?}");
    assert_eq!(edges[0]["points"][0].as_array().map(Vec::len), Some(2));
    assert_eq!(graph["groups"][0]["name"], "g");
    assert_eq!(graph["critical_path"][0], "a");
    for node in &nodes {
        let right = node["x"].as_i64().zip(node["width"].as_i64()).map(|(x, width)| x + width);
        assert!(right <= graph["width"].as_i64(), "{node}");
    }
    let tag = reply.header("etag").to_owned();
    assert!(tag.contains(env!("CARGO_PKG_VERSION")), "another version may draw it in another way: {tag}");
    let path = format!("/v1/runs/{run}/graph");
    let again = server.ask(Method::GET, &path).by(Role::Viewer).with("if-none-match", &tag).send().await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));
    assert_eq!(server.get("/v1/workflows/flow/graph").await.body, reply.body);
    assert_eq!(
        server.get("/v1/workflows/nobody/graph").await.refusal(),
        (404, "no_such_workflow".to_owned())
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_and_graphs_are_there_by_version() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let apply = async |document: &str| {
        let body = json!({ "document": document, "name": "flow" });
        assert_eq!(server.post("/v1/workflows", body).await.status, 200);
    };
    apply("steps: {one: {run: 'true'}}\n").await;
    apply("steps: {two: {run: 'true'}}\n").await;
    let text = async |path: &str| String::from_utf8(server.get(path).await.body.to_vec()).expect("text");
    assert!(text("/v1/workflows/flow/document?version=1").await.contains("one"));
    assert!(text("/v1/workflows/flow/document?version=2").await.contains("two"));
    assert!(text("/v1/workflows/flow/document").await.contains("two"));
    let drawn = server.get("/v1/workflows/flow/graph?version=1").await.json();
    assert_eq!(drawn["nodes"][0]["step"], "one");
    let newest = server.get("/v1/workflows/flow/graph").await.json();
    assert_eq!(newest["nodes"][0]["step"], "two");
    for version in ["0", "3"] {
        let reply = server.get(&format!("/v1/workflows/flow/document?version={version}")).await;
        assert_eq!(reply.refusal(), (404, "no_such_version".to_owned()), "{version}");
    }
    assert_eq!(server.get("/v1/workflows/flow/document?version=x").await.refusal().0, 400);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn document_that_is_being_written_is_told_what_is_wrong_and_where() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let ask = |document: &str| server.post("/v1/validate", json!({ "document": document }));
    let good = ask(FLOW).await.json();
    assert_eq!((&good["ok"], &good["problems"]), (&json!(true), &json!([])));
    assert_eq!(good["graph"]["nodes"].as_array().map(Vec::len), Some(6));
    let bad = ask("steps:\n  a: {run: 'true', neds: [b]}\n  c: {needs: [d], run: 'true'}\n").await;
    assert_eq!(bad.status, 200, "that it is wrong is the answer");
    let bad = bad.json();
    assert_eq!((&bad["ok"], &bad["graph"]), (&json!(false), &Value::Null));
    let first = &bad["problems"][0];
    let place_of = |name: &str| first[name].as_u64().expect("a number");
    assert_eq!((place_of("line"), place_of("column")), (2, 20), "{bad}");
    assert_eq!((place_of("end_line"), place_of("end_column")), (2, 24), "{bad}");
    assert!(first["message"].as_str().is_some_and(|text| text.contains("neds")), "{bad}");
    assert!(server.store.workflows().await.expect("workflows").is_empty(), "nothing was kept");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_of_workflows_says_how_each_went_what_it_asks_for_and_when_it_starts() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let document = "schedule: {cron: '0 2 * * *', params: {name: night}}\nparams:\n  depth: {type: integer, default: 2, enum: [1, 2], description: How far}\n  name: {type: string, required: true}\nsteps: {a: {run: 'true'}}\n";
    let applied = server.post("/v1/workflows", json!({ "document": document, "name": "flow" })).await;
    assert_eq!(applied.status, 200, "{applied:?}");
    for is_good in [true, false] {
        let run = json!({ "workflow": "flow", "params": { "name": "x" } });
        assert_eq!(server.post("/v1/runs", run).await.status, 201);
        actor.work(is_good).await;
    }
    let listed = server.get("/v1/workflows").await.json();
    let flow = &listed["workflows"][0];
    let outcomes: Vec<&Value> =
        flow["outcomes"].as_array().expect("outcomes").iter().map(|one| &one["status"]).collect();
    assert_eq!(outcomes, ["failed", "succeeded"]);
    assert!(flow["outcomes"][0]["took_ms"].is_u64() && flow["outcomes"][0]["at"].is_string(), "{flow}");
    let triggers = server.get("/v1/triggers").await.json();
    assert!(flow["next_at"].is_string() && flow["next_at"] == triggers["triggers"][0]["next"], "{flow}");
    let params = json!([
        { "name": "depth", "type": "integer", "required": false, "default": 2, "choices": [1, 2], "description": "How far" },
        { "name": "name", "type": "string", "required": true, "default": null, "choices": [], "description": null },
    ]);
    assert_eq!(flow["params"], params);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_are_filtered_as_the_query_says() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let bad = server.submit("steps: {a: {run: 'true'}}\n").await;
    actor.work(false).await;
    let open = server.submit("steps: {a: {run: 'true'}}\n").await;
    let ask = async |query: String| {
        let reply = server.get(&format!("/v1/runs?{query}")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let runs = reply.json()["runs"].as_array().expect("runs").clone();
        runs.iter().map(|run| run["run"].as_str().expect("an id").to_owned()).collect::<Vec<String>>()
    };
    let (bad, open) = (&bad.to_string(), &open.to_string());
    assert_eq!(ask("status=failed,running".to_owned()).await, [open, bad].map(String::as_str));
    assert_eq!(ask("status=failed".to_owned()).await, [bad.as_str()]);
    assert_eq!(ask(format!("q={}", &open[open.len() - 12..])).await, [open.as_str()]);
    assert_eq!(ask("q=fl&until=2099-01-01T00:00:00Z".to_owned()).await, [open, bad].map(String::as_str));
    assert_eq!(ask("since=2099-01-01T00:00:00Z".to_owned()).await, [""; 0]);
    for query in ["status=failed,done", "since=yesterday", "until=1"] {
        assert_eq!(
            server.get(&format!("/v1/runs?{query}")).await.refusal(),
            (422, "unprocessable".to_owned()),
            "{query}"
        );
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_locks_name_who_holds_them_and_who_waits() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("limits: {api: 1}\nsteps: {a: {limits: [api], lock: db, run: 'true'}, b: {lock: db, run: 'true'}, c: {limits: [api], run: 'true'}}\n").await;
    let claims = actor.take(1).await;
    assert_eq!(claims.len(), 1);
    let limit = server.get("/v1/limits/api").await.json();
    assert_eq!(
        (&limit["value"], &limit["held"], &limit["waiting"]),
        (&json!("1"), &json!(1), &json!(1)),
        "{limit}"
    );
    assert_eq!((&limit["holders"][0]["step"], &limit["holders"][0]["run"]), (&json!("a"), &json!(run)));
    assert_eq!((&limit["queue"][0]["step"], &limit["queue"][0]["workflow"]), (&json!("c"), &json!("flow")));
    let locks = server.get("/v1/locks").await.json();
    assert_eq!(
        (&locks["locks"][0]["lock"], &locks["locks"][0]["waiting"]),
        (&json!("db"), &json!(1)),
        "{locks}"
    );
    assert_eq!(locks["locks"][0]["holder"]["step"], "a");
    assert_eq!(locks["locks"][0]["queue"][0]["step"], "b");
    assert_eq!((&locks["has_more"], &locks["orders"]), (&json!(false), &json!([])));
    let ordered = server
        .submit("steps: {a: {order: {key: k, version: '2'}, run: 'true'}, b: {order: {key: k, version: '1'}, run: 'true'}}\n")
        .await;
    let orders = server.get("/v1/locks").await.json()["orders"].clone();
    assert_eq!((&orders[0]["order"], &orders[0]["standing"]), (&json!("k"), &json!(2)), "{orders}");
    assert_eq!(
        (&orders[0]["line"][0]["version"], &orders[0]["line"][0]["task"]["step"]),
        (&json!("1"), &json!("b"))
    );
    server.post(&format!("/v1/runs/{ordered}/cancel"), json!({})).await;
    assert_eq!(server.get("/v1/limits/nothing").await.refusal(), (404, "no_such_limit".to_owned()));
    let seen = server.get("/v1/overview").await.json();
    assert_eq!((&seen["runs"]["running"], &seen["ended"]["window_s"]), (&json!(1), &json!(86_400)), "{seen}");
    assert_eq!(seen["minutes"].as_array().map(Vec::len), Some(60));
    let texts: Vec<&Value> =
        seen["waiting"].as_array().expect("tasks").iter().map(|task| &task["text"]).collect();
    assert!(
        texts.contains(&&json!("waits for the lock `db`"))
            && texts.contains(&&json!("waits for a place in the limit `api`")),
        "{texts:?}"
    );
    server.stop().await;
}
