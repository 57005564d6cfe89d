//! A workflow as its document says it, after every check that needs no other step: names, types, units.
//! Owns the domain types; never parses (`read.rs` does) and never orders (`plan/` does).
//! Each key is described for people in `docs/design/document.md`.

use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::Value;

use crate::expression::{Expression, Template};
use crate::reason::Reason;

/// A whole document.
#[derive(Debug, Clone, PartialEq)]
pub struct Workflow {
    pub name: String,
    /// In document order.
    pub params: Vec<Param>,
    pub max_parallel: Option<NonZeroU32>,
    pub on_failure: OnFailure,
    /// `None` is no limit, also when the document says `0s`.
    pub timeout: Option<Duration>,
    /// Set for every step; a step's own `env` wins.
    pub env: Vec<(String, Template)>,
    /// In document order, which breaks ties.
    pub steps: Vec<Step>,
    pub groups: Vec<Group>,
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
    pub workdir: Option<String>,
    pub timeout: Option<Duration>,
    pub retry: Retry,
    pub on_lost: OnLost,
}

/// What a step executes.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// A script, handed to `sh -e`, or to the interpreter its first line names with `#!`.
    Run { script: String, args: Vec<Template> },
    /// A program and its arguments, without a shell.
    Command { argv: Vec<String>, args: Vec<Template> },
    /// A function of the program that embeds Laneway, with its input by name.
    Function { name: String, with: Vec<(String, Template)> },
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

/// A declared parallel set. It can be planned; running it comes with containers and workspaces.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    pub name: String,
    /// Names of steps, in document order.
    pub steps: Vec<String>,
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
