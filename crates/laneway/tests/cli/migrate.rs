//! Who brings a store that an older program has made to the schema of this one, on both databases: `run`, `worker`,
//! `serve` and `migrate`, and no other command.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::place::{Place, text, until};
use crate::postgres::schema;

/// The stores that the store's own tests keep of every released schema.
const KEPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../laneway-store/tests/stores");

/// Which of them: the oldest.
const OLD: i64 = 11;

/// A store of an older program.
struct Older {
    place: Place,
    store: String,
    is_file: bool,
}

impl Older {
    fn sqlite() -> Self {
        let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
        let file = place.path("laneway.db");
        let dump = std::fs::read_to_string(format!("{KEPT}/schema-{OLD}.sqlite.sql")).expect("a kept store");
        let made = rusqlite::Connection::open(&file).expect("a file");
        made.execute_batch(&dump).expect("the store as it was");
        drop(made);
        Self { store: file.display().to_string(), place, is_file: true }
    }

    fn postgres() -> Self {
        let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
        let store = schema();
        let name = store.rsplit_once("%3D").expect("a schema").1;
        let dump =
            std::fs::read_to_string(format!("{KEPT}/schema-{OLD}.postgres.sql")).expect("a kept store");
        place.write("dump.sql", &dump.replace("laneway_stored", name));
        psql(&store, &["-f", &place.path("dump.sql").to_string_lossy()]);
        Self { store, place, is_file: false }
    }

    fn both() -> [Self; 2] {
        [Self::sqlite(), Self::postgres()]
    }

    fn schema(&self) -> i64 {
        if self.is_file {
            let store = rusqlite::Connection::open(&self.store).expect("the store");
            return store.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
        }
        psql(&self.store, &["-Atc", "SELECT max(version) FROM laneway_migrations"]).parse().expect("a number")
    }

    fn laneway(&self, line: &str) -> crate::place::Outcome {
        self.place.laneway(&format!("{line} --store {}", self.store))
    }
}

fn psql(store: &str, args: &[&str]) -> String {
    let output = Command::new("psql").args(["-q", "-v", "ON_ERROR_STOP=1", store]).args(args).output();
    let output = output.expect("psql runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
}

/// What this program knows, by a store that it makes itself.
fn known() -> i64 {
    let place = Place::new();
    let made = place.laneway("migrate --store new/laneway.db");
    assert!(made.stdout.starts_with("made store new/laneway.db with schema "), "{made}");
    assert!(Path::new(&place.path("new/.gitignore")).exists());
    let again = place.json("migrate --json --store new/laneway.db");
    assert_eq!(again["from"], again["to"], "{again}");
    again["to"].as_i64().expect("a number")
}

#[test]
fn commands_that_read_or_submit_leave_an_older_store_as_it_is_and_name_the_remedy() {
    for older in Older::both() {
        for line in [
            "runs",
            "show last",
            "nodes",
            "doctor",
            "events last",
            "cancel last",
            "retry last",
            "submit flow.yaml",
            "apply flow.yaml",
            "limit set x 2",
        ] {
            let refused = older.laneway(line);
            assert_ne!(refused.code, Some(0), "{refused}");
            assert!(
                refused.stderr.contains("was written by an older Laneway: its schema is 11"),
                "{refused}"
            );
            assert!(refused.stderr.contains("hint: `laneway migrate` brings it there"), "{refused}");
            assert_eq!(older.schema(), OLD, "{refused}");
        }
    }
}

#[test]
fn migrate_brings_an_older_store_to_the_schema_of_this_program_and_says_so() {
    let known = known();
    for older in Older::both() {
        let migrated = older.laneway("migrate");
        assert_eq!(migrated.code, Some(0), "{migrated}");
        let said = format!("from schema {OLD} to {known}");
        assert!(
            migrated.stdout.starts_with("migrated store ") && migrated.stdout.contains(&said),
            "{migrated}"
        );
        assert_eq!(older.schema(), known);
        let again = older.laneway("migrate");
        assert!(again.stdout.contains(&format!("has schema {known} already")), "{again}");
        let runs = older.laneway("runs");
        assert_eq!(runs.code, Some(0), "{runs}");
    }
}

#[test]
fn run_worker_and_serve_migrate_an_older_store_and_say_so() {
    let known = known();
    let said = format!("from schema {OLD} to {known}");
    for older in Older::both() {
        let run = older.laneway("run flow.yaml");
        assert_eq!(run.code, Some(0), "{run}");
        assert!(run.stderr.contains("migrated store ") && run.stderr.contains(&said), "{run}");
        assert_eq!(older.schema(), known);
        assert!(!older.laneway("run flow.yaml").stderr.contains("migrated"), "once");
    }
    for command in ["worker", "serve --listen 127.0.0.1:0"] {
        for older in Older::both() {
            let mut node = older.place.spawn(&format!("{command} --store {}", older.store));
            node.wait_for_note(&said);
            assert_eq!(older.schema(), known, "{command}");
            until("signals that are heard", || node.hears(Signal::TERM));
            node.signal(Signal::TERM);
            let ended = node.wait();
            assert_eq!(ended.code, Some(0), "{ended}");
        }
    }
}

/// A role of the tests' server that may use what is in a schema, and make nothing in it.
fn role_without_create(store: &str) -> String {
    let name = store.rsplit_once("%3D").expect("a schema").1;
    let role = format!("node_{name}");
    psql(
        store,
        &[
            "-c",
            &format!(
                "CREATE ROLE {role} LOGIN;
             GRANT USAGE ON SCHEMA {name} TO {role};
             GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO {role};
             ALTER DEFAULT PRIVILEGES IN SCHEMA {name}
                 GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {role};
             ALTER DEFAULT PRIVILEGES IN SCHEMA {name} GRANT USAGE ON SEQUENCES TO {role};"
            ),
        ],
    );
    let (_, rest) = store.split_once('@').expect("a URL names a role");
    format!("postgres://{role}@{rest}")
}

#[test]
fn node_whose_role_may_change_no_schema_works_on_a_migrated_store() {
    let older = Older::postgres();
    let store = role_without_create(&older.store);
    let refused = older.place.laneway(&format!("worker --store {store}"));
    assert_ne!(refused.code, Some(0), "{refused}");
    assert!(refused.stderr.contains("this role has no right to do so"), "{refused}");
    assert!(
        refused.stderr.contains("hint: use `laneway migrate` with a role that owns the tables"),
        "{refused}"
    );
    assert_eq!(older.schema(), OLD);
    let migrated = older.laneway("migrate");
    assert_eq!(migrated.code, Some(0), "{migrated}");
    let worker = older.place.spawn(&format!("worker --store {store}"));
    let submitted = older.place.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    until("the end of the run", || {
        text(&older.place.json(&format!("show last --json --store {store}"))["status"]) == "succeeded"
    });
    let run = older.place.laneway(&format!("run flow.yaml --store {store}"));
    assert_eq!(run.code, Some(0), "{run}");
    for line in ["runs", "nodes", "doctor", "prune --older-than 1s", "logs last a"] {
        let outcome = older.place.laneway(&format!("{line} --store {store}"));
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
}
