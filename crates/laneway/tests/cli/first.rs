//! The first minutes: `laneway init`, `laneway watch` and the manual pages.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::{Place, until};
use crate::serve::Served;

#[test]
fn init_writes_a_workflow_that_runs_as_it_says() {
    let place = Place::new();
    assert_snapshot!(place.laneway("init"), @r"
    $ laneway init
    exit code 0
    ----- stdout
    wrote hello.yaml

    next:
      laneway run hello.yaml      run it and watch
      laneway plan hello.yaml     see what runs side by side
      laneway show last           what became of it
      laneway logs last           what its steps printed
      laneway top                 all of that on one screen
    ----- stderr
    ");
    assert_eq!(place.laneway("validate hello.yaml").code, Some(0));
    let run = place.laneway("run hello.yaml -p name=ada");
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(place.laneway("logs last greet").stdout, "hello, ada (1)\nhello, ada (2)\nhello, ada (3)\n");
    assert_eq!(place.laneway("logs last measure[2]").stdout, "three has 5 letters\n");
    let shown = place.json("show last --json");
    let fetch = shown["tasks"].as_array().and_then(|tasks| tasks.iter().find(|task| task["step"] == "fetch"));
    assert_eq!(fetch.expect("a step")["attempt"], 2, "it shows a retry");
    for command in ["plan hello.yaml", "show last", "logs last"] {
        assert_eq!(place.laneway(command).code, Some(0), "what it says to type next: {command}");
    }
}

#[test]
fn init_never_writes_over_a_file() {
    let place = Place::with("hello.yaml", "mine");
    assert_snapshot!(place.laneway("init"), @r"
    $ laneway init
    exit code 2
    ----- stdout
    ----- stderr
    error: hello.yaml is there already
    hint: `laneway run hello.yaml` runs it; `laneway init DIR` writes elsewhere
    ");
    assert_eq!(place.read("hello.yaml"), "mine");
    assert_eq!(place.laneway("init a/b").code, Some(0));
    assert!(place.read("a/b/hello.yaml").contains("steps:"));
    place.write("file", "");
    let refused = place.laneway("init file");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("the directory file cannot be made"), "{refused}");
}

const FLOW: &str = "
name: flow
steps:
  a: {run: 'echo a; cat go'}
  b: {needs: [a], run: 'echo it broke; exit 1'}
";

#[test]
fn watch_follows_a_run_of_somebody_else_to_its_end() {
    let place = Place::with("flow.yaml", FLOW);
    place.pipe("go");
    let run = place.spawn("run flow.yaml");
    until("a step that runs", || {
        place.laneway("show last --json").stdout.contains(r#""status":"running","attempt":1"#)
    });
    let mut watched = place.spawn("watch last");
    let events = place.spawn("watch last --json");
    watched.wait_for("a started");
    std::fs::write(place.path("go"), "on\n").expect("the step reads it");
    assert_eq!(run.wait().code, Some(1));
    let watched = watched.wait();
    assert_eq!(watched.code, Some(1), "as the run: {watched}");
    assert!(watched.stdout.contains("a succeeded") && watched.stdout.contains("it broke"), "{watched}");
    assert!(watched.stdout.contains("flow") && watched.stdout.contains(" failed in "), "{watched}");
    let events = events.wait();
    assert_eq!(events.code, Some(1));
    assert_eq!(events.stdout, place.laneway("events last --json").stdout, "each event once, in order");
    assert!(events.stderr.is_empty(), "{events}");
    // One that has ended is told of as well.
    assert_snapshot!(place.laneway("watch last"), @r"
    $ laneway watch last
    exit code 1
    ----- stdout
    [clock] run [id] of flow submitted
    [clock] a started
    [clock] a succeeded in [took]
    [clock] b started
    [clock] b failed in [took]: exit code 1
    [clock] run halts because b failed: nothing new starts

    ✗ b, it printed (laneway logs [id] b):
      │ it broke

    ✗ flow [id] failed in [took]: 1 succeeded, 1 failed (b failed: exit code 1); next: laneway logs [id] b, laneway retry [id]
    ----- stderr
    ");
    assert_eq!(place.laneway("watch nothing").code, Some(2));
}

#[test]
fn watching_can_be_left_and_the_run_goes_on() {
    let place = Place::with("flow.yaml", FLOW);
    place.pipe("go");
    let run = place.spawn("run flow.yaml");
    until("a step that runs", || {
        place.laneway("show last --json").stdout.contains(r#""status":"running","attempt":1"#)
    });
    let mut watched = place.spawn("watch");
    watched.wait_for("a started");
    watched.signal(Signal::INT);
    let watched = watched.wait();
    assert_eq!(watched.code, Some(130), "{watched}");
    assert!(watched.stderr.contains("goes on"), "{watched}");
    assert_eq!(place.json("show last --json")["status"], "running");
    std::fs::write(place.path("go"), "on\n").expect("the step reads it");
    assert_eq!(run.wait().code, Some(1));
}

#[test]
fn watch_says_that_nobody_drives_the_run_any_more() {
    let place = Place::with("flow.yaml", FLOW);
    place.pipe("go");
    let run = place.spawn("run flow.yaml");
    until("a step that runs", || {
        place.laneway("show last --json").stdout.contains(r#""status":"running","attempt":1"#)
    });
    run.signal(Signal::KILL);
    run.wait();
    let watched = place.laneway("watch last");
    assert_eq!(watched.code, Some(1), "{watched}");
    assert!(watched.stderr.contains("laneway resume"), "{watched}");
}

#[test]
fn watch_goes_through_a_server_and_back_to_it() {
    let place = Place::in_place("flow.yaml", FLOW);
    place.pipe("go");
    let served = Served::start(&place, &["--no-worker"]);
    let worker = place.spawn("worker --shutdown-grace 1s");
    place.laneway("submit flow.yaml");
    let line = format!("watch last --server {}", served.url());
    let mut watched = place.spawn(&line);
    watched.wait_for("a started");
    let address = served.url().trim_start_matches("http://").to_owned();
    assert_eq!(served.end().0, Some(0));
    // The run does not wait for the server, and whoever watches does.
    std::fs::write(place.path("go"), "on\n").expect("the step reads it");
    until("the end of the run", || place.json("show last --json")["status"] == "failed");
    let served = Served::start_at(&place, &address, &["--no-worker"]);
    let watched = watched.wait();
    assert_eq!(watched.code, Some(1), "{watched}");
    assert!(watched.stdout.contains("it broke") && watched.stdout.contains(" failed in "), "{watched}");
    assert!(
        watched.stderr.contains("cannot be reached") && watched.stderr.contains("trying again"),
        "{watched}"
    );
    let json = served.ask("watch last --json").stdout;
    assert_eq!(json, place.laneway("events last --json").stdout);
    served.end();
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn whoever_follows_a_run_through_a_server_outlives_a_restart_of_it() {
    let place = Place::new();
    place.pipe("go");
    let go = place.path("go").display().to_string();
    let flow = format!(
        "name: flow\nsteps: {{a: {{run: 'echo before; cat {go}'}}, b: {{needs: [a], run: 'echo behind; exit 1'}}}}\n"
    );
    // Not beside the pipe, which cannot be packed.
    std::fs::create_dir(place.path("flows")).expect("a directory");
    place.write("flows/flow.yaml", &flow);
    let served = Served::start(&place, &["--no-worker"]);
    let worker = place.spawn("worker --shutdown-grace 1s");
    assert_eq!(place.laneway("apply flows/flow.yaml").code, Some(0));
    let follow = |line: &str, seen: &str| {
        let mut running = place.spawn(&format!("{line} --server {}", served.url()));
        running.wait_for(seen);
        running
    };
    let mut following = [
        follow("start flow --wait", "a started"),
        follow("events last --follow", "a started"),
        follow("logs last --follow", "before"),
        follow("logs last a --follow", "before"),
    ];
    let address = served.url().trim_start_matches("http://").to_owned();
    assert_eq!(served.end().0, Some(0));
    following.iter_mut().for_each(|running| running.wait_for_note("cannot be reached"));
    std::fs::write(&go, "on\n").expect("the step reads it");
    until("the end of the run", || place.json("show last --json")["status"] == "failed");
    let served = Served::start_at(&place, &address, &["--no-worker"]);
    let [started, events, logs, log] = following.map(|running| running.wait());
    assert_eq!(started.code, Some(1), "as the run: {started}");
    assert!(started.stdout.contains("run failed"), "{started}");
    assert!(events.code == Some(0) && events.stdout.contains("run failed"), "{events}");
    assert!(logs.code == Some(0) && logs.stdout.contains("on\n") && logs.stdout.contains("behind"), "{logs}");
    // What was shown before is not shown again, and what came meanwhile is.
    assert_eq!((log.code, log.stdout.trim_start()), (Some(0), "on\n"), "{log}");
    // Once, however often it was tried.
    assert_eq!(started.stderr.matches("cannot be reached").count(), 0, "{started}");
    let address = served.url().to_owned();
    served.end();
    // Who does not follow is told at once.
    assert_eq!(place.laneway(&format!("events last --server {address}")).code, Some(3));
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    assert_eq!(place.laneway("man pages").code, Some(0));
    let help = place.laneway("--help").stdout;
    let listed =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = listed
        .filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() > 40, "{names:?}");
    for name in names {
        let page = place.read(&format!("pages/laneway-{name}.1"));
        assert!(page.contains(".SH NAME") && page.contains("Example"), "{name}: {page}");
    }
    assert!(!place.path("pages/laneway-warden.1").exists(), "what is hidden has none");
}
