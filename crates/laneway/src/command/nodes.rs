//! `laneway nodes` and `laneway drain`: who is alive, what they hold and have done, what they told of themselves, and a node
//! that is to take nothing more.

use comfy_table::Cell;
use laneway_core::node_event::{Leaving, NodeFact};
use laneway_store::Store;
use laneway_store::model::{NodeView, Whom};
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::{env, text};

/// Claims that are listed of each node.
const CLAIMS: usize = 50;

/// Events of one read.
const PAGE: usize = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway nodes --json\n  laneway nodes --history build-7:4242")]
pub(crate) struct Args {
    /// Print what nodes that take work told of themselves, oldest first; of one of them, or of all
    #[arg(long, value_name = "NODE", num_args = 0..=1, default_missing_value = "")]
    history: Option<String>,
    /// Print the nodes as one JSON array, with what each holds
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let store = context.open()?;
    if let Some(node) = &args.history {
        return history(
            context,
            store.as_ref(),
            Some(node.as_str()).filter(|node| !node.is_empty()),
            args.json,
        )
        .await;
    }
    let nodes = store.nodes(CLAIMS).await?;
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

async fn history(
    context: &Context,
    store: &dyn Store,
    node: Option<&str>,
    is_json: bool,
) -> anyhow::Result<Exit> {
    let mut after = 0;
    loop {
        let events = store.node_events(node, after, PAGE).await?;
        let Some(last) = events.last() else { break };
        after = last.seq;
        for event in &events {
            if is_json {
                context.printer.json(&event.to_json())?;
            } else {
                let at = text::date(event.at);
                context.printer.line(&format!("{at}  {}  {}", event.node, told(&event.fact)))?;
            }
        }
    }
    if after == 0 && !is_json {
        context.printer.note("nothing is told of that; `laneway worker` starts a node that tells");
    }
    Ok(Exit::Succeeded)
}

fn told(fact: &NodeFact) -> String {
    let reason = |why: &Leaving| {
        let who = match (&why.by, why.parent_pid) {
            (Some(by), _) => format!(" by {by}"),
            (None, Some(pid)) => format!(" (process {pid})"),
            (None, None) => String::new(),
        };
        format!("{}{who}", why.reason)
    };
    let returned = |count: u32| match count {
        0 => String::new(),
        1 => "; 1 task goes on elsewhere".to_owned(),
        count => format!("; {count} tasks go on elsewhere"),
    };
    match fact {
        NodeFact::NodeJoined(fact) => format!("joined with {} slots", fact.slots),
        NodeFact::NodeDraining(fact) => format!("takes nothing more: {}", reason(&fact.why)),
        NodeFact::NodeStopping(fact) => format!("stopped: {}{}", reason(&fact.why), returned(fact.returned)),
        NodeFact::NodeLost(fact) => format!("lost{}", returned(fact.returned)),
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway drain build-7:4242")]
pub(crate) struct DrainArgs {
    /// The node, as `laneway nodes` names it
    node: String,
}

pub(crate) async fn drain(context: &Context, args: DrainArgs) -> anyhow::Result<Exit> {
    let why = Leaving::drained_by(env::person());
    context.open()?.drain(Whom::Node(args.node.clone()), why).await?;
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
        "observed_at": node.observed_at.to_string(),
        "renewed_at": node.renewed_at.to_string(),
        "last_active_at": node.last_active_at.map(|at| at.to_string()),
        "claim_attempts": node.tally.asks,
        "claim_contentions": node.tally.contentions,
        "claimed": {
            "total": node.tally.claims,
            "succeeded": node.tally.succeeded,
            "failed": node.tally.failed,
            "canceled": node.tally.canceled,
            "returned": node.tally.returned,
            "lost": node.tally.lost,
        },
        "expired_leases": node.lost_sessions,
        "sessions_reaped": node.tally.reaped,
        "running_claims": node.held,
        "active_claims": claims,
    })
}
