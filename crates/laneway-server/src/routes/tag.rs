//! Answers about what never changes under its version: the version is their tag, and whoever has it is told so.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use laneway_core::hash::Version;

/// Of a document, which is what its version says.
pub(super) fn of_document(version: &Version) -> String {
    version.to_string()
}

/// Of a graph, which another version of this program may draw in another way.
pub(super) fn of_graph(version: &Version) -> String {
    format!("{version}-{}", env!("CARGO_PKG_VERSION"))
}

/// The answer to who has what bears this tag already; nothing for others.
pub(super) fn unchanged(headers: &HeaderMap, tag: &str) -> Option<Response> {
    let given = headers.get(header::IF_NONE_MATCH).and_then(|given| given.to_str().ok()).unwrap_or_default();
    let mut tags = given.split(',').map(|tag| tag.trim().trim_start_matches("W/").trim_matches('"'));
    let is_known = tags.any(|known| known == tag || known == "*");
    is_known.then(|| tagged(StatusCode::NOT_MODIFIED.into_response(), tag))
}

pub(super) fn tagged(mut response: Response, tag: &str) -> Response {
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{tag}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    // Kept, and asked for again each time: the newest version may be another one by then.
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}
