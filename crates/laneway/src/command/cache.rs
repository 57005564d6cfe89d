//! `laneway cache`: results that steps take instead of being executed again.

use std::time::Duration;

use clap::Subcommand;
use comfy_table::Cell;
use laneway_server::wire;
use laneway_store::cache::Which;

use super::Context;
use crate::exit::Exit;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway cache list\n  laneway cache clear nightly build\n\n\
    Results are recorded by steps with `cache`. How long they are kept, and how much they may take up, is\n\
    what the settings keep_cache_for and keep_cache_bytes say.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List results, those that were used last first
    #[command(after_help = "Example:\n  laneway cache list nightly --json")]
    List {
        /// Only those of this workflow
        workflow: Option<String>,
        /// Only those of this step of it
        step: Option<String>,
        /// How many at most
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: usize,
        /// Print them as one JSON array
        #[arg(long)]
        json: bool,
    },
    /// Forget results, so that the steps are executed again
    #[command(after_help = "Example:\n  laneway cache clear nightly build")]
    Clear {
        /// Only those of this workflow
        workflow: Option<String>,
        /// Only those of this step of it
        step: Option<String>,
    },
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    match args.what {
        What::List { workflow, step, limit, json } => {
            let entries = context.face()?.results(Which { workflow, step }, limit).await?;
            if json {
                printer.json(&entries)?;
            } else if entries.is_empty() {
                printer.note("no result is recorded; a step with `cache: true` records what comes of it");
            } else {
                printer.text(&table(context, &entries))?;
            }
        }
        What::Clear { workflow, step } => {
            let cleared = context.face()?.clear_results(Which { workflow, step }).await?;
            let number = text::count(cleared.entries, "result");
            printer.line(&format!("{number} forgotten, {}", text::bytes(cleared.bytes)))?;
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, entries: &[wire::CacheEntry]) -> String {
    let width = context.printer.width();
    let is_narrow = text::is_narrow(width);
    let mut columns = vec!["WORKFLOW", "STEP", "KEY", "RUN", "RECORDED", "TOOK", "SIZE", "HITS", "LAST USED"];
    columns.retain(|column| !is_narrow || !["KEY", "RECORDED"].contains(column));
    let mut table = text::table(&columns, width);
    text::color(&mut table, context.printer.out_palette());
    for entry in entries {
        let mut row = vec![Cell::new(&entry.workflow), Cell::new(&entry.step)];
        if !is_narrow {
            row.push(Cell::new(entry.key.get(..12).unwrap_or(&entry.key)));
        }
        row.push(Cell::new(entry.run.short()));
        if !is_narrow {
            row.push(Cell::new(text::date(entry.recorded_at.0)));
        }
        row.extend([
            Cell::new(text::duration(Duration::from_millis(entry.took_ms))),
            Cell::new(text::bytes(entry.bytes)),
            Cell::new(entry.hits),
            Cell::new(text::date_in(entry.last_used_at.0, is_narrow)),
        ]);
        table.add_row(row);
    }
    text::lines(&table)
}
