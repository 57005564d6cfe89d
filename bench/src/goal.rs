//! What is to be reached, as ratios within one run, and whether it was. Pure: from results to verdicts.

use serde::Serialize;

use crate::containers::ContainersResult;
use crate::nodes::{NodesResult, Queue};
use crate::report::Results;
use crate::rounds::{GraphResult, SubjectResult};
use crate::service::ServiceResult;
use crate::single::Grown;
use crate::stats::Spread;
use crate::subject::{Peer, Subject};

/// The share of all processors from which on a machine counts as full.
const FULL: f64 = 0.8;

/// A goal with its figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) workload: String,
    pub(crate) goal: String,
    pub(crate) figure: f64,
    pub(crate) limit: f64,
    pub(crate) is_met: bool,
}

/// Only what was measured is judged: a peer that was left out has no verdict.
pub(crate) fn judge(results: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for graph in &results.graphs {
        judge_graph(graph, &mut verdicts);
    }
    for noop in &results.noop {
        let share = noop.function_per_s.median / noop.bare_per_s.median;
        let goal = format!("functions, {} at once, share of a bare loop in such groups", noop.group);
        verdicts.push(Verdict::at_least("noop", &goal, share, 0.5));
    }
    if let Some(items) = &results.items {
        let goal = "an item, to a step of a flat graph";
        verdicts.push(Verdict::at_most("items", goal, items.ratio.median, 1.2));
    }
    crate::parked::judge(&results.parked, &mut verdicts);
    if let Some(ratio) = marginal(&results.growth) {
        verdicts.push(Verdict::at_most(
            "growth",
            "cost of a further task, at the largest size to the smaller",
            ratio,
            1.2,
        ));
    }
    if let [first, .., last] = results.history.as_slice() {
        let ratio = last.wall_s.median / first.wall_s.median;
        verdicts.push(Verdict::at_most(
            "history",
            "the same run, in the fullest store to the emptiest",
            ratio,
            1.2,
        ));
    }
    // Noise moves CPU time less than wall time: where the two disagree, look at the machine first.
    for (workload, grown) in [("growth", &results.growth), ("history", &results.history)] {
        if let [first, .., last] = grown.as_slice() {
            let ratio = last.cpu_ms_per_task.median / first.cpu_ms_per_task.median;
            verdicts.push(Verdict::at_most(
                workload,
                "CPU a task, at the largest size to the smallest",
                ratio,
                1.2,
            ));
        }
    }
    if let Some(workspaces) = &results.workspaces {
        workspaces.judge(&mut verdicts);
    }
    if let Some(isolation) = &results.isolation {
        if let Some(overlay) = &isolation.overlay_ms {
            verdicts.push(Verdict::at_most("isolation", "an overlay, ms", overlay.median, 50.0));
        }
        let ratio = isolation.copy_against_cp();
        verdicts.push(Verdict::at_most("isolation", "a copy against `cp -a`", ratio, 1.1));
    }
    if let Some(idle) = &results.idle {
        verdicts.push(Verdict::at_most("idle", "memory of node and warden, MB", idle.pss_mb, 20.0));
        verdicts.push(Verdict::at_most("idle", "CPU of node and warden, %", idle.cpu_percent, 0.05));
    }
    if let Some(enqueue) = &results.enqueue {
        for (to, p99) in [("function", enqueue.function_p99_ms), ("process", enqueue.submit_p99_ms)] {
            let goal = format!("submit to the first instruction of a {to}, p99 ms");
            verdicts.push(Verdict::at_most("enqueue", &goal, p99, 2.0));
        }
    }
    if let Some(durable) = &results.durable {
        crate::durable::judge(durable, &mut verdicts);
    }
    if let Some(web) = &results.web {
        crate::web::judge(web, &mut verdicts);
    }
    if let Some(containers) = &results.containers {
        judge_containers(containers, &mut verdicts);
    }
    if let Some(service) = &results.service {
        judge_service(service, &mut verdicts);
    }
    if let Some(nodes) = &results.nodes {
        judge_nodes(nodes, &mut verdicts);
    }
    verdicts
}

/// The store of many nodes: ratios to queues of others on the same server.
fn judge_nodes(nodes: &NodesResult, verdicts: &mut Vec<Verdict>) {
    let of = |queue: Queue| nodes.queues.iter().find(|result| result.queue == queue);
    let ours = [Queue::LanewayRun, Queue::LanewayRuns].into_iter().filter_map(of);
    let peers = [Queue::Graphile, Queue::GraphileBatched, Queue::PgBoss, Queue::Procrastinate];
    for (ours, peer) in ours.flat_map(|ours| peers.into_iter().filter_map(of).map(move |peer| (ours, peer))) {
        let (name, other) = (ours.queue.name(), peer.queue.name());
        let mut at_least = |what: &str, ours: Option<Spread>, theirs: Option<Spread>| {
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                let goal = format!("{name}: {what}, to {other}");
                verdicts.push(Verdict::at_least("nodes", &goal, ours.median / theirs.median, 1.0));
            }
        };
        at_least("no-op drain", Some(ours.drain_per_s), Some(peer.drain_per_s));
        if peer.queue == Queue::Graphile {
            at_least("bulk submit", ours.bulk_per_s, peer.bulk_per_s);
        }
        at_least("single submit", ours.single_per_s, peer.single_per_s);
        if peer.queue == Queue::Graphile {
            let pairs = [
                ("p50", ours.start_p50_ms, peer.start_p50_ms),
                ("p99", ours.start_p99_ms, peer.start_p99_ms),
            ];
            for (share, ours, theirs) in pairs {
                if let (Some(ours), Some(theirs)) = (ours, theirs) {
                    let goal = format!("{name}: enqueue to start {share}, to {other}");
                    verdicts.push(Verdict::at_most("nodes", &goal, ours.median / theirs.median, 1.0));
                }
            }
        }
    }
    if let Some(hop) = &nodes.hop {
        let goal = "a step's end to its successor's start on another node, to two commits and a notification";
        verdicts.push(Verdict::at_most("nodes", goal, hop.p50_ms.median / hop.bare_p50_ms.median, 3.0));
    }
    if let [one, more @ ..] = nodes.scaled.as_slice() {
        // Where the processors are full, more nodes cannot do more.
        for scaled in more.iter().filter(|scaled| scaled.cpu_share.median < FULL) {
            let linear = one.tasks_per_s.median * scaled.nodes as f64 / one.nodes as f64;
            let goal = format!("{} nodes, share of as many single ones", scaled.nodes);
            verdicts.push(Verdict::at_least("nodes", &goal, scaled.tasks_per_s.median / linear, 0.9));
        }
    }
    for one in nodes.contention.iter().filter(|one| one.queue.is_none()) {
        let case = format!("{} callers on {} keys", one.callers, one.keys);
        let (ratio, goal) =
            (one.live_per_s.median / one.drain_per_s.median, format!("{case}: live to drained"));
        verdicts.push(Verdict::at_least("nodes", &goal, ratio, 0.7));
        let goal = format!("{case}: submit p99 ms");
        verdicts.push(Verdict::at_most("nodes", &goal, one.submit_p99_ms.median, 250.0));
        let goal = format!("{case}: deadlocks");
        verdicts.push(Verdict::at_most("nodes", &goal, one.deadlocks as f64, 0.0));
    }
    for one in &nodes.endurance {
        let kills = if one.kills > 0 { ", with kills" } else { "" };
        let case = format!("{} callers on {} keys for minutes{kills}", one.callers, one.keys);
        let goal = format!("{case}: live to drained");
        verdicts.push(Verdict::at_least("nodes", &goal, one.live_per_s / one.drain_per_s, 0.7));
        let goal = format!("{case}: submit p99 ms");
        verdicts.push(Verdict::at_most("nodes", &goal, one.submit_p99_ms, 250.0));
        let goal = format!("{case}: deadlocks");
        verdicts.push(Verdict::at_most("nodes", &goal, one.deadlocks as f64, 0.0));
        // A lost task keeps its place: it waits for a key and a slot, and for no other task of the backlog.
        if one.lost > 0 {
            let waited = |ms: i64| ms as f64 / 1e3;
            let goal = format!("{case}: p50 seconds from the loss of a task to its next start");
            verdicts.push(Verdict::at_most("nodes", &goal, waited(one.wait_after_loss_p50_ms), 1.0));
            let goal = format!("{case}: max seconds from the loss of a task to its next start");
            verdicts.push(Verdict::at_most("nodes", &goal, waited(one.wait_after_loss_max_ms), 10.0));
        }
    }
    for one in &nodes.horizon {
        let case = one.case();
        let goal = format!("{} tasks of {case}: mean claim with a held horizon, to without", one.tasks);
        verdicts.push(Verdict::at_most("nodes", &goal, one.held_ms.median / one.free_ms.median, 2.0));
    }
    if let Some(recovery) = &nodes.recovery {
        let goal = "seconds from a warden's end to the next start, the node started anew";
        verdicts.push(Verdict::at_most("nodes", goal, recovery.restarted_s.median, 1.0));
        if let Some(after) = recovery.elsewhere_s {
            let goal = "seconds from the end of a lease to the next start on another node";
            verdicts.push(Verdict::at_most("nodes", goal, after, 1.0));
        }
    }
}

impl Verdict {
    pub(crate) fn at_most(workload: &str, goal: &str, figure: f64, limit: f64) -> Self {
        let (workload, goal) = (workload.to_owned(), format!("{goal}: at most"));
        Self { workload, goal, figure, limit, is_met: figure <= limit }
    }

    pub(crate) fn at_least(workload: &str, goal: &str, figure: f64, limit: f64) -> Self {
        let (workload, goal) = (workload.to_owned(), format!("{goal}: at least"));
        Self { workload, goal, figure, limit, is_met: figure >= limit }
    }
}

fn judge_containers(found: &ContainersResult, verdicts: &mut Vec<Verdict>) {
    let mut at_most = |goal: &str, figure: f64, limit: f64| {
        verdicts.push(Verdict::at_most("containers", goal, figure, limit))
    };
    at_most("a warm task, to the bare calls", found.warm_ms.median / found.bare_ms.median, 1.2);
    at_most(
        "spread of a lane of eight, to the bare calls",
        found.lane_ms.median / found.bare_lane_ms.median,
        1.3,
    );
    at_most(
        "abort of that lane, to bare kill and remove",
        found.abort_ms.median / found.bare_abort_ms.median,
        1.3,
    );
    let faster = found.cold_ms.median / found.warm_ms.median;
    verdicts.push(Verdict::at_least("containers", "`docker run --rm`, to a warm task", faster, 3.0));
}

fn judge_service(service: &ServiceResult, verdicts: &mut Vec<Verdict>) {
    let mut at_most =
        |goal: &str, figure: f64, limit: f64| verdicts.push(Verdict::at_most("service", goal, figure, limit));
    at_most("ready after, ms", service.ready_ms.median, 50.0);
    // Counted once where they share it: they are one program.
    at_most("idle memory of server and warden, MB", service.idle_pss_mb, 20.0);
    at_most("idle CPU of server and warden, %", service.idle_cpu_percent, 0.05);
    at_most("memory of both after a load, MB", service.rss_mb_after_load, 60.0);
    for peer in &service.peers {
        let ratio = |what: &str| format!("{what}, to {}", peer.name);
        at_most(&ratio("ready after"), service.ready_ms.median / peer.ready_ms.median, 1.0);
        at_most(&ratio("idle memory"), service.idle_rss_mb / peer.idle_rss_mb, 1.0);
    }
    let slower = service.start_p50_ms_with_listeners / service.start_p50_ms.max(1.0);
    at_most("submit to start, with listeners to without", slower, 1.2);
    let reads = service.read_per_s.median / service.health_per_s.median;
    verdicts.push(Verdict::at_least("service", "reads of a run, share of /healthz", reads, 0.5));
    let submits = service.submit_per_s.median / service.bare_submit_per_s.median;
    verdicts.push(Verdict::at_least("service", "durable submits, to one commit each", submits, 5.0));
}

/// Which graphs have goals of their own, by the name of the workload.
fn judge_graph(graph: &GraphResult, verdicts: &mut Vec<Verdict>) {
    let Some(ours) = graph.of(Subject::Laneway) else { return };
    let name = graph.workload.as_str();
    let ratio_to =
        |peer: Peer| graph.of(Subject::Peer(peer)).map(|theirs| ours.wall_s.median / theirs.wall_s.median);
    let mut at_most = |peer: Peer, limit: f64| {
        if let Some(ratio) = ratio_to(peer) {
            let goal = format!("wall time to {}", Subject::Peer(peer).name());
            verdicts.push(Verdict::at_most(name, &goal, ratio, limit));
        }
    };
    match name {
        "flat-2" => at_most(Peer::Xargs, 1.5),
        "flat-8" => at_most(Peer::Xargs, 1.2),
        "levels" => at_most(Peer::Make, 1.5),
        "chain" => at_most(Peer::Ninja, 1.0),
        _ => {}
    }
    at_most(Peer::Huey, 1.0);
    if let ("flat-2" | "flat-8", Some(ratio)) = (name, ratio_to(Peer::Dagu)) {
        verdicts.push(Verdict::at_least(name, "times as fast as dagu", 1.0 / ratio, 25.0));
    }
    if name == "chain" {
        let limit = graph.calibration.spawn_ms.median + 1.5 * graph.calibration.sync_p50_ms.median + 0.3;
        let goal = "ms a step, by a bare spawn + 1.5 syncs of this run + 0.3";
        verdicts.push(Verdict::at_most(name, goal, graph.ms_per_task(ours), limit));
    }
    if let Some(bare) = graph.of(Subject::Spawn) {
        verdicts.push(Verdict::at_most(name, "CPU ms a task beyond the spawn", beyond(ours, bare), 0.15));
    }
}

fn beyond(ours: &SubjectResult, bare: &SubjectResult) -> f64 {
    ours.cpu_ms_per_task.median - bare.cpu_ms_per_task.median
}

/// What a further task costs between the two largest sizes, to what it costs between the two smallest.
fn marginal(grown: &[Grown]) -> Option<f64> {
    let costs: Vec<f64> = grown
        .windows(2)
        .map(|pair| (pair[1].wall_s.median - pair[0].wall_s.median) / (pair[1].tasks - pair[0].tasks) as f64)
        .collect();
    let (first, last) = (costs.first()?, costs.last()?);
    (costs.len() > 1).then(|| last / first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(tasks: usize, wall_s: f64) -> Grown {
        let spread = |value| Spread { median: value, min: value, max: value, runs: 1 };
        let (cpu_ms_per_task, to_disk_bytes_per_task) = (spread(1.0), spread(1.0));
        Grown { size: tasks, tasks, wall_s: spread(wall_s), cpu_ms_per_task, to_disk_bytes_per_task }
    }

    #[test]
    fn a_start_that_costs_does_not_hide_growth() {
        // Half a second to begin with, then 1 ms a task, then 2.
        let grown = [grown(1_000, 1.5), grown(2_000, 2.5), grown(3_000, 4.5)];
        assert_eq!(marginal(&grown), Some(2.0));
        assert_eq!(marginal(&grown[..2]), None);
    }

    #[test]
    fn a_limit_is_reached_by_its_own_value() {
        assert!(Verdict::at_most("w", "g", 1.2, 1.2).is_met);
        assert!(!Verdict::at_most("w", "g", 1.21, 1.2).is_met);
        assert!(Verdict::at_least("w", "g", 25.0, 25.0).is_met);
        assert!(!Verdict::at_least("w", "g", 24.9, 25.0).is_met);
    }
}
