//! Queues of jobs that do nothing: how fast they are filled, one by one and many at once, how fast one worker empties them,
//! and how soon one that waits begins a job. Everybody on the same server, round by round, in an order that turns.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::Told;
use super::contention::DEADLOCKS;
use super::server::{Cost, Server};
use crate::meter::Job;
use crate::report::note;
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Peer, Places, fresh_dir, text};

/// Jobs that one worker process has in hand at once.
const CONCURRENCY: usize = 8;
/// Callers that enqueue one by one.
const CALLERS: usize = 8;

/// Who is asked, and how it is set up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Queue {
    /// All jobs are tasks of one run.
    LanewayRun,
    /// Each job is a run of its own.
    LanewayRuns,
    Graphile,
    /// A local queue of 500 jobs; nobody waits for completion.
    GraphileBatched,
    PgBoss,
    Procrastinate,
}

/// Sizes of one round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) jobs: usize,
    /// For those who need minutes for as many as the others.
    pub(crate) few: usize,
    pub(crate) singles: usize,
    pub(crate) samples: usize,
    pub(crate) rounds: usize,
}

/// What all rounds gave.
#[derive(Debug, Serialize)]
pub(crate) struct QueueResult {
    pub(crate) queue: Queue,
    pub(crate) jobs: usize,
    pub(crate) bulk_per_s: Option<Spread>,
    pub(crate) single_per_s: Option<Spread>,
    pub(crate) drain_per_s: Spread,
    pub(crate) start_p50_ms: Option<Spread>,
    pub(crate) start_p99_ms: Option<Spread>,
    /// Counted in a pass of its own.
    pub(crate) bulk_cost: Cost,
    pub(crate) drain_cost: Cost,
}

#[derive(Debug, Deserialize)]
struct Seconds {
    seconds: f64,
}

#[derive(Debug, Deserialize)]
struct Delays {
    ms: Vec<f64>,
}

#[derive(Debug, Default)]
struct Figures {
    bulk: Vec<f64>,
    single: Vec<f64>,
    drain: Vec<f64>,
    p50: Vec<f64>,
    p99: Vec<f64>,
}

impl Queue {
    /// Laneway, and the peers that are measured.
    pub(crate) fn all(peers: &[Peer]) -> Vec<Self> {
        let of = |peer: Peer| -> &'static [Self] {
            match peer {
                Peer::Graphile => &[Self::Graphile, Self::GraphileBatched],
                Peer::Pgboss => &[Self::PgBoss],
                Peer::Procrastinate => &[Self::Procrastinate],
                Peer::Make
                | Peer::Xargs
                | Peer::Ninja
                | Peer::Huey
                | Peer::Dagu
                | Peer::Restate
                | Peer::Dbos => &[],
            }
        };
        let peers = peers.iter().flat_map(|peer| of(*peer).iter().copied());
        [Self::LanewayRun, Self::LanewayRuns].into_iter().chain(peers).collect()
    }

    /// Those of the peers that run jobs of one key one after the other.
    pub(crate) fn keyed(peers: &[Peer]) -> Vec<Self> {
        let has_keys = |queue: &Self| matches!(queue, Self::Graphile | Self::PgBoss);
        Self::all(peers).into_iter().filter(has_keys).collect()
    }

    /// One contest on a fresh database: what its driver tells, and deadlocks.
    pub(super) fn contend(self, words: &[&str], places: &Places, server: &Server) -> Result<(Told, i64)> {
        let database = self.database();
        server.fresh(database, false)?;
        let say = |words: &[&str]| -> Result<Vec<u8>> {
            let mut job = self.job(places, &server.url(database))?;
            job.words.extend(words.iter().map(|word| (*word).to_owned()));
            job.stdout()
        };
        say(&["setup"])?;
        let told = serde_json::from_slice(&say(words)?);
        let told = told.with_context(|| format!("{} told no figures", self.name()))?;
        let deadlocks = server.number(database, DEADLOCKS)?;
        server.drop(database)?;
        Ok((told, deadlocks))
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LanewayRun => "laneway, one run",
            Self::LanewayRuns => "laneway, a run for each",
            Self::Graphile => "graphile-worker",
            Self::GraphileBatched => "graphile-worker, batched",
            Self::PgBoss => "pg-boss, batch",
            Self::Procrastinate => "procrastinate",
        }
    }

    fn database(self) -> &'static str {
        match self {
            Self::LanewayRun => "bench_run",
            Self::LanewayRuns => "bench_runs",
            Self::Graphile => "bench_graphile",
            Self::GraphileBatched => "bench_graphile_batched",
            Self::PgBoss => "bench_pgboss",
            Self::Procrastinate => "bench_procrastinate",
        }
    }

    /// How its worker is set up to empty a queue, and to wait for a single job.
    fn variants(self) -> (&'static str, &'static str) {
        match self {
            Self::LanewayRun => ("run", "run"),
            Self::LanewayRuns => ("runs", "runs"),
            Self::Graphile | Self::Procrastinate => ("default", "default"),
            Self::GraphileBatched => ("batched", "batched"),
            Self::PgBoss => ("batch", "notify"),
        }
    }

    /// What is the same as for another of these is not measured twice.
    fn enqueues_singly(self) -> bool {
        !matches!(self, Self::LanewayRun | Self::GraphileBatched)
    }

    fn job(self, places: &Places, url: &str) -> Result<Job> {
        let dir = places.work.join("nodes").join(self.database());
        fresh_dir(&dir)?;
        let node = places.tools.join(crate::install::NODE);
        let python = places.tools.join("venv/bin/python");
        let driver = |file: &str| places.drivers.join(file);
        let mut job = match self {
            Self::LanewayRun | Self::LanewayRuns => Job::new(&dir, &[text(&places.own)?, "drive", "queue"]),
            Self::Graphile | Self::GraphileBatched => {
                Job::new(&dir, &[text(&node)?, text(&driver("graphile_queue.mjs"))?])
            }
            Self::PgBoss => Job::new(&dir, &[text(&node)?, text(&driver("pgboss_queue.mjs"))?]),
            Self::Procrastinate => {
                Job::new(&dir, &[text(&python)?, text(&driver("procrastinate_queue.py"))?])
            }
        };
        let modules = text(&places.tools.join("npm/node_modules"))?.to_owned();
        let laneway = text(&places.laneway)?.to_owned();
        let named = [("DATABASE_URL", url.to_owned()), ("MODULES", modules), ("WARDEN", laneway)];
        job.env = named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        job.env.push(("NODE_ENV".to_owned(), "production".to_owned()));
        job.leftovers = vec![".laneway".to_owned()];
        Ok(job)
    }
}

/// One subject on the server.
struct Runner<'a> {
    queue: Queue,
    sizes: Sizes,
    places: &'a Places,
    server: &'a Server,
    figures: Figures,
}

impl Runner<'_> {
    fn jobs(&self) -> usize {
        if self.queue == Queue::Procrastinate { self.sizes.few } else { self.sizes.jobs }
    }

    fn say<T: for<'de> Deserialize<'de>>(&self, words: &[&str]) -> Result<T> {
        let mut job = self.queue.job(self.places, &self.server.url(self.queue.database()))?;
        job.words.extend(words.iter().map(|word| (*word).to_owned()));
        let told = job.stdout()?;
        serde_json::from_slice(&told).with_context(|| format!("{} told no figures", self.queue.name()))
    }

    fn set_up(&self, is_counted: bool) -> Result<()> {
        self.server.fresh(self.queue.database(), is_counted)?;
        self.say::<serde_json::Value>(&["setup"])?;
        Ok(())
    }

    fn bulk(&self) -> Result<f64> {
        let (jobs, variant) = (self.jobs(), self.queue.variants().0);
        let told: Seconds = self.say(&["bulk", &jobs.to_string(), variant])?;
        Ok(jobs as f64 / told.seconds)
    }

    fn drain(&self) -> Result<f64> {
        let (jobs, variant) = (self.jobs(), self.queue.variants().0);
        let told: Seconds = self.say(&["drain", &jobs.to_string(), &CONCURRENCY.to_string(), variant])?;
        Ok(jobs as f64 / told.seconds)
    }

    fn round(&mut self) -> Result<()> {
        self.set_up(false)?;
        let bulk = self.bulk()?;
        self.figures.bulk.push(bulk);
        let drain = self.drain()?;
        self.figures.drain.push(drain);
        if self.queue.enqueues_singly() {
            self.set_up(false)?;
            let singles = self.sizes.singles;
            let told: Seconds = self.say(&["single", &singles.to_string(), &CALLERS.to_string()])?;
            self.figures.single.push(singles as f64 / told.seconds);
            self.set_up(false)?;
            let (samples, variant) = (self.sizes.samples.to_string(), self.queue.variants().1);
            let told: Delays = self.say(&["latency", &samples, &CONCURRENCY.to_string(), variant])?;
            let delays = sorted(told.ms);
            self.figures.p50.extend(percentile(&delays, 0.5));
            self.figures.p99.extend(percentile(&delays, 0.99));
        }
        self.server.drop(self.queue.database())
    }

    /// What a job costs the server to be enqueued with others, and to be done.
    fn count(&self) -> Result<(Cost, Cost)> {
        self.set_up(true)?;
        let database = self.queue.database();
        let before = self.server.counts(database)?;
        self.bulk()?;
        let filled = self.server.counts(database)?;
        self.drain()?;
        let after = self.server.counts(database)?;
        self.server.drop(database)?;
        Ok((filled.per_task(before, self.jobs()), after.per_task(filled, self.jobs())))
    }
}

pub(crate) fn contest(
    queues: &[Queue],
    sizes: Sizes,
    places: &Places,
    server: &Server,
) -> Result<Vec<QueueResult>> {
    let runner = |queue: &Queue| Runner { queue: *queue, sizes, places, server, figures: Figures::default() };
    let mut runners: Vec<Runner<'_>> = queues.iter().map(runner).collect();
    let mut costs = Vec::new();
    for runner in &runners {
        note(&format!("queue: counting {}", runner.queue.name()));
        costs.push(runner.count()?);
    }
    for round in 0..sizes.rounds {
        note(&format!("queue: round {} of {}", round + 1, sizes.rounds));
        let first = round % runners.len();
        runners.rotate_left(first);
        for runner in &mut runners {
            runner.round()?;
        }
        runners.rotate_right(first);
    }
    let results = runners.into_iter().zip(costs).map(|(runner, (bulk_cost, drain_cost))| {
        let (jobs, Figures { bulk, single, drain, p50, p99 }) = (runner.jobs(), runner.figures);
        Ok(QueueResult {
            queue: runner.queue,
            jobs,
            bulk_per_s: Spread::of(bulk),
            single_per_s: Spread::of(single),
            drain_per_s: Spread::of(drain).context("no rounds were run")?,
            start_p50_ms: Spread::of(p50),
            start_p99_ms: Spread::of(p99),
            bulk_cost,
            drain_cost,
        })
    });
    results.collect()
}
