//! Runs that workers take: submit, worker, nodes, drain, limit, pause. Each worker is a process of its own.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use laneway_engine::worker::DEAD_NODE_CHECK_INTERVAL;
use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;
use crate::serve::Served;

const FLOW: &str = "
steps:
  a: {run: 'echo a >> ran'}
  b: {needs: [a], run: 'echo b >> ran'}
";

fn status(place: &Place) -> String {
    text(&place.json("show last --json")["status"]).to_owned()
}

fn worker(place: &Place, args: &str) -> Running {
    let before = nodes(place);
    let worker = place.spawn(&format!("worker --shutdown-grace 1s {args}"));
    until("a node", || nodes(place) > before);
    worker
}

fn nodes(place: &Place) -> usize {
    let outcome = place.laneway("nodes --json");
    serde_json::from_str::<Value>(&outcome.stdout)
        .ok()
        .and_then(|nodes| nodes.as_array().map(Vec::len))
        .unwrap_or(0)
}

#[test]
fn submitted_run_waits_for_a_worker_and_says_so() {
    let place = Place::in_place("flow.yaml", FLOW);
    assert_snapshot!(place.laneway("submit flow.yaml"), @r"
    $ laneway submit flow.yaml
    exit code 0
    ----- stdout
    run [id] of flow submitted
    ----- stderr
    `laneway show [id]` shows it
    ");
    let why = place.laneway("explain last a").stdout;
    assert!(why.contains("no node is alive"), "{why}");
    let worker = worker(&place, "");
    until("the end of the run", || status(&place) == "succeeded");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
    assert_eq!(place.read("ran"), "a\nb\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_run_that_no_worker_can_take_is_queued_with_its_cause() {
    is_queued_with_its_cause(&Place::new());
}

#[test]
fn a_run_that_no_worker_can_take_is_queued_with_its_cause_on_postgres_too() {
    is_queued_with_its_cause(&Place::with("laneway.toml", &format!("store = \"{}\"\n", schema())));
}

fn is_queued_with_its_cause(place: &Place) {
    place
        .write("flow.yaml", "steps: {a: {run: 'true', runs_on: {zone: eu}}, b: {needs: [a], run: 'true'}}\n");
    place.laneway("submit flow.yaml");
    let run = place.json("runs --json")[0].clone();
    assert_eq!(run["status"], "queued", "{run}");
    assert!(text(&run["cause"]).contains("no node is alive"), "{run}");
    let list = place.laneway("runs");
    assert!(list.stdout.contains("queued") && list.stderr.contains("1 run queued: no live node"), "{list}");
    let shown = place.laneway("show last");
    assert!(shown.stdout.contains(" queued\n") && shown.stdout.contains("no node is alive"), "{shown}");
    let shown = place.json("show last --json");
    assert_eq!(shown["status"], "queued");
    assert!(text(&shown["cause"]).contains("no node is alive"), "{shown}");
    let why = place.laneway("explain last");
    assert!(why.stdout.starts_with("· flow ") && why.stdout.contains(" queued\n"), "{why}");
    assert!(place.laneway("top --once --size 80x24").stdout.contains("queued"));
    let listed = |status: &str| {
        let runs = place.json(&format!("runs --status {status} --json"));
        runs.as_array().map(Vec::len)
    };
    assert_eq!([listed("queued"), listed("running")], [Some(1), Some(0)]);
    // A worker that cannot take it changes the cause alone.
    let us = worker(place, "--label zone=us --node-address us");
    let run = place.json("runs --json")[0].clone();
    assert!(run["status"] == "queued" && text(&run["cause"]).contains("us has zone=us"), "{run}");
    let eu = worker(place, "--label zone=eu --node-address eu");
    until("the end of the run", || status(place) == "succeeded");
    let shown = place.laneway("show last");
    assert!(shown.stdout.contains(" for its first task\n") && !shown.stdout.contains("queued"), "{shown}");
    for worker in [us, eu] {
        worker.signal(Signal::TERM);
        worker.wait();
    }
}

#[test]
fn limits_schedules_and_workflows_are_removed() {
    removes(&Place::new(), "");
}

#[test]
fn limits_schedules_and_workflows_are_removed_through_a_server() {
    let place = Place::new();
    let server = Served::start(&place, &["--no-worker"]);
    removes(&place, &format!(" --server {}", server.url()));
}

fn removes(place: &Place, at: &str) {
    let ok = |line: &str| {
        let outcome = place.laneway(&format!("{line}{at}"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        outcome.stdout
    };
    let refused = |line: &str, why: &str| {
        let outcome = place.laneway(&format!("{line}{at}"));
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(why) && outcome.stderr.contains("hint: "), "{outcome}");
    };
    place.write("nightly.yaml", "schedule: {cron: \"0 2 1 1 *\"}\nsteps: {a: {run: 'true', limits: [db]}}\n");
    ok("limit set db 1");
    ok("apply nightly.yaml");
    ok("submit nightly.yaml");
    refused("limit rm db", "the limit `db` is in use: ");
    refused("workflow rm nightly", "in use: 1 run has not ended, and 1 trigger fires");
    assert_eq!(ok("schedule rm nightly"), "nightly starts by itself no more, until it is applied again\n");
    refused("schedule rm nightly", "no schedule or other trigger starts `nightly`");
    refused("workflow rm nightly", "in use: 1 run has not ended\n");
    ok("cancel last --now");
    assert_eq!(ok("limit rm db"), "limit db is removed\n");
    assert_eq!(ok("workflow rm nightly"), "workflow nightly is removed; its runs stay\n");
    refused("workflow rm nightly", "nightly");
    assert!(ok("runs").contains("nightly"));
    refused("start nightly", "nightly");
    let store = rusqlite::Connection::open(place.path(".laneway/laneway.db")).expect("the store");
    let mut audit =
        store.prepare("SELECT act FROM audit WHERE act LIKE 'remove%' ORDER BY seq").expect("the log");
    let acts = audit.query_map((), |row| row.get::<_, String>(0)).expect("entries");
    let acts: Vec<String> = acts.collect::<Result<_, _>>().expect("text");
    assert_eq!(acts, ["remove_triggers", "remove_limit", "remove_workflow"]);
}

#[test]
fn every_pool_is_drained_at_once() {
    let place = Place::new();
    let worker = worker(&place, "--node-address one");
    assert!(place.laneway("pool drain --all").stderr.contains("no node keeps a pool"));
    let store = rusqlite::Connection::open(place.path(".laneway/laneway.db")).expect("the store");
    for (name, image) in [("agents", "busybox:1"), ("shared", "busybox:2")] {
        let keep = "INSERT INTO pools (session, name, image, max) SELECT id, ?1, ?2, 3 FROM sessions";
        store.execute(keep, [name, image]).expect("a pool");
    }
    let told = place.json("pool drain --all --json");
    assert_eq!((&told[0]["pool"], &told[1]["pool"]), (&"agents".into(), &"shared".into()), "{told}");
    let told = place.laneway("pool drain --all --node one").stdout;
    assert!(told.contains("busybox:1  agents is drained") && told.contains("shared is drained"), "{told}");
    assert_eq!(place.laneway("pool drain agents --all").code, Some(2));
    assert_eq!(place.laneway("pool drain").code, Some(2));
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn submission_with_a_key_is_made_once() {
    let place = Place::with("flow.yaml", FLOW);
    let one = place.json("submit flow.yaml --key nightly --json");
    let two = place.json("submit flow.yaml --key nightly --json");
    assert_eq!(one["run"], two["run"]);
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(1));
}

#[test]
fn key_of_a_run_that_differs_is_refused_with_what_differs() {
    let place = Place::with(
        "flow.yaml",
        "params: {date: {type: string, required: true}}\nsteps: {a: {run: 'true'}}\n",
    );
    place.laneway("submit flow.yaml --key nightly -p date=mon");
    assert_snapshot!(place.laneway("submit flow.yaml --key nightly -p date=tue"), @r##"
    $ laneway submit flow.yaml --key nightly -p date=tue
    exit code 2
    ----- stdout
    ----- stderr
      flow.yaml (73 bytes)
    error: the key `nightly` belongs to run [id], which differs: `date` "mon", now "tue"
    hint: use another key for a new run; `laneway show [id]` shows that one
    "##);
    place.write("flow.yaml", "params: {date: {type: string, required: true}}\nsteps: {a: {run: 'false'}}\n");
    let edited = place.laneway("submit flow.yaml --key nightly -p date=mon");
    assert_eq!(edited.code, Some(2), "{edited}");
    assert!(edited.stderr.contains("which differs: version "), "{edited}");
    place.write("other.yaml", FLOW);
    let other = place.laneway("submit other.yaml --key nightly");
    assert_eq!(other.code, Some(2), "{other}");
    assert!(other.stderr.contains("which differs: workflow `flow`, now `other`"), "{other}");
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(1));
}

#[test]
fn two_workers_share_the_tasks_of_a_run_by_their_labels() {
    let place = Place::with(
        "flow.yaml",
        "steps:\n  x: {run: 'true', runs_on: {zone: eu}}\n  y: {run: 'true', runs_on: {zone: us}}\n",
    );
    let eu = worker(&place, "--label zone=eu --node-address eu");
    let us = worker(&place, "--label zone=us --node-address us");
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    let run = place.json("show last --json");
    let node = |at: usize| text(&run["tasks"][at]["node"]).to_owned();
    assert_eq!([node(0), node(1)], ["eu", "us"]);
    for worker in [eu, us] {
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait().code, Some(0));
    }
}

#[test]
fn worker_that_is_killed_loses_its_task_to_another() {
    let place = Place::in_place(
        "flow.yaml",
        "steps:\n  a: {run: 'echo $LANEWAY_ATTEMPT > began; test $LANEWAY_ATTEMPT = 2 || sleep 600'}\n",
    );
    place.laneway("submit flow.yaml");
    let first = worker(&place, "");
    until("the first attempt", || place.path("began").exists());
    first.signal(Signal::KILL);
    drop(first.wait());
    let second = worker(&place, "");
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.json("show last --json")["tasks"][0]["attempt"], 2);
    second.signal(Signal::TERM);
    second.wait();
}

/// Many times the interval at which workers check for dead nodes, so that only a missing check can exceed it.
const TAKEOVER_DEADLINE: Duration = Duration::from_secs(30);

#[test]
fn task_of_a_killed_worker_is_taken_over_by_one_that_runs_already() {
    is_taken_over("");
}

/// The lease alone would keep it for ten minutes.
#[test]
fn task_of_a_killed_worker_of_this_host_is_taken_over_before_its_lease_ends_on_postgres() {
    is_taken_over(&format!("store = \"{}\"\nlease_ttl = \"10m\"\n", schema()));
}

fn is_taken_over(settings: &str) {
    let place = Place::with("laneway.toml", settings);
    let began = place.path("began");
    let step =
        format!("echo $LANEWAY_ATTEMPT >> {}; test $LANEWAY_ATTEMPT = 2 || sleep 600", began.display());
    place.write("flow.yaml", &format!("steps:\n  a: {{run: '{step}'}}\n"));
    let first = worker(&place, "--node-address first");
    place.laneway("submit flow.yaml");
    until("the first attempt", || began.exists());
    let second = worker(&place, "--node-address second");
    first.signal(Signal::KILL);
    let killed = Instant::now();
    drop(first.wait());
    until("the end of the run", || {
        assert!(killed.elapsed() < TAKEOVER_DEADLINE, "no worker takes the task over");
        status(&place) == "succeeded"
    });
    let events = place.laneway("events last --json").stdout;
    let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let told: Vec<String> = events
        .filter(|event| event["step"] == "a")
        .map(|event| format!("{} {}", text(&event["event"]), event["attempt"]))
        .filter(|told| ["task_started", "task_lost"].iter().any(|kind| told.starts_with(kind)))
        .collect();
    assert_eq!(told, ["task_started 1", "task_lost 1", "task_started 2"]);
    let task = &place.json("show last --json")["tasks"][0];
    assert_eq!((text(&task["node"]), text(&task["status"])), ("second", "succeeded"));
    second.signal(Signal::TERM);
    second.wait();
}

#[test]
fn documented_interval_of_checks_for_dead_nodes_is_that_of_workers() {
    let (operations, nodes) =
        (include_str!("../../../../docs/operations.md"), include_str!("../../../../docs/design/nodes.md"));
    let interval = format!("every {} s", DEAD_NODE_CHECK_INTERVAL.as_secs_f64());
    assert!(operations.contains(&format!("Workers and servers check it {interval}; ")), "{interval}");
    assert!(
        nodes.contains(&format!("checks the locks {interval} (`DEAD_NODE_CHECK_INTERVAL`)")),
        "{interval}"
    );
    assert!(TAKEOVER_DEADLINE >= DEAD_NODE_CHECK_INTERVAL * 5);
}

#[test]
fn worker_that_is_told_to_stop_returns_what_did_not_end_in_time() {
    let place = Place::in_place("flow.yaml", "steps:\n  a: {run: 'echo > began; exec sleep 600'}\n");
    place.laneway("submit flow.yaml");
    let worker = worker(&place, "");
    until("a start", || place.path("began").exists());
    worker.signal(Signal::TERM);
    let outcome = worker.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stderr.contains("a of run") && outcome.stderr.contains("was stopped"), "{outcome}");
    assert_eq!(place.json("show last --json")["tasks"][0]["status"], "pending", "no node is left to run it");
}

#[test]
fn worker_that_is_told_so_ends_when_the_process_that_started_it_dies() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_laneway");
    let mut shell = std::process::Command::new("sh")
        .args(["-c", &format!("{program} worker --exit-with-parent & wait")])
        .current_dir(place.path("."))
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("a shell");
    until("a node", || nodes(&place) == 1);
    shell.kill().expect("it runs");
    shell.wait().expect("it ends");
    until("the end of the worker", || nodes(&place) == 0);
}

/// The process of a node that no test is the parent of.
struct Stray(i32);

impl Drop for Stray {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_raw(self.0).expect("a process");
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

#[test]
fn worker_outlives_its_shell() {
    let place = Place::in_place("flow.yaml", "steps: {a: {run: 'touch ran'}}");
    let program = env!("CARGO_BIN_EXE_laneway");
    let wait = format!("until {program} nodes --json | grep -q pid; do sleep 0.05; done");
    let shell = std::process::Command::new("sh")
        .args(["-c", &format!("nohup {program} worker > worker.log 2>&1 & {wait}")])
        .current_dir(place.path("."))
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status()
        .expect("a shell");
    assert!(shell.success());
    let pid = place.json("nodes --json")[0]["pid"].as_i64().expect("a process");
    let stray = Stray(i32::try_from(pid).expect("a process"));
    // Had it heard of the end of its shell, it would take nothing more.
    place.laneway("submit flow.yaml");
    until("the step", || place.path("ran").exists());
    drop(stray);
    until("the end of the worker", || nodes(&place) == 0);
    assert!(!place.read("worker.log").contains("parent_died"), "{}", place.read("worker.log"));
}

#[test]
fn drained_node_takes_nothing_more() {
    let place = Place::with("flow.yaml", FLOW);
    let worker = worker(&place, "--node-address one");
    assert_snapshot!(place.laneway("drain one"), @r"
    $ laneway drain one
    exit code 0
    ----- stdout
    one takes nothing more; what it runs may end
    ----- stderr
    ");
    assert_eq!(place.json("nodes --json")[0]["state"], "draining");
    place.laneway("submit flow.yaml");
    assert_eq!(place.json("show last --json")["tasks"][0]["status"], "pending");
    assert_snapshot!(place.laneway("drain two"), @r"
    $ laneway drain two
    exit code 2
    ----- stdout
    ----- stderr
    error: no node `two` is alive
    hint: `laneway nodes` lists them
    ");
    worker.signal(Signal::TERM);
    worker.wait();
}

/// A resource can reject a holder that still runs after its lock was given to another task.
#[test]
fn holder_of_a_lock_has_a_larger_number_than_all_before_it() {
    let step = "echo $LANEWAY_FENCE >> fences; test -e go || { touch go; sleep 60; }";
    let place = Place::in_place(
        "flow.yaml",
        &format!(
            "steps:\n  a: {{lock: db, run: '{step}'}}\n  b: {{run: 'echo none$LANEWAY_FENCE > free'}}\n"
        ),
    );
    let first = worker(&place, "");
    place.laneway("submit flow.yaml");
    until("the first holder", || place.path("go").exists());
    first.signal(Signal::KILL);
    let _second = place.spawn("worker --shutdown-grace 1s");
    until("the end of the run", || status(&place) == "succeeded");
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    let fences: Vec<u64> = place.read("fences").lines().map(|line| line.parse().expect("a number")).collect();
    assert_eq!(fences.len(), 3, "{fences:?}");
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    assert_eq!(place.read("free"), "none\n", "a step without a lock has none");
}

/// Counts starts as the called service sees them. Twelve tasks are promoted while all slots are
/// busy. When the slots become free, they must not all start at once.
#[test]
fn rate_holds_for_starts_also_after_all_slots_were_busy() {
    let blockers: String = (0..12).map(|number| format!("  b{number}: {{run: sleep 7}}\n")).collect();
    let place = Place::with("busy.yaml", &format!("max_parallel: 12\nsteps:\n{blockers}"));
    let started = format!("date +%s%N >> {}/starts", place.path("").display());
    let calls: String =
        (0..12).map(|number| format!("  c{number}: {{limits: [pace], run: {started}}}\n")).collect();
    place.write("calls.yaml", &format!("max_parallel: 12\nlimits: {{pace: 8/4s}}\nsteps:\n{calls}"));
    let _worker = worker(&place, "--slots 12");
    place.laneway("submit busy.yaml");
    let running = || {
        let run = place.json("show last --json");
        let tasks = run["tasks"].as_array().expect("tasks");
        tasks.iter().filter(|task| task["status"] == "running").count()
    };
    until("all slots to be busy", || running() == 12);
    place.laneway("submit calls.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    let mut starts: Vec<u64> =
        place.read("starts").lines().map(|line| line.parse().expect("a moment")).collect();
    starts.sort_unstable();
    assert_eq!(starts.len(), 12);
    for first in &starts {
        let inside = starts.iter().filter(|at| (*first..first + 4_000_000_000).contains(at)).count();
        assert!(inside <= 8, "{inside} of 8 in 4 s: {starts:?}");
    }
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn limits_are_set_listed_and_refused_when_they_make_no_sense() {
    let place = Place::new();
    assert_eq!(place.laneway("limit set warehouse 3").code, Some(0));
    assert_eq!(place.laneway("limit set api 100/1m").code, Some(0));
    assert_snapshot!(place.laneway("limit list"), @r"
    $ laneway limit list
    exit code 0
    ----- stdout
    LIMIT      VALUE   HELD  WAITING  SET BY
    api        100/1m  0     0        ada
    warehouse  3       0     0        ada
    ----- stderr
    ");
    let refused = place.laneway("limit set warehouse 0");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("leave it out"), "{refused}");
}

#[test]
fn paused_run_starts_nothing_until_it_is_resumed() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    assert_eq!(place.laneway("pause last").code, Some(0));
    let worker = worker(&place, "");
    let why = place.laneway("explain last a").stdout;
    assert!(why.contains("paused") && why.contains("ada"), "{why}");
    assert_eq!(place.laneway("resume last").code, Some(0));
    until("the end of the run", || status(&place) == "succeeded");
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn node_tells_why_it_stopped_and_what_it_did() {
    let place = Place::with("flow.yaml", FLOW);
    let worker = worker(&place, "--node-address one --label zone=eu");
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    // It is told with the next sweep.
    until("a node that has told", || place.json("nodes --json")[0]["claimed"]["succeeded"] == 2);
    let node = &place.json("nodes --json")[0];
    assert_eq!(node["claimed"]["total"], 2, "{node}");
    assert!(node["claim_attempts"].as_u64() >= Some(2), "{node}");
    assert!(node["last_active_at"].is_string() && node["observed_at"].is_string(), "{node}");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
    let history = place.laneway("nodes --history --json").stdout;
    let events: Vec<Value> =
        history.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect();
    let names: Vec<&str> = events.iter().map(|event| text(&event["event"])).collect();
    assert_eq!(names, ["node_joined", "node_draining", "node_stopping"]);
    assert_eq!(events[0]["labels"]["zone"], "eu");
    assert_eq!(events[2]["why"]["reason"], "signal");
    let told = place.laneway("nodes --history one").stdout;
    assert!(told.contains("one  joined with 4 slots") && told.contains("stopped: signal"), "{told}");
}

#[test]
fn node_that_is_told_to_stop_while_it_begins_leaves_no_session() {
    let place = Place::new();
    // The store, and the token of whoever serves it, are there already.
    assert_eq!(Served::start(&place, &[]).end().0, Some(0));
    let store = rusqlite::Connection::open(place.path(".laneway/laneway.db")).expect("the store");
    let serve = "serve --listen 127.0.0.1:0";
    for line in ["worker", serve, &format!("{serve} --no-worker")] {
        // Nobody else writes: no session can begin.
        store.execute_batch("BEGIN IMMEDIATE").expect("ours");
        let begins = place.spawn(line);
        until("that it hears signals", || begins.hears(Signal::TERM) && begins.hears(Signal::INT));
        begins.signal(Signal::TERM);
        store.execute_batch("ROLLBACK").expect("ours");
        let outcome = begins.wait();
        assert_eq!(outcome.code, Some(0), "{outcome}");
        let left: u32 =
            store.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0)).expect("a count");
        assert_eq!(left, 0, "{outcome}");
    }
}

#[test]
fn pinned_run_stays_on_the_worker_that_takes_its_first_step() {
    let steps: String = (0..12).map(|at| format!("  s{at}: {{run: 'true'}}\n")).collect();
    let place = Place::with("flow.yaml", &format!("placement: pinned\nsteps:\n{steps}"));
    let workers =
        [worker(&place, "--node-address one --slots 1"), worker(&place, "--node-address two --slots 1")];
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    let shown = place.json("show last --json");
    let tasks = shown["tasks"].as_array().expect("tasks");
    let first = text(&tasks[0]["node"]);
    assert!(tasks.iter().all(|task| text(&task["node"]) == first), "{shown}");
    for worker in workers {
        worker.signal(Signal::TERM);
        worker.wait();
    }
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn outputs_of_two_runs_on_one_worker_do_not_mix() {
    let place = Place::new();
    let gate = place.path("gate").display().to_string();
    // Each has written, and both are read only when both have.
    let script =
        format!("echo run=$LANEWAY_RUN >> $LANEWAY_OUTPUT; until [ -e {gate} ]; do sleep 0.05; done");
    place.write("flow.yaml", &format!("steps: {{a: {{run: '{script}'}}}}\n"));
    let _worker = worker(&place, "--slots 4");
    let runs = [0, 1].map(|_| text(&place.json("submit flow.yaml --json")["run"]).to_owned());
    until("both to run", || {
        runs.iter().all(|run| place.json(&format!("show {run} --json"))["tasks"][0]["status"] == "running")
    });
    place.write("gate", "");
    for run in &runs {
        until("an end", || place.json(&format!("show {run} --json"))["status"] == "succeeded");
        let shown = place.json(&format!("show {run} --json"));
        assert_eq!(text(&shown["tasks"][0]["output"]["run"]), run);
    }
}

/// `a` and `b` do not end at first; the others wait until they may. All of them want the same limit.
fn lost_task_keeps_its_place(store: &str) {
    let place = Place::new();
    let go = place.path("go");
    let lost = |name: char| {
        format!("  {name}: {{limits: [x], run: 'test $LANEWAY_ATTEMPT != 1 || exec sleep 600'}}\n")
    };
    let next = |number: u32| {
        let wait = format!("while ! test -e {}; do sleep 0.05; done", go.display());
        format!("  n{number}: {{limits: [x], run: '{wait}'}}\n")
    };
    let steps: String = ['a', 'b'].map(lost).into_iter().chain((0..40).map(next)).collect();
    place.write("flow.yaml", &format!("max_parallel: 100\nlimits: {{x: 4}}\nsteps:\n{steps}"));
    if !store.is_empty() {
        place.write("laneway.toml", &format!("store = '{store}'\n"));
    }
    let submitted = place.laneway("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let lease = "--lease-ttl 4s --heartbeat-interval 200ms --slots 2";
    let start = |name: &str| place.spawn(&format!("worker --node-address {name} --data-dir {name} {lease}"));
    let started = || -> Vec<String> {
        let events = place.laneway("events last --json").stdout;
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let of_kind = events.filter(|event| ["task_started", "task_lost"].contains(&text(&event["event"])));
        of_kind.map(|event| format!("{} {}", text(&event["event"]), text(&event["step"]))).collect()
    };
    let one = start("one");
    until("two starts", || started().len() == 2);
    assert_eq!(started(), ["task_started a", "task_started b"], "the first in line");
    let two = start("two");
    until("a full limit", || started().len() == 4);
    one.signal(Signal::KILL);
    drop(one.wait());
    until("two losses", || started().iter().filter(|event| event.starts_with("task_lost")).count() == 2);
    std::fs::write(&go, "").expect("written");
    until("the end of the run", || status(&place) == "succeeded");
    let all = started();
    let last_loss = all.iter().rposition(|event| event.starts_with("task_lost")).expect("a loss");
    // Two slots: a short task and the one behind it may have started before the other one has.
    let next: Vec<&str> = all[last_loss + 1..].iter().take(4).map(String::as_str).collect();
    let has = |event: &str| next.contains(&event);
    assert!(has("task_started a") && has("task_started b"), "before the backlog of 38: {all:?}");
    two.signal(Signal::TERM);
    assert_eq!(two.wait().code, Some(0));
}

#[test]
fn limited_task_of_a_killed_worker_is_among_the_next_to_start() {
    lost_task_keeps_its_place("");
}

#[test]
fn limited_task_of_a_killed_worker_is_among_the_next_to_start_on_postgres() {
    lost_task_keeps_its_place(&crate::postgres::schema());
}

#[test]
fn run_takes_no_step_that_is_for_other_nodes() {
    let flow = "steps:\n  a: {run: 'touch ran'}\n  train: {runs_on: {gpu: a100}, needs: [a], run: 'true'}\n";
    let place = Place::with("flow.yaml", flow);
    assert_snapshot!(place.laneway("run flow.yaml"), @r"
    $ laneway run flow.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: step `train` runs on gpu=a100, and this process has no label gpu
    hint: `--label gpu=a100` if this host is one; `laneway submit` leaves the run to workers that are
    ");
    assert!(!place.path("ran").exists(), "nothing of it ran");
    assert_eq!(place.laneway("run flow.yaml --label gpu=a100").code, Some(0));
    let again = place.laneway("retry last --from train --label gpu=h100");
    assert_eq!(again.code, Some(2), "{again}");
    assert!(again.stderr.contains("this process has gpu=h100"), "{again}");
    assert_eq!(place.statuses(), "a=succeeded train=succeeded", "it was not opened again");
    place.write("laneway.toml", "labels = {gpu = \"a100\"}\n");
    assert_eq!(place.laneway("retry last --from train").code, Some(0));
    std::fs::remove_file(place.path("laneway.toml")).expect("it was there");
    place.write("parent.yaml", "steps: {call: {workflow: flow.yaml}}\n");
    let parent = place.laneway("run parent.yaml");
    assert!(parent.stderr.contains("step `train` runs on gpu=a100"), "{parent}");
}

#[test]
fn clean_environment_is_that_of_a_worker() {
    let place = Place::in_place(
        "flow.yaml",
        "steps: {a: {run: 'echo \"${REGION-none} ${TOKEN-none} ${LANG-none}\" >> told'}}\n",
    );
    let run = |line: &str| {
        let mut command = place.command(&line.split(' ').collect::<Vec<_>>());
        command.env("REGION", "eu").env("TOKEN", "t");
        let outcome = place.outcome(line, command);
        assert_eq!(outcome.code, Some(0), "{outcome}");
    };
    run("run flow.yaml");
    run("run flow.yaml --clean-env");
    run("run flow.yaml --clean-env --pass-env REGION");
    run("retry last --from a --clean-env");
    let of_worker = |args: &str, lines: usize| {
        let line = format!("worker --shutdown-grace 1s{args}");
        let worker = place.spawn_with(&line, &[("REGION", "eu"), ("TOKEN", "t")]);
        place.laneway("submit flow.yaml");
        until("the worker's", || place.read("told").lines().count() == lines);
        worker.signal(Signal::TERM);
        worker.wait();
    };
    of_worker("", 5);
    of_worker(" --pass-env REGION", 6);
    let (all, none, passed) = ("eu t C.UTF-8\n", "none none C.UTF-8\n", "eu none C.UTF-8\n");
    assert_eq!(place.read("told"), [all, none, passed, none, none, passed].concat());
}

#[test]
fn show_names_the_node_of_each_task_unless_one_run_did_all_of_it() {
    let place = Place::with("flow.yaml", FLOW);
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    assert!(!place.laneway("show last").stdout.contains("NODE"));
    let worker = worker(&place, "--node-address alpha");
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    let shown = place.laneway("show last").stdout;
    assert!(shown.contains("NODE") && shown.matches("alpha").count() == 2, "{shown}");
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn retry_of_a_submitted_run_leaves_it_to_workers() {
    let place = Place::in_place("flow.yaml", "steps: {a: {run: 'test -e go'}}\n");
    let worker = worker(&place, "");
    place.laneway("submit flow.yaml");
    until("the end of the run", || status(&place) == "failed");
    place.write("go", "");
    let again = place.laneway("retry last");
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stdout.contains("goes on: a"), "{again}");
    until("the end of the run", || status(&place) == "succeeded");
    worker.signal(Signal::TERM);
    worker.wait();
}
