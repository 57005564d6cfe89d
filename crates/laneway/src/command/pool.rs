//! `laneway pool`: warm containers of nodes that live, and what became of them.

use comfy_table::Cell;
use laneway_core::pool::{PoolEvent, PoolFact};

use super::Context;
use crate::exit::Exit;
use crate::face::Face;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway pool\n  laneway pool status --json\n  laneway pool history")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show how many containers of each pool are in which state
    Status {
        /// Print the pools as one JSON array, with their containers
        #[arg(long)]
        json: bool,
    },
    /// Print what containers did, oldest first; of one node, or of all
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
        What::History { node, json } => history(context, &face, node.as_deref(), json).await,
    }
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

async fn history(context: &Context, face: &Face, node: Option<&str>, is_json: bool) -> anyhow::Result<Exit> {
    let mut after = 0;
    loop {
        let page = face.pool_events(node, after).await?;
        if page.events.is_empty() {
            break;
        }
        after = page.next_after;
        for event in &page.events {
            if is_json {
                context.printer.json(event)?;
                continue;
            }
            let event = PoolEvent::from_json(event)?;
            let (pool, container) = event.fact.names();
            let at = text::date(event.at);
            context.printer.line(&format!(
                "{at}  {}  {pool}  {container}  {}",
                event.node,
                told(&event.fact)
            ))?;
        }
    }
    if after == 0 && !is_json {
        context.printer.note("no container was ever kept warm");
    }
    Ok(Exit::Succeeded)
}

fn told(fact: &PoolFact) -> String {
    match fact {
        PoolFact::ContainerStarting(fact) => format!("starting from {}", fact.image),
        PoolFact::ContainerIdle(_) | PoolFact::ContainerRunning(_) | PoolFact::ContainerDormant(_) => {
            fact.state().to_string()
        }
        PoolFact::ContainerTerminated(fact) => format!("terminated: {}", fact.why),
    }
}
