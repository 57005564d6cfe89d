//! The load of [`super::contention`] for minutes, through all of its cases in turn: first undisturbed, then
//! while a worker is killed every few seconds. Reports what each case kept of its drained throughput.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::contention::{CASES, DEADLOCKS, NODES, Play, SLOTS};
use super::fleet::{DATABASE, Fleet, Worker};
use super::server::Server;
use super::{Told, tell};
use crate::report::note;
use crate::stats::{percentile, sorted};
use crate::subject::Places;

const KILL_INTERVAL: Duration = Duration::from_secs(5);

/// Unfinished runs at which callers pause: their backlog would otherwise grow for ever.
const MAX_BACKLOG: usize = 500;

/// One case, for its share of the minutes.
#[derive(Debug, Serialize)]
pub(crate) struct Endurance {
    pub(crate) callers: usize,
    pub(crate) keys: usize,
    pub(crate) seconds: f64,
    pub(crate) kills: usize,
    pub(crate) runs: usize,
    /// Everything was submitted before the first worker started.
    pub(crate) drain_per_s: f64,
    pub(crate) live_per_s: f64,
    pub(crate) submit_p50_ms: f64,
    pub(crate) submit_p99_ms: f64,
    pub(crate) submit_max_ms: f64,
    pub(crate) deadlocks: i64,
    pub(crate) lost: i64,
    /// From the loss of a task to its next start.
    pub(crate) wait_after_loss_p50_ms: i64,
    pub(crate) wait_after_loss_max_ms: i64,
}

/// Takes twice `seconds`; `drain` plays one case with everything submitted before.
pub(crate) fn measure(
    seconds: u64,
    places: &Places,
    server: &Server,
    drain: impl Fn((usize, usize)) -> Result<Play>,
) -> Result<Vec<Endurance>> {
    let share = Duration::from_secs(seconds) / u32::try_from(CASES.len())?;
    let mut drains = Vec::new();
    for case in CASES {
        note(&format!("endurance: {} callers, {} keys, drained", case.0, case.1));
        drains.push(drain(case)?.0);
    }
    let mut measured = Vec::new();
    for is_killing in [false, true] {
        for (case, drain_per_s) in CASES.into_iter().zip(&drains) {
            let kills = if is_killing { ", workers are killed" } else { "" };
            note(&format!("endurance: {} callers, {} keys, {share:?}{kills}", case.0, case.1));
            measured.push(Endurance {
                drain_per_s: *drain_per_s,
                ..endure(case, share, is_killing, places, server)?
            });
        }
    }
    Ok(measured)
}

fn endure(
    (callers, keys): (usize, usize),
    duration: Duration,
    is_killing: bool,
    places: &Places,
    server: &Server,
) -> Result<Endurance> {
    let fleet = Fleet::new(places, server)?;
    let start = |node: usize| fleet.start(&format!("node-{node}"), SLOTS);
    let mut workers: VecDeque<Worker> = (0..NODES).map(start).collect::<Result<_>>()?;
    fleet.wait_for_nodes(NODES)?;
    let words = [callers, keys, usize::try_from(duration.as_millis())?, MAX_BACKLOG];
    let words = words.map(|number| number.to_string());
    let submit = || -> Result<(Told, i64)> {
        let told = tell(&["endure", &words[0], &words[1], &words[2], &words[3]], DATABASE, places, server)?;
        Ok((told, server.number(DATABASE, "SELECT count(*) FROM tasks WHERE status = 'succeeded'")?))
    };
    let mut kills = 0;
    let (told, done) = std::thread::scope(|scope| {
        let submitting = scope.spawn(submit);
        let mut next_kill = Instant::now() + KILL_INTERVAL;
        while !submitting.is_finished() {
            std::thread::sleep(Duration::from_millis(50));
            if is_killing && Instant::now() >= next_kill {
                workers.pop_front().context("no worker is left")?.kill()?;
                workers.push_back(start(kills % NODES)?);
                kills += 1;
                next_kill += KILL_INTERVAL;
            }
        }
        match submitting.join() {
            Ok(told) => told,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })?;
    fleet.wait_for(
        "SELECT CASE WHEN NOT EXISTS (SELECT 1 FROM runs WHERE status IN ('queued', 'running')) THEN 1::bigint END",
    )?;
    let failed = server.number(DATABASE, "SELECT count(*) FROM runs WHERE status <> 'succeeded'")?;
    if failed > 0 {
        bail!("{failed} of {} runs did not succeed", told.ms.len());
    }
    let deadlocks = server.number(DATABASE, DEADLOCKS)?;
    let lost = server.number(DATABASE, "SELECT count(*) FROM events WHERE name = 'task_lost'")?;
    let waited = |share: &str| server.number(DATABASE, &WAIT_AFTER_LOSS.replace("SHARE", share));
    let (wait_after_loss_p50_ms, wait_after_loss_max_ms) = (waited("0.5")?, waited("1.0")?);
    workers.into_iter().try_for_each(Worker::end)?;
    let millis = sorted(told.ms);
    let submit = |share| percentile(&millis, share).context("no run was submitted");
    Ok(Endurance {
        callers,
        keys,
        seconds: told.seconds,
        kills,
        runs: millis.len(),
        drain_per_s: 0.0,
        live_per_s: done as f64 / told.seconds,
        submit_p50_ms: submit(0.5)?,
        submit_p99_ms: submit(0.99)?,
        submit_max_ms: submit(1.0)?,
        deadlocks,
        lost,
        wait_after_loss_p50_ms,
        wait_after_loss_max_ms,
    })
}

/// Milliseconds; 0 where nothing was lost.
const WAIT_AFTER_LOSS: &str = "
    SELECT coalesce(percentile_disc(SHARE) WITHIN GROUP (ORDER BY started.at - lost.at), 0)
    FROM events lost
    CROSS JOIN LATERAL (
        SELECT min(at) AS at FROM events
        WHERE run_no = lost.run_no AND seq > lost.seq AND name = 'task_started'
          AND body::json ->> 'step' = lost.body::json ->> 'step'
    ) started
    WHERE lost.name = 'task_lost' AND started.at IS NOT NULL";
