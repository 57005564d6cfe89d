//! `laneway submit`: a run for whoever takes it. Workers do, here or on other hosts; nothing is run by this process.

use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use laneway_core::definition::{Placement, Workspace};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::not_before::NotBefore;
use laneway_core::plan::Plan;
use laneway_server::wire;
use laneway_store::model::{NewSession, Submission};
use laneway_store::{Store, submission_key};

use super::Context;
use super::apply::{self, Brought, Target};
use super::run::Start;
use crate::document::{Files, ParamArgs};
use crate::exit::{Exit, Refusal};
use crate::settings::count;
use crate::{deed, env, text};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  laneway submit nightly.yaml -p date=2026-11-15\n  laneway submit nightly.yaml --key nightly-2026-11-15\n  \
    laneway submit nightly.yaml --at 2026-11-16T02:00:00+01:00\n\n\
    `laneway worker` takes the tasks of such runs. With a key that was used before, nothing new is made; with another document\n\
    or other parameters than before it is an error that says what differs."
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
    /// Submit one run for this key: again, it gives the same run, or an error if anything differs
    #[arg(long, value_name = "KEY", value_parser = key)]
    key: Option<String>,
    /// Start nothing of it: `laneway advance` does a level of it, `laneway resume` lets it go on
    #[arg(long)]
    paused: bool,
    /// Let it wait until a moment such as 2026-12-24T18:00:00Z, or for a while such as 90m
    #[arg(long, value_name = "WHEN", value_parser = not_before)]
    at: Option<NotBefore>,
    /// Execute every step, also those whose result was recorded before; what comes of them is recorded anew
    #[arg(long)]
    no_cache: bool,
    /// Print the run as one JSON object, with the files that were shipped
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let document = context.document(&args.file)?;
    let dir = document.dir.clone();
    let mut start = Start::of(context, (document, Files::Apart), &args.params, args.max_parallel)?;
    refuse_local(&start)?;
    start.no_cache = args.no_cache;
    if let Some(client) = context.client()? {
        let target = Target::Server(client.clone());
        let brought = match works_in_place(&start.plan) {
            true => None,
            false => Some(bring(context, &target, &args, &dir).await?),
        };
        let submit = wire::Submit {
            bundle: brought.as_ref().map(|brought| brought.hash.to_string()),
            name: Some(start.plan.workflow.name.clone()),
            document: Some(start.document),
            params: start.params,
            max_parallel: args.max_parallel.map(NonZeroU32::get),
            paused: args.paused,
            no_cache: args.no_cache,
            not_before: args.at.as_ref().map(ToString::to_string),
            ..wire::Submit::default()
        };
        let submitted = client.submit(&submit, args.key.as_deref()).await?;
        return tell(context, &submitted, (brought.as_ref(), args.at), args.json);
    }
    let store = context.open_or_create()?;
    let brought = match works_in_place(&start.plan) {
        true => None,
        false => Some(bring(context, &Target::Store(Arc::clone(&store)), &args, &dir).await?),
    };
    start.bundle = brought.as_ref().map(|brought| brought.hash.clone());
    let submitted = hand_over(store.as_ref(), start, (args.key, args.paused, args.at)).await?;
    tell(context, &submitted, (brought.as_ref(), args.at), args.json)
}

/// Whether steps work in a directory that nodes have already, so that no files go with the run.
fn works_in_place(plan: &Plan) -> bool {
    matches!(plan.workflow.workspace, Workspace::Path(_))
}

/// Brings the files beside the document, so that its steps find them on any node. A document that
/// came through stdin has none.
async fn bring(context: &Context, target: &Target, args: &Args, dir: &Path) -> anyhow::Result<Brought> {
    match args.file.as_str() {
        "-" => apply::bring_nothing(context, target).await,
        _ => apply::bring(context, target, (dir, &args.include)).await,
    }
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

/// A moment or a delay.
pub(super) fn not_before(text: &str) -> Result<NotBefore, String> {
    NotBefore::parse(text).map_err(|why| format!("it is {why}"))
}

/// Submits a run that any node takes.
pub(super) async fn hand_over(
    store: &dyn Store,
    start: Start,
    (key, is_paused, not_before): (Option<String>, bool, Option<NotBefore>),
) -> anyhow::Result<wire::Submitted> {
    let workflow = start.plan.workflow.name.clone();
    let session = store.register(NewSession::ephemeral(env::node(), 1)).await?;
    let origin = Some(deed::ORIGIN.to_owned());
    let submission =
        Submission { is_shared: true, is_paused, key, origin, not_before, ..start.submission(session) };
    let submitted = store.submit(submission).await;
    store.retire(session, Leaving::because(LeaveReason::Done)).await?;
    Ok(wire::Submitted { run: submitted?, workflow })
}

/// Says which run was submitted, for when, and with which files where it brought some.
pub(super) fn tell(
    context: &Context,
    submitted: &wire::Submitted,
    (brought, not_before): (Option<&Brought>, Option<NotBefore>),
    is_json: bool,
) -> anyhow::Result<Exit> {
    match brought {
        Some(brought) if is_json => context.printer.json(&apply::with_files(submitted, &brought.files)?)?,
        None if is_json => context.printer.json(submitted)?,
        Some(_) | None => {
            let short = submitted.run.short();
            context.printer.line(&format!("run {short} of {} submitted", submitted.workflow))?;
            match not_before {
                Some(NotBefore::At(moment)) => {
                    context.printer.note(&format!("it begins at {}", text::date(moment)));
                }
                Some(delay @ NotBefore::After(_)) => context.printer.note(&format!("it begins in {delay}")),
                None => {}
            }
            context.printer.note(&format!("`laneway show {short}` shows it"));
        }
    }
    Ok(Exit::Succeeded)
}
