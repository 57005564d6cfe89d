//! What a worker holds and wants: which claims wait for a place, how many to ask for, which may start.
//! Pure decisions; `drive.rs` acts on them.
//!
//! A place is a slot of the node, and one of the run's `max_parallel`. While tasks take milliseconds, as many claims
//! as there are slots are held ahead, so that a place which becomes free is filled at once and not after a commit. While
//! they take less than one, a slot does several of them in the time of a commit, and as many more are held.
//! A slot whose task has run for longer than that holds nothing ahead: what would be held for it is taken and given
//! back, again and again, until its task ends.

use std::collections::VecDeque;
use std::time::Duration;

use laneway_store::ClaimRef;
use laneway_store::model::Claim;

use super::rooms::Rooms;

/// A task that takes longer than this does not feel the wait for a commit.
const QUICK: Duration = Duration::from_millis(50);

/// A slot does several tasks that take no longer than this while one commit is made: functions, no processes.
const INSTANT: Duration = Duration::from_millis(1);

/// So many. What is held when a node dies is lost to it, and comes back as another attempt: not more than that.
const INSTANT_PER_SLOT: usize = 32;

/// After claims that were held ahead had to go back: so many quick ends in a row until claims are held again. Doubled
/// with each time, up to `MAX_PROOF`, and halved when there are `PROOF_DECAY` times as many.
const FIRST_PROOF: u32 = 16;
const MAX_PROOF: u32 = 1024;
const PROOF_DECAY: u32 = 8;

/// So many may wait for room in a pool, for the same reason.
const WAITING_PER_SLOT: usize = 4;

#[derive(Debug)]
pub(super) struct Lineup {
    slots: usize,
    /// Whether all claims are of one run, which may hold more than its `max_parallel` allows to start. What a node
    /// that takes whatever comes holds has its place already.
    is_of_one_run: bool,
    /// Told by the first claim.
    max_parallel: usize,
    /// Claimed, and waiting for a place. In the order of the line.
    held: VecDeque<Claim>,
    /// Who has room in a pool, and who waits for it without a place.
    rooms: Rooms,
    /// What calls that are under way may bring.
    asked: Wanted,
    /// A call asked for less than there were places, because another was under way that may fill them; or it brought what has
    /// no room yet.
    is_short: bool,
    /// How long tasks took of late.
    pace: Duration,
    /// How many of the last were quick, in a row.
    quick_ends: u32,
    /// How many of those it takes until claims are held ahead.
    proof: u32,
}

/// What of the slots is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Busy {
    pub(super) slots: usize,
    /// Those whose tasks run for so long that they are not quick.
    pub(super) long: usize,
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
    pub(super) fn new(slots: usize, is_of_one_run: bool) -> Self {
        Self {
            slots,
            is_of_one_run,
            max_parallel: usize::MAX,
            held: VecDeque::new(),
            rooms: Rooms::default(),
            asked: Wanted::default(),
            is_short: false,
            pace: Duration::MAX,
            quick_ends: 0,
            proof: 0,
        }
    }

    /// A node whose containers can have so many host ports.
    pub(super) fn with_ports(self, ports: u32) -> Self {
        Self { rooms: Rooms::with_ports(ports), ..self }
    }

    /// Whether a task that has run for so long is too long to hold another one ahead for its slot.
    pub(super) fn is_long(age: Duration) -> bool {
        age >= QUICK
    }

    /// What to ask for while tasks run. What is asked for counts as on its way until it is `answered`.
    pub(super) fn ask(&mut self, busy: Busy) -> Wanted {
        let places = self.places();
        let free = places.saturating_sub(busy.slots + self.held.len());
        let (spare, waiting) = (self.spare(busy.long), self.rooms.waiting());
        let now = free.saturating_sub(self.asked.now);
        self.is_short = now < free;
        let wanted = Wanted {
            // What has no room is passed by for what needs none, and not without end.
            now: now.min(self.most_waiting().saturating_sub(waiting)),
            ahead: spare.saturating_sub(self.held.len() + self.asked.ahead + waiting),
        };
        self.asked = Wanted { now: self.asked.now + wanted.now, ahead: self.asked.ahead + wanted.ahead };
        wanted
    }

    pub(super) fn answered(&mut self, wanted: Wanted, claims: Vec<Claim>) {
        self.asked.now -= wanted.now;
        self.asked.ahead -= wanted.ahead;
        if let (true, Some(claim)) = (self.is_of_one_run, claims.first()) {
            self.max_parallel = usize::try_from(claim.head.max_parallel).unwrap_or(usize::MAX);
        }
        for claim in claims {
            match self.rooms.admit(claim) {
                Some(claim) => self.held.push_back(claim),
                // The place that it was asked for is free still.
                None => self.is_short = self.rooms.waiting() < self.most_waiting(),
            }
        }
    }

    /// What held a claim is over, or went back: who waited for its room in a pool is next.
    pub(super) fn left(&mut self, claim: ClaimRef) {
        if let Some(next) = self.rooms.leave(claim) {
            self.held.push_front(next);
        }
    }

    /// The claim that may start now, if there is a place for one.
    pub(super) fn next(&mut self, running: usize) -> Option<Claim> {
        if running < self.places() { self.held.pop_front() } else { None }
    }

    /// Whether a step of a level could begin now.
    pub(super) fn has_slot(&self, busy: usize) -> bool {
        busy < self.slots
    }

    /// How long the task took that has just ended: a hint on how long the next one will. One that was short does not make
    /// a long one forgotten at once.
    pub(super) fn ended(&mut self, took: Duration) {
        self.pace = if self.pace >= QUICK { took } else { took.max(self.pace * 3 / 4) };
        self.quick_ends = if took < QUICK { self.quick_ends.saturating_add(1) } else { 0 };
        if self.quick_ends / PROOF_DECAY > self.proof {
            self.proof /= 2;
        }
    }

    /// How many claims may wait for room in a pool: what is claimed is lost with this node, and nobody else can take it.
    fn most_waiting(&self) -> usize {
        self.slots * WAITING_PER_SLOT
    }

    /// How many claims to hold, while so many slots have a long task.
    fn spare(&self, long: usize) -> usize {
        if long >= self.places() || self.quick_ends < self.proof {
            return 0;
        }
        let slots = self.slots - long.min(self.slots);
        if self.pace < INSTANT {
            slots * INSTANT_PER_SLOT
        } else if self.pace < QUICK {
            slots
        } else {
            0
        }
    }

    /// Places that a call kept for itself and did not fill would else wait for the next look.
    pub(super) fn is_short(&self) -> bool {
        self.is_short && self.asked == Wanted::default()
    }

    /// Nothing is held and nothing is on its way.
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty() && self.rooms.waiting() == 0 && self.asked == Wanted::default()
    }

    /// Whether enough is held to go on for a while without the store: what is left lasts for its next answer.
    pub(super) fn is_stocked(&self) -> bool {
        self.held.len() * 2 > self.slots
    }

    /// Whether a call for work is under way.
    pub(super) fn is_asking(&self) -> bool {
        self.asked != Wanted::default()
    }

    /// Takes out a claim that is held, to give it back. False if it is not held.
    pub(super) fn let_go(&mut self, claim: ClaimRef) -> bool {
        if !self.rooms.let_go(|waiting| waiting.at == claim).is_empty() {
            return true;
        }
        let before = self.held.len();
        self.held.retain(|held| held.at != claim);
        let is_gone = self.held.len() < before;
        if is_gone {
            self.left(claim);
        }
        is_gone
    }

    pub(super) fn holds(&self, claim: &ClaimRef) -> bool {
        self.held.iter().any(|held| held.at == *claim) || self.rooms.has_waiting(claim)
    }

    /// Takes out everything that is held for a place, to give it back. What waits for room stays: nobody else could have it.
    /// It was wrong to hold it, so that the next claims ahead take more proof that tasks are quick.
    pub(super) fn let_go_of_held(&mut self) -> Vec<ClaimRef> {
        let gone: Vec<ClaimRef> = self.held.drain(..).map(|claim| claim.at).collect();
        if !gone.is_empty() {
            self.proof = (self.proof * 2).clamp(FIRST_PROOF, MAX_PROOF);
            self.quick_ends = 0;
        }
        gone.iter().for_each(|claim| self.left(*claim));
        gone
    }

    /// Takes out everything, to give it back.
    pub(super) fn let_go_of_all(&mut self) -> Vec<ClaimRef> {
        let mut gone = self.rooms.let_go(|_| true);
        gone.extend(self.let_go_of_held());
        gone
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether another task could start now.
    pub(super) fn has_place(&self, running: usize) -> bool {
        running + self.held.len() + self.asked.now < self.places()
    }

    /// Takes out what a run that has had a failure does not start any more.
    pub(super) fn let_go_of_closed(&mut self) -> Vec<ClaimRef> {
        let is_clean_up = |claim: &Claim| claim.head.plan.step(claim.at.position).when.accepts_failure();
        let mut all = self.rooms.let_go(|claim| !is_clean_up(claim));
        let (kept, gone): (VecDeque<_>, VecDeque<_>) = self.held.drain(..).partition(is_clean_up);
        self.held = kept;
        for claim in gone {
            self.left(claim.at);
            all.push(claim.at);
        }
        all
    }

    fn places(&self) -> usize {
        self.slots.min(self.max_parallel)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use laneway_core::definition::{Source, compile};
    use laneway_core::id::{RunId, SessionId};
    use laneway_store::model::{Placed, RunHead};

    use super::*;

    const QUICKLY: Duration = Duration::from_millis(1);

    fn busy(slots: usize) -> Busy {
        Busy { slots, long: 0 }
    }

    /// Claims of a run, numbered from `first`; every third is of a step that cleans up.
    fn claims(first: u32, count: u32, max_parallel: u32) -> Vec<Claim> {
        let step = |at: u32| {
            let when = if at.is_multiple_of(3) { "always" } else { "all_succeeded" };
            format!("  s{at}: {{run: x, when: {when}}}\n")
        };
        let text = format!("steps:\n{}", (0..30).map(step).collect::<String>());
        let plan = compile(&Source { file: "t".into(), default_name: "t".into(), text }).expect("a plan");
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let run = RunId::parse(id).expect("an id");
        let params = serde_json::Map::new();
        let plan = Arc::new(plan);
        let head = Arc::new(RunHead {
            bundle: None,
            run,
            plan,
            dir: "/".into(),
            params,
            max_parallel,
            submitted_from: String::new(),
            keys: Default::default(),
            placed: Placed::Local,
            own_class: -1,
            parent: None,
            no_cache: false,
        });
        let session = SessionId::parse(id).expect("an id");
        let claim = |position| {
            let at = ClaimRef { run, position, attempt: 1, generation: 1, session };
            Claim { at, head: Arc::clone(&head), start_by: None, is_bound: false }
        };
        (first..first + count).map(claim).collect()
    }

    #[test]
    fn nothing_is_held_ahead_before_a_task_was_quick() {
        let mut lineup = Lineup::new(4, true);
        assert_eq!(lineup.ask(busy(0)), Wanted { now: 4, ahead: 0 });
        lineup.answered(Wanted { now: 4, ahead: 0 }, claims(0, 4, 4));
        (0..4).for_each(|running| drop(lineup.next(running).expect("a place")));
        lineup.ended(Duration::from_secs(1));
        assert_eq!(lineup.ask(busy(3)), Wanted { now: 1, ahead: 0 });
        lineup.ended(QUICKLY);
        assert_eq!(lineup.ask(busy(3)), Wanted { now: 0, ahead: 4 }, "one place is on its way");
    }

    #[test]
    fn more_is_held_of_what_takes_less_than_a_commit_until_something_takes_longer() {
        let mut lineup = Lineup::new(4, false);
        lineup.ended(Duration::from_micros(20));
        assert_eq!(lineup.ask(busy(4)), Wanted { now: 0, ahead: 128 });
        lineup.answered(Wanted { now: 0, ahead: 128 }, claims(0, 2, 4));
        lineup.ended(Duration::from_millis(3));
        lineup.ended(Duration::from_micros(20));
        assert_eq!(lineup.ask(busy(4)), Wanted { now: 0, ahead: 2 }, "that was a moment ago");
    }

    #[test]
    fn never_more_start_than_max_parallel_whatever_is_held() {
        let mut lineup = Lineup::new(4, true);
        let wanted = lineup.ask(busy(0));
        lineup.answered(wanted, claims(0, 4, 2));
        assert!(lineup.next(0).is_some() && lineup.next(1).is_some());
        assert!(lineup.next(2).is_none());
        lineup.ended(QUICKLY);
        assert_eq!(lineup.next(1).map(|claim| claim.at.position), Some(2), "the oldest first");
    }

    #[test]
    fn ends_wait_for_company_only_while_more_than_half_is_held() {
        let mut lineup = Lineup::new(4, true);
        lineup.ended(QUICKLY);
        let wanted = lineup.ask(busy(0));
        lineup.answered(wanted, claims(0, 5, 2));
        assert!(lineup.next(0).is_some() && lineup.next(1).is_some());
        assert!(lineup.is_stocked(), "three of four");
        assert!(lineup.next(1).is_some());
        assert!(!lineup.is_stocked(), "two of four");
    }

    #[test]
    fn places_that_a_call_left_empty_are_asked_for_again() {
        let mut lineup = Lineup::new(4, true);
        let first = lineup.ask(busy(0));
        let second = lineup.ask(busy(0));
        assert_eq!(second.now, 0);
        assert!(!lineup.is_short(), "the first may fill them");
        lineup.answered(second, Vec::new());
        lineup.answered(first, Vec::new());
        assert!(lineup.is_short());
        assert_eq!(lineup.ask(busy(0)).now, 4);
        assert!(!lineup.is_short());
    }

    #[test]
    fn a_run_that_closes_gets_back_what_is_not_clean_up() {
        let mut lineup = Lineup::new(8, true);
        let wanted = lineup.ask(busy(0));
        lineup.answered(wanted, claims(0, 5, 1));
        let gone: Vec<u32> = lineup.let_go_of_closed().iter().map(|claim| claim.position).collect();
        assert_eq!(gone, [1, 2, 4]);
        let [kept, _] = [lineup.next(0).expect("clean-up"), lineup.next(0).expect("clean-up")];
        assert_eq!(kept.at.position, 0);
        assert!(!lineup.let_go(kept.at), "it is not held any more");
    }

    #[test]
    fn what_went_back_unused_is_not_taken_ahead_again_before_enough_tasks_were_quick() {
        let mut lineup = Lineup::new(4, false);
        lineup.ended(QUICKLY);
        let wanted = lineup.ask(busy(4));
        assert_eq!(wanted.ahead, 4);
        lineup.answered(wanted, claims(0, 4, 4));
        for proof in [16, 32, 64] {
            assert_eq!(lineup.let_go_of_held().len(), 4);
            for _ in 1..proof {
                assert_eq!(lineup.ask(busy(4)), Wanted::default());
                lineup.ended(QUICKLY);
            }
            lineup.ended(Duration::from_secs(1));
            (0..proof).for_each(|_| lineup.ended(QUICKLY));
            let wanted = lineup.ask(busy(4));
            assert_eq!(wanted, Wanted { now: 0, ahead: 4 }, "{proof} in a row");
            lineup.answered(wanted, claims(0, 4, 4));
        }
        (0..1000).for_each(|_| lineup.ended(QUICKLY));
        assert_eq!(lineup.proof, 0, "it is forgotten in the end");
    }

    #[test]
    fn nothing_is_held_ahead_for_slots_whose_tasks_are_long() {
        let mut lineup = Lineup::new(4, false);
        lineup.ended(QUICKLY);
        for (long, ahead) in [(4, 0), (3, 1), (1, 3), (0, 4)] {
            let wanted = lineup.ask(Busy { slots: 4, long });
            assert_eq!(wanted, Wanted { now: 0, ahead }, "{long} long ones");
            lineup.answered(wanted, Vec::new());
        }
    }
}
