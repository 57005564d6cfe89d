//! What SQLite's file can be instead of a store, and how each is told.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};

use laneway_store::contract::*;
use laneway_store::model::CancelMode;
use laneway_store::sqlite::SqliteStore;
use laneway_store::{Error, Open};
use tempfile::TempDir;

use crate::harness::{Database, Place, block_on, command, flat, succeeded};

fn dir() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn refusal(path: &Path, mode: Open) -> Error {
    let refusal = SqliteStore::open(path, mode).expect_err("not a store that can be used");
    assert!(refusal.is_about_the_store());
    refusal
}

#[test]
fn store_that_is_not_there_is_missing_or_made_as_asked() {
    let dir = dir();
    let path = dir.path().join("deep").join("laneway.db");
    assert!(matches!(refusal(&path, Open::Existing), Error::Missing { .. }));
    assert!(!path.exists() && !dir.path().join("deep").exists(), "asking makes nothing");
    let made = SqliteStore::open(&path, Open::Create).expect("a new store");
    assert_eq!(fs::read_to_string(dir.path().join("deep/.gitignore")).expect("a file"), "*\n");
    let again = SqliteStore::open(&path, Open::Existing).expect("the same store");
    assert_eq!(made.instance(), again.instance());
}

#[test]
fn directory_that_was_there_gets_no_gitignore() {
    let dir = dir();
    SqliteStore::open(&dir.path().join("laneway.db"), Open::Create).expect("a new store");
    assert!(!dir.path().join(".gitignore").exists());
}

#[test]
fn file_that_is_no_database_is_refused_and_left_as_it_is() {
    for content in ["steps:\n  a: {run: make}\n".repeat(500), "short".to_owned()] {
        let dir = dir();
        let path = dir.path().join("flow.yaml");
        fs::write(&path, &content).expect("a file");
        for mode in [Open::Create, Open::Existing] {
            assert!(matches!(refusal(&path, mode), Error::NotAStore { .. }));
        }
        assert_eq!(fs::read_to_string(&path).expect("the file"), content);
        assert_eq!(fs::read_dir(dir.path()).expect("its directory").count(), 1, "nothing was put beside it");
    }
}

#[test]
fn empty_file_is_no_store_unless_one_is_to_be_made() {
    let dir = dir();
    let path = dir.path().join("laneway.db");
    fs::write(&path, "").expect("a file");
    assert!(matches!(refusal(&path, Open::Existing), Error::NotAStore { .. }));
    assert_eq!(fs::metadata(&path).expect("the file").len(), 0, "it was left as it is");
    SqliteStore::open(&path, Open::Create).expect("a store in its place");
}

#[test]
fn database_of_another_program_is_refused_and_left_as_it_is() {
    let dir = dir();
    let path = dir.path().join("other.db");
    let other = rusqlite::Connection::open(&path).expect("a database");
    other
        .execute_batch("CREATE TABLE contacts (name TEXT); INSERT INTO contacts VALUES ('ada')")
        .expect("rows");
    drop(other);
    let before = fs::read(&path).expect("the file");
    for mode in [Open::Create, Open::Existing] {
        assert!(matches!(refusal(&path, mode), Error::NotAStore { .. }));
    }
    assert_eq!(fs::read(&path).expect("the file"), before);
}

#[test]
fn store_of_a_newer_program_is_refused_with_both_numbers() {
    let dir = dir();
    let path = dir.path().join("laneway.db");
    drop(SqliteStore::open(&path, Open::Create).expect("a new store"));
    let newer = rusqlite::Connection::open(&path).expect("the file");
    newer.pragma_update(None, "user_version", 999).expect("a newer schema");
    drop(newer);
    let refusal = refusal(&path, Open::Create);
    assert!(matches!(refusal, Error::Newer { found: 999, known: 1.., .. }), "{refusal}");
}

#[test]
fn directory_in_place_of_the_file_is_refused() {
    let dir = dir();
    let refusal = refusal(dir.path(), Open::Create);
    assert!(refusal.to_string().contains("is a directory"), "{refusal}");
}

#[test]
fn address_of_an_unknown_kind_is_refused() {
    let refusal = laneway_store::open("redis://host", Open::Create).expect_err("not a store of ours");
    assert!(matches!(refusal, Error::Address { .. }), "{refusal}");
    let dir = dir();
    let address = format!("sqlite://{}", dir.path().join("laneway.db").display());
    laneway_store::open(&address, Open::Create).expect("a store by its URL");
}

#[test]
fn several_processes_that_open_a_new_file_at_once_make_one_store() {
    for round in 0..20 {
        let place = Arc::new(Place::new(Database::Sqlite));
        let together = Arc::new(Barrier::new(6));
        let openers: Vec<_> = (0..6)
            .map(|_| {
                let (place, together) = (Arc::clone(&place), Arc::clone(&together));
                std::thread::spawn(move || {
                    together.wait();
                    SqliteStore::open(&place.path(), Open::Create).map(|store| store.instance())
                })
            })
            .collect();
        let made: Result<Vec<_>, Error> =
            openers.into_iter().map(|opener| opener.join().expect("a thread that ends")).collect();
        let mut made = made.unwrap_or_else(|error| panic!("round {round}: {error}"));
        made.dedup();
        assert_eq!(made.len(), 1, "round {round}: all see the same store");
    }
}

/// Names the directory to the process that may not write it.
const READ_ONLY: &str = "LANEWAY_TEST_READ_ONLY";

/// The superuser may write everywhere, so that a process of another user has to ask.
#[test]
fn directory_that_cannot_be_written_is_told_as_such() {
    if let Some(path) = std::env::var_os(READ_ONLY) {
        return look_at_read_only(&PathBuf::from(path));
    }
    let place = dir();
    let (empty, full) = (place.path().join("empty"), place.path().join("full"));
    fs::create_dir(&empty).expect("a directory");
    fs::create_dir(&full).expect("a directory");
    drop(SqliteStore::open(&full.join("laneway.db"), Open::Create).expect("a new store"));
    let program = place.path().join("program");
    fs::copy(std::env::current_exe().expect("this program"), &program).expect("a copy that all may run");
    let mode = |path: &Path, bits| {
        fs::set_permissions(path, fs::Permissions::from_mode(bits)).expect("a change of mode");
    };
    mode(&full.join("laneway.db"), 0o444);
    for readable in [&empty, &full] {
        mode(readable, 0o555);
    }
    mode(&program, 0o755);
    mode(place.path(), 0o755);
    let mut child = command(&program);
    child
        .args(["--exact", "files::directory_that_cannot_be_written_is_told_as_such"])
        .env(READ_ONLY, place.path())
        .current_dir("/");
    if fs::metadata(place.path()).expect("the directory").uid() == 0 {
        child.uid(65_534).gid(65_534);
    }
    let output = child.output().expect("a process");
    for writable in [&empty, &full] {
        mode(writable, 0o755);
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn look_at_read_only(place: &Path) {
    for path in
        [place.join("empty/laneway.db"), place.join("empty/new/laneway.db"), place.join("full/laneway.db")]
    {
        let refusal = refusal(&path, Open::Create);
        assert!(matches!(refusal, Error::ReadOnly { .. }), "{}: {refusal}", path.display());
        assert!(refusal.hint().is_some_and(|hint| hint.contains("writable")));
    }
}

#[test]
fn what_was_acknowledged_is_there_after_the_store_was_closed() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(3, 3)).await;
        node.work(run, |_| succeeded()).await;
        let before = node.state(run).await;
        drop(node);
        let again = place.open();
        assert_eq!(again.run_state(run).await.expect("a run"), before);
        crate::audit::check(&*again, run).await;
    });
}

#[test]
fn sessions_of_a_copied_store_are_dead_in_the_copy() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(2, 2)).await;
        node.begin(run, "s0").await;
        let copy = dir();
        let path = copy.path().join("laneway.db");
        let file = rusqlite::Connection::open(place.path()).expect("the file");
        file.execute("VACUUM INTO ?1", [path.display().to_string()]).expect("a copy");
        let store = SqliteStore::open(&path, Open::Existing).expect("the copy");
        let reaped = store.reap().await.expect("an answer");
        assert_eq!((reaped.nodes.as_slice(), reaped.tasks), (&["one".to_owned()][..], 1));
        crate::audit::check(&store, run).await;
        assert_eq!(node.store.reap().await.expect("an answer").tasks, 0, "it lives where it is");
    });
}

#[test]
fn store_whose_file_was_removed_or_replaced_acknowledges_nothing() {
    let place = Place::new(Database::Sqlite);
    block_on(async {
        let node = place.node("one").await;
        let run = node.submit(&flat(2, 2)).await;
        let away = place.path().with_extension("away");
        fs::rename(place.path(), &away).expect("the file");
        let refusal =
            node.store.cancel(run, "ada", CancelMode::CleanUp).await.expect_err("nobody could find it again");
        assert!(matches!(refusal, Error::Closed { .. }) && refusal.is_about_the_store(), "{refusal}");
        assert!(!place.path().exists(), "no other file takes its place");
        fs::write(place.path(), "").expect("a file");
        let refusal =
            node.store.cancel(run, "ada", CancelMode::CleanUp).await.expect_err("it is another file");
        assert!(matches!(refusal, Error::Closed { .. }), "{refusal}");
    });
}
