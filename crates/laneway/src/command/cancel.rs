//! `laneway cancel`: ends a run, whoever drives it, and waits until it has stopped.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_server::wire::Node;
use laneway_store::Store;
use laneway_store::model::{CancelMode, NewSession, Tally};
use serde_json::json;
use tokio::time::Instant;

use super::Context;
use crate::env;
use crate::exit::Exit;
use crate::face::Face;
use crate::text;

/// Wait before holders are looked at. Longer than the grace that steps have by default.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hint of a change can be missed.
const LOOK: Duration = Duration::from_millis(200);

/// How often tasks of nodes that are gone or frozen are looked for: often enough to watch a short lease without a gap.
const SETTLE_EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway cancel last\n\n\
    Nothing of the run but its clean-up starts any more: steps with `when: always` and hooks have until the\n\
    workflow's `cleanup_timeout` (60s) has passed. Of a run that is being canceled already, this ends the\n\
    clean-up. `laneway retry` brings the run back.")]
pub(crate) struct Args {
    /// Run id, the beginning of one, or `last`
    run: String,
    /// Without clean-up; what cleans up already is stopped
    #[arg(long)]
    now: bool,
    /// Print what happened as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let face = context.face()?;
    let seen = face.run(&args.run).await?;
    let (run, short) = (seen.run, seen.run.short());
    let mut watch = face.watch();
    let mode = if args.now || seen.is_canceling() { CancelMode::Now } else { CancelMode::CleanUp };
    let begun = Instant::now();
    let canceled = face.cancel(run, mode).await?;
    let ends_clean_up = mode == CancelMode::Now && seen.clean_up_until.is_some();
    if ends_clean_up {
        context.printer.note(&format!("run {short} was canceled before; its clean-up is ended"));
    }
    let ttl = context.settings.lease()?.ttl;
    let mut until = begun + PATIENCE;
    if let Some(at) = canceled.clean_up_until {
        until += time_until(at.0);
        context.printer.note(&format!("run {short} is {}", text::cleaning_up(run, at.0)));
    }
    let (before, mut status) = (canceled.was, canceled.status);
    let (mut waits_for_a_lease, mut reaper) = (false, None);
    let mut settle_at = Instant::now() + SETTLE_EVERY;
    while !status.is_final() {
        if Instant::now() >= until {
            let holders = holders(&face, run).await?;
            let silent = holders.iter().find(|node| node.is_not_responding());
            // One that has not renewed since the cancel may be frozen. The store knows when it is.
            let is_unknown = |node: &Node| node.unrenewed_for() >= begun.elapsed();
            match silent {
                Some(node) if !waits_for_a_lease => {
                    waits_for_a_lease = true;
                    until += ttl * 2;
                    context.printer.note(&format!(
                        "node {} (process {}) holds a step and does not respond; waiting for the end of its lease",
                        node.node, node.pid
                    ));
                }
                None if holders.iter().any(is_unknown) && Instant::now() < until + ttl => {}
                Some(_) | None => break,
            }
        }
        watch.next(LOOK).await;
        if Instant::now() >= settle_at {
            // A node whose lease is over is in no list any more.
            if reaper.is_none() {
                reaper = Reaper::register(&face).await?;
            }
            if let Some(reaper) = &reaper {
                reaper.renew().await?;
            }
            face.settle_cancel(run).await?;
            settle_at = Instant::now() + SETTLE_EVERY;
        }
        status = face.status(run).await?;
    }
    if let Some(reaper) = reaper {
        reaper.retire().await?;
    }
    // Nothing stops as long as that node does not run.
    let holders = if status.is_final() { Vec::new() } else { holders(&face, run).await? };
    let silent = holders.iter().find(|node| node.is_not_responding());
    let exit = if silent.is_some() { Exit::RunFailed } else { Exit::Succeeded };
    if args.json {
        context.printer.json(&json!({ "run": run, "status": status, "was": before }))?;
        return Ok(exit);
    }
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
        (false, RunStatus::Failed) if seen.is_canceling() => {
            format!("run {short} had timed out: it is {status}")
        }
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

/// How long it is until a moment, by this process's clock. Nothing for one that is over.
fn time_until(at: Millis) -> Duration {
    at.since(Millis(jiff::Timestamp::now().as_millisecond()))
}

/// A session of this process, which may end those whose leases are over. On Postgres only a session that has renewed
/// since may do that, and the frozen node can be the only other one.
struct Reaper {
    store: Arc<dyn Store>,
    session: SessionId,
}

impl Reaper {
    /// `None` where none is needed: a server reaps by itself, and an embedded store asks for no session.
    async fn register(face: &Face) -> anyhow::Result<Option<Self>> {
        let Face::Store(store) = face else { return Ok(None) };
        if store.is_embedded() {
            return Ok(None);
        }
        let session = store.register(NewSession::ephemeral(env::node(), 1)).await?;
        Ok(Some(Self { store: Arc::clone(store), session }))
    }

    async fn renew(&self) -> anyhow::Result<()> {
        self.store.renew(self.session, Tally::default()).await?;
        Ok(())
    }

    async fn retire(self) -> anyhow::Result<()> {
        Ok(self.store.retire(self.session, Leaving::because(LeaveReason::Done)).await?)
    }
}

/// The nodes that may hold a step of the run.
async fn holders(face: &Face, run: RunId) -> anyhow::Result<Vec<Node>> {
    let nodes = face.nodes().await?;
    Ok(nodes.into_iter().filter(|node| node.may_hold(run)).collect())
}
