//! `laneway schema`: the JSON Schema of workflow files, for editors.

use super::{Context, write_to};
use crate::exit::Exit;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway schema -o laneway.schema.json\n\n\
    Then let an editor use it with this first line of a workflow file:\n  \
    # yaml-language-server: $schema=laneway.schema.json")]
pub(crate) struct Args {
    /// Write to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let text = serde_json::to_string_pretty(&laneway_core::definition::schema())?;
    write_to(context, args.output.as_deref(), &format!("{text}\n"))?;
    Ok(Exit::Succeeded)
}
