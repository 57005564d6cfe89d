//! Drives one local run to its end: the loop of an ephemeral node. It owns what runs and what is yet to be
//! recorded; every change comes to it as a [`Message`].

mod say;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::model::{Answer, Claim, Finished, Outcome, Stop};
use laneway_store::{ClaimRef, Fate, Store};
use laneway_torture::{Point, pass};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Error;
use super::attempt::{Ended, Setting};
use super::control::{Control, Urge};
use super::lineup::{Lineup, Wanted};
use super::prepare::Places;
use crate::function::Functions;
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
    /// What steps with `function` call.
    pub functions: Functions,
    /// Who cancels, when `Control` says so.
    pub by: String,
}

impl Drive {
    /// Runs what can be run until the run has ended. An error leaves nothing running; the run itself stays as
    /// the store has it and can be resumed.
    pub async fn until_done(self, control: Control) -> Result<RunStatus, Error> {
        pass(Point::ScratchBefore);
        let scratch = self.make_scratch()?;
        pass(Point::ScratchAfter);
        let store_dir =
            scratch.parent().and_then(|dir| dir.parent()).map_or_else(PathBuf::new, PathBuf::from);
        let setting = Setting {
            store: Arc::clone(&self.store),
            places: Places { store_dir, scratch: scratch.clone() },
            kill_grace: self.kill_grace,
            warden: self.warden.clone(),
            functions: self.functions.clone(),
            told_of_logs: Arc::default(),
        };
        let mut work = Loop::new(self, setting);
        let result = work.run(control).await;
        if result.is_err() {
            work.kill_everything().await;
        }
        pass(Point::RunOver);
        if let Err(error) = std::fs::remove_dir_all(&scratch) {
            tracing::debug!(%error, "scratch files could not be removed");
        }
        result
    }

    /// A directory of this session for scripts and outputs. Absolute, because steps run elsewhere.
    fn make_scratch(&self) -> Result<PathBuf, Error> {
        let files = |source| Error::Files { path: self.store.dir().to_owned(), source };
        let store_dir = std::fs::canonicalize(self.store.dir()).map_err(files)?;
        let scratch = laneway_store::scratch_dir(&store_dir, self.session);
        std::fs::create_dir_all(&scratch).map_err(files)?;
        Ok(scratch)
    }
}

/// Everything that can happen to the loop from its own futures.
enum Message {
    Ended(ClaimRef, Ended),
    /// What had ended is recorded, or not.
    Recorded(Wanted, Result<Answer, laneway_store::Error>),
    Started(Vec<ClaimRef>, Result<Vec<Fate>, laneway_store::Error>),
    Claimed(Wanted, Result<Vec<Claim>, laneway_store::Error>),
    GivenBack(Vec<ClaimRef>, Result<Vec<Fate>, laneway_store::Error>),
    Promoted(Result<Option<Millis>, laneway_store::Error>),
    Looked(Result<Vec<Stop>, laneway_store::Error>),
    Canceled(Result<RunStatus, laneway_store::Error>),
}

struct Loop {
    drive: Drive,
    setting: Setting,
    running: HashMap<ClaimRef, Running>,
    lineup: Lineup,
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
    /// When to look at the store because something changed.
    look_at: Option<Instant>,
    /// Ticks when something changed.
    changes: watch::Receiver<u64>,
    /// After how long the store is looked at without any hint: a hint may be lost, and correctness must not need one.
    patience: Duration,
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
    fn new(drive: Drive, setting: Setting) -> Self {
        Self {
            setting,
            running: HashMap::new(),
            lineup: Lineup::new(drive.slots),
            ended: Vec::new(),
            unsaid: VecDeque::new(),
            unreturned: Vec::new(),
            recording: None,
            events: JoinSet::new(),
            record_at: None,
            wake_at: None,
            look_at: None,
            changes: drive.store.changes(),
            patience: drive.store.max_poll_interval(),
            is_cancel_unsaid: false,
            urge: Urge::None,
            told_of_trouble: false,
            drive,
        }
    }

    async fn run(&mut self, control: Control) -> Result<RunStatus, Error> {
        let mut urges = control.subscribe();
        self.promote();
        self.claim();
        self.later(self.patience);
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
            let say_at = self.say_at();
            tokio::select! {
                Some(message) = self.events.join_next() => match message {
                    Ok(message) => self.on_message(message)?,
                    Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                    Err(_) => {}
                },
                Ok(()) = self.changes.changed() => {
                    self.changes.mark_unchanged();
                    self.later(LOOK_EVERY);
                }
                Ok(()) = urges.changed() => {
                    let urge = *urges.borrow_and_update();
                    self.on_urge(urge);
                }
                () = until(self.record_at) => self.record(),
                () = until(say_at) => self.say_started(SAY_AFTER / 2),
                () = until(self.wake_at) => { self.wake_at = None; self.promote(); }
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
    }

    fn on_message(&mut self, message: Message) -> Result<(), Error> {
        match message {
            Message::Ended(claim, ended) => self.on_ended(claim, ended),
            Message::Recorded(wanted, Ok(answer)) => {
                pass(Point::Recorded);
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
                if answer.is_closing {
                    let held = self.lineup.let_go_of_closed();
                    self.give_back(held);
                }
                self.lineup.answered(wanted, answer.claims);
                self.stop(&answer.stops);
                self.begin();
                self.record();
                self.ask_for_the_rest();
            }
            Message::Recorded(wanted, Err(error)) => {
                self.lineup.answered(wanted, Vec::new());
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
                let again = Instant::now() + ASK_AGAIN;
                self.unsaid.extend(claims.into_iter().map(|claim| (again, claim)));
            }
            Message::Claimed(wanted, Ok(claims)) => {
                self.lineup.answered(wanted, claims);
                self.begin();
                self.ask_for_the_rest();
            }
            Message::Claimed(wanted, Err(error)) => {
                self.lineup.answered(wanted, Vec::new());
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
            }
            // A claim that is lost needs no giving back.
            Message::GivenBack(_, Ok(_)) => self.look(),
            Message::GivenBack(claims, Err(error)) => {
                self.unreturned.extend(claims);
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
            }
            Message::Promoted(Ok(next)) => {
                pass(Point::Promoted);
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
                self.later(self.patience);
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
        pass(Point::AttemptEnded);
        let Some(running) = self.running.remove(&claim) else { return };
        if !running.is_lost {
            let reason = running.reason.unwrap_or(Reason::Canceled);
            let outcome = ended.outcome.unwrap_or(Outcome::Canceled { reason });
            self.lineup.ended(ended.took);
            self.ended.push(Finished { claim, outcome, took: ended.took });
        }
        // The next one starts before anything is recorded: its claim is on disk.
        self.begin();
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
            if let Some(running) = self.running.get_mut(&stop.claim) {
                pass(Point::StopAsked);
                running.reason = Some(stop.reason);
                running.stop.stop();
            } else if self.lineup.let_go(stop.claim) {
                self.give_back(vec![stop.claim]);
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
