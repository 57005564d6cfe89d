//! YAML itself, and what of it is not taken.

use super::refused;

#[test]
fn an_empty_document_is_refused() {
    let text = r#"
# nothing here
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the document is empty
    --> flow.yaml
     = help: a workflow has at least `steps: {hello: {run: echo hello}}`
    "#);
}

#[test]
fn a_list_at_the_top_is_refused() {
    let text = r#"
- a
- b
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a workflow is a mapping of keys to values, not a list
     --> flow.yaml:1:1
      |
    1 | - a
      | ^^^
      |
      = help: start with `steps:` and one step below it
    "#);
}

#[test]
fn a_word_at_the_top_is_refused() {
    let text = r#"
hello
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a workflow is a mapping of keys to values, not a single value
     --> flow.yaml:1:1
      |
    1 | hello
      | ^^^^^
      |
      = help: start with `steps:` and one step below it
    "#);
}

#[test]
fn a_second_document_is_refused() {
    let text = r#"
steps: {a: {run: make}}
---
steps: {b: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a second document starts here
     --> flow.yaml:2:1
      |
    2 | ---
      | ^^^
      |
      = help: one file holds one workflow; put the other one into a file of its own
    "#);
}

#[test]
fn broken_yaml_is_refused_where_it_breaks() {
    let text = r#"
steps:
  a: {run: make
  b: [
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
     --> flow.yaml:3:4
      |
    3 |   b: [
      |    ^
    "#);
}

#[test]
fn an_unquoted_expression_in_braces_gets_advice() {
    let text = r#"
steps:
  a: {run: make, env: {A: ${{ params.x }}}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
     --> flow.yaml:2:28
      |
    2 |   a: {run: make, env: {A: ${{ params.x }}}}
      |                            ^
      |
      = help: put a value that contains `${{ … }}` in quotes: "${{ … }}"
    "#);
}

#[test]
fn a_tab_gets_advice() {
    let text = r#"
steps:
	a: {run: make}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: this is not valid YAML: tabs disallowed within this context (block indentation)
     --> flow.yaml:2:2
      |
    2 |     a: {run: make}
      |     ^
      |
      = help: indent with spaces, not with tabs
    "#);
}

#[test]
fn tags_and_merge_keys_are_refused() {
    let text = r#"
x-common: &common {A: 1}
steps:
  a: {run: make, env: {<<: *common}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: merge keys (`<<`) are not supported
     --> flow.yaml:3:24
      |
    3 |   a: {run: make, env: {<<: *common}}
      |                        ^^
      |
      = help: write the keys out, or let an alias stand for a whole value: `env: *common`
    "#);
}

#[test]
fn a_tag_is_refused() {
    let text = r#"
steps:
  a: {run: !!str make}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: tags (`!name`) are not supported
     --> flow.yaml:2:12
      |
    2 |   a: {run: !!str make}
      |            ^^^^^^^^^^
      |
      = help: put a value that starts with `!` in quotes
    "#);
}

#[test]
fn an_alias_of_itself_is_refused() {
    let text = r#"
steps: &s
  a: {run: make, env: *s}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: an alias cannot stand inside of what it names
     --> flow.yaml:2:23
      |
    2 |   a: {run: make, env: *s}
      |                       ^^
    "#);
}

#[test]
fn an_unknown_alias_is_refused() {
    let text = r#"
steps:
  a: {run: make, env: *common}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: this is not valid YAML: while parsing node, found unknown anchor
     --> flow.yaml:2:23
      |
    2 |   a: {run: make, env: *common}
      |                       ^
    "#);
}

#[test]
fn an_error_behind_an_alias_is_shown_once_where_it_stands() {
    let text = r#"
x-env: &common {A: [1]}
steps:
  a: {run: make, env: *common}
  b: {run: make, env: *common}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `A` must be a string, not a list
     --> flow.yaml:1:20
      |
    1 | x-env: &common {A: [1]}
      |                    ^^^
    "#);
}

#[test]
fn text_that_acts_on_a_terminal_is_shown_harmless() {
    let text = r#"
steps: {a: {run: make, "\e[31mred": 1}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a step has no key `\u{1b}[31mred`
     --> flow.yaml:1:24
      |
    1 | steps: {a: {run: make, "\e[31mred": 1}}
      |                        ^^^^^^^^^^^
      |
      = help: the keys are: run, command, args, shell, function, queue, with, needs, when, if, env, workdir, timeout, retry, on_lost, lock, order, limits, not_before, runs_on, prefers, priority, artifacts, inputs, isolate, on_conflict, cache, image, container, pool, call, wait, workflow, for_each, max_parallel, fail_fast, description
    "#);
}

#[test]
fn a_nul_in_a_value_is_refused() {
    let text = r#"
steps: {a: {run: make, env: {A: "x\0y"}}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `A` contains a NUL character
     --> flow.yaml:1:33
      |
    1 | steps: {a: {run: make, env: {A: "x\0y"}}}
      |                                 ^^^^^^
    "#);
}
