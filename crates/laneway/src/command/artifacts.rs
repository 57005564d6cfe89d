//! `laneway artifacts`: files that the steps of a run left behind: lists them, or fetches some.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use comfy_table::Cell;
use laneway_core::artifact::ArtifactName;
use laneway_core::growth::parse_name;
use laneway_core::id::RunId;
use laneway_core::nearest::nearest;
use laneway_server::wire::Artifact;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway artifacts last build\n  laneway artifacts last build --get dist/app.tar.gz --to .\n\n\
    A step names them: `artifacts: [dist/*.tar.gz]`. They are kept if it succeeds; without NAME, --to fetches all of them.\n\
    Those of the items of a step are put into folders: DIR/STEP/INDEX/..."
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
    let face = context.face()?;
    let run = face.run(&args.run).await?;
    let mut found = face.artifacts(run.run).await?;
    if let Some(step) = &args.step {
        // Refuses a step that is not there, with the nearest name.
        face.explain_step(&run.run.to_string(), step).await?;
        found.retain(|artifact| artifact.step == *step || parse_name(&artifact.step).0 == step);
    }
    if let Some(to) = &args.to {
        let wanted = wanted(&run.run.short(), &found, &args.get)?;
        for view in wanted.iter().copied() {
            fetch(&face, run.run, view, to).await?;
        }
        context.printer.note(&format!("{} in {}", text::count(wanted.len() as u64, "file"), to.display()));
    } else if args.json {
        context.printer.json(&found)?;
    } else if found.is_empty() {
        context.printer.note("no step that succeeded left artifacts behind");
    } else {
        context.printer.text(&table(context, &found))?;
    }
    Ok(Exit::Succeeded)
}

/// Those that are asked for by name; all without one. Two of one name are told apart by their step.
fn wanted<'f>(run: &str, found: &'f [Artifact], names: &[String]) -> Result<Vec<&'f Artifact>, Refusal> {
    if names.is_empty() {
        return Ok(found.iter().collect());
    }
    let mut wanted = Vec::with_capacity(names.len());
    for name in names {
        let mut like = found.iter().filter(|artifact| artifact.name == *name);
        match (like.next(), like.next()) {
            (None, _) => {
                let message = match found {
                    [] => format!("run {run} has no artifacts, so there is no `{name}`"),
                    [..] => format!("run {run} has no artifact `{name}`"),
                };
                let hint = match nearest(name, found.iter().map(|artifact| artifact.name.as_str())) {
                    Some(near) => format!("did you mean `{near}`? `laneway artifacts {run}` lists them"),
                    None => format!("`laneway artifacts {run}` lists what it has"),
                };
                return Err(Refusal::new(message).hint(hint));
            }
            (Some(one), Some(other)) => {
                let message = format!("`{}` and `{}` both have an artifact `{name}`", one.step, other.step);
                let hint =
                    format!("name the step as well: `laneway artifacts {run} {} --get {name}`", one.step);
                return Err(Refusal::new(message).hint(hint));
            }
            (Some(one), None) => wanted.push(one),
        }
    }
    Ok(wanted)
}

/// Items of one step may leave files of one name: each has a folder, `STEP/INDEX`.
fn folder(to: &Path, task: &str) -> PathBuf {
    match parse_name(task) {
        (step, Some(index)) => to.join(step).join(index.to_string()),
        (_, None) => to.to_owned(),
    }
}

/// A file that is there is not written over: somebody may need it.
async fn fetch(face: &Face, run: RunId, artifact: &Artifact, to: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    // What a server says is a path only if it is one that stays below.
    let name = ArtifactName::parse(&artifact.name).map_err(Refusal::new)?;
    let path = folder(to, &artifact.step).join(name.as_str());
    if path.symlink_metadata().is_ok() {
        let message = format!("{} is there already", path.display());
        return Err(Refusal::new(message).hint("fetch into another directory with --to").into());
    }
    let unwritable = || format!("{} cannot be written", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(to)).with_context(unwritable)?;
    face.fetch(run, artifact, &path).await?;
    let mode = if artifact.executable { 0o755 } else { 0o644 };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).with_context(unwritable)
}

fn table(context: &Context, found: &[Artifact]) -> String {
    let mut table = text::table(&["STEP", "NAME", "BYTES", "HASH"], context.printer.width());
    text::color(&mut table, context.printer.out_palette());
    for artifact in found {
        table.add_row(vec![
            Cell::new(&artifact.step),
            Cell::new(&artifact.name),
            Cell::new(artifact.bytes),
            Cell::new(artifact.hash.get(..12).unwrap_or_default()),
        ]);
    }
    text::lines(&table)
}
