//! `laneway pool`: warm containers of nodes that live, what became of them, and what is wanted of them.

use std::collections::BTreeSet;

use comfy_table::Cell;
use laneway_core::pool::{PoolEvent, PoolFact};
use laneway_server::wire;
use serde_json::Value;

use super::{Context, history};
use crate::exit::Exit;
use crate::face::Face;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway pool\n  laneway pool status --json\n  laneway pool history\n  laneway pool warm agents 4\n  laneway pool drain agents"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show how many containers of each pool are in which state
    #[command(after_help = "Example:\n  laneway pool status --json")]
    Status {
        /// Print the pools as one JSON array, with their containers
        #[arg(long)]
        json: bool,
    },
    /// Let every node that keeps a pool have so many of its containers ready, as far as its `max` allows
    ///
    /// A node knows a pool from the first task that uses it. With --workflow it is the pool of that workflow's newest
    /// version, and every node that takes steps in containers is told, also before the first run.
    #[command(
        after_help = "Example:\n  laneway pool warm agents 4\n  laneway pool warm agents 4 --workflow nightly --node build-7:4242"
    )]
    Warm {
        /// The pool, as the document calls it
        pool: String,
        /// How many containers each node is to have, counting those that are there
        #[arg(value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
        /// The workflow whose pool is meant
        #[arg(long, value_name = "NAME")]
        workflow: Option<String>,
        /// Only on this node, as `laneway nodes` names it
        #[arg(long)]
        node: Option<String>,
        /// Print who was told as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Let every node that keeps a pool remove its containers: now those that nobody uses, the others after their tasks
    #[command(
        after_help = "Example:\n  laneway pool drain agents\n  laneway pool drain agents --node build-7:4242\n  laneway pool drain --all"
    )]
    Drain {
        /// The pool, as the document calls it
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        pool: Option<String>,
        /// Every pool that a node keeps
        #[arg(long)]
        all: bool,
        /// Only on this node, as `laneway nodes` names it
        #[arg(long)]
        node: Option<String>,
        /// Print who was told as one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print what containers did, oldest first; of one node, or of all
    #[command(after_help = "Example:\n  laneway pool history build-7:4242")]
    History {
        /// A node, as `laneway nodes` names it
        node: Option<String>,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    match args.what.unwrap_or(What::Status { json: false }) {
        What::Status { json } => status(context, &face, json).await,
        What::History { node, json } => told_so_far(context, &face, node.as_deref(), json).await,
        What::Warm { pool, count, workflow, node, json } => {
            let asked = face.warm_pool(&pool, &wire::WarmPool { count, node, workflow }).await?;
            tell(context, &asked, json, |node| match node.count {
                Some(capped) if capped < count => {
                    format!("{capped} of {pool} will be warm, which is its `max`")
                }
                Some(_) | None => format!("{count} of {pool} will be warm"),
            })
        }
        What::Drain { pool: Some(pool), node, json, .. } => {
            let asked = face.drain_pool(&pool, &wire::DrainPool { node }).await?;
            tell(context, &asked, json, |_| drained(&pool))
        }
        What::Drain { pool: None, node, json, .. } => drain_all(context, &face, node, json).await,
    }
}

fn drained(pool: &str) -> String {
    format!("{pool} is drained: containers in no use go now, the others after their tasks")
}

/// Every pool that a live node keeps, or one of them. Prints one JSON array.
async fn drain_all(
    context: &Context,
    face: &Face,
    node: Option<String>,
    is_json: bool,
) -> anyhow::Result<Exit> {
    let pools = face.pools().await?;
    let is_meant = |pool: &&wire::Pool| node.as_ref().is_none_or(|node| pool.node == *node);
    let names: BTreeSet<&str> = pools.iter().filter(is_meant).map(|pool| pool.pool.as_str()).collect();
    let mut all = Vec::new();
    for name in names {
        let asked = face.drain_pool(name, &wire::DrainPool { node: node.clone() }).await?;
        if is_json {
            all.push(asked);
        } else {
            tell(context, &asked, false, |_| drained(name))?;
        }
    }
    if is_json {
        context.printer.json(&all)?;
    } else if pools.is_empty() {
        context.printer.note("no node keeps a pool");
    }
    Ok(Exit::Succeeded)
}

async fn status(context: &Context, face: &Face, is_json: bool) -> anyhow::Result<Exit> {
    let pools = face.pools().await?;
    if is_json {
        context.printer.json(&pools)?;
    } else if pools.is_empty() {
        context.printer.note("no node keeps a container warm; a step with `pool` makes for some");
    } else {
        let head = ["NODE", "POOL", "STARTING", "IDLE", "RUNNING", "DORMANT"];
        let mut table = text::table(&head, context.printer.width());
        text::color(&mut table, context.printer.out_palette());
        for pool in &pools {
            table.add_row(vec![
                Cell::new(&pool.node),
                Cell::new(&pool.pool),
                Cell::new(pool.starting),
                Cell::new(pool.idle),
                Cell::new(pool.running),
                Cell::new(pool.dormant),
            ]);
        }
        context.printer.text(&text::lines(&table))?;
    }
    Ok(Exit::Succeeded)
}

/// A line for each that was told.
fn tell(
    context: &Context,
    asked: &wire::AskedPool,
    is_json: bool,
    what: impl Fn(&wire::AskedNode) -> String,
) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(asked)?;
        return Ok(Exit::Succeeded);
    }
    for node in &asked.nodes {
        context.printer.line(&format!("{}  {}  {}", node.node, node.image, what(node)))?;
    }
    Ok(Exit::Succeeded)
}

async fn told_so_far(
    context: &Context,
    face: &Face,
    node: Option<&str>,
    is_json: bool,
) -> anyhow::Result<Exit> {
    let page = async |after| {
        let page = face.pool_events(node, after).await?;
        Ok(history::Page { events: page.events, next_after: page.next_after, unreadable: page.unreadable })
    };
    let line = |event: &Value| {
        let event = PoolEvent::from_json(event)?;
        let (pool, container) = event.fact.names();
        let about = match container {
            Some(container) => format!("{pool}  {container}  "),
            None if pool.is_empty() => String::new(),
            None => format!("{pool}  "),
        };
        Ok(format!("{}  {}  {about}{}", text::date(event.at), event.node, told(&event.fact)))
    };
    history::print(context, is_json, page, line, "no container was ever kept warm").await
}

fn told(fact: &PoolFact) -> String {
    match fact {
        PoolFact::ContainerStarting(fact) => format!("starting from {}", fact.image),
        PoolFact::ContainerIdle(_) => "idle".to_owned(),
        PoolFact::ContainerRunning(_) => "running".to_owned(),
        PoolFact::ContainerDormant(_) => "dormant".to_owned(),
        PoolFact::ContainerTaken(fact) => {
            format!("taken by {} of run {}, attempt {}", fact.step, fact.run.short(), fact.attempt)
        }
        PoolFact::ContainerTerminated(fact) => format!("terminated: {}", fact.why),
        PoolFact::PortsUsedUp(fact) => {
            let waiting = text::count(fact.waiting.len() as u64, "task");
            let verb = if fact.waiting.len() == 1 { "waits" } else { "wait" };
            format!("host ports {} used up, {waiting} {verb}", range(fact.first, fact.last))
        }
        PoolFact::PortsFree(fact) => format!("host ports {} free again", range(fact.first, fact.last)),
        PoolFact::ImagePullProgress(fact) if fact.is_done => format!("{} is pulled", fact.image),
        PoolFact::ImagePullProgress(fact) if fact.of == 0 => format!("pulling {}", fact.image),
        PoolFact::ImagePullProgress(fact) => {
            format!("pulling {}: {} of {} MiB", fact.image, fact.bytes >> 20, fact.of >> 20)
        }
    }
}

fn range(first: u16, last: u16) -> String {
    if first == last { first.to_string() } else { format!("{first}-{last}") }
}
