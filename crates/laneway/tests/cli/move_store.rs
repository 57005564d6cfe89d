//! `laneway move`: a store in a file goes on in Postgres with everything it had; a store in use is
//! refused, and a move that is killed loses nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;

/// Ends at once, with a log, an artifact and a result for the cache.
const DONE: &str = "
name: done
steps:
  a: {run: 'echo x >> marks; echo words; echo content > out.txt', artifacts: [out.txt], cache: {key: one}}
";

/// Waits half-way, with files of the step before, a limit, a lock and items.
const WAITS: &str = "
name: waits
limits: {warehouse: 1}
steps:
  make: {run: 'echo made > file; echo ''{\"list\": [1, 2, 3]}'' > $LANEWAY_OUTPUT'}
  ask:  {needs: make, wait: {signal: go}}
  each: {needs: [make, ask], for_each: \"${{ steps.make.output.list }}\", run: 'test -e file', limits: [warehouse]}
  last: {needs: each, lock: db/orders, run: 'cat file'}
";

fn ok(place: &Place, line: &str) -> String {
    let outcome = place.laneway(line);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    outcome.stdout
}

fn run_of(place: &Place, line: &str) -> String {
    let submitted: Value = place.json(&format!("{line} --json"));
    text(&submitted["run"]).to_owned()
}

fn status(place: &Place, run: &str, target: &str) -> String {
    text(&place.json(&format!("show {run} --json {target}"))["status"]).to_owned()
}

fn worker(place: &Place, target: &str) -> Running {
    let worker = place.spawn(&format!("worker --node-address one --shutdown-grace 1s {target}"));
    until("a node", || place.laneway(&format!("nodes --json {target}")).stdout.contains("\"one\""));
    worker
}

fn stop(worker: Running) {
    worker.signal(Signal::TERM);
    let ended = worker.wait();
    assert_eq!(ended.code, Some(0), "{ended}");
}

/// A psql session that holds what it took until it is dropped.
struct Session {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Session {
    fn new(store: &str) -> Self {
        let mut process = Command::new("psql")
            .args(["-qAt", "-v", "ON_ERROR_STOP=1", store])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("psql runs");
        let (input, output) = (process.stdin.take(), process.stdout.take());
        Self { process, input: input.expect("a pipe"), output: BufReader::new(output.expect("a pipe")) }
    }

    /// Says statements of which the last one answers with one line.
    fn ask(&mut self, sql: &str) -> String {
        writeln!(self.input, "{sql}").expect("written");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        line.trim().to_owned()
    }

    /// Waits until another session waits for an advisory lock.
    fn wait_for_a_waiter(&mut self) {
        until("a session that waits for the lock", || {
            self.ask(&format!(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {};",
                key()
            )) == "1"
        });
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The advisory lock of this test: the tests share a server, and each is a process.
fn key() -> u32 {
    std::process::id()
}

/// Has a table of the target wait for an advisory lock, which the session holds, before a change.
fn hold(session: &mut Session, change: &str, table: &str) {
    let said = session.ask(&format!(
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN PERFORM pg_advisory_xact_lock({key}); RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END; END$$; \
         CREATE TRIGGER hold BEFORE {change} ON {table} FOR EACH ROW EXECUTE FUNCTION hold(); \
         DO $$BEGIN PERFORM pg_advisory_lock({key}); END$$; SELECT 'held';",
        key = key()
    ));
    assert_eq!(said, "held");
}

fn release(session: &mut Session, table: &str) {
    let said = session.ask(&format!(
        "DROP TRIGGER hold ON {table}; DROP FUNCTION hold(); \
         DO $$BEGIN PERFORM pg_advisory_unlock({}); END$$; SELECT 'released';",
        key()
    ));
    assert_eq!(said, "released");
}

#[test]
fn moved_store_goes_on_with_everything_it_had() {
    let (place, store) = (Place::with("done.yaml", DONE), schema());
    place.write("waits.yaml", WAITS);
    place.write("bad.yaml", "name: bad\nsteps: {a: {run: 'test -e mended'}}\n");
    place.write("one.yaml", "name: one\nmax_runs: 1\nsteps: {a: {run: 'sleep 0.1'}}\n");
    place.write("nightly.yaml", "name: nightly\nschedule: {cron: '0 2 1 1 *'}\nsteps: {a: {run: 'true'}}\n");
    ok(&place, "run done.yaml");
    let done = text(&place.json("show last --json")["run"]).to_owned();
    assert_eq!(place.laneway("run bad.yaml").code, Some(1));
    let bad = text(&place.json("show last --json")["run"]).to_owned();
    ok(&place, "apply nightly.yaml");
    ok(&place, "limit set printer 3");
    ok(&place, "token create ci --role viewer");
    let first = worker(&place, "");
    let waits = run_of(&place, "submit waits.yaml");
    until("a step that waits", || {
        place.json(&format!("show {waits} --json"))["tasks"]
            .as_array()
            .is_some_and(|tasks| tasks.iter().any(|task| task["step"] == "ask" && task["status"] == "parked"))
    });
    stop(first);
    let paused = run_of(&place, "submit done.yaml");
    ok(&place, &format!("pause {paused}"));
    let (first, second) = (run_of(&place, "submit one.yaml"), run_of(&place, "submit one.yaml"));
    assert_eq!(status(&place, &second, ""), "queued");
    let events = |run: &str, target: &str| ok(&place, &format!("events {run} --json {target}"));
    let before: Vec<String> = [&done, &bad, &waits, &paused].map(|run| events(run, "")).into();

    let moved = place.laneway(&format!("move --to {store}"));
    assert_eq!(moved.code, Some(0), "{moved}");
    assert!(moved.stdout.starts_with("moved .laneway/laneway.db to postgres://"), "{moved}");
    assert!(moved.stdout.contains("6 runs, ") && moved.stdout.contains(" 1 artifact; every run"), "{moved}");

    let refused = place.laneway("runs");
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.stderr.contains("error: .laneway/laneway.db was moved to postgres://"), "{refused}");
    assert!(refused.stderr.contains(&format!("use --store {store};")), "it can be typed: {refused}");
    let target = format!("--store {store}");
    let after: Vec<String> = [&done, &bad, &waits, &paused].map(|run| events(run, &target)).into();
    assert_eq!(after, before);
    assert_eq!(ok(&place, &format!("logs {done} a {target}")), "words\n");
    ok(&place, &format!("artifacts {done} a --get out.txt --to got {target}"));
    assert!(place.path("got").exists());
    assert!(ok(&place, &format!("limit list {target}")).contains("printer"));
    assert!(ok(&place, &format!("schedule list {target}")).contains("nightly"));
    assert!(ok(&place, &format!("token list {target}")).contains("ci"));
    assert!(ok(&place, &format!("doctor {target}")).contains("healthy"));

    let second_worker = worker(&place, &target);
    ok(&place, &format!("resume {paused} {target}"));
    ok(&place, &format!("signal {waits} ask go {target}"));
    place.write("mended", "");
    ok(&place, &format!("retry {bad} {target}"));
    for run in [&waits, &paused, &first, &second, &bad] {
        until("the end of the run", || status(&place, run, &target) == "succeeded");
    }
    assert_eq!(ok(&place, &format!("logs {waits} last {target}")), "made\n");
    let fresh = run_of(&place, &format!("submit done.yaml {target}"));
    until("the end of a new run", || status(&place, &fresh, &target) == "succeeded");
    stop(second_worker);
    for run in [&done, &waits, &paused, &second] {
        ok(&place, &format!("replay {run} {target}"));
    }
    assert!(ok(&place, &format!("doctor {target}")).contains("healthy"));
}

#[test]
fn store_that_is_used_is_refused_and_names_who_uses_it() {
    let (place, store) = (Place::with("flow.yaml", "steps: {a: {run: 'true'}}"), schema());
    ok(&place, "run flow.yaml");
    let worker = worker(&place, "");
    let refused = place.laneway(&format!("move --to {store}"));
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains(&format!("it is in use by one (process {})", worker.id())), "{refused}");
    assert!(refused.stderr.contains("hint: stop them"), "{refused}");
    stop(worker);
    ok(&place, &format!("move --to {store}"));
    let again = place.laneway(&format!("move --to {store}"));
    assert!(again.code == Some(3) && again.stderr.contains("was moved to"), "{again}");
    // Neither a worker nor a run starts there any more, until the move is taken back.
    assert_eq!(place.laneway("run flow.yaml").code, Some(3));
    assert_eq!(ok(&place, "move --undo"), ".laneway/laneway.db can be used again\n");
    ok(&place, "run flow.yaml");
    let none = place.laneway("move --undo");
    assert!(none.code == Some(2) && none.stderr.contains("it was not moved"), "{none}");
    // Its target has the first runs.
    let full = place.laneway(&format!("move --to {store}"));
    assert_eq!(full.code, Some(2), "{full}");
    assert!(full.stderr.contains("it is not empty: there are rows in "), "{full}");
}

#[test]
fn what_is_no_move_is_refused_in_words() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}");
    ok(&place, "run flow.yaml");
    for (line, said) in [
        ("move --to other.db", "`laneway backup` and `laneway restore`"),
        ("move --to postgres://ada:secret@db/lane", "can read the password in --to"),
        ("move --to postgres://db/lane --store postgres://db/other", "only a file can be moved"),
        ("move", "--to <URL>"),
    ] {
        let refused = place.laneway(line);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(said), "{refused}");
    }
    ok(&place, "runs");
}

#[test]
fn move_that_is_killed_while_it_copies_leaves_both_sides_as_they_were() {
    let (place, store) = (Place::with("done.yaml", DONE), schema());
    ok(&place, "run done.yaml");
    ok(&place, &format!("migrate --store {store}"));
    let mut session = Session::new(&store);
    hold(&mut session, "INSERT", "events");
    let moving = place.spawn(&format!("move --to {store}"));
    session.wait_for_a_waiter();
    // Nobody starts meanwhile: the move holds the lock that every start needs.
    let started = place.spawn("run done.yaml");
    moving.signal(Signal::KILL);
    moving.wait();
    assert_eq!(started.wait().code, Some(0));
    release(&mut session, "events");
    assert_eq!(place.json("runs --json").as_array().map(Vec::len), Some(2));
    assert!(ok(&place, "doctor").contains("healthy"));
    assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(0));
    ok(&place, &format!("move --to {store}"));
    assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(2));
}

#[test]
fn move_that_is_killed_before_its_source_is_closed_is_done_again() {
    let (place, store) = (Place::with("done.yaml", DONE), schema());
    ok(&place, "run done.yaml");
    ok(&place, &format!("migrate --store {store}"));
    // The session gets the table as soon as the move has committed, before it compares.
    let (mut session, mut other) = (Session::new(&store), Session::new(&store));
    hold(&mut session, "INSERT", "events");
    let moving = place.spawn(&format!("move --to {store}"));
    session.wait_for_a_waiter();
    writeln!(other.input, "BEGIN; LOCK TABLE runs IN ACCESS EXCLUSIVE MODE; SELECT 'locked';")
        .expect("written");
    until("a session that waits for the table", || {
        session.ask("SELECT count(*) FROM pg_locks WHERE relation = 'runs'::regclass AND NOT granted;") == "1"
    });
    let unlock = format!("DO $$BEGIN PERFORM pg_advisory_unlock({}); END$$; SELECT 'released';", key());
    assert_eq!(session.ask(&unlock), "released");
    assert_eq!(other.ask(""), "locked");
    moving.signal(Signal::KILL);
    moving.wait();
    drop(other);
    release_after_unlock(&mut session);
    let refused = place.laneway(&format!("runs --store {store}"));
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.stderr.contains("is unfinished") && refused.stderr.contains("laneway move"), "{refused}");
    ok(&place, "run done.yaml");
    ok(&place, &format!("move --to {store}"));
    assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(2));
}

fn release_after_unlock(session: &mut Session) {
    assert_eq!(session.ask("DROP TRIGGER hold ON events; DROP FUNCTION hold(); SELECT 'gone';"), "gone");
}

#[test]
fn move_that_is_killed_behind_its_source_is_ended_by_the_next() {
    let (place, store) = (Place::with("done.yaml", DONE), schema());
    ok(&place, "run done.yaml");
    ok(&place, &format!("migrate --store {store}"));
    let mut session = Session::new(&store);
    hold(&mut session, "DELETE", "meta");
    let moving = place.spawn(&format!("move --to {store}"));
    session.wait_for_a_waiter();
    moving.signal(Signal::KILL);
    moving.wait();
    release(&mut session, "meta");
    assert_eq!(place.laneway("runs").code, Some(3), "the source is closed");
    let ended = ok(&place, &format!("move --to {store}"));
    assert!(ended.contains("was moved to") && ended.contains("what was left of that is done"), "{ended}");
    assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(1));
}

#[test]
fn move_whose_copy_differs_names_the_run_and_leaves_the_source_open() {
    let (place, store) = (Place::with("done.yaml", DONE), schema());
    ok(&place, "run done.yaml");
    ok(&place, &format!("migrate --store {store}"));
    let mut session = Session::new(&store);
    // As a fault of the copy would: one word of one event is another one.
    let said = session.ask(
        "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS \
         $$BEGIN NEW.body := replace(NEW.body, '\"by\":\"ada\"', '\"by\":\"eve\"'); RETURN NEW; END$$; \
         CREATE TRIGGER change BEFORE INSERT ON events FOR EACH ROW EXECUTE FUNCTION change(); SELECT 'made';",
    );
    assert_eq!(said, "made");
    let refused = place.laneway(&format!("move --to {store}"));
    assert_eq!(refused.code, Some(1), "{refused}");
    assert!(refused.to_string().contains("differs in runs: [id]"), "{refused}");
    ok(&place, "run done.yaml");
    let target = place.laneway(&format!("runs --store {store}"));
    assert!(target.code == Some(3) && target.stderr.contains("is unfinished"), "{target}");
    let said = session.ask("DROP TRIGGER change ON events; DROP FUNCTION change(); SELECT 'gone';");
    assert_eq!(said, "gone");
    ok(&place, &format!("move --to {store}"));
    assert_eq!(place.json(&format!("runs --json --store {store}")).as_array().map(Vec::len), Some(2));
}
