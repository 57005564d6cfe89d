//! `nodes`: the store of many nodes beside queues of others, on one Postgres that syncs as it ships. Owns the order of the
//! parts and what they gave; each part stands in its own file.

mod contention;
mod endurance;
mod fleet;
mod horizon;
mod queue;
mod server;
mod show;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

pub(crate) use contention::Contention;
pub(crate) use endurance::Endurance;
pub(crate) use fleet::{Recovery, Scaled};
pub(crate) use horizon::Horizon;
pub(crate) use queue::{Queue, QueueResult};
pub(crate) use server::Server;
pub(crate) use show::show;

use crate::meter::Job;
use crate::report::note;
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Peer, Places, fresh_dir, text};

/// Everything of one run.
#[derive(Debug, Default, Serialize)]
pub(crate) struct NodesResult {
    pub(crate) queues: Vec<QueueResult>,
    pub(crate) ceiling: Vec<Ceiling>,
    pub(crate) hop: Option<Hop>,
    pub(crate) scaled: Vec<Scaled>,
    pub(crate) recovery: Option<Recovery>,
    pub(crate) contention: Vec<Contention>,
    pub(crate) endurance: Vec<Endurance>,
    pub(crate) horizon: Vec<Horizon>,
}

/// How many ends of one run are recorded in a second.
#[derive(Debug, Serialize)]
pub(crate) struct Ceiling {
    pub(crate) finishers: usize,
    pub(crate) batch: usize,
    pub(crate) finishes_per_s: Spread,
}

/// From a step's end to its successor's start on another node, and what cannot be left out of that.
#[derive(Debug, Serialize)]
pub(crate) struct Hop {
    pub(crate) p50_ms: Spread,
    pub(crate) p99_ms: Spread,
    pub(crate) bare_p50_ms: Spread,
    pub(crate) bare_p99_ms: Spread,
}

/// A part of this workload, as `--parts` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Queues of jobs that do nothing, beside those of others
    Queues,
    /// Ends of one run in a second
    Ceiling,
    /// From a step's end to its successor's start on another node
    Hop,
    /// 1, 2, 4 and 8 nodes
    Scale,
    /// What a killed node held
    Recovery,
    /// Callers that submit at the same time, and tasks that want the same keys
    Contention,
    /// The load of `contention` for ten minutes, and for ten more while workers are killed; only if it is named
    Endurance,
    /// Claims while another session holds the server's xmin horizon
    Horizon,
}

/// What is to be measured.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) postgres: &'a str,
    pub(crate) parts: &'a [Part],
    pub(crate) peers: &'a [Peer],
    pub(crate) rounds: usize,
    pub(crate) is_quick: bool,
}

pub(crate) fn measure(plan: &Plan<'_>, places: &Places) -> Result<NodesResult> {
    let server = Server::connect(plan.postgres)?;
    let full = |full: usize, quick: usize| if plan.is_quick { quick } else { full };
    let wants = |part: Part| plan.parts.is_empty() || plan.parts.contains(&part);
    let mut result = NodesResult::default();
    if wants(Part::Queues) {
        let sizes = queue::Sizes {
            jobs: full(20_000, 1_000),
            few: full(2_000, 100),
            singles: full(2_000, 200),
            samples: full(100, 20),
            rounds: plan.rounds,
        };
        result.queues = queue::contest(&Queue::all(plan.peers), sizes, places, &server)?;
    }
    if wants(Part::Ceiling) {
        result.ceiling = ceiling(full(2_048, 256), plan.rounds, places, &server)?;
    }
    if wants(Part::Hop) {
        result.hop = Some(hop(full(200, 20), plan.rounds, places, &server)?);
    }
    if wants(Part::Scale) {
        result.scaled = fleet::scale(&[1, 2, 4, 8], plan.rounds.min(3), places, &server)?;
    }
    if wants(Part::Recovery) {
        result.recovery = Some(fleet::recovery(plan.rounds.min(3), !plan.is_quick, places, &server)?);
    }
    if wants(Part::Contention) {
        let rounds = plan.rounds.min(3);
        result.contention = contention::measure(full(400, 60), rounds, places, &server)?;
        let peers = contention::measure_peers(plan.peers, full(400, 100), rounds, places, &server)?;
        result.contention.extend(peers);
    }
    if plan.parts.contains(&Part::Endurance) {
        let drain =
            |(callers, keys)| contention::play((callers, keys, full(400, 60)), false, places, &server);
        result.endurance = endurance::measure(full(600, 40) as u64, places, &server, drain)?;
    }
    if wants(Part::Horizon) {
        result.horizon = horizon::measure(full(50_000, 1_000), plan.rounds.min(3), places, &server)?;
    }
    Ok(result)
}

#[derive(Debug, Deserialize)]
struct Told {
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    ms: Vec<f64>,
    #[serde(default)]
    finish_ms: Vec<f64>,
}

/// This program as its own child, on a database of its own.
fn own(words: &[&str], places: &Places, server: &Server) -> Result<Told> {
    const DATABASE: &str = "bench_own";
    server.fresh(DATABASE, false)?;
    let told = tell(words, DATABASE, places, server)?;
    server.drop(DATABASE)?;
    Ok(told)
}

/// The same on a database that is there, on which nodes may work.
fn tell(words: &[&str], database: &str, places: &Places, server: &Server) -> Result<Told> {
    let dir = places.work.join("nodes/own");
    fresh_dir(&dir)?;
    let mut job = Job::new(&dir, &[text(&places.own)?, "drive"]);
    job.words.extend(words.iter().map(|word| (*word).to_owned()));
    let named = [("DATABASE_URL", server.url(database)), ("WARDEN", text(&places.laneway)?.to_owned())];
    job.env = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    serde_json::from_slice(&job.stdout_beside_others()?).context("a driver told no figures")
}

fn ceiling(tasks: usize, rounds: usize, places: &Places, server: &Server) -> Result<Vec<Ceiling>> {
    let cases: Vec<(usize, usize)> =
        [1, 8, 32].into_iter().flat_map(|batch| [1, 2, 4, 8].map(|finishers| (finishers, batch))).collect();
    let mut rates: Vec<Vec<f64>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        note(&format!("ceiling: round {} of {rounds}", round + 1));
        for ((finishers, batch), rates) in cases.iter().zip(&mut rates) {
            let words = [tasks, *finishers, *batch].map(|number| number.to_string());
            let told = own(&["ceiling", &words[0], &words[1], &words[2]], places, server)?;
            rates.push(tasks as f64 / told.seconds);
        }
    }
    let ceilings = cases.into_iter().zip(rates).map(|((finishers, batch), rates)| {
        Ok(Ceiling { finishers, batch, finishes_per_s: Spread::of(rates).context("no rounds were run")? })
    });
    ceilings.collect()
}

fn hop(steps: usize, rounds: usize, places: &Places, server: &Server) -> Result<Hop> {
    let mut figures: [Vec<f64>; 4] = Default::default();
    for round in 0..rounds {
        note(&format!("hop: round {} of {rounds}", round + 1));
        for (name, at) in [("hop", 0), ("hop-bare", 2)] {
            let ms = sorted(own(&[name, &steps.to_string()], places, server)?.ms);
            figures[at].extend(percentile(&ms, 0.5));
            figures[at + 1].extend(percentile(&ms, 0.99));
        }
    }
    let [p50, p99, bare_p50, bare_p99] =
        figures.map(|values| Spread::of(values).context("no rounds were run"));
    Ok(Hop { p50_ms: p50?, p99_ms: p99?, bare_p50_ms: bare_p50?, bare_p99_ms: bare_p99? })
}
