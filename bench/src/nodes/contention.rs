//! Runs whose tasks want the same few keys, submitted by several callers at the same time, while nodes
//! work: how much of the throughput is left that the nodes have when everything was submitted before.

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::fleet::{DATABASE, Fleet, Worker};
use super::queue::Queue;
use super::server::Server;
use super::tell;
use crate::drive::contend::TASKS;
use crate::report::note;
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Peer, Places};

/// As the server counts them.
pub(super) const DEADLOCKS: &str =
    "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";

const NODES: usize = 8;
const SLOTS: usize = 8;

/// Jobs that a queue of others has in hand at once.
const CONCURRENCY: usize = 16;

/// A queue of others with its own keys: jobs that start a program, one at a time of each key.
#[derive(Debug, Serialize)]
pub(crate) struct KeyedQueue {
    pub(crate) queue: Queue,
    pub(crate) callers: usize,
    pub(crate) keys: usize,
    pub(crate) jobs: usize,
    pub(crate) drain_per_s: Spread,
    pub(crate) live_per_s: Spread,
    pub(crate) submit_p50_ms: Spread,
    pub(crate) submit_p99_ms: Spread,
    pub(crate) deadlocks: i64,
}

/// What others make of callers at the same time, in the same rounds.
pub(crate) fn peers(
    peers: &[Peer],
    jobs: usize,
    rounds: usize,
    places: &Places,
    server: &Server,
) -> Result<Vec<KeyedQueue>> {
    let mut measured = Vec::new();
    for queue in Queue::keyed(peers) {
        for (callers, keys) in CASES {
            let (mut drain, mut live, mut p50, mut p99, mut deadlocks) = (vec![], vec![], vec![], vec![], 0);
            for round in 0..rounds {
                note(&format!("contention: {}, round {} of {rounds}", queue.name(), round + 1));
                for (when, rates) in [("before", &mut drain), ("live", &mut live)] {
                    let words = [jobs, callers, keys, CONCURRENCY].map(|number| number.to_string());
                    let words: Vec<&str> = ["contend"]
                        .into_iter()
                        .chain(words.iter().map(String::as_str))
                        .chain([when])
                        .collect();
                    let (told, parted) = queue.contend(&words, places, server)?;
                    rates.push(jobs as f64 / told.seconds.max(0.001));
                    deadlocks += parted;
                    if when == "live" {
                        let millis = sorted(told.ms);
                        p50.extend(percentile(&millis, 0.5));
                        p99.extend(percentile(&millis, 0.99));
                    }
                }
            }
            let spread = |values: Vec<f64>| Spread::of(values).context("no rounds were run");
            measured.push(KeyedQueue {
                queue,
                callers,
                keys,
                jobs,
                drain_per_s: spread(drain)?,
                live_per_s: spread(live)?,
                submit_p50_ms: spread(p50)?,
                submit_p99_ms: spread(p99)?,
                deadlocks,
            });
        }
    }
    Ok(measured)
}

/// Callers, and keys that they want.
const CASES: [(usize, usize); 4] = [(3, 1), (3, 8), (16, 1), (16, 8)];

/// So many callers on so many locks and limits.
#[derive(Debug, Serialize)]
pub(crate) struct Contention {
    pub(crate) callers: usize,
    pub(crate) keys: usize,
    pub(crate) runs: usize,
    /// Everything was submitted before the first node started.
    pub(crate) drain_per_s: Spread,
    /// Submitted while the nodes work.
    pub(crate) live_per_s: Spread,
    pub(crate) submit_p50_ms: Spread,
    pub(crate) submit_p99_ms: Spread,
    /// In all rounds, as the server counts them.
    pub(crate) deadlocks: i64,
}

pub(crate) fn measure(
    runs: usize,
    rounds: usize,
    places: &Places,
    server: &Server,
) -> Result<Vec<Contention>> {
    let mut measured = Vec::new();
    for (callers, keys) in CASES {
        let (mut drain, mut live, mut p50, mut p99, mut deadlocks) = (vec![], vec![], vec![], vec![], 0);
        for round in 0..rounds {
            note(&format!("contention: {callers} callers, {keys} keys, round {} of {rounds}", round + 1));
            let (rate, _, parted) = play((callers, keys, runs), false, places, server)?;
            drain.push(rate);
            deadlocks += parted;
            let (rate, millis, parted) = play((callers, keys, runs), true, places, server)?;
            live.push(rate);
            deadlocks += parted;
            let millis = sorted(millis);
            p50.extend(percentile(&millis, 0.5));
            p99.extend(percentile(&millis, 0.99));
        }
        let spread = |values: Vec<f64>| Spread::of(values).context("no rounds were run");
        measured.push(Contention {
            callers,
            keys,
            runs,
            drain_per_s: spread(drain)?,
            live_per_s: spread(live)?,
            submit_p50_ms: spread(p50)?,
            submit_p99_ms: spread(p99)?,
            deadlocks,
        });
    }
    Ok(measured)
}

/// Tasks a second from the first start to the last end, how long submits took, and deadlocks.
fn play(
    (callers, keys, runs): (usize, usize, usize),
    is_live: bool,
    places: &Places,
    server: &Server,
) -> Result<(f64, Vec<f64>, i64)> {
    let fleet = Fleet::new(places, server)?;
    let start = || -> Result<Vec<Worker>> {
        (0..NODES).map(|node| fleet.start(&format!("node-{node}"), SLOTS)).collect()
    };
    let words = [callers, runs, keys].map(|number| number.to_string());
    let submit = || tell(&["contend", &words[0], &words[1], &words[2]], DATABASE, places, server);
    let (workers, told) = if is_live {
        let workers = start()?;
        fleet.wait_for_nodes(NODES)?;
        (workers, submit()?)
    } else {
        let told = submit()?;
        (start()?, told)
    };
    fleet.wait_for(
        "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM runs WHERE status IN ('queued', 'running')) THEN 1::bigint END",
    )?;
    let millis = fleet.wait_for("SELECT max(finished_at) - min(started_at) FROM tasks")?;
    let done = fleet.wait_for("SELECT count(*) FROM tasks WHERE status = 'succeeded'")?;
    if usize::try_from(done)? != runs * TASKS {
        bail!("{done} of {} tasks succeeded", runs * TASKS);
    }
    workers.into_iter().try_for_each(Worker::end)?;
    let deadlocks = server.number(DATABASE, DEADLOCKS)?;
    Ok((done as f64 / (millis.max(1) as f64 / 1e3), told.ms, deadlocks))
}
