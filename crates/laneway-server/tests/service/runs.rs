//! S2, G6: runs over HTTP.

use std::sync::Arc;

use hyper::Method;
use laneway_core::definition::{Source, compile};
use laneway_core::id::RunId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::role::Role;
use laneway_core::state::RunStatus;
use laneway_engine::log::{HEADER, Stream, Writer};
use laneway_server::ask;
use laneway_store::log_path;
use laneway_store::model::{CancelMode, NewSession, Reopen, RunFilter, Submission};
use serde_json::{Value, json};

use crate::support::{Actor, Place, Reply, Server, run_of};

const FLOW: &str = "steps: {a: {run: 'true'}, b: {needs: [a], run: 'true'}}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_is_submitted_worked_off_and_shown_as_the_command_line_shows_it() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let reply = server.post("/v1/runs", json!({ "document": FLOW, "name": "etl" })).await;
    let run = run_of(&reply.json());
    assert_eq!(reply.header("location"), format!("/v1/runs/{run}"));
    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&shown["workflow"], &shown["status"]), (&json!("etl"), &json!("running")));
    assert_eq!(shown["tasks"][1]["cause"]["text"], "waits for a (available)");
    assert_eq!(shown["submitted_by"], json!(format!("admin-{}", server.address.port())));
    let why = server.get(&format!("/v1/runs/{}/tasks/b/explain", run.short())).await.json();
    assert_eq!(why["cause"]["text"], shown["tasks"][1]["cause"]["text"]);
    assert_eq!(why["chain"][0]["step"], "b");
    assert_eq!(actor.work(true).await, 2);
    let shown = server.get("/v1/runs/last").await.json();
    assert_eq!((&shown["status"], &shown["tasks"][0]["node"]), (&json!("succeeded"), &json!("actor:1")));
    let attempts = server.get("/v1/runs/last/tasks/a/attempts").await.json();
    assert_eq!(attempts["attempts"][0]["outcome"], "succeeded");
    let events = server.get("/v1/runs/last/events?limit=3").await.json();
    assert_eq!((&events["events"][0]["event"], &events["next_after"]), (&json!("run_submitted"), &json!(3)));
    let rest = server.get("/v1/runs/last/events?after=3").await.json();
    assert_eq!(rest["events"][0]["seq"], 4);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_says_how_its_steps_follow_each_other_and_leaves_out_causes_if_told_to() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let levels = "execution: levels\nsteps: {a: {run: 'true'}, b: {needs: [a], run: 'true'}}\n";
    for (document, execution) in [(FLOW, "dataflow"), (levels, "levels")] {
        let run = server.submit(document).await;
        let path = format!("/v1/runs/{run}");
        let whole = server.get(&path).await.json();
        assert_eq!(whole["execution"], execution);
        assert!(whole["tasks"][1]["cause"].is_object());
        assert_eq!(server.get(&format!("{path}?at=1")).await.json()["execution"], execution);
        assert_eq!(server.get(&format!("{path}?causes_up_to=2")).await.json(), whole, "it has two tasks");
        let brief = server.get(&format!("{path}?causes_up_to=1")).await.json();
        assert!(brief["tasks"].as_array().expect("tasks").iter().all(|task| task["cause"].is_null()));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_look_at_few_runs_are_together_the_whole_list() {
    paged(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_that_look_at_few_runs_are_together_the_whole_list_on_postgres() {
    paged(Place::postgres().await).await;
}

async fn paged(place: Place) {
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    // Those that fail lie apart: between them there are pages without any.
    for is_good in [false, true, true, true, true, true, false, false, true] {
        server.submit(FLOW).await;
        actor.work(is_good).await;
    }
    let failed = RunFilter { statuses: vec![RunStatus::Failed], limit: 10, ..RunFilter::default() };
    let named = RunFilter { workflow: Some("flow".to_owned()), ..failed.clone() };
    for filter in [failed, named] {
        let whole = actor.store.runs(filter.clone()).await.expect("runs");
        let whole: Vec<String> = whole.iter().map(|run| run.run.to_string()).collect();
        let (mut seen, mut empty, mut before) = (Vec::new(), 0, None);
        for turn in 0.. {
            assert!(turn < 9, "it has an end");
            let asked = RunFilter { before, ..filter.clone() };
            let page = ask::runs_within(&*actor.store, asked, 2).await.expect("a page");
            empty += usize::from(page.runs.is_empty() && page.next_cursor.is_some());
            seen.extend(page.runs.iter().map(|run| run.run.to_string()));
            let Some(cursor) = page.next_cursor else { break };
            before = RunId::parse(&cursor);
        }
        assert_eq!(seen, whole);
        assert_eq!((seen.len(), empty), (3, 2), "none twice, and pages without any on the way");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_who_submit_with_one_key_at_once_make_one_run() {
    one_run_for_five(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_who_submit_with_one_key_at_once_make_one_run_on_postgres() {
    one_run_for_five(Place::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn key_stands_for_one_workflow_version_and_set_of_parameters() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let submit = |key: &str, name: &str| {
        let asking = server.ask(Method::POST, "/v1/runs").by(Role::Operator).with("idempotency-key", key);
        asking.json(&json!({ "document": FLOW, "name": name })).send()
    };
    let first = submit("night-7", "one").await.json();
    assert_eq!(submit("night-7", "one").await.json(), first);
    let other = submit("night-7", "other").await;
    assert_eq!(other.refusal(), (409, "key_taken".to_owned()));
    let dated = |date: &str, head: &str| {
        let asking = server.ask(Method::POST, "/v1/runs").by(Role::Operator).with("idempotency-key", "dated");
        let document = format!(
            "{head}params: {{date: {{type: string, required: true}}}}\nsteps: {{a: {{run: 'true'}}}}\n"
        );
        asking.json(&json!({ "document": document, "name": "dated", "params": {"date": date} })).send()
    };
    let first = dated("mon", "").await.json();
    assert_eq!(dated("mon", "").await.json(), first);
    let refused = dated("tue", "").await;
    let detail = refused.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert!(detail.ends_with(r#"`date` "mon", now "tue""#), "{detail}");
    assert_eq!(refused.refusal(), (409, "key_taken".to_owned()));
    assert_eq!(dated("mon", "max_parallel: 2\n").await.refusal(), (409, "key_taken".to_owned()));
    // What the service submits by itself has keys that nobody else can use.
    for own in [
        "schedule 0 2 * * * UTC of one at 1",
        "after one of x at the end of y (3)",
        "webhook deploy d-1",
        "hooks of x (3)",
    ] {
        assert_eq!(submit(own, "one").await.refusal(), (422, "unprocessable".to_owned()), "{own}");
    }
    server.stop().await;
}

async fn one_run_for_five(place: Place) {
    let (one, other) = (place.serve().await, place.serve().await);
    async fn submit(server: &Server) -> Reply {
        let asking = server.ask(Method::POST, "/v1/runs").by(Role::Operator);
        asking.with("idempotency-key", "night-7").json(&json!({ "document": FLOW })).send().await
    }
    let replies = tokio::join!(submit(&one), submit(&other), submit(&one), submit(&other), submit(&one));
    let replies = [replies.0, replies.1, replies.2, replies.3, replies.4];
    let runs: Vec<RunId> =
        replies.iter().filter(|reply| reply.status == 201).map(|reply| run_of(&reply.json())).collect();
    for reply in replies.iter().filter(|reply| reply.status != 201) {
        assert_eq!(reply.refusal(), (409, "under_way".to_owned()), "one that is told to ask again");
    }
    assert!(!runs.is_empty());
    assert!(runs.iter().all(|run| *run == runs[0]), "{runs:?}");
    let again = submit(&other).await;
    assert_eq!(run_of(&again.json()), runs[0]);
    let all = one.store.runs(RunFilter { limit: 9, ..RunFilter::default() }).await.expect("a list");
    assert_eq!(all.len(), 1);
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn second_retry_of_a_double_click_is_refused_and_makes_no_second_attempt() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("steps: {a: {run: 'true'}}\n").await;
    actor.work(false).await;
    let seen = server.get("/v1/runs/last").await.json()["last_event"].clone();
    let retry = || server.post("/v1/runs/last/retry", json!({ "last_event": seen }));
    let (first, second) = tokio::join!(retry(), retry());
    let mut statuses = [first.status.as_u16(), second.status.as_u16()];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    actor.work(false).await;
    // Nor does one that comes when the step has failed once more.
    assert_eq!(retry().await.refusal(), (409, "run_went_on".to_owned()));
    assert_eq!(actor.work(true).await, 0);
    let attempts = server.get(&format!("/v1/runs/{run}/tasks/a/attempts")).await.json();
    assert_eq!(attempts["attempts"].as_array().map(Vec::len), Some(2));
    server.stop().await;
}

/// What is remembered of a run that has ended is true only as long as nobody commits anything, also elsewhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_has_ended_is_shown_as_it_is_now() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("steps: {a: {run: 'true'}}\n").await;
    actor.work(false).await;
    let path = format!("/v1/runs/{run}");
    let failed = server.get(&path).await;
    assert_eq!(failed.json()["status"], "failed");
    assert_eq!(server.get(&path).await.body, failed.body);
    assert_eq!(failed.headers["content-type"], "application/json");
    // Opened again by another process, which this server hears nothing of.
    place.open().retry(run, Reopen::default(), "bob").await.expect("a run that has failed");
    assert_eq!(server.get(&path).await.json()["status"], "running");
    let then = server.get(&format!("{path}?at={}", failed.json()["last_event"])).await;
    assert_eq!(then.body, failed.body, "as it was");
    assert_eq!(server.get(&format!("{path}?at=999")).await.refusal(), (404, "no_such_event".to_owned()));
    actor.work(true).await;
    assert_eq!(server.get(&path).await.json()["status"], "succeeded");
    server.stop().await;
}

/// It would wait for ever: no node has the directory and the environment of whoever started it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_for_later_says_until_when_it_waits() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let moment = "2099-01-01T07:00:00.000Z";
    let asked = json!({ "document": FLOW, "not_before": "2099-01-01T08:00:00+01:00" });
    let run = run_of(&server.post("/v1/runs", asked).await.json());
    let told = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&told["status"], &told["not_before"]), (&json!("queued"), &json!(moment)), "{told}");
    let cause = format!("waits until {moment}, for which it was submitted");
    assert_eq!(told["cause"], json!(cause));
    let task = &told["tasks"][0]["cause"];
    assert_eq!((&task["gate"], &task["text"]), (&json!("not_before"), &json!(format!("its run {cause}"))));
    let listed = server.get("/v1/runs?status=queued").await.json();
    assert_eq!(listed["runs"][0]["not_before"], moment, "{listed}");
    for (when, told) in [("noon", "`not_before` is `noon`, which is neither a moment"), ("5", "add a unit")] {
        let reply = server.post("/v1/runs", json!({ "document": FLOW, "not_before": when })).await;
        assert_eq!(reply.refusal().0, 422, "{when}");
        let detail = reply.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(detail.contains(told), "{when}: {detail}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_is_local_to_a_process_is_not_opened_again_over_http() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let store = place.open();
    let session = store.register(NewSession::ephemeral("ada:1", 1)).await.expect("a session");
    let source = Source { file: "flow.yaml".into(), default_name: "flow".into(), text: FLOW.into() };
    let submission = Submission {
        dir: "/tmp".to_owned(),
        params: serde_json::Map::new(),
        max_parallel: 1,
        by: "ada".to_owned(),
        ..Submission::new(Arc::new(compile(&source).expect("a plan")), FLOW.to_owned(), session)
    };
    let run = store.submit(submission).await.expect("a run");
    store.cancel(run, "ada", CancelMode::CleanUp).await.expect("canceled");
    store.retire(session, Leaving::because(LeaveReason::Done)).await.expect("over");
    for path in [format!("/v1/runs/{run}/retry"), format!("/v1/runs/{run}/tasks/a/skip")] {
        let reply = server.post(&path, json!({})).await;
        assert_eq!(reply.refusal(), (409, "run_local".to_owned()), "{path}");
        let hint = reply.json()["hint"].as_str().expect("a hint").to_owned();
        assert!(hint.contains(&format!("laneway retry {}", run.short())), "{hint}");
    }
    let told = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(
        (&told["status"], &told["local"]),
        (&json!("canceled"), &json!(true)),
        "so that nobody offers it"
    );
    store.retry(run, Reopen::default(), "ada").await.expect("whoever drives it may");
    server.stop().await;
}

const CLEANS: &str = "name: cleans\nsteps:\n  a: {run: x}\n  clean: {needs: [a], when: always, run: x}\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_lets_clean_up_go_on_until_a_request_says_now() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let node = Actor::join(&place, "one").await;
    let run = server.submit(CLEANS).await;
    let held = node.take(1).await;
    let path = format!("/v1/runs/{run}/cancel");
    let told = server.post(&path, json!({})).await.json();
    assert_eq!((&told["was"], &told["status"]), (&json!("running"), &json!("running")));
    let until = told["clean_up_until"].clone();
    assert!(until.is_string(), "{told}");
    assert_eq!(server.post(&path, json!({})).await.json()["clean_up_until"], until, "said twice");
    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&shown["closing"], &shown["clean_up_until"]), (&json!("canceled"), &until));
    let explained = server.get(&format!("/v1/runs/{run}/explain")).await.json();
    assert_eq!((&explained["closing"], &explained["clean_up_until"]), (&json!("canceled"), &until));
    let told = server.post(&path, json!({"now": true})).await.json();
    assert_eq!(told["clean_up_until"], json!(null));
    node.end(&held[0], true).await;
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.json()["status"], "canceled");
    let unknown = server.post(&path, json!({"soon": true})).await;
    assert_eq!(unknown.refusal(), (400, "bad_body".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_of_runs_is_read_page_by_page_and_filtered() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.insert(0, server.submit(FLOW).await.to_string());
    }
    server.post(&format!("/v1/runs/{}/cancel", runs[2]), json!({})).await;
    let mut seen = Vec::new();
    let mut address = "/v1/runs?limit=2".to_owned();
    loop {
        let page = server.get(&address).await.json();
        let listed = page["runs"].as_array().expect("runs").iter();
        seen.extend(listed.map(|run| run["run"].as_str().expect("an id").to_owned()));
        match page["next_cursor"].as_str() {
            Some(cursor) => address = format!("/v1/runs?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, runs);
    let canceled = server.get("/v1/runs?status=canceled").await.json();
    assert_eq!(canceled["runs"][0]["run"], json!(runs[2]));
    assert_eq!(canceled["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.get("/v1/runs?workflow=other").await.json()["runs"], json!([]));
    for bad in ["limit=0", "limit=1001", "limit=x", "status=odd", "cursor=x", "colour=red"] {
        let refused = server.get(&format!("/v1/runs?{bad}")).await;
        let is_well_formed = ["cursor=x", "status=odd"].contains(&bad);
        let wanted = if is_well_formed { (422, "unprocessable") } else { (400, "bad_request") };
        assert_eq!(refused.refusal(), (wanted.0, wanted.1.to_owned()), "{bad}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_said_with_a_stable_code() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let run = server.submit(FLOW).await;
    let submit = |body: Value| server.post("/v1/runs", body);
    let bad = submit(json!({ "document": "steps:\n  a: {run: x, neds: [b]}\n" })).await;
    assert_eq!(bad.refusal(), (422, "bad_document".to_owned()));
    assert!(bad.json()["detail"].as_str().is_some_and(|detail| detail.contains("neds")), "{bad:?}");
    let typed = "params: {n: {type: integer, required: true}}\nsteps: {a: {run: 'true'}}\n";
    assert_eq!(submit(json!({ "document": typed })).await.refusal(), (422, "bad_params".to_owned()));
    let wrong = submit(json!({ "document": typed, "params": { "n": "x" } })).await;
    assert_eq!(wrong.refusal(), (422, "bad_params".to_owned()));
    let local = submit(json!({ "document": format!("placement: local\n{FLOW}") })).await;
    assert_eq!(local.refusal(), (422, "not_runnable".to_owned()));
    let nowhere = submit(json!({ "document": FLOW, "directory": "/there/is/no/such" })).await;
    assert_eq!(nowhere.refusal(), (422, "not_runnable".to_owned()));
    let relative = submit(json!({ "document": FLOW, "directory": "../up" })).await;
    assert_eq!(relative.refusal(), (400, "bad_body".to_owned()));
    assert_eq!(submit(json!({})).await.refusal(), (422, "unprocessable".to_owned()));
    assert_eq!(submit(json!({ "workflow": "no" })).await.refusal(), (404, "no_such_workflow".to_owned()));
    for (path, status, code) in [
        ("/v1/runs/ffffffff".to_owned(), 404, "no_such_run"),
        ("/v1/runs/%ff".to_owned(), 400, "bad_request"),
        ("/v1/workflows/a%00b".to_owned(), 400, "bad_request"),
        ("/v1/runs?workflow=a%00b".to_owned(), 400, "bad_request"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f".to_owned(), 404, "no_such_run"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f/events".to_owned(), 404, "no_such_run"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f/tasks/a/explain".to_owned(), 404, "no_such_run"),
        (format!("/v1/runs/{run}/tasks/zz"), 404, "no_such_step"),
        (format!("/v1/runs/{run}/tasks/a/attempts/1/log"), 404, "no_such_attempt"),
        (format!("/v1/runs/{run}/tasks/a/attempts/x/log"), 400, "bad_request"),
        ("/v1/nodes/nobody/workers".to_owned(), 404, "no_such_node"),
        ("/v1/workflows/none".to_owned(), 404, "no_such_workflow"),
    ] {
        assert_eq!(server.get(&path).await.refusal(), (status, code.to_owned()), "{path}");
    }
    for (path, status, code) in [
        (format!("/v1/runs/{run}/retry"), 409, "run_not_ended"),
        (format!("/v1/runs/{run}/tasks/a/skip"), 409, "run_not_ended"),
        ("/v1/nodes/nobody/drain".to_owned(), 404, "no_such_node"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f/pause".to_owned(), 404, "no_such_run"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f/cancel".to_owned(), 404, "no_such_run"),
        ("/v1/runs/0199f2a0-0000-7000-8000-1a2b3c4d5e6f/retry".to_owned(), 404, "no_such_run"),
    ] {
        assert_eq!(server.post(&path, json!({})).await.refusal(), (status, code.to_owned()), "{path}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workflow_that_was_submitted_before_is_started_by_its_name() {
    let place = Place::sqlite();
    let server = place.serve().await;
    server.submit(&format!("name: nightly\n{FLOW}")).await;
    let started = server.post("/v1/runs", json!({ "workflow": "nightly", "max_parallel": 7 })).await;
    assert_eq!(started.status, 201, "{started:?}");
    let shown = server.get("/v1/runs/last").await.json();
    assert_eq!((&shown["workflow"], &shown["max_parallel"]), (&json!("nightly"), &json!(7)));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_of_an_attempt_is_read_from_any_offset_an_answer_gave_and_waited_for() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("steps: {a: {run: 'true'}}\n").await;
    let claims = actor.take(1).await;
    let log = format!("/v1/runs/{run}/tasks/a/attempts/1/log");
    assert_eq!(
        server.get(&log).await.json(),
        json!({ "pieces": [], "next_offset": 0, "size": 0, "has_ended": false, "is_over": false, "may_lack_end": false })
    );
    let path = log_path(server.store.dir(), run, "a", 1);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let mut writer = Writer::new(path, 1 << 20);
    let mut print = |stream, text: &[u8]| {
        let mut framed = vec![0; HEADER];
        framed.extend_from_slice(text);
        writer.append(stream, &mut framed);
    };
    print(Stream::Stdout, b"one\n");
    let first = server.get(&log).await.json();
    assert_eq!(
        (&first["pieces"][0]["text"], &first["pieces"][0]["stream"]),
        (&json!("one\n"), &json!("stdout"))
    );
    let next = first["next_offset"].as_u64().expect("an offset");
    assert_eq!((&first["size"], &first["has_ended"]), (&json!(next), &json!(false)));
    let address = format!("{log}?offset={next}&wait=30");
    let waiting = server.get(&address);
    let later = async {
        print(Stream::Stderr, b"\xfftwo");
    };
    let (second, ()) = tokio::join!(waiting, later);
    assert_eq!(second.json()["pieces"][0]["text"], "\u{fffd}two");
    actor.end(&claims[0], true).await;
    let raw = server
        .ask(Method::GET, &log)
        .by(Role::Viewer)
        .with("accept", "application/octet-stream")
        .send()
        .await;
    assert_eq!((&raw.body[..], raw.header("laneway-is-over")), (&b"one\n\xfftwo"[..], "true"));
    let over = server.get(&format!("{log}?offset={}", raw.header("laneway-next-offset"))).await.json();
    assert_eq!((&over["pieces"], &over["is_over"]), (&json!([]), &json!(true)));
    assert_eq!((&over["size"], &over["has_ended"]), (&over["next_offset"], &json!(true)));
    let some = server.get(&format!("{log}?limit=1")).await.json();
    assert_eq!(
        (&some["size"], &some["has_ended"], &some["is_over"]),
        (&over["size"], &json!(true), &json!(false))
    );
    assert_eq!(raw.header("laneway-size"), over["size"].to_string());
    let astray = server.get(&format!("{log}?offset=3")).await;
    assert_eq!(astray.refusal(), (400, "bad_request".to_owned()));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_a_step_wrote_are_read_by_any_range() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let actor = Actor::join(&place, "actor:1").await;
    let run = server.submit("steps: {a: {run: 'true'}}\n").await;
    let claims = actor.take(1).await;
    let path = log_path(server.store.dir(), run, "a", 1);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    let mut writer = Writer::new(path, 8 << 20);
    let mut wrote: Vec<u8> = Vec::new();
    // Of several looks, with both streams in turn and notes between them, which are none of it.
    for number in 0..60_000_u32 {
        let (stream, text) = match number % 5 {
            0 => (Stream::Note, "not of the step".to_owned()),
            1 => (Stream::Stderr, format!("warning {number}\n")),
            _ => (Stream::Stdout, format!("line {number} of what was printed here\n")),
        };
        let mut framed = vec![0; HEADER];
        framed.extend_from_slice(text.as_bytes());
        writer.append(stream, &mut framed);
        if stream != Stream::Note {
            wrote.extend_from_slice(text.as_bytes());
        }
    }
    writer.finish();
    actor.end(&claims[0], true).await;
    let log = format!("/v1/runs/{run}/tasks/a/attempts/1/log");
    let ask = async |range: &str| {
        let ask = server.ask(Method::GET, &log).by(Role::Viewer).with("accept", "application/octet-stream");
        ask.with("range", range).send().await
    };
    let all = wrote.len();
    let most = 1 << 20;
    assert!(all > most + 100_000, "{all}");
    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        ("bytes=100-199".to_owned(), 100, 200),
        (format!("bytes={}-", all - 10), all - 10, all),
        (format!("bytes={}-{}", all - 10, all + 10), all - 10, all),
        ("bytes=-7".to_owned(), all - 7, all),
        // More than is given at once: as much as that.
        ("bytes=5-".to_owned(), 5, 5 + most),
        (format!("bytes=-{all}"), all - most, all),
    ] {
        let reply = ask(&range).await;
        assert_eq!(reply.status, 206, "{range}");
        assert!(reply.body[..] == wrote[from..to], "{range}: {} bytes", reply.body.len());
        let told = reply.header("content-range");
        assert!(told.starts_with(&format!("bytes {from}-{}/", to - 1)), "{range}: {told}");
        assert!(told.ends_with("/*") || told.ends_with(&format!("/{all}")), "{range}: {told}");
    }
    let beyond = ask(&format!("bytes={all}-")).await;
    assert_eq!(beyond.refusal(), (416, "no_such_range".to_owned()));
    assert_eq!(beyond.header("content-range"), format!("bytes */{all}"));
    for several in ["bytes=0-1, 5-6", "lines=1-2", "bytes=9-3"] {
        assert_eq!(ask(several).await.status, 200, "{several}");
    }
    server.stop().await;
}
