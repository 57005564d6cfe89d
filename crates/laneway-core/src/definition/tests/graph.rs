//! The graph: what the planner refuses, at its place in the document.

use super::refused;

#[test]
fn a_cycle_is_shown_as_a_whole() {
    let text = r#"
steps:
  a: {run: make, needs: c}
  b: {run: make, needs: a}
  c: {run: make, needs: b}
  d: {run: make, needs: d}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: steps wait for each other in a cycle: a -> b -> c -> a
     --> flow.yaml:2:25
      |
    2 |   a: {run: make, needs: c}
      |                         ^
      |
      = help: each step waits for the one before the arrow; `a` needs `c` closes the cycle

    error: step `d` needs itself
     --> flow.yaml:5:25
      |
    5 |   d: {run: make, needs: d}
      |                         ^
      |
      = help: remove `d` from its own `needs`
    "#);
}

#[test]
fn a_need_or_a_member_that_names_nothing_is_refused() {
    let text = r#"
steps:
  build: {run: make}
  test: {run: make, needs: [biuld]}
groups: {g: {steps: [test, bild]}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: step `test` needs `biuld`, which is not a step
     --> flow.yaml:3:29
      |
    3 |   test: {run: make, needs: [biuld]}
      |                             ^^^^^
      |
      = help: did you mean `build`?

    error: group `g` lists `bild`, which is not a step
     --> flow.yaml:4:28
      |
    4 | groups: {g: {steps: [test, bild]}}
      |                            ^^^^
      |
      = help: did you mean `build`?
    "#);
}

#[test]
fn a_name_that_nothing_has_is_shown_harmless() {
    let text = "steps: {a: {run: make, needs: [\"b\\tc\"]}}\ngroups: {g: {steps: [\"\\e[31m\"]}}\n";
    let refusal = refused(text);
    assert!(refusal.contains("step `a` needs `b\\u{9}c`, which is not a step"), "{refusal}");
    assert!(refusal.contains("group `g` lists `\\u{1b}[31m`, which is not a step"), "{refusal}");
}

#[test]
fn a_broken_step_keeps_its_name_for_the_others() {
    let text = r#"
steps:
  build: {runn: make}
  lint: [1]
  test: {run: make, needs: [build, lint, nothing]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a step has no key `runn`
     --> flow.yaml:2:11
      |
    2 |   build: {runn: make}
      |           ^^^^
      |
      = help: did you mean `run`?

    error: `lint` must be a mapping such as {run: ./build.sh}, not a list
     --> flow.yaml:3:9
      |
    3 |   lint: [1]
      |         ^^^

    error: step `test` needs `nothing`, which is not a step
     --> flow.yaml:4:42
      |
    4 |   test: {run: make, needs: [build, lint, nothing]}
      |                                          ^^^^^^^
    "#);
}

#[test]
fn an_empty_workflow_is_refused() {
    let text = r#"
name: empty
steps: {}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the workflow has no steps
     --> flow.yaml:2:1
      |
    2 | steps: {}
      | ^^^^^
      |
      = help: give it at least one step under `steps`
    "#);
}

#[test]
fn a_workflow_without_steps_is_refused() {
    let text = r#"
name: nothing
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the workflow has no `steps`
     --> flow.yaml:1:1
      |
    1 | name: nothing
      | ^
      |
      = help: add at least one: `steps: {hello: {run: echo hello}}`
    "#);
}
