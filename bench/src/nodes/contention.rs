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

pub(super) const NODES: usize = 8;
pub(super) const SLOTS: usize = 8;

/// Jobs that a queue of others runs at once.
const CONCURRENCY: usize = 16;

/// Callers, and keys that they want.
pub(super) const CASES: [(usize, usize); 4] = [(3, 1), (3, 8), (16, 1), (16, 8)];

/// Callers that submit at the same time to one subject, whose tasks want the same few keys.
#[derive(Debug, Serialize)]
pub(crate) struct Contention {
    /// `None` for Laneway, whose runs have five tasks behind locks and limits.
    pub(crate) queue: Option<Queue>,
    pub(crate) callers: usize,
    pub(crate) keys: usize,
    pub(crate) tasks: usize,
    /// Everything was submitted before the first worker started.
    pub(crate) drain_per_s: Spread,
    /// Submitted while the workers run.
    pub(crate) live_per_s: Spread,
    pub(crate) submit_p50_ms: Spread,
    pub(crate) submit_p99_ms: Spread,
    /// In all rounds, as the server counts them.
    pub(crate) deadlocks: i64,
}

/// Figures of one play: tasks a second, milliseconds of each submit, and deadlocks.
pub(super) type Play = (f64, Vec<f64>, i64);

pub(crate) fn measure(
    runs: usize,
    rounds: usize,
    places: &Places,
    server: &Server,
) -> Result<Vec<Contention>> {
    let case = |(callers, keys)| {
        let play = |is_live| play((callers, keys, runs), is_live, places, server);
        contest(None, (callers, keys, runs * TASKS), rounds, play)
    };
    CASES.into_iter().map(case).collect()
}

/// Measures queues of others with their own keys: each job starts a program, one at a time of a key.
pub(crate) fn measure_peers(
    peers: &[Peer],
    jobs: usize,
    rounds: usize,
    places: &Places,
    server: &Server,
) -> Result<Vec<Contention>> {
    let mut measured = Vec::new();
    for queue in Queue::keyed(peers) {
        for (callers, keys) in CASES {
            let play = |is_live: bool| -> Result<Play> {
                let numbers = [jobs, callers, keys, CONCURRENCY].map(|number| number.to_string());
                let mut words = vec!["contend"];
                words.extend(numbers.iter().map(String::as_str));
                words.push(if is_live { "live" } else { "before" });
                let (told, deadlocks) = queue.contend(&words, places, server)?;
                Ok((jobs as f64 / told.seconds.max(0.001), told.ms, deadlocks))
            };
            measured.push(contest(Some(queue), (callers, keys, jobs), rounds, play)?);
        }
    }
    Ok(measured)
}

/// Plays each round twice: submitted before, and live.
fn contest(
    queue: Option<Queue>,
    (callers, keys, tasks): (usize, usize, usize),
    rounds: usize,
    play: impl Fn(bool) -> Result<Play>,
) -> Result<Contention> {
    let name = queue.map_or("laneway", Queue::name);
    let (mut drain, mut live, mut p50, mut p99, mut deadlocks) = (vec![], vec![], vec![], vec![], 0);
    for round in 1..=rounds {
        note(&format!("contention: {name}, {callers} callers, {keys} keys, round {round} of {rounds}"));
        let (rate, _, parted) = play(false)?;
        drain.push(rate);
        deadlocks += parted;
        let (rate, millis, parted) = play(true)?;
        live.push(rate);
        deadlocks += parted;
        let millis = sorted(millis);
        p50.extend(percentile(&millis, 0.5));
        p99.extend(percentile(&millis, 0.99));
    }
    let spread = |values: Vec<f64>| Spread::of(values).context("no rounds were run");
    Ok(Contention {
        queue,
        callers,
        keys,
        tasks,
        drain_per_s: spread(drain)?,
        live_per_s: spread(live)?,
        submit_p50_ms: spread(p50)?,
        submit_p99_ms: spread(p99)?,
        deadlocks,
    })
}

/// Tasks a second from the first start to the last end, how long submits took, and deadlocks.
pub(super) fn play(
    (callers, keys, runs): (usize, usize, usize),
    is_live: bool,
    places: &Places,
    server: &Server,
) -> Result<Play> {
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
