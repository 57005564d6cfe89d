//! A store, a server on it, tokens of every role, and short words to ask with.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use laneway_core::class::Offer;
use laneway_core::id::{RunId, SessionId};
use laneway_core::role::Role;
use laneway_engine::embed::{self, Engine};
use laneway_engine::remote::Terms;
use laneway_server::access::{Names, make};
use laneway_server::callback::Reach;
use laneway_server::{Deadlines, Service, Tls, serve};
use laneway_store::model::{Ask, Claim, Finished, NewSession, Outcome};
use laneway_store::{Open, Options, Store};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer than anything takes; only a test that fails waits that long.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// Where a store lives.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) dir: TempDir,
    address: String,
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let address = dir.path().join("laneway.db").to_string_lossy().into_owned();
        Self { dir, address }
    }

    /// A schema of the Postgres that the tests share.
    pub(crate) async fn postgres() -> Self {
        let url = std::env::var("LANEWAY_TEST_POSTGRES").expect("run this with `cargo xtask postgres`");
        let name = format!("t{}", uuid::Uuid::now_v7().simple());
        let (client, line) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("a connection");
        tokio::spawn(line);
        client.batch_execute(&format!("CREATE SCHEMA {name}")).await.expect("a schema");
        let dir = tempfile::tempdir().expect("a directory");
        Self { dir, address: format!("{url}?options=-csearch_path%3D{name}") }
    }

    /// A handle of its own: to the others it is another process.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        let options = Options { data_dir: self.dir.path().to_owned(), ..Options::default() };
        laneway_store::open_with(&self.address, Open::Create, &options).expect("a store that opens")
    }

    /// A node that works on this store, for those who bring functions.
    pub(crate) fn engine(&self) -> embed::Builder {
        Engine::at(&self.address).data_dir(self.dir.path()).dir(self.dir.path())
    }

    /// As `harm`, where the database would refuse it: what keeps it from a damage is taken away first.
    pub(crate) async fn harm_beneath(&self, sql: &str) {
        if self.address.starts_with("postgres") {
            let unguard = "DO $$ DECLARE guard record; BEGIN
                FOR guard IN SELECT conrelid::regclass AS whose, conname FROM pg_constraint
                             WHERE contype IN ('c', 'f') AND connamespace = current_schema()::regnamespace
                LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', guard.whose, guard.conname); END LOOP; END $$";
            self.beneath().await.batch_execute(unguard).await.expect("no guards");
        }
        self.harm(sql).await;
    }

    async fn beneath(&self) -> tokio_postgres::Client {
        let (client, line) =
            tokio_postgres::connect(&self.address, tokio_postgres::NoTls).await.expect("a connection");
        tokio::spawn(line);
        client
    }

    /// Changes the rows behind everybody's back.
    pub(crate) async fn harm(&self, sql: &str) {
        let changed = if self.address.starts_with("postgres") {
            self.beneath().await.execute(sql, &[]).await.expect("a statement")
        } else {
            let connection = rusqlite::Connection::open(&self.address).expect("the file");
            for (guard, is_on) in [("ignore_check_constraints", true), ("foreign_keys", false)] {
                connection.pragma_update(None, guard, is_on).expect("a setting");
            }
            connection.execute(sql, []).expect("a statement") as u64
        };
        assert!(changed > 0, "{sql}");
    }

    /// Nobody else writes until what it gives is dropped. Of an embedded store.
    pub(crate) fn hold(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(&self.address).expect("the file");
        connection.execute_batch("BEGIN IMMEDIATE").expect("the place of the writer");
        connection
    }

    pub(crate) async fn serve(&self) -> Server {
        self.serve_with(Terms::default()).await
    }

    /// With terms for remote workers.
    pub(crate) async fn serve_with(&self, remote: Terms) -> Server {
        self.start(Choices { remote, ..Choices::default() }).await
    }

    pub(crate) async fn serve_behind_proxy(&self) -> Server {
        self.start(Choices { is_behind_proxy: true, ..Choices::default() }).await
    }

    /// Serves with deadlines of its own, and encrypted if there is a certificate.
    pub(crate) async fn serve_within(&self, deadlines: Deadlines, tls: Option<Tls>) -> Server {
        self.start(Choices { deadlines, tls, ..Choices::default() }).await
    }

    async fn start(&self, choices: Choices) -> Server {
        Server::start(self.open(), self.dir.path().to_owned(), choices).await
    }
}

/// What differs from one server to another.
#[derive(Default)]
struct Choices {
    is_behind_proxy: bool,
    remote: Terms,
    deadlines: Deadlines,
    tls: Option<Tls>,
}

/// A server that runs beside the test.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    tokens: BTreeMap<Role, String>,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Server {
    async fn start(
        store: Arc<dyn Store>,
        directory: std::path::PathBuf,
        Choices { is_behind_proxy, remote, deadlines, tls }: Choices,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let session = store.register(NewSession::ephemeral("server:1", 1)).await.expect("a session");
        let mut tokens = BTreeMap::new();
        for role in Role::ALL {
            // Another server on the same store has made its own.
            let name = format!("{role}-{}", address.port());
            let (secret, _) = make(store.as_ref(), &name, *role, ("test", None)).await.expect("a token");
            tokens.insert(*role, secret.reveal().to_owned());
        }
        let service = Service {
            store: Arc::clone(&store),
            session,
            max_parallel: 4,
            document_defaults: laneway_core::definition::DocumentDefaults::default(),
            directory,
            names: Names::new(address, ["lane.example".to_owned()]),
            is_tls: tls.is_some(),
            is_behind_proxy,
            remote,
            deadlines,
            reach: Reach::default(),
        };
        let stop = CancellationToken::new();
        let app = service.app(stop.clone());
        let serving = tokio::spawn(serve(listener, app, tls, SOON));
        Self { address, store, session, tokens, stop, serving }
    }

    /// Ends it as a signal would, and waits for that.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.serving).await.expect("it ends").expect("without a panic");
    }

    pub(crate) fn tell_to_stop(&self) {
        self.stop.cancel();
    }

    pub(crate) fn token(&self, role: Role) -> &str {
        &self.tokens[&role]
    }

    pub(crate) fn ask(&self, method: Method, path: &str) -> Asking<'_> {
        Asking { server: self, method, path: path.to_owned(), headers: Vec::new(), body: Vec::new() }
            .with("host", &self.address.to_string())
    }

    /// As an admin.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(Method::GET, path).by(Role::Admin).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Reply {
        self.ask(Method::POST, path).by(Role::Admin).json(&body).send().await
    }

    /// Submits a document; its id.
    pub(crate) async fn submit(&self, document: &str) -> RunId {
        let reply = self.post("/v1/runs", json!({ "document": document, "name": "flow" })).await;
        assert_eq!(reply.status, StatusCode::CREATED, "{reply:?}");
        run_of(&reply.json())
    }
}

pub(crate) fn run_of(answer: &Value) -> RunId {
    answer["run"].as_str().and_then(RunId::parse).expect("the id of a run")
}

/// A request on its way.
pub(crate) struct Asking<'a> {
    server: &'a Server,
    method: Method,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asking<'_> {
    pub(crate) fn by(self, role: Role) -> Self {
        let token = self.server.token(role).to_owned();
        self.bearing(&token)
    }

    pub(crate) fn bearing(self, token: &str) -> Self {
        self.with("authorization", &format!("Bearer {token}"))
    }

    /// The last of a name counts.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.with("content-type", "application/json").raw(body.to_string().into_bytes())
    }

    pub(crate) fn raw(mut self, body: Vec<u8>) -> Self {
        self.body = body;
        self
    }

    /// The answer as soon as it begins.
    pub(crate) async fn begin(self) -> Response<Incoming> {
        let stream = TcpStream::connect(self.server.address).await.expect("a connection");
        let (mut sender, line) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(line);
        let mut request = Request::builder().method(self.method).uri(&self.path);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from(self.body))).expect("a request");
        sender.send_request(request).await.expect("an answer")
    }

    pub(crate) async fn send(self) -> Reply {
        let path = self.path.clone();
        let whole = async {
            let (head, body) = self.begin().await.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            Reply { path, status: head.status, headers: head.headers, body }
        };
        tokio::time::timeout(SOON, whole).await.expect("an answer in time")
    }
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    #[expect(dead_code, reason = "shown when a test fails")]
    pub(crate) path: String,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The status and the code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let kind = self.header("content-type");
        assert_eq!(kind, "application/problem+json", "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], json!(self.status.as_u16()), "{self:?}");
        assert!(!problem["detail"].as_str().unwrap_or_default().is_empty(), "{self:?}");
        (self.status.as_u16(), problem["code"].as_str().expect("a code").to_owned())
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// Somebody who takes tasks and says how they ended, without doing anything.
pub(crate) struct Actor {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
}

impl Actor {
    pub(crate) async fn join(place: &Place, name: &str) -> Self {
        let store = place.open();
        let offer = Offer {
            node: name.to_owned(),
            labels: Default::default(),
            has_process: true,
            ..Offer::default()
        };
        let session = NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 4) };
        let session = store.register(session).await.expect("a session");
        Self { store, session }
    }

    pub(crate) async fn take(&self, limit: usize) -> Vec<Claim> {
        let ask = Ask { session: self.session, run: None, limit, ahead: 0 };
        let claims = self.store.claim(ask).await.expect("claims");
        self.store.start(claims.iter().map(|claim| claim.at).collect()).await.expect("a start");
        claims
    }

    pub(crate) async fn end(&self, claim: &Claim, is_good: bool) {
        let outcome = if is_good {
            Outcome::Succeeded { output: Map::new() }
        } else {
            let (reason, detail) = (laneway_core::reason::Reason::Exit, "exit code 1".to_owned());
            Outcome::Failed { reason, detail, exit_code: Some(1) }
        };
        let finished = Finished::new(claim.at, outcome, Duration::from_millis(7));
        self.store.finish(vec![finished], None).await.expect("an end");
    }

    /// All that there is to do, to its end.
    pub(crate) async fn work(&self, is_good: bool) -> usize {
        let mut done = 0;
        loop {
            let claims = self.take(9).await;
            if claims.is_empty() {
                return done;
            }
            for claim in &claims {
                self.end(claim, is_good).await;
            }
            done += claims.len();
        }
    }
}
