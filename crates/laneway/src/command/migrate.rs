//! `laneway migrate`: brings a store to the schema that this program knows, by hand. Makes a store that is not there.

use laneway_store::{Open, SchemaChange};
use serde_json::json;

use super::Context;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway migrate --store postgres://owner@db/laneway\n\n\
    `laneway run`, `worker` and `serve` do the same when they start. With this the nodes need no right to change the\n\
    schema of a Postgres database: docs/operations.md says which rights they need. Older nodes go on meanwhile.")]
pub(crate) struct Args {
    /// Print what was done as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: &Args) -> anyhow::Result<Exit> {
    let (store, change) = context.open_telling(Open::Migrate)?;
    drop(store);
    let shown = laneway_store::shown(&context.store);
    let (from, to, line) = match change {
        SchemaChange::Unchanged { schema } => {
            (Some(schema), schema, format!("store {shown} has schema {schema} already"))
        }
        SchemaChange::Made { schema } => (None, schema, format!("made store {shown} with schema {schema}")),
        SchemaChange::Migrated { from, to } => {
            (Some(from), to, format!("migrated store {shown} from schema {from} to {to}"))
        }
    };
    if args.json {
        context.printer.json(&json!({ "store": shown, "from": from, "to": to }))?;
    } else {
        context.printer.line(&line)?;
    }
    Ok(Exit::Succeeded)
}
