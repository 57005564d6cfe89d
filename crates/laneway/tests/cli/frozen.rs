//! Workers and runs whose process lives and does not run: it was stopped, as by SIGSTOP or Ctrl-Z. Each is a process of
//! its own on the embedded store.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Place, Running, text, until};

/// Its first attempt does not end; a later one says whether the first is still there.
const FLOW: &str = "
steps:
  a:
    run: |
      if [ $LANEWAY_ATTEMPT = 1 ]; then echo $$ > pid; exec sleep 600; fi
      if grep -q sleep /proc/$(cat pid)/cmdline 2> grep.log; then echo beside >> ran; else echo alone >> ran; fi
";

/// Waits for a file, in whatever attempt.
const WAITING: &str = "
steps:
  a: {run: 'echo $$ > pid; while ! test -e go; do sleep 0.05; done'}
  b: {run: 'while ! test -e go; do sleep 0.05; done'}
";

const SHORT_LEASE: &str = "--lease-ttl 2s --heartbeat-interval 200ms";

fn worker(place: &Place, name: &str, args: &str) -> Running {
    let worker = place.spawn(&format!("worker --shutdown-grace 1s --node-address {name} {args}"));
    until("a node", || node(place, name).is_some());
    worker
}

fn node(place: &Place, name: &str) -> Option<Value> {
    // There may be no store yet.
    let nodes: Value = serde_json::from_str(&place.laneway("nodes --json").stdout).ok()?;
    nodes.as_array().expect("a list").iter().find(|node| node["node"] == name).cloned()
}

fn state(place: &Place, name: &str) -> String {
    node(place, name).map_or_else(String::new, |node| text(&node["state"]).to_owned())
}

fn status(place: &Place) -> String {
    text(&place.json("show last --json")["status"]).to_owned()
}

/// The step runs, and that it does is recorded: its worker writes nothing more, and is not stopped inside of a write
/// transaction by chance.
fn has_started(place: &Place) -> bool {
    std::fs::read_to_string(place.path("pid")).is_ok_and(|pid| pid.ends_with('\n'))
        && !place.json("show last --json")["tasks"][0]["started_at"].is_null()
}

/// The node itself and its children: the warden.
fn with_warden(place: &Place, name: &str) -> Vec<Pid> {
    let pid = node(place, name).expect("it is there")["pid"].as_i64().expect("a number");
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let children = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let children: String = children.map(|text| text.expect("they are told")).collect();
    let all = format!("{pid} {children}");
    let pids: Vec<Pid> = all.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
    assert!(pids.len() > 1, "it has a warden: {all}");
    pids
}

fn signal_all(pids: &[Pid], signal: Signal) {
    pids.iter().for_each(|pid| kill_process(*pid, signal).expect("it is ours"));
}

fn stop(worker: Running) {
    worker.signal(Signal::TERM);
    let outcome = worker.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

#[test]
fn task_of_a_frozen_worker_goes_on_elsewhere_and_that_worker_joins_again() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let mut frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    let session = node(&place, "frozen").expect("it is there")["session"].clone();
    frozen.signal(Signal::STOP);
    let other = worker(&place, "other", SHORT_LEASE);
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.read("ran"), "alone\n", "what the frozen worker ran is gone before it runs again");
    frozen.signal(Signal::CONT);
    frozen.wait_for_note("joins again");
    until("another session", || node(&place, "frozen").is_some_and(|node| node["session"] != session));
    assert_eq!(state(&place, "frozen"), "takes work");
    [frozen, other].into_iter().for_each(stop);
    assert_eq!(place.laneway("replay last").code, Some(0));
    let doctor = place.laneway("doctor");
    assert_eq!(doctor.code, Some(0), "{doctor}");
}

#[test]
fn frozen_server_joins_again_and_takes_submissions() {
    let place = Place::with("flow.yaml", FLOW);
    let mut server = place.spawn(&format!("serve --listen 127.0.0.1:0 --node-address frozen {SHORT_LEASE}"));
    server.wait_for("listening at");
    let session = node(&place, "frozen").expect("it is there")["session"].clone();
    server.signal(Signal::STOP);
    let other = worker(&place, "other", SHORT_LEASE);
    until("the end of its session", || node(&place, "frozen").is_none());
    stop(other);
    server.signal(Signal::CONT);
    server.wait_for_note("joins again");
    until("another session", || node(&place, "frozen").is_some_and(|node| node["session"] != session));
    place.write("quick.yaml", "steps:\n  a: {run: 'true'}\n");
    place.laneway("submit quick.yaml");
    until("the end of the run", || status(&place) == "succeeded");
    stop(server);
}

#[test]
fn nodes_and_doctor_name_a_frozen_node_until_it_runs_again() {
    let place = Place::with("flow.yaml", FLOW);
    let frozen = worker(&place, "frozen", "--heartbeat-interval 200ms");
    let before = node(&place, "frozen").expect("it is there");
    frozen.signal(Signal::STOP);
    until("silence", || state(&place, "frozen").starts_with("not responding for "));
    let doctor = place.laneway("doctor");
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.stdout.contains("session of frozen: its process"), "{doctor}");
    assert!(doctor.stdout.contains(&format!("`kill -CONT {}`", before["pid"])), "{doctor}");
    frozen.signal(Signal::CONT);
    until("a renewal", || state(&place, "frozen") == "takes work");
    let after = node(&place, "frozen").expect("it is there");
    assert_eq!(after["session"], before["session"], "its lease is not over");
    stop(frozen);
}

#[test]
fn cancel_ends_a_run_whose_only_worker_is_frozen() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    frozen.signal(Signal::STOP);
    let canceled = place.laneway("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(canceled.stdout.contains("canceled"), "{canceled}");
    assert_eq!(status(&place), "canceled");
    frozen.signal(Signal::CONT);
    stop(frozen);
}

#[test]
fn cancel_that_stops_nothing_says_so_and_fails() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    // Its lease outlasts the patience of `cancel`, which goes by its own setting.
    let frozen = worker(&place, "frozen", "--lease-ttl 600s --heartbeat-interval 200ms");
    until("a start", || has_started(&place));
    frozen.signal(Signal::STOP);
    until("silence", || state(&place, "frozen").starts_with("not responding for "));
    let mut command = place.command(&["cancel", "last"]);
    command.env("LANEWAY_LEASE_TTL", "1s").env("LANEWAY_HEARTBEAT_INTERVAL", "200ms");
    let canceled = place.outcome("cancel last", command);
    assert_eq!(canceled.code, Some(1), "{canceled}");
    assert!(canceled.stdout.contains("has not stopped: node frozen does not respond"), "{canceled}");
    frozen.signal(Signal::CONT);
    until("the end of the run", || status(&place) == "canceled");
    stop(frozen);
}

#[test]
fn timeout_of_a_run_takes_effect_although_its_worker_is_frozen() {
    let place = Place::with("flow.yaml", &format!("timeout: 1s\n{FLOW}"));
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    frozen.signal(Signal::STOP);
    let other = worker(&place, "other", SHORT_LEASE);
    until("the end of the run", || status(&place) == "failed");
    assert!(!place.path("ran").exists(), "nothing of it ran again");
    frozen.signal(Signal::CONT);
    [frozen, other].into_iter().for_each(stop);
}

#[test]
fn stopped_run_keeps_its_tasks_and_goes_on() {
    let place = Place::with("flow.yaml", WAITING);
    place.write("laneway.toml", "lease_ttl = '2s'\nheartbeat_interval = '200ms'\n");
    let run = place.spawn("run flow.yaml");
    until("a start", || has_started(&place));
    let name = text(&place.json("nodes --json")[0]["node"]).to_owned();
    run.signal(Signal::STOP);
    let other = worker(&place, "other", "");
    until("much longer than a lease", || state(&place, &name) == "not responding for 8 s");
    assert_eq!(status(&place), "running");
    place.write("go", "");
    run.signal(Signal::CONT);
    let outcome = run.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.json("show last --json")["tasks"][0]["attempt"], 1);
    stop(other);
}

#[test]
fn cancel_ends_a_run_whose_process_is_stopped() {
    let place = Place::with("flow.yaml", WAITING);
    let mut command = place.command(&["run", "flow.yaml"]);
    command.env("LANEWAY_HEARTBEAT_INTERVAL", "200ms");
    let mut run = command.spawn().expect("it starts");
    until("a start", || has_started(&place));
    kill_process(Pid::from_child(&run), Signal::STOP).expect("it is ours");
    let canceled = place.laneway("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert_eq!(status(&place), "canceled");
    assert!(!run.wait().expect("it ended").success());
    let step = place.read("pid");
    assert!(!std::path::Path::new("/proc").join(step.trim()).exists(), "its step is gone");
}

/// As a process does that is stopped inside of a write transaction: everyone else waits for it.
#[test]
fn process_that_is_frozen_with_the_write_lock_is_ended_by_one_that_waits_for_it() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    // Its lease is made to name a process that holds the lock and does not renew.
    let sessions = place.path(".laneway/sessions");
    let lease = std::fs::read_dir(&sessions).expect("leases").flatten().map(|entry| entry.path());
    let lease = lease.filter(|path| path.extension().is_some_and(|kind| kind == "lease")).last();
    let lease = lease.expect("one of the worker");
    frozen.signal(Signal::KILL);
    let mut holder = std::process::Command::new("python3")
        .args(["-c", HOLDER, &place.path(".laneway/laneway.db").to_string_lossy()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python3");
    let mut line = String::new();
    let told = holder.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(told), &mut line).expect("the lock is held");
    let line = std::fs::read_to_string(&lease).expect("the lease");
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    words[4] = holder.id().to_string();
    std::fs::write(&lease, words.join(" ")).expect("another pid");
    let lock = std::fs::File::open(lease.with_extension("lock")).expect("its lock");
    lock.lock().expect("the lock of a session that lives");
    let submitted = place.laneway("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    assert!(!holder.wait().expect("it ended").success(), "it was killed");
    drop(frozen.wait());
}

const HOLDER: &str = "import sqlite3, sys, time\n\
    db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
    db.execute('BEGIN IMMEDIATE')\n\
    print('held', flush=True)\n\
    time.sleep(600)\n";

#[test]
fn workers_that_are_frozen_and_thaw_together_keep_their_tasks() {
    let place = Place::with("flow.yaml", WAITING);
    place.laneway("submit flow.yaml");
    let workers = ["one", "two"].map(|name| worker(&place, name, &format!("--slots 1 {SHORT_LEASE}")));
    until("two starts", || {
        let nodes = place.json("nodes --json");
        nodes.as_array().expect("a list").iter().all(|node| node["running_claims"] == 1)
    });
    let sessions = || ["one", "two"].map(|name| node(&place, name).map(|node| node["session"].clone()));
    let before = sessions();
    let all = ["one", "two"].map(|name| with_warden(&place, name)).concat();
    signal_all(&all, Signal::STOP);
    until("longer than a lease", || state(&place, "one") == "not responding for 5 s");
    signal_all(&all, Signal::CONT);
    until("renewals", || ["one", "two"].iter().all(|name| state(&place, name) == "takes work"));
    place.write("go", "");
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(sessions(), before, "nobody took the other for dead");
    let run = place.json("show last --json");
    assert_eq!([&run["tasks"][0]["attempt"], &run["tasks"][1]["attempt"]], [1, 1]);
    workers.into_iter().for_each(stop);
}

#[test]
fn steps_of_a_worker_that_is_frozen_with_its_warden_are_gone_before_they_run_again() {
    let place = Place::with("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    signal_all(&with_warden(&place, "frozen"), Signal::STOP);
    let other = worker(&place, "other", SHORT_LEASE);
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.read("ran"), "alone\n");
    frozen.signal(Signal::CONT);
    [frozen, other].into_iter().for_each(stop);
}
