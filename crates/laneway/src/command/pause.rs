//! `laneway pause` and `laneway resume`: a run, or a workflow with all of its runs, starts nothing until it is resumed. A run
//! whose process is gone is resumed here, in the foreground.

use std::sync::Arc;

use laneway_core::hook::whose_hooks;
use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_server::wire::{Paused, Run};
use laneway_store::Store;
use laneway_store::model::RunFilter;

use super::Context;
use crate::drive::{self, DriveArgs, Until};
use crate::exit::{Exit, Refusal};
use crate::face::Face;

/// Unfinished runs among which the interrupted hooks of a run are looked for, the newest.
const MAX_HOOKS_SEARCHED: usize = 1_000;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway pause last\n  laneway pause --workflow nightly\n\n\
    What runs goes on; nothing new starts until `laneway resume`.")]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway resume last\n  laneway resume --workflow nightly\n\n\
    A run of `laneway run` whose process is gone goes on here, with its progress. Exit codes are\n\
    those of `laneway run`. A run that was not paused, or has ended, is an error (exit code 1).")]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    what: What,
    #[command(flatten)]
    drive: DriveArgs,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Run id, the beginning of one, or `last`
    run: Option<String>,
    /// Every run of this workflow, also later ones
    #[arg(long, value_name = "NAME")]
    workflow: Option<String>,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let (name, flag, paused) = match args.what.workflow {
        Some(name) => {
            let paused = face.pause_workflow(&name, true).await?;
            (format!("workflow {name}"), format!("--workflow {name}"), paused)
        }
        None => {
            let run = face.run(&args.what.run.unwrap_or_default()).await?.run;
            let paused = face.pause_run(run, true).await?;
            (format!("run {}", run.short()), run.short(), paused)
        }
    };
    let is = if paused.changed { "is" } else { "was already" };
    context.printer.line(&format!("{name} {is} paused; `laneway resume {flag}` lets it go on"))?;
    Ok(Exit::Succeeded)
}

pub(crate) async fn resume(context: &Context, args: ResumeArgs) -> anyhow::Result<Exit> {
    let face = context.face()?;
    if let Some(name) = &args.what.workflow {
        let resumed = face.pause_workflow(name, false).await?;
        if !resumed.changed {
            return Err(Refusal::new(format!("workflow {name} is not paused"))
                .hint("`laneway runs` lists its runs; `laneway explain RUN` says what one waits for")
                .exit(Exit::RunFailed)
                .into());
        }
        return tell(context, &format!("workflow {name}"), &resumed, args.drive.json);
    }
    let run = face.run(args.what.run.as_deref().unwrap_or_default()).await?;
    match face {
        Face::Store(store) if run.interrupted => go_on(context, store, &run, args.drive).await,
        Face::Store(store) if run.status.is_final() => {
            // What is left of it are hooks: owed, or interrupted themselves.
            if store.hooks_owed(run.run).await?.is_some() {
                return take_over(context, store, run.run, args.drive).await;
            }
            match interrupted_hooks(store.as_ref(), &run).await? {
                Some(hooks) => take_over(context, store, hooks, args.drive).await,
                None => Err(has_ended(&run).into()),
            }
        }
        Face::Server(_) if run.interrupted => Err(is_elsewhere(&run).into()),
        Face::Server(_) if run.status.is_final() => Err(has_ended(&run).into()),
        Face::Store(_) | Face::Server(_) => {
            let resumed = face.pause_run(run.run, false).await?;
            if !resumed.changed {
                return Err(is_not_paused(&run).into());
            }
            if run.paused.iter().any(|scope| scope == "workflow") {
                let name = &run.workflow;
                context.printer.note(&format!(
                    "its workflow is paused as well; `laneway resume --workflow {name}` lets that go on"
                ));
            }
            tell(context, &format!("run {}", run.run.short()), &resumed, args.drive.json)
        }
    }
}

fn tell(context: &Context, name: &str, resumed: &Paused, is_json: bool) -> anyhow::Result<Exit> {
    if is_json {
        context.printer.json(resumed)?;
    } else {
        context.printer.line(&format!("{name} goes on"))?;
    }
    Ok(Exit::Succeeded)
}

/// Continues a run whose process is gone, here. A pause of it is lifted first.
async fn go_on(
    context: &Context,
    store: Arc<dyn Store>,
    run: &Run,
    drive: DriveArgs,
) -> anyhow::Result<Exit> {
    if run.paused.iter().any(|scope| scope == "workflow") {
        let name = &run.workflow;
        return Err(Refusal::new(format!("workflow {name} is paused, and run {} with it", run.run.short()))
            .hint(format!("`laneway resume --workflow {name}` first"))
            .exit(Exit::RunFailed)
            .into());
    }
    if run.paused.iter().any(|scope| scope == "run") {
        Face::Store(Arc::clone(&store)).pause_run(run.run, false).await?;
    }
    take_over(context, store, run.run, drive).await
}

/// What happened before the interruption has been shown then.
pub(super) async fn take_over(
    context: &Context,
    store: Arc<dyn Store>,
    run: RunId,
    drive: DriveArgs,
) -> anyhow::Result<Exit> {
    let told = store.run_state(run).await?.last_event;
    drive::take_over(context, store, run, told, (drive, Until::Over)).await
}

/// The run of the hooks of an ended run, if its process is gone: whoever resumes the run means those.
pub(super) async fn interrupted_hooks(store: &dyn Store, of: &Run) -> anyhow::Result<Option<RunId>> {
    let filter = RunFilter {
        statuses: vec![RunStatus::Queued, RunStatus::Running],
        down_to: Some(of.run),
        limit: MAX_HOOKS_SEARCHED,
        ..RunFilter::default()
    };
    let of_run = serde_json::Value::String(of.run.to_string());
    for found in store.runs(filter).await? {
        if !found.is_interrupted || whose_hooks(&found.workflow) != Some(of.workflow.as_str()) {
            continue;
        }
        let params = &store.head(found.run).await?.params;
        if params.get("ended").and_then(|ended| ended.get("run")) == Some(&of_run) {
            return Ok(Some(found.run));
        }
    }
    Ok(None)
}

fn has_ended(run: &Run) -> Refusal {
    let (short, status) = (run.run.short(), run.status);
    let hint = match status {
        RunStatus::Succeeded => {
            format!("`laneway retry {short} --from STEP` runs a step and all behind it again")
        }
        RunStatus::Failed | RunStatus::Canceled | RunStatus::Queued | RunStatus::Running => {
            format!("`laneway retry {short}` runs what did not succeed again")
        }
    };
    Refusal::new(format!("run {short} is not paused: it has ended, {status}"))
        .hint(hint)
        .exit(Exit::RunFailed)
}

fn is_not_paused(run: &Run) -> Refusal {
    let short = run.run.short();
    if run.paused.iter().any(|scope| scope == "workflow") {
        let name = &run.workflow;
        return Refusal::new(format!("run {short} is not paused by itself: its workflow is"))
            .hint(format!("`laneway resume --workflow {name}` lets that go on"))
            .exit(Exit::RunFailed);
    }
    let place = run.owner.as_ref().map(|node| format!(" on {node}")).unwrap_or_default();
    Refusal::new(format!("run {short} is not paused: it is {}{place}", run.status))
        .hint(format!("`laneway explain {short}` says what its steps wait for"))
        .exit(Exit::RunFailed)
}

/// A server does not go on with a run that belongs to one process, and this host may not have its directory.
fn is_elsewhere(run: &Run) -> Refusal {
    let short = run.run.short();
    Refusal::new(format!("run {short} is interrupted: the `laneway run` that ran it is gone"))
        .hint(format!(
            "`laneway resume {short} --store STORE` goes on with it, on the host where it ran in {}",
            run.directory
        ))
        .exit(Exit::RunFailed)
}
