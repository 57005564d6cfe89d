//! Keys, types and values.

use super::{read, refused, source};

#[test]
fn an_unknown_key_is_refused_with_the_nearest_valid_name() {
    let text = r#"
stepz: {}
steps:
  a: {run: make, need: [b]}
  b: {run: make, retry: {max: 1, backof: 1s}, zzzz: 1}
params: {x: {type: string, defualt: y}}
groups: {g: {steps: [a, b], step: c}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r"
    error: a workflow has no key `stepz`
     --> flow.yaml:1:1
      |
    1 | stepz: {}
      | ^^^^^
      |
      = help: did you mean `steps`?

    error: a step has no key `need`
     --> flow.yaml:3:18
      |
    3 |   a: {run: make, need: [b]}
      |                  ^^^^
      |
      = help: did you mean `needs`?

    error: `retry` has no key `backof`
     --> flow.yaml:4:34
      |
    4 |   b: {run: make, retry: {max: 1, backof: 1s}, zzzz: 1}
      |                                  ^^^^^^
      |
      = help: did you mean `backoff`?

    error: a step has no key `zzzz`
     --> flow.yaml:4:47
      |
    4 |   b: {run: make, retry: {max: 1, backof: 1s}, zzzz: 1}
      |                                               ^^^^
      |
      = help: the keys are: run, command, args, shell, function, queue, with, needs, when, if, env, workdir, timeout, retry, on_lost, lock, order, limits, not_before, runs_on, prefers, priority, artifacts, inputs, isolate, on_conflict, cache, image, container, pool, call, wait, workflow, for_each, max_parallel, fail_fast, description

    error: a parameter has no key `defualt`
     --> flow.yaml:5:28
      |
    5 | params: {x: {type: string, defualt: y}}
      |                            ^^^^^^^
      |
      = help: did you mean `default`?

    error: a group has no key `step`
     --> flow.yaml:6:29
      |
    6 | groups: {g: {steps: [a, b], step: c}}
      |                             ^^^^
      |
      = help: did you mean `steps`?
    ");
}

#[test]
fn a_key_that_is_known_and_not_built_yet_is_refused() {
    let text = r#"
steps:
  a: {run: make, matrix: {x: [1]}}
  b: {run: make, key: k}
groups: {g: {steps: [a, b]}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `matrix` is not supported yet
     --> flow.yaml:2:18
      |
    2 |   a: {run: make, matrix: {x: [1]}}
      |                  ^^^^^^
      |
      = help: write `for_each` with the combinations: `for_each: [{os: linux, py: "3.12"}]`, read as `${{ item.os }}`

    error: `key` is not supported yet
     --> flow.yaml:3:18
      |
    3 |   b: {run: make, key: k}
      |                  ^^^
      |
      = help: `lock` is for steps that exclude each other, and `cache: {key: …}` for what a result depends on
    "#);
}

#[test]
fn a_wrong_type_says_what_is_expected_and_what_was_found() {
    let text = r#"
name: [x]
max_parallel: many
timeout: {}
env: [A]
on_failure: 3
params: [x]
groups: 5
steps:
  a: ./build.sh
  b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
  c: {command: make, workdir: 5, needs: [1, b]}
  d:
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `name` must be a name of 1 to 100 characters without line breaks, not a list
     --> flow.yaml:1:7
      |
    1 | name: [x]
      |       ^^^

    error: `max_parallel` must be a whole number of at least 1, not the string `many`
     --> flow.yaml:2:15
      |
    2 | max_parallel: many
      |               ^^^^

    error: `timeout` must be a duration such as 500ms, 30s, 5m, 2h or 1h30m, not an empty mapping
     --> flow.yaml:3:10
      |
    3 | timeout: {}
      |          ^^

    error: `env` must be a mapping of names to values, not a list
     --> flow.yaml:4:6
      |
    4 | env: [A]
      |      ^^^

    error: `on_failure` must be one of halt, abort, continue, not the number 3
     --> flow.yaml:5:13
      |
    5 | on_failure: 3
      |             ^

    error: `params` must be a mapping of names to parameters, not a list
     --> flow.yaml:6:9
      |
    6 | params: [x]
      |         ^^^

    error: `groups` must be a mapping of names to groups, not the number 5
     --> flow.yaml:7:9
      |
    7 | groups: 5
      |         ^

    error: `a` must be a mapping such as {run: ./build.sh}, not the string `./build.sh`
     --> flow.yaml:9:6
      |
    9 |   a: ./build.sh
      |      ^^^^^^^^^^

    error: `run` must be a script, not the boolean true
      --> flow.yaml:10:12
       |
    10 |   b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
       |            ^^^^
       |
       = help: put it in quotes: "true"

    error: `A` must be a string, not a list
      --> flow.yaml:10:27
       |
    10 |   b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
       |                           ^^^

    error: `B` must be a string, not empty
      --> flow.yaml:10:32
       |
    10 |   b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
       |                                ^
       |
       = help: for an empty value write ""

    error: `args` must be a list of strings, not the string `x`
      --> flow.yaml:10:44
       |
    10 |   b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
       |                                            ^

    error: `needs` must be the name of a step, or a list of names, not a mapping
      --> flow.yaml:10:54
       |
    10 |   b: {run: true, env: {A: [1], B: }, args: x, needs: {c: 1}}
       |                                                      ^^^^^^

    error: `command` must be a list such as [./build.sh, --fast], not the string `make`
      --> flow.yaml:11:16
       |
    11 |   c: {command: make, workdir: 5, needs: [1, b]}
       |                ^^^^

    error: `workdir` must be a directory, not the number 5
      --> flow.yaml:11:31
       |
    11 |   c: {command: make, workdir: 5, needs: [1, b]}
       |                               ^
       |
       = help: put it in quotes: "5"

    error: `needs` must be the name of a step, or a list of names, not the number 1
      --> flow.yaml:11:42
       |
    11 |   c: {command: make, workdir: 5, needs: [1, b]}
       |                                          ^
       |
       = help: put it in quotes: "1"

    error: `d` must be a mapping such as {run: ./build.sh}, not empty
      --> flow.yaml:12:3
       |
    12 |   d:
       |   ^
    "#);
}

#[test]
fn steps_that_are_no_mapping_are_refused() {
    let text = r#"
steps:
  - run: make
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"
    error: `steps` must be a mapping of names to steps, not a list
     --> flow.yaml:2:3
      |
    2 |   - run: make
      |   ^^^^^^^^^^^
      |
      = help: give each step a name: `steps: {build: {run: …}, test: {needs: [build], run: …}}`; steps without `needs` start at once
    ");
}

#[test]
fn a_duplicate_key_is_refused_with_both_places() {
    let text = r#"
steps:
  build: {run: make}
  test: {run: make test, needs: build, run: again}
  build: {run: make all}
name: a
"name": b
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the key `run` is given twice
     --> flow.yaml:3:40
      |
    3 |   test: {run: make test, needs: build, run: again}
      |                                        ^^^
      |
     ::: flow.yaml:3:10
      |
    3 |   test: {run: make test, needs: build, run: again}
      |          --- first given here

    error: the key `build` is given twice
     --> flow.yaml:4:3
      |
    4 |   build: {run: make all}
      |   ^^^^^
      |
     ::: flow.yaml:2:3
      |
    2 |   build: {run: make}
      |   ----- first given here

    error: the key `name` is given twice
     --> flow.yaml:6:1
      |
    6 | "name": b
      | ^^^^^^
      |
     ::: flow.yaml:5:1
      |
    5 | name: a
      | ---- first given here
    "#);
}

#[test]
fn a_bad_value_is_refused() {
    let text = r#"
max_parallel: 0
on_failure: stop
timeout: 30
steps:
  a: {run: make, timeout: 1.5s, when: all_succeded, on_lost: give-up}
  b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
  c: {command: [], retry: 3, workdir: ""}
  d: {command: [""], retry: {backoff: 2m, max_backoff: 1m}}
  e: {run: make, command: [make]}
  f: {needs: a}
  g: {run: make, env: {1A: x, "B C": y}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `max_parallel` must be a whole number of at least 1, not the number 0
     --> flow.yaml:1:15
      |
    1 | max_parallel: 0
      |               ^

    error: `on_failure` must be one of halt, abort, continue, not the string `stop`
     --> flow.yaml:2:13
      |
    2 | on_failure: stop
      |             ^^^^

    error: `timeout` must be a duration such as 500ms, 30s, 5m, 2h or 1h30m, not the number 30
     --> flow.yaml:3:10
      |
    3 | timeout: 30
      |          ^^
      |
      = help: add a unit: `30s` is 30 seconds, `30m` minutes

    error: `timeout` must be a duration such as 500ms, 30s, 5m, 2h or 1h30m, not the string `1.5s`
     --> flow.yaml:5:27
      |
    5 |   a: {run: make, timeout: 1.5s, when: all_succeded, on_lost: give-up}
      |                           ^^^^
      |
      = help: use a smaller unit instead of a fraction: `1500ms`

    error: `when` must be one of all_succeeded, all_done, all_failed, one_succeeded, one_failed, always, not the string `all_succeded`
     --> flow.yaml:5:39
      |
    5 |   a: {run: make, timeout: 1.5s, when: all_succeded, on_lost: give-up}
      |                                       ^^^^^^^^^^^^
      |
      = help: did you mean `all_succeeded`?

    error: `on_lost` must be one of retry, fail, not the string `give-up`
     --> flow.yaml:5:62
      |
    5 |   a: {run: make, timeout: 1.5s, when: all_succeded, on_lost: give-up}
      |                                                              ^^^^^^^

    error: `run` must be a script, not an empty string
     --> flow.yaml:6:12
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |            ^^

    error: `max` must be a whole number from 0 to 1000, not the number 1001
     --> flow.yaml:6:29
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                             ^^^^

    error: `factor` must be a number from 1 to 1000, not the number 0.5
     --> flow.yaml:6:43
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                           ^^^

    error: `jitter` must be a number from 0 to 1, not the number 2
     --> flow.yaml:6:56
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                                        ^

    error: `on` must be an exit code from 1 to 255, or a reason, not the number 0
     --> flow.yaml:6:64
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                                                ^

    error: `on` must be one of exit, error, signal, oom, timeout, start_failed, engine_lost, expression, bad_output, not the string `exits`
     --> flow.yaml:6:67
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                                                   ^^^^^
      |
      = help: did you mean `exit`?

    error: `on` must be an exit code from 1 to 255, or a reason, not the number 256
     --> flow.yaml:6:74
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                                                          ^^^

    error: `backoff` must be a duration such as 500ms, 30s, 5m, 2h or 1h30m, not the string `1 hour`
     --> flow.yaml:6:89
      |
    6 |   b: {run: "", retry: {max: 1001, factor: 0.5, jitter: 2, on: [0, exits, 256], backoff: 1 hour}}
      |                                                                                         ^^^^^^

    error: `command` must be a list such as [./build.sh, --fast], not an empty list
     --> flow.yaml:7:16
      |
    7 |   c: {command: [], retry: 3, workdir: ""}
      |                ^^
      |
      = help: name the program first

    error: `retry` must be a mapping, not the number 3
     --> flow.yaml:7:27
      |
    7 |   c: {command: [], retry: 3, workdir: ""}
      |                           ^
      |
      = help: write `retry: {max: 3}`

    error: `workdir` must be a directory, not an empty string
     --> flow.yaml:7:39
      |
    7 |   c: {command: [], retry: 3, workdir: ""}
      |                                       ^^

    error: `command` must be a list that starts with a program, not an empty string
     --> flow.yaml:8:17
      |
    8 |   d: {command: [""], retry: {backoff: 2m, max_backoff: 1m}}
      |                 ^^

    error: `retry` has no `max`
     --> flow.yaml:8:22
      |
    8 |   d: {command: [""], retry: {backoff: 2m, max_backoff: 1m}}
      |                      ^^^^^
      |
      = help: say how many attempts may follow the first: `retry: {max: 3}`

    error: `max_backoff` is shorter than `backoff`
     --> flow.yaml:8:56
      |
    8 |   d: {command: [""], retry: {backoff: 2m, max_backoff: 1m}}
      |                                                        ^^
      |
      = help: the first delay is `backoff`; raise `max_backoff` or leave it out

    error: step `e` has both `run` and `command`
     --> flow.yaml:9:18
      |
    9 |   e: {run: make, command: [make]}
      |                  ^^^^^^^
      |
     ::: flow.yaml:9:7
      |
    9 |   e: {run: make, command: [make]}
      |       --- the other one
      |
      = help: keep `run` for a script, `command` for a program and its arguments, `function` for a function, `queue` for remote workers, `call` for a container's endpoint, `wait` for a signal or a moment, or `workflow` for a run of another workflow

    error: step `f` has no `run` or `command`
      --> flow.yaml:10:3
       |
    10 |   f: {needs: a}
       |   ^
       |
       = help: give it a script, `run: ./build.sh`, or `command: [./build.sh, --fast]`

    error: `1A` cannot be the name of a variable
      --> flow.yaml:11:24
       |
    11 |   g: {run: make, env: {1A: x, "B C": y}}
       |                        ^^
       |
       = help: use letters, digits and `_`, not starting with a digit

    error: `B C` cannot be the name of a variable
      --> flow.yaml:11:31
       |
    11 |   g: {run: make, env: {1A: x, "B C": y}}
       |                               ^^^^^
       |
       = help: use letters, digits and `_`, not starting with a digit
    "#);
}

#[test]
fn a_boolean_is_true_or_false_and_nothing_else() {
    let text = r#"
params:
  a: {type: boolean, required: yes}
  b: {type: boolean, default: NO}
  c: {type: boolean, default: "true"}
steps: {a: {run: make}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `required` must be true or false, not the string `yes`
     --> flow.yaml:2:32
      |
    2 |   a: {type: boolean, required: yes}
      |                                ^^^
      |
      = help: write true

    error: `default` must be true or false, not the string `NO`
     --> flow.yaml:3:31
      |
    3 |   b: {type: boolean, default: NO}
      |                               ^^
      |
      = help: write false

    error: `default` must be true or false, not the string `true`
     --> flow.yaml:4:31
      |
    4 |   c: {type: boolean, default: "true"}
      |                               ^^^^^^
      |
      = help: write true
    "#);
}

#[test]
fn a_function_has_its_own_input_and_nothing_else_to_execute() {
    let text = r#"
steps:
  a: {function: resize, with: {size: "${{ params.size }}"}}
  b: {function: resize, args: [x]}
  c: {run: make, with: {size: 1}}
  d: {function: "${{ run.id }}"}
  e: {function: resize, command: [make]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: there is no parameter `size`
     --> flow.yaml:2:43
      |
    2 |   a: {function: resize, with: {size: "${{ params.size }}"}}
      |                                           ^^^^^^^^^^^
      |
      = help: declare it: `params: {size: {type: string, required: true}}`

    error: `args` does not belong to this step
     --> flow.yaml:3:25
      |
    3 |   b: {function: resize, args: [x]}
      |                         ^^^^
      |
      = help: a function takes its input by name: `with: {NAME: VALUE}`

    error: `with` does not belong to this step
     --> flow.yaml:4:18
      |
    4 |   c: {run: make, with: {size: 1}}
      |                  ^^^^
      |
      = help: `with` is the input of a `function`, a `queue` or a `workflow`; a script or program takes `args` or `env`

    error: an expression cannot stand in `function`
     --> flow.yaml:5:18
      |
    5 |   d: {function: "${{ run.id }}"}
      |                  ^^^^^^^^^^^^^
      |
      = help: a function is named, not computed; pass values by `with`

    error: step `e` has both `command` and `function`
     --> flow.yaml:6:25
      |
    6 |   e: {function: resize, command: [make]}
      |                         ^^^^^^^
      |
     ::: flow.yaml:6:7
      |
    6 |   e: {function: resize, command: [make]}
      |       -------- the other one
      |
      = help: keep `run` for a script, `command` for a program and its arguments, `function` for a function, `queue` for remote workers, `call` for a container's endpoint, `wait` for a signal or a moment, or `workflow` for a run of another workflow
    "#);
}

#[test]
fn steps_without_a_timeout_or_a_retry_of_their_own_have_those_of_the_workflow() {
    let text = "step_timeout: 5m\nstep_retry: {max: 2, backoff: 9s}\nsteps:\n  a: {run: x}\n  \
                b: {run: x, timeout: 0s, retry: {max: 0}}\n  c: {wait: {signal: go}}\n  \
                d: {workflow: other}\n  e: {run: x, timeout: 1m}\n";
    let workflow = read(&source(text)).expect("a workflow");
    let of = |step: usize| {
        let step = &workflow.steps[step];
        (step.timeout.map(|timeout| timeout.as_secs()), step.retry.max)
    };
    assert_eq!(of(0), (Some(300), 2));
    assert_eq!(workflow.steps[0].retry.backoff.as_secs(), 9);
    assert_eq!(of(1), (None, 0), "what it says itself wins");
    assert_eq!([of(2), of(3)], [(None, 0); 2], "what is waited for takes as long as it likes");
    assert_eq!(of(4), (Some(60), 2));
}
