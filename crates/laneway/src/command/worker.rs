//! `laneway worker`: a node that takes what it can run, of whatever run, until it is told to stop, or its parent dies
//! and it was started with `--exit-with-parent`.
//!
//! ```text
//!   signals ───┐ first: take nothing more, let what runs end; second: kill
//!   parent ────┼──▶ control ──▶ worker (laneway_engine::worker) ──▶ store
//! ```

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use laneway_core::class::{Labels, Offer, is_label};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_engine::container::{Containers, Docker, answers};
use laneway_engine::worker::{Control, Cut, Ground, Means, Worker};
use laneway_server::callback::{self, Reach};
use laneway_store::Store;
use laneway_store::model::NewSession;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

use super::Context;
use crate::drive::{Interrupts, Node, REJOIN_DELAY, duration, has_lost_its_session, may_join_later};
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::firing::{Firing, Policies};
use crate::outbox;
use crate::pruning::{Kept, Pruning};
use crate::settings::{
    EXIT_WITH_PARENT, HEARTBEAT_INTERVAL, KILL_GRACE, LABELS, LEASE_TTL, MAX_LOST, MAX_PARALLEL,
    MAX_POLL_INTERVAL, NODE_ADDRESS, PASS_ENV, SHUTDOWN_GRACE, SLOTS, STORE, Source, WORKSPACE_MAX_BYTES,
    bytes, count,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  laneway worker --slots 8 --label zone=eu\n\n\
    Ctrl-C lets what runs end; a second one kills it. It goes on when its shell ends: `nohup laneway worker &`.")]
pub(crate) struct Args {
    #[command(flatten)]
    work: WorkArgs,
    #[arg(long, help = EXIT_WITH_PARENT.about, env = EXIT_WITH_PARENT.env, value_name = "YES", default_value = EXIT_WITH_PARENT.default, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    exit_with_parent: bool,
}

/// How a node works, whatever else its process does.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    #[arg(long, help = SLOTS.about, env = SLOTS.env, value_name = "N", default_value = SLOTS.default, value_parser = count)]
    slots: NonZeroU32,
    /// A label that steps may ask for with `runs_on`; repeatable
    #[arg(long = "label", env = LABELS.env, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    labels: Vec<(String, String)>,
    #[arg(long, help = NODE_ADDRESS.about, env = NODE_ADDRESS.env, value_name = "ADDRESS")]
    node_address: Option<String>,
    /// Another variable that steps see, beside PATH, HOME, LANG, TZ and TMPDIR; repeatable
    #[arg(long, env = PASS_ENV.env, value_name = "NAME", value_delimiter = ',')]
    pass_env: Vec<String>,
    #[arg(long, help = SHUTDOWN_GRACE.about, env = SHUTDOWN_GRACE.env, value_name = "DURATION", default_value = SHUTDOWN_GRACE.default, value_parser = duration)]
    pub(super) shutdown_grace: Duration,
    #[arg(long, help = KILL_GRACE.about, env = KILL_GRACE.env, value_name = "DURATION", default_value = KILL_GRACE.default, value_parser = duration)]
    pub(super) kill_grace: Duration,
    #[arg(long, help = LEASE_TTL.about, env = LEASE_TTL.env, value_name = "DURATION", default_value = LEASE_TTL.default, value_parser = duration)]
    lease_ttl: Duration,
    #[arg(long, help = HEARTBEAT_INTERVAL.about, env = HEARTBEAT_INTERVAL.env, value_name = "DURATION", default_value = HEARTBEAT_INTERVAL.default, value_parser = duration)]
    heartbeat_interval: Duration,
    #[arg(long, help = MAX_LOST.about, env = MAX_LOST.env, value_name = "N", default_value = MAX_LOST.default, value_parser = count)]
    max_lost: NonZeroU32,
    #[arg(long, help = MAX_POLL_INTERVAL.about, env = MAX_POLL_INTERVAL.env, value_name = "DURATION", default_value = MAX_POLL_INTERVAL.default, value_parser = duration)]
    max_poll_interval: Duration,
    #[arg(long, help = WORKSPACE_MAX_BYTES.about, env = WORKSPACE_MAX_BYTES.env, value_name = "BYTES", default_value = WORKSPACE_MAX_BYTES.default, value_parser = bytes)]
    workspace_max_bytes: u64,
}

impl WorkArgs {
    /// The name of the node, where somebody gave one.
    pub(super) fn address(&self) -> Option<String> {
        self.node_address.clone()
    }

    /// A session that takes what it can run.
    pub(super) async fn session(&self, context: &Context, name: &str) -> anyhow::Result<NewSession> {
        let (labels, lease) = (labels(&self.labels)?, context.settings.lease()?);
        let containers = context.settings.containers()?;
        let has_container = has_engine(&containers.docker).await;
        let (node, ports) = (name.to_owned(), Some(containers.port_count()));
        let offer = Offer { labels, has_process: true, has_container, ports, ..outbox::offer(node) };
        Ok(NewSession {
            offer: Some(offer),
            lease,
            fires: true,
            ..NewSession::ephemeral(name, self.slots.get())
        })
    }

    pub(super) fn worker(&self, node: &Node, reach: &Reach, containers: Containers) -> Worker {
        let pass_env = env::passed_to_steps(self.pass_env.iter().map(String::as_str));
        let ground =
            if node.store.is_embedded() { Ground::Beside { pass_env } } else { Ground::Apart { pass_env } };
        Worker {
            means: Means {
                store: std::sync::Arc::clone(&node.store),
                session: node.session,
                slots: self.slots.get() as usize,
                kill_grace: self.kill_grace,
                warden: node.warden.clone(),
                functions: callback::functions(reach, None),
                containers,
                pulse: node.pulse(),
                counts: node.counts.clone(),
                max_poll_interval: self.max_poll_interval,
                takes_results: true,
                workspace_max_bytes: self.workspace_max_bytes,
            },
            ground,
            watches_engine: true,
            shutdown_grace: self.shutdown_grace,
        }
    }
}

/// Whether this host's container engine answers now. Whether it does so later is watched by the worker itself.
async fn has_engine(docker: &Docker) -> bool {
    let found = answers(docker).await;
    if let Err(why) = &found {
        tracing::info!("steps in containers are not taken until there is an engine: {why}");
    }
    found.is_ok()
}

pub(crate) fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_label(name) && is_label(value) => Ok((name.to_owned(), value.to_owned())),
        Some(_) => Err("use letters, digits and _ - . / : in its name and value".to_owned()),
        None => Err("write it as NAME=VALUE, for example zone=eu".to_owned()),
    }
}

pub(crate) async fn execute(context: &Context, args: Args) -> anyhow::Result<Exit> {
    let kept = Kept::read(&context.settings)?;
    let parent = if args.exit_with_parent { Parent::watch() } else { None };
    let name = args.work.address().unwrap_or_else(env::node);
    let session = args.work.session(context, &name).await?;
    let store = context.open_to_work()?;
    let shown = laneway_store::shown(&context.store);
    let has_container = session.offer.as_ref().is_some_and(|offer| offer.has_container);
    let engines = if has_container { "process, container" } else { "process" };
    context.printer.note(&format!("worker {name} takes work from {shown}; engines: {engines}"));
    tell_settings(context, &[]);
    if args.exit_with_parent && parent.is_none() {
        context
            .printer
            .note("the process that started it is gone or is the first of the system: it is not watched");
    }
    let policies = Policies {
        max_parallel: context.settings.count(&MAX_PARALLEL)?.get(),
        defaults: context.settings.document_defaults()?,
    };
    let reach = context.settings.reach()?;
    // Before it has a session: who is told to end while it begins returns that as well.
    let interrupts = Interrupts::listen()?;
    let (control, mut stops) = (Control::new(), Stops::new(interrupts, parent));
    let mut node = Node::begin(context, Arc::clone(&store), session.clone()).await?;
    loop {
        let firing = Firing::begin(&node.store, node.session, &policies);
        let pruning = Pruning::begin(kept, &node.store, node.session);
        let worker = args.work.worker(&node, &reach, context.settings.containers()?);
        let outcome = until_told(context, worker, &control, &mut stops).await;
        drop((firing, pruning));
        let lost =
            outcome.as_ref().err().filter(|error| has_lost_its_session(error)).map(ToString::to_string);
        let outcome = outcome.context("the worker could not go on");
        node.end(why(&outcome, &control)).await;
        let Some(why) = lost else {
            tell_cut(context, &outcome?);
            return Ok(Exit::Succeeded);
        };
        // It was to end, and nothing of it is left.
        if stops.was_told {
            return Ok(Exit::Succeeded);
        }
        context.printer.note(&format!("worker {name}: {why}; what it ran is killed, and it joins again"));
        match join_again(context, &store, &session, (&control, &mut stops)).await? {
            Some(joined) => node = joined,
            None => return Ok(Exit::Succeeded),
        }
    }
}

/// Begins a new session as soon as the store can be used. `None` if it is told to stop before that.
async fn join_again(
    context: &Context,
    store: &Arc<dyn Store>,
    session: &NewSession,
    (control, stops): (&Control, &mut Stops),
) -> anyhow::Result<Option<Node>> {
    loop {
        match Node::begin(context, Arc::clone(store), session.clone()).await {
            Ok(node) => return Ok(Some(node)),
            Err(error) if may_join_later(&error) => {
                tracing::warn!("the node cannot join again yet: {error:#}");
            }
            Err(error) => return Err(error),
        }
        tokio::select! {
            () = tokio::time::sleep(REJOIN_DELAY) => {}
            () = stops.next(context, control) => return Ok(None),
        }
    }
}

/// Why the node stops, for the record.
pub(super) fn why(outcome: &anyhow::Result<Vec<Cut>>, control: &Control) -> Leaving {
    match outcome {
        Ok(_) => control.why().cloned().unwrap_or_else(|| Leaving::because(LeaveReason::Done)),
        Err(error) => {
            let is_fenced = |cause: &(dyn std::error::Error + 'static)| {
                matches!(cause.downcast_ref(), Some(laneway_engine::Error::Fenced { .. }))
            };
            let is_fenced = error.chain().any(is_fenced);
            Leaving::because(if is_fenced { LeaveReason::Fenced } else { LeaveReason::Failed })
        }
    }
}

/// Works until a signal or the death of its parent ends it.
async fn until_told(
    context: &Context,
    worker: Worker,
    control: &Control,
    stops: &mut Stops,
) -> Result<Vec<Cut>, laneway_engine::Error> {
    let mut work = std::pin::pin!(worker.until_stopped(control.clone()));
    loop {
        tokio::select! {
            cut = &mut work => return cut,
            () = stops.next(context, control) => {}
        }
    }
}

/// What tells a worker to stop, however often it joins.
struct Stops {
    interrupts: Interrupts,
    parent_death: Pin<Box<dyn Future<Output = i32>>>,
    was_told: bool,
    is_orphan: bool,
}

impl Stops {
    fn new(interrupts: Interrupts, parent: Option<Parent>) -> Self {
        let parent_death = Box::pin(async move {
            match parent {
                Some(parent) => parent.dies().await,
                None => std::future::pending().await,
            }
        });
        Self { interrupts, parent_death, was_told: false, is_orphan: false }
    }

    /// Waits for the next word and passes it on.
    async fn next(&mut self, context: &Context, control: &Control) {
        tokio::select! {
            () = self.interrupts.next() => {
                if self.was_told {
                    context.printer.note("killing what still runs");
                    control.kill();
                } else {
                    context.printer.note("stopping: nothing new is taken, what runs may end; once more kills it");
                    control.leave(Leaving::because(LeaveReason::Signal));
                }
            }
            pid = &mut self.parent_death, if !self.is_orphan => {
                self.is_orphan = true;
                context.printer.note(&format!("stopping: the process that started it ({pid}) is gone (parent_died)"));
                control.leave(Leaving::orphaned(pid));
            }
        }
        self.was_told = true;
    }
}

/// The same label twice would be a riddle.
pub(crate) fn labels(given: &[(String, String)]) -> Result<Labels, Refusal> {
    let mut labels = Labels::new();
    for (name, value) in given {
        if labels.insert(name.clone(), value.clone()).is_some_and(|before| before != *value) {
            return Err(Refusal::new(format!("the label `{name}` is given twice")).hint("give it one value"));
        }
    }
    Ok(labels)
}

/// Every setting in effect, in one line; those that somebody set say who did. `otherwise` are those that another flag than
/// their own has changed.
pub(super) fn tell_settings(context: &Context, otherwise: &[(&str, &str)]) {
    let told = context.settings.all().filter(|(setting, ..)| setting.name != STORE.name);
    let told = told.filter_map(|(setting, value, source)| {
        if let Some((name, value)) = otherwise.iter().find(|(name, _)| *name == setting.name) {
            return Some(format!("{name} {value} ({})", Source::Flag.as_str()));
        }
        let value = value?;
        Some(match source {
            Source::Default => format!("{} {value}", setting.name),
            Source::Flag | Source::Environment | Source::File => {
                format!("{} {value} ({})", setting.name, source.as_str())
            }
        })
    });
    context.printer.note(&format!("settings: {}", told.collect::<Vec<_>>().join(", ")));
}

pub(super) fn tell_cut(context: &Context, cut: &[Cut]) {
    for cut in cut {
        let Cut { run, step, attempt } = cut;
        context.printer.note(&format!(
            "{step} of run {} did not end in time and was stopped (attempt {attempt}); it runs again elsewhere",
            run.short()
        ));
    }
}

/// The process that started this one, held by a descriptor: a number may be given to somebody else, this never is.
struct Parent {
    pid: Pid,
    life: OwnedFd,
}

impl Parent {
    /// `None` where nobody is to be watched: started by the first process of the system, or by one that is gone.
    fn watch() -> Option<Self> {
        let pid = getppid().filter(|pid| !pid.is_init())?;
        let life = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // It may have died, and its number be another's, between the two calls.
        (getppid() == Some(pid)).then_some(Self { pid, life })
    }

    /// Ends when it does. A thread waits for that, which costs nothing until then.
    async fn dies(self) -> i32 {
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut life = [PollFd::new(&self.life, PollFlags::IN)];
            // An error of the watch is no proof of death, and a false one would stop a good worker.
            while let Err(Errno::INTR) = poll(&mut life, None) {}
            if life[0].revents().contains(PollFlags::IN) {
                let _ = tell.send(self.pid.as_raw_nonzero().get());
            }
        });
        match told.await {
            Ok(pid) => pid,
            Err(_) => std::future::pending().await,
        }
    }
}
