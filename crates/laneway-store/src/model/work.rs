//! Submissions, claims, and how attempts ended. Plain values, and the facts of a run that never
//! change (`RunHead`). No verb is here: see `contract/work.rs`. See `docs/design/store.md` and
//! `docs/design/gates.md`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use laneway_core::child::Parent;
use laneway_core::definition::{Placement, Workspace};
use laneway_core::expression::Scope;
use laneway_core::hash::ContentHash;
use laneway_core::id::{RunId, SessionId};
use laneway_core::key::{self, TaskKeys};
use laneway_core::not_before::NotBefore;
use laneway_core::plan::{Plan, Position};
use laneway_core::reason::Reason;
use laneway_core::time::Millis;
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::fence::{ClaimRef, Fate};
use crate::keeper::with_item;
use crate::layer::NewLayer;
use crate::model::{Deed, Stop};
use crate::submission_key::{self, KeyedRun};

/// Maximum number of tasks of a run at once, unless its workflow sets another.
pub const DEFAULT_MAX_PARALLEL: u32 = 4;

#[derive(Debug, Clone)]
pub struct Submission {
    pub plan: Arc<Plan>,
    /// The text that the plan was made from.
    pub document: String,
    /// Where steps run: the directory of the workflow file.
    pub dir: String,
    /// Files that steps find in a directory of their run instead, on any node. They must be stored
    /// already.
    pub bundle: Option<ContentHash>,
    /// Must be bound by `laneway_core::params::bind`.
    pub params: Map<String, Value>,
    pub max_parallel: u32,
    /// The session that submits it, and that owns a run that is not shared.
    pub session: SessionId,
    /// Any node may claim its tasks.
    pub is_shared: bool,
    /// The run is paused from its first moment on, as if an operator had paused it.
    pub is_paused: bool,
    /// A second submission with the same key returns the same run. The caller checks a key that a
    /// client chose with `submission_key::check`.
    pub key: Option<String>,
    pub by: String,
    /// The network address of a request to the service. With it, the audit log records the
    /// submission in the same commit.
    pub origin: Option<String>,
    /// The step that starts it, if any.
    pub parent: Option<Parent>,
    /// Steps run even where a stored result could be reused.
    pub no_cache: bool,
    /// A deadline beside the document's `timeout`: hooks share the clock of the canceled run.
    pub end_by: Option<Millis>,
    /// The run is for later. A delay counts on the store's clock.
    pub not_before: Option<NotBefore>,
}

impl Submission {
    /// Returns a submission of a plan by a session: local, not paused, without key and parameters.
    /// The caller sets `dir` and `by`.
    pub fn new(plan: Arc<Plan>, document: String, session: SessionId) -> Self {
        Self {
            plan,
            document,
            dir: String::new(),
            bundle: None,
            params: Map::new(),
            max_parallel: DEFAULT_MAX_PARALLEL,
            session,
            is_shared: false,
            is_paused: false,
            key: None,
            by: String::new(),
            origin: None,
            parent: None,
            no_cache: false,
            end_by: None,
            not_before: None,
        }
    }

    /// Returns which nodes may run its steps, if any node may claim them.
    pub(crate) fn placement(&self) -> Placement {
        let workflow = &self.plan.workflow;
        workflow.placement_of_run(self.bundle.is_some() && workflow.workspace == Workspace::Follow)
    }

    /// Returns the moment until which it must wait, unless that has come.
    pub(crate) fn waits_until(&self, now: Millis) -> Option<Millis> {
        self.not_before.map(|not_before| not_before.moment(now)).filter(|at| *at > now)
    }

    /// Compares this submission with the run that has its key already.
    ///
    /// # Errors
    /// `KeyTaken` if the workflow, the version or the parameters differ. Keys that Laneway makes
    /// are exempt.
    pub(crate) fn check_known(&self, known: &KeyedRun) -> Result<(), Error> {
        let Some(key) = self.key.as_ref().filter(|key| !submission_key::is_own(key)) else { return Ok(()) };
        match known.difference(&self.plan, &self.params) {
            Some(differs) => Err(Error::KeyTaken { key: key.clone(), run: known.run, differs }),
            None => Ok(()),
        }
    }

    /// Returns the entry of the audit log for the submitted run, if the service requested it.
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
    /// The local run whose tasks are requested. `None`: every task that the session accepts.
    pub run: Option<RunId>,
    /// How many tasks can start at once.
    pub limit: usize,
    /// How many more tasks to hold until a task of this session ends. Those of a local run may
    /// still wait for `max_parallel`. The session must start each in the place of one that has
    /// ended.
    pub ahead: usize,
}

/// A claimed task, with everything needed to run it.
#[derive(Debug, Clone)]
pub struct Claim {
    pub at: ClaimRef,
    pub head: Arc<RunHead>,
    /// When the passages of its rates expire. A worker that reaches the task later gives it back.
    pub start_by: Option<Instant>,
    /// Whether it was offered to the owner of its run alone. The store then counts no room in
    /// pools.
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
    /// The keys of tasks that have any, as far as the parameters fix them.
    pub keys: BTreeMap<Position, TaskKeys>,
    pub placed: Placed,
    /// The class of tasks that only the owner of the run claims, in this run and in the runs it
    /// started.
    pub own_class: i64,
    /// The step that started it, if any.
    pub parent: Option<Parent>,
    /// Steps run even where a stored result could be reused.
    pub no_cache: bool,
}

impl RunHead {
    /// Returns what expressions of its steps may read. `steps` are the outputs so far, by step.
    pub fn scope(&self, steps: Map<String, Value>) -> Scope {
        let mut scope = Scope::new();
        match self.plan.after {
            None => drop(scope.insert("params".into(), Value::Object(self.params.clone()))),
            // Hooks receive the parameters of their run, and how it ended.
            Some(_) => scope.extend(self.params.clone()),
        }
        scope.insert("steps".into(), Value::Object(steps));
        let workflow = &self.plan.workflow.name;
        scope.insert("run".into(), json!({ "id": self.run.to_string(), "workflow": workflow }));
        scope
    }
}

/// Which nodes may run the tasks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placed {
    /// The session that owns it.
    Local,
    /// Every node that can.
    Spread,
    /// One node at a time: the node that claims its first task owns it from then on. `class` can
    /// run all of it.
    Pinned { class: i64 },
}

impl Placed {
    /// Parses the stored form. `class` is the class of a pinned run.
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
    /// Returns whether more than its run decides when a task may start. That is so with keys that
    /// others share, in a bounded group, and for items with a `max_parallel`.
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

    /// Returns the keys of a task, if it has any. `item` is its value in stored form.
    pub(crate) fn keys_of(&self, position: Position, item: Option<&str>) -> Option<TaskKeys> {
        if self.plan.is_growing(position) {
            return None;
        }
        let step = self.plan.step(position);
        let keys = self.keys.get(&self.plan.base(position)?).cloned();
        match (self.plan.item(position), step.lock_reads_item()) {
            (Some((_, index)), true) => {
                // Its lock was evaluated when the list was made.
                let item: Value = serde_json::from_str(item?).ok()?;
                let lock = key::lock_of_item(step, &self.scope_of_item(&item, index)).ok()?;
                Some(TaskKeys { lock, ..keys.unwrap_or_default() })
            }
            (_, _) => keys,
        }
    }

    /// Returns the scope that the lock of an item reads.
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
    /// Measured by its holder: the store learns of a start and an end only when it commits them.
    pub took: Duration,
    /// Changes in its view of the run's files. Kept if the attempt succeeds, or fails for good.
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
    /// The task succeeds without being executed, with a stored result.
    Cached(Box<crate::cache::Hit>),
    /// Stopped at the request of the store.
    Canceled {
        reason: Reason,
    },
}

/// What `finish` found and did.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// One for each `Finished`, in order.
    pub fates: Vec<Fate>,
    /// Tasks that were claimed in the same transaction.
    pub claims: Vec<Claim>,
    /// Claims of the requesting session that it must stop now.
    pub stops: Vec<Stop>,
    /// The requested run starts nothing but clean-up from here on. The worker must give back what
    /// it holds unstarted.
    pub is_closing: bool,
    /// When `promote` will have something to do.
    pub wake_at: Option<Millis>,
}
