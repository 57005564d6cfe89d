//! `laneway plan`: levels, lanes, width, critical path and pre-warm point of a workflow. Runs nothing.

use laneway_core::plan::text::describe;
use laneway_core::plan::wire;

use super::Context;
use crate::document;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway plan build.yaml --json | jq .critical_path")]
pub(crate) struct Args {
    /// The workflow file; `-` reads stdin
    file: String,
    /// Print all of it as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let document = document::read(&args.file)?;
    let plan = document::compile(&document)?;
    if args.json {
        context.printer.json(&wire::Plan::from(&plan))?;
    } else {
        context.printer.text(&describe(&plan))?;
    }
    Ok(Exit::Succeeded)
}
