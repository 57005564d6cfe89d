//! `laneway limit`: named limits, which every run of the store shares.

use clap::Subcommand;
use comfy_table::Cell;
use laneway_core::limit::Limit;
use laneway_store::model::LimitView;
use serde_json::{Value, json};

use super::Context;
use crate::exit::Exit;
use crate::{env, text};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway limit set warehouse 3\n  laneway limit set api 100/1m\n  laneway limit list"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Make a limit, or change it for everybody
    Set {
        name: String,
        /// Tasks at once, such as 3, or in a time, such as 100/1m
        #[arg(value_parser = limit)]
        value: Limit,
    },
    /// List the limits and how far they are used
    List {
        /// Print the limits as one JSON array
        #[arg(long)]
        json: bool,
    },
}

fn limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text).map_err(|error| error.to_string())
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Set { name, value } => {
            context.open_or_create()?.set_limit(&name, value, &env::person()).await?;
            context.printer.line(&format!("limit {name} is {value}"))?;
        }
        What::List { json } => {
            let limits = context.open()?.limits().await?;
            if json {
                context.printer.json(&limits.iter().map(wire).collect::<Vec<_>>())?;
            } else if limits.is_empty() {
                context.printer.note("there are no limits; `laneway limit set NAME N` makes one");
            } else {
                context.printer.text(&table(context, &limits))?;
            }
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, limits: &[LimitView]) -> String {
    let mut table = text::table(&["LIMIT", "VALUE", "HELD", "WAITING", "SET BY"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for limit in limits {
        table.add_row(vec![
            Cell::new(&limit.name),
            Cell::new(limit.limit),
            Cell::new(limit.holders),
            Cell::new(limit.waiting),
            Cell::new(&limit.set_by),
        ]);
    }
    text::lines(&table)
}

fn wire(limit: &LimitView) -> Value {
    json!({
        "name": limit.name,
        "value": limit.limit.to_string(),
        "held": limit.holders,
        "waiting": limit.waiting,
        "set_by": limit.set_by,
        "set_at": limit.set_at.to_string(),
    })
}
