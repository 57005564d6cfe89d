//! `laneway files`: what a step of a submitted run changed in its files: lists it, or fetches some.

use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;
use comfy_table::Cell;
use laneway_core::id::RunId;
use laneway_engine::bundle;
use laneway_server::wire::{ChangedFile, ChangedFiles, ChangedKind};

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway files last build\n  laneway files last build --get dist/app --to .\n\n\
    Steps of a submitted run hand their files on. `laneway run` works in your own directory and records none."
)]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Step, or an item of one, such as `parse[3]`
    step: String,
    /// Fetch this file; repeatable
    #[arg(long, value_name = "PATH", requires = "to")]
    get: Vec<String>,
    /// Directory for fetched files, created if missing; without --get all files are fetched
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Print the files as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let run = face.run(&args.run).await?.run;
    let changed = face.changed_files(run, &args.step).await?;
    if let Some(to) = &args.to {
        let wanted = wanted(&changed, &args.get)?;
        for file in &wanted {
            fetch(&face, run, &args.step, file, to).await?;
        }
        context.printer.note(&format!("{} in {}", text::count(wanted.len() as u64, "file"), to.display()));
    } else if args.json {
        context.printer.json(&changed)?;
    } else if let Some(node) = &changed.node {
        context.printer.line(&format!(
            "{} are only on node {node}: more than the store takes",
            bundle::size(changed.bytes)
        ))?;
        context.printer.note("hint: raise `workspace_max_bytes` to let the run's files follow it");
    } else if changed.files.is_empty() {
        context.printer.note(&format!("{} changed no files", args.step));
    } else {
        context.printer.text(&table(context, &changed.files))?;
    }
    Ok(Exit::Succeeded)
}

fn wanted<'c>(changed: &'c ChangedFiles, paths: &[String]) -> Result<Vec<&'c ChangedFile>, Refusal> {
    let files = changed.files.iter().filter(|file| file.kind == ChangedKind::File);
    if paths.is_empty() {
        return Ok(files.collect());
    }
    let find = |path: &String| {
        files.clone().find(|file| file.path == *path).ok_or_else(|| {
            Refusal::new(format!("step `{}` left no file `{path}`", changed.step))
                .hint("`laneway files RUN STEP` lists what it left")
        })
    };
    paths.iter().map(find).collect()
}

/// Never overwrites a file: the reader may need it.
async fn fetch(face: &Face, run: RunId, step: &str, file: &ChangedFile, to: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // A server's word for a path counts only if the path stays below.
    let is_below = Path::new(&file.path).components().all(|part| matches!(part, Component::Normal(_)));
    let path = to.join(&file.path);
    if !is_below {
        return Err(Refusal::new(format!("`{}` leads out of {}", file.path, to.display())).into());
    }
    if path.symlink_metadata().is_ok() {
        let message = format!("{} exists", path.display());
        return Err(Refusal::new(message).hint("fetch into another directory with --to").into());
    }
    let unwritable = || format!("{} cannot be written", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(to)).with_context(unwritable)?;
    face.fetch_changed(run, step, &file.path, &path).await?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).with_context(unwritable)
}

fn table(context: &Context, files: &[ChangedFile]) -> String {
    let mut table = text::table(&["PATH", "KIND", "BYTES"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for file in files {
        let bytes = if file.kind == ChangedKind::File { file.bytes.to_string() } else { String::new() };
        table.add_row(vec![Cell::new(&file.path), Cell::new(file.kind.as_str()), Cell::new(bytes)]);
    }
    text::lines(&table)
}
