//! Large documents: 100,000 steps planned, 10,000 run. Counts and generous deadlines, never speed.

#![expect(clippy::disallowed_methods, reason = "tests start the program as a user does")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn laneway(dir: &Path, args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_laneway")).args(args).current_dir(dir).output();
    let output = output.expect("the program starts");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn a_hundred_thousand_steps_are_planned() {
    const STEPS: usize = 100_000;
    const WIDTH: usize = 100;
    let dir = tempfile::tempdir().expect("a directory");
    let mut yaml = String::from("steps:\n");
    for step in 0..STEPS {
        match step.checked_sub(WIDTH) {
            None => writeln!(yaml, "  s{step}: {{command: [/bin/true]}}"),
            Some(before) => writeln!(yaml, "  s{step}: {{needs: [s{before}], command: [/bin/true]}}"),
        }
        .expect("a string takes everything");
    }
    std::fs::write(dir.path().join("large.yaml"), yaml).expect("written");
    let plan: Value =
        serde_json::from_slice(&laneway(dir.path(), &["plan", "large.yaml", "--json"]).stdout).expect("JSON");
    assert_eq!(plan["order"].as_array().map(Vec::len), Some(STEPS));
    assert_eq!(plan["levels"].as_array().map(Vec::len), Some(STEPS / WIDTH));
    assert_eq!(plan["critical_path"].as_array().map(Vec::len), Some(STEPS / WIDTH));
    assert_eq!(plan["width"], WIDTH);
}

#[test]
fn ten_thousand_steps_run_and_replay() {
    const STEPS: usize = 10_000;
    let dir = tempfile::tempdir().expect("a directory");
    let mut yaml = String::from("max_parallel: 8\nsteps:\n");
    for step in 0..STEPS {
        let needs = if step < 100 { String::new() } else { format!("needs: [s{}], ", step - 100) };
        writeln!(yaml, "  s{step}: {{{needs}command: [/bin/true]}}").expect("a string takes everything");
    }
    std::fs::write(dir.path().join("large.yaml"), yaml).expect("written");
    laneway(dir.path(), &["run", "large.yaml"]);
    let run: Value =
        serde_json::from_slice(&laneway(dir.path(), &["show", "last", "--json"]).stdout).expect("JSON");
    assert_eq!(run["status"], "succeeded");
    let tasks = run["tasks"].as_array().expect("tasks");
    assert_eq!(tasks.len(), STEPS);
    assert!(tasks.iter().all(|task| task["status"] == "succeeded" && task["attempt"] == 1));
    laneway(dir.path(), &["replay", "last"]);
}
