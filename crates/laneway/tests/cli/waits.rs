//! Steps that wait, as a person meets them: in the foreground, after a kill, through a server, and before anything runs.

use std::io::Write as _;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, until};
use crate::serve::Served;

const RELEASE: &str = r#"
name: release
max_parallel: 1
steps:
  approve: {wait: {signal: approved, timeout: 24h}}
  build: {run: echo built}
  deploy: {needs: [approve, build], run: 'echo "deploying $TAG"', env: {TAG: "${{ steps.approve.output.tag }}"}}
"#;

#[test]
fn a_run_in_the_foreground_waits_and_hears_a_signal_from_elsewhere() {
    let place = Place::with("release.yaml", RELEASE);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("approve waits for the signal approved, until ");
    running.wait_for("build succeeded");
    assert_eq!(place.statuses(), "approve=parked build=succeeded deploy=pending");
    let why = place.laneway("explain last");
    assert!(why.stdout.contains("approve is parked: waits for the signal `approved` since "), "{why}");
    assert!(why.stdout.contains("approve approved` sends it"), "it says how: {why}");
    let shown = place.laneway("show last");
    assert!(shown.stdout.contains("parked") && shown.stdout.contains("since "), "{shown}");
    // One mark for a state and one way to tell a moment, wherever they are told.
    let moments = regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d").expect("a pattern");
    for told in [&why.stdout, &shown.stdout] {
        assert!(told.contains("◆"), "{told}");
        assert!(!moments.is_match(told), "{told}");
    }
    let mut signal = place.command(&["signal", "last", "approve", "approved", "--payload", "tag=v2"]);
    signal.args(["--reason", "checked on staging"]);
    let signaled = place.outcome("signal last approve approved …", signal);
    assert_eq!(signaled.code, Some(0), "{signaled}");
    assert!(signaled.stdout.contains("has got its signal approved and is over"), "{signaled}");
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("approve signaled by ada: checked on staging"), "{outcome}");
    assert_eq!(place.laneway("logs last deploy").stdout, "deploying v2\n");
    let shown = place.json("show last --json");
    let approve = &shown["tasks"][0];
    assert_eq!((&approve["output"], &approve["attempt"]), (&json!({ "tag": "v2" }), &json!(0)));
    assert_eq!(approve["wait"]["signaled_by"], "ada");
    assert_eq!(approve["wait"]["reason"], "checked on staging");
    assert!(place.laneway("show last").stdout.contains("signaled by ada: checked on staging"));
    assert_eq!(place.laneway("replay last").code, Some(0));
}

/// What ends all the time must not put off what is to be done at its moment.
#[test]
fn time_ends_a_wait_beside_many_short_steps() {
    let chain: String =
        (1..=200).map(|step| format!("  s{step}: {{needs: [s{}], command: ['true']}}\n", step - 1)).collect();
    let document = format!(
        "steps:\n  nap: {{wait: {{for: 50ms}}}}\n  woken: {{needs: [nap], command: ['true']}}\n  s0: {{command: ['true']}}\n{chain}"
    );
    let place = Place::with("busy.yaml", &document);
    assert_eq!(place.laneway("run busy.yaml").code, Some(0));
    let events = place.laneway("events last --json").stdout;
    let ends: Vec<String> = events
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an event"))
        .filter(|event| event["event"] == "task_finished")
        .map(|event| event["step"].as_str().unwrap_or_default().to_owned())
        .collect();
    let place_of = |step: &str| ends.iter().position(|ended| ended == step);
    assert!(place_of("woken") < place_of("s150"), "{ends:?}");
}

#[test]
fn time_ends_a_wait_in_the_foreground() {
    let place = Place::with(
        "nap.yaml",
        "steps: {nap: {wait: {for: 200ms}}, next: {needs: [nap], run: 'true'}, ask: {needs: [next], wait: {signal: go, timeout: 100ms}}}",
    );
    let outcome = place.laneway("run nap.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("ask failed in "), "{outcome}");
    assert!(!outcome.stdout.contains("printed nothing"), "what only waits has no log: {outcome}");
    assert!(outcome.stdout.contains("timeout: the signal `go` did not come within 100ms"), "{outcome}");
    assert_eq!(place.statuses(), "nap=succeeded next=succeeded ask=failed");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

/// Another process makes a moment matter of which nobody told this one.
#[test]
fn a_signal_from_elsewhere_may_begin_another_wait() {
    let place = Place::with(
        "two.yaml",
        "steps: {ask: {wait: {signal: go}}, nap: {needs: [ask], wait: {for: 50ms}}, next: {needs: [nap], run: 'true'}}",
    );
    let mut running = place.spawn("run two.yaml");
    running.wait_for("ask waits for the signal go");
    assert_eq!(place.laneway("signal last ask go").code, Some(0));
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(0), "{outcome}");
}

#[test]
fn a_run_that_was_killed_is_still_parked_when_it_is_resumed() {
    let place = Place::with("release.yaml", RELEASE);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("build succeeded");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    let mut resumed = place.spawn("run --resume last");
    until("the run to be taken over", || place.json("show last --json")["interrupted"] == false);
    assert_eq!(place.statuses(), "approve=parked build=succeeded deploy=pending");
    assert_eq!(place.laneway("signal last approve approved --payload tag=v3").code, Some(0));
    resumed.wait_for("deploy succeeded");
    assert_eq!(resumed.wait().code, Some(0));
    assert_eq!(place.laneway("logs last deploy").stdout, "deploying v3\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_signal_to_a_run_that_nobody_drives_says_how_it_goes_on() {
    let place = Place::with("release.yaml", RELEASE);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("build succeeded");
    running.signal(Signal::KILL);
    running.wait();
    let outcome = place.laneway("signal last approve approved --payload tag=v4");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stderr.contains("laneway resume"), "{outcome}");
    let resumed = place.laneway("run --resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
}

#[test]
fn an_interrupt_cancels_what_is_parked_and_a_retry_parks_it_again() {
    let place = Place::with("release.yaml", RELEASE);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("build succeeded");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
    assert_eq!(place.statuses(), "approve=canceled build=succeeded deploy=canceled");
    let late = place.laneway("signal last approve approved");
    assert_eq!(late.code, Some(2), "{late}");
    assert!(late.stderr.contains("waits no more: it is canceled (canceled)"), "{late}");
    let mut retried = place.spawn("retry last");
    retried.wait_for("approve waits for the signal approved");
    assert_eq!(place.laneway("signal last approve approved --payload tag=v5").code, Some(0));
    assert_eq!(retried.wait().code, Some(0));
}

#[test]
fn signals_that_cannot_be_taken_are_refused_with_what_to_do() {
    let place = Place::with("release.yaml", RELEASE);
    let mut running = place.spawn("run release.yaml");
    running.wait_for("build succeeded");
    for (line, told) in [
        ("signal last approve accepted", "waits for the signal `approved`, not for `accepted`"),
        ("signal last build approved", "waits for no signal"),
        ("signal last aprove approved", "did you mean `approve`?"),
        (
            "signal last approve approved --payload tag",
            "the payload cannot be read: line 1: expected key=value",
        ),
    ] {
        let refused = place.laneway(line);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(told), "{told}: {refused}");
    }
    assert_eq!(place.laneway("signal last approve").code, Some(2), "a signal has a name");
    // From a pipe, so that it stands in no list of processes; and it is not repeated.
    let mut command =
        place.command(&["signal", "last", "approve", "approved", "--payload-file", "-", "--json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(br#"{"tag": "s3cret"}"#).expect("written");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains(r#""result": "woken""#)
            || said.contains(r#""result":"woken""#),
        "{said}"
    );
    assert!(!said.contains("s3cret"), "{said}");
    assert_eq!(running.wait().code, Some(0));
    let again = place.laneway("signal last approve approved");
    assert_eq!(again.code, Some(0), "{again}");
    assert!(again.stdout.contains("was signaled before, by ada at "), "{again}");
}

#[test]
fn a_worker_wakes_what_is_parked_and_a_server_takes_signals() {
    let place = Place::with("release.yaml", RELEASE);
    place.write("nap.yaml", "steps: {nap: {wait: {for: 300ms}}, next: {needs: [nap], run: 'true'}}");
    let served = Served::start(&place, &[]);
    served.ask("submit nap.yaml");
    until("the nap to be over", || served.json("show last --json")["status"] == "succeeded");
    served.ask("submit release.yaml");
    until("the build", || served.json("show last --json")["tasks"][1]["status"] == "succeeded");
    let signaled = served.json("signal last approve approved --payload tag=v6 --reason fine --json");
    assert_eq!((&signaled["result"], &signaled["step"]), (&json!("woken"), &json!("approve")));
    let again = served.json("signal last approve approved --json");
    assert_eq!(again["result"], "before");
    assert!(again["by"].as_str().is_some_and(|by| by.starts_with("admin")), "{again}");
    until("the end of the run", || served.json("show last --json")["status"] == "succeeded");
    assert_eq!(served.json("show last --json"), place.json("show last --json"));
    let (code, said) = served.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_a_step_waits_for_is_seen_before_anything_runs() {
    let place = Place::with("release.yaml", RELEASE);
    let plan = place.laneway("plan release.yaml").stdout;
    assert!(plan.contains("waits\n  0  approve: the signal approved, for 1d at most\n"), "{plan}");
    assert_eq!(
        place.json("plan release.yaml --json")["waits"],
        json!([{ "step": "approve", "signal": "approved", "text": "the signal approved, for 1d at most" }])
    );
    let dry = place.laneway("run release.yaml --dry-run").stdout;
    assert!(dry.contains("waits for the signal approved, for 1d at most"), "{dry}");
    let dot = place.laneway("graph release.yaml").stdout;
    assert!(
        dot.contains(
            r#""approve" [style="rounded,dashed", tooltip="waits for the signal approved, for 1d at most"]"#
        ),
        "{dot}"
    );
}
