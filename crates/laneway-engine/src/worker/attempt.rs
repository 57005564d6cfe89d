//! One attempt, from its claim to what the store is told of its end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use laneway_core::expression::Scope;
use laneway_core::hash::Version;
use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Store;
use laneway_store::layer::NewLayer;
use laneway_store::model::{Claim, Outcome, PoolTally, RunView, Wanted, Wish};

use super::artifacts;
use super::cache::{self, Left, Looked, Place, Uses};
use super::counts::Counts;
use super::merge::{self, Merged};
use super::prepare::{self, Places, Spot, Work};
use super::run_files::AttemptView;
use super::wishes::{Number, Wishes};
use super::workspace::{self as workspaces, Workspaces};
use super::written::{Stamps, Written};
use crate::container::orphans::Sweeper;
use crate::container::pool::{self, PoolMeans, Pools, Recorder};
use crate::container::{self, Containers, labels};
use crate::effect::{Desk, Door, Effects};
use crate::function::{self, Functions};
use crate::log::{Courier, Target, Writer};
use crate::process::{self, Ending, StopSignal};
use crate::secret::{self, Masks};
use crate::warden::Warden;

/// How long to wait before a store that is busy or full is asked again.
pub(super) const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How often it is looked whether runs are over that have asked for warm containers.
const LET_GO: Duration = Duration::from_secs(5);

/// Characters of what is told about a failure.
const MAX_DETAIL: usize = 4_000;

/// What an attempt needs besides its claim.
#[derive(Debug, Clone)]
pub(super) struct Setting {
    pub(super) store: Arc<dyn Store>,
    pub(super) places: Places,
    pub(super) workspaces: Workspaces,
    /// Where logs are not files.
    pub(super) courier: Option<Courier>,
    pub(super) kill_grace: Duration,
    pub(super) warden: Warden,
    pub(super) functions: Functions,
    pub(super) session: SessionId,
    pub(super) containers: Containers,
    pub(super) sweeper: Sweeper,
    /// Made when the first step asks for one: most nodes never have any.
    pub(super) pools: Arc<OnceLock<Pools>>,
    /// What they do is an event each.
    pub(super) recorder: Arc<Recorder>,
    pub(super) counts: Counts,
    /// Whether steps with `cache` may take what was recorded before.
    pub(super) takes_results: bool,
    /// How often they did.
    pub(super) uses: Arc<Uses>,
    /// What people want of its pools.
    pub(super) wishes: Arc<Wishes>,
    /// Where processes ask for effects; none where no socket can be made.
    pub(super) door: Option<Arc<Door>>,
    /// A log could not be kept, and somebody was told.
    pub(super) told_of_logs: Arc<AtomicBool>,
}

impl Setting {
    fn pools(&self) -> &Pools {
        self.pools.get_or_init(|| {
            Pools::new(PoolMeans {
                docker: self.containers.docker.clone(),
                warden: self.warden.clone(),
                host_mounts: self.places.ground.host_mounts(&self.containers.allow_mounts),
                session: self.session,
                labels: labels::of_node(self.store.instance(), self.session),
                scratch: self.places.scratch.clone(),
                ports: self.containers.ports.clone(),
                start_concurrency: self.containers.start_concurrency,
                told: Some(self.recorder.start(Arc::clone(&self.store), self.session)),
            })
        })
    }

    /// Does what somebody wants of its pools, in the background. Of a pool that is known here by its name, or of one that a
    /// document has.
    pub(super) fn grant(&self, wish: Wish) {
        let Wish { pool, what } = wish;
        match what {
            Wanted::Warm { count, of: None } => {
                self.wishes.begin(&pool, || {
                    let told = self.pools.get().map_or(0, |pools| pools.warm_named(&pool, count as usize));
                    tracing::info!(pool, count, told, "warming a pool, as somebody asked for");
                });
            }
            Wanted::Warm { count, of: Some(version) } => {
                let (setting, wish) = (self.clone(), self.wishes.begin(&pool, || {}));
                tokio::spawn(async move { setting.warm_ahead(&pool, count, &version, wish).await });
            }
            Wanted::Drain => {
                self.wishes.begin(&pool, || {
                    let told = self.pools.get().map_or(0, |pools| pools.drain(&pool));
                    tracing::info!(pool, told, "draining a pool, as somebody asked for");
                });
            }
        }
    }

    async fn warm_ahead(&self, name: &str, count: u32, version: &Version, wish: Number) {
        let plan = loop {
            match self.store.plan(version).await {
                Ok(plan) => break plan,
                Err(error) if error.is_passing() => tokio::time::sleep(ASK_AGAIN).await,
                Err(error) => {
                    tracing::warn!(%error, pool = name, "a pool was not warmed: its document cannot be read");
                    return;
                }
            }
        };
        self.sweeper.swept().await;
        for pool in plan.pools_named(name) {
            match self.pools().ready(&pool).await {
                Ok(Some(ready)) => {
                    let is_wanted = self.wishes.grant(name, wish, || ready.warm(count as usize));
                    tracing::info!(pool = name, count, is_wanted, "warming a pool, as somebody asked for");
                }
                Ok(None) => tracing::warn!(
                    pool = name,
                    "a pool was not warmed before a run: this node may not mount, and its containers would see no directory"
                ),
                Err(why) => tracing::warn!(pool = name, %why, "a pool was not warmed"),
            }
        }
    }

    /// Warms what comes behind this task, without anybody waiting for it.
    fn prewarm(&self, claim: &Claim, dir: &Path) {
        let plan = &claim.head.plan;
        if plan.workflow.pools.is_empty() || plan.prewarm.width == 0 {
            return;
        }
        let (pools, sweeper) = (self.pools().clone(), self.sweeper.clone());
        let (plan, position, dir) = (Arc::clone(plan), claim.at.position, dir.to_owned());
        let run = claim.head.run;
        tokio::spawn(async move {
            sweeper.swept().await;
            pools.prewarm(&plan, position, run, &dir);
        });
    }

    /// Lets go of containers that are of no use to anybody but runs that are over, and of those that an aborted run has used: it may have
    /// been aborted behind its last task in a pool, or on another node. Never ends.
    pub(super) async fn keep_letting_go(self) {
        loop {
            tokio::time::sleep(LET_GO).await;
            let Some(pools) = self.pools.get() else { continue };
            let mut over = BTreeSet::new();
            for run in pools.runs() {
                let status = match self.store.status(run).await {
                    Ok(status) => Some(status),
                    Err(laneway_store::Error::NoSuchRun { .. }) => None,
                    // Asked again.
                    Err(_) => continue,
                };
                if status.is_none_or(RunStatus::is_final) {
                    over.insert(run);
                }
                if let Some(status) = status
                    && self.was_aborted(run, status).await
                {
                    pools.abort(run).await;
                }
            }
            pools.leave(&over);
        }
    }

    /// Whether a run was canceled, or cut short by a failure of its own.
    async fn was_aborted(&self, run: RunId, status: RunStatus) -> bool {
        match status {
            RunStatus::Canceled => true,
            RunStatus::Failed => {
                let canceled =
                    |view: RunView| view.state.tasks.iter().any(|task| task.status == TaskStatus::Canceled);
                self.store.run(run).await.is_ok_and(canceled)
            }
            RunStatus::Queued | RunStatus::Running | RunStatus::Succeeded => false,
        }
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None`: it was stopped because somebody asked, who also knows the reason.
    pub(super) outcome: Option<Outcome>,
    pub(super) took: Duration,
    /// How long its log is.
    pub(super) log: u64,
    /// What it changed in its view.
    pub(super) layer: Option<Box<NewLayer>>,
}

impl Ended {
    fn new(outcome: Option<Outcome>, took: Duration) -> Self {
        Self { outcome, took, log: 0, layer: None }
    }

    fn taken(hit: Box<laneway_store::cache::Hit>, begun: Instant) -> Self {
        let layer = hit.layer.clone().filter(|layer| layer.paths > 0);
        Self { layer, ..Self::new(Some(Outcome::Cached(hit)), begun.elapsed()) }
    }

    fn unstarted(reason: Reason, detail: String) -> Self {
        Self::new(Some(failed(reason, detail)), Duration::ZERO)
    }
}

/// Leaves a line of Laneway's own behind what an attempt has printed so far. Gives how long its log is then.
pub(super) fn note(setting: &Setting, claim: &Claim, log: u64, text: &str) -> u64 {
    let (target, cap) = prepare::log_of(claim, &setting.places, setting.courier.as_ref());
    let mut writer = Writer::new(Target::Behind(Box::new(target), log), cap);
    writer.note(text);
    writer.finish().length
}

/// `log` is how long the log of the attempt is already: what goes level by level is tried again within it.
pub(super) async fn run(setting: Setting, claim: Claim, stop: StopSignal, log: u64) -> Ended {
    let ended = attempt(setting, claim, stop, log).await;
    Ended { log: ended.log.max(log), ..ended }
}

async fn attempt(setting: Setting, claim: Claim, stop: StopSignal, log: u64) -> Ended {
    let (dir, mut view) = match workplace(&setting, &claim, &stop).await {
        Ok(place) => place,
        Err(ended) => return ended,
    };
    let ended = attempt_in(&setting, &claim, &stop, log, (&dir, view.as_mut())).await;
    if let Some(view) = view {
        setting.workspaces.files().leave(view).await;
    }
    ended
}

/// Makes the directory in which an attempt works: a view of its own, if the files of its run follow
/// it; else the directory of the run.
async fn workplace(
    setting: &Setting,
    claim: &Claim,
    stop: &StopSignal,
) -> Result<(PathBuf, Option<AttemptView>), Ended> {
    let workspaces = &setting.workspaces;
    loop {
        let (error, reason) = match workspaces::followed(claim) {
            Some(bundle) => match workspaces.files().enter(claim, bundle).await {
                Ok(view) => return Ok((view.dir().to_owned(), Some(view))),
                Err(error) if error.is_passing() && !stop.is_asked() => {
                    tokio::time::sleep(ASK_AGAIN).await;
                    continue;
                }
                Err(error) => (error.to_string(), error.reason()),
            },
            None => match workspaces.ready(&setting.places.ground, claim).await {
                Ok(dir) => return Ok((dir, None)),
                Err(error) if error.is_passing() && !stop.is_asked() => {
                    tokio::time::sleep(ASK_AGAIN).await;
                    continue;
                }
                Err(error) => (error.to_string(), Reason::StartFailed),
            },
        };
        return Err(Ended::unstarted(reason, error));
    }
}

/// One attempt in the directory that was made for it.
async fn attempt_in(
    setting: &Setting,
    claim: &Claim,
    stop: &StopSignal,
    log: u64,
    (dir, mut view): (&Path, Option<&mut AttemptView>),
) -> Ended {
    let begun = Instant::now();
    let mut scope = loop {
        match scope(setting, claim).await {
            Ok(scope) => break scope,
            // A busy or full disk is not the step's fault.
            Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => {
                return Ended::unstarted(
                    Reason::StartFailed,
                    format!("its inputs could not be read: {error}"),
                );
            }
        }
    };
    let fence = loop {
        match fence(setting, claim).await {
            Ok(Some(fence)) => break fence,
            Ok(None) => return Ended::unstarted(Reason::StartFailed, "its claim was lost".to_owned()),
            Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => return Ended::unstarted(Reason::StartFailed, error.to_string()),
        }
    };
    setting.prewarm(claim, dir);
    let merged = match merge::merge(setting, claim, (dir, view.is_some()), stop).await {
        None => None,
        Some(Ok(Merged::Ended(outcome))) => {
            let (mut outcome, mut left) = (Some(outcome), Left::default());
            let place = (view.as_deref().ok_or_else(Stamps::default), dir, &scope);
            let kept = keep(setting, claim, stop, place, &outcome, &mut left).await;
            if let Err((reason, why)) = kept {
                (outcome, left) = (Some(failed(reason, why)), Left::default());
            }
            let layer = left.layer.filter(|layer| layer.paths > 0);
            return Ended { layer, ..Ended::new(outcome, begun.elapsed()) };
        }
        Some(Ok(Merged::Pipe(stdin))) => Some(stdin),
        Some(Err(error)) => return Ended::unstarted(Reason::StartFailed, error),
    };
    let masks = match secrets(setting, claim, dir, &mut scope, stop).await {
        Ok(masks) => masks,
        Err(error) => return Ended::unstarted(Reason::StartFailed, error.to_string()),
    };
    let dir = loop {
        // A view is a copy already, and the changes of the attempt are found there.
        if view.is_some() {
            break dir.to_owned();
        }
        match setting.workspaces.isolated(claim, dir).await {
            Ok(dir) => break dir,
            Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
            Err(error) => return Ended::unstarted(Reason::StartFailed, error.to_string()),
        }
    };
    let spot = Spot {
        places: &setting.places,
        dir: &dir,
        stdin: merged.as_deref(),
        courier: setting.courier.as_ref(),
        masks: &masks,
        containers: &setting.containers,
        instance: setting.store.instance(),
        session: setting.session,
        log,
        fence,
    };
    let desk = Desk::new(Arc::clone(&setting.store), claim, masks.clone(), stop.clone());
    let mut ticket = None;
    let job = match prepare::work(claim, &scope, &spot, setting.kill_grace) {
        Ok(Work::Process(mut job)) => {
            ticket = setting.door.as_ref().map(|door| door.admit(desk, &mut job.env));
            Housed::Here(job)
        }
        Ok(Work::Container(mut job)) => {
            job.effects = Effects::at(desk);
            Housed::Within(job)
        }
        Ok(Work::Warm(mut job)) => {
            job.effects = Effects::at(desk);
            Housed::Warm(job)
        }
        Ok(Work::Function(mut job)) => {
            job.effects = Effects::at(desk);
            let place = Place { scope: &scope, workdir: None, is_view: false };
            let owed = match cache::look(setting, claim, place, stop).await {
                Ok(Looked::Taken(hit)) => return Ended::taken(hit, begun),
                Ok(Looked::Executed(owed)) => owed,
                Err(detail) => return Ended::unstarted(Reason::Expression, detail),
            };
            let ended = call(setting, job, &masks, stop).await;
            owed.settle(setting, claim, ended.outcome.as_ref(), ended.took, Left::default()).await;
            return ended;
        }
        Err(detail) => return Ended::unstarted(Reason::Expression, masks.text(&detail)),
    };
    let (timeout, workdir) = (job.timeout(), job.workdir());
    let given = match passing_by(stop, || artifacts::give(&setting.store, claim, (&workdir, &scope))).await {
        Ok(given) => given,
        Err(error) => return Ended::unstarted(Reason::StartFailed, error.to_string()),
    };
    if let Some(Err(error)) = view.as_mut().map(|view| view.note_placed(&given)) {
        return Ended::unstarted(error.reason(), error.to_string());
    }
    let place = Place { scope: &scope, workdir: Some(&workdir), is_view: view.is_some() };
    let owed = match cache::look(setting, claim, place, stop).await {
        Ok(Looked::Taken(hit)) => {
            if view.is_none() {
                setting.workspaces.discard(claim).await;
            }
            return Ended::taken(hit, begun);
        }
        Ok(Looked::Executed(owed)) => owed,
        Err(detail) => return Ended::unstarted(Reason::Expression, detail),
    };
    let before = match &view {
        Some(_) => Stamps::default(),
        None => artifacts::stamps(claim, (&workdir, &scope)).await,
    };
    let mut ending = match job {
        Housed::Here(job) => process::execute(setting.warden.clone(), job, stop.clone()).await,
        Housed::Within(job) => {
            setting.sweeper.once();
            container::execute(&setting.containers.docker, &setting.warden, *job, stop.clone()).await
        }
        Housed::Warm(job) => {
            setting.sweeper.once();
            let ending = pool::execute(setting.pools(), *job, stop).await;
            let worth = setting.pools().tally().read();
            setting.counts.add(|tally| {
                let saved_ms = u64::try_from(worth.saved.as_millis()).unwrap_or(u64::MAX);
                tally.pools = PoolTally { hits: worth.hits, misses: worth.misses, saved_ms };
            });
            ending
        }
    };
    if let Some(ticket) = ticket {
        ticket.close().await;
    }
    if let Some(stdin) = merged {
        drop(std::fs::remove_file(stdin));
    }
    if let Some(courier) = &setting.courier {
        // Whoever reads that it has ended reads all that it printed. A node that is to stop at once waits a moment only.
        let in_a_hurry = async {
            stop.killed().await;
            tokio::time::sleep(ASK_AGAIN).await;
        };
        tokio::select! {
            settled = courier.settle(claim.at) => {
                if let Err(why) = settled {
                    ending.log.error.get_or_insert(format!("cannot keep all of the log: {why}"));
                }
            }
            () = in_a_hurry => {}
        }
    }
    // Said once: on a full disk it would be said for every attempt. Each log says for itself what it misses.
    if let Some(error) = &ending.log.error
        && !setting.told_of_logs.swap(true, Ordering::Relaxed)
    {
        tracing::warn!("{error}; the steps go on, and `laneway logs` shows where something is missing");
    }
    let (took, log) = (ending.duration, ending.log.length);
    let mut outcome = outcome(ending, timeout);
    let mut left = Left::default();
    let place = (view.as_deref().ok_or(before), workdir.as_path(), &scope);
    if let Err((reason, why)) = keep(setting, claim, stop, place, &outcome, &mut left).await {
        outcome = Some(failed(reason, why));
        left = Left::default();
    }
    let layer = left.layer.clone().filter(|layer| layer.paths > 0);
    owed.settle(setting, claim, outcome.as_ref(), took, left).await;
    if view.is_none() && matches!(outcome, Some(Outcome::Succeeded { .. })) {
        setting.workspaces.discard(claim).await;
    }
    Ended { took, outcome, log, layer }
}

/// Keeps what an attempt leaves: what it changed in its view, and its artifacts. Without a view the
/// stamps tell what it wrote. An error is why the attempt fails for that.
async fn keep(
    setting: &Setting,
    claim: &Claim,
    stop: &StopSignal,
    (view, workdir, scope): (Result<&AttemptView, Stamps>, &Path, &Scope),
    outcome: &Option<Outcome>,
    left: &mut Left,
) -> Result<(), (Reason, String)> {
    let has_succeeded = matches!(outcome, Some(Outcome::Succeeded { .. }));
    let is_reported = matches!(outcome, Some(Outcome::Failed { .. }))
        && claim.head.plan.is_followed_after_failure(claim.at.position);
    let hands_on_changes = claim.head.plan.hands_on_changes(claim.at.position);
    let mut written = match &view {
        Ok(_) => Written::InView(BTreeSet::new()),
        Err(before) => Written::Since(before.clone()),
    };
    if let Ok(view) = view
        && (has_succeeded || is_reported)
    {
        let files = setting.workspaces.files();
        let changed = loop {
            let changes = match files.changes(view).await {
                // Of a step with `isolate: true` only its artifacts count.
                Ok(changed) if !hands_on_changes => Ok((changed, None)),
                Ok(changed) => files.keep(claim, view, &changed).await.map(|layer| (changed, layer)),
                Err(error) => Err(error),
            };
            match changes {
                Ok((changed, layer)) => {
                    left.layer = Some(Box::new(layer.unwrap_or_else(NewLayer::empty)));
                    break Some(changed);
                }
                Err(error) if error.is_passing() && !stop.is_asked() => {
                    tokio::time::sleep(ASK_AGAIN).await;
                }
                // What a failed step left is worth less than why it failed.
                Err(error) if is_reported => {
                    tracing::warn!("what a failed step left is not kept: {error}");
                    break None;
                }
                Err(error) => return Err((Reason::BadOutput, error.to_string())),
            }
        };
        if let Some(changed) = changed {
            let paths = changed.written().iter().map(|path| view.dir().join(path));
            written = Written::InView(paths.collect());
        }
    }
    if has_succeeded {
        let kept = || artifacts::keep(setting.store.as_ref(), claim, (workdir, scope), written.clone());
        left.artifacts =
            passing_by(stop, kept).await.map_err(|error| (Reason::BadOutput, error.to_string()))?;
    }
    Ok(())
}

/// A program, and where it runs.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each slot; a box would cost every process an allocation"
)]
enum Housed {
    Here(process::Job),
    Within(Box<container::Job>),
    Warm(Box<pool::Job>),
}

impl Housed {
    fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Here(job) => job.timeout,
            Self::Within(job) => job.timeout,
            Self::Warm(job) => job.timeout,
        }
    }

    /// On this host, for its artifacts. A directory that only the container has holds none.
    fn workdir(&self) -> PathBuf {
        match self {
            Self::Here(job) => job.workdir.clone(),
            Self::Within(job) => below(&job.dir, job.workdir.as_deref()),
            Self::Warm(job) => match &job.what {
                pool::What::Exec { workdir, .. } => below(&job.dir, workdir.as_deref()),
                pool::What::Call { .. } => job.dir.clone(),
            },
        }
    }
}

fn below(dir: &Path, workdir: Option<&str>) -> PathBuf {
    match workdir {
        Some(path) if !path.starts_with('/') => dir.join(path),
        Some(_) | None => dir.to_owned(),
    }
}

/// Adds the values of the secrets that a step reads to what its expressions see, and says what is not to be shown.
async fn secrets(
    setting: &Setting,
    claim: &Claim,
    dir: &Path,
    scope: &mut Scope,
    stop: &StopSignal,
) -> Result<Masks, secret::Error> {
    let mut values = serde_json::Map::new();
    for name in prepare::secrets_read(claim) {
        let declared = claim.head.plan.workflow.secrets.iter().find(|(known, _)| *known == name);
        let Some((_, source)) = declared else { continue };
        let value = loop {
            match secret::find(setting.store.as_ref(), &name, source, dir).await {
                Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
                value => break value?,
            }
        };
        values.insert(name, value.into());
    }
    let masks = Masks::of(values.values().filter_map(serde_json::Value::as_str));
    if !values.is_empty() {
        scope.insert("secrets".into(), values.into());
    }
    Ok(masks)
}

/// Asks again as long as the store is only busy or full, unless somebody wants the attempt to end.
async fn passing_by<T, F>(stop: &StopSignal, ask: impl Fn() -> F) -> Result<T, artifacts::Error>
where
    F: Future<Output = Result<T, artifacts::Error>>,
{
    loop {
        match ask().await {
            Err(error) if error.is_passing() && !stop.is_asked() => tokio::time::sleep(ASK_AGAIN).await,
            answer => return answer,
        }
    }
}

async fn call(setting: &Setting, job: function::Job, masks: &Masks, stop: &StopSignal) -> Ended {
    let (begun, timeout) = (Instant::now(), job.timeout);
    let outcome = match function::execute(&setting.functions, job, stop).await {
        function::Ending::Returned(output) => Some(Outcome::Succeeded { output: masks.output(output) }),
        function::Ending::Failed(why) => Some(failed(Reason::Error, masks.text(&why))),
        function::Ending::BadOutput(why) => Some(failed(Reason::BadOutput, masks.text(&why))),
        function::Ending::Unknown(why) => Some(failed(Reason::StartFailed, why)),
        function::Ending::TimedOut => Some(timed_out(timeout)),
        function::Ending::Stopped => None,
    };
    Ended::new(outcome, begun.elapsed())
}

/// The read costs a thread's round trip, so it is made only for steps that read something.
async fn scope(setting: &Setting, claim: &Claim) -> laneway_store::Result<Scope> {
    let steps = prepare::steps_read(claim);
    if steps.is_empty() {
        return Ok(claim.head.scope(serde_json::Map::new()));
    }
    let names: Vec<&str> = steps.iter().map(String::as_str).collect();
    setting.store.scope(claim.head.run, &names).await
}

/// Reads the fencing token of a step that has a lock. `None` if the claim is lost.
async fn fence(setting: &Setting, claim: &Claim) -> laneway_store::Result<Option<Option<u64>>> {
    let step = claim.head.plan.step(claim.at.position);
    if step.demands().lock.is_none() {
        return Ok(Some(None));
    }
    setting.store.fence(claim.at).await
}

fn outcome(ending: Ending, timeout: Option<Duration>) -> Option<Outcome> {
    Some(match ending.outcome {
        process::Outcome::Exited(0) => match ending.output {
            Ok(output) => Outcome::Succeeded { output },
            Err(error) => failed(Reason::BadOutput, error.to_string()),
        },
        process::Outcome::Exited(code) => Outcome::Failed {
            reason: Reason::Exit,
            detail: format!("exit code {code}"),
            exit_code: Some(code),
        },
        process::Outcome::Signaled(signal) => failed(Reason::Signal, signal_name(signal)),
        process::Outcome::OutOfMemory(code) => Outcome::Failed {
            reason: Reason::Oom,
            detail: "it wanted more memory than `container.memory` allows, and was killed".to_owned(),
            exit_code: Some(code),
        },
        process::Outcome::Failed(why) => failed(Reason::Error, why),
        process::Outcome::TimedOut => timed_out(timeout),
        process::Outcome::StartFailed(why) => failed(Reason::StartFailed, why),
        process::Outcome::EngineLost(why) => failed(Reason::EngineLost, why),
        process::Outcome::Stopped => return None,
    })
}

fn timed_out(timeout: Option<Duration>) -> Outcome {
    failed(Reason::Timeout, format!("ran longer than {:?}", timeout.unwrap_or_default()))
}

pub(super) fn failed(reason: Reason, detail: String) -> Outcome {
    Outcome::Failed { reason, detail: kept(&detail), exit_code: None }
}

/// Others have a say in these words: what no database keeps, and what is too long to be read, is left out.
fn kept(detail: &str) -> String {
    detail.chars().filter(|sign| *sign != '\0').take(MAX_DETAIL).collect()
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        14 => "ALRM",
        15 => "TERM",
        24 => "XCPU",
        25 => "XFSZ",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_say_of_a_failure_can_be_kept() {
        let said = format!("answered 500: a\0b{}", "x".repeat(10_000));
        let Outcome::Failed { detail, .. } = failed(Reason::Exit, said) else { panic!("not failed") };
        assert!(detail.starts_with("answered 500: ab") && !detail.contains('\0'), "{detail}");
        assert_eq!(detail.chars().count(), MAX_DETAIL);
    }
}
