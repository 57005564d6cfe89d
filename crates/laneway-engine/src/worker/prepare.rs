//! From a claim to a job: evaluates what the step's expressions say, and nothing else.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use laneway_core::definition::{Action, Step};
use laneway_core::expression::{Error, Scope, Template};
use laneway_store::model::Claim;

use super::log_path;
use crate::process::{InheritEnv, Job, Program};

/// What of an attempt's output is kept.
const LOG_CAP: u64 = 64 << 20;

/// Where an attempt's files go.
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) store_dir: PathBuf,
    pub(super) scratch: PathBuf,
}

/// Steps whose outputs the expressions of this one read.
pub(super) fn steps_read(claim: &Claim) -> Vec<String> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    let args = match &step.action {
        Action::Run { args, .. } | Action::Command { args, .. } => args,
    };
    let templates = plan.workflow.env.iter().chain(&step.env).map(|(_, template)| template).chain(args);
    let mut read: BTreeSet<String> = templates.flat_map(Template::steps_read).map(str::to_owned).collect();
    read.extend(step.condition.iter().flat_map(|condition| condition.steps_read()).map(str::to_owned));
    read.into_iter().collect()
}

/// Everything that the process engine needs. An expression that cannot be evaluated fails the attempt.
pub(super) fn job(
    claim: &Claim,
    scope: &Scope,
    places: &Places,
    kill_grace: std::time::Duration,
) -> Result<Job, String> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    if let Some(condition) = &step.condition {
        // The gate has asked already; it lets through what it could not evaluate, so that it is told here.
        condition.holds(scope).map_err(|error| format!("`if`: {error}"))?;
    }
    let mut env = Vec::new();
    for (name, template) in plan.workflow.env.iter().chain(&step.env) {
        let value = template.render(scope).map_err(|error| format!("`env.{name}`: {error}"))?;
        env.push((name.clone(), value));
    }
    env.extend([
        ("LANEWAY_RUN".to_owned(), claim.head.run.to_string()),
        ("LANEWAY_WORKFLOW".to_owned(), plan.workflow.name.clone()),
        ("LANEWAY_TASK".to_owned(), step.name.clone()),
        ("LANEWAY_ATTEMPT".to_owned(), claim.at.attempt.to_string()),
    ]);
    let dir = Path::new(&claim.head.dir);
    Ok(Job {
        program: program(step, scope)?,
        env,
        inherit_env: InheritEnv::All,
        workdir: step.workdir.as_ref().map_or_else(|| dir.to_owned(), |workdir| dir.join(workdir)),
        scratch: places.scratch.clone(),
        output: places.scratch.join(format!("{}.a{}.out", step.name, claim.at.attempt)),
        log: log_path(&places.store_dir, claim.head.run, &step.name, claim.at.attempt),
        log_cap: LOG_CAP,
        timeout: step.timeout,
        kill_grace,
    })
}

fn program(step: &Step, scope: &Scope) -> Result<Program, String> {
    let render = |args: &[Template]| -> Result<Vec<String>, String> {
        let rendered: Result<_, Error> = args.iter().map(|arg| arg.render(scope)).collect();
        rendered.map_err(|error| format!("`args`: {error}"))
    };
    Ok(match &step.action {
        Action::Run { script, args } => {
            Program::Script { text: script.clone(), name: step.name.clone(), args: render(args)? }
        }
        Action::Command { argv, args } => {
            let mut argv = argv.clone();
            argv.extend(render(args)?);
            Program::Command { argv }
        }
    })
}
