//! `laneway start`: a workflow that this store has run before, by its name.

use std::num::NonZeroU32;

use laneway_core::definition::{self, Source};
use laneway_server::client::Client;
use laneway_server::wire;

use super::Context;
use super::events::{self, Told};
use super::run::{Start, max_parallel};
use crate::document::{Bad, ParamArgs};
use crate::drive::DriveArgs;
use crate::dry_run;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::settings::count;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway start nightly --wait -p date=2026-11-15\n\n\
    The newest version that was run is started, in the directory in which it ran.")]
pub(crate) struct Args {
    /// The workflow's name
    name: String,
    /// Wait for its end; without a server it runs here
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
    if let Some(client) = context.client()? {
        return through(context, client, args).await;
    }
    if !args.wait && !args.dry_run {
        return Err(Refusal::new("no server is named that would run it in the background")
            .hint(format!("`laneway start {} --wait` runs it here; --server names a server", args.name))
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

/// The same through a server, whose workers run it.
async fn through(context: &Context, client: Client, args: Args) -> anyhow::Result<Exit> {
    let known = client.workflow(&args.name).await?;
    let source = Source { file: args.name.clone(), default_name: known.name, text: known.document };
    let plan = definition::compile(&source).map_err(Bad)?;
    let params = args.params.bind(&plan)?;
    if args.dry_run {
        let max_parallel = max_parallel(context, args.max_parallel, plan.workflow.max_parallel)?;
        dry_run::show(&context.printer, &plan, &params, max_parallel, args.drive.json)?;
        return Ok(Exit::Succeeded);
    }
    let submit = wire::Submit {
        workflow: Some(args.name),
        params,
        max_parallel: args.max_parallel.map(NonZeroU32::get),
        ..wire::Submit::default()
    };
    let submitted = client.submit(&submit, None).await?;
    if !args.wait {
        return super::submit::tell(context, &submitted, args.drive.json);
    }
    let told = Told { after: 0, is_json: args.drive.json, follow: true };
    let status = events::tell(context, &Face::Server(client), submitted.run, told).await?;
    Ok(Exit::of_run(status, false))
}
