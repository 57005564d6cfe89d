//! Nodes and limits: the shapes of `laneway nodes --json`, `laneway limit list --json` and of their routes.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_core::class::{Offer, POST};
use laneway_core::id::{RunId, SessionId};
use laneway_store::model;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::Moment;

/// A node that is alive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    pub node: String,
    #[schema(value_type = String, format = "uuid")]
    pub session: SessionId,
    pub pid: u32,
    pub registered_at: Moment,
    pub slots: u32,
    /// Null for one that runs its own run only.
    pub labels: Option<BTreeMap<String, String>>,
    /// What it can run for others now: `process`, `container`, `function`, `queue`. Containers only while its engine answers.
    #[serde(default)]
    pub engines: Vec<String>,
    /// `takes work`, `draining` or `runs its own`.
    pub state: String,
    /// Whether it starts what schedules and other triggers are due.
    #[serde(default)]
    pub fires: bool,
    pub observed_at: Moment,
    pub renewed_at: Moment,
    pub last_active_at: Option<Moment>,
    pub claim_attempts: u64,
    pub claim_contentions: u64,
    pub claimed: Claimed,
    pub expired_leases: u64,
    pub sessions_reaped: u64,
    pub running_claims: u32,
    /// Up to 50 of what it holds, oldest first.
    pub active_claims: Vec<ActiveClaim>,
}

/// What a node took, by what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Claimed {
    pub total: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    pub returned: u64,
    pub lost: u64,
}

/// A task that a node holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ActiveClaim {
    #[schema(value_type = String, format = "uuid")]
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
    pub started_at: Option<Moment>,
}

/// Nodes that are alive, by address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    pub nodes: Vec<Node>,
}

/// What works at one address: a node may have several lives there, each with its own slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Workers {
    pub node: String,
    pub observed_at: Moment,
    pub slots: u32,
    pub claimed: Claimed,
    pub running_claims: u32,
    pub expired_leases: u64,
    pub claim_attempts: u64,
    pub last_active_at: Option<Moment>,
    /// Up to 50, oldest first.
    pub active_claims: Vec<ActiveClaim>,
}

/// A page of what nodes told of themselves, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeEventList {
    #[schema(value_type = Vec<Object>)]
    pub events: Vec<Value>,
    /// Go on behind this number.
    pub next_after: u64,
    /// Events in front of `next_after` that cannot be read, and why.
    pub unreadable: Vec<String>,
}

/// A node that was told to take nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Drained {
    pub node: String,
    #[schema(value_type = Vec<String>)]
    pub sessions: Vec<SessionId>,
}

/// A limit, a workflow or its triggers that were removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Removed {
    pub name: String,
}

/// A named limit, and how far it is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Limit {
    pub name: String,
    /// Tasks at once, such as `3`, or in a time, such as `100/1m`.
    pub value: String,
    pub held: u32,
    pub waiting: u32,
    pub set_by: String,
    pub set_at: Moment,
}

/// All limits, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LimitList {
    pub limits: Vec<Limit>,
}

/// What a limit is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetLimit {
    /// Tasks at once, such as `3`, or in a time, such as `100/1m`.
    #[schema(
        pattern = "^([1-9][0-9]{0,5}|1000000)(/([1-9][0-9]{0,3}d([0-9]{1,4}h)?([0-9]{1,4}m)?([0-9]{1,4}s)?([0-9]{1,4}ms)?|[1-9][0-9]{0,4}h([0-9]{1,4}m)?([0-9]{1,4}s)?([0-9]{1,4}ms)?|[1-9][0-9]{0,5}m([0-9]{1,4}s)?([0-9]{1,4}ms)?|[1-9][0-9]{0,6}s([0-9]{1,4}ms)?|[1-9][0-9]{0,8}ms))?$"
    )]
    pub value: String,
}

/// What an offer is for.
fn engines(offer: &Offer) -> Vec<String> {
    // Every worker sends callbacks.
    let has_function = offer.functions.iter().any(|name| name != POST);
    let kinds = [
        ("process", offer.has_process),
        ("container", offer.has_container),
        ("function", has_function),
        ("queue", !offer.queues.is_empty()),
    ];
    kinds.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
}

/// How the state of a node begins that has missed more than one renewal of its lease.
const NOT_RESPONDING: &str = "not responding";

impl Node {
    /// Whether it is frozen or cut off, as far as the store knows.
    pub fn is_not_responding(&self) -> bool {
        self.state.starts_with(NOT_RESPONDING)
    }

    /// How long ago it last renewed its lease, by the store's clock.
    pub fn unrenewed_for(&self) -> Duration {
        self.observed_at.0.since(self.renewed_at.0)
    }

    /// Whether it may hold something of a run: only some of what it holds is listed.
    pub fn may_hold(&self, run: RunId) -> bool {
        let listed = self.active_claims.len();
        self.active_claims.iter().any(|claim| claim.run == run) || self.running_claims as usize > listed
    }
}

/// `zone=eu disk=ssd`.
pub fn labels(node: &Node) -> String {
    let pairs = node.labels.iter().flatten();
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

impl From<&model::LimitView> for Limit {
    fn from(limit: &model::LimitView) -> Self {
        Self {
            name: limit.name.clone(),
            value: limit.limit.to_string(),
            held: limit.holders,
            waiting: limit.waiting,
            set_by: limit.set_by.clone(),
            set_at: Moment(limit.set_at),
        }
    }
}

impl From<&model::NodeView> for Node {
    fn from(node: &model::NodeView) -> Self {
        let state = match (&node.offer, node.is_draining, node.silent_for) {
            (_, _, Some(silence)) => format!("{NOT_RESPONDING} for {} s", silence.as_secs()),
            (_, true, None) => "draining".to_owned(),
            (Some(_), false, None) => "takes work".to_owned(),
            (None, false, None) => "runs its own".to_owned(),
        };
        let claim = |claim: &model::ClaimView| ActiveClaim {
            run: claim.run,
            step: claim.step.clone(),
            attempt: claim.attempt,
            started_at: claim.started_at.map(Moment),
        };
        let labels = |offer: &laneway_core::class::Offer| {
            offer.labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        Self {
            node: node.node.clone(),
            session: node.session,
            pid: node.pid,
            registered_at: Moment(node.registered_at),
            slots: node.slots,
            labels: node.offer.as_ref().map(labels),
            engines: node.offer.as_ref().map(engines).unwrap_or_default(),
            state,
            fires: node.fires,
            observed_at: Moment(node.observed_at),
            renewed_at: Moment(node.renewed_at),
            last_active_at: node.last_active_at.map(Moment),
            claim_attempts: node.tally.asks,
            claim_contentions: node.tally.contentions,
            claimed: Claimed {
                total: node.tally.claims,
                succeeded: node.tally.succeeded,
                failed: node.tally.failed,
                canceled: node.tally.canceled,
                returned: node.tally.returned,
                lost: node.tally.lost,
            },
            expired_leases: node.lost_sessions,
            sessions_reaped: node.tally.reaped,
            running_claims: node.held,
            active_claims: node.claims.iter().map(claim).collect(),
        }
    }
}

impl Workers {
    /// Of all lives at one address; `None` when nobody lives there. `most` bounds the claims that are listed.
    pub fn of(nodes: &[model::NodeView], most: usize) -> Option<Self> {
        let first = nodes.first()?;
        let sum = |part: fn(&model::Tally) -> u64| nodes.iter().map(|node| part(&node.tally)).sum();
        let mut claims: Vec<ActiveClaim> =
            nodes.iter().flat_map(|node| Node::from(node).active_claims).collect();
        // Those that have not started come last.
        claims.sort_by_key(|claim| (claim.started_at.is_none(), claim.started_at));
        claims.truncate(most);
        Some(Self {
            node: first.node.clone(),
            observed_at: Moment(first.observed_at),
            slots: nodes.iter().map(|node| node.slots).sum(),
            claimed: Claimed {
                total: sum(|tally| tally.claims),
                succeeded: sum(|tally| tally.succeeded),
                failed: sum(|tally| tally.failed),
                canceled: sum(|tally| tally.canceled),
                returned: sum(|tally| tally.returned),
                lost: sum(|tally| tally.lost),
            },
            running_claims: nodes.iter().map(|node| node.held).sum(),
            expired_leases: first.lost_sessions,
            claim_attempts: sum(|tally| tally.asks),
            last_active_at: nodes.iter().filter_map(|node| node.last_active_at).max().map(Moment),
            active_claims: claims,
        })
    }
}
