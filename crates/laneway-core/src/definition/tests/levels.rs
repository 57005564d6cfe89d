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
    insta::assert_snapshot!(refused(text.trim_start_matches('\n')), @"");
}

#[test]
fn a_bound_for_levels_without_levels_is_refused() {
    let text = "max_parallel_steps: 2\nsteps: {a: {run: make}}\n";
    insta::assert_snapshot!(refused(text), @"");
}
