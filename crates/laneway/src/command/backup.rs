//! `laneway backup`: a whole copy of the store in one file, while it is in use.

use std::path::PathBuf;

use serde_json::json;

use super::Context;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway backup copy.db && laneway --store copy.db runs\n\n\
    The copy is one moment of the store, whole and on disk when this returns; work goes on\n\
    meanwhile. A run that was going on is interrupted in the copy, and can be resumed there.\n\
    Logs are files beside the store, and not in it.")]
pub(crate) struct Args {
    /// The file to write; it must not be there yet
    file: PathBuf,
    /// Print what was written as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    context.open()?.backup(&args.file).await?;
    let bytes = std::fs::metadata(&args.file).map(|file| file.len()).unwrap_or_default();
    if args.json {
        context.printer.json(&json!({ "file": args.file, "bytes": bytes }))?;
    } else {
        context.printer.line(&format!("{} written, {bytes} bytes", args.file.display()))?;
    }
    Ok(Exit::Succeeded)
}
