//! The store at a glance: what runs, ended, failed and waits of late.

use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::state::TaskStatus;
use laneway_store::overview;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Moment, RunSummary};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    pub observed_at: Moment,
    pub runs: OverviewRuns,
    pub ended: Ended,
    /// The last 60, oldest first.
    pub minutes: Vec<Minute>,
    /// There were more runs or events than were looked at: those of the newest runs are counted.
    pub minutes_are_partial: bool,
    /// Up to 10 runs that failed within the window, newest first. Tasks of one that has more than 1,000 are not counted.
    pub failing: Vec<RunSummary>,
    /// Up to 10 tasks that wait for something other than the steps they need, longest first.
    pub waiting: Vec<Waiting>,
    /// There were runs or tasks that were not looked at: those of the oldest runs are.
    pub waiting_is_partial: bool,
}

/// Runs that have not ended, each in one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverviewRuns {
    pub running: u64,
    /// For other runs of their workflow to end.
    pub waiting: u64,
    pub paused: u64,
    /// There are more: the newest 10,000 are counted.
    pub is_partial: bool,
}

/// Runs that ended within the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ended {
    pub window_s: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// There were more runs than were looked at: the newest 10,000 are counted.
    pub is_partial: bool,
}

/// What attempts did in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Minute {
    pub at: Moment,
    pub started: u64,
    pub succeeded: u64,
    pub failed: u64,
    /// How long those took that ended in it; null where none did.
    pub p50_ms: Option<u64>,
    pub p95_ms: Option<u64>,
}

/// A task that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Waiting {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub workflow: String,
    /// Empty where its plan cannot be read.
    pub step: String,
    /// pending, available or parked.
    #[schema(value_type = String)]
    pub status: TaskStatus,
    pub since: Moment,
    /// What it waits for, in a few words; `explain` tells all of it.
    pub text: String,
}

impl From<&overview::Overview> for Overview {
    fn from(seen: &overview::Overview) -> Self {
        let overview::Unfinished { running, queued, paused, is_partial: are_more } = seen.unfinished;
        let overview::Ended { succeeded, failed, canceled, is_partial } = seen.ended;
        let minute = |minute: &overview::Minute| {
            let overview::Minute { at, started, succeeded, failed, p50_ms, p95_ms } = *minute;
            Minute { at: Moment(at), started, succeeded, failed, p50_ms, p95_ms }
        };
        let window_s = u64::try_from(overview::WINDOW_MS / 1_000).unwrap_or_default();
        Self {
            observed_at: Moment(seen.observed_at),
            runs: OverviewRuns { running, waiting: queued, paused, is_partial: are_more },
            ended: Ended { window_s, succeeded, failed, canceled, is_partial },
            minutes: seen.attempts.minutes.iter().map(minute).collect(),
            minutes_are_partial: seen.attempts.is_partial,
            failing: seen.failing.iter().map(RunSummary::from).collect(),
            waiting: seen.waiting.iter().map(Waiting::from).collect(),
            waiting_is_partial: seen.is_waiting_partial,
        }
    }
}

impl From<&overview::Waiting> for Waiting {
    fn from(task: &overview::Waiting) -> Self {
        Self {
            run: task.run,
            workflow: task.workflow.clone(),
            step: task.step.clone(),
            status: task.status,
            since: Moment(task.since),
            text: text(task),
        }
    }
}

fn text(task: &overview::Waiting) -> String {
    let key = || task.key.as_deref().and_then(|key| key.split_once(':')).map_or("", |(_, name)| name);
    match (task.gate, &task.wait) {
        (None, Some(wait)) => format!("waits for {wait}"),
        (None, None) => "waits for a free slot".to_owned(),
        (Some(Gate::Lock), _) => format!("waits for the lock `{}`", key()),
        (Some(Gate::Order), _) => format!("waits for smaller versions at `{}`", key()),
        (Some(Gate::Limit), _) => format!("waits for a place in the limit `{}`", key()),
        (Some(Gate::Rate), _) => format!("waits for the rate `{}`", key()),
        (Some(Gate::Node), _) => "waits for a node that can run it".to_owned(),
        (Some(Gate::MaxParallel), _) => "waits for a place in its run".to_owned(),
        (Some(Gate::MaxRuns), _) => "waits for another run of its workflow".to_owned(),
        (Some(Gate::Paused), _) => "waits until it is resumed".to_owned(),
        (Some(Gate::Needs), _) => "waits for the steps it needs".to_owned(),
        (Some(Gate::RunAt), _) => "waits until its moment has come".to_owned(),
        (Some(Gate::Group), _) => "waits for a place among the items of its step".to_owned(),
        (Some(Gate::Level), _) => "waits for its level".to_owned(),
    }
}
