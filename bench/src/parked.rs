//! `parked`: what tasks that wait for somebody cost a server that starts. They hold no slot and no lease, and nothing reads them
//! before their moment has come, so that its start, its memory and the start of a step are those of an empty store.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::goal::Verdict;
use crate::meter::Job;
use crate::report::{note, spread};
use crate::server::Server;
use crate::stats::Spread;
use crate::subject::{Places, fresh_dir, text};

/// Runs that are started beside them, in each round.
const STARTS: usize = 10;

/// A server on a store with so many parked tasks.
#[derive(Debug, Serialize)]
pub(crate) struct Parked {
    pub(crate) tasks: usize,
    pub(crate) ready_ms: Spread,
    /// Of server and warden, a while after the start.
    pub(crate) rss_mb: Spread,
    /// From submit to the start of a step of another run.
    pub(crate) start_ms: Spread,
}

pub(crate) fn measure(sizes: &[usize], rounds: usize, places: &Places) -> Result<Vec<Parked>> {
    let dirs: Vec<_> = sizes.iter().map(|tasks| places.work.join(format!("parked-{tasks}"))).collect();
    for (tasks, dir) in sizes.iter().zip(&dirs) {
        note(&format!("parked: {tasks} tasks are submitted"));
        fresh_dir(dir)?;
        Job::new(dir, &[text(&places.own)?, "drive", "park", &tasks.to_string()]).stdout()?;
    }
    let mut found: Vec<[Vec<f64>; 3]> = sizes.iter().map(|_| Default::default()).collect();
    for round in 0..rounds {
        note(&format!("parked: round {} of {rounds}", round + 1));
        for place in 0..sizes.len() {
            let place = (place + round) % sizes.len();
            let server = Server::start(places, &dirs[place], &[])?;
            std::thread::sleep(Duration::from_secs(2));
            let [ready, rss, start] = &mut found[place];
            ready.push(server.ready_ms);
            rss.push(server.rss_mb()?);
            start.push(server.starts(STARTS)?);
            server.end()?;
        }
    }
    sizes
        .iter()
        .zip(found)
        .map(|(&tasks, found)| {
            let [ready, rss, start] = found.map(|values| Spread::of(values).context("no rounds were run"));
            Ok(Parked { tasks, ready_ms: ready?, rss_mb: rss?, start_ms: start? })
        })
        .collect()
}

/// The fullest store to the emptiest.
pub(crate) fn judge(parked: &[Parked], verdicts: &mut Vec<Verdict>) {
    let [none, .., most] = parked else { return };
    let mut flat = |what: &str, figure: f64| {
        let goal = format!("{what}, with {} parked tasks to none", most.tasks);
        verdicts.push(Verdict::at_most("parked", &goal, figure, 1.2));
    };
    flat("ready after", most.ready_ms.median / none.ready_ms.median);
    flat("memory", most.rss_mb.median / none.rss_mb.median);
    flat("submit to start", most.start_ms.median.max(1.0) / none.start_ms.median.max(1.0));
}

/// As a table.
pub(crate) fn show(parked: &[Parked]) -> String {
    if parked.is_empty() {
        return String::new();
    }
    let mut table = "## parked\n\n| parked tasks | ready after, ms | server and warden, MB | submit to start of another run, p50 ms |\n\
                     |---|---|---|---|\n"
        .to_owned();
    for Parked { tasks, ready_ms, rss_mb, start_ms } in parked {
        let (ready, rss, start) = (spread(ready_ms, 0), spread(rss_mb, 1), spread(start_ms, 1));
        table += &format!("| {tasks} | {ready} | {rss} | {start} |\n");
    }
    table + "\n"
}
