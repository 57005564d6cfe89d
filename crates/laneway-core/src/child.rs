//! Sub-workflows (`workflow`): a step that runs another workflow, as a run of its own, and ends as that does. Pure: what such a
//! step names and gives, how deep runs may start runs, and what the end of a child means. The store parks the step, an
//! engine starts the child. docs/design/children.md.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition::{Input, evaluate_input};
use crate::expression::Scope;
use crate::id::RunId;
use crate::output;
use crate::reason::Reason;
use crate::state::{RunStatus, TaskMove};

/// How deep runs may start runs: one that nobody called is at 0.
pub const MAX_DEPTH: u32 = 8;

/// The `workflow` key, with what it is given.
#[derive(Debug, Clone, PartialEq)]
pub struct SubWorkflow {
    /// A name that was applied, or a file.
    pub workflow: String,
    /// Its parameters.
    pub with: Vec<(String, Input)>,
}

/// Which step started a run. Kept with the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parent {
    pub run: RunId,
    pub step: String,
    /// Which of its lives: the number of the event that parked it.
    pub life: u64,
    /// How many runs are above this one.
    pub depth: u32,
}

/// How a child has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct ChildEnd {
    pub run: RunId,
    pub status: RunStatus,
    pub reason: Option<String>,
    /// What its steps have put out, by name; `None` if that is too much to be looked at.
    pub output: Option<Map<String, Value>>,
}

/// How a step ends with its child.
#[derive(Debug, Clone, PartialEq)]
pub struct StepEnd {
    pub step: TaskMove,
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub output: Map<String, Value>,
}

impl SubWorkflow {
    /// What its parameters are, in a scope. The error is why that cannot be known, in words.
    pub fn params(&self, scope: &Scope) -> Result<Map<String, Value>, String> {
        evaluate_input(&self.with, scope)
    }

    /// Names of the steps that it reads.
    pub fn steps_read(&self) -> impl Iterator<Item = String> {
        self.with.iter().flat_map(|(_, input)| input.templates()).flat_map(|template| template.steps_read())
    }

    /// Whether it names a file, and not a workflow that was applied.
    pub fn is_file(&self) -> bool {
        is_file(&self.workflow)
    }
}

/// Whether what stands behind `workflow` is a file.
pub fn is_file(workflow: &str) -> bool {
    workflow.contains('/') || [".yaml", ".yml"].iter().any(|end| workflow.ends_with(end))
}

impl Parent {
    /// A key under which the child is submitted, so that it is started once, whoever does.
    pub fn key(&self) -> String {
        format!("child of {} {} ({})", self.run, self.step, self.life)
    }
}

/// What the end of a child means to the step that waits for it. `stop` is why that was asked to end it, if it was.
pub fn step_end(workflow: &str, stop: Option<Reason>, end: ChildEnd) -> StepEnd {
    let ChildEnd { run, status, reason, output } = end;
    let short = run.short();
    let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    match (status, stop) {
        (_, Some(Reason::Timeout)) => StepEnd {
            step: TaskMove::Fail,
            reason: Some(Reason::Timeout),
            detail: Some(format!("timeout: run {short} of `{workflow}` took too long")),
            output: Map::new(),
        },
        (RunStatus::Succeeded, _) if !output.as_ref().is_some_and(fits) => StepEnd {
            step: TaskMove::Fail,
            reason: Some(Reason::BadOutput),
            detail: Some(format!(
                "run {short} of `{workflow}` succeeded, and its steps put out more than {} KiB together: let them hand on files",
                output::LIMIT / 1024
            )),
            output: Map::new(),
        },
        (RunStatus::Succeeded, _) => StepEnd {
            step: TaskMove::Succeed,
            reason: None,
            detail: None,
            output: output.unwrap_or_default(),
        },
        (_, Some(reason)) => {
            StepEnd { step: TaskMove::Cancel, reason: Some(reason), detail: None, output: Map::new() }
        }
        (status, None) => StepEnd {
            step: TaskMove::Fail,
            reason: Some(Reason::Child),
            detail: Some(format!("run {short} of `{workflow}` {status}{because}")),
            output: Map::new(),
        },
    }
}

fn fits(output: &Map<String, Value>) -> bool {
    serde_json::to_string(output).is_ok_and(|text| text.len() <= output::LIMIT)
}

/// Why a run may not be started, if it would be too deep.
pub fn too_deep(depth: u32) -> Option<String> {
    (depth > MAX_DEPTH).then(|| {
        format!(
            "it would be {depth} runs deep, and {MAX_DEPTH} is the most: does a workflow start itself, directly or through others?"
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn run_id() -> RunId {
        RunId::parse("0199f2a0-0000-7000-8000-1a2b3c4d5e6f").expect("a well-formed id")
    }

    fn end(status: RunStatus, stop: Option<Reason>) -> StepEnd {
        let output = json!({"a": {"n": 1}}).as_object().cloned();
        let reason = (status != RunStatus::Succeeded).then(|| "a failed: exit code 3".to_owned());
        step_end("deploy", stop, ChildEnd { run: run_id(), status, reason, output })
    }

    #[test]
    fn a_step_ends_as_its_child_does() {
        let good = end(RunStatus::Succeeded, None);
        assert_eq!((good.step, good.reason), (TaskMove::Succeed, None));
        assert_eq!(good.output["a"]["n"], 1);
        let bad = end(RunStatus::Failed, None);
        assert_eq!((bad.step, bad.reason), (TaskMove::Fail, Some(Reason::Child)));
        let detail = bad.detail.expect("why");
        assert!(detail.ends_with("of `deploy` failed: a failed: exit code 3"), "{detail}");
        // Somebody canceled the child alone: for its parent that is a failure.
        assert_eq!(end(RunStatus::Canceled, None).step, TaskMove::Fail);
    }

    #[test]
    fn one_that_was_stopped_says_why_unless_it_was_done_before() {
        assert_eq!(end(RunStatus::Canceled, Some(Reason::Canceled)).step, TaskMove::Cancel);
        assert_eq!(end(RunStatus::Succeeded, Some(Reason::Halted)).step, TaskMove::Succeed);
        let late = end(RunStatus::Succeeded, Some(Reason::Timeout));
        assert_eq!((late.step, late.reason), (TaskMove::Fail, Some(Reason::Timeout)));
    }

    #[test]
    fn what_does_not_fit_into_an_output_fails_in_words() {
        let output = json!({"a": {"n": "x".repeat(output::LIMIT)}}).as_object().cloned();
        let end = ChildEnd { run: run_id(), status: RunStatus::Succeeded, reason: None, output };
        let end = step_end("deploy", None, end);
        assert_eq!((end.step, end.reason), (TaskMove::Fail, Some(Reason::BadOutput)));
    }

    #[test]
    fn files_are_told_from_names() {
        assert!(is_file("./deploy.yaml") && is_file("deploy.yml") && is_file("jobs/deploy"));
        assert!(!is_file("deploy") && !is_file("nightly deploy"));
        assert!(too_deep(MAX_DEPTH).is_none() && too_deep(MAX_DEPTH + 1).is_some());
    }
}
