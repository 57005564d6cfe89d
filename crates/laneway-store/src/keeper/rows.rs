//! The rows of a run as the gate keeper sees them, and what it made of them. A store reads the
//! first and writes the second; neither knows of a database.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::event::{Closing, Fact, PauseScope};
use laneway_core::gate::{Counts, Gate};
use laneway_core::growth::Growth;
use laneway_core::id::SessionId;
use laneway_core::level::Cursor;
use laneway_core::plan::Position;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_core::wait::Waiting;
use serde_json::{Map, Value, json};

use super::children::Wanted;
use super::keys::{Key, KeyChanges};
use crate::child::ToStop;
use crate::fence::ClaimRef;
use crate::layer::NewLayer;

/// What of a run changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) status: RunStatus,
    pub(crate) reason: Option<String>,
    pub(crate) closing: Option<Closing>,
    /// The session to which a local run belongs, or on whose node the run stays.
    pub(crate) owner: Option<SessionId>,
    /// Until when it waits, of one that was submitted for later.
    pub(crate) not_before: Option<Millis>,
    pub(crate) started_at: Option<Millis>,
    pub(crate) finished_at: Option<Millis>,
    /// When its `timeout` passes; of one that is being canceled, or was, until when it may clean
    /// up.
    pub(crate) deadline_at: Option<Millis>,
    /// Who paused it, each scope once.
    pub(crate) pauses: Vec<Pause>,
    /// How far it has come, of one that goes level by level.
    pub(crate) levels: Option<Cursor>,
    pub(crate) last_event: u64,
    pub(crate) unsettled: u32,
}

/// Somebody holds a run, or its workflow, up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pause {
    pub(crate) scope: PauseScope,
    pub(crate) by: String,
    pub(crate) since: Millis,
}

/// Pauses as they are stored: nothing for none.
pub(crate) fn pauses_text(pauses: &[Pause]) -> Option<String> {
    let one = |pause: &Pause| json!([pause.scope.as_str(), pause.by, pause.since.0]);
    (!pauses.is_empty()).then(|| Value::Array(pauses.iter().map(one).collect()).to_string())
}

/// `None` for what this program would not have written.
pub(crate) fn read_pauses(text: &str) -> Option<Vec<Pause>> {
    let stored: Vec<(String, String, i64)> = serde_json::from_str(text).ok()?;
    let one = |(scope, by, since): (String, String, i64)| {
        Some(Pause { scope: PauseScope::parse(&scope)?, by, since: Millis(since) })
    };
    stored.into_iter().map(one).collect()
}

/// What a list says of a run beside its state: why it is being brought to its end, and what keeps
/// it paused. Nothing of one that has ended, and nothing of what cannot be read: `laneway doctor`
/// tells of that, and one row must not hide the others.
pub(crate) fn under_way(
    status: Option<RunStatus>,
    closing: Option<&str>,
    pauses: Option<&str>,
) -> (Option<Closing>, Vec<PauseScope>) {
    if status.is_none_or(RunStatus::is_final) {
        return (None, Vec::new());
    }
    let pauses = pauses.and_then(read_pauses).unwrap_or_default();
    (closing.and_then(Closing::parse), pauses.into_iter().map(|pause| pause.scope).collect())
}

/// How far a run has come, as it is stored: nothing for one that knows no levels.
pub(crate) fn levels_text(levels: Option<&Cursor>) -> Option<String> {
    levels.map(|levels| serde_json::to_string(levels).expect("texts and numbers"))
}

/// `None` for what this program would not have written.
pub(crate) fn read_levels(text: &str) -> Option<Cursor> {
    serde_json::from_str(text).ok()
}

impl RunRow {
    /// Whether anything differs but what changes with every event. Most verbs change nothing else.
    pub(crate) fn is_in_another_phase(&self, was: &Self) -> bool {
        let counted = Self { last_event: was.last_event, unsettled: was.unsettled, ..self.clone() };
        counted != *was
    }
}

/// What of a task changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRow {
    /// Who can run it. Changes with the owner of its run, when it becomes available.
    pub(crate) class: i64,
    pub(crate) status: TaskStatus,
    pub(crate) gate: Option<Gate>,
    /// The key at which it waits, of a gate that has one.
    pub(crate) gate_key: Option<String>,
    /// When it is to be looked at again, if nothing happens before.
    pub(crate) wake_at: Option<Millis>,
    /// Since when it is ready: the order of waiters and of claims.
    pub(crate) rank: Option<i64>,
    pub(crate) run_at: Option<Millis>,
    /// Until when it may start: its passages expire then.
    pub(crate) start_by: Option<Millis>,
    /// Fencing token of its lock.
    pub(crate) fence: Option<i64>,
    /// Of its last claim: which execution that is.
    pub(crate) attempt: u32,
    /// How many claims were given back, and are no attempts.
    pub(crate) given_back: u32,
    pub(crate) retries: u32,
    pub(crate) lost: u32,
    /// Holder of the claim.
    pub(crate) session: Option<SessionId>,
    /// Claimed before there was a place for it under `max_parallel`.
    pub(crate) is_ahead: bool,
    pub(crate) node: Option<Arc<str>>,
    /// Why its holder is asked to stop it, if it is.
    pub(crate) stop: Option<Reason>,
    pub(crate) reason: Option<Reason>,
    pub(crate) detail: Option<String>,
    pub(crate) exit_code: Option<i32>,
    /// As it is stored.
    pub(crate) output: Option<String>,
    /// `None` while it is claimed and has not started.
    pub(crate) started_at: Option<Millis>,
    pub(crate) took_ms: Option<u64>,
    pub(crate) finished_at: Option<Millis>,
    /// Of a step that waits, since it is parked or somebody has signaled it.
    pub(crate) wait: Option<Box<Waiting>>,
    /// Of a step with `for_each`, since its gates have opened.
    pub(crate) growth: Option<Box<Growth>>,
    /// Of an item: its value, as it is stored. Never changes.
    pub(crate) item: Option<Arc<str>>,
}

impl TaskRow {
    /// A task of which nothing has happened yet.
    pub(crate) fn new(class: i64) -> Self {
        Self {
            class,
            status: TaskStatus::Pending,
            gate: Some(Gate::Needs),
            gate_key: None,
            wake_at: None,
            rank: None,
            run_at: None,
            start_by: None,
            fence: None,
            attempt: 0,
            given_back: 0,
            retries: 0,
            lost: 0,
            session: None,
            is_ahead: false,
            node: None,
            stop: None,
            reason: None,
            detail: None,
            exit_code: None,
            output: None,
            started_at: None,
            took_ms: None,
            finished_at: None,
            wait: None,
            growth: None,
            item: None,
        }
    }

    /// What is said of an item that is not there: whoever holds a claim of one has lost it.
    pub(crate) fn absent() -> Self {
        Self { status: TaskStatus::Canceled, gate: None, ..Self::new(0) }
    }

    /// The fence, as far as a read can ask it; the write asks again in its own WHERE.
    pub(crate) fn is_held_by(&self, claim: &ClaimRef) -> bool {
        self.status == TaskStatus::Running
            && self.generation() == claim.generation
            && self.session == Some(claim.session)
    }

    /// Of its last claim: what fences. Grows with every claim.
    pub(crate) fn generation(&self) -> u32 {
        self.attempt + self.given_back
    }

    pub(crate) fn is_in_line(&self) -> bool {
        self.gate == Some(Gate::MaxParallel)
    }

    /// The rate whose next moment it is woken at, for all who wait there.
    pub(super) fn watched_rate(&self) -> Option<&str> {
        match (self.gate, self.wake_at) {
            (Some(Gate::Rate), Some(_)) => Key::limit_of(self.gate_key.as_deref()?),
            (_, _) => None,
        }
    }

    /// When a parked one is to be looked at, if nobody signals it before. Stored beside `wait`, for
    /// the index.
    pub(crate) fn due_at(&self) -> Option<Millis> {
        // One that is asked to end has been looked at.
        let is_open = self.status == TaskStatus::Parked && self.stop.is_none();
        self.wait.as_ref().filter(|_| is_open)?.due_at()
    }

    pub(crate) fn fence(&self) -> Fence {
        Fence { status: self.status, generation: self.generation(), session: self.session }
    }

    /// Leaves the line and the claim: whatever it becomes, nobody holds it.
    pub(super) fn let_go(&mut self) {
        self.gate = None;
        self.gate_key = None;
        self.wake_at = None;
        self.rank = None;
        self.run_at = None;
        self.start_by = None;
        self.session = None;
        self.is_ahead = false;
        self.stop = None;
        self.wait.iter_mut().for_each(|wait| wait.end());
    }

    /// What its last attempt said stands in that attempt's record.
    pub(super) fn forget_attempt(&mut self) {
        self.node = None;
        self.reason = None;
        self.detail = None;
        self.exit_code = None;
        self.took_ms = None;
        self.started_at = None;
    }
}

/// What a row must still say when it is written. If it does not, somebody was here in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    pub(crate) status: TaskStatus,
    pub(crate) generation: u32,
    pub(crate) session: Option<SessionId>,
}

/// The record of an attempt that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) claim: ClaimRef,
    pub(crate) node: Arc<str>,
    /// succeeded, failed, canceled, lost or returned: the last of a claim that somebody else than
    /// its holder took back.
    pub(crate) outcome: &'static str,
    pub(crate) reason: Option<Reason>,
    pub(crate) detail: Option<String>,
    pub(crate) exit_code: Option<i32>,
    pub(crate) started_at: Option<Millis>,
    pub(crate) took_ms: Option<u64>,
}

impl Record {
    /// One of which nothing else is known.
    pub(super) fn new(claim: &ClaimRef, outcome: &'static str) -> Self {
        Self {
            claim: *claim,
            node: Arc::from(""),
            outcome,
            reason: None,
            detail: None,
            exit_code: None,
            started_at: None,
            took_ms: None,
        }
    }
}

/// A layer that is to be stored, in the place of an earlier one of its task.
#[derive(Debug)]
pub(crate) struct KeptLayer {
    pub(crate) position: Position,
    pub(crate) attempt: u32,
    /// The node that alone has it.
    pub(crate) node: Option<Arc<str>>,
    pub(crate) layer: Box<NewLayer>,
}

/// How much of a task's row is to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Touch {
    Nothing,
    /// Its start only, which stands in no index.
    Start,
    Whole,
    /// There was none before.
    New,
}

/// A task's row that was changed.
#[derive(Debug, Clone)]
pub(crate) struct Changed {
    pub(crate) position: Position,
    pub(crate) was: Fence,
    pub(crate) row: TaskRow,
    pub(crate) touch: Touch,
}

/// Everything that a verb made of a run, to be written in one transaction.
#[derive(Debug)]
pub(crate) struct Changes {
    pub(crate) was: RunRow,
    pub(crate) run: RunRow,
    /// By position.
    pub(crate) tasks: Vec<Changed>,
    pub(crate) sets: Vec<(u32, Counts)>,
    /// Numbered from `was.last_event + 1`.
    pub(crate) events: Vec<Fact>,
    pub(crate) attempts: Vec<Record>,
    pub(crate) layers: Vec<KeptLayer>,
    pub(crate) keys: KeyChanges,
    /// How long tasks had waited that became available, and at which gate.
    pub(crate) waits: Vec<(Gate, Duration)>,
    /// Of a run that is not local, the session that owns it from here on, if that has changed.
    pub(crate) bound: Option<Option<SessionId>>,
    /// Items that are yet to be tasks, by step and number: to be kept, or to be forgotten.
    pub(crate) batches: BTreeMap<(Position, u32), Option<String>>,
    /// Steps of which everything that is stored about items goes, before anything is written; and
    /// where those stand.
    pub(crate) removed: Vec<(Position, Range<Position>)>,
    /// Steps that have items in the places of such, and where those stand: once they are written,
    /// they take up what was laid by.
    pub(crate) regrown: Vec<(Position, Range<Position>)>,
    /// Runs that are to be started, or are so no more, by the task that waits for them.
    pub(crate) wanted: BTreeMap<Position, Option<Wanted>>,
    /// Runs that are to end, because who waits for them does.
    pub(crate) to_stop: Vec<ToStop>,
}

impl Changes {
    /// Events with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (u64, &Fact)> {
        (self.was.last_event + 1..).zip(&self.events)
    }
}

/// What is known of a wait, as it is stored: nothing for none.
pub(crate) fn wait_text(wait: Option<&Waiting>) -> Option<String> {
    wait.map(|wait| serde_json::to_string(wait).expect("texts, numbers and JSON"))
}

/// `None` for what this program would not have written.
pub(crate) fn read_wait(text: &str) -> Option<Box<Waiting>> {
    serde_json::from_str(text).ok()
}

/// What is known of a step's items, as it is stored: nothing for none.
pub(crate) fn growth_text(growth: Option<&Growth>) -> Option<String> {
    growth.map(|growth| serde_json::to_string(growth).expect("numbers and words"))
}

/// `None` for what this program would not have written.
pub(crate) fn read_growth(text: &str) -> Option<Box<Growth>> {
    serde_json::from_str(text).ok()
}

/// An output as it is stored: nothing for none.
pub(crate) fn stored(output: Map<String, Value>) -> Option<String> {
    (!output.is_empty()).then(|| Value::Object(output).to_string())
}
