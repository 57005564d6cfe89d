//! Where a store in a file keeps its logs, artifacts and keys: two stores in one directory leave
//! each other alone, and a store of an earlier version goes on with what lies beside it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::Signal;

use crate::place::{Place, text, until};

/// Executed, it leaves a mark, a log and an artifact.
const FLOW: &str = r#"
name: flow
steps:
  a:
    run: 'echo x >> marks; echo words; echo content > out.txt'
    artifacts: [out.txt]
    cache: {key: one}
"#;

fn ok(place: &Place, line: &str) -> String {
    let outcome = place.laneway(line);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    outcome.stdout
}

fn names(place: &Place, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(dir)).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort_unstable();
    names
}

fn marks(place: &Place) -> usize {
    place.read("marks").lines().count()
}

#[test]
fn two_stores_in_one_directory_leave_each_other_alone() {
    let place = Place::with("flow.yaml", FLOW);
    for store in ["one.db", "two.db"] {
        ok(&place, &format!("run flow.yaml --store {store}"));
    }
    assert_eq!(marks(&place), 2, "each has a cache of its own");
    let beside = names(&place, "");
    assert!(beside.contains(&"one.db.d".to_owned()), "{beside:?}");
    assert!(!beside.iter().any(|name| ["logs", "artifacts", "sessions"].contains(&&**name)), "{beside:?}");
    for store in ["one.db", "two.db"] {
        let mode = fs::metadata(place.path(&format!("{store}.d"))).expect("a directory").permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(1));
        assert_eq!(ok(&place, &format!("logs last a --store {store}")), "words\n");
        assert_eq!(names(&place, &format!("{store}.d/artifacts")).len(), 1);
        let doctor = ok(&place, &format!("doctor --store {store}"));
        assert!(doctor.contains("healthy (looked at 1 run)"), "nothing of the other is a leftover: {doctor}");
    }
    ok(&place, "run flow.yaml --store one.db");
    assert_eq!(marks(&place), 2, "one.db has a result to take");
    ok(&place, "cache clear --store one.db");
    ok(&place, "prune --keep 1 --store one.db");
    let logs = ["one.db.d/logs", "two.db.d/logs"].map(|dir| names(&place, dir).len());
    assert_eq!(logs, [0, 1], "the run that is left of one.db took a result and printed nothing");
    assert_eq!(ok(&place, "logs last a --store two.db"), "words\n");
    ok(&place, "run flow.yaml --store two.db");
    assert_eq!(marks(&place), 2, "the result of two.db is there");
}

#[test]
fn keys_and_tokens_lie_in_the_directory_of_their_store() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}");
    let mut set = place.command(&["secret", "set", "db", "--store", "one.db"]);
    let mut set = set.stdin(Stdio::piped()).spawn().expect("the program starts");
    std::io::Write::write_all(&mut set.stdin.take().expect("a pipe"), b"swordfish").expect("written");
    assert!(set.wait().expect("it ends").success());
    let mut server = place.spawn("serve --listen 127.0.0.1:0 --store one.db");
    server.wait_for("listening at");
    until("a token", || place.path("one.db.d/admin.token").exists());
    assert!(place.path("one.db.d/secret.key").exists());
    let applied = ok(&place, "apply flow.yaml --store one.db");
    assert!(applied.contains("with 1 file"), "nothing of the store is packed: {applied}");
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    let beside = names(&place, "");
    assert!(!beside.iter().any(|name| name == "admin.token" || name == "secret.key"), "{beside:?}");
}

/// A store with one run, with its files where earlier versions put them.
fn earlier() -> Place {
    let place = Place::with("flow.yaml", FLOW);
    ok(&place, "run flow.yaml --store old.db");
    for dir in ["logs", "artifacts", "sessions"] {
        fs::rename(place.path(&format!("old.db.d/{dir}")), place.path(dir)).expect("moved");
    }
    fs::remove_dir_all(place.path("old.db.d")).expect("removed");
    let database = rusqlite::Connection::open(place.path("old.db")).expect("the store");
    assert_eq!(database.execute("DELETE FROM meta WHERE key = 'data_dir'", []).expect("deleted"), 1);
    place
}

#[test]
fn store_of_an_earlier_version_goes_on_with_what_lies_beside_it() {
    let place = earlier();
    assert_eq!(ok(&place, "logs last a --store old.db"), "words\n");
    let again = place.laneway("run flow.yaml --store old.db");
    assert_eq!(again.code, Some(0), "{again}");
    let note = "an earlier version made old.db: its logs, artifacts and scratch files stay in .";
    assert_eq!(again.stderr.matches(note).count(), 1, "{again}");
    assert_eq!(marks(&place), 1, "its results are there");
    assert_eq!((names(&place, "logs").len(), place.path("old.db.d").exists()), (1, false));
    let doctor = ok(&place, "doctor --store old.db");
    assert!(doctor.contains("an earlier version made it") && doctor.contains("old.db.d"), "{doctor}");
    // A new store beside it keeps to itself, and leaves the files of the old one alone.
    ok(&place, "run flow.yaml --store new.db");
    ok(&place, "prune --keep 1 --store new.db");
    let first = place.json("runs --json --store old.db")[1]["run"].clone();
    assert_eq!(ok(&place, &format!("logs {} a --store old.db", text(&first))), "words\n");
}

#[test]
fn copy_of_a_store_of_an_earlier_version_keeps_its_files_in_its_own_directory() {
    let place = earlier();
    ok(&place, "backup copy.tar --store old.db");
    ok(&place, "restore copy.tar --store new.db");
    assert_eq!(ok(&place, "logs last a --store new.db"), "words\n");
    assert_eq!((names(&place, "new.db.d/logs").len(), names(&place, "new.db.d/artifacts").len()), (1, 1));
    assert!(ok(&place, "doctor --store new.db").contains("healthy (looked at 1 run)"));
    ok(&place, "restore copy.tar --store other/laneway.db");
    assert_eq!(names(&place, "other/logs").len(), 1, "that name keeps its files beside it");
    let run = place.json("show last --json --store new.db");
    assert_eq!(text(&run["status"]), "succeeded");
}
