//! Callbacks: how a run ended is sent to an address, signed. One attempt of it is here, and where it may go. That it is tried
//! again, and for how long, is the step's `retry` (`laneway_core::hook`), so that every attempt is in the history of its run.

mod reach;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::HeaderValue;
use hyper::{Request, StatusCode, Uri, header};
use laneway_core::definition::{self, Diagnostics, Source, Workflow};
use laneway_engine::function::{Call, Functions, POST};
use laneway_engine::secret::MIN_LENGTH;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;

pub use reach::Reach;

use crate::line::Line;
use crate::sign;

const CONNECT: Duration = Duration::from_secs(10);

/// Of a refusal, which is shown. What a receiver says when it takes something is not read.
const MOST: usize = 1 << 10;

/// What a callback is made of, as the worker says it.
#[derive(Deserialize)]
struct Input {
    url: String,
    /// It has a secret in it.
    is_path_secret: bool,
    /// Its host is a part of one.
    is_host_secret: bool,
    headers: BTreeMap<String, String>,
    content_type: Option<String>,
    body: String,
    delivery: String,
    secret: Option<String>,
}

/// The functions of a node: those that hooks need. `limit` bounds an attempt, beside the `timeout` of the callback.
pub fn functions(reach: &Reach, limit: Option<Duration>) -> Functions {
    let reach = reach.clone();
    Functions::new().add(POST, move |call: Call<Input>| {
        let reach = reach.clone();
        async move {
            let Some(limit) = limit else { return post(&reach, call.input).await };
            let late = |_| format!("there was no answer within {} s", limit.as_secs());
            timeout(limit, post(&reach, call.input)).await.map_err(late)?
        }
    })
}

/// Checks the hosts of a document's callbacks that are known without asking anybody.
///
/// # Errors
/// The callbacks that would reach what only a node can reach.
pub fn check_hosts(source: &Source, workflow: &Workflow, reach: &Reach) -> Result<(), Diagnostics> {
    definition::check_hosts(source, workflow, |host| {
        let address = reach.refused(host)?;
        let why = if host.parse() == Ok(address) {
            format!("a callback cannot reach {host}, which is not on the public network")
        } else {
            format!("a callback cannot reach {host}: it is at {address}, which is not on the public network")
        };
        let hint = format!(
            "where that is intended, allow it on each node that sends callbacks: `callback_hosts = [\"{host}\"]` in laneway.toml, or \
             LANEWAY_CALLBACK_HOSTS={host}"
        );
        Some((why, hint))
    })
}

async fn post(reach: &Reach, input: Input) -> Result<Value, String> {
    let uri: Uri = input.url.parse().map_err(|_| match input.is_path_secret {
        true => "the address with its secrets is none: a secret stands in it as it is".to_owned(),
        false => format!("`{}` is no address", input.url),
    })?;
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) | None => return Err("the address begins with neither https:// nor http://".to_owned()),
    };
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return Err("the address has a name or a password in it: send them in a header, \
            `headers: {Authorization: \"${{ secrets.NAME }}\"}`"
            .to_owned());
    }
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let shown = if input.is_host_secret { "the receiver" } else { host.as_str() };
    let address = find(reach, (&host, shown), port).await?;
    let (path, body) = (uri.path_and_query().map_or("/", |path| path.as_str()), input.body);
    let mut request = Request::post(path)
        .header(header::HOST, authority)
        .header(header::CONTENT_TYPE, input.content_type.as_deref().unwrap_or("application/json"))
        .header(sign::DELIVERY, &input.delivery);
    if !input.headers.keys().any(|name| name.eq_ignore_ascii_case(header::USER_AGENT.as_str())) {
        request = request.header(header::USER_AGENT, concat!("laneway/", env!("CARGO_PKG_VERSION")));
    }
    for (name, value) in &input.headers {
        let bad = |_| {
            format!("the value of the header `{name}` has a line break or a character that none may have")
        };
        request = request.header(name, HeaderValue::from_str(value).map_err(bad)?);
    }
    if let Some(secret) = &input.secret {
        let now = jiff::Timestamp::now().as_second();
        let signature = sign::sign(secret, now, &input.delivery, body.as_bytes());
        request = request.header(sign::TIMESTAMP, now).header(sign::SIGNATURE, signature);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let connected = timeout(CONNECT, TcpStream::connect(address)).await;
    let stream = connected
        .map_err(|_| format!("{shown} cannot be reached: no connection came about in time"))?
        .map_err(|error| format!("{shown} cannot be reached: {error}"))?;
    let refused = |why: String| format!("{shown} did not take it: {why}");
    let line = Line::begin(stream, &host, is_tls).await.map_err(refused)?;
    let (status, answer) = line.tell(request, MOST).await.map_err(refused)?;
    if status.is_success() {
        return Ok(json!({ "status": status.as_u16() }));
    }
    let path = Some(path).filter(|_| input.is_path_secret);
    Err(refusal(shown, status, &answer, path))
}

/// The address that is connected to is the one that was looked at: a name may stand for another one a moment later.
async fn find(reach: &Reach, (host, shown): (&str, &str), port: u16) -> Result<SocketAddr, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| format!("{shown} is not known: {error}"))?.collect();
    let allowed = found.iter().find(|address| reach.allows(host, address.ip()));
    allowed.copied().ok_or_else(|| match found.first() {
        Some(address) => format!(
            "{shown} is at {}, which is not on the public network; a deployment allows it with `callback_hosts`",
            address.ip()
        ),
        None => format!("{shown} has no address"),
    })
}

/// Redirects are not followed: they would lead where nobody looked. An answer that repeats a secret `path` is not shown.
fn refusal(host: &str, status: StatusCode, answer: &[u8], path: Option<&str>) -> String {
    let said = String::from_utf8_lossy(answer);
    let is_shown = path.is_none_or(|path| {
        path.split(['/', '?', '&', '=']).all(|part| part.len() < MIN_LENGTH || !said.contains(part))
    });
    let said: String = said.chars().take(if is_shown { 200 } else { 0 }).collect();
    let said = said.trim();
    if said.is_empty() {
        format!("{host} answered {status}")
    } else {
        format!("{host} answered {status}: {said}")
    }
}
