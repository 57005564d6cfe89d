//! What a remote worker says of its tasks: begun, given back, ended. Many at once, each for itself: one that is lost, or
//! cannot be written, takes nothing of the others with it.

use std::future::Future;
use std::time::Duration;

use axum::extract::State;
use axum::{Extension, Json};
use laneway_core::output;
use laneway_core::reason::Reason;
use laneway_store::model::{Finished, Outcome, RemoteView};
use laneway_store::{ClaimRef, Fate};

use super::{Worker, is_about_a_run};
use crate::access::Caller;
use crate::extract::{Body, LARGE, Path};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire::{self, ClaimFate, ClaimWord, EndReason, FateWord, TaskEnd};

/// What is said at once.
const MOST: usize = 1_000;

/// Why something failed is told in lists: its end is what matters, and the log has all of it.
const MAX_DETAIL: usize = 4_000;

/// The most milliseconds that a task may have taken: a database adds them up.
const MAX_TOOK_MS: u64 = 1_000_000_000_000_000;

pub(crate) async fn start(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::Claims, LARGE>,
) -> Answer<Json<wire::Fates>> {
    let (worker, _) = Worker::known(app, &caller, &session).await?;
    let store = &worker.app.store;
    let claims = claims(&worker, asked.claims).await?;
    Ok(Json(wire::Fates { results: each(claims, |claims| store.start(claims)).await? }))
}

pub(crate) async fn give_back(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::Claims, LARGE>,
) -> Answer<Json<wire::Fates>> {
    let (worker, _) = Worker::known(app, &caller, &session).await?;
    let store = &worker.app.store;
    let claims = claims(&worker, asked.claims).await?;
    Ok(Json(wire::Fates { results: each(claims, |claims| store.give_back(claims)).await? }))
}

pub(crate) async fn finish(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::FinishTasks, LARGE>,
) -> Answer<Json<wire::Fates>> {
    let (worker, view) = Worker::known(app, &caller, &session).await?;
    few(asked.results.len())?;
    let mut ends = Vec::with_capacity(asked.results.len());
    for result in asked.results {
        let word = result.claim;
        let outcome = outcome(&result, &view)?;
        let claim = worker.claim(word).await?;
        let took = took(&result, &view);
        ends.push((word, claim.map(|claim| Finished::new(claim, outcome, took))));
    }
    let store = &worker.app.store;
    let said = |ends| async move { Ok(store.finish(ends, None).await?.fates) };
    let mut results = each(ends, said).await?;
    for result in results.iter_mut().filter(|result| result.fate == FateWord::Repeated) {
        committed(&worker, result).await?;
    }
    Ok(Json(wire::Fates { results }))
}

/// How an end that was said before was recorded.
async fn committed(worker: &Worker, result: &mut ClaimFate) -> Answer<()> {
    let (store, claim) = (&worker.app.store, result.claim);
    let head = store.head(claim.run).await?;
    let attempts = store.attempts(claim.run, &head.plan.task_name(claim.position)).await?;
    if let Some(attempt) = attempts.iter().find(|attempt| attempt.attempt == claim.attempt) {
        result.status = Some(attempt.outcome.clone());
        result.detail = attempt.detail.clone().or_else(|| attempt.reason.map(|reason| reason.to_string()));
    }
    Ok(())
}

/// The end of a task, as the store knows it.
fn outcome(result: &wire::TaskResult, view: &RemoteView) -> Answer<Outcome> {
    let failed = |reason, detail| Outcome::Failed { reason, detail, exit_code: result.exit_code };
    Ok(match result.status {
        TaskEnd::Succeeded => {
            // By the rules that hold for what a program writes.
            let text = serde_json::to_vec(&result.output).unwrap_or_default();
            match output::parse(&text) {
                Ok(output) => Outcome::Succeeded { output },
                Err(error) => failed(Reason::BadOutput, error.to_string()),
            }
        }
        TaskEnd::Failed => {
            let reason = reason(result.reason)?;
            let detail = result.detail.as_deref().unwrap_or("the worker did not say why");
            failed(reason, clipped(detail))
        }
        TaskEnd::Canceled => {
            let claim = result.claim.held_by(view.session);
            match view.stops.iter().find(|stop| stop.claim == claim) {
                Some(stop) => Outcome::Canceled { reason: stop.reason },
                None if result.reason == Some(EndReason::Timeout) => {
                    failed(Reason::Timeout, "it took longer than it may".to_owned())
                }
                // Nobody asked for it, so that is how it ended.
                None => failed(Reason::Error, "its worker stopped it by itself".to_owned()),
            }
        }
    })
}

fn reason(word: Option<EndReason>) -> Answer<Reason> {
    word.map_or(Some(Reason::Error), EndReason::of_failure).ok_or_else(|| {
        let detail =
            "`reason` of a task that failed is error, exit, signal, timeout, start_failed or bad_output";
        Problem::new(Code::Unprocessable, detail)
    })
}

/// Databases choke on a NUL, and nobody reads a novel.
fn clipped(detail: &str) -> String {
    let clean: String = detail.chars().filter(|c| *c != '\0').take(MAX_DETAIL + 1).collect();
    match clean.char_indices().nth(MAX_DETAIL) {
        Some((end, _)) => format!("{}…", &clean[..end]),
        None => clean,
    }
}

fn took(result: &wire::TaskResult, view: &RemoteView) -> Duration {
    let claim = result.claim.held_by(view.session);
    let started_at = view.held.iter().find(|(held, _)| *held == claim).and_then(|(_, at)| *at);
    let seen = started_at.map(|at| view.observed_at.since(at)).unwrap_or_default();
    result.took_ms.map_or(seen, |took_ms| Duration::from_millis(took_ms.min(MAX_TOOK_MS)))
}

fn few(count: usize) -> Answer<()> {
    if count > MOST {
        return Err(Problem::new(Code::Unprocessable, format!("at most {MOST} are said at once")));
    }
    Ok(())
}

async fn claims(worker: &Worker, words: Vec<ClaimWord>) -> Answer<Vec<(ClaimWord, Option<ClaimRef>)>> {
    few(words.len())?;
    let mut claims = Vec::with_capacity(words.len());
    for word in words {
        claims.push((word, worker.claim(word).await?));
    }
    Ok(claims)
}

/// Says all of them at once, and each for itself where that is refused: a run that was set aside is nobody else's matter.
async fn each<T, F>(items: Vec<(ClaimWord, Option<T>)>, say: impl Fn(Vec<T>) -> F) -> Answer<Vec<ClaimFate>>
where
    T: Clone,
    F: Future<Output = laneway_store::Result<Vec<Fate>>>,
{
    let good: Vec<T> = items.iter().filter_map(|(_, item)| item.clone()).collect();
    let mut fates: Vec<Result<Fate, String>> = Vec::with_capacity(good.len());
    match say(good.clone()).await {
        Ok(said) => fates.extend(said.into_iter().map(Ok)),
        Err(error) if !is_about_a_run(&error) => return Err(error.into()),
        Err(error) if good.len() == 1 => fates.push(Err(refused(error))),
        Err(_) => {
            for one in good {
                match say(vec![one]).await {
                    Ok(said) => fates.extend(said.into_iter().map(Ok)),
                    Err(error) if !is_about_a_run(&error) => return Err(error.into()),
                    Err(error) => fates.push(Err(refused(error))),
                }
            }
        }
    }
    let mut fates = fates.into_iter();
    let fate = |(word, item): &(ClaimWord, Option<T>)| match item.as_ref().and_then(|_| fates.next()) {
        Some(Ok(fate)) => ClaimFate::new(*word, fate.into()),
        Some(Err(detail)) => ClaimFate { detail: Some(detail), ..ClaimFate::new(*word, FateWord::Refused) },
        None => ClaimFate::new(*word, FateWord::Lost),
    };
    Ok(items.iter().map(fate).collect())
}

fn refused(error: laneway_store::Error) -> String {
    Worker::refusal(error).detail
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_cut_where_a_character_ends() {
        assert_eq!(clipped("a\0b"), "ab");
        let long = "é".repeat(MAX_DETAIL + 1);
        assert_eq!(clipped(&long).chars().count(), MAX_DETAIL + 1);
        assert!(clipped(&long).ends_with('…'));
    }
}
