//! `laneway openapi`: what the server says of itself, for programs that make clients.

use std::path::PathBuf;

use super::{Context, write_to};
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway openapi -o openapi.json")]
pub(crate) struct Args {
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let text = laneway_server::openapi().to_pretty_json()?;
    write_to(context, args.output.as_deref(), &format!("{text}\n"))?;
    Ok(Exit::Succeeded)
}
