//! What is left of steps when their node ends in a bad way: nothing, with cgroups and without. Also of a node that
//! runs inside of a step, and of one that others took for dead.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const GRACE: Duration = Duration::from_secs(1);

/// What the promise allows beyond the grace.
const SOON: Duration = Duration::from_secs(1);

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// A step that ignores TERM, and a daemon of its own session whose parents are dead and which ignores it too.
const STUBBORN: &str =
    "trap \"\" TERM HUP; setsid sh -c \"./NAME 1000 & exit\"; : > ready; while :; do sleep 1; done";

#[test]
fn nothing_is_left_after_kill_9_of_the_node() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        let mut laneway = place.run(STUBBORN);
        place.wait_for_step();
        laneway.kill().expect("it is ours");
        laneway.wait().expect("it is ours");
        place.assert_gone_within(SOON);
    }
}

#[test]
fn nothing_is_left_after_a_forced_shutdown() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        let laneway = place.run(STUBBORN);
        place.wait_for_step();
        let pid = Pid::from_child(&laneway);
        kill_process(pid, Signal::TERM).expect("it is ours");
        kill_process(pid, Signal::INT).expect("it is ours");
        let output = laneway.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130));
        assert_eq!(place.alive(), Vec::<u32>::new(), "cgroups {cgroups}");
    }
}

#[test]
fn nothing_is_left_after_a_cancel_by_somebody_else() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        let laneway = place.run(STUBBORN);
        place.wait_for_step();
        let begun = Instant::now();
        assert!(place.laneway(&["cancel", "last"]).status().expect("it runs").success());
        laneway.wait_with_output().expect("it ends");
        assert_eq!(place.alive(), Vec::<u32>::new(), "cgroups {cgroups}");
        assert!(begun.elapsed() < GRACE + SOON + Duration::from_secs(2));
    }
}

#[test]
fn a_run_whose_warden_is_killed_fails_in_words_and_leaves_nothing() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        let laneway = place.run(STUBBORN);
        place.wait_for_step();
        kill_process(place.warden(&laneway), Signal::KILL).expect("it is ours");
        let output = laneway.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(told.contains("the warden died"), "{told}");
        let show = place.laneway(&["show", "last", "--json"]).output().expect("it runs");
        let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
        assert_eq!(run["tasks"][0]["reason"], "start_failed");
        assert_eq!(place.alive(), Vec::<u32>::new(), "cgroups {cgroups}");
    }
}

#[test]
fn a_node_that_dies_leaves_the_steps_of_another_alone() {
    for cgroups in ["on", "off"] {
        let (ours, theirs) = (Place::new(cgroups), Place::new(cgroups));
        let mut dying = ours.run(STUBBORN);
        let living = theirs.run("setsid sh -c \"./NAME 1000 & echo \\$! > pid\"; : > ready; until [ -e go ]; do sleep 0.01; done; kill -0 $(cat pid)");
        ours.wait_for_step();
        theirs.wait_for_step();
        dying.kill().expect("it is ours");
        dying.wait().expect("it is ours");
        ours.assert_gone_within(SOON);
        assert!(!theirs.alive().is_empty());
        std::fs::write(theirs.path().join("go"), "").expect("written");
        let output = living.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        theirs.assert_gone_within(SOON);
    }
}

#[test]
fn the_next_warden_sweeps_what_a_node_and_a_warden_left_that_died_together() {
    let place = Place::new("on");
    let mut laneway = place.run(STUBBORN);
    place.wait_for_step();
    let warden = place.warden(&laneway);
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", warden.as_raw_nonzero()));
    if !cgroup.expect("procfs").contains("/laneway-") {
        // Without cgroups nobody can find them: docs/design/warden.md. They are ours to end then.
        kill_process(warden, Signal::KILL).expect("it is ours");
        laneway.wait().expect("it is ours");
        return;
    }
    // Stopped, it cannot notice the death of its node.
    kill_process(warden, Signal::STOP).expect("it is ours");
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    kill_process(warden, Signal::KILL).expect("it is ours");
    // Nobody of theirs is there any more to kill it. The next warden to start does, be it that of another test.
    std::fs::write(place.path().join("next.yaml"), "steps: {next: {run: 'true'}}\n").expect("written");
    assert!(place.laneway(&["run", "next.yaml"]).status().expect("it runs").success());
    assert_eq!(place.alive(), Vec::<u32>::new());
}

/// As `STUBBORN`, with a second daemon that does not carry the mark of its step.
const HIDING: &str = "trap \"\" TERM HUP; setsid sh -c \"./NAME 1000 & exit\"; \
    setsid env -i /bin/sh -c \"./NAME 1000 & exit\"; : > ready; while :; do sleep 1; done";

#[test]
fn without_cgroups_nothing_is_left_of_a_node_and_a_warden_that_die_together() {
    let place = Place::new("off");
    let mut laneway = place.run(HIDING);
    place.wait_for_step();
    let wardens = place.wardens(laneway.id());
    let [guardian, warden] = wardens[..] else { panic!("a guardian and a warden: {wardens:?}") };
    // Stopped, it cannot notice the death of its node.
    kill_process(warden, Signal::STOP).expect("it is ours");
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    assert!(place.alive().len() >= 3, "a step and its daemons: {:?}", place.alive());
    kill_process(warden, Signal::KILL).expect("it is ours");
    place.assert_gone_within(SOON);
    // Nothing may be left but a zombie: the process that took it over reaps it when it likes.
    let exe = format!("/proc/{}/exe", guardian.as_raw_nonzero());
    assert!(comes_true(SOON, || std::fs::read_link(&exe).is_err()), "the guardian has ended as well");
}

#[test]
fn without_cgroups_a_node_works_on_when_its_guardian_is_killed() {
    let place = Place::new("off");
    let mut laneway = place.run(STUBBORN);
    place.wait_for_step();
    let wardens = place.wardens(laneway.id());
    kill_process(wardens[0], Signal::KILL).expect("it is ours");
    // The warden is alone with its node, and does what it did before there were guardians.
    assert!(!place.alive().is_empty());
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    place.assert_gone_within(SOON);
}

#[test]
fn with_cgroups_a_run_on_the_embedded_store_has_no_guardian() {
    let place = Place::new("on");
    let mut laneway = place.run(STUBBORN);
    place.wait_for_step();
    let wardens = place.wardens(laneway.id());
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", wardens[0].as_raw_nonzero()));
    let has_cgroups = cgroup.expect("procfs").contains("/laneway-");
    assert_eq!(wardens.len(), if has_cgroups { 1 } else { 2 }, "{wardens:?}");
    laneway.kill().expect("it is ours");
    laneway.wait().expect("it is ours");
    place.assert_gone_within(SOON);
}

/// Runs the workflow of another file, in the same store.
const INNER: &str = "exec \"$LANEWAY_PROGRAM\" run inner.yaml";

#[test]
fn a_run_inside_of_a_step_works_as_any_other() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        place.write("inner.yaml", "steps: {a: {run: ': > made'}, b: {needs: [a], run: 'test -e made'}}\n");
        let output = place.run(INNER).wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(place.statuses(), ["succeeded", "succeeded"]);
        assert!(comes_true(PATIENCE, || place.marked().is_empty()), "{:?}", place.marked());
    }
}

#[test]
fn nothing_of_a_run_inside_of_a_step_is_left_after_a_cancel_of_the_outer() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        let inner = STUBBORN.replace("NAME", "daemon");
        place.write("inner.yaml", &format!("steps: {{stubborn: {{run: '{inner}'}}}}\n"));
        let outer = place.run(INNER);
        place.wait_for_step();
        let of_outer = [outer.id(), place.warden(&outer).as_raw_nonzero().get().unsigned_abs()];
        let of_inner =
            || place.marked().into_iter().filter(|pid| !of_outer.contains(pid)).collect::<Vec<_>>();
        assert!(of_inner().len() >= 3, "a node, its warden and its step: {:?}", of_inner());
        kill_process(Pid::from_child(&outer), Signal::INT).expect("it is ours");
        assert!(comes_true(GRACE + SOON, || of_inner().is_empty()), "{:?}, cgroups {cgroups}", of_inner());
        let output = outer.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(130));
        place.assert_gone_within(SOON);
        assert!(place.daemons().is_empty());
    }
}

#[test]
fn a_node_whose_session_was_reaped_by_another_stops_its_steps_and_drops_their_results() {
    for cgroups in ["on", "off"] {
        let place = Place::new(cgroups);
        // Asked to stop, the step would say that all is well.
        let long = "trap \"exit 0\" TERM; ./NAME 1000 & : > ready; until [ -e go ]; do sleep 0.01; done";
        let node = place.run(long);
        place.wait_for_step();
        // Somebody tidies up what they do not know: nothing shows any more that this node lives.
        std::fs::remove_dir_all(place.path().join(".laneway/sessions")).expect("removed");
        place.write("next.yaml", "steps: {next: {run: 'true'}}\n");
        assert!(place.laneway(&["run", "next.yaml"]).status().expect("it runs").success());
        let output = node.wait_with_output().expect("it ends");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        assert!(told.contains("is over"), "{told}");
        place.assert_gone_within(SOON);
        let show = place.laneway(&["show", &place.oldest(), "--json"]).output().expect("it runs");
        let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
        assert_eq!(run["tasks"][0]["status"], "available", "{run}");
        // Whoever resumes it begins a new attempt.
        place.write("go", "");
        let resumed = place.laneway(&["run", "--resume", &place.oldest()]).output().expect("it runs");
        assert!(resumed.status.success(), "{}", String::from_utf8_lossy(&resumed.stderr));
        let show = place.laneway(&["show", &place.oldest(), "--json"]).output().expect("it runs");
        let run: serde_json::Value = serde_json::from_slice(&show.stdout).expect("JSON");
        assert_eq!(
            (&run["tasks"][0]["status"], &run["tasks"][0]["attempt"]),
            (&"succeeded".into(), &2.into())
        );
    }
}

#[test]
fn the_warden_says_who_starts_it() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_laneway")).args(["warden", "x"]).stdin(Stdio::null()).output();
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a warden is started by laneway itself"));
}

/// A directory with a store, and a program in it whose path is like no other.
struct Place {
    dir: tempfile::TempDir,
    cgroups: &'static str,
}

impl Place {
    fn new(cgroups: &'static str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::copy("/bin/sleep", dir.path().join("daemon")).expect("copied");
        Self { dir, cgroups }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn laneway(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command.args(args).current_dir(self.path()).env("LANEWAY_CGROUPS", self.cgroups).stdin(Stdio::null());
        command.env("LANEWAY_KILL_GRACE", format!("{}s", GRACE.as_secs()));
        command.env("LANEWAY_PROGRAM", env!("CARGO_BIN_EXE_laneway")).env("PLACE", self.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path().join(file), text).expect("written");
    }

    fn run(&self, script: &str) -> Child {
        let script = script.replace("NAME", "daemon");
        self.write("work.yaml", &format!("steps: {{stubborn: {{run: '{script}'}}}}\n"));
        self.laneway(&["run", "work.yaml"]).spawn().expect("it starts")
    }

    fn wait_for_step(&self) {
        let is_ready = || self.path().join("ready").exists() && !self.daemons().is_empty();
        assert!(comes_true(PATIENCE, is_ready), "the step did not get ready");
    }

    /// Everything that runs in this directory, or from it: steps, daemons. The node itself is not among them.
    fn alive(&self) -> Vec<u32> {
        let is_node = |pid: u32| {
            let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
            exe == Path::new(env!("CARGO_BIN_EXE_laneway"))
        };
        self.having("cwd").into_iter().filter(|pid| !is_node(*pid)).collect()
    }

    /// Everything that was started here, nodes and wardens as well: the environment is handed down.
    fn marked(&self) -> Vec<u32> {
        let wanted = format!("PLACE={}", self.path().display());
        let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let is_marked = |pid: &u32| {
            let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
        };
        pids.filter(is_marked).collect()
    }

    /// Newest first.
    fn runs(&self) -> Vec<serde_json::Value> {
        let runs = self.laneway(&["runs", "--json"]).output().expect("it runs");
        serde_json::from_slice(&runs.stdout).expect("JSON")
    }

    fn statuses(&self) -> Vec<String> {
        self.runs().iter().map(|run| run["status"].as_str().expect("a status").to_owned()).collect()
    }

    fn oldest(&self) -> String {
        self.runs().last().expect("a run")["run"].as_str().expect("an id").to_owned()
    }

    fn daemons(&self) -> Vec<u32> {
        self.having("exe")
    }

    fn having(&self, link: &str) -> Vec<u32> {
        let dir: PathBuf = std::fs::canonicalize(self.path()).expect("it is there");
        let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid: &u32| {
            std::fs::read_link(format!("/proc/{pid}/{link}")).is_ok_and(|target| target.starts_with(&dir))
        })
        .collect()
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

    fn assert_gone_within(&self, limit: Duration) {
        assert!(
            comes_true(limit, || self.alive().is_empty()),
            "{:?} still run, cgroups {}",
            self.alive(),
            self.cgroups
        );
    }
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
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
