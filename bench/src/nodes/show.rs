//! The tables of `nodes`.

use std::fmt::Write as _;

use super::{NodesResult, Queue, QueueResult};
use crate::stats::Spread;

pub(crate) fn show(result: &NodesResult) -> String {
    let mut out = String::new();
    show_queues(&mut out, &result.queues);
    if !result.ceiling.is_empty() {
        put(
            &mut out,
            format_args!(
                "## nodes: ends of one run in a second\n\n| finishers | in batches of | ends/s |\n|---|---|---|"
            ),
        );
        for one in &result.ceiling {
            put(
                &mut out,
                format_args!("| {} | {} | {} |", one.finishers, one.batch, spread(&one.finishes_per_s, 0)),
            );
        }
        put(&mut out, format_args!(""));
    }
    if let Some(hop) = &result.hop {
        put(
            &mut out,
            format_args!(
                "## nodes: a step's end to its successor's start on another node\n\n| | p50 ms | p99 ms |\n|---|---|---|"
            ),
        );
        put(&mut out, format_args!("| Laneway | {} | {} |", spread(&hop.p50_ms, 2), spread(&hop.p99_ms, 2)));
        let (p50, p99) = (spread(&hop.bare_p50_ms, 2), spread(&hop.bare_p99_ms, 2));
        put(&mut out, format_args!("| two commits and a notification | {p50} | {p99} |\n"));
    }
    if let Some(one) = result.scaled.first() {
        put(&mut out, format_args!("## nodes: steps that sleep for 0.1 s, {} slots a node\n", one.slots));
        put(
            &mut out,
            format_args!(
                "| nodes | tasks | tasks/s | of as many single ones | CPU, of all cores |\n|---|---|---|---|---|"
            ),
        );
        for scaled in &result.scaled {
            let linear = one.tasks_per_s.median * scaled.nodes as f64 / one.nodes as f64;
            put(
                &mut out,
                format_args!(
                    "| {} | {} | {} | {:.2} | {:.0} % |",
                    scaled.nodes,
                    scaled.tasks,
                    spread(&scaled.tasks_per_s, 1),
                    scaled.tasks_per_s.median / linear,
                    100.0 * scaled.cpu_share.median
                ),
            );
        }
        put(&mut out, format_args!(""));
    }
    if !result.contention.is_empty() {
        put(&mut out, format_args!("## nodes: callers at the same time on the same keys\n"));
        put(
            &mut out,
            format_args!(
                "| subject | callers | keys | tasks | drained tasks/s | live tasks/s | live to drained | submit p50 ms | p99 ms | deadlocks |\n|---|---|---|---|---|---|---|---|---|---|"
            ),
        );
        for one in &result.contention {
            put(
                &mut out,
                format_args!(
                    "| {} | {} | {} | {} | {} | {} | {:.2} | {} | {} | {} |",
                    one.queue.map_or("laneway, 8 nodes with 8 slots", Queue::name),
                    one.callers,
                    one.keys,
                    one.tasks,
                    spread(&one.drain_per_s, 0),
                    spread(&one.live_per_s, 0),
                    one.live_per_s.median / one.drain_per_s.median,
                    spread(&one.submit_p50_ms, 1),
                    spread(&one.submit_p99_ms, 1),
                    one.deadlocks
                ),
            );
        }
        put(&mut out, format_args!(""));
    }
    if !result.endurance.is_empty() {
        put(&mut out, format_args!("## nodes: the same for minutes\n"));
        put(
            &mut out,
            format_args!(
                "| callers | keys | seconds | kills | runs | drained tasks/s | live tasks/s | live to drained | submit p50 ms | p99 ms | max ms | deadlocks | tasks lost | wait after a loss p50 s | max s |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
            ),
        );
        for one in &result.endurance {
            put(
                &mut out,
                format_args!(
                    "| {} | {} | {:.0} | {} | {} | {:.0} | {:.0} | {:.2} | {:.1} | {:.1} | {:.0} | {} | {} | {:.1} | {:.1} |",
                    one.callers,
                    one.keys,
                    one.seconds,
                    one.kills,
                    one.runs,
                    one.drain_per_s,
                    one.live_per_s,
                    one.live_per_s / one.drain_per_s,
                    one.submit_p50_ms,
                    one.submit_p99_ms,
                    one.submit_max_ms,
                    one.deadlocks,
                    one.lost,
                    one.wait_after_loss_p50_ms as f64 / 1e3,
                    one.wait_after_loss_max_ms as f64 / 1e3
                ),
            );
        }
        put(&mut out, format_args!(""));
    }
    if !result.horizon.is_empty() {
        put(&mut out, format_args!("## nodes: claims while a session holds the xmin horizon\n"));
        put(
            &mut out,
            format_args!(
                "| tasks | runs | mean claim ms | with a held horizon | of the last tenth | mean finish ms | with a held horizon |\n|---|---|---|---|---|---|---|"
            ),
        );
        for one in &result.horizon {
            put(
                &mut out,
                format_args!(
                    "| {} | {} | {} | {} | {} | {} | {} |",
                    one.tasks,
                    one.case(),
                    spread(&one.free_ms, 2),
                    spread(&one.held_ms, 2),
                    spread(&one.held_last_ms, 2),
                    spread(&one.free_finish_ms, 2),
                    spread(&one.held_finish_ms, 2)
                ),
            );
        }
        put(&mut out, format_args!(""));
    }
    if let Some(recovery) = &result.recovery {
        put(&mut out, format_args!("## nodes: after `kill -9`\n"));
        let restarted = spread(&recovery.restarted_s, 2);
        put(
            &mut out,
            format_args!("The same node, started anew: {restarted} s after its warden was gone.\n"),
        );
        if let (Some(after), Some(since)) = (recovery.elsewhere_s, recovery.since_killed_s) {
            put(
                &mut out,
                format_args!(
                    "Another node: {after:.2} s after the lease had ended, {since:.1} s after the kill.\n"
                ),
            );
        }
    }
    out
}

fn show_queues(out: &mut String, queues: &[QueueResult]) {
    if queues.is_empty() {
        return;
    }
    put(out, format_args!("## nodes: jobs that do nothing, one worker, 8 at once\n"));
    put(
        out,
        format_args!(
            "| | jobs | bulk enqueue/s | single enqueue/s | drain/s | enqueue to start p50 ms | p99 ms |\n|---|---|---|---|---|---|---|"
        ),
    );
    let maybe =
        |found: &Option<Spread>, digits| found.as_ref().map_or(String::new(), |found| spread(found, digits));
    for one in queues {
        put(
            out,
            format_args!(
                "| {} | {} | {} | {} | {} | {} | {} |",
                one.queue.name(),
                one.jobs,
                maybe(&one.bulk_per_s, 0),
                maybe(&one.single_per_s, 0),
                spread(&one.drain_per_s, 0),
                maybe(&one.start_p50_ms, 2),
                maybe(&one.start_p99_ms, 2),
            ),
        );
    }
    put(out, format_args!("\nWhat a job costs the server, counted in a pass of its own:\n"));
    put(
        out,
        format_args!(
            "| | enqueued in bulk: statements | commits | WAL bytes | fsyncs | done: statements | commits | WAL bytes | fsyncs |\n|---|---|---|---|---|---|---|---|---|"
        ),
    );
    for one in queues {
        let (bulk, drain) = (one.bulk_cost, one.drain_cost);
        put(
            out,
            format_args!(
                "| {} | {:.3} | {:.3} | {:.0} | {:.3} | {:.3} | {:.3} | {:.0} | {:.3} |",
                one.queue.name(),
                bulk.statements,
                bulk.commits,
                bulk.wal_bytes,
                bulk.syncs,
                drain.statements,
                drain.commits,
                drain.wal_bytes,
                drain.syncs,
            ),
        );
    }
    put(out, format_args!(""));
}

fn spread(spread: &Spread, digits: usize) -> String {
    format!("{:.digits$} ({:.digits$}–{:.digits$})", spread.median, spread.min, spread.max)
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a string takes everything");
}
