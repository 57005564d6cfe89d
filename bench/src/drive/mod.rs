//! Drivers: what this program does as its own child, so that it is measured like any other. Each prints one
//! JSON document. Not for people; `laneway-bench drive` is left out of the help.

mod ceiling;
pub(crate) mod contend;
mod durable;
pub(crate) mod enqueue;
mod hop;
mod horizon;
pub(crate) mod items;
mod many;
mod noop;
mod park;
mod queue;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use laneway_core::definition::{Source, compile};
use laneway_core::id::{RunId, SessionId};
use laneway_core::plan::Plan;
use laneway_core::state::RunStatus;
use laneway_engine::container::Containers;
use laneway_engine::function::Functions;
use laneway_engine::warden::{Warden, WardenCommand};
use laneway_engine::worker::{Control, Counts, Drive, Means};
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Open, Store};
use serde_json::json;

use crate::calibrate;
use crate::report::print;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Driver {
    /// Bare spawns of /bin/true, one after the other
    Spawn { times: usize },
    /// The row work of no-op tasks, without Laneway
    NoopBare { tasks: usize, group: usize },
    /// The same through the store's verbs
    NoopStore { tasks: usize, group: usize },
    /// The same as functions that do nothing, through the worker
    NoopFunction { tasks: usize, group: usize, laneway: PathBuf },
    /// Functions that do nothing, as items of one step or as a flat graph, from submit to the end
    Items { kind: items::Kind, tasks: usize, at_once: usize, laneway: PathBuf },
    /// Tasks that wait for somebody, in a store that is left behind
    Park { tasks: usize },
    /// From submit to the start of a run's only step, in a node that is up
    Enqueue { samples: usize, laneway: PathBuf, stamp: PathBuf },
    /// A queue of jobs that do nothing, on the store that DATABASE_URL names
    Queue {
        #[command(subcommand)]
        queue: queue::Queue,
    },
    /// Ends of one run, by several connections
    Ceiling { tasks: usize, finishers: usize, batch: usize },
    /// Callers that submit at the same time runs that want the same keys
    Contend { callers: usize, runs: usize, keys: usize },
    /// The same for some milliseconds; callers pause while too many runs are unfinished
    Endure { callers: usize, keys: usize, millis: u64, max_backlog: usize },
    /// Claims of tasks while another session holds the server's xmin horizon
    Horizon {
        tasks: usize,
        runs: usize,
        #[arg(action = clap::ArgAction::Set)]
        is_held: bool,
        /// Each run is submitted when the one before it has been worked off
        #[arg(long)]
        keeps_up: bool,
    },
    /// From a step's end to its successor's start on another node
    Hop { steps: usize },
    /// One of those nodes
    HopSide { side: String },
    /// Two commits and a notification
    HopBare { samples: usize },
    /// Three durable functions a run
    Durable { runs: u64, at_once: usize, samples: u64 },
}

pub(crate) fn drive(driver: Driver) -> Result<()> {
    match driver {
        Driver::Spawn { times } => tell_seconds(calibrate::spawn_loop(times)?),
        Driver::NoopBare { tasks, group } => tell_seconds(noop::bare(tasks, group)?),
        Driver::NoopStore { tasks, group } => tell_seconds(block_on(noop::store(tasks, group))?),
        Driver::NoopFunction { tasks, group, laneway } => {
            tell_seconds(block_on(noop::function(tasks, group, &laneway))?);
        }
        Driver::Items { kind, tasks, at_once, laneway } => {
            tell_seconds(block_on(items::run(kind, tasks, at_once, &laneway))?);
        }
        Driver::Park { tasks } => block_on(park::park(tasks))?,
        Driver::Enqueue { samples, laneway, stamp } => {
            let samples = block_on(enqueue::samples(samples, &laneway, &stamp))?;
            print(&serde_json::to_string(&samples)?);
        }
        Driver::Queue { queue } => block_on(queue::drive(queue))?,
        Driver::Ceiling { tasks, finishers, batch } => block_on(ceiling::ceiling(tasks, finishers, batch))?,
        Driver::Contend { callers, runs, keys } => block_on(contend::contend(callers, runs, keys))?,
        Driver::Endure { callers, keys, millis, max_backlog } => {
            let duration = Duration::from_millis(millis);
            block_on(contend::endure(callers, keys, duration, max_backlog))?;
        }
        Driver::Horizon { tasks, runs, is_held, keeps_up } => {
            block_on(horizon::horizon((tasks, runs), is_held, keeps_up))?;
        }
        Driver::Hop { steps } => block_on(hop::hops(steps))?,
        Driver::HopSide { side } => block_on(hop::side(&side))?,
        Driver::HopBare { samples } => block_on(hop::bare(samples))?,
        Driver::Durable { runs, at_once, samples } => {
            block_on(durable::three_steps(runs, at_once, samples))?;
        }
    }
    Ok(())
}

fn tell_seconds(seconds: f64) {
    print(&json!({ "seconds": seconds }).to_string());
}

/// One thread, as the program has.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    // A worker stays on its thread.
    tokio::task::LocalSet::new().block_on(&runtime, work)
}

fn compiled(yaml: &str) -> Result<Plan> {
    let source =
        Source { file: "bench.yaml".to_owned(), default_name: "bench".to_owned(), text: yaml.to_owned() };
    compile(&source).map_err(|faults| anyhow::anyhow!("{}", faults.render(false)))
}

/// A store in the current directory with a session of ours.
struct Home {
    store: Arc<dyn Store>,
    session: SessionId,
}

/// Where [`Home`] keeps its store.
const FILE: &str = ".laneway/laneway.db";

impl Home {
    async fn new() -> Result<Self> {
        let store = laneway_store::open(FILE, Open::Create)?;
        let session = store.register(NewSession::ephemeral("bench:1", 8)).await?;
        Ok(Self { store, session })
    }

    fn warden(&self, laneway: &Path) -> Result<Warden> {
        let command = WardenCommand {
            program: laneway.to_owned(),
            args: vec!["warden".into()],
            lock: Some(laneway_store::warden_lock(self.store.dir(), self.session)),
            lease: None,
            use_cgroups: true,
            is_leased: false,
        };
        Warden::start(command).context("no warden")
    }

    /// Drives a run to its end, which must be a good one.
    async fn drive(&self, run: RunId, slots: usize, warden: Warden, functions: Functions) -> Result<()> {
        let drive = Drive {
            means: Means {
                store: Arc::clone(&self.store),
                session: self.session,
                slots,
                kill_grace: Duration::from_secs(5),
                warden,
                functions,
                containers: Containers::default(),
                pulse: None,
                counts: Counts::default(),
                max_poll_interval: Duration::from_secs(15),
                takes_results: true,
                workspace_max_bytes: laneway_engine::WORKSPACE_MAX_BYTES,
            },
            run,
            by: "bench".to_owned(),
            is_over_when_paused: false,
            pass_env: None,
        };
        let status = drive.until_done(Control::new()).await?;
        if status != RunStatus::Succeeded {
            bail!("the run ended as {status:?}");
        }
        Ok(())
    }

    async fn submit(&self, yaml: &str, max_parallel: u32) -> Result<RunId> {
        self.submit_plan(compiled(yaml)?, yaml, max_parallel).await
    }

    async fn submit_plan(&self, plan: Plan, yaml: &str, max_parallel: u32) -> Result<RunId> {
        Ok(self.store.submit(self.submission(plan, yaml, max_parallel)?).await?)
    }

    fn submission(&self, plan: Plan, yaml: &str, max_parallel: u32) -> Result<Submission> {
        let dir = std::env::current_dir().context("no current directory")?;
        Ok(Submission {
            dir: dir.to_string_lossy().into_owned(),
            params: serde_json::Map::new(),
            max_parallel,
            by: "bench".to_owned(),
            ..Submission::new(Arc::new(plan), yaml.to_owned(), self.session)
        })
    }
}
