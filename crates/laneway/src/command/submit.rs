//! `laneway submit`: a run for whoever takes it. Workers do, here or on other hosts; nothing is run by this process.

use std::num::NonZeroU32;
use std::sync::Arc;

use laneway_core::definition::Placement;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_server::wire;
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Store, submission_key};

use super::Context;
use super::apply::{self, Target};
use super::run::Start;
use crate::document::{self, ParamArgs};
use crate::exit::{Exit, Refusal};
use crate::settings::count;
use crate::{deed, env};

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
    #[command(flatten)]
    include: apply::Include,
    /// How many steps may run at once; wins over the document
    #[arg(long, value_name = "N", value_parser = count)]
    max_parallel: Option<NonZeroU32>,
    /// Whoever submits with the same key again gets the same run
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<String>,
    /// Start nothing of it: `laneway advance` does a level of it, `laneway resume` lets it go on
    #[arg(long)]
    paused: bool,
    /// Execute every step, also those whose result was recorded before; what comes of them is recorded anew
    #[arg(long)]
    no_cache: bool,
    /// Print the run as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let document = document::read(&args.file)?;
    let dir = document.dir.clone();
    let mut start = Start::of(context, document, &args.params, args.max_parallel)?;
    refuse_local(&start)?;
    start.no_cache = args.no_cache;
    if let Some(client) = context.client()? {
        let target = Target::Server(client.clone());
        let bundle = match args.file.as_str() {
            "-" => None,
            _ => Some(apply::bring(context, &target, (&dir, &args.include)).await?.to_string()),
        };
        let submit = wire::Submit {
            bundle,
            name: Some(start.plan.workflow.name.clone()),
            document: Some(start.document),
            params: start.params,
            max_parallel: args.max_parallel.map(NonZeroU32::get),
            paused: args.paused,
            no_cache: args.no_cache,
            ..wire::Submit::default()
        };
        let submitted = client.submit(&submit, args.key.as_deref()).await?;
        return tell(context, &submitted, args.json);
    }
    let store = context.open_or_create()?;
    // Nodes on other hosts do not have the directory. What came through stdin has none.
    if !store.is_embedded() && args.file != "-" {
        start.bundle =
            Some(apply::bring(context, &Target::Store(Arc::clone(&store)), (&dir, &args.include)).await?);
    }
    hand_over(context, store.as_ref(), start, (args.key, args.paused), args.json).await
}

pub(super) fn refuse_local(start: &Start) -> Result<(), Refusal> {
    if start.plan.workflow.placement == Placement::Local {
        return Err(Refusal::new(
            "`placement: local` keeps a run on the node it is submitted to, and this is none",
        )
        .hint("use `laneway run`, or leave `placement` out"));
    }
    Ok(())
}

/// A key that somebody may choose.
pub(super) fn key(text: &str) -> Result<String, String> {
    submission_key::check(text).map(|()| text.to_owned())
}

/// Submits a run that any node takes, and says which it is.
pub(super) async fn hand_over(
    context: &Context,
    store: &dyn Store,
    start: Start,
    (key, is_paused): (Option<String>, bool),
    is_json: bool,
) -> anyhow::Result<Exit> {
    let workflow = start.plan.workflow.name.clone();
    let session = store.register(NewSession::ephemeral(env::node(), 1)).await?;
    let origin = Some(deed::ORIGIN.to_owned());
    let submission = Submission { is_shared: true, is_paused, key, origin, ..start.submission(session) };
    let submitted = store.submit(submission).await;
    store.retire(session, Leaving::because(LeaveReason::Done)).await?;
    tell(context, &wire::Submitted { run: submitted?, workflow }, is_json)
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
