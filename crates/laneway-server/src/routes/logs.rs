//! What an attempt printed: as pieces with time and stream, or, for `Accept: application/octet-stream`, as the bytes that
//! came, of which `Range` names some.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use http_range_header::{EndPosition, StartPosition, parse_range_header};
use laneway_core::time::Millis;
use laneway_engine::log::{Frame, Stream};
use laneway_store::Store;
use laneway_store::model::LogName;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::ask;
use crate::extract::{Path, Query};
use crate::logs::{self, Part, Span, Wanted, Written};
use crate::problem::{Answer, Code, Problem};
use crate::service::App;
use crate::wire::{LogPage, LogPiece, Moment};

/// Bytes of one answer, where nobody says how many, and the most.
const PAGE: usize = 64 * 1024;
const MOST: usize = 1024 * 1024;

/// How long an answer may wait for something to come.
const MAX_WAIT: Duration = Duration::from_secs(30);

const NEXT_OFFSET: HeaderName = HeaderName::from_static("laneway-next-offset");
const SIZE: HeaderName = HeaderName::from_static("laneway-size");
const HAS_ENDED: HeaderName = HeaderName::from_static("laneway-has-ended");
const IS_OVER: HeaderName = HeaderName::from_static("laneway-is-over");

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogQuery {
    /// 0, or `next_offset` of an answer
    offset: Option<u64>,
    /// About so many bytes, up to 1048576; 65536 without it
    #[param(minimum = 1, maximum = 1_048_576)]
    limit: Option<usize>,
    /// Wait so many seconds for more, up to 30, if there is nothing yet
    #[param(minimum = 0, maximum = 30)]
    wait: Option<u64>,
}

fn within<T: PartialOrd + Display>(name: &str, value: T, bounds: RangeInclusive<T>) -> Answer<T> {
    if bounds.contains(&value) {
        return Ok(value);
    }
    let (from, to) = bounds.into_inner();
    Err(Problem::new(Code::BadRequest, format!("`{name}` is a number from {from} to {to}")))
}

pub(crate) async fn read(
    State(app): State<App>,
    Path((run, step, attempt)): Path<(String, String, u32)>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Answer<Response> {
    let run = ask::find(app.store.as_ref(), &run).await?;
    let of = LogName { run, step, attempt };
    let is_raw = headers.get(header::ACCEPT).is_some_and(|accept| accept == "application/octet-stream");
    if let Some(span) = span(&headers).filter(|_| is_raw) {
        return some(app.store.as_ref(), &of, span).await;
    }
    let wanted = Wanted {
        of,
        offset: query.offset.unwrap_or(0),
        most: within("limit", query.limit.unwrap_or(PAGE), 1..=MOST)?,
        wait: Duration::from_secs(within("wait", query.wait.unwrap_or(0), 0..=MAX_WAIT.as_secs())?),
    };
    let part = tokio::select! {
        part = logs::read(app.store.as_ref(), wanted.clone()) => part?,
        // Nobody is waited for when the service ends.
        () = app.stop.cancelled() => logs::read(app.store.as_ref(), Wanted { wait: Duration::ZERO, ..wanted }).await?,
    };
    Ok(if is_raw { raw(part) } else { Json(pieces(part)).into_response() })
}

/// What `Range` asks for. Anything but one range of bytes counts as not asked for, as for every server.
fn span(headers: &HeaderMap) -> Option<Span> {
    let ranges = parse_range_header(headers.get(header::RANGE)?.to_str().ok()?).ok()?.ranges;
    let [range] = ranges.as_slice() else { return None };
    match (range.start, range.end) {
        (StartPosition::Index(first), EndPosition::Index(last)) if last < first => None,
        (StartPosition::Index(first), EndPosition::Index(last)) => Some(Span::From(first, Some(last))),
        (StartPosition::Index(first), EndPosition::LastByte) => Some(Span::From(first, None)),
        (StartPosition::FromLast(count), _) => Some(Span::Last(count)),
    }
}

/// Bytes that the step wrote, by their place.
async fn some(store: &dyn Store, of: &LogName, span: Span) -> Answer<Response> {
    logs::has_ended(store, of).await?;
    let Written { bytes, first, all } = logs::span(store, of, span, MOST).await?;
    let all = all.map_or_else(|| "*".to_owned(), |all| all.to_string());
    if bytes.is_empty() {
        let refused = Problem::new(Code::NoSuchRange, format!("the step has written {all} bytes so far"));
        return Ok(([(header::CONTENT_RANGE, format!("bytes */{all}"))], refused).into_response());
    }
    let last = first + bytes.len() as u64 - 1;
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_RANGE, format!("bytes {first}-{last}/{all}")),
    ];
    Ok((StatusCode::PARTIAL_CONTENT, headers, bytes).into_response())
}

fn pieces(part: Part) -> LogPage {
    let piece = |frame: &Frame| {
        let time = Moment(Millis(i64::try_from(frame.unix_ms).unwrap_or(i64::MAX)));
        LogPiece::new(time, frame.stream.as_str(), &frame.bytes)
    };
    LogPage {
        pieces: part.frames.iter().map(piece).collect(),
        next_offset: part.next_offset,
        size: part.size,
        has_ended: part.has_ended,
        is_over: part.is_over,
        may_lack_end: part.may_lack_end,
    }
}

/// What the step wrote, without what Laneway noted.
fn raw(part: Part) -> Response {
    let wrote = part.frames.into_iter().filter(|frame| match frame.stream {
        Stream::Stdout | Stream::Stderr => true,
        Stream::Note => false,
    });
    let bytes: Vec<u8> = wrote.flat_map(|frame| frame.bytes).collect();
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::ACCEPT_RANGES, "bytes".to_owned()),
        (NEXT_OFFSET, part.next_offset.to_string()),
        (SIZE, part.size.to_string()),
        (HAS_ENDED, part.has_ended.to_string()),
        (IS_OVER, part.is_over.to_string()),
    ];
    (headers, bytes).into_response()
}
