//! `laneway limit`: named limits, which every run of the store shares.

use clap::Subcommand;
use comfy_table::Cell;
use laneway_core::definition::{BadName, check_limit_name};
use laneway_core::limit::Limit;
use laneway_server::wire;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::text;

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
    #[command(after_help = "Example:\n  laneway limit set warehouse 3\n  laneway limit set api 100/1m")]
    Set {
        name: String,
        /// Tasks at once, such as 3, or in a time, such as 100/1m
        #[arg(value_parser = limit, allow_negative_numbers = true)]
        value: Limit,
    },
    /// List the limits and how far they are used
    #[command(after_help = "Example:\n  laneway limit list --json")]
    List {
        /// Print the limits as one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Remove a limit that nothing needs
    #[command(
        visible_alias = "remove",
        after_help = "Example:\n  laneway limit rm warehouse\n\n\
            Refused while a task holds it or waits for it, or a run that has not ended names it.\n\
            A later submission that names it is refused, unless its document declares the limit."
    )]
    Rm {
        /// The limit
        name: String,
    },
}

fn limit(text: &str) -> Result<Limit, String> {
    Limit::parse(text).map_err(|error| error.to_string())
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Set { name, value } => {
            check_limit_name(&name).map_err(|bad| Refusal::new(bad.to_string()).hint(BadName::HINT))?;
            let face = match context.client()? {
                Some(client) => Face::Server(client),
                None => Face::Store(context.open_or_create()?),
            };
            face.set_limit(&name, value).await?;
            context.printer.line(&format!("limit {name} is {value}"))?;
        }
        What::Rm { name } => {
            context.face()?.remove_limit(&name).await?;
            context.printer.line(&format!("limit {name} is removed"))?;
        }
        What::List { json } => {
            let limits = context.face()?.limits().await?;
            if json {
                context.printer.json(&limits)?;
            } else if limits.is_empty() {
                context.printer.note("there are no limits; `laneway limit set NAME N` makes one");
            } else {
                context.printer.text(&table(context, &limits))?;
            }
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, limits: &[wire::Limit]) -> String {
    let mut table = text::table(&["LIMIT", "VALUE", "HELD", "WAITING", "SET BY"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for limit in limits {
        table.add_row(vec![
            Cell::new(&limit.name),
            Cell::new(&limit.value),
            Cell::new(limit.held),
            Cell::new(limit.waiting),
            Cell::new(&limit.set_by),
        ]);
    }
    text::lines(&table)
}
