//! From a request to values, with refusals that are problems. Limits come before parsing: a body is counted while it is
//! read, and what is too long is never looked at.

use std::sync::Arc;

use axum::body::{Body as Incoming, HttpBody as _};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::access::Caller;
use crate::problem::{Code, Problem};
use crate::service::App;

/// Bodies that hold no document.
pub(crate) const SMALL: usize = 64 * 1024;

/// With what may become an output, however it is escaped.
pub(crate) const MEDIUM: usize = 8 * laneway_core::output::LIMIT;

/// Those that do, with what JSON adds to it.
pub(crate) const LARGE: usize = laneway_core::definition::MAX_BYTES + laneway_core::definition::MAX_BYTES / 4;

/// The parts of the address that stand for something.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        without_nul(parts)?;
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        let bad = |refused: PathRejection| Problem::new(Code::BadRequest, refused.body_text());
        read.map(|axum::extract::Path(value)| Self(value)).map_err(bad)
    }
}

/// What stands behind the `?`.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        without_nul(parts)?;
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        let bad = |refused: QueryRejection| Problem::new(Code::BadRequest, refused.body_text());
        read.map(|axum::extract::Query(value)| Self(value)).map_err(bad)
    }
}

/// Any bytes, at most `MOST` of them, with their share of what strangers may send.
#[derive(Debug)]
pub(crate) struct Raw<const MOST: usize> {
    pub(crate) bytes: Vec<u8>,
    _share: Option<Share>,
}

impl<const MOST: usize> FromRequest<App> for Raw<MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let (bytes, _share) = counted(request, app, MOST).await?;
        Ok(Self { bytes: bytes.into(), _share })
    }
}

/// No name has one, and a database may choke on it.
fn without_nul(parts: &Parts) -> Result<(), Problem> {
    if parts.uri.path().contains("%00") || parts.uri.query().is_some_and(|query| query.contains("%00")) {
        return Err(Problem::new(Code::BadRequest, "there is a zero byte in the address"));
    }
    Ok(())
}

/// A body of JSON with at most `MOST` bytes. Nothing at all stands for `{}`.
#[derive(Debug)]
pub(crate) struct Body<T, const MOST: usize = SMALL>(pub(crate) T);

impl<T: DeserializeOwned, const MOST: usize> FromRequest<App> for Body<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        let kind = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let is_json =
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        let (bytes, _share) = counted(request, app, MOST).await?;
        if !is_json && !bytes.is_empty() {
            return Err(Problem::new(Code::NotJson, "the body is not said to be JSON")
                .hint("send it with `Content-Type: application/json`"));
        }
        let bytes = if bytes.is_empty() { &b"{}"[..] } else { &bytes };
        // Fields would be read from a list, too, in the order in which they are declared.
        if bytes.trim_ascii_start().first() != Some(&b'{') {
            return Err(Problem::new(Code::BadBody, "the body is no JSON object"));
        }
        let value = serde_json::from_slice(bytes);
        value
            .map(Self)
            .map_err(|error| Problem::new(Code::BadBody, format!("the body cannot be read: {error}")))
    }
}

/// Reads the body, and refuses one that has more than `most` bytes or takes too long. Without a token it also has to fit into what
/// all such bodies may take together.
async fn counted(request: Request, app: &App, most: usize) -> Result<(BytesMut, Option<Share>), Problem> {
    let told = request.headers().get(header::CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > most as u64) {
        return Err(too_large(most));
    }
    let is_stranger = request.extensions().get::<Caller>().is_none();
    let share = is_stranger.then(|| Share { bodies: Arc::clone(&app.strangers_bodies), held: None });
    let deadlines = app.deadlines;
    let deadline = if is_stranger { deadlines.strangers_body } else { deadlines.body };
    // A change goes on when `front` has given it up, so the body has a deadline of its own.
    let read = timeout(deadline, collect(request.into_body(), most, share)).await;
    read.map_err(|_| Problem::new(Code::TimedOut, "the body took too long"))?
}

/// Copies the body as it comes: kept frame by frame, a body of many small frames would take a multiple of its length.
async fn collect(
    mut body: Incoming,
    most: usize,
    mut share: Option<Share>,
) -> Result<(BytesMut, Option<Share>), Problem> {
    let mut bytes = BytesMut::new();
    while !body.is_end_stream() {
        let Some(frame) = body.frame().await else { break };
        let frame = frame.map_err(|error| {
            // The connection broke, so this refusal reaches no client.
            tracing::debug!(%error, "a body could not be read");
            Problem::new(Code::BadBody, "the body could not be read to its end")
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if data.len() > most - bytes.len() {
            return Err(too_large(most));
        }
        share.as_mut().map_or(Ok(()), |share| share.grow(bytes.len() + data.len()))?;
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, share))
}

fn too_large(most: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"))
}

/// What all bodies without a token may take together, in KiB.
pub(crate) const STRANGERS_BODIES_KIB: usize = 16 * 1024;

/// The part that one body takes of it. Dropping it gives the part back.
#[derive(Debug)]
struct Share {
    bodies: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Share {
    /// Takes what `bytes` need. Refuses when nothing is left: waiting bodies would hold their parts, and no body would end.
    fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let lacks = u32::try_from(bytes.div_ceil(1024).saturating_sub(held)).unwrap_or(u32::MAX);
        let more = Arc::clone(&self.bodies).try_acquire_many_owned(lacks);
        let more =
            more.map_err(|_| Problem::new(Code::Busy, "too many requests without a token are on their way"))?;
        match &mut self.held {
            Some(held) => held.merge(more),
            held => *held = Some(more),
        }
        Ok(())
    }
}
