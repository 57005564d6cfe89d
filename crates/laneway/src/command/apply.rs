//! `laneway apply`: makes workflows, with the files beside them, known to the store by name. Nothing is run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_core::hash::ContentHash;
use laneway_core::plan::Plan;
use laneway_engine::bundle::{self, Bundle, Packing};
use laneway_server::client::Client;
use laneway_server::{ask, wire};
use laneway_store::Store;
use serde::Serialize;
use serde_json::{Value, json};

use super::Context;
use crate::children;
use crate::deed::author;
use crate::document::{self, Document, Files};
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway apply nightly.yaml\n  laneway start nightly\n\n\
    The directory of the file is packed with it, without what `.lanewayignore` names (as in .gitignore), so that its\n\
    scripts are there on whichever node its steps run. What is shipped is listed before it leaves. Files that look like\n\
    credentials (.env, private keys, ...) and files above 8 MiB are refused unless --include names them. Applying what\n\
    has not changed does nothing.")]
pub(crate) struct Args {
    /// Workflow files; all of them are read before any is applied
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    include: Include,
    /// Print one JSON array, with the files that were shipped
    #[arg(long)]
    json: bool,
}

/// What is packed although it looks like a credential or is large.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Include {
    /// Ship this file, or the files of this directory, although it looks like a credential or is large
    #[arg(long, value_name = "PATH")]
    include: Vec<PathBuf>,
}

/// So many files are listed; of more their number is told.
const MAX_LISTED_FILES: usize = 40;

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let mut read = Vec::new();
    for file in &args.files {
        if file == "-" {
            return Err(Refusal::new("what is read from stdin has no directory to be packed")
                .hint("write it to a file, in a directory of its own")
                .into());
        }
        let document = context.document(file)?;
        let reach = context.reach(Files::Apart)?;
        let plan = document::examine(&context.printer, &document, Files::Apart, reach.as_ref())?;
        children::check(context, &plan, &document.dir)?;
        if let Some(why) = plan.unsupported() {
            return Err(Refusal::new(format!("{file} cannot be applied: {why}")).into());
        }
        let bundle = pack(context, &document.dir, &args.include)?;
        read.push((document, plan, bundle));
    }
    let target = Target::of(context)?;
    let mut told = Vec::new();
    for (document, plan, bundle) in read {
        let brought = target.bring(context, bundle).await?;
        let applied = target.apply(document, plan, Some(brought.hash)).await?;
        let wire::Applied { workflow, version, changed, .. } = &applied;
        if args.json {
            told.push(with_files(&applied, &brought.files)?);
        } else if *changed {
            let files = text::count(brought.files.len() as u64, "file");
            context.printer.line(&format!("{workflow} is applied as version {version}, with {files}"))?;
        } else {
            context.printer.line(&format!("{workflow} has not changed: it is version {version}"))?;
        }
        if !args.json
            && let Some(nodes) = &applied.fired_by
        {
            say_who_fires(context, nodes)?;
        }
    }
    if args.json {
        context.printer.json(&told)?;
    }
    Ok(Exit::Succeeded)
}

/// Says which node fires the schedule, or what to start so that one does.
fn say_who_fires(context: &Context, nodes: &[String]) -> anyhow::Result<()> {
    match nodes {
        [] => {
            context.printer.line("no live node fires its schedule yet")?;
            context
                .printer
                .note("hint: start `laneway worker` or `laneway serve` on this store, and keep it running");
            Ok(())
        }
        [one] => context.printer.line(&format!("node {one} fires its schedule")),
        all => context.printer.line(&format!("{} nodes fire its schedule", all.len())),
    }
}

/// Where workflows and their files are brought: a store, which is made if it is not there, or a server with one.
pub(super) enum Target {
    Store(Arc<dyn Store>),
    Server(Client),
}

impl Target {
    fn of(context: &Context) -> anyhow::Result<Self> {
        Ok(match context.client()? {
            Some(client) => Self::Server(client),
            None => Self::Store(context.open_or_create()?),
        })
    }

    async fn bring(&self, context: &Context, bundle: Bundle) -> anyhow::Result<Brought> {
        let Bundle { bytes, files } = bundle;
        // Before anything leaves: a file that does not belong there is seen, also where the rest fails.
        list(context, &files);
        let hash = ContentHash::of(&bytes);
        match self {
            Self::Store(store) => {
                ask::bring(store.as_ref(), hash.as_str(), bytes, &author()).await?;
            }
            Self::Server(client) => {
                client.bring(hash.as_str(), bytes).await?;
            }
        }
        Ok(Brought { hash, files })
    }

    async fn apply(
        &self,
        document: Document,
        plan: Plan,
        bundle: Option<ContentHash>,
    ) -> anyhow::Result<wire::Applied> {
        match self {
            Self::Store(store) => {
                let read = (plan, document.source.text);
                Ok(ask::apply_plan(store.as_ref(), read, (&document.dir, bundle), &author()).await?)
            }
            Self::Server(client) => {
                let apply = wire::Apply {
                    document: document.source.text,
                    name: Some(plan.workflow.name),
                    bundle: bundle.as_ref().map(ContentHash::to_string),
                    directory: Some(document.dir.to_string_lossy().into_owned()),
                };
                Ok(client.apply(&apply).await?)
            }
        }
    }
}

/// Files that are at the target.
pub(super) struct Brought {
    pub(super) hash: ContentHash,
    /// With their sizes.
    pub(super) files: Vec<(PathBuf, u64)>,
}

/// What a command prints with `--json`, with the files that it shipped.
pub(super) fn with_files(printed: &impl Serialize, files: &[(PathBuf, u64)]) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(printed)?;
    let one = |(path, size): &(PathBuf, u64)| json!({"path": path.to_string_lossy(), "bytes": size});
    value["files"] = files.iter().map(one).collect();
    Ok(value)
}

/// Says what is about to be shipped.
fn list(context: &Context, files: &[(PathBuf, u64)]) {
    for (path, size) in files.iter().take(MAX_LISTED_FILES) {
        context.printer.note(&format!("  {} ({})", path.display(), bundle::size(*size)));
    }
    if let Some(more) = files.get(MAX_LISTED_FILES..).filter(|more| !more.is_empty()) {
        let size = more.iter().map(|(_, size)| size).sum();
        let more = text::count(more.len() as u64, "file");
        context.printer.note(&format!("  and {more} more ({})", bundle::size(size)));
    }
}

/// What lies beside a workflow file, without what is Laneway's own.
fn pack(context: &Context, dir: &Path, include: &Include) -> anyhow::Result<Bundle> {
    let named = include.include.iter().map(|path| {
        path.canonicalize().map_err(|error| {
            Refusal::new(format!("--include {} cannot be read: {error}", path.display()))
                .hint("name a file or a directory beside the workflow file")
        })
    });
    let include = named.collect::<Result<Vec<_>, _>>()?;
    let packed = bundle::pack(dir, &Packing { without: own(context), include });
    Ok(packed.map_err(|error| match error.hint() {
        Some(hint) => Refusal::new(error.to_string()).hint(hint),
        None => Refusal::new(error.to_string()),
    })?)
}

/// Files of a store and of a node that may lie in the directory, wherever either keeps them.
fn own(context: &Context) -> Vec<PathBuf> {
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    let own_names: Vec<String> =
        laneway_store::OWN_DIRS.into_iter().chain(laneway_store::OWN_FILES).map(str::to_owned).collect();
    let options = context.options().unwrap_or_default();
    let mut dirs = vec![(options.data_dir.clone(), own_names.clone())];
    if !path.contains("://") {
        let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let files = ["", "-wal", "-shm", ".d"].map(|end| format!("{file}{end}"));
        // Keys and tokens there may be those of another store.
        let keys = laneway_store::OWN_FILES.map(str::to_owned);
        let beside = files.into_iter().chain(keys).collect();
        dirs.push((Path::new(path).parent().unwrap_or(Path::new("")).to_owned(), beside));
        dirs.push((laneway_store::data_dir(path, &options), own_names));
    }
    let mut own = Vec::new();
    for (dir, names) in dirs {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir.as_path() };
        // A directory that is not there holds nothing.
        if let Ok(dir) = dir.canonicalize() {
            own.extend(names.into_iter().map(|name| dir.join(name)));
        }
    }
    own
}

/// Brings the directory of a file to a store that others read, for one run.
pub(super) async fn bring(
    context: &Context,
    target: &Target,
    (dir, include): (&Path, &Include),
) -> anyhow::Result<Brought> {
    target.bring(context, pack(context, dir, include)?).await
}

/// Brings a bundle without files.
pub(super) async fn bring_nothing(context: &Context, target: &Target) -> anyhow::Result<Brought> {
    target.bring(context, Bundle::empty()?).await
}
