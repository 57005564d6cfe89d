//! What the loop says to the store and starts at its edge: every verb of a worker, and when it is said.
//! `drive.rs` decides on what comes back.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use laneway_store::ClaimRef;
use laneway_store::model::{Ask, CancelMode};
use laneway_torture::{Point, echoes, pass};
use tokio::time::Instant;

use super::super::attempt;
use super::super::control::Urge;
use super::super::lineup::{Busy, Lineup, Wanted};
use super::{Aim, Loop, Message, Promotion, Running, SAY_AFTER};
use crate::process::StopSignal;

impl Loop {
    /// Tells the store what has ended, and asks for as much as there are free slots. One call at a time.
    pub(super) fn record(&mut self) {
        self.record_at = None;
        if self.ended.is_empty() || self.recording.is_some() {
            return;
        }
        let batch = std::mem::take(&mut self.ended);
        self.unsaid.retain(|(_, claim)| self.running.contains_key(claim));
        self.recording = Some(batch.clone());
        let (store, (wanted, ask)) = (Arc::clone(&self.store), self.ask());
        if let Some(late) = echoes() {
            let (store, batch) = (Arc::clone(&store), batch.clone());
            // As a message that the network delivers twice, late.
            tokio::spawn(async move {
                tokio::time::sleep(late).await;
                store.finish(batch, None).await
            });
        }
        self.say(async move { Message::Recorded(wanted, store.finish(batch, Some(ask)).await) });
    }

    pub(super) fn ask(&mut self) -> (Wanted, Ask) {
        let (session, run) = match &self.aim {
            Aim::Run { run, .. } => (self.session, Some(*run)),
            Aim::Any { .. } => (self.session, None),
        };
        // A node that is to stop takes nothing new.
        let wanted = if self.is_leaving() {
            Wanted::default()
        } else {
            let long = self.running.values().filter(|running| Lineup::is_long(running.since.elapsed()));
            let long = long.count();
            self.lineup.ask(Busy { slots: self.busy() + self.levels.wanting(), long })
        };
        if wanted != Wanted::default() {
            self.counts.add(|tally| tally.asks += 1);
        }
        (wanted, Ask { session, run, limit: wanted.now, ahead: wanted.ahead })
    }

    pub(super) fn claim(&mut self) {
        // While something is being recorded, that call asks for work already.
        if self.recording.is_some() || self.lineup.is_asking() {
            return;
        }
        let (wanted, ask) = self.ask();
        if wanted == Wanted::default() {
            return;
        }
        let store = Arc::clone(&self.store);
        self.events.spawn(async move { Message::Claimed(wanted, store.claim(ask).await) });
    }

    pub(super) fn ask_for_the_rest(&mut self) {
        if self.lineup.is_short() {
            self.claim();
        }
    }

    /// Starts what is held, as far as there are places. After a failure that is not recorded yet nobody knows whether
    /// its run goes on, and nothing that is held starts.
    pub(super) fn begin(&mut self) {
        if self.is_failure_unrecorded() {
            return;
        }
        self.begin_levels();
        let mut late = Vec::new();
        while let Some(claim) = self.lineup.next(self.busy() + self.levels.wanting()) {
            pass(Point::Claimed);
            let task = (claim.at.run, claim.at.position);
            if !self.late_claims.may_start(task, claim.start_by, std::time::Instant::now()) {
                self.lineup.left(claim.at);
                late.push(claim.at);
                continue;
            }
            if claim.head.plan.is_leveled() {
                self.take_level(claim);
                continue;
            }
            let (at, stop) = (claim.at, self.fresh_stop());
            self.unsaid.push_back((Instant::now() + SAY_AFTER, at));
            let step = claim.head.plan.task_name(at.position);
            let (since, own) = (Instant::now(), stop.clone());
            let (came, freed) = (self.came.remove(&at), self.freed.pop_front());
            self.counts.add(|tally| {
                came.into_iter().for_each(|came| tally.claim_to_start.add(since.duration_since(came)));
                freed.into_iter().for_each(|freed| tally.finish_to_start.add(since.duration_since(freed)));
            });
            self.running
                .insert(at, Running { step, since, stop: own, reason: None, is_lost: false, claim: None });
            let setting = self.setting.clone();
            self.events.spawn(async move { Message::Ended(at, attempt::run(setting, claim, stop, 0).await) });
        }
        self.give_back(late);
        pass(Point::Begun);
        self.keep_no_longer();
    }

    /// Whether this is a node that takes whatever comes, and is to stop.
    pub(super) fn is_leaving(&self) -> bool {
        matches!(self.aim, Aim::Any { .. }) && self.urge > Urge::None
    }

    /// How many slots are taken, or about to be.
    pub(super) fn busy(&self) -> usize {
        self.running.len() + self.taking.len()
    }

    pub(super) fn fresh_stop(&self) -> StopSignal {
        let stop = StopSignal::new();
        if self.urge == Urge::Kill {
            stop.kill_now();
        }
        stop
    }

    /// When the next start is to be said. Not before what has ended: the history would tell of more at once than
    /// there ever were.
    pub(super) fn say_at(&self) -> Option<Instant> {
        if self.ended.is_empty() { self.unsaid.front().map(|(at, _)| *at) } else { None }
    }

    /// Says the starts that are due within `ahead`: together they cost one commit.
    pub(super) fn say_started(&mut self, ahead: Duration) {
        let due = Instant::now() + ahead;
        let count = self.unsaid.partition_point(|(at, _)| *at <= due);
        let claims: Vec<ClaimRef> = self.unsaid.drain(..count).map(|(_, claim)| claim).collect();
        if claims.is_empty() {
            return;
        }
        let (store, said) = (Arc::clone(&self.store), claims.clone());
        self.say(async move { Message::Started(claims, store.start(said).await) });
    }

    pub(super) fn give_back(&mut self, claims: Vec<ClaimRef>) {
        if claims.is_empty() {
            return;
        }
        self.came.retain(|came, _| !claims.contains(came));
        let (store, given) = (Arc::clone(&self.store), claims.clone());
        self.say(async move { Message::GivenBack(claims, store.give_back(given).await) });
    }

    /// Sends a verb now. A spawned future alone might come to the store after one that was spawned later, and what
    /// a worker says of its tasks is a story with an order.
    pub(super) fn say(&mut self, verb: impl Future<Output = Message> + Send + 'static) {
        let mut verb: Pin<Box<dyn Future<Output = Message> + Send>> = Box::pin(verb);
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match verb.as_mut().poll(&mut context) {
            std::task::Poll::Ready(message) => self.events.spawn(std::future::ready(message)),
            std::task::Poll::Pending => self.events.spawn(verb),
        };
    }

    pub(super) fn cancel(&mut self) {
        if self.ended.is_empty() {
            self.say_started(SAY_AFTER);
        }
        let Aim::Run { run, by, .. } = &self.aim else { return };
        let (store, run, by) = (Arc::clone(&self.store), *run, by.clone());
        let mode = if self.urge == Urge::Kill { CancelMode::Now } else { CancelMode::CleanUp };
        self.say(async move { Message::Canceled(store.cancel(run, &by, mode).await) });
    }

    pub(super) fn promote(&mut self, why: Promotion) {
        let store = Arc::clone(&self.store);
        self.events.spawn(async move { Message::Promoted(why, store.promote().await) });
    }

    pub(super) fn look(&mut self) {
        self.record();
        for first in std::mem::take(&mut self.untaken) {
            self.take_level(first);
        }
        let unreturned = std::mem::take(&mut self.unreturned);
        self.give_back(unreturned);
        if std::mem::take(&mut self.is_cancel_unsaid) {
            self.cancel();
        }
        if std::mem::take(&mut self.is_unsure) {
            self.renew();
        }
        // Workers sweep. A run in the foreground may be all that is there: it must not wait for what a process that
        // died has left undone.
        if matches!(self.aim, Aim::Run { .. }) && !self.store.is_embedded() {
            self.promote(Promotion::Swept);
        }
        let (store, session) = (Arc::clone(&self.store), self.session);
        // What others did may have made a moment matter of which nobody here was told.
        self.events.spawn(async move {
            let orders = store.orders(session).await;
            Message::Looked(match orders {
                Ok(orders) => store.wake_at().await.map(|wake_at| (orders, wake_at)),
                Err(error) => Err(error),
            })
        });
    }
}
