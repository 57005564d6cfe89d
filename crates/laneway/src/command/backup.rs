//! `laneway backup`: a whole copy of an embedded store in one file, while it is in use.

use std::path::PathBuf;

use laneway_store::archive;
use serde_json::json;

use super::Context;
use crate::exit::{Exit, Refusal};
use crate::text;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway backup copy.tar && laneway restore copy.tar --store elsewhere/laneway.db\n\n\
    The copy is one moment of the store with its logs and artifacts, whole and on disk when this returns; work\n\
    goes on meanwhile. A run that was going on is interrupted in the copy, and can be resumed there.\n\
    Not in it: the admin token, workspaces, and the key to the secrets, which is a secret: keep secret.key apart,\n\
    or say --with-secret-key and keep the copy as you would keep the secrets.\n\
    A store in Postgres is copied by its own tools: docs/operations.md says how."
)]
pub(crate) struct Args {
    /// The file to write, a tar; it must not be there yet
    file: PathBuf,
    /// Put the key to the secrets into it: whoever has the copy can read them
    #[arg(long)]
    with_secret_key: bool,
    /// Print what was written as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let store = context.open()?;
    if !store.is_embedded() {
        let shown = laneway_store::shown(&context.store);
        return Err(Refusal::new(format!("{shown} is copied by its own tools"))
            .hint("use `pg_dump`; docs/operations.md says what else belongs to a copy")
            .into());
    }
    let copied = archive::write(&*store, &args.file, args.with_secret_key).await?;
    if args.json {
        context.printer.json(&json!({ "file": args.file, "copied": copied }))?;
    } else {
        let (logs, artifacts) = (text::count(copied.logs, "log"), text::count(copied.artifacts, "artifact"));
        let size = text::bytes(copied.bytes);
        context
            .printer
            .line(&format!("{} written: the store, {logs}, {artifacts}; {size}", args.file.display()))?;
    }
    if copied.has_secret_key {
        context.printer.warning("the key to the secrets is in it: whoever has the copy can read them");
    } else if copied.secrets > 0 {
        let secrets = text::count(copied.secrets, "secret");
        context.printer.warning(&format!(
            "the key to {secrets} is not in it: keep secret.key apart, or say --with-secret-key"
        ));
    }
    Ok(Exit::Succeeded)
}
