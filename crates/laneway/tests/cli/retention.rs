//! S7: what is kept no longer goes, by hand and by itself; copies of a store, and stores made of copies.

use std::fs;

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::{Place, text, until};

const FLOW: &str =
    "name: flow\nsteps:\n  a: {run: 'echo words; echo content > out.txt', artifacts: [out.txt]}\n";

fn ran(times: usize) -> Place {
    let place = Place::with("flow.yaml", FLOW);
    for _ in 0..times {
        let run = place.laneway("run flow.yaml");
        assert_eq!(run.code, Some(0), "{run}");
    }
    place
}

fn count(place: &Place, dir: &str) -> usize {
    fs::read_dir(place.path(dir)).map_or(0, |entries| {
        entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().starts_with('.')).count()
    })
}

#[test]
fn nothing_goes_unless_somebody_says_what() {
    let place = ran(2);
    assert_snapshot!(place.laneway("prune"), @r"
    $ laneway prune
    exit code 2
    ----- stdout
    ----- stderr
    error: nothing says what may be removed
    hint: give --older-than, --keep or --keep-bytes, or set keep_runs_for, keep_runs or keep_bytes
    ");
    for wrong in ["--older-than 0s", "--older-than soon", "--keep 0", "--keep-bytes 20"] {
        assert_eq!(place.laneway(&format!("prune {wrong}")).code, Some(2), "{wrong}");
    }
    assert_eq!(
        place.laneway("prune --older-than 30d").stdout,
        "0 runs removed, and 0 things that nothing referred to; 0 B freed\n"
    );
}

#[test]
fn old_runs_go_with_their_logs_and_are_only_told_in_a_dry_run() {
    let place = ran(3);
    assert_eq!(count(&place, ".laneway/logs"), 3);
    let told = place.json("prune --keep 1 --dry-run --json");
    assert_eq!(
        (told["dry_run"].as_bool(), told["runs"].as_array().map(Vec::len)),
        (Some(true), Some(2)),
        "{told}"
    );
    assert_eq!(count(&place, ".laneway/logs"), 3);
    let gone = text(&told["runs"][0]["run"]).to_owned();
    let pruned = place.laneway("prune --keep 1");
    assert_eq!(pruned.code, Some(0), "{pruned}");
    assert!(pruned.stdout.contains("flow  succeeded  ended "), "{pruned}");
    assert!(pruned.stdout.contains("2 runs removed, and 0 things"), "{pruned}");
    assert_eq!(count(&place, ".laneway/logs"), 1);
    assert_eq!(place.laneway(&format!("show {gone}")).code, Some(2));
    assert_eq!(place.laneway("show last").code, Some(0), "the newest stays");
    assert_eq!(place.laneway("doctor").code, Some(0));
}

#[test]
fn server_removes_what_it_is_told_to_keep_no_longer() {
    let place = ran(4);
    let mut server = place.spawn("serve --listen 127.0.0.1:0");
    server.wait_for("listening at");
    server.signal(Signal::TERM);
    let left = server.wait();
    assert!(left.stderr.contains("prune_interval 10m") && !left.stderr.contains("keep_runs "), "{left}");
    assert_eq!(count(&place, ".laneway/logs"), 4, "nothing goes by default");
    place.write("laneway.toml", "keep_runs = 2\nprune_interval = \"100ms\"\nkeep_bytes = \"1GiB\"\n");
    let mut server = place.spawn("serve --listen 127.0.0.1:0");
    server.wait_for("listening at");
    until("two runs are left", || count(&place, ".laneway/logs") == 2);
    server.signal(Signal::TERM);
    assert_eq!(server.wait().code, Some(0));
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2));
    place.write("laneway.toml", "keep_bytes = \"much\"\n");
    assert_eq!(place.laneway("runs").code, Some(2));
    fs::remove_file(place.path("laneway.toml")).expect("removed");
    let mut wrong = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    wrong.env("LANEWAY_KEEP_RUNS_FOR", "0s");
    assert_snapshot!(place.outcome("serve --listen 127.0.0.1:0", wrong), @r"
    $ laneway serve --listen 127.0.0.1:0
    exit code 2
    ----- stdout
    ----- stderr
    error: LANEWAY_KEEP_RUNS_FOR is `0s`
    hint: write how long runs are kept, such as 12h or 30d; leave it out to keep them for ever
    ");
}

#[test]
fn copy_has_logs_and_artifacts_and_becomes_a_store_elsewhere() {
    let place = ran(1);
    let made = place.laneway("backup copy.tar");
    assert_eq!(made.code, Some(0), "{made}");
    assert!(made.stdout.starts_with("copy.tar written: the store, 1 log, 1 artifact; "), "{made}");
    let restored = place.laneway("restore copy.tar --store other/laneway.db");
    assert_eq!(restored.code, Some(0), "{restored}");
    assert_eq!(restored.stdout, "other/laneway.db restored: 1 run, 1 log, 1 artifact\n");
    fs::remove_dir_all(place.path(".laneway")).expect("the first one is gone");
    for (line, printed) in [("logs last a", "words\n"), ("doctor", "healthy"), ("artifacts last", "out.txt")]
    {
        let outcome = place.laneway(&format!("--store other/laneway.db {line}"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stdout.contains(printed), "{outcome}");
    }
    assert_snapshot!(place.laneway("restore copy.tar --store other/laneway.db"), @r"
    $ laneway restore copy.tar --store other/laneway.db
    exit code 2
    ----- stdout
    ----- stderr
    error: other/laneway.db is there already
    hint: name a file that is not there yet
    ");
}

#[test]
fn copy_that_is_none_or_is_damaged_is_refused_and_leaves_nothing() {
    let place = ran(1);
    place.laneway("backup copy.tar");
    let mut bytes = fs::read(place.path("copy.tar")).expect("the copy");
    let at = bytes.windows(8).position(|part| part == b"content\n").expect("the artifact is in it");
    bytes[at] ^= 1;
    fs::write(place.path("changed.tar"), &bytes).expect("written");
    bytes[at] ^= 1;
    // Somewhere in the database, behind its head.
    for byte in &mut bytes[20_000..24_000] {
        *byte = 0x55;
    }
    fs::write(place.path("damaged.tar"), &bytes).expect("written");
    let whole = fs::read(place.path("copy.tar")).expect("the copy");
    fs::write(place.path("half.tar"), &whole[..whole.len() / 2]).expect("written");
    // Without its last entry, and without what marks the end of a tar.
    fs::write(place.path("short.tar"), &whole[..whole.len() - 1536]).expect("written");
    place.write("notes.txt", "nothing of the kind");
    for file in [
        "changed.tar",
        "damaged.tar",
        "half.tar",
        "short.tar",
        "notes.txt",
        ".laneway/laneway.db",
        "none.tar",
        "flow.yaml",
    ] {
        let refused = place.laneway(&format!("restore {file} --store other/laneway.db"));
        assert!(matches!(refused.code, Some(2 | 3)), "{refused}");
        assert!(!place.path("other/laneway.db").exists(), "{refused}");
        assert_eq!((count(&place, "other/logs"), count(&place, "other/artifacts")), (0, 0));
    }
    // What is left of another database would be played into this one.
    std::fs::create_dir(place.path("third")).expect("a directory");
    place.write("third/laneway.db-wal", "left");
    let refused = place.laneway("restore copy.tar --store third/laneway.db");
    assert!(refused.code == Some(2) && refused.stderr.contains("laneway.db-wal"), "{refused}");
    assert_eq!(place.laneway("restore copy.tar --store other/laneway.db").code, Some(0));
    let refused = place.laneway("restore copy.tar --store postgres://ada@db/lane");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("pg_restore"), "{refused}");
}

#[test]
fn key_to_the_secrets_is_in_a_copy_only_if_somebody_asks_for_it() {
    let place = Place::with(
        "flow.yaml",
        "secrets: {db: {store: db}}\nsteps:\n  a: {run: 'test \"$DB\" = swordfish', env: {DB: '${{ secrets.db }}'}}\n",
    );
    place.write("value", "swordfish");
    let mut set = place.command(&["secret", "set", "db"]);
    set.stdin(fs::File::open(place.path("value")).expect("the value"));
    let set = place.outcome("secret set db", set);
    assert_eq!(set.code, Some(0), "{set}");
    let without = place.laneway("backup without.tar");
    assert!(without.stderr.contains("the key to 1 secret is not in it"), "{without}");
    let with = place.laneway("backup with.tar --with-secret-key");
    assert!(with.stderr.contains("whoever has the copy can read them"), "{with}");
    let bytes = |file: &str| fs::read(place.path(file)).expect("a copy");
    let key = fs::read(place.path(".laneway/secret.key")).expect("the key");
    let has_key = |file: &str| bytes(file).windows(key.len()).any(|part| part == key);
    assert!(has_key("with.tar") && !has_key("without.tar"));
    let told = place.laneway("restore without.tar --store one/laneway.db");
    assert!(told.stderr.contains("1 secret cannot be opened"), "{told}");
    place.laneway("restore with.tar --store two/laneway.db");
    assert_ne!(place.laneway("--store one/laneway.db run flow.yaml").code, Some(0));
    let run = place.laneway("--store two/laneway.db run flow.yaml");
    assert_eq!(run.code, Some(0), "{run}");
}

#[test]
fn key_of_another_store_is_neither_kept_in_silence_nor_replaced() {
    let place = Place::with("value", "swordfish");
    let set = |store: &str| {
        let mut set = place.command(&["--store", store, "secret", "set", "db"]);
        set.stdin(fs::File::open(place.path("value")).expect("the value"));
        let set = place.outcome("secret set db", set);
        assert_eq!(set.code, Some(0), "{set}");
    };
    set("one/laneway.db");
    set("two/laneway.db");
    assert_eq!(place.laneway("--store one/laneway.db backup copy.tar --with-secret-key").code, Some(0));
    let key = |dir: &str| fs::read(place.path(&format!("{dir}/secret.key"))).expect("a key");
    let other = key("two");
    for file in ["laneway.db", "laneway.db-wal", "laneway.db-shm"] {
        let _ = fs::remove_file(place.path(&format!("two/{file}")));
    }
    let refused = place.laneway("restore copy.tar --store two/laneway.db");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("two/secret.key is another key to secrets"), "{refused}");
    assert!(refused.stderr.contains("nothing was changed"), "{refused}");
    assert_eq!(key("two"), other);
    assert!(!place.path("two/laneway.db").exists());
    fs::write(place.path("two/secret.key"), key("one")).expect("the key that belongs to it");
    let restored = place.laneway("restore copy.tar --store two/laneway.db");
    assert_eq!(restored.code, Some(0), "{restored}");
}

/// Prints the token of its lock.
fn fence_of(place: &Place, store: &str) -> u64 {
    let run = place.laneway(&format!("run locked.yaml --store {store}"));
    assert_eq!(run.code, Some(0), "{run}");
    let printed = place.laneway(&format!("logs last a --store {store}"));
    printed.stdout.trim().parse().unwrap_or_else(|error| panic!("{error}: {printed}"))
}

const LOCKED: &str = "name: locked\nsteps:\n  a: {lock: db, run: 'echo $LANEWAY_FENCE'}\n";

fn tokens_grow_beyond_a_prune(store: &str) {
    let place = Place::with("locked.yaml", LOCKED);
    fence_of(&place, store);
    let gone = text(&place.json(&format!("show last --json --store {store}"))["run"]).to_owned();
    let before = fence_of(&place, store);
    let pruned = place.laneway(&format!("prune --keep 1 --store {store}"));
    assert_eq!(pruned.code, Some(0), "{pruned}");
    assert_eq!(place.laneway(&format!("show {gone} --store {store}")).code, Some(2), "it is gone");
    let next = fence_of(&place, store);
    assert!(next > before, "{next} after {before}");
}

#[test]
fn fencing_tokens_grow_beyond_a_prune_of_runs_with_the_lock() {
    tokens_grow_beyond_a_prune(".laneway/laneway.db");
}

#[test]
fn fencing_tokens_grow_beyond_a_prune_of_runs_with_the_lock_on_postgres() {
    tokens_grow_beyond_a_prune(&crate::postgres::schema());
}

/// A resource has seen tokens that the copy knows nothing of.
#[test]
fn fencing_tokens_of_a_restored_store_are_larger_than_all_before() {
    let place = Place::with("locked.yaml", LOCKED);
    let first = fence_of(&place, ".laneway/laneway.db");
    assert_eq!(place.laneway("backup copy.tar").code, Some(0));
    let last = fence_of(&place, ".laneway/laneway.db");
    assert!(last > first, "{last} after {first}");
    let restored = place.laneway("restore copy.tar --store other/laneway.db");
    assert_eq!(restored.code, Some(0), "{restored}");
    let next = fence_of(&place, "other/laneway.db");
    assert!(next > last, "{next} after {last}");
}
