//! Steps with items, as a person meets them: in the foreground, after a kill, through a server, and before anything runs.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, text, until};
use crate::serve::Served;

const PARSE: &str = r#"
name: parse
max_parallel: 2
params: {bad: {type: string, default: none}}
steps:
  find: {run: 'echo ''{"files": ["a.csv", "b.csv", "c.csv"]}'' > "$LANEWAY_OUTPUT"'}
  parse:
    needs: [find]
    for_each: ${{ steps.find.output.files }}
    env: {FILE: "${{ item }}", PLACE: "${{ index }}", BAD: "${{ params.bad }}"}
    run: |
      echo "$LANEWAY_TASK reads $FILE"
      echo "rows=$PLACE" > "$LANEWAY_OUTPUT"
      [ "$FILE" != "$BAD" ] || [ -e mended ]
  report: {needs: [parse], run: 'echo "$ALL"', env: {ALL: "${{ steps.parse.output }}"}}
"#;

fn tasks(run: &Value) -> Vec<(String, Value, Value, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let task = |task: &Value| {
        (text(&task["step"]), task["item"].clone(), task["index"].clone(), text(&task["status"]))
    };
    run["tasks"].as_array().expect("tasks").iter().map(task).collect()
}

#[test]
fn a_failed_item_is_counted_once_in_the_list_of_runs() {
    let place = Place::with(
        "flow.yaml",
        "steps: {each: {for_each: [a, b], run: 'test $X = a', env: {X: \"${{ item }}\"}}}\n",
    );
    assert_eq!(place.laneway("run flow.yaml").code, Some(1));
    let run = place.json("runs --json")[0].clone();
    assert_eq!(run["tasks"]["failed"], 1, "{run}");
    assert!(place.laneway("runs").stdout.contains("1 failed"));
}

/// Waiting is no executing: the time of a run begins with its first task.
#[test]
fn what_a_run_took_begins_with_its_first_task() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'true'}}\n");
    place.laneway("submit flow.yaml");
    let submitted = Instant::now();
    let long = Duration::from_secs(2);
    until("some time", || submitted.elapsed() > long);
    let worker = place.spawn("worker --shutdown-grace 1s");
    until("the end of the run", || place.json("show last --json")["status"] == "succeeded");
    let run = place.json("runs --json")[0].clone();
    let at = |name: &str| text(&run[name]).parse::<jiff::Timestamp>().expect("a moment");
    assert!(
        (at("first_task_at") - at("submitted_at")).total(jiff::Unit::Second).expect("a span") >= 2.0,
        "{run}"
    );
    let shown = place.laneway("show last").stdout;
    let waited = shown.lines().find(|line| line.trim().starts_with("waited ")).expect("a line");
    assert!(!waited.contains("ms"), "{waited}");
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn items_run_are_shown_together_and_their_outputs_are_a_list() {
    let place = Place::with("parse.yaml", PARSE);
    let outcome = place.laneway("run parse.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("parse: 3 items"), "{outcome}");
    assert!(outcome.stdout.contains("parse[2] succeeded in "), "{outcome}");
    assert!(outcome.stdout.contains("5 succeeded"), "{outcome}");
    assert_eq!(
        place.laneway("logs last report").stdout,
        "[{\"rows\":\"0\"},{\"rows\":\"1\"},{\"rows\":\"2\"}]\n"
    );
    assert_eq!(place.laneway("logs last parse[1]").stdout, "parse[1] reads b.csv\n");
    let all = place.laneway("logs last parse").stdout;
    assert_eq!(all.lines().count(), 3, "a step means all of its items: {all}");
    assert!(all.contains("parse[2] | parse[2] reads c.csv"), "{all}");
    let shown = place.laneway("show last").stdout;
    assert!(shown.contains("3 items: 3 succeeded") && !shown.contains("parse[0]"), "{shown}");
    let why = place.laneway("explain last").stdout;
    assert!(why.contains("3 steps and 3 items succeeded"), "{why}");
    let unfolded = place.laneway("show last --items").stdout;
    let at = |text: &str| unfolded.find(text).unwrap_or_else(|| panic!("{text}: {unfolded}"));
    assert!(at("parse[0]") < at("parse[2]") && at("parse[2]") < at("report"), "{unfolded}");
    let run = place.json("show last --json");
    let expected: Vec<(String, Value, Value, String)> = [
        ("find", Value::Null, Value::Null),
        ("parse", Value::Null, Value::Null),
        ("report", Value::Null, Value::Null),
        ("parse", json!("a.csv"), json!(0)),
        ("parse", json!("b.csv"), json!(1)),
        ("parse", json!("c.csv"), json!(2)),
    ]
    .map(|(step, item, index)| (step.to_owned(), item, index, "succeeded".to_owned()))
    .into();
    assert_eq!(tasks(&run), expected);
    assert_eq!(run["tasks"][1]["items"], json!({ "total": 3, "added": 3, "states": { "succeeded": 3 } }));
    assert_eq!(place.laneway("replay last").code, Some(0));
    // Before its list was known it had no items.
    let past = place.json("replay last --at 4 --json");
    assert_eq!(past["tasks"].as_array().map(Vec::len), Some(3), "{past}");
}

#[test]
fn a_retry_runs_the_items_that_failed_and_no_others() {
    let place = Place::with("parse.yaml", PARSE);
    let outcome = place.laneway("run parse.yaml -p bad=b.csv");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stdout.contains("parse failed: 1 of 3 items failed, `parse[1]` first: exit code 1"),
        "{outcome}"
    );
    assert!(outcome.stdout.contains("✗ parse[1], it printed"), "{outcome}");
    assert!(
        !outcome.stdout.contains("✗ parse, it printed") && !outcome.stdout.contains("✗ parse printed"),
        "{outcome}"
    );
    let last = outcome.stdout.lines().last().expect("a line");
    assert!(last.contains(" 1 failed"), "the item, and not its step as well: {last}");
    let why = place.laneway("explain last parse[1]");
    assert!(why.stdout.contains("parse[1] is failed: exit code 1"), "{why}");
    place.write("mended", "");
    let outcome = place.laneway("retry last");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("parse[1] started, attempt 2"), "{outcome}");
    assert!(!outcome.stdout.contains("parse[0] started"), "{outcome}");
    assert_eq!(place.laneway("replay last").code, Some(0));
    let refused = place.laneway("logs last parse[7]");
    assert_eq!(refused.code, Some(2), "{refused}");
    let refused = place.laneway("logs last parse --attempt 1");
    assert!(refused.stderr.contains("has items, and each has attempts of its own"), "{refused}");
    // One that nobody can mend is let pass.
    std::fs::remove_file(place.path("mended")).expect("it was there");
    assert_eq!(place.laneway("retry last --from parse").code, Some(1));
    let skipped = place.laneway("skip last parse[1]");
    assert_eq!(skipped.code, Some(0), "{skipped}");
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_items() {
    let slow = "max_parallel: 2\nsteps: {each: {for_each: '${{ 8 | range }}', run: 'sleep 0.3; echo \"$I\"', env: {I: '${{ item }}'}}}";
    let place = Place::with("slow.yaml", slow);
    let mut running = place.spawn("run slow.yaml");
    running.wait_for("each[1] succeeded");
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    let resumed = place.laneway("run --resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    let run = place.json("show last --json");
    assert_eq!(run["tasks"][0]["items"]["states"], json!({ "succeeded": 8 }));
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn an_interrupt_cancels_items_and_their_step() {
    let place = Place::with("slow.yaml", "steps: {each: {for_each: '${{ 2000 | range }}', run: sleep 60}}");
    let mut running = place.spawn("run slow.yaml");
    running.wait_for("each[1] started");
    running.signal(Signal::INT);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    let run = place.json("show last --json");
    let items = &run["tasks"][0]["items"];
    assert_eq!((&items["total"], &items["added"]), (&json!(2000), &json!(1000)));
    assert_eq!(run["tasks"][0]["status"], "canceled");
    let shown = place.laneway("explain last").stdout;
    assert!(shown.contains("995 more items of each"), "{shown}");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_server_gives_items_to_workers_and_names_them() {
    let place = Place::with("parse.yaml", PARSE);
    let served = Served::start(&place, &[]);
    served.ask("submit parse.yaml");
    until("the run to be over", || served.json("show last --json")["status"] == "succeeded");
    let run = served.json("show last --json");
    assert_eq!(tasks(&run)[4], ("parse".to_owned(), json!("b.csv"), json!(1), "succeeded".to_owned()));
    assert_eq!(served.ask("logs last parse[2]").stdout, "parse[2] reads c.csv\n");
    let why = served.ask("explain last parse[2]");
    assert_eq!(why.code, Some(0), "{why}");
    served.end();
}

#[test]
fn a_list_that_is_none_and_one_that_is_empty() {
    let place = Place::with(
        "none.yaml",
        "params: {l: {type: string, default: x}}\nsteps: {each: {for_each: '${{ params.l }}', run: make}}",
    );
    let outcome = place.laneway("run none.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(
        outcome.stdout.contains("each failed in 0ms: `for_each` must be a list, and it is a string"),
        "{outcome}"
    );
    place.write("empty.yaml", "steps: {each: {for_each: [], run: make}, next: {needs: [each], run: 'true'}}");
    let outcome = place.laneway("run empty.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(outcome.stdout.contains("2 succeeded"), "{outcome}");
}

#[test]
fn a_plan_and_a_graph_tell_of_items() {
    let place = Place::with("parse.yaml", PARSE);
    let plan = place.laneway("plan parse.yaml").stdout;
    assert!(plan.contains("parse: a task for each item of ${{ steps.find.output.files }}"), "{plan}");
    assert!(place.laneway("graph parse.yaml").stdout.contains("\"parse\" [peripheries=2"));
    assert!(place.laneway("graph parse.yaml --format mermaid").stdout.contains("s1[[\"parse\"]]"));
    let dry = place.laneway("run parse.yaml --dry-run");
    assert_eq!(dry.code, Some(0), "{dry}");
}
