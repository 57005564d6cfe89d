//! Workers and runs whose process lives and does not run: it was stopped, as by SIGSTOP or Ctrl-Z. Each is a process of
//! its own on the embedded store.

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::{Place, Running, text, until};
use crate::serve::Served;

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
    worker_with(place, name, args, &[])
}

fn worker_with(place: &Place, name: &str, args: &str, variables: &[(&str, &str)]) -> Running {
    let line = format!("worker --shutdown-grace 1s --node-address {name} {args}");
    let worker = place.spawn_with(&line, variables);
    until("a node", || node(place, name).is_some());
    worker
}

/// Without cgroups processes are found by their parents and by a variable.
const CGROUPS: [&[(&str, &str)]; 2] = [&[], &[("LANEWAY_CGROUPS", "off")]];

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

/// The node itself, the guardian of its warden if there is one, and its warden.
fn with_warden(place: &Place, name: &str) -> Vec<Pid> {
    let pid = node(place, name).expect("it is there")["pid"].as_i64().expect("a number");
    processes_of(Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid"))
}

fn processes_of(node: Pid) -> Vec<Pid> {
    let mut pids = vec![node];
    let is_warden = |pid: &Pid| {
        let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"warden")
    };
    while let Some(pid) = pids.last().copied().and_then(|pid| children(pid).into_iter().find(is_warden)) {
        pids.push(pid);
    }
    assert!(pids.len() > 1, "it has a warden: {pids:?}");
    pids
}

fn pid_of(worker: &Running) -> Pid {
    Pid::from_raw(i32::try_from(worker.id()).expect("a pid")).expect("a pid")
}

fn children(of: Pid) -> Vec<Pid> {
    let threads = std::fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero())).expect("it lives");
    let lists = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")));
    let all: String = lists.map(|text| text.expect("they are told")).collect();
    all.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
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
    let place = Place::in_place("flow.yaml", FLOW);
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
    let place = Place::in_place("flow.yaml", FLOW);
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
    let place = Place::in_place("flow.yaml", FLOW);
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
fn nodes_and_doctor_name_a_frozen_node_on_postgres() {
    let place = Place::new();
    place.write("laneway.toml", &format!("store = '{}'\n", crate::postgres::schema()));
    let frozen = worker(&place, "frozen", "--lease-ttl 20s --heartbeat-interval 200ms");
    let healthy = place.laneway("doctor");
    assert_eq!(healthy.code, Some(0), "{healthy}");
    frozen.signal(Signal::STOP);
    until("silence", || state(&place, "frozen").starts_with("not responding for "));
    let doctor = place.laneway("doctor");
    assert_eq!(doctor.code, Some(1), "{doctor}");
    let pid = frozen.id();
    assert!(doctor.stdout.contains(&format!("its process {pid} has not responded for ")), "{doctor}");
    assert!(doctor.stdout.contains(&format!("`kill -CONT {pid}` on its host")), "{doctor}");
    frozen.signal(Signal::CONT);
    until("a renewal", || state(&place, "frozen") == "takes work");
    let healthy = place.laneway("doctor");
    assert_eq!(healthy.code, Some(0), "{healthy}");
    stop(frozen);
}

/// A place with a workflow and a store: the embedded one, or the one on Postgres that is named.
fn place_on(store: &str, flow: &str) -> Place {
    let place = Place::new();
    // On Postgres a step works in a directory of its own.
    let dir = place.path(".").to_string_lossy().into_owned();
    let flow = flow.replace("> pid", "> DIR/pid").replace("cat pid", "cat DIR/pid");
    let flow = flow.replace("grep.log", "/dev/null").replace(">> ran", ">> DIR/ran").replace("DIR", &dir);
    place.write("flow.yaml", &flow);
    if !store.is_empty() {
        place.write("laneway.toml", &format!("store = '{store}'\n"));
    }
    place
}

/// Submits the flow to a worker that is frozen once the step runs.
fn frozen_in_a_step(place: &Place, args: &str) -> Running {
    let submitted = place.laneway("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let frozen = worker(place, "frozen", args);
    until("a start", || has_started(place));
    frozen.signal(Signal::STOP);
    frozen
}

fn cancel_ends_a_run(store: &str) {
    let place = place_on(store, FLOW);
    let frozen = frozen_in_a_step(&place, SHORT_LEASE);
    let canceled = place.laneway("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(canceled.stdout.contains("canceled"), "{canceled}");
    assert_eq!(status(&place), "canceled");
    let step = place.read("pid");
    let words = std::fs::read(format!("/proc/{}/cmdline", step.trim())).unwrap_or_default();
    assert!(words.is_empty(), "its step is gone");
    let nodes = place.json("nodes --json");
    assert_eq!(nodes.as_array().map(Vec::len), Some(0), "`cancel` leaves no session: {nodes}");
    frozen.signal(Signal::CONT);
    stop(frozen);
}

#[test]
fn cancel_ends_a_run_whose_only_worker_is_frozen() {
    cancel_ends_a_run("");
}

#[test]
fn cancel_ends_a_run_whose_only_worker_is_frozen_on_postgres() {
    cancel_ends_a_run(&crate::postgres::schema());
}

fn cancel_that_stops_nothing_says_so(store: &str, lease: &str) {
    let place = place_on(store, FLOW);
    // Its lease outlasts the patience of `cancel`, which goes by its own setting.
    let frozen = frozen_in_a_step(&place, &format!("--lease-ttl {lease} --heartbeat-interval 200ms"));
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
fn cancel_that_stops_nothing_says_so_and_fails() {
    cancel_that_stops_nothing_says_so("", "600s");
}

#[test]
fn cancel_that_stops_nothing_says_so_and_fails_on_postgres() {
    // A third of it tells a frozen node there.
    cancel_that_stops_nothing_says_so(&crate::postgres::schema(), "40s");
}

/// When a worker counts as frozen follows from its own settings, whatever those of the caller are.
fn cancel_waits_until_a_frozen_worker_is_known(store: &str, lease: &str) {
    let place = place_on(store, FLOW);
    let server = Served::start(&place, &["--no-worker"]);
    let frozen = frozen_in_a_step(&place, lease);
    let mut canceling = place.spawn(&format!("cancel last --server {}", server.url()));
    canceling.wait_for_note("node frozen (process ");
    frozen.signal(Signal::CONT);
    let canceled = canceling.wait();
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(canceled.stdout.ends_with(" canceled\n"), "{canceled}");
    stop(frozen);
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn cancel_through_a_server_waits_until_a_worker_with_default_settings_is_known_to_be_frozen() {
    cancel_waits_until_a_frozen_worker_is_known("", "");
}

#[test]
fn cancel_through_a_server_waits_until_a_worker_is_known_to_be_frozen_on_postgres() {
    // Later than `cancel` waits for steps that only take their time.
    cancel_waits_until_a_frozen_worker_is_known(&crate::postgres::schema(), "--lease-ttl 36s");
}

/// Only its own process may end it, and that is stopped for good.
#[test]
fn cancel_through_a_server_ends_a_run_whose_process_is_stopped() {
    let place = Place::in_place("flow.yaml", FLOW);
    let server = Served::start(&place, &["--no-worker"]);
    let owner = place.spawn("run flow.yaml");
    until("a start", || has_started(&place));
    owner.signal(Signal::STOP);
    let canceled = server.ask("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(canceled.stdout.ends_with(" canceled\n"), "{canceled}");
    assert_eq!(owner.wait().code, None, "it was killed");
    assert_eq!(server.end().0, Some(0));
}

fn timeout_of_a_run_takes_effect(store: &str) {
    let place = place_on(store, &format!("timeout: 1s\n{FLOW}"));
    let frozen = frozen_in_a_step(&place, SHORT_LEASE);
    let other = worker(&place, "other", SHORT_LEASE);
    until("the end of the run", || status(&place) == "failed");
    assert!(!place.path("ran").exists(), "nothing of it ran again");
    frozen.signal(Signal::CONT);
    [frozen, other].into_iter().for_each(stop);
}

#[test]
fn timeout_of_a_run_takes_effect_although_its_worker_is_frozen() {
    timeout_of_a_run_takes_effect("");
}

#[test]
fn timeout_of_a_run_takes_effect_although_its_worker_is_frozen_on_postgres() {
    timeout_of_a_run_takes_effect(&crate::postgres::schema());
}

/// Without another node no timeout is looked for: the first process that opens the store to end the run does it.
fn cancel_ends_a_run_that_is_overdue(store: &str) {
    let place = place_on(store, &format!("timeout: 1s\n{FLOW}"));
    let frozen = frozen_in_a_step(&place, SHORT_LEASE);
    // A slow look sees it only after its lease has ended, when it is no longer listed.
    until("silence", || {
        let state = state(&place, "frozen");
        state.is_empty() || state.starts_with("not responding for ")
    });
    let canceled = place.laneway("cancel last");
    assert_eq!(canceled.code, Some(0), "{canceled}");
    assert!(["canceled", "failed"].contains(&status(&place).as_str()), "{canceled}");
    assert!(canceled.stdout.contains(&status(&place)), "it says how the run ended: {canceled}");
    frozen.signal(Signal::CONT);
    stop(frozen);
    assert!(!place.path("ran").exists(), "nothing of it ran again");
}

#[test]
fn cancel_ends_an_overdue_run_whose_only_worker_is_frozen() {
    cancel_ends_a_run_that_is_overdue("");
}

#[test]
fn cancel_ends_an_overdue_run_whose_only_worker_is_frozen_on_postgres() {
    cancel_ends_a_run_that_is_overdue(&crate::postgres::schema());
}

/// Renewals are written outside of the database, so that who waits for its lock does not look frozen.
#[test]
fn worker_keeps_its_session_and_its_step_while_another_process_holds_the_write_lock() {
    let place = Place::in_place("flow.yaml", WAITING);
    place.laneway("submit flow.yaml");
    let one = worker(&place, "one", SHORT_LEASE);
    until("two starts", || node(&place, "one").is_some_and(|node| node["running_claims"] == 2));
    until("a start", || has_started(&place));
    let before = node(&place, "one").expect("it is there");
    // It would take the step over if it took the other one for frozen.
    let other = worker(&place, "other", SHORT_LEASE);
    let mut holder = hold_the_write_lock(&place);
    let leases = leases(&place);
    assert_eq!(leases.len(), 2, "of two workers: {leases:?}");
    let renewed = || leases.iter().map(|lease| renewed_at(lease)).collect::<Vec<_>>();
    let begin = renewed();
    until("renewals for three leases", || {
        renewed().iter().zip(&begin).all(|(now, begin)| *now >= begin + 6_000)
    });
    assert!(holder.try_wait().expect("a state").is_none(), "it held the lock all the time");
    let after = node(&place, "one").expect("it is there");
    assert_eq!((&after["session"], &after["state"]), (&before["session"], &Value::from("takes work")));
    holder.kill().expect("it is ours");
    drop(holder.wait());
    place.write("go", "");
    until("the end of the run", || status(&place) == "succeeded");
    let run = place.json("show last --json");
    assert_eq!([&run["tasks"][0]["attempt"], &run["tasks"][1]["attempt"]], [1, 1]);
    [one, other].into_iter().for_each(stop);
}

fn leases(place: &Place) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(place.path(".laneway/sessions")).expect("leases");
    let all = all.flatten().map(|entry| entry.path());
    all.filter(|path| path.extension().is_some_and(|kind| kind == "lease")).collect()
}

/// In milliseconds of a clock of the host.
fn renewed_at(lease: &std::path::Path) -> u64 {
    let line = std::fs::read_to_string(lease).expect("a lease that is not over");
    line.split(' ').nth(1).and_then(|word| word.parse().ok()).expect("a number")
}

/// A process that holds SQLite's write lock until it is killed.
fn hold_the_write_lock(place: &Place) -> std::process::Child {
    let mut holder = std::process::Command::new("python3")
        .args(["-c", HOLDER, &place.path(".laneway/laneway.db").to_string_lossy()])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("python3");
    let mut line = String::new();
    let told = holder.stdout.take().expect("its output");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(told), &mut line).expect("the lock is held");
    holder
}

/// `polite` ends with TERM. `stubborn` ignores it, and so does a child in a session of its own.
const LIMITED: &str = "
steps:
  polite: {timeout: 5s, run: 'echo $$ > DIR/polite; exec sleep 600'}
  stubborn:
    timeout: 5s
    run: |
      trap '' TERM
      setsid sleep 600 & echo $! > DIR/child
      echo $$ > DIR/stubborn
      while :; do sleep 1; done
";

/// Its lease outlasts the test, so the thawed worker keeps its tasks and says how they ended.
const LONG_LEASE: &str = "--lease-ttl 600s --heartbeat-interval 200ms --kill-grace 1s";

fn timeout_of_a_step_takes_effect(store: &str) {
    let place = Place::new();
    place.write("flow.yaml", &LIMITED.replace("DIR", &place.path(".").to_string_lossy()));
    if !store.is_empty() {
        place.write("laneway.toml", &format!("store = '{store}'\n"));
    }
    let submitted = place.laneway("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let frozen = worker(&place, "frozen", LONG_LEASE);
    let pid = |file: &str| {
        let text = std::fs::read_to_string(place.path(file)).unwrap_or_default();
        text.ends_with('\n').then(|| text.trim().to_owned())
    };
    let files = ["polite", "stubborn", "child"];
    until("the starts", || files.iter().all(|file| pid(file).is_some()));
    frozen.signal(Signal::STOP);
    let pids = files.map(|file| pid(file).expect("it was there"));
    let is_alive =
        |pid: &String| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    assert!(pids.iter().all(is_alive), "the worker was stopped before the timeouts");
    until("the end of the steps", || !pids.iter().any(is_alive));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", frozen.id())).expect("it lives");
    assert!(stat.contains(") T "), "the worker is still stopped: {stat}");
    assert_eq!(status(&place), "running", "only the worker can record how they ended");
    frozen.signal(Signal::CONT);
    until("the end of the run", || status(&place) == "failed");
    let run = place.json("show last --json");
    for task in run["tasks"].as_array().expect("a list") {
        assert_eq!((text(&task["reason"]), &task["attempt"]), ("timeout", &1.into()), "{run}");
    }
    stop(frozen);
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn timeout_of_a_step_takes_effect_although_its_worker_is_frozen() {
    timeout_of_a_step_takes_effect("");
}

#[test]
fn timeout_of_a_step_takes_effect_although_its_worker_is_frozen_on_postgres() {
    timeout_of_a_step_takes_effect(&crate::postgres::schema());
}

/// Hears TERM and goes on.
const DEAF: &str = "
steps:
  a: {run: 'trap \"echo > DIR/heard\" TERM; echo $$ > DIR/pid; while :; do sleep 0.1 || :; done'}
";

#[test]
fn grace_of_a_canceled_step_ends_although_its_worker_is_frozen_in_it() {
    let place = Place::new();
    place.write("flow.yaml", &DEAF.replace("DIR", &place.path(".").to_string_lossy()));
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", "--lease-ttl 600s --heartbeat-interval 200ms --kill-grace 5s");
    until("a start", || has_started(&place));
    let canceled = place.spawn("cancel last");
    until("TERM", || place.path("heard").exists());
    frozen.signal(Signal::STOP);
    let step = format!("/proc/{}/cmdline", place.read("pid").trim());
    let is_alive = || std::fs::read(&step).is_ok_and(|words| !words.is_empty());
    assert!(is_alive(), "the worker was stopped within the grace");
    until("the end of the step", || !is_alive());
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", frozen.id())).expect("it lives");
    assert!(stat.contains(") T "), "the worker is still stopped: {stat}");
    frozen.signal(Signal::CONT);
    until("the end of the run", || status(&place) == "canceled");
    assert_eq!(canceled.wait().code, Some(0));
    stop(frozen);
}

#[test]
fn steps_of_a_worker_that_is_frozen_with_its_warden_are_gone_before_they_run_again_on_postgres() {
    CGROUPS.into_iter().for_each(frozen_with_its_warden_on_postgres);
}

fn frozen_with_its_warden_on_postgres(variables: &[(&str, &str)]) {
    let place = Place::new();
    place.write("laneway.toml", &format!("store = '{}'\n", crate::postgres::schema()));
    let dir = place.path(".").to_string_lossy().into_owned();
    let flow = FLOW.replace("> pid", "> DIR/pid").replace("cat pid", "cat DIR/pid");
    let flow = flow.replace("grep.log", "/dev/null").replace(">> ran", ">> DIR/ran").replace("DIR", &dir);
    place.write("flow.yaml", &flow);
    place.laneway("submit flow.yaml");
    let lease = "--lease-ttl 4s --heartbeat-interval 200ms";
    let mut frozen = worker_with(&place, "frozen", lease, variables);
    until("a start", || has_started(&place));
    let all = processes_of(pid_of(&frozen));
    let [node, guardian, warden] = all[..] else { panic!("a node, a guardian, a warden: {all:?}") };
    signal_all(&[warden, node], Signal::STOP);
    let other = worker_with(&place, "other", lease, variables);
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.read("ran"), "alone\n", "what the frozen worker ran is gone before it runs again");
    // The guardian has ended the warden, which did not run, and itself.
    for pid in [warden, guardian] {
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
        until("their end", || stat().is_err() || stat().is_ok_and(|stat| stat.contains(") Z ")));
    }
    frozen.signal(Signal::CONT);
    frozen.wait_for_note("joins again");
    [frozen, other].into_iter().for_each(stop);
}

/// Writes a line ten times a second until it may end.
const COUNTING: &str = "
steps:
  a: {run: 'echo $$ > DIR/pid; while ! test -e DIR/go; do echo >> DIR/ticks; sleep 0.1; done'}
";

#[test]
fn guardian_leaves_steps_alone_while_their_node_renews() {
    let place = Place::new();
    place.write("laneway.toml", &format!("store = '{}'\n", crate::postgres::schema()));
    place.write("flow.yaml", &COUNTING.replace("DIR", &place.path(".").to_string_lossy()));
    place.laneway("submit flow.yaml");
    let worker = worker(&place, "one", SHORT_LEASE);
    until("a start", || has_started(&place));
    let warden = processes_of(pid_of(&worker))[2];
    // The warden passes no renewal on any more. The guardian reads them for itself.
    kill_process(warden, Signal::STOP).expect("it is ours");
    let ticks = || std::fs::read_to_string(place.path("ticks")).map_or(0, |text| text.len());
    let before = ticks();
    until("three leases", || ticks() >= before + 60);
    kill_process(warden, Signal::CONT).expect("it is ours");
    place.write("go", "");
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.json("show last --json")["tasks"][0]["attempt"], 1);
    stop(worker);
}

#[test]
fn stopped_run_keeps_its_tasks_and_goes_on() {
    let place = Place::in_place("flow.yaml", WAITING);
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
    let place = Place::in_place("flow.yaml", WAITING);
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
    let place = Place::in_place("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let frozen = worker(&place, "frozen", SHORT_LEASE);
    until("a start", || has_started(&place));
    // Its lease is made to name a process that holds the lock and does not renew.
    let lease = leases(&place).pop().expect("one of the worker");
    frozen.signal(Signal::KILL);
    let mut holder = hold_the_write_lock(&place);
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
    let place = Place::in_place("flow.yaml", WAITING);
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
    CGROUPS.into_iter().for_each(frozen_with_its_warden);
}

fn frozen_with_its_warden(variables: &[(&str, &str)]) {
    let place = Place::in_place("flow.yaml", FLOW);
    place.laneway("submit flow.yaml");
    let frozen = worker_with(&place, "frozen", SHORT_LEASE, variables);
    until("a start", || has_started(&place));
    signal_all(&with_warden(&place, "frozen"), Signal::STOP);
    let other = worker_with(&place, "other", SHORT_LEASE, variables);
    until("the end of the run", || status(&place) == "succeeded");
    assert_eq!(place.read("ran"), "alone\n");
    frozen.signal(Signal::CONT);
    [frozen, other].into_iter().for_each(stop);
}
