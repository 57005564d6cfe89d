//! Advice for the author of a document: warnings, and what a shared directory refuses.

use super::{compile, source};
use crate::definition::examine;

fn examined(text: &str) -> (String, String) {
    let text = text.trim_start_matches('\n');
    let examined = examine(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    (examined.warnings.render(false), examined.shared_directory.render(false))
}

#[test]
fn pipe_under_a_shell_that_was_not_chosen_is_warned_of() {
    let text = r#"
hooks: {failed: [{run: tail log | mail}]}
steps:
  fetch:
    run: |
      # sorted
      for part in a b; do
        curl "$URL/$part" | sort > $part
      done
  one: {run: "fetch | sort"}
  folded: {run: "a \
    | b"}
"#;
    let (warnings, refused) = examined(text);
    insta::assert_snapshot!(warnings, @r#"
    warning: under `sh` a pipe succeeds if its last command does, whatever became of the others
     --> flow.yaml:1:33
      |
    1 | hooks: {failed: [{run: tail log | mail}]}
      |                                 ^
      |
      = help: add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is

    warning: under `sh` a pipe succeeds if its last command does, whatever became of the others
     --> flow.yaml:7:27
      |
    7 |         curl "$URL/$part" | sort > $part
      |                           ^
      |
      = help: add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is

    warning: under `sh` a pipe succeeds if its last command does, whatever became of the others
     --> flow.yaml:9:21
      |
    9 |   one: {run: "fetch | sort"}
      |                     ^
      |
      = help: add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is

    warning: under `sh` a pipe succeeds if its last command does, whatever became of the others
      --> flow.yaml:10:17
       |
    10 |   folded: {run: "a \
       |                 ^^^^
       |
       = help: add `shell: bash`, under which the step fails if any of them does, or `shell: sh` to keep it as it is
    "#);
    assert_eq!(refused.trim(), "");
}

#[test]
fn pipe_that_was_meant_is_not_warned_of() {
    for text in [
        "steps: {a: {run: a || b}}",
        "steps: {a: {run: a | b, shell: bash}}",
        "steps: {a: {run: a | b, shell: sh}}",
        "shell: sh\nhooks: {failed: [{run: a | b}]}\nsteps: {a: {run: a | b}}",
        "steps: {a: {run: \"#!/bin/bash\\na | b\"}}",
        "steps: {a: {run: \"set -o pipefail; a | b\"}}",
        "steps: {a: {command: [sh, -c, a | b]}}",
    ] {
        assert_eq!(examined(text).0.trim(), "", "{text}");
    }
}

#[test]
fn items_that_would_take_each_others_files_are_refused_in_a_shared_directory() {
    let text = r#"
steps:
  parse: {for_each: [a, b], run: ./parse, artifacts: ["out/*.json", "log-${{ index }}.txt", report]}
"#;
    insta::assert_snapshot!(examined(text).1, @r#"
    error: every item of `parse` would take `out/*.json` for its own: the items share one directory under `laneway run`
     --> flow.yaml:2:55
      |
    2 |   parse: {for_each: [a, b], run: ./parse, artifacts: ["out/*.json", "log-${{ index }}.txt", report]}
      |                                                       ^^^^^^^^^^^^
      |
      = help: name the files after the item, such as `out/part-${{ index }}.json`, or give each item a copy of the directory with `isolate: true`

    error: every item of `parse` would take `report` for its own: the items share one directory under `laneway run`
     --> flow.yaml:2:93
      |
    2 |   parse: {for_each: [a, b], run: ./parse, artifacts: ["out/*.json", "log-${{ index }}.txt", report]}
      |                                                                                             ^^^^^^
      |
      = help: name the files after the item, such as `report-${{ index }}`, or give each item a copy of the directory with `isolate: true`
    "#);
    for fine in [
        r#"steps: {a: {for_each: [a], run: x, artifacts: ["out-${{ item }}"]}}"#,
        "steps: {a: {for_each: [a], run: x, artifacts: [out], isolate: true}}",
        "steps: {a: {run: x, artifacts: [out]}}",
    ] {
        assert_eq!(examined(fine).1.trim(), "", "{fine}");
    }
    assert!(compile(&source(text)).is_ok(), "a document that is stored stays readable");
}

#[test]
fn advice_is_data_too() {
    let found = examine(&source("steps: {a: {run: a | b}}")).expect("valid");
    let json = found.warnings.to_json();
    assert_eq!(json["warnings"][0]["line"], 1);
    assert_eq!(json["warnings"][0]["start"], 19);
    assert_eq!(found.shared_directory.to_json()["errors"], serde_json::json!([]));
}
