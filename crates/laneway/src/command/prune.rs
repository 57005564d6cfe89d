//! `laneway prune`: what the deployment keeps no longer goes now, or is only told.

use std::num::NonZeroU32;
use std::time::Duration;

use laneway_engine::prune::{Pruned, prune};
use laneway_store::Store;
use laneway_store::cache::Forgotten;
use laneway_store::prune::{Keep, Prunable, Swept};
use serde_json::{Value, json};

use super::Context;
use crate::deed::author;
use crate::exit::{Exit, Refusal};
use crate::settings::{bytes, count, span};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway prune --older-than 30d --dry-run\n\n\
    Without a flag it is what the settings keep_runs_for, keep_runs and keep_bytes say;\n\
    `laneway serve` and `laneway worker` do the same by themselves. Recorded results go as\n\
    keep_cache_for and keep_cache_bytes say, the audit log and what nodes told as keep_audit_for\n\
    and keep_node_events_for. Never removed are runs that are not over, the newest run of each\n\
    workflow, runs that were set aside, and runs whose end has yet to start something.")]
pub(crate) struct Args {
    /// Remove runs that ended longer ago
    #[arg(long, value_name = "DURATION", value_parser = span)]
    older_than: Option<Duration>,
    /// Keep so many runs of each workflow, the newest
    #[arg(long, value_name = "N", value_parser = count)]
    keep: Option<NonZeroU32>,
    /// Remove the oldest until the rest takes up no more, such as 20GiB
    #[arg(long = "keep-bytes", value_name = "SIZE", value_parser = bytes)]
    within: Option<u64>,
    /// Remove only results of steps with `cache` that are kept no longer
    #[arg(long, conflicts_with_all = ["older_than", "keep", "within", "dry_run"])]
    cache: bool,
    /// Only say what would be removed
    #[arg(long)]
    dry_run: bool,
    /// Print what was removed as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let results = context.settings.keep_results()?;
    if args.cache {
        let store = context.open()?;
        let gone = store.prune_results(results).await?;
        note(store.as_ref(), &Pruned::default(), &gone).await?;
        let swept = store.sweep().await?;
        return tell(context, &args, &[], (&Pruned::default(), &gone, &swept));
    }
    let given = Keep { for_: args.older_than, runs: args.keep.map(NonZeroU32::get), bytes: args.within };
    let keep = if given.is_everything() { context.settings.keep()? } else { given };
    if keep.is_everything() {
        return Err(Refusal::new("nothing says what may be removed")
            .hint("give --older-than, --keep or --keep-bytes, or set keep_runs_for, keep_runs or keep_bytes")
            .into());
    }
    let store = context.open()?;
    if args.dry_run {
        let runs = store.prunable(keep, usize::MAX).await?;
        let bytes = runs.iter().map(|run| run.bytes).sum();
        let all = Pruned { runs: runs.len() as u64, bytes };
        return tell(context, &args, &runs, (&all, &Forgotten::default(), &Swept::default()));
    }
    let mut runs = Vec::new();
    let pruned = prune(&*store, keep, usize::MAX, |run| runs.push(run.clone())).await?;
    let gone = store.prune_results(results).await?;
    note(store.as_ref(), &pruned, &gone).await?;
    store.prune_records(context.settings.keep_records()?).await?;
    let swept = store.sweep().await?;
    tell(context, &args, &runs, (&pruned, &gone, &swept))
}

/// That somebody removed something, for the audit log; what goes by itself is in none.
async fn note(store: &dyn Store, pruned: &Pruned, gone: &Forgotten) -> anyhow::Result<()> {
    if pruned.runs == 0 && gone.results == 0 {
        return Ok(());
    }
    let (runs, results) = (text::count(pruned.runs, "run"), text::count(gone.results, "recorded result"));
    author().record(store, "prune", format!("{runs}, {results}")).await?;
    Ok(())
}

fn tell(
    context: &Context,
    args: &Args,
    runs: &[Prunable],
    (pruned, gone, swept): (&Pruned, &Forgotten, &Swept),
) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    if args.json {
        let each: Vec<Value> = runs.iter().map(wire).collect();
        printer.json(&json!({
            "dry_run": args.dry_run, "runs": each, "results": gone.results, "swept": swept.things,
            "bytes": pruned.bytes + swept.bytes,
        }))?;
        return Ok(Exit::Succeeded);
    }
    for run in runs {
        printer.line(&format!(
            "{}  {}  {}  ended {}  {}",
            run.run.short(),
            run.workflow,
            run.status,
            text::date(run.finished_at),
            text::bytes(run.bytes)
        ))?;
    }
    let number = text::count(pruned.runs, "run");
    printer.line(&if args.dry_run {
        format!("{number} would be removed, {}", text::bytes(pruned.bytes))
    } else {
        let things = text::count(swept.things, "thing");
        let freed = text::bytes(pruned.bytes + swept.bytes);
        let results = match gone.results {
            0 => String::new(),
            many => format!(", {}", text::count(many, "recorded result")),
        };
        format!("{number}{results} removed, and {things} that nothing referred to; {freed} freed")
    })?;
    Ok(Exit::Succeeded)
}

fn wire(run: &Prunable) -> Value {
    json!({
        "run": run.run, "workflow": run.workflow, "status": run.status,
        "finished_at": run.finished_at.to_string(), "bytes": run.bytes,
    })
}
