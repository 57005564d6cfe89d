//! `laneway serve`, `laneway token`, and the commands that ask a server.

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Stdio};

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::place::{Outcome, Place, text, until};

const FLOW: &str = "steps: {hello: {run: 'echo hello'}, after: {needs: [hello], run: 'echo after >&2'}}\n";

/// A server that runs beside the test, on a port of its own.
pub(crate) struct Served<'a> {
    place: &'a Place,
    child: Child,
    url: String,
}

impl<'a> Served<'a> {
    pub(crate) fn start(place: &'a Place, more: &[&str]) -> Self {
        Self::start_at(place, "127.0.0.1:0", more)
    }

    pub(crate) fn start_at(place: &'a Place, at: &str, more: &[&str]) -> Self {
        let mut args = vec!["serve", "--listen", at];
        args.extend(more);
        let mut command = place.command(&args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let url = line.trim().strip_prefix("listening at ").unwrap_or_else(|| panic!("{line}")).to_owned();
        Self { place, child, url }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn ask(&self, line: &str) -> Outcome {
        self.place.laneway(&format!("{line} --server {}", self.url))
    }

    pub(crate) fn json(&self, line: &str) -> Value {
        let outcome = self.ask(line);
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"))
    }

    /// Told once; its exit code and what it said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it lives");
        let status = self.child.wait().expect("it ends");
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        }
        (status.code(), said)
    }
}

#[test]
fn server_runs_what_is_submitted_to_it_and_ends_in_good_order() {
    let place = Place::with("flow.yaml", FLOW);
    let served = Served::start(&place, &[]);
    let submitted = served.json("submit flow.yaml --json --key once");
    assert_eq!(submitted["workflow"], "flow");
    assert_eq!(served.json("submit flow.yaml --json --key once")["run"], submitted["run"]);
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    // One shape for one thing, whoever is asked.
    assert_eq!(served.json("show last --json"), place.json("show last --json"));
    assert_eq!(served.json("runs --json"), place.json("runs --json"));
    assert_eq!(served.json("explain last after --json"), place.json("explain last after --json"));
    assert_eq!(served.ask("explain last").stdout, place.laneway("explain last").stdout);
    assert_eq!(served.ask("events last").stdout, place.laneway("events last").stdout);
    assert_eq!(served.ask("events last --json").stdout, place.laneway("events last --json").stdout);
    assert_eq!(served.ask("logs last hello").stdout, "hello\n");
    assert_eq!(served.ask("logs last after").stdout, "after\n");
    assert_eq!(served.ask("logs last --json").stdout, place.laneway("logs last --json").stdout);
    assert_eq!(served.json("nodes --json")[0]["state"], "takes work");
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("settings: ") && said.contains("listen 127.0.0.1:0 (flag)"), "{said}");
    assert!(place.json("nodes --json").as_array().is_some_and(Vec::is_empty));
}

#[test]
fn commands_that_change_something_do_so_through_a_server() {
    let place = Place::new();
    // The steps run among files that were brought with the document, and not beside it.
    let good = place.path("good").display().to_string();
    place.write(
        "flow.yaml",
        &format!("steps: {{a: {{run: 'test -e {good}'}}, b: {{needs: [a], run: 'true'}}}}\n"),
    );
    let served = Served::start(&place, &[]);
    assert_eq!(served.ask("submit flow.yaml").code, Some(0));
    until("a failure", || served.json("show last --json")["status"] == "failed");
    place.write("good", "");
    let retried = served.ask("retry last");
    assert!(retried.stdout.contains("goes on: a, b"), "{retried}");
    until("a success", || served.json("show last --json")["status"] == "succeeded");
    assert_eq!(served.ask("limit set api 3").stdout, "limit api is 3\n");
    assert_eq!(served.json("limit list --json")[0]["value"], "3");
    assert_eq!(served.ask("pause --workflow flow").code, Some(0));
    let started = served.json("start flow --json");
    assert_eq!(served.json("show last --json")["tasks"][0]["cause"]["gate"], "paused");
    assert_eq!(served.ask("resume --workflow flow").code, Some(0));
    until("its end", || served.json("show last --json")["status"] == "succeeded");
    assert_eq!(served.json("show last --json")["run"], started["run"]);
    let waited = served.ask("start flow --wait");
    assert_eq!(waited.code, Some(0), "{waited}");
    assert!(waited.stdout.contains("run succeeded"), "{waited}");
    let canceled = served.ask("cancel last");
    assert!(canceled.stdout.contains("had ended before"), "{canceled}");
    let node = served.json("nodes --json")[0]["node"].as_str().expect("a node").to_owned();
    assert_eq!(served.ask(&format!("drain {node}")).code, Some(0));
    // Its worker has left, and it still answers.
    until("a node that left", || served.json("nodes --json")[0]["state"] != "takes work");
    assert_eq!(served.json("show last --json")["status"], "succeeded");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn first_start_makes_a_token_that_only_its_owner_can_read() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let file = place.path(".laneway/admin.token");
    let mode = std::fs::metadata(&file).expect("a token").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let first = place.read(".laneway/admin.token");
    assert_eq!(served.json("nodes --json")[0]["state"], "runs its own");
    let made = served.json("token create ci --role viewer --json");
    let secret = text(&made["token"]).to_owned();
    let asked = |token: &str| {
        let mut command = place.command(&["runs", "--server", &served.url]);
        command.env("LANEWAY_TOKEN", token);
        place.outcome("runs", command)
    };
    assert_eq!(asked(&secret).code, Some(0));
    let listed = served.json("token list --json");
    assert_eq!((&listed[1]["name"], &listed[1]["role"]), (&json!("ci"), &json!("viewer")));
    // On the store itself, while the server runs.
    assert_eq!(place.laneway("token revoke ci").stdout, "token ci is revoked\n");
    let refused = asked(&secret);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("the token is not known, or was revoked"), "{refused}");
    let (_, said) = served.end();
    assert!(said.contains("worker_enabled false (flag)") && !said.contains(first.trim()), "{said}");
    let again = Served::start(&place, &["--no-worker"]);
    assert_eq!(place.read(".laneway/admin.token"), first);
    assert_eq!(again.end().0, Some(0));
}

/// Whether the server accepts a token.
fn accepts(served: &Served<'_>, token: &str) -> bool {
    let mut command = served.place.command(&["runs", "--server", &served.url]);
    command.env("LANEWAY_TOKEN", token);
    let outcome = served.place.outcome("runs", command);
    assert!([Some(0), Some(2)].contains(&outcome.code), "{outcome}");
    outcome.code == Some(0)
}

#[test]
fn secret_that_was_rotated_ends_at_once_or_behind_its_grace() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let first = served.ask("token create ci --role viewer").stdout.trim().to_owned();
    let rotated = served.ask("token rotate ci");
    assert!(rotated.stderr.contains("keep it: it cannot be shown again; the old one has ended"), "{rotated}");
    let second = rotated.stdout.trim().to_owned();
    assert_eq!((accepts(&served, &first), accepts(&served, &second)), (false, true));
    let rotated = served.ask("token rotate ci --grace 1h");
    assert!(rotated.stderr.contains("; the old one ends at 20"), "{rotated}");
    let third = rotated.stdout.trim().to_owned();
    assert_eq!((accepts(&served, &second), accepts(&served, &third)), (true, true));
    // On the store itself, while the server runs.
    let rotated = place.json("token rotate ci --grace 1s --json");
    assert!(accepts(&served, text(&rotated["token"])));
    until("the end of the grace", || !accepts(&served, &third));
    let missing = served.ask("token rotate nobody");
    assert_eq!(missing.code, Some(2), "{missing}");
    assert_snapshot!(place.laneway("token rotate ci --grace 31d"), @r"
    $ laneway token rotate ci --grace 31d
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value '31d' for '--grace <DURATION>': use a duration from 0s to 30d

    For more information, try '--help'.
    ");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn token_that_expires_is_refused_then() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let token = served.ask("token create short --role viewer --expires 2s").stdout.trim().to_owned();
    assert!(accepts(&served, &token));
    until("its end", || !accepts(&served, &token));
    // A new secret lasts as long as the old one did when it was made, unless it is told otherwise.
    let again = served.json("token rotate short --json");
    assert!(again["expires_at"].is_string(), "{again}");
    until("its end", || !accepts(&served, text(&again["token"])));
    let longer = served.json("token rotate short --expires 90d --json");
    assert!(accepts(&served, text(&longer["token"])));
    assert_snapshot!(place.laneway("token create other --role viewer --expires 0s"), @r"
    $ laneway token create other --role viewer --expires 0s
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value '0s' for '--expires <DURATION>': use a duration from 1s to 3650d

    For more information, try '--help'.
    ");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn token_list_shows_whose_each_token_is_when_it_was_used_and_when_it_ends() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let gap = regex::Regex::new(" {2,}").expect("a pattern");
    let rows = || -> Vec<Vec<String>> {
        let listed = served.ask("token list");
        listed.stdout.lines().map(|line| gap.split(line.trim()).map(str::to_owned).collect()).collect()
    };
    let secret = served.ask("token create ci --role operator --expires 90d").stdout.trim().to_owned();
    served.ask("token create old --role worker");
    assert_eq!(rows()[0], ["TOKEN", "ROLE", "ENDS IN", "MADE", "BY", "LAST USED", "EXPIRES", "STATE"]);
    let row = |name: &str| rows().into_iter().find(|row| row[0] == name).expect("it is listed");
    let is_date = |cell: &str| cell.starts_with("20");
    let ci = row("ci");
    assert_eq!((&*ci[1], &*ci[5], &*ci[7]), ("operator", "-", "in use"), "{ci:?}");
    assert!(secret.ends_with(ci[2].trim_start_matches('…')), "{ci:?}");
    assert!(is_date(&ci[3]) && is_date(&ci[6]) && ci[3] < ci[6], "{ci:?}");
    assert_eq!(row("old")[6], "-", "it does not expire");
    assert!(accepts(&served, &secret));
    until("its use", || is_date(&row("ci")[5]));
    served.ask("token rotate ci --grace 1h");
    let states: Vec<String> =
        rows().into_iter().filter(|row| row[0].starts_with("ci")).map(|row| row[7].clone()).collect();
    assert!(
        states.iter().any(|state| state.contains("rotated by ") && state.contains(", ends 20")),
        "{states:?}"
    );
    served.ask("token revoke old");
    assert!(row("old")[7].starts_with("revoked 20"), "{:?}", row("old"));
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn what_a_server_cannot_do_is_refused_in_words() {
    let place = Place::with("flow.yaml", FLOW);
    assert_snapshot!(place.laneway("serve --listen 0.0.0.0:0"), @r"
    $ laneway serve --listen 0.0.0.0:0
    exit code 2
    ----- stdout
    ----- stderr
    error: 0.0.0.0:0 can be reached from other hosts, and the line would not be encrypted
    hint: give --tls-cert and --tls-key, say --behind-proxy if something in front of it encrypts, or listen at 127.0.0.1
    ");
    assert_snapshot!(place.laneway("serve --listen nowhere"), @r"
    $ laneway serve --listen nowhere
    exit code 2
    ----- stdout
    ----- stderr
    error: `nowhere` is no address to listen at: invalid socket address
    hint: write an address and a port, such as 127.0.0.1:7878 or [::1]:7878
    ");
    assert_snapshot!(place.laneway("serve --tls-cert c.pem"), @r"
    $ laneway serve --tls-cert c.pem
    exit code 2
    ----- stdout
    ----- stderr
    error: there is a certificate and no key
    hint: give --tls-key as well
    ");
    assert_snapshot!(place.laneway("runs --server http://127.0.0.1:1"), @r"
    $ laneway runs --server http://127.0.0.1:1
    exit code 3
    ----- stdout
    ----- stderr
    error: http://127.0.0.1:1 cannot be reached: Connection refused (os error 111)
    hint: look whether `laneway serve` runs there, and whether host and port are right
    ");
    assert_snapshot!(place.laneway("runs --server 127.0.0.1:1"), @r"
    $ laneway runs --server 127.0.0.1:1
    exit code 2
    ----- stdout
    ----- stderr
    error: `127.0.0.1:1` is no address of a server: it begins with neither http:// nor https://
    hint: write it as http://HOST:PORT or https://HOST:PORT
    ");
    assert_snapshot!(place.laneway("run flow.yaml --server http://127.0.0.1:1"), @r"
    $ laneway run flow.yaml --server http://127.0.0.1:1
    exit code 2
    ----- stdout
    ----- stderr
    error: `laneway run` does not go through a server
    hint: leave --server out; it works on the store that --store names
    ");
    assert_snapshot!(place.laneway("token create a/b --role viewer"), @r"
    $ laneway token create a/b --role viewer
    exit code 2
    ----- stdout
    ----- stderr
    error: `a/b` cannot be the name of a token
    hint: use 1 to 100 letters, digits and - _ . @
    ");
    assert_snapshot!(place.laneway("token create a --role king"), @r"
    $ laneway token create a --role king
    exit code 2
    ----- stdout
    ----- stderr
    error: invalid value 'king' for '--role <ROLE>': use one of viewer, operator, admin, worker

    For more information, try '--help'.
    ");
}

#[test]
fn server_with_a_certificate_is_asked_over_an_encrypted_line() {
    let place = Place::new();
    place.write("cert.pem", CERTIFICATE);
    place.write("key.pem", KEY);
    let served = Served::start(&place, &["--no-worker", "--tls-cert", "cert.pem", "--tls-key", "key.pem"]);
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    let ask = |trusts: bool| {
        let mut command = place.command(&["nodes", "--json", "--server", &served.url]);
        command.env("SSL_CERT_FILE", place.path(if trusts { "cert.pem" } else { "none.pem" }));
        place.outcome("nodes", command)
    };
    assert_eq!(ask(true).code, Some(0), "{}", ask(true));
    let refused = ask(false);
    assert_eq!(refused.code, Some(3), "{refused}");
    assert!(refused.stderr.contains("invalid peer certificate"), "{refused}");
    assert_eq!(served.end().0, Some(0));
}

/// For localhost, vouched for by itself. Good for this test and nothing else.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBmDCCAT6gAwIBAgIUU1lkPfwcLRlUxLB9M1ggX8+t298wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTExNjEyMjIyMVoYDzIxMjYxMDIz
MTIyMjIxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATywGquMzZfy2rL/Md3t3ryDrOsJUMU9AcInmVy7M/s5RMB6x4xdtHL
ShWEJllzVmaZHCZoWI9Mj+fxhbAngzAao2wwajAdBgNVHQ4EFgQUXsqiEkR3kPUk
bNf3/Nnw+9rRS8kwHwYDVR0jBBgwFoAUXsqiEkR3kPUkbNf3/Nnw+9rRS8kwGgYD
VR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAwGA1UdEwEB/wQCMAAwCgYIKoZIzj0E
AwIDSAAwRQIhAPx31GYiuT7Wzrce9xCE6zbIisDMygMO1JYlL8QirMdGAiAI/R0d
HtftFN+tr4vcykDYS23OJBgJRKj2YrONVZluug==
-----END CERTIFICATE-----
";

const KEY: &str = "-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgp67qVE81K9+hFSpV
fhmEwjm4EGMaL2+h/wgWty13BouhRANCAATywGquMzZfy2rL/Md3t3ryDrOsJUMU
9AcInmVy7M/s5RMB6x4xdtHLShWEJllzVmaZHCZoWI9Mj+fxhbAngzAa
-----END PRIVATE KEY-----
";

#[test]
fn link_to_the_web_page_signs_in_once() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let link = served.ask("web");
    assert_eq!(link.code, Some(0), "{link}");
    let (url, code) = link.stdout.trim().split_once("/#code=").unwrap_or_else(|| panic!("{link}"));
    assert_eq!((url, code.len()), (served.url.as_str(), 64));
    assert!(link.stderr.contains("role admin"), "{link}");
    let made = served.json("web --role viewer --json");
    assert_eq!(made["role"], "viewer");
    assert!(text(&made["link"]).starts_with(&format!("{}/#code=", served.url)), "{made}");
    let refused = served.ask("web --role worker");
    assert_eq!(refused.code, Some(2), "{refused}");
    let (_, said) = served.end();
    assert!(
        said.contains("the web page is at http://127.0.0.1:") && said.contains("`laneway web` prints a link"),
        "{said}"
    );
    assert!(!said.contains("code="), "what may be kept in a log lets nobody in: {said}");
    let gone = place.laneway("web --server http://127.0.0.1:1");
    assert_eq!(gone.code, Some(3), "{gone}");
}

#[test]
fn secret_that_is_set_through_a_server_reaches_a_step_and_is_never_told() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nsecrets: {db: {store: db}}\nsteps: {a: {env: {DB: '${{ secrets.db }}'}, run: 'test \"$DB\" = \"a value that is long enough\" && echo $DB'}}\n",
    );
    let server = Served::start(&place, &[]);
    place.write("value", "a value that is long enough\n");
    let mut set = place.command(&["secret", "set", "db", "--server", server.url()]);
    set.stdin(std::fs::File::open(place.path("value")).expect("a file"));
    let said = place.outcome("secret set db", set);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), "secret db is set\n"), "{said}");
    assert_eq!(server.ask("submit flow.yaml").code, Some(0));
    let ended = server.ask("watch last");
    assert_eq!(ended.code, Some(0), "{ended}");
    let logs = server.ask("logs last");
    assert!(logs.stdout.contains("***") && !logs.stdout.contains("long enough"), "{logs}");
    let listed = server.json("secret list --json");
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["name"]), (Some(1), &json!("db")));
    let removed = server.ask("secret remove db");
    assert_eq!(removed.code, Some(0), "{removed}");
    let again = server.ask("secret remove db");
    assert!(again.code == Some(2) && again.stderr.contains("db"), "{again}");
    assert_eq!(server.end().0, Some(0));
}

#[test]
fn what_is_changed_beside_a_store_is_in_its_audit_log() {
    let place = Place::with(
        "flow.yaml",
        "name: flow\nexecution: levels\nschedule: [{cron: '0 0 1 1 *'}]\nsteps: {a: {run: 'true'}, b: {needs: [a], run: 'true'}}\n",
    );
    let done = |line: &str| {
        let outcome = place.laneway(line);
        assert_eq!(outcome.code, Some(0), "{outcome}");
    };
    for line in [
        "apply flow.yaml",
        "schedule pause flow",
        "schedule resume flow",
        "limit set api 3",
        "start flow --paused",
        "advance last",
        "resume last",
        "pause last",
        "cancel last",
        "start flow --paused",
        "cancel last",
        "prune --keep 1",
        "cache clear",
        "pause --workflow flow",
        "resume --workflow flow",
        "token create ci --role viewer",
        "run flow.yaml",
        "retry last --from b",
    ] {
        done(line);
    }
    place.write("value", "a value that is long enough");
    let mut set = place.command(&["secret", "set", "db"]);
    set.stdin(std::fs::File::open(place.path("value")).expect("a file"));
    assert_eq!(place.outcome("secret set db", set).code, Some(0));
    done("secret remove db");
    let store = rusqlite::Connection::open(place.path(".laneway/laneway.db")).expect("the store");
    let mut entries = store
        .prepare("SELECT by || ' ' || act || ' ' || what || ' by ' || origin FROM audit ORDER BY seq")
        .expect("the log");
    let entries = entries.query_map((), |row| row.get::<_, String>(0)).expect("entries");
    let entries: Vec<String> = entries.collect::<Result<_, _>>().expect("text");
    assert_snapshot!(crate::place::steady(&entries.join("\n"), &place.path("")), @"
    ada bring bundle [version] by command line
    ada apply workflow flow as version 1 by command line
    ada pause_triggers workflow flow by command line
    ada resume_triggers workflow flow by command line
    ada set_limit limit api to 3 by command line
    ada submit run [uuid] of flow by command line
    ada advance run [uuid] by command line
    ada resume run [uuid] by command line
    ada pause run [uuid] by command line
    ada cancel run [uuid] by command line
    ada submit run [uuid] of flow by command line
    ada cancel run [uuid] by command line
    ada prune 1 run, 0 recorded results by command line
    ada clear_cache all results by command line
    ada pause workflow flow by command line
    ada resume workflow flow by command line
    ada create_token token ci with the role viewer by command line
    ada retry run [uuid] from b by command line
    ada set_secret secret db by command line
    ada remove_secret secret db by command line
    ");
}

const COMPOSE: &str = include_str!("../../../../packaging/docker/compose.yaml");

#[test]
fn compose_file_names_settings_that_there_are() {
    let known = include_str!("../../../../docs/reference/settings.md");
    let names = regex::Regex::new(r"\bLANEWAY_[A-Z_]+").expect("a pattern");
    let names: Vec<&str> = names.find_iter(COMPOSE).map(|name| name.as_str()).collect();
    assert!(names.len() >= 5, "{names:?}");
    for name in names {
        assert!(known.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn compose_file_asks_the_node_itself_whether_it_is_healthy() {
    let place = Place::new();
    let served = Served::start(&place, &["--no-worker"]);
    let port = served.url().rsplit(':').next().expect("a port").to_owned();
    let test = COMPOSE.lines().find_map(|line| line.trim().strip_prefix("test: ")).expect("a check");
    let test: Vec<String> = serde_json::from_str(test).expect("a list");
    assert!(test[0] == "CMD" && test.iter().any(|word| word.contains("7878")), "{test:?}");
    let is_healthy = || {
        let words: Vec<String> = test[1..].iter().map(|word| word.replace("7878", &port)).collect();
        let mut check = std::process::Command::new(&words[0]);
        check.args(&words[1..]).stderr(Stdio::null()).status().expect("it runs").success()
    };
    assert!(is_healthy());
    assert_eq!(served.end().0, Some(0));
    assert!(!is_healthy());
}

#[test]
fn command_without_a_token_is_told_where_to_get_one() {
    let place = Place::with("flow.yaml", FLOW);
    let served = Served::start(&place, &[]);
    let elsewhere = Place::new();
    let outcome = elsewhere.laneway(&format!("runs --server {}", served.url()));
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("error: there is no token in the request"), "{outcome}");
    assert!(outcome.stderr.contains("hint: set LANEWAY_TOKEN to a token of that server"), "{outcome}");
}

#[test]
fn killed_run_is_not_said_to_go_on_by_a_server() {
    let place = Place::with("long.yaml", "steps: {a: {run: 'touch begun; sleep 600'}}");
    let running = place.spawn("run long.yaml");
    until("the step", || place.path("begun").exists());
    running.signal(rustix::process::Signal::KILL);
    running.wait();
    let served = Served::start(&place, &["--no-worker"]);
    let resumed = served.ask("resume last");
    assert_eq!(resumed.code, Some(1), "{resumed}");
    assert!(resumed.stderr.contains("the `laneway run` that ran it is gone"), "{resumed}");
    let retried = served.ask("retry last");
    assert_eq!(retried.code, Some(2), "{retried}");
    assert!(retried.stderr.contains("is one of `laneway run`"), "{retried}");
}
