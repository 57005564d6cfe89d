//! From a claim to what a remote worker is given: evaluates its input, and nothing else.

use std::collections::BTreeSet;
use std::time::Duration;

use laneway_core::definition::{Action, evaluate_input};
use laneway_core::reason::Reason;
use laneway_store::Store;
use laneway_store::model::{Claim, Outcome};
use serde_json::{Map, Value};

/// All that a remote worker needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub claim: laneway_store::ClaimRef,
    pub workflow: String,
    pub step: String,
    pub queue: String,
    pub input: Map<String, Value>,
    pub params: Map<String, Value>,
    pub timeout: Option<Duration>,
    /// Fencing token of its lock.
    pub fence: Option<u64>,
}

/// Why a claim cannot be handed out.
#[derive(Debug)]
pub enum Unready {
    /// Not now.
    Store(laneway_store::Error),
    /// Never: this is how the attempt ends.
    Ended(Outcome),
}

pub async fn task(store: &dyn Store, claim: &Claim) -> Result<Task, Unready> {
    let plan = &claim.head.plan;
    let step = plan.step(claim.at.position);
    let failed = |reason, detail| Unready::Ended(Outcome::Failed { reason, detail, exit_code: None });
    let Action::Queue { queue, with } = &step.action else {
        return Err(failed(Reason::StartFailed, "it is not for remote workers".to_owned()));
    };
    let templates = with.iter().flat_map(|(_, value)| value.templates());
    let mut read: BTreeSet<String> = templates.flat_map(|template| template.steps_read()).collect();
    read.extend(step.condition.iter().flat_map(|condition| condition.steps_read()));
    // The item of a task is found by its own name.
    if plan.item(claim.at.position).is_some() {
        read.insert(plan.task_name(claim.at.position));
    }
    let names: Vec<&str> = read.iter().map(String::as_str).collect();
    let scope = match store.scope(claim.at.run, &names).await {
        Ok(scope) => scope,
        Err(error) if error.is_passing() => return Err(Unready::Store(error)),
        Err(error) => {
            return Err(failed(Reason::StartFailed, format!("its inputs could not be read: {error}")));
        }
    };
    if let Some(condition) = &step.condition {
        // The gate has asked already; it lets through what it could not evaluate, so that it is told here.
        condition.holds(&scope).map_err(|error| failed(Reason::Expression, format!("`if`: {error}")))?;
    }
    let fence = match step.demands().lock {
        None => None,
        Some(_) => {
            let fence = store.fence(claim.at).await.map_err(Unready::Store)?;
            fence.ok_or_else(|| failed(Reason::StartFailed, "its claim was lost".to_owned()))?
        }
    };
    let input = evaluate_input(with, &scope).map_err(|error| failed(Reason::Expression, error))?;
    Ok(Task {
        claim: claim.at,
        workflow: plan.workflow.name.clone(),
        step: plan.task_name(claim.at.position),
        queue: queue.clone(),
        input,
        params: claim.head.params.clone(),
        timeout: step.timeout,
        fence,
    })
}
