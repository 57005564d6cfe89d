//! Laneway as a queue of jobs that do nothing, with the commands that the drivers of the peers have
//! (`bench/drivers/queue.mjs`). Variant `run`: all jobs are tasks of one run. `runs`: each is a run of its own.

use std::convert::Infallible;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use laneway_engine::function::{Call, Functions};
use laneway_engine::worker::Control;
use laneway_store::model::RunFilter;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::enqueue::moment;
use super::many::{Node, plan};
use crate::graph::{Graph, Shape};
use crate::meter::program;
use crate::report::print;

/// Jobs that are being enqueued at once when there are many: a caller that has them all at hand waits for none.
const AT_ONCE: usize = 1_000;

const PAUSE: Duration = Duration::from_millis(25);

const NOOP: &str = "steps:\n  noop: {function: noop}\n";
const STAMPED: &str = "params: {sent: {type: integer, required: true}}\nsteps:\n  noop: {function: noop, with: {sent: \"${{ params.sent }}\"}}\n";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Queue {
    Setup,
    Bulk { jobs: usize, variant: Variant },
    Single { jobs: usize, callers: usize },
    Drain { jobs: usize, concurrency: usize, variant: Variant },
    Latency { samples: usize, concurrency: usize, variant: Variant },
    Pace { samples: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Variant {
    Run,
    Runs,
}

pub(super) async fn drive(queue: Queue) -> Result<()> {
    match queue {
        Queue::Setup => {
            laneway_store::open(&super::many::address()?, laneway_store::Open::Create)?;
            print("{}");
        }
        Queue::Bulk { jobs, variant: Variant::Run } => {
            let document = run_of(jobs);
            let begun = Instant::now();
            let plan = plan(&document)?;
            let planned = begun.elapsed().as_secs_f64();
            let node = Node::begin(&["noop"], None, 8).await?;
            let begun = Instant::now();
            node.submit(&plan, &document).await?;
            let seconds = begun.elapsed().as_secs_f64();
            node.end().await?;
            print(&json!({ "seconds": seconds, "plan_seconds": planned }).to_string());
        }
        Queue::Bulk { jobs, variant: Variant::Runs } => singles(jobs, AT_ONCE).await?,
        Queue::Single { jobs, callers } => singles(jobs, callers).await?,
        Queue::Drain { jobs, concurrency, variant: _ } => drain(jobs, concurrency).await?,
        Queue::Latency { samples, concurrency, variant: _ } => latency(samples, concurrency).await?,
        Queue::Pace { samples } => pace(samples).await?,
    }
    Ok(())
}

/// Every task may run at once, so that nothing waits for a gate: as in the queues beside it.
fn run_of(jobs: usize) -> String {
    let graph = Graph { shape: Shape::Flat(jobs), at_once: u32::try_from(jobs).unwrap_or(u32::MAX) };
    graph.laneway().replace("command: [/bin/true]", "function: noop")
}

async fn singles(jobs: usize, callers: usize) -> Result<()> {
    let node = Arc::new(Node::begin(&["noop"], None, 8).await?);
    // The first is not timed: after it the connection is made, and the class is known.
    let (plan, left) = (plan(NOOP)?, Arc::new(AtomicUsize::new(1)));
    node.submit(&plan, NOOP).await?;
    let begun = Instant::now();
    let mut calls = JoinSet::new();
    for _ in 0..callers.min(jobs) {
        let (node, plan, left) = (Arc::clone(&node), Arc::clone(&plan), Arc::clone(&left));
        calls.spawn(async move {
            while left.fetch_add(1, Ordering::Relaxed) < jobs {
                node.submit(&plan, NOOP).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(called) = calls.join_next().await {
        called.context("a caller has panicked")??;
    }
    let seconds = begun.elapsed().as_secs_f64();
    Arc::into_inner(node).context("a caller is left")?.end().await?;
    print(&json!({ "seconds": seconds }).to_string());
    Ok(())
}

/// From the first job's start until the last one is recorded: the figures of the peers end with the last one's end.
async fn drain(jobs: usize, concurrency: usize) -> Result<()> {
    let node = Arc::new(Node::begin(&["noop"], None, u32::try_from(concurrency)?).await?);
    let (first, done, all) =
        (Arc::new(AtomicI64::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let functions = Functions::new().add("noop", {
        let (first, done, all) = (Arc::clone(&first), Arc::clone(&done), Arc::clone(&all));
        move |_: Call<Value>| {
            if done.fetch_add(1, Ordering::Relaxed) == 0 {
                first.store(moment(), Ordering::Relaxed);
            }
            if done.load(Ordering::Relaxed) >= jobs {
                all.notify_one();
            }
            std::future::ready(Ok::<_, Infallible>(()))
        }
    });
    let control = Control::new();
    let working = {
        let (node, control) = (Arc::clone(&node), control.clone());
        tokio::task::spawn_local(async move { node.work(concurrency, functions, control).await })
    };
    all.notified().await;
    let unfinished = || RunFilter {
        statuses: vec![laneway_core::state::RunStatus::Running],
        limit: 1,
        ..RunFilter::default()
    };
    while !node.store.runs(unfinished()).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let took = moment() - first.load(Ordering::Relaxed);
    control.cancel();
    working.await.context("the worker has panicked")??;
    if done.load(Ordering::Relaxed) != jobs {
        bail!("{} of {jobs} jobs were done", done.load(Ordering::Relaxed));
    }
    Arc::into_inner(node).context("a worker is left")?.end().await?;
    print(&json!({ "seconds": took as f64 / 1e9 }).to_string());
    Ok(())
}

#[derive(Debug, Deserialize)]
struct Sent {
    sent: i64,
}

async fn latency(samples: usize, concurrency: usize) -> Result<()> {
    let node = Arc::new(Node::begin(&["noop"], None, u32::try_from(concurrency)?).await?);
    let (delays, all) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Notify::new()));
    let functions = Functions::new().add("noop", {
        let (delays, all) = (Arc::clone(&delays), Arc::clone(&all));
        move |call: Call<Sent>| {
            let mut delays = delays.lock().unwrap_or_else(PoisonError::into_inner);
            delays.push((moment() / 1_000 - call.input.sent) as f64 / 1e3);
            if delays.len() == samples {
                all.notify_one();
            }
            std::future::ready(Ok::<_, Infallible>(()))
        }
    });
    let control = Control::new();
    let working = {
        let (node, control) = (Arc::clone(&node), control.clone());
        tokio::task::spawn_local(async move { node.work(concurrency, functions, control).await })
    };
    // Until the worker is up and has gone to sleep.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let own = std::env::current_exe().context("this program cannot find its own file")?;
    let mut pace = program(own);
    // A place of its own: to its neighbours it would be a node of this directory.
    std::fs::create_dir_all("pace").context("no directory for the other process")?;
    let mut pace = pace.current_dir("pace").args(["drive", "queue", "pace", &samples.to_string()]).spawn()?;
    all.notified().await;
    control.cancel();
    working.await.context("the worker has panicked")??;
    let ended = pace.wait().context("the other process cannot be waited for")?;
    if !ended.success() {
        bail!("the process that enqueues ended with {ended}");
    }
    Arc::into_inner(node).context("a worker is left")?.end().await?;
    let ms = delays.lock().unwrap_or_else(PoisonError::into_inner).clone();
    print(&json!({ "ms": ms }).to_string());
    Ok(())
}

async fn pace(samples: usize) -> Result<()> {
    let node = Node::begin(&[], None, 1).await?;
    let plan = plan(STAMPED)?;
    for _ in 0..samples {
        let sent = Map::from_iter([("sent".to_owned(), Value::from(moment() / 1_000))]);
        node.store.submit(node.submission(&plan, STAMPED, sent)).await?;
        tokio::time::sleep(PAUSE).await;
    }
    node.end().await
}
