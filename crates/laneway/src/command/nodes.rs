//! `laneway nodes` and `laneway drain`: who is alive and what they hold, and a node that is to take nothing more.

use comfy_table::Cell;
use laneway_store::model::NodeView;
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::text;

/// Claims that are listed of each node.
const CLAIMS: usize = 50;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway nodes --json")]
pub(crate) struct Args {
    /// Print the nodes as one JSON array, with what each holds
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let nodes = context.open()?.nodes(CLAIMS).await?;
    if args.json {
        context.printer.json(&nodes.iter().map(wire).collect::<Vec<_>>())?;
    } else if nodes.is_empty() {
        context.printer.note("no node is alive; `laneway worker` starts one");
    } else {
        let mut table =
            text::table(&["NODE", "SLOTS", "HOLDS", "LABELS", "SINCE", "STATE"], context.printer.width());
        text::color(&mut table, context.printer.out_palette());
        for node in &nodes {
            table.add_row(vec![
                Cell::new(&node.node),
                Cell::new(node.slots),
                Cell::new(node.held),
                Cell::new(labels(node)),
                Cell::new(text::date(node.registered_at)),
                Cell::new(state(node)),
            ]);
        }
        context.printer.text(&text::lines(&table))?;
    }
    Ok(Exit::Succeeded)
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway drain build-7:4242")]
pub(crate) struct DrainArgs {
    /// The node, as `laneway nodes` names it
    node: String,
}

pub(crate) async fn drain(context: &Context, args: DrainArgs) -> anyhow::Result<Exit> {
    context.open()?.drain(&args.node).await?;
    context.printer.line(&format!("{} takes nothing more; what it runs may end", args.node))?;
    Ok(Exit::Succeeded)
}

fn labels(node: &NodeView) -> String {
    let pairs = node.offer.iter().flat_map(|offer| &offer.labels);
    pairs.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
}

fn state(node: &NodeView) -> &'static str {
    match (&node.offer, node.is_draining) {
        (_, true) => "draining",
        (Some(_), false) => "takes work",
        (None, false) => "runs its own",
    }
}

fn wire(node: &NodeView) -> Value {
    let claims: Vec<Value> = node
        .claims
        .iter()
        .map(|claim| {
            json!({
                "run": claim.run,
                "step": claim.step,
                "attempt": claim.attempt,
                "started_at": claim.started_at.map(|at| at.to_string()),
            })
        })
        .collect();
    json!({
        "node": node.node,
        "session": node.session.to_string(),
        "pid": node.pid,
        "registered_at": node.registered_at.to_string(),
        "slots": node.slots,
        "labels": node.offer.as_ref().map(|offer| offer.labels.clone()),
        "state": state(node),
        "running_claims": node.held,
        "active_claims": claims,
    })
}
