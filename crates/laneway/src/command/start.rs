//! `laneway start`: a workflow by its name: what was applied last, or else what ran last. Workers run it, or this process.

use std::num::NonZeroU32;

use laneway_core::definition::{self, Source};
use laneway_core::not_before::NotBefore;
use laneway_server::client::Client;
use laneway_server::wire;

use super::events::{self, Told};
use super::run::{Start, max_parallel};
use super::{Context, submit};
use crate::document::{Bad, ParamArgs};
use crate::drive::DriveArgs;
use crate::dry_run;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::settings::count;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway start nightly --wait -p date=2026-11-15\n\n\
    What was applied last is started, with the files that came with it; of a workflow that was never applied, what ran\n\
    last, in the directory in which it ran. Workers take it, unless --wait runs it here.")]
pub(crate) struct Args {
    /// The workflow's name
    name: String,
    /// Wait for its end; without a server it runs here
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    params: ParamArgs,
    /// Start one run for this key: again, it gives the same run, or an error if anything differs
    #[arg(long, value_name = "KEY", conflicts_with = "wait", value_parser = super::submit::key)]
    key: Option<String>,
    /// How many steps may run at once; wins over the document
    #[arg(long, value_name = "N", value_parser = count)]
    max_parallel: Option<NonZeroU32>,
    /// Start nothing of it: `laneway advance` does a level of it, `laneway resume` lets it go on
    #[arg(long, conflicts_with_all = ["wait", "dry_run"])]
    paused: bool,
    /// Let it wait until a moment such as 2026-12-24T18:00:00Z, or for a while such as 90m
    #[arg(long, value_name = "WHEN", conflicts_with_all = ["wait", "dry_run"], value_parser = submit::not_before)]
    at: Option<NotBefore>,
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
    let is_elsewhere = known.bundle.is_none() && !store.is_embedded();
    let no_cache = args.drive.no_cache;
    let start = Start {
        plan,
        document,
        dir: known.dir,
        bundle: known.bundle,
        params,
        max_parallel,
        no_cache,
        called: Vec::new(),
    };
    if args.wait {
        // Its items share the directory, as those of `laneway run` do. What is stored is not warned of.
        let source = Source {
            file: args.name.clone(),
            default_name: start.plan.workflow.name.clone(),
            text: start.document.clone(),
        };
        let examined = definition::examine(&source).map_err(Bad)?;
        if !examined.shared_directory.is_empty() {
            return Err(Bad(examined.shared_directory).into());
        }
        return start.drive(context, store, args.drive).await;
    }
    if is_elsewhere {
        return Err(Refusal::new(format!("the files of {} are only where it ran", args.name))
            .hint(format!(
                "`laneway apply FILE` brings them; `laneway start {} --wait` runs it here",
                args.name
            ))
            .into());
    }
    submit::refuse_local(&start)?;
    let submitted = submit::hand_over(store.as_ref(), start, (args.key, args.paused, args.at)).await?;
    submit::tell(context, &submitted, (None, args.at), args.drive.json)
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
    let asked = wire::Submit {
        workflow: Some(args.name),
        params,
        max_parallel: args.max_parallel.map(NonZeroU32::get),
        paused: args.paused,
        no_cache: args.drive.no_cache,
        not_before: args.at.as_ref().map(ToString::to_string),
        ..wire::Submit::default()
    };
    let submitted = client.submit(&asked, args.key.as_deref()).await?;
    if !args.wait {
        return submit::tell(context, &submitted, (None, args.at), args.drive.json);
    }
    let told = Told { after: 0, is_json: args.drive.json, follow: true };
    let status = events::tell(context, &Face::Server(client), submitted.run, told).await?;
    Ok(Exit::of_run(status, false))
}
