//! A workflow as its document says it, after every check that needs no other step: names, types, units.
//! Owns the domain types; never parses (`read.rs` does) and never orders (`plan/` does).
//! Each key is described for people in `docs/design/document.md`.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use super::housing::{Housing, Method, Pool, PoolMode};
use super::input::Input;
use super::paths::ArtifactPath;
use crate::cache::Cache;
use crate::expression::{Expression, Template};
use crate::hook::Hook;
use crate::limit::Limit;
use crate::max_runs::MaxRuns;
use crate::reason::Reason;
use crate::shell::Shell;
use crate::trigger::Trigger;
use crate::wait::Wait;

/// A whole document.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    pub name: String,
    /// In document order.
    pub params: Vec<Param>,
    pub max_parallel: Option<NonZeroU32>,
    pub on_failure: OnFailure,
    pub execution: Execution,
    /// `None` is no limit, also when the document says `0s`.
    pub timeout: Option<Duration>,
    /// How long steps with `when: always` and hooks may take once the run is canceled or has timed
    /// out. Zero lets none start.
    pub cleanup_timeout: Duration,
    /// Set for every step; a step's own `env` wins.
    pub env: Vec<(String, Template)>,
    /// In document order, which breaks ties.
    pub steps: Vec<Step>,
    pub groups: Vec<Group>,
    /// Warm containers, in document order.
    pub pools: Vec<Pool>,
    /// Named limits that it declares, in document order. They are objects of the store, shared by all workflows.
    pub limits: Vec<(String, Limit)>,
    pub max_runs: Option<MaxRuns>,
    /// Where the values of its secrets come from, by name, in document order.
    pub secrets: Vec<(String, SecretSource)>,
    pub placement: Placement,
    pub workspace: Workspace,
    /// What starts it by itself, once it is applied.
    pub triggers: Vec<Trigger>,
    /// What runs when a run of it is over, in document order.
    pub hooks: Vec<Hook>,
}

impl Workflow {
    /// How long clean-up may take where the document does not say.
    pub const CLEANUP_TIMEOUT: Duration = Duration::from_secs(60);

    /// Returns which nodes may run a submitted run. Copies for the members of a group stay on one
    /// node, unless the files of the run follow it.
    pub fn placement_of_run(&self, files_follow: bool) -> Placement {
        match self.placement {
            Placement::Spread if !files_follow && self.groups.iter().any(|group| group.isolate) => {
                Placement::Pinned
            }
            placement => placement,
        }
    }
}

/// A node of the graph, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub name: String,
    pub action: Action,
    /// Names of steps, without repeats, in document order.
    pub needs: Vec<String>,
    pub when: When,
    /// The `if` key.
    pub condition: Option<Expression>,
    pub env: Vec<(String, Template)>,
    /// Relative to the workflow file's directory.
    pub workdir: Option<Template>,
    pub timeout: Option<Duration>,
    pub retry: Retry,
    pub on_lost: OnLost,
    /// `None` for the many steps that ask nothing; read it by `demands()`. Boxed, because a document may have a hundred
    /// thousand steps.
    pub(crate) demands: Option<Box<Demands>>,
    /// The same for the few steps that hand files on; read it by `files()`.
    pub(crate) files: Option<Box<Files>>,
    /// The same for those that run in a container; read it by `housing()`.
    pub(crate) housing: Option<Box<Housing>>,
    /// The same for those that may take a result that was recorded before; read it by `cache()`.
    pub(crate) cache: Option<Box<Cache>>,
    /// One task for each item of a list.
    pub for_each: Option<Box<ForEach>>,
}

/// The `for_each` key, with those that say how the items run.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    /// What it evaluates to when the step is reached is a list.
    pub items: Input,
    /// How many items may be available or running at once.
    pub max_parallel: Option<NonZeroU32>,
    /// The first failure ends the others.
    pub fail_fast: bool,
}

/// The files of a step: what it hands on, what it is given, and where it works.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Files {
    /// What it leaves behind, relative to its directory. Kept if it succeeds.
    pub artifacts: Vec<ArtifactPath>,
    /// Steps that it needs, or items of them, whose artifacts are put into its directory before it starts.
    pub inputs: Vec<Template>,
    /// Each attempt works in a copy of the directory of its own, which is removed with it.
    pub isolate: bool,
    /// What becomes of a file that steps before it changed in different ways.
    pub on_conflict: OnConflict,
}

/// What a step asks for before it may start, beyond what it needs: keys, labels, priority.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Demands {
    /// No two tasks on this key at once, of whatever run. Reads `params` only.
    pub lock: Option<Template>,
    pub order: Option<Order>,
    /// Names of limits, each once.
    pub limits: Vec<String>,
    /// What it evaluates to is a `NotBefore`. Reads `params` only.
    pub not_before: Option<Template>,
    /// Labels that a node must have.
    pub runs_on: Vec<(String, String)>,
    /// Labels that a node had better have.
    pub prefers: Vec<(String, String)>,
    /// From `rank::LEAST_PRIORITY` to `rank::HIGHEST_PRIORITY`.
    pub priority: i8,
}

/// Where the value of a secret is found, by the node that runs a step which reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of the node's own environment.
    Env(String),
    /// A file on the node; a relative path is below the run's directory.
    File(String),
    /// A secret of the store.
    Store(String),
}

/// The `order` key: on one key smaller versions go first. Both read `params` only.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub key: Template,
    /// What it evaluates to is an `OrderVersion`.
    pub version: Template,
}

impl Step {
    pub fn demands(&self) -> &Demands {
        static NONE: Demands = Demands {
            lock: None,
            order: None,
            limits: Vec::new(),
            not_before: None,
            runs_on: Vec::new(),
            prefers: Vec::new(),
            priority: 0,
        };
        self.demands.as_deref().unwrap_or(&NONE)
    }

    /// Whether it may still start after the run was halted by a failure. A merge waits for all of its members, however
    /// they end, and is no clean-up all the same.
    pub fn is_clean_up(&self) -> bool {
        match self.action {
            Action::Merge { .. } => false,
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Function { .. }
            | Action::Queue { .. }
            | Action::Call { .. }
            | Action::Wait(_)
            | Action::Post { .. } => self.when.accepts_failure(),
        }
    }

    /// The number of the group that it merges, if it is a merge.
    pub fn merges(&self) -> Option<u32> {
        match self.action {
            Action::Merge { group } => Some(group),
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Function { .. }
            | Action::Queue { .. }
            | Action::Call { .. }
            | Action::Wait(_)
            | Action::Post { .. } => None,
        }
    }

    /// Whether something that is fixed for each item of its own reads the item, or its index.
    pub fn lock_reads_item(&self) -> bool {
        self.for_each.is_some() && self.demands().lock.as_ref().is_some_and(Template::reads_item)
    }

    /// Whether its `if` is asked for each item.
    pub fn condition_reads_item(&self) -> bool {
        self.for_each.is_some() && self.condition.as_ref().is_some_and(Expression::reads_item)
    }

    /// What it waits for, if it is a wait: nobody claims it.
    pub fn wait(&self) -> Option<&Wait> {
        match &self.action {
            Action::Wait(wait) => Some(wait),
            Action::Run { .. }
            | Action::Command { .. }
            | Action::Function { .. }
            | Action::Queue { .. }
            | Action::Call { .. }
            | Action::Merge { .. }
            | Action::Post { .. } => None,
        }
    }

    pub fn files(&self) -> &Files {
        static NONE: Files = Files {
            artifacts: Vec::new(),
            inputs: Vec::new(),
            isolate: false,
            on_conflict: OnConflict::Fail,
        };
        self.files.as_deref().unwrap_or(&NONE)
    }

    /// When it may take a result that was recorded before.
    pub fn cache(&self) -> Option<&Cache> {
        self.cache.as_deref()
    }

    /// Where it runs if not on the node itself.
    pub fn housing(&self) -> Option<&Housing> {
        self.housing.as_deref()
    }
}

/// What a step executes.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A script for the interpreter that its first line names with `#!`, and for `shell` without one.
    Run { script: String, args: Vec<Template>, shell: Shell },
    /// A program and its arguments, without a shell.
    Command { argv: Vec<String>, args: Vec<Template> },
    /// A function of the program that embeds Laneway, with its input by name.
    Function { name: String, with: Vec<(String, Template)> },
    /// Whatever a remote worker does that takes this queue, with its input by name.
    Queue { queue: String, with: Vec<(String, Input)> },
    /// A question to the endpoint of a container of its pool; the answer is its output.
    Call { method: Method, path: Template, body: Input },
    /// Nothing: it is over when a signal or a moment has come. Boxed, because few steps are one.
    Wait(Box<Wait>),
    /// Brings the results of a group together; the number is that of the group in its workflow. Never written in a document.
    Merge { group: u32 },
    /// Sends the outcome of a run to an address. For hooks only.
    Post(Box<Post>),
}

/// A callback: the request that is sent when a run is over.
#[derive(Debug, Clone, PartialEq)]
pub struct Post {
    pub url: Template,
    /// The secret that signs the request.
    pub secret: Option<String>,
    /// `None`: JSON.
    pub content_type: Option<String>,
    pub headers: Vec<(String, Template)>,
    /// `None`: the outcome. A text is sent as it is, everything else as JSON.
    pub body: Option<Input>,
}

impl Post {
    /// Everything that is evaluated before the request is sent.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        let body = self.body.iter().flat_map(Input::templates);
        std::iter::once(&self.url).chain(headers).chain(body)
    }
}

/// The rule on predecessors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum When {
    #[default]
    AllSucceeded,
    AllDone,
    AllFailed,
    OneSucceeded,
    OneFailed,
    Always,
}

impl When {
    /// Whether such a step may still start after the run was halted by a failure: clean-up must work.
    pub fn accepts_failure(self) -> bool {
        match self {
            Self::AllDone | Self::Always | Self::OneFailed | Self::AllFailed => true,
            Self::AllSucceeded | Self::OneSucceeded => false,
        }
    }
}

/// What a failed step does to the rest of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// Nothing new starts, what runs finishes.
    #[default]
    Halt,
    /// Nothing new starts, what runs is canceled.
    Abort,
    /// Only what depends on the failed step is skipped.
    Continue,
}

/// What becomes of a task whose node died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLost {
    #[default]
    Retry,
    /// For steps that must not run twice.
    Fail,
}

/// How the steps of a run follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Execution {
    /// Each starts as soon as what it needs is done.
    #[default]
    Dataflow,
    /// Level by level, each as one (`level.rs`). `max_parallel` says how many of a level run at once.
    Levels,
}

/// Which nodes may run the tasks of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Any node.
    #[default]
    Spread,
    /// The node that took the first.
    Pinned,
    /// The node to which the run was submitted.
    Local,
}

/// Where the files of a submitted run lie. A run by `laneway run` works in the caller's directory, whatever this says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Workspace {
    /// Each step sees what the steps that it needs have left, on whichever node it runs.
    #[default]
    Follow,
    /// Files stay on the node on which a step wrote them.
    None,
    /// Steps work in this absolute directory, on nodes that have it.
    Path(String),
}

/// The `retry` key. `max: 0`, the default, is no retry.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// How many attempts may follow the first.
    pub max: u32,
    pub backoff: Duration,
    pub factor: f64,
    pub max_backoff: Duration,
    /// Share of the delay, 0 to 1, that is taken off at random.
    pub jitter: f64,
    /// Empty: every failure is retried.
    pub on: Vec<RetryOn>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max: 0,
            backoff: Duration::from_secs(1),
            factor: 2.0,
            max_backoff: Duration::from_secs(60),
            jitter: 0.0,
            on: Vec::new(),
        }
    }
}

/// One entry of `retry.on`: a reason by name, or an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    Reason(Reason),
    ExitCode(i32),
}

/// A declared parallel set. Its merge is a step of its own, which the planner adds (`plan/merges.rs`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Group {
    pub name: String,
    /// Names of steps, in document order.
    pub steps: Vec<String>,
    pub failure: GroupFailure,
    pub merge: Merge,
    /// Each member works in a copy of the run's directory of its own.
    pub isolate: bool,
    /// How many members may be available or running at once.
    pub max_parallel: Option<NonZeroU32>,
    /// How members that use a pool share its containers; `None` leaves that to the pool.
    pub mode: Option<PoolMode>,
    /// How long containers that members used are kept; `None` leaves that to the pool.
    pub dormancy: Option<Duration>,
}

/// What the failure of a member means for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupFailure {
    /// The others are canceled, and nothing is merged.
    #[default]
    Strict,
    /// All run; what failed is listed as such, and the run goes on.
    Lenient,
}

/// How the results of a group's members become one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Merge {
    /// Their outputs, listed in member order.
    #[default]
    Concatenate,
    /// What they changed in their copies is applied to the run's directory.
    Workspace { on_conflict: OnConflict },
    /// A program makes one of them; without one they pass as they are.
    Custom { command: Vec<String> },
}

/// What becomes of a file that several steps changed in different ways: members of a group, or steps that one needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// Nothing is applied, and the merge, or the step that needs them, fails with the list.
    #[default]
    Fail,
    /// The file of this step is taken.
    Keep(String),
}

/// A typed parameter of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    pub name: String,
    pub kind: ParamType,
    pub required: bool,
    pub default: Option<Value>,
    /// The allowed values; empty allows all of the type.
    pub allowed: Vec<Value>,
    pub description: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamType {
    String,
    Integer,
    Number,
    Boolean,
    List,
    Object,
}
