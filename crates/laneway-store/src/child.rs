//! Runs that steps start: which of them the store still wants, and their stored forms. The store
//! never starts one: the engine does. See `docs/design/children.md`.

use laneway_core::child::{ChildEnd, Parent};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::{Plan, Position};
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::keeper::unreadable;
use crate::model::{About, Finding, RunHead, Severity};

/// A run that a step waits for, and that no node has started yet.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedRun {
    /// The parent to record in the run.
    pub parent: Parent,
    /// A name that was applied, or a file below the directory of the parent.
    pub workflow: String,
    pub params: Map<String, Value>,
    /// The run that the step started before, to reopen instead.
    pub again: Option<RunId>,
    /// The parent is local to its owner. This run is then local as well.
    pub is_local: bool,
    /// The parent reuses no stored results. This run then reuses none either.
    pub no_cache: bool,
}

/// Selects wanted runs.
#[derive(Debug, Clone, Copy)]
pub struct Wanting {
    /// The calling session. Runs wanted by its own local runs are included.
    pub session: SessionId,
    /// Leaves out those of shared runs, which other nodes start.
    pub is_own_only: bool,
    /// Only those after this place.
    pub after: Option<WantedPlace>,
    pub limit: usize,
}

impl Wanting {
    /// Returns a request for the first page of all that a node may start.
    pub fn first(session: SessionId, limit: usize) -> Self {
        Self { session, is_own_only: false, after: None, limit }
    }
}

/// A position in the order of wanted runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantedPlace {
    pub(crate) run_no: i64,
    /// As stored: any number, because the row may be unreadable.
    pub(crate) position: i64,
}

/// A page of wanted runs, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct WantedPage {
    pub runs: Vec<WantedRun>,
    /// The last place of this page, if more may follow.
    pub end: Option<WantedPlace>,
}

/// The result of reopening a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumed {
    /// It continues, or no step waits for it any more.
    Done,
    /// It was removed. The caller starts another one.
    Gone,
    /// Other runs of its workflow use all places of `max_runs` now.
    NoRoom,
}

/// A child that must end because the task that waits for it must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ToStop {
    pub(crate) child: RunId,
    pub(crate) parent: RunId,
    pub(crate) position: Position,
}

impl ToStop {
    /// Returns the end that the task gets when its child is gone or in quarantine: the task ends
    /// without waiting for it.
    pub(crate) fn away(&self) -> ChildEnd {
        ChildEnd { run: self.child, status: RunStatus::Canceled, reason: None, output: None }
    }
}

/// The row of a wanted run.
#[derive(Debug)]
pub(crate) struct WantedRow {
    pub(crate) position: Position,
    pub(crate) life: u64,
    pub(crate) workflow: String,
    pub(crate) params: String,
    pub(crate) again: Option<String>,
    pub(crate) is_local: bool,
}

impl WantedRow {
    pub(crate) fn of(self, parent: &RunHead) -> Result<WantedRun> {
        let params = serde_json::from_str(&self.params).map_err(|error| Error::Unreadable {
            what: "parameters of a run that is to be started".to_owned(),
            why: error.to_string(),
        })?;
        let again = self.again.map(|id| RunId::parse(&id).ok_or_else(|| unreadable("run id", &id)));
        if parent.plan.base(self.position).is_none() {
            return Err(unreadable("position of a step that waits for a run", &self.position.to_string()));
        }
        let depth = parent.parent.as_ref().map_or(0, |above| above.depth) + 1;
        let step = parent.plan.task_name(self.position);
        Ok(WantedRun {
            parent: Parent { run: parent.run, step, life: self.life, depth },
            workflow: self.workflow,
            params,
            again: again.transpose()?,
            is_local: self.is_local,
            no_cache: parent.no_cache,
        })
    }
}

/// A wanted run is normal for this long, in milliseconds: nodes poll every five seconds.
pub(crate) const SLOW_MS: i64 = 60_000;

/// A wanted run that was not started within `SLOW_MS`, or that no step waits for.
#[derive(Debug)]
pub(crate) struct Unstarted {
    pub(crate) run: RunId,
    pub(crate) step: String,
    pub(crate) workflow: String,
    /// It is an earlier run to reopen.
    pub(crate) is_again: bool,
    pub(crate) is_local: bool,
    pub(crate) is_unwanted: bool,
    pub(crate) since: Option<Millis>,
}

impl Unstarted {
    pub(crate) fn finding(self) -> Finding {
        let (short, step, workflow) = (self.run.short(), self.step, self.workflow);
        let subject = format!("run {short}");
        if self.is_unwanted {
            let what = format!("`{workflow}` is to be started for `{step}`, which does not wait for it");
            let advice =
                "nothing is started for it; keep a copy, and delete the row of `wanted_runs`".to_owned();
            return Finding { severity: Severity::Problem, about: About::Run, subject, what, advice };
        }
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        let what = format!("`{step}` waits{since} for a run of `{workflow}`, and nobody has started it");
        let advice = match (self.is_local, self.is_again) {
            (true, _) => format!("`laneway resume {short}` goes on with it: a run of one process starts its own"),
            (false, true) => format!(
                "it is to go on with the run that it had before: `laneway show {short}` names it; other runs of `{workflow}` may have all places that `max_runs` gives, or no node is there: `laneway nodes`"
            ),
            (false, false) => {
                "start a node (`laneway worker`, `laneway serve`); if `laneway nodes` shows one, its log says why it cannot".to_owned()
            }
        };
        Finding { severity: Severity::Note, about: About::Run, subject, what, advice }
    }
}

/// Returns the stored form of a parent, or `None` without one.
pub(crate) fn parent_text(parent: Option<&Parent>) -> Option<String> {
    parent.map(|parent| serde_json::to_string(parent).expect("texts and numbers"))
}

/// Parses a stored parent. Returns `None` for text that this program would not have written.
pub(crate) fn read_parent(text: &str) -> Option<Parent> {
    serde_json::from_str(text).ok()
}

/// Returns the name of the actor that reopens or ends a child.
pub(crate) fn by(parent: &Parent) -> String {
    format!("run {}", parent.run.short())
}

/// Returns the outputs of the steps of a run, by name.
pub(crate) fn outputs_of(plan: &Plan, rows: Vec<(Position, String)>) -> Result<Map<String, Value>> {
    let mut outputs = Map::new();
    for (position, text) in rows {
        let output = serde_json::from_str(&text).map_err(|error| Error::Unreadable {
            what: "output of a step".to_owned(),
            why: error.to_string(),
        })?;
        outputs.insert(plan.task_name(position), output);
    }
    Ok(outputs)
}
