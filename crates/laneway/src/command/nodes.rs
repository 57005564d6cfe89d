//! `laneway nodes` and `laneway drain`: who is alive, what they hold and have done, what they told of themselves, and a node
//! that is to take nothing more.

use comfy_table::Cell;
use laneway_core::node_event::{Leaving, NodeEvent, NodeFact};
use laneway_server::wire::labels;
use serde_json::Value;

use super::{Context, history};
use crate::exit::Exit;
use crate::face::Face;
use crate::text;

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
    let face = context.face()?;
    if let Some(node) = &args.history {
        let node = Some(node.as_str()).filter(|node| !node.is_empty());
        return told_so_far(context, &face, node, args.json).await;
    }
    let nodes = face.nodes().await?;
    if args.json {
        context.printer.json(&nodes)?;
    } else if nodes.is_empty() {
        context.printer.note("no node is alive; `laneway worker` starts one");
    } else {
        let width = context.printer.width();
        let is_narrow = text::is_narrow(width);
        let mut columns = vec!["NODE", "SLOTS", "HOLDS", "ENGINES", "LABELS", "SINCE", "STATE"];
        // Where there is little room it holds `1/4`.
        columns.retain(|column| !is_narrow || *column != "SLOTS");
        let mut table = text::table(&columns, width);
        text::color(&mut table, context.printer.out_palette());
        for node in &nodes {
            let mut row = vec![Cell::new(&node.node)];
            if is_narrow {
                row.push(Cell::new(format!("{}/{}", node.running_claims, node.slots)));
            } else {
                row.extend([Cell::new(node.slots), Cell::new(node.running_claims)]);
            }
            row.extend([
                Cell::new(node.engines.join(" ")),
                Cell::new(labels(node)),
                Cell::new(text::date_in(node.registered_at.0, is_narrow)),
                Cell::new(&node.state),
            ]);
            table.add_row(row);
        }
        context.printer.text(&text::lines(&table))?;
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
        let page = face.node_events(node, after).await?;
        Ok(history::Page { events: page.events, next_after: page.next_after, unreadable: page.unreadable })
    };
    let line = |event: &Value| {
        let event = NodeEvent::from_json(event)?;
        Ok(format!("{}  {}  {}", text::date(event.at), event.node, told(&event.fact)))
    };
    let none = "nothing is told of that; `laneway worker` starts a node that tells";
    history::print(context, is_json, page, line, none).await
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
        NodeFact::NodeEngine(fact) if fact.answers => {
            "its container engine answers; steps in containers are taken".to_owned()
        }
        NodeFact::NodeEngine(_) => {
            "its container engine does not answer; steps in containers wait for one".to_owned()
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway drain build-7:4242")]
pub(crate) struct DrainArgs {
    /// The node, as `laneway nodes` names it
    node: String,
}

pub(crate) async fn drain(context: &Context, args: DrainArgs) -> anyhow::Result<Exit> {
    context.face()?.drain(&args.node).await?;
    context.printer.line(&format!("{} takes nothing more; what it runs may end", args.node))?;
    Ok(Exit::Succeeded)
}
