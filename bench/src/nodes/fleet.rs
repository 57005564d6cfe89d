//! Nodes as processes, `laneway worker` each: how much more several of them do than one, and how soon somebody goes on with
//! what one held that was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde::Serialize;

use super::server::Server;
use crate::drive::enqueue::{moment, read};
use crate::meter::program;
use crate::noise::busy_s;
use crate::report::note;
use crate::stats::Spread;
use crate::subject::{Places, fresh_dir, text};

pub(super) const DATABASE: &str = "bench_nodes";
const SLOTS: usize = 4;
/// How long anything here may take but the end of a lease.
const PATIENCE: Duration = Duration::from_secs(60);

/// So many nodes, with steps that sleep for a tenth of a second.
#[derive(Debug, Serialize)]
pub(crate) struct Scaled {
    pub(crate) nodes: usize,
    pub(crate) slots: usize,
    pub(crate) tasks: usize,
    pub(crate) tasks_per_s: Spread,
    /// Of all cores, by everybody.
    pub(crate) cpu_share: Spread,
}

/// Seconds until what a killed node held starts again.
#[derive(Debug, Serialize)]
pub(crate) struct Recovery {
    /// On the same node, started anew, after the former one's warden is gone.
    pub(crate) restarted_s: Spread,
    /// On another node, after the lease has ended.
    pub(crate) elsewhere_s: Option<f64>,
    /// The same, since the node was killed.
    pub(crate) since_killed_s: Option<f64>,
}

/// A `laneway worker`, ended with this.
pub(super) struct Worker {
    process: Child,
    name: String,
}

pub(super) struct Fleet<'a> {
    places: &'a Places,
    server: &'a Server,
    dir: PathBuf,
    url: String,
}

pub(crate) fn scale(nodes: &[usize], rounds: usize, places: &Places, server: &Server) -> Result<Vec<Scaled>> {
    let mut figures: Vec<(Vec<f64>, Vec<f64>)> = nodes.iter().map(|_| Default::default()).collect();
    let tasks = |nodes: usize| nodes * SLOTS * 20;
    for round in 0..rounds {
        note(&format!("nodes: round {} of {rounds}", round + 1));
        for (count, figures) in nodes.iter().zip(&mut figures) {
            let fleet = Fleet::new(places, server)?;
            let workers: Vec<Worker> =
                (0..*count).map(|at| fleet.start(&format!("node-{at}"), SLOTS)).collect::<Result<_>>()?;
            fleet.wait_for_nodes(*count)?;
            let (busy, begun) = (busy_s()?, Instant::now());
            let mut document = String::from("max_parallel: 100000\nsteps:\n");
            (0..tasks(*count))
                .for_each(|task| document += &format!("  t{task}: {{command: [sleep, \"0.1\"]}}\n"));
            fleet.submit(&document)?;
            let millis = fleet
                .wait_for("SELECT max(finished_at - started_at) FROM runs WHERE status = 'succeeded'")?;
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            figures.0.push(tasks(*count) as f64 / (millis as f64 / 1e3));
            figures.1.push((busy_s()? - busy) / begun.elapsed().as_secs_f64() / cores as f64);
            workers.into_iter().try_for_each(Worker::end)?;
        }
    }
    let scaled = nodes.iter().zip(figures).map(|(nodes, (rates, shares))| {
        Ok(Scaled {
            nodes: *nodes,
            slots: SLOTS,
            tasks: tasks(*nodes),
            tasks_per_s: Spread::of(rates).context("no rounds were run")?,
            cpu_share: Spread::of(shares).context("no rounds were run")?,
        })
    });
    scaled.collect()
}

pub(crate) fn recovery(rounds: usize, has_time: bool, places: &Places, server: &Server) -> Result<Recovery> {
    let mut restarted = Vec::new();
    for round in 0..rounds {
        note(&format!("recovery: a node that is started anew, round {} of {rounds}", round + 1));
        let fleet = Fleet::new(places, server)?;
        let (first, stamp) = (fleet.start("node", SLOTS)?, fleet.dir.join("stamp"));
        fleet.wait_for_nodes(1)?;
        fleet.submit_long(&stamp)?;
        let warden = first.warden()?;
        first.kill()?;
        let second = fleet.start("node", SLOTS)?;
        let gone = await_death(warden)?;
        let again = fleet.wait_for_stamp(&stamp, 2, PATIENCE)?;
        restarted.push((again - gone) as f64 / 1e9);
        second.end()?;
    }
    let (mut elsewhere_s, mut since_killed_s) = (None, None);
    if has_time {
        note("recovery: another node, after a lease");
        let fleet = Fleet::new(places, server)?;
        let (first, stamp) = (fleet.start("first", SLOTS)?, fleet.dir.join("stamp"));
        fleet.wait_for_nodes(1)?;
        fleet.submit_long(&stamp)?;
        let second = fleet.start("second", SLOTS)?;
        fleet.wait_for_nodes(2)?;
        let warden = first.warden()?;
        first.kill()?;
        let killed = moment();
        await_death(warden)?;
        let left = server.number(DATABASE, EXPIRES_IN)?;
        let expires = moment() + left * 1_000_000;
        let again = fleet.wait_for_stamp(&stamp, 2, PATIENCE * 3)?;
        elsewhere_s = Some((again - expires) as f64 / 1e9);
        since_killed_s = Some((again - killed) as f64 / 1e9);
        second.end()?;
    }
    let restarted_s = Spread::of(restarted).context("no rounds were run")?;
    Ok(Recovery { restarted_s, elsewhere_s, since_killed_s })
}

/// Milliseconds until the lease of the node that was killed ends.
const EXPIRES_IN: &str = "SELECT expires_at - (extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM sessions WHERE node = 'first'";

impl<'a> Fleet<'a> {
    pub(super) fn new(places: &'a Places, server: &'a Server) -> Result<Self> {
        let dir = places.work.join("nodes/fleet");
        fresh_dir(&dir)?;
        server.fresh(DATABASE, false)?;
        let url = server.url(DATABASE);
        let options = laneway_store::Options { data_dir: dir.join("opened"), ..Default::default() };
        laneway_store::open_with(&url, laneway_store::Open::Create, &options)?;
        Ok(Self { places, server, dir, url })
    }

    /// In a directory of its own, which is its host as far as it can tell.
    pub(super) fn start(&self, name: &str, slots: usize) -> Result<Worker> {
        let dir = self.dir.join(name);
        fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let log = fs::File::create(dir.join("log")).context("a node's log cannot be made")?;
        let mut command = program(&self.places.laneway);
        command.args([
            "--store",
            &self.url,
            "worker",
            "--exit-with-parent",
            "--slots",
            &slots.to_string(),
            "--node-address",
            name,
        ]);
        command.current_dir(&dir).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().context("a worker could not be started")?;
        Ok(Worker { process, name: name.to_owned() })
    }

    fn submit(&self, document: &str) -> Result<()> {
        let file = self.dir.join("workflow.yaml");
        fs::write(&file, document).context("the workflow cannot be written")?;
        let mut command = program(&self.places.laneway);
        command
            .args(["--store", &self.url, "submit", text(&file)?])
            .current_dir(&self.dir)
            .stdin(Stdio::null());
        let output = command.output().context("`laneway submit` could not be started")?;
        if !output.status.success() {
            bail!("`laneway submit`: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(())
    }

    /// A step whose first attempt would last for a quarter of an hour. Returns when it has started.
    fn submit_long(&self, stamp: &Path) -> Result<()> {
        let script = format!(
            "{} {}.$LANEWAY_ATTEMPT; test $LANEWAY_ATTEMPT -gt 1 || exec sleep 900",
            text(&self.places.stamp)?,
            text(stamp)?
        );
        self.submit(&format!(
            "steps:\n  long: {{command: [sh, -c, {}]}}\n",
            serde_json::to_string(&script)?
        ))?;
        self.wait_for_stamp(stamp, 1, PATIENCE)?;
        // Its start is told, and its holder has nothing else to say.
        self.wait_for("SELECT nullif(count(*), 0) FROM tasks WHERE started_at IS NOT NULL")?;
        Ok(())
    }

    pub(super) fn wait_for_nodes(&self, count: usize) -> Result<()> {
        self.wait_for(&format!(
            "SELECT nullif(count(*) >= {count}, false)::int::bigint FROM sessions WHERE offer IS NOT NULL"
        ))?;
        Ok(())
    }

    /// Until the answer is a number.
    pub(super) fn wait_for(&self, sql: &str) -> Result<i64> {
        let begun = Instant::now();
        loop {
            if let Ok(number) = self.server.number(DATABASE, sql) {
                return Ok(number);
            }
            if begun.elapsed() > PATIENCE {
                bail!("`{sql}` had no answer for a minute; the nodes' logs are in {}", self.dir.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_for_stamp(&self, stamp: &Path, attempt: u32, patience: Duration) -> Result<i64> {
        let file = PathBuf::from(format!("{}.{attempt}", text(stamp)?));
        let begun = Instant::now();
        loop {
            if let Ok(moment) = read(&file) {
                return Ok(moment);
            }
            if begun.elapsed() > patience {
                bail!("attempt {attempt} did not start; the nodes' logs are in {}", self.dir.display());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Worker {
    fn pid(&self) -> Result<Pid> {
        Pid::from_raw(i32::try_from(self.process.id())?).context("a process has a number")
    }

    /// Its only child.
    fn warden(&self) -> Result<Pid> {
        let pid = self.process.id();
        let children =
            fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).context("its children")?;
        let first =
            children.split_whitespace().next().and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
        first.with_context(|| format!("worker {} has no warden", self.name))
    }

    pub(super) fn kill(mut self) -> Result<()> {
        self.process.kill().context("a worker cannot be killed")?;
        self.process.wait().context("a worker cannot be waited for")?;
        Ok(())
    }

    pub(super) fn end(mut self) -> Result<()> {
        kill_process(self.pid()?, Signal::TERM).context("a worker cannot be told to stop")?;
        self.process.wait().context("a worker cannot be waited for")?;
        Ok(())
    }
}

/// When it was gone. Whatever loses its parent is a child of this process.
fn await_death(pid: Pid) -> Result<i64> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(Some(_)) => return Ok(moment()),
            // Before it is adopted it is nobody's, to us.
            Ok(None) | Err(_) if Path::new(&format!("/proc/{}", pid.as_raw_nonzero())).exists() => {}
            Ok(None) | Err(_) => return Ok(moment()),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("a warden outlives its node")
}
