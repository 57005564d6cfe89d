//! W4: remote workers over HTTP, on both databases.

use std::time::Duration;

use hyper::Method;
use laneway_core::role::Role;
use laneway_engine::remote::Terms;
use laneway_server::access::make;
use laneway_store::model::Lease;
use serde_json::{Value, json};

use crate::support::{Place, Reply, SOON, Server};

/// A worker of one server: its token, and its session.
struct Worker<'s> {
    server: &'s Server,
    token: String,
    token_name: String,
    session: String,
}

impl<'s> Worker<'s> {
    async fn join(server: &'s Server, name: &str) -> Self {
        let token_name = format!("{name}-{}", uuid::Uuid::now_v7().simple());
        let (secret, _) =
            make(server.store.as_ref(), &token_name, Role::Worker, ("test", None)).await.expect("a token");
        let token = secret.reveal().to_owned();
        let body = json!({ "name": name, "queues": ["mail"], "slots": 4 });
        let reply = server.ask(Method::POST, "/v1/workers").bearing(&token).json(&body).send().await;
        assert_eq!(reply.status, 201, "{reply:?}");
        let session = reply.json()["session"].as_str().expect("a session").to_owned();
        Self { server, token, token_name, session }
    }

    /// The same through another server.
    fn through<'o>(&self, server: &'o Server) -> Worker<'o> {
        let (token, token_name) = (self.token.clone(), self.token_name.clone());
        Worker { server, token, token_name, session: self.session.clone() }
    }

    async fn say(&self, verb: &str, body: Value) -> Reply {
        let path = format!("/v1/workers/{}/{verb}", self.session);
        self.server.ask(Method::POST, &path).bearing(&self.token).json(&body).send().await
    }

    async fn good(&self, verb: &str, body: Value) -> Value {
        let reply = self.say(verb, body).await;
        assert_eq!(reply.status, 200, "{verb}: {reply:?}");
        reply.json()
    }

    async fn take(&self, max: usize) -> Vec<Value> {
        let work = self.good("claim", json!({ "max": max, "holding": [] })).await;
        work["tasks"].as_array().expect("tasks").clone()
    }

    async fn start(&self, task: &Value) -> Value {
        self.good("start", json!({ "claims": [task["claim"]] })).await["results"][0]["fate"].clone()
    }

    async fn finish(&self, results: Value) -> Value {
        self.good("finish", json!({ "results": results })).await["results"].clone()
    }
}

const FLOW: &str = r#"
params: {who: {type: string, default: ada}}
steps:
  make: {queue: mail, with: {to: ["${{ params.who }}"], n: 7}}
  send: {queue: mail, needs: [make], with: {id: "${{ steps.make.output.id }}"}}
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_worker_does_a_run_through_any_server() {
    done_through_any_server(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remote_worker_does_a_run_through_any_server_on_postgres() {
    done_through_any_server(Place::postgres().await).await;
}

async fn done_through_any_server(place: Place) {
    let (one, other) = (place.serve().await, place.serve().await);
    let worker = Worker::join(&one, "py").await;
    let run = one.submit(FLOW).await;
    let task = worker.take(4).await.remove(0);
    assert_eq!(
        (&task["step"], &task["attempt"], &task["queue"]),
        (&json!("make"), &json!(1), &json!("mail"))
    );
    assert_eq!(task["input"], json!({ "to": ["ada"], "n": 7 }));
    assert_eq!(task["params"], json!({ "who": "ada" }));
    assert_eq!((&task["run"], &task["timeout_ms"]), (&json!(run.to_string()), &Value::Null));
    // The server through which it came may end: nothing of it was kept there.
    let worker = worker.through(&other);
    one.stop().await;
    assert_eq!(worker.start(&task).await, "recorded");
    let claim = &task["claim"];
    let piece =
        |offset: u64, text: &str| json!({ "claim": claim, "offset": offset, "pieces": [{ "text": text }] });
    let first = worker.good("log", piece(0, "hello\n")).await;
    assert_eq!(first["fate"], "recorded");
    // Its answer was lost, and more was printed since.
    let both = json!({ "claim": claim, "offset": 0, "pieces": [{ "text": "hello\n" }, { "stream": "stderr", "text": "oh\n" }] });
    let again = worker.good("log", both).await;
    let read = other.get(&format!("/v1/runs/{run}/tasks/make/attempts/1/log")).await.json();
    let read: Vec<(&Value, &Value)> =
        read["pieces"].as_array().expect("pieces").iter().map(|one| (&one["stream"], &one["text"])).collect();
    assert_eq!(read, [(&json!("stdout"), &json!("hello\n")), (&json!("stderr"), &json!("oh\n"))]);
    let elsewhere = worker.good("log", piece(3, "x")).await;
    assert_eq!((&elsewhere["fate"], &elsewhere["next_offset"]), (&json!("elsewhere"), &again["next_offset"]));
    let absurd = worker.say("renew", json!({ "claims": 1, "asks": 1_u64 << 63 })).await;
    assert_eq!(absurd.refusal(), (422, "unprocessable".to_owned()));
    let renewed = worker.good("renew", json!({ "claims": 1 })).await;
    assert_eq!((&renewed["held"], &renewed["stops"]), (&json!([claim]), &json!([])));
    let result = json!([{ "claim": claim, "status": "succeeded", "output": { "id": 5 } }]);
    assert_eq!(worker.finish(result.clone()).await[0]["fate"], "recorded");
    let repeated = worker.finish(result).await;
    assert_eq!((&repeated[0]["fate"], &repeated[0]["status"]), (&json!("repeated"), &json!("succeeded")));
    let next = worker.take(1).await.remove(0);
    assert_eq!((&next["step"], &next["input"]), (&json!("send"), &json!({ "id": 5 })));
    // Never started as far as anybody was told: its end says so.
    assert_eq!(
        worker.finish(json!([{ "claim": next["claim"], "status": "succeeded" }])).await[0]["fate"],
        "recorded"
    );
    let shown = other.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!((&shown["status"], &shown["tasks"][0]["node"]), (&json!("succeeded"), &json!("py")));
    let gone = format!("/v1/workers/{}", worker.session);
    let left = other.ask(Method::DELETE, &gone).bearing(&worker.token).send().await;
    assert_eq!(left.json()["returned"], 0);
    assert_eq!(worker.say("renew", json!({})).await.refusal(), (404, "no_such_session".to_owned()));
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_and_effect_of_a_step_with_a_lock_carry_its_fencing_token() {
    fenced(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_and_effect_of_a_step_with_a_lock_carry_its_fencing_token_on_postgres() {
    fenced(Place::postgres().await).await;
}

async fn fenced(place: Place) {
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let begin = |task: &Value| json!({ "claim": task["claim"], "name": "charge", "execution": "x" });
    let mut fences = Vec::new();
    for _ in 0..2 {
        server.submit("steps: {a: {queue: mail, lock: bank}}\n").await;
        let task = worker.take(1).await.remove(0);
        let fence = task["fence"].as_u64().expect("a number");
        for answer in ["the first", "after a lost answer"] {
            let begun = worker.good("effects/begin", begin(&task)).await;
            assert_eq!((&begun["answer"], &begun["fence"]), (&json!("run"), &json!(fence)), "{answer}");
        }
        let ended = json!({ "claim": task["claim"], "name": "charge", "execution": "x", "status": "done" });
        assert_eq!(worker.good("effects/commit", ended).await["fate"], "recorded");
        let recorded = worker.good("effects/begin", begin(&task)).await;
        assert_eq!((&recorded["answer"], &recorded["fence"]), (&json!("recorded"), &Value::Null));
        worker.finish(json!([{ "claim": task["claim"], "status": "succeeded" }])).await;
        fences.push(fence);
    }
    assert!(fences[0] < fences[1], "the next holder has a larger one: {fences:?}");
    server.submit("steps: {a: {queue: mail}}\n").await;
    let free = worker.take(1).await.remove(0);
    assert_eq!(free["fence"], Value::Null, "a step without a lock has none");
    assert_eq!(worker.good("effects/begin", begin(&free)).await["fence"], Value::Null);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_is_not_there_for_another_token() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let (worker, thief) = (Worker::join(&server, "py").await, Worker::join(&server, "thief").await);
    server.submit(FLOW).await;
    let task = worker.take(1).await.remove(0);
    let posing = Worker { token: thief.token.clone(), ..worker.through(&server) };
    let claims = json!({ "claims": [task["claim"]] });
    let results = json!({ "results": [{ "claim": task["claim"], "status": "succeeded" }] });
    let log = json!({ "claim": task["claim"], "offset": 0, "pieces": [{ "text": "x" }] });
    for (verb, body) in [
        ("claim", json!({ "max": 1, "holding": [] })),
        ("renew", json!({})),
        ("start", claims.clone()),
        ("log", log.clone()),
        ("give_back", claims.clone()),
        ("finish", results.clone()),
    ] {
        assert_eq!(posing.say(verb, body).await.refusal(), (404, "no_such_session".to_owned()), "{verb}");
    }
    let path = format!("/v1/workers/{}", worker.session);
    let left = server.ask(Method::DELETE, &path).bearing(&thief.token).send().await;
    assert_eq!(left.refusal(), (404, "no_such_session".to_owned()));
    // Nor is a claim that of another session.
    assert_eq!(thief.good("log", log).await["fate"], "lost");
    for (verb, body) in [("start", claims.clone()), ("give_back", claims), ("finish", results)] {
        assert_eq!(thief.good(verb, body).await["results"][0]["fate"], "lost", "{verb}");
    }
    // A node's session is none of a worker, whoever asks.
    let nodes = Worker { session: server.session.to_string(), ..worker.through(&server) };
    assert_eq!(nodes.say("renew", json!({})).await.status, 404);
    assert_eq!(worker.start(&task).await, "recorded");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_claim_is_told_for_itself_and_costs_the_others_nothing() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let run = server
        .submit(
            "steps: {a: {queue: mail}, b: {queue: mail}, c: {queue: mail, retry: {max: 1, backoff: 0s}}}\n",
        )
        .await;
    let tasks = worker.take(9).await;
    assert_eq!(tasks.len(), 3);
    assert_eq!(
        worker.good("give_back", json!({ "claims": [tasks[0]["claim"]] })).await["results"][0]["fate"],
        "recorded"
    );
    let nobody = "0199f2a0-0000-7000-8000-1a2b3c4d5e6f.0.1";
    let beyond = format!("{run}.77.1");
    let results = worker
        .finish(json!([
            { "claim": tasks[0]["claim"], "status": "succeeded" },
            { "claim": nobody, "status": "succeeded" },
            { "claim": tasks[1]["claim"], "status": "succeeded", "output": { "big": "x".repeat(300_000) } },
            { "claim": beyond, "status": "failed" },
            { "claim": tasks[2]["claim"], "status": "failed", "reason": "exit", "exit_code": 3, "detail": "no\u{0}pe" },
        ]))
        .await;
    let fates: Vec<&str> = results
        .as_array()
        .expect("results")
        .iter()
        .map(|one| one["fate"].as_str().expect("a fate"))
        .collect();
    assert_eq!(fates, ["lost", "lost", "recorded", "lost", "recorded"]);
    let shown = server.get(&format!("/v1/runs/{run}")).await.json();
    assert_eq!(
        (&shown["tasks"][1]["status"], &shown["tasks"][1]["reason"]),
        (&json!("failed"), &json!("bad_output"))
    );
    let attempts = server.get(&format!("/v1/runs/{run}/tasks/c/attempts")).await.json();
    let first = &attempts["attempts"][0];
    assert_eq!((&first["detail"], &first["exit_code"]), (&json!("nope"), &json!(3)));
    for (bad, status) in [
        (json!([{ "claim": "x", "status": "succeeded" }]), 400),
        (json!([{ "claim": nobody, "status": "done" }]), 400),
        (json!([{ "claim": nobody, "status": "failed", "reason": "halted" }]), 400),
        (json!([{ "claim": nobody, "status": "failed", "reason": "canceled" }]), 422),
    ] {
        assert_eq!(worker.say("finish", json!({ "results": bad })).await.status, status);
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_whose_answer_was_lost_is_given_again_and_no_other() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    server.submit("steps: {a: {queue: mail}, b: {queue: mail}, c: {queue: mail}}\n").await;
    let first = worker.take(2).await;
    let (a, b) = (&first[0]["claim"], &first[1]["claim"]);
    // It knows of `a` only, and can start one more.
    let work = worker.good("claim", json!({ "max": 1, "holding": [a] })).await;
    assert_eq!((&work["tasks"][0]["claim"], work["tasks"].as_array().map(Vec::len)), (b, Some(1)));
    assert_eq!(work["lost"], json!([]));
    let work = worker.good("claim", json!({ "max": 1, "holding": [a, b] })).await;
    assert_eq!(work["tasks"][0]["step"], "c");
    worker.good("give_back", json!({ "claims": [b] })).await;
    let work = worker.good("claim", json!({ "max": 0, "wait": 30, "holding": [a, b] })).await;
    assert_eq!((&work["lost"], &work["tasks"]), (&json!([b]), &json!([])));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_work_is_woken_by_it_and_by_what_is_to_be_stopped() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let (work, run) =
        tokio::join!(worker.good("claim", json!({ "max": 1, "wait": 30, "holding": [] })), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.submit("steps: {a: {queue: mail}}\n").await
        });
    let task = work["tasks"][0].clone();
    assert_eq!(task["run"], json!(run.to_string()));
    assert_eq!(worker.start(&task).await, "recorded");
    let holding = json!([task["claim"]]);
    let wait = |stopping: Value| json!({ "max": 1, "wait": 30, "holding": holding, "stopping": stopping });
    let (work, canceled) = tokio::join!(worker.good("claim", wait(json!([]))), async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        server.post(&format!("/v1/runs/{run}/cancel"), json!({})).await
    });
    assert_eq!(canceled.status, 200);
    assert_eq!(work["stops"], json!([{ "claim": task["claim"], "reason": "canceled" }]));
    assert_eq!(worker.good("renew", json!({})).await["stops"], work["stops"]);
    let done = worker.finish(json!([{ "claim": task["claim"], "status": "canceled" }])).await;
    assert_eq!(done[0]["fate"], "recorded");
    assert_eq!(server.get(&format!("/v1/runs/{run}")).await.json()["status"], "canceled");
    // Whoever waits is answered when the service ends.
    let (work, ()) =
        tokio::join!(worker.good("claim", json!({ "max": 1, "wait": 30, "holding": [] })), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.tell_to_stop();
        });
    assert_eq!(work["tasks"], json!([]));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_that_does_not_stop_is_waited_for_no_longer() {
    not_waited_for(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_that_does_not_stop_is_waited_for_no_longer_on_postgres() {
    not_waited_for(Place::postgres().await).await;
}

async fn not_waited_for(place: Place) {
    let lease = Lease { ttl: Duration::from_secs(2), every: Duration::from_millis(200) };
    let terms = Terms { lease, kill_grace: Duration::from_millis(100), is_alone: true };
    let server = place.serve_with(terms).await;
    let worker = Worker::join(&server, "deaf").await;
    let canceled = server.submit("steps: {a: {queue: mail}}\n").await;
    let timed =
        server.submit("steps: {a: {queue: mail, timeout: 200ms, retry: {max: 1, backoff: 0s}}}\n").await;
    let idle = server.submit("steps: {a: {queue: mail}}\n").await;
    let tasks = worker.take(3).await;
    let of = |run: laneway_core::id::RunId| {
        tasks.iter().find(|task| task["run"] == json!(run.to_string())).expect("its task").clone()
    };
    let holding: Vec<Value> = tasks.iter().map(|task| task["claim"].clone()).collect();
    for run in [canceled, timed] {
        assert_eq!(worker.start(&of(run)).await, "recorded");
    }
    server.post(&format!("/v1/runs/{canceled}/cancel"), json!({})).await;
    let (mut told, mut lost) = (Vec::new(), Vec::new());
    let until = tokio::time::Instant::now() + SOON;
    // It renews, hears what it is told, and does nothing about it.
    while lost.len() < 3 {
        assert!(tokio::time::Instant::now() < until, "told {told:?}, lost {lost:?}");
        worker.good("renew", json!({})).await;
        let work = worker.good("claim", json!({ "max": 0, "holding": holding })).await;
        lost = work["lost"].as_array().expect("a list").clone();
        told.extend(work["stops"].as_array().expect("a list").iter().map(|stop| stop["reason"].clone()));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(told.contains(&json!("canceled")) && told.contains(&json!("timeout")), "{told:?}");
    let shown = server.get(&format!("/v1/runs/{canceled}")).await.json();
    assert_eq!(shown["status"], "canceled");
    let attempts = server.get(&format!("/v1/runs/{timed}/tasks/a/attempts")).await.json();
    assert_eq!(attempts["attempts"][0]["reason"], "timeout");
    // What ended without it is told as such, and its second attempt is there for somebody else.
    let late = worker.finish(json!([{ "claim": of(timed)["claim"], "status": "succeeded" }])).await;
    assert_eq!((&late[0]["fate"], &late[0]["status"]), (&json!("repeated"), &json!("failed")));
    let again = Worker::join(&server, "other").await.take(9).await;
    let mut steps: Vec<(String, u64)> = again
        .iter()
        .map(|task| {
            (task["run"].as_str().expect("a run").to_owned(), task["attempt"].as_u64().expect("a number"))
        })
        .collect();
    steps.sort();
    let mut wanted = vec![(timed.to_string(), 2), (idle.to_string(), 2)];
    wanted.sort();
    assert_eq!(steps, wanted);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_that_cannot_be_made_fails_the_attempt_with_its_words() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let run = server
        .submit("steps: {a: {queue: mail}, b: {queue: mail, needs: [a], with: {x: \"${{ steps.a.output.no }}\"}}}\n")
        .await;
    let task = worker.take(1).await.remove(0);
    worker.finish(json!([{ "claim": task["claim"], "status": "succeeded" }])).await;
    assert!(worker.take(1).await.is_empty());
    let shown = server.get(&format!("/v1/runs/{run}/tasks/b")).await.json();
    assert_eq!((&shown["status"], &shown["reason"]), (&json!("failed"), &json!("expression")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_cannot_be_read_is_set_aside_and_the_worker_is_given_the_others() {
    given_the_others(Place::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn run_that_cannot_be_read_is_set_aside_and_the_worker_is_given_the_others_on_postgres() {
    given_the_others(Place::postgres().await).await;
}

async fn given_the_others(place: Place) {
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let named = |name: &str| format!("name: {name}\nsteps: {{{name}: {{queue: mail}}}}\n");
    let [taken, begun, untaken, good] = ["taken", "begun", "untaken", "good"].map(|name| (name, named(name)));
    let mut runs = Vec::new();
    for (_, document) in [&begun, &taken, &untaken, &good] {
        runs.push(server.submit(document).await);
    }
    let first = worker.take(2).await;
    assert_eq!((&first[0]["step"], &first[1]["step"]), (&json!("begun"), &json!("taken")));
    assert_eq!(worker.start(&first[0]).await, "recorded");
    for name in ["taken", "begun", "untaken"] {
        place
            .harm(&format!(
                "UPDATE workflows SET document = replace(document, 'steps', '][') WHERE name = '{name}'"
            ))
            .await;
    }
    // One that has read none of them before.
    let other = place.serve().await;
    let worker = worker.through(&other);
    let work = worker.good("claim", json!({ "max": 4, "holding": [first[0]["claim"]] })).await;
    let steps: Vec<&Value> =
        work["tasks"].as_array().expect("tasks").iter().map(|task| &task["step"]).collect();
    assert_eq!(steps, ["good"]);
    worker.good("renew", json!({})).await;
    let claim = |task: &Value| task["claim"].clone();
    let log = json!({ "claim": claim(&first[0]), "offset": 0, "pieces": [{ "text": "x" }] });
    assert_eq!(worker.good("log", log).await["fate"], "lost");
    let results = worker
        .finish(json!([
            { "claim": claim(&first[0]), "status": "succeeded" },
            { "claim": claim(&work["tasks"][0]), "status": "succeeded" },
        ]))
        .await;
    assert_eq!((&results[0]["fate"], &results[1]["fate"]), (&json!("lost"), &json!("recorded")));
    let shown = other.get("/v1/runs").await.json();
    let listed = shown["runs"].as_array().expect("runs");
    let set_aside = |run: &laneway_core::id::RunId| {
        let run = listed.iter().find(|one| one["run"] == json!(run.to_string())).expect("it is listed");
        run["set_aside"] != Value::Null
    };
    assert_eq!(runs.iter().map(set_aside).collect::<Vec<_>>(), [true, true, true, false]);
    server.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_for_work_with_a_token_that_is_revoked_is_refused() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    let (waited, ()) =
        tokio::join!(worker.say("claim", json!({ "max": 1, "wait": 30, "holding": [] })), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            server.store.revoke_token(&worker.token_name, "test").await.expect("revoked");
            // Work that it must not get.
            server.submit("steps: {a: {queue: mail}}\n").await;
        });
    assert_eq!(waited.refusal(), (401, "bad_token".to_owned()));
    server.stop().await;
}

/// To be told that it was refused a worker would drop its result; that the store is out of use passes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_of_the_store_is_not_told_as_a_refusal_of_what_ended() {
    let place = Place::sqlite();
    let server = place.serve().await;
    let worker = Worker::join(&server, "py").await;
    server.submit("steps: {a: {queue: mail}, b: {queue: mail}}\n").await;
    let tasks = worker.take(2).await;
    let results: Vec<Value> =
        tasks.iter().map(|task| json!({ "claim": task["claim"], "status": "succeeded" })).collect();
    // A file that is put in its place ends every writer that has the other one open, and leaves readers alone.
    let file = place.dir.path().join("laneway.db");
    let copy = place.dir.path().join("copy");
    std::fs::copy(&file, &copy).and_then(|_| std::fs::rename(&copy, &file)).expect("another file");
    let said = worker.say("finish", json!({ "results": results })).await;
    assert_eq!(said.refusal(), (503, "store_unavailable".to_owned()));
    let said = worker.say("start", json!({ "claims": [tasks[0]["claim"]] })).await;
    assert_eq!(said.refusal(), (503, "store_unavailable".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_long_tasks_waited_at_a_gate_is_told_as_a_figure() {
    let place = Place::sqlite();
    let server = place.serve_with(Terms { is_alone: true, ..Terms::default() }).await;
    let worker = Worker::join(&server, "py").await;
    for _ in 0..2 {
        server.submit("steps: {a: {queue: mail, lock: db}}\n").await;
    }
    let task = worker.take(2).await.remove(0);
    // By the store's clock, which counts milliseconds.
    tokio::time::sleep(Duration::from_millis(20)).await;
    worker.finish(json!([{ "claim": task["claim"], "status": "succeeded" }])).await;
    let told = String::from_utf8(server.get("/metrics").await.body.to_vec()).expect("text");
    let count = "laneway_gate_wait_seconds_count{node=\"server:1\",gate=\"lock\"} 1";
    assert!(told.lines().any(|line| line == count), "{told}");
    assert!(told.contains("# TYPE laneway_gate_wait_seconds histogram"), "{told}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewal_tells_the_lease_of_the_session_whichever_server_is_asked() {
    let place = Place::sqlite();
    let lease = |seconds| Lease { ttl: Duration::from_secs(seconds), every: Duration::from_secs(5) };
    let one = place.serve_with(Terms { lease: lease(90), ..Terms::default() }).await;
    let other = place.serve_with(Terms { lease: lease(30), ..Terms::default() }).await;
    let worker = Worker::join(&one, "py").await;
    for server in [&one, &other] {
        assert_eq!(worker.through(server).good("renew", json!({})).await["lease_ms"], 90_000);
    }
    one.stop().await;
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registration_says_what_is_wrong_with_it() {
    let place = Place::sqlite();
    let server = place.serve().await;
    for (body, word) in [
        (json!({ "name": "a b", "queues": ["q"], "slots": 1 }), "`name`"),
        (json!({ "name": "a", "queues": [], "slots": 1 }), "`queues`"),
        (json!({ "name": "a", "queues": ["q q"], "slots": 1 }), "`queues`"),
        (json!({ "name": "a", "queues": ["q"], "slots": 0 }), "`slots`"),
        (json!({ "name": "a", "queues": ["q"], "slots": 1, "labels": { "x": "" } }), "`labels`"),
        (json!({ "name": "a", "queues": ["q"], "slots": 1, "speed": 9 }), "speed"),
    ] {
        let reply = server.ask(Method::POST, "/v1/workers").by(Role::Worker).json(&body).send().await;
        let status = if word == "speed" { 400 } else { 422 };
        assert_eq!(reply.refusal().0, status, "{body}");
        assert!(reply.json()["detail"].as_str().expect("a detail").contains(word), "{body}: {reply:?}");
    }
    assert!(server.store.remotes().await.expect("a list").is_empty());
    server.stop().await;
}
