//! What is for later, as a person meets it: `not_before` in a document, `submit --at`, and what is said until then.

use rustix::process::Signal;

use crate::place::{Place, until};
use crate::postgres::schema;
use crate::serve::Served;

const SOON: &str = "
name: soon
steps:
  build: {run: echo built}
  check: {needs: [build], not_before: 400ms, run: echo checked}
";

/// Long enough that a test is done before, whatever the machine does.
const LATE: &str = "
name: late
steps:
  build: {run: echo built}
  report: {needs: [build], not_before: 2099-01-01T08:00:00+01:00, run: echo reported}
";

#[test]
fn a_step_waits_for_its_delay_in_the_foreground() {
    let place = Place::with("soon.yaml", SOON);
    let outcome = place.laneway("run soon.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let tasks = &place.json("show last --json")["tasks"];
    let moment = |task: usize, key: &str| {
        let text = tasks[task][key].as_str().expect("a moment");
        text.parse::<jiff::Timestamp>().expect("a moment").as_millisecond()
    };
    let waited = moment(1, "started_at") - moment(0, "finished_at");
    assert!((400..5_000).contains(&waited), "{waited} ms");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_step_that_is_held_back_says_until_when_and_outlives_its_process() {
    let place = Place::with("late.yaml", LATE);
    let mut running = place.spawn("run late.yaml");
    running.wait_for("build succeeded");
    let why = place.laneway("explain last report");
    assert!(why.stdout.contains("waits until 2099-01-01 07:00:00"), "{why}");
    assert!(why.stdout.contains("not_before: 2099-01-01T08:00:00+01:00"), "it says why: {why}");
    let task = &place.json("show last --json")["tasks"][1];
    assert_eq!((&task["status"], &task["cause"]["gate"]), (&"pending".into(), &"not_before".into()));
    assert_eq!(task["cause"]["opens"], "at 2099-01-01T07:00:00.000Z");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    let mut resumed = place.spawn("resume last");
    until("the run to be taken over", || place.json("show last --json")["interrupted"] == false);
    assert_eq!(place.statuses(), "build=succeeded report=pending");
    assert_eq!(place.laneway("cancel last").code, Some(0));
    resumed.wait_for("run canceled");
    resumed.wait();
    assert_eq!(place.statuses(), "build=succeeded report=canceled");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn moments_that_are_none_are_refused_in_words() {
    let place = Place::new();
    for (written, told) in [
        (
            "tomorrow",
            "it is `tomorrow`, which is neither a moment such as 2026-12-24T18:00:00Z nor a duration such as 5m",
        ),
        ("2026-12-24T18:00:00", "add Z for UTC, or an offset such as +01:00"),
        ("5", "add a unit: `5s` is 5 seconds, `5m` minutes"),
        ("${{ steps.a.output.when }}", "`not_before` cannot read `steps`"),
        ("{at: 5m}", "`not_before` must be a moment such as 2026-12-24T18:00:00Z, or a delay such as 5m"),
    ] {
        let quote = if written.starts_with('{') { "" } else { "\"" };
        let steps =
            format!("steps:\n  a: {{run: make}}\n  b: {{run: make, not_before: {quote}{written}{quote}}}\n");
        place.write("bad.yaml", &steps);
        let refused = place.laneway("validate bad.yaml");
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(told), "{told}: {refused}");
    }
    place.write("wait.yaml", "steps: {a: {wait: {for: 5m}, not_before: 5m}}");
    let refused = place.laneway("validate wait.yaml");
    assert!(refused.stderr.contains("`not_before` does not belong to this step"), "{refused}");
    assert!(refused.stderr.contains("a wait has its own moment"), "{refused}");
    place.write("levels.yaml", "execution: levels\nsteps: {a: {run: make, not_before: 5m}}");
    let refused = place.laneway("validate levels.yaml");
    assert!(
        refused.stderr.contains("step `a` has `not_before`, and its level is taken as a whole"),
        "{refused}"
    );
    assert!(refused.stderr.contains("laneway submit --at"), "{refused}");
    place.write(
        "param.yaml",
        "params: {when: {type: string}}\nsteps: {a: {run: make, not_before: '${{ params.when }}'}}",
    );
    let refused = place.laneway("submit param.yaml -p when=noon");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("`not_before` of step `a` is `noon`, which is neither a moment"),
        "{refused}"
    );
}

#[test]
fn a_run_for_later_is_listed_explained_and_canceled_before_its_moment() {
    let place = Place::with("flow.yaml", "name: flow\nsteps: {a: {run: 'true'}}");
    let submitted = place.laneway("submit flow.yaml --at 2099-01-01T08:00:00+01:00");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    assert!(submitted.stderr.contains("it begins at 2099-01-01 07:00:00"), "{submitted}");
    let listed = place.laneway("runs");
    assert!(listed.stdout.contains("queued"), "{listed}");
    assert!(listed.stderr.contains("1 run is for later, and begins at 2099-01-01 07:00:00"), "{listed}");
    for line in ["show last", "explain last", "explain last a"] {
        let told = place.laneway(line);
        assert!(
            told.stdout.contains("waits until 2099-01-01 07:00:00, for which it was submitted"),
            "{told}"
        );
    }
    let shown = place.json("show last --json");
    assert_eq!(shown["not_before"], "2099-01-01T07:00:00.000Z");
    assert_eq!(shown["tasks"][0]["cause"]["gate"], "not_before");
    assert_eq!(place.json("runs --json")[0]["not_before"], "2099-01-01T07:00:00.000Z");
    assert_eq!(place.laneway("cancel last").code, Some(0));
    assert_eq!(place.json("show last --json")["status"], "canceled");
    assert_eq!(place.json("show last --json").get("not_before"), None);
    assert_eq!(place.laneway("replay last").code, Some(0));
    assert_eq!(place.laneway("doctor").code, Some(0));
}

#[test]
fn a_run_for_later_begins_though_its_worker_was_killed_before() {
    begins_though_its_worker_was_killed(&Place::new());
}

#[test]
fn a_run_for_later_begins_though_its_worker_was_killed_before_on_postgres_too() {
    begins_though_its_worker_was_killed(&Place::with("laneway.toml", &format!("store = \"{}\"\n", schema())));
}

fn begins_though_its_worker_was_killed(place: &Place) {
    place.write("flow.yaml", "name: flow\nsteps: {a: {run: 'true'}}");
    let worker = place.spawn("worker --node-address one");
    until("a node", || {
        let nodes = serde_json::from_str::<serde_json::Value>(&place.laneway("nodes --json").stdout);
        nodes.is_ok_and(|nodes| nodes.as_array().is_some_and(|nodes| nodes.len() == 1))
    });
    let submitted = place.laneway("submit flow.yaml --at 3s");
    assert!(submitted.stderr.contains("it begins in 3s"), "{submitted}");
    assert_eq!(place.json("show last --json")["status"], "queued");
    worker.signal(Signal::KILL);
    assert_eq!(worker.wait().code, None);
    let _next = place.spawn("worker --node-address two");
    until("the end of the run", || place.json("show last --json")["status"] == "succeeded");
    let run = place.json("show last --json");
    let moment = |key: &str| {
        let text = run[key].as_str().expect("a moment");
        text.parse::<jiff::Timestamp>().expect("a moment").as_millisecond()
    };
    let waited = moment("started_at") - moment("submitted_at");
    assert!(waited >= 3_000, "{waited} ms");
    let events = place.laneway("events last").stdout;
    assert!(events.contains("submitted, to begin at ") && events.contains(" is due"), "{events}");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_server_takes_runs_for_later_and_says_what_is_wrong_with_a_moment() {
    let place = Place::with("flow.yaml", "name: flow\nsteps: {a: {run: 'true'}}");
    let served = Served::start(&place, &[]);
    served.ask("submit flow.yaml --at 300ms");
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    served.ask("apply flow.yaml");
    served.ask("start flow --at 2099-01-01T00:00:00Z");
    assert_eq!(served.json("show last --json")["not_before"], "2099-01-01T00:00:00.000Z");
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_is_for_later_is_for_workers() {
    let place = Place::with("flow.yaml", "name: flow\nsteps: {a: {run: 'true'}}");
    let refused = place.laneway("run flow.yaml --at 5m");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("`laneway run` starts at once"), "{refused}");
    assert!(refused.stderr.contains("laneway submit --at 5m"), "{refused}");
    let refused = place.laneway("submit flow.yaml --at noon");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("it is `noon`, which is neither a moment such as"), "{refused}");
}
