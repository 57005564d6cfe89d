//! What goes into the verbs and what comes out of them. Plain values; `store.rs` says what they mean.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::artifact::ArtifactName;
use laneway_core::cause::Cause;
use laneway_core::child::Parent;
use laneway_core::class::Offer;
use laneway_core::definition::{Placement, Workspace};
use laneway_core::event::{Closing, PauseScope};
use laneway_core::expression::Scope;
use laneway_core::gate::Gate;
use laneway_core::hash::{ContentHash, Version};
use laneway_core::id::{RunId, SessionId};
use laneway_core::key::{self, TaskKeys};
use laneway_core::limit::Limit;
use laneway_core::not_before::NotBefore;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::role::Role;
use laneway_core::run_state::{RunState, TaskState};
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_core::wait::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::with_item;
use crate::layer::NewLayer;
use crate::submission_key::{self, KeyedRun};
use crate::tally::{GateWaits, Spread};

#[derive(Debug, Clone)]
pub struct NewSession {
    /// Names the node in claims, events and on screens.
    pub node: String,
    pub pid: u32,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// What it can run of others. `None` for a node that runs what belongs to it, and nothing else.
    pub offer: Option<Offer>,
    /// How it is kept alive, where that takes a lease.
    pub lease: Lease,
    /// A worker that is elsewhere, by the id of the token with which it came: it lives by its lease, whatever becomes of
    /// the process through which it came.
    pub token: Option<String>,
    /// Its process starts what schedules and other triggers are due: `laneway worker` and `serve`
    /// do.
    pub fires: bool,
}

impl NewSession {
    /// A node for its own runs.
    pub fn ephemeral(node: impl Into<String>, slots: u32) -> Self {
        let (pid, lease) = (std::process::id(), Lease::default());
        Self { node: node.into(), pid, slots, offer: None, lease, token: None, fires: false }
    }
}

/// How long a session lives without being renewed, by the store's clock, and how often to renew it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub ttl: Duration,
    pub every: Duration,
}

impl Default for Lease {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), every: Duration::from_secs(5) }
    }
}

/// What the store knows of a session that was just renewed. Its node compares: what it does not know of it gives back, and
/// what it runs without holding it kills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    pub held: Vec<ClaimRef>,
    /// Those of them that are to be stopped.
    pub stops: Vec<Stop>,
}

/// The session of a worker that is elsewhere, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteView {
    pub session: SessionId,
    pub node: String,
    /// With which it came, and comes.
    pub token: String,
    pub slots: u32,
    /// How long it lives without a renewal, as was agreed when it was registered.
    pub lease: Duration,
    pub is_draining: bool,
    /// Each with when it started, if it has.
    pub held: Vec<(ClaimRef, Option<Millis>)>,
    /// Those of them that are to be stopped.
    pub stops: Vec<Stop>,
    /// The moment of this look, by the store's clock.
    pub observed_at: Millis,
}

/// What a session has done so far, as it counts itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// How often it asked for work. Kept apart: to ask and get nothing is no activity.
    #[serde(skip)]
    pub asks: u64,
    /// How many tasks it got.
    pub claims: u64,
    /// How often it got fewer than it wanted because others had their hands on the rest.
    #[serde(skip)]
    pub contentions: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Given back, never started.
    pub returned: u64,
    /// Taken from it while it held them.
    pub lost: u64,
    /// How many sessions of dead nodes it returned.
    pub reaped: u64,
    /// From the moment in which it was given a task until that began.
    #[serde(default, skip_serializing_if = "Spread::is_empty")]
    pub claim_to_start: Spread,
    /// From the end of a task until the one in its place began, where there was one.
    #[serde(default, skip_serializing_if = "Spread::is_empty")]
    pub finish_to_start: Spread,
    /// Tasks that this process made available, and how long they had waited for that.
    #[serde(default, skip_serializing_if = "GateWaits::is_empty")]
    pub gate_waits: GateWaits,
    /// What its warm containers were worth.
    #[serde(default, skip_serializing_if = "PoolTally::is_empty")]
    pub pools: PoolTally,
    /// Steps with `cache`.
    #[serde(default, skip_serializing_if = "CacheTally::is_empty")]
    pub cache: CacheTally,
}

/// Steps that may take a recorded result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTally {
    /// Those that did.
    pub hits: u64,
    /// Those that were executed.
    pub misses: u64,
}

impl CacheTally {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Tasks that were given a warm container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolTally {
    /// One was there.
    pub hits: u64,
    /// One had to be started.
    pub misses: u64,
    /// What the hits would have waited for a start of the usual length, less what they did wait.
    pub saved_ms: u64,
}

impl PoolTally {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Grows with every commit, whoever makes it; see `Store::stamp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(pub u64);

#[derive(Debug, Clone)]
pub struct Submission {
    pub plan: Arc<Plan>,
    /// The text the plan was made from.
    pub document: String,
    /// Where steps run: the workflow file's directory.
    pub dir: String,
    /// What steps find in a directory of their run's own, on whichever node, instead. It must be stored already.
    pub bundle: Option<ContentHash>,
    /// Bound by `laneway_core::params::bind` already.
    pub params: Map<String, Value>,
    pub max_parallel: u32,
    /// Who submits it. A run that is not shared belongs to this session.
    pub session: SessionId,
    /// Any node takes its tasks.
    pub is_shared: bool,
    /// It is paused from its first moment on, as if somebody had paused it.
    pub is_paused: bool,
    /// Whoever submits with the same key again gets the same run. What people choose is checked by `submission_key`.
    pub key: Option<String>,
    pub by: String,
    /// From where the service was asked for it: then the audit log has it, from the same moment on.
    pub origin: Option<String>,
    /// The step that starts it, if one does.
    pub parent: Option<Parent>,
    /// Its steps are executed also where a result of before would do.
    pub no_cache: bool,
    /// A deadline beside the document's `timeout`: hooks share the clock of the canceled run.
    pub end_by: Option<Millis>,
    /// It is for later. A delay is counted by the clock of the store.
    pub not_before: Option<NotBefore>,
}

impl Submission {
    /// Returns which nodes may run its steps, if any node takes them.
    pub(crate) fn placement(&self) -> Placement {
        let workflow = &self.plan.workflow;
        workflow.placement_of_run(self.bundle.is_some() && workflow.workspace == Workspace::Follow)
    }

    /// Returns until when it is to wait, if that moment has not come.
    pub(crate) fn waits_until(&self, now: Millis) -> Option<Millis> {
        self.not_before.map(|not_before| not_before.moment(now)).filter(|at| *at > now)
    }

    /// Compares this submission with the run that has its key already.
    ///
    /// # Errors
    /// `KeyTaken` if the workflow, the version or the parameters differ. Keys that Laneway makes are exempt.
    pub(crate) fn check_known(&self, known: &KeyedRun) -> Result<(), Error> {
        let Some(key) = self.key.as_ref().filter(|key| !submission_key::is_own(key)) else { return Ok(()) };
        match known.difference(&self.plan, &self.params) {
            Some(differs) => Err(Error::KeyTaken { key: key.clone(), run: known.run, differs }),
            None => Ok(()),
        }
    }

    /// What the audit log says of a run that it made.
    pub(crate) fn deed(&self, run: RunId) -> Option<Deed> {
        let (by, origin) = (self.by.clone(), self.origin.clone()?);
        let what = format!("run {run} of {}", self.plan.workflow.name);
        Some(Deed { by, act: "submit".to_owned(), what, origin })
    }
}

/// A request for work.
#[derive(Debug, Clone)]
pub struct Ask {
    pub session: SessionId,
    /// The local run whose tasks are asked for. `None`: whatever the session takes.
    pub run: Option<RunId>,
    /// How many can start at once.
    pub limit: usize,
    /// How many more may be held until a task that this session holds has ended. Those of a local run may still wait
    /// for `max_parallel`: whoever holds them sees to it that they start in the place of one that has ended.
    pub ahead: usize,
}

/// A pool as its node tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPool {
    /// As the document calls it. One that two documents call differently is told twice.
    pub name: String,
    pub image: String,
    /// How many containers it may have at once.
    pub max: u32,
}

/// A pool of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolView {
    pub node: String,
    pub session: SessionId,
    pub pool: KeptPool,
}

/// What somebody wants of the pools of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub pool: String,
    pub what: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// So many containers are to be there, as far as `max` allows; with a version, those of its pool, also of a node to which that is
    /// new.
    Warm { count: u32, of: Option<Version> },
    /// What there is goes: now if nobody uses it, else after its task.
    Drain,
}

/// What a session is asked to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// Claims of it that are to be stopped.
    pub stops: Vec<Stop>,
    /// The newest wish for each pool, with a number that changes when there is a newer one. They stay: to do the same again
    /// does no harm, and a session that remembers the numbers need not.
    pub wishes: Vec<(u64, Wish)>,
    /// What else is wanted and cannot be read, in words. Nothing comes of it until it is mended.
    pub unreadable: Vec<String>,
}

/// Of how many losses of nodes it is known who was lost; what was lost of nodes that live is known beyond that.
pub const LOSSES_KEPT: i64 = 100;

/// Lives of nodes that were lost: they died, froze, or could not reach the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Of all nodes that ever were. Never becomes less.
    pub total: u64,
    /// By node, whether it lives again or not, those first that were lost last. Bounded: `LOSSES_KEPT`, and those that live.
    pub nodes: Vec<(String, u64)>,
}

/// How many events of pools are kept; how each container is now is known beyond that.
pub const POOL_EVENTS_KEPT: i64 = 10_000;

/// A task that was taken, with all that is needed to run it.
#[derive(Debug, Clone)]
pub struct Claim {
    pub at: ClaimRef,
    pub head: Arc<RunHead>,
    /// When the passages of its rates expire. A worker that gets to it later gives it back.
    pub start_by: Option<Instant>,
    /// Offered to the owner of its run alone: the store counts no room in pools for it.
    pub is_bound: bool,
}

impl Claim {
    /// Returns whether the passages of its rates have expired.
    pub fn is_late(&self) -> bool {
        self.start_by.is_some_and(|by| Instant::now() >= by)
    }
}

/// The parts of a run that never change.
#[derive(Debug, Clone)]
pub struct RunHead {
    pub run: RunId,
    pub plan: Arc<Plan>,
    pub dir: String,
    /// What its steps find in their workspace, where that is not `dir`.
    pub bundle: Option<ContentHash>,
    pub params: Map<String, Value>,
    pub max_parallel: u32,
    /// The node that submitted it.
    pub submitted_from: String,
    /// The keys of the tasks that have some, which the parameters fix.
    pub keys: BTreeMap<Position, TaskKeys>,
    pub placed: Placed,
    /// The class of tasks that nobody takes but the owner of the run, and of those that it has started.
    pub own_class: i64,
    /// The step that started it, if one did.
    pub parent: Option<Parent>,
    /// Its steps are executed also where a result of before would do.
    pub no_cache: bool,
}

impl RunHead {
    /// What expressions of its steps may see, of which `steps` have put something out.
    pub fn scope(&self, steps: Map<String, Value>) -> Scope {
        let mut scope = Scope::new();
        match self.plan.after {
            None => drop(scope.insert("params".into(), Value::Object(self.params.clone()))),
            // Hooks are given what their run was given, and how it ended.
            Some(_) => scope.extend(self.params.clone()),
        }
        scope.insert("steps".into(), Value::Object(steps));
        let workflow = &self.plan.workflow.name;
        scope.insert("run".into(), json!({ "id": self.run.to_string(), "workflow": workflow }));
        scope
    }
}

/// Who may run the tasks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// The session that owns it.
    Local,
    /// Whoever can.
    Spread,
    /// One node at a time: whoever takes its first task owns it from then on. `class` can run all of it.
    Pinned { class: i64 },
}

impl Placed {
    /// As it is stored; `class` is that of a pinned one.
    pub(crate) fn parse(text: &str, class: Option<i64>) -> Option<Self> {
        match (text, class) {
            ("local", None) => Some(Self::Local),
            ("spread", None) => Some(Self::Spread),
            ("pinned", Some(class)) => Some(Self::Pinned { class }),
            (_, _) => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Spread => "spread",
            Self::Pinned { .. } => "pinned",
        }
    }

    pub(crate) fn class(self) -> Option<i64> {
        match self {
            Self::Local | Self::Spread => None,
            Self::Pinned { class } => Some(class),
        }
    }
}

impl RunHead {
    /// Whether more than its run decides when it may go: keys that others share, or a group, or a step with items, with room for
    /// so many.
    pub fn has_keys(&self, position: Position) -> bool {
        // A step with items holds nothing itself.
        if self.plan.is_growing(position) {
            return false;
        }
        let step = self.plan.step(position);
        let is_bounded = || step.for_each.as_ref().is_some_and(|for_each| for_each.max_parallel.is_some());
        self.plan.base(position).is_some_and(|step| self.keys.contains_key(&step))
            || self.plan.bounded_group_of(position).is_some()
            || step.lock_reads_item()
            || is_bounded()
    }

    /// The keys of a task, if it has some; `item` is its value, as it is stored.
    pub(crate) fn keys_of(&self, position: Position, item: Option<&str>) -> Option<TaskKeys> {
        if self.plan.is_growing(position) {
            return None;
        }
        let step = self.plan.step(position);
        let keys = self.keys.get(&self.plan.base(position)?).cloned();
        match (self.plan.item(position), step.lock_reads_item()) {
            (Some((_, index)), true) => {
                // It was looked at when the list was made.
                let item: Value = serde_json::from_str(item?).ok()?;
                let lock = key::lock_of_item(step, &self.scope_of_item(&item, index)).ok()?;
                Some(TaskKeys { lock, ..keys.unwrap_or_default() })
            }
            (_, _) => keys,
        }
    }

    /// What the lock of an item reads.
    pub(crate) fn scope_of_item(&self, item: &Value, index: u32) -> Scope {
        let mut scope = Scope::from_iter([("params".to_owned(), Value::Object(self.params.clone()))]);
        with_item(&mut scope, item.clone(), index);
        scope
    }
}

/// How an attempt ended, as its holder saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    pub claim: ClaimRef,
    pub outcome: Outcome,
    /// By its holder's own watch: the store hears of a start and an end only when it commits them.
    pub took: Duration,
    /// What it changed in its view of the run's files. Kept if the attempt succeeds, or fails for good.
    pub layer: Option<Box<NewLayer>>,
}

impl Finished {
    pub fn new(claim: ClaimRef, outcome: Outcome, took: Duration) -> Self {
        Self { claim, outcome, took, layer: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Succeeded {
        output: Map<String, Value>,
    },
    Failed {
        reason: Reason,
        detail: String,
        exit_code: Option<i32>,
    },
    /// It succeeds without having been executed: with a result that was recorded before.
    Cached(Box<crate::cache::Hit>),
    /// Stopped because the store asked for it.
    Canceled {
        reason: Reason,
    },
}

/// What `finish` found and did.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// One for each `Finished`, in order.
    pub fates: Vec<Fate>,
    /// Tasks that were claimed along with it.
    pub claims: Vec<Claim>,
    /// Claims of the asking session that are to be stopped now.
    pub stops: Vec<Stop>,
    /// The run that was asked for starts nothing but clean-up any more: what is held unstarted is to be given back.
    pub is_closing: bool,
    /// When `promote` will have something to do.
    pub wake_at: Option<Millis>,
}

/// What somebody says to a step that waits, or will.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// As the step names it.
    pub name: String,
    pub by: String,
    /// Why, in the words of whoever says it.
    pub reason: Option<String>,
    /// The output of the step.
    pub payload: Map<String, Value>,
}

impl NewSignal {
    pub(crate) fn at(&self, at: Millis) -> Signal {
        let (by, reason, payload) = (self.by.clone(), self.reason.clone(), self.payload.clone());
        Signal { by, reason, at, payload }
    }
}

/// What became of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signaled {
    /// The step waited for it, and is over.
    Woken,
    /// The step does not wait yet. It is kept, and the step will be over as soon as it would wait.
    Kept,
    /// Somebody was first. Nothing was changed.
    Before { by: String, at: Millis },
}

/// The store asks a claim's holder to end what runs, and to finish it as canceled for this reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub claim: ClaimRef,
    pub reason: Reason,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Nodes whose sessions were found dead.
    pub nodes: Vec<String>,
    /// How many tasks were returned, failed or canceled.
    pub tasks: usize,
    /// When the next lease of others ends, where there are leases; zero if one has ended and could not be returned yet.
    pub next_in: Option<Duration>,
    /// Sessions that are over, but whose warden does not end: it may be frozen like its node.
    pub stuck: Vec<StuckSession>,
}

/// A session that is condemned, and whose warden has not ended within the time that it has for it. Its processes are
/// on this host: the caller ends them, and reaps again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckSession {
    pub session: SessionId,
    pub node: String,
    /// What the warden has written of itself.
    pub warden: String,
}

#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    /// Those that are in one of these states; all without any.
    pub statuses: Vec<RunStatus>,
    pub workflow: Option<String>,
    /// Only runs that were submitted before this one.
    pub before: Option<RunId>,
    /// Only this one and those that were submitted after it.
    pub down_to: Option<RunId>,
    /// Only runs that were submitted at this moment or later.
    pub since: Option<Millis>,
    /// Only runs that were submitted before this moment.
    pub until: Option<Millis>,
    /// Only runs whose id, the end of it that people type, or workflow begins so.
    pub begins: Option<String>,
    pub limit: usize,
}

#[derive(Debug, Clone)]
pub struct RunSummary {
    pub run: RunId,
    pub workflow: String,
    /// `None` when it cannot be read.
    pub status: Option<RunStatus>,
    pub reason: Option<String>,
    pub submitted_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub submitted_by: String,
    /// How many tasks are in each state; only states that occur.
    pub counts: Vec<(TaskStatus, u64)>,
    /// Not ended, and the process that ran it is gone: `laneway resume` continues it.
    pub is_interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// Why it is being brought to its end, while it is.
    pub closing: Option<Closing>,
    /// What keeps it paused, while something does.
    pub paused: Vec<PauseScope>,
    /// When its first task started.
    pub first_task_at: Option<Millis>,
    /// Why no live node can take it, if nothing of it was executed yet.
    pub without_node: Option<String>,
    /// Until when it waits, of one that was submitted for later.
    pub not_before: Option<Millis>,
}

impl RunSummary {
    /// Returns whether it may turn out that no live node can take it.
    pub(crate) fn may_lack_node(&self, is_local: bool) -> bool {
        let is_untouched = |status: TaskStatus| {
            matches!(status, TaskStatus::Pending | TaskStatus::Available | TaskStatus::Skipped)
        };
        !is_local
            && self.status == Some(RunStatus::Running)
            && self.closing.is_none()
            && self.paused.is_empty()
            && self.counts.iter().all(|(status, _)| is_untouched(*status))
    }
}

/// Why a run is in the quarantine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// What of it could not be read.
    pub what: String,
    pub why: String,
    pub since: Millis,
}

/// A run as it is shown.
#[derive(Debug, Clone)]
pub struct RunView {
    pub state: RunState,
    pub plan: Arc<Plan>,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    pub submitted_by: String,
    /// The node that owns it, while that lives.
    pub owner: Option<String>,
    pub placed: Placed,
    pub is_interrupted: bool,
    pub set_aside: Option<SetAside>,
    /// By position: why it waits; `None` for what runs or has ended.
    pub causes: Vec<Option<Cause>>,
    /// When its first task started.
    pub first_task_at: Option<Millis>,
}

/// A task as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskView {
    pub state: TaskState,
    /// Why it waits; `None` for what runs or has ended.
    pub cause: Option<Cause>,
}

/// Which items of a step are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemsAsked {
    pub step: String,
    /// Those behind this index.
    pub after: Option<u32>,
    pub limit: usize,
}

/// Positions of a run's tasks of which something is to be known, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part(pub(crate) Vec<Range<Position>>);

impl Part {
    /// What of a run says why some of its items wait: its steps, these items, and whatever is live.
    pub(crate) fn of_items(plan: &Plan, items: Range<Position>, live: &[Position]) -> Self {
        let steps = 0..plan.workflow.steps.len() as Position;
        let others = live.iter().filter(|position| !steps.contains(position) && !items.contains(position));
        let mut ranges: Vec<Range<Position>> = others.map(|position| *position..*position + 1).collect();
        ranges.extend([steps, items]);
        ranges.sort_unstable_by_key(|range| range.start);
        Self(ranges)
    }
}

impl ItemsAsked {
    /// Where they stand; nowhere for a step without items.
    pub(crate) fn positions(&self, plan: &Plan, step: Position) -> Range<Position> {
        let all = plan.items_of(step);
        let first = self.after.map_or(0, |after| after.saturating_add(1));
        let start = all.start.saturating_add(first).min(all.end);
        let limit = Position::try_from(self.limit).unwrap_or(Position::MAX);
        start..start.saturating_add(limit).min(all.end)
    }
}

impl RunView {
    /// Returns why no live node can take the run, if nothing of it was executed yet.
    pub fn without_node(&self) -> Option<&Cause> {
        let state = &self.state;
        if self.placed == Placed::Local
            || state.status != RunStatus::Running
            || state.closing.is_some()
            || !state.paused.is_empty()
        {
            return None;
        }
        let mut found = None;
        for (task, cause) in state.tasks.iter().zip(&self.causes) {
            let at_node = cause.as_ref().filter(|cause| cause.gate == Gate::Node.as_str());
            match task.status {
                TaskStatus::Pending | TaskStatus::Skipped => {}
                TaskStatus::Available if at_node.is_some() => {}
                TaskStatus::Available
                | TaskStatus::Running
                | TaskStatus::Parked
                | TaskStatus::Succeeded
                | TaskStatus::Failed
                | TaskStatus::Canceled => return None,
            }
            found = found.or(at_node);
        }
        found
    }

    /// Of a view of a part of a run: the items of a step that it was read for.
    pub(crate) fn items(self, asked: &ItemsAsked) -> Vec<TaskView> {
        let is_asked = |view: &TaskView| {
            let item = view.state.item.as_ref().filter(|item| item.of == asked.step);
            item.is_some_and(|item| asked.after.is_none_or(|after| item.index > after))
        };
        let tasks = self.state.tasks.into_iter().zip(self.causes);
        let views = tasks.map(|(state, cause)| TaskView { state, cause });
        views.filter(is_asked).take(asked.limit).collect()
    }
}

/// One numbered try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub attempt: u32,
    /// Of its claim: part of the names of what it made.
    pub generation: u32,
    pub node: Option<String>,
    /// `running`, or how it ended: succeeded, failed, canceled, lost, returned.
    pub outcome: String,
    pub reason: Option<Reason>,
    pub detail: Option<String>,
    pub exit_code: Option<i32>,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub took_ms: Option<u64>,
}

/// What starts under a workflow's name.
#[derive(Debug, Clone)]
pub struct Known {
    pub version: Version,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    /// The number under which it was applied; `None` for one that was only run.
    pub no: Option<u32>,
}

/// A workflow to be known by its name from now on.
#[derive(Debug, Clone)]
pub struct Application {
    pub plan: Arc<Plan>,
    /// The text the plan was made from.
    pub document: String,
    /// From where it is applied; told to people, and read by nobody.
    pub dir: String,
    /// What lay beside it. It must be stored already.
    pub bundle: Option<ContentHash>,
    pub by: String,
}

/// What became of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    pub no: u32,
    /// The newest of that name was the same already.
    pub was_there: bool,
}

/// One applied version of a workflow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub name: String,
    /// Counted from 1 for each name.
    pub no: u32,
    pub version: Version,
    pub dir: String,
    pub bundle: Option<ContentHash>,
    pub applied_at: Millis,
    pub applied_by: String,
}

/// A workflow that was applied, as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkflowView {
    /// The newest.
    pub definition: Definition,
    /// Its newest run, of whatever version.
    pub last_run: Option<LastRun>,
    /// Who paused it, and since when.
    pub pause: Option<(String, Millis)>,
}

/// How the newest run of a workflow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastRun {
    pub run: RunId,
    /// `None` when it cannot be read.
    pub status: Option<RunStatus>,
    pub submitted_at: Millis,
}

/// One run of a workflow, and how it went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunOutcome {
    pub workflow: String,
    pub run: RunId,
    /// `None` when it cannot be read.
    pub status: Option<RunStatus>,
    pub submitted_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
}

/// What is in a file that is kept, to be read.
#[derive(Debug)]
pub enum Opened {
    /// At its beginning. It stays readable when the store lets it go.
    File(std::fs::File),
    Bytes(Vec<u8>),
}

/// A file that a step left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    pub name: ArtifactName,
    pub hash: ContentHash,
    pub size: u64,
    pub is_executable: bool,
}

/// The same, with who left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactView {
    pub step: String,
    pub attempt: u32,
    pub artifact: Artifact,
}

/// A secret of the store, without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretView {
    pub name: String,
    pub set_at: Millis,
    pub set_by: String,
}

/// A piece of what an attempt printed: bytes of its framed log, from a place on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPiece {
    pub claim: ClaimRef,
    pub start: u64,
    pub bytes: Vec<u8>,
}

/// Which log is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogName {
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
}

/// A range of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPart {
    /// From the place that was asked for on; empty at the end of what there is.
    pub bytes: Vec<u8>,
    /// How long the log is by now.
    pub size: u64,
    /// Its node died: what was printed in the last second before that may be missing.
    pub may_lack_end: bool,
}

/// What can be held up and let go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pausable {
    Run(RunId),
    /// Every run of it, also later ones.
    Workflow(String),
}

/// Whose sessions are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// All of a node, by its address.
    Node(String),
    Session(SessionId),
}

/// A named limit, and how far it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitView {
    pub name: String,
    pub limit: Limit,
    /// Tasks that are available or running with it.
    pub holders: u32,
    /// Tasks that wait at it.
    pub waiting: u32,
    pub set_by: String,
    pub set_at: Millis,
}

/// A node that is alive, as far as the store knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeView {
    pub node: String,
    pub session: SessionId,
    pub pid: u32,
    pub registered_at: Millis,
    pub slots: u32,
    /// `None` for one that runs its own run only.
    pub offer: Option<Offer>,
    pub is_draining: bool,
    /// Its process starts what schedules and other triggers are due.
    pub fires: bool,
    /// When it last renewed its lease.
    pub renewed_at: Millis,
    /// For how long it has not renewed its lease, if it has missed more than one renewal: it is frozen, or cut off.
    pub silent_for: Option<Duration>,
    /// As of then.
    pub tally: Tally,
    /// When that last changed.
    pub last_active_at: Option<Millis>,
    /// How many lives of this node were lost: it died, froze, or could not reach the store.
    pub lost_sessions: u64,
    /// The moment of this look, by the store's clock.
    pub observed_at: Millis,
    /// How many tasks it holds.
    pub held: u32,
    /// Some of those, oldest first.
    pub claims: Vec<ClaimView>,
}

/// One task that a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimView {
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    pub started_at: Option<Millis>,
}

/// What a look at a whole store showed.
#[derive(Debug, Clone)]
pub struct Examination {
    /// How many runs were looked at in detail, the newest ones.
    pub runs: usize,
    /// How many there are.
    pub total: usize,
    pub findings: Vec<Finding>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub severity: Severity,
    pub about: About,
    pub subject: String,
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something is wrong, and does not mend itself.
    Problem,
    /// Worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Note => "note",
        }
    }
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    File,
    Row,
    Run,
    Quarantine,
    Session,
    Leftover,
    /// What runs containers for a node.
    Engine,
    Database,
}

impl About {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Row => "row",
            Self::Run => "run",
            Self::Quarantine => "quarantine",
            Self::Session => "session",
            Self::Engine => "engine",
            Self::Database => "database",
            Self::Leftover => "leftover",
        }
    }
}

/// An open transaction that keeps the database from removing dead rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Horizon {
    /// A session with its process id, a prepared transaction, or a replication slot.
    pub holder: String,
    /// `None` if the role of this store may not read it.
    pub held_for: Option<Duration>,
}

impl Horizon {
    /// `doctor` and `/metrics` report transactions that are open for this long.
    pub const LONG: Duration = Duration::from_secs(60);
}

/// Length of the hash of a token's secret, in bytes.
pub const TOKEN_HASH: usize = 32;

/// How a run is canceled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CancelMode {
    /// Steps with `when: always` and hooks still run, until the run's `cleanup_timeout` has passed.
    /// Said twice, it changes nothing: a repeated request takes no time from them.
    #[default]
    CleanUp,
    /// Without them. Those that run already are stopped.
    Now,
}

/// What a retry opens of a run, and of which run: as somebody has seen it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reopen<'a> {
    /// This step and everything behind it; without it what did not succeed.
    pub from: Option<&'a str>,
    /// The number of the run's last event, as far as whoever asks has seen it. A run that went on since is left alone: what is wanted
    /// may have been done already.
    pub seen: Option<u64>,
}

impl<'a> Reopen<'a> {
    /// The run as it is now.
    pub fn now(from: Option<&'a str>) -> Self {
        Self { from, seen: None }
    }
}

/// A token that is to be known.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// Names it in what is shown of it; no secret.
    pub id: String,
    /// Whose it is, or what for. Among tokens that are not revoked a name stands once.
    pub name: String,
    pub role: Role,
    /// SHA-256 of the secret.
    pub hash: [u8; TOKEN_HASH],
    /// The last characters of the secret.
    pub tail: String,
    pub by: String,
    /// The id of the token whose code it is made with, if it is: it is revoked with that one.
    pub parent: Option<String>,
    /// How long it is accepted; without it until it is revoked. Never longer than `parent`.
    pub lasts: Option<Duration>,
}

/// A new secret for the token of a name.
#[derive(Debug, Clone)]
pub struct TokenRotation {
    pub name: String,
    /// Id, hash and tail of the new secret, as in `NewToken`.
    pub id: String,
    pub hash: [u8; TOKEN_HASH],
    pub tail: String,
    pub by: String,
    /// How long the new one is accepted; without it as long as the one before was when it was made.
    pub lasts: Option<Duration>,
    /// How long the old secret is still accepted.
    pub grace: Duration,
}

/// What came of a rotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RotatedToken {
    pub token: Token,
    /// The token with the old secret.
    pub replaced: Token,
}

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub role: Role,
    pub hash: [u8; TOKEN_HASH],
    pub tail: String,
    pub created_by: String,
    pub created_at: Millis,
    /// The id of the token whose code it was made with.
    pub parent: Option<String>,
    /// By whom it was revoked, and from when on it is refused: ahead of now for one that was rotated with a grace.
    pub revoked: Option<(String, Millis)>,
    /// From when on it is refused, revoked or not.
    pub expires_at: Option<Millis>,
    /// When it was last used, to the minute.
    pub used_at: Option<Millis>,
    /// The store's clock when this was read: expiry is judged by it, not by the clock of a node.
    pub read_at: Millis,
}

impl Token {
    /// Whether it is accepted `age` after it was read.
    pub fn is_live(&self, age: Duration) -> bool {
        let now = self.read_at.after(age);
        let revoked_at = self.revoked.as_ref().map(|(_, at)| *at);
        [revoked_at, self.expires_at].into_iter().flatten().all(|end| now < end)
    }

    /// Whether its use is to be recorded again, `age` after it was read.
    pub fn is_use_stale(&self, age: Duration) -> bool {
        self.used_at.is_none_or(|used| self.read_at.after(age).since(used) >= TOKEN_USE_GRAIN)
    }
}

/// How exactly the last use of a token is known: a request costs a write at most this often.
pub const TOKEN_USE_GRAIN: Duration = Duration::from_secs(60);

/// A token that was ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedToken {
    pub token: Token,
    /// Names of those that came of it and were in use, in order: they have ended with it.
    pub along: Vec<String>,
}

/// Something that a person changed through the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// The name of the token.
    pub by: String,
    /// The verb.
    pub act: String,
    /// What it was done to.
    pub what: String,
    /// The address it was asked from.
    pub origin: String,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    pub seq: u64,
    pub at: Millis,
    pub deed: Deed,
}

/// How often the embedded store has committed in this process, and how many verbs went with those commits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Commits {
    pub commits: u64,
    pub verbs: u64,
}
