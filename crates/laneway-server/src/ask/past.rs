//! A run as it was: its events up to one of them, folded through the functions that made them.

use laneway_core::event::Event;
use laneway_core::id::RunId;
use laneway_core::run_state;
use laneway_store::Store;

use crate::problem::{Answer, Code, Problem};
use crate::wire;

const PAGE: usize = 5_000;

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
    let events = events(store, run, at).await?;
    let plan = view.plan;
    // On a thread of its own: a long history takes its time, and others are asking.
    let folded = tokio::task::spawn_blocking(move || {
        run_state::replay(plan.workflow.steps.iter().map(|step| step.name.as_str()), &events)
    });
    let state = match folded.await {
        Ok(Ok(state)) => state,
        Ok(Err(broken)) => {
            let what = format!("the history of run {} cannot have happened: {broken}", run.short());
            let hint =
                format!("`laneway doctor` says more; `laneway replay {}` compares all of it", run.short());
            return Err(Problem::new(Code::Unreadable, what).hint(hint));
        }
        Err(error) => {
            tracing::error!(%run, %error, "a history could not be folded");
            return Err(Problem::new(Code::Internal, "something inside went wrong; the log says what"));
        }
    };
    Ok(wire::Run::past(&state, view.dir, view.submitted_by))
}

async fn events(store: &dyn Store, run: RunId, at: u64) -> laneway_store::Result<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(0, |event| event.seq);
        let page = store.events_since(run, after, PAGE).await?;
        let is_last = page.is_empty() || page.last().is_some_and(|event| event.seq >= at);
        all.extend(page.into_iter().take_while(|event| event.seq <= at));
        if is_last {
            return Ok(all);
        }
    }
}
