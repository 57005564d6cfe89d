//! Where claims begin in the line of each class. Pure: no SQL and no clock.
//!
//! While a session holds the server's xmin horizon, the rows that claimed tasks leave behind stay in
//! `tasks_available`, and a claim from the head of the line reads all of them. Then claims begin behind the
//! last task taken instead, and full walks from the head take at most a tenth of the time
//! (docs/design/postgres.md, "A held horizon").
//!
//! A task that is placed before a cursor moves it back, also at other nodes (placed_tasks.rs). A
//! cursor is a hint all the same: a task that no cursor was moved back for waits for the next full
//! walk, and no longer.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use laneway_core::id::SessionId;

use super::placed_tasks::PlacedTasks;

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

/// Every claim looks at tasks that became ready so recently: they may have been committed behind
/// those that moved the cursor.
const RECENT_MS: i64 = 500;

/// Sessions that have cursors. A store handle that serves more of them begins anew.
const MAX_SESSIONS: usize = 1_024;

/// How long a claim waits for the full walk of another one.
const TURN_PAUSE: Duration = Duration::from_millis(10);

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
    /// At the head of every line, unless the last full walk was a moment ago: a claim from the
    /// cursors got less than it wanted.
    Head,
}

/// Which lines a claim walks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WalkedLines {
    /// Those of all classes that its session takes.
    All,
    /// That of one class.
    Of(i64),
}

/// How one claim walks the lines.
#[derive(Debug)]
pub(super) struct ClaimWalk {
    /// From the head of every line, else from behind the cursors.
    pub(super) is_full: bool,
    /// Whether the server's count of the walk is read. Such a walk is full.
    pub(super) is_measured: bool,
    pub(super) cursors: LineCursors,
    /// How often cursors had been moved back when it began.
    moved_back: u64,
    /// Of a measured walk, unless another claim has the turn.
    _turn: Option<FullWalkTurn>,
}

impl ClaimWalk {
    /// For a request that sends no claim.
    pub(super) const NONE: Self =
        Self { is_full: true, is_measured: false, cursors: LineCursors::HEADS, moved_back: 0, _turn: None };
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

/// The cursors of each session that claims through one store handle: sessions take different
/// classes, and what one of them has walked says nothing of the lines of another.
#[derive(Debug, Default)]
pub(super) struct SessionCursors(Mutex<HashMap<SessionId, Arc<ClaimCursors>>>);

impl SessionCursors {
    pub(super) fn of(&self, session: SessionId) -> Arc<ClaimCursors> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SESSIONS && !all.contains_key(&session) {
            all.clear();
        }
        Arc::clone(all.entry(session).or_default())
    }

    /// Moves the cursors of every session back to tasks that were placed before them.
    pub(super) fn move_back(&self, placed: &PlacedTasks) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(|one| one.move_back(placed));
    }
}

/// The cursors of one session.
#[derive(Debug, Default)]
pub(super) struct ClaimCursors(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Walks from the head that were answered while no cursor was in use.
    claims: u32,
    is_turn_taken: bool,
    /// How often cursors were moved back.
    moved_back: u64,
    /// Set while walks from the head are long.
    long: Option<LongWalk>,
}

#[derive(Debug)]
struct LongWalk {
    last_full: Instant,
    took: Duration,
    claims_since: u32,
    /// The rank of a task that became ready at `last_full`, without a priority.
    rank_then: i64,
    cursors: LineCursors,
}

impl LongWalk {
    /// How long until a full walk takes no more than its share of the time.
    fn pause(&self, now: Instant) -> Duration {
        (self.took * FULL_WALK_PAUSE).saturating_sub(now.saturating_duration_since(self.last_full))
    }

    fn is_due(&self, now: Instant) -> bool {
        self.pause(now).is_zero()
            && (self.claims_since >= CLAIMS_BETWEEN
                || now.saturating_duration_since(self.last_full) >= FULL_WALK_DELAY)
    }

    /// Where a walk begins: at the cursors, or before them at the first task that became ready
    /// recently.
    fn starts(&self, now: Instant) -> LineCursors {
        let since = now.saturating_duration_since(self.last_full).as_millis();
        let rank_now = self.rank_then.saturating_add(i64::try_from(since).unwrap_or(i64::MAX));
        let recent = LinePlace { rank: rank_now.saturating_sub(RECENT_MS), ..LinePlace::HEAD };
        let mut starts = self.cursors.clone();
        starts.default = starts.default.min(recent);
        starts.classes.values_mut().for_each(|place| *place = recent.min(*place));
        starts
    }
}

impl ClaimCursors {
    /// Returns how the next claim walks the lines. Counts nothing: `note` does, when the answer is there.
    pub(super) fn next(self: &Arc<Self>, start: WalkStart, now: Instant) -> ClaimWalk {
        let mut state = self.lock();
        let is_free = !state.is_turn_taken;
        let (is_full, is_measured, cursors) = match &state.long {
            None => (true, is_free && state.claims.is_multiple_of(MEASURE_EVERY), LineCursors::HEADS),
            Some(long) => {
                let is_due = match start {
                    WalkStart::Cursors => long.is_due(now),
                    WalkStart::Head => long.pause(now).is_zero(),
                };
                (is_free && is_due, is_free && is_due, long.starts(now))
            }
        };
        let takes_turn = is_measured && is_free;
        state.is_turn_taken |= takes_turn;
        let moved_back = state.moved_back;
        drop(state);
        let turn = takes_turn.then(|| FullWalkTurn(Arc::clone(self)));
        ClaimWalk { is_full, is_measured, cursors, moved_back, _turn: turn }
    }

    /// How long until a claim that gets too little may walk from the head, if it may not yet.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let state = self.lock();
        let pause = state.long.as_ref()?.pause(now);
        let pause = if state.is_turn_taken { pause.max(TURN_PAUSE) } else { pause };
        (!pause.is_zero()).then_some(pause)
    }

    /// Moves the cursors back to tasks that were placed before them.
    pub(super) fn move_back(&self, placed: &PlacedTasks) {
        let mut state = self.lock();
        let Some(long) = &mut state.long else {
            // A walk that is under way sets the first cursors, and may not have seen these.
            state.moved_back += u64::from(placed.has_early());
            return;
        };
        let mut is_moved = false;
        for (class, place) in placed.iter() {
            // A walk begins behind its cursor.
            let before = LinePlace { position: place.position.saturating_sub(1), ..*place };
            if before < long.cursors.of_class(*class) {
                long.cursors.classes.insert(*class, before);
                is_moved = true;
            }
        }
        state.moved_back += u64::from(is_moved);
    }

    /// Learns from the answer to a walk: the classes and places of what it took, whether that is less than
    /// it wanted, and its cost where it was measured.
    pub(super) fn note(
        &self,
        walk: &ClaimWalk,
        lines: WalkedLines,
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
        // The walk may not have seen the task for which a cursor was moved back meanwhile.
        let is_moved_back = state.moved_back != walk.moved_back;
        state.claims = state.claims.wrapping_add(1);
        match (&mut state.long, cost) {
            (long, Some(cost)) if is_long => {
                let now_place = LinePlace { rank: cost.rank_now, ..LinePlace::HEAD };
                let mut cursors = match (long.take(), lines) {
                    (long, _) if is_moved_back => long.map_or(LineCursors::HEADS, |long| long.cursors),
                    // Nothing is left in any line.
                    (_, WalkedLines::All) if is_short => {
                        LineCursors { default: now_place, classes: BTreeMap::new() }
                    }
                    (long, lines) => {
                        let mut classes = long.map(|long| long.cursors.classes).unwrap_or_default();
                        // Also backwards: what stands behind a task that came late is next.
                        classes.extend(last);
                        if let (true, WalkedLines::Of(class)) = (is_short, lines) {
                            classes.insert(class, now_place);
                        }
                        LineCursors { default: now_place, classes }
                    }
                };
                if cursors.classes.len() > MAX_CURSORS {
                    cursors.classes.clear();
                }
                *long = Some(LongWalk {
                    last_full: now,
                    took: cost.took,
                    claims_since: 0,
                    rank_then: cost.rank_now,
                    cursors,
                });
            }
            (long, Some(_)) => *long = None,
            (Some(long), None) => {
                long.claims_since += 1;
                if !is_moved_back {
                    for (class, place) in last {
                        let classes = &mut long.cursors.classes;
                        classes.entry(class).and_modify(|kept| *kept = place.max(*kept)).or_insert(place);
                    }
                }
            }
            (None, None) => {}
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

    /// The rank of a task that becomes ready during a walk.
    const RANK_NOW: i64 = 1_000_000;

    fn cost(entries: i64) -> Option<WalkCost> {
        Some(WalkCost { entries, took: Duration::from_millis(10), rank_now: RANK_NOW })
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
        note(cursors, &walk, (ranks, ENOUGH), cost, now);
        (walk.is_full, walk.is_measured)
    }

    fn note(
        cursors: &Arc<ClaimCursors>,
        walk: &ClaimWalk,
        (ranks, is_short): (&[i64], bool),
        cost: Option<WalkCost>,
        now: Instant,
    ) {
        let taken = ranks.iter().map(|rank| (1, place(*rank)));
        cursors.note(walk, WalkedLines::All, (taken, is_short), cost, now);
    }

    fn placed(rank: i64) -> PlacedTasks {
        let mut placed = PlacedTasks::default();
        placed.add(1, place(rank), RANK_NOW);
        placed
    }

    fn start_of(cursors: &Arc<ClaimCursors>, class: i64, now: Instant) -> LinePlace {
        cursors.next(WalkStart::Cursors, now).cursors.of_class(class)
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
        note(&cursors, &second, (&[12], ENOUGH), None, now);
        assert_eq!(start_of(&cursors, 1, now), place(12));
    }

    #[test]
    fn every_claim_looks_at_what_became_ready_recently() {
        let now = Instant::now();
        let cursors = behind(&[RANK_NOW + 60_000], now);
        let recent = |rank| LinePlace { rank, ..LinePlace::HEAD };
        let later = now + Duration::from_millis(50);
        for class in [1, 2] {
            assert_eq!(start_of(&cursors, class, now), recent(RANK_NOW - RECENT_MS));
            assert_eq!(start_of(&cursors, class, later), recent(RANK_NOW + 50 - RECENT_MS));
        }
        assert_eq!(start_of(&cursors, 2, now + Duration::from_secs(1)), recent(RANK_NOW), "the default");
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
        note(&cursors, &full, (&[8], ENOUGH), cost(5_000), due);
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
    fn a_claim_that_gets_less_than_it_wants_walks_from_the_head_unless_it_was_walked_a_moment_ago() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let early = now + Duration::from_millis(89);
        assert_eq!(cursors.pause(early), Some(Duration::from_millis(1)));
        assert!(!cursors.next(WalkStart::Head, early).is_full);
        let due = now + Duration::from_millis(90);
        assert_eq!(cursors.pause(due), None);
        let from_head = cursors.next(WalkStart::Head, due);
        assert_eq!((from_head.is_full, from_head.is_measured), (true, true));
        note(&cursors, &from_head, (&[3], ENOUGH), cost(5_000), due);
        drop(from_head);
        assert_eq!(start_of(&cursors, 1, due), place(3));
    }

    #[test]
    fn where_the_head_has_too_little_too_the_next_claims_begin_at_what_is_recent() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let due = now + Duration::from_millis(90);
        let from_head = cursors.next(WalkStart::Head, due);
        note(&cursors, &from_head, (&[80], SHORT), cost(5_000), due);
        drop(from_head);
        for _ in 0..3 {
            let idle = cursors.next(WalkStart::Cursors, due);
            assert!(!idle.is_full, "walks from the head take a tenth of the time, whatever they find");
            assert_eq!(idle.cursors.of_class(1).rank, RANK_NOW - RECENT_MS);
            note(&cursors, &idle, (&[], SHORT), None, due);
        }
    }

    #[test]
    fn a_walk_of_one_line_that_finds_too_little_says_nothing_of_the_others() {
        let now = Instant::now();
        let cursors = Arc::new(ClaimCursors::default());
        let walk = cursors.next(WalkStart::Cursors, now);
        let taken = [(1, place(7)), (2, place(8))];
        cursors.note(&walk, WalkedLines::All, (taken, ENOUGH), cost(5_000), now);
        drop(walk);
        let due = now + Duration::from_millis(90);
        let of_one = cursors.next(WalkStart::Head, due);
        cursors.note(&of_one, WalkedLines::Of(2), ([], SHORT), cost(5_000), due);
        drop(of_one);
        assert_eq!(start_of(&cursors, 1, due), place(7));
        assert_eq!(start_of(&cursors, 2, due).rank, RANK_NOW - RECENT_MS);
    }

    #[test]
    fn a_task_that_is_placed_before_a_cursor_moves_it_back() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        cursors.move_back(&placed(90));
        assert_eq!(start_of(&cursors, 1, now), place(70), "it stands behind the cursor");
        cursors.move_back(&placed(40));
        assert_eq!(start_of(&cursors, 1, now), LinePlace { position: -1, ..place(40) });
    }

    #[test]
    fn a_claim_that_gets_too_little_waits_for_the_full_walk_of_another_one() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let due = now + Duration::from_millis(90);
        let full = cursors.next(WalkStart::Head, due);
        assert_eq!(cursors.pause(due), Some(TURN_PAUSE), "it is woken when the walk may be answered");
        drop(full);
        assert_eq!(cursors.pause(due), None);
    }

    #[test]
    fn sessions_have_cursors_of_their_own_and_all_of_them_move_back() {
        let (all, now) = (SessionCursors::default(), Instant::now());
        let [one, other] = [0_u128, 1].map(|number| all.of(SessionId::new(uuid::Uuid::from_u128(number))));
        walk(&one, &[70], cost(5_000), now);
        assert!(is_full(&other, now), "what one has walked says nothing of the lines of another");
        walk(&other, &[80], cost(5_000), now);
        all.move_back(&placed(40));
        let moved = LinePlace { position: -1, ..place(40) };
        assert_eq!([&one, &other].map(|cursors| start_of(cursors, 1, now)), [moved; 2]);
    }

    #[test]
    fn an_early_task_that_the_first_long_walk_may_not_have_seen_leaves_the_cursors_at_the_head() {
        let (cursors, now) = (Arc::new(ClaimCursors::default()), Instant::now());
        let first = cursors.next(WalkStart::Cursors, now);
        cursors.move_back(&placed(40));
        note(&cursors, &first, (&[70], ENOUGH), cost(5_000), now);
        assert_eq!(start_of(&cursors, 1, now), LinePlace::HEAD);
    }

    #[test]
    fn a_walk_that_began_before_a_cursor_was_moved_back_leaves_it_there() {
        let now = Instant::now();
        let cursors = behind(&[70], now);
        let before = cursors.next(WalkStart::Cursors, now);
        let due = now + Duration::from_millis(90);
        let full = cursors.next(WalkStart::Head, due);
        cursors.move_back(&placed(40));
        let moved = LinePlace { position: -1, ..place(40) };
        note(&cursors, &before, (&[75], ENOUGH), None, now);
        assert_eq!(start_of(&cursors, 1, now), moved);
        note(&cursors, &full, (&[], SHORT), cost(5_000), due);
        assert_eq!(start_of(&cursors, 1, due), moved);
        let behind_it = cursors.next(WalkStart::Cursors, due);
        note(&cursors, &behind_it, (&[40, 76], ENOUGH), None, due);
        assert_eq!(start_of(&cursors, 1, due), place(76));
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
