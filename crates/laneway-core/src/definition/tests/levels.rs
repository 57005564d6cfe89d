//! The keys of runs that go level by level.

use super::{refused, source};
use crate::definition::{Execution, OnFailure, Placement, compile};

#[test]
fn levels_say_how_many_run_at_once_and_keep_the_run_on_one_node() {
    for (keys, at_once) in
        [("", 4), ("max_parallel_steps: 9\n", 9), ("max_parallel_steps: 0\non_failure: abort\n", 1)]
    {
        let text = format!("execution: levels\n{keys}steps: {{a: {{run: make}}}}\n");
        let plan = compile(&source(&text)).map_err(|refusal| refusal.render(false)).expect("it is valid");
        let workflow = &plan.workflow;
        assert_eq!(workflow.max_parallel.map(|max| max.get()), Some(at_once));
        assert_eq!((workflow.execution, workflow.placement), (Execution::Levels, Placement::Pinned));
        assert_eq!(workflow.on_failure, OnFailure::Abort);
    }
}

#[test]
fn what_is_for_single_steps_is_refused_at_its_place() {
    let text = r#"
execution: levels
max_parallel: 2
max_parallel_steps: -1
on_failure: continue
placement: spread
steps:
  a: {run: make, lock: db}
  b: {queue: crop}
groups: {g: {steps: [a]}}
"#;
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"
    error: `max_parallel` is not for levels
     --> flow.yaml:2:1
      |
    2 | max_parallel: 2
      | ^^^^^^^^^^^^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: write `max_parallel_steps`

    error: `max_parallel_steps` must be a whole number, where 0 is one after the other, not the number -1
     --> flow.yaml:3:21
      |
    3 | max_parallel_steps: -1
      |                     ^^

    error: in levels a failure cancels the rest of its level, and the run fails
     --> flow.yaml:4:13
      |
    4 | on_failure: continue
      |             ^^^^^^^^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: write `abort`, which says the same, or leave it out

    error: a level is taken as a whole, by one node
     --> flow.yaml:5:12
      |
    5 | placement: spread
      |            ^^^^^^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: write `placement: pinned`, or leave it out: levels imply it

    error: step `a` has `lock`, and its level is taken as a whole
     --> flow.yaml:7:3
      |
    7 |   a: {run: make, lock: db}
      |   ^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: take it off, leave `execution` out, or use `max_runs` for the run as a whole

    error: step `b` has `queue`, and its level is taken as a whole
     --> flow.yaml:8:3
      |
    8 |   b: {queue: crop}
      |   ^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: remote workers take single tasks: leave `execution` out, or start it from another workflow

    error: a run that goes level by level has no groups
     --> flow.yaml:9:1
      |
    9 | groups: {g: {steps: [a]}}
      | ^^^^^^
      |
     ::: flow.yaml:1:12
      |
    1 | execution: levels
      |            ------ it goes level by level
      |
      = help: its steps without `needs` between them run together already; leave `groups` out
    ");
}

#[test]
fn a_bound_for_levels_without_levels_is_refused() {
    let text = "max_parallel_steps: 2\nsteps: {a: {run: make}}\n";
    insta::assert_snapshot!(refused(text), @"
    error: `max_parallel_steps` is for levels
     --> flow.yaml:1:1
      |
    1 | max_parallel_steps: 2
      | ^^^^^^^^^^^^^^^^^^
      |
      = help: write `execution: levels`, or `max_parallel` for a run that has none
    ");
}
