//! A place for a store, nodes that work on it, and short words for what they do. Every verb that
//! changes a run is followed by `audit::check`.

use std::ffi::OsStr;
use std::future::Future;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::definition::{Source, compile};
use laneway_core::event::Event;
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::plan::Plan;
use laneway_core::reason::Reason;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{
    Answer, Ask, Attempt, CancelMode, Claim, Finished, NewSession, Outcome, Renewed, Reopen, RunView, Stop,
    Submission, Tally,
};
use laneway_store::sqlite::{Clock, SqliteStore};
use laneway_store::{ClaimRef, Fate, Open, Result, Store};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::audit;
use crate::server::{self, Schema};

/// The databases that the suite drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    /// How many random cases to try. Each needs a schema of its own on Postgres, and every look a
    /// journey.
    pub(crate) fn cases(self, cases: u32) -> u32 {
        match self {
            Self::Sqlite => cases,
            Self::Postgres => (cases / 10).max(5),
        }
    }
}

/// Runs each named function once per database: with a fresh place, or, `by name`, with the
/// database's name; those that look beneath the verbs, or at what SQLite alone has, are `sqlite
/// only`. A function that is not named is reported as dead code.
macro_rules! for_each_database {
    (by name: $($name:ident,)+) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                super::$name(crate::harness::Database::Sqlite);
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                super::$name(crate::harness::Database::Postgres);
            })+
        }
    };
    (sqlite only: $($name:ident,)+) => {
        mod sqlite_only {
            $(#[test]
            fn $name() {
                crate::harness::run(crate::harness::Database::Sqlite, super::$name);
            })+
        }
    };
    ($($name:ident,)+) => {
        mod sqlite {
            $(#[test]
            fn $name() {
                crate::harness::run(crate::harness::Database::Sqlite, super::$name);
            })+
        }
        mod postgres {
            $(#[test]
            fn $name() {
                crate::harness::run(crate::harness::Database::Postgres, super::$name);
            })+
        }
    };
}
pub(crate) use for_each_database;

pub(crate) fn run<F: Future<Output = ()>>(database: Database, test: impl FnOnce(Place) -> F) {
    block_on(test(Place::new(database)));
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("threads can be started").block_on(future)
}

/// The one place where this suite starts a process.
#[expect(clippy::disallowed_methods, reason = "a test needs another process: one to kill, one that may less")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}

/// When every store of this suite begins.
pub(crate) const START: Millis = Millis(1_700_000_000_000);

/// What every holder's own watch says of its attempts.
pub(crate) const TOOK: Duration = Duration::from_millis(7);

/// Where one fresh store lives, with its clock.
pub(crate) struct Place {
    pub(crate) database: Database,
    pub(crate) clock: Arc<Clock>,
    dir: TempDir,
    schema: Option<Schema>,
}

impl Place {
    pub(crate) fn new(database: Database) -> Self {
        Self::within(database, std::env::temp_dir())
    }

    /// In memory where the system has such a place: for thousands of verbs whose order matters, not
    /// their disk.
    pub(crate) fn quick(database: Database) -> Self {
        let memory = PathBuf::from("/dev/shm");
        Self::within(database, if memory.is_dir() { memory } else { std::env::temp_dir() })
    }

    fn within(database: Database, parent: PathBuf) -> Self {
        let dir = tempfile::tempdir_in(parent).expect("a temporary directory");
        let schema = match database {
            Database::Sqlite => None,
            Database::Postgres => Some(Schema::new()),
        };
        Self { database, clock: Arc::new(Clock::manual(START)), dir, schema }
    }

    /// The store's file, for those who look beneath the verbs.
    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("laneway.db")
    }

    /// A handle of its own: to the others it is another process.
    pub(crate) fn open(&self) -> Arc<dyn Store> {
        self.open_by(&self.clock)
    }

    /// The same with a clock of its own.
    pub(crate) fn open_by(&self, clock: &Arc<Clock>) -> Arc<dyn Store> {
        match &self.schema {
            None => {
                let store = SqliteStore::open_with(&self.path(), Open::Create, Arc::clone(clock));
                Arc::new(store.expect("a store that opens"))
            }
            Some(schema) => Arc::new(schema.open_by(clock)),
        }
    }

    /// The same, of a deployment whose tasks come back so often.
    pub(crate) fn open_for(&self, max_lost: u32) -> Arc<dyn Store> {
        match &self.schema {
            None => {
                let store = SqliteStore::open_with(&self.path(), Open::Create, Arc::clone(&self.clock));
                Arc::new(store.expect("a store that opens").with_max_lost(max_lost))
            }
            Some(schema) => Arc::new(schema.open_by(&self.clock).with_max_lost(max_lost)),
        }
    }

    /// A node in a process of its own.
    pub(crate) async fn node(&self, name: &str) -> Node {
        Node::register(self.open(), name).await
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

/// A session on a store. Dropping the last handle of its store is the death of its process.
#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    life: Arc<Life>,
}

/// On Postgres a session lives as long as it is renewed. Here it lives as long as somebody holds
/// its node, and is over in the moment in which nobody does, as a process that holds a lock; what
/// time does to leases has its own tests.
struct Life {
    dir: PathBuf,
    session: SessionId,
}

impl Life {
    async fn begin(store: &dyn Store, session: SessionId) -> Self {
        let life = Self { dir: store.dir().to_owned(), session };
        life.prolong().await;
        life
    }

    async fn prolong(&self) {
        if let Some(beneath) = server::beneath(&self.dir).await {
            let (session, always) = (self.session.to_string(), i64::MAX / 2);
            let renew = "UPDATE sessions SET renewed_at = $2, expires_at = $2 WHERE id = $1";
            beneath.execute(renew, &[&session, &always]).await.expect("a lease without an end");
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        // A store that is gone has no sessions, and a test that failed has its own words.
        if self.dir.exists() && !std::thread::panicking() {
            let (dir, session) = (self.dir.clone(), self.session.to_string());
            server::at_once(async move {
                if let Some(beneath) = server::beneath(&dir).await {
                    let end = "UPDATE sessions SET expires_at = 0 WHERE id = $1";
                    beneath.execute(end, &[&session]).await.expect("a lease that ends");
                }
            });
        }
    }
}

/// A claim with the name of its step.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) at: ClaimRef,
    pub(crate) step: String,
    pub(crate) is_late: bool,
}

impl Held {
    pub(crate) fn of(claim: Claim) -> Self {
        let is_late = claim.is_late();
        Self { step: claim.head.plan.task_name(claim.at.position), at: claim.at, is_late }
    }
}

impl Node {
    pub(crate) async fn register(store: Arc<dyn Store>, name: &str) -> Self {
        Self::join(store, NewSession::ephemeral(name, 4)).await
    }

    /// Renews the session, and lets it live on as before.
    pub(crate) async fn renew(&self) -> Result<Renewed> {
        let renewed = self.store.renew(self.session, Tally::default()).await?;
        self.life.prolong().await;
        Ok(renewed)
    }

    /// A node that takes work of others, with labels as `zone=eu`.
    pub(crate) async fn worker(store: Arc<dyn Store>, name: &str, labels: &[&str]) -> Self {
        let pair = |label: &&str| {
            let (name, value) = label.split_once('=').expect("a label has a value");
            (name.to_owned(), value.to_owned())
        };
        let offer = Offer {
            node: name.to_owned(),
            labels: labels.iter().map(pair).collect(),
            has_process: true,
            ..Offer::default()
        };
        Self::join(store, NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 4) }).await
    }

    pub(crate) async fn join(store: Arc<dyn Store>, node: NewSession) -> Self {
        let session = store.register(node).await.expect("a session");
        let life = Arc::new(Life::begin(&*store, session).await);
        Self { store, session, life }
    }

    /// Submits a run that any node takes.
    pub(crate) async fn share(&self, document: &str) -> RunId {
        let submission = Submission { is_shared: true, ..submission(document, json!({}), self.session) };
        let run = self.store.submit(submission).await.expect("a run");
        audit::check(&*self.store, run).await;
        run
    }

    /// Claims whatever this node takes.
    pub(crate) async fn take_any(&self, limit: usize) -> Vec<Held> {
        let ask = Ask { session: self.session, run: None, limit, ahead: 0 };
        let claims = self.store.claim(ask).await.expect("a claim");
        for claim in &claims {
            audit::check(&*self.store, claim.at.run).await;
        }
        claims.into_iter().map(Held::of).collect()
    }

    /// Why a step waits, as one sentence.
    pub(crate) async fn why(&self, run: RunId, step: &str) -> String {
        let view = self.view(run).await;
        let position = view.plan.position(step).expect("a step of that name");
        view.causes[position as usize].as_ref().map_or_else(String::new, |cause| cause.text.clone())
    }

    pub(crate) async fn submit(&self, document: &str) -> RunId {
        self.submit_with(document, json!({})).await
    }

    pub(crate) async fn submit_with(&self, document: &str, params: Value) -> RunId {
        let run = self.store.submit(submission(document, params, self.session)).await.expect("a run");
        audit::check(&*self.store, run).await;
        run
    }

    pub(crate) fn ask(&self, run: RunId, limit: usize) -> Ask {
        Ask { session: self.session, run: Some(run), limit, ahead: 0 }
    }

    /// Claims up to `limit` tasks.
    pub(crate) async fn take(&self, run: RunId, limit: usize) -> Vec<Held> {
        self.take_ahead(run, limit, 0).await
    }

    /// Claims up to `limit` tasks to start, and `ahead` more to hold.
    pub(crate) async fn take_ahead(&self, run: RunId, limit: usize, ahead: usize) -> Vec<Held> {
        let ask = Ask { ahead, ..self.ask(run, limit) };
        let claims = self.store.claim(ask).await.expect("a claim");
        audit::check(&*self.store, run).await;
        claims.into_iter().map(Held::of).collect()
    }

    /// Claims the one task that is expected to be next, and starts it.
    pub(crate) async fn begin(&self, run: RunId, step: &str) -> Held {
        let held = self.take(run, 1).await.pop().unwrap_or_else(|| panic!("{step} is not available"));
        assert_eq!(held.step, step);
        assert_eq!(self.start(&held).await, Fate::Recorded);
        held
    }

    pub(crate) async fn start(&self, held: &Held) -> Fate {
        let fates = self.store.start(vec![held.at]).await.expect("an answer");
        audit::check(&*self.store, held.at.run).await;
        fates[0]
    }

    pub(crate) async fn give_back(&self, held: &Held) -> Fate {
        let fates = self.store.give_back(vec![held.at]).await.expect("an answer");
        audit::check(&*self.store, held.at.run).await;
        fates[0]
    }

    pub(crate) async fn finish_with(&self, held: &Held, outcome: Outcome) -> Answer {
        let finished = vec![Finished::new(held.at, outcome, TOOK)];
        let answer = self.store.finish(finished, Some(self.ask(held.at.run, 0))).await.expect("an answer");
        audit::check(&*self.store, held.at.run).await;
        answer
    }

    pub(crate) async fn finish(&self, held: &Held, outcome: Outcome) -> Fate {
        self.finish_with(held, outcome).await.fates[0]
    }

    pub(crate) async fn succeed(&self, held: &Held) {
        assert_eq!(self.finish(held, succeeded()).await, Fate::Recorded);
    }

    pub(crate) async fn fail(&self, held: &Held) {
        assert_eq!(self.finish(held, failed(1)).await, Fate::Recorded);
    }

    pub(crate) async fn cancel(&self, run: RunId) -> RunStatus {
        self.cancel_as(run, CancelMode::CleanUp).await
    }

    /// Without clean-up, or as the end of it.
    pub(crate) async fn cancel_now(&self, run: RunId) -> RunStatus {
        self.cancel_as(run, CancelMode::Now).await
    }

    async fn cancel_as(&self, run: RunId, mode: CancelMode) -> RunStatus {
        let status = self.store.cancel(run, "ada", mode).await.expect("a run to cancel");
        audit::check(&*self.store, run).await;
        status
    }

    pub(crate) async fn retry(&self, run: RunId, from: Option<&str>) -> Result<Vec<String>> {
        let steps = self.store.retry(run, Reopen::now(from), "ada").await;
        audit::check(&*self.store, run).await;
        steps
    }

    pub(crate) async fn skip(&self, run: RunId, step: &str) -> Result<Vec<String>> {
        let steps = self.store.skip(run, step, "ada").await;
        audit::check(&*self.store, run).await;
        steps
    }

    pub(crate) async fn promote(&self) -> Option<Millis> {
        self.store.promote().await.expect("an answer")
    }

    /// Claims, starts and finishes one task after the other until none is available. Returns the
    /// order.
    pub(crate) async fn work(&self, run: RunId, outcome: impl Fn(&str) -> Outcome) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(held) = self.take(run, 1).await.pop() {
            assert_eq!(self.start(&held).await, Fate::Recorded);
            assert_eq!(self.finish(&held, outcome(&held.step)).await, Fate::Recorded);
            order.push(held.step);
        }
        order
    }

    pub(crate) async fn view(&self, run: RunId) -> RunView {
        self.store.run(run).await.expect("a run")
    }

    pub(crate) async fn state(&self, run: RunId) -> RunState {
        self.store.run_state(run).await.expect("a run")
    }

    pub(crate) async fn status(&self, run: RunId) -> RunStatus {
        self.store.status(run).await.expect("a run")
    }

    pub(crate) async fn task(&self, run: RunId, step: &str) -> TaskState {
        let state = self.state(run).await;
        state.tasks.into_iter().find(|task| task.step == step).expect("a step of that name")
    }

    pub(crate) async fn events(&self, run: RunId) -> Vec<Event> {
        self.store.events_since(run, 0, usize::MAX).await.expect("events")
    }

    pub(crate) async fn attempts(&self, run: RunId, step: &str) -> Vec<Attempt> {
        self.store.attempts(run, step).await.expect("attempts")
    }

    pub(crate) async fn stops(&self) -> Vec<Stop> {
        self.store.orders(self.session).await.expect("an answer").stops
    }

    /// All tasks in one line: `a succeeded, b skipped (upstream)`.
    pub(crate) async fn tasks(&self, run: RunId) -> String {
        let state = self.state(run).await;
        let shown = state.tasks.iter().map(|task| match task.reason {
            Some(reason) => format!("{} {} ({reason})", task.step, task.status),
            None => format!("{} {}", task.step, task.status),
        });
        shown.collect::<Vec<_>>().join(", ")
    }
}

pub(crate) fn names(held: &[Held]) -> Vec<&str> {
    held.iter().map(|held| held.step.as_str()).collect()
}

pub(crate) fn succeeded() -> Outcome {
    Outcome::Succeeded { output: Map::new() }
}

pub(crate) fn succeeded_with(output: Value) -> Outcome {
    let Value::Object(output) = output else { panic!("an output is an object") };
    Outcome::Succeeded { output }
}

pub(crate) fn failed(code: i32) -> Outcome {
    let detail = format!("exit code {code}");
    Outcome::Failed { reason: Reason::Exit, detail, exit_code: Some(code) }
}

pub(crate) fn canceled(reason: Reason) -> Outcome {
    Outcome::Canceled { reason }
}

/// A document: keys of its head, then steps as name and further keys.
pub(crate) fn flow(head: &str, steps: &[(&str, &str)]) -> String {
    let mut text = format!("name: flow\n{head}\nsteps:\n");
    for (name, keys) in steps {
        let comma = if keys.is_empty() { "" } else { ", " };
        text.push_str(&format!("  {name}: {{run: \"true\"{comma}{keys}}}\n"));
    }
    text
}

/// `count` steps without needs, named `s0`, `s1`, …
pub(crate) fn flat(count: usize, max_parallel: usize) -> String {
    let names: Vec<String> = (0..count).map(|step| format!("s{step}")).collect();
    let steps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    flow(&format!("max_parallel: {max_parallel}"), &steps)
}

pub(crate) fn plan(document: &str) -> Plan {
    let source =
        Source { file: "flow.yaml".to_owned(), default_name: "flow".to_owned(), text: document.to_owned() };
    compile(&source).unwrap_or_else(|found| panic!("{}\n{document}", found.render(false)))
}

pub(crate) fn submission(document: &str, params: Value, owner: SessionId) -> Submission {
    let plan = plan(document);
    let Value::Object(given) = params else { panic!("params are an object") };
    let params = laneway_core::params::bind(&plan.workflow, given).expect("params that fit");
    let max_parallel = plan.workflow.max_parallel.map_or(4, std::num::NonZeroU32::get);
    Submission {
        dir: "/tmp".to_owned(),
        params,
        max_parallel,
        by: "ada".to_owned(),
        ..Submission::new(Arc::new(plan), document.to_owned(), owner)
    }
}

/// Why a session of a test ends.
pub(crate) fn left() -> Leaving {
    Leaving::because(LeaveReason::Done)
}
