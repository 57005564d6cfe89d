//! The store: the only coordinator, as one page of verbs. State changes through these and nothing else.
//!
//! Every verb is one transaction; its events commit with it; it returns after the commit is on disk, and what
//! it acknowledged survives a crash of the process and of the machine. Every write by a worker carries its
//! claim (`fence.rs`). Both databases pass the same suite, `tests/conformance/`.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
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
use tokio::sync::watch;

use crate::cache::{Behind, Forgotten, Found, KeepResults, Look, Missed, NewResult, ResultView, Which};
use crate::child::{Resumed, WantedPage, Wanting};
use crate::effect::{Begun, EffectEnd, EffectView, NewEffect, Settlement};
use crate::error::Result;
use crate::fence::{ClaimRef, Fate};
use crate::layer::Layer;
use crate::lease::LeaseFile;
use crate::line::{Line, OrderLine, Shared};
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
use crate::tally::GateWaits;
use crate::trigger::{DueNow, End, Fired, Firing, LastFired, Listening, Outbox, TriggerRef, TriggerView};

/// How often a caller looks that hears of no changes.
pub(crate) const UNHINTED_POLL_INTERVAL: Duration = Duration::from_secs(1);

#[async_trait]
pub trait Store: Send + Sync + fmt::Debug {
    // ---- lives -------------------------------------------------------------------------------------

    /// Begins a life of a node. The session is alive from here on until `retire` or the process's death; that of a worker
    /// which is elsewhere (`token`), as long as it is renewed, on every database.
    async fn register(&self, node: NewSession) -> Result<SessionId>;

    /// Keeps a life going, where that takes a lease (`takes_lease`), notes what it has done so far, and says what it holds:
    /// the answer to a claim may have been lost. An error if it is over: somebody returned its tasks.
    async fn renew(&self, session: SessionId, tally: Tally) -> Result<Renewed>;

    /// Says whether the container engine of a session's node answers: it takes steps in containers from here on, or no more. What it
    /// holds it keeps. Said again it changes nothing; an error if the session is over.
    async fn offer_containers(&self, session: SessionId, answers: bool) -> Result<()>;

    /// Ends a life in good order: what it still holds is returned as lost, at once.
    async fn retire(&self, session: SessionId, why: Leaving) -> Result<()>;

    /// Returns the tasks of every session that is proven dead. Never touches a live one.
    async fn reap(&self) -> Result<Reaped>;

    /// Kills the process of a session that is stopped and owns what it runs, where processes share a host: its run is
    /// canceled, and it does nothing about it. Returns whether it was killed. `reap` returns what it held.
    async fn end_stopped(&self, _session: SessionId) -> Result<bool> {
        Ok(false)
    }

    // ---- work --------------------------------------------------------------------------------------

    /// Creates a run of a plan with all of its tasks, and opens the gates of those that wait for nothing.
    /// Nobody sees half of it. With a key that was used before it gives the run of that. One with a parent is what that step waits for
    /// from the same moment on; refused if it does not wait for one.
    async fn submit(&self, submission: Submission) -> Result<RunId>;

    /// Makes `session` the owner of a local run whose former owner is gone. Refused while that lives.
    async fn adopt(&self, run: RunId, session: SessionId) -> Result<()>;

    /// Runs that steps wait for, and that nobody has started yet: those of shared runs, and those of local runs of a session.
    async fn wanted_runs(&self, wanting: Wanting) -> Result<WantedPage>;

    /// Lets the run that a step had started before go on, for a step that waits for it again: what did not succeed of it runs again. A
    /// local one belongs to `session` then. Nothing if that step is not waiting any more. One that is new is submitted with its parent instead.
    async fn resume_child(&self, parent: Parent, child: RunId, session: Option<SessionId>)
    -> Result<Resumed>;

    /// Runs that a local run has started, and those below them, whatever became of them.
    async fn family(&self, run: RunId) -> Result<Vec<RunId>>;

    /// Says that one of them cannot be started, and why: the step fails. Nothing if it is wanted no more.
    async fn child_refused(&self, parent: Parent, why: &str) -> Result<()>;

    /// Opens gates that time has opened, and ends runs whose timeout passed. Returns the next moment at which
    /// there will be something to do.
    async fn promote(&self) -> Result<Option<Millis>>;

    /// Picks and takes up to `ask.limit` available tasks, oldest first, in one step that nobody can come between, and
    /// mints the number of the attempt for each. Two callers never get the same task. Checks no gate. `ask.ahead` more
    /// may be taken before there is a place for them; to everybody else these wait as before until they start.
    async fn claim(&self, ask: Ask) -> Result<Vec<Claim>>;

    /// Takes the rest of a level whose first task is claimed, by name, and records that all of it has started. Gives what is held
    /// of it; nothing if the claim is lost. Idempotent by claim.
    async fn claim_level(&self, first: ClaimRef) -> Result<Vec<Claim>>;

    /// Records that claimed tasks have started. An attempt that ends before this was said has started as well.
    async fn start(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// Records how attempts ended and all that follows from it: retries, successors, gates, the run's end;
    /// and may claim the next tasks, so that a chain costs one commit a step. Idempotent by claim. A level ends as a whole, and
    /// counts as a whole.
    async fn finish(&self, finished: Vec<Finished>, ask: Option<Ask>) -> Result<Answer>;

    /// Returns claimed tasks that were never started. Spends no retry; in a run that is closing they end. Said by their live
    /// holder, which knows that it executed nothing: they were no attempts, and the next claims have their numbers.
    async fn give_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// The same in place of a holder that may have executed something and did not say so: each was an attempt.
    async fn take_back(&self, claims: Vec<ClaimRef>) -> Result<Vec<Fate>>;

    /// Records what the warm containers of a session did, in this order. Nothing for a session that is over.
    async fn tell_pools(&self, session: SessionId, facts: Vec<PoolFact>) -> Result<()>;

    /// Records which pools a session keeps, so that people can ask for something of them. Nothing for a session that is over.
    async fn keep_pools(&self, session: SessionId, pools: Vec<KeptPool>) -> Result<()>;

    // ---- effects (docs/design/effects.md) ------------------------------------------------------------

    /// Records that an effect begins, before it does, unless it has happened or nobody knows whether it has. Asked under a
    /// claim whose session is alive, and only then.
    async fn begin_effect(&self, claim: ClaimRef, new: NewEffect) -> Result<Begun>;

    /// Records what became of it. Said by the execution that was let begin, while it holds the task. Idempotent by execution.
    async fn commit_effect(&self, claim: ClaimRef, end: EffectEnd) -> Result<Fate>;

    /// A person says what became of an effect that nobody runs any more.
    async fn settle_effect(
        &self,
        run: RunId,
        step: &str,
        effect: EffectId,
        how: Settlement,
        by: &str,
    ) -> Result<()>;

    /// Of a run, in the order of steps, names and keys.
    async fn effects(&self, run: RunId) -> Result<Vec<EffectView>>;

    // ---- triggers ----------------------------------------------------------------------------------

    /// What is to be done about triggers, up to `limit` of each kind. Everybody who asks is told the same until it is done.
    /// What cannot be read of it hides none of the others.
    async fn due(&self, limit: usize) -> Result<DueNow>;

    /// Records how far a schedule has come. Says `false`, and changes nothing, if somebody else was faster.
    async fn fire(&self, fired: Fired) -> Result<bool>;

    /// Records that the end of a run has fired, and what came of it.
    async fn settle(&self, end: End, last: Option<LastFired>) -> Result<()>;

    /// Returns the fencing token of a claim: `Some(None)` if its step has no lock, `None` if the
    /// claim is lost.
    async fn fence(&self, claim: ClaimRef) -> Result<Option<Option<u64>>>;

    /// Returns the oldest transaction that keeps the database from removing dead rows, if it is
    /// open for `at_least` as long. Claims become slower with every dead row.
    async fn horizon(&self, at_least: Duration) -> Result<Option<Horizon>>;

    /// The end of a run whose hooks have yet to run. `due` tells of it as well, unless the run is local to an owner
    /// that lives.
    async fn hooks_owed(&self, run: RunId) -> Result<Option<Firing>>;

    /// Returns what a session can do about callbacks of all runs. Several may be told the same: a claim decides who sends.
    async fn outbox(&self, session: SessionId) -> Result<Outbox>;

    /// Who listens at the path of a webhook.
    async fn listening(&self, path: &str) -> Result<Option<Listening>>;

    /// Remembers which delivery first carried a signature at a path, for `HOLD_SIGNATURES`, and returns its name: this one, unless
    /// the same body came before under another. Durable when it returns; of two that come at once, both get the same name.
    async fn remember_signature(&self, path: &str, signature: [u8; 32], delivery: &str) -> Result<String>;

    /// Records what came of a trigger that was fired from outside.
    async fn note_fired(&self, of: TriggerRef, last: LastFired) -> Result<()>;

    /// Lets the triggers of a workflow fire no more. What comes meanwhile is left out, also afterwards. Returns whether that
    /// changed anything.
    async fn pause_triggers(&self, workflow: &str, by: &str) -> Result<bool>;

    /// Lets them fire again. Returns whether any of them was paused.
    async fn resume_triggers(&self, workflow: &str) -> Result<bool>;

    /// Forgets the triggers of a workflow until it is applied again, and returns how many there
    /// were.
    ///
    /// # Errors
    /// `NoTriggers` if it has none.
    async fn remove_triggers(&self, workflow: &str) -> Result<u64>;

    // ---- bytes (docs/design/bytes.md) ----------------------------------------------------------------

    /// Keeps bytes under their hash, all or nothing; nothing happens if they are there.
    async fn keep_blob(&self, bytes: Vec<u8>) -> Result<ContentHash>;

    /// Bytes by their hash, and none but those.
    async fn blob(&self, hash: &ContentHash) -> Result<Vec<u8>>;

    /// Keeps what is in a file, by its hash: beside an embedded store, of any size; else as a blob of at most `shared_cap` bytes.
    async fn keep_file(&self, path: &Path, shared_cap: u64) -> Result<(ContentHash, u64)>;

    /// Writes what is kept under a hash to a file that is not there yet.
    async fn fetch_file(&self, hash: &ContentHash, to: &Path) -> Result<()>;

    /// Opens what is kept under a hash. Of an embedded store it is the file itself: however large, nothing is copied.
    async fn open_file(&self, hash: &ContentHash) -> Result<Opened>;

    /// Names the files that an attempt leaves behind, which are kept already. They are its artifacts if it succeeds.
    async fn keep_artifacts(&self, claim: ClaimRef, artifacts: Vec<Artifact>) -> Result<Fate>;

    /// What the steps of a run that succeeded left behind, in the order of steps and names.
    async fn artifacts(&self, run: RunId) -> Result<Vec<ArtifactView>>;

    /// Returns the layers of a run that count, by position: of tasks that have ended, and of their last attempts.
    async fn layers(&self, run: RunId) -> Result<Vec<Layer>>;

    /// Returns the packed layer of a task; `None` if it is not small, and a file of its hash has it.
    async fn packed_layer(
        &self,
        run: RunId,
        position: Position,
        hash: &ContentHash,
    ) -> Result<Option<Vec<u8>>>;

    /// Keeps pieces of the logs of attempts, by claim, of however many at once. A piece may be said twice. It need not be on
    /// disk before the attempt's end is.
    async fn keep_logs(&self, pieces: Vec<LogPiece>) -> Result<Vec<Fate>>;

    /// A range of the framed log of an attempt, by bytes, at most `MAX_LOG_PART` of them; from any node, also while it grows
    /// and after its node's death.
    async fn log(&self, of: &LogName, offset: u64, limit: usize) -> Result<LogPart>;

    /// Keeps what was sealed with a key that the store does not have, in place of what had that name.
    async fn set_secret(&self, name: &str, sealed: Vec<u8>, by: &str) -> Result<()>;

    /// What is sealed under a name; an error if there is none. For nodes: people never read it back.
    async fn secret(&self, name: &str) -> Result<Vec<u8>>;

    /// By name, without values.
    async fn secrets(&self) -> Result<Vec<SecretView>>;

    /// An error if there is none.
    async fn remove_secret(&self, name: &str) -> Result<()>;

    // ---- results (docs/design/cache.md) ---------------------------------------------------------------

    /// Looks for the result of a key. A read: never blocked by a writer, and nothing is written for it.
    async fn cached(&self, look: Look) -> Result<Found>;

    /// Keeps the result of an attempt that succeeded, in the place of an older one of its key, with what it left behind.
    async fn remember(&self, result: NewResult) -> Result<()>;

    /// Counts how often results were taken, by key. Best effort: what somebody has his hands on may be left out.
    async fn note_uses(&self, uses: Vec<(ContentHash, u64)>) -> Result<()>;

    /// Says why an attempt is executed although it might have taken a result; the last word of a task stays.
    async fn note_miss(&self, claim: ClaimRef, miss: Miss) -> Result<Fate>;

    /// Why a task was executed although it might have taken a result, if that was said.
    async fn missed(&self, run: RunId, step: &str) -> Result<Option<Missed>>;

    /// Those that were used last first, behind one of them.
    async fn results(&self, which: Which, behind: Option<Behind>, limit: usize) -> Result<Vec<ResultView>>;

    /// Forgets results, in transactions for which nobody waits long. Their files go with the next `sweep`.
    async fn forget_results(&self, which: Which) -> Result<Forgotten>;

    /// Forgets those that are kept no longer, in the same way.
    async fn prune_results(&self, keep: KeepResults) -> Result<Forgotten>;

    // ---- retention (docs/design/retention.md) ---------------------------------------------------------

    /// Forgets the oldest entries of the audit log and events of nodes that are kept no longer, in transactions for which nobody waits
    /// long, and not all of them if there are many. Says how many. What nodes told that live stays, and the newest of both, so that
    /// no number is given out twice.
    async fn prune_records(&self, keep: KeepRecords) -> Result<u64>;

    /// Up to `limit` runs that `keep` lets go, oldest first, with what they take up. Changes nothing. Never one that is not
    /// over, is set aside, is the newest of its workflow, or whose end has yet to start something.
    async fn prunable(&self, keep: Keep, limit: usize) -> Result<Vec<Prunable>>;

    /// Removes a run with all that belongs to it, in transactions for which nobody waits long. Says `false`, and changes
    /// nothing, if it may not go. Its key is remembered for a week: whoever submits with it is told this run, and starts none.
    async fn prune(&self, run: RunId) -> Result<bool>;

    /// Removes bytes that nothing refers to and that nobody brought within a day, logs of runs that are gone, and keys that
    /// were remembered long enough. Safe beside everybody who brings and names some.
    async fn sweep(&self) -> Result<Swept>;

    // ---- people ------------------------------------------------------------------------------------

    /// Cancels a run. After this returns nothing of it but its clean-up is ever claimed, until a
    /// person retries it; with `CancelMode::Now` nothing at all, also in a run that is cleaning up.
    /// Clean-up ends with its `cleanup_timeout`, which counts from here on the store's clock.
    /// Canceling a run that has ended changes nothing and returns its status.
    async fn cancel(&self, run: RunId, by: &str, mode: CancelMode) -> Result<RunStatus>;

    /// Opens an ended run again: what failed, was skipped or canceled and everything behind it; or, with
    /// `from`, that step and everything behind it. Returns the steps that will run again. Refused if the run went on since the caller
    /// has seen it (`seen`): of two who say the same, the second changes nothing, however soon the run has ended again.
    async fn retry(&self, run: RunId, what: Reopen<'_>, by: &str) -> Result<Vec<String>>;

    /// Lets an ended run go on past a failed step. Returns the steps that will run now.
    async fn skip(&self, run: RunId, step: &str, by: &str) -> Result<Vec<String>>;

    /// Says what a step waits for. The first one counts, and ends the step with what it brings as its output; one that comes before
    /// the step waits is kept for it. Refused for a step that waits for another one, for none, or no more.
    async fn signal(&self, run: RunId, step: &str, signal: NewSignal) -> Result<Signaled>;

    /// Holds a run or a workflow up: nothing of it starts until it is resumed; what runs goes on. Once is enough. Returns whether
    /// that changed anything: `false` if it was paused before.
    async fn pause(&self, what: Pausable, by: &str) -> Result<bool>;

    /// Lets what was paused go on. Returns whether that changed anything: `false` if it was not paused like that, or has ended.
    async fn resume(&self, what: Pausable, by: &str) -> Result<bool>;

    /// Lets a paused run that goes level by level go on by one level, and holds it up again behind that. Gives the level.
    async fn advance(&self, run: RunId, by: &str) -> Result<u32>;

    /// Makes a named limit, or changes it for everybody; who may go on by that does so at once.
    async fn set_limit(&self, name: &str, limit: Limit, by: &str) -> Result<()>;

    /// Removes a named limit. What is submitted from then on and names it is refused.
    ///
    /// # Errors
    /// `LimitInUse` if a task holds it or waits for it, or a run that has not ended names it.
    async fn remove_limit(&self, name: &str) -> Result<()>;

    /// Removes what was applied under a name, and its triggers. Runs and their history stay; none
    /// is started by the name before something is applied or run under it again.
    ///
    /// # Errors
    /// `WorkflowInUse` if it has runs that have not ended, or triggers that fire, unless `is_forced`.
    async fn remove_workflow(&self, name: &str, is_forced: bool) -> Result<()>;

    /// Makes a workflow, with what lies beside it, known by its name: the next version of that, unless the newest is the
    /// same. Runs that there are keep theirs. Its triggers are armed, and no others of that name: one that was there goes on
    /// where it was, a new one fires nothing that is past.
    async fn apply(&self, application: Application) -> Result<Applied>;

    /// Lets a node end what it runs and take nothing more. Gives the sessions that are told.
    async fn drain(&self, whom: Whom, why: Leaving) -> Result<Vec<SessionId>>;

    /// Asks for something of the pools of sessions, in place of what was asked for before (`orders`). Those that are over are
    /// told nothing.
    async fn wish(&self, sessions: Vec<SessionId>, wish: Wish) -> Result<()>;

    /// Sets a run aside if something of it cannot be read, or its history does not tell what is stored: nothing of it goes on until
    /// it is released. Gives what is wrong; nothing, and changes nothing, if all of it fits.
    async fn set_aside(&self, run: RunId) -> Result<Option<String>>;

    /// Takes a run out of the quarantine. Refused as long as something of it cannot be read.
    async fn release(&self, run: RunId) -> Result<()>;

    /// Makes a token known. Refused while another one of that name is in use, and if the one it comes of (`parent`) is revoked or has
    /// expired. An expired token gives up its name.
    async fn make_token(&self, token: NewToken) -> Result<Token>;

    /// Ends the token of a name, and those that came of it, however far down. Whoever looks for one of them after this returns finds
    /// it revoked, and none comes of them any more.
    async fn revoke_token(&self, name: &str, by: &str) -> Result<RevokedToken>;

    /// Gives the token of a name a new secret, with the same role. The old secret, and what came of it, ends after a grace. Works on an
    /// expired token too.
    async fn rotate_token(&self, rotation: TokenRotation) -> Result<RotatedToken>;

    /// Records that a token was used now, unless that was recorded less than `TOKEN_USE_GRAIN` ago.
    async fn note_token_use(&self, id: &str) -> Result<()>;

    /// Adds to the audit log. Gives its number.
    async fn record(&self, deed: Deed) -> Result<u64>;

    // ---- reads: short, never blocked by a writer ---------------------------------------------------

    /// By id, by a unique beginning or end of it, or `last`: the newest that a person or a program submitted, and no step, hook or
    /// trigger.
    async fn find_run(&self, name: &str) -> Result<RunId>;
    /// Newest first.
    async fn runs(&self, filter: RunFilter) -> Result<Vec<RunSummary>>;
    /// The last of the `count` runs, of a workflow or of all, that come first in that list from the newest or behind one of them, and
    /// when it was submitted; `None` if there are fewer. So whoever looks for few among many looks at so many at a time.
    async fn run_behind(
        &self,
        of: Option<String>,
        before: Option<RunId>,
        count: usize,
    ) -> Result<Option<(RunId, Millis)>>;
    /// A run and its tasks, with the cause of every task that waits.
    async fn run(&self, run: RunId) -> Result<RunView>;
    /// Items of a step in their order, with the cause of those that wait: none of a step that has none. No more is read for it than
    /// these, the steps of the run and what is live of it.
    async fn items(&self, run: RunId, asked: ItemsAsked) -> Result<Vec<TaskView>>;
    /// The stored side of a replay.
    async fn run_state(&self, run: RunId) -> Result<RunState>;
    /// Events numbered above `after`, in order, up to one that cannot be read. If that is the first, the error
    /// names it, and whoever reads can go on behind it.
    async fn events_since(&self, run: RunId, after: u64, limit: usize) -> Result<Vec<Event>>;
    /// Attempts of a step that have ended, and the one that is running, oldest first.
    async fn attempts(&self, run: RunId, step: &str) -> Result<Vec<Attempt>>;
    /// The warm containers that attempts of a task were given, in order, as far back as events of pools are kept.
    async fn taken(&self, run: RunId, step: &str) -> Result<Vec<ContainerTaken>>;
    async fn plan(&self, version: &Version) -> Result<Arc<Plan>>;
    /// The text a version was made from.
    async fn document(&self, version: &Version) -> Result<String>;
    /// The newest of each name that was applied, by name, each with its newest run.
    async fn workflows(&self) -> Result<Vec<WorkflowView>>;
    /// The newest runs of workflows, up to `limit` of each, newest first, in the order of the names.
    async fn outcomes(&self, workflows: Vec<String>, limit: usize) -> Result<Vec<RunOutcome>>;
    /// What was applied under a name, newest first; those below a number, where one is given.
    async fn versions(&self, workflow: &str, below: Option<u32>, limit: usize) -> Result<Vec<Definition>>;
    /// What starts under a name: what was applied last, or else what ran last, with its directory.
    async fn latest(&self, workflow: &str) -> Result<Known>;
    /// What the expressions of a task may see: `params`, `run`, and the named steps.
    async fn scope(&self, run: RunId, steps: &[&str]) -> Result<Scope>;
    /// What this session is asked to do: claims to be stopped, wishes for its pools. An error if the session is over: somebody
    /// had proof of its death, and nothing that it does counts any more.
    async fn orders(&self, session: SessionId) -> Result<Orders>;
    /// When `promote` will have something to do, as far as that is known now.
    async fn wake_at(&self) -> Result<Option<Millis>>;
    /// The session of a worker that is elsewhere; `None` if there is none, or it is over.
    async fn remote(&self, session: SessionId) -> Result<Option<RemoteView>>;
    /// All of those, oldest first.
    async fn remotes(&self) -> Result<Vec<SessionId>>;
    /// The parts of a run that never change.
    async fn head(&self, run: RunId) -> Result<Arc<RunHead>>;
    async fn status(&self, run: RunId) -> Result<RunStatus>;
    /// By name.
    async fn limits(&self) -> Result<Vec<LimitView>>;
    /// Who holds a lock or a limit, and who waits for it, up to `limit` of both.
    async fn line(&self, of: Shared, limit: usize) -> Result<Line>;
    /// Locks that somebody holds or waits for, by name. Costs what it gives.
    async fn locks(&self, limit: usize) -> Result<Vec<String>>;
    /// Keys of `order` on which somebody stands, by name, up to `limit`, each with who stands on it first, up to `each`.
    async fn order_lines(&self, limit: usize, each: usize) -> Result<Vec<OrderLine>>;
    /// Who paused a workflow, and since when, if somebody did.
    async fn paused(&self, workflow: &str) -> Result<Option<(String, Millis)>>;
    /// What runs, ended, failed and waits of late. Bounded in cost whatever the store holds.
    async fn overview(&self) -> Result<Overview>;
    /// By workflow.
    async fn triggers(&self) -> Result<Vec<TriggerView>>;
    /// How many tasks nobody has taken, by the gate at which they wait; those that wait for a taker alone have none.
    async fn backlog(&self) -> Result<Vec<(Option<Gate>, u64)>>;
    /// How many tasks wait for a signal, a moment, a run or their items.
    async fn parked(&self) -> Result<u64>;
    /// Nodes that are alive, by address, with up to `claims` of what each holds.
    async fn nodes(&self, claims: usize) -> Result<Vec<NodeView>>;
    /// Which nodes were lost, and how often.
    async fn losses(&self) -> Result<Losses>;
    /// What nodes that take work of others did, numbered above `after`, in order. `node` limits it to one address.
    /// Up to one that cannot be read, as with `events_since`.
    async fn node_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<NodeEvent>>;
    /// What warm containers did, numbered above `after`, in order: the newest `POOL_EVENTS_KEPT`. `node` limits it to one
    /// address. Up to one that cannot be read, as with `events_since`.
    async fn pool_events(&self, node: Option<&str>, after: u64, limit: usize) -> Result<Vec<PoolEvent>>;
    /// How warm containers of nodes that live are now: the newest event of each that is there, by
    /// node and name. Among them the newest of each node about its host ports.
    async fn pool_containers(&self) -> Result<Vec<PoolEvent>>;
    /// Pools that nodes keep, by node and name, also those that have no container now.
    async fn pools(&self) -> Result<Vec<PoolView>>;

    /// By its id, also if it is revoked. One look along a key: it is asked with every request.
    async fn token(&self, id: &str) -> Result<Option<Token>>;
    /// Those in use first, by name.
    async fn tokens(&self) -> Result<Vec<Token>>;
    /// Newest first, those numbered below `before`.
    async fn audit(&self, before: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>>;

    /// Looks for everything that is wrong with the store: the file, the newest `limit` runs, what lies beside it.
    /// Changes nothing.
    async fn examine(&self, limit: usize) -> Result<Examination>;
    /// Writes a whole copy, as of one moment, to a file that is not there yet, while work goes on. Logs are not in it.
    async fn backup(&self, to: &Path) -> Result<()>;

    /// How far the store has come, as of now: as long as it stays the same nobody has committed anything. `None` where asking
    /// would cost as much as reading.
    fn stamp(&self) -> Option<Stamp> {
        None
    }

    /// Ticks after every commit that this process made, and when another process changed the store. A hint:
    /// correctness never needs it.
    fn changes(&self) -> watch::Receiver<u64>;
    /// After how long whoever waits for `changes` looks without one. Rarely where the store itself looks for what
    /// others did; asked after `changes`.
    fn max_poll_interval(&self) -> Duration {
        self.poll_interval(Duration::from_secs(15))
    }
    /// The same for a caller that looks at most every `setting` while hints arrive.
    fn poll_interval(&self, setting: Duration) -> Duration {
        setting.min(UNHINTED_POLL_INTERVAL)
    }
    fn instance(&self) -> InstanceId;
    /// How often a claim through this handle got fewer than it wanted because others had their hands on the rest. Where one
    /// writes at a time that never happens.
    fn contentions(&self) -> u64 {
        0
    }
    /// How long tasks had waited that this process made available. What was taken back by its transaction is rare, and counts
    /// as well; a task that was taken ahead of its place is not among them.
    fn gate_waits(&self) -> GateWaits;
    /// How verbs of this process were grouped into commits; `None` where the database does that.
    fn commits(&self) -> Option<Commits> {
        None
    }
    /// Whether a life must be renewed in the store to go on. Not where others can see whether a process lives.
    fn takes_lease(&self) -> bool;
    /// The file by which a session of this process is renewed instead, where processes share a host. A session whose file
    /// says that it expires loses its tasks when it is not renewed.
    fn lease_file(&self, _session: SessionId) -> Option<Arc<LeaseFile>> {
        None
    }
    /// Whether all of its nodes are on this host, with the files of those who submit.
    fn is_embedded(&self) -> bool;
    /// Where logs and scratch files of this store live.
    fn dir(&self) -> &Path;
}
