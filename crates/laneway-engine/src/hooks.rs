//! Starts the hooks of runs that have ended: a run of their own, with how the other ended as its input. Each end starts them
//! once, whoever looks: they are submitted under a key made of that end, and what is owed is crossed off afterwards.

use std::sync::Arc;

use laneway_core::hook::Outcome;
use laneway_core::id::{RunId, SessionId};
use laneway_core::state::TaskStatus;
use laneway_store::model::{RunView, Submission};
use laneway_store::trigger::Firing;
use laneway_store::{Error, Store};

/// Who runs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Any node.
    Anybodys,
    /// The session that submits them, as the run itself was its own.
    Mine,
}

/// Names of steps that failed, of those that hooks are told: a variable holds 128 KiB on Linux, and a name 100 bytes.
const MAX_FAILED: usize = 1_000;

/// They run one after the other.
const MAX_PARALLEL: u32 = 1;

/// Submits the hooks for an end of a run. `None` if there are none any more; the caller crosses the end off.
pub async fn submit(
    store: &dyn Store,
    firing: &Firing,
    session: SessionId,
    whose: Whose,
) -> Result<Option<RunId>, Error> {
    let view = store.run(firing.end.run).await?;
    let Some(plan) = view.plan.hooks_at(firing.ended.status) else { return Ok(None) };
    let document = store.document(&view.plan.version).await?;
    let params = outcome(&view, firing).params(view.state.params.clone());
    let submission = Submission {
        plan: Arc::new(plan),
        document,
        dir: view.dir,
        bundle: view.bundle,
        params,
        max_parallel: MAX_PARALLEL,
        session,
        is_shared: whose == Whose::Anybodys,
        is_paused: false,
        key: Some(format!("hooks of {} ({})", firing.end.run, firing.end.seq)),
        by: "hooks".to_owned(),
        origin: None,
        parent: None,
        no_cache: false,
        // The clock of a canceled run began with the cancel, and goes on for these.
        end_by: view.state.clean_up_until,
        not_before: None,
    };
    store.submit(submission).await.map(Some)
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
