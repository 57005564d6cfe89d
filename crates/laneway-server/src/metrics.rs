//! What is counted: by this process (requests, streams), and what the store says of nodes and limits when somebody asks. The
//! names are those of BEHAVIOURS S4. Nothing is counted twice: a node's figures are the ones it tells the store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use laneway_core::gate::Gate;
use laneway_store::model::{Commits, Horizon, LimitView, Losses, NodeView};
use laneway_store::tally::{BOUNDS, GATES, GateWaits, Spread, WAIT_BOUNDS};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::wire::Pool;

/// Seconds; a read takes well below one of the first.
const BUCKETS: [f64; 9] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: String,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeLabels {
    node: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    node: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GateLabels {
    node: String,
    gate: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    node: String,
    pool: String,
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    limit: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HolderLabels {
    holder: String,
}

type Times = Family<RouteLabels, Histogram, fn() -> Histogram>;

/// What this process counts.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    times: Times,
    streams: Gauge,
    connections: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("laneway");
        let requests = Family::<RequestLabels, Counter>::default();
        registry.register("http_requests", "Requests by route, method and status", requests.clone());
        let times: Times = Family::new_with_constructor(|| Histogram::new(BUCKETS));
        registry.register("http_request_seconds", "Seconds until the answer began", times.clone());
        let streams = Gauge::default();
        registry.register("event_streams", "Streams of events that are open", streams.clone());
        let connections = Gauge::default();
        registry.register("http_connections", "Connections that are open", connections.clone());
        Self { registry, requests, times, streams, connections }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    pub(crate) fn count(&self, route: &'static str, method: &str, status: u16, took: Duration) {
        // Methods that nobody defined are of whoever asks, and must not make a series each.
        let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
        let method = if known.contains(&method) { method.to_owned() } else { "other".to_owned() };
        self.requests.get_or_create(&RequestLabels { route, method, status }).inc();
        self.times.get_or_create(&RouteLabels { route }).observe(took.as_secs_f64());
    }

    /// A stream that is open as long as the guard lives.
    pub(crate) fn stream(&self) -> Open {
        Open::count(&self.streams)
    }

    /// A connection that is open as long as the guard lives.
    pub(crate) fn connection(&self) -> Open {
        Open::count(&self.connections)
    }

    /// All of it as Prometheus reads it, with what the store says now.
    pub(crate) fn text(&self, stored: &Stored) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode_registry(&mut text, &self.registry)?;
        encode(&mut text, &registry(stored))?;
        Ok(text)
    }
}

/// What the store says now.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) nodes: Vec<NodeView>,
    pub(crate) losses: Losses,
    pub(crate) limits: Vec<LimitView>,
    pub(crate) backlog: Vec<(Option<Gate>, u64)>,
    pub(crate) parked: u64,
    pub(crate) horizon: Option<Horizon>,
    pub(crate) commits: Option<Commits>,
    /// What this process let through its gates, under its name, where no session of it tells that.
    pub(crate) own_waits: Option<(String, GateWaits)>,
    pub(crate) pools: Vec<Pool>,
}

/// How long something took, for each set of labels.
#[derive(Debug)]
struct Spreads<L> {
    name: &'static str,
    help: &'static str,
    /// In milliseconds.
    bounds: &'static [u64],
    of: Vec<(L, Spread)>,
}

impl<L: EncodeLabelSet + fmt::Debug + Send + Sync + 'static> Collector for Spreads<L> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metric = encoder.encode_descriptor(self.name, self.help, None, MetricType::Histogram)?;
        for (labels, spread) in &self.of {
            let bounds = self.bounds.iter().map(|millis| *millis as f64 / 1e3).chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(spread.counts).collect();
            let (sum, count) = (spread.micros as f64 / 1e6, spread.counts.iter().sum());
            metric.encode_family(labels)?.encode_histogram::<NodeLabels>(sum, count, &buckets, None)?;
        }
        Ok(())
    }
}

/// Counts itself out when it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Open {
    fn count(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Of every node that takes work of others, and of this process where no node of it does.
fn gate_waits(stored: &Stored) -> Vec<(GateLabels, Spread)> {
    let mut of_nodes: BTreeMap<(&str, &'static str), Spread> = BTreeMap::new();
    let nodes = stored.nodes.iter().filter(|node| node.offer.is_some());
    let told = nodes.map(|node| (node.node.as_str(), node.tally.gate_waits));
    for (node, waits) in told.chain(stored.own_waits.iter().map(|(node, waits)| (node.as_str(), *waits))) {
        for (gate, spread) in GATES.into_iter().zip(waits.0) {
            of_nodes.entry((node, gate.as_str())).or_default().merge(spread);
        }
    }
    let labels = |(node, gate): (&str, &'static str)| GateLabels { node: node.to_owned(), gate };
    of_nodes.into_iter().map(|(of, spread)| (labels(of), spread)).collect()
}

type PerNode = Family<NodeLabels, Counter<u64, AtomicU64>>;

fn registry(stored: &Stored) -> Registry {
    let Stored { nodes, limits, backlog, .. } = stored;
    let mut registry = Registry::with_prefix("laneway");
    let mut per_node = |name: &str, help: &str, part: fn(&NodeView) -> u64| {
        let family = PerNode::default();
        for node in nodes {
            family.get_or_create(&NodeLabels { node: node.node.clone() }).inc_by(part(node));
        }
        registry.register(name, help, family);
    };
    per_node("claims", "Tasks that were taken", |node| node.tally.claims);
    per_node("claim_attempts", "How often work was asked for", |node| node.tally.asks);
    per_node("claim_contention", "Claims that got less than they wanted while others held rows", |node| {
        node.tally.contentions
    });
    per_node("sessions_reaped", "Sessions of dead nodes that were returned", |node| node.tally.reaped);
    per_node("pool_hits", "Tasks that were given a container which was warm", |node| node.tally.pools.hits);
    per_node("pool_misses", "Tasks that waited for a container to start", |node| node.tally.pools.misses);
    per_node("pool_saved_milliseconds", "What warm containers saved their tasks, about", |node| {
        node.tally.pools.saved_ms
    });
    per_node("cache_hits", "Steps with `cache` that took a recorded result", |node| node.tally.cache.hits);
    per_node("cache_misses", "Steps with `cache` that were executed", |node| node.tally.cache.misses);
    let (losses, expirations) = (&stored.losses, PerNode::default());
    for node in nodes {
        // So that it begins with nothing: whoever looks at how it grows must have seen what it was before.
        let _ = expirations.get_or_create(&NodeLabels { node: node.node.clone() });
    }
    for (node, lost) in &losses.nodes {
        expirations.get_or_create(&NodeLabels { node: node.clone() }).inc_by(*lost);
    }
    registry.register(
        "lease_expirations",
        "Lives of a node that were lost; of nodes that are gone, those that were lost last",
        expirations,
    );
    // A node that is gone has nobody who tells of it, and the series of a name that was never seen before begins with its loss, which
    // is not seen as growth. This one is there before anything is lost.
    let nodes_lost = Counter::<u64, AtomicU64>::default();
    nodes_lost.inc_by(losses.total);
    registry.register("nodes_lost", "Lives of nodes that were lost, of all that ever were", nodes_lost);
    let attempts = Family::<OutcomeLabels, Counter>::default();
    for node in nodes {
        let tally = node.tally;
        let outcomes = [
            ("succeeded", tally.succeeded),
            ("failed", tally.failed),
            ("canceled", tally.canceled),
            ("returned", tally.returned),
            ("lost", tally.lost),
        ];
        for (outcome, number) in outcomes {
            attempts.get_or_create(&OutcomeLabels { node: node.node.clone(), outcome }).inc_by(number);
        }
    }
    registry.register("attempts", "Attempts that ended, by outcome", attempts);
    let spread = |name, help, part: fn(&NodeView) -> Spread| {
        let mut of_nodes: BTreeMap<String, Spread> = BTreeMap::new();
        for node in nodes.iter().filter(|node| node.offer.is_some()) {
            of_nodes.entry(node.node.clone()).or_default().merge(part(node));
        }
        let labelled = of_nodes.into_iter().map(|(node, spread)| (NodeLabels { node }, spread));
        Box::new(Spreads { name, help, bounds: &BOUNDS, of: labelled.collect() })
    };
    registry.register_collector(spread(
        "claim_to_start_seconds",
        "From the moment in which a node was given a task until that began",
        |node| node.tally.claim_to_start,
    ));
    registry.register_collector(spread(
        "finish_to_start_seconds",
        "From the end of a task until the one in its place began, where there was one",
        |node| node.tally.finish_to_start,
    ));
    registry.register_collector(Box::new(Spreads {
        name: "gate_wait_seconds",
        help: "How long tasks waited in line until they became available, by the gate that held them last and by the node \
               that let them through",
        bounds: &WAIT_BOUNDS,
        of: gate_waits(stored),
    }));
    if let Some(Commits { commits, verbs }) = stored.commits {
        let counter = |number: u64| {
            let counter = Counter::<u64, AtomicU64>::default();
            counter.inc_by(number);
            counter
        };
        registry.register("group_commits", "Commits of this process", counter(commits));
        registry.register("group_commit_verbs", "Verbs that went with them", counter(verbs));
    }
    let containers = Family::<PoolLabels, Gauge>::default();
    for pool in &stored.pools {
        let states = [
            ("starting", pool.starting),
            ("idle", pool.idle),
            ("running", pool.running),
            ("dormant", pool.dormant),
        ];
        for (state, number) in states {
            let labels = PoolLabels { node: pool.node.clone(), pool: pool.pool.clone(), state };
            containers.get_or_create(&labels).set(i64::from(number));
        }
    }
    registry.register("pool_containers", "Warm containers by state", containers);
    let (slots, running) = (Family::<NodeLabels, Gauge>::default(), Family::<NodeLabels, Gauge>::default());
    for node in nodes {
        let labels = NodeLabels { node: node.node.clone() };
        slots.get_or_create(&labels).inc_by(i64::from(node.slots));
        running.get_or_create(&labels).inc_by(i64::from(node.held));
    }
    registry.register("slots", "Tasks that a node runs at once", slots);
    registry.register("running_claims", "Tasks that a node holds", running);
    let depth = Family::<CauseLabels, Gauge>::default();
    for (gate, tasks) in backlog {
        let cause = gate.map_or("available", Gate::as_str);
        depth.get_or_create(&CauseLabels { cause }).set(i64::try_from(*tasks).unwrap_or(i64::MAX));
    }
    registry.register("queue_depth", "Tasks that nobody has taken, by what they wait for", depth);
    let parked = Gauge::<i64>::default();
    parked.set(i64::try_from(stored.parked).unwrap_or(i64::MAX));
    registry.register(
        "parked_tasks",
        "Tasks that wait for a signal, a moment, a run or their items, and hold nothing",
        parked,
    );
    let horizon = Family::<HolderLabels, Gauge>::default();
    if let Some(held) = &stored.horizon {
        let seconds = held.held_for.map_or(0, |held| i64::try_from(held.as_secs()).unwrap_or(i64::MAX));
        horizon.get_or_create(&HolderLabels { holder: held.holder.clone() }).set(seconds);
    }
    registry.register(
        "database_horizon_held_seconds",
        "How long a transaction has kept the database from removing dead rows, if longer than a minute",
        horizon,
    );
    let (held, waiting) = (Family::<LimitLabels, Gauge>::default(), Family::<LimitLabels, Gauge>::default());
    for limit in limits {
        let labels = LimitLabels { limit: limit.name.clone() };
        held.get_or_create(&labels).set(i64::from(limit.holders));
        waiting.get_or_create(&labels).set(i64::from(limit.waiting));
    }
    registry.register("limit_held", "Tasks that hold a named limit", held);
    registry.register("limit_waiting", "Tasks that wait at a named limit", waiting);
    registry
}
