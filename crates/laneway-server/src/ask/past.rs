//! A run as it was: its events up to one of them, folded through the functions that made them.

use laneway_core::id::RunId;
use laneway_core::run_state::{Broken, Replay, RunState};
use laneway_store::Store;
use laneway_store::model::RunView;

use crate::problem::{Answer, Code, Problem};
use crate::wire;

/// Events that are folded at once: less than a millisecond, so that others who ask need not wait.
const PAGE: usize = 500;

/// The run as it was after event `at`. Nothing is executed and nothing changed. What stands in no event is left out: why a task
/// waited, and whether its owner lived.
pub async fn run_at(store: &dyn Store, run: RunId, at: u64) -> Answer<wire::Run> {
    let view = store.run(run).await?;
    let last = view.state.last_event;
    if at == 0 || at > last {
        let what = format!("run {} has no event {at}", run.short());
        let hint = format!("its events are numbered from 1 to {last}: `laneway events {}`", run.short());
        return Err(Problem::new(Code::NoSuchEvent, what).hint(hint));
    }
    let state = fold(store, &view, at).await?.map_err(|broken| {
        let what = format!("the history of run {} cannot have happened: {broken}", run.short());
        let hint = format!("`laneway doctor` says more; `laneway replay {}` compares all of it", run.short());
        Problem::new(Code::Unreadable, what).hint(hint)
    })?;
    Ok(wire::Run::past(&view, &state))
}

async fn fold(store: &dyn Store, view: &RunView, at: u64) -> laneway_store::Result<Result<RunState, Broken>> {
    let mut replay = Replay::new(view.plan.workflow.steps.iter().map(|step| step.name.as_str()));
    let mut after = 0;
    while after < at {
        let mut page = store.events_since(view.state.run, after, PAGE).await?;
        page.retain(|event| event.seq <= at);
        let Some(last) = page.last() else { break };
        after = last.seq;
        if let Err(broken) = replay.go_on(&page) {
            return Ok(Err(broken));
        }
    }
    Ok(replay.end())
}
