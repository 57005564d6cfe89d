//! Nodes and their sessions: what a session reports, what it holds, and what it must do. Plain
//! values only: `contract/sessions.rs` describes the verbs. See `docs/design/nodes.md` and, for
//! remote workers, `docs/design/remote.md`.

use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::hash::Version;
use laneway_core::id::SessionId;
use laneway_core::reason::Reason;
use laneway_core::time::Millis;
use serde::{Deserialize, Serialize};

use crate::fence::ClaimRef;
use crate::tally::{GateWaits, Spread};

#[derive(Debug, Clone)]
pub struct NewSession {
    /// Names the node in claims, events and on screens.
    pub node: String,
    pub pid: u32,
    /// How many tasks it runs at once.
    pub slots: u32,
    /// What it can run for other nodes. `None` for a node that runs only its own runs.
    pub offer: Option<Offer>,
    /// How the session is kept alive, where that takes a lease.
    pub lease: Lease,
    /// For a remote worker, the id of the token with which it came. Its session lives by its lease,
    /// regardless of the process through which it came.
    pub token: Option<String>,
    /// Its process fires schedules and other triggers that are due. True for `laneway worker` and
    /// `serve`.
    pub fires: bool,
}

impl NewSession {
    /// Returns a node that runs only its own runs.
    pub fn ephemeral(node: impl Into<String>, slots: u32) -> Self {
        let (pid, lease) = (std::process::id(), Lease::default());
        Self { node: node.into(), pid, slots, offer: None, lease, token: None, fires: false }
    }
}

/// How long a session lives without a renewal, by the store's clock, and how often it renews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub ttl: Duration,
    pub every: Duration,
}

impl Default for Lease {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(60), every: Duration::from_secs(5) }
    }
}

/// The store's record of a session that was just renewed. Its node compares: it gives back claims
/// that it does not know, and kills what it runs without a claim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    pub held: Vec<ClaimRef>,
    /// Those held claims that the node must stop.
    pub stops: Vec<Stop>,
}

/// The session of a remote worker, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteView {
    pub session: SessionId,
    pub node: String,
    /// The id of the token with which the worker came, and with which each of its requests comes.
    pub token: String,
    pub slots: u32,
    /// How long it lives without a renewal, as agreed at registration.
    pub lease: Duration,
    pub is_draining: bool,
    /// Each claim with the moment when it started, if it has.
    pub held: Vec<(ClaimRef, Option<Millis>)>,
    /// Those held claims that the worker must stop.
    pub stops: Vec<Stop>,
    /// When this was read, by the store's clock.
    pub observed_at: Millis,
}

/// The session's own counters since it was registered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tally {
    /// Number of requests for work. Stored apart: a request that returns no task is no activity.
    #[serde(skip)]
    pub asks: u64,
    /// Number of tasks claimed.
    pub claims: u64,
    /// Number of claims that got fewer tasks than requested because other transactions held the
    /// rest.
    #[serde(skip)]
    pub contentions: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub canceled: u64,
    /// Claims given back before they started.
    pub returned: u64,
    /// Claims taken from the session while it held them.
    pub lost: u64,
    /// Number of sessions of dead nodes that it reaped.
    pub reaped: u64,
    /// From the claim of a task to its start.
    #[serde(default, skip_serializing_if = "Spread::is_empty")]
    pub claim_to_start: Spread,
    /// From the end of a task to the start of the one in its place, where there was one.
    #[serde(default, skip_serializing_if = "Spread::is_empty")]
    pub finish_to_start: Spread,
    /// Tasks that this process made available, and how long they had waited for it.
    #[serde(default, skip_serializing_if = "GateWaits::is_empty")]
    pub gate_waits: GateWaits,
    /// What its warm containers saved.
    #[serde(default, skip_serializing_if = "PoolTally::is_empty")]
    pub pools: PoolTally,
    /// Steps with `cache`.
    #[serde(default, skip_serializing_if = "CacheTally::is_empty")]
    pub cache: CacheTally,
}

/// Steps that may reuse a stored result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheTally {
    /// Steps that reused one.
    pub hits: u64,
    /// Steps that were executed.
    pub misses: u64,
}

impl CacheTally {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Tasks that ran in a warm container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolTally {
    /// Tasks that found a container ready.
    pub hits: u64,
    /// Tasks for which a container had to be started.
    pub misses: u64,
    /// Time that the hits saved, in milliseconds: what starts of the usual length would have cost,
    /// minus what the hits waited.
    pub saved_ms: u64,
}

impl PoolTally {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A pool as its node reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPool {
    /// As the document names it. A pool that two documents name differently is reported twice.
    pub name: String,
    pub image: String,
    /// The most containers it may have at once.
    pub max: u32,
}

/// An operator's request for the pools of one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    pub pool: String,
    pub what: Wanted,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// Keep `count` containers ready, as far as `max` allows. With a version, only in the pool of
    /// that version, also on a node that does not know it yet.
    Warm { count: u32, of: Option<Version> },
    /// Remove all containers: idle ones now, the others after their task.
    Drain,
}

/// What a session must do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Orders {
    /// Claims of the session that it must stop.
    pub stops: Vec<Stop>,
    /// The newest request for each pool, with a number that changes when a newer one replaces it.
    /// Requests stay: carrying one out again does no harm, and the number allows a session to skip
    /// it.
    pub wishes: Vec<(u64, Wish)>,
    /// Descriptions of requests that are unreadable. They have no effect until they are repaired.
    pub unreadable: Vec<String>,
}

/// The store's request to the holder of a claim: end what runs, and finish it as canceled for this
/// reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    pub claim: ClaimRef,
    pub reason: Reason,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Nodes whose sessions were found dead.
    pub nodes: Vec<String>,
    /// How many tasks were returned, failed or canceled.
    pub tasks: usize,
    /// Time until the next lease of another session expires, where there are leases. Zero if one
    /// has expired and could not be returned yet.
    pub next_in: Option<Duration>,
    /// Sessions that are over but whose warden does not end. The warden may be frozen like its
    /// node.
    pub stuck: Vec<StuckSession>,
}

/// A condemned session whose warden has not ended within its allowed time. Its processes are on
/// this host: the caller kills them, and reaps again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StuckSession {
    pub session: SessionId,
    pub node: String,
    /// The warden's note about itself.
    pub warden: String,
}
