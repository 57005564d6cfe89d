//! Runs that go level by level, as a person meets them.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, until};
use crate::serve::Served;

/// Two roots and what joins them; `b` is slower than `a`, and `c` comes before `d` by name.
const FLOW: &str = r#"
name: flow
execution: levels
steps:
  b: {run: 'sleep 0.2; echo "x=2" > "$LANEWAY_OUTPUT"'}
  a: {run: 'echo "x=1" > "$LANEWAY_OUTPUT"'}
  d: {needs: [a], run: 'true'}
  c:
    needs: [a, b]
    run: 'echo "sum=$SUM" > "$LANEWAY_OUTPUT"'
    env: {SUM: "${{ steps.a.output.x | int + steps.b.output.x | int }}"}
"#;

fn events(place: &Place) -> Vec<Value> {
    let text = place.laneway("events last --json").stdout;
    text.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
}

fn named(events: &[Value], name: &str) -> Vec<String> {
    let of = events.iter().filter(|event| event["event"] == name);
    of.map(|event| event["step"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn levels_start_and_end_by_name_whoever_was_first() {
    let place = Place::with("flow.yaml", FLOW);
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let first = events(&place);
    assert_eq!(named(&first, "task_started"), ["a", "b", "c", "d"]);
    assert_eq!(named(&first, "task_finished"), ["a", "b", "c", "d"]);
    let shown = place.json("show last --json");
    assert_eq!(shown["tasks"][3]["output"], json!({ "sum": "3" }));
    assert_eq!(place.laneway("replay last").code, Some(0));
    // Another execution tells the same, but for times, ids and nodes.
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    let plain = |events: Vec<Value>| {
        let plain = events.into_iter().map(|mut event| {
            let fields = event.as_object_mut().expect("an object");
            ["run", "at", "took_ms", "node"].into_iter().for_each(|key| drop(fields.remove(key)));
            event
        });
        plain.collect::<Vec<_>>()
    };
    assert_eq!(plain(first), plain(events(&place)));
}

#[test]
fn a_step_is_tried_again_within_its_attempt() {
    let document = r#"
execution: levels
steps:
  flaky:
    run: 'echo "one more"; test -f there || { touch there; exit 7; }'
    retry: {max: 2, backoff: 10ms}
  steady: {run: 'true'}
"#;
    let place = Place::with("flow.yaml", document);
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    let events = events(&place);
    assert!(named(&events, "task_retrying").is_empty(), "a retry that helped is no difference");
    assert_eq!(place.json("show last --json")["tasks"][0]["attempt"], 1);
    let logs = place.laneway("logs last flaky").stdout;
    assert_eq!(logs.matches("one more").count(), 2, "{logs}");
    let all = place.laneway("logs last flaky");
    assert!(format!("{all}").contains("exit code 7; tried again in "), "{all}");
}

#[test]
fn a_failure_stops_its_level_and_a_retry_does_all_of_that_again() {
    let document = r#"
execution: levels
steps:
  first: {run: 'echo once >> first'}
  bad: {needs: [first], run: 'while ! test -f begun; do sleep 0.02; done; test -f mended'}
  slow: {needs: [first], run: 'trap "echo stopped >> slow; exit 1" TERM; touch begun; while true; do sleep 0.05; done'}
  done: {needs: [first], run: 'echo done >> done; echo "x=1" > "$LANEWAY_OUTPUT"'}
  last: {needs: [bad], when: always, run: 'touch last'}
"#;
    let place = Place::with("flow.yaml", document);
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(
        place.statuses(),
        "first=succeeded bad=failed slow=canceled done=canceled last=skipped",
        "nothing of the level counts"
    );
    assert_eq!(place.read("slow"), "stopped\n");
    assert!(!place.path("last").exists());
    place.write("mended", "");
    place.write("flow.yaml", document);
    let mut retry = place.spawn("retry last");
    retry.wait_for("slow started");
    assert_eq!(place.laneway("cancel last").code, Some(0));
    let outcome = retry.wait();
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(place.read("first"), "once\n", "what counted is not done again");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn no_more_of_a_level_run_at_once_than_it_says() {
    let steps: String = (0..6)
        .map(|step| format!("  s{step}: {{run: 'mkdir in || exit 9; sleep 0.02; rmdir in'}}\n"))
        .collect();
    let place =
        Place::with("flow.yaml", &format!("execution: levels\nmax_parallel_steps: 0\nsteps:\n{steps}"));
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

#[test]
fn a_level_is_done_again_after_its_process_was_killed() {
    let document = r#"
execution: levels
steps:
  a: {run: 'echo a >> a'}
  b: {needs: [a], run: 'echo b >> b'}
  c: {needs: [a], run: 'test -f go || sleep 60'}
  d: {needs: [b, c], run: 'true'}
"#;
    let place = Place::with("flow.yaml", document);
    let running = place.spawn("run flow.yaml");
    until("b has run", || place.path("b").exists());
    running.signal(Signal::KILL);
    running.wait();
    place.write("go", "");
    let outcome = place.laneway("run --resume last");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!((place.read("a"), place.read("b")), ("a\n".to_owned(), "b\nb\n".to_owned()));
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn advance_does_one_level_here() {
    let place = Place::with("flow.yaml", FLOW);
    let made = place.laneway("run flow.yaml --paused");
    assert_eq!(made.code, Some(0), "{made}");
    assert_eq!(place.statuses(), "b=pending a=pending d=pending c=pending");
    let one = place.laneway("advance last");
    assert_eq!(one.code, Some(0), "{one}");
    assert_eq!(place.statuses(), "b=succeeded a=succeeded d=pending c=pending");
    let why = place.laneway("explain last c");
    assert!(why.stdout.contains("paused"), "{why}");
    let two = place.laneway("advance last");
    assert_eq!(two.code, Some(0), "{two}");
    assert_eq!(place.statuses(), "b=succeeded a=succeeded d=succeeded c=succeeded");
    let over = place.laneway("advance last");
    assert_eq!(over.code, Some(2), "{over}");
    assert!(over.stderr.contains("has ended"), "{over}");
}

#[test]
fn advance_says_what_it_is_for() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}");
    assert_eq!(place.laneway("run flow.yaml").code, Some(0));
    let refused = place.laneway("advance last");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(refused.stderr.contains("does not go level by level"), "{refused}");
    assert!(refused.stderr.contains("`execution: levels`"), "{refused}");
}

#[test]
fn a_server_does_levels_one_at_a_time() {
    let place = Place::with("flow.yaml", FLOW);
    let served = Served::start(&place, &[]);
    let submitted = served.ask("submit flow.yaml --paused");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let advanced = served.ask("advance last");
    assert_eq!(
        (advanced.code, advanced.stdout.contains("goes on with level 0")),
        (Some(0), true),
        "{advanced}"
    );
    until("the level counts", || place.statuses() == "b=succeeded a=succeeded d=pending c=pending");
    let resumed = served.ask("resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    until("the run is over", || place.statuses() == "b=succeeded a=succeeded d=succeeded c=succeeded");
}

/// Each try of an attempt has a desk of its own for effects: what the last one left is unknown, and taken by nobody.
#[test]
fn an_effect_that_died_with_a_try_is_unknown_to_the_next() {
    let document = r#"
execution: levels
steps:
  pay:
    retry: {max: 1, backoff: 0s}
    env: {LANEWAY: "@"}
    run: |
      "$LANEWAY" effect charge --on-unknown retry -- sh -c 'echo x >> ran; test -f second || { touch second; kill -9 $PPID; }'
"#;
    let place = Place::with("flow.yaml", &document.replace('@', env!("CARGO_BIN_EXE_laneway")));
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert_eq!(place.read("ran"), "x\nx\n", "it ran again because it was told to");
    assert_eq!(place.json("show last --json")["tasks"][0]["attempt"], 1);
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn after_a_cancel_no_step_of_a_level_cleans_up_and_hooks_do() {
    let document = "
execution: levels
steps:
  slow: {run: 'echo > reached; sleep 60'}
  clean: {needs: [slow], when: always, run: 'touch cleaned'}
hooks: {finished: [{run: 'echo $LANEWAY_ENDED_STATUS > told'}]}
";
    let place = Place::with("flow.yaml", document);
    place.pipe("reached");
    let running = place.spawn("run flow.yaml");
    place.read("reached");
    running.signal(rustix::process::Signal::INT);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    assert_eq!(place.statuses_of("flow"), "slow=canceled clean=canceled");
    assert!(!place.path("cleaned").exists());
    assert_eq!(place.read("told"), "canceled\n");
}
