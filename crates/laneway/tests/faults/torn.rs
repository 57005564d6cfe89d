//! A write-ahead log that ends in the middle, or holds what nobody wrote: everything before that place is there,
//! nothing of what comes behind it is half there, and the run can be resumed.

use std::fs;
use std::path::Path;

use rusqlite::Connection;

use crate::place::{Dice, Place, text, until};

const STEPS: usize = 40;
const TEARS: usize = 30;

/// What SQLite's file format says of a WAL: a header, then frames of a page with a header each.
const HEADER: u64 = 32;
const FRAME: u64 = 24 + 4096;

/// The store of a run that was killed, with its WAL as it was then.
fn killed() -> Place {
    let place = Place::new();
    place.write_workflow(STEPS, "sleep 0.01");
    let running = place.spawn(&["run", "work.yaml"]);
    until("half of it has run", || place.started() >= STEPS / 2);
    running.kill();
    place
}

/// A copy of the file and its WAL, in a directory of its own.
fn copy_of(place: &Place, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    fs::copy(&place.store, to.join("laneway.db")).expect("the file");
    fs::copy(place.store.with_file_name("laneway.db-wal"), to.join("laneway.db-wal")).expect("its WAL");
}

/// Every event of the store, in order. Opening it is SQLite's own recovery.
fn events(store: &Path) -> Vec<(i64, i64, String)> {
    let connection = Connection::open(store).expect("a database");
    let sound: String =
        connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("a check");
    assert_eq!(sound, "ok");
    let mut read =
        connection.prepare("SELECT run_no, seq, body FROM events ORDER BY run_no, seq").expect("events");
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).expect("events");
    rows.collect::<rusqlite::Result<_>>().expect("events")
}

fn set_length(wal: &Path, length: u64) {
    fs::File::options().write(true).open(wal).and_then(|file| file.set_len(length)).expect("cut");
}

#[test]
fn everything_before_a_tear_in_the_wal_is_there_and_the_run_goes_on() {
    let place = killed();
    let elsewhere = tempfile::tempdir().expect("a directory");
    let whole = elsewhere.path().join("whole");
    copy_of(&place, &whole);
    let length = fs::metadata(whole.join("laneway.db-wal")).expect("a WAL").len();
    assert!(length > HEADER + 20 * FRAME, "there is something to tear: {length}");
    let everything = events(&whole.join("laneway.db"));
    let mut dice = Dice::new();
    let mut lengths = Vec::new();
    for tear in 0..TEARS {
        let offset = dice.below(length);
        let frames = offset.saturating_sub(HEADER) / FRAME;
        // What was on disk before that place: a WAL that ends with the frame before it.
        let before = elsewhere.path().join(format!("{tear}.before"));
        copy_of(&place, &before);
        set_length(&before.join("laneway.db-wal"), if offset < HEADER { 0 } else { HEADER + frames * FRAME });
        let expected = events(&before.join("laneway.db"));

        let torn = elsewhere.path().join(format!("{tear}.torn"));
        copy_of(&place, &torn);
        let (store, wal) = (torn.join("laneway.db"), torn.join("laneway.db-wal"));
        if tear % 2 == 0 {
            set_length(&wal, offset);
        } else {
            let mut bytes = fs::read(&wal).expect("the WAL");
            bytes[usize::try_from(offset).expect("small")] ^= 1 << dice.below(8);
            fs::write(&wal, bytes).expect("the WAL");
        }
        let copied = Place::with_store(store.clone());
        let doctor = copied.laneway(&["doctor"]);
        assert_eq!(doctor.status.code(), Some(0), "offset {offset}: {}{}", text(&doctor), copied.said());
        let found = events(&store);
        assert_eq!(found, expected, "offset {offset} of {length}");
        assert_eq!(found[..], everything[..found.len()], "a beginning of the history");
        lengths.push((frames, found.len()));
        if tear % 10 == 0 && !found.is_empty() {
            let resumed = copied.laneway(&["run", "--resume", "last"]);
            assert_eq!(resumed.status.code(), Some(0), "offset {offset}: {}", copied.said());
            copied.assert_sound(STEPS);
        }
    }
    lengths.sort_unstable();
    assert!(lengths.is_sorted_by_key(|(_, count)| *count), "later tears keep more: {lengths:?}");
    assert!(lengths.last() > lengths.first());
}

#[test]
fn what_steps_were_started_for_is_in_the_store_after_a_kill() {
    let place = killed();
    let (starts, _) = place.ledger();
    let connection = Connection::open(&place.store).expect("a database");
    for step in starts.keys() {
        let position: i64 = step[1..].parse().expect("a number");
        let attempt: i64 = connection
            .query_row("SELECT attempt FROM tasks WHERE position = ?1", [position], |row| row.get(0))
            .expect("a task");
        assert!(attempt >= 1, "{step} was claimed before it started");
    }
}

#[test]
fn a_plain_copy_of_a_store_in_use_opens_or_is_refused_in_words() {
    let place = Place::new();
    place.write_workflow(STEPS, "sleep 0.01");
    let elsewhere = tempfile::tempdir().expect("a directory");
    let mut running = place.spawn(&["run", "work.yaml"]);
    until("a step has run", || place.started() > 0);
    let mut copies = 0;
    until("the run has ended", || {
        let to = elsewhere.path().join(copies.to_string());
        fs::create_dir_all(&to).expect("a directory");
        fs::copy(&place.store, to.join("laneway.db")).expect("the file");
        // It is gone when the run has just ended.
        let _ = fs::copy(place.store.with_file_name("laneway.db-wal"), to.join("laneway.db-wal"));
        copies += 1;
        copies == 20 || running.has_ended()
    });
    for copy in 0..copies {
        let copied = Place::with_store(elsewhere.path().join(copy.to_string()).join("laneway.db"));
        let doctor = copied.laneway(&["doctor"]);
        assert!(matches!(doctor.status.code(), Some(0 | 1 | 3)), "{:?}: {}", doctor.status, copied.said());
        assert!(!copied.said().contains("panicked"), "{}", copied.said());
    }
    assert_eq!(running.wait(), Some(0), "{}", place.said());
}
