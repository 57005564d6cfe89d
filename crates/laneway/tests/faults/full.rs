//! A full disk, under the store, the logs, the workspace. `LANEWAY_TEST_DISK_CYCLES` says how often the store's disk
//! fills up and empties again; each cycle is a line of the test's output.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::disk::{Ballast, with_disk};
use crate::place::{Place, until};

const CYCLES: usize = 3;

/// So that the file of the WAL, which only grows here, never fills the disk by itself.
const CYCLES_A_RUN: usize = 3;

/// Longer than the pause after which the store is asked again.
const STANDSTILL: Duration = Duration::from_millis(700);

fn cycles() -> usize {
    match std::env::var("LANEWAY_TEST_DISK_CYCLES") {
        Ok(text) => text.parse().expect("LANEWAY_TEST_DISK_CYCLES is a number"),
        Err(_) => CYCLES,
    }
}

#[test]
fn work_stops_on_a_full_disk_and_goes_on_by_itself() {
    with_disk("full::work_stops_on_a_full_disk_and_goes_on_by_itself", 12, |disk| {
        let all = cycles();
        let mut done = 0;
        while done < all {
            let now = CYCLES_A_RUN.min(all - done);
            fill_and_empty(disk, now, done);
            done += now;
        }
    });
}

/// One run whose disk fills up some times while it goes on.
fn fill_and_empty(disk: &Path, times: usize, before: usize) {
    // Enough of them that a slow look does not miss the last.
    let steps = 32 * times;
    let place = Place::with_store(disk.join("store/laneway.db"));
    place.write_workflow(steps, "echo some words; sleep 0.02");
    let mut running = place.spawn(&["run", "work.yaml"]);
    for time in 0..times {
        let target = place.started() + 4;
        until("some steps have run", || place.started() >= target);
        let told = place.said().matches("is full").count();
        let ballast = Ballast::fill(disk);
        until("it says why it waits", || {
            ballast.fill_again();
            place.said().matches("is full").count() > told
        });
        // What was claimed before runs, and the last bytes of the WAL's own pages may hold one claim more; then
        // everything stands still.
        let (mut seen, mut since) = (place.ledger(), Instant::now());
        until("nothing starts any more", || {
            let now = place.ledger();
            if now != seen {
                (seen, since) = (now, Instant::now());
            }
            seen.0 == seen.1 && since.elapsed() > STANDSTILL
        });
        let started = place.started();
        assert!(started < steps && !running.has_ended(), "it waits\n{}", place.said());
        drop(ballast);
        until("work goes on by itself", || place.started() > started || running.has_ended());
        println!("cycle {}: full after {started} of {steps} steps, went on", before + time + 1);
    }
    assert_eq!(running.wait(), Some(0), "{}", place.said());
    let said = place.said();
    assert!(said.matches("is full").count() <= 2 * times, "told, not flooded\n{said}");
    let (starts, ends) = place.ledger();
    assert!(starts.len() == steps && starts.values().all(|count| *count == 1), "each ran once: {starts:?}");
    assert_eq!(starts, ends);
    place.assert_sound(steps);
    std::fs::remove_dir_all(disk.join("store")).expect("removed");
}

#[test]
fn a_run_on_a_full_disk_is_refused_in_words_and_a_script_waits_for_space() {
    with_disk("full::a_run_on_a_full_disk_is_refused_in_words_and_a_script_waits_for_space", 8, |disk| {
        let place = Place::with_store(disk.join("store/laneway.db"));
        place.write_workflow(2, ":");
        let ballast = Ballast::fill(disk);
        assert_eq!(place.laneway(&["run", "work.yaml"]).status.code(), Some(3));
        let said = place.said();
        assert!(said.contains("No space left") || said.contains("is full"), "{said}");
        assert!(said.contains("free some space"), "{said}");
        drop(ballast);
        assert_eq!(place.laneway(&["run", "work.yaml"]).status.code(), Some(0), "{}", place.said());

        // A script with a first line of its own is a file, and that needs space which is not there.
        let script =
            format!("#!/bin/sh\n# {}\necho ran >> ledger2", "x".repeat(300_000)).replace('\n', "\n      ");
        place.write("file.yaml", &format!("steps:\n  first:\n    run: echo > reached; until [ -e go ]; do sleep 0.01; done\n  second:\n    needs: first\n    run: |\n      {script}\n"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            place.path("reached"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .expect("a pipe");
        let mut running = place.spawn(&["run", "file.yaml"]);
        std::fs::read(place.path("reached")).expect("the first step runs");
        let ballast = Ballast::fill(disk);
        // Room for the commits, not for the script.
        let file = std::fs::File::options().write(true).open(disk.join("ballast")).expect("the ballast");
        let length = file.metadata().expect("its size").len();
        file.set_len(length - 200 * 1024).expect("a little room");
        drop(file);
        place.write("go", "");
        until("the second step is claimed", || place.printed().contains("second started"));
        assert!(!running.has_ended() && !place.path("ledger2").exists());
        drop(ballast);
        assert_eq!(running.wait(), Some(0), "{}", place.said());
        assert!(place.path("ledger2").exists());
    });
}

#[test]
fn a_full_disk_of_logs_fails_no_step_and_is_told_once() {
    with_disk("full::a_full_disk_of_logs_fails_no_step_and_is_told_once", 1, |disk| {
        let place = Place::new();
        std::fs::create_dir_all(place.path("store")).expect("made");
        std::os::unix::fs::symlink(disk, place.path("store/logs")).expect("a link");
        place.write_workflow(12, "head -c 400000 /dev/zero | tr '\\0' x; echo; echo last words");
        let mut running = place.spawn(&["run", "work.yaml"]);
        until("it ends", || running.has_ended());
        assert_eq!(running.wait(), Some(0), "{}", place.said());
        let said = place.said();
        assert_eq!(said.matches("cannot write the log").count(), 1, "{said}");
        assert!(said.contains("No space left on device"), "{said}");
        let logs = String::from_utf8_lossy(&place.laneway(&["logs", "last"]).stdout).into_owned();
        assert!(logs.contains("last words"), "those that fitted are whole");
        place.assert_sound(12);
    });
}

#[test]
fn a_full_workspace_fails_the_step_that_needs_it_and_a_retry_goes_on() {
    with_disk("full::a_full_workspace_fails_the_step_that_needs_it_and_a_retry_goes_on", 2, |disk| {
        let place = Place::new();
        let ledger = place.path("ledger").display().to_string();
        place.write(
            "work.yaml",
            &format!(
                "steps:\n  large: {{workdir: {}, run: 'head -c 1000000 /dev/zero > large; echo end large 1 >> {ledger}'}}\n  small: {{run: 'true'}}\n",
                disk.display()
            ),
        );
        let ballast = Ballast::fill(disk);
        let output = place.laneway(&["run", "work.yaml"]);
        assert_eq!(output.status.code(), Some(1));
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(told.contains("No space left on device"), "in the step's own words\n{told}");
        drop(ballast);
        assert_eq!(place.laneway(&["retry", "last"]).status.code(), Some(0), "{}", place.said());
        place.assert_sound(2);
    });
}
