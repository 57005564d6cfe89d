//! The key `workflow`: what it may name, what it is given, and what does not belong beside it.

use std::time::Duration;

use super::{read, refused, source};
use crate::wait::Awaited;

#[test]
fn a_step_names_a_workflow_or_a_file_and_gives_it_parameters() {
    let text = r#"
params: {tag: {type: string, default: v1}}
steps:
  call: {workflow: nightly deploy, with: {tag: "${{ params.tag }}", list: [1, 2]}, timeout: 1h}
  file: {workflow: ../jobs/deploy.yaml, needs: [call], if: "${{ steps.call.output.push.ok }}"}
  each: {workflow: deploy, for_each: [1, 2], max_parallel: 1, with: {n: "${{ item }}"}}
"#;
    let workflow = read(&source(text)).map_err(|refusal| refusal.render(false)).expect("valid");
    let child = |step: usize| {
        let wait = workflow.steps[step].wait().expect("it waits for a run");
        match &wait.on {
            Awaited::Run(child) => (child.clone(), wait.timeout),
            other => panic!("{other:?}"),
        }
    };
    let (call, timeout) = child(0);
    assert_eq!((call.workflow.as_str(), call.is_file(), call.with.len()), ("nightly deploy", false, 2));
    assert_eq!((timeout, workflow.steps[0].timeout), (Some(Duration::from_secs(3600)), None));
    assert!(child(1).0.is_file());
    assert!(workflow.steps[2].for_each.is_some());
}

#[test]
fn what_means_nothing_to_such_a_step_is_told() {
    let text = r#"
steps:
  made: {workflow: "${{ run.id }}"}
  root: {workflow: /etc/deploy.yaml}
  both: {workflow: deploy, run: ./x.sh}
  tries: {workflow: deploy, retry: {max: 3}}
  held: {workflow: deploy, lock: a}
  env: {workflow: deploy, env: {A: b}}
  args: {workflow: deploy, args: [a]}
  none: {workflow: [a]}
"#;
    let found = refused(text);
    for expected in [
        "a workflow is named, not computed; pass values by `with`, or choose by `if`",
        "a file is written relative to that of this workflow: ./deploy.yaml",
        "step `both` has both `run` and `workflow`",
        "the steps of that workflow have their own; `laneway retry` goes on with its run",
        "it holds nothing itself; put it on the steps of that workflow",
        "it runs nothing itself; put it on the steps of that workflow, and pass values by `with`",
        "a workflow takes its parameters by name: `with: {NAME: VALUE}`",
        "`workflow` must be the name of a workflow that was applied, or a file such as ./deploy.yaml, not a list",
    ] {
        assert!(found.contains(expected), "{expected}\n\n{found}");
    }
    assert_eq!(found.matches("error: ").count(), 8, "{found}");
}
