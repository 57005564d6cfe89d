//! The store of many nodes: one schema of a Postgres database. Whoever connects to it is one of equals. See
//! `docs/design/postgres.md`.

mod access;
mod address;
mod base;
mod bytes;
mod claim_cursor;
mod classes;
mod connect;
mod doctor;
mod facts;
mod fault;
mod follow;
mod layers;
mod lines;
mod link;
mod listen;
mod lock_order;
mod migrate;
mod node_facts;
mod overview;
mod password;
mod placed_tasks;
mod pools;
mod read;
mod remote;
mod row;
mod run_work;
mod save;
mod settle;
mod shelf;
mod tls;
mod together;
mod transfer;
mod verbs;
mod view;
mod waits;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
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
use tokio::sync::watch;
use uuid::Uuid;

use address::Address;
use base::Base;
use connect::Target;
pub use listen::Hearing;
use verbs::{
    apply, cache, children, claim, effects, finish, levels, lives, people, promote, prune, remove, secrets,
    triggers,
};

use crate::bytes::admit;
use crate::cache::{Behind, Forgotten, Found, KeepResults, Look, Missed, NewResult, ResultView, Which};
use crate::child::{Resumed, WantedPage, Wanting};
use crate::effect::{Begun, EffectEnd, EffectView, NewEffect, Settlement};
use crate::error::{Error, Result, put_off};
use crate::examine;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::GivenBackBy;
use crate::layer::Layer;
use crate::line::{Line, OrderLine};
use crate::locks::{Life, SessionLocks};
use crate::model::{
    Answer, Application, Applied, Artifact, ArtifactView, Ask, Attempt, AuditEntry, CancelMode, Claim, Deed,
    Definition, Examination, Finished, Horizon, ItemsAsked, KeptPool, Known, LimitView, LogName, LogPart,
    LogPiece, Losses, NewSession, NewSignal, NewToken, NodeView, Opened, Orders, Pausable, PoolView, Reaped,
    RemoteView, Renewed, Reopen, RevokedToken, RotatedToken, RunFilter, RunHead, RunOutcome, RunSummary,
    RunView, SecretView, Signaled, Submission, Tally, TaskView, Token, TokenRotation, Whom, Wish,
    WorkflowView,
};
use crate::overview::Overview;
use crate::prune::{Keep, KeepRecords, Prunable, RECORD_TURNS, RECORDS_AT_ONCE, Swept};
use crate::sqlite::Clock;
use crate::store::{Store, UNHINTED_POLL_INTERVAL};
use crate::tally::GateWaits;
use crate::trigger::{DueNow, End, Fired, Firing, LastFired, Listening, Outbox, TriggerRef, TriggerView};
use crate::{Open, SchemaChange};

/// Runs that are looked at again in one transaction when a node takes more than before: others wait for what it holds.
const RUNS_AT_ONCE: usize = 20;

pub(crate) use address::without_password;
#[cfg(test)]
pub(crate) use migrate::tests::test_schema;
pub(crate) use transfer::MoveTarget;

/// A URL as people may see it. One that cannot be read may hold a password anywhere.
pub(crate) fn shown(url: &str) -> String {
    Address::parse(url).map_or_else(|_| "postgres://…".to_owned(), |address| address.shown)
}

#[derive(Debug)]
pub struct PostgresStore {
    base: Arc<Base>,
    dir: PathBuf,
    /// By these a process of this host is known to be dead before its lease ends.
    locks: SessionLocks,
    /// Sessions that were registered here: who reaps must itself be alive.
    own: Mutex<Vec<SessionId>>,
    schema_change: SchemaChange,
}

impl PostgresStore {
    /// `dir` is where logs and scratch files of this node go; the database is elsewhere.
    pub fn open(url: &str, dir: &Path, mode: Open) -> Result<Self> {
        Self::open_with(url, dir, mode, Arc::new(Clock::system()))
    }

    /// With a clock of the caller's: a manual one stands in place of the database's.
    pub fn open_with(url: &str, dir: &Path, mode: Open, clock: Arc<Clock>) -> Result<Self> {
        Self::open_any(url, dir, (mode, false), clock)
    }

    /// Opens a store into which a move is unfinished, to look at it.
    pub(crate) fn open_half_moved(url: &str, dir: &Path) -> Result<Self> {
        Self::open_any(url, dir, (Open::Existing, true), Arc::new(Clock::system()))
    }

    fn open_any(
        url: &str,
        dir: &Path,
        (mode, may_be_half_moved): (Open, bool),
        clock: Arc<Clock>,
    ) -> Result<Self> {
        let address = Address::parse(url)?;
        let prepare = Target::prepare(address, mode, may_be_half_moved);
        let (target, instance, schema_change) = at_once(prepare)?;
        crate::private::create_dir_all(&dir.join("sessions")).map_err(|error| Error::Io {
            path: dir.to_owned(),
            why: format!("the directory for logs and scratch files cannot be made: {error}"),
        })?;
        let pool = target.pool()?;
        Ok(Self {
            base: Arc::new(Base::new(target, pool, instance, clock)),
            dir: dir.to_owned(),
            locks: SessionLocks::new(dir),
            own: Mutex::default(),
            schema_change,
        })
    }

    /// What opening it has changed about its schema.
    pub fn schema_change(&self) -> SchemaChange {
        self.schema_change
    }

    /// How often a task may be lost with its node before it fails.
    pub fn with_max_lost(self, max_lost: u32) -> Self {
        self.base.set_max_lost(max_lost);
        self
    }

    /// Whether notifications arrive; for whoever decides how often to look.
    pub fn hearing(&self) -> Option<watch::Receiver<Hearing>> {
        self.base.hearing()
    }

    fn own(&self) -> Vec<SessionId> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Processes of this host, in this directory, that are proven to be dead: after a restart nobody waits for a lease.
    async fn reap_neighbours(&self, reaped: &mut Reaped, unread: &mut Result<()>) -> Result<()> {
        let own = self.own();
        for session in self.locks.list().into_iter().filter(|session| !own.contains(session)) {
            match self.locks.look_after_its_warden(session).await? {
                Life::Alive | Life::Ending => {}
                // The proof is held until the transaction has committed.
                proof @ Life::Dead(_) => {
                    let one = put_off(unread, self.reap_one(session, &lives::End::Dead).await)?;
                    if let Some((node, tasks)) = one.clone().flatten() {
                        reaped.nodes.push(node);
                        reaped.tasks += tasks;
                    }
                    if one.is_some() {
                        self.locks.forget(session);
                    }
                    drop(proof);
                }
            }
        }
        Ok(())
    }

    async fn reap_one(&self, session: SessionId, end: &lives::End) -> Result<Option<(String, usize)>> {
        self.base
            .change(
                |link, terms| async move { lives::reap(&self.base.shelf, &link, terms, session, end).await },
            )
            .await
    }

    /// Sets runs aside of which something that a session holds cannot be read.
    async fn examine_held(&self, session: SessionId) -> Result<()> {
        self.base.write(|link, _| async move { lives::examine_held(&link, session).await }).await
    }

    async fn adopt_once(&self, run: RunId, session: SessionId) -> Result<()> {
        self.base
            .change(
                |link, terms| async move { lives::adopt(&self.base.shelf, &link, terms, run, session).await },
            )
            .await
    }
}

/// Runs to its end on a thread of its own: a store is opened by whoever is in a runtime, and by whoever is not.
fn at_once<T: Send + 'static>(work: impl Future<Output = Result<T>> + Send + 'static) -> Result<T> {
    let failed = |why: String| Error::Closed { why };
    let thread = std::thread::Builder::new().name("laneway-open".to_owned()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|error| Error::Closed { why: error.to_string() })?.block_on(work)
    });
    let thread = thread.map_err(|error| failed(error.to_string()))?;
    thread.join().map_err(|_| failed("the thread that opens it has panicked".to_owned()))?
}

#[async_trait]
impl Store for PostgresStore {
    async fn register(&self, node: NewSession) -> Result<SessionId> {
        let session = SessionId::new(Uuid::now_v7());
        let (node, is_remote) = (&node, node.token.is_some());
        if !is_remote {
            self.locks.hold(session)?;
        }
        let written = self
            .base
            .change(|link, terms| async move { lives::register(&link, terms, session, node).await })
            .await;
        if !matches!(written, Ok(None)) {
            self.locks.release(session);
        }
        if let Some(found) = written? {
            let path = self.base.target.address.path();
            return Err(Error::Newer { path, found, known: migrate::KNOWN });
        }
        if !is_remote {
            self.own.lock().unwrap_or_else(PoisonError::into_inner).push(session);
        }
        Ok(session)
    }

    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed> {
        let renewed = self
            .base
            .write(|link, terms| async move { lives::renew(&link, terms, session, tally).await })
            .await?;
        let (renewed, has_trouble) = renewed.ok_or(Error::SessionOver { session })?;
        if has_trouble {
            self.examine_held(session).await?;
        }
        Ok(renewed)
    }

    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()> {
        self.reap_one(session, &lives::End::Retired(why)).await?;
        self.own.lock().unwrap_or_else(PoisonError::into_inner).retain(|own| *own != session);
        self.locks.release(session);
        Ok(())
    }

    async fn reap(&self) -> Result<Reaped> {
        let own = &self.own();
        let next_in =
            || self.base.write(|link, terms| async move { lives::next_expiry(&link, terms, own).await });
        let (mut reaped, mut unread) = (Reaped::default(), Ok(()));
        self.reap_neighbours(&mut reaped, &mut unread).await?;
        // Every node asks this every few seconds, and usually all others are alive: one statement then.
        reaped.next_in = next_in().await?;
        if reaped.next_in.is_none_or(|left| !left.is_zero()) {
            unread?;
            return Ok(reaped);
        }
        let expired =
            self.base.write(|link, terms| async move { lives::expired(&link, terms, own).await }).await?;
        for (session, _) in expired {
            pass(Point::ExpiredFound);
            let one = self.reap_one(session, &lives::End::Expired).await;
            if let Some((node, tasks)) = put_off(&mut unread, one)?.flatten() {
                pass(Point::ExpiredReaped);
                reaped.nodes.push(node);
                reaped.tasks += tasks;
            }
        }
        unread?;
        reaped.next_in = next_in().await?;
        Ok(reaped)
    }

    async fn submit(&self, submission: Submission) -> Result<RunId> {
        together::submit(&self.base, submission).await
    }

    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()> {
        match self.adopt_once(run, session).await {
            // An owner that died is in the way until it is reaped, and nobody may have done so yet.
            Err(Error::Owned { .. }) => {
                self.reap().await?;
                self.adopt_once(run, session).await?;
            }
            answer => answer?,
        }
        // What the former owner had committed, and not followed up when it died.
        settle::settle_all(&self.base).await
    }

    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { children::wanted(shelf, &link, &wanting).await }).await
    }

    async fn resume_child(
        &self,
        parent: Parent,
        child: RunId,
        session: Option<SessionId>,
    ) -> Result<Resumed> {
        let (shelf, parent) = (&self.base.shelf, &parent);
        self.base
            .change(|link, terms| async move {
                children::resume(shelf, &link, terms, (parent, child), session).await
            })
            .await
    }

    async fn family(&self, run: RunId) -> Result<Vec<RunId>> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { children::family(shelf, &link, run).await }).await
    }

    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()> {
        let (shelf, parent) = (&self.base.shelf, &parent);
        self.base
            .change(|link, terms| async move { children::refused(shelf, &link, terms, parent, why).await })
            .await
    }

    async fn promote(&self) -> Result<Option<Millis>> {
        // Every node asks this every few seconds, and usually nothing is due: one statement then.
        let look = self.base.ask(|link| async move { promote::look(&link, self.base.now()).await }).await?;
        if !look.is_due {
            return Ok(look.next);
        }
        let due = self.base.write(|link, terms| async move { promote::due(&link, terms.now).await }).await?;
        for due in &due {
            match self
                .base
                .change(
                    |link, terms| async move { promote::promote(&self.base.shelf, &link, terms, due).await },
                )
                .await
            {
                // Set aside meanwhile, or over and let go: others go on.
                Ok(()) | Err(Error::SetAside { .. } | Error::NoSuchRun { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        settle::sweep(&self.base).await?;
        self.base.ask(|link| async move { promote::next(&link).await }).await
    }

    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>> {
        if ask.limit + ask.ahead == 0 {
            return Ok(Vec::new());
        }
        claim::claim(&self.base, &ask).await
    }

    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>> {
        levels::claim_level(&self.base, first).await
    }

    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.start(claim)).await
    }

    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer> {
        finish::finish(&self.base, &finished, ask.as_ref()).await
    }

    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.give_back(claim, GivenBackBy::Holder)).await
    }

    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>> {
        finish::say(&self.base, &claims, |keeper, claim| keeper.give_back(claim, GivenBackBy::Other)).await
    }

    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash> {
        let hash = admit(&bytes)?;
        bytes::keep_blob(&self.base, &hash, &bytes).await?;
        Ok(hash)
    }

    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>> {
        self.base.ask(|link| async move { bytes::blob(&link, hash).await }).await
    }

    async fn keep_file(&self, path: &Path, shared_cap: u64) -> Result<(ContentHash, u64)> {
        let bytes = bytes::read_file(path, shared_cap)?;
        let hash = ContentHash::of(&bytes);
        bytes::keep_blob(&self.base, &hash, &bytes).await?;
        Ok((hash, bytes.len() as u64))
    }

    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()> {
        let bytes = self.blob(hash).await?;
        std::fs::write(to, bytes).map_err(|error| Error::Io { path: to.to_owned(), why: error.to_string() })
    }

    async fn open_file(&self, hash: &ContentHash) -> Result<Opened> {
        Ok(Opened::Bytes(self.blob(hash).await?))
    }

    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate> {
        let artifacts = &artifacts;
        self.base
            .write(|link, _| async move {
                bytes::keep_artifacts(&self.base.shelf, &link, claim, artifacts).await
            })
            .await
    }

    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>> {
        self.base
            .ask(|link| async move {
                bytes::artifacts(&link, &*self.base.shelf.head(&link, run).await?).await
            })
            .await
    }

    async fn layers(&self, run: RunId) -> Result<Vec<Layer>> {
        self.base
            .ask(
                |link| async move { layers::layers(&link, self.base.shelf.head(&link, run).await?.no).await },
            )
            .await
    }

    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>> {
        self.base
            .ask(|link| async move {
                layers::packed(&link, self.base.shelf.head(&link, run).await?.no, position, hash).await
            })
            .await
    }

    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun> {
        effects::begin(&self.base, claim, &new).await
    }

    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate> {
        effects::commit(&self.base, claim, &end).await
    }

    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()> {
        let what = (&effect, how, by);
        self.base
            .change(|link, terms| async move {
                effects::settle(&self.base.shelf, &link, terms, (run, step), what).await
            })
            .await
    }

    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>> {
        self.base
            .ask(|link| async move { effects::views(&link, &*self.base.shelf.head(&link, run).await?).await })
            .await
    }

    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()> {
        let sealed = &sealed;
        self.base
            .write(|link, terms| async move { secrets::set(&link, terms, (name, sealed), by).await })
            .await
    }

    async fn secret(&self, name: &str) -> Result<Vec<u8>> {
        self.base.ask(|link| async move { secrets::sealed(&link, name).await }).await
    }

    async fn secrets(&self) -> Result<Vec<SecretView>> {
        self.base.ask(|link| async move { secrets::list(&link).await }).await
    }

    async fn remove_secret(&self, name: &str) -> Result<()> {
        self.base.write(|link, _| async move { secrets::remove(&link, name).await }).await
    }

    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>> {
        let pieces = &pieces;
        self.base
            .write(
                |link, terms| async move { bytes::keep_logs(&self.base.shelf, &link, terms, pieces).await },
            )
            .await
    }

    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart> {
        let range = (offset, limit);
        self.base.ask(|link| async move { bytes::read_log(&self.base.shelf, &link, of, range).await }).await
    }

    async fn apply(&self, application: Application) -> Result<Applied> {
        let application = &application;
        self.base
            .change(
                |link, terms| async move { apply::apply(&self.base.shelf, &link, terms, application).await },
            )
            .await
    }

    async fn workflows(&self) -> Result<Vec<WorkflowView>> {
        self.base.ask(|link| async move { apply::workflows(&link).await }).await
    }

    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>> {
        let workflows = &workflows;
        self.base.ask(|link| async move { view::outcomes(&link, workflows, limit).await }).await
    }

    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>> {
        self.base.ask(|link| async move { apply::versions(&link, workflow, below, limit).await }).await
    }

    async fn cached(&self, look: Look) -> Result<Found> {
        let (look, now) = (&look, self.base.now());
        // The files of a result that is being replaced are not those of its output.
        self.base.ask_at_once(|link| async move { cache::look(&link, now, look).await }).await
    }

    async fn remember(&self, result: NewResult) -> Result<()> {
        let result = &result;
        self.base.write(|link, terms| async move { cache::remember(&link, terms, result).await }).await
    }

    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()> {
        let uses = &uses;
        self.base.write(|link, terms| async move { cache::used(&link, terms, uses).await }).await
    }

    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate> {
        let (shelf, miss) = (&self.base.shelf, &miss);
        self.base.write(|link, _| async move { cache::note_miss(shelf, &link, claim, miss).await }).await
    }

    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>> {
        self.base
            .ask(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                cache::missed(&link, &head, read::position(&head, step)?).await
            })
            .await
    }

    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>> {
        let (which, behind) = (&which, behind.as_ref());
        self.base.ask(|link| async move { cache::list(&link, which, behind, limit).await }).await
    }

    async fn forget_results(&self, which: Which) -> Result<Forgotten> {
        let (which, mut all) = (&which, Forgotten::default());
        loop {
            let said = self.base.write(|link, _| async move { cache::clear(&link, which).await });
            let (gone, has_more) = said.await?;
            all = Forgotten { results: all.results + gone.results, bytes: all.bytes + gone.bytes };
            if !has_more {
                return Ok(all);
            }
        }
    }

    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten> {
        let mut all = Forgotten::default();
        loop {
            let said = self.base.write(|link, terms| async move { cache::prune(&link, terms, keep).await });
            let (gone, has_more) = said.await?;
            all = Forgotten { results: all.results + gone.results, bytes: all.bytes + gone.bytes };
            if !has_more {
                return Ok(all);
            }
        }
    }

    async fn prune_records(&self, keep: KeepRecords) -> Result<u64> {
        let mut gone = 0;
        for (record, kept) in keep.each() {
            for _ in 0..RECORD_TURNS {
                let said = self.base.write(|link, terms| async move {
                    prune::forget_records(&link, terms, record, kept).await
                });
                let some = said.await?;
                gone += some as u64;
                if (some as i64) < RECORDS_AT_ONCE {
                    break;
                }
            }
        }
        Ok(gone)
    }

    async fn prunable(&self, keep: Keep, limit: usize) -> Result<Vec<Prunable>> {
        if keep.bytes.is_some() {
            while self.base.write(|link, _| async move { prune::measure(&link).await }).await? > 0 {}
        }
        let now = self.base.now();
        self.base.ask(|link| async move { prune::choose(&link, now, keep, limit).await }).await
    }

    async fn prune(&self, run: RunId) -> Result<bool> {
        let pruned =
            self.base.change(|link, terms| async move { prune::prune(&link, terms, run).await }).await?;
        self.base.shelf.forget_run(run);
        Ok(pruned)
    }

    async fn sweep(&self) -> Result<Swept> {
        let (mut swept, mut after) = (Swept::default(), Some(String::new()));
        while let Some(last) = after {
            let last = &last;
            let (next, gone) = self
                .base
                .write(|link, terms| async move {
                    let mut gone = Swept::default();
                    Ok((prune::sweep(&link, terms, last, &mut gone).await?, gone))
                })
                .await?;
            swept.things += gone.things;
            swept.bytes += gone.bytes;
            after = next;
        }
        self.base.write(|link, terms| async move { prune::forget_keys(&link, terms).await }).await?;
        Ok(swept)
    }

    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus> {
        self.base
            .change(|link, terms| async move {
                people::cancel(&self.base.shelf, &link, terms, run, (by, mode)).await
            })
            .await
    }

    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>> {
        self.base
            .change(|link, terms| async move {
                people::retry(&self.base.shelf, &link, terms, run, (what, by)).await
            })
            .await
    }

    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>> {
        self.base
            .change(|link, terms| async move {
                people::skip(&self.base.shelf, &link, terms, run, (step, by)).await
            })
            .await
    }

    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled> {
        let signal = &signal;
        pass(Point::SignalBefore);
        let signaled = self
            .base
            .change(|link, terms| async move {
                people::signal(&self.base.shelf, &link, terms, run, (step, signal)).await
            })
            .await;
        pass(Point::SignalAfter);
        signaled
    }

    async fn advance(&self, run: RunId, by: &str) -> Result<u32> {
        let shelf = &self.base.shelf;
        self.base
            .change(|link, terms| async move { levels::advance(shelf, &link, terms, run, by).await })
            .await
    }

    async fn pause(&self, what: Pausable, by: &str) -> Result<bool> {
        let what = &what;
        self.base
            .change(
                |link, terms| async move { people::pause(&self.base.shelf, &link, terms, what, by).await },
            )
            .await
    }

    async fn resume(&self, what: Pausable, by: &str) -> Result<bool> {
        let what = &what;
        self.base
            .change(
                |link, terms| async move { people::resume(&self.base.shelf, &link, terms, what, by).await },
            )
            .await
    }

    async fn due(&self, limit: usize) -> Result<DueNow> {
        self.base.ask(|link| async move { triggers::due(&link, self.base.now(), limit).await }).await
    }

    async fn fire(&self, fired: Fired) -> Result<bool> {
        let fired = &fired;
        pass(Point::FireBefore);
        let fired = self.base.write(|link, _| async move { triggers::fire(&link, fired).await }).await;
        pass(Point::FireAfter);
        fired
    }

    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()> {
        let (end, last) = (&end, last.as_ref());
        self.base.write(|link, _| async move { triggers::settle(&link, end, last).await }).await
    }

    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>> {
        let shelf = &self.base.shelf;
        self.base.ask(|link| async move { read::fence(shelf, &link, &claim).await }).await
    }

    async fn horizon(&self, at_least: Duration) -> Result<Option<Horizon>> {
        self.base.ask(|link| async move { doctor::horizon(&link, at_least).await }).await
    }

    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>> {
        self.base.ask(|link| async move { triggers::hooks_owed(&link, run).await }).await
    }

    async fn outbox(&self, session: SessionId) -> Result<Outbox> {
        self.base.ask(|link| async move { triggers::outbox(&link, self.base.now(), session).await }).await
    }

    async fn listening(&self, path: &str) -> Result<Option<Listening>> {
        self.base.ask(|link| async move { triggers::listening(&link, self.base.now(), path).await }).await
    }

    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String> {
        let (signature, signed) = (&signature, (path, delivery));
        self.base
            .write(|link, terms| async move {
                triggers::remember_signature(&link, terms, signature, signed).await
            })
            .await
    }

    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()> {
        let (of, last) = (&of, &last);
        self.base.write(|link, _| async move { triggers::note_fired(&link, of, last).await }).await
    }

    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool> {
        self.base.change(|link, terms| async move { triggers::pause(&link, terms, workflow, by).await }).await
    }

    async fn resume_triggers(&self, workflow: &str) -> Result<bool> {
        self.base.change(|link, terms| async move { triggers::resume(&link, terms, workflow).await }).await
    }

    async fn remove_triggers(&self, workflow: &str) -> Result<u64> {
        self.base.change(|link, _| async move { remove::triggers(&link, workflow).await }).await
    }

    async fn remove_limit(&self, name: &str) -> Result<()> {
        let shelf = &self.base.shelf;
        self.base.change(|link, _| async move { remove::limit(shelf, &link, name).await }).await
    }

    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()> {
        self.base
            .change(|link, terms| async move { remove::workflow(&link, terms, name, is_forced).await })
            .await
    }

    async fn triggers(&self) -> Result<Vec<TriggerView>> {
        self.base.ask(|link| async move { triggers::all(&link).await }).await
    }

    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()> {
        let set = (name, limit, by);
        self.base.change(|link, terms| async move { people::set_limit(&link, terms, set).await }).await
    }

    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()> {
        let said = self
            .base
            .change(
                |link, terms| async move { lives::offer_containers(&link, terms, session, answers).await },
            )
            .await?;
        if !said {
            return Err(Error::SessionOver { session });
        }
        // Also when nothing is new: the one who said so before may not have got to the end of this.
        let waiting = self.base.ask(|link| async move { lives::waiting_for(&link, session).await }).await?;
        for runs in waiting.chunks(RUNS_AT_ONCE) {
            self.base
                .change(|link, terms| async move { lives::go_on(&self.base.shelf, &link, terms, runs).await })
                .await?;
        }
        Ok(())
    }

    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>> {
        let (asked, why) = (&whom, &why);
        let sessions = self
            .base
            .change(|link, terms| async move { lives::drain(&link, terms, asked, why).await })
            .await?;
        match whom {
            Whom::Node(node) if sessions.is_empty() => Err(Error::NoSuchNode { node }),
            Whom::Node(_) | Whom::Session(_) => Ok(sessions),
        }
    }

    async fn set_aside(&self, run: RunId) -> Result<Option<String>> {
        let set = self
            .base
            .change(|link, terms| async move { doctor::set_aside_if_unfit(&link, terms, run).await })
            .await;
        self.base.shelf.forget_run(run);
        set
    }

    async fn release(&self, run: RunId) -> Result<()> {
        self.base
            .change(|link, terms| async move { doctor::release(&self.base.shelf, &link, terms, run).await })
            .await
    }

    async fn make_token(&self, token: NewToken) -> Result<Token> {
        let token = &token;
        self.base.write(|link, terms| async move { access::make_token(&link, terms, token).await }).await
    }

    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken> {
        self.base.write(|link, terms| async move { access::revoke_token(&link, terms, name, by).await }).await
    }

    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken> {
        let rotation = &rotation;
        self.base.write(|link, terms| async move { access::rotate_token(&link, terms, rotation).await }).await
    }

    async fn note_token_use(&self, id: &str) -> Result<()> {
        self.base.write(|link, terms| async move { access::note_token_use(&link, terms, id).await }).await
    }

    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()> {
        let facts = &facts;
        self.base.write(|link, terms| async move { pools::tell(&link, terms, session, facts).await }).await
    }

    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>> {
        self.base.ask(|link| async move { pools::events(&link, node, after, limit).await }).await
    }

    async fn pool_containers(&self) -> Result<Vec<PoolEvent>> {
        self.base.ask(|link| async move { pools::containers(&link).await }).await
    }

    async fn keep_pools(&self, session: SessionId, kept: Vec<KeptPool>) -> Result<()> {
        let kept = &kept;
        self.base.write(|link, _| async move { pools::keep(&link, session, kept).await }).await
    }

    async fn pools(&self) -> Result<Vec<PoolView>> {
        self.base.ask(|link| async move { pools::all(&link).await }).await
    }

    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()> {
        let (sessions, wish) = (&sessions, &wish);
        self.base.change(|link, _| async move { pools::wish(&link, sessions, wish).await }).await
    }

    async fn record(&self, deed: Deed) -> Result<u64> {
        let deed = &deed;
        self.base.write(|link, terms| async move { access::record(&link, terms, deed).await }).await
    }

    async fn find_run(&self, name: &str) -> Result<RunId> {
        self.base.ask(|link| async move { read::find_run(&link, name).await }).await
    }

    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>> {
        let of = of.as_deref();
        self.base.ask(|link| async move { view::run_behind(&link, of, before, count).await }).await
    }

    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>> {
        let filter = &filter;
        self.base.ask_at_once(|link| async move { view::runs(&link, self.base.now(), filter).await }).await
    }

    async fn run(&self, run: RunId) -> Result<RunView> {
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                view::run(&link, &self.base.shelf, self.base.now(), &head, None).await
            })
            .await
    }

    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>> {
        let asked = &asked;
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                view::items(&link, &self.base.shelf, self.base.now(), &head, asked).await
            })
            .await
    }

    async fn run_state(&self, run: RunId) -> Result<RunState> {
        self.base
            .ask_at_once(|link| async move {
                read::run_state(&link, &*self.base.shelf.head(&link, run).await?).await
            })
            .await
    }

    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>> {
        self.base.ask(|link| async move { read::events_since(&link, run, after, limit).await }).await
    }

    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>> {
        self.base
            .ask_at_once(|link| async move {
                let head = self.base.shelf.head(&link, run).await?;
                read::attempts(&link, &head, read::position(&head, step)?).await
            })
            .await
    }

    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>> {
        self.base.ask(|link| async move { pools::taken(&link, run, step).await }).await
    }

    async fn plan(&self, version: &Version) -> Result<Arc<Plan>> {
        self.base.ask(|link| async move { self.base.shelf.plan(&link, version).await }).await
    }

    async fn document(&self, version: &Version) -> Result<String> {
        self.base.ask(|link| async move { read::document(&link, version).await }).await
    }

    async fn latest(&self, workflow: &str) -> Result<Known> {
        self.base.ask(|link| async move { read::latest(&link, workflow).await }).await
    }

    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope> {
        self.base.ask(|link| async move { read::scope(&link, &*self.base.shelf.head(&link, run).await?, steps).await })
            .await
    }

    async fn orders(&self, session: SessionId) -> Result<Orders> {
        let (orders, has_trouble) =
            self.base.ask(|link| async move { read::orders(&link, session).await }).await?;
        if has_trouble {
            self.examine_held(session).await?;
        }
        Ok(orders)
    }

    async fn wake_at(&self) -> Result<Option<Millis>> {
        self.base.ask(|link| async move { promote::next(&link).await }).await
    }

    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>> {
        let now = self.base.now();
        self.base.ask(|link| async move { remote::view(&link, now, session).await }).await
    }

    async fn remotes(&self) -> Result<Vec<SessionId>> {
        self.base.ask(|link| async move { remote::all(&link).await }).await
    }

    async fn head(&self, run: RunId) -> Result<Arc<RunHead>> {
        self.base
            .ask(|link| async move { Ok(Arc::clone(&self.base.shelf.head(&link, run).await?.head)) })
            .await
    }

    async fn status(&self, run: RunId) -> Result<RunStatus> {
        self.base.ask(|link| async move { read::status(&link, run).await }).await
    }

    async fn limits(&self) -> Result<Vec<LimitView>> {
        self.base.ask(|link| async move { view::limits(&link).await }).await
    }

    async fn line(&self, of: crate::line::Shared, limit: usize) -> Result<Line> {
        let (of, shelf) = (&of, &self.base.shelf);
        self.base.ask_at_once(|link| async move { lines::line(&link, shelf, of, limit).await }).await
    }

    async fn locks(&self, limit: usize) -> Result<Vec<String>> {
        self.base.ask(|link| async move { lines::locks(&link, limit).await }).await
    }

    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>> {
        let shelf = &self.base.shelf;
        self.base.ask_at_once(|link| async move { lines::orders(&link, shelf, limit, each).await }).await
    }

    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>> {
        self.base.ask(|link| async move { view::workflow_paused(&link, workflow).await }).await
    }

    async fn overview(&self) -> Result<Overview> {
        let (shelf, now) = (&self.base.shelf, self.base.now());
        self.base.ask_at_once(|link| async move { overview::overview(&link, shelf, now).await }).await
    }

    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>> {
        self.base.ask(|link| async move { view::backlog(&link).await }).await
    }

    async fn parked(&self) -> Result<u64> {
        self.base.ask(|link| async move { view::parked(&link).await }).await
    }

    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>> {
        self.base
            .ask_at_once(
                |link| async move { view::nodes(&link, &self.base.shelf, self.base.now(), claims).await },
            )
            .await
    }

    async fn losses(&self) -> Result<Losses> {
        self.base.ask(|link| async move { view::losses(&link).await }).await
    }

    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>> {
        self.base.ask(|link| async move { view::node_events(&link, node, after, limit).await }).await
    }

    async fn token(&self, id: &str) -> Result<Option<Token>> {
        self.base.ask(|link| async move { access::token(&link, self.base.now(), id).await }).await
    }

    async fn tokens(&self) -> Result<Vec<Token>> {
        self.base.ask(|link| async move { access::tokens(&link, self.base.now()).await }).await
    }

    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>> {
        self.base.ask(|link| async move { access::audit(&link, before, limit).await }).await
    }

    async fn examine(&self, limit: usize) -> Result<Examination> {
        let mut examination = self
            .base
            .ask_at_once(|link| async move { doctor::examine(&link, self.base.now(), limit).await })
            .await?;
        examination.findings.extend(examine::of_no_run(self).await);
        Ok(examination)
    }

    async fn backup(&self, _: &Path) -> Result<()> {
        let why = format!("{} is copied by its own tools: `pg_dump`", self.base.target.address.shown);
        Err(Error::Address { why })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.base.listen()
    }

    fn poll_interval(&self, setting: Duration) -> Duration {
        let is_heard = self.hearing().is_some_and(|hearing| *hearing.borrow() == Hearing::Listening);
        if is_heard { setting } else { setting.min(UNHINTED_POLL_INTERVAL) }
    }

    fn gate_waits(&self) -> GateWaits {
        self.base.shelf.waits()
    }

    fn contentions(&self) -> u64 {
        self.base.shelf.contentions.load(Ordering::Relaxed)
    }

    fn takes_lease(&self) -> bool {
        true
    }

    fn is_embedded(&self) -> bool {
        false
    }

    fn instance(&self) -> InstanceId {
        self.base.instance
    }

    fn dir(&self) -> &Path {
        &self.dir
    }
}
