//! `laneway submit`: a run for whoever takes it. Workers do, here or on other hosts; nothing is run by this process.

use std::num::NonZeroU32;

use laneway_core::definition::Placement;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_server::wire;
use laneway_store::model::{NewSession, Submission};

use super::Context;
use super::run::Start;
use crate::document::ParamArgs;
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::settings::count;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway submit nightly.yaml -p date=2026-11-15\n  laneway submit nightly.yaml --key nightly-2026-11-15\n\n\
    `laneway worker` takes the tasks of such runs. With a key that was used before, nothing new is made."
)]
pub(crate) struct Args {
    /// The workflow file; `-` reads stdin
    file: String,
    #[command(flatten)]
    params: ParamArgs,
    /// How many steps may run at once; wins over the document
    #[arg(long, value_name = "N", value_parser = count)]
    max_parallel: Option<NonZeroU32>,
    /// Whoever submits with the same key again gets the same run
    #[arg(long, value_name = "KEY", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    key: Option<String>,
    /// Print the run as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let start = Start::read(context, &args.file, &args.params, args.max_parallel)?;
    if start.plan.workflow.placement == Placement::Local {
        return Err(Refusal::new(
            "`placement: local` keeps a run on the node it is submitted to, and this is none",
        )
        .hint("use `laneway run`, or leave `placement` out")
        .into());
    }
    let workflow = start.plan.workflow.name.clone();
    if let Some(client) = context.client()? {
        let submit = wire::Submit {
            document: Some(start.document),
            name: Some(workflow),
            params: start.params,
            max_parallel: args.max_parallel.map(NonZeroU32::get),
            ..wire::Submit::default()
        };
        let submitted = client.submit(&submit, args.key.as_deref()).await?;
        return tell(context, &submitted, args.json);
    }
    let store = context.open_or_create()?;
    let session = store.register(NewSession::ephemeral(env::node(), 1)).await?;
    let submission = Submission { is_shared: true, key: args.key, ..start.submission(session) };
    let submitted = store.submit(submission).await;
    store.retire(session, Leaving::because(LeaveReason::Done)).await?;
    tell(context, &wire::Submitted { run: submitted?, workflow }, args.json)
}

pub(super) fn tell(context: &Context, submitted: &wire::Submitted, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(submitted)?;
    } else {
        let short = submitted.run.short();
        context.printer.line(&format!("run {short} of {} submitted", submitted.workflow))?;
        context.printer.note(&format!("`laneway show {short}` shows it"));
    }
    Ok(Exit::Succeeded)
}
