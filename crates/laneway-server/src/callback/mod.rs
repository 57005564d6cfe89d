//! Callbacks: how a run ended is sent to an address, signed. One attempt of it is here; that it is tried again, and for how
//! long, is the step's `retry` (`laneway_core::hook`), so that every attempt is in the history of its run.

mod reach;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Request, StatusCode, Uri, header};
use laneway_engine::function::{Call, Functions, POST};
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
    body: Value,
    delivery: String,
    secret: Option<String>,
}

/// The functions of a node: those that hooks need.
pub fn functions(reach: &Reach) -> Functions {
    let reach = reach.clone();
    Functions::new().add(POST, move |call: Call<Input>| {
        let reach = reach.clone();
        async move { post(&reach, call.input).await }
    })
}

async fn post(reach: &Reach, input: Input) -> Result<Value, String> {
    let uri: Uri = input.url.parse().map_err(|_| format!("`{}` is no address", input.url))?;
    let is_tls = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        Some(_) | None => return Err("the address begins with neither https:// nor http://".to_owned()),
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let address = find(reach, &host, port).await?;
    let body = input.body.to_string();
    let mut request = Request::post(uri.path_and_query().map_or("/", |path| path.as_str()))
        .header(header::HOST, uri.authority().map_or(host.as_str(), |authority| authority.as_str()))
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, concat!("laneway/", env!("CARGO_PKG_VERSION")))
        .header(sign::DELIVERY, &input.delivery);
    if let Some(secret) = &input.secret {
        let now = jiff::Timestamp::now().as_second();
        let signature = sign::sign(secret, now, &input.delivery, body.as_bytes());
        request = request.header(sign::TIMESTAMP, now).header(sign::SIGNATURE, signature);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| error.to_string())?;
    let connected = timeout(CONNECT, TcpStream::connect(address)).await;
    let stream = connected
        .map_err(|_| format!("{host} cannot be reached: no connection came about in time"))?
        .map_err(|error| format!("{host} cannot be reached: {error}"))?;
    let refused = |why: String| format!("{host} did not take it: {why}");
    let line = Line::begin(stream, &host, is_tls).await.map_err(refused)?;
    let (status, answer) = line.tell(request, MOST).await.map_err(refused)?;
    if status.is_success() {
        return Ok(json!({ "status": status.as_u16() }));
    }
    Err(refusal(&host, status, &answer))
}

/// The address that is connected to is the one that was looked at: a name may stand for another one a moment later.
async fn find(reach: &Reach, host: &str, port: u16) -> Result<SocketAddr, String> {
    let found = tokio::net::lookup_host((host, port)).await;
    let found: Vec<SocketAddr> = found.map_err(|error| format!("{host} is not known: {error}"))?.collect();
    let allowed = found.iter().find(|address| reach.allows(host, address.ip()));
    allowed.copied().ok_or_else(|| match found.first() {
        Some(address) => format!(
            "{host} is at {}, which is not on the public network; a deployment allows it with `callback_hosts`",
            address.ip()
        ),
        None => format!("{host} has no address"),
    })
}

/// Redirects are not followed: they would lead where nobody looked.
fn refusal(host: &str, status: StatusCode, answer: &[u8]) -> String {
    let said: String = String::from_utf8_lossy(answer).chars().take(200).collect();
    let said = said.trim();
    if said.is_empty() {
        format!("{host} answered {status}")
    } else {
        format!("{host} answered {status}: {said}")
    }
}
