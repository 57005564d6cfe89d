//! `service`: what `laneway serve` takes while nothing happens, how soon it is ready, how much it answers in a second, and what a
//! thousand listeners cost it. Requests come from wrk, beside figures of the same run that bound them.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use laneway_core::definition::{Source, compile};
use laneway_store::Open;
use laneway_store::model::{NewSession, Submission};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::Value;

use crate::install;
use crate::meter::program;
use crate::report::note;
use crate::servers::{self, PeerServer};
use crate::single::{cpu_s, pss_mb, rss_mb, warden_of};
use crate::stats::{Spread, percentile, sorted};
use crate::subject::{Peer, Places, fresh_dir, text};

/// What is submitted: one step that does nothing.
const DOCUMENT: &str = "name: nothing\nsteps: {a: {command: [/bin/true]}}\n";

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
        let server = Server::start(places, &dir, &["--no-worker"])?;
        ready.push(server.ready_ms);
        server.end()?;
    }
    note("service: idle");
    let idle_for = Duration::from_secs(if is_quick { 2 } else { 20 });
    let (idle_rss_mb, idle_pss_mb, idle_cpu_percent) = idle(places, &dir, idle_for)?;
    let others: Result<Vec<PeerServer>> =
        peers.iter().map(|peer| servers::measure(*peer, rounds.max(3), idle_for, places)).collect();
    let window = if is_quick { 1 } else { 4 };
    let server = Server::start(places, &dir, &["--no-worker"])?;
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

fn body() -> String {
    serde_json::json!({ "document": DOCUMENT }).to_string()
}

fn idle(places: &Places, dir: &Path, window: Duration) -> Result<(f64, f64, f64)> {
    let server = Server::start(places, dir, &[])?;
    let node = server.child.id();
    let warden = warden_of(node)?;
    // What the start left to do is not idleness; a node looks for work ever more rarely.
    std::thread::sleep(Duration::from_secs(15));
    let cpu = || -> Result<f64> { Ok(cpu_s(node)? + cpu_s(warden)?) };
    let (before, begun) = (cpu()?, Instant::now());
    std::thread::sleep(window);
    let (used, seconds) = (cpu()? - before, begun.elapsed().as_secs_f64());
    let (rss, pss) = (rss_mb(node)? + rss_mb(warden)?, pss_mb(node)? + pss_mb(warden)?);
    server.end()?;
    Ok((rss, pss, 100.0 * used / seconds))
}

/// What it takes when it has run many tasks, of runs of a thousand, and has nothing to do again.
fn after_load(places: &Places, dir: &Path, tasks: usize) -> Result<f64> {
    const OF_A_RUN: usize = 1_000;
    let server = Server::start(places, dir, &["--slots", "8"])?;
    let steps: String = (0..OF_A_RUN).map(|step| format!("  s{step}: {{command: [/bin/true]}}\n")).collect();
    let document = format!("name: load\nmax_parallel: 8\nsteps:\n{steps}");
    let body = serde_json::json!({ "document": document }).to_string();
    for _ in 0..tasks.div_ceil(OF_A_RUN) {
        let answer: Value = serde_json::from_str(&server.ask("POST", "/v1/runs", Some(&body))?)?;
        server.wait_for(answer["run"].as_str().context("no run")?, Duration::from_millis(20))?;
    }
    std::thread::sleep(Duration::from_secs(5));
    let node = server.child.id();
    let rss = rss_mb(node)? + rss_mb(warden_of(node)?)?;
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
                plan: Arc::clone(&plan),
                document: DOCUMENT.into(),
                dir: "/".into(),
                bundle: None,
                params: serde_json::Map::new(),
                max_parallel: 4,
                session,
                is_shared: true,
                is_paused: false,
                key: None,
                by: "bench".into(),
                origin: None,
                parent: None,
                no_cache: false,
            };
            store.submit(submission).await?;
            count += 1;
        }
        Ok(f64::from(count) / begun.elapsed().as_secs_f64())
    })
}

fn listeners(places: &Places, dir: &Path, count: usize, samples: usize) -> Result<ServiceResult> {
    let server = Server::start(places, dir, &[])?;
    let run = server.submit()?;
    let before_ms = server.starts(samples)?;
    let before = rss_mb(server.child.id())?;
    let mut open = Vec::with_capacity(count);
    for _ in 0..count {
        let mut stream = server.connect(&format!("/v1/events?runs={run}:0&nodes=0"))?;
        let mut begun = [0; 12];
        stream.read_exact(&mut begun)?;
        ensure!(&begun == b"HTTP/1.1 200", "a listener was refused: {}", String::from_utf8_lossy(&begun));
        open.push(stream);
    }
    std::thread::sleep(Duration::from_secs(1));
    let grown = rss_mb(server.child.id())? - before;
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

/// A server with a store of its own in a directory.
struct Server {
    child: Child,
    address: String,
    token: String,
    ready_ms: f64,
}

impl Server {
    fn start(places: &Places, dir: &Path, more: &[&str]) -> Result<Self> {
        let store = dir.join("store");
        fresh_dir(&store)?;
        let mut command = program(&places.laneway);
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(more).current_dir(&store);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let begun = Instant::now();
        let mut child = command.spawn().context("the server cannot be started")?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("it says nothing")?).read_line(&mut line)?;
        let address =
            line.trim().strip_prefix("listening at http://").context("it does not listen")?.to_owned();
        let token =
            fs::read_to_string(store.join(".laneway/admin.token")).context("its token")?.trim().to_owned();
        let mut server = Self { child, address, token, ready_ms: 0.0 };
        let answer = server.ask("GET", "/readyz", None)?;
        ensure!(answer.contains("\"ok\"") || answer.contains("ready"), "it is not ready: {answer}");
        server.ready_ms = begun.elapsed().as_secs_f64() * 1_000.0;
        Ok(server)
    }

    fn end(mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).context("the server cannot be ended")?;
        self.child.wait().context("the server did not end")?;
        Ok(())
    }

    /// A connection on which something was asked for.
    fn connect(&self, path: &str) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, token) = (&self.address, &self.token);
        write!(stream, "GET {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\r\n")?;
        Ok(stream)
    }

    fn ask(&self, method: &str, path: &str, body: Option<&str>) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let (host, token, body) = (&self.address, &self.token, body.unwrap_or_default());
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 2") => Ok(body.to_owned()),
            _ => bail!("{method} {path} was answered with {answer}"),
        }
    }

    fn submit(&self) -> Result<String> {
        let answer: Value = serde_json::from_str(&self.ask("POST", "/v1/runs", Some(&body()))?)?;
        Ok(answer["run"].as_str().context("no run")?.to_owned())
    }

    fn wait_for(&self, run: &str, look_every: Duration) -> Result<Value> {
        let begun = Instant::now();
        loop {
            let run: Value = serde_json::from_str(&self.ask("GET", &format!("/v1/runs/{run}"), None)?)?;
            if run["status"] == "succeeded" {
                return Ok(run);
            }
            ensure!(begun.elapsed() < Duration::from_secs(60), "a run did not end: {}", run["status"]);
            std::thread::sleep(look_every);
        }
    }

    /// From submit to start, by the store's clock: the median of some runs, one after the other.
    fn starts(&self, samples: usize) -> Result<f64> {
        let mut took = Vec::with_capacity(samples);
        for _ in 0..samples {
            let run = self.submit()?;
            let ended = self.wait_for(&run, Duration::from_millis(5))?;
            let at = |value: &Value| -> Result<f64> {
                let at: jiff::Timestamp = value.as_str().context("no moment")?.parse()?;
                Ok(at.as_millisecond() as f64)
            };
            took.push(at(&ended["tasks"][0]["started_at"])? - at(&ended["submitted_at"])?);
        }
        percentile(&sorted(took), 0.5).context("nothing was started")
    }

    fn wrk(&self, dir: &Path, path: &str, connections: u32, seconds: u64, post: Option<&str>) -> Result<f64> {
        let script = dir.join("ask.lua");
        let body = post
            .map(|body| format!("wrk.method = \"POST\"\nwrk.body = [==[{body}]==]\n"))
            .unwrap_or_default();
        let token = &self.token;
        fs::write(
            &script,
            format!(
                "{body}wrk.headers[\"authorization\"] = \"Bearer {token}\"\n\
                 wrk.headers[\"content-type\"] = \"application/json\"\n"
            ),
        )?;
        let (connections, window) = (connections.to_string(), format!("{seconds}s"));
        let mut command = program("wrk");
        command.args(["--threads", "1", "--connections", &connections, "--duration", &window, "--script"]);
        command.arg(&script).arg(format!("http://{}{path}", self.address));
        let output = command.output().context("wrk cannot be started")?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && !said.contains("Non-2xx"), "wrk says of {path}: {said}");
        let rate = said.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
        rate.and_then(|rate| rate.trim().parse().ok()).with_context(|| format!("wrk tells no rate: {said}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
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
