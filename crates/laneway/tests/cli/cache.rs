//! R11 as a person meets it: a step whose key has succeeded before takes that result, and `explain` says why one did not.

use std::fs;

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, text, until};
use crate::postgres::schema;

/// Leaves a mark whenever it is executed.
const BUILD: &str = r#"
name: build
params: {mode: {type: string, default: fast}, tag: {type: string, default: one}}
env: {MODE: "${{ params.mode }}"}
steps:
  build:
    run: |
      echo x >> marks
      mkdir -p dist
      cat src/*.c > dist/app
      echo "lines=$(cat src/*.c | wc -l | tr -d ' ')" >> "$LANEWAY_OUTPUT"
    artifacts: [dist/app]
    cache: {key: "${{ params.tag }}", files: ["src/**"]}
  test:
    needs: [build]
    run: 'echo "$LINES lines of $(cat dist/app)"'
    env: {LINES: "${{ steps.build.output.lines }}"}
"#;

fn place() -> Place {
    let place = Place::with("build.yaml", BUILD);
    fs::create_dir(place.path("src")).expect("made");
    place.write("src/a.c", "int a;\n");
    place
}

fn run(place: &Place, line: &str) -> String {
    let outcome = place.laneway(line);
    assert_eq!(outcome.code, Some(0), "{outcome}");
    outcome.stdout
}

/// How often the step was executed.
fn marks(place: &Place) -> usize {
    fs::read_to_string(place.path("marks")).map_or(0, |marks| marks.lines().count())
}

fn why(place: &Place, step: &str) -> String {
    let explained = place.json(&format!("explain last {step} --json"));
    explained["cache"]["text"].as_str().unwrap_or("none").to_owned()
}

#[test]
fn a_step_whose_key_has_succeeded_before_takes_that_result() {
    let place = place();
    run(&place, "run build.yaml");
    let first = text(&place.json("show last --json")["run"]).to_owned();
    // What it left is brought back, where it was and as its own.
    fs::remove_dir_all(place.path("dist")).expect("removed");
    let outcome = place.laneway("run build.yaml");
    assert!(outcome.stdout.contains("build succeeded from cache"), "{outcome}");
    assert!(outcome.stdout.contains("2 succeeded (1 from cache)"), "{outcome}");
    assert_eq!(marks(&place), 1, "it is not executed");
    assert_eq!(place.laneway("logs last test").stdout, "1 lines of int a;\n");
    assert_eq!(place.read("dist/app"), "int a;\n");
    let shown = place.json("show last --json");
    let build = &shown["tasks"][0];
    assert_eq!((&build["status"], &build["reason"]), (&json!("succeeded"), &json!("cached")));
    assert_eq!((&build["output"], &build["exit_code"]), (&json!({ "lines": "1" }), &json!(0)));
    assert!(text(&build["detail"]).contains(&first[24..32]), "{build}");
    assert!(place.laneway("show last").stdout.contains("the result of run "));
    let artifacts = place.json("artifacts last --json");
    assert_eq!(artifacts[0]["name"], "dist/app", "{artifacts}");
    let events = place.laneway("events last --json").stdout;
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let cached = events.iter().find(|event| event["event"] == "task_cached").expect("it is told");
    assert_eq!((text(&cached["from"]), text(&cached["step"])), (&*first, "build"));
    assert_eq!(place.laneway("replay last").code, Some(0));
    let explained = place.laneway("explain last build");
    assert!(explained.stdout.contains("build is succeeded: the result of run "), "{explained}");
    assert_eq!(place.json("explain last build --json")["cache"], Value::Null);
    assert_eq!(why(&place, "test"), "none", "it has no cache");
}

#[test]
fn each_part_of_a_key_misses_by_itself_and_explain_names_it() {
    let place = place();
    run(&place, "run build.yaml");
    assert_eq!(why(&place, "build"), "no result of this step was recorded before");
    let mut executed = 1;
    let mut misses = |what: &str, line: &str| {
        run(&place, line);
        executed += 1;
        assert_eq!(marks(&place), executed, "{what}");
        let why = why(&place, "build");
        assert!(why.ends_with(what), "{what}: {why}");
        // And is known from then on.
        run(&place, line);
        assert_eq!(marks(&place), executed, "{what}");
    };
    misses(" the variable MODE has changed", "run build.yaml -p mode=slow");
    misses(" `cache.key` has changed", "run build.yaml -p tag=two");
    place.write("src/a.c", "int b;\n");
    misses(" the file src/a.c has changed", "run build.yaml");
    place.write("src/b.c", "int c;\n");
    misses(" the file src/b.c is new", "run build.yaml");
    fs::remove_file(place.path("src/a.c")).expect("removed");
    misses(" the file src/a.c is gone", "run build.yaml");
    place.write("build.yaml", &BUILD.replace("mkdir -p dist", "mkdir -p  dist"));
    misses(" the command has changed", "run build.yaml");
    place.write(
        "build.yaml",
        &BUILD.replace("mkdir -p dist", "mkdir -p  dist").replace("[dist/app]", "['dist/*']"),
    );
    misses(" its list of artifacts has changed", "run build.yaml");
    let explained = place.laneway("explain last build");
    assert_eq!(explained.code, Some(0), "{explained}");
    // Another step that says the same is another step.
    place.write("other.yaml", &BUILD.replace("name: build", "name: other"));
    misses("no result of this step was recorded before", "run other.yaml");
}

#[test]
fn explain_says_why_a_step_was_executed() {
    let place = place();
    run(&place, "run build.yaml");
    place.write("src/a.c", "int b;\n");
    run(&place, "run build.yaml -p mode=slow");
    assert_snapshot!(place.laneway("explain last build"), @r"
    $ laneway explain last build
    exit code 0
    ----- stdout
    ✓ build is succeeded
        not from cache: since run [id] the variable MODE has changed, the file src/a.c has changed
        attempt 1 succeeded, [took] at [clock] on [node]
    ----- stderr
    ");
    let explained = place.json("explain last build --json");
    let parts =
        json!([{ "part": "env:MODE", "how": "changed" }, { "part": "file:src/a.c", "how": "changed" }]);
    assert_eq!((&explained["cache"]["why"], &explained["cache"]["changes"]), (&json!("differs"), &parts));
}

#[test]
fn a_result_is_good_for_its_ttl() {
    let flow = |ttl: &str| format!("steps: {{a: {{run: 'echo x >> marks', cache: {{ttl: {ttl}}}}}}}");
    let place = Place::with("flow.yaml", &flow("1ms"));
    run(&place, "run flow.yaml");
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 2);
    let why = why(&place, "a");
    assert!(why.contains("is older than its ttl of 1ms"), "{why}");
    // How old it may be is no part of what it is.
    place.write("flow.yaml", &flow("1h"));
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 2);
}

#[test]
fn what_failed_is_never_recorded() {
    let place = Place::with(
        "flow.yaml",
        "steps: {a: {run: 'echo x >> marks; echo y=1 >> \"$LANEWAY_OUTPUT\"; test -e ok', cache: true}}",
    );
    for _ in 0..2 {
        assert_eq!(place.laneway("run flow.yaml").code, Some(1));
        assert_eq!(why(&place, "a"), "no result of this step was recorded before");
    }
    place.write("ok", "");
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 3);
    fs::remove_file(place.path("ok")).expect("removed");
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 3, "now it has succeeded");
    // What says by itself that it failed is no success, wherever it stands.
    place.write(
        "said.yaml",
        "steps: {a: {run: 'echo x >> marks; echo success=false >> \"$LANEWAY_OUTPUT\"', cache: true}}",
    );
    for _ in 0..2 {
        run(&place, "run said.yaml");
    }
    assert_eq!(marks(&place), 5);
}

/// All that lies in a directory, however deep.
fn contents(dir: &std::path::Path) -> Vec<u8> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        match entry.file_type().expect("a type") {
            kind if kind.is_dir() => all.extend(contents(&entry.path())),
            kind if kind.is_file() => all.extend(fs::read(entry.path()).expect("read")),
            _ => {}
        }
    }
    all
}

#[test]
fn the_value_of_a_secret_is_no_part_of_a_key_and_is_nowhere_to_be_read() {
    let place = Place::with(
        "flow.yaml",
        "secrets: {token: {env: SECRET_TOKEN}}\nsteps: {a: {run: 'echo x >> marks', env: {TOKEN: 'v ${{ secrets.token }}'}, cache: true}}",
    );
    for token in ["hunter2-first", "hunter2-second"] {
        let mut command = place.command(&["run", "flow.yaml"]);
        command.env("SECRET_TOKEN", token);
        let outcome = place.outcome("run flow.yaml", command);
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    assert_eq!(marks(&place), 1, "a token that was changed makes no other result");
    let kept = contents(&place.path(".laneway"));
    let hash = laneway_core::hash::ContentHash::of(b"v hunter2-first").to_string();
    for trace in [b"hunter2".as_slice(), hash.as_bytes()] {
        assert!(!kept.windows(trace.len()).any(|window| window == trace), "a trace of it is kept");
    }
}

#[test]
fn two_runs_at_once_do_not_wait_for_each_other() {
    let place = Place::with(
        "flow.yaml",
        "steps: {a: {run: 'echo x >> marks; while test \"$(wc -l < marks)\" -lt 2; do sleep 0.02; done', cache: true}}",
    );
    // Each of them ends only when both have begun: neither waits for the other's result.
    let (one, other) = (place.spawn("run flow.yaml"), place.spawn("run flow.yaml"));
    for outcome in [one.wait(), other.wait()] {
        assert_eq!(outcome.code, Some(0), "{outcome}");
    }
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 2);
    assert_eq!(place.json("cache list --json").as_array().map(Vec::len), Some(1));
}

#[test]
fn no_cache_executes_every_step_and_records_what_comes_of_it() {
    let place = Place::with(
        "flow.yaml",
        "steps: {a: {run: 'echo x >> marks; echo n=$(wc -l < marks) >> \"$LANEWAY_OUTPUT\"', cache: true}}",
    );
    run(&place, "run flow.yaml");
    run(&place, "run flow.yaml --no-cache");
    assert_eq!(marks(&place), 2);
    assert_eq!(why(&place, "a"), "nobody looked, because of --no-cache");
    run(&place, "run flow.yaml");
    let shown = place.json("show last --json");
    assert_eq!(
        (&shown["tasks"][0]["reason"], &shown["tasks"][0]["output"]["n"]),
        (&json!("cached"), &json!("2"))
    );
}

/// The run that a step started last: the newest of all.
fn child(place: &Place, store: &str) -> String {
    place.json(&format!("runs --json {store}"))[0]["run"].as_str().expect("an id").to_owned()
}

/// Submits a run, waits for its end, and says what became of its child's step and whether the child asks the cache.
fn submitted(place: &Place, line: &str, store: &str) -> (Value, bool) {
    run(place, &format!("submit parent.yaml {line} {store}"));
    until("the end of the run", || {
        let runs = place.json(&format!("runs --json {store}"));
        runs.as_array().is_some_and(|runs| runs.iter().all(|run| run["status"] == "succeeded"))
            && runs[0]["workflow"] == "child"
    });
    let child = place.json(&format!("show {} --json {store}", child(place, store)));
    (child["tasks"][0]["reason"].clone(), child["no_cache"] == true)
}

#[test]
fn a_submitted_run_keeps_to_no_cache_and_so_do_the_runs_that_it_starts() {
    for store in [String::new(), format!("--store {}", schema())] {
        let place = Place::with("parent.yaml", "steps: {call: {workflow: child.yaml}}");
        place.write("child.yaml", "steps: {a: {run: 'true', cache: true}}");
        let worker = place.spawn(&format!("worker --shutdown-grace 1s {store}"));
        assert_eq!(submitted(&place, "", &store), (Value::Null, false));
        assert_eq!(submitted(&place, "", &store), (json!("cached"), false), "it is known by now");
        assert_eq!(submitted(&place, "--no-cache", &store), (Value::Null, true), "and is not asked for");
        let last = child(&place, &store);
        let explained = place.json(&format!("explain {last} a --json {store}"));
        assert_eq!(explained["cache"]["text"], "nobody looked, because of --no-cache");
        let shown = run(&place, &format!("show {last} {store}"));
        assert!(shown.contains("cache     not asked: every step is executed"), "{shown}");
        run(&place, &format!("replay {last} {store}"));
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait().code, Some(0));
    }
}

#[test]
fn whoever_retries_a_step_that_succeeded_wants_it_executed() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'echo x >> marks', cache: true}}");
    run(&place, "run flow.yaml");
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 1);
    run(&place, "retry last --from a");
    assert_eq!(marks(&place), 2);
    assert_eq!(why(&place, "a"), "nobody looked, because a person wanted it again");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn without_a_key_a_step_is_executed() {
    let place = Place::with("flow.yaml", "steps: {a: {run: 'echo x >> marks', cache: {files: [none/*]}}}");
    for times in 1..=2 {
        run(&place, "run flow.yaml");
        assert_eq!(marks(&place), times);
        assert_eq!(why(&place, "a"), "it has no key: no file is like `none/*` of `cache.files`");
    }
    place.write("bad.yaml", "steps: {a: {run: 'true', cache: {key: '${{ [1][5] }}'}}}");
    let outcome = place.laneway("run bad.yaml");
    assert!(outcome.code == Some(1) && outcome.stdout.contains("`cache.key`"), "{outcome}");
}

#[test]
fn a_result_whose_files_are_gone_is_a_miss_and_no_error() {
    let place = place();
    run(&place, "run build.yaml");
    fs::remove_dir_all(place.path("dist")).expect("removed");
    fs::remove_dir_all(place.path(".laneway/artifacts")).expect("removed");
    run(&place, "run build.yaml");
    assert_eq!(marks(&place), 2);
    let why = why(&place, "build");
    assert!(
        why.starts_with("files of the result of run ") && why.ends_with(" are not kept any more"),
        "{why}"
    );
    fs::remove_dir_all(place.path("dist")).expect("removed");
    run(&place, "run build.yaml");
    assert_eq!(marks(&place), 2, "it was recorded anew");
}

#[test]
fn files_of_other_steps_belong_to_the_key() {
    let place = Place::with(
        "flow.yaml",
        r#"
params: {word: {type: string, default: one}}
steps:
  make: {run: 'echo "$WORD" > out.txt', env: {WORD: "${{ params.word }}"}, artifacts: [out.txt]}
  use: {needs: [make], inputs: [make], run: 'echo x >> marks', cache: true}
"#,
    );
    run(&place, "run flow.yaml");
    run(&place, "run flow.yaml");
    assert_eq!(marks(&place), 1);
    run(&place, "run flow.yaml -p word=two");
    assert_eq!(marks(&place), 2);
    let why = why(&place, "use");
    assert!(why.ends_with("the file out.txt has changed"), "{why}");
}

/// Whoever takes the task looks, and what one node recorded another one takes, with its files.
#[test]
fn a_worker_takes_what_another_one_recorded_on_postgres() {
    let flow = "name: shared\nsteps: {a: {run: 'echo $LANEWAY_TASK > out', artifacts: [out], cache: true}, b: {needs: [a], inputs: [a], run: 'cat out'}}\n";
    let (place, store) = (Place::with("flow.yaml", flow), schema());
    let work = |name: &str| {
        // In a directory that `submit` leaves out: it packs what lies beside the workflow.
        let worker =
            place.spawn(&format!("worker --node-address {name} --data-dir .laneway/{name} --store {store}"));
        let submitted = place.laneway(&format!("submit flow.yaml --store {store}"));
        assert_eq!(submitted.code, Some(0), "{submitted}");
        let shown = || place.json(&format!("show last --json --store {store}"));
        until("the end of the run", || shown()["status"] == "succeeded");
        worker.signal(rustix::process::Signal::TERM);
        assert_eq!(worker.wait().code, Some(0));
        place.json(&format!("show last --json --store {store}"))
    };
    assert_eq!(work("one")["tasks"][0]["reason"], Value::Null);
    let second = work("two");
    assert_eq!(second["tasks"][0]["reason"], "cached", "{second}");
    assert_eq!(second["tasks"][0]["node"], "two");
    assert_eq!(place.laneway(&format!("logs last b --store {store}")).stdout, "a\n");
    assert_eq!(place.laneway(&format!("replay last --store {store}")).code, Some(0));
}

#[test]
fn results_are_listed_counted_forgotten_and_pruned() {
    let place = place();
    assert!(place.laneway("cache list").code == Some(3), "there is no store yet");
    for _ in 0..3 {
        run(&place, "run build.yaml");
    }
    let listed = place.json("cache list --json");
    assert_eq!((&listed[0]["step"], &listed[0]["hits"]), (&json!("build"), &json!(2)), "{listed}");
    assert!(place.laneway("cache list build build").stdout.contains("build     build"), "a table");
    assert_eq!(place.laneway("cache clear other").stdout, "0 results forgotten, 0 B\n");
    let cleared = place.laneway("cache clear build build");
    assert!(cleared.stdout.starts_with("1 result forgotten, "), "{cleared}");
    run(&place, "run build.yaml");
    assert_eq!(marks(&place), 2);
    assert!(run(&place, "prune --cache").starts_with("0 runs removed"));
    let mut prune = place.command(&["prune", "--cache"]);
    prune.env("LANEWAY_KEEP_CACHE_BYTES", "1B");
    let pruned = place.outcome("prune --cache", prune);
    assert!(pruned.stdout.starts_with("0 runs, 1 recorded result removed"), "{pruned}");
    run(&place, "run build.yaml");
    assert_eq!(marks(&place), 3);
}

/// What items leave behind is given under the name of their step, and belongs to the key of who is given it.
#[test]
fn files_of_items_belong_to_the_key_of_who_is_given_them() {
    let document = r#"
steps:
  parse: {for_each: [1, 2], max_parallel: 1, env: {N: "${{ item }}"}, run: 'cp source "out-$N"', artifacts: ["out-${{ item }}"]}
  report: {needs: [parse], inputs: [parse], cache: true, run: 'cat out-1 out-2 > report; echo x >> marks'}
"#;
    let place = Place::with("work.yaml", document);
    for (source, marks) in [("one", 1), ("one", 1), ("two", 2)] {
        place.write("source", source);
        let outcome = place.laneway("run work.yaml");
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert_eq!(place.read("marks").lines().count(), marks, "{source}");
    }
}
