//! Workflows that start by themselves: previews, schedules with several nodes of which one dies, ends of other workflows.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;

#[test]
fn preview_shows_the_moments_to_come_with_their_offsets() {
    let place = Place::with(
        "nightly.yaml",
        "schedule: [{cron: \"30 2 * * *\", timezone: Europe/Berlin}, {cron: \"0 12 1 * *\"}]\nsteps: {a: {run: x}}\n",
    );
    let outcome = place.laneway("schedule preview nightly.yaml -n 3 --from 2027-03-27T00:00:00Z");
    let expected = "30 2 * * * in Europe/Berlin\n  2027-03-27 02:30:00 +01:00\n  \
        2027-03-28 03:00:00 +02:00  02:30:00 does not exist on that day\n  2027-03-29 02:30:00 +02:00\n\n\
        0 12 1 * * in UTC\n  2027-04-01 12:00:00 +00:00\n  2027-05-01 12:00:00 +00:00\n  2027-06-01 12:00:00 +00:00\n";
    assert_eq!(outcome.stdout, expected);
}

#[test]
fn preview_of_a_pattern_needs_no_file() {
    let place = Place::new();
    let mut command =
        place.command(&["schedule", "preview", "--cron", "5 * * * *", "--timezone", "Europe/Berlin"]);
    command.args(["-n", "3", "--from", "2026-10-25T00:00:00Z", "--json"]);
    let outcome = place.outcome("schedule preview --cron …", command);
    let ticks: Vec<serde_json::Value> = serde_json::from_str(&outcome.stdout).expect("JSON");
    let told: Vec<String> =
        ticks.iter().map(|tick| format!("{} {}", text(&tick["at"]), tick["note"])).collect();
    assert_eq!(
        told,
        [
            "2026-10-25T00:05:00.000Z \"the first of two\"",
            "2026-10-25T01:05:00.000Z \"the second of two\"",
            "2026-10-25T02:05:00.000Z null"
        ]
    );
}

#[test]
fn what_has_no_schedule_has_no_preview() {
    let place = Place::with("flow.yaml", "steps: {a: {run: x}}");
    assert_snapshot!(place.laneway("schedule preview flow.yaml"), @r#"
    $ laneway schedule preview flow.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: flow has no schedule
    hint: add one: `schedule: {cron: "0 2 * * *"}` is every night at two
    "#);
}

#[test]
fn a_schedule_says_whether_a_node_fires_it() {
    says_whether_a_node_fires_it(&Place::new());
}

#[test]
fn a_schedule_says_whether_a_node_fires_it_on_postgres_too() {
    says_whether_a_node_fires_it(&Place::with("laneway.toml", &format!("store = \"{}\"\n", schema())));
}

fn says_whether_a_node_fires_it(place: &Place) {
    place.write("every.yaml", &every_second(place));
    place.write("plain.yaml", "steps: {a: {run: 'true'}}\n");
    let applied = place.laneway("apply every.yaml");
    assert!(applied.stdout.ends_with("no live node fires its schedule yet\n"), "{applied}");
    assert!(applied.stderr.contains("hint: start `laneway worker` or `laneway serve`"), "{applied}");
    assert_eq!(place.json("apply every.yaml --json")[0]["fired_by"], serde_json::json!([]));
    assert_eq!(place.json("apply plain.yaml --json")[0]["fired_by"], serde_json::Value::Null);
    until("a tick that no node fires", || {
        let list = place.laneway("schedule list");
        list.stdout.contains("due ") && list.stdout.contains(" ago; no node fires it")
    });
    let list = place.laneway("schedule list");
    assert!(list.stderr.contains("no live node fires schedules; start `laneway worker`"), "{list}");
    let worker = worker(place, "one");
    assert_eq!(place.json("apply every.yaml --json")[0]["fired_by"], serde_json::json!(["one"]));
    let applied = place.laneway("apply every.yaml");
    assert!(applied.stdout.ends_with("node one fires its schedule\n"), "{applied}");
    let list = place.laneway("schedule list");
    assert!(!list.to_string().contains("no node") && !list.to_string().contains("no live node"), "{list}");
    worker.signal(Signal::TERM);
    worker.wait();
    // A server that takes no work fires schedules too.
    let server = place.spawn("serve --no-worker --listen 127.0.0.1:0 --node-address two");
    until("the server", || {
        place.json("apply every.yaml --json")[0]["fired_by"] == serde_json::json!(["two"])
    });
    server.signal(Signal::TERM);
    server.wait();
}

#[test]
fn a_schedule_that_was_applied_or_resumed_just_now_shows_its_next_tick() {
    let place = Place::with("leap.yaml", "schedule: {cron: '0 0 29 2 *'}\nsteps: {a: {run: x}}\n");
    place.laneway("apply leap.yaml");
    let next = || place.json("schedule list --json")[0]["next"].clone();
    let is_leap_day =
        |next: &serde_json::Value| next.as_str().is_some_and(|at| at.contains("-02-29T00:00:00"));
    assert!(is_leap_day(&next()), "{}", next());
    place.laneway("schedule pause leap");
    assert_eq!(next(), serde_json::Value::Null);
    place.laneway("schedule resume leap");
    assert!(is_leap_day(&next()), "{}", next());
}

fn lines(place: &Place, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(place.path(file)).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn worker(place: &Place, name: &str) -> Running {
    let worker = place.spawn(&format!("worker --shutdown-grace 1s --node-address {name}"));
    until("a node", || place.laneway("nodes --json").stdout.contains(&format!("\"{name}\"")));
    worker
}

/// A workflow that starts every second and writes down for which one; on a busy machine some of them late.
fn every_second(place: &Place) -> String {
    let file = place.path("ticks").display().to_string();
    format!(
        "schedule: {{cron: \"* * * * * *\", catch_up: all, params: {{at: \"${{{{ tick.at }}}}\"}}}}\n\
         params: {{at: {{type: string}}}}\nmax_parallel: 1\n\
         steps: {{note: {{run: 'echo \"$AT $LANEWAY_RUN\" >> {file}', env: {{AT: \"${{{{ params.at }}}}\"}}}}}}\n"
    )
}

#[test]
fn each_tick_starts_one_run_however_many_nodes_look_and_when_one_of_them_dies() {
    each_tick_starts_one_run(&Place::new());
}

#[test]
fn each_tick_starts_one_run_on_postgres_too() {
    // What the dead node held comes back when its lease is over.
    let lease = "lease_ttl = \"2s\"\nheartbeat_interval = \"300ms\"\n";
    each_tick_starts_one_run(&Place::with("laneway.toml", &format!("store = \"{}\"\n{lease}", schema())));
}

/// `cargo xtask torture ticks` lets one die around every write of it.
fn each_tick_starts_one_run(place: &Place) {
    place.write("every.yaml", &every_second(place));
    assert_eq!(place.laneway("apply every.yaml").code, Some(0));
    let workers = ["one", "two", "three"].map(|name| worker(place, name));
    until("some ticks", || lines(place, "ticks").len() >= 3);
    let [one, ..] = &workers;
    one.signal(Signal::KILL);
    until("more ticks", || lines(place, "ticks").len() >= 7);
    let pause = place.laneway("schedule pause every");
    assert_eq!(pause.code, Some(0), "{pause}");
    let is_over = |run: &serde_json::Value| text(&run["status"]) == "succeeded";
    until("every run to end", || {
        let runs = place.json("runs --json --limit 1000");
        runs.as_array().is_some_and(|runs| runs.iter().all(is_over))
    });
    let mut ticks = lines(place, "ticks");
    // A step whose node died behind it runs again, and says the same of the same run.
    ticks.dedup();
    let seconds: Vec<i64> = ticks
        .iter()
        .map(|line| {
            let tick = line.split(' ').next().unwrap_or_default();
            tick.parse::<jiff::Timestamp>().unwrap_or_else(|_| panic!("no moment: {tick}")).as_second()
        })
        .collect();
    let expected: Vec<i64> = (seconds[0]..).take(seconds.len()).collect();
    assert_eq!(seconds, expected, "none is left out, and none comes twice");
}

#[test]
fn end_of_a_run_starts_the_workflow_that_waits_for_it() {
    let place = Place::with("first.yaml", "steps: {a: {run: 'true'}}");
    let file = place.path("told").display().to_string();
    place.write(
        "second.yaml",
        &format!(
            "after: {{workflow: first, params: {{why: \"${{{{ ended.workflow }}}} ${{{{ ended.status }}}}\"}}}}\n\
             params: {{why: {{type: string}}}}\n\
             steps: {{a: {{run: 'echo \"$WHY\" >> {file}', env: {{WHY: \"${{{{ params.why }}}}\"}}}}}}\n"
        ),
    );
    assert_eq!(place.laneway("apply second.yaml").code, Some(0));
    let _worker = worker(&place, "one");
    assert_eq!(place.laneway("submit first.yaml").code, Some(0));
    until("the second", || lines(&place, "told") == ["first succeeded"]);
    until("what came of it", || !place.json("schedule list --json")[0]["run"].is_null());
}
