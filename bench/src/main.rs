//! `cargo xtask bench`: the workloads of bench/README.md, Laneway and its peers in one run, round by round.
//! Owns the command line and the order of things; what a workload is stands in its own file.

mod calibrate;
mod containers;
mod counted;
mod drive;
mod durable;
mod goal;
mod graph;
mod install;
mod isolation;
mod meter;
mod nodes;
mod noise;
mod parked;
mod report;
mod rounds;
mod server;
mod servers;
mod service;
mod single;
mod stats;
mod subject;
mod web;
mod workspaces;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::graph::{Graph, Shape};
use crate::report::Results;
use crate::rounds::Contest;
use crate::subject::{Peer, Places, Subject};

#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask bench",
    about = "Measures Laneway and its peers in one run",
    args_conflicts_with_subcommands = true
)]
struct Cli {
    #[command(subcommand)]
    driver: Option<Hidden>,
    #[command(flatten)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Hidden {
    #[command(hide = true)]
    Drive {
        #[command(subcommand)]
        driver: drive::Driver,
    },
}

#[derive(Debug, Args)]
struct Bench {
    /// What to measure; everything but `nodes`, `containers`, `durable` and `web` if nothing is named
    workloads: Vec<Workload>,
    /// Whom to measure beside Laneway
    #[arg(long, value_delimiter = ',', default_values = ["make", "xargs", "ninja", "huey", "dagu", "graphile", "pgboss", "procrastinate", "restate", "dbos"])]
    peers: Vec<Peer>,
    /// Measure no peer
    #[arg(long, conflicts_with = "peers")]
    no_peers: bool,
    /// How many rounds; a figure is their median
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u64).range(1..))]
    runs: u64,
    /// Where the results go; the tables go beside it, as .md
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// What of `nodes` to measure; all of it if nothing is named
    #[arg(long, value_delimiter = ',')]
    parts: Vec<nodes::Part>,
    /// Count the fsyncs of peers as well, under strace: minutes more for each workload
    #[arg(long)]
    count_peers: bool,
    /// Small sizes and few rounds, to see that everything works
    #[arg(long)]
    quick: bool,
    /// Set by `cargo xtask bench`: the program to measure, and the workspace
    #[arg(long, hide = true)]
    laneway: Option<PathBuf>,
    #[arg(long, hide = true)]
    root: Option<PathBuf>,
    #[arg(long, hide = true)]
    postgres: Option<String>,
    #[arg(long, hide = true)]
    docker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Workload {
    /// 1,000 tasks, 2 at once
    #[value(name = "flat-2")]
    Flat2,
    /// 1,000 tasks, 8 at once
    #[value(name = "flat-8")]
    Flat8,
    /// 200 tasks, one after the other
    Chain,
    /// 10 levels of 40 tasks, each waiting for all of the level before
    Levels,
    /// Tasks of which nothing is executed
    Noop,
    /// Items of one step, beside a flat graph of as many
    Items,
    /// What tasks that wait for somebody cost a server that starts
    Parked,
    /// The cost of a task in larger and larger runs
    Growth,
    /// The cost of a task in fuller and fuller stores
    History,
    /// What a run takes while it waits
    Idle,
    /// How soon a step starts
    Enqueue,
    /// The server: idle, asked by many, and with many listeners
    Service,
    /// A copy of a workspace for a member of a group
    Isolation,
    /// What private views of files cost a submitted run
    Workspaces,
    /// Many nodes on Postgres, beside queues of others; only if it is named
    Nodes,
    /// Warm containers, beside bare calls of the engine; only if it is named
    Containers,
    /// Runs of three durable functions, beside DBOS and Restate; only if it is named
    Durable,
    /// The page of a run of 10,000 tasks in a browser, beside Dagu's; only if it is named
    Web,
}

impl Workload {
    fn is_graph(self) -> bool {
        matches!(self, Self::Flat2 | Self::Flat8 | Self::Chain | Self::Levels)
    }
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    match cli.driver {
        Some(Hidden::Drive { driver }) => drive::drive(driver),
        None => cli.bench.run(),
    }
}

impl Bench {
    fn run(self) -> Result<()> {
        let places = self.places()?;
        meter::adopt_orphans()?;
        install::strace()?;
        let mut peers = if self.no_peers { Vec::new() } else { self.peers.clone() };
        // Nothing is installed that nobody asked for.
        let has_queues = self.has_part(nodes::Part::Queues) || self.has_part(nodes::Part::Contention);
        let wants_queues = self.wants(Workload::Nodes) && has_queues;
        let wants_graphs = Workload::value_variants().iter().any(|each| each.is_graph() && self.wants(*each));
        let wants_servers = self.wants(Workload::Service);
        let wants_containers = self.wants(Workload::Containers);
        peers.retain(|peer| {
            (peer.is_queue() && wants_queues)
                || (peer.runs_graphs() && wants_graphs)
                || (peer.is_server() && wants_servers)
                || (*peer == Peer::Dagu && (wants_containers || self.wants(Workload::Web)))
                || (peer.is_durable() && self.wants(Workload::Durable))
        });
        let mut results = Results {
            measured_on: jiff::Zoned::now().strftime("%F").to_string(),
            laneway: format!("laneway {}", env!("CARGO_PKG_VERSION")),
            is_quick: self.quick,
            ..Results::default()
        };
        for &peer in &peers {
            install::peer(peer, &places.tools)?;
            results.peers.push(install::version(peer, &places.tools)?);
        }
        if self.wants(Workload::Durable) && peers.contains(&Peer::Restate) {
            install::restate_sdk(&places.tools)?;
        }
        let watch = noise::Watch::begin()?;
        for workload in Workload::value_variants() {
            if self.wants(*workload) {
                self.measure(*workload, &peers, &places, &mut results)?;
            }
        }
        let widths = results.graphs.iter().map(|graph| graph.calibration.spawn_ms.width());
        let width = widths.fold(0.0, f64::max);
        // What a database, an engine or a browser does is part of what is measured.
        let has_server = self.wants(Workload::Nodes)
            || wants_containers
            || self.wants(Workload::Durable)
            || self.wants(Workload::Web);
        results.noise = if has_server { watch.end_beside_a_server(width)? } else { watch.end(width)? };
        results.verdicts = goal::judge(&results);
        let tables = results.tables();
        let file = self.json.unwrap_or_else(|| places.work.with_file_name("results.json"));
        let json = serde_json::to_string_pretty(&results)?;
        std::fs::write(&file, json + "\n")
            .with_context(|| format!("{} cannot be written", file.display()))?;
        let page = file.with_extension("md");
        std::fs::write(&page, &tables).with_context(|| format!("{} cannot be written", page.display()))?;
        report::print(&tables);
        report::note(&format!("written to {} and {}", file.display(), page.display()));
        Ok(())
    }

    fn wants(&self, workload: Workload) -> bool {
        let is_named = self.workloads.contains(&workload);
        let is_apart =
            matches!(workload, Workload::Nodes | Workload::Containers | Workload::Durable | Workload::Web);
        is_named || self.workloads.is_empty() && !is_apart
    }

    fn has_part(&self, part: nodes::Part) -> bool {
        self.parts.is_empty() || self.parts.contains(&part)
    }

    fn measure(
        &self,
        workload: Workload,
        peers: &[Peer],
        places: &Places,
        results: &mut Results,
    ) -> Result<()> {
        let full = |full: usize, quick: usize| if self.quick { quick } else { full };
        let rounds = full(usize::try_from(self.runs)?, usize::try_from(self.runs.min(3))?);
        // A round of these takes minutes.
        let few = rounds.min(3);
        let mut contest = |shape: Shape, at_once: u32| -> Result<()> {
            let subjects: Vec<Subject> = [Subject::Laneway, Subject::Spawn]
                .into_iter()
                .chain(peers.iter().filter(|peer| peer.runs_graphs()).map(|peer| Subject::Peer(*peer)))
                .collect();
            let name = workload.to_possible_value();
            let name = name.as_ref().map_or("graph", |value| value.get_name());
            let graph = Graph { shape, at_once };
            let contest =
                Contest { workload: name, graph, subjects: &subjects, rounds, count_peers: self.count_peers };
            results.graphs.push(contest.run(places)?);
            Ok(())
        };
        match workload {
            Workload::Flat2 => contest(Shape::Flat(full(1_000, 100)), 2)?,
            Workload::Flat8 => contest(Shape::Flat(full(1_000, 100)), 8)?,
            Workload::Chain => contest(Shape::Chain(full(200, 30)), 2)?,
            Workload::Levels => {
                contest(Shape::Levels { levels: full(10, 4), width: full(40, 10) }, 2)?;
            }
            Workload::Noop => results.noop = single::noop(full(20_000, 2_000), &[32, 256], rounds, places)?,
            Workload::Items => {
                results.items = Some(single::items(full(100_000, 2_000), few, places)?);
            }
            Workload::Parked => {
                let sizes = [0, full(1_000, 100), full(100_000, 2_000)];
                results.parked = parked::measure(&sizes, rounds, places)?;
            }
            Workload::Growth => {
                let sizes = [full(1_000, 200), full(10_000, 800), full(100_000, 2_000)];
                results.growth = single::growth(&sizes, few, places)?;
            }
            Workload::History => {
                let sizes = [full(1_000, 100), full(100_000, 2_000)];
                results.history = single::history(&sizes, full(1_000, 100), rounds, places)?;
            }
            Workload::Idle => {
                let window = Duration::from_secs(if self.quick { 2 } else { 20 });
                results.idle = Some(single::idle(window, places)?);
            }
            Workload::Nodes => {
                let postgres =
                    self.postgres.as_deref().context("`cargo xtask bench nodes` brings a Postgres")?;
                let queues: Vec<Peer> = peers.iter().copied().filter(|peer| peer.is_queue()).collect();
                let plan = nodes::Plan {
                    postgres,
                    parts: &self.parts,
                    peers: &queues,
                    rounds,
                    is_quick: self.quick,
                };
                results.nodes = Some(nodes::measure(&plan, places)?);
            }
            Workload::Isolation => {
                let (files, megabytes) = (full(10_000, 500), full(1_024, 16));
                results.isolation = Some(isolation::measure(files, megabytes, few, places)?);
            }
            Workload::Workspaces => {
                results.workspaces = Some(workspaces::measure(full(1_000, 50), rounds, places)?);
            }
            Workload::Containers => {
                let docker = self
                    .docker
                    .as_deref()
                    .context("`cargo xtask bench containers` brings a container engine")?;
                results.containers = Some(containers::measure(rounds, docker, peers, places)?);
            }
            Workload::Durable => {
                let postgres =
                    self.postgres.as_deref().context("`cargo xtask bench durable` brings a Postgres")?;
                let sizes = (full(10_000, 500), few);
                results.durable = Some(durable::measure(sizes, postgres, peers, places)?);
            }
            Workload::Web => {
                let root = self.root.as_deref().context("`cargo xtask bench web` says where the page is")?;
                let sizes = (full(10_000, 900), full(5, 2));
                results.web = Some(web::measure(sizes, peers, &root.join("web"), places)?);
            }
            Workload::Service => {
                let servers: Vec<Peer> = peers.iter().copied().filter(|peer| peer.is_server()).collect();
                results.service = Some(service::measure(few, self.quick, &servers, places)?);
            }
            Workload::Enqueue => results.enqueue = Some(single::enqueue(full(200, 10), places)?),
        }
        Ok(())
    }

    /// `cargo xtask bench` says where things are.
    fn places(&self) -> Result<Places> {
        let hint = "run it as `cargo xtask bench`";
        let laneway = self.laneway.clone().context(hint)?;
        let root = self.root.clone().context(hint)?;
        let tools = laneway.parent().and_then(Path::parent).context(hint)?.join("bench");
        let work = tools.join("work");
        let lock = lock(&tools)?;
        subject::fresh_dir(&work)?;
        let own = std::env::current_exe().context("this program cannot find its own file")?;
        let stamp = own.with_file_name("laneway-stamp");
        Ok(Places { laneway, own, stamp, work, tools, drivers: root.join("bench/drivers"), _lock: lock })
    }
}

/// Two at once would spoil each other's figures, and files.
fn lock(tools: &Path) -> Result<File> {
    std::fs::create_dir_all(tools).with_context(|| format!("{} cannot be made", tools.display()))?;
    let file = File::create(tools.join("lock")).context("the benchmark's lock cannot be made")?;
    file.try_lock().context("another benchmark is running in this workspace; wait for it")?;
    Ok(file)
}
