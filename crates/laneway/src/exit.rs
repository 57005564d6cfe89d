//! Exit codes, all of them, and which error ends with which. DESIGN: "The document", last lines.

use std::fmt;
use std::process::ExitCode;

use laneway_core::state::RunStatus;

/// How the program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// What was asked was done; a run that was waited for succeeded.
    Succeeded = 0,
    /// The run failed, or somebody else canceled it; a replay that parts from the store; nothing was there to resume.
    RunFailed = 1,
    /// A bad document, parameter, name or command line: nothing was run.
    BadInput = 2,
    /// The store or the server cannot be used.
    Store = 3,
    /// `laneway effect`, whose other codes are those of its command: it was started before, and nobody knows whether it happened.
    EffectUnknown = 121,
    /// `laneway effect`: nothing was run. Nobody answers, or the attempt has lost its task or is to be stopped.
    EffectRefused = 122,
    /// `laneway effect`: it has happened and does not run again, but its result is not recorded.
    EffectLacking = 123,
    /// Ctrl-C or SIGTERM: the run was canceled.
    Interrupted = 130,
}

impl Exit {
    pub(crate) fn of_run(status: RunStatus, was_interrupted: bool) -> Self {
        match status {
            RunStatus::Succeeded => Self::Succeeded,
            RunStatus::Failed => Self::RunFailed,
            RunStatus::Canceled | RunStatus::Queued | RunStatus::Running => {
                if was_interrupted {
                    Self::Interrupted
                } else {
                    Self::RunFailed
                }
            }
        }
    }

    pub(crate) fn of_error(error: &anyhow::Error) -> Self {
        error.chain().find_map(known).map_or(Self::BadInput, |(exit, _)| exit)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// What to do next, if the error or one of its causes knows.
pub(crate) fn hint(error: &anyhow::Error) -> Option<String> {
    error.chain().find_map(known).and_then(|(_, hint)| hint)
}

fn known(cause: &(dyn std::error::Error + 'static)) -> Option<(Exit, Option<String>)> {
    if let Some(refusal) = cause.downcast_ref::<Refusal>() {
        return Some((refusal.exit, refusal.hint.clone()));
    }
    if let Some(store) = cause.downcast_ref::<laneway_store::Error>() {
        let exit = if store.is_about_the_store() { Exit::Store } else { Exit::BadInput };
        return Some((exit, store.hint()));
    }
    if let Some(client) = cause.downcast_ref::<laneway_server::client::Error>() {
        let exit = if client.is_about_the_server() { Exit::Store } else { Exit::BadInput };
        return Some((exit, client.hint()));
    }
    if let Some(problem) = cause.downcast_ref::<laneway_server::Problem>() {
        let exit = if problem.status >= 500 { Exit::Store } else { Exit::BadInput };
        return Some((exit, problem.hint.clone()));
    }
    // The engine adds nothing of its own to a store that fails: look behind it.
    match (cause.downcast_ref::<laneway_engine::Error>(), cause.source()) {
        (Some(_), None) => Some((Exit::Store, None)),
        (Some(_), Some(_)) | (None, _) => None,
    }
}

/// Input that the program refuses by itself.
#[derive(Debug)]
pub(crate) struct Refusal {
    message: String,
    hint: Option<String>,
    exit: Exit,
}

impl Refusal {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, exit: Exit::BadInput }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Ends the program with another code than that of bad input.
    pub(crate) fn exit(self, exit: Exit) -> Self {
        Self { exit, ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
