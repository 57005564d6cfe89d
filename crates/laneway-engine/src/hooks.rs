//! Starts the hooks of runs that have ended: a run of their own for steps and one for callbacks, with how the other ended as
//! their input. Each end starts them once, whoever looks: they are submitted under a key made of that end, and what is owed
//! is crossed off afterwards. The run of callbacks is their outbox: any node sends what is due of it.

use std::sync::Arc;

use laneway_core::hook::{Outcome, Which};
use laneway_core::id::{RunId, SessionId};
use laneway_core::state::TaskStatus;
use laneway_store::model::{RunView, Submission};
use laneway_store::trigger::Firing;
use laneway_store::{Error, Store};
use laneway_torture::{Point, pass};

/// Who runs their steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Any node.
    Anybodys,
    /// The session that submits them, as the run itself was its own.
    Mine,
}

/// Names of steps that failed, of those that hooks are told: a variable holds 128 KiB on Linux, and a name 100 bytes.
const MAX_FAILED: usize = 1_000;

/// Ends of runs that are looked at in one go.
const MAX_FIRINGS: usize = 32;

/// Steps run one after the other.
const MAX_PARALLEL_STEPS: u32 = 1;

/// Callbacks that are sent at once: one that hangs holds up few others.
const MAX_PARALLEL_CALLBACKS: u32 = 4;

/// The runs of the hooks for an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    pub steps: Option<RunId>,
    pub callbacks: Option<RunId>,
}

/// Submits the hooks for an end of a run, if there are any; the caller crosses the end off.
pub async fn submit(
    store: &dyn Store,
    firing: &Firing,
    session: SessionId,
    whose: Whose,
) -> Result<Submitted, Error> {
    let view = store.run(firing.end.run).await?;
    // First: they need nobody's process, and are safe from here on.
    let callbacks = submit_some(store, (firing, &view), session, Which::Callbacks, Whose::Anybodys).await?;
    let steps = submit_some(store, (firing, &view), session, Which::Steps, whose).await?;
    Ok(Submitted { steps, callbacks })
}

/// Submits the callbacks of runs that are over and whose process died before it could do so. Their steps are left to a node
/// that takes work of others.
pub async fn submit_callbacks_left(store: &dyn Store, session: SessionId) -> Result<(), Error> {
    for firing in store.due(MAX_FIRINGS).await?.firings {
        if !firing.is_of_hooks() {
            continue;
        }
        let view = match store.run(firing.end.run).await {
            Ok(view) => view,
            Err(error) if error.is_passing() => return Err(error),
            // A node that takes work of others tells of it.
            Err(_) => continue,
        };
        submit_some(store, (&firing, &view), session, Which::Callbacks, Whose::Anybodys).await?;
        if view.plan.hooks_at(firing.ended.status, Which::Steps).is_none() {
            store.settle(firing.end, None).await?;
        }
    }
    Ok(())
}

async fn submit_some(
    store: &dyn Store,
    (firing, view): (&Firing, &RunView),
    session: SessionId,
    which: Which,
    whose: Whose,
) -> Result<Option<RunId>, Error> {
    let Some(plan) = view.plan.hooks_at(firing.ended.status, which) else { return Ok(None) };
    let is_of_callbacks = which == Which::Callbacks;
    let key = format!("hooks of {} ({})", firing.end.run, firing.end.seq);
    let submission = Submission {
        dir: view.dir.clone(),
        bundle: view.bundle.clone(),
        params: outcome(view, firing).params(view.state.params.clone()),
        max_parallel: if is_of_callbacks { MAX_PARALLEL_CALLBACKS } else { MAX_PARALLEL_STEPS },
        is_shared: whose == Whose::Anybodys,
        key: Some(if is_of_callbacks { format!("{key} callbacks") } else { key }),
        by: "hooks".to_owned(),
        // Steps of hooks share the clean-up clock of a canceled run. A callback ends with its retries,
        // whenever there is a node that sends it.
        end_by: view.state.clean_up_until.filter(|_| !is_of_callbacks),
        ..Submission::new(Arc::new(plan), store.document(&view.plan.version).await?, session)
    };
    if is_of_callbacks {
        pass(Point::CallbacksOwed);
    }
    let run = store.submit(submission).await?;
    if is_of_callbacks {
        pass(Point::CallbacksMade);
    }
    Ok(Some(run))
}

fn outcome(view: &RunView, firing: &Firing) -> Outcome {
    let steps = &view.plan.workflow.steps;
    let tasks = view.state.tasks.iter().zip(steps);
    let failed = tasks.filter(|(task, _)| task.status == TaskStatus::Failed);
    Outcome {
        run: firing.end.run,
        workflow: firing.ended.workflow.clone(),
        status: firing.ended.status,
        reason: view.state.reason.clone().unwrap_or_default(),
        failed: failed.map(|(_, step)| step.name.clone()).take(MAX_FAILED).collect(),
    }
}
