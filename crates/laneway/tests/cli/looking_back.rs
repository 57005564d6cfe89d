//! runs, show, logs, events, explain, replay: what they print, and the shapes of their `--json`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::place::{Place, text};

const ETL: &str = r#"
params: {date: {type: string, default: today}}
on_failure: continue
max_parallel: 1
steps:
  fetch: {run: "echo fetched; echo n=2 >> $LANEWAY_OUTPUT"}
  bad: {needs: [fetch], run: "echo oops >&2; exit 4"}
  after: {needs: [bad], run: echo never}
  extra: {needs: [fetch], if: "${{ params.date == 'monday' }}", run: echo extra}
"#;

fn etl() -> Place {
    let place = Place::with("etl.yaml", ETL);
    let outcome = place.laneway("run etl.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    place
}

#[test]
fn show_prints_the_run_and_why_each_task_ended_so() {
    assert_snapshot!(etl().laneway("show last"), @r#"
    $ laneway show last
    exit code 0
    ----- stdout
    ✗ etl [uuid] failed
      reason    bad failed: exit code 4
      submitted [date] by ada
      finished  [date], after [took]
      directory [dir]
      params    date = "today"

    STEP   STATUS       ATTEMPT  TOOK WHY
    fetch  ✓ succeeded  1        [took]
    bad    ✗ failed     1        [took] exit code 4
    after  – skipped                   bad failed
    extra  – skipped                   its `if` is false
    ----- stderr
    "#);
}

#[test]
fn show_as_json_has_the_promised_shape() {
    let place = etl();
    let run = place.json("show --json");
    let keys: Vec<&str> = run.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(keys[..5], ["run", "workflow", "status", "reason", "tasks"]);
    assert_eq!(run["status"], json!("failed"));
    let task = &run["tasks"][1];
    let keys: Vec<&str> = task.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(
        keys[..11],
        [
            "step",
            "item",
            "status",
            "attempt",
            "node",
            "reason",
            "cause",
            "exit_code",
            "output",
            "started_at",
            "finished_at"
        ]
    );
    assert_eq!(task["step"], json!("bad"));
    assert_eq!(task["item"], Value::Null);
    assert_eq!(task["exit_code"], json!(4));
    assert_eq!(task["reason"], json!("exit"));
    assert_eq!(task["cause"], Value::Null);
    assert_eq!(run["tasks"][0]["output"], json!({ "n": "2" }));
    assert!(text(&task["finished_at"]).ends_with('Z'));
}

#[test]
fn runs_are_listed_newest_first_and_can_be_filtered() {
    let place = etl();
    place.write("hello.yaml", "steps: {hello: {run: echo hello}}");
    place.laneway("run hello.yaml");
    assert_snapshot!(place.laneway("runs"), @r"
    $ laneway runs
    exit code 0
    ----- stdout
    RUN       WORKFLOW  STATUS       SUBMITTED            TOOK TASKS
    [id]  hello     ✓ succeeded  [date]  [took] 1 succeeded
    [id]  etl       ✗ failed     [date]  [took] 1 succeeded, 1 failed, 2 skipped
    ----- stderr
    ");
    assert_snapshot!(place.laneway("runs --status failed"), @r"
    $ laneway runs --status failed
    exit code 0
    ----- stdout
    RUN       WORKFLOW  STATUS    SUBMITTED            TOOK TASKS
    [id]  etl       ✗ failed  [date]  [took] 1 succeeded, 1 failed, 2 skipped
    ----- stderr
    ");
    assert_snapshot!(place.laneway("runs --limit 1"), @r"
    $ laneway runs --limit 1
    exit code 0
    ----- stdout
    RUN       WORKFLOW  STATUS       SUBMITTED            TOOK TASKS
    [id]  hello     ✓ succeeded  [date]  [took] 1 succeeded
    ----- stderr
    the newest 1; --limit shows more
    ");
    assert_snapshot!(place.laneway("runs --workflow nothing"), @r"
    $ laneway runs --workflow nothing
    exit code 0
    ----- stdout
    ----- stderr
    no run is like that
    ");
    let runs = place.json("runs --json --workflow etl");
    assert_eq!(runs[0]["workflow"], json!("etl"));
    assert_eq!(runs[0]["tasks"], json!({ "succeeded": 1, "failed": 1, "skipped": 2 }));
    assert_eq!(runs[0]["interrupted"], json!(false));
}

#[test]
fn a_run_is_found_by_its_id_and_by_a_short_one() {
    let place = etl();
    let run = place.json("show last --json")["run"].clone();
    let id = text(&run);
    let tail = id.rsplit('-').next().expect("five parts");
    for name in [id, tail, &tail[..8], &tail[..4]] {
        assert_eq!(place.json(&format!("show {name} --json"))["run"], run, "{name}");
    }
}

#[test]
fn logs_of_all_steps_tell_them_apart() {
    assert_snapshot!(etl().laneway("logs last"), @r"
    $ laneway logs last
    exit code 0
    ----- stdout
    fetch | fetched
    bad   | oops
    ----- stderr
    ");
}

#[test]
fn logs_of_one_step_are_its_bytes() {
    let place = Place::with("raw.yaml", r#"steps: {raw: {run: "printf 'a\\000\\377b'"}}"#);
    place.laneway("run raw.yaml");
    let output = place.command(&["logs", "last", "raw"]).output().expect("it runs");
    assert_eq!(output.stdout, b"a\0\xffb");
    assert!(output.stderr.is_empty());
}

#[test]
fn logs_can_show_time_and_stream() {
    let place = etl();
    assert_snapshot!(place.laneway("logs last bad --timestamps"), @r"
    $ laneway logs last bad --timestamps
    exit code 0
    ----- stdout
    [clock] oops
    ----- stderr
    ");
    let line = place.json("logs last bad --json");
    assert_eq!(line["stream"], json!("stderr"));
    assert_eq!(line["text"], json!("oops"));
    assert_eq!(line["step"], json!("bad"));
    assert_eq!(line["attempt"], json!(1));
    assert!(text(&line["time"]).ends_with('Z'));
}

#[test]
fn logs_of_a_step_that_never_started_say_why() {
    assert_snapshot!(etl().laneway("logs last after"), @r"
    $ laneway logs last after
    exit code 0
    ----- stdout
    ----- stderr
    after never started: bad failed
    ");
}

#[test]
fn logs_of_an_earlier_attempt_can_be_asked_for() {
    let place = Place::with(
        "flaky.yaml",
        "steps: {flaky: {run: 'echo try $LANEWAY_ATTEMPT; test $LANEWAY_ATTEMPT -gt 1', retry: {max: 1, backoff: 1ms}}}",
    );
    place.laneway("run flaky.yaml");
    assert_eq!(place.laneway("logs last flaky").stdout, "try 2\n");
    assert_eq!(place.laneway("logs last flaky --attempt 1").stdout, "try 1\n");
}

#[test]
fn logs_are_followed_until_the_run_ends() {
    let place = Place::with(
        "live.yaml",
        "steps: {one: {run: 'echo first; echo > reached; cat goon; echo second'}, two: {needs: [one], run: echo third}}",
    );
    place.pipe("reached");
    place.pipe("goon");
    let run = place.spawn("run live.yaml");
    place.read("reached");
    let logs = place.spawn("logs last --follow");
    let events = place.spawn("events last --follow --json");
    std::fs::write(place.path("goon"), "").expect("the step reads it");
    assert_eq!(run.wait().code, Some(0));
    assert_eq!(logs.wait().stdout, "one | first\none | second\ntwo | third\n");
    let told = events.wait().stdout;
    assert!(told.lines().last().is_some_and(|line| line.contains("run_finished")), "{told}");
}

#[test]
fn events_are_told_as_sentences() {
    assert_snapshot!(etl().laneway("events last"), @r"
    $ laneway events last
    exit code 0
    ----- stdout
        1 [date] run [id] of etl submitted
        2 [date] run [id] started
        3 [date] fetch is available
        4 [date] fetch started
        5 [date] fetch succeeded in [took]
        6 [date] bad is available
        7 [date] extra skipped: its `if` is false
        8 [date] bad started
        9 [date] bad failed in [took]: exit code 4
       10 [date] after skipped: bad failed
       11 [date] run failed: bad failed: exit code 4
    ----- stderr
    ");
}

#[test]
fn events_can_be_read_from_a_number_on() {
    let place = etl();
    let all = place.laneway("events last --json").stdout;
    let rest = place.laneway("events last --json --after 5").stdout;
    assert!(all.ends_with(&rest));
    assert_eq!(rest.lines().count(), all.lines().count() - 5);
}

#[test]
fn explain_says_why_everything_ended_so() {
    let place = etl();
    assert_snapshot!(place.laneway("explain last"), @r"
    $ laneway explain last
    exit code 0
    ----- stdout
    ✗ etl [id] failed: bad failed: exit code 4
    ✗ bad is failed: exit code 4
    – after is skipped: bad failed
    – extra is skipped: its `if` is false
    1 step succeeded
    ----- stderr
    ");
    assert_snapshot!(place.laneway("explain last bad"), @r"
    $ laneway explain last bad
    exit code 0
    ----- stdout
    ✗ bad is failed: exit code 4
        attempt 1 failed: exit code 4, [took] at [clock] on [node]
    ----- stderr
    ");
    let step = place.json("explain last bad --json");
    assert_eq!(step["attempts"][0]["exit_code"], json!(4));
    assert_eq!(place.json("explain last --json")["tasks"][3]["reason"], json!("condition"));
}

#[test]
fn explain_says_what_a_waiting_task_waits_for() {
    let place = Place::with(
        "wait.yaml",
        "
max_parallel: 1
steps:
  first: {run: cat goon}
  second: {run: echo second}
  third: {needs: [first], run: echo third}
",
    );
    place.pipe("goon");
    let mut run = place.spawn("run wait.yaml");
    run.wait_for("first started");
    assert_snapshot!(place.laneway("explain last"), @r"
    $ laneway explain last
    exit code 0
    ----- stdout
    ▶ wait [id] running
    ▶ first is running since [clock] on [node]
    · second is pending: waits for a place: max_parallel is 1 and first holds it
        since [clock]
        opens when one of them ends
    · third is pending: waits for first (running)
        since [clock]
        opens when `all_succeeded` holds for what it needs
    ----- stderr
    ");
    assert_snapshot!(place.laneway("explain last third"), @r"
    $ laneway explain last third
    exit code 0
    ----- stdout
    · third is pending: waits for first (running)
        since [clock]
        opens when `all_succeeded` holds for what it needs
    ----- stderr
    ");
    let causes = place.json("show last --json");
    assert_eq!(causes["tasks"][1]["cause"]["gate"], json!("max_parallel"));
    assert_eq!(causes["tasks"][2]["cause"]["holders"], json!(["first"]));
    std::fs::write(place.path("goon"), "").expect("the step reads it");
    assert_eq!(run.wait().code, Some(0));
}

#[test]
fn replay_equals_the_store() {
    let place = etl();
    assert_snapshot!(place.laneway("replay last"), @r"
    $ laneway replay last
    exit code 0
    ----- stdout
    replay of [id]: 11 events, equal
    ----- stderr
    ");
    assert_eq!(place.json("replay last --json")["equal"], json!(true));
}

#[test]
fn replay_shows_a_run_as_it_was_after_an_event() {
    let place = etl();
    assert_snapshot!(place.laneway("replay last --at 5"), @r#"
    $ laneway replay last --at 5
    exit code 0
    ----- stdout
    as it was after event 5

    ▶ etl [uuid] running
      submitted [date] by ada
      directory [dir]
      params    date = "today"

    STEP   STATUS       ATTEMPT  TOOK WHY
    fetch  ✓ succeeded  1        [took]
    bad    · pending
    after  · pending
    extra  · pending
    ----- stderr
    "#);
    let now = place.json("show last --json");
    let last = now["last_event"].as_u64().expect("a number");
    assert_eq!(place.json(&format!("replay last --at {last} --json")), now, "the last event is now");
    let running: Vec<u64> = (1..=last)
        .filter(|at| {
            let then = place.json(&format!("replay last --at {at} --json"));
            assert_eq!(then["last_event"], json!(at));
            then["tasks"].as_array().expect("tasks").iter().any(|task| task["status"] == "running")
        })
        .collect();
    let started = |event: &Value| event["event"] == "task_started";
    let events = place.laneway("events last --json");
    let events: Vec<Value> =
        events.stdout.lines().map(|line| serde_json::from_str(line).expect("an event")).collect();
    let first = events.iter().find(|event| started(event)).expect("a start");
    assert_eq!(running.first(), first["seq"].as_u64().as_ref());
    for at in [0, last + 1] {
        let refused = place.laneway(&format!("replay last --at {at}"));
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains(&format!("no event {at}")), "{refused}");
        assert!(refused.stderr.contains(&format!("from 1 to {last}")), "{refused}");
    }
}

#[test]
fn replay_says_where_history_and_store_part_and_exits_with_one() {
    let place = etl();
    let store = rusqlite::Connection::open(place.path(".laneway/laneway.db")).expect("the store");
    let change = |statement: &str| assert_eq!(store.execute(statement, []), Ok(1), "{statement}");
    change("UPDATE tasks SET exit_code = 5 WHERE exit_code = 4");
    assert_snapshot!(place.laneway("replay last"), @r"
    $ laneway replay last
    exit code 1
    ----- stdout
    replay of [id]: 11 events, parted at tasks[1].exit_code
      replayed: 4
      stored:   5
    ----- stderr
    ");
    assert_eq!(place.json("replay last --json")["path"], json!("tasks[1].exit_code"));
    change("UPDATE tasks SET exit_code = 4 WHERE exit_code = 5");
    change("DELETE FROM events WHERE seq = 3");
    assert_snapshot!(place.laneway("replay last"), @r"
    $ laneway replay last
    exit code 1
    ----- stdout
    replay of [id]: 10 events, broken: event 3 is missing: 4 follows 2
    ----- stderr
    ");
}

#[test]
fn the_log_of_a_step_that_waits_says_so() {
    let place = Place::with("w.yaml", "steps: {a: {run: read x < go}, b: {needs: a, run: echo b}}");
    place.pipe("go");
    let mut running = place.spawn("run w.yaml");
    running.wait_for("a started");
    let outcome = place.laneway("logs last b");
    assert!(outcome.stderr.starts_with("b has not started yet; `laneway explain "), "{outcome}");
    std::fs::write(place.path("go"), "on\n").expect("somebody reads");
    assert_eq!(running.wait().code, Some(0));
}
