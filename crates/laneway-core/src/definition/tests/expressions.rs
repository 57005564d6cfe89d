//! Expressions: where they may stand, and what they may read.

use super::refused;

#[test]
fn an_expression_never_stands_in_a_script() {
    let text = r#"
params: {who: {type: string, required: true}}
name: ${{ params.who }}
steps:
  a: {run: "echo ${{ params.who }}"}
  b:
    run: |
      echo hello
      echo ${{ params.who }}
  c: {command: [echo, "${{ params.who }}"], workdir: "${{ params.who }}"}
  d: {run: make, needs: "${{ params.who }}"}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: an expression cannot stand in `name`
     --> flow.yaml:2:7
      |
    2 | name: ${{ params.who }}
      |       ^^^^^^^^^^^^^^^^^
      |
      = help: a name is fixed; leave the expression out

    error: an expression cannot stand in `run`
     --> flow.yaml:4:18
      |
    4 |   a: {run: "echo ${{ params.who }}"}
      |                  ^^^^^^^^^^^^^^^^^
      |
      = help: a value must not become code: pass it through `env: {X: "${{ … }}"}` and use "$X" in the script

    error: an expression cannot stand in `run`
     --> flow.yaml:8:12
      |
    8 |       echo ${{ params.who }}
      |            ^^^^^^^^^^^^^^^^^
      |
      = help: a value must not become code: pass it through `env: {X: "${{ … }}"}` and use "$X" in the script

    error: an expression cannot stand in `command`
     --> flow.yaml:9:24
      |
    9 |   c: {command: [echo, "${{ params.who }}"], workdir: "${{ params.who }}"}
      |                        ^^^^^^^^^^^^^^^^^
      |
      = help: put values into `args: ["${{ … }}"]`, which follow the command

    error: an expression cannot stand in `needs`
      --> flow.yaml:10:26
       |
    10 |   d: {run: make, needs: "${{ params.who }}"}
       |                          ^^^^^^^^^^^^^^^^^
       |
       = help: what a step needs is fixed; use `if` to leave a step out
    "#);
}

#[test]
fn an_expression_that_cannot_be_read_is_underlined() {
    let text = r#"
params: {who: {type: string, required: true}}
steps:
  a: {run: make, env: {A: "x ${{ params.who | uper }}", B: "${{ params.who", C: "${{ }}"}}
  b: {run: make, if: params.who ==}
  c: {run: make, if: "range(3)"}
  d: {run: make, if: "${{ params.who }} == ${{ 1 }}"}
  e: {run: make, args: ["${{ params.who is nice }}", "${{ params.who.upper() }}"]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: there is no filter `uper`
     --> flow.yaml:3:47
      |
    3 |   a: {run: make, env: {A: "x ${{ params.who | uper }}", B: "${{ params.who", C: "${{ }}"}}
      |                                               ^^^^
      |
      = help: did you mean `upper`?

    error: `${{` is never closed; write `${{ … }}`
     --> flow.yaml:3:61
      |
    3 |   a: {run: make, env: {A: "x ${{ params.who | uper }}", B: "${{ params.who", C: "${{ }}"}}
      |                                                             ^^^^^^^^^^^^^^

    error: the expression is empty
     --> flow.yaml:3:82
      |
    3 |   a: {run: make, env: {A: "x ${{ params.who | uper }}", B: "${{ params.who", C: "${{ }}"}}
      |                                                                                  ^^^^^^

    error: the expression cannot be read: unexpected end of input, expected expression
     --> flow.yaml:4:22
      |
    4 |   b: {run: make, if: params.who ==}
      |                      ^^^^^^^^^^^^^

    error: there is no function `range`; use a filter, as in `value | upper`
     --> flow.yaml:5:23
      |
    5 |   c: {run: make, if: "range(3)"}
      |                       ^^^^^

    error: a condition is one expression
     --> flow.yaml:6:22
      |
    6 |   d: {run: make, if: "${{ params.who }} == ${{ 1 }}"}
      |                      ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: write it without `${{ }}` in the middle: `a == 1 and b == 2`

    error: there is no test `nice`
     --> flow.yaml:7:44
      |
    7 |   e: {run: make, args: ["${{ params.who is nice }}", "${{ params.who.upper() }}"]}
      |                                            ^^^^
      |
      = help: did you mean `none`?

    error: a value cannot be called; use a filter, as in `value | upper`
     --> flow.yaml:7:59
      |
    7 |   e: {run: make, args: ["${{ params.who is nice }}", "${{ params.who.upper() }}"]}
      |                                                           ^^^^^^^^^^^^^^^^^
    "#);
}

#[test]
fn names_in_expressions_are_checked_against_the_workflow() {
    let text = r#"
params: {date: {type: string, required: true}, my-date: {type: string, required: true}}
env: {A: "${{ steps.fetch.output.x }}", B: "${{ run.name }}"}
steps:
  fetch: {run: make, env: {A: "${{ params.dat }}", B: "${{ prams.date }}", C: "${{ item }}", D: "${{ fetch }}"}}
  my-step: {run: make, needs: fetch, if: steps.fetch.state == "failed"}
  c: {run: make, needs: my-step, env: {A: "${{ steps.my-step.output.x }}", B: "${{ params.my-date }}", C: "${{ steps.fech.status }}"}}
  d: {run: make, needs: c, if: 'steps["my-step"].output.n > 1 and steps[params.date].status == "x"'}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the workflow's `env` cannot read `steps`
     --> flow.yaml:2:15
      |
    2 | env: {A: "${{ steps.fetch.output.x }}", B: "${{ run.name }}"}
      |               ^^^^^^^^^^^^^^^^^^^^
      |
      = help: put it into the `env` of the step that uses it

    error: `run` has no `name`
     --> flow.yaml:2:49
      |
    2 | env: {A: "${{ steps.fetch.output.x }}", B: "${{ run.name }}"}
      |                                                 ^^^^^^^^
      |
      = help: there are `run.id` and `run.workflow`

    error: there is no parameter `dat`
     --> flow.yaml:4:36
      |
    4 |   fetch: {run: make, env: {A: "${{ params.dat }}", B: "${{ prams.date }}", C: "${{ item }}", D: "${{ fetch }}"}}
      |                                    ^^^^^^^^^^
      |
      = help: did you mean `date`?

    error: there is no `prams`
     --> flow.yaml:4:60
      |
    4 |   fetch: {run: make, env: {A: "${{ params.dat }}", B: "${{ prams.date }}", C: "${{ item }}", D: "${{ fetch }}"}}
      |                                                            ^^^^^^^^^^
      |
      = help: did you mean `params`?

    error: step `fetch` has no `for_each`, so there is no `item`
     --> flow.yaml:4:84
      |
    4 |   fetch: {run: make, env: {A: "${{ params.dat }}", B: "${{ prams.date }}", C: "${{ item }}", D: "${{ fetch }}"}}
      |                                                                                    ^^^^
      |
      = help: add `for_each: ${{ … }}`, which makes a task for each item of a list

    error: there is no `fetch`
     --> flow.yaml:4:102
      |
    4 |   fetch: {run: make, env: {A: "${{ params.dat }}", B: "${{ prams.date }}", C: "${{ item }}", D: "${{ fetch }}"}}
      |                                                                                                      ^^^^^
      |
      = help: an expression can read `params`, `steps` and `run`; a string needs quotes: "fetch"

    error: a step has no `state`
     --> flow.yaml:5:42
      |
    5 |   my-step: {run: make, needs: fetch, if: steps.fetch.state == "failed"}
      |                                          ^^^^^^^^^^^^^^^^^
      |
      = help: there are `steps.fetch.status` and `steps.fetch.output.KEY`

    error: `steps.my-step` reads as a subtraction
     --> flow.yaml:6:48
      |
    6 |   c: {run: make, needs: my-step, env: {A: "${{ steps.my-step.output.x }}", B: "${{ params.my-date }}", C: "${{ steps.fech.status }}"}}
      |                                                ^^^^^^^^^^^^^
      |
      = help: write `steps["my-step"]`

    error: `params.my-date` reads as a subtraction
     --> flow.yaml:6:84
      |
    6 |   c: {run: make, needs: my-step, env: {A: "${{ steps.my-step.output.x }}", B: "${{ params.my-date }}", C: "${{ steps.fech.status }}"}}
      |                                                                                    ^^^^^^^^^^^^^^
      |
      = help: write `params["my-date"]`

    error: there is no step `fech`
     --> flow.yaml:6:112
      |
    6 |   c: {run: make, needs: my-step, env: {A: "${{ steps.my-step.output.x }}", B: "${{ params.my-date }}", C: "${{ steps.fech.status }}"}}
      |                                                                                                                ^^^^^^^^^^^^^^^^^
      |
      = help: did you mean `fetch`?

    error: `steps` can only be read by a step's name
     --> flow.yaml:7:67
      |
    7 |   d: {run: make, needs: c, if: 'steps["my-step"].output.n > 1 and steps[params.date].status == "x"'}
      |                                                                   ^^^^^
      |
      = help: write `steps.NAME.output.KEY`
    "#);
}

#[test]
fn a_step_may_read_only_what_comes_before_it() {
    let text = r#"
steps:
  a: {run: make}
  b: {run: make, needs: a}
  c: {run: make, needs: b, env: {A: "${{ steps.a.output.x }}", D: "${{ steps.d.output.x }}", C: "${{ steps.c.status }}"}}
  d: {run: make, needs: a, if: steps.b.status == "succeeded"}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: step `c` reads step `d` without needing it, so it may not be done by then
     --> flow.yaml:4:72
      |
    4 |   c: {run: make, needs: b, env: {A: "${{ steps.a.output.x }}", D: "${{ steps.d.output.x }}", C: "${{ steps.c.status }}"}}
      |                                                                        ^^^^^^^^^^^^^^^^
      |
      = help: add `d` to the `needs` of `c`

    error: step `c` reads itself
     --> flow.yaml:4:102
      |
    4 |   c: {run: make, needs: b, env: {A: "${{ steps.a.output.x }}", D: "${{ steps.d.output.x }}", C: "${{ steps.c.status }}"}}
      |                                                                                                      ^^^^^^^^^^^^^^
      |
      = help: a step can read only steps that it needs

    error: step `d` reads step `b` without needing it, so it may not be done by then
     --> flow.yaml:5:32
      |
    5 |   d: {run: make, needs: a, if: steps.b.status == "succeeded"}
      |                                ^^^^^^^^^^^^^^
      |
      = help: add `b` to the `needs` of `d`
    "#);
}

#[test]
fn a_read_behind_a_broken_need_is_not_reported_as_well() {
    let text = r#"
steps:
  a: {run: make}
  b: {run: make, needs: [aa]}
  c: {run: make, needs: [b], if: steps.a.status == "succeeded"}
  d: {run: make, needs: [[a]], if: steps.a.status == "succeeded"}
  e: {run: make, needs: [d], if: steps.a.status == "succeeded"}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: step `b` needs `aa`, which is not a step
     --> flow.yaml:3:26
      |
    3 |   b: {run: make, needs: [aa]}
      |                          ^^
      |
      = help: did you mean `a`?

    error: `needs` must be the name of a step, or a list of names, not a list
     --> flow.yaml:5:26
      |
    5 |   d: {run: make, needs: [[a]], if: steps.a.status == "succeeded"}
      |                          ^^^
    "#);
}
