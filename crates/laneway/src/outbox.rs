//! Sends the due callbacks of all runs of the store at the end of `laneway run`, for a few seconds.
//! The rest stays in the outbox for `laneway worker`, `laneway serve` and the next `laneway run`.
//!
//! ```text
//!   outbox ── nothing is due ──▶ done
//!     └────── a session that takes callbacks only ── claims, sends ──▶ retired when nothing is due, or after the deadline
//! ```

use std::sync::Arc;
use std::time::Duration;

use laneway_core::class::Offer;
use laneway_core::id::RunId;
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::state::TaskStatus;
use laneway_engine::function::POST;
use laneway_engine::hooks;
use laneway_engine::worker::{Control, Counts, Ground, Means, Worker};
use laneway_server::callback;
use laneway_store::Store;
use laneway_store::model::NewSession;
use tokio::time::{Instant, sleep};

use crate::command::Context;
use crate::drive::{Interrupts, Node, Presence};
use crate::env;
use crate::settings::MAX_POLL_INTERVAL;

/// How long one attempt may take here. It counts as one: a receiver that hangs is given up in the end.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(5);

/// How long all of them may take: those that begin with the first can end.
const DEADLINE: Duration = Duration::from_millis(5_500);

/// How often it is looked whether more is due.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Callbacks that are sent at once.
const SLOTS: u32 = 8;

/// What a node offers that sends callbacks and does nothing else.
pub(crate) fn offer(node: String) -> Offer {
    Offer { node, functions: [POST.to_owned()].into(), ..Offer::default() }
}

/// Sends what is due, for a few seconds at most, and says what became of the callbacks of some runs. Ctrl-C ends it. What goes
/// wrong is no error of the command: everything is in the outbox.
pub(crate) async fn send(context: &Context, node: &Node, own: &[RunId]) {
    let sent = async {
        try_to_send(context, node).await?;
        for run in own {
            tell(context, node.store.as_ref(), *run).await?;
        }
        anyhow::Ok(())
    };
    if let Err(error) = sent.await {
        tracing::warn!("callbacks stay in the outbox: {error:#}");
    }
}

async fn try_to_send(context: &Context, node: &Node) -> anyhow::Result<()> {
    let store = &node.store;
    let mut outbox = store.outbox(node.session).await?;
    if outbox.owes_hooks {
        hooks::submit_callbacks_left(store.as_ref(), node.session).await?;
        outbox = store.outbox(node.session).await?;
    }
    if !outbox.has_callbacks {
        return Ok(());
    }
    let name = env::node();
    let session = NewSession { offer: Some(offer(name.clone())), ..NewSession::ephemeral(name, SLOTS) };
    let presence = Presence::begin(context, Arc::clone(store), session).await?;
    let sent = send_due(context, node, &presence).await;
    presence.end(Leaving::because(LeaveReason::Done)).await;
    sent
}

async fn send_due(context: &Context, node: &Node, presence: &Presence) -> anyhow::Result<()> {
    let (store, session) = (&node.store, presence.session);
    let worker = Worker {
        means: Means {
            store: Arc::clone(store),
            session,
            slots: SLOTS as usize,
            kill_grace: Duration::ZERO,
            warden: node.warden.clone(),
            functions: callback::functions(&context.settings.reach()?, Some(ATTEMPT_LIMIT)),
            containers: context.settings.containers()?,
            pulse: presence.pulse(),
            counts: Counts::default(),
            max_poll_interval: context.settings.duration(&MAX_POLL_INTERVAL)?,
            takes_results: true,
            workspace_max_bytes: context.settings.workspace_max_bytes()?,
        },
        ground: Ground::Caller { pass_env: None },
        watches_engine: false,
        shutdown_grace: Duration::ZERO,
    };
    let control = Control::new();
    let watching = async {
        let until = Instant::now() + DEADLINE;
        let mut interrupts = Interrupts::listen()?;
        while Instant::now() < until && store.outbox(session).await?.has_callbacks {
            tokio::select! {
                () = sleep(POLL_INTERVAL) => {}
                () = interrupts.next() => break,
            }
        }
        anyhow::Ok(())
    };
    let watching = async {
        let watched = watching.await;
        control.leave(Leaving::because(LeaveReason::Done));
        watched
    };
    let (worked, watched) = tokio::join!(worker.until_stopped(control.clone()), watching);
    worked?;
    watched
}

async fn tell(context: &Context, store: &dyn Store, run: RunId) -> anyhow::Result<()> {
    let view = store.run(run).await?;
    for (step, task) in view.plan.workflow.steps.iter().zip(&view.state.tasks) {
        let short = run.short();
        let why = task.detail.as_deref().map_or_else(String::new, |why| format!(": {why}"));
        let note = match task.status {
            TaskStatus::Succeeded | TaskStatus::Skipped => continue,
            TaskStatus::Failed | TaskStatus::Canceled => {
                format!("callback {} was given up{why}; `laneway retry {short}` sends it again", step.name)
            }
            TaskStatus::Pending | TaskStatus::Available | TaskStatus::Running | TaskStatus::Parked => {
                format!(
                    "callback {} is not delivered yet{why}; `laneway worker`, `laneway serve` or the next `laneway run` on this store \
                 sends it (`laneway show {short}`)",
                    step.name
                )
            }
        };
        context.printer.note(&note);
    }
    Ok(())
}
