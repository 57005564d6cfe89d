//! `containers`: warm tasks beside the bare API calls that cannot be left out of them, and beside `docker run --rm`, on one
//! engine and interleaved. Owns the measurement; goals are in `goal.rs`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use laneway_core::definition::{Container, Pool, PoolMode};
use laneway_core::id::{InstanceId, RunId, SessionId};
use laneway_engine::container::pool::{Job, PoolMeans, PoolView, Pools, What, execute};
use laneway_engine::container::{Bind, Docker, Exec, HostMounts, Spec, labels};
use laneway_engine::process::{Outcome, Program, StopSignal};
use laneway_engine::warden::{Warden, WardenCommand};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::install;
use crate::meter;
use crate::report::note;
use crate::stats::Spread;
use crate::subject::{Peer, Places, fresh_dir};

/// What `cargo xtask docker` brings along.
const IMAGE: &str = "laneway-test/busybox:1";

/// Where those of the bare calls see the directory in which all of them make a file when they begin.
const BESIDE: &str = "/beside";

/// How many containers a lane has.
const WIDTH: u32 = 8;

/// How many lanes of each kind a round has: when eight programs begin on a few cores is mostly chance, and one lane in a
/// round says little.
const LANES: usize = 5;

/// Everything of one run, in milliseconds.
#[derive(Debug, Serialize)]
pub(crate) struct ContainersResult {
    /// A task in a container that was paused.
    pub(crate) warm_ms: Spread,
    /// Unpause, exec and the exit code, and nothing around it.
    pub(crate) bare_ms: Spread,
    /// `docker run --rm`.
    pub(crate) cold_ms: Spread,
    /// A run of one container step by Dagu, its program's start included.
    pub(crate) dagu_ms: Option<Spread>,
    /// From the first to the last start of eight tasks that are given at once.
    pub(crate) lane_ms: Spread,
    pub(crate) bare_lane_ms: Spread,
    /// From the word until nothing is left of eight that run.
    pub(crate) abort_ms: Spread,
    pub(crate) bare_abort_ms: Spread,
}

pub(crate) fn measure(
    rounds: usize,
    host: &str,
    peers: &[Peer],
    places: &Places,
) -> Result<ContainersResult> {
    let dir = places.work.join("containers");
    fresh_dir(&dir.join("scratch"))?;
    fresh_dir(&dir.join("work"))?;
    fresh_dir(&dir.join("dagu"))?;
    let dagu = peers.contains(&Peer::Dagu).then(|| places.tools.join(install::DAGU));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut bench = Bench { dagu, ..Bench::new(host, dir, places)? };
        let measured = bench.measure(rounds).await;
        bench.pools.close().await;
        bench.clear().await;
        measured
    })
}

struct Bench {
    docker: Docker,
    host: String,
    dir: PathBuf,
    dagu: Option<PathBuf>,
    pools: Pools,
    /// Made without Laneway, for the bare calls.
    bare: Vec<String>,
}

impl Bench {
    fn new(host: &str, dir: PathBuf, places: &Places) -> Result<Self> {
        let docker = Docker::at(host);
        let command = WardenCommand {
            program: places.laneway.clone(),
            args: vec!["warden".into()],
            lock: None,
            lease: None,
            use_cgroups: true,
            is_leased: false,
        };
        let id = format!("0199f2a0-0000-7000-8000-{:012x}", std::process::id());
        let (session, instance) = (SessionId::parse(&id), InstanceId::parse(&id));
        let (session, instance) = session.zip(instance).context("an id")?;
        let pools = Pools::new(PoolMeans {
            docker: docker.clone(),
            warden: Warden::start(command).context("no warden")?,
            host_mounts: HostMounts::All,
            session,
            labels: labels::of_node(instance, session),
            scratch: dir.join("scratch"),
            ports: 49200..=49300,
            start_concurrency: 10,
            told: None,
        });
        Ok(Self { docker, host: host.to_owned(), dir, dagu: None, pools, bare: Vec::new() })
    }

    async fn measure(&mut self, rounds: usize) -> Result<ContainersResult> {
        self.warm_up().await?;
        let (mut figures, mut dagu): ([Vec<f64>; 7], Vec<f64>) = Default::default();
        for round in 1..=rounds {
            note(&format!("containers: round {round} of {rounds}"));
            figures[0].push(self.warm_task().await?);
            figures[1].push(bare_task(&self.docker, &self.bare[0]).await?);
            figures[2].push(self.cold()?);
            dagu.extend(self.dagu.as_deref().map(|program| self.dagu_run(program)).transpose()?);
            for _ in 0..LANES {
                figures[3].push(self.lane().await?);
                figures[4].push(self.bare_lane().await?);
            }
            figures[5].push(self.abort().await?);
            figures[6].push(self.bare_abort().await?);
            self.warm_up().await?;
        }
        let mut spreads = figures.into_iter().map(|values| Spread::of(values).context("no rounds"));
        let mut next = || spreads.next().context("seven figures")?;
        Ok(ContainersResult {
            warm_ms: next()?,
            bare_ms: next()?,
            cold_ms: next()?,
            dagu_ms: Spread::of(dagu),
            lane_ms: next()?,
            bare_lane_ms: next()?,
            abort_ms: next()?,
            bare_abort_ms: next()?,
        })
    }

    /// All containers of both kinds are there and paused.
    async fn warm_up(&mut self) -> Result<()> {
        // Twice: of those that are started by the first lane, one that came too late for it has not slept yet.
        self.lane().await?;
        self.lane().await?;
        while self.bare.len() < WIDTH as usize {
            let settings = Container { image: IMAGE.to_owned(), ..Container::default() };
            let argv = ["sleep", "86400"].map(str::to_owned).to_vec();
            let binds = vec![Bind {
                source: self.work(),
                target: BESIDE.to_owned(),
                is_read_only: false,
                follows_mounts: false,
            }];
            let body = Spec { settings, argv, binds, ..Spec::default() }.body();
            let name = format!("laneway-bench-{}-{}", std::process::id(), self.bare.len());
            let id = self.docker.create(&name, body).await?;
            self.bare.push(id.clone());
            self.docker.start(&id).await?;
            self.docker.pause(&id).await?;
        }
        Ok(())
    }

    async fn warm_task(&mut self) -> Result<f64> {
        let begun = Instant::now();
        run(&self.pools, self.job("true"), &StopSignal::new()).await?;
        let took = millis(begun.elapsed());
        self.rested().await;
        Ok(took)
    }

    fn cold(&self) -> Result<f64> {
        let mut command = meter::program("docker");
        command.args(["--host", &self.host, "run", "--rm", IMAGE, "/bin/sh", "-c", "true"]);
        let begun = Instant::now();
        if !command.status().context("`docker` could not be started")?.success() {
            bail!("`docker run` failed");
        }
        Ok(millis(begun.elapsed()))
    }

    fn dagu_run(&self, dagu: &Path) -> Result<f64> {
        let home = self.dir.join("dagu");
        let step = format!(
            "steps:\n  - name: a\n    executor: {{type: docker, config: {{image: \"{IMAGE}\", pull: missing, autoRemove: true}}}}\n    command: /bin/true\n"
        );
        std::fs::write(home.join("step.yaml"), step)?;
        let mut command = meter::program(dagu);
        command.args(["start", "-q", "step.yaml"]).current_dir(&home).stdout(Stdio::null());
        command.env("DOCKER_HOST", &self.host).env("HOME", &home).env("DAGU_HOME", &home);
        let begun = Instant::now();
        if !command.status().context("Dagu could not be started")?.success() {
            bail!("Dagu's container step failed");
        }
        Ok(millis(begun.elapsed()))
    }

    async fn lane(&mut self) -> Result<f64> {
        let mut tasks = JoinSet::new();
        for at in 0..WIDTH {
            let (pools, job) = (self.pools.clone(), self.job(&format!(": > begun-{at}")));
            tasks.spawn(async move { run(&pools, job, &StopSignal::new()).await });
        }
        all(tasks).await?;
        self.rested().await;
        self.spread()
    }

    async fn bare_lane(&self) -> Result<f64> {
        let mut tasks = JoinSet::new();
        for (at, id) in self.bare.iter().enumerate() {
            let (docker, id) = (self.docker.clone(), id.clone());
            tasks.spawn(async move { call(&docker, &id, &format!(": > {BESIDE}/begun-{at}")).await });
        }
        all(tasks).await?;
        for id in &self.bare {
            self.docker.pause(id).await?;
        }
        self.spread()
    }

    /// Between the first and the last of those who began: each has made a file then, by one clock.
    fn spread(&self) -> Result<f64> {
        let mut begun = Vec::new();
        for at in 0..WIDTH {
            let file = self.work().join(format!("begun-{at}"));
            begun.push(std::fs::metadata(&file)?.modified()?);
            std::fs::remove_file(file)?;
        }
        let (first, last) = begun.iter().min().zip(begun.iter().max()).context("a lane has tasks")?;
        Ok(millis(last.duration_since(*first)?))
    }

    fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Eight that sleep are stopped; it is over when the engine has none of them.
    async fn abort(&mut self) -> Result<f64> {
        let stop = StopSignal::new();
        let mut tasks = JoinSet::new();
        for at in 0..WIDTH {
            let (pools, stop) = (self.pools.clone(), stop.clone());
            let job = self.job(&format!(": > ready-{at}; exec sleep 1000"));
            tasks.spawn(async move { execute(&pools, job, &stop).await.outcome });
        }
        for at in 0..WIDTH {
            let ready = self.work().join(format!("ready-{at}"));
            while !ready.exists() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            std::fs::remove_file(ready)?;
        }
        let begun = Instant::now();
        stop.stop();
        while let Some(ended) = tasks.join_next().await {
            if ended? != Outcome::Stopped {
                bail!("a task was not stopped");
            }
        }
        Ok(millis(begun.elapsed()))
    }

    async fn bare_abort(&mut self) -> Result<f64> {
        for id in &self.bare {
            self.docker.unpause(id).await?;
        }
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for id in self.bare.drain(..) {
            let docker = self.docker.clone();
            tasks.spawn(async move {
                docker.kill(&id, "KILL").await?;
                docker.remove(&id).await
            });
        }
        while let Some(ended) = tasks.join_next().await {
            ended??;
        }
        Ok(millis(begun.elapsed()))
    }

    /// Waits until all are clean and paused: that is off a task's path, and must not be in the next one's.
    async fn rested(&self) {
        let is_busy = |view: &PoolView| view.counts.running + view.counts.starting > 0;
        while self.pools.views().iter().any(is_busy) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    async fn clear(&mut self) {
        for id in self.bare.drain(..) {
            if let Err(error) = self.docker.remove(&id).await {
                note(&format!("{id} is left: {error}"));
            }
        }
    }

    fn job(&self, script: &str) -> Job {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let program = Program::Command { argv };
        Job {
            pool: pool(),
            dormancy: None,
            run: RunId::parse("0199f2a0-0000-7000-8000-00000000bead").expect("an id"),
            step: "bench".to_owned(),
            attempt: 1,
            dir: self.work(),
            what: What::Exec { program, env: Vec::new(), workdir: None },
            log: self.dir.join("log").into(),
            log_cap: 1 << 20,
            masks: Default::default(),
            timeout: None,
            kill_grace: Duration::from_secs(5),
            effects: laneway_engine::effect::Effects::default(),
        }
    }
}

fn pool() -> Pool {
    Pool {
        name: "bench".to_owned(),
        container: Container { image: IMAGE.to_owned(), ..Container::default() },
        max: NonZeroU32::new(WIDTH).expect("it is not zero"),
        mode: PoolMode::Multi,
        dormancy: Pool::DORMANCY,
        acquire_timeout: None,
        command: Vec::new(),
        endpoint: None,
        health: None,
        health_interval: Pool::HEALTH_INTERVAL,
        health_timeout: Pool::HEALTH_TIMEOUT,
    }
}

async fn run(pools: &Pools, job: Job, stop: &StopSignal) -> Result<()> {
    match execute(pools, job, stop).await.outcome {
        Outcome::Exited(0) => Ok(()),
        other => bail!("a warm task ended with {other:?}"),
    }
}

async fn bare_task(docker: &Docker, id: &str) -> Result<f64> {
    let begun = Instant::now();
    call(docker, id, "true").await?;
    let took = millis(begun.elapsed());
    docker.pause(id).await?;
    Ok(took)
}

/// What no warm task can do without.
async fn call(docker: &Docker, id: &str, script: &str) -> Result<()> {
    docker.unpause(id).await?;
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let code = docker.run_to_end(id, Exec { argv, ..Exec::default() }).await?;
    if code != 0 {
        bail!("a bare exec ended with {code}");
    }
    Ok(())
}

async fn all(mut tasks: JoinSet<Result<()>>) -> Result<()> {
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

pub(crate) fn show(result: &ContainersResult) -> String {
    let row =
        |what: &str, of: &Spread| format!("| {what} | {:.0} ({:.0}–{:.0}) |\n", of.median, of.min, of.max);
    let rows = [
        row("a warm task", &result.warm_ms),
        row("unpause, exec and exit code, bare", &result.bare_ms),
        row("`docker run --rm`", &result.cold_ms),
        row("eight warm tasks, from the first start to the last", &result.lane_ms),
        row("the same, bare", &result.bare_lane_ms),
        row("eight that run, aborted until nothing is left", &result.abort_ms),
        row("the same, bare kill and remove", &result.bare_abort_ms),
    ];
    let dagu = result.dagu_ms.as_ref().map(|spread| row("dagu: a run of one container step", spread));
    format!("## containers\n\n| what | ms |\n|---|---|\n{}{}\n", rows.concat(), dagu.unwrap_or_default())
}
