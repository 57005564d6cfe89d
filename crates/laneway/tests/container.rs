//! Steps in containers as a person sees them, with a real engine; and what is left of containers when their node ends in a bad
//! way: nothing. `cargo xtask docker cargo nextest run -p laneway --test container`

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use laneway_engine::container::Docker;
use rustix::process::{Pid, Signal, kill_process};

use self::engine::Engine;

#[path = "../../laneway-engine/tests/support/engine.rs"]
mod engine;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// How soon a container is gone whose node was killed.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn a_run_hands_values_from_a_container_to_the_steps_behind_it() {
    let place = Place::new();
    place.write(
        "work.yaml",
        "secrets: {db: {env: DB}}\n\
         steps:\n  \
           make: {image: 'laneway-test/busybox:1', run: 'echo hello; echo \"n=$LANEWAY_ATTEMPT-$LANEWAY_TASK\" > $LANEWAY_OUTPUT; \
             cat /run/secrets/db > got; mkdir out; echo x > out/a', container: {secrets: [db], network: none}, artifacts: [out/*]}\n  \
           use: {needs: [make], run: 'test \"$N\" = 1-make && test \"$(cat got)\" = hunter2', env: {N: '${{ steps.make.output.n }}'}}\n",
    );
    let output = place.laneway(&["run", "work.yaml"]).env("DB", "hunter2").output().expect("it runs");
    assert!(output.status.success(), "{}", told(&output));
    let logs = place.laneway(&["logs", "last", "make"]).output().expect("it runs");
    assert!(told(&logs).contains("hello"), "{}", told(&logs));
    let artifacts = place.laneway(&["artifacts", "last"]).output().expect("it runs");
    assert!(told(&artifacts).contains("out/a"), "{}", told(&artifacts));
    assert_eq!(place.containers(), "");
}

/// A tag that has moved is another image; one that has another name is not.
#[test]
fn the_digest_of_an_image_belongs_to_the_key_of_a_cached_step_and_its_tag_does_not() {
    let place = Place::new();
    let tag = format!("laneway-test/cached:{}", std::process::id());
    let work = |mode: &str| {
        format!(
            "steps: {{a: {{image: '{tag}', run: 'echo x >> marks', cache: true, container: {{pull: never, read_only: {mode}}}}}}}\n"
        )
    };
    place.write("work.yaml", &work("false"));
    let marks = || std::fs::read_to_string(place.path().join("marks")).unwrap_or_default().lines().count();
    let run = || {
        let output = place.laneway(&["run", "work.yaml"]).output().expect("it runs");
        assert!(output.status.success(), "{}", told(&output));
    };
    let why = || {
        let explained = place.laneway(&["explain", "last", "a"]).output().expect("it runs");
        told(&explained)
    };
    let ok = |args: &[&str]| {
        let done = place.docker(args);
        assert!(done.status.success(), "{}", told(&done));
    };
    ok(&["tag", IMAGE, &tag]);
    run();
    run();
    assert_eq!(marks(), 1, "the same image");
    let base = format!("laneway-cached-{}", std::process::id());
    ok(&["create", "--name", &base, IMAGE, "true"]);
    ok(&["commit", "--change", "ENV MOVED=1", &base, &tag]);
    ok(&["rm", &base]);
    run();
    assert_eq!(marks(), 2, "the tag has moved");
    assert!(why().contains("the image has changed"), "{}", why());
    place.write("work.yaml", &work("true"));
    run();
    assert_eq!(marks(), 3);
    assert!(why().contains("the configuration of its container has changed"), "{}", why());
    ok(&["rmi", "--force", &tag]);
}

/// The program itself asks from inside, with the libraries of this host: in a container of its own, and in a warm one.
#[test]
fn a_step_in_a_container_does_its_effects_once() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_laneway");
    let mounts = format!("mounts: ['{program}:/laneway:ro', '/lib:/lib:ro', '/lib64:/lib64:ro']");
    let step = "retry: {max: 1, backoff: 0s}, run: '/laneway effect charge -- sh -c \"echo x >> $LANEWAY_TASK.ran; echo id-7; echo n=7 >> \\$LANEWAY_OUTPUT\" \
                > $LANEWAY_TASK.$LANEWAY_ATTEMPT; test $LANEWAY_ATTEMPT = 2'";
    place.write(
        "work.yaml",
        &format!(
            "pools: {{warm: {{image: '{IMAGE}', max: 1, {mounts}}}}}\n\
             steps:\n  own: {{image: '{IMAGE}', container: {{{mounts}}}, {step}}}\n  warm: {{pool: warm, {step}}}\n"
        ),
    );
    let output = place.laneway(&["run", "work.yaml"]).output().expect("it runs");
    assert!(output.status.success(), "{}", told(&output));
    let read = |file: String| std::fs::read_to_string(place.dir.path().join(file)).expect("a file");
    for step in ["own", "warm"] {
        assert_eq!(read(format!("{step}.ran")), "x\n", "it ran once");
        assert_eq!(
            (read(format!("{step}.1")), read(format!("{step}.2"))),
            ("id-7\n".into(), "id-7\n".into())
        );
    }
    let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
    let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
    for task in run["tasks"].as_array().expect("tasks") {
        assert_eq!((&task["output"]["n"], &task["effects"][0]["status"]), (&"7".into(), &"done".into()));
    }
}

#[test]
fn what_keeps_a_container_from_starting_is_told_on_its_task() {
    let place = Place::new();
    place.write(
        "work.yaml",
        "steps: {a: {image: 'laneway-test/none:1', container: {pull: never}, run: 'true'}}\n",
    );
    let output = place.laneway(&["run", "work.yaml"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("the image laneway-test/none:1 cannot be had"), "{}", told(&output));

    let mut nowhere = place.laneway(&["run", "work.yaml"]);
    let output =
        nowhere.env("LANEWAY_DOCKER_HOST", "unix:///nonexistent/docker.sock").output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(told(&output).contains("no container engine answers"), "{}", told(&output));
    let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
    let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
    assert_eq!(run["tasks"][0]["reason"], "engine_lost");
}

#[test]
fn an_engine_that_dies_in_the_middle_is_a_reason_of_its_own_which_a_retry_may_name() {
    let mut place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut engine = runtime.block_on(Engine::start(&Docker::at(&place.host), IMAGE));
    place.host = engine.docker().host().to_owned();
    let step = |name: &str, retry: &str| {
        let script = format!("echo x >> {name}; test $LANEWAY_ATTEMPT = 2 || sleep 1000");
        format!("{name}: {{image: '{IMAGE}', retry: {{max: 1, on: [{retry}]}}, run: '{script}'}}")
    };
    let steps = format!("{}, {}", step("again", "engine_lost"), step("once", "start_failed"));
    place.write("work.yaml", &format!("on_failure: continue\nsteps: {{{steps}}}\n"));
    let laneway = place.laneway(&["run", "work.yaml"]).spawn().expect("it starts");
    let runs = || place.docker(&["ps", "--quiet"]).stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!(comes_true(PATIENCE, || runs() == 2), "they do not begin");
    engine.kill();
    runtime.block_on(engine.start_again());
    let output = laneway.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", told(&output));
    let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
    let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
    let [again, once] = [0, 1].map(|at| &run["tasks"][at]);
    assert_eq!((&again["status"], &again["attempt"]), (&"succeeded".into(), &2.into()), "{run}");
    assert_eq!((&once["status"], &once["reason"]), (&"failed".into(), &"engine_lost".into()), "{run}");
    let events = place.laneway(&["events", "last", "--json"]).output().expect("it runs");
    let retried = |line: &&str| line.contains("task_retrying") && line.contains("\"engine_lost\"");
    assert_eq!(told(&events).lines().filter(retried).count(), 1, "{}", told(&events));
    let explained = place.laneway(&["explain", "last", "once"]).output().expect("it runs");
    assert!(told(&explained).contains("went away while the step ran"), "{}", told(&explained));
}

#[test]
fn a_step_that_runs_out_of_memory_says_so() {
    let place = Place::new();
    place.write(
        "work.yaml",
        "steps: {a: {image: 'laneway-test/busybox:1', container: {memory: 16m}, command: [dd, if=/dev/zero, of=/dev/null, bs=200M, count=1]}}\n",
    );
    assert_eq!(place.laneway(&["run", "work.yaml"]).status().expect("it runs").code(), Some(1));
    let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
    let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
    assert_eq!((&run["tasks"][0]["reason"], &run["tasks"][0]["exit_code"]), (&"oom".into(), &137.into()));
}

#[test]
fn no_container_is_left_after_kill_9_of_its_node() {
    let place = Place::new();
    let mut laneway = place.run_and_wait();
    let name = place.containers();
    assert!(name.starts_with("laneway-") && name.ends_with("-stubborn-a1"), "{name}");
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    assert!(comes_true(SOON, || place.containers().is_empty()), "{}", place.containers());
}

#[test]
fn no_container_is_left_after_a_cancel() {
    let place = Place::new();
    let laneway = place.run_and_wait();
    let begun = Instant::now();
    assert!(place.laneway(&["cancel", "last"]).status().expect("it runs").success());
    let output = laneway.wait_with_output().expect("it ends");
    assert_eq!(place.containers(), "", "{}", told(&output));
    assert!(begun.elapsed() < SOON + PATIENCE / 2);
}

#[test]
fn the_next_node_sweeps_what_a_node_and_its_warden_left_that_died_together() {
    let place = Place::new();
    let mut laneway = place.run_and_wait();
    let warden = place.warden(&laneway);
    // Stopped, it cannot notice the death of its node.
    kill_process(warden, Signal::STOP).expect("it is ours");
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    kill_process(warden, Signal::KILL).expect("it is ours");
    assert_ne!(place.containers(), "", "nobody was there to remove it");
    // Of another store, with a dead session as well.
    let other = format!("laneway-other-{}-a1", std::process::id());
    let labels = ["laneway.managed=true", "laneway.instance=other", "laneway.session=dead"]
        .map(|label| format!("--label={label}"));
    let made = place.docker(&[
        "run", "--detach", "--name", &other, &labels[0], &labels[1], &labels[2], IMAGE, "sleep", "1000",
    ]);
    assert!(made.status.success(), "{}", told(&made));
    place.write("next.yaml", "steps: {next: {image: 'laneway-test/busybox:1', run: 'sleep 1'}}\n");
    assert!(place.laneway(&["run", "next.yaml"]).status().expect("it runs").success());
    assert!(comes_true(SOON, || place.containers().is_empty()), "{}", place.containers());
    let left = place.docker(&["rm", "--force", &other]);
    assert!(told(&left).contains(&other), "it was not ours to remove: {}", told(&left));
}

#[test]
fn a_step_that_no_node_has_an_engine_for_says_so() {
    let place = Place::new();
    place.write("work.yaml", "steps: {a: {image: 'laneway-test/busybox:1', run: 'true'}}\n");
    let submitted = place.laneway(&["submit", "work.yaml"]).output().expect("it runs");
    assert!(submitted.status.success(), "{}", told(&submitted));
    let mut worker = place.laneway(&["worker"]);
    let mut worker =
        worker.env("LANEWAY_DOCKER_HOST", "unix:///nonexistent/docker.sock").spawn().expect("it starts");
    let explained = || told(&place.laneway(&["explain", "last"]).output().expect("it runs"));
    let is_told = comes_true(PATIENCE, || explained().contains("has no container engine that answers"));
    let why = explained();
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("it is ours");
    worker.wait().expect("it ends");
    assert!(is_told, "{why}");

    // One that has an engine takes it.
    let mut worker = place.laneway(&["worker"]).spawn().expect("it starts");
    let status = || {
        let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
        let run: serde_json::Value = serde_json::from_slice(&show.stdout).unwrap_or_default();
        run["status"].as_str().unwrap_or_default().to_owned()
    };
    let is_done = comes_true(PATIENCE, || status() == "succeeded");
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("it is ours");
    worker.wait().expect("it ends");
    assert!(is_done, "{} {}", status(), explained());
}

/// A worker that begins without an engine, whose engine comes, goes, and comes back.
#[test]
fn a_worker_takes_steps_in_containers_while_its_engine_answers() {
    let mut place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut engine = runtime.block_on(Engine::start(&Docker::at(&place.host), IMAGE));
    place.host = engine.docker().host().to_owned();
    engine.kill();
    let worker = place.laneway(&["worker"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut worker = worker.expect("it starts");
    let told = |args: &[&str]| told(&place.laneway(args).output().expect("it runs"));
    place.write("work.yaml", &format!("steps: {{a: {{image: '{IMAGE}', run: 'true'}}}}\n"));
    let submit = || {
        assert!(place.laneway(&["submit", "work.yaml"]).status().expect("it runs").success());
    };
    let waits = || {
        comes_true(PATIENCE, || told(&["explain", "last"]).contains("has no container engine that answers"))
    };
    let ends =
        || comes_true(PATIENCE, || told(&["show", "last", "--json"]).contains("\"status\":\"succeeded\""));
    assert!(comes_true(PATIENCE, || told(&["nodes", "--json"]).contains("takes work")), "no worker");
    assert!(
        told(&["nodes", "--json"]).contains("\"engines\":[\"process\"]"),
        "{}",
        told(&["nodes", "--json"])
    );
    submit();
    assert!(waits(), "{}", told(&["explain", "last"]));
    runtime.block_on(engine.start_again());
    assert!(ends(), "{}", told(&["explain", "last"]));
    assert!(told(&["nodes"]).contains("process container"), "{}", told(&["nodes"]));

    engine.kill();
    let gone = "its container engine does not answer; steps in containers wait for one";
    assert!(
        comes_true(PATIENCE, || told(&["nodes", "--history"]).contains(gone)),
        "{}",
        told(&["nodes", "--history"])
    );
    submit();
    assert!(waits(), "{}", told(&["explain", "last"]));
    let doctor = told(&["doctor"]);
    assert!(doctor.contains("its container engine has not answered since"), "{doctor}");
    assert!(doctor.contains("no container engine answers at unix://"), "{doctor}");
    runtime.block_on(engine.start_again());
    assert!(ends(), "{}", told(&["explain", "last"]));
    kill_process(Pid::from_child(&worker), Signal::TERM).expect("it is ours");
    assert!(worker.wait().expect("it ends").success());
    assert_eq!(place.containers(), "");
}

/// One who is not root, and may speak to the engine because its socket belongs to a group of theirs.
#[test]
fn who_is_not_root_runs_steps_in_containers_and_leaves_nothing() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    const SOMEBODY: u32 = 64_321;
    const GROUP: u32 = 64_322;
    let mut place = Place::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let engine = runtime.block_on(Engine::start(&Docker::at(&place.host), IMAGE));
    place.host = engine.docker().host().to_owned();
    let socket = engine.docker().socket().map(std::path::PathBuf::from).expect("a socket");
    let open = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    open(socket.parent().expect("a directory"), 0o711);
    open(&socket, 0o660);
    chown(&socket, None, Some(GROUP)).expect("it is ours");
    // The program may lie where only its owner looks.
    let bin = tempfile::tempdir().expect("a directory");
    let program = bin.path().join("laneway");
    std::fs::copy(env!("CARGO_BIN_EXE_laneway"), &program).expect("copied");
    open(bin.path(), 0o755);
    chown(place.path(), Some(SOMEBODY), Some(SOMEBODY)).expect("it is ours");
    let laneway = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        let ids = [format!("--reuid={SOMEBODY}"), format!("--regid={SOMEBODY}"), format!("--groups={GROUP}")];
        command.args(ids).arg(&program).args(args).current_dir(place.path()).stdin(Stdio::null());
        let output = command.env("LANEWAY_DOCKER_HOST", &place.host).output().expect("`setpriv`");
        (output.status.code(), told(&output))
    };
    let work = |last: &str| {
        format!(
            "pools: {{warm: {{image: '{IMAGE}', max: 2}}}}
steps:
  own: {{image: '{IMAGE}', run: 'id -u > own; touch /denied 2>/dev/null && exit 1; true'}}
  one: {{needs: [own], pool: warm, run: 'test \"$(cat own)\" = {SOMEBODY}; id -u > one'}}
  two: {{needs: [own], run: 'test ! -e one; echo 2 > two'}}
  last: {{needs: [pair], run: 'test \"$(cat one)$(cat two)\" = {SOMEBODY}2; {last}'}}
groups: {{pair: {{steps: [one, two], isolate: true, merge: workspace}}}}
"
        )
    };
    place.write("work.yaml", &work("true"));
    place.write("fails.yaml", &work("exit 3"));
    let (code, said) = laneway(&["run", "work.yaml"]);
    assert_eq!(code, Some(0), "{said}");
    let isolates = || {
        let runs = std::fs::read_dir(place.path().join(".laneway/isolates")).into_iter().flatten().flatten();
        let runs =
            runs.flat_map(|instance| std::fs::read_dir(instance.path()).into_iter().flatten().flatten());
        let cells = runs.flat_map(|run| std::fs::read_dir(run.path()).into_iter().flatten().flatten());
        cells.map(|cell| cell.path()).filter(|cell| cell.is_dir()).collect::<Vec<_>>()
    };
    assert_eq!(isolates(), [""; 0].map(std::path::PathBuf::from), "no copy is left");
    for made in ["own", "one", "two"] {
        std::fs::remove_file(place.path().join(made)).expect("the first run has made it");
    }
    let (code, said) = laneway(&["run", "fails.yaml"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("last failed: exit code 3"), "{said}");
    // Of a run that failed copies are kept, and say how they were made.
    let cells = isolates();
    assert_eq!(cells.len(), 2, "{cells:?}");
    for cell in cells {
        let mark = std::fs::read_to_string(cell.join("mark")).expect("a mark");
        assert!(mark.contains("\"copy\""), "who may not mount copies files: {mark}");
    }
    let all = place.docker(&["ps", "--all", "--quiet"]);
    assert_eq!(told(&all), "", "no container is left");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    let dir = place.path().to_string_lossy().into_owned();
    assert!(!mounts.contains(dir.as_str()), "{mounts}");
}

#[test]
fn containers_of_a_frozen_worker_are_gone_when_its_lease_is_over() {
    let (place, store) = (Place::new(), schema());
    let step = format!("frozen-{}", std::process::id());
    let script = "trap \"\" TERM; while :; do sleep 1; done";
    place.write(
        "work.yaml",
        &format!("steps: {{{step}: {{on_lost: fail, image: '{IMAGE}', run: '{script}'}}}}\n"),
    );
    let submitted = place.laneway(&["submit", "work.yaml", "--store", &store]).output().expect("it runs");
    assert!(submitted.status.success(), "{}", told(&submitted));
    let lease = ["worker", "--lease-ttl", "3s", "--heartbeat-interval", "200ms", "--store", &store];
    let worker = place.laneway(&lease).spawn().expect("it starts");
    let state = || {
        let name = format!("name=-{step}-a1");
        let listed = place.docker(&["ps", "--all", "--format", "{{.State}}", "--filter", &name]);
        String::from_utf8_lossy(&listed.stdout).trim().to_owned()
    };
    assert!(comes_true(PATIENCE, || state() == "running"), "it does not begin");
    let pid = Pid::from_child(&worker);
    kill_process(pid, Signal::STOP).expect("it is ours");
    let is_gone = comes_true(SOON + SOON, || state().is_empty());
    let sessions = || {
        let nodes = place.laneway(&["nodes", "--json", "--store", &store]).output().expect("it runs");
        let nodes: serde_json::Value = serde_json::from_slice(&nodes.stdout).expect("a list");
        nodes[0]["session"].clone()
    };
    let before = sessions();
    kill_process(pid, Signal::CONT).expect("it is ours");
    let joins = comes_true(PATIENCE, || !sessions().is_null() && sessions() != before);
    kill_process(pid, Signal::TERM).expect("it is ours");
    let output = worker.wait_with_output().expect("it ends");
    assert!(is_gone, "{} {}", state(), told(&output));
    assert!(joins, "it does not join again: {}", told(&output));
    assert!(told(&output).contains("could not be renewed in time"), "{}", told(&output));
}

/// A store of its own on the Postgres that the tests are lent.
fn schema() -> String {
    let server = std::env::var("LANEWAY_TEST_POSTGRES");
    let server = server.expect("run this with `cargo xtask postgres cargo xtask docker cargo nextest run`");
    let name = format!("container_{}", std::process::id());
    let made = Command::new("psql").args([&server, "-qc", &format!("CREATE SCHEMA {name}")]).status();
    assert!(made.expect("psql runs").success());
    let mark = if server.contains('?') { '&' } else { '?' };
    format!("{server}{mark}options=-csearch_path%3D{name}")
}

const IMAGE: &str = "laneway-test/busybox:1";

/// A directory with a store.
struct Place {
    dir: tempfile::TempDir,
    host: String,
}

impl Place {
    fn new() -> Self {
        let host = std::env::var("LANEWAY_TEST_DOCKER");
        let host = host.expect("run the tests with `cargo xtask docker cargo nextest run …`");
        Self { dir: tempfile::tempdir().expect("a directory"), host }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).expect("written");
    }

    fn laneway(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command.args(args).current_dir(self.path()).env("LANEWAY_DOCKER_HOST", &self.host);
        command.env("LANEWAY_KILL_GRACE", "1s").env("LANEWAY_EXIT_WITH_PARENT", "true");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A run whose only step ignores TERM, in a container that runs.
    fn run_and_wait(&self) -> Child {
        let script = "trap \"\" TERM; : > ready; while :; do sleep 1; done";
        self.write("work.yaml", &format!("steps: {{stubborn: {{image: '{IMAGE}', run: '{script}'}}}}\n"));
        let laneway = self.laneway(&["run", "work.yaml"]).spawn().expect("it starts");
        assert!(comes_true(PATIENCE, || self.path().join("ready").exists()), "the step did not get ready");
        laneway
    }

    /// The process that starts the node's steps: the last one of those that are called so, the first is its guardian.
    fn warden(&self, node: &Child) -> Pid {
        *self.wardens(node.id()).last().expect("the node has a warden")
    }

    /// The guardian of a node, if there is one, and its warden.
    fn wardens(&self, node: u32) -> Vec<Pid> {
        let (mut found, mut above) = (Vec::new(), node);
        let is_warden = |pid: &u32| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            words.split(|byte| *byte == 0).nth(1) == Some(b"warden")
        };
        let children = |of: u32| -> Vec<u32> {
            let threads = std::fs::read_dir(format!("/proc/{of}/task")).expect("it lives").flatten();
            let lists = threads
                .map(|thread| std::fs::read_to_string(thread.path().join("children")).expect("procfs"));
            lists.collect::<String>().split_whitespace().map(|pid| pid.parse().expect("a number")).collect()
        };
        while let Some(pid) = children(above).into_iter().find(is_warden) {
            found.push(Pid::from_raw(i32::try_from(pid).expect("a pid")).expect("a pid"));
            above = pid;
        }
        found
    }

    fn docker(&self, args: &[&str]) -> Output {
        let mut command = Command::new("docker");
        command.arg("--host").arg(&self.host).args(args).stdin(Stdio::null()).output().expect("docker runs")
    }

    /// The names of this store's containers: their workspace is this directory.
    fn containers(&self) -> String {
        let volume = format!("volume={}", std::fs::canonicalize(self.path()).expect("it is there").display());
        let listed = self.docker(&["ps", "--all", "--format", "{{.Names}}", "--filter", &volume]);
        String::from_utf8_lossy(&listed.stdout).trim().to_owned()
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Whether a condition comes true in time. The one way in which these tests wait.
fn comes_true(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}
