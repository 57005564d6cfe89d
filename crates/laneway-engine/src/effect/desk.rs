//! The desk of one attempt: who of it is at which effect. Asks the store, waits for who is at it already, and notices who is gone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use laneway_core::effect::{EffectId, EffectStatus, MAX_STDOUT, OnUnknown};
use laneway_core::output;
use laneway_core::time::Millis;
use laneway_store::effect::{Begun, EffectEnd, EffectResult, NewEffect};
use laneway_store::model::{Claim, RunHead};
use laneway_store::{ClaimRef, Fate, Store};
use laneway_torture::{Point, pass};
use tokio::sync::{RwLock, watch};

use crate::process::StopSignal;
use crate::secret::Masks;

/// How long to wait before a store that is busy, full or away is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// How long the end of an attempt waits for what its effects are just telling.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Everything that the effects of one attempt need.
#[derive(Debug)]
pub(crate) struct Desk {
    store: Arc<dyn Store>,
    claim: ClaimRef,
    head: Arc<RunHead>,
    masks: Masks,
    /// What its attempt is asked to end by.
    stop: StopSignal,
    known: Mutex<HashMap<EffectId, Known>>,
    /// Held by whoever commits: the attempt does not end in the middle of that.
    telling: RwLock<()>,
}

/// What of an effect nobody outside of this attempt can know.
#[derive(Debug)]
enum Known {
    /// Somebody asks for it, or is at it. Dropping the sender wakes those who wait.
    Busy { execution: String, _over: watch::Sender<()>, over: watch::Receiver<()> },
    /// Whoever was at it is gone, and has not said what became of it.
    Gone { execution: String },
}

/// The right to run an effect, once. Dropped without a word about its end, nobody knows whether it happened.
#[derive(Debug)]
pub(crate) struct Hold {
    desk: Arc<Desk>,
    id: EffectId,
    execution: String,
    is_over: bool,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Answer {
    Run(Hold, Granted),
    Recorded(EffectResult),
}

/// What the one who runs an effect hands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Granted {
    /// Idempotency key: the same for every attempt.
    pub(crate) token: String,
    /// Fencing token of a step with a `lock`.
    pub(crate) fence: Option<u64>,
}

/// How an effect ended, in the words of whoever ran it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: EffectStatus,
    pub(crate) exit_code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) output: Vec<u8>,
    pub(crate) took: Option<Duration>,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "the effect {effect} was started by attempt {attempt} at {started_at}, and nobody knows whether it happened: the process \
         that ran it, or its node, died before it could say. Look whether it did, then say so: `laneway effects {run} {step} {given} \
         --done` if it happened, `--again` instead if it did not; and `laneway retry {run}` once the run has ended. An effect that \
         may happen twice can say `--on-unknown retry`"
    )]
    Unknown { effect: EffectId, run: String, step: String, given: String, attempt: u32, started_at: Millis },
    #[error("the effect {effect} has happened, and does not run again; but {why}")]
    Lacking { effect: EffectId, why: String },
    #[error("this attempt is to be stopped: no effect begins in it any more")]
    Stopping,
    #[error(
        "this attempt has lost its task: somebody else may have it, and nothing that it does counts any more"
    )]
    ClaimLost,
    #[error("the effect {effect} is at somebody else's of this attempt, who is not known here")]
    Taken { effect: EffectId },
    #[error("{0}")]
    Store(String),
}

impl Desk {
    pub(crate) fn new(store: Arc<dyn Store>, claim: &Claim, masks: Masks, stop: StopSignal) -> Arc<Self> {
        let (known, telling) = (Mutex::default(), RwLock::new(()));
        let (head, claim) = (Arc::clone(&claim.head), claim.at);
        Arc::new(Self { store, claim, head, masks, stop, known, telling })
    }

    /// The name of the task.
    fn step(&self) -> String {
        self.head.plan.task_name(self.claim.position)
    }

    /// Waits for whoever is at it, then asks the store. Whoever is told to run it holds it until it says how that ended.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        id: EffectId,
        on_unknown: OnUnknown,
    ) -> Result<Answer, Refused> {
        let (mut hold, gone) = loop {
            let mut over = match self.reserve(&id) {
                Ok(reserved) => break reserved,
                Err(over) => over,
            };
            // An error is the end of the one who was at it.
            while over.changed().await.is_ok() {}
        };
        pass(Point::EffectAsked);
        // The store may not know of it: in a level that has failed its holder stops the others.
        if self.stop.is_asked() {
            hold.is_over = true;
            self.set(&id, gone.map(|execution| Known::Gone { execution }));
            return Err(Refused::Stopping);
        }
        let mut new =
            NewEffect { id: id.clone(), execution: hold.execution.clone(), on_unknown, gone: gone.clone() };
        let begun = loop {
            match self.store.begin_effect(self.claim, new.clone()).await {
                Err(error) if error.is_passing() => tokio::time::sleep(ASK_AGAIN).await,
                Err(error) => break Err(Refused::Store(error.to_string())),
                // An attempt that is tried again, as in levels, has a new desk each time, and one at a time: who was at the last one
                // is gone with it.
                Ok(Begun::Taken { execution }) if new.gone.as_ref() != Some(&execution) => {
                    new.gone = Some(execution);
                }
                Ok(begun) => break Ok(begun),
            }
        };
        // After an error it may have been recorded: then the hold that is dropped here is gone.
        let begun = match begun? {
            Begun::Run { token, fence } => {
                pass(Point::EffectBegun);
                return Ok(Answer::Run(hold, Granted { token, fence }));
            }
            begun => begun,
        };
        // It holds nothing; who was gone before is gone still.
        hold.is_over = true;
        self.set(&id, new.gone.map(|execution| Known::Gone { execution }));
        match begun {
            Begun::Recorded(EffectResult { lacks: Some(why), .. }) => {
                Err(Refused::Lacking { effect: id, why })
            }
            Begun::Recorded(result) => Ok(Answer::Recorded(result)),
            Begun::Run { .. } | Begun::Taken { .. } => Err(Refused::Taken { effect: id }),
            Begun::Unknown { attempt, started_at } => {
                let key =
                    if id.key.is_empty() { String::new() } else { format!(" --key {}", quoted(&id.key)) };
                Err(Refused::Unknown {
                    run: self.claim.run.short(),
                    step: quoted(&self.step()),
                    given: format!("{}{key}", id.name),
                    effect: id,
                    attempt,
                    started_at,
                })
            }
            Begun::Stopping => Err(Refused::Stopping),
            Begun::ClaimLost => Err(Refused::ClaimLost),
        }
    }

    /// The right to run it, and who was gone before; or somebody to wait for.
    fn reserve(self: &Arc<Self>, id: &EffectId) -> Result<(Hold, Option<String>), watch::Receiver<()>> {
        let mut known = self.known();
        let gone = match known.get(id) {
            Some(Known::Busy { over, .. }) => return Err(over.clone()),
            Some(Known::Gone { execution }) => Some(execution.clone()),
            None => None,
        };
        let execution = unique();
        let (sender, over) = watch::channel(());
        known.insert(id.clone(), Known::Busy { execution: execution.clone(), _over: sender, over });
        let hold = Hold { desk: Arc::clone(self), id: id.clone(), execution, is_over: false };
        Ok((hold, gone))
    }

    /// What is recorded is what the step gets: masked, the same now and in every later attempt.
    async fn commit(&self, id: &EffectId, execution: &str, ended: Ended) -> Result<EffectResult, Refused> {
        let result = self.checked(&ended);
        let end = EffectEnd {
            id: id.clone(),
            execution: execution.to_owned(),
            status: ended.status,
            result: result.clone(),
            took_ms: ended.took.map(|took| u64::try_from(took.as_millis()).unwrap_or(u64::MAX)),
        };
        let _telling = self.telling.read().await;
        pass(Point::EffectTold);
        let fate = loop {
            match self.store.commit_effect(self.claim, end.clone()).await {
                Err(error) if error.is_passing() => tokio::time::sleep(ASK_AGAIN).await,
                Err(error) => return Err(Refused::Store(error.to_string())),
                Ok(fate) => break fate,
            }
        };
        pass(Point::EffectCommitted);
        match (fate, result.lacks) {
            (Fate::ClaimLost, _) => Err(Refused::ClaimLost),
            (Fate::Recorded | Fate::Repeated, Some(why)) if ended.status == EffectStatus::Done => {
                Err(Refused::Lacking { effect: id.clone(), why })
            }
            (Fate::Recorded | Fate::Repeated, _) => Ok(EffectResult { lacks: None, ..result }),
        }
    }

    fn checked(&self, ended: &Ended) -> EffectResult {
        let lacking = |why: String| EffectResult {
            exit_code: ended.exit_code,
            lacks: Some(why),
            ..EffectResult::default()
        };
        if ended.stdout.len() > MAX_STDOUT {
            let most = MAX_STDOUT / 1024;
            return lacking(format!(
                "it printed more than {most} KiB, which is not recorded; let it write that to a file, and print where it is"
            ));
        }
        if let Err(error) = output::parse(&ended.output) {
            return lacking(format!("what it wrote to $LANEWAY_OUTPUT is not recorded: {error}"));
        }
        let output = String::from_utf8_lossy(&ended.output);
        EffectResult {
            exit_code: ended.exit_code,
            stdout: self.masks.bytes(&ended.stdout),
            output: self.masks.text(&output),
            lacks: None,
        }
    }

    /// Whoever runs it says so on another connection than the one on which it was let.
    pub(crate) fn find(self: &Arc<Self>, id: &EffectId, execution: &str) -> Option<Hold> {
        match self.known().get(id) {
            Some(Known::Busy { execution: at_it, .. }) if at_it == execution => Some(Hold {
                desk: Arc::clone(self),
                id: id.clone(),
                execution: execution.to_owned(),
                is_over: false,
            }),
            Some(Known::Busy { .. } | Known::Gone { .. }) | None => None,
        }
    }

    /// The attempt is about to end: what is just being told is waited for.
    pub(crate) async fn close(&self) {
        let _ = tokio::time::timeout(LAST_WORDS, self.telling.write()).await;
    }

    fn set(&self, id: &EffectId, to: Option<Known>) {
        let mut known = self.known();
        match to {
            Some(to) => known.insert(id.clone(), to),
            None => known.remove(id),
        };
    }

    fn known(&self) -> MutexGuard<'_, HashMap<EffectId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hold {
    pub(crate) fn execution(&self) -> &str {
        &self.execution
    }

    /// Says how it ended, and gives what the step is to see of it.
    pub(crate) async fn commit(mut self, ended: Ended) -> Result<EffectResult, Refused> {
        let committed = self.desk.commit(&self.id, &self.execution, ended).await;
        // Of one whose end could not be recorded nobody knows.
        if matches!(committed, Ok(_) | Err(Refused::Lacking { .. })) {
            self.is_over = true;
            self.desk.set(&self.id, None);
        }
        committed
    }

    /// Is held by nobody from here on, but is not over: whoever runs it will say so by its name.
    pub(crate) fn lend(mut self) -> String {
        self.is_over = true;
        self.execution.clone()
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // Somebody else may have said how it ended, by its name, and another one may be at it.
        let mut known = self.desk.known();
        if let Some(Known::Busy { execution, .. }) = known.get(&self.id)
            && *execution == self.execution
        {
            let execution = self.execution.clone();
            known.insert(self.id.clone(), Known::Gone { execution });
        }
    }
}

/// As a shell reads it.
fn quoted(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./:=@%+,".contains(sign);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A word that nobody else has, and that nobody guesses.
pub(super) fn unique() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
