//! The key `wait`, and what else a step that waits may say.

use std::time::Duration;

use super::{read, refused, source};
use crate::expression::Template;
use crate::wait::{Awaited, Wait};

fn waits(text: &str) -> Vec<Wait> {
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    workflow.steps.iter().filter_map(|step| step.wait().cloned()).collect()
}

#[test]
fn a_step_waits_for_a_signal_a_moment_or_a_while() {
    let text = r#"
params: {at: {type: string, required: true}}
steps:
  find: {run: make}
  approve: {needs: [find], wait: {signal: release/approved, timeout: 24h}, when: all_done, if: "true"}
  open: {wait: {until: 2026-12-24T18:00:00+01:00}}
  given: {wait: {until: "${{ params.at }}", timeout: 0s}}
  rest: {needs: find, wait: {for: "${{ steps.find.output.rest }}"}, order: {key: k, version: "1"}}
  nap: {wait: {for: 1h30m}}
groups: {g: {steps: [open, nap]}}
"#;
    let template = |text| Template::parse(text).expect("a template");
    let wait = |on, timeout: Option<u64>| Wait { on, timeout: timeout.map(Duration::from_secs) };
    assert_eq!(
        waits(text),
        [
            wait(Awaited::Signal("release/approved".to_owned()), Some(86_400)),
            wait(Awaited::Until(template("2026-12-24T18:00:00+01:00")), None),
            wait(Awaited::Until(template("${{ params.at }}")), None),
            wait(Awaited::For(template("${{ steps.find.output.rest }}")), None),
            wait(Awaited::For(template("1h30m")), None),
        ]
    );
}

#[test]
fn a_wait_says_one_thing_and_says_it_well() {
    let text = r#"
steps:
  none: {wait: {}}
  word: {wait: approved}
  span: {wait: 5m}
  list: {wait: [approved]}
  both: {wait: {signal: go, for: 5m}}
  typo: {wait: {singal: go}}
  name: {wait: {signal: "two words"}}
  made: {wait: {signal: "${{ run.id }}"}}
  soon: {wait: {until: tomorrow}}
  zone: {wait: {until: "2026-12-24T18:00:00"}}
  unix: {wait: {until: 1700000000}}
  bare: {wait: {for: 5}}
  late: {wait: {for: 1h, timeout: 5m}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `wait` has no `signal`, `until` or `for`
     --> flow.yaml:2:10
      |
    2 |   none: {wait: {}}
      |          ^^^^
      |
      = help: say what it waits for: `wait: {signal: approved}`

    error: `wait` must be a mapping such as {signal: approved, timeout: 24h}, {until: 2026-12-24T18:00:00Z} or {for: 5m}, not the string `approved`
     --> flow.yaml:3:16
      |
    3 |   word: {wait: approved}
      |                ^^^^^^^^
      |
      = help: write {signal: approved}

    error: `wait` must be a mapping such as {signal: approved, timeout: 24h}, {until: 2026-12-24T18:00:00Z} or {for: 5m}, not the string `5m`
     --> flow.yaml:4:16
      |
    4 |   span: {wait: 5m}
      |                ^^
      |
      = help: write {for: 5m}

    error: `wait` must be a mapping such as {signal: approved, timeout: 24h}, {until: 2026-12-24T18:00:00Z} or {for: 5m}, not a list
     --> flow.yaml:5:16
      |
    5 |   list: {wait: [approved]}
      |                ^^^^^^^^^^

    error: `wait` has both `signal` and `for`
     --> flow.yaml:6:29
      |
    6 |   both: {wait: {signal: go, for: 5m}}
      |                             ^^^
      |
     ::: flow.yaml:6:17
      |
    6 |   both: {wait: {signal: go, for: 5m}}
      |                 ------ the other one
      |
      = help: a step waits for one thing; a step that needs two of them waits for both

    error: `wait` has no `signal`, `until` or `for`
     --> flow.yaml:7:10
      |
    7 |   typo: {wait: {singal: go}}
      |          ^^^^
      |
      = help: say what it waits for: `wait: {signal: approved}`

    error: `wait` has no key `singal`
     --> flow.yaml:7:17
      |
    7 |   typo: {wait: {singal: go}}
      |                 ^^^^^^
      |
      = help: did you mean `signal`?

    error: `signal` must be the name of a signal, such as approved, not the string `two words`
     --> flow.yaml:8:25
      |
    8 |   name: {wait: {signal: "two words"}}
      |                         ^^^^^^^^^^^
      |
      = help: use letters, digits and `_ - . / :`

    error: an expression cannot stand in `signal`
     --> flow.yaml:9:26
      |
    9 |   made: {wait: {signal: "${{ run.id }}"}}
      |                          ^^^^^^^^^^^^^
      |
      = help: a signal is named, not computed: whoever sends it has to know it

    error: `until` must be a moment such as 2026-12-24T18:00:00Z, not the string `tomorrow`
      --> flow.yaml:10:24
       |
    10 |   soon: {wait: {until: tomorrow}}
       |                        ^^^^^^^^
       |
       = help: it is `tomorrow`, which is no moment such as 2026-12-24T18:00:00Z

    error: `until` must be a moment such as 2026-12-24T18:00:00Z, not the string `2026-12-24T18:00:00`
      --> flow.yaml:11:24
       |
    11 |   zone: {wait: {until: "2026-12-24T18:00:00"}}
       |                        ^^^^^^^^^^^^^^^^^^^^^
       |
       = help: it is `2026-12-24T18:00:00`, which is another moment in each time zone: add Z for UTC, or an offset such as +01:00

    error: `until` must be a moment such as 2026-12-24T18:00:00Z, not the number 1700000000
      --> flow.yaml:12:24
       |
    12 |   unix: {wait: {until: 1700000000}}
       |                        ^^^^^^^^^^
       |
       = help: put it in quotes: "1700000000"

    error: `for` must be a duration such as 500ms, 30s, 5m or 2h, not the number 5
      --> flow.yaml:13:22
       |
    13 |   bare: {wait: {for: 5}}
       |                      ^
       |
       = help: add a unit: `5s` is 5 seconds, `5m` minutes

    error: it would always run out of time: `timeout` is shorter than `for`
      --> flow.yaml:14:35
       |
    14 |   late: {wait: {for: 1h, timeout: 5m}}
       |                                   ^^
       |
       = help: leave `timeout` out: a wait for a while ends by itself
    "#);
}

#[test]
fn what_means_nothing_to_a_wait_does_not_belong_to_it() {
    let text = r#"
secrets: {s: {env: S}}
steps:
  a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
  b: {wait: {signal: go}, run: make}
  c: {wait: {until: "${{ steps.a.output.at }}"}}
  d: {needs: [a], wait: {until: "${{ secrets.s }}"}}
  e: {wait: {for: 1s}}
groups: {g: {steps: [e], isolate: true}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `timeout` does not belong to this step
     --> flow.yaml:3:27
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                           ^^^^^^^
      |
      = help: a wait has its own: `wait: {signal: approved, timeout: 24h}`

    error: `retry` does not belong to this step
     --> flow.yaml:3:40
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                                        ^^^^^
      |
      = help: a wait is not tried again; `wait: {timeout: …}` says how long it lasts at most

    error: `lock` does not belong to this step
     --> flow.yaml:3:57
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                                                         ^^^^
      |
      = help: a wait holds nothing; put it on the step behind it

    error: `env` does not belong to this step
     --> flow.yaml:3:66
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                                                                  ^^^
      |
      = help: a wait runs nothing; put it on the step behind it

    error: `runs_on` does not belong to this step
     --> flow.yaml:3:79
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                                                                               ^^^^^^^
      |
      = help: a wait runs on no node; put it on the step behind it

    error: `image` does not belong to this step
     --> flow.yaml:3:100
      |
    3 |   a: {wait: {signal: go}, timeout: 5m, retry: {max: 1}, lock: k, env: {A: b}, runs_on: {zone: eu}, image: busybox}
      |                                                                                                    ^^^^^
      |
      = help: a wait runs nothing; put it on the step behind it

    error: step `b` has both `run` and `wait`
     --> flow.yaml:4:27
      |
    4 |   b: {wait: {signal: go}, run: make}
      |                           ^^^
      |
     ::: flow.yaml:4:7
      |
    4 |   b: {wait: {signal: go}, run: make}
      |       ---- the other one
      |
      = help: keep `run` for a script, `command` for a program and its arguments, `function` for a function, `queue` for remote workers, `call` for a container's endpoint, `wait` for a signal or a moment, or `workflow` for a run of another workflow

    error: step `c` reads step `a` without needing it, so it may not be done by then
     --> flow.yaml:5:26
      |
    5 |   c: {wait: {until: "${{ steps.a.output.at }}"}}
      |                          ^^^^^^^^^^^^^^^^^
      |
      = help: add `a` to the `needs` of `c`

    error: `secrets` can only be read in `env`
     --> flow.yaml:6:38
      |
    6 |   d: {needs: [a], wait: {until: "${{ secrets.s }}"}}
      |                                      ^^^^^^^^^
      |
      = help: pass it through `env: {X: "${{ secrets.NAME }}"}` and use "$X"

    error: step `e` has no directory: it waits for something else, so there is no copy for it
     --> flow.yaml:8:22
      |
    8 | groups: {g: {steps: [e], isolate: true}}
      |                      ^
      |
      = help: take it out of the group, or `isolate` off it
    "#);
}
