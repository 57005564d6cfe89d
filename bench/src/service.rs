//! `service`: what `laneway serve` takes while nothing happens, how soon it is ready, how much it answers in a second, and what a
//! thousand listeners cost it. Requests come from wrk, beside figures of the same run that bound them.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use laneway_core::definition::{Source, compile};
use laneway_store::Open;
use laneway_store::model::{NewSession, Submission};
use serde::Serialize;
use serde_json::Value;

use crate::install;
use crate::report::note;
use crate::server::{DOCUMENT, Server, body};
use crate::servers::{self, PeerServer};
use crate::single::{cpu_s, processes_of, pss_mb, rss_mb, sum};
use crate::stats::Spread;
use crate::subject::{Peer, Places, fresh_dir, text};

/// Connections of those who read, and of those who submit.
const READERS: u32 = 16;
const SUBMITTERS: u32 = 64;

const LISTENERS: usize = 1_000;

#[derive(Debug, Serialize)]
pub(crate) struct ServiceResult {
    /// From the start of the program until it answers.
    pub(crate) ready_ms: Spread,
    /// With its warden; what both share is counted twice.
    pub(crate) idle_rss_mb: f64,
    /// The same, counted once.
    pub(crate) idle_pss_mb: f64,
    /// Of one core, with its warden.
    pub(crate) idle_cpu_percent: f64,
    pub(crate) health_per_s: Spread,
    /// Of a run that has ended, and of one that waits.
    pub(crate) read_per_s: Spread,
    pub(crate) read_waiting_per_s: Spread,
    pub(crate) submit_per_s: Spread,
    /// The same rows, each with a commit of its own.
    pub(crate) bare_submit_per_s: Spread,
    pub(crate) listeners: usize,
    /// By how much they made the server grow, each.
    pub(crate) listener_kb: f64,
    /// From submit to the start of a step, without them and with them.
    pub(crate) start_p50_ms: f64,
    pub(crate) start_p50_ms_with_listeners: f64,
    /// How many tasks it had run when it was looked at again, doing nothing, and what it took then.
    pub(crate) load_tasks: usize,
    pub(crate) rss_mb_after_load: f64,
    /// Servers of others, while nothing happens.
    pub(crate) peers: Vec<PeerServer>,
}

pub(crate) fn measure(
    rounds: usize,
    is_quick: bool,
    peers: &[Peer],
    places: &Places,
) -> Result<ServiceResult> {
    install::debian("wrk", "wrk")?;
    let dir = places.work.join("service");
    fresh_dir(&dir)?;
    let mut ready = Vec::new();
    for _ in 0..rounds.max(3) {
        let server = Server::start(places, &fresh(&dir)?, &["--no-worker"])?;
        ready.push(server.ready_ms);
        server.end()?;
    }
    note("service: idle");
    let idle_for = Duration::from_secs(if is_quick { 2 } else { 20 });
    let (idle_rss_mb, idle_pss_mb, idle_cpu_percent) = idle(places, &dir, idle_for)?;
    let others: Result<Vec<PeerServer>> =
        peers.iter().map(|peer| servers::measure(*peer, rounds.max(3), idle_for, places)).collect();
    let window = if is_quick { 1 } else { 4 };
    let server = Server::start(places, &fresh(&dir)?, &["--no-worker"])?;
    let (ended, waiting) = (server.submit()?, server.submit()?);
    server.ask("POST", &format!("/v1/runs/{ended}/cancel"), None)?;
    let (mut health, mut read, mut submit, mut bare) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut read_waiting = Vec::new();
    for round in 1..=rounds {
        note(&format!("service: round {round} of {rounds}"));
        health.push(server.wrk(&dir, "/healthz", READERS, window, None)?);
        read.push(server.wrk(&dir, &format!("/v1/runs/{ended}"), READERS, window, None)?);
        read_waiting.push(server.wrk(&dir, &format!("/v1/runs/{waiting}"), READERS, window, None)?);
        submit.push(server.wrk(&dir, "/v1/runs", SUBMITTERS, window, Some(&body()))?);
        bare.push(bare_submits(&dir.join("bare"), Duration::from_secs(window))?);
    }
    server.end()?;
    note("service: listeners");
    let listening =
        listeners(places, &dir, if is_quick { 100 } else { LISTENERS }, if is_quick { 10 } else { 60 })?;
    let load_tasks = if is_quick { 2_000 } else { 100_000 };
    note(&format!("service: after {load_tasks} tasks"));
    let rss_mb_after_load = after_load(places, &dir, load_tasks)?;
    let spread = |values: Vec<f64>| Spread::of(values).context("no round was measured");
    Ok(ServiceResult {
        ready_ms: spread(ready)?,
        idle_rss_mb,
        idle_pss_mb,
        idle_cpu_percent,
        health_per_s: spread(health)?,
        read_per_s: spread(read)?,
        read_waiting_per_s: spread(read_waiting)?,
        submit_per_s: spread(submit)?,
        bare_submit_per_s: spread(bare)?,
        load_tasks,
        rss_mb_after_load,
        peers: others?,
        ..listening
    })
}

/// An empty directory for a store.
fn fresh(dir: &Path) -> Result<PathBuf> {
    let store = dir.join("store");
    fresh_dir(&store)?;
    Ok(store)
}

fn idle(places: &Places, dir: &Path, window: Duration) -> Result<(f64, f64, f64)> {
    let server = Server::start(places, &fresh(dir)?, &[])?;
    let processes = processes_of(server.pid())?;
    // What the start left to do is not idleness; a node looks for work ever more rarely.
    std::thread::sleep(Duration::from_secs(15));
    let cpu = || sum(&processes, cpu_s);
    let (before, begun) = (cpu()?, Instant::now());
    std::thread::sleep(window);
    let (used, seconds) = (cpu()? - before, begun.elapsed().as_secs_f64());
    let (rss, pss) = (sum(&processes, rss_mb)?, sum(&processes, pss_mb)?);
    server.end()?;
    Ok((rss, pss, 100.0 * used / seconds))
}

/// What it takes when it has run many tasks, of runs of a thousand, and has nothing to do again.
fn after_load(places: &Places, dir: &Path, tasks: usize) -> Result<f64> {
    const OF_A_RUN: usize = 1_000;
    let server = Server::start(places, &fresh(dir)?, &["--slots", "8"])?;
    let steps: String = (0..OF_A_RUN).map(|step| format!("  s{step}: {{command: [/bin/true]}}\n")).collect();
    let document = format!("name: load\nmax_parallel: 8\nsteps:\n{steps}");
    let body = serde_json::json!({ "document": document }).to_string();
    for _ in 0..tasks.div_ceil(OF_A_RUN) {
        let answer: Value = serde_json::from_str(&server.ask("POST", "/v1/runs", Some(&body))?)?;
        server.wait_for(answer["run"].as_str().context("no run")?, Duration::from_millis(20))?;
    }
    std::thread::sleep(Duration::from_secs(5));
    let rss = server.rss_mb()?;
    server.end()?;
    Ok(rss)
}

/// One run after the other, each acknowledged before the next.
fn bare_submits(dir: &Path, window: Duration) -> Result<f64> {
    fresh_dir(dir)?;
    let store = laneway_store::open(text(&dir.join("laneway.db"))?, Open::Create)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let session = store.register(NewSession::ephemeral("bench", 1)).await?;
        let source = Source { file: "f".into(), default_name: "f".into(), text: DOCUMENT.into() };
        let plan = Arc::new(compile(&source).map_err(|error| anyhow::anyhow!("{}", error.render(false)))?);
        let (begun, mut count) = (Instant::now(), 0_u32);
        while begun.elapsed() < window {
            let submission = Submission {
                dir: "/".into(),
                params: serde_json::Map::new(),
                max_parallel: 4,
                is_shared: true,
                by: "bench".into(),
                ..Submission::new(Arc::clone(&plan), DOCUMENT.into(), session)
            };
            store.submit(submission).await?;
            count += 1;
        }
        Ok(f64::from(count) / begun.elapsed().as_secs_f64())
    })
}

fn listeners(places: &Places, dir: &Path, count: usize, samples: usize) -> Result<ServiceResult> {
    let server = Server::start(places, &fresh(dir)?, &[])?;
    let run = server.submit()?;
    let before_ms = server.starts(samples)?;
    let before = rss_mb(server.pid())?;
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = server.connect(&format!("/v1/events?runs={run}:0&nodes=0"))?;
        let mut begun = [0; 12];
        stream.read_exact(&mut begun)?;
        ensure!(&begun == b"HTTP/1.1 200", "a listener was refused: {}", String::from_utf8_lossy(&begun));
        open.push(stream);
    }
    std::thread::sleep(Duration::from_secs(1));
    let grown = rss_mb(server.pid())? - before;
    let with_ms = server.starts(samples)?;
    drop(open);
    server.end()?;
    let none = Spread { median: 0.0, min: 0.0, max: 0.0, runs: 0 };
    Ok(ServiceResult {
        ready_ms: none,
        idle_rss_mb: 0.0,
        idle_pss_mb: 0.0,
        idle_cpu_percent: 0.0,
        health_per_s: none,
        read_per_s: none,
        read_waiting_per_s: none,
        submit_per_s: none,
        bare_submit_per_s: none,
        listeners: count,
        listener_kb: 1_000.0 * grown / count as f64,
        start_p50_ms: before_ms,
        start_p50_ms_with_listeners: with_ms,
        load_tasks: 0,
        rss_mb_after_load: 0.0,
        peers: Vec::new(),
    })
}

/// As a table.
pub(crate) fn show(result: &ServiceResult) -> String {
    let ServiceResult { ready_ms, health_per_s, read_per_s, read_waiting_per_s, .. } = result;
    let ServiceResult { submit_per_s, bare_submit_per_s, .. } = result;
    let of_health = |reads: &Spread| reads.median / health_per_s.median;
    let (reads, reads_waiting) = (of_health(read_per_s), of_health(read_waiting_per_s));
    let submits = submit_per_s.median / bare_submit_per_s.median;
    let mut table = format!(
        "## service\n\n| what | figure |\n|---|---|\n\
         | ready after, ms | {:.0} ({:.0}–{:.0}) |\n\
         | idle with its warden, MB and % of a core | {:.1} ({:.1} if what they share is counted once) and {:.3} |\n\
         | /healthz, {READERS} connections, 1/s | {:.0} |\n\
         | a run that has ended, {READERS} connections, 1/s | {:.0} ({reads:.2} of that) |\n\
         | a run that waits, {READERS} connections, 1/s | {:.0} ({reads_waiting:.2} of that) |\n\
         | durable POST /v1/runs, {SUBMITTERS} connections, 1/s | {:.0} |\n\
         | the same, each with a commit of its own, 1/s | {:.0} (the service does {submits:.1} times as many) |\n\
         | {} listeners, kB each | {:.1} |\n\
         | submit to start without and with them, p50 ms | {:.1} and {:.1} |\n\
         | after {} tasks, MB | {:.1} |\n",
        ready_ms.median,
        ready_ms.min,
        ready_ms.max,
        result.idle_rss_mb,
        result.idle_pss_mb,
        result.idle_cpu_percent,
        health_per_s.median,
        read_per_s.median,
        read_waiting_per_s.median,
        submit_per_s.median,
        bare_submit_per_s.median,
        result.listeners,
        result.listener_kb,
        result.start_p50_ms,
        result.start_p50_ms_with_listeners,
        result.load_tasks,
        result.rss_mb_after_load,
    );
    for PeerServer { name, ready_ms, idle_rss_mb, idle_cpu_percent } in &result.peers {
        table += &format!(
            "| {name}: ready after, ms; idle, MB and % of a core | {:.0} ({:.0}–{:.0}); {idle_rss_mb:.1} and {idle_cpu_percent:.3} |\n",
            ready_ms.median, ready_ms.min, ready_ms.max
        );
    }
    table + "\n"
}
