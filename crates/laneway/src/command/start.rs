//! `laneway start`: a workflow that this store has run before, by its name.

use std::num::NonZeroU32;

use super::Context;
use super::run::{Start, max_parallel};
use crate::document::ParamArgs;
use crate::drive::DriveArgs;
use crate::dry_run;
use crate::exit::{Exit, Refusal};
use crate::settings::count;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway start nightly --wait -p date=2026-11-15\n\n\
    The newest version that was run is started, in the directory in which it ran.")]
pub(crate) struct Args {
    /// The workflow's name
    name: String,
    /// Run it here and wait for its end
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    params: ParamArgs,
    /// How many steps may run at once; wins over the document
    #[arg(long, value_name = "N", value_parser = count)]
    max_parallel: Option<NonZeroU32>,
    /// Show what would run, without running it
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    drive: DriveArgs,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    if !args.wait && !args.dry_run {
        return Err(Refusal::new("there is no server that would run it in the background")
            .hint(format!("`laneway start {} --wait` runs it here", args.name))
            .into());
    }
    let store = context.open()?;
    let known = store.latest(&args.name).await?;
    let plan = store.plan(&known.version).await?;
    let params = args.params.bind(&plan)?;
    let max_parallel = max_parallel(context, args.max_parallel, plan.workflow.max_parallel)?;
    if args.dry_run {
        dry_run::show(&context.printer, &plan, &params, max_parallel, args.drive.json)?;
        return Ok(Exit::Succeeded);
    }
    let document = store.document(&known.version).await?;
    let start = Start { plan, document, dir: known.dir, params, max_parallel };
    start.drive(context, store, args.drive).await
}
