//! What the store keeps of triggers: how far each has come, and ends of runs that must fire one. It
//! never computes a tick or its parameters: `laneway_core::trigger` does. It never starts a run:
//! the engine does. See `docs/design/triggers.md`.

use std::time::Duration;

use laneway_core::hash::Version;
use laneway_core::hook;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_core::trigger::{After, Ended, Start, Trigger, tick_of_key};

use crate::prune::HOLD_KEYS;

/// A trigger of an applied workflow, to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Armed {
    pub key: String,
    /// The ends of runs that fire it.
    pub after: Option<After>,
    /// The webhook path at which it listens.
    pub path: Option<String>,
}

impl Armed {
    pub fn of(trigger: &Trigger) -> Self {
        let (after, path) = match &trigger.start {
            Start::Schedule(_) => (None, None),
            Start::After(after) => (Some(after.clone()), None),
            Start::Webhook(webhook) => (None, Some(webhook.path.clone())),
        };
        Self { key: trigger.key(), after, path }
    }
}

/// Identifies a trigger and the version of the workflow that declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRef {
    pub workflow: String,
    pub key: String,
    pub version: Version,
}

/// A trigger for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerView {
    pub at: TriggerRef,
    /// Everything up to this moment has been processed.
    pub dealt_with: Millis,
    /// When a node must evaluate the schedule again.
    pub due_at: Option<Millis>,
    /// Who paused it, and since when.
    pub pause: Option<(String, Millis)>,
    pub last: Option<LastFired>,
}

impl TriggerView {
    /// Returns when a schedule starts a run next. A schedule that was just applied or resumed is
    /// due at that moment, so that a node computes its next tick.
    pub fn next(&self) -> Option<Millis> {
        let due_at = self.due_at?;
        if due_at > self.dealt_with {
            return Some(due_at);
        }
        tick_of_key(&self.at.key, due_at).or(Some(due_at))
    }
}

/// The result of the last time that it fired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFired {
    pub at: Millis,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Started(RunId),
    /// Why no run could be started.
    Refused(String),
}

impl Outcome {
    /// Parses the stored id of the run that was started. An unreadable id is reported to users
    /// instead of failing, because no decision depends on it.
    pub(crate) fn of_run(stored: &str) -> Self {
        match RunId::parse(stored) {
            Some(run) => Self::Started(run),
            None => Self::Refused(format!("what came of it cannot be read: `{stored}` is no id of a run")),
        }
    }
}

/// The trigger at a webhook path, and the current time of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    pub trigger: TriggerView,
    /// By the store's clock.
    pub now: Millis,
}

/// How long a signature without a timestamp is remembered: as long as the key of a removed run.
pub const HOLD_SIGNATURES: Duration = HOLD_KEYS;

/// Number of old signatures to remove with each new one. It is more than are added, so that they do
/// not accumulate.
pub(crate) const SIGNATURES_FORGOTTEN: i64 = 20;

/// An end of a run that fires a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// `None` if it is no longer armed, or is paused: the end then fires nothing.
    pub trigger: Option<TriggerRef>,
    pub ended: Ended,
    pub end: End,
}

impl Firing {
    /// Returns whether it is for the hooks of the run itself.
    pub fn is_of_hooks(&self) -> bool {
        self.end.is_of_hooks()
    }
}

/// Identifies an end of a run, and the trigger that it fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub run: RunId,
    /// The number of the last event of the run. A reopened run ends again, with another number.
    pub seq: u64,
    pub workflow: String,
    pub key: String,
}

impl End {
    pub(crate) fn is_of_hooks(&self) -> bool {
        self.key == "hooks" || self.key == "hooks here"
    }
}

/// What a session can do about callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outbox {
    /// Some can be sent now, or the calling session is sending them.
    pub has_callbacks: bool,
    /// A run is over, and its process died before it had submitted the hooks.
    pub owes_hooks: bool,
}

/// What triggers must do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNow {
    /// By the store's clock.
    pub now: Millis,
    pub schedules: Vec<TriggerView>,
    pub firings: Vec<Firing>,
    /// Descriptions of due rows that are unreadable. They displace no other row, and have no effect
    /// until they are repaired.
    pub unreadable: Vec<String>,
    /// When the next schedule is due, among those that are not due now.
    pub next: Option<Millis>,
}

/// A schedule that was processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    pub workflow: String,
    pub key: String,
    /// How far the schedule had come when this was decided. If it is further by now, `fire` changes
    /// nothing.
    pub seen: Millis,
    pub dealt_with: Millis,
    pub next: Option<Millis>,
    pub last: Option<LastFired>,
}

/// Returns the stored form of the ends at which a workflow has hooks.
pub(crate) fn hooks_text(plan: &Plan) -> Option<String> {
    let ends = hook::ends(&plan.workflow);
    (!ends.is_empty()).then(|| ends_text(&ends))
}

/// Returns the stored form of the ends that fire a trigger.
pub(crate) fn ends_text(ends: &[RunStatus]) -> String {
    let words: Vec<&str> = ends.iter().map(|end| end.as_str()).collect();
    format!(" {} ", words.join(" "))
}
