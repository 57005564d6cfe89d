//! What the store keeps of triggers: how far each has come, and ends of runs that somebody waits for. When a tick is due
//! and which parameters it gives is core's; who starts the run is the engine's (`docs/design/triggers.md`).

use std::time::Duration;

use laneway_core::hash::Version;
use laneway_core::hook;
use laneway_core::id::RunId;
use laneway_core::plan::Plan;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_core::trigger::{After, Ended, Start, Trigger, tick_of_key};

use crate::prune::HOLD_KEYS;

/// A trigger of an applied workflow, to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Armed {
    pub key: String,
    /// Whose ends fire it.
    pub after: Option<After>,
    /// Where it listens.
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

/// Which trigger, and in which version of its workflow it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRef {
    pub workflow: String,
    pub key: String,
    pub version: Version,
}

/// A trigger, as people are shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerView {
    pub at: TriggerRef,
    /// Everything up to here is dealt with.
    pub dealt_with: Millis,
    /// When a schedule has to be looked at again.
    pub due_at: Option<Millis>,
    /// Who paused it, and since when.
    pub pause: Option<(String, Millis)>,
    pub last: Option<LastFired>,
}

impl TriggerView {
    /// Returns when a schedule starts a run next. One that was applied or resumed just now is due
    /// at that moment, so that a node works out its next tick.
    pub fn next(&self) -> Option<Millis> {
        let due_at = self.due_at?;
        if due_at > self.dealt_with {
            return Some(due_at);
        }
        tick_of_key(&self.at.key, due_at).or(Some(due_at))
    }
}

/// What came of the last time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastFired {
    pub at: Millis,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Started(RunId),
    /// No run could be started, in words.
    Refused(String),
}

impl Outcome {
    /// The run that was started, as it is stored. What came of the last time decides nothing: where that cannot be read, people are told.
    pub(crate) fn of_run(stored: &str) -> Self {
        match RunId::parse(stored) {
            Some(run) => Self::Started(run),
            None => Self::Refused(format!("what came of it cannot be read: `{stored}` is no id of a run")),
        }
    }
}

/// Who listens at a path, and what time it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    pub trigger: TriggerView,
    /// By the store's clock.
    pub now: Millis,
}

/// How long a signature is remembered that says nothing of when it was made: as long as the key of a run that was removed.
pub const HOLD_SIGNATURES: Duration = HOLD_KEYS;

/// Old signatures that are forgotten with each new one: more than come, so that they do not pile up.
pub(crate) const SIGNATURES_FORGOTTEN: i64 = 20;

/// An end of a run that fires a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// `None` if it is not armed any more, or paused: then the end fires nothing.
    pub trigger: Option<TriggerRef>,
    pub ended: Ended,
    pub end: End,
}

impl Firing {
    /// Whether it is for the hooks of the run itself.
    pub fn is_of_hooks(&self) -> bool {
        self.end.is_of_hooks()
    }
}

/// Which end of which run, for whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub run: RunId,
    /// The number of its last event: a run that was opened again ends again.
    pub seq: u64,
    pub workflow: String,
    pub key: String,
}

impl End {
    pub(crate) fn is_of_hooks(&self) -> bool {
        self.key == "hooks" || self.key == "hooks here"
    }
}

/// What there is to be done about callbacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outbox {
    /// Some can be sent now, or are being sent by the session that asks.
    pub has_callbacks: bool,
    /// The process of a run that is over died before it had submitted the hooks.
    pub owes_hooks: bool,
}

/// What there is to be done about triggers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueNow {
    /// By the store's clock.
    pub now: Millis,
    pub schedules: Vec<TriggerView>,
    pub firings: Vec<Firing>,
    /// What is due as well and cannot be read, in words. It takes nobody's place, and nothing comes of it until it is mended.
    pub unreadable: Vec<String>,
    /// When the next schedule is due, of those that are not.
    pub next: Option<Millis>,
}

/// What was done about a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    pub workflow: String,
    pub key: String,
    /// How far it had come when that was decided: whoever finds it further on changes nothing.
    pub seen: Millis,
    pub dealt_with: Millis,
    pub next: Option<Millis>,
    pub last: Option<LastFired>,
}

/// The ends at which a workflow has hooks, as they are stored.
pub(crate) fn hooks_text(plan: &Plan) -> Option<String> {
    let ends = hook::ends(&plan.workflow);
    (!ends.is_empty()).then(|| ends_text(&ends))
}

/// The ends that fire a trigger, as they are stored.
pub(crate) fn ends_text(ends: &[RunStatus]) -> String {
    let words: Vec<&str> = ends.iter().map(|end| end.as_str()).collect();
    format!(" {} ", words.join(" "))
}
