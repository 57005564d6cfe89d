//! `laneway cancel`: ends a run, whoever drives it, and waits until it has stopped.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::RunStatus;
use laneway_server::wire::Node;
use serde_json::json;
use tokio::time::Instant;

use super::Context;
use crate::exit::Exit;
use crate::face::Face;

/// Longer than the grace that steps have by default: whoever waits that long wants to know.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hint of a change can be missed.
const LOOK: Duration = Duration::from_millis(200);

/// How often tasks of nodes that are gone or frozen are looked for: often enough to watch a short lease without a gap.
const SETTLE_EVERY: Duration = Duration::from_millis(500);

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
    let mut until = Instant::now() + PATIENCE;
    let canceled = face.cancel(run).await?;
    let (before, mut status) = (canceled.was, canceled.status);
    let mut waits_for_a_lease = false;
    let mut settle_at = Instant::now() + SETTLE_EVERY;
    while !status.is_final() {
        if Instant::now() >= until {
            let silent = silent_holder(&face, run).await?;
            let Some(node) = silent.filter(|_| !std::mem::replace(&mut waits_for_a_lease, true)) else {
                break;
            };
            until += context.settings.lease()?.ttl * 2;
            context.printer.note(&format!(
                "node {} (process {}) holds a step and does not respond; waiting for the end of its lease",
                node.node, node.pid
            ));
        }
        watch.next(LOOK).await;
        if Instant::now() >= settle_at {
            face.settle_cancel(run).await?;
            settle_at = Instant::now() + SETTLE_EVERY;
        }
        status = face.status(run).await?;
    }
    // Nothing stops as long as that node does not run.
    let silent = if status.is_final() { None } else { silent_holder(&face, run).await? };
    let exit = if silent.is_some() { Exit::RunFailed } else { Exit::Succeeded };
    if args.json {
        context.printer.json(&json!({ "run": run, "status": status, "was": before }))?;
        return Ok(exit);
    }
    let short = run.short();
    if let Some(node) = silent {
        context.printer.line(&format!("run {short} has not stopped: node {} does not respond", node.node))?;
        context.printer.note(&format!(
            "continue its process with `kill -CONT {0}`, or end it with `kill -KILL {0}`",
            node.pid
        ));
        return Ok(exit);
    }
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
    Ok(exit)
}

/// A node that may hold a step of the run and is frozen or cut off.
async fn silent_holder(face: &Face, run: RunId) -> anyhow::Result<Option<Node>> {
    let nodes = face.nodes().await?;
    Ok(nodes.into_iter().find(|node| node.is_not_responding() && node.may_hold(run)))
}
