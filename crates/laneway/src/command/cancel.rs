//! `laneway cancel`: ends a run, whoever drives it, and waits until it has stopped.

use std::time::Duration;

use laneway_core::state::RunStatus;
use serde_json::json;
use tokio::time::Instant;

use super::Context;
use crate::exit::Exit;

/// Longer than the grace that steps have by default: whoever waits that long wants to know.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hint of a change can be missed.
const LOOK: Duration = Duration::from_millis(200);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway cancel last\n\n\
    Nothing of the run starts any more when this returns. `laneway retry` brings it back.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Print what happened as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let run = face.run(&args.run).await?.run;
    let mut watch = face.watch();
    let until = Instant::now() + PATIENCE;
    let canceled = face.cancel(run).await?;
    let (before, mut status) = (canceled.was, canceled.status);
    while !status.is_final() && Instant::now() < until {
        watch.next(LOOK).await;
        status = face.status(run).await?;
    }
    if args.json {
        context.printer.json(&json!({ "run": run, "status": status, "was": before }))?;
        return Ok(Exit::Succeeded);
    }
    let short = run.short();
    context.printer.line(&match (before.is_final(), status) {
        (true, _) => format!("run {short} had ended before: it is {status}"),
        (false, RunStatus::Canceled) => format!("run {short} canceled"),
        (false, RunStatus::Queued | RunStatus::Running) => {
            format!("run {short} is still stopping: some steps take their time; nothing new starts")
        }
        (false, RunStatus::Succeeded | RunStatus::Failed) => {
            format!("run {short} ended before it could be canceled: it is {status}")
        }
    })?;
    Ok(Exit::Succeeded)
}
