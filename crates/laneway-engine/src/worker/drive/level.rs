//! What is different for runs that go level by level: whoever has claimed the first step of a level takes all of it, tries
//! again by itself, and says the ends of all of it at once.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_store::ClaimRef;
use laneway_store::model::{Claim, Finished, Outcome};
use tokio::time::Instant;

use super::super::attempt::{self, Ended};
use super::super::levels::{End, Follows};
use super::{ASK_AGAIN, Loop, Message, Running};

impl Loop {
    /// Takes the rest of a level, of which the first step is claimed. A node that is to stop begins none.
    pub(super) fn take_level(&mut self, first: Claim) {
        if self.is_leaving() {
            self.lineup.left(first.at);
            self.give_back(vec![first.at]);
            return;
        }
        let (store, at) = (Arc::clone(&self.store), first.at);
        self.taking.insert(at, first);
        self.say(async move { Message::LevelTaken(at, store.claim_level(at).await) });
    }

    pub(super) fn on_level_taken(
        &mut self,
        first: ClaimRef,
        taken: Result<Vec<Claim>, laneway_store::Error>,
    ) -> Result<(), super::Error> {
        let Some(claim) = self.taking.remove(&first) else { return Ok(()) };
        match taken {
            // The time to leave is over: what is held goes back with the session.
            Ok(_) if self.is_leaving() && self.stop_at.is_none() => self.lineup.left(first),
            Ok(claims) => {
                self.came.remove(&first);
                // A level waits for its containers at their pools, all of it.
                self.lineup.left(first);
                // Nothing: it was lost, or went back because the run is paused.
                self.levels.take(claims);
                self.begin();
                self.ask_for_the_rest();
            }
            Err(error) => {
                self.tolerate(error)?;
                self.untaken.push(claim);
                self.later(ASK_AGAIN);
            }
        }
        Ok(())
    }

    /// Begins what may begin of the levels that are held, as far as there are slots.
    pub(super) fn begin_levels(&mut self) {
        while self.lineup.has_slot(self.busy())
            && let Some((claim, log)) = self.levels.next()
        {
            let (at, since) = (claim.at, Instant::now());
            let step = claim.head.plan.step(at.position).name.clone();
            let stop = self.fresh_stop();
            let running = Running {
                step,
                since,
                stop: stop.clone(),
                reason: None,
                is_lost: false,
                claim: Some(claim.clone()),
            };
            self.running.insert(at, running);
            let setting = self.setting.clone();
            self.events
                .spawn(async move { Message::Ended(at, attempt::run(setting, claim, stop, log).await) });
        }
    }

    /// A step of a level that is held has ended. Nobody is told before all of it has.
    pub(super) fn on_level_ended(&mut self, at: ClaimRef, running: Running, ended: Ended, is_lost: bool) {
        if is_lost {
            self.levels.forget(at.run);
            self.stop_level(at.run, None);
            return;
        }
        let reason = running.reason.unwrap_or(Reason::Canceled);
        let outcome = ended.outcome.unwrap_or(Outcome::Canceled { reason });
        let why = match &outcome {
            Outcome::Failed { detail, .. } => detail.clone(),
            Outcome::Succeeded { .. } | Outcome::Cached(_) | Outcome::Canceled { .. } => String::new(),
        };
        let end = End { claim: at, outcome, took: ended.took, log: ended.log, layer: ended.layer };
        let Follows { again, stop, over } = self.levels.ended(end);
        if let (Some(delay), Some(claim)) = (again, running.claim) {
            let text = format!("{why}; tried again {}", in_words(delay));
            let log = attempt::note(&self.setting, &claim, ended.log, &text);
            self.levels.note_log(at, log);
            self.events.spawn(async move {
                tokio::time::sleep(delay).await;
                Message::Rested(at)
            });
        }
        if let Some(reason) = stop {
            self.stop_level(at.run, Some(reason));
        }
        self.level_over(over);
    }

    pub(super) fn close_level(&mut self, run: RunId, reason: Reason) {
        let over = self.levels.close(run, reason);
        self.stop_level(run, Some(reason));
        self.level_over(over);
    }

    /// Stops what runs of a level: kills it if it is not ours any more.
    pub(super) fn stop_level(&mut self, run: RunId, reason: Option<Reason>) {
        for (_, running) in self.running.iter_mut().filter(|(claim, _)| claim.run == run) {
            match reason {
                Some(_) => {
                    running.reason = running.reason.or(reason);
                    running.stop.stop();
                }
                None => {
                    running.is_lost = true;
                    running.stop.kill_now();
                }
            }
        }
    }

    fn level_over(&mut self, over: Option<Vec<Finished>>) {
        if let Some(over) = over {
            self.ended.extend(over);
            self.record();
        }
    }
}

fn in_words(delay: Duration) -> String {
    if delay.is_zero() { "at once".to_owned() } else { format!("in {delay:?}") }
}
