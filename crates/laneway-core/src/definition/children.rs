//! The key `workflow`, and what else a step that runs another workflow may say. Owns their form; what becomes of it is decided in
//! `child.rs` and by the gate keeper.

use std::time::Duration;

use super::input::Input;
use super::read::is_workflow_name;
use super::reader::{Field, Reader};
use crate::child::{SubWorkflow, is_file};
use crate::wait::{Awaited, Wait};

const WORKFLOW: &str = "the name of a workflow that was applied, or a file such as ./deploy.yaml";

/// Why a key does not belong to a step that runs a workflow.
pub(super) fn advice(key: &str) -> Option<&'static str> {
    match key {
        "retry" => Some("the steps of that workflow have their own; `laneway retry` goes on with its run"),
        "lock" | "limits" => Some("it holds nothing itself; put it on the steps of that workflow"),
        "runs_on" | "prefers" | "priority" | "on_lost" => {
            Some("it runs on no node itself; put it on the steps of that workflow")
        }
        "env" | "workdir" | "artifacts" | "inputs" | "cache" | "image" | "container" | "pool" | "call" => {
            Some("it runs nothing itself; put it on the steps of that workflow, and pass values by `with`")
        }
        "args" => Some("a workflow takes its parameters by name: `with: {NAME: VALUE}`"),
        _ => None,
    }
}

impl Reader<'_> {
    pub(super) fn sub_workflow(
        &mut self,
        field: Field<'_>,
        with: Vec<(String, Input)>,
        timeout: Option<Duration>,
    ) -> Option<Wait> {
        let workflow = self.string(field, WORKFLOW)?;
        let literal = "a workflow is named, not computed; pass values by `with`, or choose by `if`";
        if !self.literal(field, workflow, literal) {
            return None;
        }
        let is_absolute = workflow.starts_with('/');
        if is_absolute || !is_file(workflow) && !is_workflow_name(workflow) {
            let hint = "a file is written relative to that of this workflow: ./deploy.yaml";
            let finding = self.wrong(field, WORKFLOW).maybe_hint(is_absolute.then(|| hint.to_owned()));
            self.findings.push(finding);
            return None;
        }
        Some(Wait { on: Awaited::Run(SubWorkflow { workflow: workflow.to_owned(), with }), timeout })
    }
}
