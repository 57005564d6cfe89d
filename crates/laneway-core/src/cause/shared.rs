//! Causes of the gates that runs share, in full sentences. Each struct is what a store finds behind such a gate, by the
//! same counting by which the gate was judged; holders come oldest first.

use super::{Cause, Holder, NAMED, Place, listed};
use crate::class::{Class, Engine, Lack, POST};
use crate::event::PauseScope;
use crate::gate::Gate;
use crate::id::RunId;
use crate::limit::Rate;
use crate::state::TaskStatus;
use crate::time::Millis;
use crate::version::OrderVersion;

/// The run is queued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaxRunsWait {
    pub workflow: String,
    pub limit: u32,
    /// The runs that have the places, and since when.
    pub running: Vec<(RunId, Option<Millis>)>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedWait {
    pub scope: PauseScope,
    pub by: String,
    pub since: Millis,
}

/// No live node can run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeWait {
    pub class: Class,
    /// The nodes that are alive, and what each lacks; one that only drains lacks nothing.
    pub nodes: Vec<(String, Vec<Lack>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderWait {
    pub key: String,
    pub version: OrderVersion,
    /// The tasks with a smaller version, smallest first.
    pub smaller: Vec<(OrderVersion, Holder)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockWait {
    pub key: String,
    pub holders: Vec<Holder>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitWait {
    pub name: String,
    pub limit: u32,
    pub holders: Vec<Holder>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateWait {
    pub name: String,
    pub rate: Rate,
    /// When the first in line passes.
    pub until: Millis,
    pub place: Place,
}

impl MaxRunsWait {
    pub(super) fn cause(&self) -> Cause {
        let runs: Vec<&(RunId, Option<Millis>)> = self.running.iter().collect();
        let oldest = self.running.iter().filter_map(|(_, since)| *since).min();
        let verb = if runs.len() == 1 { "has" } else { "have" };
        Cause {
            holders: runs.iter().take(NAMED).map(|(run, _)| format!("run {}", run.short())).collect(),
            place: Some(self.place),
            since: oldest.map(|at| at.to_string()),
            opens: through("when one of these runs ends", self.place),
            text: format!(
                "its run is queued: `max_runs` of {} is {}, and {} {verb} not ended; {}",
                self.workflow,
                self.limit,
                listed(&runs, |(run, since)| match since {
                    Some(since) => format!("run {} (running since {since})", run.short()),
                    None => format!("run {}", run.short()),
                }),
                in_line(self.place)
            ),
            ..Cause::at(Gate::MaxRuns)
        }
    }
}

impl PausedWait {
    pub(super) fn cause(&self) -> Cause {
        let what = match self.scope {
            PauseScope::Run => "run",
            PauseScope::Workflow => "workflow",
        };
        Cause {
            since: Some(self.since.to_string()),
            opens: format!("when somebody resumes the {what}"),
            text: format!("its {what} is paused, by {} since {}", self.by, self.since),
            ..Cause::at(Gate::Paused)
        }
    }
}

impl NodeWait {
    pub fn cause(&self) -> Cause {
        let nodes: Vec<&(String, Vec<Lack>)> = self.nodes.iter().collect();
        let found = match nodes.as_slice() {
            [] => "no node is alive".to_owned(),
            nodes => listed(nodes, |(node, lacks)| match lacks.first() {
                Some(lack) => format!("{node} {lack}"),
                None => format!("{node} takes no new work"),
            }),
        };
        let engines = self.class.engines.iter().map(|engine| match engine {
            Engine::Process => "runs programs".to_owned(),
            Engine::Container => "has a container engine that answers".to_owned(),
            Engine::Function(name) if name == POST => "sends callbacks".to_owned(),
            Engine::Function(name) => format!("has the function `{name}`"),
            Engine::Queue(name) => format!("takes the queue `{name}`"),
        });
        let labels = self.class.labels.iter().map(|(name, value)| format!("has {name}={value}"));
        let wanted = engines.chain(labels).collect::<Vec<_>>().join(" and ");
        let (wanted, opens) = match &self.class.pin {
            Some(pin) => (
                format!("node {pin}, to which its run is bound"),
                format!("when node {pin} takes work again"),
            ),
            None => (format!("one that {wanted}"), format!("when a node joins that {wanted}")),
        };
        Cause {
            opens,
            text: format!("no live node can run it: it needs {wanted}; {found}"),
            ..Cause::at(Gate::Node)
        }
    }
}

impl OrderWait {
    pub(super) fn cause(&self) -> Cause {
        let smaller: Vec<&(OrderVersion, Holder)> = self.smaller.iter().collect();
        Cause {
            key: Some(self.key.clone()),
            holders: smaller.iter().take(NAMED).map(|(_, holder)| name(holder)).collect(),
            held_by: self.smaller.iter().take(NAMED).map(|(_, holder)| holder.clone()).collect(),
            since: self.smaller.iter().filter_map(|(_, holder)| holder.since).min().map(|at| at.to_string()),
            opens: format!("when every smaller version on `{}` has ended", self.key),
            text: format!(
                "is version {} on the key `{}`, and waits for {}",
                self.version,
                self.key,
                listed(&smaller, |(version, holder)| {
                    format!("version {version} ({}, {})", name(holder), state(holder))
                })
            ),
            ..Cause::at(Gate::Order)
        }
    }
}

impl LockWait {
    pub(super) fn cause(&self) -> Cause {
        let all: Vec<&Holder> = self.holders.iter().collect();
        Cause {
            key: Some(self.key.clone()),
            opens: through("when its holder ends", self.place),
            text: format!(
                "waits for the lock `{}`, held by {}; {}",
                self.key,
                listed(&all, full),
                in_line(self.place)
            ),
            ..held(Gate::Lock, &self.holders, self.place)
        }
    }
}

impl LimitWait {
    pub(super) fn cause(&self) -> Cause {
        let all: Vec<&Holder> = self.holders.iter().collect();
        Cause {
            key: Some(self.name.clone()),
            opens: format!(
                "{}, or with a higher limit (`laneway limit set {} {}`)",
                through("when one of its holders ends", self.place),
                self.name,
                self.limit.saturating_add(self.place.at)
            ),
            text: format!(
                "waits for a place in the limit `{}`: {} of {} are taken, by {}; {}",
                self.name,
                self.holders.len(),
                self.limit,
                listed(&all, full),
                in_line(self.place)
            ),
            ..held(Gate::Limit, &self.holders, self.place)
        }
    }
}

impl RateWait {
    pub(super) fn cause(&self) -> Cause {
        let before = self.place.at.saturating_sub(1);
        let turn = self.until.after(self.rate.window * before / self.rate.count.get());
        let about = if before == 0 { "" } else { "about " };
        Cause {
            key: Some(self.name.clone()),
            place: Some(self.place),
            opens: format!("at {about}{turn}"),
            // An estimate is no moment.
            opens_at: (before == 0).then_some(turn),
            text: format!(
                "waits for the rate `{}`, which lets {} through, until {about}{turn}; {}",
                self.name,
                self.rate,
                in_line(self.place)
            ),
            ..Cause::at(Gate::Rate)
        }
    }
}

/// What is the same for all keys that tasks hold.
fn held(gate: Gate, holders: &[Holder], place: Place) -> Cause {
    Cause {
        holders: holders.iter().take(NAMED).map(name).collect(),
        held_by: holders.iter().take(NAMED).cloned().collect(),
        place: Some(place),
        since: holders.iter().filter_map(|holder| holder.since).min().map(|at| at.to_string()),
        ..Cause::at(gate)
    }
}

fn name(holder: &Holder) -> String {
    format!("{} of run {}", holder.step, holder.run.short())
}

fn full(holder: &Holder) -> String {
    format!("{} ({})", name(holder), state(holder))
}

/// In which state, where, since when.
fn state(holder: &Holder) -> String {
    let state = match holder.status {
        TaskStatus::Running => "running",
        TaskStatus::Available => "about to start",
        TaskStatus::Pending => "waiting itself",
        TaskStatus::Parked => "waiting for a signal",
        TaskStatus::Succeeded | TaskStatus::Failed | TaskStatus::Canceled | TaskStatus::Skipped => {
            holder.status.as_str()
        }
    };
    let node = holder.node.as_deref().map(|node| format!(" on {node}")).unwrap_or_default();
    let since = holder.since.map(|at| format!(" since {at}")).unwrap_or_default();
    format!("{state}{node}{since}")
}

fn in_line(place: Place) -> String {
    match (place.at, place.of) {
        (1, 1) => "it is the only one in line".to_owned(),
        (1, of) => format!("it is next of {of} in line"),
        (at, of) => format!("it is number {at} of {of} in line"),
    }
}

/// What opens it for whoever is not the next.
fn through(opens: &str, place: Place) -> String {
    match place.at.saturating_sub(1) {
        0 => opens.to_owned(),
        1 => format!("{opens} and the one before it in line is through"),
        before => format!("{opens} and the {before} before it in line are through"),
    }
}
