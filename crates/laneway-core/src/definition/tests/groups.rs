//! The keys of groups, and what expressions read of them.

use std::time::Duration;

use super::{refused, source};
use crate::definition::{GroupFailure, Merge, OnConflict, Placement, PoolMode, compile};

#[test]
fn a_group_says_how_it_fails_merges_and_where_it_works() {
    let text = r#"
steps:
  a: {run: make}
  b: {run: make}
  c: {run: make, needs: [g], if: "${{ groups.g.result.success and groups.h.status == 'succeeded' }}"}
  d: {run: make}
groups:
  h: {steps: [d], failure: lenient, merge: {custom: [./join.sh, 2]}, description: all of it}
  g:
    steps: [b, a]
    merge: workspace
    on_conflict: {keep: a}
    isolate: true
    max_parallel: 1
    mode: single
    dormancy: 2m
"#;
    let text = text.replace("needs: [g]", "needs: [g, h]");
    let plan = compile(&source(&text)).map_err(|refusal| refusal.render(false)).expect("it is valid");
    let [h, g] = plan.workflow.groups.as_slice() else { panic!("two groups") };
    assert_eq!((h.failure, g.failure), (GroupFailure::Lenient, GroupFailure::Strict));
    assert_eq!(h.merge, Merge::Custom { command: vec!["./join.sh".into(), "2".into()] });
    assert_eq!(g.merge, Merge::Workspace { on_conflict: OnConflict::Keep("a".into()) });
    assert_eq!((g.isolate, g.max_parallel.map(|max| max.get())), (true, Some(1)));
    assert_eq!((g.mode, g.dormancy), (Some(PoolMode::Single), Some(Duration::from_secs(120))));
    let placement = |files_follow| plan.workflow.placement_of_run(files_follow);
    assert_eq!((placement(true), placement(false)), (Placement::Spread, Placement::Pinned));
    let in_place = compile(&source(&format!("workspace: none\n{text}"))).expect("it is valid");
    assert_eq!(in_place.workflow.placement, Placement::Pinned, "copies lie on one node");
}

#[test]
fn nonsense_is_refused_at_its_place() {
    let text = r#"
placement: spread
steps:
  a: {run: make}
  b: {function: crop}
groups:
  g: {steps: [a], merge: workspce}
  h: {steps: [b], isolate: true, merge: workspace, on_conflict: {keep: c}}
  i: {steps: [a], on_conflict: fail}
  j: {steps: [a], merge: workspace}
workspace: none
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"
    error: group `h` isolates its members, and `workspace` keeps their copies on one node
     --> flow.yaml:1:12
      |
    1 | placement: spread
      |            ^^^^^^
      |
     ::: flow.yaml:7:19
      |
    7 |   h: {steps: [b], isolate: true, merge: workspace, on_conflict: {keep: c}}
      |                   ------- the copies lie on that node
      |
      = help: write `placement: pinned`, or leave it out: `isolate` implies it

    error: `merge` must be one of concatenate, workspace, custom, not the string `workspce`
     --> flow.yaml:6:26
      |
    6 |   g: {steps: [a], merge: workspce}
      |                          ^^^^^^^^
      |
      = help: did you mean `workspace`?

    error: step `b` calls a function, which has no directory, so there is no copy for it
     --> flow.yaml:7:15
      |
    7 |   h: {steps: [b], isolate: true, merge: workspace, on_conflict: {keep: c}}
      |               ^
      |
      = help: take it out of the group, or `isolate` off it

    error: `c` is no member of group `h`
     --> flow.yaml:7:72
      |
    7 |   h: {steps: [b], isolate: true, merge: workspace, on_conflict: {keep: c}}
      |                                                                        ^
      |
      = help: its members are: b

    error: step `a` is in two groups, `g` and `i`
     --> flow.yaml:8:15
      |
    8 |   i: {steps: [a], on_conflict: fail}
      |               ^
      |
      = help: a step belongs to one group at most

    error: `on_conflict` is about files, and this group does not merge any
     --> flow.yaml:8:19
      |
    8 |   i: {steps: [a], on_conflict: fail}
      |                   ^^^^^^^^^^^
      |
      = help: add `merge: workspace` and `isolate: true`, or remove it

    error: step `a` is in two groups, `g` and `j`
     --> flow.yaml:9:15
      |
    9 |   j: {steps: [a], merge: workspace}
      |               ^
      |
      = help: a step belongs to one group at most

    error: `merge: workspace` brings copies together, and this group makes none
     --> flow.yaml:9:26
      |
    9 |   j: {steps: [a], merge: workspace}
      |                          ^^^^^^^^^
      |
      = help: add `isolate: true`: each member then works in a copy of its own
    ");
}

#[test]
fn results_are_read_only_behind_the_merge() {
    let text = r#"
env: {X: "${{ groups.g.result }}"}
steps:
  a: {run: make}
  b: {run: make, needs: [a], env: {X: "${{ groups.g.result.success }}"}}
  c: {run: make, needs: [b], env: {X: "${{ groups.q.result }} ${{ groups.g.output }} ${{ steps.g.output.x }}"}}
  d: {run: make, needs: [e], env: {X: "${{ groups.g.result.members }}"}}
  e: {run: make, needs: [g]}
  f: {run: make, lock: "${{ groups.g.result.x }}"}
groups: {g: {steps: [a]}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @r#"
    error: the workflow's `env` cannot read `groups`
     --> flow.yaml:1:15
      |
    1 | env: {X: "${{ groups.g.result }}"}
      |               ^^^^^^^^^^^^^^^
      |
      = help: put it into the `env` of the step that uses it

    error: step `b` reads group `g` without needing it, so it may not be merged by then
     --> flow.yaml:4:44
      |
    4 |   b: {run: make, needs: [a], env: {X: "${{ groups.g.result.success }}"}}
      |                                            ^^^^^^^^^^^^^^^^^^^^^^^
      |
      = help: add `g` to the `needs` of `b`

    error: there is no group `q`
     --> flow.yaml:5:44
      |
    5 |   c: {run: make, needs: [b], env: {X: "${{ groups.q.result }} ${{ groups.g.output }} ${{ steps.g.output.x }}"}}
      |                                            ^^^^^^^^^^^^^^^

    error: a group has no `output`
     --> flow.yaml:5:67
      |
    5 |   c: {run: make, needs: [b], env: {X: "${{ groups.q.result }} ${{ groups.g.output }} ${{ steps.g.output.x }}"}}
      |                                                                   ^^^^^^^^^^^^^^^
      |
      = help: there are `groups.g.status` and `groups.g.result.KEY`

    error: `g` is a group, not a step
     --> flow.yaml:5:90
      |
    5 |   c: {run: make, needs: [b], env: {X: "${{ groups.q.result }} ${{ groups.g.output }} ${{ steps.g.output.x }}"}}
      |                                                                                          ^^^^^^^^^^^^^^^^
      |
      = help: its result is `groups.g.result`

    error: `lock` cannot read `groups`: it is fixed when the run is submitted
     --> flow.yaml:8:29
      |
    8 |   f: {run: make, lock: "${{ groups.g.result.x }}"}
      |                             ^^^^^^^^^^^^^^^^^
      |
      = help: pass it as a parameter: `${{ params.NAME }}`
    "#);
}
