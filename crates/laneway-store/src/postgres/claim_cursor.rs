//! Where claims begin in the line of each class. Pure: no SQL and no clock.
//!
//! While a session holds the server's xmin horizon, the rows that claimed tasks leave behind stay in
//! `tasks_available`, and a claim from the head of the line reads all of them. Then claims begin behind the
//! last task taken instead. While claims get all that they ask for, a full walk from the head takes at most a
//! tenth of the time, and one claim in eight at most makes it. A claim that gets less walks from the head at
//! once (docs/design/postgres.md, "A held horizon").
//!
//! A cursor is a hint. A task that is placed before it waits for the next full walk, and no longer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One claim in so many has its walk measured: reading the server's count costs two statements.
const MEASURE_EVERY: u32 = 32;

/// Index entries that a walk may read beyond the tasks that it takes. A server that can remove dead rows
/// leaves fewer, because each scan marks the dead entries that it meets.
const LONG_WALK_ENTRIES: i64 = 1_000;

/// How many times as long as the last full walk no other one begins.
const FULL_WALK_PAUSE: u32 = 9;

/// Claims between two full walks, unless the last one was `FULL_WALK_DELAY` ago.
const CLAIMS_BETWEEN: u32 = 7;

/// How long a task that is placed before a cursor waits at a node that claims rarely.
const FULL_WALK_DELAY: Duration = Duration::from_secs(1);

/// Classes that have a cursor. A store that runs more of them at a time begins anew.
const MAX_CURSORS: usize = 256;

/// A task's place in the line of its class, as tasks_available orders it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinePlace {
    pub(super) rank: i64,
    pub(super) run_no: i64,
    pub(super) position: i64,
}

impl LinePlace {
    const HEAD: Self = Self { rank: i64::MIN, run_no: i64::MIN, position: i64::MIN };
}

/// Where a claim may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkStart {
    /// At the cursors, unless a full walk is due.
    Cursors,
    /// At the head of every line: a claim from the cursors got less than it wanted.
    Head,
}

/// How one claim walks the lines.
#[derive(Debug)]
pub(super) struct ClaimWalk {
    /// From the head of every line, else from behind the cursors.
    pub(super) is_full: bool,
    /// Whether the server's count of the walk is read. Such a walk is full.
    pub(super) is_measured: bool,
    pub(super) cursors: LineCursors,
    /// Of a measured walk, unless another claim has the turn.
    _turn: Option<FullWalkTurn>,
}

impl ClaimWalk {
    /// For a request that sends no claim.
    pub(super) const NONE: Self =
        Self { is_full: true, is_measured: false, cursors: LineCursors::HEADS, _turn: None };
}

/// Keeps other claims from the same long walk. Once it is dropped, the walk is due again unless `note`
/// has counted its answer: a walk that was never sent, or that failed, spends no turn.
#[derive(Debug)]
struct FullWalkTurn(Arc<ClaimCursors>);

impl Drop for FullWalkTurn {
    fn drop(&mut self) {
        self.0.lock().is_turn_taken = false;
    }
}

/// Places in the lines of classes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineCursors {
    /// For classes that `classes` does not name.
    pub(super) default: LinePlace,
    pub(super) classes: BTreeMap<i64, LinePlace>,
}

impl LineCursors {
    pub(super) const HEADS: Self = Self { default: LinePlace::HEAD, classes: BTreeMap::new() };

    pub(super) fn of_class(&self, class: i64) -> LinePlace {
        self.classes.get(&class).copied().unwrap_or(self.default)
    }
}

/// What the server says of a measured walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalkCost {
    /// Entries of the index that were read, dead ones too.
    pub(super) entries: i64,
    pub(super) took: Duration,
    /// The rank of a task that becomes ready now, without a priority.
    pub(super) rank_now: i64,
}

/// The cursors of one store handle.
#[derive(Debug, Default)]
pub(super) struct ClaimCursors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Walks from the head that were answered while no cursor was in use.
    claims: u32,
    is_turn_taken: bool,
    /// Set while walks from the head are long.
    long: Option<LongWalk>,
}

#[derive(Debug)]
struct LongWalk {
    last_full: Instant,
    took: Duration,
    claims_since: u32,
    cursors: LineCursors,
}

impl LongWalk {
    fn is_due(&self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.last_full);
        since >= self.took * FULL_WALK_PAUSE
            && (self.claims_since >= CLAIMS_BETWEEN || since >= FULL_WALK_DELAY)
    }
}

impl ClaimCursors {
    /// Returns how the next claim walks the lines. Counts nothing: `note` does, when the answer is there.
    pub(super) fn next(self: &Arc<Self>, start: WalkStart, now: Instant) -> ClaimWalk {
        let mut state = self.lock();
        let is_free = !state.is_turn_taken;
        let (is_full, is_measured, cursors) = match &state.long {
            None => (true, is_free && state.claims.is_multiple_of(MEASURE_EVERY), LineCursors::HEADS),
            Some(long) if start == WalkStart::Head || (is_free && long.is_due(now)) => {
                (true, true, long.cursors.clone())
            }
            Some(long) => (false, false, long.cursors.clone()),
        };
        let takes_turn = is_measured && is_free;
        state.is_turn_taken |= takes_turn;
        drop(state);
        let turn = takes_turn.then(|| FullWalkTurn(Arc::clone(self)));
        ClaimWalk { is_full, is_measured, cursors, _turn: turn }
    }

    /// Learns from the answer to a walk: the classes and places of what it took, whether that is less than
    /// it wanted, and its cost where it was measured.
    pub(super) fn note(
        &self,
        walk: &ClaimWalk,
        (taken, is_short): (impl IntoIterator<Item = (i64, LinePlace)>, bool),
        cost: Option<WalkCost>,
        now: Instant,
    ) {
        let mut state = self.lock();
        let mut last: BTreeMap<i64, LinePlace> = BTreeMap::new();
        let mut count = 0;
        for (class, place) in taken {
            count += 1;
            last.entry(class).and_modify(|kept| *kept = place.max(*kept)).or_insert(place);
        }
        let is_long = cost.is_some_and(|cost| cost.entries > LONG_WALK_ENTRIES + 4 * count);
        state.claims = state.claims.wrapping_add(1);
        match (&mut state.long, cost) {
            (long, _) if walk.is_full && is_short && (long.is_some() || is_long) => {
                // Nothing is left behind a cursor either: the next claim begins at the head, once, and is
                // measured. It would begin there again if it began at a cursor.
                (*long, state.claims) = (None, 0);
            }
            (long, Some(cost)) if is_long => {
                let mut classes = long.take().map(|long| long.cursors.classes).unwrap_or_default();
                // Also backwards: what stands behind a task that came late is next.
                classes.extend(last);
                let default = LinePlace { rank: cost.rank_now, ..LinePlace::HEAD };
                *long = Some(LongWalk {
                    last_full: now,
                    took: cost.took,
                    claims_since: 0,
                    cursors: LineCursors { default, classes },
                });
            }
            (long, Some(_)) => *long = None,
            (Some(long), None) => {
                long.claims_since += 1;
                for (class, place) in last {
                    let classes = &mut long.cursors.classes;
                    classes.entry(class).and_modify(|kept| *kept = place.max(*kept)).or_insert(place);
                }
            }
            (None, None) => {}
        }
        if let Some(long) = state.long.as_mut().filter(|long| long.cursors.classes.len() > MAX_CURSORS) {
            long.cursors.classes.clear();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: bool = false;
    const SHORT: bool = true;

    fn place(rank: i64) -> LinePlace {
        LinePlace { rank, run_no: 1, position: 0 }
    }

    fn cost(entries: i64) -> Option<WalkCost> {
        Some(WalkCost { entries, took: Duration::from_millis(10), rank_now: 500 })
    }

    /// Cursors that a long walk has set behind `ranks` of class 1.
    fn behind(ranks: &[i64], now: Instant) -> Arc<ClaimCursors> {
        let cursors = Arc::new(ClaimCursors::default());
        walk(&cursors, ranks, cost(5_000), now);
        cursors
    }

    /// Makes the walk of one claim, which gets all that it wants. Returns whether it was full and measured.
    fn walk(
        cursors: &Arc<ClaimCursors>,
        ranks: &[i64],
        cost: Option<WalkCost>,
        now: Instant,
    ) -> (bool, bool) {
        let walk = cursors.next(WalkStart::Cursors, now);
        let cost = cost.filter(|_| walk.is_measured);
        cursors.note(&walk, (ranks.iter().map(|rank| (1, place(*rank))), ENOUGH), cost, now);
        (walk.is_full, walk.is_measured)
    }

    fn is_full(cursors: &Arc<ClaimCursors>, now: Instant) -> bool {
        cursors.next(WalkStart::Cursors, now).is_full
    }

    #[test]
    fn the_first_claim_is_measured_and_then_one_in_thirty_two() {
        let (cursors, now) = (Arc::new(ClaimCursors::default()), Instant::now());
        let measured: Vec<bool> = (0..64).map(|_| walk(&cursors, &[], cost(0), now).1).collect();
        let expected: Vec<bool> = (0..64).map(|claim| claim % 32 == 0).collect();
        assert_eq!(measured, expected);
    }

    #[test]
    fn short_walks_begin_at_the_head() {
        let (cursors, now) = (Arc::new(ClaimCursors::default()), Instant::now());
        walk(&cursors, &[7], cost(LONG_WALK_ENTRIES), now);
        assert!(is_full(&cursors, now));
    }

    #[test]
    fn behind_a_long_walk_claims_begin_where_the_last_one_ended() {
        let now = Instant::now();
        let cursors = behind(&[7, 9, 8], now);
        let second = cursors.next(WalkStart::Cursors, now);
        assert_eq!((second.is_full, second.cursors.of_class(1)), (false, place(9)));
        assert_eq!(second.cursors.of_class(2), LinePlace { rank: 500, ..LinePlace::HEAD });
        cursors.note(&second, ([(1, place(12)), (2, place(501))], ENOUGH), None, now);
        let third = cursors.next(WalkStart::Cursors, now).cursors;
        assert_eq!((third.of_class(1), third.of_class(2)), (place(12), place(501)));
    }

    #[test]
    fn a_full_walk_takes_at_most_a_tenth_of_the_time_and_one_caller_makes_it() {
        let now = Instant::now();
        let cursors = behind(&[7], now);
        let due = now + Duration::from_millis(90);
        (0..20).for_each(|_| assert!(!walk(&cursors, &[], None, due - Duration::from_millis(1)).0));
        let full = cursors.next(WalkStart::Cursors, due);
        assert_eq!((full.is_full, full.is_measured), (true, true));
        assert!(!is_full(&cursors, due), "another claim has the turn");
        cursors.note(&full, ([(1, place(8))], ENOUGH), cost(5_000), due);
        drop(full);
        assert!(!is_full(&cursors, due), "the walk was answered");
    }

    #[test]
    fn a_full_walk_without_an_answer_stays_due() {
        let now = Instant::now();
        let cursors = behind(&[7], now);
        let due = now + FULL_WALK_DELAY;
        for _ in 0..3 {
            let unsent = cursors.next(WalkStart::Cursors, due);
            assert!(unsent.is_full);
            drop(unsent);
        }
        let begun = Arc::new(ClaimCursors::default());
        (0..3).for_each(|_| assert!(begun.next(WalkStart::Cursors, now).is_measured, "the first claim too"));
    }

    #[test]
    fn one_claim_in_eight_makes_a_full_walk_and_one_a_second_of_a_node_that_claims_rarely() {
        let now = Instant::now();
        let cursors = behind(&[7], now);
        let later = now + Duration::from_millis(900);
        let full: Vec<bool> = (0..8).map(|_| walk(&cursors, &[], cost(5_000), later).0).collect();
        assert_eq!(full, [false, false, false, false, false, false, false, true]);
        let second = later + FULL_WALK_DELAY;
        assert!(!is_full(&cursors, second - Duration::from_millis(1)));
        assert!(is_full(&cursors, second));
    }

    #[test]
    fn a_claim_that_gets_less_than_it_wants_walks_from_the_head_at_once() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let from_cursor = cursors.next(WalkStart::Cursors, now);
        cursors.note(&from_cursor, ([], SHORT), None, now);
        let from_head = cursors.next(WalkStart::Head, now);
        assert_eq!((from_head.is_full, from_head.is_measured), (true, true));
        cursors.note(&from_head, ([(1, place(3))], ENOUGH), cost(5_000), now);
        drop(from_head);
        let next = cursors.next(WalkStart::Cursors, now);
        assert_eq!((next.is_full, next.cursors.of_class(1)), (false, place(3)));
    }

    #[test]
    fn where_the_head_has_too_little_too_the_next_claim_makes_one_walk_from_there() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let from_head = cursors.next(WalkStart::Head, now);
        cursors.note(&from_head, ([], SHORT), cost(5_000), now);
        drop(from_head);
        for _ in 0..3 {
            let idle = cursors.next(WalkStart::Cursors, now);
            assert_eq!((idle.is_full, idle.is_measured), (true, true));
            cursors.note(&idle, ([], SHORT), cost(5_000), now);
        }
        assert_eq!(walk(&cursors, &[80], cost(5_000), now), (true, true));
        assert!(!is_full(&cursors, now), "with work to take, cursors are in use again");
    }

    #[test]
    fn a_full_walk_that_finds_a_task_that_came_late_goes_on_behind_it() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        walk(&cursors, &[3], cost(5_000), now + FULL_WALK_DELAY);
        assert_eq!(cursors.next(WalkStart::Cursors, now).cursors.of_class(1), place(3));
    }

    #[test]
    fn a_full_walk_that_is_short_again_ends_the_use_of_cursors() {
        let now = Instant::now();
        let cursors = behind(&[7], now);
        walk(&cursors, &[8], cost(10), now + FULL_WALK_DELAY);
        assert!(is_full(&cursors, now));
    }
}
