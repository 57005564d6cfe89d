//! Disks that refuse: read-only at the start and while running, and fsync that fails.

use std::path::Path;
use std::process::Command;

use crate::disk::{remount, with_disk};
use crate::place::{Place, Running, steps_alive, text, until};

const STEPS: usize = 12;

fn interrupted(place: &Place) {
    place.write_workflow(STEPS, "sleep 0.02");
    let running = place.spawn(&["run", "work.yaml"]);
    until("some steps have run", || place.started() >= 4);
    running.kill();
}

#[test]
fn a_read_only_disk_is_told_as_such_and_work_goes_on_when_it_is_not() {
    with_disk("refused::a_read_only_disk_is_told_as_such_and_work_goes_on_when_it_is_not", 8, |disk| {
        let place = Place::with_store(disk.join("store/laneway.db"));
        interrupted(&place);
        until("nothing runs any more", || steps_alive(&place.path("")).is_empty());
        remount(disk, "ro");
        for args in [&["run", "--resume", "last"][..], &["run", "work.yaml"]] {
            assert_eq!(place.laneway(args).status.code(), Some(3), "{}", place.said());
        }
        let said = place.said();
        assert_eq!(said.matches("cannot be written").count(), 2, "{said}");
        assert!(said.contains("make the file and its directory writable"), "{said}");
        remount(disk, "rw");
        assert_eq!(place.laneway(&["run", "--resume", "last"]).status.code(), Some(0), "{}", place.said());
        place.assert_sound(STEPS);
    });
}

/// `laneway run work.yaml`, whose system calls are refused as `inject` says, on one file or on all.
fn injected(place: &Place, inject: &str, file: Option<&Path>) -> Running {
    let mut command = Command::new("strace");
    place.dress(&mut command);
    command.args([
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        &format!("trace={}", inject.split(':').next().unwrap_or("")),
    ]);
    if let Some(file) = file {
        command.arg("-P").arg(file);
    }
    command.args(["-e", &format!("inject={inject}")]);
    command.arg(env!("CARGO_BIN_EXE_laneway")).args(["run", "work.yaml"]);
    place.start(command)
}

/// It ended because of the disk, in words, without leaving a step behind; and the next one goes on.
fn stops_and_is_resumed(place: &Place, code: Option<i32>, steps: usize) {
    let said = place.said();
    assert_eq!(code, Some(3), "{said}");
    assert!(!said.contains("panicked"), "{said}");
    until("no step is left", || steps_alive(&place.path("")).is_empty());
    let runs = place.laneway(&["runs", "--workflow", "work", "--json"]);
    // What was never acknowledged need not be there; if it is, nothing of it is lost.
    let args: &[&str] =
        if text(&runs).trim() == "[]" { &["run", "work.yaml"] } else { &["run", "--resume", "last"] };
    let resumed = place.laneway(args);
    assert_eq!(resumed.status.code(), Some(0), "{}", place.said());
    place.assert_sound(steps);
}

#[test]
fn a_node_whose_disk_does_not_keep_what_is_written_stops_and_can_be_resumed() {
    // The first ones of the writer: a claim, a start, a finish.
    for number in 3..8 {
        let place = Place::new();
        place.write_workflow(STEPS, "sleep 0.02");
        // The file itself is made by somebody whose disk works.
        place.write("first.yaml", "steps: {a: {run: 'true'}}");
        assert_eq!(place.laneway(&["run", "first.yaml"]).status.code(), Some(0), "{}", place.said());
        let running = injected(&place, &format!("fdatasync,fsync:error=EIO:when={number}+"), None);
        let code = running.wait();
        let said = place.said();
        assert!(said.contains("did not keep what was written"), "{number}: {said}");
        assert!(said.contains("nothing more is written"), "{said}");
        stops_and_is_resumed(&place, code, STEPS);
    }
}

#[test]
fn a_node_whose_disk_becomes_read_only_stops_in_words_and_can_be_resumed() {
    let place = Place::new();
    place.write_workflow(STEPS, "sleep 0.02");
    place.write("first.yaml", "steps: {a: {run: 'true'}}");
    assert_eq!(place.laneway(&["run", "first.yaml"]).status.code(), Some(0), "{}", place.said());
    let running = injected(&place, "pwrite64:error=EROFS:when=60+", None);
    let code = running.wait();
    let said = place.said();
    assert!(said.contains(&Path::new("store/laneway.db").display().to_string()), "it names the file: {said}");
    stops_and_is_resumed(&place, code, STEPS);
}

#[test]
fn a_node_whose_disk_does_not_keep_a_checkpoint_stops_too() {
    // More than a checkpoint's worth of pages; only the file itself refuses, and only checkpoints sync that.
    const LARGE: usize = 70;
    let place = Place::new();
    place.write("first.yaml", "steps: {a: {run: 'true'}}");
    assert_eq!(place.laneway(&["run", "first.yaml"]).status.code(), Some(0), "{}", place.said());
    let output = "(printf a=; head -c 250000 /dev/zero | tr '\\0' x) > $LANEWAY_OUTPUT";
    place.write_workflow(LARGE, output);
    let running = injected(&place, "fdatasync,fsync:error=EIO", Some(&place.store));
    let code = running.wait();
    assert!(place.said().contains("did not keep what was written"), "{}", place.said());
    assert!(place.started() < LARGE, "nothing is claimed behind it");
    stops_and_is_resumed(&place, code, LARGE);
}

/// The database names it from then on: after a crash of the machine it has to be found under its name.
#[test]
fn an_artifact_is_under_its_name_on_disk_before_anybody_is_told() {
    let place = Place::new();
    place.write("work.yaml", "steps: {a: {run: 'echo x > out', artifacts: [out]}}");
    let calls = place.path("calls");
    let mut command = Command::new("strace");
    place.dress(&mut command);
    command.args(["-f", "-qq", "-y", "-e", "trace=rename,renameat,renameat2,fsync", "-o"]).arg(&calls);
    command.arg(env!("CARGO_BIN_EXE_laneway")).args(["run", "work.yaml"]);
    assert_eq!(place.start(command).wait(), Some(0), "{}", place.said());
    let calls = std::fs::read_to_string(calls).expect("what strace wrote");
    let renamed = calls.lines().position(|call| call.contains("rename") && call.contains("/artifacts/"));
    let after = calls.lines().skip(renamed.unwrap_or_else(|| panic!("it is not put in its place: {calls}")));
    let synced: Vec<&str> = after.filter(|call| call.contains("fsync(")).collect();
    for dir in ["/artifacts>", "/store>"] {
        assert!(synced.iter().any(|call| call.contains(dir)), "{dir} is not synced behind it: {calls}");
    }
}
