//! The process engine: executes one attempt.
//!
//! ```text
//! Job ─launch→ Launch ─warden→ Group ── ended / term, kill / gone
//!      scripts, PATH             │ stdout, stderr
//!                                └─pump→ log::Writer         execute: one loop over exit, stop, deadline, output
//! ```
//! Everything here is already evaluated: no expression, no store, no retry. Who belongs to a step, wherever
//! it went, is known by the warden, which also starts and kills it.

mod execute;
mod explain;
mod launch;
mod output;
mod pump;
mod script;
mod stop;

use laneway_core::shell::Shell;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

pub use execute::execute;
pub(crate) use execute::take_output;
pub(crate) use launch::Launch;
pub use stop::StopSignal;

use crate::log;
use crate::secret::Masks;

/// Everything needed to execute one attempt. Relative paths are taken from the current directory.
#[derive(Debug, Clone)]
pub struct Job {
    pub program: Program,
    /// Added last, so it wins over what is inherited. `LANEWAY_OUTPUT` is set by the engine itself.
    pub env: Vec<(String, String)>,
    pub inherit_env: InheritEnv,
    pub workdir: PathBuf,
    /// A file to read from; without one there is nothing to read.
    pub stdin: Option<PathBuf>,
    /// An existing directory for script files; they are named by content and used again.
    pub scratch: PathBuf,
    /// Where `$LANEWAY_OUTPUT` points. The step makes it if it has something to say; it is read and removed.
    pub output: PathBuf,
    /// Begun by the first byte that the step prints.
    pub log: log::Target,
    pub log_cap: u64,
    /// Not to be seen in the log, nor in the output.
    pub masks: Masks,
    pub timeout: Option<Duration>,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
}

/// What to run. Never a string that is put together for a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// Runs under its shell, or under what its `#!` line names. `name` is its `$0` where its text is handed
    /// to a shell; one that has to be a file (`#!`, or more than 100 KiB) sees that file as `$0`.
    Script { text: String, name: String, args: Vec<String>, shell: Shell },
    /// The first word is looked up in PATH, or in the working directory if it is a relative path with a slash.
    Command { argv: Vec<String> },
}

/// Which of this process's own variables a step sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InheritEnv {
    All,
    Only(Vec<String>),
}

/// How an attempt ended.
#[derive(Debug)]
pub struct Ending {
    pub outcome: Outcome,
    /// From the start to the exit of the program.
    pub duration: Duration,
    /// What the step wrote to `$LANEWAY_OUTPUT`, also if it failed; empty if it wrote nothing.
    pub output: Result<Map<String, Value>, laneway_core::output::Error>,
    pub log: log::Summary,
}

/// The reasons of an ending, told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Exited(i32),
    /// By a signal that Laneway did not send.
    Signaled(i32),
    /// Of a container: it wanted more memory than it may have. With the exit code.
    OutOfMemory(i32),
    /// Of a call: it was answered with a refusal, or not at all.
    Failed(String),
    TimedOut,
    /// Because of the [`StopSignal`].
    Stopped,
    /// It never ran; in words that say what to do.
    StartFailed(String),
    /// Of a container: its engine was not there, or went away in the middle. It may have run, also to its end.
    EngineLost(String),
}
