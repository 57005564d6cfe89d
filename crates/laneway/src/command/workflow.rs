//! `laneway workflow`: what is done to a workflow that was applied. `laneway workflows` lists them.

use clap::Subcommand;

use super::Context;
use crate::exit::Exit;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway workflow rm nightly")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Remove what was applied under a name, with its triggers
    #[command(
        visible_alias = "remove",
        after_help = "Example:\n  laneway workflow rm nightly\n\n\
            Its runs, their logs and artifacts stay, and are shown as before. No run is started by its\n\
            name until something is applied or run under it again."
    )]
    Rm {
        /// The workflow's name
        name: String,
        /// Also while runs of it have not ended, which go on to their end, or triggers fire
        #[arg(long)]
        force: bool,
    },
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    match args.what {
        What::Rm { name, force } => {
            context.face()?.remove_workflow(&name, force).await?;
            context.printer.line(&format!("workflow {name} is removed; its runs stay"))?;
        }
    }
    Ok(Exit::Succeeded)
}
