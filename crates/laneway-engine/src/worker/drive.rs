//! The loop of a node: it drives one local run to its end ([`Drive`]), or takes whatever comes until it is told to stop
//! ([`Worker`]). It owns what runs and what is yet to be recorded; every change comes to it as a [`Message`].

mod compare;
mod leave;
mod level;
mod say;
mod tolerate;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{Answer, Claim, Finished, Orders, Outcome, Reaped, Renewed, Stop, Wish};
use laneway_store::{ClaimRef, Fate, Store};
use laneway_torture::{Bug, Point, has, pass};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use self::tolerate::Told;
use super::Error;
use super::attempt::{Ended, Setting};
use super::control::{Control, Urge};
use super::counts::Counts;
use super::heartbeat::{Beat, Pulse};
use super::late_claims::LateClaims;
use super::levels::Levels;
use super::lineup::{Lineup, Wanted};
use super::poll::Poll;
use super::prepare::{Ground, Places};
use super::workspace::Workspaces;
use crate::container::orphans::Sweeper;
use crate::container::{self, Containers};
use crate::effect::Door;
use crate::function::Functions;
use crate::log::Courier;
use crate::process::StopSignal;
use crate::warden::Warden;

/// How often the store is looked at because something changed: quick for a person, nothing for the machine.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long to wait before asking again what the store could not do for a passing reason (a full disk).
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// When a start is said at the latest. What ends before is told to the store in one go with its end; people do
/// not see the difference.
const SAY_AFTER: Duration = Duration::from_millis(20);

/// How long an end may wait for company while enough is held to go on: fewer commits, and nobody waits for this one.
const RECORD_AFTER: Duration = Duration::from_millis(5);

/// How often a node checks the locks of other nodes for dead ones, and for gates that no verb has opened.
/// docs/operations.md gives this figure to operators.
pub const DEAD_NODE_CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The store's clock may be ahead of ours, so a moment is never waited for in one piece.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How soon a moment is asked for again that has not come by the store's clock.
const WAKE_AGAIN: Duration = Duration::from_millis(50);

/// What every loop needs.
#[derive(Debug)]
pub struct Means {
    pub store: Arc<dyn Store>,
    pub session: SessionId,
    pub slots: usize,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Starts the steps, and leaves none behind.
    pub warden: Warden,
    /// What steps with `function` call.
    pub functions: Functions,
    /// Where steps with `image` run.
    pub containers: Containers,
    /// Where a session takes a heartbeat.
    pub pulse: Option<Pulse>,
    /// What the session has done, for whoever renews it.
    pub counts: Counts,
    /// How rarely the store is looked at without a hint, at the most.
    pub max_poll_interval: Duration,
    /// Whether steps with `cache` may take what was recorded before. What they do is recorded in any case.
    pub takes_results: bool,
    /// The most that the layers of a view may have to be stored.
    pub workspace_max_bytes: u64,
}

/// A node that drives one run of its own.
#[derive(Debug)]
pub struct Drive {
    pub means: Means,
    pub run: RunId,
    /// Who cancels, when `Control` says so.
    pub by: String,
    /// Whether a pause ends it as well.
    pub is_over_when_paused: bool,
    /// The only variables of this process that steps see; `None` for all of them.
    pub pass_env: Option<Vec<String>>,
}

impl Drive {
    /// Runs what can be run until the run has ended. An error leaves nothing running; the run itself stays as
    /// the store has it and can be resumed.
    pub async fn until_done(self, control: Control) -> Result<RunStatus, Error> {
        let aim = Aim::Run { run: self.run, by: self.by, is_over_when_paused: self.is_over_when_paused };
        let ground = Ground::Caller { pass_env: self.pass_env };
        let end = drive(self.means, aim, ground, control).await?;
        match end {
            End::Run(status) => Ok(status),
            End::Left(_) => unreachable!("a loop that drives a run ends with it"),
        }
    }
}

/// A node that takes what it can run, of whatever run.
#[derive(Debug)]
pub struct Worker {
    pub means: Means,
    pub ground: Ground,
    /// Whether steps in containers are taken while this node's engine answers. Otherwise it is as its session has said.
    pub watches_engine: bool,
    /// How long what runs may go on after somebody asked the node to stop.
    pub shutdown_grace: Duration,
}

impl Worker {
    /// Works until `control` says otherwise: after the first word nothing new is taken and what runs may end, for a
    /// while; then it is stopped, and after the second word killed. What was stopped is still held: whoever
    /// retires the session returns it. Gives what did not end by itself.
    pub async fn until_stopped(self, control: Control) -> Result<Vec<Cut>, Error> {
        let aim = Aim::Any { shutdown_grace: self.shutdown_grace, watches_engine: self.watches_engine };
        let end = drive(self.means, aim, self.ground, control).await?;
        match end {
            End::Left(cut) => Ok(cut),
            End::Run(_) => unreachable!("a loop that takes whatever comes belongs to no run"),
        }
    }
}

/// A step that a node ended because it was to stop itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    pub run: RunId,
    pub step: String,
    pub attempt: u32,
}

/// What a loop is for.
#[derive(Debug, Clone)]
enum Aim {
    Run { run: RunId, by: String, is_over_when_paused: bool },
    Any { shutdown_grace: Duration, watches_engine: bool },
}

/// How a loop ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Run(RunStatus),
    Left(Vec<Cut>),
}

/// Where steps ask for effects. Without it they run as well, and are told when they ask.
fn door(scratch: &Path, session: SessionId) -> Option<Arc<Door>> {
    match Door::open(scratch, session) {
        Ok(door) => Some(Arc::new(door)),
        Err(error) => {
            tracing::warn!(%error, "steps cannot ask for effects: their socket cannot be made");
            None
        }
    }
}

async fn drive(means: Means, aim: Aim, ground: Ground, control: Control) -> Result<End, Error> {
    pass(Point::ScratchBefore);
    let scratch = make_scratch(&means)?;
    pass(Point::ScratchAfter);
    let store_dir = scratch.parent().and_then(|dir| dir.parent()).map_or_else(PathBuf::new, PathBuf::from);
    let workspaces = Workspaces::new(
        Arc::clone(&means.store),
        store_dir.clone(),
        scratch.clone(),
        means.workspace_max_bytes,
    );
    // Nobody waits for it, and it may be cut off at any moment.
    let tidying = tokio::spawn(workspaces.clone().keep_tidy(now));
    let setting = Setting {
        store: Arc::clone(&means.store),
        workspaces,
        courier: (!means.store.is_embedded()).then(|| Courier::start(Arc::clone(&means.store))),
        places: Places { store_dir, scratch: scratch.clone(), ground },
        kill_grace: means.kill_grace,
        warden: means.warden.clone(),
        functions: means.functions.clone(),
        session: means.session,
        sweeper: Sweeper::new(means.containers.docker.clone(), Arc::clone(&means.store)),
        containers: means.containers.clone(),
        pools: Arc::default(),
        recorder: Arc::default(),
        counts: means.counts.clone(),
        takes_results: means.takes_results,
        uses: Arc::default(),
        wishes: Arc::default(),
        door: door(&scratch, means.session),
        told_of_logs: Arc::default(),
    };
    let sweeping = matches!(aim, Aim::Any { .. }).then(|| tokio::spawn(setting.sweeper.clone().keep_swept()));
    let watching = matches!(aim, Aim::Any { watches_engine: true, .. }).then(|| {
        let (docker, store) = (means.containers.docker.clone(), Arc::clone(&means.store));
        let told = (setting.sweeper.clone(), Arc::clone(&setting.pools));
        tokio::spawn(container::keep_told(docker, store, means.session, told))
    });
    let letting_go = matches!(aim, Aim::Any { .. }).then(|| tokio::spawn(setting.clone().keep_letting_go()));
    let (pools, recorder) = (Arc::clone(&setting.pools), Arc::clone(&setting.recorder));
    let (workspaces, uses) = (setting.workspaces.clone(), Arc::clone(&setting.uses));
    let store = Arc::clone(&setting.store);
    let own = match &aim {
        Aim::Run { run, .. } => Some(*run),
        Aim::Any { .. } => None,
    };
    let mut work = Loop::new(means, aim, setting);
    let result = work.run(control).await;
    tidying.abort();
    sweeping.iter().chain(&watching).chain(&letting_go).for_each(tokio::task::JoinHandle::abort);
    if result.is_err() {
        work.kill_everything().await;
    }
    // Behind the last task: warm containers belong to this life of the node.
    if let Some(pools) = pools.get() {
        pools.close().await;
        recorder.finish().await;
    }
    uses.finish(store.as_ref()).await;
    // Behind the containers, which see these directories as theirs.
    if let (Some(run), Ok(End::Run(status))) = (own, &result) {
        workspaces.leave(run, *status == RunStatus::Succeeded).await;
    }
    pass(Point::RunOver);
    if let Err(error) = std::fs::remove_dir_all(&scratch) {
        tracing::debug!(%error, "scratch files could not be removed");
    }
    result
}

/// A directory of this session for scripts and outputs. Absolute, because steps run elsewhere.
fn make_scratch(means: &Means) -> Result<PathBuf, Error> {
    let files = |source| Error::Files { path: means.store.dir().to_owned(), source };
    let store_dir = std::fs::canonicalize(means.store.dir()).map_err(files)?;
    let scratch = laneway_store::scratch_dir(&store_dir, means.session);
    laneway_store::private::create_dir_all(&scratch).map_err(files)?;
    Ok(scratch)
}

/// Everything that can happen to the loop from its own futures.
enum Message {
    Ended(ClaimRef, Ended),
    /// What had ended is recorded, or not.
    Recorded(Wanted, Result<Answer, laneway_store::Error>),
    Started(Vec<ClaimRef>, Result<Vec<Fate>, laneway_store::Error>),
    Claimed(Wanted, Result<Vec<Claim>, laneway_store::Error>),
    /// All of the level whose first step was claimed.
    LevelTaken(ClaimRef, Result<Vec<Claim>, laneway_store::Error>),
    /// A step of a level may be tried again.
    Rested(ClaimRef),
    GivenBack(Vec<ClaimRef>, Result<Vec<Fate>, laneway_store::Error>),
    Promoted(Promotion, Result<Option<Millis>, laneway_store::Error>),
    /// What the session is asked to do, and when `promote` will have something to do.
    Looked(Result<(Orders, Option<Millis>), laneway_store::Error>),
    Canceled(Result<RunStatus, laneway_store::Error>),
    Swept(Result<Reaped, laneway_store::Error>),
    /// What the store knows of this session, asked for at that moment.
    Renewed(Instant, Result<Renewed, laneway_store::Error>),
    /// The store knows that this node takes nothing more, or could not be told.
    Drained(Result<Vec<SessionId>, laneway_store::Error>),
}

/// Why the loop promotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promotion {
    /// Time has opened a gate, or the node begins: there may be work right behind it.
    Timed,
    /// The safety net of a sweep. It usually finds nothing, and what it does promote is announced as a change, which makes for a
    /// claim: an idle node asks for none by itself.
    Swept,
}

struct Loop {
    store: Arc<dyn Store>,
    session: SessionId,
    aim: Aim,
    setting: Setting,
    running: HashMap<ClaimRef, Running>,
    lineup: Lineup,
    /// Of runs that go level by level, those that are held.
    levels: Levels,
    /// First steps of levels, while the rest is being taken; and those for which the store could not do it yet.
    taking: HashMap<ClaimRef, Claim>,
    untaken: Vec<Claim>,
    /// Over, and not recorded yet.
    ended: Vec<Finished>,
    /// Started, and the store was not told yet. Oldest first.
    unsaid: VecDeque<(Instant, ClaimRef)>,
    /// To be given back, and the store could not be told yet.
    unreturned: Vec<ClaimRef>,
    /// With the store right now; kept until it answers, because it may have to be said again.
    recording: Option<Vec<Finished>>,
    events: JoinSet<Message>,
    /// When what has ended is recorded at the latest.
    record_at: Option<Instant>,
    /// When `promote` will have something to do, on our clock.
    wake_at: Option<Instant>,
    /// The same by the store's clock, as it was last told.
    waking: Option<Millis>,
    /// When to look at the store because something changed.
    look_at: Option<Instant>,
    /// Ticks when something changed.
    changes: watch::Receiver<u64>,
    /// After how long the store is polled without any hint: a hint may be lost, and correctness must not need one.
    /// Read again at every rest, because it changes while the loop runs: a store that listens for
    /// notifications knows only after a round trip whether they arrive.
    patience: Patience,
    /// The same for a node that takes whatever comes, to which a lost hint is idle time.
    poll: Option<Poll>,
    /// The store could not take the cancel yet.
    is_cancel_unsaid: bool,
    /// When held claims that found no slot go back, so that another node may have them.
    return_at: Option<Instant>,
    /// When a hint last made for a claim.
    asked_at: Option<Instant>,
    /// A node that leaves says so before it is gone.
    is_telling: bool,
    /// An answer that may have brought claims was lost: they are ours, and nobody here knows of them.
    is_unsure: bool,
    /// What the store says we hold, and we know nothing of.
    strangers: Vec<ClaimRef>,
    counts: Counts,
    /// When claims came that have not begun.
    came: HashMap<ClaimRef, Instant>,
    /// When tasks ended in whose places nothing has begun, and of which it is not known yet whether there is something.
    freed: VecDeque<Instant>,
    pulse: Option<Pulse>,
    /// When to look for nodes that died, and for what nobody was told of.
    sweep_at: Option<Instant>,
    /// A lease has ended and could not be returned: we had not renewed our own since.
    is_reap_due: bool,
    /// When what still runs is stopped, because the node is to stop.
    stop_at: Option<Instant>,
    /// What was stopped like that.
    cut: Vec<Cut>,
    /// Which wish for each pool was granted.
    granted: HashMap<String, u64>,
    late_claims: LateClaims,
    urge: Urge,
    told: Told,
}

/// Returns the longest pause between two polls, as of now.
type Patience = Box<dyn Fn() -> Duration + Send + Sync>;

struct Running {
    step: String,
    since: Instant,
    stop: StopSignal,
    /// Why it is being stopped; told to the store when it ends.
    reason: Option<Reason>,
    /// The store says that this claim is not ours any more: drop the result.
    is_lost: bool,
    /// Of a step that may be tried again within its attempt.
    claim: Option<Claim>,
}

impl Loop {
    fn new(means: Means, aim: Aim, setting: Setting) -> Self {
        // This makes the store listen for changes of others.
        let changes = means.store.changes();
        let (store, max_poll_interval) = (Arc::clone(&means.store), means.max_poll_interval);
        let patience: Patience = Box::new(move || store.poll_interval(max_poll_interval));
        Self {
            lineup: Lineup::new(means.slots, matches!(aim, Aim::Run { .. }))
                .with_ports(setting.containers.port_count()),
            setting,
            running: HashMap::new(),
            levels: Levels::default(),
            taking: HashMap::new(),
            untaken: Vec::new(),
            ended: Vec::new(),
            unsaid: VecDeque::new(),
            unreturned: Vec::new(),
            recording: None,
            events: JoinSet::new(),
            record_at: None,
            wake_at: None,
            waking: None,
            look_at: None,
            changes,
            patience,
            poll: matches!(aim, Aim::Any { .. }).then(|| Poll::new(seed(means.session))),
            is_cancel_unsaid: false,
            return_at: None,
            is_telling: false,
            is_unsure: false,
            strangers: Vec::new(),
            counts: means.counts,
            came: HashMap::new(),
            freed: VecDeque::new(),
            pulse: means.pulse,
            sweep_at: matches!(aim, Aim::Any { .. }).then(|| Instant::now() + DEAD_NODE_CHECK_INTERVAL),
            is_reap_due: false,
            asked_at: None,
            stop_at: None,
            cut: Vec::new(),
            granted: HashMap::new(),
            late_claims: LateClaims::default(),
            urge: Urge::None,
            told: Told::default(),
            store: means.store,
            session: means.session,
            aim,
        }
    }

    async fn run(&mut self, control: Control) -> Result<End, Error> {
        let mut urges = control.subscribe();
        // Taken out, so that the loop can wait for it and change everything else.
        let mut pulse = self.pulse.clone();
        self.promote(Promotion::Timed);
        self.claim();
        self.rest();
        loop {
            if self.is_idle()
                && let Some(end) = self.end().await?
            {
                return Ok(end);
            }
            let say_at = self.say_at();
            tokio::select! {
                Some(message) = self.events.join_next() => match message {
                    Ok(message) => self.on_message(message)?,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => {}
                },
                Ok(()) = self.changes.changed() => {
                    self.changes.mark_unchanged();
                    self.on_change();
                }
                Ok(()) = urges.changed() => {
                    let urge = *urges.borrow_and_update();
                    self.on_urge(urge, &control);
                }
                () = until(self.record_at) => self.record(),
                () = until(say_at) => self.say_started(SAY_AFTER / 2),
                () = until(self.wake_at) => { self.wake_at = None; self.promote(Promotion::Timed); }
                beat = next_beat(&mut pulse) => match beat {
                    Beat::Renewed(asked, renewed) => self.compare(asked, renewed),
                    Beat::Over(why) => return Err(Error::Fenced { why }),
                },
                () = until(self.sweep_at) => self.sweep(),
                () = until(self.return_at) => self.return_held(),
                () = until(self.stop_at) => self.cut_short(),
                () = until(self.look_at) => { self.look_at = None; self.look(); }
            }
        }
    }

    /// Nothing runs, nothing is on its way to or from the store: only time or somebody else can go on.
    fn is_idle(&self) -> bool {
        self.running.is_empty()
            && self.ended.is_empty()
            && self.recording.is_none()
            && self.unreturned.is_empty()
            && self.lineup.is_empty()
            && self.levels.is_empty()
            && self.taking.is_empty()
            && self.untaken.is_empty()
            && !self.is_telling
    }

    fn on_message(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Ended(claim, ended) => self.on_ended(claim, ended),
            Message::Recorded(wanted, Ok(answer)) => {
                pass(Point::Recorded);
                let recorded = self.recording.take().unwrap_or_default();
                if std::mem::take(&mut self.told.of_trouble) {
                    tracing::warn!("the store can be written again; going on");
                }
                self.counts.add_ends(&recorded, &answer.fates);
                for (finished, fate) in recorded.iter().zip(&answer.fates) {
                    if *fate == Fate::ClaimLost {
                        self.lose(finished.claim);
                    }
                }
                self.wake(answer.wake_at);
                if answer.is_closing {
                    let held = self.lineup.let_go_of_closed();
                    self.give_back(held);
                }
                self.note_work(&answer.claims);
                self.lineup.answered(wanted, answer.claims);
                self.return_strangers();
                self.stop(&answer.stops);
                self.begin();
                // For the rest there was nothing: what comes later has not been waited for.
                let unrecorded = self.ended.len();
                self.freed.drain(..self.freed.len().saturating_sub(unrecorded));
                self.record_in_company();
                self.ask_for_the_rest();
            }
            Message::Recorded(wanted, Err(error)) => {
                self.is_unsure = true;
                self.lineup.answered(wanted, Vec::new());
                let is_hopeless = self.is_hopeless(&error);
                self.tolerate(error)?;
                // Idempotent by claim: what was committed after all is reported as such.
                let again = self.recording.take().unwrap_or_default();
                if !has(Bug::FinishForgotten) && !is_hopeless {
                    self.ended.splice(0..0, again);
                }
                self.later(ASK_AGAIN);
            }
            Message::Started(claims, Ok(fates)) => {
                for (claim, fate) in claims.into_iter().zip(fates) {
                    // On Postgres a start and the end behind it travel on two connections, and the end may be
                    // recorded first: the store then rejects the start of a claim that is over. What became of that
                    // claim is the answer to its end.
                    if fate == Fate::ClaimLost && self.running.contains_key(&claim) {
                        self.lose(claim);
                    }
                }
            }
            Message::Started(claims, Err(error)) => {
                self.tolerate(error)?;
                let again = Instant::now() + ASK_AGAIN;
                self.unsaid.extend(claims.into_iter().map(|claim| (again, claim)));
            }
            Message::Claimed(wanted, Ok(claims)) => {
                self.note_work(&claims);
                self.lineup.answered(wanted, claims);
                self.return_strangers();
                self.begin();
                self.ask_for_the_rest();
            }
            Message::LevelTaken(first, taken) => self.on_level_taken(first, taken)?,
            Message::Rested(claim) => {
                self.levels.rested(&claim);
                self.begin();
            }
            Message::Claimed(wanted, Err(error)) => {
                self.is_unsure = true;
                self.lineup.answered(wanted, Vec::new());
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
            }
            // A claim that is lost needs no giving back.
            Message::GivenBack(_, Ok(fates)) => {
                let returned = fates.iter().filter(|fate| **fate == Fate::Recorded).count();
                self.counts.add(|tally| tally.returned += returned as u64);
                self.look();
                // A task that took a new passage has to start before it expires.
                self.claim();
            }
            Message::GivenBack(claims, Err(error)) => {
                if !self.is_hopeless(&error) {
                    self.unreturned.extend(claims);
                }
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
            }
            Message::Promoted(why, Ok(next)) => {
                pass(Point::Promoted);
                self.wake(next);
                if why == Promotion::Timed && !has(Bug::HintNeeded) {
                    self.claim();
                }
            }
            Message::Promoted(_, Err(error)) => {
                self.tolerate_of_all(error)?;
                self.wake_at = Some(Instant::now() + ASK_AGAIN);
            }
            Message::Looked(Ok((orders, wake_at))) => {
                self.stop(&orders.stops);
                self.grant(orders.wishes);
                orders.unreadable.iter().for_each(|fault| self.tell_of_fault(fault));
                self.wake(wake_at);
                if !has(Bug::HintNeeded) {
                    self.claim();
                }
                self.rest();
            }
            Message::Looked(Err(error)) => {
                let goes_on = error.is_about_what_is_stored();
                self.tolerate_of_all(error)?;
                if goes_on {
                    self.claim();
                }
                self.later(ASK_AGAIN);
            }
            Message::Swept(Ok(reaped)) => {
                self.counts.add(|tally| tally.reaped += reaped.nodes.len() as u64);
                for node in &reaped.nodes {
                    tracing::warn!(node, "a node died; what it held goes on elsewhere");
                }
                if !reaped.nodes.is_empty() {
                    self.setting.sweeper.soon();
                }
                self.sweep_again(reaped.next_in);
                self.promote(Promotion::Swept);
            }
            Message::Swept(Err(error)) => {
                self.tolerate_of_all(error)?;
                self.sweep_at = Some(Instant::now() + DEAD_NODE_CHECK_INTERVAL);
            }
            Message::Renewed(asked, Ok(renewed)) => self.compare(asked, renewed),
            Message::Renewed(_, Err(error)) => {
                self.tolerate_of_all(error)?;
                self.is_unsure = true;
                self.later(ASK_AGAIN);
            }
            Message::Drained(told) => {
                self.is_telling = false;
                if let Err(error) = told {
                    tracing::debug!(%error, "the store was not told that this node takes nothing more");
                }
            }
            Message::Canceled(Ok(_)) => self.look(),
            Message::Canceled(Err(error)) => {
                self.tolerate(error)?;
                // Said again at the next look.
                self.is_cancel_unsaid = true;
                self.later(ASK_AGAIN);
            }
        }
        Ok(())
    }

    fn on_ended(&mut self, claim: ClaimRef, ended: Ended) {
        pass(Point::AttemptEnded);
        let Some(running) = self.running.remove(&claim) else { return };
        self.lineup.left(claim);
        // Behind the lease the warden kills what runs; that is no end that anybody should read about.
        let is_cut_off = self.pulse.as_ref().is_some_and(Pulse::is_overdue);
        if self.levels.holds(&claim) {
            let is_lost = running.is_lost || is_cut_off;
            self.on_level_ended(claim, running, ended, is_lost);
            self.begin();
            return;
        }
        if !running.is_lost && !is_cut_off {
            let reason = running.reason.unwrap_or(Reason::Canceled);
            let outcome = ended.outcome.unwrap_or(Outcome::Canceled { reason });
            self.lineup.ended(ended.took);
            let layer = ended.layer;
            self.ended.push(Finished { layer, ..Finished::new(claim, outcome, ended.took) });
        }
        self.freed.push_back(Instant::now());
        // The next one starts before anything is recorded: its claim is on disk.
        self.begin();
        self.record_in_company();
    }

    /// Records what has ended, unless enough is held to go on: then it waits a moment for more, and all of it is one commit.
    fn record_in_company(&mut self) {
        if self.lineup.is_stocked() && !self.is_failure_unrecorded() {
            self.record_at.get_or_insert_with(|| Instant::now() + RECORD_AFTER);
        } else {
            self.record();
        }
    }

    fn is_failure_unrecorded(&self) -> bool {
        let unrecorded = self.ended.iter().chain(self.recording.iter().flatten());
        unrecorded.into_iter().any(|finished| matches!(finished.outcome, Outcome::Failed { .. }))
    }

    fn stop(&mut self, stops: &[Stop]) {
        for stop in stops {
            if self.levels.holds(&stop.claim) {
                self.close_level(stop.claim.run, stop.reason);
            } else if let Some(running) = self.running.get_mut(&stop.claim) {
                pass(Point::StopAsked);
                running.reason = Some(stop.reason);
                running.stop.stop();
            } else if self.lineup.let_go(stop.claim) {
                self.give_back(vec![stop.claim]);
            }
        }
    }

    /// Does what people want of the pools of this node. Each wish is told as long as there is no newer one.
    fn grant(&mut self, wishes: Vec<(u64, Wish)>) {
        // A node that leaves warms nothing, and what it has goes anyway.
        if self.urge > Urge::None {
            return;
        }
        for (number, wish) in wishes {
            // Answers may overtake each other; numbers only grow.
            if self.granted.get(&wish.pool).is_none_or(|granted| *granted < number) {
                self.granted.insert(wish.pool.clone(), number);
                self.setting.grant(wish);
            }
        }
    }

    /// The claim is somebody else's now: kill what runs, drop the result, and see whether we are still alive to
    /// the store.
    fn lose(&mut self, claim: ClaimRef) {
        self.later(Duration::ZERO);
        tracing::warn!(run = %claim.run.short(), attempt = claim.attempt, "claim lost; what ran under it is killed");
        self.counts.add(|tally| tally.lost += 1);
        if self.levels.holds(&claim) {
            self.levels.forget(claim.run);
            self.stop_level(claim.run, None);
        }
        if let Some(running) = self.running.get_mut(&claim) {
            running.is_lost = true;
            running.stop.kill_now();
        }
    }

    fn on_urge(&mut self, urge: Urge, control: &Control) {
        if urge == Urge::Kill {
            // Of a node that takes whatever comes, what it killed is no end that anybody should read about: it is done again elsewhere.
            if matches!(self.aim, Aim::Any { .. }) {
                self.cut_short();
            }
            for running in self.running.values() {
                running.stop.kill_now();
            }
        }
        let is_first = self.urge == Urge::None && urge > Urge::None;
        let is_more = urge > self.urge;
        self.urge = self.urge.max(urge);
        match self.aim {
            // Said once more with the kill: clean-up that is yet to start must not.
            Aim::Run { .. } if is_more => self.cancel(),
            Aim::Any { shutdown_grace, .. } if is_first => self.leave(shutdown_grace, control.why().cloned()),
            Aim::Run { .. } | Aim::Any { .. } => {}
        }
    }

    fn wake(&mut self, at: Option<Millis>) {
        // Our clock may be ahead of the store's: a moment that is over here and has not come there is asked for again.
        let is_same = at.is_some() && at == self.waking;
        let floor = if is_same { WAKE_AGAIN } else { Duration::ZERO };
        let new = at.map(|at| Instant::now() + at.since(now()).clamp(floor, LONGEST_WAIT));
        // Whoever is told of it again and again, being busy, does not put it off.
        let armed = self.wake_at.filter(|_| is_same);
        self.wake_at = armed.into_iter().chain(new).min();
        self.waking = at;
    }

    /// Looks again without a hint, sooner or later.
    fn rest(&mut self) {
        let longest = (self.patience)();
        let rest = self.poll.as_mut().map_or(longest, |poll| poll.rest(longest));
        self.later(rest);
    }

    fn later(&mut self, delay: Duration) {
        let at = Instant::now() + delay;
        self.look_at = Some(self.look_at.map_or(at, |look_at| look_at.min(at)));
    }

    /// After an error that ends this worker: leaves no process behind.
    async fn kill_everything(&mut self) {
        self.levels.forget_all();
        for running in self.running.values() {
            running.stop.kill_now();
        }
        while !self.running.is_empty() {
            match self.events.join_next().await {
                Some(Ok(Message::Ended(claim, _))) => drop(self.running.remove(&claim)),
                Some(_) => {}
                None => return,
            }
        }
    }
}

/// A number that differs from node to node.
fn seed(session: SessionId) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    session.hash(&mut hasher);
    hasher.finish()
}

async fn next_beat(pulse: &mut Option<Pulse>) -> Beat {
    match pulse {
        Some(pulse) => pulse.next().await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The wall clock, to turn a moment of the store into a delay. Being wrong here costs a poll: the store decides by
/// its own clock whether the moment has come.
fn now() -> Millis {
    Millis(i64::try_from(crate::log::unix_ms()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests;
