//! In front of every request: its name and page (`front`), then, in front of every route, its token and its rule (`admit`).
//! A route comes into the router only with its rule, out of `table.rs`; what has no rule is not there.
//!
//! Tokens are looked up with every request, or remembered only while nobody has committed anything (`memo.rs`): a revoked one
//! is refused from the moment on in which the revocation was answered, on every node.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use laneway_store::model::{Stamp, TOKEN_USE_GRAIN, Token};
use tokio::time::{Instant, timeout};

use super::{Caller, Secret, Who};
use crate::linger::Refused;
use crate::page;
use crate::problem::{Code, Problem};
use crate::service::App;

/// How long a request may take until its answer begins. Streams go on for as long as they like after that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers are data: as a page they may load nothing and be shown nowhere. The web page has a policy of its own.
const POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What holds for every request, also for one that no route takes.
pub(crate) async fn front(State(app): State<App>, request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let method = request.method().clone();
    let line = request.extensions().get::<Refused>().cloned().filter(|_| !request.body().is_end_stream());
    let refused = if crate::table::is_open(request.uri().path()) {
        // Whoever looks whether it lives asks by an address that nobody can know before.
        Ok(())
    } else {
        let names = &app.names;
        names.check_host(request.headers()).and_then(|()| match page::is_visit(&request) {
            true => Ok(()),
            false => names.check_origin(request.headers()),
        })
    };
    let mut response = match refused {
        Err(problem) => problem.into_response(),
        Ok(()) => match timeout(PATIENCE, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::new(Code::TimedOut, "the answer took too long").into_response(),
        },
    };
    let route = response.extensions_mut().remove::<RoutePath>().map_or("none", |route| route.0);
    app.metrics.count(route, method.as_str(), response.status().as_u16(), begun.elapsed());
    let is_refused = response.status().is_client_error() || response.status().is_server_error();
    if let Some(line) = line.filter(|_| is_refused) {
        line.note();
    }
    harden(&app, response.headers_mut());
    response
}

/// The pattern of the route that answered, for who counts.
#[derive(Debug, Clone, Copy)]
struct RoutePath(&'static str);

/// A route, as the guard in front of it knows it.
#[derive(Debug, Clone)]
pub(crate) struct Guarded {
    pub(crate) app: App,
    pub(crate) who: Who,
    pub(crate) path: &'static str,
    /// With what it may refuse.
    pub(crate) refuses: Arc<[Code]>,
    /// What was begun is done to its end, whatever becomes of who asked for it.
    pub(crate) goes_on: bool,
}

/// In front of one route, with its rule.
pub(crate) async fn admit(
    State(Guarded { app, who, path, refuses, goes_on }): State<Guarded>,
    mut request: Request,
    next: Next,
) -> Response {
    let admitted = match who {
        Who::Anybody | Who::Signed => Ok(None),
        Who::AtLeast(role) => {
            authenticate(&app, Presented::of(&request, app.is_behind_proxy)).await.and_then(|caller| {
                if caller.role.may(role) {
                    return Ok(Some(caller));
                }
                Err(Problem::new(
                    Code::Forbidden,
                    format!("a token with the role {} may not do that", caller.role),
                )
                .hint(format!("use one with the role {role}")))
            })
        }
    };
    let mut response = match admitted {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            if goes_on { to_its_end(&app, request, next).await } else { next.run(request).await }
        }
        Err(problem) => problem.into_response(),
    };
    let extensions = response.extensions_mut();
    if let Some(code) = extensions.get::<Code>() {
        debug_assert!(
            refuses.contains(code),
            "{path} refuses with {}, and its description does not say so",
            code.as_str()
        );
    }
    extensions.insert(RoutePath(path));
    response
}

/// In a task of its own, which nobody drops: hyper lets go of a request when its line is closed, and `front` of one that takes too
/// long. A change that was made by then would stand in no log.
async fn to_its_end(app: &App, request: Request, next: Next) -> Response {
    let refused = match app.changes.spawn(next.run(request)).await {
        Ok(response) => return response,
        Err(error) if error.is_panic() => {
            tracing::error!(%error, "a request failed");
            Problem::new(Code::Internal, "something inside went wrong; the server's log says what")
        }
        // Only the end of the process takes it away.
        Err(_) => Problem::new(Code::ShuttingDown, "the service ends"),
    };
    refused.into_response()
}

/// What a request shows of who sends it.
struct Presented {
    token: Result<String, Problem>,
    origin: String,
}

impl Presented {
    fn of(request: &Request, is_behind_proxy: bool) -> Self {
        let From(origin) = From::of(request.headers(), request.extensions(), is_behind_proxy);
        Self { token: bearer(request.headers()).map(str::to_owned), origin }
    }
}

/// The address from which somebody asks.
#[derive(Debug)]
pub(crate) struct From(pub(crate) String);

impl From {
    fn of(headers: &HeaderMap, extensions: &Extensions, is_behind_proxy: bool) -> Self {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(at)| at.ip());
        let forwarded = is_behind_proxy.then(|| forwarded(headers)).flatten();
        Self(forwarded.or(peer).map_or_else(|| "unknown".to_owned(), |address| address.to_string()))
    }
}

impl FromRequestParts<App> for From {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.headers, &parts.extensions, app.is_behind_proxy))
    }
}

async fn authenticate(app: &App, presented: Presented) -> Result<Caller, Problem> {
    let given = presented.token?;
    let bad = || {
        Problem::new(Code::BadToken, "the token is not known, or was revoked")
            .hint("`laneway token create NAME --role ROLE` makes one")
    };
    let secret = Secret::parse(&given).ok_or_else(bad)?;
    let stamp = app.store.stamp();
    let kept = token(app, stamp, secret.id()).await?.ok_or_else(bad)?;
    if !secret.is(&kept.token) {
        return Err(bad());
    }
    kept.check()?;
    app.token_uses.note(app, &kept);
    let kept = kept.token;
    Ok(Caller { name: kept.name, role: kept.role, token: kept.id, origin: presented.origin, stamp })
}

/// A token, and when this process read it.
#[derive(Debug, Clone)]
pub(crate) struct ReadToken {
    pub(crate) token: Token,
    pub(crate) read_at: Instant,
}

impl ReadToken {
    pub(crate) fn age(&self) -> Duration {
        self.read_at.elapsed()
    }

    /// Refuses one that was revoked or has expired.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        let Self { token, .. } = self;
        if token.is_live(self.age()) {
            return Ok(());
        }
        let name = &token.name;
        Err(match (&token.revoked, token.expires_at) {
            (None, Some(at)) => Problem::new(Code::BadToken, format!("the token expired at {at}"))
                .hint(format!("`laneway token rotate {name}` gives it a new secret")),
            (Some(_), _) | (None, None) => {
                Problem::new(Code::BadToken, "the token is not known, or was revoked")
                    .hint("`laneway token create NAME --role ROLE` makes one")
            }
        })
    }
}

/// The row of a token as it is now. `stamp` is how far the store has come.
pub(crate) async fn token(
    app: &App,
    stamp: Option<Stamp>,
    id: &str,
) -> laneway_store::Result<Option<ReadToken>> {
    // The clock by which its age is known stands still while the machine sleeps, so it is read again now and then.
    if let Some(kept) = app.memo.token(stamp, id).filter(|kept| kept.age() < TOKEN_USE_GRAIN) {
        return Ok(Some(kept));
    }
    // Taken before the question, so that what is read is never thought to be younger than it is.
    let read_at = Instant::now();
    let kept = app.store.token(id).await?.map(|token| ReadToken { token, read_at });
    kept.iter().for_each(|kept| app.memo.keep_token(stamp, kept));
    Ok(kept)
}

/// Whom the proxy heard: the last entry is its own, those before it are what it was told.
fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    let told = headers.get_all("x-forwarded-for").into_iter().next_back()?;
    told.to_str().ok()?.rsplit(',').next()?.trim().parse().ok()
}

fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    let token = given.and_then(|given| {
        let (scheme, token) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    token.ok_or_else(|| {
        Problem::new(Code::NoToken, "there is no token in the request")
            .hint("send `Authorization: Bearer TOKEN`; the first one is in the file admin.token of the data directory")
    })
}

fn harden(app: &App, headers: &mut HeaderMap) {
    let fixed = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    if app.is_tls {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(POLICY));
    // Answers are as of now, and for whoever has the token.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

/// What neither a route nor the page takes.
pub(crate) fn no_such_route() -> Problem {
    Problem::new(Code::NoSuchRoute, "there is nothing at this address")
        .hint("/openapi.json lists what there is")
}

/// A route, but not with this method.
pub(crate) async fn no_method() -> Problem {
    Problem::new(Code::MethodNotAllowed, "this address does not take that method")
        .hint("/openapi.json lists what there is")
}
