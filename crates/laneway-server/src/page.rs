//! The web page: files that `build.rs` has embedded, as they are or compressed. It holds no data, so it is for anybody who asks by
//! one of the service's names; what it shows it asks for with a token, like every other client. Paths that are no API's are views
//! of the page, which decides what they mean.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::access::no_such_route;
use crate::extract::Path;
use crate::problem::Answer;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// One of the files that the page is made of.
struct File {
    /// With slashes, from the folder on in which `index.html` is.
    name: &'static str,
    plain: &'static [u8],
    /// The same, where it is shorter so.
    gzip: Option<&'static [u8]>,
}

/// Nothing but what comes from here: no script, style or frame of anybody else's, and none that stands in a text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Where files have a hash of what is in them in their names, so that they never change.
const HASHED: &str = "assets/";
const FOR_EVER: &str = "public, max-age=31536000, immutable";
/// Kept, and asked for again each time.
const ASK_AGAIN: &str = "no-cache";

/// Addresses that are never a view of the page.
const API: [&str; 5] = ["/v1", "/healthz", "/readyz", "/metrics", "/openapi.json"];

pub(crate) async fn index(headers: HeaderMap) -> Answer<Response> {
    Ok(send(find("index.html").ok_or_else(no_such_route)?, &headers))
}

pub(crate) async fn asset(Path(file): Path<String>, headers: HeaderMap) -> Answer<Response> {
    Ok(send(find(&format!("{HASHED}{file}")).ok_or_else(no_such_route)?, &headers))
}

/// What no route takes: another file of the page, or, for who wants to look at something, a view of it.
pub(crate) async fn elsewhere(request: Request) -> Answer<Response> {
    let (path, headers) = (request.uri().path(), request.headers());
    if !is_read(request.method()) || is_api(path) {
        return Err(no_such_route());
    }
    if let Some(file) = find(path.trim_start_matches('/')) {
        return Ok(send(file, headers));
    }
    if wants_page(headers) { index(headers.clone()).await } else { Err(no_such_route()) }
}

/// Whether somebody goes to a view of the page, from wherever: a link in a letter leads here too. Nothing is told or changed by
/// that, and no other page can look into this one.
pub(crate) fn is_visit(request: &Request) -> bool {
    let is = |name: &str, value: &str| request.headers().get(name).is_some_and(|given| given == value);
    is_read(request.method())
        && !is_api(request.uri().path())
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

fn is_read(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

fn is_api(path: &str) -> bool {
    API.iter().any(|api| path.strip_prefix(api).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn wants_page(headers: &HeaderMap) -> bool {
    headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).is_some_and(|accept| {
        let mut kinds = accept.split(',').map(|kind| kind.split(';').next().unwrap_or_default().trim());
        kinds.any(|kind| kind.eq_ignore_ascii_case("text/html"))
    })
}

fn find(name: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.name == name)
}

fn send(file: &'static File, headers: &HeaderMap) -> Response {
    let packed = file.gzip.filter(|_| takes_gzip(headers));
    let mut response = (StatusCode::OK, packed.unwrap_or(file.plain)).into_response();
    let cache = if file.name.starts_with(HASHED) { FOR_EVER } else { ASK_AGAIN };
    let told = [
        (header::CONTENT_TYPE, kind(file.name)),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    for (name, value) in told {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if file.gzip.is_some() {
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    }
    if packed.is_some() {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let given =
        headers.get(header::ACCEPT_ENCODING).and_then(|given| given.to_str().ok()).unwrap_or_default();
    given.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let is_refused = parts.filter_map(|part| part.strip_prefix("q=")).any(|weight| {
            // `q=0` in any of its forms.
            weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0)
        });
        is_gzip && !is_refused
    })
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: header::HeaderName, value: &str) -> HeaderMap {
        [(name, HeaderValue::from_str(value).expect("a header"))].into_iter().collect()
    }

    #[test]
    fn paths_of_the_api_are_never_views() {
        for path in ["/v1", "/v1/", "/v1/runs/x", "/healthz", "/openapi.json"] {
            assert!(is_api(path), "{path}");
        }
        for path in ["/", "/runs", "/v12", "/v1runs", "/healthzz", "/metrics.html"] {
            assert!(!is_api(path), "{path}");
        }
    }

    #[test]
    fn only_who_takes_it_is_sent_what_is_compressed() {
        for good in ["gzip", "br, GZIP;q=0.5", "deflate,gzip ; q=1"] {
            assert!(takes_gzip(&with(header::ACCEPT_ENCODING, good)), "{good}");
        }
        for bad in ["", "br", "gzip;q=0", "gzip; q=0.000", "xgzip"] {
            assert!(!takes_gzip(&with(header::ACCEPT_ENCODING, bad)), "{bad}");
        }
    }

    #[test]
    fn only_who_wants_a_page_is_sent_one() {
        assert!(wants_page(&with(header::ACCEPT, "application/json;q=1, text/html;q=0.9")));
        assert!(!wants_page(&with(header::ACCEPT, "*/*")));
        assert!(!wants_page(&HeaderMap::new()));
    }
}
