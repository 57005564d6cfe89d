//! Drives one local run to its end: the loop of an ephemeral node. It owns what runs and what is yet to be
//! recorded; every change comes to it as a [`Message`].

use std::collections::HashMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{Answer, Ask, Claim, Finished, Outcome, Stop};
use laneway_store::{ClaimRef, Fate, Store};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Error;
use super::attempt::{self, Ended, Setting};
use super::control::{Control, Urge};
use super::prepare::Places;
use crate::process::StopSignal;
use crate::warden::Warden;

/// How often the store is looked at because something changed: quick for a person, nothing for the machine.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How often it is looked at without any hint: a hint may be lost, and correctness must not need one.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// How long to wait before asking again what the store could not do for a passing reason (a full disk).
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// The store's clock may be ahead of ours, so a moment is never waited for in one piece.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Everything a worker needs to drive one run.
#[derive(Debug)]
pub struct Drive {
    pub store: Arc<dyn Store>,
    pub session: SessionId,
    pub node: String,
    pub run: RunId,
    pub slots: usize,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Starts the steps, and leaves none behind.
    pub warden: Warden,
    /// Who cancels, when `Control` says so.
    pub by: String,
}

impl Drive {
    /// Runs what can be run until the run has ended. An error leaves nothing running; the run itself stays as
    /// the store has it and can be resumed.
    pub async fn until_done(self, control: Control) -> Result<RunStatus, Error> {
        let scratch = self.make_scratch()?;
        let store_dir =
            scratch.parent().and_then(|dir| dir.parent()).map_or_else(PathBuf::new, PathBuf::from);
        let setting = Setting {
            store: Arc::clone(&self.store),
            places: Places { store_dir, scratch: scratch.clone() },
            kill_grace: self.kill_grace,
            warden: self.warden.clone(),
            told_of_logs: Arc::default(),
        };
        let mut work = Loop {
            setting,
            running: HashMap::new(),
            ended: Vec::new(),
            recording: None,
            unsaid: Vec::new(),
            events: JoinSet::new(),
            wake_at: None,
            look_at: None,
            claiming: 0,
            has_asked_short: false,
            is_cancel_unsaid: false,
            urge: Urge::None,
            told_of_trouble: false,
            drive: self,
        };
        let result = work.run(control).await;
        if result.is_err() {
            work.kill_everything().await;
        }
        if let Err(error) = std::fs::remove_dir_all(&scratch) {
            tracing::debug!(%error, "scratch files could not be removed");
        }
        result
    }

    /// A directory of this session for scripts and outputs. Absolute, because steps run elsewhere.
    fn make_scratch(&self) -> Result<PathBuf, Error> {
        let files = |source| Error::Files { path: self.store.dir().to_owned(), source };
        let store_dir = std::fs::canonicalize(self.store.dir()).map_err(files)?;
        let scratch = store_dir.join("scratch").join(self.session.to_string());
        std::fs::create_dir_all(&scratch).map_err(files)?;
        Ok(scratch)
    }
}

/// Everything that can happen to the loop from its own futures.
enum Message {
    Ended(ClaimRef, Ended),
    /// What had ended is recorded, or not.
    Recorded(Result<Answer, laneway_store::Error>),
    Started(Vec<ClaimRef>, Result<Vec<Fate>, laneway_store::Error>),
    Claimed(Result<Vec<Claim>, laneway_store::Error>),
    Promoted(Result<Option<Millis>, laneway_store::Error>),
    Looked(Result<Vec<Stop>, laneway_store::Error>),
    Canceled(Result<RunStatus, laneway_store::Error>),
}

struct Loop {
    drive: Drive,
    setting: Setting,
    running: HashMap<ClaimRef, Running>,
    /// Over, and not recorded yet.
    ended: Vec<Finished>,
    /// Started, and the store could not be told for a passing reason.
    unsaid: Vec<ClaimRef>,
    /// With the store right now; kept until it answers, because it may have to be said again.
    recording: Option<Vec<Finished>>,
    events: JoinSet<Message>,
    /// When `promote` will have something to do, on our clock.
    wake_at: Option<Instant>,
    /// When to look at the store because something changed.
    look_at: Option<Instant>,
    /// Tasks asked for by a claim that is under way; they may come, so their slots are taken.
    claiming: usize,
    /// A finish asked for less than there may be slots, because of that claim.
    has_asked_short: bool,
    /// The store could not take the cancel yet.
    is_cancel_unsaid: bool,
    urge: Urge,
    told_of_trouble: bool,
}

struct Running {
    stop: StopSignal,
    /// Why it is being stopped; told to the store when it ends.
    reason: Option<Reason>,
    /// The store says that this claim is not ours any more: drop the result.
    is_lost: bool,
}

impl Loop {
    async fn run(&mut self, control: Control) -> Result<RunStatus, Error> {
        let mut urges = control.subscribe();
        let mut changes = self.drive.store.changes();
        self.promote();
        self.claim();
        self.later(LOOK_ANYWAY);
        loop {
            if self.is_idle() {
                match self.drive.store.status(self.drive.run).await {
                    Ok(status) if status.is_final() => return Ok(status),
                    Ok(_) => {}
                    Err(error) => {
                        self.tolerate(error)?;
                        self.later(ASK_AGAIN);
                    }
                }
            }
            tokio::select! {
                Some(message) = self.events.join_next() => match message {
                    Ok(message) => self.on_message(message)?,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => {}
                },
                Ok(()) = changes.changed() => {
                    changes.mark_unchanged();
                    self.later(LOOK_EVERY);
                }
                Ok(()) = urges.changed() => {
                    let urge = *urges.borrow_and_update();
                    self.on_urge(urge);
                }
                () = until(self.wake_at) => { self.wake_at = None; self.promote(); }
                () = until(self.look_at) => { self.look_at = None; self.look(); }
            }
        }
    }

    /// Nothing runs, nothing is on its way to or from the store: only time or somebody else can go on.
    fn is_idle(&self) -> bool {
        self.running.is_empty() && self.ended.is_empty() && self.recording.is_none() && self.claiming == 0
    }

    fn on_message(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Ended(claim, ended) => self.on_ended(claim, ended),
            Message::Recorded(Ok(answer)) => {
                let recorded = self.recording.take().unwrap_or_default();
                if std::mem::take(&mut self.told_of_trouble) {
                    tracing::warn!("the store can be written again; going on");
                }
                for (finished, fate) in recorded.iter().zip(&answer.fates) {
                    if *fate == Fate::ClaimLost {
                        self.lose(finished.claim);
                    }
                }
                self.wake(answer.wake_at);
                self.begin(answer.claims);
                self.stop(&answer.stops);
                self.record();
                self.ask_for_the_rest();
            }
            Message::Recorded(Err(error)) => {
                self.tolerate(error)?;
                // Idempotent by claim: what was committed after all is reported as such.
                let again = self.recording.take().unwrap_or_default();
                self.ended.splice(0..0, again);
                self.later(ASK_AGAIN);
            }
            Message::Started(claims, Ok(fates)) => {
                for (claim, fate) in claims.into_iter().zip(fates) {
                    if fate == Fate::ClaimLost {
                        self.lose(claim);
                    }
                }
            }
            Message::Started(claims, Err(error)) => {
                self.tolerate(error)?;
                self.unsaid.extend(claims);
                self.later(ASK_AGAIN);
            }
            Message::Claimed(Ok(claims)) => {
                self.claiming = 0;
                self.begin(claims);
                self.ask_for_the_rest();
            }
            Message::Claimed(Err(error)) => {
                self.claiming = 0;
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
            }
            Message::Promoted(Ok(next)) => {
                self.wake(next);
                self.claim();
            }
            Message::Promoted(Err(error)) => {
                self.tolerate(error)?;
                self.wake_at = Some(Instant::now() + ASK_AGAIN);
            }
            Message::Looked(Ok(stops)) => {
                self.stop(&stops);
                self.claim();
                self.later(LOOK_ANYWAY);
            }
            Message::Looked(Err(error)) => {
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
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
        let Some(running) = self.running.remove(&claim) else { return };
        if running.is_lost {
            return;
        }
        let outcome =
            ended.outcome.unwrap_or(Outcome::Canceled { reason: running.reason.unwrap_or(Reason::Canceled) });
        self.ended.push(Finished { claim, outcome, took: ended.took });
        self.record();
    }

    /// Tells the store what has ended, and asks for as much as there are free slots. One call at a time.
    fn record(&mut self) {
        if self.ended.is_empty() || self.recording.is_some() {
            return;
        }
        self.has_asked_short = self.claiming > 0;
        let batch = std::mem::take(&mut self.ended);
        self.recording = Some(batch.clone());
        let (store, ask) = (Arc::clone(&self.drive.store), self.ask());
        self.events.spawn(async move { Message::Recorded(store.finish(batch, Some(ask)).await) });
    }

    fn ask(&self) -> Ask {
        let limit = self.drive.slots.saturating_sub(self.running.len() + self.claiming);
        Ask { session: self.drive.session, run: self.drive.run, limit }
    }

    fn claim(&mut self) {
        let ask = self.ask();
        // While something is being recorded, that call asks for work already.
        if ask.limit == 0 || self.claiming > 0 || self.recording.is_some() {
            return;
        }
        self.claiming = ask.limit;
        let store = Arc::clone(&self.drive.store);
        self.events.spawn(async move { Message::Claimed(store.claim(ask).await) });
    }

    /// Slots that a claim kept for itself and did not fill would else wait for the next look.
    fn ask_for_the_rest(&mut self) {
        if self.has_asked_short && self.claiming == 0 && self.recording.is_none() {
            self.has_asked_short = false;
            self.claim();
        }
    }

    /// Starts what was claimed. The store hears of it in order, before it can hear of any end.
    fn begin(&mut self, claims: Vec<Claim>) {
        if claims.is_empty() {
            return;
        }
        let refs: Vec<ClaimRef> = claims.iter().map(|claim| claim.at).collect();
        self.say_started(refs);
        for claim in claims {
            let (at, stop) = (claim.at, StopSignal::new());
            if self.urge == Urge::Kill {
                stop.kill_now();
            }
            self.running.insert(at, Running { stop: stop.clone(), reason: None, is_lost: false });
            let setting = self.setting.clone();
            self.events.spawn(async move { Message::Ended(at, attempt::run(setting, claim, stop).await) });
        }
    }

    fn say_started(&mut self, claims: Vec<ClaimRef>) {
        let (store, said) = (Arc::clone(&self.drive.store), claims.clone());
        let mut saying: Pin<Box<dyn Future<Output = Message> + Send>> =
            Box::pin(async move { Message::Started(claims, store.start(said).await) });
        // The first poll puts it into the store's queue; a spawned future alone might come after the finish of
        // a very short task. Nobody waits for its commit.
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match saying.as_mut().poll(&mut context) {
            std::task::Poll::Ready(message) => self.events.spawn(std::future::ready(message)),
            std::task::Poll::Pending => self.events.spawn(saying),
        };
    }

    fn stop(&mut self, stops: &[Stop]) {
        for stop in stops {
            if let Some(running) = self.running.get_mut(&stop.claim) {
                running.reason = Some(stop.reason);
                running.stop.stop();
            }
        }
    }

    /// The claim is somebody else's now: kill what runs, drop the result, and see whether we are still alive to
    /// the store.
    fn lose(&mut self, claim: ClaimRef) {
        self.later(Duration::ZERO);
        tracing::warn!(run = %claim.run.short(), attempt = claim.attempt, "claim lost; what ran under it is killed");
        if let Some(running) = self.running.get_mut(&claim) {
            running.is_lost = true;
            running.stop.kill_now();
        }
    }

    fn on_urge(&mut self, urge: Urge) {
        if urge == Urge::Kill {
            for running in self.running.values() {
                running.stop.kill_now();
            }
        }
        if self.urge == Urge::None && urge > Urge::None {
            self.cancel();
        }
        self.urge = self.urge.max(urge);
    }

    fn cancel(&mut self) {
        let (store, run, by) = (Arc::clone(&self.drive.store), self.drive.run, self.drive.by.clone());
        self.events.spawn(async move { Message::Canceled(store.cancel(run, &by).await) });
    }

    fn promote(&mut self) {
        let store = Arc::clone(&self.drive.store);
        self.events.spawn(async move { Message::Promoted(store.promote().await) });
    }

    fn look(&mut self) {
        self.record();
        // What has ended meanwhile says so itself.
        let mut unsaid = std::mem::take(&mut self.unsaid);
        unsaid.retain(|claim| self.running.contains_key(claim));
        if !unsaid.is_empty() {
            self.say_started(unsaid);
        }
        if std::mem::take(&mut self.is_cancel_unsaid) {
            self.cancel();
        }
        let (store, session) = (Arc::clone(&self.drive.store), self.drive.session);
        self.events.spawn(async move { Message::Looked(store.stops(session).await) });
    }

    fn wake(&mut self, at: Option<Millis>) {
        self.wake_at = at.map(|at| Instant::now() + at.since(now()).min(LONGEST_WAIT));
    }

    fn later(&mut self, delay: Duration) {
        let at = Instant::now() + delay;
        self.look_at = Some(self.look_at.map_or(at, |look_at| look_at.min(at)));
    }

    /// A full or busy disk passes: nothing new is claimed meanwhile, and nothing that ended is forgotten. Whoever
    /// interrupts a second time does not want to wait for that; the run can be resumed when there is space.
    fn tolerate(&mut self, error: laneway_store::Error) -> Result<(), Error> {
        if !error.is_passing() || self.urge == Urge::Kill {
            return Err(error.into());
        }
        if !std::mem::replace(&mut self.told_of_trouble, true) {
            tracing::warn!("{error}; waiting for it to pass, nothing that was recorded is lost");
        }
        Ok(())
    }

    /// After an error that ends this worker: leaves no process behind.
    async fn kill_everything(&mut self) {
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
