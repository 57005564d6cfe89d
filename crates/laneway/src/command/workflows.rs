//! `laneway workflows`: what was applied, and how each ran last; with a name, the versions of that one.

use std::num::NonZeroU32;

use comfy_table::Cell;
use laneway_store::model::{Definition, WorkflowView};
use serde_json::{Value, json};

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
    let store = context.open()?;
    match &args.name {
        Some(name) => {
            let versions = store.versions(name, args.limit.get() as usize).await?;
            if versions.is_empty() {
                // Says that it is not known at all, or that it only ran.
                store.latest(name).await?;
            }
            if args.json {
                context.printer.json(&versions.iter().map(wire).collect::<Vec<_>>())?;
            } else if versions.is_empty() {
                context
                    .printer
                    .note(&format!("{name} has run, and was never applied; `laneway apply FILE` does that"));
            } else {
                context.printer.text(&versions_table(context, &versions))?;
            }
        }
        None => {
            let workflows = store.workflows().await?;
            if args.json {
                context.printer.json(&workflows.iter().map(wire_view).collect::<Vec<_>>())?;
            } else if workflows.is_empty() {
                context.printer.note("no workflow was applied yet; `laneway apply FILE` does that");
            } else {
                context.printer.text(&table(context, &workflows))?;
            }
        }
    }
    Ok(Exit::Succeeded)
}

fn table(context: &Context, workflows: &[WorkflowView]) -> String {
    let palette = context.printer.out_palette();
    let mut table =
        text::table(&["WORKFLOW", "VERSION", "APPLIED", "BY", "LAST RUN"], context.printer.width());
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
        let definition = &view.definition;
        table.add_row(vec![
            Cell::new(&definition.name),
            Cell::new(definition.no),
            Cell::new(text::date(definition.applied_at)),
            Cell::new(&definition.applied_by),
            last,
        ]);
    }
    text::lines(&table)
}

fn versions_table(context: &Context, versions: &[Definition]) -> String {
    let mut table =
        text::table(&["VERSION", "APPLIED", "BY", "DOCUMENT", "BUNDLE", "FROM"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for one in versions {
        let document: String = one.version.as_str().chars().take(12).collect();
        table.add_row(vec![
            Cell::new(one.no),
            Cell::new(text::date(one.applied_at)),
            Cell::new(&one.applied_by),
            Cell::new(document),
            Cell::new(one.bundle.as_ref().map_or("none", |hash| hash.short())),
            Cell::new(&one.dir),
        ]);
    }
    text::lines(&table)
}

fn wire(one: &Definition) -> Value {
    json!({
        "workflow": one.name,
        "version": one.no,
        "document": one.version,
        "bundle": one.bundle,
        "applied_at": one.applied_at.to_string(),
        "applied_by": one.applied_by,
        "dir": one.dir,
    })
}

fn wire_view(view: &WorkflowView) -> Value {
    let mut value = wire(&view.definition);
    value["last_run"] = view.last_run.as_ref().map_or(Value::Null, |last| {
        json!({ "run": last.run, "status": last.status, "submitted_at": last.submitted_at.to_string() })
    });
    value
}
