//! Steps that behave badly: they flood, stop themselves, close their pipes, multiply, hand over rubbish. The others go
//! on meanwhile, the node's memory stays bounded, and everything ends in time.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(100);

/// Far more than the node needs, far less than what floods it.
const MEMORY_KIB: u64 = 200 * 1024;

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn with(yaml: &str) -> Self {
        let place = Self { dir: tempfile::tempdir().expect("a directory") };
        std::fs::write(place.path("work.yaml"), yaml).expect("written");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        command.args(args).current_dir(self.dir.path()).env("LANEWAY_KILL_GRACE", "500ms");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn laneway(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    fn run(&self) -> Output {
        self.laneway(&["run", "work.yaml"])
    }

    fn task(&self, step: &str) -> Value {
        let show = self.laneway(&["show", "last", "--json"]);
        let run: Value = serde_json::from_slice(&show.stdout).expect("JSON");
        let tasks = run["tasks"].as_array().expect("tasks");
        tasks.iter().find(|task| task["step"] == step).expect("the step").clone()
    }

    /// Everything that runs in this directory, but the program itself.
    fn alive(&self) -> Vec<u32> {
        let dir = std::fs::canonicalize(self.dir.path()).expect("it is there");
        let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let link =
            |pid: u32, name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let is_ours = |pid: &u32| {
            link(*pid, "cwd").starts_with(&dir)
                && link(*pid, "exe") != Path::new(env!("CARGO_BIN_EXE_laneway"))
        };
        pids.filter(is_ours).collect()
    }
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

/// The most memory that a process has had so far; 0 when it is gone.
fn peak_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    let figure = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    figure.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn a_flood_of_a_gigabyte_bounds_memory_and_holds_up_nobody() {
    // The flood and the endless line go on until the last of the others is done; only they can end it.
    let mut yaml = String::from(
        "max_parallel: 3
steps:
  flood: {run: 'head -c 1073741824 /dev/zero; until [ -e done ]; do head -c 1048576 /dev/urandom; done; exit 0'}
  line: {run: \"head -c 100000000 /dev/zero | tr '\\\\0' x; until [ -e done ]; do printf x; done\"}
  b0: {run: 'true'}
",
    );
    const BEATS: usize = 40;
    for beat in 1..BEATS {
        let last = if beat + 1 == BEATS { ": > done" } else { "true" };
        yaml.push_str(&format!("  b{beat}: {{needs: [b{}], run: '{last}'}}\n", beat - 1));
    }
    let place = Place::with(&yaml);
    let events = std::fs::File::create(place.path("events")).expect("a file");
    let mut node = place.command(&["run", "work.yaml", "--json"]).stdout(events).spawn().expect("it starts");
    let mut peak = 0;
    until("the run has ended", || {
        peak = peak.max(peak_kib(&node));
        node.try_wait().expect("it is ours").is_some()
    });
    let output = node.wait_with_output().expect("it has ended");
    assert!(output.status.success(), "{}", told(&output));
    assert!(peak > 0 && peak < MEMORY_KIB, "the node had {peak} KiB at its peak");
    let kept = |step: &str| std::fs::metadata(log(&place, step)).expect("a log").len();
    assert!(kept("flood") <= (64 << 20) + 4096 && kept("line") <= (64 << 20) + 4096, "capped");
    let shown = place.laneway(&["logs", "last", "flood"]);
    assert!(told(&shown).contains("bytes dropped"), "the log says that something is missing");
    // The others went on at a steady pace: no beat waited long for the one before it.
    let events = std::fs::read_to_string(place.path("events")).expect("events");
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let finished = |step: &str| {
        let event = events.iter().find(|event| event["event"] == "task_finished" && event["step"] == step);
        let at =
            event.and_then(|event| event["at"].as_str()).unwrap_or_else(|| panic!("{step} has finished"));
        at.parse::<jiff::Timestamp>().expect("a time")
    };
    for beat in 1..BEATS {
        let gap = finished(&format!("b{beat}")).duration_since(finished(&format!("b{}", beat - 1)));
        assert!(gap.as_secs() < 20, "b{beat} came {gap:?} after the one before it");
    }
}

fn log(place: &Place, step: &str) -> PathBuf {
    let logs = std::fs::read_dir(place.path(".laneway/logs")).expect("logs").flatten().next().expect("a run");
    logs.path().join(format!("{step}.a1.log"))
}

#[test]
fn a_step_that_stops_itself_is_ended_by_its_timeout_and_by_a_cancel() {
    let stops = "kill -STOP $$; echo never";
    let stubborn = "trap \\\"\\\" TERM; while :; do kill -STOP $$; done";
    for script in [stops, stubborn] {
        let place = Place::with(&format!("steps: {{a: {{timeout: 500ms, run: \"{script}\"}}}}\n"));
        let output = place.run();
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert_eq!(place.task("a")["reason"], "timeout");
        assert_eq!(place.alive(), Vec::<u32>::new());

        let place = Place::with(&format!("steps: {{a: {{run: \": > ready; {script}\"}}}}\n"));
        let node = place.command(&["run", "work.yaml"]).spawn().expect("it starts");
        until("it has stopped itself", || {
            place.path("ready").exists()
                && place.alive().iter().any(|pid| {
                    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                    stat.contains(") T ")
                })
        });
        let cancel = place.laneway(&["cancel", "last"]);
        assert!(cancel.status.success(), "{}", told(&cancel));
        let output = node.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert_eq!(place.task("a")["status"], "canceled");
        assert_eq!(place.alive(), Vec::<u32>::new());
    }
}

#[test]
fn a_step_that_closes_its_pipes_goes_on_and_ends_by_its_exit() {
    let place = Place::with(
        "steps:
  quiet: {run: 'echo before; exec >&- 2>&- <&-; sleep 0.2; : > closed; exit 7', on_lost: fail}
  next: {needs: [quiet], when: always, run: '[ -e closed ]'}
",
    );
    assert_eq!(place.run().status.code(), Some(1));
    assert_eq!(place.task("quiet")["exit_code"], 7);
    assert_eq!(
        place.task("next")["status"],
        "succeeded",
        "it came after the exit, not after the end of output"
    );
    assert!(told(&place.laneway(&["logs", "last", "quiet"])).contains("before"));
}

#[test]
fn a_bomb_of_forks_is_gone_after_its_timeout_with_cgroups_and_without() {
    // 2^8 processes, each in a session of its own, and none of them ends by itself.
    let bomb = "bomb() { if [ $1 -eq 0 ]; then trap \"\" TERM; : > ready; exec setsid sleep 1000; fi; bomb $(($1 - 1)) & bomb $(($1 - 1)) & wait; }; bomb 8";
    for cgroups in ["on", "off"] {
        let place = Place::with(&format!(
            "steps:\n  bomb: {{timeout: 2s, run: '{bomb}'}}\n  other: {{run: 'until [ -e ready ]; do sleep 0.01; done'}}\n  last: {{needs: [other], run: 'true'}}\n"
        ));
        let output =
            place.command(&["run", "work.yaml"]).env("LANEWAY_CGROUPS", cgroups).output().expect("it runs");
        assert_eq!(output.status.code(), Some(1), "{}", told(&output));
        assert_eq!(place.task("bomb")["reason"], "timeout", "cgroups {cgroups}");
        assert_eq!(place.task("last")["status"], "succeeded", "cgroups {cgroups}");
        assert_eq!(place.alive(), Vec::<u32>::new(), "cgroups {cgroups}");
    }
}

#[test]
fn rubbish_for_output_fails_the_attempt_in_words_and_costs_no_memory() {
    let cases = [
        ("head -c 100000000 /dev/zero | tr '\\0' x > $LANEWAY_OUTPUT", "256 KiB"),
        ("printf 'a=1\\nb=\\377\\376\\n' > $LANEWAY_OUTPUT", "UTF-8"),
        ("printf 'a=1\\nb=2\\na=3\\n' > $LANEWAY_OUTPUT", "twice"),
        ("printf '{\"a\": 1, \"a\": 2}' > $LANEWAY_OUTPUT", "twice"),
    ];
    for (script, said) in cases {
        let place = Place::with(&format!("steps:\n  a:\n    run: |\n      {script}\n  b: {{run: 'true'}}\n"));
        let mut node = place.command(&["run", "work.yaml"]).spawn().expect("it starts");
        let mut peak = 0;
        until("the run has ended", || {
            peak = peak.max(peak_kib(&node));
            node.try_wait().expect("it is ours").is_some()
        });
        let output = node.wait_with_output().expect("it has ended");
        assert_eq!(output.status.code(), Some(1), "{script}: {}", told(&output));
        let task = place.task("a");
        assert_eq!(task["reason"], "bad_output", "{script}");
        assert!(task["detail"].as_str().is_some_and(|detail| detail.contains(said)), "{script}: {task}");
        assert!(peak < MEMORY_KIB, "{script}: {peak} KiB");
    }
}
