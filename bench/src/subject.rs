//! Who runs a graph: Laneway, a bare loop, and the peers. Each turns a graph into a command that can be
//! repeated.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::Serialize;

use crate::graph::{Graph, Shape};
use crate::meter::{Job, Timed};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Subject {
    Laneway,
    /// posix_spawn and wait, one after the other: what the machine takes for as many processes.
    Spawn,
    #[serde(untagged)]
    Peer(Peer),
}

/// A program of others, as `--peers` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Peer {
    Make,
    Xargs,
    Ninja,
    Huey,
    Dagu,
    /// graphile-worker.
    Graphile,
    /// pg-boss.
    Pgboss,
    Procrastinate,
    /// Its server, and for `durable` its SDK.
    Restate,
    Dbos,
}

impl Peer {
    /// Queues on Postgres, which run no graphs here.
    pub(crate) fn is_queue(self) -> bool {
        matches!(self, Self::Graphile | Self::Pgboss | Self::Procrastinate)
    }

    /// Has a server that waits for work, as ours does.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, Self::Dagu | Self::Restate)
    }

    /// Makes functions durable.
    pub(crate) fn is_durable(self) -> bool {
        matches!(self, Self::Restate | Self::Dbos)
    }

    /// Runs a graph of processes that it is given.
    pub(crate) fn runs_graphs(self) -> bool {
        !self.is_queue() && !matches!(self, Self::Restate | Self::Dbos)
    }
}

/// Where everything is.
#[derive(Debug)]
pub(crate) struct Places {
    /// Laneway's own program, as built for release.
    pub(crate) laneway: PathBuf,
    /// This program, which is also the driver of the bare loops.
    pub(crate) own: PathBuf,
    /// A step that stamps.
    pub(crate) stamp: PathBuf,
    /// For files that a run makes: the disk that is measured.
    pub(crate) work: PathBuf,
    /// Where peers from npm and PyPI are installed.
    pub(crate) tools: PathBuf,
    /// `bench/drivers`.
    pub(crate) drivers: PathBuf,
    /// Held as long as the benchmark runs.
    pub(crate) _lock: fs::File,
}

impl Subject {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Laneway => "laneway",
            Self::Spawn => "spawn",
            Self::Peer(Peer::Make) => "make",
            Self::Peer(Peer::Xargs) => "xargs",
            Self::Peer(Peer::Ninja) => "ninja",
            Self::Peer(Peer::Huey) => "huey",
            Self::Peer(Peer::Dagu) => "dagu",
            Self::Peer(Peer::Graphile) => "graphile-worker",
            Self::Peer(Peer::Pgboss) => "pg-boss",
            Self::Peer(Peer::Procrastinate) => "procrastinate",
            Self::Peer(Peer::Restate) => "restate",
            Self::Peer(Peer::Dbos) => "dbos",
        }
    }

    /// xargs knows no order.
    pub(crate) fn can_run(self, shape: Shape) -> bool {
        match self {
            Self::Peer(Peer::Xargs) => matches!(shape, Shape::Flat(_)),
            Self::Peer(peer) => peer.runs_graphs(),
            Self::Laneway | Self::Spawn => true,
        }
    }

    /// Writes what it needs into a directory of its own.
    pub(crate) fn prepare(self, graph: Graph, places: &Places, workload: &str) -> Result<Job> {
        let dir = places.work.join(workload).join(self.name());
        fresh_dir(&dir)?;
        let at_once = graph.at_once.to_string();
        let write = |file: &str, text: String| -> Result<()> {
            fs::write(dir.join(file), text).with_context(|| format!("{file} cannot be written"))
        };
        let mut job = match self {
            Self::Laneway => {
                write("graph.yaml", graph.laneway())?;
                Job::new(&dir, &[text(&places.laneway)?, "run", "graph.yaml"])
            }
            Self::Spawn => {
                Job::new(&dir, &[text(&places.own)?, "drive", "spawn", &graph.tasks().to_string()])
            }
            Self::Peer(Peer::Make) => {
                write("Makefile", graph.makefile())?;
                Job::new(&dir, &["make", "-s", "-j", &at_once, "all"])
            }
            Self::Peer(Peer::Xargs) => {
                write("args", (0..graph.tasks()).map(|task| format!("{task}\n")).collect())?;
                Job::new(&dir, &["xargs", "-a", "args", "-n", "1", "-P", &at_once, "/bin/true"])
            }
            Self::Peer(Peer::Ninja) => {
                write("build.ninja", graph.ninja())?;
                Job::new(&dir, &["ninja", "-j", &at_once])
            }
            Self::Peer(Peer::Huey) => {
                let python = places.tools.join("venv/bin/python");
                let driver = places.drivers.join("huey_graph.py");
                let mut job = Job::new(&dir, &[text(&python)?, text(&driver)?, "huey.db", &at_once]);
                job.words.extend(graph.words());
                job.timed = Timed::Inside;
                job
            }
            Self::Peer(Peer::Dagu) => {
                write("graph.yaml", graph.dagu())?;
                let dagu = places.tools.join(crate::install::DAGU);
                let mut job = Job::new(&dir, &[text(&dagu)?, "start", "-q", "graph.yaml"]);
                let home = text(&dir.join("home"))?.to_owned();
                job.env = vec![("DAGU_HOME".to_owned(), home.clone()), ("HOME".to_owned(), home)];
                job
            }
            Self::Peer(Peer::Graphile | Peer::Pgboss | Peer::Procrastinate | Peer::Restate | Peer::Dbos) => {
                bail!("{} runs no graphs here", self.name())
            }
        };
        job.leftovers = self.leftovers();
        Ok(job)
    }

    fn leftovers(self) -> Vec<String> {
        let names: &[&str] = match self {
            Self::Laneway => &[".laneway"],
            Self::Spawn | Self::Peer(Peer::Make | Peer::Xargs) => &[],
            Self::Peer(Peer::Ninja) => &[".ninja_log", ".ninja_deps"],
            Self::Peer(Peer::Huey) => &["huey.db", "huey.db-wal", "huey.db-shm"],
            Self::Peer(Peer::Dagu) => &["home"],
            Self::Peer(Peer::Graphile | Peer::Pgboss | Peer::Procrastinate | Peer::Restate | Peer::Dbos) => {
                &[]
            }
        };
        names.iter().map(|name| (*name).to_owned()).collect()
    }
}

pub(crate) fn fresh_dir(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).with_context(|| format!("{} cannot be removed", dir.display()))?;
    }
    fs::create_dir_all(dir).with_context(|| format!("{} cannot be made", dir.display()))
}

pub(crate) fn text(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))
}
