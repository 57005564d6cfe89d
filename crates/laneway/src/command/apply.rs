//! `laneway apply`: makes workflows, with the files beside them, known to the store by name. Nothing is run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::hash::ContentHash;
use laneway_engine::bundle::{self, Bundle};
use laneway_store::Store;
use laneway_store::model::Application;
use serde_json::json;

use super::Context;
use crate::document;
use crate::exit::{Exit, Refusal};
use crate::{env, text};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway apply nightly.yaml\n  laneway start nightly\n\n\
    The directory of the file is packed with it, without what `.lanewayignore` names (as in .gitignore), so that its\n\
    scripts are there on whichever node its steps run. Applying what has not changed does nothing.")]
pub(crate) struct Args {
    /// Workflow files; all of them are read before any is applied
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let mut read = Vec::new();
    for file in &args.files {
        if file == "-" {
            return Err(Refusal::new("what is read from stdin has no directory to be packed")
                .hint("write it to a file, in a directory of its own")
                .into());
        }
        let document = document::read(file)?;
        let plan = document::compile(&document)?;
        if let Some(why) = plan.unsupported() {
            return Err(Refusal::new(format!("{file} cannot be applied: {why}")).into());
        }
        let bundle = pack(context, &document.dir)?;
        read.push((document, plan, bundle));
    }
    let store = context.open_or_create()?;
    let mut told = Vec::new();
    for (document, plan, bundle) in read {
        let (name, files) = (plan.workflow.name.clone(), bundle.files);
        let hash = store.keep_blob(bundle.bytes).await?;
        let application = Application {
            plan: Arc::new(plan),
            document: document.source.text,
            dir: document.dir.to_string_lossy().into_owned(),
            bundle: Some(hash.clone()),
            by: env::person(),
        };
        let applied = store.apply(application).await?;
        if args.json {
            told.push(json!({
                "workflow": name, "version": applied.no, "changed": !applied.was_there, "bundle": hash,
            }));
        } else if applied.was_there {
            context.printer.line(&format!("{name} has not changed: it is version {}", applied.no))?;
        } else {
            let files = text::count(files as u64, "file");
            context.printer.line(&format!("{name} is applied as version {}, with {files}", applied.no))?;
        }
    }
    if args.json {
        context.printer.json(&told)?;
    }
    Ok(Exit::Succeeded)
}

/// What lies beside a workflow file, without what is Laneway's own.
fn pack(context: &Context, dir: &Path) -> anyhow::Result<Bundle> {
    let packed = bundle::pack(dir, &own(context));
    Ok(packed.map_err(|error| match error.hint() {
        Some(hint) => Refusal::new(error.to_string()).hint(hint),
        None => Refusal::new(error.to_string()),
    })?)
}

/// Files of a store and of a node that may lie in the directory.
fn own(context: &Context) -> Vec<PathBuf> {
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    let data_dir = context.options().map(|options| options.data_dir).unwrap_or_default();
    let (dir, mut names) = if path.contains("://") {
        (data_dir.as_path(), Vec::new())
    } else {
        let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = ["", "-wal", "-shm"].map(|end| format!("{file}{end}"));
        (Path::new(path).parent().unwrap_or(Path::new("")), Vec::from(files))
    };
    names.extend(laneway_store::OWN_DIRS.map(str::to_owned));
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    // A directory that is not there holds nothing.
    let Ok(dir) = dir.canonicalize() else { return Vec::new() };
    names.into_iter().map(|name| dir.join(name)).collect()
}

/// Brings the directory of a file to a store that others read, for one run.
pub(super) async fn bring(context: &Context, store: &dyn Store, dir: &Path) -> anyhow::Result<ContentHash> {
    Ok(store.keep_blob(pack(context, dir)?.bytes).await?)
}
