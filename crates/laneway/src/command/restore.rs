//! `laneway restore`: a store made of what `laneway backup` has written, where there is none.

use std::path::{Path, PathBuf};

use laneway_store::archive;
use serde_json::json;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway restore copy.tar --store elsewhere/laneway.db\n\n\
    The copy is looked at as a whole before anything is put in its place: what is in it, its version, and whether it is\n\
    intact. A store that is there is never replaced.")]
pub(crate) struct Args {
    /// The file that `laneway backup` has written
    file: PathBuf,
    /// Print what was restored as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: &Args) -> anyhow::Result<Exit> {
    let path = context.store.strip_prefix("sqlite://").unwrap_or(&context.store);
    if path.contains("://") {
        return Err(Refusal::new(format!("{} is no file", laneway_store::shown(path)))
            .hint("name the file of the new store with --store; a database is restored by its own tools: `pg_restore`")
            .into());
    }
    let restored = archive::restore(&args.file, Path::new(path))?;
    let printer = &context.printer;
    if args.json {
        printer.json(&json!({ "store": path, "restored": restored }))?;
        return Ok(Exit::Succeeded);
    }
    let counted = [
        text::count(restored.runs, "run"),
        text::count(restored.logs, "log"),
        text::count(restored.artifacts, "artifact"),
    ];
    printer.line(&format!("{path} restored: {}", counted.join(", ")))?;
    if restored.missing > 0 {
        let missing = text::count(restored.missing, "artifact");
        printer.warning(&format!("{missing} named in it were not in the store when it was copied"));
    }
    if restored.secrets > 0 && !restored.has_secret_key {
        let secrets = text::count(restored.secrets, "secret");
        printer.warning(&format!(
            "{secrets} cannot be opened: put the secret.key of that store beside this one, or set LANEWAY_SECRET_KEY"
        ));
    }
    printer.note("next: `laneway doctor` looks it over, `laneway runs` shows what was interrupted, and `laneway serve`, `laneway worker` or `laneway run --resume RUN` goes on with it; stop whatever still uses the store it was copied from");
    Ok(Exit::Succeeded)
}
