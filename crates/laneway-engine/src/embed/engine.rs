//! An engine: a session on a store, the loop that takes its tasks, and the hands of the program on it.
//!
//! ```text
//!   submit ──▶ store ◀── worker loop (a task of the caller's runtime) ──▶ functions, processes, containers
//!   outcome ◀── hints, events ──┘            heartbeat (a thread, where sessions are leases)
//! ```
//! `shutdown` lets what runs end, for a while, and gives the rest back, as the loop does when it cannot go on (`life.rs`). After the loss of
//! its session the engine joins again with another. What an engine that was dropped or killed held is found by the next one.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::class::Offer;
use laneway_core::definition::{DocumentDefaults, Placement};
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::params;
use laneway_core::state::RunStatus;
use laneway_store::model::{CancelMode, DEFAULT_MAX_PARALLEL, Lease, NewSession, SetAside, Submission};
use laneway_store::{Open, Options, Store, submission_key};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::life::{Joined, Life, Session};
use super::outcome::Outcome;
use super::workflow::Workflow;
use super::{Error, WARDEN};
use crate::child::Starter;
use crate::container::Containers;
use crate::fire::Firer;
use crate::function::{Call, Functions};
use crate::warden::{Warden, WardenCommand};
use crate::worker::{Control, Counts, Cut, Ground, Heartbeat, Means, Worker, return_what_is_left};

/// Variables that processes see, beside those of their document.
const PASSED: [&str; 5] = ["PATH", "HOME", "LANG", "TZ", "TMPDIR"];

/// How often it is asked whether a run that somebody waits for can still end: all of it is read for that.
const QUIET: Duration = Duration::from_secs(5);

/// How an engine is to be.
#[derive(Debug, Clone)]
#[must_use = "it does nothing until it is started"]
pub struct Builder {
    store: String,
    options: Options,
    name: String,
    slots: u32,
    functions: Functions,
    /// How processes are started; without it the engine takes none.
    warden: Option<(PathBuf, Vec<OsString>)>,
    containers: Option<Containers>,
    pass_env: Vec<String>,
    dir: Option<PathBuf>,
    kill_grace: Duration,
    shutdown_grace: Duration,
    lease: Lease,
}

/// A handle on a running engine; cheap to clone. When the last one is gone without [`Engine::shutdown`], what runs is dropped, and
/// whoever opens the store next goes on with it.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Arc<dyn Store>,
    control: Control,
    dir: PathBuf,
    life: Life,
}

/// A run that was submitted.
#[derive(Debug, Clone)]
pub struct Run {
    engine: Engine,
    id: RunId,
}

impl Builder {
    /// Adds a function, in the place of a former one of that name. Its input is read from the step's `with`, its output, an object or
    /// nothing, is the step's output. It is dropped where it waits when the step is canceled or its timeout passes; a panic is a
    /// failure of the attempt.
    pub fn function<I, O, E, F, R>(mut self, name: &str, function: F) -> Self
    where
        I: DeserializeOwned,
        O: Serialize,
        E: fmt::Display,
        F: Fn(Call<I>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<O, E>> + Send + 'static,
    {
        self.functions = self.functions.add(name, function);
        self
    }

    /// What it is called in events and on screens.
    pub fn name(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }

    /// How many tasks it runs at once; 8 unless it is said.
    pub fn slots(self, slots: u32) -> Self {
        Self { slots: slots.max(1), ..self }
    }

    /// Takes steps with `run` and `command` as well. They are started by a program beside this one, which leaves none of them behind:
    /// `laneway-warden`, or `laneway` with the argument `warden`.
    pub fn warden<A: Into<OsString>>(
        self,
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self { warden: Some((program.into(), args.into_iter().map(Into::into).collect())), ..self }
    }

    /// The same with this very program, whose `main` begins with [`super::warden`].
    pub fn own_warden(self) -> Result<Self, Error> {
        let this = std::env::current_exe();
        let this = this.map_err(|source| Error::Start { what: "its own warden", source })?;
        Ok(self.warden(this, [WARDEN]))
    }

    /// Takes steps with `image` and `pool` as well; needs a warden.
    pub fn containers(self, containers: Containers) -> Self {
        Self { containers: Some(containers), ..self }
    }

    /// Variables of this process that steps with `run` and `command` see, beside PATH, HOME, LANG, TZ and TMPDIR.
    pub fn pass_env<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.pass_env.extend(names.into_iter().map(str::to_owned));
        self
    }

    /// Where processes run; the current directory unless it is said.
    pub fn dir(self, dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..self }
    }

    /// Where logs and scratch files are of a store that is no file.
    pub fn data_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.options.data_dir = dir.into();
        self
    }

    /// How long what runs may go on after [`Engine::shutdown`]; 10 s unless it is said.
    pub fn shutdown_grace(self, grace: Duration) -> Self {
        Self { shutdown_grace: grace, ..self }
    }

    /// How long others take this engine for alive without hearing of it, and how often it tells them; 60 s and 5 s
    /// unless it is said. A process that does not run for so long loses its tasks to others, and joins again when it does.
    pub fn lease(self, ttl: Duration, every: Duration) -> Self {
        Self { lease: Lease { ttl, every }, ..self }
    }

    /// Opens the store, which is made if it is not there and migrated if an older program has made it, and begins to take tasks, on the runtime of the caller. What engines that died
    /// have left is taken up.
    pub async fn start(self) -> Result<Engine, Error> {
        let dir = self.dir.clone().unwrap_or_else(|| PathBuf::from("."));
        let dir = std::fs::canonicalize(&dir).map_err(|source| Error::Directory { path: dir, source })?;
        let store = laneway_store::open_with(&self.store, Open::Migrate, &self.options)?;
        let control = Control::new();
        let joined = self.join(&store, &control).await?;
        let join = {
            let (store, control) = (Arc::clone(&store), control.clone());
            move || {
                let (builder, store, control) = (self.clone(), Arc::clone(&store), control.clone());
                async move { builder.join(&store, &control).await }
            }
        };
        let life = Life::begin(joined, control.clone(), join);
        Ok(Engine { inner: Arc::new(Inner { store, control, dir, life }) })
    }

    /// Begins a session, and what works under it.
    async fn join(&self, store: &Arc<dyn Store>, control: &Control) -> Result<Joined, Error> {
        let session = store.register(self.session()).await?;
        match self.begin(store, session).await {
            Ok((worker, heartbeat)) => {
                let firer = Firer { store: Arc::clone(store), session, max_parallel: DEFAULT_MAX_PARALLEL };
                let starter = Starter {
                    store: Arc::clone(store),
                    session,
                    max_parallel: DEFAULT_MAX_PARALLEL,
                    is_local: false,
                    defaults: DocumentDefaults::default(),
                };
                let beside = vec![tokio::spawn(firer.until_over()), tokio::spawn(starter.until_over())];
                let session = Session { store: Arc::clone(store), id: session, heartbeat };
                let work = Box::pin(worker.until_stopped(control.clone()));
                Ok(Joined { work, beside, session })
            }
            Err(error) => {
                drop(store.retire(session, Leaving::because(LeaveReason::Failed)).await);
                Err(error)
            }
        }
    }

    fn session(&self) -> NewSession {
        let offer = Offer {
            node: self.name.clone(),
            has_process: self.warden.is_some(),
            has_container: self.warden.is_some() && self.containers.is_some(),
            functions: self.functions.names().map(str::to_owned).collect(),
            ports: self.containers.as_ref().map(Containers::port_count),
            ..Offer::default()
        };
        let node = NewSession::ephemeral(self.name.clone(), self.slots);
        NewSession { offer: Some(offer), lease: self.lease, fires: true, ..node }
    }

    async fn begin(
        &self,
        store: &Arc<dyn Store>,
        session: SessionId,
    ) -> Result<(Worker, Option<Heartbeat>), Error> {
        let start = |what| move |source| Error::Start { what, source };
        let has_warden = self.warden.is_some();
        let watches_engine = has_warden && self.containers.is_some();
        let (program, args) = self.warden.clone().unwrap_or_default();
        let lock = Some(laneway_store::warden_lock(store.dir(), session));
        let lease = store.lease_file(session).map(|lease| lease.path().to_owned());
        let is_leased = store.takes_lease();
        let command = WardenCommand { program, args, lock, lease, use_cgroups: true, is_leased };
        // Functions need none, and then no process is started at all.
        let warden = if has_warden {
            Warden::start(command).map_err(start("the warden"))?
        } else {
            Warden::idle(command)
        };
        let counts = Counts::default();
        let heartbeat = if store.takes_lease() {
            let (address, options) = (self.store.clone(), self.options.clone());
            let open = move || laneway_store::open_with(&address, Open::Existing, &options);
            let kept = has_warden.then(|| warden.clone());
            let begun = Heartbeat::start(open, session, self.lease, counts.clone(), kept);
            Some(begun.map_err(start("the heartbeat"))?)
        } else if let Some(file) = store.lease_file(session) {
            let kept = has_warden.then(|| warden.clone());
            let begun = Heartbeat::start_on_file(file, self.lease, kept);
            Some(begun.map_err(start("the heartbeat"))?)
        } else {
            None
        };
        return_what_is_left(store.as_ref()).await?;
        let pass_env: Vec<String> =
            PASSED.map(str::to_owned).into_iter().chain(self.pass_env.iter().cloned()).collect();
        let ground =
            if store.is_embedded() { Ground::Beside { pass_env } } else { Ground::Apart { pass_env } };
        let means = Means {
            store: Arc::clone(store),
            session,
            slots: self.slots as usize,
            kill_grace: self.kill_grace,
            warden,
            functions: self.functions.clone(),
            containers: self.containers.clone().unwrap_or_default(),
            pulse: heartbeat.as_ref().map(Heartbeat::pulse),
            counts,
            max_poll_interval: Duration::from_secs(15),
            takes_results: true,
            workspace_max_bytes: crate::WORKSPACE_MAX_BYTES,
        };
        let worker = Worker { means, ground, watches_engine, shutdown_grace: self.shutdown_grace };
        Ok((worker, heartbeat))
    }
}

impl Engine {
    /// An engine on a store: a path, or `postgres://…`.
    pub fn at(store: &str) -> Builder {
        Builder {
            store: store.to_owned(),
            options: Options::default(),
            name: format!("embedded:{}", std::process::id()),
            slots: 8,
            functions: Functions::new(),
            warden: None,
            containers: None,
            pass_env: Vec::new(),
            dir: None,
            kill_grace: Duration::from_secs(5),
            shutdown_grace: Duration::from_secs(10),
            lease: Lease::default(),
        }
    }

    /// Submits a workflow and waits for its end.
    pub async fn run(&self, workflow: &Workflow, params: impl Serialize) -> Result<Outcome, Error> {
        self.submit(workflow, params).await?.outcome().await
    }

    /// Makes a run, which is on disk when this returns. `params` is an object, or `()` for none.
    pub async fn submit(&self, workflow: &Workflow, params: impl Serialize) -> Result<Run, Error> {
        self.submit_as(workflow, params, None).await
    }

    /// The same once for each key: whoever submits with it again gets the same run, also after a crash.
    pub async fn submit_once(
        &self,
        key: &str,
        workflow: &Workflow,
        params: impl Serialize,
    ) -> Result<Run, Error> {
        self.submit_as(workflow, params, Some(key.to_owned())).await
    }

    async fn submit_as(
        &self,
        workflow: &Workflow,
        params: impl Serialize,
        key: Option<String>,
    ) -> Result<Run, Error> {
        key.as_deref().map(submission_key::check).transpose().map_err(Error::Key)?;
        let (plan, document) = workflow.compile()?;
        if plan.workflow.placement == Placement::Local {
            let why = "`placement: local` is for runs of one process; leave it out, or write `pinned`";
            return Err(Error::Document(why.to_owned()));
        }
        let params = params::bind(&plan.workflow, object(params)?).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Error::Params(lines.join("; "))
        })?;
        let max_parallel = plan.workflow.max_parallel.map_or(DEFAULT_MAX_PARALLEL, |number| number.get());
        let mut submission = Submission {
            dir: self.inner.dir.to_string_lossy().into_owned(),
            params,
            max_parallel,
            is_shared: true,
            key,
            by: "embedded".to_owned(),
            ..Submission::new(Arc::new(plan), document, self.inner.life.session())
        };
        loop {
            match self.inner.store.submit(submission.clone()).await {
                Ok(id) => return Ok(self.attach(id)),
                // Nothing was written, and the engine is about to join again.
                Err(laneway_store::Error::SessionOver { .. }) => {
                    submission.session = self.inner.life.session_after(submission.session).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// A run that was submitted before, by whomever.
    pub fn attach(&self, run: RunId) -> Run {
        Run { engine: self.clone(), id: run }
    }

    /// Everything else that can be asked of a store.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// Takes nothing more, lets what runs end for its grace, stops the rest, and gives it back. Gives what did not end by itself: it
    /// runs again wherever the store is opened next. It goes on when nobody waits for it any more, and whoever says it again waits for
    /// the same end; said behind that it does nothing.
    pub async fn shutdown(&self) -> Result<Vec<Cut>, Error> {
        self.inner.control.leave(Leaving::because(LeaveReason::Done));
        self.inner.life.end().await
    }

    /// Waits until this engine takes no more tasks, and says why: it was shut down, or something was wrong that does not pass, and what
    /// it held was given back. A program that is to go on working starts another engine then. The loss of its session is no such end:
    /// the engine joins again.
    pub async fn ended(&self) -> String {
        self.inner.life.over().await
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir: &Path = &self.inner.dir;
        f.debug_struct("Engine")
            .field("session", &self.inner.life.session())
            .field("dir", &dir)
            .finish_non_exhaustive()
    }
}

impl Run {
    pub fn id(&self) -> RunId {
        self.id
    }

    pub async fn status(&self) -> Result<RunStatus, Error> {
        Ok(self.engine.inner.store.status(self.id).await?)
    }

    /// Ends it: what runs is stopped, and nothing of it but steps with `when: always` starts any
    /// more. These and hooks have until the document's `cleanup_timeout` has passed.
    pub async fn cancel(&self) -> Result<(), Error> {
        self.engine.inner.store.cancel(self.id, "embedded", CancelMode::CleanUp).await?;
        Ok(())
    }

    /// Waits for its end, whoever brings that about. An error, with the cause, if this engine stops before.
    pub async fn outcome(&self) -> Result<Outcome, Error> {
        let store = &self.engine.inner.store;
        // Asked for first, so that no change is missed.
        let mut changes = store.changes();
        let patience = store.max_poll_interval().min(Duration::from_secs(1));
        let mut asked = Instant::now();
        loop {
            if store.status(self.id).await?.is_final() {
                return Ok(Outcome::new(store.run_state(self.id).await?));
            }
            if let Some(why) = self.engine.inner.life.why() {
                return Err(Error::Stopped(why));
            }
            drop(tokio::time::timeout(patience, changes.changed()).await);
            if asked.elapsed() >= QUIET {
                self.check_going_on().await?;
                asked = Instant::now();
            }
        }
    }

    /// A run that is set aside has no end until somebody brings it back: whoever waits is told so.
    async fn check_going_on(&self) -> Result<(), Error> {
        match self.engine.inner.store.run(self.id).await?.set_aside {
            Some(SetAside { what, why, .. }) => {
                Err(laneway_store::Error::SetAside { run: self.id.short(), what, why }.into())
            }
            None => Ok(()),
        }
    }
}

fn object(params: impl Serialize) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(params) {
        Ok(Value::Object(params)) => Ok(params),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err(Error::Params("they are no object: give a struct, a map, or () for none".to_owned())),
        Err(error) => Err(Error::Params(error.to_string())),
    }
}
