//! The same program on Postgres: `--store postgres://…` is the only difference. `cargo xtask test` lends the server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::{Place, text, until};
use crate::serve::Served;

/// Where the tests' server is.
const VARIABLE: &str = "LANEWAY_TEST_POSTGRES";

const FLOW: &str = "
steps:
  a: {run: 'echo hello; echo \"word=hi\" >> $LANEWAY_OUTPUT'}
  b: {needs: [a], run: 'test \"$WORD\" = hi', env: {WORD: '${{ steps.a.output.word }}'}}
";

/// A schema of its own on the tests' server, as a URL.
pub(crate) fn schema() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!("{VARIABLE} is not set: run this with `cargo xtask postgres cargo nextest run`")
    });
    let name = format!("cli_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let made = Command::new("psql").args([&server, "-qc", &format!("CREATE SCHEMA {name}")]).status();
    assert!(made.expect("psql runs").success());
    // Over its socket it asks for no password, and one on the command line would be warned of.
    let server = server.replacen("laneway:laneway@", "laneway@", 1);
    let mark = if server.contains('?') { '&' } else { '?' };
    format!("{server}{mark}options=-csearch_path%3D{name}")
}

#[test]
fn a_run_on_postgres_is_like_any_other() {
    let (place, store) = (Place::with("flow.yaml", FLOW), schema());
    let run = place.laneway(&format!("run flow.yaml --store {store}"));
    assert_eq!(run.code, Some(0), "{run}");
    let shown = place.json(&format!("show last --json --store {store}"));
    assert_eq!(text(&shown["status"]), "succeeded");
    assert_eq!(shown["tasks"][0]["output"]["word"], "hi");
    let logs = place.laneway(&format!("logs last a --store {store}"));
    assert!(logs.stdout.contains("hello"), "{logs}");
    assert_eq!(place.laneway(&format!("replay last --store {store}")).code, Some(0));
    assert_eq!(place.laneway(&format!("doctor --store {store}")).code, Some(0));
}

#[test]
fn workers_on_postgres_share_a_run_and_hand_over_what_one_returns() {
    let place = Place::with(
        "flow.yaml",
        "steps:\n  a: {run: 'test $LANEWAY_ATTEMPT = 2 || exec sleep 600'}\n  b: {needs: [a], run: 'true'}\n",
    );
    let store = schema();
    let nodes = || place.json(&format!("nodes --json --store {store}")).as_array().map_or(0, Vec::len);
    let status = || text(&place.json(&format!("show last --json --store {store}"))["status"]).to_owned();
    let submitted = place.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let one = place.spawn(&format!("worker --shutdown-grace 0s --node-address one --store {store}"));
    until("the first attempt", || {
        place.json(&format!("show last --json --store {store}"))["tasks"][0]["status"] == "running"
    });
    let two = place.spawn(&format!("worker --shutdown-grace 1s --node-address two --store {store}"));
    until("a second node", || nodes() == 2);
    one.signal(Signal::TERM);
    let left = one.wait();
    assert_eq!(left.code, Some(0), "{left}");
    until("the end of the run", || status() == "succeeded");
    let shown = place.json(&format!("show last --json --store {store}"));
    assert_eq!([text(&shown["tasks"][0]["node"]), text(&shown["tasks"][1]["node"])], ["two", "two"]);
    two.signal(Signal::TERM);
    assert_eq!(two.wait().code, Some(0));
    assert_eq!(nodes(), 0);
    assert_eq!(place.laneway(&format!("replay last --store {store}")).code, Some(0));
}

/// A database of its own, through the pooler: that takes no schema in a URL.
fn pooled() -> String {
    let [server, pooler] = [VARIABLE, "LANEWAY_TEST_POOLER"].map(|name| {
        std::env::var(name)
            .unwrap_or_else(|_| panic!("{name} is not set: run this with `cargo xtask postgres`"))
    });
    let name = format!("cli_{}", std::process::id());
    let made = Command::new("psql").args([&server, "-qc", &format!("CREATE DATABASE {name}")]).status();
    assert!(made.expect("psql runs").success());
    format!("{}/{name}", pooler.rsplit_once('/').expect("a URL names a database").0)
}

#[test]
fn worker_behind_a_pooler_says_so_and_works() {
    // Longer than the worker listens for what it sends to itself.
    let (place, store) = (Place::with("flow.yaml", "steps: {a: {run: 'sleep 6'}}\n"), pooled());
    let worker = place.spawn(&format!("worker --store {store}"));
    let submitted = place.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    until("the end of the run", || {
        text(&place.json(&format!("show last --json --store {store}"))["status"]) == "succeeded"
    });
    assert_eq!(place.laneway(&format!("replay last --store {store}")).code, Some(0));
    worker.signal(Signal::TERM);
    let left = worker.wait();
    assert_eq!(left.code, Some(0), "{left}");
    assert!(left.stderr.contains("looks four times a second"), "{left}");
}

#[test]
fn steps_of_a_frozen_worker_are_gone_when_its_lease_is_over() {
    let flow = "steps:\n  a: {on_lost: fail, run: 'echo $$ > pid; exec sleep 600'}\n";
    let place = Place::in_place("flow.yaml", flow);
    let store = schema();
    place.laneway(&format!("submit flow.yaml --store {store}"));
    let mut worker =
        place.spawn(&format!("worker --lease-ttl 2s --heartbeat-interval 200ms --store {store}"));
    let written = || std::fs::read_to_string(place.path("pid")).ok().filter(|text| text.ends_with('\n'));
    until("a start", || written().is_some());
    let pid = written().expect("it was there").trim().to_owned();
    let is_alive = || std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| !words.is_empty());
    assert!(is_alive());
    worker.signal(Signal::STOP);
    until("the end of the step", || !is_alive());
    worker.signal(Signal::CONT);
    worker.wait_for_note("could not be renewed in time");
    worker.wait_for_note("joins again");
    let nodes = || place.json(&format!("nodes --json --store {store}"));
    until("another session", || nodes().as_array().is_some_and(|nodes| nodes.len() == 1));
    worker.signal(Signal::TERM);
    let outcome = worker.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let shown = place.json(&format!("show last --json --store {store}"));
    assert_eq!(text(&shown["tasks"][0]["reason"]), "lost", "and not killed by a signal");
}

#[test]
fn a_server_that_is_not_there_is_said_in_words() {
    let place = Place::with("flow.yaml", FLOW);
    assert_snapshot!(place.laneway("run flow.yaml --store postgres://127.0.0.1:1/db"), @r"
    $ laneway run flow.yaml --store postgres://127.0.0.1:1/db
    exit code 3
    ----- stdout
    ----- stderr
    error: postgres://127.0.0.1:1/db cannot be reached: error connecting to server: Connection refused (os error 111)
    hint: look whether the server runs, and whether host and port in --store are right
    ");
}

#[test]
fn a_worker_that_is_started_again_takes_back_what_it_held_before_its_lease_ends() {
    let place =
        Place::with("flow.yaml", "steps:\n  a: {run: 'test $LANEWAY_ATTEMPT = 2 || exec sleep 600'}\n");
    let store = schema();
    let shown = || place.json(&format!("show last --json --store {store}"));
    place.laneway(&format!("submit flow.yaml --store {store}"));
    let one = place.spawn(&format!("worker --store {store}"));
    until("the first attempt", || shown()["tasks"][0]["status"] == "running");
    one.signal(Signal::KILL);
    drop(one.wait());
    let killed = Instant::now();
    let two = place.spawn(&format!("worker --store {store}"));
    until("the end of the run", || shown()["status"] == "succeeded");
    assert!(killed.elapsed() < Duration::from_secs(45), "nobody has to wait for the lease of 60 s");
    two.signal(Signal::TERM);
    assert_eq!(two.wait().code, Some(0));
}

/// A database of its own whose statements the server counts, and another one from which they are read: what the test
/// itself asks is not counted.
struct Counted {
    store: String,
    name: String,
    reader: String,
}

impl Counted {
    fn new() -> Self {
        let server = std::env::var(VARIABLE)
            .unwrap_or_else(|_| panic!("{VARIABLE} is not set: run this with `cargo xtask postgres`"));
        let base = server.rsplit_once('/').expect("a URL names a database").0;
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = format!("{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let (name, reader) = (format!("counted_{number}"), format!("reader_{number}"));
        for name in [&name, &reader] {
            let made =
                Command::new("psql").args([&server, "-qc", &format!("CREATE DATABASE {name}")]).status();
            assert!(made.expect("psql runs").success());
        }
        let counted = Self { store: format!("{base}/{name}"), name, reader: format!("{base}/{reader}") };
        counted.psql("CREATE EXTENSION pg_stat_statements");
        counted.psql(&format!("ALTER DATABASE {} SET pg_stat_statements.track = 'all'", counted.name));
        counted
    }

    fn psql(&self, sql: &str) -> String {
        let mut command = Command::new("psql");
        command.env("PGOPTIONS", "-c pg_stat_statements.track=none").args([&self.reader, "-qAtc", sql]);
        let output = command.output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    fn in_store(&self, sql: &str) -> String {
        let output = Command::new("psql").args([&self.store, "-qAtc", sql]).output().expect("psql runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    }

    /// Begins to count anew when so many nodes look for work less than once a `pause`: they trust notifications then,
    /// and look ever more rarely.
    fn count_from_quiet(&self, nodes: u64, pause: Duration) {
        let (mut seen, mut since) = (self.claims(), Instant::now());
        until("looks that only nodes make that trust notifications", || {
            if since.elapsed() < pause {
                return false;
            }
            let (before, now) = (seen, self.claims());
            (seen, since) = (now, Instant::now());
            now >= nodes && now.saturating_sub(before) <= nodes
        });
        // Of this database alone: other tests count as well.
        let of = format!("(SELECT oid FROM pg_database WHERE datname = '{}')", self.name);
        self.psql(&format!("SELECT pg_stat_statements_reset(0, {of}, 0)"));
    }

    fn heartbeats(&self) -> u64 {
        self.calls("SET renewed_at = moment.now")
    }

    fn claims(&self) -> u64 {
        self.calls("-- claim_left")
    }

    /// How often statements were executed that contain a text; all of them contain the empty one.
    fn calls(&self, part: &str) -> u64 {
        let counted = self.psql(&format!(
            "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements JOIN pg_database ON oid = dbid
             WHERE datname = '{}' AND position('{part}' IN query) > 0",
            self.name
        ));
        counted.parse().expect("a number")
    }

    /// Every statement with its calls, for people who read why a test failed.
    fn statements(&self) -> String {
        self.psql(&format!(
            "SELECT calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 200)
             FROM pg_stat_statements JOIN pg_database ON oid = dbid
             WHERE datname = '{}' ORDER BY calls DESC",
            self.name
        ))
    }
}

/// C3 and C10. Commands of a heartbeat: BEGIN, renew, what is held, what is to stop, COMMIT.
const OF_A_HEARTBEAT: u64 = 5;

/// Of a look for work: BEGIN, pick, what is left, COMMIT, and what else a worker asks when it looks.
const OF_A_LOOK: u64 = 9;

/// What comes by the clock beside both, for each heartbeat: gates that time opens, leases that end.
const BY_THE_CLOCK: u64 = 4;

#[test]
fn idle_node_says_almost_nothing_between_its_heartbeats() {
    let (place, counted) = (Place::new(), Counted::new());
    let worker = place.spawn(&format!("worker --store {}", counted.store));
    counted.count_from_quiet(1, Duration::from_secs(3));
    until("three heartbeats", || counted.heartbeats() >= 3);
    let (beats, looks, all) = (counted.heartbeats(), counted.claims(), counted.calls(""));
    let statements = counted.statements();
    // Every three seconds at first, and ever more rarely.
    assert!(looks <= 5, "{looks} looks in {beats} heartbeats:\n{statements}");
    let most = beats * (OF_A_HEARTBEAT + BY_THE_CLOCK) + looks * OF_A_LOOK;
    assert!(all <= most, "{all} statements in {beats} heartbeats and {looks} looks:\n{statements}");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
}

/// C3. What one idle node makes another one do would show here. Transactions are counted by their BEGIN: what
/// `pg_stat_database` says comes as late as a connection reports it, ten seconds after it was last in use.
#[test]
fn ten_idle_nodes_commit_almost_nothing_between_their_heartbeats() {
    const NODES: u64 = 10;
    let (place, counted) = (Place::new(), Counted::new());
    let start = |number| {
        let line = format!("worker --heartbeat-interval 2s --node-address n{number} --data-dir n{number}");
        place.spawn(&format!("{line} --store {}", counted.store))
    };
    let workers: Vec<_> = (0..NODES).map(start).collect();
    counted.count_from_quiet(NODES, Duration::from_secs(1));
    until("two heartbeats of each", || counted.heartbeats() >= 2 * NODES);
    let (commits, all) = (counted.calls("BEGIN ISOLATION"), counted.calls(""));
    // Counted behind the others, so that none of these is missing.
    let (beats, looks, statements) = (counted.heartbeats(), counted.claims(), counted.statements());
    assert!(looks <= 5 * NODES, "{looks} looks in {beats} heartbeats:\n{statements}");
    assert!(
        commits <= beats + looks + NODES,
        "{commits} in {beats} heartbeats and {looks} looks:\n{statements}"
    );
    let most = beats * (OF_A_HEARTBEAT + BY_THE_CLOCK) + looks * OF_A_LOOK;
    assert!(all <= most, "{all} statements in {beats} heartbeats and {looks} looks:\n{statements}");
    workers.iter().for_each(|worker| worker.signal(Signal::TERM));
    for worker in workers {
        assert_eq!(worker.wait().code, Some(0));
    }
}

/// Returns the whole response of a server.
fn request(address: &str, token: &str, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The role may not read when transactions of others began: they count by how many have passed since.
#[test]
fn session_that_holds_the_horizon_is_named_by_doctor_and_by_a_metric() {
    let (place, counted) = (Place::new(), Counted::new());
    let role = format!("plain_{}", std::process::id());
    counted.psql(&format!("CREATE ROLE {role} LOGIN"));
    counted.psql(&format!("ALTER DATABASE {} OWNER TO {role}", counted.name));
    counted.in_store(&format!("ALTER SCHEMA public OWNER TO {role}"));
    let (scheme, rest) = counted.store.split_once("://").expect("a URL");
    let (_, at) = rest.split_once('@').expect("a URL names a role");
    let store = format!("{scheme}://{role}@{at}");
    let served = Served::start(&place, &["--no-worker", "--store", &store]);
    let mut holder = Command::new("psql")
        .args([&counted.store, "-qAt"])
        .env("PGAPPNAME", "a long report")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql runs");
    let mut words = holder.stdin.take().expect("a pipe");
    words.write_all(b"BEGIN; SELECT pg_current_xact_id();\n").expect("it reads");
    let mut xid = String::new();
    BufReader::new(holder.stdout.as_mut().expect("a pipe")).read_line(&mut xid).expect("a number");
    let named = "(a long report)";
    assert!(!place.laneway(&format!("doctor --store {store}")).stdout.contains(named), "too early");
    counted.in_store(
        "CREATE TEMP TABLE passed (n int);
         DO $$ BEGIN FOR n IN 1..10100 LOOP
             BEGIN INSERT INTO passed VALUES (n); EXCEPTION WHEN division_by_zero THEN NULL; END;
         END LOOP; END $$",
    );
    let doctor = place.laneway(&format!("doctor --store {store}"));
    assert!(doctor.stdout.contains(named) && doctor.stdout.contains("pg_terminate_backend"), "{doctor}");
    let address = served.url().strip_prefix("http://").expect("an address");
    let token = place.read(".laneway/admin.token").trim().to_owned();
    let metrics = request(address, &token, "GET /metrics", "");
    let is_it =
        |line: &str| line.starts_with("laneway_database_horizon_held_seconds{") && line.contains(named);
    assert!(metrics.lines().any(is_it), "{metrics}");
    drop(words);
    assert!(holder.wait().expect("it ends").success());
    let metrics = request(address, &token, "GET /metrics", "");
    assert!(!metrics.contains(named), "{metrics}");
    assert_eq!(served.end().0, Some(0));
}

/// Each end hands keys on to steps of other runs, while clients submit more of them.
const CONTENDED: &str = "name: contended
limits: {x: 2}
on_failure: continue
steps:
  a: {command: [/bin/true]}
  m: {needs: [a], lock: left, command: [/bin/true]}
  l: {needs: [a], limits: [x], command: [/bin/true]}
  b: {needs: [a], lock: right, limits: [x], command: [/bin/true]}
  z: {needs: [m, l, b], command: [/bin/true]}
";

#[test]
fn clients_that_submit_runs_with_the_same_keys_get_no_server_error_and_the_server_no_deadlock() {
    const CLIENTS: usize = 8;
    const SUBMITS: usize = 12;
    let (place, counted) = (Place::new(), Counted::new());
    let served = Served::start(&place, &["--slots", "8", "--store", &counted.store]);
    let worker = place.spawn(&format!("worker --slots 8 --data-dir two --store {}", counted.store));
    let address = served.url().strip_prefix("http://").expect("an address").to_owned();
    let body = serde_json::json!({ "document": CONTENDED }).to_string();
    let token = place.read(".laneway/admin.token").trim().to_owned();
    let submit = || {
        let answer = request(&address, &token, "POST /v1/runs", &body);
        assert!(answer.starts_with("HTTP/1.1 2"), "{answer}");
    };
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| (0..SUBMITS).for_each(|_| submit()));
        }
    });
    let ended = "SELECT count(*) FROM runs WHERE status NOT IN ('queued', 'running')";
    let all = (CLIENTS * SUBMITS).to_string();
    until("the end of all runs", || counted.in_store(ended) == all);
    let failed = "SELECT count(*) FROM runs WHERE status <> 'succeeded'";
    assert_eq!(counted.in_store(failed), "0");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
    assert_eq!(served.end().0, Some(0));
    // A connection reports what it has counted at its end.
    let open = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{}'", counted.name);
    until("the end of all connections", || counted.psql(&open) == "0");
    let deadlocks = format!("SELECT deadlocks FROM pg_stat_database WHERE datname = '{}'", counted.name);
    assert_eq!(counted.psql(&deadlocks), "0");
}

/// What a submitted run and its worker wrote.
#[derive(Debug)]
struct Written {
    steps: i64,
    /// Of all tables.
    rows: i64,
    layers: i64,
    layer_files: i64,
    /// Bytes of packed layers, in rows and in blobs.
    packed: i64,
    /// Of transactions that write: each is a sync of the server.
    commits: i64,
}

impl Written {
    /// By a chain of steps with this script each.
    fn by_chain(steps: i64, script: &str, head: &str) -> Self {
        let (place, counted) = (Place::new(), Counted::new());
        let mut flow = format!("{head}steps:\n");
        for step in 0..steps {
            let needs = if step > 0 { format!("s{}", step - 1) } else { String::new() };
            flow.push_str(&format!("  s{step}: {{needs: [{needs}], run: '{script}'}}\n"));
        }
        place.write("flow.yaml", &flow);
        place.laneway(&format!("submit flow.yaml --store {}", counted.store));
        let worker = place.spawn(&format!("worker --store {}", counted.store));
        until("the end of the run", || {
            text(&place.json(&format!("show last --json --store {}", counted.store))["status"]) == "succeeded"
        });
        let commits = counted.calls("BEGIN ISOLATION LEVEL READ COMMITTED");
        let commits = i64::try_from(commits).expect("a number");
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait().code, Some(0));
        let number = |sql: &str| -> i64 { counted.in_store(sql).parse().expect(sql) };
        Self {
            steps,
            rows: number(
                "SELECT sum((xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %I', relname), \
                 false, true, '')))[1]::text::bigint) FROM pg_class \
                 WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace",
            ),
            layers: number("SELECT count(*) FROM layers"),
            layer_files: number("SELECT count(*) FROM layer_files"),
            packed: number(
                "SELECT (SELECT coalesce(sum(length(packed)), 0) FROM layers)
                      + (SELECT coalesce(sum(length(bytes)), 0) FROM blob_chunks
                         WHERE hash IN (SELECT hash FROM layer_files))",
            ),
            commits,
        }
    }
}

/// What a worker does by the clock.
const BY_CHANCE: i64 = 12;

/// Measures two chains, again while the second has more commits, five times at most. Returns the fewest
/// commits of each. A busy machine only adds commits: a start then no longer shares one with an end.
fn fewest_commits(first: impl Fn() -> Written, second: impl Fn() -> Written) -> (Written, Written) {
    let (mut a, mut b) = (first(), second());
    for _ in 1..5 {
        if b.commits <= a.commits + BY_CHANCE {
            break;
        }
        let commits = (a.commits.min(first().commits), b.commits.min(second().commits));
        (a.commits, b.commits) = commits;
    }
    (a, b)
}

#[test]
fn submitted_step_that_changes_no_file_writes_as_much_as_one_without_files_on_postgres() {
    let without = || Written::by_chain(20, "true", "workspace: none\n");
    let (without, none) = fewest_commits(without, || Written::by_chain(20, "true", ""));
    assert_eq!((none.layers, none.layer_files, none.packed), (0, 0, 0), "{none:?}");
    // The bundle of the run is one blob in both.
    assert!((none.rows - without.rows).abs() <= BY_CHANCE, "{none:?}, {without:?}");
    assert!(none.commits <= without.commits + BY_CHANCE, "{none:?}, {without:?}");
}

#[test]
fn submitted_steps_that_write_files_write_one_row_or_one_file_each_on_postgres() {
    let none = || Written::by_chain(20, "true", "");
    let (none, one) = fewest_commits(none, || Written::by_chain(20, "echo content > $LANEWAY_TASK", ""));
    assert_eq!((one.layers, one.layer_files), (one.steps, 0), "{one:?}");
    assert!(one.packed <= 300 * one.steps, "{one:?}");
    assert!(one.rows <= none.rows + one.steps + BY_CHANCE, "{one:?}, {none:?}");
    // The layer is in the row, which commits with the end of the step.
    assert!(one.commits <= none.commits + BY_CHANCE, "{one:?}, {none:?}");
    let script = "for n in $(seq 1000); do echo $n > $LANEWAY_TASK-$n; done";
    let (few, many) = (Written::by_chain(4, "true", ""), Written::by_chain(4, script, ""));
    assert_eq!((many.layers, many.layer_files), (many.steps, many.steps), "{many:?}");
    assert!(many.packed <= 100_000 * many.steps, "{many:?}");
    // The layer, the file that has it, its blob, and the one chunk of that.
    assert!(many.rows <= few.rows + 4 * many.steps + BY_CHANCE, "{many:?}, {few:?}");
    // The blob comes in chunks, each of which is written for good. Measured: 8, with what a longer run does by the clock.
    assert!(many.commits <= few.commits + 10 * many.steps + BY_CHANCE, "{many:?}, {few:?}");
}
