//! A typed client: what the routes answer, as the types of the wire. One connection for each question; who asks by it is a
//! person at a terminal.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::http::request;
use hyper::{Method, Request, StatusCode, Uri, header};
use laneway_core::id::RunId;
use laneway_store::cache::Which;
use laneway_store::model::{CancelMode, Reopen};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::fs::File;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::access::Secret;
use crate::line::Line;
use crate::listening::{Listening, Subscription};
use crate::problem::{Code, Problem};
use crate::wire;

/// How long to wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// How long to wait for an answer. Longer than the server lets one take.
const ANSWER: Duration = Duration::from_secs(75);

/// The largest answer: a page of a log, or a document.
const MOST: usize = 64 << 20;

/// What is left as it is in a part of an address.
const PART: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':').remove(b'@');

/// Why a server did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{url}` is no address of a server: {why}")]
    Address { url: String, why: String },
    #[error("{server} cannot be reached: {why}")]
    Unreachable { server: String, why: String },
    #[error("{server} does not answer as a Laneway server does: {why}")]
    Strange { server: String, why: String },
    #[error("{0}")]
    Refused(Problem),
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What to do next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address { .. } => Some("write it as http://HOST:PORT or https://HOST:PORT".to_owned()),
            Self::Unreachable { .. } => Some(
                "look whether `laneway serve` runs there, and whether host and port are right".to_owned(),
            ),
            Self::Strange { .. } => Some("look at what listens there, and at its version".to_owned()),
            // The server speaks of HTTP.
            Self::Refused(problem) if problem.code == Code::NoToken => Some(
                "set LANEWAY_TOKEN to a token of that server: `laneway token create NAME --role viewer` makes one where it runs, \
                 and its first one is in .laneway/admin.token there"
                    .to_owned(),
            ),
            Self::Refused(problem) => problem.hint.clone(),
        }
    }

    /// Whether the server does not know what it was asked for, as an older one does not.
    pub fn is_not_understood(&self) -> bool {
        matches!(self, Self::Refused(problem) if problem.status == 400)
    }

    /// Whether the server as a whole is out of use, as opposed to a request that it refuses.
    pub fn is_about_the_server(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Strange { .. } => true,
            Self::Address { .. } => false,
            Self::Refused(problem) => problem.status >= 500,
        }
    }
}

/// Whether a server's address is one of this host that nobody else can have.
pub fn is_on_this_host(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else { return false };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// A server, and the token to ask it with.
#[derive(Debug, Clone)]
pub struct Client {
    server: String,
    host: String,
    port: u16,
    is_tls: bool,
    token: Option<Secret>,
}

impl Client {
    pub fn new(url: &str, token: Option<Secret>) -> Result<Self> {
        let bad = |why: &str| Error::Address { url: url.to_owned(), why: why.to_owned() };
        let uri: Uri = url.parse().map_err(|_| bad("it cannot be read"))?;
        let is_tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(_) | None => return Err(bad("it begins with neither http:// nor https://")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(bad("there is something behind the port"));
        }
        let host =
            uri.host().filter(|host| !host.is_empty()).ok_or_else(|| bad("it names no host"))?.to_owned();
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { server: url.trim_end_matches('/').to_owned(), host, port, is_tls, token })
    }

    pub async fn runs(
        &self,
        status: Option<&str>,
        workflow: Option<&str>,
        (limit, cursor): (usize, Option<&str>),
    ) -> Result<wire::RunList> {
        let mut query = vec![format!("limit={limit}")];
        query.extend(status.map(|status| format!("status={}", part(status))));
        query.extend(workflow.map(|workflow| format!("workflow={}", part(workflow))));
        query.extend(cursor.map(|cursor| format!("cursor={}", part(cursor))));
        self.get(&format!("/v1/runs?{}", query.join("&"))).await
    }

    /// The graph of the version with which it runs.
    pub async fn graph(&self, run: RunId) -> Result<wire::Graph> {
        self.get(&format!("/v1/runs/{run}/graph")).await
    }

    pub async fn run(&self, run: &str) -> Result<wire::Run> {
        self.get(&format!("/v1/runs/{}", part(run))).await
    }

    /// Without items of its steps, and without why they wait.
    pub async fn run_in_short(&self, run: &str) -> Result<wire::Run> {
        self.get(&format!("/v1/runs/{}?items=0&causes_up_to=0", part(run))).await
    }

    /// As it was after an event.
    pub async fn run_at(&self, run: &str, at: u64) -> Result<wire::Run> {
        self.get(&format!("/v1/runs/{}?at={at}", part(run))).await
    }

    /// With a key that was used before it gives the run of that.
    pub async fn submit(&self, submit: &wire::Submit, key: Option<&str>) -> Result<wire::Submitted> {
        let headers: Vec<_> = key.map(|key| ("idempotency-key", key)).into_iter().collect();
        self.call(Method::POST, "/v1/runs", Some(submit), &headers).await
    }

    pub async fn explain_run(&self, run: &str) -> Result<wire::ExplainedRun> {
        self.get(&format!("/v1/runs/{}/explain", part(run))).await
    }

    pub async fn explain_step(&self, run: &str, step: &str) -> Result<wire::ExplainedStep> {
        self.get(&format!("/v1/runs/{}/tasks/{}/explain", part(run), part(step))).await
    }

    pub async fn events(&self, run: RunId, after: u64, limit: usize) -> Result<wire::EventList> {
        self.get(&format!("/v1/runs/{run}/events?after={after}&limit={limit}")).await
    }

    pub async fn log(&self, run: RunId, step: &str, attempt: u32, offset: u64) -> Result<wire::LogPage> {
        let step = part(step);
        self.get(&format!("/v1/runs/{run}/tasks/{step}/attempts/{attempt}/log?offset={offset}&limit=1048576"))
            .await
    }

    pub async fn cancel(&self, run: &str, mode: CancelMode) -> Result<wire::Canceled> {
        let cancel = wire::Cancel { now: mode == CancelMode::Now };
        self.post(&format!("/v1/runs/{}/cancel", part(run)), &cancel).await
    }

    pub async fn retry(&self, run: &str, what: Reopen<'_>) -> Result<wire::Reopened> {
        let retry = wire::Retry { from: what.from.map(str::to_owned), last_event: what.seen };
        self.post(&format!("/v1/runs/{}/retry", part(run)), &retry).await
    }

    pub async fn skip(&self, run: &str, step: &str) -> Result<wire::Reopened> {
        self.post(&format!("/v1/runs/{}/tasks/{}/skip", part(run), part(step)), &NOTHING).await
    }

    pub async fn signal(&self, run: &str, step: &str, signal: &wire::Signal) -> Result<wire::Signaled> {
        self.post(&format!("/v1/runs/{}/tasks/{}/signal", part(run), part(step)), signal).await
    }

    /// Or lets it go on.
    pub async fn pause_run(&self, run: &str, is_paused: bool) -> Result<wire::Paused> {
        self.post(&format!("/v1/runs/{}/{}", part(run), pause(is_paused)), &NOTHING).await
    }

    pub async fn advance(&self, run: &str) -> Result<wire::Advanced> {
        self.post(&format!("/v1/runs/{}/advance", part(run)), &NOTHING).await
    }

    pub async fn pause_workflow(&self, name: &str, is_paused: bool) -> Result<wire::Paused> {
        self.post(&format!("/v1/workflows/{}/{}", part(name), pause(is_paused)), &NOTHING).await
    }

    /// The name by which it is reached.
    pub fn server(&self) -> &str {
        &self.server
    }

    pub async fn workflow(&self, name: &str) -> Result<wire::Workflow> {
        self.get(&format!("/v1/workflows/{}", part(name))).await
    }

    pub async fn workflows(&self) -> Result<wire::WorkflowList> {
        self.get("/v1/workflows").await
    }

    pub async fn versions(
        &self,
        name: &str,
        (limit, cursor): (usize, Option<&str>),
    ) -> Result<wire::VersionList> {
        let name = part(name);
        self.get(&format!("/v1/workflows/{name}/versions?limit={limit}{}", behind(cursor))).await
    }

    pub async fn apply(&self, apply: &wire::Apply) -> Result<wire::Applied> {
        self.post("/v1/workflows", apply).await
    }

    /// Files that go with a workflow.
    pub async fn bring(&self, hash: &str, bytes: Vec<u8>) -> Result<wire::Brought> {
        let path = format!("/v1/bundles/{}", part(hash));
        self.exchange(Method::PUT, &path, Some(("application/x-tar", bytes.into())), &[]).await
    }

    pub async fn triggers(&self) -> Result<wire::TriggerList> {
        self.get("/v1/triggers").await
    }

    pub async fn pause_triggers(&self, workflow: &str, is_paused: bool) -> Result<wire::TriggersPaused> {
        let path = format!("/v1/workflows/{}/triggers/{}", part(workflow), pause(is_paused));
        self.post(&path, &NOTHING).await
    }

    pub async fn nodes(&self) -> Result<wire::NodeList> {
        self.get("/v1/nodes").await
    }

    pub async fn node_events(
        &self,
        node: Option<&str>,
        after: u64,
        limit: usize,
    ) -> Result<wire::NodeEventList> {
        let node = node.map(|node| format!("&node={}", part(node))).unwrap_or_default();
        self.get(&format!("/v1/nodes/events?after={after}&limit={limit}{node}")).await
    }

    pub async fn pools(&self) -> Result<wire::PoolList> {
        self.get("/v1/pools").await
    }

    pub async fn pool_events(
        &self,
        node: Option<&str>,
        after: u64,
        limit: usize,
    ) -> Result<wire::PoolEventList> {
        let node = node.map(|node| format!("&node={}", part(node))).unwrap_or_default();
        self.get(&format!("/v1/pools/events?after={after}&limit={limit}{node}")).await
    }

    pub async fn warm_pool(&self, pool: &str, ask: &wire::WarmPool) -> Result<wire::AskedPool> {
        self.post(&format!("/v1/pools/{}/warm", part(pool)), ask).await
    }

    pub async fn drain_pool(&self, pool: &str, ask: &wire::DrainPool) -> Result<wire::AskedPool> {
        self.post(&format!("/v1/pools/{}/drain", part(pool)), ask).await
    }

    pub async fn drain(&self, node: &str) -> Result<wire::Drained> {
        self.post(&format!("/v1/nodes/{}/drain", part(node)), &NOTHING).await
    }

    pub async fn limits(&self) -> Result<wire::LimitList> {
        self.get("/v1/limits").await
    }

    pub async fn set_limit(&self, name: &str, value: &str) -> Result<wire::Limit> {
        let set = wire::SetLimit { value: value.to_owned() };
        self.call(Method::PUT, &format!("/v1/limits/{}", part(name)), Some(&set), &[]).await
    }

    pub async fn remove_limit(&self, name: &str) -> Result<wire::Removed> {
        self.call::<(), _>(Method::DELETE, &format!("/v1/limits/{}", part(name)), None, &[]).await
    }

    pub async fn remove_triggers(&self, workflow: &str) -> Result<wire::Removed> {
        let path = format!("/v1/workflows/{}/triggers", part(workflow));
        self.call::<(), _>(Method::DELETE, &path, None, &[]).await
    }

    pub async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<wire::Removed> {
        let path = format!("/v1/workflows/{}?force={is_forced}", part(name));
        self.call::<(), _>(Method::DELETE, &path, None, &[]).await
    }

    pub async fn results(
        &self,
        which: &Which,
        (limit, cursor): (usize, Option<&str>),
    ) -> Result<wire::CacheList> {
        let mut query = meant(which);
        query.push(format!("limit={limit}{}", behind(cursor)));
        self.get(&format!("/v1/cache?{}", query.join("&"))).await
    }

    pub async fn clear_results(&self, which: &Which) -> Result<wire::CacheCleared> {
        let path = format!("/v1/cache?{}", meant(which).join("&"));
        self.call::<(), _>(Method::DELETE, &path, None, &[]).await
    }

    pub async fn tokens(&self, (limit, cursor): (usize, Option<&str>)) -> Result<wire::TokenList> {
        self.get(&format!("/v1/tokens?limit={limit}{}", behind(cursor))).await
    }

    pub async fn create_token(&self, create: &wire::CreateToken) -> Result<wire::CreatedToken> {
        self.post("/v1/tokens", create).await
    }

    pub async fn rotate_token(&self, name: &str, rotate: &wire::RotateToken) -> Result<wire::RotatedToken> {
        self.post(&format!("/v1/tokens/{}/rotate", part(name)), rotate).await
    }

    pub async fn revoke_token(&self, name: &str) -> Result<wire::Revoked> {
        self.call::<(), _>(Method::DELETE, &format!("/v1/tokens/{}", part(name)), None, &[]).await
    }

    pub async fn secrets(&self) -> Result<wire::SecretList> {
        self.get("/v1/secrets").await
    }

    pub async fn set_secret(&self, name: &str, set: &wire::SetSecret) -> Result<wire::SecretSet> {
        self.call(Method::PUT, &format!("/v1/secrets/{}", part(name)), Some(set), &[]).await
    }

    pub async fn remove_secret(&self, name: &str) -> Result<wire::SecretSet> {
        self.call::<(), _>(Method::DELETE, &format!("/v1/secrets/{}", part(name)), None, &[]).await
    }

    pub async fn make_code(&self, make: &wire::MakeCode) -> Result<wire::SignInCode> {
        self.post("/v1/sign-in/codes", make).await
    }

    /// The address of the web page at which a code is used.
    pub fn page(&self, code: &str) -> String {
        format!("{}/#code={code}", self.server)
    }

    pub async fn effects(&self, run: &str) -> Result<wire::EffectList> {
        self.get(&format!("/v1/runs/{}/effects", part(run))).await
    }

    pub async fn settle_effect(
        &self,
        run: &str,
        step: &str,
        settle: &wire::SettleEffect,
    ) -> Result<wire::SettledEffect> {
        self.post(&format!("/v1/runs/{}/tasks/{}/effects/settle", part(run), part(step)), settle).await
    }

    pub async fn artifacts(&self, run: &str) -> Result<wire::ArtifactList> {
        self.get(&format!("/v1/runs/{}/artifacts", part(run))).await
    }

    /// Writes what is in an artifact to a file.
    pub async fn fetch(&self, run: RunId, of: &wire::Artifact, file: &mut File) -> Result<()> {
        let path = format!("/v1/runs/{run}/tasks/{}/artifact?name={}", part(&of.step), part(&of.name));
        self.save(&path, file).await
    }

    pub async fn changed_files(&self, run: RunId, step: &str) -> Result<wire::ChangedFiles> {
        self.get(&format!("/v1/runs/{run}/tasks/{}/files", part(step))).await
    }

    /// Writes a file that a task changed to a file.
    pub async fn fetch_changed(&self, run: RunId, step: &str, path: &str, file: &mut File) -> Result<()> {
        self.save(&format!("/v1/runs/{run}/tasks/{}/file?path={}", part(step), part(path)), file).await
    }

    async fn save(&self, path: &str, file: &mut File) -> Result<()> {
        let request = self.head(Method::GET, path, "application/octet-stream").body(Full::new(Bytes::new()));
        let request = request.map_err(|error| self.strange(error))?;
        let answer = self.line().await?.save(request, file).await;
        let (status, body) = answer.map_err(|why| self.unreachable(why))?;
        if status.is_success() { Ok(()) } else { Err(self.refusal(status, &body)) }
    }

    /// Events as they happen, until the stream ends.
    pub async fn listen(&self, to: &Subscription) -> Result<Listening> {
        let path = format!("/v1/events?{}", to.query());
        let request = self.head(Method::GET, &path, "text/event-stream").body(Full::new(Bytes::new()));
        let request = request.map_err(|error| self.strange(error))?;
        let begun = timeout(ANSWER, async {
            let answer = self.line().await?.open(request).await;
            answer.map_err(|why| self.unreachable(why))
        });
        match begun.await.map_err(|_| self.unreachable("no answer came in time"))?? {
            Ok(answer) => Ok(Listening::new(answer)),
            Err((status, body)) => Err(self.refusal(status, &body)),
        }
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.call::<(), T>(Method::GET, path, None, &[]).await
    }

    async fn post<B: Serialize, T: DeserializeOwned>(&self, path: &str, body: &B) -> Result<T> {
        self.call(Method::POST, path, Some(body), &[]).await
    }

    async fn call<B: Serialize, T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        headers: &[(&str, &str)],
    ) -> Result<T> {
        let body = match body {
            Some(body) => {
                let text = serde_json::to_vec(body).map_err(|error| self.strange(error))?;
                Some(("application/json", text.into()))
            }
            None => None,
        };
        self.exchange(method, path, body, headers).await
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, Bytes)>,
        headers: &[(&str, &str)],
    ) -> Result<T> {
        let mut request = self.head(method, path, "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut bytes = Bytes::new();
        if let Some((kind, body)) = body {
            request = request.header(header::CONTENT_TYPE, kind);
            bytes = body;
        }
        let request = request.body(Full::new(bytes)).map_err(|error| self.strange(error))?;
        let answer = timeout(ANSWER, async {
            let answer = self.line().await?.ask(request, MOST).await;
            answer.map_err(|why| self.unreachable(why))
        });
        let (status, body) = answer.await.map_err(|_| self.unreachable("no answer came in time"))??;
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| self.strange(error));
        }
        Err(self.refusal(status, &body))
    }

    /// What is asked for, by whom.
    fn head(&self, method: Method, path: &str, accept: &str) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, format!("{}:{}", self.host, self.port))
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, concat!("laneway/", env!("CARGO_PKG_VERSION")));
        match &self.token {
            Some(token) => request.header(header::AUTHORIZATION, format!("Bearer {}", token.reveal())),
            None => request,
        }
    }

    fn refusal(&self, status: StatusCode, body: &[u8]) -> Error {
        match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => Error::Refused(problem),
            Err(_) => self.strange(format!("its answer is {status}")),
        }
    }

    async fn line(&self) -> Result<Line> {
        let host = self.host.trim_matches(['[', ']']);
        let connected = timeout(CONNECT, TcpStream::connect((host, self.port))).await;
        let stream = connected
            .map_err(|_| self.unreachable("no connection came about in time"))?
            .map_err(|error| self.unreachable(error))?;
        Line::begin(stream, host, self.is_tls).await.map_err(|why| self.unreachable(why))
    }

    fn unreachable(&self, why: impl std::fmt::Display) -> Error {
        Error::Unreachable { server: self.server.clone(), why: why.to_string() }
    }

    fn strange(&self, why: impl std::fmt::Display) -> Error {
        Error::Strange { server: self.server.clone(), why: why.to_string() }
    }
}

/// A body that says nothing.
const NOTHING: Nothing = Nothing {};

#[derive(Serialize)]
struct Nothing {}

fn pause(is_paused: bool) -> &'static str {
    if is_paused { "pause" } else { "resume" }
}

/// The results that are meant, as parts of a query.
fn meant(which: &Which) -> Vec<String> {
    let of =
        |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}={}", part(value)));
    of("workflow", &which.workflow).into_iter().chain(of("step", &which.step)).collect()
}

/// Which page, behind another parameter.
fn behind(cursor: Option<&str>) -> String {
    cursor.map(|cursor| format!("&cursor={}", part(cursor))).unwrap_or_default()
}

fn part(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_a_server_is_a_scheme_a_host_and_a_port() {
        for good in
            ["http://localhost:7878", "https://lane.example/", "http://[::1]:7878", "http://127.0.0.1"]
        {
            assert!(Client::new(good, None).is_ok(), "{good}");
        }
        for bad in ["", "localhost:7878", "ftp://x", "http://", "http://x/v1", "http://x?y", "http://a b"] {
            assert!(matches!(Client::new(bad, None), Err(Error::Address { .. })), "{bad}");
        }
    }

    #[test]
    fn only_an_address_of_this_host_is_one() {
        for near in ["http://localhost:7878", "http://127.0.0.1:1", "https://[::1]:7878/", "http://LOCALHOST"]
        {
            assert!(is_on_this_host(near), "{near}");
        }
        for far in [
            "http://lane.example:7878",
            "http://10.0.0.1",
            "http://localhost.example",
            "http://127.0.0.1.example",
            "x",
        ] {
            assert!(!is_on_this_host(far), "{far}");
        }
    }

    #[test]
    fn parts_of_an_address_cannot_become_another_address() {
        assert_eq!(part("host:7878"), "host:7878");
        assert_eq!(part("../x?y#z"), "..%2Fx%3Fy%23z");
    }
}
