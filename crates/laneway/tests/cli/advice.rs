//! Advice on documents, and scripts, copies and files of items as a person meets them.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::place::Place;

const PIPE: &str = "steps:\n  sum:\n    run: |\n      false | cat\n";

#[test]
fn pipe_is_warned_of_and_stops_nothing() {
    let place = Place::with("sum.yaml", PIPE);
    assert_snapshot!(place.laneway("validate sum.yaml"), @"
    $ laneway validate sum.yaml
    exit code 0
    ----- stdout
    sum.yaml: ok, sum has 1 step
    ----- stderr
    warning: under `sh` a pipe succeeds if its last command does, whatever became of the others
     --> sum.yaml:4:13
      |
    4 |       false | cat
      |             ^
      |
      = help: add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is
    ");
    let json = place.json("validate sum.yaml --json");
    assert_eq!((&json["valid"], &json["warnings"][0]["line"]), (&Value::Bool(true), &Value::from(4)));
    for command in ["plan sum.yaml", "run sum.yaml", "apply sum.yaml", "submit sum.yaml"] {
        let outcome = place.laneway(command);
        assert_eq!(outcome.code, Some(0), "{outcome}");
        assert!(outcome.stderr.contains("warning: under `sh` a pipe"), "{outcome}");
    }
    let stored = place.laneway("start sum");
    assert!(!stored.stderr.contains("warning"), "what is stored is not warned of: {stored}");
}

#[test]
fn shell_interprets_the_script_and_passes_its_arguments() {
    let text = r#"
shell: bash
steps:
  pipe: {run: 'false | cat', when: always}
  list: {run: 'x=(a b); echo "$0 $1 ${x[1]}"', args: [one]}
  file: {run: 'import sys; print(sys.argv[1:])', shell: [python3, -u], args: [one]}
  text: {run: 'import sys; print(sys.argv[1:])', shell: [python3, -c], args: [one]}
  plain: {run: 'false | cat', shell: sh}
on_failure: continue
"#;
    let place = Place::with("shells.yaml", text);
    let outcome = place.laneway("run shells.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let run = place.json("show last --json");
    let status = |step: &str| {
        let tasks = run["tasks"].as_array().expect("tasks");
        let task = tasks.iter().find(|task| task["step"] == step).expect("a task");
        task["status"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!((status("pipe"), status("plain")), ("failed".to_owned(), "succeeded".to_owned()), "{outcome}");
    let log = |step: &str| place.laneway(&format!("logs last {step}")).stdout;
    assert_eq!(log("list"), "list one b\n");
    assert_eq!((log("file"), log("text")), ("['one']\n".to_owned(), "['one']\n".to_owned()));
}

#[test]
fn shell_that_is_not_there_is_named() {
    let place = Place::with("x.yaml", "steps: {a: {run: x, shell: [no-such-shell, -c]}}");
    let outcome = place.laneway("run x.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("no-such-shell"), "{outcome}");
}

const ITEMS: &str = r#"
steps:
  parse: {for_each: [a, b], env: {N: "${{ item }}"}, run: 'echo "$N" > out.txt; echo x > "litter-$N"', artifacts: [out.txt]ISOLATE}
"#;

#[test]
fn items_that_share_a_directory_do_not_take_each_others_files() {
    let place = Place::with("items.yaml", &ITEMS.replace("ISOLATE", ""));
    assert_snapshot!(place.laneway("run items.yaml"), @r#"
    $ laneway run items.yaml
    exit code 2
    ----- stdout
    ----- stderr
    error: every item of `parse` would take `out.txt` for its own: the items share one directory under `laneway run`
     --> items.yaml:3:116
      |
    3 |   parse: {for_each: [a, b], env: {N: "${{ item }}"}, run: 'echo "$N" > out.txt; echo x > "litter-$N"', artifacts: [out.txt]}
      |                                                                                                                    ^^^^^^^
      |
      = help: name the files after the item, such as `out-${{ index }}.txt`, or give each item a copy of the directory with `isolate: true`
    "#);
    assert_eq!(place.laneway("validate items.yaml").code, Some(2));
    let applied = place.laneway("apply items.yaml");
    assert_eq!(applied.code, Some(0), "a view of its own for each item: {applied}");
    assert_eq!(place.laneway("start items --wait").code, Some(2));
}

#[test]
fn isolated_items_work_in_copies_and_leave_only_artifacts() {
    let place = Place::with("items.yaml", &ITEMS.replace("ISOLATE", ", isolate: true"));
    let outcome = place.laneway("run items.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(!place.path("out.txt").exists() && !place.path("litter-a").exists(), "copies are dropped");
    assert_eq!(place.laneway("artifacts last --to got").code, Some(0));
    assert_eq!(
        (place.read("got/parse/0/out.txt"), place.read("got/parse/1/out.txt")),
        ("a\n".into(), "b\n".into())
    );
    let left = fs::read_dir(place.path(".laneway/isolates")).into_iter().flatten().flatten();
    let cells = left.flat_map(|instance| fs::read_dir(instance.path()).into_iter().flatten().flatten());
    assert_eq!(cells.count(), 0, "no copy stays");
}

#[test]
fn paths_name_the_item_and_inputs_take_a_single_one() {
    let text = r#"
steps:
  parse:
    for_each: [a, b]
    workdir: "parts/${{ item }}"
    run: 'echo "$PWD" > here; cp here "out-$N"'
    env: {N: "${{ item.index }}"}
    artifacts: ["out-${{ index }}"]
  check:
    needs: [parse]
    for_each: ["${{ 'x' }}", y]
    run: 'ls out-*'
    isolate: true
    inputs: ["parse[${{ index }}]"]
"#;
    let place = Place::with("items.yaml", text);
    for part in ["a", "b"] {
        fs::create_dir_all(place.path(&format!("parts/{part}"))).expect("made");
    }
    let outcome = place.laneway("run items.yaml");
    assert_eq!(outcome.code, Some(0), "{outcome}");
    assert!(place.read("parts/b/out-1").trim_end().ends_with("parts/b"));
    let log = |step: &str| place.laneway(&format!("logs last {step}")).stdout;
    assert_eq!((log("check[0]"), log("check[1]")), ("out-0\n".to_owned(), "out-1\n".to_owned()));
}

#[test]
fn item_that_leads_out_fails_its_attempt() {
    let text = r#"
steps:
  dir: {for_each: [..], workdir: "${{ item }}", run: "true"}
  file: {for_each: [../x], run: "true", artifacts: ["${{ item }}"]}
on_failure: continue
"#;
    let place = Place::with("out.yaml", text);
    let outcome = place.laneway("run out.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    for why in
        ["`workdir`: `..` is no directory for the step", "`artifacts`: `../x` is no path of an artifact"]
    {
        assert!(outcome.stdout.contains(why), "{outcome}");
    }
}

#[test]
fn failure_says_what_was_found_and_what_to_do() {
    let text = r#"
secrets: {api: {store: prod_api}}
on_failure: continue
steps:
  artifact: {run: 'mkdir -p dist; touch dist/app.zip', artifacts: ["dist/*.tar"]}
  nowhere: {run: 'true', artifacts: ["none/x/*.tar"]}
  secret: {run: 'true', env: {API: "${{ secrets.api }}"}}
  json: {run: 'echo "{\"a\": nope}" > "$LANEWAY_OUTPUT"'}
  out: {run: 'echo count=1 > "$LANEWAY_OUTPUT"'}
  read: {needs: [out], run: 'true', env: {N: "${{ steps.out.output.cuont }}"}}
"#;
    let place = Place::with("wrong.yaml", text);
    let outcome = place.laneway("run wrong.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    let run = place.json("show last --json");
    let detail = |step: &str| {
        let tasks = run["tasks"].as_array().expect("tasks");
        let task = tasks.iter().find(|task| task["step"] == step).expect("a task");
        task["detail"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(detail("artifact"), "no file is like its artifact `dist/*.tar`: `dist` has app.zip");
    assert!(detail("nowhere").contains("there is no `none`, and "), "{}", detail("nowhere"));
    assert_eq!(
        detail("secret"),
        "secret `api`: the store has no secret `prod_api`; `laneway secret set prod_api` makes it"
    );
    assert_snapshot!(detail("json"), @r#"line 1: not valid JSON: expected ident at column 8 of `{"a": nope}`; $LANEWAY_OUTPUT takes one JSON object (`jq` writes one), or lines of key=value"#);
    assert_snapshot!(detail("read"), @"`env.N`: `steps.out.output.cuont` is not set: step `out` put out `count`; did you mean `count`?");
}
