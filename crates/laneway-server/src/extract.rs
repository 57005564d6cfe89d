//! From a request to values, with refusals that are problems. Limits come before parsing: a body is counted while it is
//! read, and what is too long is never looked at.

use axum::body::{Bytes, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::access::PATIENCE;
use crate::problem::{Code, Problem};

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

/// Any bytes, at most `MOST` of them.
#[derive(Debug)]
pub(crate) struct Raw<const MOST: usize>(pub(crate) Vec<u8>);

impl<S: Send + Sync, const MOST: usize> FromRequest<S> for Raw<MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        Ok(Self(counted(request, MOST).await?.into()))
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

impl<S: Send + Sync, T: DeserializeOwned, const MOST: usize> FromRequest<S> for Body<T, MOST> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let kind = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let is_json =
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        let bytes = counted(request, MOST).await?;
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

/// The body, unless it has too many bytes: then it is not read to its end.
async fn counted(request: Request, most: usize) -> Result<Bytes, Problem> {
    let too_large = || Problem::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"));
    let told = request.headers().get(header::CONTENT_LENGTH);
    let told = told.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if told.is_some_and(|told| told > most as u64) {
        return Err(too_large());
    }
    // A change goes on when `front` has given it up, but nobody may keep a line for ever by sending slowly.
    let read = timeout(PATIENCE, to_bytes(request.into_body(), most)).await;
    let read = read.map_err(|_| Problem::new(Code::TimedOut, "the body took too long"))?;
    read.map_err(|error| {
        // Either it is longer than that, or the line broke, and then nobody reads this.
        tracing::debug!(%error, "a body could not be read");
        too_large()
    })
}
