//! `laneway man`: manual pages, one for each command, for whoever packages the program.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::CommandFactory;

use super::Context;
use crate::cli::Cli;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where they are written
    dir: PathBuf,
}

pub(crate) fn execute(context: &Context, args: &Args) -> anyhow::Result<Exit> {
    let unwritable = || format!("manual pages cannot be written to {}", args.dir.display());
    std::fs::create_dir_all(&args.dir).with_context(unwritable)?;
    clap_mangen::generate_to(Cli::command(), &args.dir).with_context(unwritable)?;
    context.printer.note(&format!("wrote manual pages to {}", args.dir.display()));
    Ok(Exit::Succeeded)
}
