//! Drives a run in the foreground: this process is an ephemeral node, shows progress, and listens to
//! Ctrl-C. Everything that continues a run goes through here, so that it looks and ends the same.
//!
//! ```text
//!              ┌ worker  (laneway_engine::worker) ── claims, runs, finishes ──▶ store
//! foreground ──┼ watcher  events_since ◀── changes() ───────────────────────── store
//!              └ signals  first: cancel, second: kill ──▶ worker
//! ```
//! The three are one task that polls all of them; it ends when the worker does.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use laneway_core::id::{RunId, SessionId};
use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_core::plan::Plan;
use laneway_core::state::RunStatus;
use laneway_engine::hooks::{self, Whose};
use laneway_engine::warden::{Warden, WardenCommand};
use laneway_engine::worker::{Control, Counts, Drive, Heartbeat, Means, Pulse, return_what_is_left};
use laneway_server::callback;
use laneway_store::Store;
use laneway_store::model::{Lease, NewSession};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::command::Context;
use crate::command::worker::{label, labels};
use crate::env;
use crate::exit::{Exit, Refusal};
use crate::face::Face;
use crate::firing::{Firing, Policies};
use crate::outbox;
use crate::progress::{Ending, Progress, Tally};
use crate::settings::{KILL_GRACE, LABELS, MAX_POLL_INTERVAL, PASS_ENV, Settings};

/// Events are read at most this often: a run of short steps makes thousands a second.
const READ_INTERVAL: Duration = Duration::from_millis(30);

/// How often what moves is moved.
const TICK: Duration = Duration::from_millis(100);

/// Events of one read.
const PAGE: usize = 2_000;

/// A node has at least so many slots: on an ephemeral one the run's `max_parallel` is what counts. As many claims are
/// held ahead of short steps, and half of them go by from one commit to the next: few would cost commits.
const MIN_SLOTS: u32 = 8;

/// What is to be driven.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) run: RunId,
    pub(crate) plan: Arc<Plan>,
    pub(crate) max_parallel: u32,
    /// Events up to this number are known to whoever looks.
    pub(crate) told: u64,
}

/// Until when it is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    Over,
    /// Or somebody holds it up, as `laneway advance` does behind a level.
    Paused,
}

/// How it is driven, as the command line says.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DriveArgs {
    /// Print one event a line as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[arg(long, help = KILL_GRACE.about, env = KILL_GRACE.env, value_name = "DURATION", default_value = KILL_GRACE.default, value_parser = duration)]
    pub(crate) kill_grace: Duration,
    /// Execute every step, also those whose result was recorded before; what comes of them is recorded anew
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// A label that this process has, for steps with `runs_on`; repeatable
    #[arg(long = "label", env = LABELS.env, value_name = "NAME=VALUE", value_delimiter = ',', value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// Give steps only the variables that a worker would give them: PATH, HOME, LANG, TZ, TMPDIR and those of --pass-env
    #[arg(long)]
    pub(crate) clean_env: bool,
    /// With --clean-env: another variable that steps see; repeatable
    #[arg(long, env = PASS_ENV.env, value_name = "NAME", value_delimiter = ',')]
    pub(crate) pass_env: Vec<String>,
}

impl DriveArgs {
    /// Without a command line: what the settings say, for what is driven from a screen.
    pub(crate) fn of_settings(settings: &Settings) -> Result<Self, Refusal> {
        let given = settings.get(&LABELS).map_or("", |(labels, _)| labels);
        let labels = given.split(',').filter(|pair| !pair.is_empty()).map(label);
        Ok(Self {
            json: false,
            kill_grace: settings.duration(&KILL_GRACE)?,
            no_cache: false,
            labels: labels.collect::<Result<_, _>>().map_err(Refusal::new)?,
            clean_env: false,
            pass_env: Vec::new(),
        })
    }

    /// What is opened again through a server is not driven from here.
    pub(crate) fn check_for_server(&self) -> Result<(), Refusal> {
        let refusal = |flag: &str| {
            Refusal::new(format!(
                "`{flag}` holds for what this command drives, and a server leaves that to its nodes"
            ))
        };
        if self.no_cache {
            return Err(refusal("--no-cache")
                .hint("start another run with `laneway start NAME --no-cache`, which keeps it"));
        }
        if self.clean_env {
            return Err(
                refusal("--clean-env").hint("leave it out: steps of a worker have a clean environment")
            );
        }
        Ok(())
    }

    /// The only variables that steps see; `None` for all.
    fn passed(&self) -> Option<Vec<String>> {
        self.clean_env.then(|| env::passed_to_steps(self.pass_env.iter().map(String::as_str)))
    }

    /// A run that belongs to this process runs nowhere else: refuses a step that is for nodes with other labels.
    pub(crate) fn check_labels(&self, plan: &Plan) -> Result<(), Refusal> {
        let labels = labels(&self.labels)?;
        let hooks = plan.workflow.hooks.iter().map(|hook| &hook.step);
        for step in plan.workflow.steps.iter().chain(hooks) {
            let wanted = &step.demands().runs_on;
            let Some((name, value)) = wanted.iter().find(|(name, value)| labels.get(name) != Some(value))
            else {
                continue;
            };
            let has = match labels.get(name) {
                Some(other) => format!("this process has {name}={other}"),
                None => format!("this process has no label {name}"),
            };
            return Err(Refusal::new(format!("step `{}` runs on {name}={value}, and {has}", step.name)).hint(
                format!(
                    "`--label {name}={value}` if this host is one; `laneway submit` leaves the run to workers that are"
                ),
            ));
        }
        Ok(())
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    // A day is no unit of a clock, and yet how people say how long something is kept.
    let days = text.strip_suffix('d').and_then(|days| days.parse::<i64>().ok()).filter(|days| *days >= 0);
    let days = days.and_then(|days| Some(jiff::SignedDuration::from_secs(days.checked_mul(24 * 3600)?)));
    let parsed = days.or_else(|| text.parse().ok());
    parsed
        .and_then(|duration| Duration::try_from(duration).ok())
        .ok_or_else(|| "write a duration such as 500ms, 5s or 1m".to_owned())
}

/// This process as a node of the store.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    pub(crate) warden: Warden,
    pub(crate) counts: Counts,
    heartbeat: Option<Heartbeat>,
}

impl Node {
    /// A node for its own runs.
    pub(crate) async fn ephemeral(context: &Context, store: Arc<dyn Store>) -> anyhow::Result<Self> {
        let node =
            NewSession { lease: context.settings.lease()?, ..NewSession::ephemeral(env::node(), MIN_SLOTS) };
        Self::begin(context, store, node).await
    }

    /// Begins a session, and returns what sessions that died have left behind.
    pub(crate) async fn begin(
        context: &Context,
        store: Arc<dyn Store>,
        node: NewSession,
    ) -> anyhow::Result<Self> {
        let (lease, counts) = (node.lease, Counts::default());
        let session = store.register(node).await?;
        let begun = async {
            // First, so that it gets ready while the store is busy.
            let warden = start_warden(store.as_ref(), session)?;
            let kept = (session, lease);
            let heartbeat =
                start_heartbeat(context, store.as_ref(), kept, counts.clone(), Some(warden.clone()))?;
            return_what_is_left(store.as_ref()).await?;
            anyhow::Ok((warden, heartbeat))
        }
        .await;
        match begun {
            Ok((warden, heartbeat)) => Ok(Self { store, session, warden, counts, heartbeat }),
            Err(error) => {
                retire(store.as_ref(), session, Leaving::because(LeaveReason::Failed)).await;
                Err(error)
            }
        }
    }

    /// Where it hears how its session is.
    pub(crate) fn pulse(&self) -> Option<Pulse> {
        self.heartbeat.as_ref().map(Heartbeat::pulse)
    }

    pub(crate) async fn end(self, why: Leaving) {
        retire(self.store.as_ref(), self.session, why).await;
    }
}

/// This process with a session and no programs to run: it submits, and is known.
#[derive(Debug)]
pub(crate) struct Presence {
    store: Arc<dyn Store>,
    pub(crate) session: SessionId,
    heartbeat: Option<Heartbeat>,
}

impl Presence {
    pub(crate) async fn begin(
        context: &Context,
        store: Arc<dyn Store>,
        session: NewSession,
    ) -> anyhow::Result<Self> {
        let lease = context.settings.lease()?;
        let session = store.register(NewSession { lease, ..session }).await?;
        let begun = start_heartbeat(context, store.as_ref(), (session, lease), Counts::default(), None);
        let heartbeat = match begun {
            Ok(heartbeat) => heartbeat,
            Err(error) => {
                retire(store.as_ref(), session, Leaving::because(LeaveReason::Failed)).await;
                return Err(error);
            }
        };
        Ok(Self { store, session, heartbeat })
    }

    /// Where it hears how its session is.
    pub(crate) fn pulse(&self) -> Option<Pulse> {
        self.heartbeat.as_ref().map(Heartbeat::pulse)
    }

    pub(crate) async fn end(self, why: Leaving) {
        retire(self.store.as_ref(), self.session, why).await;
        drop(self.heartbeat);
    }
}

/// How long to wait before joining again, when the store cannot be used for a passing reason.
pub(crate) const REJOIN_DELAY: Duration = Duration::from_secs(1);

/// Whether a worker ended because its session is over: it did not run for too long, or could not reach the store, and
/// others have its tasks. Everything that it ran is killed by then.
pub(crate) fn has_lost_its_session(error: &laneway_engine::Error) -> bool {
    matches!(
        error,
        laneway_engine::Error::Fenced { .. }
            | laneway_engine::Error::Store(laneway_store::Error::SessionOver { .. })
    )
}

/// Whether joining failed for a reason that passes, such as a database that is away.
pub(crate) fn may_join_later(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref().is_some_and(laneway_store::Error::is_passing))
}

async fn retire(store: &dyn Store, session: SessionId, why: Leaving) {
    // A session that cannot be retired is reaped by the next process: its lock dies with this one.
    if let Err(error) = store.retire(session, why).await {
        tracing::warn!(%error, "the session was not retired");
    }
}

fn start_heartbeat(
    context: &Context,
    store: &dyn Store,
    (session, lease): (SessionId, Lease),
    counts: Counts,
    warden: Option<Warden>,
) -> anyhow::Result<Option<Heartbeat>> {
    let heartbeat = if store.takes_lease() {
        let (address, options) = (context.store.clone(), context.options()?);
        let open = move || laneway_store::open_with(&address, laneway_store::Open::Existing, &options);
        Heartbeat::start(open, session, lease, counts, warden).map(Some)
    } else {
        let file = store.lease_file(session);
        file.map(|file| Heartbeat::start_on_file(file, lease, warden)).transpose()
    };
    heartbeat.context("the session cannot be kept alive")
}

/// This program is its own warden.
fn start_warden(store: &dyn Store, session: SessionId) -> anyhow::Result<Warden> {
    let program = std::env::current_exe().context("this program cannot find its own file")?;
    let command = WardenCommand {
        program,
        args: vec!["warden".into()],
        lock: Some(laneway_store::warden_lock(store.dir(), session)),
        lease: store.lease_file(session).map(|lease| lease.path().to_owned()),
        use_cgroups: env::use_cgroups()?,
        is_leased: store.takes_lease(),
    };
    Warden::start(command).context("no steps can be run")
}

/// Takes over a run that nobody drives, and drives it to its end. `told` as in [`Work`].
pub(crate) async fn take_over(
    context: &Context,
    store: Arc<dyn Store>,
    run: RunId,
    told: u64,
    (args, until): (DriveArgs, Until),
) -> anyhow::Result<Exit> {
    args.check_labels(&store.head(run).await?.plan)?;
    let was_over = store.status(run).await?.is_final();
    let owes_hooks = was_over && store.hooks_owed(run).await?.is_some();
    let node = Node::ephemeral(context, store).await?;
    let outcome = async {
        if owes_hooks {
            let status = node.store.status(run).await?;
            let hooks = async {
                let callbacks = hooks(context, &node, run, &args).await?;
                outbox::send(context, &node, callbacks.as_slice()).await;
                anyhow::Ok(())
            }
            .await;
            if !args.json {
                let tally = tally_of(node.store.as_ref(), run).await?;
                let is_terminal = context.printer.can_animate();
                Ending { run, tally: &tally, is_terminal }.summary(&context.printer)?;
            }
            return hooks.map(|()| Exit::of_run(status, false));
        }
        match node.store.adopt(run, node.session).await {
            // Canceled, and nothing of it was left but what its dead owner held: returning that has ended it.
            Err(laneway_store::Error::Ended { .. }) if !was_over => {}
            adopted => adopted?,
        }
        let view = node.store.run(run).await?;
        let work = Work { run, plan: view.plan, max_parallel: view.state.max_parallel, told };
        to_the_end(context, &node, work, (args, until)).await
    }
    .await;
    node.end(Leaving::because(LeaveReason::Done)).await;
    outcome
}

/// The sums of a run that has ended, from its events.
async fn tally_of(store: &dyn Store, run: RunId) -> anyhow::Result<Tally> {
    let mut tally = Tally::new(&store.run_state(run).await?.workflow);
    let mut cursor = 0;
    loop {
        let events = store.events_since(run, cursor, PAGE).await?;
        let Some(last) = events.last() else { return Ok(tally) };
        cursor = last.seq;
        events.iter().for_each(|event| tally.apply(event, true));
    }
}

/// Drives a run of this node to its end, and its hooks behind it. Its summary is the last line, also behind those of hooks.
pub(crate) async fn to_the_end(
    context: &Context,
    node: &Node,
    work: Work,
    (args, until): (DriveArgs, Until),
) -> anyhow::Result<Exit> {
    let run = work.run;
    let driven = drive(context, node, work, (&args, until)).await?;
    let hooks = async {
        let mut callbacks = Vec::new();
        for run in std::iter::once(run).chain(node.store.family(run).await?) {
            callbacks.extend(hooks(context, node, run, &args).await?);
        }
        outbox::send(context, node, &callbacks).await;
        anyhow::Ok(())
    }
    .await;
    driven.summary(context, run)?;
    hooks.map(|()| driven.exit)
}

/// A run that was driven as far as it goes.
struct Driven {
    exit: Exit,
    /// Its sums, and whether its progress moved on a terminal; nothing of one that is to be told as JSON, or has not ended.
    told: Option<(Tally, bool)>,
}

impl Driven {
    fn summary(&self, context: &Context, run: RunId) -> anyhow::Result<()> {
        let Some((tally, is_terminal)) = &self.told else { return Ok(()) };
        Ending { run, tally, is_terminal: *is_terminal }.summary(&context.printer)
    }
}

/// Runs the hooks of a run that has ended, if it has some, but for its callbacks, which are in the outbox afterwards. Returns
/// their run. What becomes of hooks changes nothing about the run.
async fn hooks(context: &Context, node: &Node, of: RunId, args: &DriveArgs) -> anyhow::Result<Option<RunId>> {
    let Some(firing) = node.store.hooks_owed(of).await? else { return Ok(None) };
    let submitted = hooks::submit(node.store.as_ref(), &firing, node.session, Whose::Mine).await?;
    // They are a run like any other from here on, which can be resumed.
    node.store.settle(firing.end, None).await?;
    if let Some(run) = submitted.steps {
        context.printer.note(&format!("run {}: hooks of {}", run.short(), of.short()));
        let view = node.store.run(run).await?;
        let work = Work { run, plan: view.plan, max_parallel: view.state.max_parallel, told: 0 };
        if !view.state.status.is_final() {
            drive(context, node, work, (args, Until::Over)).await?.summary(context, run)?;
        }
    }
    Ok(submitted.callbacks)
}

async fn drive(
    context: &Context,
    node: &Node,
    work: Work,
    (args, until): (&DriveArgs, Until),
) -> anyhow::Result<Driven> {
    let store = &node.store;
    let starts_runs = work.plan.workflow.steps.iter().any(|step| step.wait().is_some());
    let policies =
        Policies { max_parallel: work.max_parallel, defaults: context.settings.document_defaults()? };
    let _firing = starts_runs.then(|| Firing::of_steps(store, node.session, &policies));
    let mut interrupts = Interrupts::listen()?;
    let mut changes = store.changes();
    let subject = (work.plan.workflow.name.as_str(), work.plan.workflow.steps.len());
    let mut progress = Progress::new(&context.printer, subject, work.told, args.json);
    let control = Control::new();
    let worker = Drive {
        means: Means {
            store: Arc::clone(store),
            session: node.session,
            slots: work.max_parallel.max(MIN_SLOTS) as usize,
            kill_grace: args.kill_grace,
            warden: node.warden.clone(),
            // Hooks that an earlier version has submitted may have callbacks among their steps.
            functions: callback::functions(&context.settings.reach()?, None),
            containers: context.settings.containers()?,
            pulse: node.pulse(),
            counts: node.counts.clone(),
            max_poll_interval: context.settings.duration(&MAX_POLL_INTERVAL)?,
            takes_results: !args.no_cache,
            workspace_max_bytes: context.settings.workspace_max_bytes()?,
        },
        run: work.run,
        by: env::person(),
        is_over_when_paused: until == Until::Paused,
        pass_env: args.passed(),
    }
    .until_done(control.clone());
    let mut worker = std::pin::pin!(worker);
    let mut cursor = 0;
    let mut was_interrupted = false;
    let mut next_read = Instant::now();
    // What was submitted before the watcher looked gave no hint.
    let mut is_read_due = true;
    let mut quiet = Duration::ZERO;

    let status: RunStatus = loop {
        // Read every time: a store knows only after a while whether notifications arrive.
        let patience = store.max_poll_interval();
        // Lines do not move.
        let tick = if progress.is_terminal() { TICK } else { patience };
        let waits = !is_read_due && quiet < patience;
        // Each arm only wakes: whatever awaits inside an arm would keep the worker from being polled.
        let wake = {
            let watcher = async {
                if waits && tokio::time::timeout(tick, changes.changed()).await.is_err() {
                    return Wake::Tick;
                }
                tokio::time::sleep_until(next_read).await;
                Wake::Events(store.events_since(work.run, cursor, PAGE).await)
            };
            tokio::select! {
                biased;
                status = &mut worker => Wake::Done(status),
                () = interrupts.next() => Wake::Interrupt,
                wake = watcher => wake,
            }
        };
        match wake {
            Wake::Done(status) => break status.context("the run could not be driven to its end")?,
            Wake::Interrupt if was_interrupted => {
                progress.note("killing what still runs");
                control.kill();
            }
            Wake::Interrupt => {
                was_interrupted = true;
                progress.note("canceling… press Ctrl-C again to kill");
                control.cancel();
            }
            Wake::Tick => {
                quiet += tick;
                progress.tick();
            }
            Wake::Events(Err(error)) if error.is_passing() => {
                // The worker says what it is waiting for; looking costs nothing to anybody.
                next_read = Instant::now() + TICK;
            }
            Wake::Events(Err(error @ laneway_store::Error::UnreadableEvent { seq, .. })) => {
                progress.note(&format!("{error}; the run goes on, and `laneway doctor` says more"));
                cursor = seq;
            }
            Wake::Events(events) => {
                let events = events?;
                cursor = events.last().map_or(cursor, |event| event.seq);
                // A full page means that there is more, for which no hint will come.
                (is_read_due, quiet) = (events.len() == PAGE, Duration::ZERO);
                next_read = Instant::now() + READ_INTERVAL;
                progress.apply(&events)?;
            }
        }
    };
    loop {
        let events = match store.events_since(work.run, cursor, PAGE).await {
            Err(error @ laneway_store::Error::UnreadableEvent { seq, .. }) => {
                progress.note(&format!("{error}; `laneway doctor` says more"));
                cursor = seq;
                continue;
            }
            events => events?,
        };
        let Some(last) = events.last() else { break };
        cursor = last.seq;
        progress.apply(&events)?;
    }
    let (is_json, is_terminal) = (progress.is_json(), progress.is_terminal());
    let tally = progress.close();
    let printer = &context.printer;
    if !status.is_final() {
        let short = work.run.short();
        printer.note(&format!("run {short} is paused; `laneway advance {short}` does its next level, `laneway resume {short}` the rest"));
        return Ok(Driven { exit: Exit::Succeeded, told: None });
    }
    let exit = Exit::of_run(status, was_interrupted);
    if is_json {
        return Ok(Driven { exit, told: None });
    }
    let face = Face::Store(Arc::clone(store));
    Ending { run: work.run, tally: &tally, is_terminal }.failures(printer, &face).await?;
    Ok(Driven { exit, told: Some((tally, is_terminal)) })
}

enum Wake {
    Done(Result<RunStatus, laneway_engine::Error>),
    Interrupt,
    Tick,
    Events(laneway_store::Result<Vec<laneway_core::event::Event>>),
}

/// Ctrl-C and SIGTERM, which mean the same: a service manager is a person too.
pub(crate) struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be listened to");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
