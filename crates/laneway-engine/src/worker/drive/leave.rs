//! What is different for a node that takes whatever comes: when it ends, how it stops, and that it keeps nothing from
//! others that it does not use.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::node_event::{LeaveReason, Leaving};
use laneway_store::ClaimRef;
use laneway_store::model::{Claim, Whom};
use tokio::time::Instant;

use super::super::Error;
use super::super::begin::reap;
use super::super::control::Urge;
use super::super::heartbeat::Pulse;
use super::{ASK_AGAIN, Aim, Cut, DEAD_NODE_CHECK_INTERVAL, End, LOOK_EVERY, Loop, Message};

/// How long a claim may be held for a slot that is not free, while other nodes may have one.
pub(super) const HOLD: Duration = Duration::from_millis(100);

/// For an answer to come.
const SOON: Duration = Duration::from_millis(100);

/// After a claim that found nothing, how soon a hint makes for another: hints come in swarms.
const CLAIM_AGAIN: Duration = Duration::from_millis(2);

impl Loop {
    /// Nothing runs, nothing is under way: whether that is the end.
    pub(super) async fn end(&mut self) -> Result<Option<End>, Error> {
        let (run, is_over_when_paused) = match &self.aim {
            Aim::Any { .. } => {
                let is_over = self.urge > Urge::None;
                return Ok(is_over.then(|| End::Left(std::mem::take(&mut self.cut))));
            }
            Aim::Run { run, is_over_when_paused, .. } => (*run, *is_over_when_paused),
        };
        match self.store.status(run).await {
            Ok(status) if status.is_final() => Ok(Some(End::Run(status))),
            Ok(status) if is_over_when_paused => {
                let is_paused = !self.store.run_state(run).await?.paused.is_empty();
                Ok(is_paused.then_some(End::Run(status)))
            }
            Ok(_) => Ok(None),
            Err(error) => {
                self.tolerate(error)?;
                self.later(ASK_AGAIN);
                Ok(None)
            }
        }
    }

    /// Somebody changed the store. A node that takes whatever comes asks for work at once; what else there may be,
    /// a request to stop something, has time.
    pub(super) fn on_change(&mut self) {
        self.later(LOOK_EVERY);
        if matches!(self.aim, Aim::Any { .. }) && self.lineup.has_place(self.busy()) {
            let now = Instant::now();
            match self.asked_at {
                Some(at) if now < at + CLAIM_AGAIN => self.later(CLAIM_AGAIN),
                Some(_) | None => {
                    self.asked_at = Some(now);
                    self.claim();
                }
            }
        }
    }

    /// Where there was work there may be more.
    pub(super) fn note_work(&mut self, claims: &[Claim]) {
        let (contentions, gate_waits) = (self.store.contentions(), self.store.gate_waits());
        self.counts.add(|tally| {
            tally.claims += claims.len() as u64;
            (tally.contentions, tally.gate_waits) = (contentions, gate_waits);
        });
        let now = Instant::now();
        self.came.extend(claims.iter().map(|claim| (claim.at, now)));
        if let (Some(poll), false) = (&mut self.poll, claims.is_empty()) {
            poll.busy();
        }
    }

    /// The node is to stop: what is held goes back now, what runs has its time, and others are told.
    pub(super) fn leave(&mut self, grace: Duration, why: Option<Leaving>) {
        let why = why.unwrap_or_else(|| Leaving::because(LeaveReason::Done));
        let (store, session) = (Arc::clone(&self.store), self.session);
        self.is_telling = true;
        self.say(async move { Message::Drained(store.drain(Whom::Session(session), why).await) });
        let held = self.lineup.let_go_of_all();
        self.give_back(held);
        self.stop_at = Some(Instant::now() + grace);
    }

    /// The time is over.
    pub(super) fn cut_short(&mut self) {
        self.stop_at = None;
        self.levels.forget_all();
        for (claim, running) in self.running.iter_mut().filter(|(_, running)| !running.is_lost) {
            // Its result would be that of a step that was cut short: another attempt makes a better one.
            running.is_lost = true;
            running.stop.stop();
            let ClaimRef { run, attempt, .. } = *claim;
            self.cut.push(Cut { run, step: running.step.clone(), attempt });
        }
    }

    pub(super) fn sweep(&mut self) {
        self.sweep_at = None;
        if !self.pulse.as_ref().is_some_and(Pulse::brings_claims) {
            self.renew();
        }
        let store = Arc::clone(&self.store);
        self.events.spawn(async move { Message::Swept(reap(store.as_ref()).await) });
    }

    /// The next look for nodes that died: when a lease ends, so that nobody waits for longer than that.
    pub(super) fn sweep_again(&mut self, next_in: Option<Duration>) {
        let is_due = next_in == Some(Duration::ZERO);
        // Whoever returns what others held must have renewed since their leases ended. Once is enough: a lease that stands
        // still then is one that nobody may return yet.
        let is_first = is_due && !std::mem::replace(&mut self.is_reap_due, is_due);
        self.is_reap_due = is_due;
        let pause = match next_in {
            Some(_) if is_first => {
                self.renew();
                SOON
            }
            Some(left) if !is_due => DEAD_NODE_CHECK_INTERVAL.min(left + SOON),
            Some(_) | None => DEAD_NODE_CHECK_INTERVAL,
        };
        self.sweep_at = Some(Instant::now() + pause);
    }

    /// Claims that wait for a slot wait not for long: another node may have one.
    pub(super) fn keep_no_longer(&mut self) {
        let is_shared = matches!(self.aim, Aim::Any { .. });
        self.return_at = (is_shared && self.lineup.is_holding()).then(|| Instant::now() + HOLD);
    }

    pub(super) fn return_held(&mut self) {
        self.return_at = None;
        let held = self.lineup.let_go_of_held();
        self.give_back(held);
    }
}
