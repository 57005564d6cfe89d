//! What other users of a host can see: files of a store, the password of one, and what `apply` ships. And what clients cost that ask
//! for nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use crate::place::{Place, until};
use crate::postgres::schema;
use crate::serve::Served;

const FLOW: &str = "steps: {hello: {run: 'echo hello'}}\n";

fn mode(path: &Path) -> u32 {
    let data = std::fs::symlink_metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    data.permissions().mode() & 0o777
}

/// Every file and directory below one, with its mode.
fn modes(dir: &Path) -> Vec<(String, u32, bool)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path()) {
        found.push((entry.display().to_string(), mode(&entry), entry.is_dir()));
        if entry.is_dir() {
            found.extend(modes(&entry));
        }
    }
    found
}

/// With the umask that most hosts have.
fn run_openly(place: &Place, line: &str) {
    let words = format!("umask 022; exec {} {line}", env!("CARGO_BIN_EXE_laneway"));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &words]).current_dir(place.path("")).env("LANEWAY_CGROUPS", "off");
    let output = shell.output().expect("it runs");
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn files_of_a_store_are_for_its_owner_alone() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'echo x | tee out', artifacts: [out]}}\n");
    run_openly(&place, "run flow.yaml");
    assert_eq!(mode(&place.path(".laneway")), 0o700);
    let found = modes(&place.path(".laneway"));
    assert!(
        found.iter().any(|(path, ..)| path.contains("/logs/"))
            && found.iter().any(|(path, ..)| path.contains("/artifacts/")),
        "{found:?}"
    );
    for (path, mode, is_dir) in found {
        assert_eq!(mode, if is_dir { 0o700 } else { 0o600 }, "{path}");
    }
    let made = place.path("out");
    assert_eq!(mode(&made), 0o644, "what steps make is as their umask says");
}

/// Scripts, sockets, leases and files that steps write are there only while a step runs.
#[test]
fn files_of_a_running_step_are_for_its_owner_alone() {
    let place = Place::in_place(
        "flow.yaml",
        "steps: {a: {run: 'touch ready; while ! test -e go; do sleep 0.05; done'}}\n",
    );
    let words = format!("umask 022; exec {} run flow.yaml", env!("CARGO_BIN_EXE_laneway"));
    let mut shell = std::process::Command::new("sh");
    let shell = shell.args(["-c", &words]).current_dir(place.path("")).env("LANEWAY_CGROUPS", "off");
    let mut running = shell.spawn().expect("it runs");
    until("the step", || place.path("ready").exists());
    let found = modes(&place.path(".laneway"));
    place.write("go", "");
    assert!(running.wait().expect("it ends").success());
    for part in ["/scratch/", "/sessions/", ".lease"] {
        assert!(found.iter().any(|(path, ..)| path.contains(part)), "{part}: {found:?}");
    }
    for (path, mode, _) in found {
        assert_eq!(mode & 0o077, 0, "others can see {path}: {mode:o}");
    }
}

#[test]
fn files_of_a_node_on_postgres_are_for_its_owner_alone() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'echo x | tee out', artifacts: [out]}}\n");
    let store = schema();
    std::fs::create_dir(place.path("node")).expect("made");
    std::fs::set_permissions(place.path("node"), PermissionsExt::from_mode(0o755)).expect("open");
    run_openly(&place, &format!("run flow.yaml --data-dir node --store {store}"));
    let submitted = place.laneway(&format!("submit flow.yaml --store {store}"));
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let words =
        format!("umask 022; exec {} worker --data-dir worker --store {store}", env!("CARGO_BIN_EXE_laneway"));
    let mut worker = std::process::Command::new("sh");
    let mut worker = worker.args(["-c", &words]).current_dir(place.path("")).spawn().expect("it runs");
    until("the end of the run", || {
        place.json(&format!("show last --json --store {store}"))["status"] == "succeeded"
    });
    for dir in ["node", "worker"] {
        let found = modes(&place.path(dir));
        assert!(!found.is_empty(), "{dir} has files");
        for (path, mode, is_dir) in found {
            // What a bundle holds is as it was packed, below a directory that is private.
            let is_unpacked = path.contains("/workspaces/");
            assert!(is_unpacked || mode == if is_dir { 0o700 } else { 0o600 }, "{path}: {mode:o}");
        }
    }
    assert_eq!(mode(&place.path("worker")), 0o700, "it was made by the node");
    rustix::process::kill_process(rustix::process::Pid::from_child(&worker), rustix::process::Signal::TERM)
        .expect("it is ours");
    assert!(worker.wait().expect("it ended").success());
}

#[test]
fn store_in_a_directory_that_is_there_is_private_and_an_open_one_is_reported() {
    let place = Place::with("flow.yaml", FLOW);
    std::fs::create_dir(place.path("data")).expect("made");
    std::fs::set_permissions(place.path("data"), PermissionsExt::from_mode(0o755)).expect("open");
    run_openly(&place, "run flow.yaml --store data/lane.db");
    assert_eq!((mode(&place.path("data/lane.db")), mode(&place.path("data/lane.db.d/logs"))), (0o600, 0o700));
    let healthy = place.laneway("doctor --store data/lane.db");
    assert!(healthy.stdout.contains("healthy") && !healthy.stdout.contains("other users"), "{healthy}");
    std::fs::set_permissions(place.path("data/lane.db"), PermissionsExt::from_mode(0o644)).expect("open");
    let open = place.laneway("doctor --store data/lane.db");
    assert!(open.stdout.contains("other users of this host can read them: data/lane.db (644)"), "{open}");
    assert!(open.stdout.contains("`chmod -R go-rwx data/lane.db"), "{open}");
    assert_eq!(mode(&place.path("data/lane.db.d")), 0o700);
    for dir in ["data/lane.db.d", "data/lane.db.d/logs"] {
        std::fs::set_permissions(place.path(dir), PermissionsExt::from_mode(0o755)).expect("open");
    }
    let open = place.laneway("doctor --store data/lane.db");
    assert!(open.stdout.contains(", data/lane.db.d/logs (755)"), "{open}");
}

#[test]
fn apply_lists_what_it_ships_and_refuses_credentials() {
    let place = Place::new();
    std::fs::create_dir(place.path("flows")).expect("made");
    place.write("flows/flow.yaml", FLOW);
    place.write("flows/.env", "TOKEN=1\n");
    let refused = place.laneway("apply flows/flow.yaml");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains(".env (8 bytes, it usually holds credentials)"), "{refused}");
    assert!(refused.stderr.contains("--include PATH"), "{refused}");
    let named = place.laneway("apply flows/flow.yaml --include flows/.env");
    assert_eq!(named.code, Some(0), "{named}");
    assert!(named.stderr.contains("  .env (8 bytes)\n"), "{named}");
    place.write("flows/.lanewayignore", ".env\n");
    let without = place.laneway("apply flows/flow.yaml");
    assert_eq!((without.code, without.stderr.contains(".env (")), (Some(0), false), "{without}");
}

#[test]
fn credentials_are_known_in_any_case_and_behind_a_link() {
    let place = Place::new();
    std::fs::create_dir(place.path("flows")).expect("made");
    place.write("flows/flow.yaml", FLOW);
    for name in [".envrc", "prod.env", "Server.KEY"] {
        place.write(&format!("flows/{name}"), "x=1\n");
    }
    symlink("prod.env", place.path("flows/settings.txt")).expect("a link");
    for line in ["apply flows/flow.yaml".to_owned(), format!("submit flows/flow.yaml --store {}", schema())] {
        let refused = place.laneway(&line);
        assert_eq!(refused.code, Some(2), "{refused}");
        for name in [".envrc", "prod.env", "Server.KEY", "settings.txt"] {
            assert!(refused.stderr.contains(&format!("{name} (4 bytes, it usually holds")), "{refused}");
        }
    }
    place.write("flows/.lanewayignore", ".envrc\nprod.env\n*.KEY\n");
    let without = place.laneway("apply flows/flow.yaml");
    assert_eq!(without.code, Some(0), "{without}");
    assert!(!without.stderr.contains("settings.txt"), "a link to what is left out: {without}");
}

#[test]
fn files_are_listed_before_they_are_shipped_and_as_data() {
    let place = Place::new();
    std::fs::create_dir(place.path("flows")).expect("made");
    place.write("flows/flow.yaml", FLOW);
    place.write("flows/step.sh", "true\n");
    for line in ["apply flows/flow.yaml --json", "apply flows/flow.yaml", "submit flows/flow.yaml"] {
        // No server is there, so that nothing was shipped yet.
        let failed = place.laneway(&format!("{line} --server http://127.0.0.1:1"));
        assert!(failed.code != Some(0) && failed.stderr.contains("  step.sh (5 bytes)\n"), "{failed}");
    }
    let files = serde_json::json!([
        {"path": "flow.yaml", "bytes": FLOW.len()},
        {"path": "step.sh", "bytes": 5},
    ]);
    assert_eq!(place.json("apply flows/flow.yaml --json")[0]["files"], files);
    let submitted = place.json(&format!("submit flows/flow.yaml --json --store {}", schema()));
    assert_eq!(submitted["files"], files);
    let embedded = place.json("submit flows/flow.yaml --json");
    assert_eq!(embedded["files"], files, "the files go with the run on every store");
}

#[test]
fn password_on_the_command_line_is_warned_of_and_does_not_stay_there() {
    let (place, bare) =
        (Place::with("flow.yaml", "steps: {a: {run: 'env; cat /proc/$PPID/environ'}}\n"), schema());
    let store = bare.replacen("laneway@", "laneway:s3same@", 1);
    let mut worker = place.spawn(&format!("worker --store {store}"));
    worker.wait_for_note("the password of the store stands on the command line");
    let line = format!("/proc/{}/cmdline", worker.id());
    until("a command line without it", || {
        std::fs::read_to_string(&line).is_ok_and(|line| line.contains("worker") && !line.contains("s3same"))
    });
    let run = place.laneway(&format!("run flow.yaml --store {store}"));
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("~/.pgpass"), "{run}");
    let printed = place.laneway(&format!("logs last a --store {bare}")).stdout;
    assert!(printed.contains("LANEWAY_STORE=postgres://laneway@"), "{printed}");
    assert!(!printed.contains("s3same"), "{printed}");
    worker.signal(rustix::process::Signal::TERM);
    worker.wait();
}

/// The memory of a server.
fn resident_kib(served: &Served<'_>) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.id())).expect("it lives");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn clients_that_ask_for_nothing_cost_next_to_nothing() {
    const CLIENTS: usize = 800;
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let address = served.url().trim_start_matches("http://").to_owned();
    // What the first requests take is there before it is measured.
    for _ in 0..20 {
        served.json("runs --json");
    }
    let before = resident_kib(&served);
    let clients: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut client = TcpStream::connect(&address).expect("it listens");
            client.write_all(b"GET /v1/runs HTTP/1.1\r\nhost: localhost\r\nx-slow: ").expect("it takes it");
            client
        })
        .collect();
    // Behind all of them in line: by then they are accepted.
    for _ in 0..20 {
        served.json("runs --json");
    }
    let grown = resident_kib(&served).saturating_sub(before);
    assert!(grown < 8 * 1024, "{CLIENTS} clients took {grown} KiB");
    drop(clients);
    assert_eq!(served.end().0, Some(0));
}

/// Clients of each kind in one round.
const SLOW_CLIENTS: usize = 150;

/// What a server keeps for 2,400 clients that have left. Each of them leaving 8 KiB would be 19
/// MiB.
const MAX_GROWTH_KIB: u64 = 12 * 1024;

/// They send part of a body, or of a second head, a byte at a time, and leave.
#[test]
fn slow_clients_that_have_left_leave_no_memory_behind() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let address = served.url().strip_prefix("http://").expect("an address").to_owned();
    let head = |line: &str| format!("{line} HTTP/1.1\r\nhost: {address}\r\n");
    let body =
        format!("{}content-length: 32000\r\n\r\n{}", head("POST /v1/hooks/nowhere"), " ".repeat(16_000));
    let second = format!("{}\r\n{}x-slow: ", head("GET /healthz"), head("GET /healthz"));
    let files = || std::fs::read_dir(format!("/proc/{}/fd", served.id())).expect("it lives").count();
    let connect = |first: &str| {
        let mut stream = TcpStream::connect(&address).expect("a connection");
        stream.write_all(first.as_bytes()).expect("it is read");
        stream
    };
    let idle = files();
    let mut after = Vec::new();
    for _ in 0..10 {
        let mut clients: Vec<TcpStream> = (0..SLOW_CLIENTS).map(|_| connect(&body)).collect();
        for _ in 0..SLOW_CLIENTS {
            let mut stream = connect(&second);
            let mut answer = [0; 512];
            let read = stream.read(&mut answer).expect("the first request is answered");
            assert!(answer[..read].starts_with(b"HTTP/1.1 200 "));
            clients.push(stream);
        }
        for _ in 0..3 {
            clients.iter_mut().for_each(|stream| drop(stream.write_all(b"a")));
        }
        drop(clients);
        // Some for the server's own use of its store.
        until("the end of their connections", || files() <= idle + 8);
        after.push(resident_kib(&served));
    }
    // The first rounds fill the buffers of the allocator.
    let growth = after[9].saturating_sub(after[1]);
    assert!(growth < MAX_GROWTH_KIB, "{growth} KiB more: {after:?}");
    assert_eq!(served.end().0, Some(0));
}
