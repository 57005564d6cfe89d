//! `laneway runs`: the list, newest first.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use comfy_table::Cell;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_server::wire::RunSummary;
use serde_json::{Map, Value};

use super::Context;
use crate::exit::Exit;
use crate::text::{self, Palette};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway runs --status failed --limit 5")]
pub(crate) struct Args {
    /// Only runs that are so
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<RunStatus>,
    /// Only runs of this workflow
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
    /// At most so many
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = crate::settings::count)]
    limit: NonZeroU32,
    /// Print the runs as one JSON array
    #[arg(long)]
    json: bool,
}

fn status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| {
        let words: Vec<&str> = RunStatus::ALL.iter().map(|status| status.as_str()).collect();
        format!("use one of {}", words.join(", "))
    })
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let printer = &context.printer;
    let is_filtered = args.status.is_some() || args.workflow.is_some();
    let limit = args.limit.get() as usize;
    let runs = context.face()?.runs(args.status, args.workflow, limit).await?;
    if args.json {
        printer.json(&runs)?;
    } else if runs.is_empty() {
        printer.note(if is_filtered { "no run is like that" } else { "no runs yet" });
    } else {
        printer.text(&table(&runs, printer.out_palette(), printer.width()))?;
        for (cause, count) in queued(&runs) {
            printer.note(&format!("{} queued: {}", text::count(count, "run"), text::told(cause)));
        }
        if let Some(later) = for_later(&runs) {
            printer.note(&later);
        }
        if runs.len() == limit {
            printer.note(&format!("the newest {}; --limit shows more", limit));
        }
        if runs.iter().any(|run| run.set_aside.is_some() || run.status.is_none()) {
            printer.note("something of a run cannot be read; `laneway doctor` says what, and what to do");
        }
    }
    Ok(Exit::Succeeded)
}

/// Why runs are queued that no live node can take, each reason once.
fn queued(runs: &[RunSummary]) -> BTreeMap<&str, u64> {
    let mut causes = BTreeMap::new();
    let now = runs.iter().filter(|run| run.not_before.is_none());
    for cause in now.filter_map(|run| run.cause.as_deref()) {
        *causes.entry(cause).or_default() += 1;
    }
    causes
}

/// How many runs wait for a moment that their caller named, and when the first of them begins.
fn for_later(runs: &[RunSummary]) -> Option<String> {
    let moments: Vec<Millis> = runs.iter().filter_map(|run| Some(run.not_before?.0)).collect();
    let first = text::date(*moments.iter().min()?);
    Some(match moments.len() {
        1 => format!("1 run is for later, and begins at {first}"),
        count => format!("{count} runs are for later, the first begins at {first}"),
    })
}

fn table(runs: &[RunSummary], palette: Palette, width: Option<u16>) -> String {
    let is_narrow = text::is_narrow(width);
    let mut table = text::table(&["RUN", "WORKFLOW", "STATUS", "SUBMITTED", "TOOK", "TASKS"], width);
    text::color(&mut table, palette);
    for run in runs {
        let (word, look) = text::run_word(run);
        let mut status = Cell::new(format!("{} {word}", text::run_mark(look)));
        if palette.is_on() {
            status = text::run_color(status, look);
        }
        let took = match (run.first_task_at.or(run.started_at), run.finished_at) {
            (Some(started), Some(finished)) => text::duration(finished.0.since(started.0)),
            (Some(_) | None, _) => String::new(),
        };
        table.add_row(vec![
            Cell::new(run.run.short()),
            Cell::new(&run.workflow),
            status,
            Cell::new(text::date_in(run.submitted_at.0, is_narrow)),
            Cell::new(took),
            Cell::new(counts(&run.tasks, is_narrow)),
        ]);
    }
    text::lines(&table)
}

/// `3 succeeded, 1 failed`, or where there is little room `✓3 ✗1`.
fn counts(counts: &Map<String, Value>, is_narrow: bool) -> String {
    let told = counts.iter().map(|(status, number)| match TaskStatus::parse(status) {
        Some(status) if is_narrow => format!("{}{number}", text::task_mark(status)),
        Some(_) | None => format!("{number} {status}"),
    });
    told.collect::<Vec<_>>().join(if is_narrow { " " } else { ", " })
}
