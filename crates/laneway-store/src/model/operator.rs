//! What operators and programs change: signals, applied workflows, pauses, cancels, retries. Plain
//! values only: `contract/operator.rs` describes the verbs. See `docs/design/waits.md` and
//! `docs/design/closing.md`.

use std::sync::Arc;

use laneway_core::hash::ContentHash;
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Plan;
use laneway_core::time::Millis;
use laneway_core::wait::Signal;
use serde_json::{Map, Value};

/// A signal for a step that waits for it, or will wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSignal {
    /// As the step names it.
    pub name: String,
    pub by: String,
    /// Why it was sent, in the sender's words.
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

/// The effect of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signaled {
    /// The step waited for it, and has ended.
    Woken,
    /// The step does not wait yet. The signal is kept, and the step ends as soon as it would wait.
    Kept,
    /// An earlier signal came first. Nothing was changed.
    Before { by: String, at: Millis },
}

/// A workflow to apply under its name.
#[derive(Debug, Clone)]
pub struct Application {
    pub plan: Arc<Plan>,
    /// The text that the plan was made from.
    pub document: String,
    /// The directory from which it is applied. Displayed only: no code reads it.
    pub dir: String,
    /// The files beside the document. They must be stored already.
    pub bundle: Option<ContentHash>,
    pub by: String,
}

/// The result of applying a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applied {
    pub no: u32,
    /// The newest version of that name was equal already.
    pub was_there: bool,
}

/// What an operator can pause and resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pausable {
    Run(RunId),
    /// Every run of it, including later ones.
    Workflow(String),
}

/// Selects the sessions to drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whom {
    /// All sessions of a node, by its address.
    Node(String),
    Session(SessionId),
}

/// How a run is canceled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CancelMode {
    /// Steps with `when: always` and hooks still run, until the run's `cleanup_timeout` has passed.
    /// A repeated request changes nothing: it takes no time from them.
    #[default]
    CleanUp,
    /// No clean-up step and no hook starts. Those that are running are stopped.
    Now,
}

/// Which steps a retry opens, and the state of the run that the caller has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reopen<'a> {
    /// This step and everything after it. `None`: every step that did not succeed.
    pub from: Option<&'a str>,
    /// The number of the last event of the run that the caller has seen. The retry is rejected if
    /// the run has continued since: the request may have been carried out already.
    pub seen: Option<u64>,
}

impl<'a> Reopen<'a> {
    /// Accepts the run in its current state.
    pub fn now(from: Option<&'a str>) -> Self {
        Self { from, seen: None }
    }
}
