//! Settings: a flag, then the environment, then laneway.toml, then the default; and what is wrong is named.

use insta::assert_snapshot;
use serde_json::Value;

use crate::place::{Place, text, until};

fn effective(place: &Place, name: &str) -> (Value, String) {
    let settings = place.json("settings --json");
    let all = settings.as_array().expect("a list");
    let one = all.iter().find(|setting| setting["name"] == name).expect("a setting of that name");
    (one["value"].clone(), text(&one["from"]).to_owned())
}

#[test]
fn every_source_wins_over_those_behind_it() {
    let place = Place::new();
    assert_eq!(effective(&place, "kill_grace"), ("5s".into(), "default".into()));
    place.write("laneway.toml", "kill_grace = \"2s\"\nslots = 8\nlabels = {zone = \"eu\"}\n");
    assert_eq!(effective(&place, "kill_grace"), ("2s".into(), "laneway.toml".into()));
    assert_eq!(effective(&place, "slots"), ("8".into(), "laneway.toml".into()));
    let mut command = place.command(&["settings", "--json"]);
    command.env("LANEWAY_KILL_GRACE", "3s");
    let outcome = place.outcome("settings --json", command);
    assert!(
        outcome.stdout.contains(r#""value":"3s","#) && outcome.stdout.contains("environment"),
        "{outcome}"
    );
    let told = place.spawn("worker --slots 2 --node-address one");
    until("a node", || place.laneway("nodes --json").stdout.contains(r#""node":"one""#));
    told.signal(rustix::process::Signal::TERM);
    let outcome = told.wait();
    for part in
        ["slots 2 (flag)", "kill_grace 2s (laneway.toml)", "labels zone=eu (laneway.toml)", "lease_ttl 60s,"]
    {
        assert!(outcome.stderr.contains(part), "{part}: {outcome}");
    }
}

/// `after` starts only where the failure of `bad` halts nothing: it waits for a step that starts behind it.
const SILENT: &str = "
steps:
  bad: {run: 'exit 1', retry: {max: 0}}
  flaky: {needs: [bad], when: all_done, run: 'echo >> tries; test $(wc -l < tries) -gt 2'}
  slow: {run: 'sleep 600'}
  after: {needs: [flaky], run: 'touch after'}
";

/// Retries, a timeout and the rule for failures, of a document that says nothing about them.
fn follows_the_deployment(place: &Place) {
    assert_eq!(place.read("tries"), "\n\n\n", "two more attempts");
    assert!(place.path("after").exists(), "a failure of another step does not stop it");
    let run = place.json("show last --json");
    let task = |name: &str| {
        run["tasks"].as_array().expect("a list").iter().find(|task| task["step"] == name).expect("it").clone()
    };
    assert_eq!([text(&task("flaky")["status"]), text(&task("slow")["status"])], ["succeeded", "failed"]);
    assert_eq!([text(&task("slow")["reason"]), text(&run["status"])], ["timeout", "failed"]);
}

#[test]
fn policies_of_the_deployment_count_where_a_document_is_silent() {
    let place = Place::in_place("flow.yaml", SILENT);
    place.write("laneway.toml", "on_failure = \"continue\"\nstep_timeout = \"2s\"\nstep_retry = 2\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    follows_the_deployment(&place);
    std::fs::remove_file(place.path("laneway.toml")).expect("it was there");
    assert_eq!(place.laneway("replay last").code, Some(0), "what was in force is known by the run");
}

#[test]
fn policies_of_who_submits_are_kept_with_the_run() {
    let place = Place::in_place("flow.yaml", SILENT);
    let variables =
        [("LANEWAY_ON_FAILURE", "continue"), ("LANEWAY_STEP_TIMEOUT", "2s"), ("LANEWAY_STEP_RETRY", "2")];
    let mut command = place.command(&["submit", "flow.yaml"]);
    command.envs(variables);
    let submitted = place.outcome("submit", command);
    assert_eq!(submitted.code, Some(0), "{submitted}");
    // The worker has no such settings.
    let worker = place.spawn("worker");
    until("the end of the run", || text(&place.json("show last --json")["status"]) == "failed");
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
    follows_the_deployment(&place);
}

#[test]
fn policy_that_means_nothing_is_refused_with_what_to_write() {
    let place = Place::with("flow.yaml", SILENT);
    for (name, value, how) in [
        ("LANEWAY_ON_FAILURE", "stop", "use halt, abort or continue"),
        ("LANEWAY_STEP_TIMEOUT", "0s", "leave it out for no limit"),
        ("LANEWAY_STEP_RETRY", "0", "use a whole number from 1 to 1000; leave it out for none"),
        ("LANEWAY_STEP_RETRY", "1001", "use a whole number from 1 to 1000"),
    ] {
        let mut command = place.command(&["validate", "flow.yaml"]);
        command.env(name, value);
        let outcome = place.outcome("validate", command);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains(name) && outcome.stderr.contains(how), "{outcome}");
    }
}

#[test]
fn container_engine_is_shown_where_it_is_looked_for() {
    let place = Place::new();
    let mut command = place.command(&["settings", "--json"]);
    command.env("DOCKER_HOST", "unix:///run/other.sock");
    let outcome = place.outcome("settings --json", command);
    let all: Vec<Value> = serde_json::from_str(&outcome.stdout).expect("JSON");
    let host = all.iter().find(|setting| setting["name"] == "docker_host").expect("a setting");
    assert_eq!([text(&host["value"]), text(&host["from"])], ["unix:///run/other.sock", "environment"]);
}

#[test]
fn document_wins_over_the_file_and_the_flag_over_both() {
    let place = Place::with("flow.yaml", "max_parallel: 3\nsteps: {a: {run: 'true'}}\n");
    place.write("free.yaml", "steps: {a: {run: 'true'}}\n");
    place.write("laneway.toml", "max_parallel = 7\n");
    let max = |line: &str| {
        assert_eq!(place.laneway(line).code, Some(0));
        let first = place.laneway("events last --json").stdout;
        let first: Value = serde_json::from_str(first.lines().next().expect("an event")).expect("JSON");
        first["max_parallel"].clone()
    };
    assert_eq!(max("run flow.yaml"), 3);
    assert_eq!(max("run free.yaml"), 7);
    assert_eq!(max("run flow.yaml --max-parallel 2"), 2);
}

#[test]
fn what_is_wrong_in_the_file_is_named_before_anything_runs() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
    place.write("laneway.toml", "slot = 8\n");
    assert_snapshot!(place.laneway("run flow.yaml"), @r"
    $ laneway run flow.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: laneway.toml: there is no setting `slot`
    hint: do you mean `slots`? `laneway settings` lists them
    ");
    place.write("laneway.toml", "kill_grace = 5\n");
    assert_snapshot!(place.laneway("run flow.yaml"), @r#"
    $ laneway run flow.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: laneway.toml: `kill_grace` is 5
    hint: write a duration in quotes, such as "[took]", "5s" or "1m"
    "#);
    assert!(!place.path(".laneway").exists());
}

#[test]
fn a_lease_that_a_missed_beat_would_end_is_refused() {
    let place = Place::new();
    assert_snapshot!(place.laneway("worker --lease-ttl 5s --heartbeat-interval 4s"), @r"
    $ laneway worker --lease-ttl 5s --heartbeat-interval 4s
    exit code 2
    ----- stdout
    ----- stderr
    error: heartbeat_interval is 4s and lease_ttl 5s
    hint: give at least three signs of life in a lease: heartbeat_interval at most a third of lease_ttl
    ");
}

#[test]
fn password_of_a_store_is_never_shown() {
    let place = Place::new();
    let mut command = place.command(&["settings"]);
    command.env("LANEWAY_STORE", "postgres://ada:secret@db.example/jobs");
    let outcome = place.outcome("settings", command);
    assert!(outcome.stdout.contains("postgres://ada@db.example:5432/jobs"), "{outcome}");
    assert!(!outcome.stdout.contains("secret"), "{outcome}");
}

#[test]
fn command_that_cannot_ask_the_server_that_is_named_does_nothing_beside_it() {
    let place = Place::new();
    let ask = |line: &str, server: Option<&str>| {
        let mut command = place.command(&line.split(' ').collect::<Vec<_>>());
        server.map(|server| command.env("LANEWAY_SERVER", server));
        place.outcome(line, command)
    };
    let server = Some("http://127.0.0.1:1");
    assert_snapshot!(ask("prune --keep 1", server), @r"
    $ laneway prune --keep 1
    exit code 2
    ----- stdout
    ----- stderr
    error: `laneway prune` does not go through a server, and LANEWAY_SERVER names one
    hint: use it where the store lies, and name that with --store; or unset LANEWAY_SERVER
    ");
    for line in
        ["backup copy.tar", "restore copy.tar", "doctor", "replay last", "move --to postgres://db/lane"]
    {
        let outcome = ask(line, server);
        assert_eq!(outcome.code, Some(2), "{outcome}");
        assert!(outcome.stderr.contains("does not go through a server"), "{outcome}");
    }
    assert!(!place.path(".laneway").exists(), "a store was made");
    // Who names the store as well means that one; and what executes steps does so here.
    assert!(ask("doctor --store .laneway/laneway.db", server).stderr.contains("laneway.db"));
    place.write("flow.yaml", "steps: {a: {run: 'true'}}\n");
    assert_eq!(ask("run flow.yaml", server).code, Some(0));
    place.write("laneway.toml", "server = \"http://127.0.0.1:1\"\n");
    assert_snapshot!(ask("doctor", None), @r"
    $ laneway doctor
    exit code 2
    ----- stdout
    ----- stderr
    error: `laneway doctor` does not go through a server, and laneway.toml names one
    hint: use it where the store lies, and name that with --store
    ");
    place.write("laneway.toml", "server = \"http://127.0.0.1:1\"\nstore = \".laneway/laneway.db\"\n");
    assert_eq!(ask("doctor", None).code, Some(0), "both are named");
}

#[test]
fn limit_has_a_name_that_a_document_could_give_it() {
    let place = Place::new();
    let mut command = place.command(&["limit", "set", "a\u{1b}[31m", "3"]);
    command.env_remove("LANEWAY_SERVER");
    assert_snapshot!(place.outcome("limit set ESC 3", command), @r"
    $ laneway limit set ESC 3
    exit code 2
    ----- stdout
    ----- stderr
    error: `a\u{1b}[31m` cannot be the name of a limit: it contains the invisible character U+001B
    hint: use letters, digits, `_` and `-`, starting with a letter or `_`
    ");
    assert!(!place.path(".laneway").exists(), "a store was made");
}

fn with(place: &Place, line: &str, env: &[(&str, &str)]) -> crate::place::Outcome {
    let mut command = place.command(&line.split(' ').collect::<Vec<_>>());
    command.envs(env.iter().copied());
    place.outcome(line, command)
}

#[test]
fn the_nearest_of_store_and_server_is_asked() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    // Nobody listens there.
    let server = ("LANEWAY_SERVER", "http://127.0.0.1:1");
    assert_eq!(with(&place, "runs", &[server]).code, Some(3));
    assert_eq!(with(&place, "runs --store .laneway/laneway.db", &[server]).code, Some(0), "a flag is nearer");
    assert_eq!(
        with(&place, "runs --server http://127.0.0.1:1", &[("LANEWAY_STORE", ".laneway/laneway.db")]).code,
        Some(3)
    );
    assert_eq!(
        with(&place, "runs", &[server, ("LANEWAY_STORE", ".laneway/laneway.db")]).code,
        Some(3),
        "as near"
    );
    place.write("laneway.toml", "server = \"http://127.0.0.1:1\"\n");
    assert_eq!(
        with(&place, "runs", &[("LANEWAY_STORE", ".laneway/laneway.db")]).code,
        Some(0),
        "nearer than the file"
    );
    assert_snapshot!(place.laneway("runs --store .laneway/laneway.db --server http://127.0.0.1:1"), @r"
    $ laneway runs --store .laneway/laneway.db --server http://127.0.0.1:1
    exit code 2
    ----- stdout
    ----- stderr
    error: --server and --store name two places to look
    hint: give one of them
    ");
}

#[test]
fn run_is_local_and_says_so_where_a_server_is_named() {
    let far = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
    let served = crate::serve::Served::start(&far, &[]);
    served.ask("submit flow.yaml");
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    let token = far.read(".laneway/admin.token");
    let here = Place::with("mine.yaml", "name: mine\nsteps: {a: {run: 'true'}}\n");
    let env = [("LANEWAY_SERVER", served.url()), ("LANEWAY_TOKEN", token.trim())];
    let ran = with(&here, "run mine.yaml", &env);
    assert_eq!(ran.code, Some(0), "{ran}");
    let first = format!("runs here, in .laneway/laneway.db; the server of LANEWAY_SERVER ({})", served.url());
    assert!(ran.stderr.starts_with(&first), "{ran}");
    let last = with(&here, "show last", &env);
    assert!(last.stdout.contains("flow "), "the server's: {last}");
    assert!(last.stderr.contains(" of mine is newer and in the store here: `laneway show "), "{last}");
    let id = text(&here.json("runs --json")[0]["run"]).to_owned();
    let shown = with(&here, &format!("explain {id}"), &env);
    assert_eq!(shown.code, Some(2), "{shown}");
    assert!(
        shown.stderr.contains("it is in the store here: `laneway explain ")
            && shown.stderr.contains("--store .laneway/laneway.db`"),
        "{shown}"
    );
}

#[test]
fn lower_lease_alone_has_its_signs_of_life() {
    let place = Place::new();
    let mut command = place.command(&["settings", "--json"]);
    command.env("LANEWAY_LEASE_TTL", "6s");
    let told = place.outcome("settings", command).stdout;
    let settings: Value = serde_json::from_str(&told).expect("JSON");
    let every = settings.as_array().expect("a list").iter().find(|one| one["name"] == "heartbeat_interval");
    assert_eq!(every.expect("a setting")["value"], "2000ms");
    let worker = place.spawn("worker --lease-ttl 6s");
    until("a node", || place.laneway("nodes --json").stdout.contains("pid"));
    worker.signal(rustix::process::Signal::TERM);
    assert_eq!(worker.wait().code, Some(0));
}

#[test]
fn variable_that_is_no_setting_is_told_with_the_nearest() {
    let place = Place::new();
    let told = with(&place, "settings", &[("LANEWAY_MAX_PARALEL", "9")]);
    assert_eq!(told.code, Some(0), "{told}");
    assert_snapshot!(told.stderr, @r"
    warning: LANEWAY_MAX_PARALEL is set, and there is no such setting; it changes nothing
    hint: did you mean LANEWAY_MAX_PARALLEL? `laneway settings` lists them
    ");
}
