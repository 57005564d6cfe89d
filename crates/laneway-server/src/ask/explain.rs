//! Why a task waits, in the gate keeper's own words, and what it waits for through whatever waits itself.

use std::collections::HashMap;

use laneway_core::cause::{self, Link};
use laneway_core::definition::Workspace;
use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_store::layer::Layer;
use laneway_store::model::RunView;
use laneway_store::{Error, Result, Store};

use super::container::housed;
use crate::wire;

pub async fn explain_run(store: &dyn Store, run: RunId) -> Result<wire::ExplainedRun> {
    Ok(wire::ExplainedRun::from(&store.run(run).await?))
}

pub async fn explain_step(store: &dyn Store, run: RunId, step: &str) -> Result<wire::ExplainedStep> {
    // Asked first: it refuses a step that the run does not have.
    let attempts = store.attempts(run, step).await?;
    let view = store.run(run).await?;
    let mut tasks = view.state.tasks.iter().zip(view.causes.iter().map(Option::as_ref));
    let Some(found) = tasks.find(|(task, _)| task.step == step) else {
        return Err(Error::NoSuchStep { run, step: step.to_owned(), nearest: None });
    };
    let chain = chain(store, &view, step).await?;
    // Of an attempt that took a result nothing is to be said of those before it.
    let missed = store.missed(run, step).await?.filter(|missed| missed.attempt == found.0.attempt);
    let mut explained = wire::ExplainedStep::new(&view, found, &chain, &attempts, missed.as_ref());
    explained.files = files(store, run, step).await?;
    explained.container = housed(store, (run, &view.plan), step, &mut explained.attempts).await?;
    Ok(explained)
}

/// The layers that a step saw, and its own. `None` for a run whose files do not follow it.
async fn files(store: &dyn Store, run: RunId, step: &str) -> Result<Option<wire::StepFiles>> {
    let head = store.head(run).await?;
    let plan = &head.plan;
    let Some(position) = plan.position(step) else { return Ok(None) };
    if head.bundle.is_none() || plan.workflow.workspace != Workspace::Follow {
        return Ok(None);
    }
    let layers = store.layers(run).await?;
    let told = |layer: &Layer| wire::StepLayer {
        step: plan.task_name(layer.position),
        attempt: layer.attempt,
        paths: layer.paths,
        bytes: layer.bytes,
        node: layer.node.clone(),
    };
    let sources = plan.file_sources(position);
    let place = |layer: &Layer| Some((sources.place(plan.base(layer.position)?)?, layer.position));
    let mut saw: Vec<_> = layers.iter().filter_map(|layer| Some((place(layer)?, layer))).collect();
    saw.sort_unstable_by_key(|(place, _)| *place);
    Ok(Some(wire::StepFiles {
        saw: saw.into_iter().map(|(_, layer)| told(layer)).collect(),
        left: layers.iter().find(|layer| layer.position == position).map(told),
    }))
}

async fn chain(store: &dyn Store, view: &RunView, step: &str) -> Result<Vec<Link>> {
    let run = view.state.run;
    let mut others: HashMap<RunId, RunView> = HashMap::new();
    loop {
        let mut unknown = None;
        let chain = cause::chain(run, step, |at, step| {
            let view = if at == run { Some(view) } else { others.get(&at) };
            if view.is_none() {
                unknown.get_or_insert(at);
            }
            let view = view?;
            let place = match parse_name(step) {
                (_, None) => view.plan.position(step)? as usize,
                // Items stand behind the steps, as many as there are by now.
                (_, Some(_)) => view.state.tasks.iter().position(|task| task.step == step)?,
            };
            view.causes.get(place).cloned().flatten()
        });
        match unknown {
            None => return Ok(chain),
            Some(other) => {
                others.insert(other, store.run(other).await?);
            }
        }
    }
}
