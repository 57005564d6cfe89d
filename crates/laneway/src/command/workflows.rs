//! `laneway workflows`: what was applied, and how each ran last; with a name, the versions of that one.

use std::num::NonZeroU32;

use comfy_table::Cell;
use laneway_server::wire::{Definition, WorkflowSummary};

use super::Context;
use crate::exit::Exit;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway workflows\n  laneway workflows nightly")]
pub(crate) struct Args {
    /// Show the versions of this one, newest first
    name: Option<String>,
    /// At most so many versions
    #[arg(short = 'n', long, value_name = "N", default_value = "20", value_parser = crate::settings::count, requires = "name")]
    limit: NonZeroU32,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    match &args.name {
        Some(name) => {
            let versions = face.versions(name, args.limit.get() as usize).await?;
            if args.json {
                context.printer.json(&versions)?;
            } else if versions.is_empty() {
                context
                    .printer
                    .note(&format!("{name} has run, and was never applied; `laneway apply FILE` does that"));
            } else {
                context.printer.text(&versions_table(context, &versions))?;
            }
        }
        None => {
            let workflows = face.workflows(args.json).await?;
            if args.json {
                context.printer.json(&workflows)?;
            } else if workflows.is_empty() {
                context.printer.note("no workflow was applied yet; `laneway apply FILE` does that");
            } else {
                context.printer.text(&table(context, &workflows))?;
            }
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, workflows: &[WorkflowSummary]) -> String {
    let palette = context.printer.out_palette();
    let width = context.printer.width();
    let mut table = text::table(&["WORKFLOW", "VERSION", "APPLIED", "BY", "LAST RUN"], width);
    text::color(&mut table, palette);
    for view in workflows {
        let last = match &view.last_run {
            None => Cell::new("never"),
            Some(last) => {
                let word = last.status.map_or("unreadable", |status| status.as_str());
                let cell = Cell::new(format!("{word} ({})", last.run.short()));
                match last.status.filter(|_| palette.is_on()) {
                    Some(status) => text::run_color(cell, status),
                    None => cell,
                }
            }
        };
        table.add_row(vec![
            Cell::new(named(view)),
            Cell::new(view.version),
            Cell::new(text::date_in(view.applied_at.0, text::is_narrow(width))),
            Cell::new(&view.applied_by),
            last,
        ]);
    }
    text::lines(&table)
}

/// With the word that says why nothing of it starts.
fn named(view: &WorkflowSummary) -> String {
    match &view.paused_by {
        None => view.workflow.clone(),
        Some(by) => format!("{} (paused by {by})", view.workflow),
    }
}

fn versions_table(context: &Context, versions: &[Definition]) -> String {
    let mut table =
        text::table(&["VERSION", "APPLIED", "BY", "DOCUMENT", "BUNDLE", "FROM"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for one in versions {
        let short = |hash: &str| hash.chars().take(12).collect::<String>();
        table.add_row(vec![
            Cell::new(one.version),
            Cell::new(text::date(one.applied_at.0)),
            Cell::new(&one.applied_by),
            Cell::new(short(&one.document)),
            Cell::new(one.bundle.as_deref().map_or_else(|| "none".to_owned(), short)),
            Cell::new(&one.dir),
        ]);
    }
    text::lines(&table)
}
