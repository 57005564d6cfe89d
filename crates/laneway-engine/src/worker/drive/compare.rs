//! What the store knows of this session, compared with what the loop knows. The answer to a claim may be lost on its way:
//! then tasks are held that nobody runs, and nothing else would ever find out. They go back; and what runs without being
//! held is killed.

use std::collections::HashSet;
use std::sync::Arc;

use laneway_store::ClaimRef;
use laneway_store::model::Renewed;
use laneway_torture::{Bug, has};
use tokio::time::Instant;

use super::super::control::Urge;
use super::{Aim, Loop, Message};

impl Loop {
    /// Asks for it, where no heartbeat does, or now because an answer was lost.
    pub(super) fn renew(&mut self) {
        let (store, session, tally) = (Arc::clone(&self.store), self.session, self.counts.tally());
        let asked = Instant::now();
        self.events.spawn(async move { Message::Renewed(asked, store.renew(session, tally).await) });
    }

    /// `asked` is the moment before the question: what began later may not be in the answer.
    pub(super) fn compare(&mut self, asked: Instant, renewed: Renewed) {
        self.stop(&renewed.stops);
        // What a node that leaves has cut short is still held, until the session is retired.
        if matches!(self.aim, Aim::Any { .. }) && self.urge > Urge::None {
            return;
        }
        let held: HashSet<ClaimRef> = renewed.held.into_iter().collect();
        let is_taken = |(claim, running): (&ClaimRef, &super::Running)| {
            let is_taken = running.since < asked && !running.is_lost && !held.contains(claim);
            is_taken.then_some(*claim)
        };
        let taken: Vec<ClaimRef> = self.running.iter().filter_map(is_taken).collect();
        taken.into_iter().for_each(|claim| self.lose(claim));
        if has(Bug::ClaimForgotten) {
            return;
        }
        self.strangers = held.into_iter().filter(|claim| !self.knows(claim)).collect();
        self.return_strangers();
    }

    /// What is still unknown when no answer that could bring it is under way will never be known. If it has ended in the
    /// meantime, giving it back changes nothing.
    pub(super) fn return_strangers(&mut self) {
        if self.strangers.is_empty() || self.lineup.is_asking() {
            return;
        }
        let strangers = std::mem::take(&mut self.strangers);
        let unknown: Vec<ClaimRef> = strangers.into_iter().filter(|claim| !self.knows(claim)).collect();
        if !unknown.is_empty() {
            tracing::debug!(count = unknown.len(), "claims whose answer was lost go back");
        }
        self.give_back(unknown);
    }

    fn knows(&self, claim: &ClaimRef) -> bool {
        let mut unrecorded = self.ended.iter().chain(self.recording.iter().flatten());
        self.running.contains_key(claim)
            || self.lineup.holds(claim)
            || self.levels.holds(claim)
            || self.taking.contains_key(claim)
            || self.untaken.iter().any(|first| first.at == *claim)
            || self.unreturned.contains(claim)
            || unrecorded.any(|finished| finished.claim == *claim)
    }
}
