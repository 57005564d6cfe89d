//! Warm containers as a person sees them, with a real engine; and what is left of them when their node is killed in each of
//! their states: nothing. `cargo xtask docker cargo nextest run --test pool`

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use self::registry::{Registry, remove, saved};

#[path = "../../laneway-engine/tests/support/registry.rs"]
mod registry;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon a container is gone whose node was killed.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn eight_blocks_in_two_lanes_are_done_by_three_warm_agents() {
    let place = Place::new();
    let example = |name: &str| format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("sh").arg(example("agents.sh")).env("DOCKER_HOST", &place.host).output();
    let made = made.expect("a shell");
    assert!(made.status.success(), "{}", told(&made));
    // In a place of its own: nothing is left beside the example.
    std::fs::copy(example("agents.yaml"), place.dir.path().join("agents.yaml")).expect("copied");
    let output = place.laneway(&["run", "agents.yaml"]).output().expect("it runs");
    assert!(output.status.success(), "{}", told(&output));
    let events = place.pool_events();
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!(count("container_starting"), count("container_terminated"), "{events:?}");
    assert_eq!(count("container_running"), 6, "{events:?}");
    assert!(count("container_starting") <= 3, "{events:?}");
    assert_eq!(place.left(), "");
    let events = place.done(&["events", "last", "--json"]);
    let lanes = events.lines().filter(|line| line.contains("\"lane_started\"") && line.contains("\"group\""));
    assert_eq!(lanes.count(), 2, "{events}");
    let none = place.laneway(&["pool"]).output().expect("it runs");
    assert!(told(&none).contains("no node keeps a container warm"), "{}", told(&none));
}

#[test]
fn a_lane_wider_than_its_pool_waits_its_turn() {
    let place = Place::new();
    let step = |at: u32| format!("  s{at}: {{pool: warm, run: 'echo $(hostname) > host-{at}'}}\n");
    let steps: String = (0..6).map(step).collect();
    place.write(
        "wide.yaml",
        &format!("max_parallel: 6\npools: {{warm: {{image: '{IMAGE}', max: 2}}}}\nsteps:\n{steps}"),
    );
    let output = place.laneway(&["run", "wide.yaml"]).output().expect("it runs");
    assert!(output.status.success(), "{}", told(&output));
    let mut hosts: Vec<String> = (0..6)
        .map(|at| std::fs::read_to_string(place.dir.path().join(format!("host-{at}"))).expect("a file"))
        .collect();
    hosts.sort();
    hosts.dedup();
    assert_eq!(hosts.len(), 2, "six tasks in two containers");
}

/// A lane of two behind a step that ends only when both of their containers are warm.
const WARMED: &str = "
pools:
  warm: {image: 'laneway-test/busybox:1', max: 3}
steps:
  before: {run: 'until [ -e go ]; do sleep 0.05; done'}
  one: {needs: [before], pool: warm, run: 'echo 1 > made-by-one; echo at=$(hostname) > $LANEWAY_OUTPUT'}
  two: {needs: [before], pool: warm, run: 'test ! -e made-by-one; echo 2 > made-by-two; echo at=$(hostname) > $LANEWAY_OUTPUT'}
  behind: {needs: [pair], run: 'cat made-by-one made-by-two'}
groups:
  pair: {steps: [one, two], isolate: true, merge: workspace, dormancy: 1m}
";

#[test]
fn a_lane_finds_its_containers_warm_and_its_members_work_in_copies_that_are_merged() {
    let place = Place::new();
    place.write("warmed.yaml", WARMED);
    let laneway = place.laneway(&["run", "warmed.yaml"]).spawn().expect("it starts");
    // Nothing has asked for one yet: they are there because the lane before has begun.
    let is_warm = comes_true(PATIENCE, || place.states().lines().count() == 2);
    place.write("go", "");
    let output = laneway.wait_with_output().expect("it ends");
    assert!(is_warm && output.status.success(), "{}", told(&output));
    let count = |name: &str| place.pool_events().iter().filter(|event| event["event"] == name).count();
    assert_eq!(
        (count("container_starting"), count("container_terminated")),
        (2, 2),
        "{:?}",
        place.pool_events()
    );
    let logs = place.laneway(&["logs", "last", "behind"]).output().expect("it runs");
    assert_eq!(String::from_utf8_lossy(&logs.stdout), "1\n2\n", "{}", told(&logs));
    assert_eq!(place.left(), "");
}

/// A process, a container and a warm one that hand files on.
const EXCHANGE: &str = "
pools: {warm: {image: 'laneway-test/busybox:1', max: 2}}
steps:
  write: {run: 'echo process > process; mkdir deep; echo x > deep/gone'}
  within:
    needs: [write]
    image: 'laneway-test/busybox:1'
    run: 'test -e process; rm deep/gone; echo container > container; chmod 755 container'
  kept: {needs: [within], pool: warm, run: 'test ! -e deep/gone; test -x container; cat process container > both'}
  look:
    needs: [kept]
    run: |
      test \"$(cat both)\" = \"$(printf 'process\\ncontainer')\"
      test ! -e deep/gone
      test -x container
";

#[test]
fn processes_containers_and_warm_ones_hand_their_files_on_in_a_submitted_run() {
    let place = Place::new();
    place.write("flow.yaml", EXCHANGE);
    let worker = place.worker(&[]);
    place.submitted("flow.yaml");
    let left = place.done(&["files", "last", "kept"]);
    assert!(left.contains("both") && !left.contains("container"), "{left}");
    worker.end();
    assert_eq!(place.left(), "");
}

const STRICT: &str = "
pools: {warm: {image: 'laneway-test/busybox:1', max: 2}}
steps:
  long: {pool: warm, run: ': > ready; exec sleep 1000'}
  bad: {pool: warm, run: 'until [ -e ready ]; do sleep 0.05; done; exit 3'}
groups: {pair: {steps: [long, bad], failure: strict}}
";

/// X9. A worker goes on, with what it keeps warm for others.
#[test]
fn a_strict_group_that_fails_leaves_none_of_its_containers_with_a_worker_that_lives_on() {
    let place = Place::new();
    // Its steps wait for a file of each other.
    let strict = place.in_place(STRICT);
    place.write("strict.yaml", &strict);
    let other =
        strict.replace("max: 2", "max: 3").replace("; exit 3", "; exit 0").replace("exec sleep 1000", "true");
    place.write("other.yaml", &other);
    let worker = place.worker(&["--slots", "2"]);
    place.submitted("other.yaml");
    let kept = place.left();
    assert!(!kept.is_empty());
    std::fs::remove_file(place.dir.path().join("ready")).expect("a file");
    place.done(&["submit", "strict.yaml"]);
    let status = || place.done(&["show", "last", "--json"]);
    let has_failed = || {
        let run: serde_json::Value = serde_json::from_str(&status()).expect("JSON");
        run["status"] == "failed"
    };
    assert!(comes_true(PATIENCE, has_failed), "{}", status());
    assert_eq!(place.left(), kept, "only those of the other run, which rest");
    worker.end();
    assert_eq!(place.left(), "");
}

/// X9, where nothing that is stopped is in a pool, and where nobody is stopped while something starts.
#[test]
fn what_an_aborted_run_has_used_before_goes_as_well() {
    let place = Place::new();
    let beside = STRICT.replace("long: {pool: warm, run", "long: {run");
    let behind = "
pools: {warm: {image: 'laneway-test/busybox:1', max: 2}}
steps: {first: {pool: warm, run: 'true'}, then: {needs: [first], run: ': > waits; exec sleep 1000'}}
";
    place.write("beside.yaml", &place.in_place(&beside));
    place.write("behind.yaml", &place.in_place(behind));
    let worker = place.worker(&["--slots", "2"]);
    place.done(&["submit", "beside.yaml"]);
    assert!(comes_true(PATIENCE, || place.states().contains("paused")), "{}", place.states());
    assert!(comes_true(PATIENCE, || place.left().is_empty()), "{}", place.states());
    place.done(&["submit", "behind.yaml"]);
    assert!(comes_true(PATIENCE, || place.dir.path().join("waits").exists()), "{}", place.states());
    assert!(!place.left().is_empty());
    place.done(&["cancel", "last"]);
    assert!(comes_true(PATIENCE, || place.left().is_empty()), "{}", place.states());
    worker.end();
}

#[test]
fn a_strict_group_that_fails_leaves_none_of_its_containers() {
    let place = Place::new();
    place.write("strict.yaml", STRICT);
    let output = place.laneway(&["run", "strict.yaml"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let shown = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
    let run: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    let of = |step: &str| {
        let tasks = run["tasks"].as_array().expect("tasks");
        let task = tasks.iter().find(|task| task["step"] == step).expect("a task");
        (task["status"].as_str().unwrap_or_default().to_owned(), task["exit_code"].clone())
    };
    assert_eq!(of("bad"), ("failed".to_owned(), serde_json::json!(3)), "{run}");
    assert_eq!(of("long").0, "canceled", "{run}");
    assert_eq!(of("pair/merge").0, "skipped", "{run}");
    assert_eq!(place.left(), "");
}

#[test]
fn no_warm_container_is_left_after_kill_9_while_a_task_runs() {
    let place = Place::new();
    place.killed("busy: {pool: warm, run: ': > ready; exec sleep 1000'}", "", |place| {
        place.dir.path().join("ready").exists()
    });
}

#[test]
fn no_warm_container_is_left_after_kill_9_while_it_is_paused() {
    let place = Place::new();
    let steps = "first: {pool: warm, run: 'true'}\n  then: {needs: [first], run: 'exec sleep 1000'}";
    place.killed(steps, "", |place| place.states().contains("paused"));
}

#[test]
fn no_warm_container_is_left_after_kill_9_while_it_is_idle() {
    let place = Place::new();
    let member = |name: &str| format!("  {name}: {{needs: [before], pool: warm, run: 'true'}}\n");
    let steps = format!("before: {{run: 'exec sleep 1000'}}\n{}{}", member("one"), member("two"));
    let steps = format!("{steps}groups: {{pair: {{steps: [one, two]}}}}");
    place.killed(&steps, "", |place| {
        let pools = place.laneway(&["pool", "status", "--json"]).output().expect("it runs");
        told(&pools).contains("\"idle\":2")
    });
}

#[test]
fn no_warm_container_is_left_after_kill_9_while_it_starts() {
    let place = Place::new();
    place.killed("first: {pool: warm, run: 'true'}", ", health: {command: ['false']}", |place| {
        place.states().contains("running")
    });
}

#[test]
fn no_warm_container_is_left_after_kill_9_while_it_is_removed() {
    let place = Place::new();
    let steps = "first: {pool: warm, run: 'true'}\n  then: {needs: [first], run: 'exec sleep 1000'}";
    place.killed(steps, ", dormancy: 100ms", |place| {
        place.pool_events().iter().any(|event| event["event"] == "container_terminated")
    });
}

/// With two slots: the first ends when the third has run, and for the second there is no container meanwhile.
const FULL: &str = "
max_parallel: 3
pools: {warm: {image: 'laneway-test/busybox:1', max: 1}}
steps:
  hold: {pool: warm, run: 'until [ -e go ]; do sleep 0.05; done'}
  next: {pool: warm, run: 'test -e go'}
  plain: {run: ': > go'}
";

#[test]
fn waiting_for_room_in_a_pool_is_not_waiting_for_a_container() {
    let place = Place::new();
    place.write(
        "slow.yaml",
        "pools: {warm: {image: 'laneway-test/busybox:1', max: 1, acquire_timeout: 5s}}
steps:
  hold: {pool: warm, run: 'sleep 6'}
  next: {pool: warm, run: 'true'}
  last: {pool: warm, run: 'true'}
",
    );
    let output = place.laneway(&["run", "slow.yaml"]).output().expect("it runs");
    assert!(output.status.success(), "{}", told(&output));
    assert_eq!(place.attempts(), [1, 1, 1], "nothing was given back");
}

#[test]
fn a_task_without_a_container_holds_no_slot_of_a_worker() {
    let place = Place::new();
    // Its steps wait for a file of each other.
    let full = place.in_place(FULL);
    place.write("full.yaml", &full);
    let worker = place.worker(&["--slots", "2"]);
    place.submitted("full.yaml");
    assert_eq!(place.attempts(), [1, 1, 1]);
    std::fs::remove_file(place.dir.path().join("go")).expect("a file");
    // The same where the whole run is this node's.
    place.write("full.yaml", &format!("placement: pinned\n{full}"));
    place.submitted("full.yaml");
    assert_eq!(place.attempts(), [1, 1, 1]);
    worker.end();
    assert_eq!(place.left(), "");
}

#[test]
fn task_that_waits_for_room_in_its_pool_is_told_which_task_has_the_container() {
    let place = Place::new();
    place.write(
        "busy.yaml",
        &format!(
            "pools: {{warm: {{image: '{IMAGE}', max: 1}}}}
steps:
  hold: {{pool: warm, run: 'sleep 600'}}
  next: {{pool: warm, run: 'true'}}
"
        ),
    );
    let worker = place.worker(&["--slots", "4"]);
    place.done(&["submit", "busy.yaml"]);
    let why = || place.done(&["explain", "last", "next"]);
    let is_named = || why().contains("(runs hold of run ");
    assert!(comes_true(PATIENCE, is_named), "{}", why());
    assert!(why().contains("waits for a free slot and for room in the pool `warm`: laneway-"), "{}", why());
    place.done(&["cancel", "last"]);
    worker.end();
    assert_eq!(place.left(), "");
}

#[test]
fn container_that_is_never_healthy_fails_with_what_its_check_printed() {
    let place = Place::new();
    place.write(
        "sick.yaml",
        &format!(
            "pools:
  warm:
    image: '{IMAGE}'
    health_timeout: 1s
    health_interval: 100ms
    health: {{command: [sh, -c, 'echo looking; echo no database at db:5432 >&2; exit 3']}}
steps:
  a: {{pool: warm, run: 'true'}}
"
        ),
    );
    let output = place.laneway(&["run", "sick.yaml"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let why = place.done(&["explain", "last", "a"]);
    assert!(why.contains("was not healthy within 1s") && why.contains("no database at db:5432"), "{why}");
}

#[test]
fn a_pool_is_warmed_and_drained_by_hand_while_a_worker_lives() {
    let place = Place::new();
    let pool = format!("pools: {{agents: {{image: '{IMAGE}', max: 2}}}}\n");
    place.write("nightly.yaml", &format!("{pool}steps: {{a: {{pool: agents, run: 'true'}}}}\n"));
    let refused = |args: &[&str]| {
        let output = place.laneway(args).output().expect("it runs");
        (output.status.code(), told(&output))
    };
    place.done(&["apply", "nightly.yaml"]);
    let (code, why) = refused(&["pool", "warm", "agents", "1", "--workflow", "nightly"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("no node that is alive takes steps in containers"), "{why}");
    let worker = place.worker(&[]);
    let (code, why) = refused(&["pool", "drain", "agents"]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("no node that is alive keeps a pool `agents`"), "{why}");
    assert_eq!(refused(&["pool", "warm", "agents", "0"]).0, Some(2));
    let warmed = place.done(&["pool", "warm", "agents", "3", "--workflow", "nightly"]);
    assert!(warmed.contains("2 of agents will be warm, which is its `max`"), "{warmed}");
    let count = |count: usize| comes_true(PATIENCE, || place.states().lines().count() == count);
    assert!(count(2), "warm before any run: {}", place.states());
    shown_on_the_screen(&place);
    place.done(&["start", "nightly"]);
    place.ended();
    let names = |place: &Place| {
        place.pool_events().iter().filter(|event| event["event"] == "container_starting").count()
    };
    assert_eq!(names(&place), 2, "the task found one of them: {:?}", place.pool_events());
    for _ in 0..2 {
        place.done(&["pool", "drain", "agents"]);
        assert!(count(0), "{}", place.states());
    }
    let drained = place.pool_events();
    let ends: Vec<_> = drained.iter().filter(|event| event["event"] == "container_terminated").collect();
    assert!(ends.len() == 2 && ends.iter().all(|event| event["why"] == "drained"), "{drained:?}");
    // It is known by now, also without its workflow.
    place.done(&["pool", "warm", "agents", "1"]);
    assert!(count(1), "{}", place.states());
    worker.end();
    assert_eq!(place.left(), "");
}

/// Its image is still being fetched when somebody changes their mind.
#[test]
fn what_is_warmed_ahead_and_drained_before_its_image_is_there_never_starts() {
    let place = Place::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let image = tempfile::tempdir().expect("a directory");
    saved(&place.host, IMAGE, image.path());
    let registry = runtime.block_on(Registry::serve(image.path(), "laneway/slow"));
    registry.hold();
    let pool = format!("pools: {{agents: {{image: '{}', max: 2}}}}\n", registry.image);
    place.write("nightly.yaml", &format!("{pool}steps: {{a: {{pool: agents, run: 'true'}}}}\n"));
    place.done(&["apply", "nightly.yaml"]);
    let worker = place.worker(&[]);
    place.done(&["pool", "warm", "agents", "2", "--workflow", "nightly"]);
    let pulls = |is_done: bool| {
        let events = place.pool_events();
        events.iter().any(|event| event["event"] == "image_pull_progress" && event["is_done"] == is_done)
    };
    assert!(comes_true(PATIENCE, || pulls(false)), "{:?}", place.pool_events());
    let told = place.done(&["pool", "history"]);
    assert!(told.contains(&format!("pulling {}", registry.image)), "{told}");
    let drained = place.done(&["pool", "drain", "agents"]);
    assert!(drained.contains("agents is drained"), "{drained}");
    // The node has heard of it when it has done something that was asked for later.
    place.write(
        "other.yaml",
        &format!("pools: {{other: {{image: '{IMAGE}'}}}}\nsteps: {{a: {{pool: other, run: 'true'}}}}\n"),
    );
    place.done(&["apply", "other.yaml"]);
    place.done(&["pool", "warm", "other", "1", "--workflow", "other"]);
    assert!(comes_true(PATIENCE, || place.states().lines().count() == 1), "{}", place.states());
    registry.go_on();
    assert!(comes_true(PATIENCE, || pulls(true)), "{:?}", place.pool_events());
    place.done(&["start", "nightly"]);
    place.ended();
    let events = place.pool_events();
    let of_agents = events.iter().filter(|event| event["pool"] == "agents");
    let starts = of_agents.filter(|event| event["event"] == "container_starting").count();
    assert_eq!(starts, 1, "only for the task: {events:?}");
    worker.end();
    assert_eq!(place.left(), "");
    remove(&place.host, &registry.image);
}

/// S4. Three tasks in a row, again while their container sleeps, and again when somebody has let go of it.
#[test]
fn metrics_tell_how_many_tasks_found_a_container_warm_and_what_that_saved() {
    let place = Place::new();
    let step = |name: &str, needs: &str| format!("{name}: {{needs: [{needs}], pool: warm, run: 'true'}}");
    let steps = format!("{}, {}, {}", step("a", ""), step("b", "a"), step("c", "b"));
    place.write("row.yaml", &format!("pools: {{warm: {{image: '{IMAGE}', max: 1}}}}\nsteps: {{{steps}}}\n"));
    let mut command = place.laneway(&["serve", "--listen", "127.0.0.1:0", "--heartbeat-interval", "100ms"]);
    let mut server = Worker(command.stderr(Stdio::null()).spawn().expect("it starts"));
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let at = line.trim().strip_prefix("listening at http://").unwrap_or_else(|| panic!("{line}")).to_owned();
    let metrics = || place.asked(&at, "/metrics");
    let number = |name: &str| {
        let metrics = metrics();
        let of_node = format!("laneway_{name}{{node=");
        let line = metrics.lines().find(|line| line.starts_with(&of_node));
        let number = line.and_then(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        number.unwrap_or_else(|| panic!("no {name}: {metrics}"))
    };
    let counted = || (number("pool_hits_total"), number("pool_misses_total"));
    assert_eq!((counted(), number("pool_saved_milliseconds_total")), ((0, 0), 0));
    let begun = Instant::now();
    place.submitted("row.yaml");
    let start = begun.elapsed();
    assert!(comes_true(PATIENCE, || counted() == (2, 1)), "one for whom it starts: {:?}", counted());
    place.submitted("row.yaml");
    assert!(comes_true(PATIENCE, || counted() == (5, 1)), "it is woken: {:?}", counted());
    let saved = number("pool_saved_milliseconds_total");
    assert!(saved > 0 && u128::from(saved) < 5 * start.as_millis(), "{saved} ms of {start:?} a start");
    place.done(&["pool", "drain", "warm"]);
    assert!(comes_true(PATIENCE, || place.left().is_empty()), "{}", place.states());
    place.submitted("row.yaml");
    assert!(comes_true(PATIENCE, || counted() == (7, 2)), "another one starts: {:?}", counted());
    assert!(number("pool_saved_milliseconds_total") >= saved);
    server.end();
    assert_eq!(place.left(), "");
}

/// Two free ports in a row, as the setting writes them.
fn two_ports() -> (u16, String) {
    for _ in 0..100 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let first = listener.local_addr().expect("an address").port();
        drop(listener);
        let Some(second) = first.checked_add(1) else { continue };
        if [first, second].iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
            return (first, format!("{first}-{second}"));
        }
    }
    panic!("no two free ports in a row");
}

/// A workflow with one step in a pool of its own, whose containers need ports.
fn served(pool: &str, step: &str, run: &str, timeout: &str) -> String {
    // Pools of one image that differ in nothing are one.
    let health = 30 + u32::from(pool.as_bytes()[0]);
    format!(
        "pools:
  {pool}: {{image: 'laneway-test/httpd:1', max: 1, acquire_timeout: {timeout}, health_timeout: {health}s,
    health_interval: 50ms, endpoint: {{port: 80}}}}
steps:
  {step}: {{pool: {pool}, run: '{run}'}}
"
    )
}

/// X6. Two ports and three pools: the third waits, is explained, is refused in the end with the names
/// of those that hold the ports, and is served when a container of another pool is dormant.
#[test]
fn task_waits_for_a_host_port_and_is_told_which_containers_hold_them() {
    let (first, range) = two_ports();
    let place = Place::with_ports(&range);
    let hold = "until [ -e go ]; do sleep 0.05; done";
    for pool in ["web", "api"] {
        let document = served(pool, &format!("use-{pool}"), hold, "60s");
        place.write(&format!("{pool}.yaml"), &place.in_place(&document));
    }
    place.write("late.yaml", &served("late", "wait", "true", "60s"));
    place.write("hasty.yaml", &served("hasty", "wait", "true", "2s"));
    let worker = place.worker(&["--slots", "5"]);
    let running = |count: usize| place.states().lines().filter(|state| *state == "running").count() == count;
    for (count, file) in (1..).zip(["web.yaml", "api.yaml"]) {
        place.done(&["submit", file]);
        assert!(comes_true(PATIENCE, || running(count)), "{}", place.states());
    }
    let is_taken = || place.done(&["pool", "history"]).matches("taken by").count() == 2;
    assert!(comes_true(PATIENCE, is_taken), "{}", place.done(&["pool", "history"]));
    let containers: Vec<String> = place
        .pool_events()
        .iter()
        .filter(|event| event["event"] == "container_taken")
        .map(|event| event["container"].as_str().expect("a name").to_owned())
        .collect();

    let pools: serde_json::Value =
        serde_json::from_str(&place.done(&["pool", "status", "--json"])).expect("JSON");
    for (port, (container, pool)) in (first..).zip(containers.iter().zip(["web", "api"])) {
        let pool = pools.as_array().expect("a list").iter().find(|one| one["pool"] == pool).expect("a pool");
        let shown = &pool["containers"][0];
        let image = "laneway-test/httpd:1";
        assert_eq!((&shown["container"], &shown["image"]), (&container.as_str().into(), &image.into()));
        assert_eq!(shown["port"], port);
        let step = format!("use-{}", pool["pool"].as_str().expect("a name"));
        assert_eq!(shown["task"]["step"], step.as_str());
    }

    // The reason of its end names the holders.
    place.done(&["submit", "hasty.yaml"]);
    let explained = || place.done(&["explain", "last", "wait"]);
    let is_refused = || explained().contains("no host port became free");
    assert!(comes_true(PATIENCE, is_refused), "{}", explained());
    let why = explained();
    assert!(
        why.contains("no host port became free for the pool `hasty` within `acquire_timeout` (2s)"),
        "{why}"
    );
    for (port, (container, pool)) in (first..).zip(containers.iter().zip(["web", "api"])) {
        let holder = format!("{port} by {container} of pool `{pool}` (runs use-{pool} of run ");
        assert!(why.contains(&holder), "{holder} is not in {why}");
    }

    // While it waits, so does what explains it.
    place.done(&["submit", "late.yaml"]);
    let waits = || explained().contains("waits for a host port for the pool `late` on ");
    assert!(comes_true(PATIENCE, waits), "{}", explained());
    let why = explained();
    assert!(why.contains(&format!("no port of {range} is free")), "{why}");
    for (container, pool) in containers.iter().zip(["web", "api"]) {
        let holder = format!("by {container} of pool `{pool}` (runs use-{pool} of run ");
        assert!(why.contains(&holder), "{holder} is not in {why}");
    }
    assert!(why.contains("it is number 1 of 1 in line"), "{why}");
    let json: serde_json::Value =
        serde_json::from_str(&place.done(&["explain", "last", "wait", "--json"])).expect("JSON");
    assert_eq!((&json["cause"]["gate"], &json["cause"]["key"]), (&"port".into(), &range.clone().into()));
    assert_eq!(json["cause"]["held_by"].as_array().map(Vec::len), Some(2), "{json}");
    let shown = place.done(&["show", "last"]);
    assert!(shown.contains("waits for a host port"), "{shown}");

    // Both holders end; one of their containers goes for it, the other stays.
    place.write("go", "");
    let is_over = || !place.done(&["runs", "--json"]).contains("\"running\"");
    assert!(comes_true(PATIENCE, is_over), "{}", place.done(&["show", "last"]));
    assert!(place.done(&["show", "last", "--json"]).contains("\"succeeded\""));
    let events = place.pool_events();
    let evicted: Vec<_> = events.iter().filter(|event| event["why"] == "evicted").collect();
    assert_eq!(evicted.len(), 1, "{events:?}");
    let history = place.done(&["pool", "history"]);
    assert!(history.contains(&format!("host ports {range} used up, 1 task waits")), "{history}");
    worker.end();
    assert_eq!(place.left(), "");
}

/// Every container of a pool with its state, at both sizes of the screen.
fn shown_on_the_screen(place: &Place) {
    let pools = place.done(&["pool", "status", "--json"]);
    let pools: serde_json::Value = serde_json::from_str(&pools).expect("JSON");
    let containers = pools[0]["containers"].as_array().expect("containers");
    assert_eq!(containers.len(), 2, "{pools}");
    for size in ["80x24", "160x50"] {
        let screen = place.done(&["top", "--once", "--size", size, "--keys", "3"]);
        assert!(screen.lines().any(|line| line.starts_with("agents ")), "{screen}");
        for container in containers {
            let name = container["container"].as_str().expect("a name");
            assert!(screen.contains(name), "{name} is not shown:\n{screen}");
        }
    }
}

const IMAGE: &str = "laneway-test/busybox:1";

/// A worker of a place, which ends with the test.
struct Worker(Child);

impl Worker {
    /// In good order.
    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is ours");
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A directory with a store.
struct Place {
    dir: tempfile::TempDir,
    host: String,
    ports: Option<String>,
}

impl Place {
    fn new() -> Self {
        let host = std::env::var("LANEWAY_TEST_DOCKER");
        let host = host.expect("run the tests with `cargo xtask docker cargo nextest run …`");
        Self { dir: tempfile::tempdir().expect("a directory"), host, ports: None }
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.dir.path().join(file), text).expect("written");
    }

    /// With this range of host ports.
    fn with_ports(ports: &str) -> Self {
        Self { ports: Some(ports.to_owned()), ..Self::new() }
    }

    fn laneway(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command.args(args).current_dir(self.dir.path()).env("LANEWAY_DOCKER_HOST", &self.host);
        command.env("LANEWAY_KILL_GRACE", "1s").env("LANEWAY_EXIT_WITH_PARENT", "true");
        command.envs(self.ports.as_ref().map(|ports| ("LANEWAY_PORTS", ports)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What it printed; it must succeed.
    fn done(&self, args: &[&str]) -> String {
        let output = self.laneway(args).output().expect("it runs");
        assert!(output.status.success(), "{args:?}: {}", told(&output));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// What its server answers to the owner of the store.
    fn asked(&self, at: &str, path: &str) -> String {
        let token = std::fs::read_to_string(self.dir.path().join(".laneway/admin.token")).expect("a token");
        let mut stream = std::net::TcpStream::connect(at).expect("a server");
        let head = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n");
        write!(stream, "{head}Authorization: Bearer {}\r\n\r\n", token.trim()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        answer
    }

    /// Comes back when it takes work.
    fn worker(&self, args: &[&str]) -> Worker {
        let mut command = self.laneway(&["worker"]);
        command.args(args);
        // Nobody reads what it says.
        let worker = Worker(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts"));
        // It makes the store first.
        let nodes = || self.laneway(&["nodes", "--json"]).output().expect("it runs");
        let lives = || told(&nodes()).contains("takes work");
        assert!(comes_true(PATIENCE, lives), "no worker");
        worker
    }

    /// A document whose steps work in the place also when it is submitted.
    fn in_place(&self, document: &str) -> String {
        format!("workspace: {{path: {}}}\n{document}", self.dir.path().display())
    }

    fn submitted(&self, file: &str) {
        self.done(&["submit", file]);
        self.ended();
    }

    /// Comes back when a worker has brought all runs to their end, which must be a good one.
    fn ended(&self) {
        let status = || self.done(&["runs", "--json"]);
        assert!(comes_true(PATIENCE, || !status().contains("\"running\"")), "{}", status());
        assert!(!status().contains("\"failed\""), "{}", self.done(&["show", "last"]));
    }

    /// The number of the last attempt of each task of the last run.
    fn attempts(&self) -> Vec<u64> {
        let run: serde_json::Value =
            serde_json::from_str(&self.done(&["show", "last", "--json"])).expect("JSON");
        let tasks = run["tasks"].as_array().expect("tasks");
        tasks.iter().map(|task| task["attempt"].as_u64().expect("a number")).collect()
    }

    /// Kills a node when its warm container is where it should be, and sees that nothing is left, and nothing is missing.
    fn killed(&self, steps: &str, more: &str, is_there: impl Fn(&Self) -> bool) {
        self.write("work.yaml", &format!("pools: {{warm: {{image: '{IMAGE}'{more}}}}}\nsteps:\n  {steps}\n"));
        let mut laneway: Child = self.laneway(&["run", "work.yaml"]).spawn().expect("it starts");
        let is_there = comes_true(PATIENCE, || is_there(self));
        laneway.kill().expect("it is ours");
        let output = laneway.wait_with_output().expect("it ends");
        assert!(is_there, "{}", told(&output));
        assert!(comes_true(SOON, || self.left().is_empty()), "{}", self.left());
        // Whoever comes next clears what was mounted, and touches nothing that is in it.
        self.write(
            "next.yaml",
            &format!("pools: {{warm: {{image: '{IMAGE}'}}}}\nsteps: {{a: {{pool: warm, run: ls}}}}\n"),
        );
        let next = self.laneway(&["run", "next.yaml"]).output().expect("it runs");
        assert!(next.status.success(), "{}", told(&next));
        let dir = self.dir.path().to_string_lossy().into_owned();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        assert!(!mounts.contains(dir.as_str()), "{mounts}");
        assert!(self.dir.path().join("work.yaml").exists() && self.dir.path().join(".laneway").exists());
    }

    /// What became of its containers, oldest first.
    fn pool_events(&self) -> Vec<serde_json::Value> {
        let history = self.laneway(&["pool", "history", "--json"]).output().expect("it runs");
        let lines = String::from_utf8_lossy(&history.stdout).into_owned();
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Containers of this store.
    fn left(&self) -> String {
        self.listed("{{.Names}}")
    }

    fn states(&self) -> String {
        self.listed("{{.State}}")
    }

    fn listed(&self, format: &str) -> String {
        let place = self.dir.path();
        let instance = instance(place);
        let label = format!("label=laneway.instance={instance}");
        let listed = Command::new("docker")
            .args(["--host", &self.host, "ps", "--all", "--format", format, "--filter", &label])
            .output()
            .expect("docker runs");
        String::from_utf8_lossy(&listed.stdout).trim().to_owned()
    }
}

/// The store's id, by which its containers are known; of none yet, one that nothing has.
fn instance(place: &Path) -> String {
    let store = place.join(".laneway/laneway.db");
    let found = laneway_store::open(&store.to_string_lossy(), laneway_store::Open::Existing);
    found.map_or_else(|_| "none".to_owned(), |store| store.instance().to_string())
}

fn comes_true(within: Duration, is_so: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if begun.elapsed() > within {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
