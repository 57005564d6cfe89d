//! Messages for what a person writes who comes from elsewhere: what happened, where, and what to write.

use super::refused;

#[test]
fn words_of_other_systems_are_answered_with_ours() {
    let text = r#"
jobs: {build: {run: make}}
on: push
steps:
  a: {uses: actions/checkout@v4}
  b: {run: make, depends_on: [a], matrix: {os: [linux]}}
  c: {script: make, continue-on-error: true, timeout-minutes: 5}
  d: {run: make, name: Build, when: on_failure}
  e: {run: make, when: success()}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: a workflow has no key `jobs`
     --> flow.yaml:1:1
      |
    1 | jobs: {build: {run: make}}
      | ^^^^
      |
      = help: the word here is `steps`: `steps: {build: {run: make}, test: {needs: [build], run: make test}}`

    error: a workflow has no key `on`
     --> flow.yaml:2:1
      |
    2 | on: push
      | ^^
      |
      = help: `schedule: {cron: "0 2 * * *"}`, `after` or `webhook` start a workflow that was applied

    error: a step has no key `uses`
     --> flow.yaml:4:7
      |
    4 |   a: {uses: actions/checkout@v4}
      |       ^^^^
      |
      = help: nothing is fetched from a marketplace: `run` is a script, `image` its container, `workflow` another workflow

    error: a step has no key `depends_on`
     --> flow.yaml:5:18
      |
    5 |   b: {run: make, depends_on: [a], matrix: {os: [linux]}}
      |                  ^^^^^^^^^^
      |
      = help: the word here is `needs`: `needs: [build]` starts the step when `build` has succeeded

    error: `matrix` is not supported yet
     --> flow.yaml:5:35
      |
    5 |   b: {run: make, depends_on: [a], matrix: {os: [linux]}}
      |                                   ^^^^^^
      |
      = help: write `for_each` with the combinations: `for_each: [{os: linux, py: "3.12"}]`, read as `${{ item.os }}`

    error: a step has no key `script`
     --> flow.yaml:6:7
      |
    6 |   c: {script: make, continue-on-error: true, timeout-minutes: 5}
      |       ^^^^^^
      |
      = help: the word here is `run`: `run: make test`, or `run: |` with a script of several lines below it

    error: a step has no key `continue-on-error`
     --> flow.yaml:6:21
      |
    6 |   c: {script: make, continue-on-error: true, timeout-minutes: 5}
      |                     ^^^^^^^^^^^^^^^^^
      |
      = help: `on_failure: continue` of the workflow lets other steps go on; a step behind this one with `when: one_failed` runs if it fails

    error: a step has no key `timeout-minutes`
     --> flow.yaml:6:46
      |
    6 |   c: {script: make, continue-on-error: true, timeout-minutes: 5}
      |                                              ^^^^^^^^^^^^^^^
      |
      = help: the word here is `timeout`, with a unit: `timeout: 10m`

    error: a step has no key `name`
     --> flow.yaml:7:18
      |
    7 |   d: {run: make, name: Build, when: on_failure}
      |                  ^^^^
      |
      = help: the name of a step is its key: `steps: {NAME: {run: make}}`

    error: `when` must be one of all_succeeded, all_done, all_failed, one_succeeded, one_failed, always, not the string `on_failure`
     --> flow.yaml:7:37
      |
    7 |   d: {run: make, name: Build, when: on_failure}
      |                                     ^^^^^^^^^^
      |
      = help: write `one_failed`: it starts when a step that it needs has failed

    error: `when` must be one of all_succeeded, all_done, all_failed, one_succeeded, one_failed, always, not the string `success()`
     --> flow.yaml:8:24
      |
    8 |   e: {run: make, when: success()}
      |                        ^^^^^^^^^
      |
      = help: write `all_succeeded`, or leave `when` out: it is the default
    "#);
}

#[test]
fn steps_that_are_a_list_are_shown_with_their_names() {
    let text = "steps:\n  - name: Check out\n    run: git pull\n  - {id: test, run: make}\n";
    insta::assert_snapshot!(refused(text), @"
    error: `steps` must be a mapping of names to steps, not a list
     --> flow.yaml:2:3
      |
    2 |   - name: Check out
      |   ^^^^^^^^^^^^^^^^^
      |
      = help: give each step a name: `steps: {check-out: {run: …}, test: {needs: [check-out], run: …}}`; steps without `needs` start at once
    ");
    insta::assert_snapshot!(refused("steps: [{run: make}]\n"), @"
    error: `steps` must be a mapping of names to steps, not a list
     --> flow.yaml:1:8
      |
    1 | steps: [{run: make}]
      |        ^^^^^^^^^^^^^
      |
      = help: give each step a name: `steps: {build: {run: …}, test: {needs: [build], run: …}}`; steps without `needs` start at once
    ");
}

#[test]
fn value_with_a_colon_is_shown_with_its_quotes() {
    insta::assert_snapshot!(refused("steps:\n  a: {run: echo: hi}\n"), @r#"
    error: this is not valid YAML: while parsing a flow mapping, did not find expected ',' or '}'
     --> flow.yaml:2:16
      |
    2 |   a: {run: echo: hi}
      |                ^
      |
      = help: a value that contains `: ` needs quotes: run: "echo: hi"
    "#);
    insta::assert_snapshot!(refused("steps:\n  a:\n    run: echo \"a: b\" c: d\n"), @r#"
    error: this is not valid YAML: mapping values are not allowed in this context
     --> flow.yaml:3:17
      |
    3 |     run: echo "a: b" c: d
      |                 ^
      |
      = help: a value that contains `: ` needs quotes: run: 'echo "a: b" c: d'
    "#);
}

#[test]
fn cron_field_that_is_wrong_is_named_with_its_range() {
    let cron =
        |pattern: &str| refused(&format!("schedule: {{cron: \"{pattern}\"}}\nsteps: {{a: {{run: make}}}}\n"));
    insta::assert_snapshot!(cron("0 2 * * MONDAY"), @r#"
    error: `cron` must be a pattern such as "0 2 * * *", not the string `0 2 * * MONDAY`
     --> flow.yaml:1:18
      |
    1 | schedule: {cron: "0 2 * * MONDAY"}
      |                  ^^^^^^^^^^^^^^^^
      |
      = help: `MONDAY` is no weekday: write `MON`, or `1`
    "#);
    insta::assert_snapshot!(cron("61 * * * *"), @r#"
    error: `cron` must be a pattern such as "0 2 * * *", not the string `61 * * * *`
     --> flow.yaml:1:18
      |
    1 | schedule: {cron: "61 * * * *"}
      |                  ^^^^^^^^^^^^
      |
      = help: `61` is no minute: write 0 to 59
    "#);
}

#[test]
fn filter_that_loops_is_answered_with_what_there_is() {
    let text =
        "params: {l: {type: list}}\nsteps: {a: {run: make, env: {X: \"${{ params.l | map('upper') }}\"}}}\n";
    insta::assert_snapshot!(refused(text), @r#"
    error: there is no filter `map`
     --> flow.yaml:2:49
      |
    2 | steps: {a: {run: make, env: {X: "${{ params.l | map('upper') }}"}}}
      |                                                 ^^^
      |
      = help: an expression has no loops: `for_each` makes a task for each item, and a script can compute a list with `jq`
    "#);
}
