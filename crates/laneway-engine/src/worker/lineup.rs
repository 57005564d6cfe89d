//! What a worker holds and wants: which claims wait for a place, how many to ask for, which may start.
//! Pure decisions; `drive.rs` acts on them.
//!
//! A place is a slot of the node, and one of the run's `max_parallel`. While tasks take milliseconds, as many claims
//! as there are places are held ahead, so that a place which becomes free is filled at once and not after a commit.

use std::collections::VecDeque;
use std::time::Duration;

use laneway_store::ClaimRef;
use laneway_store::model::Claim;

/// A task that takes longer than this does not feel the wait for a commit.
const QUICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Lineup {
    slots: usize,
    /// Told by the first claim.
    max_parallel: usize,
    /// Claimed, and waiting for a place. In the order of the line.
    held: VecDeque<Claim>,
    /// What calls that are under way may bring.
    asked: Wanted,
    /// A call asked for less than there were places, because another was under way that may fill them.
    is_short: bool,
    /// Whether the last task took milliseconds.
    is_quick: bool,
}

/// How much to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Wanted {
    /// To be started at once.
    pub(super) now: usize,
    /// To be held.
    pub(super) ahead: usize,
}

impl Lineup {
    pub(super) fn new(slots: usize) -> Self {
        Self {
            slots,
            max_parallel: usize::MAX,
            held: VecDeque::new(),
            asked: Wanted::default(),
            is_short: false,
            is_quick: false,
        }
    }

    /// What to ask for while `running` tasks run. What is asked for counts as on its way until it is `answered`.
    pub(super) fn ask(&mut self, running: usize) -> Wanted {
        let places = self.places();
        let free = places.saturating_sub(running + self.held.len());
        let spare = if self.is_quick { places } else { 0 };
        let wanted = Wanted {
            now: free.saturating_sub(self.asked.now),
            ahead: spare.saturating_sub(self.held.len() + self.asked.ahead),
        };
        self.is_short = wanted.now < free;
        self.asked = Wanted { now: self.asked.now + wanted.now, ahead: self.asked.ahead + wanted.ahead };
        wanted
    }

    pub(super) fn answered(&mut self, wanted: Wanted, claims: Vec<Claim>) {
        self.asked.now -= wanted.now;
        self.asked.ahead -= wanted.ahead;
        if let Some(claim) = claims.first() {
            self.max_parallel = usize::try_from(claim.head.max_parallel).unwrap_or(usize::MAX);
        }
        self.held.extend(claims);
    }

    /// The claim that may start now, if there is a place for one.
    pub(super) fn next(&mut self, running: usize) -> Option<Claim> {
        if running < self.places() { self.held.pop_front() } else { None }
    }

    /// How long the task took that has just ended: a hint on how long the next one will.
    pub(super) fn ended(&mut self, took: Duration) {
        self.is_quick = took < QUICK;
    }

    /// Places that a call kept for itself and did not fill would else wait for the next look.
    pub(super) fn is_short(&self) -> bool {
        self.is_short && self.asked == Wanted::default()
    }

    /// Nothing is held and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.asked == Wanted::default()
    }

    /// Whether enough is held to go on for a while without the store.
    pub(super) fn is_stocked(&self) -> bool {
        !self.held.is_empty() && self.held.len() * 2 >= self.places()
    }

    /// Whether a call for work is under way.
    pub(super) fn is_asking(&self) -> bool {
        self.asked != Wanted::default()
    }

    /// Takes out a claim that is held, to give it back. False if it is not held.
    pub(super) fn let_go(&mut self, claim: ClaimRef) -> bool {
        let before = self.held.len();
        self.held.retain(|held| held.at != claim);
        self.held.len() < before
    }

    /// Takes out what a run that has had a failure does not start any more.
    pub(super) fn let_go_of_closed(&mut self) -> Vec<ClaimRef> {
        let is_clean_up = |claim: &Claim| claim.head.plan.step(claim.at.position).when.accepts_failure();
        let (kept, gone): (VecDeque<_>, VecDeque<_>) = self.held.drain(..).partition(is_clean_up);
        self.held = kept;
        gone.into_iter().map(|claim| claim.at).collect()
    }

    fn places(&self) -> usize {
        self.slots.min(self.max_parallel)
    }
}
