//! Remote workers: they register, ask for work, renew, and say what became of it. A session belongs to the token with
//! which it was registered; to every other it is not there. All that is known of it is the store's, so any node serves it.

mod effects;
mod ends;
mod work;

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use laneway_core::class::{Offer, is_label};
use laneway_core::id::SessionId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_engine::log::{self, NotAdded};
use laneway_store::model::{LogName, NewSession, RemoteView, Tally};
use laneway_store::{ClaimRef, Error, Fate};

pub(crate) use effects::{begin as begin_effect, commit as commit_effect};
pub(crate) use ends::{finish, give_back, start};
pub(crate) use work::claim;

use crate::access::Caller;
use crate::extract::{Body, Path};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire::{self, ClaimWord, millis};

/// Bodies with output in them.
pub(super) const OUTPUT: usize = 1024 * 1024;

/// What one worker may say of itself.
const MAX_SLOTS: u32 = 10_000;
const MAX_QUEUES: usize = 100;

/// The most that it can have done of anything. Figures of many workers are added up, and what a database adds has a limit.
const MAX_COUNT: u64 = 1_000_000_000_000_000;

/// Who speaks, as every one of these routes needs it.
pub(super) struct Worker {
    pub(super) app: App,
    pub(super) session: SessionId,
    token: String,
}

impl Worker {
    pub(super) async fn known(app: App, caller: &Caller, session: &str) -> Answer<(Self, RemoteView)> {
        let session = SessionId::parse(session).ok_or_else(no_session)?;
        let worker = Self { app, session, token: caller.token.clone() };
        let view = worker.view().await?;
        Ok((worker, view))
    }

    /// The session, if it is that of this token, which may have been revoked while somebody waited.
    pub(super) async fn view(&self) -> Answer<RemoteView> {
        let token = self.app.store.token(&self.token).await?;
        if !token.is_some_and(|token| token.is_live(Duration::ZERO)) {
            return Err(Problem::new(Code::BadToken, "the token is not known, or was revoked"));
        }
        let view = self.app.store.remote(self.session).await?;
        view.filter(|view| view.token == self.token).ok_or_else(no_session)
    }

    /// Returns the claim that a word means, or `None` if no worker can hold it.
    pub(super) async fn claim(&self, word: ClaimWord) -> Answer<Option<ClaimRef>> {
        // Claims that were given back count as generations, not as attempts.
        if word.generation < word.attempt {
            return Ok(None);
        }
        let head = match self.app.store.head(word.run).await {
            Ok(head) => head,
            Err(Error::NoSuchRun { .. }) => return Ok(None),
            // The verb that is said next meets the same, and sets the run aside.
            Err(error) if is_about_a_run(&error) => return Ok(Some(word.held_by(self.session))),
            Err(error) => return Err(error.into()),
        };
        let is_task = head.plan.base(word.position).is_some();
        Ok(is_task.then(|| word.held_by(self.session)))
    }

    /// An error of the store, as this worker is told of it.
    pub(super) fn refusal(error: Error) -> Problem {
        match error {
            Error::SessionOver { .. } => no_session(),
            error => error.into(),
        }
    }
}

/// Whether an error is about a run. Any other is about the store: nothing was recorded, and it may be said again.
pub(super) fn is_about_a_run(error: &Error) -> bool {
    matches!(
        error,
        Error::SetAside { .. } | Error::Unreadable { .. } | Error::Illegal { .. } | Error::NoSuchRun { .. }
    )
}

fn no_session() -> Problem {
    Problem::new(Code::NoSuchSession, "this token has no such session, or it is over").hint("register anew")
}

pub(crate) async fn register(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(asked): Body<wire::Register>,
) -> Answer<impl IntoResponse> {
    let wire::Register { name, queues, slots, labels, pid } = asked;
    let bad = |what: &str| Problem::new(Code::Unprocessable, what.to_owned());
    let word = "1 to 100 letters, digits and `_ - . / :`";
    if !is_label(&name) {
        return Err(bad(&format!("`name` must be {word}")));
    }
    if queues.is_empty() || queues.len() > MAX_QUEUES || !queues.iter().all(|queue| is_label(queue)) {
        return Err(bad(&format!("`queues` must be 1 to {MAX_QUEUES} names, each {word}")));
    }
    if !labels.iter().all(|(name, value)| is_label(name) && is_label(value)) {
        return Err(bad(&format!("names and values of `labels` must be {word}")));
    }
    if !(1..=MAX_SLOTS).contains(&slots) {
        return Err(bad(&format!("`slots` must be 1 to {MAX_SLOTS}")));
    }
    let queues = queues.into_iter().collect();
    let offer = Offer { node: name.clone(), labels, has_process: false, queues, ..Offer::default() };
    let node = NewSession {
        pid,
        offer: Some(offer),
        lease: app.remote.lease,
        token: Some(caller.token.clone()),
        ..NewSession::ephemeral(name.clone(), slots)
    };
    let session = app.store.register(node).await?;
    app.record(&caller, "register_worker", format!("worker {name}, session {session}")).await?;
    let registered = wire::Registered {
        session,
        lease_ms: millis(app.remote.lease.ttl),
        renew_every_ms: millis(app.remote.lease.every),
        kill_grace_ms: millis(app.remote.kill_grace),
    };
    Ok((StatusCode::CREATED, Json(registered)))
}

pub(crate) async fn renew(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(told): Body<wire::Renew>,
) -> Answer<Json<wire::RenewedWorker>> {
    let (worker, _) = Worker::known(app, &caller, &session).await?;
    let wire::Renew { asks, claims, succeeded, failed, canceled, returned, lost } = told;
    if [asks, claims, succeeded, failed, canceled, returned, lost].into_iter().any(|count| count > MAX_COUNT)
    {
        return Err(Problem::new(Code::Unprocessable, format!("no count may be greater than {MAX_COUNT}")));
    }
    // How long its starts take it does not say.
    let tally = Tally { asks, claims, succeeded, failed, canceled, returned, lost, ..Tally::default() };
    worker.app.store.renew(worker.session, tally).await.map_err(Worker::refusal)?;
    let view = worker.view().await?;
    Ok(Json(wire::RenewedWorker {
        lease_ms: millis(view.lease),
        held: view.held.iter().map(|(claim, _)| ClaimWord::of(claim)).collect(),
        stops: work::stops(&worker, &view).await?,
        is_draining: view.is_draining,
    }))
}

pub(crate) async fn log(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
    Body(asked): Body<wire::AddToLog, OUTPUT>,
) -> Answer<Json<wire::AddedToLog>> {
    let (worker, view) = Worker::known(app, &caller, &session).await?;
    let lost = wire::AddedToLog { fate: wire::LogFate::Lost, next_offset: asked.offset, is_full: false };
    let claim = worker.claim(asked.claim).await?;
    // The fence is asked again where it is written; this one keeps those out who hold nothing of the run.
    let started_at = |claim: &ClaimRef| view.held.iter().find(|(held, _)| held == claim).map(|(_, at)| *at);
    let Some((claim, started_at)) = claim.and_then(|claim| started_at(&claim).map(|at| (claim, at))) else {
        return Ok(Json(lost));
    };
    let store = worker.app.store.as_ref();
    // What prints has begun: a log is of an attempt, and a claim that is given back leaves none.
    if started_at.is_none() && store.start(vec![claim]).await.map_err(Worker::refusal)? == [Fate::ClaimLost] {
        return Ok(Json(lost));
    }
    let step = match store.head(claim.run).await {
        Ok(head) => head.plan.task_name(claim.position),
        Err(error) if is_about_a_run(&error) => return Ok(Json(lost)),
        Err(error) => return Err(Worker::refusal(error)),
    };
    let of = LogName { run: claim.run, step, attempt: claim.attempt };
    let output: Vec<_> = asked
        .pieces
        .into_iter()
        .map(|piece| match piece.stream {
            wire::OutputStream::Stdout => (log::Stream::Stdout, piece.text.into_bytes()),
            wire::OutputStream::Stderr => (log::Stream::Stderr, piece.text.into_bytes()),
        })
        .collect();
    let added = match log::add(store, claim, &of, asked.offset, &output).await {
        Ok(added) => added,
        Err(NotAdded::Store(error)) => return Err(Worker::refusal(error)),
        Err(NotAdded::Elsewhere { next }) => {
            let fate = wire::LogFate::Elsewhere;
            return Ok(Json(wire::AddedToLog { fate, next_offset: next, is_full: false }));
        }
        Err(NotAdded::Log(error)) => {
            tracing::error!(%error, "a log cannot be added to");
            return Err(Problem::new(Code::Unreadable, "the log cannot be added to"));
        }
    };
    let fate = match added.fate {
        Fate::Recorded | Fate::Repeated => wire::LogFate::Recorded,
        Fate::ClaimLost => return Ok(Json(lost)),
    };
    Ok(Json(wire::AddedToLog { fate, next_offset: added.next, is_full: added.is_full }))
}

pub(crate) async fn leave(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(session): Path<String>,
) -> Answer<Json<wire::Left>> {
    let (worker, view) = Worker::known(app, &caller, &session).await?;
    let (store, session) = (&worker.app.store, worker.session);
    store.retire(session, Leaving::because(LeaveReason::Signal)).await.map_err(Worker::refusal)?;
    worker.app.record(&caller, "leave", format!("worker {}, session {session}", view.node)).await?;
    Ok(Json(wire::Left { session, returned: view.held.len() }))
}
