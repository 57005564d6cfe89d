//! `laneway artifacts`: files that the steps of a run left behind: lists them, or fetches some.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use comfy_table::Cell;
use laneway_store::Store;
use laneway_store::model::ArtifactView;
use serde_json::{Value, json};

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway artifacts last build\n  laneway artifacts last build --get dist/app.tar.gz --to .\n\n\
    A step names them: `artifacts: [dist/*.tar.gz]`. They are kept if it succeeds; without NAME, --to fetches all of them."
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    #[arg(default_value = "last")]
    run: String,
    /// Only those of this step
    step: Option<String>,
    /// Fetch this one; repeatable
    #[arg(long, value_name = "NAME", requires = "to")]
    get: Vec<String>,
    /// Where what is fetched goes; made if it is not there
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print the artifacts as one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let (store, run) = context.find(&args.run).await?;
    let mut found = store.artifacts(run).await?;
    if let Some(step) = &args.step {
        // Refuses a step that is not there, with the nearest name.
        store.attempts(run, step).await?;
        found.retain(|view| view.step == *step);
    }
    if let Some(to) = &args.to {
        let wanted = wanted(&found, &args.get)?;
        for view in &wanted {
            fetch(store.as_ref(), view, to).await?;
        }
        context.printer.note(&format!("{} in {}", text::count(wanted.len() as u64, "file"), to.display()));
    } else if args.json {
        context.printer.json(&found.iter().map(wire).collect::<Vec<_>>())?;
    } else if found.is_empty() {
        context.printer.note("no step that succeeded left artifacts behind");
    } else {
        context.printer.text(&table(context, &found))?;
    }
    Ok(Exit::Succeeded)
}

/// Those that are asked for by name; all without one. Two of one name are told apart by their step.
fn wanted<'f>(found: &'f [ArtifactView], names: &[String]) -> Result<Vec<&'f ArtifactView>, Refusal> {
    if names.is_empty() {
        return Ok(found.iter().collect());
    }
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        let mut like = found.iter().filter(|view| view.artifact.name.as_str() == name);
        match (like.next(), like.next()) {
            (None, _) => {
                return Err(Refusal::new(format!("there is no artifact `{name}`"))
                    .hint("`laneway artifacts RUN` lists them"));
            }
            (Some(one), Some(other)) => {
                let message = format!("`{}` and `{}` both have an artifact `{name}`", one.step, other.step);
                return Err(Refusal::new(message).hint("name the step as well"));
            }
            (Some(one), None) => wanted.push(one),
        }
    }
    Ok(wanted)
}

/// A file that is there is not written over: somebody may need it.
async fn fetch(store: &dyn Store, view: &ArtifactView, to: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = to.join(view.artifact.name.as_str());
    if path.symlink_metadata().is_ok() {
        let message = format!("{} is there already", path.display());
        return Err(Refusal::new(message).hint("fetch into another directory with --to").into());
    }
    let unwritable = || format!("{} cannot be written", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(to)).with_context(unwritable)?;
    store.fetch_file(&view.artifact.hash, &path).await?;
    let mode = if view.artifact.is_executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).with_context(unwritable)
}

fn table(context: &Context, found: &[ArtifactView]) -> String {
    let mut table = text::table(&["STEP", "NAME", "BYTES", "HASH"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for view in found {
        table.add_row(vec![
            Cell::new(&view.step),
            Cell::new(view.artifact.name.as_str()),
            Cell::new(view.artifact.size),
            Cell::new(view.artifact.hash.short()),
        ]);
    }
    text::lines(&table)
}

fn wire(view: &ArtifactView) -> Value {
    json!({
        "step": view.step,
        "attempt": view.attempt,
        "name": view.artifact.name.as_str(),
        "bytes": view.artifact.size,
        "hash": view.artifact.hash,
        "executable": view.artifact.is_executable,
    })
}
