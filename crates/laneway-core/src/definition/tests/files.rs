//! The keys that are about files: `isolate` and `on_conflict` of a step, `workspace` of a workflow.

use super::{compile, read, refused, source};
use crate::definition::{OnConflict, Workspace};

#[test]
fn files_follow_the_run_unless_the_workflow_says_where_they_lie() {
    let workspace = |line: &str| {
        let text = format!("{line}\nsteps: {{a: {{run: make}}}}");
        read(&source(&text)).map_err(|refusal| refusal.render(false)).expect("valid").workspace
    };
    assert_eq!(workspace(""), Workspace::Follow);
    assert_eq!(workspace("workspace: none"), Workspace::None);
    assert_eq!(workspace("workspace: {path: /data/x}"), Workspace::Path("/data/x".to_owned()));
}

#[test]
fn step_says_where_it_works_and_whose_files_it_keeps() {
    let text = "
steps:
  a: {run: make}
  b: {run: make, isolate: true}
  c: {needs: [a], run: make}
  d: {needs: [b, c], run: make, on_conflict: {keep: a}}
  e: {needs: [g], run: make, on_conflict: {keep: g}}
groups: {g: {steps: [a, b]}}
";
    let plan = compile(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let files = |index: usize| plan.workflow.steps[index].files();
    assert!(!files(0).isolate && files(1).isolate);
    assert_eq!(files(1).on_conflict, OnConflict::Fail);
    assert_eq!(files(3).on_conflict, OnConflict::Keep("a".to_owned()));
}

#[test]
fn what_cannot_be_isolated_or_kept_is_refused_at_its_place() {
    let text = r#"
workspace: {path: shared}
steps:
  a: {run: make}
  q: {queue: images, isolate: true}
  b: {needs: [a], run: make, on_conflict: {keep: aa}}
  c: {needs: [a], run: make, on_conflict: {keep: q}}
  d: {needs: [a], run: make, on_conflict: {keep: d}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"
    error: `path` must be a path from the root on, such as /data/shared, not the string `shared`
     --> flow.yaml:1:19
      |
    1 | workspace: {path: shared}
      |                   ^^^^^^
      |
      = help: every node finds it under the same path

    error: step `q` is done by a remote worker, which has no directory here, so there is no copy for it
     --> flow.yaml:4:22
      |
    4 |   q: {queue: images, isolate: true}
      |                      ^^^^^^^
      |
      = help: remove `isolate`; it is for scripts and programs

    error: there is no step `aa`
     --> flow.yaml:5:50
      |
    5 |   b: {needs: [a], run: make, on_conflict: {keep: aa}}
      |                                                  ^^
      |
      = help: did you mean `a`?

    error: step `c` keeps the files of `q` and does not come behind it
     --> flow.yaml:6:50
      |
    6 |   c: {needs: [a], run: make, on_conflict: {keep: q}}
      |                                                  ^
      |
      = help: add `q` to the `needs` of `c`

    error: step `d` cannot keep its own files: it has none before it starts
     --> flow.yaml:7:50
      |
    7 |   d: {needs: [a], run: make, on_conflict: {keep: d}}
      |                                                  ^
      |
      = help: name a step that it needs: `on_conflict: {keep: STEP}`
    ");
    insta::assert_snapshot!(refused("workspace: follow\nsteps: {a: {run: make}}\n"), @"
    error: `workspace` must be none, or {path: /data/shared}, not the string `follow`
     --> flow.yaml:1:12
      |
    1 | workspace: follow
      |            ^^^^^^
      |
      = help: leave it out for files that follow the run from step to step
    ");
}
