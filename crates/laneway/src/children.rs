//! Files that the steps of a document run as workflows of their own. They are looked at before anything runs, and so are the parameters
//! that they are given, as deep as runs may start runs: a mistake in one is told at once, and not in the middle of a run.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use laneway_core::child::{MAX_DEPTH, SubWorkflow};
use laneway_core::plan::Plan;

use crate::command::Context;
use crate::document;
use crate::exit::Refusal;

/// All files below a plan whose own file lies in `dir`. Returns their plans.
pub(crate) fn check(context: &Context, plan: &Plan, dir: &Path) -> anyhow::Result<Vec<Plan>> {
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    below(context, (plan, dir), 1, (&mut seen, &mut all))?;
    Ok(all)
}

fn below(
    context: &Context,
    (plan, dir): (&Plan, &Path),
    depth: u32,
    (seen, all): (&mut HashSet<PathBuf>, &mut Vec<Plan>),
) -> anyhow::Result<()> {
    for step in &plan.workflow.steps {
        let Some(child) = step.wait().and_then(|wait| wait.child()).filter(|child| child.is_file()) else {
            continue;
        };
        let path = dir.join(&child.workflow);
        let found = context.document(&path.to_string_lossy()).and_then(|found| {
            let plan = document::compile(&found)?;
            Ok((found, plan))
        });
        let (found, called) = found.map_err(|error| {
            let message = format!("step `{}` runs `{}`: {error}", step.name, child.workflow);
            Refusal::new(message).hint("a file is looked for beside that of the workflow that names it")
        })?;
        given(&step.name, child, &called)?;
        if depth < MAX_DEPTH && seen.insert(path.canonicalize().unwrap_or(path)) {
            below(context, (&called, &found.dir), depth + 1, (seen, all))?;
        }
        all.push(called);
    }
    Ok(())
}

/// Whether what a step gives to a workflow is what that takes.
fn given(step: &str, child: &SubWorkflow, called: &Plan) -> anyhow::Result<()> {
    let params = &called.workflow.params;
    let known = || params.iter().map(|param| param.name.as_str()).collect::<Vec<_>>().join(", ");
    if let Some((name, _)) =
        child.with.iter().find(|(name, _)| params.iter().all(|param| param.name != *name))
    {
        let message =
            format!("step `{step}` gives `{name}` to `{}`, which has no such parameter", child.workflow);
        let hint = if params.is_empty() { "it has none".to_owned() } else { format!("it has {}", known()) };
        return Err(Refusal::new(message).hint(hint).into());
    }
    let is_given = |name: &str| child.with.iter().any(|(given, _)| given == name);
    if let Some(missing) = params.iter().find(|param| param.required && !is_given(&param.name)) {
        let name = &missing.name;
        let message = format!("step `{step}` does not give `{name}` to `{}`, which needs it", child.workflow);
        return Err(Refusal::new(message).hint(format!("add `with: {{{name}: VALUE}}`")).into());
    }
    Ok(())
}
