//! Hooks: steps that run when a run is over, with its outcome as their input. They are a run of their own, whose plan is made
//! from that of the workflow, so that they have claims, retries, logs and a history as all steps have. Owns which hooks an
//! end has and their plan; that each end starts them once is the store's (`docs/design/triggers.md`).

use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::definition::{Action, Execution, OnFailure, Placement, Step, When, Workflow, Workspace};
use crate::expression::Template;
use crate::id::RunId;
use crate::plan::Plan;
use crate::state::RunStatus;
use crate::words::words;

/// A step for some ends of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Hook {
    pub on: On,
    pub step: Step,
}

words! {
    /// The ends that a hook is for.
    pub enum On {
        Succeeded = "succeeded",
        Failed = "failed",
        /// However it ended.
        Finished = "finished",
    }
}

words! {
    /// Hooks that are a run together.
    pub enum Which {
        /// As earlier versions ran them.
        All = "all",
        /// Those that execute something: they belong to the process whose run it was.
        Steps = "steps",
        /// Those that are sent: any node does so.
        Callbacks = "callbacks",
    }
}

impl Which {
    fn has(self, hook: &Hook) -> bool {
        let is_callback = matches!(hook.step.action, Action::Post(_));
        match self {
            Self::All => true,
            Self::Steps => !is_callback,
            Self::Callbacks => is_callback,
        }
    }
}

impl On {
    fn is_for(self, end: RunStatus) -> bool {
        match self {
            Self::Succeeded => end == RunStatus::Succeeded,
            Self::Failed => end == RunStatus::Failed,
            Self::Finished => end.is_final(),
        }
    }
}

/// How a run ended, as its hooks are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub run: RunId,
    pub workflow: String,
    pub status: RunStatus,
    /// Why, in words; empty for one that succeeded.
    pub reason: String,
    /// The first of the steps that failed, in document order.
    pub failed: Vec<String>,
}

/// What expressions of hooks may read of it.
pub(crate) const ENDED: &[&str] = &["run", "workflow", "status", "reason", "failed"];

impl Outcome {
    pub fn to_json(&self) -> Value {
        let Self { run, workflow, status, reason, failed } = self;
        json!({
            "run": run.to_string(), "workflow": workflow, "status": status.as_str(), "reason": reason, "failed": failed,
        })
    }

    /// The parameters of the run of the hooks: what the run itself was given, and how it ended.
    pub fn params(&self, given: Map<String, Value>) -> Map<String, Value> {
        [("params".to_owned(), Value::Object(given)), ("ended".to_owned(), self.to_json())]
            .into_iter()
            .collect()
    }
}

/// Ends at which a workflow has hooks.
pub fn ends(workflow: &Workflow) -> Vec<RunStatus> {
    let ends = [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled];
    ends.into_iter().filter(|end| workflow.hooks.iter().any(|hook| hook.on.is_for(*end))).collect()
}

/// Whose hooks run under a name, if it is one of theirs.
pub fn whose_hooks(name: &str) -> Option<&str> {
    let ends = RunStatus::ALL.iter().filter(|end| end.is_final());
    ends.map(|end| format!(" ({})", end.as_str())).find_map(|tail| name.strip_suffix(&tail))
}

/// The name under which the hooks of a workflow run.
pub fn name_of_hooks(workflow: &str, end: RunStatus) -> String {
    format!("{workflow} ({})", end.as_str())
}

/// The name of the workflow whose hooks run under a name.
pub fn name_of_workflow(hooks: &str, end: RunStatus) -> Option<&str> {
    hooks.strip_suffix(')')?.strip_suffix(end.as_str())?.strip_suffix(" (")
}

impl Plan {
    /// The plan of the hooks for an end of a run; `None` if there are none. Steps come one after the other, and none waits
    /// for another to succeed: whoever is to be told is told. Callbacks wait for nothing: one that nobody takes holds up no
    /// other.
    pub fn hooks_at(&self, end: RunStatus, which: Which) -> Option<Self> {
        let of = &self.workflow;
        let mut steps: Vec<Step> = Vec::new();
        for hook in of.hooks.iter().filter(|hook| hook.on.is_for(end) && which.has(hook)) {
            let mut step = hook.step.clone();
            if which != Which::Callbacks {
                step.needs = steps.last().map(|before| before.name.clone()).into_iter().collect();
            }
            step.when = When::AllDone;
            steps.push(step);
        }
        if steps.is_empty() {
            return None;
        }
        let workflow = Workflow {
            name: name_of_hooks(&of.name, end),
            env: of.env.iter().cloned().chain(told()).collect(),
            steps,
            secrets: of.secrets.clone(),
            on_failure: OnFailure::Continue,
            execution: Execution::Dataflow,
            placement: Placement::Spread,
            workspace: Workspace::default(),
            params: Vec::new(),
            max_parallel: None,
            timeout: None,
            // Their run has the clock of the run that ended (`Submission::end_by`).
            cleanup_timeout: Duration::ZERO,
            groups: Vec::new(),
            pools: Vec::new(),
            limits: Vec::new(),
            max_runs: None,
            triggers: Vec::new(),
            hooks: Vec::new(),
        };
        let mut plan = Self::build(workflow, self.version.of_hooks(end, which)).ok()?;
        plan.after = Some(end);
        Some(plan)
    }
}

/// What a script finds in its environment without asking for it.
fn told() -> impl Iterator<Item = (String, Template)> {
    ENDED.iter().filter_map(|part| {
        let source =
            if *part == "failed" { "ended.failed | join(' ')".to_owned() } else { format!("ended.{part}") };
        let template = Template::parse(&format!("${{{{ {source} }}}}")).ok()?;
        Some((format!("LANEWAY_ENDED_{}", part.to_uppercase()), template))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Source, compile};
    use crate::expression::Scope;

    fn plan(hooks: &str) -> Plan {
        let text = format!(
            "name: nightly\nparams: {{day: {{type: string}}}}\nenv: {{DAY: '${{{{ params.day }}}}'}}\n\
             steps: {{a: {{run: x}}}}\nhooks: {hooks}"
        );
        let source = Source { file: "f.yaml".into(), default_name: "f".into(), text };
        compile(&source).unwrap_or_else(|error| panic!("{}", error.render(false)))
    }

    fn names(plan: Option<&Plan>) -> Vec<&str> {
        plan.map(|plan| plan.workflow.steps.iter().map(|step| step.name.as_str()).collect())
            .unwrap_or_default()
    }

    #[test]
    fn each_end_has_its_own_hooks_and_those_of_all_in_the_order_of_the_document() {
        let plan = plan("{finished: [{run: f}], failed: [{run: a}, {run: b}]}");
        let at = |end| plan.hooks_at(end, Which::Steps);
        assert_eq!(names(at(RunStatus::Failed).as_ref()), ["finished-1", "failed-1", "failed-2"]);
        assert_eq!(names(at(RunStatus::Canceled).as_ref()), ["finished-1"]);
        assert_eq!(names(at(RunStatus::Succeeded).as_ref()), ["finished-1"]);
        let failed = at(RunStatus::Failed).expect("hooks");
        assert_eq!(failed.workflow.steps[2].needs, ["failed-1"]);
        assert_eq!(failed.workflow.steps[2].when, When::AllDone);
        assert_eq!(ends(&plan.workflow), [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled]);
        assert_eq!(ends(&self::plan("{failed: [{run: a}]}").workflow), [RunStatus::Failed]);
    }

    #[test]
    fn callbacks_are_a_run_of_their_own_in_which_none_waits_for_another() {
        let plan = plan(
            "{finished: [{post: 'https://a.example'}, {run: f}], failed: [{post: 'https://b.example'}]}",
        );
        let at = |which| plan.hooks_at(RunStatus::Failed, which);
        let (steps, callbacks) = (at(Which::Steps), at(Which::Callbacks).expect("callbacks"));
        assert_eq!(names(steps.as_ref()), ["finished-2"]);
        assert_eq!(names(Some(&callbacks)), ["finished-1", "failed-1"]);
        assert!(callbacks.workflow.steps.iter().all(|step| step.needs.is_empty()));
        assert_eq!(callbacks.version.hooks(), Some((RunStatus::Failed, Which::Callbacks)));
        assert_eq!(steps.expect("steps").version.hooks(), Some((RunStatus::Failed, Which::Steps)));
        // A run of an earlier version is read as it was made.
        let all = at(Which::All).expect("hooks");
        assert_eq!(names(Some(&all)), ["finished-1", "finished-2", "failed-1"]);
        assert_eq!(all.version.as_str(), format!("{}.failed", plan.version));
        assert_eq!(all.version.hooks(), Some((RunStatus::Failed, Which::All)));
    }

    #[test]
    fn hooks_have_a_name_and_a_version_of_their_own() {
        let plan = plan("{failed: [{run: a}]}");
        let hooks = plan.hooks_at(RunStatus::Failed, Which::Steps).expect("hooks");
        assert_eq!(hooks.workflow.name, "nightly (failed)");
        assert_eq!(name_of_workflow(&hooks.workflow.name, RunStatus::Failed), Some("nightly"));
        assert_eq!(name_of_workflow(&hooks.workflow.name, RunStatus::Succeeded), None);
        assert_ne!(hooks.version, plan.version);
        assert_eq!(hooks.version.hooks(), Some((RunStatus::Failed, Which::Steps)));
        assert_eq!(plan.version.hooks(), None);
        assert!(plan.hooks_at(RunStatus::Succeeded, Which::Steps).is_none());
        assert!(hooks.hooks_at(RunStatus::Failed, Which::Steps).is_none(), "hooks have no hooks");
    }

    #[test]
    fn scripts_are_told_how_the_run_ended() {
        let hooks = plan("{failed: [{run: a}]}").hooks_at(RunStatus::Failed, Which::Steps).expect("hooks");
        let outcome = Outcome {
            run: RunId::new(uuid::Uuid::nil()),
            workflow: "nightly".to_owned(),
            status: RunStatus::Failed,
            reason: "step `a` failed".to_owned(),
            failed: vec!["a".to_owned(), "b".to_owned()],
        };
        let given = [("day".to_owned(), json!("monday"))].into_iter().collect();
        let scope: Scope = outcome.params(given).into_iter().collect();
        let told = |name: &str| {
            let (_, template) =
                hooks.workflow.env.iter().find(|(known, _)| known == name).expect("a variable");
            template.render(&scope).expect("a value")
        };
        assert_eq!(told("DAY"), "monday");
        assert_eq!(told("LANEWAY_ENDED_STATUS"), "failed");
        assert_eq!(told("LANEWAY_ENDED_WORKFLOW"), "nightly");
        assert_eq!(told("LANEWAY_ENDED_FAILED"), "a b");
        assert_eq!(told("LANEWAY_ENDED_REASON"), "step `a` failed");
    }
}
