//! What a remote worker is given and told. Nothing of it is remembered: what it holds and does not name was in an answer
//! that it never got, and is given again.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use laneway_engine::remote::{self, Unready};
use laneway_store::model::{Ask, Claim, Finished, RemoteView};
use laneway_store::{ClaimRef, Error};
use tokio::time::Instant;

use super::{Worker, is_about_a_run};
use crate::access::Caller;
use crate::extract::{Body, Path};
use crate::problem::Answer;
use crate::service::App;
use crate::wire::{self, ClaimWord, millis};

/// How often a task for a remote worker takes new passages before it is handed out late: a service
/// whose requests take longer than a passage would give it back for ever.
const MAX_PASSAGES: u32 = 8;

/// Tasks of one answer.
const MOST: u32 = 100;

/// How long an answer may wait for something to tell.
const MAX_WAIT: u32 = 30;

/// Hints come in crowds, and each look is a question to the store.
const PAUSE: Duration = Duration::from_millis(10);

/// How soon a worker hears that something of it takes too long: nothing is committed when that happens.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn claim(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::AskForWork, { super::OUTPUT }>,
) -> Answer<Json<wire::Work>> {
    // Before the first look: what comes behind that is not missed.
    let mut changes = app.store.changes();
    let until = Instant::now() + Duration::from_secs(asked.wait.min(MAX_WAIT).into());
    let (worker, mut view) = Worker::known(app, &caller, &session).await?;
    loop {
        let work = look(&worker, &view, &asked).await?;
        let has_news = !(work.tasks.is_empty() && work.stops.is_empty() && work.lost.is_empty());
        if has_news || Instant::now() >= until || worker.app.stop.is_cancelled() {
            return Ok(Json(work));
        }
        let patience = worker.app.store.max_poll_interval();
        let patience = if view.held.is_empty() { patience } else { patience.min(LOOK) };
        tokio::select! {
            _ = changes.changed() => tokio::time::sleep(PAUSE).await,
            () = tokio::time::sleep_until(until.min(Instant::now() + patience)) => {}
            // Nobody is waited for when the service ends.
            () = worker.app.stop.cancelled() => {}
        }
        view = worker.view().await?;
    }
}

async fn look(worker: &Worker, view: &RemoteView, asked: &wire::AskForWork) -> Answer<wire::Work> {
    let store = worker.app.store.as_ref();
    let held: Vec<ClaimWord> = view.held.iter().map(|(claim, _)| ClaimWord::of(claim)).collect();
    let mut work = wire::Work {
        lost: asked.holding.iter().filter(|claim| !held.contains(claim)).copied().collect(),
        stops: stops(worker, view).await?,
        is_draining: view.is_draining,
        tasks: Vec::new(),
    };
    // Of what it does not know it is told nothing: it could do nothing about it but ask again.
    work.stops.retain(|stop| asked.holding.contains(&stop.claim) && !asked.stopping.contains(&stop.claim));
    let wanted = asked.max.min(MOST) as usize;
    let mut claims = Vec::new();
    for (claim, started_at) in &view.held {
        let is_unknown = started_at.is_none() && !asked.holding.contains(&ClaimWord::of(claim));
        if is_unknown && claims.len() < wanted {
            match store.head(claim.run).await {
                Ok(head) => claims.push(Claim { at: *claim, head, start_by: None, is_bound: false }),
                Err(error) if is_about_a_run(&error) => leave(worker, *claim, &error).await?,
                Err(error) => return Err(Worker::refusal(error)),
            }
        }
    }
    let limit = wanted.saturating_sub(claims.len());
    if limit > 0 && !view.is_draining {
        let ask = Ask { session: worker.session, run: None, limit, ahead: 0 };
        let taken = store.claim(ask).await.map_err(Worker::refusal)?;
        let has_to_pass_again = |claim: &Claim| claim.is_late() && claim.at.given_back() < MAX_PASSAGES;
        let (late, taken): (Vec<Claim>, Vec<Claim>) = taken.into_iter().partition(has_to_pass_again);
        if !late.is_empty() {
            let late = late.into_iter().map(|claim| claim.at).collect();
            store.give_back(late).await.map_err(Worker::refusal)?;
        }
        claims.extend(taken);
    }
    for claim in &claims {
        work.tasks.extend(task(worker, claim).await?);
    }
    Ok(work)
}

/// Of its run something cannot be read, and only a change sets it aside: this one does, or returns the claim if it can be read
/// after all. The worker is given the others.
async fn leave(worker: &Worker, claim: ClaimRef, error: &Error) -> Answer<()> {
    tracing::warn!(run = %claim.run, "a task is not given to a remote worker: {error}");
    match worker.app.store.give_back(vec![claim]).await {
        Ok(_) => Ok(()),
        Err(error) if is_about_a_run(&error) => Ok(()),
        Err(error) => Err(Worker::refusal(error)),
    }
}

/// A claim as the worker gets it. One that can never be done ends here.
async fn task(worker: &Worker, claim: &Claim) -> Answer<Option<wire::WorkerTask>> {
    let store = worker.app.store.as_ref();
    let task = match remote::task(store, claim).await {
        Ok(task) => task,
        // It is held, and given with the next answer.
        Err(Unready::Store(error)) => return Err(error.into()),
        Err(Unready::Ended(outcome)) => {
            let ended = Finished::new(claim.at, outcome, Duration::ZERO);
            store.finish(vec![ended], None).await.map_err(Worker::refusal)?;
            return Ok(None);
        }
    };
    Ok(Some(wire::WorkerTask {
        claim: ClaimWord::of(&task.claim),
        run: task.claim.run,
        workflow: task.workflow,
        step: task.step,
        attempt: task.claim.attempt,
        queue: task.queue,
        input: task.input,
        params: task.params,
        timeout_ms: task.timeout.map(millis),
        fence: task.fence,
    }))
}

/// What it is to stop: what the store says, and what takes longer than it may.
pub(super) async fn stops(worker: &Worker, view: &RemoteView) -> Answer<Vec<wire::StopTask>> {
    let mut timeouts: HashMap<ClaimRef, Duration> = HashMap::new();
    for (claim, _) in view.held.iter().filter(|(_, started_at)| started_at.is_some()) {
        match worker.app.store.head(claim.run).await {
            Ok(head) => {
                let step = head.plan.step_at(claim.position);
                timeouts.extend(step.and_then(|step| step.timeout).map(|timeout| (*claim, timeout)));
            }
            // How long it may take nobody knows any more.
            Err(error) if is_about_a_run(&error) => {}
            Err(error) => return Err(Worker::refusal(error)),
        }
    }
    let stops = remote::stops(view, |claim| timeouts.get(claim).copied());
    let word = |stop: &laneway_store::model::Stop| wire::StopTask {
        claim: ClaimWord::of(&stop.claim),
        reason: stop.reason.as_str().to_owned(),
    };
    Ok(stops.iter().map(word).collect())
}
