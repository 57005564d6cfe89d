//! The key `for_each`, and what else a step with items may say.

use std::num::NonZeroU32;

use super::{read, refused, source};

#[test]
fn a_step_has_items_of_a_list_that_is_written_or_found() {
    let text = r#"
params: {files: {type: list}}
env: {A: b}
steps:
  find: {run: make}
  written:
    for_each: [1, {name: a}, "${{ params.files }}"]
    run: make
    args: ["${{ item }}", "${{ index }}"]
    env: {F: "${{ item.name | default('x') }}"}
    lock: "file/${{ item }}"
    if: index < 7
  found: {needs: find, for_each: "${{ steps.find.output.files }}", max_parallel: 3, fail_fast: true, function: f, with: {x: "${{ item }}"}}
  empty: {for_each: [], command: [make]}
  behind: {needs: found, run: make, env: {N: "${{ steps.found.output | length }}"}}
"#;
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let each = |name: &str| {
        let step = workflow.steps.iter().find(|step| step.name == name).expect("a step");
        step.for_each.as_deref().map(|each| (each.max_parallel.map(NonZeroU32::get), each.fail_fast))
    };
    assert_eq!((each("find"), each("behind")), (None, None));
    assert_eq!((each("written"), each("empty")), (Some((None, false)), Some((None, false))));
    assert_eq!(each("found"), Some((Some(3), true)));
    let written = workflow.steps.iter().find(|step| step.name == "written").expect("a step");
    assert!(written.lock_reads_item() && written.condition_reads_item());
}

#[test]
fn what_cannot_have_items_is_told_at_its_place() {
    let text = r#"
env: {I: "${{ item }}"}
steps:
  word: {run: make, for_each: files}
  part: {run: make, for_each: "a ${{ params.x }}"}
  map: {run: make, for_each: {a: 1}}
  self: {run: make, for_each: ["${{ item }}"]}
  alone: {run: make, max_parallel: 2, fail_fast: true, env: {X: "${{ item }}"}}
  none: {run: make, for_each: [1], max_parallel: 0}
  order: {run: make, for_each: [1], order: {key: k, version: "1"}}
  wait: {wait: {for: 1s}, for_each: [1]}
  member: {run: make, for_each: [1]}
groups: {g: {steps: [member]}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the workflow's `env` cannot read `item`
     --> flow.yaml:1:15
      |
    1 | env: {I: "${{ item }}"}
      |               ^^^^
      |
      = help: put it into the `env` of the step with `for_each`

    error: `for_each` must be a list, or an expression that gives one, such as ${{ steps.fetch.output.files }}, not the string `files`
     --> flow.yaml:3:31
      |
    3 |   word: {run: make, for_each: files}
      |                               ^^^^^

    error: `for_each` must be a list, or an expression that gives one, such as ${{ steps.fetch.output.files }}, not the string `a ${{ params.x }}`
     --> flow.yaml:4:31
      |
    4 |   part: {run: make, for_each: "a ${{ params.x }}"}
      |                               ^^^^^^^^^^^^^^^^^^^

    error: there is no parameter `x`
     --> flow.yaml:4:38
      |
    4 |   part: {run: make, for_each: "a ${{ params.x }}"}
      |                                      ^^^^^^^^
      |
      = help: declare it: `params: {x: {type: string, required: true}}`

    error: `for_each` must be a list, or an expression that gives one, such as ${{ steps.fetch.output.files }}, not a mapping
     --> flow.yaml:5:30
      |
    5 |   map: {run: make, for_each: {a: 1}}
      |                              ^^^^^^

    error: `for_each` cannot read `item`: it says what the items are
     --> flow.yaml:6:37
      |
    6 |   self: {run: make, for_each: ["${{ item }}"]}
      |                                     ^^^^
      |
      = help: it can read `params` and the outputs of steps that it needs

    error: `max_parallel` of a step is about the items of its `for_each`
     --> flow.yaml:7:22
      |
    7 |   alone: {run: make, max_parallel: 2, fail_fast: true, env: {X: "${{ item }}"}}
      |                      ^^^^^^^^^^^^
      |
      = help: this step has no `for_each`; the workflow and groups have a `max_parallel` of their own

    error: `fail_fast` of a step is about the items of its `for_each`
     --> flow.yaml:7:39
      |
    7 |   alone: {run: make, max_parallel: 2, fail_fast: true, env: {X: "${{ item }}"}}
      |                                       ^^^^^^^^^
      |
      = help: this step has no `for_each`; the workflow and groups have a `max_parallel` of their own

    error: step `alone` has no `for_each`, so there is no `item`
     --> flow.yaml:7:70
      |
    7 |   alone: {run: make, max_parallel: 2, fail_fast: true, env: {X: "${{ item }}"}}
      |                                                                      ^^^^
      |
      = help: add `for_each: ${{ … }}`, which makes a task for each item of a list

    error: `max_parallel` must be a whole number of at least 1, not the number 0
     --> flow.yaml:8:50
      |
    8 |   none: {run: make, for_each: [1], max_parallel: 0}
      |                                                  ^

    error: a step with `for_each` cannot have an `order`: its items would all be of one version
     --> flow.yaml:9:37
      |
    9 |   order: {run: make, for_each: [1], order: {key: k, version: "1"}}
      |                                     ^^^^^
      |
      = help: put it on a step before or behind it

    error: `for_each` does not belong to this step
      --> flow.yaml:10:27
       |
    10 |   wait: {wait: {for: 1s}, for_each: [1]}
       |                           ^^^^^^^^
       |
       = help: a wait happens once; put it on the step behind it

    error: step `member` has `for_each`, and cannot be a member of a group
      --> flow.yaml:12:22
       |
    12 | groups: {g: {steps: [member]}}
       |                      ^^^^^^
       |
       = help: its items run side by side already, and `steps.NAME.output` is the list of their outputs
    "#);
}

#[test]
fn paths_of_a_step_may_be_those_of_its_item() {
    let text = r#"
steps:
  parse:
    for_each: [a, b]
    run: ./parse
    workdir: "parts/${{ item }}"
    artifacts: ["out-${{ item.index }}.json", "logs/*"]
  check:
    needs: [parse]
    for_each: "${{ steps.parse.output }}"
    run: ./check
    inputs: ["parse[${{ index }}]"]
  first: {needs: [parse], run: ./show, inputs: ["parse[0]"]}
"#;
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let paths = |index: usize| -> Vec<String> {
        workflow.steps[index].path_templates().map(crate::expression::Template::source).collect()
    };
    assert_eq!(paths(0), ["out-${{ item.index }}.json", "parts/${{ item }}"]);
    assert_eq!((paths(1), paths(2)), (vec!["parse[${{ index }}]".to_owned()], vec!["parse[0]".to_owned()]));
}

#[test]
fn paths_that_lead_out_or_of_no_item_are_told_at_their_place() {
    let text = r#"
steps:
  parse: {for_each: [a], run: make, artifacts: ["../${{ item }}"], workdir: "../${{ item }}"}
  plain: {run: make, artifacts: ["${{ item }}"]}
  input: {needs: [plain], run: make, inputs: ["plain[0]", "parse[${{ index }}]"]}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: `../${{ item }}` is no path of an artifact
     --> flow.yaml:2:49
      |
    2 |   parse: {for_each: [a], run: make, artifacts: ["../${{ item }}"], workdir: "../${{ item }}"}
      |                                                 ^^^^^^^^^^^^^^^^
      |
      = help: it leads out of the step's directory

    error: a directory with an expression in it cannot lead out by `..`
     --> flow.yaml:2:77
      |
    2 |   parse: {for_each: [a], run: make, artifacts: ["../${{ item }}"], workdir: "../${{ item }}"}
      |                                                                             ^^^^^^^^^^^^^^^^
      |
      = help: name a directory below that of the workflow file

    error: step `plain` has no `for_each`, so there is no `item`
     --> flow.yaml:3:39
      |
    3 |   plain: {run: make, artifacts: ["${{ item }}"]}
      |                                       ^^^^
      |
      = help: add `for_each: ${{ … }}`, which makes a task for each item of a list

    error: step `plain` has no `for_each`, so it has no items
     --> flow.yaml:4:47
      |
    4 |   input: {needs: [plain], run: make, inputs: ["plain[0]", "parse[${{ index }}]"]}
      |                                               ^^^^^^^^^^
      |
      = help: write `inputs: [plain]`

    error: step `input` takes artifacts of `parse` without needing it, so they may not be there by then
     --> flow.yaml:4:59
      |
    4 |   input: {needs: [plain], run: make, inputs: ["plain[0]", "parse[${{ index }}]"]}
      |                                                           ^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `parse` to the `needs` of `input`

    error: step `input` has no `for_each`, so there is no `index`
     --> flow.yaml:4:70
      |
    4 |   input: {needs: [plain], run: make, inputs: ["plain[0]", "parse[${{ index }}]"]}
      |                                                                      ^^^^^
      |
      = help: add `for_each: ${{ … }}`, which makes a task for each item of a list
    "#);
}
