//! `laneway completions`: a script that a shell loads to complete commands and flags.

use clap::CommandFactory;
use clap_complete::Shell;

use super::Context;
use crate::cli::Cli;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway completions bash > ~/.local/share/bash-completion/completions/laneway"
)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "laneway", &mut script);
    context.printer.bytes(&script)?;
    Ok(Exit::Succeeded)
}
