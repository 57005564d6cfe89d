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
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"");
}
