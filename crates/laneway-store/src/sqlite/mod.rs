//! The embedded store: one SQLite file, one writer thread, readers of their own. Several processes may use one
//! file at the same time. See `docs/design/store.md`.

mod access;
mod backup;
mod bytes;
mod classes;
mod clock;
mod connect;
mod counts;
mod data_dir;
mod doctor;
mod fault;
mod files;
mod frozen;
mod layers;
mod lines;
mod migrate;
mod overview;
mod pools;
mod prune;
mod quarantine;
mod read;
mod remote;
mod run_work;
mod stamp;
mod transfer;
mod txn;
mod unrenewed;
mod verbs;
mod view;
mod waits;
mod watch;
mod write_lock;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use laneway_core::cache::Miss;
use laneway_core::child::Parent;
use laneway_core::effect::EffectId;
use laneway_core::event::Event;
use laneway_core::expression::Scope;
use laneway_core::gate::Gate;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::{InstanceId, RunId, SessionId};
use laneway_core::limit::Limit;
use laneway_core::node_event::{Leaving, NodeEvent};
use laneway_core::plan::{Plan, Position};
use laneway_core::pool::{ContainerTaken, PoolEvent, PoolFact};
use laneway_core::run_state::RunState;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_torture::{Point, pass};
use rusqlite::Connection;
use tokio::sync::watch as signal;
use uuid::Uuid;

pub(crate) use backup::check_copy;
pub use clock::Clock;
pub(crate) use data_dir::{data_dir, shares_dir};
pub(crate) use transfer::{MoveSource, moved_instance, undo_move};
use txn::{Done, Failure, Head, HeadRow, Plans, Shelf, plan, read_head, sql};
use verbs::{
    apply, cache, cancel, children, claim, effects, finish, give_back, levels, lives, people, promote,
    remove, reopen, secrets, start, submit, triggers,
};
use writer::Writer;

use crate::bytes::admit;
use crate::cache::{Behind, Forgotten, Found, KeepResults, Look, Missed, NewResult, ResultView, Which};
use crate::child::{Resumed, WantedPage, Wanting};
use crate::effect::{Begun, EffectEnd, EffectView, NewEffect, Settlement};
use crate::error::{Error, Result, put_off};
use crate::examine;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::{GivenBackBy, no_such_step, unreadable};
use crate::layer::Layer;
use crate::lease::LeaseFile;
use crate::line::{Line, OrderLine};
use crate::locks::{Life, SessionLocks};
use crate::model::{
    Answer, Application, Applied, Artifact, ArtifactView, Ask, Attempt, AuditEntry, CancelMode, Claim,
    Commits, Deed, Definition, Examination, Finished, Horizon, ItemsAsked, KeptPool, Known, LimitView,
    LogName, LogPart, LogPiece, Losses, NewSession, NewSignal, NewToken, NodeView, Opened, Orders, Pausable,
    PoolView, Reaped, RemoteView, Renewed, Reopen, RevokedToken, RotatedToken, RunFilter, RunHead,
    RunOutcome, RunSummary, RunView, SecretView, Signaled, Stamp, Submission, Tally, TaskView, Token,
    TokenRotation, Whom, Wish, WorkflowView,
};
use crate::overview::Overview;
use crate::prune::{Keep, KeepRecords, Prunable, Swept};
use crate::store::{Store, UNHINTED_POLL_INTERVAL};
use crate::tally::GateWaits;
use crate::trigger::{DueNow, End, Fired, Firing, LastFired, Listening, Outbox, TriggerRef, TriggerView};
use crate::{MAX_LOST, Open, SchemaChange};

#[derive(Debug)]
pub struct SqliteStore {
    path: PathBuf,
    dir: PathBuf,
    instance: InstanceId,
    writer: Writer,
    shared: Arc<Shared>,
    changes: signal::Sender<u64>,
    watcher: Mutex<Option<watch::Watcher>>,
    max_lost: u32,
    schema_change: SchemaChange,
}

/// What readers need, on whatever thread they run.
#[derive(Debug)]
struct Shared {
    path: PathBuf,
    dir: PathBuf,
    plans: Arc<Plans>,
    locks: SessionLocks,
    /// Sessions that do not renew their leases, as this process has seen them.
    unrenewed: unrenewed::Unrenewed,
    /// Sessions whose process holds the write lock, as those who wait for it have watched them.
    frozen_writers: unrenewed::Unrenewed,
    clock: Arc<Clock>,
    waits: Arc<Mutex<GateWaits>>,
    /// Idle connections, few of them; one is made when none is idle.
    idle: Mutex<Vec<Connection>>,
    stamps: Mutex<stamp::Stamps>,
}

/// Connections that are kept for the next reader.
const IDLE: usize = 8;

/// Tasks of a run that is read on the caller's thread, or events: some tens of microseconds.
const SMALL: usize = 64;

impl SqliteStore {
    pub fn open(path: &Path, mode: Open) -> Result<Self> {
        Self::open_with(path, mode, Arc::new(Clock::system()))
    }

    /// With a clock of the caller's.
    pub fn open_with(path: &Path, mode: Open, clock: Arc<Clock>) -> Result<Self> {
        let schema_change = connect::prepare(path, mode)?;
        let connection = connect::reader(path)?;
        let look = || Ok((data_dir::recorded(&connection, path)?, transfer::moved_to(&connection)?));
        let (dir, moved_to) = look().map_err(|error| fault::explain(&error, path))?;
        if let Some(to) = moved_to {
            return Err(Error::Moved { path: path.to_owned(), to });
        }
        // A copy of the file alone has none.
        if mode != Open::Existing {
            data_dir::make(&dir).map_err(|error| files::failed(&dir, &error))?;
        }
        let plans = Arc::new(Plans::default());
        let (changes, _) = signal::channel(0);
        let shared = Shared {
            path: path.to_owned(),
            dir: dir.clone(),
            plans: Arc::clone(&plans),
            locks: SessionLocks::new(&dir),
            unrenewed: unrenewed::Unrenewed::default(),
            frozen_writers: unrenewed::Unrenewed::default(),
            clock: Arc::clone(&clock),
            waits: Arc::default(),
            idle: Mutex::new(vec![connection]),
            stamps: Mutex::default(),
        };
        let instance = shared.now(|connection| {
            let text: String = connection.query_row(sql!("instance"), [], |row| row.get(0))?;
            let uuid = Uuid::try_parse(&text).map_err(|_| unreadable("instance id", &text))?;
            Ok(InstanceId::new(uuid))
        })?;
        let shelf = Shelf::new(plans, Arc::clone(&shared.waits));
        let writer = Writer::start(path.to_owned(), shelf, clock, changes.clone())?;
        Ok(Self {
            path: path.to_owned(),
            dir,
            instance,
            writer,
            shared: Arc::new(shared),
            changes,
            watcher: Mutex::default(),
            max_lost: MAX_LOST,
            schema_change,
        })
    }

    /// What opening it has changed about its schema.
    pub fn schema_change(&self) -> SchemaChange {
        self.schema_change
    }

    /// How often a task may be lost with its node before it fails.
    pub fn with_max_lost(self, max_lost: u32) -> Self {
        Self { max_lost, ..self }
    }

    async fn write<T: Send + 'static>(
        &self,
        verb: impl FnMut(&mut txn::Txn<'_>) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let mut written = std::pin::pin!(self.writer.apply(verb));
        loop {
            // Another process may be frozen inside of a write transaction.
            match tokio::time::timeout(frozen::WRITER_LOOK, &mut written).await {
                Ok(written) => return written,
                Err(_) => self.look_for_a_frozen_writer().await,
            }
        }
    }

    /// A question of a few rows, answered on the caller's thread: to hand it to another one costs more than its answer.
    fn look<T>(&self, question: impl FnOnce(&Connection, &Shared) -> Done<T>) -> Result<T> {
        self.shared.now(|connection| question(connection, &self.shared))
    }

    /// Any other question, on a thread of its own.
    async fn read<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection, &Shared) -> Done<T> + Send + 'static,
    ) -> Result<T> {
        let shared = Arc::clone(&self.shared);
        let asked =
            tokio::task::spawn_blocking(move || shared.now(|connection| question(connection, &shared)));
        asked.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    /// A large run, so that nobody waits long for the write lock. It becomes visible with the last chunk.
    async fn submit_in_chunks(&self, submission: Arc<Submission>) -> Result<RunId> {
        let (run, steps) = (RunId::new(Uuid::now_v7()), submission.plan.workflow.steps.len());
        let first = Arc::clone(&submission);
        let known = self.write(move |txn| submit::begin(txn, run, &first)).await?;
        if let Some(known) = known {
            return Ok(known);
        }
        pass(Point::SubmitBegun);
        for chunk in 0..steps.div_ceil(submit::CHUNK) {
            let positions = chunk * submit::CHUNK..steps.min((chunk + 1) * submit::CHUNK);
            self.write(move |txn| {
                submit::add(txn, run, positions.start as Position..positions.end as Position)
            })
            .await?;
            pass(Point::SubmitChunk);
        }
        let ended = self.write(move |txn| submit::end(txn, run, &submission)).await;
        if ended.is_err() {
            // Others of its workflow came first; nobody has seen it.
            self.write(move |txn| submit::discard(txn, run)).await?;
        }
        pass(Point::SubmitAfter);
        ended.map(|()| run)
    }

    /// Reaps sessions of which we hold proof, one transaction each, so that a large one blocks nobody long. What is no
    /// proof for ever is asked again inside of it.
    async fn reap_one(
        &self,
        session: SessionId,
        node: String,
        is_still_over: impl Fn(&txn::Txn<'_>, SessionId) -> Done<bool> + Send + 'static,
        reaped: &mut Reaped,
    ) -> Result<()> {
        let max_lost = self.max_lost;
        let reap = move |txn: &mut txn::Txn<'_>| {
            if is_still_over(txn, session)? { lives::reap(txn, session, None, max_lost) } else { Ok(None) }
        };
        let tasks = self.write(reap).await?;
        if let Some(tasks) = tasks {
            reaped.nodes.push(node);
            reaped.tasks += tasks;
        }
        pass(Point::ReapAfter);
        self.shared.locks.forget(session);
        Ok(())
    }
}

/// What lies beside the file, for whoever copies it.
pub(crate) mod beside {
    pub(crate) use super::connect::make_dir;
    pub(crate) use super::data_dir::{new_data_dir, parent};
    pub(crate) use super::files::hold;
}

impl Shared {
    /// What time it is, never before what the store has written.
    fn moment(&self, connection: &Connection) -> Done<Millis> {
        let floor: i64 = connection.prepare_cached(sql!("clock_read"))?.query_row([], |row| row.get(0))?;
        Ok(self.clock.now(Millis(floor)))
    }

    fn now<T>(&self, question: impl FnOnce(&Connection) -> Done<T>) -> Result<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => connect::reader(&self.path)?,
        };
        // One snapshot for all statements of a question.
        let run = |statement: &str| -> Done<usize> { Ok(connection.prepare_cached(statement)?.execute([])?) };
        let answer = run("BEGIN")
            .and_then(|_| quarantine::guard(|| question(&connection)))
            .and_then(|answer| run("COMMIT").map(|_| answer));
        match answer {
            Ok(answer) => {
                let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                // Each keeps its pages and statements, and so many are seldom wanted at once.
                if idle.len() < IDLE {
                    idle.push(connection);
                }
                Ok(answer)
            }
            // The connection goes with its open transaction.
            Err(Failure::Refused(error)) => Err(error),
            Err(Failure::Sqlite(error)) => Err(fault::explain(&error, &self.path)),
            Err(Failure::Panicked(why)) => Err(quarantine::panicked(why)),
        }
    }

    /// Of a run with few tasks, a plan that need not be made first, and nothing that waits for other runs, of which there may be many.
    fn small_head(&self, connection: &Connection, run: RunId) -> Done<Option<Head>> {
        let row = HeadRow::read(connection, run)?;
        let plan = self.plans.kept(&row.version).filter(|plan| plan.workflow.steps.len() <= SMALL);
        let Some(plan) = plan else { return Ok(None) };
        let head = row.with(plan)?;
        Ok(if read::waits_for_others(connection, head.no)? { None } else { Some(head) })
    }

    fn head(&self, connection: &Connection, run: RunId) -> Done<Head> {
        read_head(connection, &self.plans, run)
    }

    fn position(&self, head: &Head, step: &str) -> Done<Position> {
        let plan = &head.head.plan;
        plan.position(step).ok_or_else(|| no_such_step(&head.head, step).into())
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn register(&self, node: NewSession) -> Result<SessionId> {
        let session = SessionId::new(Uuid::now_v7());
        if node.token.is_none() {
            // A stopped `laneway run` (Ctrl-Z) keeps its tasks: it owns its run.
            let expires = node.offer.is_some();
            self.shared.locks.hold_leased(session, node.lease, expires)?;
        }
        pass(Point::RegisterLocked);
        let written = self.write(move |txn| lives::register(txn, session, &node)).await;
        if !matches!(written, Ok(None)) {
            self.shared.locks.release(session);
        }
        pass(Point::RegisterAfter);
        match written? {
            None => Ok(session),
            Some(found) => Err(Error::Newer { path: self.path.clone(), found, known: migrate::KNOWN }),
        }
    }

    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed> {
        let ((renewed, has_trouble), (told, has_lease)) = self.look(|connection, _| {
            let told = read::done(connection, session)?;
            Ok((read::renewed(connection, session)?, told))
        })?;
        if has_trouble {
            self.write(move |txn| lives::examine_held(txn, session)).await?;
        }
        // Nothing is written for a node that only looks for work.
        if has_lease || told != (Tally { asks: 0, contentions: 0, ..tally }) {
            self.write(move |txn| lives::renew(txn, session, tally)).await?;
        }
        Ok(renewed)
    }

    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()> {
        pass(Point::RetireBefore);
        let max_lost = self.max_lost;
        self.write(move |txn| lives::reap(txn, session, Some(&why), max_lost)).await?;
        pass(Point::RetireAfter);
        self.shared.locks.release(session);
        Ok(())
    }

    async fn reap(&self) -> Result<Reaped> {
        // Before the rows are read: a session whose file was seen then, and which has no row now, is over or begins.
        let mut files = self.shared.locks.list();
        let sessions = self.read(remote::sessions).await?;
        files.retain(|file| !sessions.iter().any(|listed| listed.session == *file));
        self.shared.locks.sweep(files.into_iter());
        let (mut reaped, mut unread) = (Reaped::default(), Ok(()));
        for remote::Listed { session, node, lease } in sessions {
            if let Some(lease) = lease {
                frozen::look_again(&mut reaped, lease.look_again_in);
                if lease.has_ended {
                    let one = self.reap_one(session, node, remote::is_expired, &mut reaped).await;
                    put_off(&mut unread, one)?;
                }
                continue;
            }
            match self.look_for_a_freeze(session, &mut reaped).await? {
                Life::Alive => {}
                Life::Ending => {
                    tracing::warn!(%session, node, "its warden still has steps to kill; its tasks stay where they are");
                    reaped.stuck.extend(self.stuck(session, node));
                }
                // The proof is held until the transaction has committed.
                proof @ Life::Dead(_) => {
                    self.end_a_frozen_writer(session).await;
                    pass(Point::ReapBefore);
                    let one = self.reap_one(session, node, |_, _| Ok(true), &mut reaped).await;
                    put_off(&mut unread, one)?;
                    drop(proof);
                }
            }
        }
        unread.map(|()| reaped)
    }

    async fn end_stopped(&self, session: SessionId) -> Result<bool> {
        Ok(self.end_a_stopped_process(session).await)
    }

    async fn submit(&self, submission: Submission) -> Result<RunId> {
        let submission = Arc::new(submission);
        if submission.plan.workflow.steps.len() > submit::CHUNK {
            return self.submit_in_chunks(submission).await;
        }
        let run = RunId::new(Uuid::now_v7());
        let submitted = self
            .write(move |txn| {
                if let Some(known) = submit::begin(txn, run, &submission)? {
                    return Ok(known);
                }
                submit::add(txn, run, 0..submission.plan.workflow.steps.len() as Position)?;
                submit::end(txn, run, &submission)?;
                Ok(run)
            })
            .await;
        pass(Point::SubmitAfter);
        submitted
    }

    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()> {
        pass(Point::AdoptBefore);
        let adopted = match self.write(move |txn| lives::adopt(txn, run, session)).await {
            // An owner that died is in the way until it is reaped, and nobody may have done so yet.
            Err(Error::Owned { .. }) => {
                self.reap().await?;
                self.write(move |txn| lives::adopt(txn, run, session)).await
            }
            answer => answer,
        };
        pass(Point::AdoptAfter);
        adopted
    }

    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage> {
        self.look(|connection, shared| children::wanted(connection, &shared.plans, &wanting))
    }

    async fn resume_child(
        &self,
        parent: Parent,
        child: RunId,
        session: Option<SessionId>,
    ) -> Result<Resumed> {
        self.write(move |txn| children::resume(txn, &parent, child, session)).await
    }

    async fn family(&self, run: RunId) -> Result<Vec<RunId>> {
        self.read(move |connection, shared| children::family(connection, &shared.plans, run)).await
    }

    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()> {
        let why = why.to_owned();
        self.write(move |txn| children::refused(txn, &parent, &why)).await
    }

    async fn promote(&self) -> Result<Option<Millis>> {
        self.write(|txn| promote::promote(txn)).await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>> {
        self.write(move |txn| claim::claim(txn, &ask)).await
    }

    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>> {
        self.write(move |txn| levels::claim_level(txn, &first)).await
    }

    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.writer.apply(move |txn| start::start(txn, &claims)).await
    }

    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer> {
        self.write(move |txn| finish::finish(txn, &finished, ask.as_ref())).await
    }

    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.write(move |txn| give_back::give_back(txn, &claims, GivenBackBy::Holder)).await
    }

    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        self.write(move |txn| give_back::give_back(txn, &claims, GivenBackBy::Other)).await
    }

    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash> {
        let (hash, bytes) = (admit(&bytes)?, Arc::new(bytes));
        while !self.bring(&hash, &bytes).await? {}
        Ok(hash)
    }

    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        let hash = hash.clone();
        self.read(move |connection, _| bytes::blob(connection, &hash)).await
    }

    async fn keep_file(&self, path: &Path, _shared_cap: u64) -> Result<(ContentHash, u64)> {
        let (dir, path) = (self.dir.clone(), path.to_owned());
        let kept = tokio::task::spawn_blocking(move || files::keep(&dir, &path));
        kept.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()> {
        let (dir, hash, to) = (self.dir.clone(), hash.clone(), to.to_owned());
        let fetched = tokio::task::spawn_blocking(move || files::fetch(&dir, &hash, &to));
        fetched.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    async fn open_file(&self, hash: &ContentHash) -> Result<Opened> {
        let (dir, hash) = (self.dir.clone(), hash.clone());
        Ok(Opened::File(prune::blocking(move || files::open(&dir, &hash)).await??))
    }

    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate> {
        // Until they are named: whoever sweeps waits, and finds them named.
        let dir = self.dir.clone();
        let held = prune::blocking(move || files::hold(&dir)).await??;
        let fate = self.write(move |txn| bytes::keep_artifacts(txn, &claim, &artifacts)).await;
        drop(held);
        fate
    }

    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>> {
        self.read(move |connection, shared| bytes::artifacts(connection, &shared.head(connection, run)?))
            .await
    }

    async fn layers(&self, run: RunId) -> Result<Vec<Layer>> {
        self.read(move |connection, shared| layers::layers(connection, shared.head(connection, run)?.no))
            .await
    }

    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>> {
        let hash = hash.clone();
        self.read(move |connection, shared| {
            layers::packed(connection, shared.head(connection, run)?.no, position, &hash)
        })
        .await
    }

    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun> {
        self.write(move |txn| effects::begin(txn, &claim, &new)).await
    }

    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate> {
        self.write(move |txn| effects::commit(txn, &claim, &end)).await
    }

    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()> {
        let (step, by) = (step.to_owned(), by.to_owned());
        self.write(move |txn| effects::settle(txn, run, &step, (&effect, how, &by))).await
    }

    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>> {
        self.read(move |connection, shared| effects::views(connection, &shared.head(connection, run)?)).await
    }

    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| secrets::set(txn, &name, &sealed, &by)).await
    }

    async fn secret(&self, name: &str) -> Result<Vec<u8>> {
        let name = name.to_owned();
        self.read(move |connection, _| secrets::sealed(connection, &name)).await
    }

    async fn secrets(&self) -> Result<Vec<SecretView>> {
        self.read(|connection, _| secrets::list(connection)).await
    }

    async fn remove_secret(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| secrets::remove(txn, &name)).await
    }

    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>> {
        let dir = self.dir.clone();
        self.read(move |connection, shared| {
            let each = pieces.iter().map(|piece| {
                Ok(match bytes::holder(connection, &shared.plans, piece)? {
                    Some(step) => bytes::write_piece(&dir, &step, piece)?,
                    None => Fate::ClaimLost,
                })
            });
            each.collect()
        })
        .await
    }

    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart> {
        let (of, dir) = (of.clone(), self.dir.clone());
        self.read(move |connection, shared| {
            bytes::position(connection, &shared.plans, &of)?;
            Ok(bytes::read_log(&dir, &of, offset, limit)?)
        })
        .await
    }

    async fn apply(&self, application: Application) -> Result<Applied> {
        self.write(move |txn| apply::apply(txn, &application)).await
    }

    async fn workflows(&self) -> Result<Vec<WorkflowView>> {
        self.read(|connection, _| apply::workflows(connection)).await
    }

    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>> {
        self.read(move |connection, _| view::outcomes(connection, &workflows, limit)).await
    }

    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>> {
        let name = workflow.to_owned();
        self.read(move |connection, _| apply::versions(connection, &name, below, limit)).await
    }

    async fn cached(&self, look: Look) -> Result<Found> {
        self.read(move |connection, shared| cache::look(connection, shared.moment(connection)?, &look)).await
    }

    async fn remember(&self, result: NewResult) -> Result<()> {
        self.write(move |txn| cache::remember(txn, &result)).await
    }

    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()> {
        self.write(move |txn| cache::used(txn, &uses)).await
    }

    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate> {
        self.write(move |txn| cache::note_miss(txn, &claim, &miss)).await
    }

    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>> {
        let step = step.to_owned();
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            cache::missed(connection, head.no, shared.position(&head, &step)?)
        })
        .await
    }

    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>> {
        self.read(move |connection, _| cache::list(connection, &which, behind.as_ref(), limit)).await
    }

    async fn forget_results(&self, which: Which) -> Result<Forgotten> {
        let mut gone = Forgotten::default();
        loop {
            let (which, before) = (which.clone(), gone);
            let verb = move |txn: &mut txn::Txn<'_>| {
                let mut gone = before;
                let has_more = cache::clear(txn, &which, &mut gone)?;
                Ok((gone, has_more))
            };
            let has_more;
            (gone, has_more) = self.write(verb).await?;
            if !has_more {
                return Ok(gone);
            }
        }
    }

    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten> {
        let mut gone = Forgotten::default();
        loop {
            let before = gone;
            let verb = move |txn: &mut txn::Txn<'_>| {
                let mut gone = before;
                let has_more = cache::prune(txn, keep, &mut gone)?;
                Ok((gone, has_more))
            };
            let has_more;
            (gone, has_more) = self.write(verb).await?;
            if !has_more {
                return Ok(gone);
            }
        }
    }

    async fn prune_records(&self, keep: KeepRecords) -> Result<u64> {
        self.prune_some_records(keep).await
    }

    async fn prunable(&self, keep: Keep, limit: usize) -> Result<Vec<Prunable>> {
        self.choose_prunable(keep, limit).await
    }

    async fn prune(&self, run: RunId) -> Result<bool> {
        self.prune_run(run).await
    }

    async fn sweep(&self) -> Result<Swept> {
        self.sweep_all().await
    }

    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus> {
        let by = by.to_owned();
        pass(Point::CancelBefore);
        let canceled = self.write(move |txn| cancel::cancel(txn, run, &by, mode)).await;
        pass(Point::CancelAfter);
        canceled
    }

    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>> {
        let (from, seen, by) = (what.from.map(str::to_owned), what.seen, by.to_owned());
        self.write(move |txn| reopen::retry(txn, run, Reopen { from: from.as_deref(), seen }, &by)).await
    }

    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>> {
        let (step, by) = (step.to_owned(), by.to_owned());
        self.write(move |txn| reopen::skip(txn, run, &step, &by)).await
    }

    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled> {
        let step = step.to_owned();
        pass(Point::SignalBefore);
        let signaled = self.write(move |txn| people::signal(txn, run, &step, &signal)).await;
        pass(Point::SignalAfter);
        signaled
    }

    async fn advance(&self, run: RunId, by: &str) -> Result<u32> {
        let by = by.to_owned();
        self.write(move |txn| levels::advance(txn, run, &by)).await
    }

    async fn pause(&self, what: Pausable, by: &str) -> Result<bool> {
        let by = by.to_owned();
        self.write(move |txn| people::pause(txn, &what, &by)).await
    }

    async fn resume(&self, what: Pausable, by: &str) -> Result<bool> {
        let by = by.to_owned();
        self.write(move |txn| people::resume(txn, &what, &by)).await
    }

    async fn due(&self, limit: usize) -> Result<DueNow> {
        self.read(move |connection, shared| triggers::due(connection, shared.moment(connection)?, limit))
            .await
    }

    async fn fire(&self, fired: Fired) -> Result<bool> {
        pass(Point::FireBefore);
        let fired = self.write(move |txn| triggers::fire(txn, &fired)).await;
        pass(Point::FireAfter);
        fired
    }

    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()> {
        self.write(move |txn| triggers::settle(txn, &end, last.as_ref())).await
    }

    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>> {
        self.read(move |connection, _| read::fence(connection, &claim)).await
    }

    // Readers are short, and the write-ahead log is cut behind them.
    async fn horizon(&self, _: Duration) -> Result<Option<Horizon>> {
        Ok(None)
    }

    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>> {
        self.look(|connection, _| triggers::hooks_owed(connection, run))
    }

    async fn outbox(&self, session: SessionId) -> Result<Outbox> {
        self.look(|connection, shared| triggers::outbox(connection, session, shared.moment(connection)?))
    }

    async fn listening(&self, path: &str) -> Result<Option<Listening>> {
        self.look(|connection, shared| {
            let now = shared.moment(connection)?;
            Ok(triggers::listening(connection, path)?.map(|trigger| Listening { trigger, now }))
        })
    }

    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String> {
        let (path, delivery) = (path.to_owned(), delivery.to_owned());
        self.write(move |txn| triggers::remember_signature(txn, &path, signature, &delivery)).await
    }

    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()> {
        self.write(move |txn| triggers::note_fired(txn, &of, &last)).await
    }

    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool> {
        let (workflow, by) = (workflow.to_owned(), by.to_owned());
        self.write(move |txn| triggers::pause(txn, &workflow, &by)).await
    }

    async fn resume_triggers(&self, workflow: &str) -> Result<bool> {
        let workflow = workflow.to_owned();
        self.write(move |txn| triggers::resume(txn, &workflow)).await
    }

    async fn remove_triggers(&self, workflow: &str) -> Result<u64> {
        let workflow = workflow.to_owned();
        self.write(move |txn| remove::triggers(txn, &workflow)).await
    }

    async fn remove_limit(&self, name: &str) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| remove::limit(txn, &name)).await
    }

    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()> {
        let name = name.to_owned();
        self.write(move |txn| remove::workflow(txn, &name, is_forced)).await
    }

    async fn triggers(&self) -> Result<Vec<TriggerView>> {
        self.read(|connection, _| triggers::all(connection)).await
    }

    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| people::set_limit(txn, &name, limit, &by)).await
    }

    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()> {
        self.write(move |txn| lives::offer_containers(txn, session, answers)).await
    }

    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>> {
        let asked = whom.clone();
        let sessions = self.write(move |txn| lives::drain(txn, &asked, &why)).await?;
        match whom {
            Whom::Node(node) if sessions.is_empty() => Err(Error::NoSuchNode { node }),
            Whom::Node(_) | Whom::Session(_) => Ok(sessions),
        }
    }

    async fn set_aside(&self, run: RunId) -> Result<Option<String>> {
        self.write(move |txn| quarantine::set_aside_if_unfit(txn, run)).await
    }

    async fn release(&self, run: RunId) -> Result<()> {
        let max_lost = self.max_lost;
        self.write(move |txn| quarantine::release(txn, run, max_lost)).await
    }

    async fn make_token(&self, token: NewToken) -> Result<Token> {
        self.write(move |txn| access::make_token(txn, &token)).await
    }

    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken> {
        let (name, by) = (name.to_owned(), by.to_owned());
        self.write(move |txn| access::revoke_token(txn, &name, &by)).await
    }

    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken> {
        self.write(move |txn| access::rotate_token(txn, &rotation)).await
    }

    async fn note_token_use(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(move |txn| access::note_token_use(txn, &id)).await
    }

    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()> {
        self.write(move |txn| pools::tell(txn, session, &facts)).await
    }

    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>> {
        let node = node.map(str::to_owned);
        let question = move |connection: &Connection, _: &Shared| {
            pools::events(connection, node.as_deref(), after, limit)
        };
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn pool_containers(&self) -> Result<Vec<PoolEvent>> {
        self.read(|connection, _| pools::containers(connection)).await
    }

    async fn keep_pools(&self, session: SessionId, kept: Vec<KeptPool>) -> Result<()> {
        self.write(move |txn| pools::keep(txn, session, &kept)).await
    }

    async fn pools(&self) -> Result<Vec<PoolView>> {
        self.read(|connection, _| pools::all(connection)).await
    }

    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()> {
        self.write(move |txn| pools::wish(txn, &sessions, &wish)).await
    }

    async fn record(&self, deed: Deed) -> Result<u64> {
        self.write(move |txn| access::record(txn, &deed)).await
    }

    async fn find_run(&self, name: &str) -> Result<RunId> {
        let name = name.to_owned();
        self.read(move |connection, _| read::find_run(connection, &name)).await
    }

    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>> {
        self.read(move |connection, _| view::run_behind(connection, of.as_deref(), before, count)).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>> {
        self.read(move |connection, shared| view::runs(connection, &shared.locks, &filter)).await
    }

    async fn run(&self, run: RunId) -> Result<RunView> {
        let view = |connection: &Connection, shared: &Shared, head: Head| {
            view::run(connection, &shared.locks, &shared.plans, &head, None)
        };
        let small = self.look(|connection, shared| {
            let head = shared.small_head(connection, run)?;
            head.map(|head| view(connection, shared, head)).transpose()
        })?;
        match small {
            Some(view) => Ok(view),
            None => {
                self.read(move |connection, shared| view(connection, shared, shared.head(connection, run)?))
                    .await
            }
        }
    }

    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>> {
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            let step = shared.position(&head, &asked.step)?;
            view::items(connection, &shared.locks, &shared.plans, (&head, step), &asked)
        })
        .await
    }

    async fn run_state(&self, run: RunId) -> Result<RunState> {
        self.read(move |connection, shared| read::run_state(connection, &shared.head(connection, run)?)).await
    }

    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        let question =
            move |connection: &Connection, _: &Shared| read::events_since(connection, run, after, limit);
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>> {
        let step = step.to_owned();
        self.read(move |connection, shared| {
            let head = shared.head(connection, run)?;
            read::attempts(connection, &head, shared.position(&head, &step)?)
        })
        .await
    }

    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>> {
        let step = step.to_owned();
        self.read(move |connection, _| pools::taken(connection, run, &step)).await
    }

    async fn plan(&self, version: &Version) -> Result<Arc<Plan>> {
        let version = version.clone();
        self.read(move |connection, shared| plan(connection, &shared.plans, &version)).await
    }

    async fn document(&self, version: &Version) -> Result<String> {
        let version = version.clone();
        self.read(move |connection, _| read::document(connection, &version)).await
    }

    async fn latest(&self, workflow: &str) -> Result<Known> {
        self.look(|connection, _| read::latest(connection, workflow))
    }

    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope> {
        let steps: Vec<String> = steps.iter().map(|step| (*step).to_owned()).collect();
        self.read(move |connection, shared| {
            let names: Vec<&str> = steps.iter().map(String::as_str).collect();
            read::scope(connection, &shared.head(connection, run)?, &names)
        })
        .await
    }

    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>> {
        self.read(move |connection, shared| remote::view(connection, shared, session)).await
    }

    async fn remotes(&self) -> Result<Vec<SessionId>> {
        self.read(|connection, _| remote::all(connection)).await
    }

    async fn head(&self, run: RunId) -> Result<Arc<RunHead>> {
        self.read(move |connection, shared| Ok(Arc::clone(&shared.head(connection, run)?.head))).await
    }

    async fn status(&self, run: RunId) -> Result<RunStatus> {
        self.look(|connection, _| read::status(connection, run))
    }

    async fn limits(&self) -> Result<Vec<LimitView>> {
        self.read(|connection, _| view::limits(connection)).await
    }

    async fn line(&self, of: crate::line::Shared, limit: usize) -> Result<Line> {
        self.read(move |connection, shared| lines::line(connection, &shared.plans, &of, limit)).await
    }

    async fn locks(&self, limit: usize) -> Result<Vec<String>> {
        self.read(move |connection, _| lines::locks(connection, limit)).await
    }

    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>> {
        self.read(move |connection, shared| lines::orders(connection, &shared.plans, limit, each)).await
    }

    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>> {
        self.look(|connection, _| read::workflow_paused(connection, workflow))
    }

    async fn overview(&self) -> Result<Overview> {
        self.read(overview::overview).await
    }

    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>> {
        self.read(|connection, _| view::backlog(connection)).await
    }

    async fn parked(&self) -> Result<u64> {
        self.read(|connection, _| view::parked(connection)).await
    }

    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>> {
        self.read(move |connection, shared| view::nodes(connection, shared, claims)).await
    }

    async fn losses(&self) -> Result<Losses> {
        self.read(|connection, _| view::losses(connection)).await
    }

    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>> {
        let node = node.map(str::to_owned);
        let question = move |connection: &Connection, _: &Shared| {
            view::node_events(connection, node.as_deref(), after, limit)
        };
        if limit <= SMALL { self.look(question) } else { self.read(question).await }
    }

    async fn orders(&self, session: SessionId) -> Result<Orders> {
        let (stops, wishes) = self.look(|connection, _| {
            read::alive(connection, session)?;
            let stops = read::stops(connection, session, |no| read::run_id(connection, no))?;
            Ok((stops, pools::wishes(connection, session)?))
        })?;
        if stops.has_trouble {
            self.write(move |txn| lives::examine_held(txn, session)).await?;
        }
        Ok(Orders { stops: stops.list, wishes: wishes.list, unreadable: wishes.unreadable })
    }

    async fn wake_at(&self) -> Result<Option<Millis>> {
        self.look(|connection, _| promote::next(connection))
    }

    async fn token(&self, id: &str) -> Result<Option<Token>> {
        self.look(|connection, shared| access::token(connection, id, shared.moment(connection)?))
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.read(|connection, shared| access::tokens(connection, shared.moment(connection)?)).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.read(move |connection, _| access::audit(connection, before, limit)).await
    }

    async fn examine(&self, limit: usize) -> Result<Examination> {
        let examined = self.read(move |connection, shared| doctor::examine(connection, shared, limit)).await;
        let mut examination = examined?;
        examination.findings.extend(examine::of_no_run(self).await);
        Ok(examination)
    }

    async fn backup(&self, to: &Path) -> Result<()> {
        let (from, to) = (self.path.clone(), to.to_owned());
        let made = tokio::task::spawn_blocking(move || backup::backup(&from, &to));
        made.await.map_err(|error| Error::Closed { why: error.to_string() })?
    }

    fn stamp(&self) -> Option<Stamp> {
        let mut stamps = self.shared.stamps.lock().unwrap_or_else(PoisonError::into_inner);
        stamps.now(&self.path)
    }

    fn changes(&self) -> signal::Receiver<u64> {
        let mut watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        if watcher.is_none() {
            *watcher = watch::Watcher::start(self.path.clone(), self.changes.clone());
        }
        self.changes.subscribe()
    }

    fn poll_interval(&self, setting: Duration) -> Duration {
        let is_watched = self.watcher.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if is_watched { setting } else { setting.min(UNHINTED_POLL_INTERVAL) }
    }

    fn instance(&self) -> InstanceId {
        self.instance
    }

    fn gate_waits(&self) -> GateWaits {
        *self.shared.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn commits(&self) -> Option<Commits> {
        Some(self.writer.commits())
    }

    /// A session lives while its process holds a lock.
    fn lease_file(&self, session: SessionId) -> Option<Arc<LeaseFile>> {
        self.shared.locks.own_lease(session)
    }
    fn takes_lease(&self) -> bool {
        false
    }

    fn is_embedded(&self) -> bool {
        true
    }

    fn dir(&self) -> &Path {
        &self.dir
    }
}
