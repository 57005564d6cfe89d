//! Documents and what is said about them: one inline snapshot for every kind of error, and the
//! workflow for those that are valid.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::expression::{Part, Template};
use crate::reason::Reason;
use crate::shell::Shell;

mod advice;
mod caches;
mod children;
mod containers;
mod expressions;
mod files;
mod gates;
mod graph;
mod groups;
mod growth;
mod keys_and_values;
mod levels;
mod messages;
mod names_and_params;
mod shells;
mod syntax;
mod triggers;
mod waits;

fn source(text: &str) -> Source {
    Source { file: "flow.yaml".into(), default_name: "flow".into(), text: text.into() }
}

/// The errors as a person sees them.
fn refused(text: &str) -> String {
    compile(&source(text)).expect_err("it must be refused").render(false)
}

const FULL: &str = r#"
name: nightly
description: All of it
params:
  date: {type: string, required: true}
  depth: {type: integer, default: 2, enum: [1, 2], description: how deep}
  extra: {type: object}
max_parallel: 8
on_failure: continue
timeout: 2h
execution: dataflow
placement: spread
env: {DATE: "${{ params.date }}", PORT: 8080, DEBUG: true}
x-retry: &retry {max: 3, backoff: 5m, on: [timeout, 75]}
steps:
  fetch:
    run: |
      ./fetch.sh "$DATE"
    timeout: 1h30m
    retry: *retry
  parse:
    needs: [fetch, fetch]
    command: [./parse.sh, --level, 5]
    args: ["${{ steps.fetch.output.files }}", plain]
    workdir: sub
    retry: *retry
  check-all:
    needs: parse
    when: all_done
    if: ${{ params.depth > 1 }}
    on_lost: fail
    timeout: 0s
    run: ./report.sh
    env: {A: "x${{ steps.fetch.status }}"}
groups:
  g: {steps: [parse]}
"#;

#[test]
fn a_full_document_becomes_a_workflow() {
    let workflow = read(&source(FULL)).map_err(|refusal| refusal.render(false)).expect("valid");
    assert_eq!(workflow.name, "nightly");
    assert_eq!(workflow.max_parallel.map(u32::from), Some(8));
    assert_eq!(workflow.on_failure, OnFailure::Continue);
    assert_eq!(workflow.timeout, Some(Duration::from_secs(7200)));
    let env: Vec<&str> = workflow.env.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(env, ["DATE", "PORT", "DEBUG"]);
    assert_eq!(workflow.env[1].1, Template { parts: vec![Part::Text("8080".into())] });
    assert_eq!(workflow.params[1].default, Some(2.into()));
    assert_eq!(workflow.params[1].description.as_deref(), Some("how deep"));
    assert!(workflow.params[0].required && !workflow.params[2].required);

    let [fetch, parse, check] = workflow.steps.as_slice() else { panic!("three steps") };
    assert_eq!(
        fetch.action,
        Action::Run { script: "./fetch.sh \"$DATE\"\n".into(), args: Vec::new(), shell: Shell::Sh }
    );
    assert_eq!(fetch.timeout, Some(Duration::from_secs(5400)));
    assert_eq!(fetch.retry.max, 3);
    assert_eq!(fetch.retry.max_backoff, Duration::from_secs(300), "never below `backoff`");
    assert_eq!(fetch.retry.on, [RetryOn::Reason(Reason::Timeout), RetryOn::ExitCode(75)]);
    assert_eq!(parse.retry, fetch.retry, "an alias stands for the whole value");
    assert_eq!(parse.needs, ["fetch"]);
    let Action::Command { argv, args } = &parse.action else { panic!("a command") };
    assert_eq!(argv, &["./parse.sh", "--level", "5"]);
    assert_eq!(args[0].steps_read().collect::<Vec<_>>(), ["fetch"]);
    assert_eq!(parse.workdir.as_ref().and_then(Template::fixed), Some("sub"));
    assert_eq!(check.needs, ["parse"]);
    assert_eq!((check.when, check.on_lost, check.timeout), (When::AllDone, OnLost::Fail, None));
    let condition = check.condition.as_ref().expect("it has an `if`");
    assert_eq!(condition.source, "params.depth > 1");
    assert_eq!(workflow.groups[0].steps, ["parse"]);

    let plan = compile(&source(FULL)).map_err(|refusal| refusal.render(false)).expect("valid");
    // The planner adds a merge for the group, and changes nothing else.
    let mut planned = plan.workflow.clone();
    assert_eq!(planned.steps.pop().map(|merge| merge.name).as_deref(), Some("g/merge"));
    assert_eq!(planned, workflow);
    assert_eq!(plan.version, Version::of("nightly", FULL));
}

#[test]
fn a_small_document_takes_the_files_name_and_the_defaults() {
    let workflow = read(&source("steps: {a: {run: make}}")).expect("valid");
    assert_eq!(workflow.name, "flow");
    assert_eq!(workflow.on_failure, OnFailure::Halt);
    assert_eq!(workflow.steps[0].retry, Retry::default());
    assert_eq!((workflow.timeout, workflow.max_parallel), (None, None));
}

#[test]
fn json_is_read_like_yaml_with_its_own_escapes() {
    let json = "\u{feff}{\r\n\t\"name\": \"caf\\u00e9 \\ud83d\\ude00\", \"steps\": {\"a\": {\"run\": \"a\\/b\\n\", \"env\": {\"N\": -1.5e3}}}}\r\n";
    let workflow = read(&source(json)).map_err(|refusal| refusal.render(false)).expect("valid");
    assert_eq!(workflow.name, "café 😀");
    assert_eq!(
        workflow.steps[0].action,
        Action::Run { script: "a/b\n".into(), args: Vec::new(), shell: Shell::Sh }
    );
    assert_eq!(workflow.steps[0].env[0].1.parts, [Part::Text("-1.5e3".into())]);
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let text = "\u{feff}name: x\r\nsteps:\r\n  a: {run: make, need: b}\r\n";
    let refusal = compile(&source(text)).expect_err("an unknown key");
    let found = &refusal.all[0];
    assert_eq!((found.line, found.column), (3, 18));
    assert_eq!(&text[found.span.clone()], "need");
}

#[test]
fn errors_are_given_as_json_too() {
    let refusal = compile(&source("steps: {a: {run: make, a: 1}, a: {run: x}}")).expect_err("two errors");
    insta::assert_snapshot!(refusal.to_json(), @r#"{"file":"flow.yaml","errors":[{"message":"a step has no key `a`","line":1,"column":24,"start":23,"end":24,"hint":"the keys are: run, command, args, shell, function, queue, with, needs, when, if, env, workdir, timeout, retry, on_lost, lock, order, limits, not_before, runs_on, prefers, priority, artifacts, inputs, isolate, on_conflict, cache, image, container, pool, call, wait, workflow, for_each, max_parallel, fail_fast, description","note":null},{"message":"the key `a` is given twice","line":1,"column":31,"start":30,"end":31,"hint":null,"note":{"message":"first given here","line":1,"column":9}}],"more":0}"#);
}

/// Any document as a JSON value.
fn as_json(text: &str) -> serde_json::Value {
    let mut findings = Findings::default();
    let tree = yaml::parse(text, &mut findings).expect("a tree");
    reader::Reader {
        text,
        tree: &tree,
        findings,
        sites: Vec::new(),
        named: Vec::new(),
        step: None,
        is_env: false,
        is_hook: false,
        is_callback: false,
        shell: Shell::Sh,
    }
    .json(tree.root)
}

/// Turns a document into one that is wrong in unforeseen ways.
fn mutated(text: &str, changes: &[(usize, usize, &str)]) -> String {
    let mut text: Vec<char> = text.chars().collect();
    for (at, length, insert) in changes {
        let at = at % (text.len() + 1);
        let end = (at + length).min(text.len());
        text.splice(at..end, insert.chars());
    }
    text.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn reading_never_panics_and_every_place_lies_in_the_document(
        changes in prop::collection::vec((
            any::<usize>(),
            0..12usize,
            prop::sample::select(vec![
                "", " ", "\n", "  ", "\t", "\r\n", ":", ": ", "- ", "[", "]", "{", "}", ",", "\"", "'", "#", "&a ",
                "*a", "!t ", "|", ">", "?", "---\n", "...\n", "%", "@", "`", "\\", "${{", "}}", "${{ params.x }}",
                "é", "\u{200b}", "😀", "\0", "<<: ", "x-a: ", "steps:", "needs: [a]", "0", "-1", "1e999", "null",
            ]),
        ), 1..8)
    ) {
        let text = mutated(FULL, &changes);
        if let Err(refusal) = compile(&source(&text)) {
            prop_assert!(!refusal.all.is_empty());
            for found in &refusal.all {
                prop_assert!(text.get(found.span.clone()).is_some(), "{:?} in {text:?}", found);
                prop_assert!(found.line >= 1 && found.line <= text.lines().count() + 1);
            }
            let rendered = refusal.render(true);
            prop_assert!(rendered.contains(&refusal.all[0].message));
            prop_assert!(refusal.to_json()["errors"].is_array());
        }
    }

    #[test]
    fn json_documents_read_the_same_by_both_parsers(
        value in prop::collection::btree_map("[a-z]{1,4}", prop::collection::vec("[ -~é\n\t]{0,9}", 0..4), 0..4)
    ) {
        let text = serde_json::to_string_pretty(&value).expect("strings only");
        // A comment makes it YAML.
        let commented = format!("{text} # yaml");
        prop_assert_eq!(as_json(&text), as_json(&commented));
    }
}
