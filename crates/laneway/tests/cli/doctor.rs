//! `laneway doctor` and `laneway backup`, and the program on a store of which something cannot be read.

use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rusqlite::Connection;

use crate::place::Place;

const WORK: &str = "steps:\n  a: {run: echo one}\n  b: {needs: [a], run: echo two}\n";

fn change(place: &Place, sql: &str) {
    let connection = Connection::open(place.path(".laneway/laneway.db")).expect("the file");
    connection.pragma_update(None, "ignore_check_constraints", true).expect("a setting");
    assert!(connection.execute(sql, []).expect("a statement") >= 1, "{sql}");
}

/// A run whose process died while its first step was running.
fn interrupted(place: &Place, file: &str) {
    place.write(
        file,
        "steps:\n  a: {run: 'echo > reached; [ -e go ] || sleep 60'}\n  b: {needs: [a], run: echo two}\n",
    );
    place.pipe("reached");
    let running = place.spawn(&format!("run {file}"));
    place.read("reached");
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    std::fs::remove_file(place.path("reached")).expect("the pipe");
    place.write("go", "");
    // Its warden ends a moment later, and until then the session is not over.
    let begun = Instant::now();
    while !wardens_are_gone(place) {
        assert!(begun.elapsed() < Duration::from_secs(20), "a warden does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether nobody holds the lock of a warden any more.
fn wardens_are_gone(place: &Place) -> bool {
    let sessions = std::fs::read_dir(place.path(".laneway/sessions")).expect("the sessions");
    sessions.flatten().map(|entry| entry.path()).all(|path| {
        let is_free = || std::fs::File::open(&path).is_ok_and(|file| file.try_lock_shared().is_ok());
        path.extension().is_none_or(|kind| kind != "warden") || is_free()
    })
}

#[test]
fn a_healthy_store_is_said_to_be_so() {
    let place = Place::with("work.yaml", WORK);
    assert_eq!(place.laneway("run work.yaml").code, Some(0));
    assert_snapshot!(place.laneway("doctor"), @r"
    $ laneway doctor
    exit code 0
    ----- stdout
    .laneway/laneway.db: healthy (looked at 1 run)
    ----- stderr
    ");
    let found = place.json("doctor --json");
    assert_eq!(found["healthy"], true);
    assert_eq!((&found["runs"], &found["runs_looked_at"]), (&1.into(), &1.into()));
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_process_that_died_and_files_of_nobody_are_notes() {
    let place = Place::new();
    interrupted(&place, "work.yaml");
    std::fs::create_dir_all(place.path(".laneway/logs/01890a5d-ac96-774b-bcce-b302099a8057")).expect("made");
    assert_snapshot!(place.laneway("doctor"), @r"
    $ laneway doctor
    exit code 0
    ----- stdout
    note: session of [node]: its process is gone; it held 1 task
        what to do: nothing: the next `laneway run`, `--resume` or `cancel` returns what it held
    note: .laneway/logs/[uuid]: logs of a run that is not in this store
        what to do: it is in nobody's way and can be removed
    .laneway/laneway.db: healthy, 2 notes (looked at 1 run)
    ----- stderr
    ");
    assert_eq!(place.laneway("run --resume last").code, Some(0));
    assert_eq!(place.laneway("doctor --limit 1").code, Some(0));
}

#[test]
fn a_run_whose_document_cannot_be_read_is_set_aside_and_others_go_on() {
    let place = Place::new();
    interrupted(&place, "bad.yaml");
    place.write("good.yaml", WORK);
    change(&place, "UPDATE workflows SET document = 'steps: [' || document WHERE name = 'bad'");
    for _ in 0..3 {
        let outcome = place.laneway("run good.yaml");
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    let listed = place.laneway("runs --workflow bad");
    assert_eq!(listed.code, Some(0), "{listed}");
    assert!(listed.stdout.contains("✗ set aside"), "{listed}");
    assert!(listed.stderr.contains("`laneway doctor` says what, and what to do"), "{listed}");
    let found = place.json("runs --workflow bad --json");
    assert_eq!(found[0]["set_aside"]["what"], "workflow bad");
    let run = found[0]["run"].as_str().expect("an id").to_owned();
    assert_snapshot!(place.laneway(&format!("run --resume {run}")), @r"
    $ laneway run --resume [uuid]
    exit code 3
    ----- stdout
    ----- stderr
    error: a stored workflow bad cannot be read: error: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
     --> workflow bad:2:4
      |
    2 |   a: {run: 'echo > reached; [ -e go ] || sleep 60'}
      |    ^

    hint: `laneway doctor` says what else is wrong, and what to do
    ");
    let outcome = place.laneway("doctor");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stdout.contains("set aside since") && outcome.stdout.contains("what to do:"),
        "{outcome}"
    );
    let early = place.laneway(&format!("doctor --release {run}"));
    assert_eq!(early.code, Some(3), "{early}");
    assert!(early.stderr.contains("cannot be read"), "{early}");

    change(&place, "UPDATE workflows SET document = substr(document, 9) WHERE name = 'bad'");
    let released = place.laneway(&format!("doctor --release {}", &run[24..]));
    assert_eq!(released.code, Some(0), "{released}");
    assert!(released.stdout.contains("is out of the quarantine; `laneway resume"), "{released}");
    let outcome = place.laneway(&format!("run --resume {run}"));
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.laneway("doctor").code, Some(0));
    let again = place.laneway(&format!("doctor --release {run}"));
    assert_eq!(again.code, Some(2), "{again}");
}

#[test]
fn a_run_that_cannot_be_read_any_more_while_it_runs_ends_in_words_and_leaves_nothing() {
    let place = Place::with(
        "work.yaml",
        "steps:\n  a: {run: 'echo > reached; until [ -e go ]; do sleep 0.01; done'}\n  b: {needs: [a], run: echo two}\n",
    );
    place.pipe("reached");
    let running = place.spawn("run work.yaml");
    place.read("reached");
    change(&place, "DELETE FROM needs_sets");
    place.write("go", "");
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(3), "{outcome}");
    assert!(outcome.stderr.contains("is set aside: a stored row cannot be read"), "{outcome}");
    assert!(outcome.stderr.contains("`laneway doctor`"), "{outcome}");
    let show = place.laneway("show last");
    assert_eq!(show.code, Some(0), "{show}");
    assert!(show.stdout.contains("set aside:"), "{show}");
    assert_eq!(place.laneway("cancel last").code, Some(3));
    // Nothing comes of it: who waits is told, and does not wait for ever.
    for waits in ["events last --follow", "watch last"] {
        let outcome = place.laneway(waits);
        assert_eq!(outcome.code, Some(3), "{outcome}");
        assert!(outcome.stderr.contains("is set aside"), "{outcome}");
    }
}

#[test]
fn an_event_that_cannot_be_read_is_named_and_the_others_are_shown() {
    let place = Place::with("work.yaml", WORK);
    assert_eq!(place.laneway("run work.yaml").code, Some(0));
    change(&place, "UPDATE events SET name = 'strange' WHERE seq = 4");
    let events = place.laneway("events last");
    assert_eq!(events.code, Some(0), "{events}");
    assert!(events.stderr.contains("warning: event 4 of run"), "{events}");
    assert!(events.stdout.contains("a started") || events.stdout.contains("b succeeded"), "{events}");
    let replay = place.laneway("replay last");
    assert_eq!(replay.code, Some(1), "{replay}");
    assert!(replay.stdout.contains("event 4 of run"), "{replay}");
    let doctor = place.laneway("doctor");
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.stdout.contains("event 4 of run"), "{doctor}");
}

#[test]
fn a_run_goes_on_behind_an_event_that_cannot_be_read() {
    let place = Place::new();
    interrupted(&place, "work.yaml");
    change(&place, "UPDATE events SET body = '[' WHERE seq = 3");
    let outcome = place.laneway("run --resume last");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stderr.contains("event 3 of run"), "{outcome}");
}

#[test]
fn what_is_no_store_is_no_case_for_the_doctor() {
    let place = Place::with("notes.txt", "not a database at all, but long enough to be looked at as one");
    assert_eq!(place.laneway("doctor").code, Some(3));
    assert_eq!(place.laneway("doctor --store notes.txt").code, Some(3));
    assert_eq!(place.laneway("doctor --limit 0").code, Some(2));
}

#[test]
fn a_backup_of_a_run_that_goes_on_can_be_resumed_elsewhere() {
    let place = Place::with(
        "work.yaml",
        "steps:\n  a: {run: 'if mkdir first 2>/dev/null; then echo > reached; until [ -e go ]; do sleep 0.01; done; fi'}\n  b: {needs: [a], run: echo two}\n",
    );
    place.pipe("reached");
    let running = place.spawn("run work.yaml");
    place.read("reached");
    let made = place.laneway("backup copy.tar");
    assert_eq!(made.code, Some(0), "{made}");
    assert!(made.stdout.starts_with("copy.tar written: the store, "), "{made}");
    let again = place.laneway("backup copy.tar");
    assert_snapshot!(again, @r"
    $ laneway backup copy.tar
    exit code 2
    ----- stdout
    ----- stderr
    error: copy.tar is there already
    hint: name a file that is not there yet
    ");
    assert_eq!(place.laneway("restore copy.tar --store copy/laneway.db").code, Some(0));
    let resumed = place.laneway("--store copy/laneway.db run --resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    place.write("go", "");
    assert_eq!(running.wait().code, Some(0), "the one that was copied knows nothing of it");
    for store in ["copy/laneway.db", ".laneway/laneway.db"] {
        assert_eq!(place.laneway(&format!("--store {store} doctor")).code, Some(0));
        assert_eq!(place.laneway(&format!("--store {store} replay last")).code, Some(0));
    }
    assert_eq!(place.laneway("backup nowhere/copy.tar").code, Some(3));
}
