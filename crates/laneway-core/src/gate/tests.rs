//! Tables of gates, and random facts against each gate on its own.

use std::num::NonZeroU32;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::limit::Rate;

fn counts(unsettled: u32, succeeded: u32, failed: u32, passed_over: u32) -> Counts {
    Counts { unsettled, succeeded, failed, passed_over }
}

#[test]
fn every_rule_decides_as_early_as_it_can() {
    use Needs::{Met, Never, Wait};
    let table = [
        //                     none yet, one ok so far, one failed so far, one skipped so far, all ok, all failed, all skipped
        (When::AllSucceeded, [Wait, Wait, Never, Never, Met, Never, Never]),
        (When::AllDone, [Wait, Wait, Wait, Wait, Met, Met, Met]),
        (When::Always, [Wait, Wait, Wait, Wait, Met, Met, Met]),
        (When::AllFailed, [Wait, Never, Wait, Never, Never, Met, Never]),
        (When::OneSucceeded, [Wait, Met, Wait, Wait, Met, Never, Never]),
        (When::OneFailed, [Wait, Wait, Met, Wait, Never, Met, Never]),
    ];
    let situations = [
        counts(2, 0, 0, 0),
        counts(1, 1, 0, 0),
        counts(1, 0, 1, 0),
        counts(1, 0, 0, 1),
        counts(0, 2, 0, 0),
        counts(0, 0, 2, 0),
        counts(0, 0, 0, 2),
    ];
    for (when, expected) in table {
        assert_eq!(situations.map(|counts| needs(when, counts)), expected, "{when:?}");
    }
}

const NOW: Millis = Millis(100);

fn open() -> Facts<'static> {
    Facts { counts: Some(counts(0, 1, 0, 0)), max_parallel: 4, ..Facts::open(NOW) }
}

fn rate(count: u32, window_ms: u64) -> Rate {
    Rate { count: NonZeroU32::new(count).expect("above 0"), window: Duration::from_millis(window_ms) }
}

fn closed(gate: Gate, key: Option<&str>, until: Option<i64>) -> Verdict<'_> {
    Verdict::Closed(Wait { gate, key, until: until.map(Millis) })
}

#[test]
fn gates_are_looked_at_in_order() {
    assert_eq!(judge(&open()), Verdict::Open);
    let early = [Limited { name: "api", level: Level::Rate { rate: rate(1, 9), tat: Some(Tat(108_000)) } }];
    let spent = Facts { keys: Keys { limits: &early, ..Keys::default() }, ..open() };
    assert_eq!(judge(&spent), closed(Gate::Rate, Some("api"), Some(108)));
    let used = [early[0], Limited { name: "db", level: Level::Capacity { limit: 2, holders: 2 } }];
    let limited = Facts { keys: Keys { limits: &used, ..spent.keys }, ..spent };
    assert_eq!(judge(&limited), closed(Gate::Limit, Some("db"), None), "a rate is spent last");
    let lock = Some(Locked { key: "orders", holders: 1 });
    let locked = Facts { keys: Keys { lock, ..limited.keys }, ..limited };
    assert_eq!(judge(&locked), closed(Gate::Lock, Some("orders"), None));
    let order = Some(Ordered { key: "orders", smaller: 1 });
    let ordered = Facts { keys: Keys { order, ..locked.keys }, ..locked };
    assert_eq!(judge(&ordered), closed(Gate::Order, Some("orders"), None));
    let full = Facts { live: 4, ..ordered };
    assert_eq!(judge(&full), closed(Gate::MaxParallel, None, None));
    let crowded = Facts { group: Some(Room { live: 2, max: 2 }), ..full };
    assert_eq!(judge(&crowded), closed(Gate::Group, None, None));
    let nowhere = Facts { has_node: false, ..crowded };
    assert_eq!(judge(&nowhere), closed(Gate::Node, None, None));
    let paused = Facts { is_paused: true, ..nowhere };
    assert_eq!(judge(&paused), closed(Gate::Paused, None, None));
    let early = Facts { run_at: Some(Millis(101)), ..paused };
    assert_eq!(judge(&early), closed(Gate::RunAt, None, Some(101)));
    let refused = Facts { condition: Some(false), ..early };
    assert_eq!(judge(&refused), Verdict::Skip(Reason::Condition));
    let waiting = Facts { counts: Some(counts(1, 0, 0, 0)), ..refused };
    assert_eq!(judge(&waiting), closed(Gate::Needs, None, None));
    let queued = Facts { is_queued: true, ..waiting };
    assert_eq!(judge(&queued), closed(Gate::MaxRuns, None, None));
    let halted = Facts { closing: Some(Closing::Halted), ..queued };
    assert_eq!(judge(&halted), Verdict::Skip(Reason::Halted));
}

#[test]
fn merge_of_a_halted_run_is_no_clean_up() {
    let halted = Facts { when: When::AllDone, closing: Some(Closing::Halted), ..open() };
    assert_eq!(judge(&halted), Verdict::Open);
    assert_eq!(judge(&Facts { is_no_clean_up: true, ..halted }), Verdict::Skip(Reason::Halted));
}

#[test]
fn gates_are_listed_in_the_order_in_which_they_are_looked_at() {
    let words: Vec<&str> = Gate::ALL.iter().map(|gate| gate.as_str()).collect();
    assert_eq!(
        words.join(" "),
        "max_runs needs run_at paused node group level max_parallel order lock limit rate"
    );
}

#[test]
fn of_several_rates_the_one_that_opens_last_is_waited_for() {
    let until =
        |name, ms: i64| Limited { name, level: Level::Rate { rate: rate(1, 10), tat: Some(Tat(ms * 1000)) } };
    let limits = [until("a", 105), until("b", 109), until("c", 100)];
    let facts = Facts { keys: Keys { limits: &limits, ..Keys::default() }, ..open() };
    assert_eq!(judge(&facts), closed(Gate::Rate, Some("b"), Some(109)));
}

#[test]
fn to_pass_spends_every_rate_and_nothing_else() {
    let limits = [
        Limited { name: "api", level: Level::Rate { rate: rate(1, 10), tat: None } },
        Limited { name: "db", level: Level::Capacity { limit: 1, holders: 0 } },
        Limited { name: "mail", level: Level::Rate { rate: rate(2, 10), tat: Some(Tat(100_500)) } },
    ];
    let facts = Facts { keys: Keys { limits: &limits, ..Keys::default() }, ..open() };
    assert_eq!(judge(&facts), Verdict::Open);
    assert_eq!(facts.keys.spent(NOW), [("api", Tat(185_000)), ("mail", Tat(143_000))]);
}

#[test]
fn run_at_opens_at_its_very_moment() {
    assert_eq!(judge(&Facts { run_at: Some(Millis(100)), ..open() }), Verdict::Open);
}

#[test]
fn a_step_starts_at_its_moment_and_behind_its_needs_and_its_retry() {
    let later = Facts { not_before: Some(Millis(101)), ..open() };
    assert_eq!(judge(&later), closed(Gate::RunAt, None, Some(101)));
    assert_eq!(judge(&Facts { not_before: Some(NOW), ..open() }), Verdict::Open);
    let retried = Facts { run_at: Some(Millis(105)), ..later };
    assert_eq!(judge(&retried), closed(Gate::RunAt, None, Some(105)));
    let needy = Facts { counts: Some(counts(1, 0, 0, 0)), ..later };
    assert_eq!(judge(&needy), closed(Gate::Needs, None, None));
    assert_eq!(judge(&Facts { is_paused: true, ..later }), closed(Gate::RunAt, None, Some(101)));
    let skipped = Facts { condition: Some(false), ..later };
    assert_eq!(judge(&skipped), Verdict::Skip(Reason::Condition), "its `if` is asked before");
}

#[test]
fn clean_up_starts_in_a_halted_run_and_for_a_while_in_a_canceled_one() {
    let done = Facts { counts: Some(counts(0, 0, 0, 1)), ..open() };
    for closing in [Closing::Halted, Closing::Aborted] {
        for when in [When::AllDone, When::Always] {
            assert_eq!(judge(&Facts { when, closing: Some(closing), ..done }), Verdict::Open);
        }
    }
    for closing in [Closing::Canceled, Closing::RunTimeout] {
        for when in When::ALL {
            let closed = Facts { when, closing: Some(closing), ..done };
            let canceled = Verdict::Cancel(closing.reason());
            assert_eq!(judge(&closed), canceled, "{when:?}: its time is over");
            let cleaning = Facts { is_cleaning_up: true, ..closed };
            let expected = if when == When::Always { Verdict::Open } else { canceled };
            assert_eq!(judge(&cleaning), expected, "{when:?}");
            assert_eq!(judge(&Facts { is_no_clean_up: true, ..cleaning }), canceled, "{when:?}: in a level");
        }
    }
}

/// A level of a named limit, and whether it is open by the rule of the document, said without the arithmetic.
fn any_level() -> impl Strategy<Value = (Level, bool)> {
    prop_oneof![
        (1..4u32, 0..6u32).prop_map(|(limit, holders)| (Level::Capacity { limit, holders }, holders < limit)),
        (1..5u32, 1..50u64, prop::option::of(98_000..103_000i64)).prop_map(|(count, window, tat)| {
            let is_open = tat.is_none_or(|tat| tat < 101_000);
            (Level::Rate { rate: rate(count, window), tat: tat.map(Tat) }, is_open)
        }),
    ]
}

const CLOSINGS: [Option<Closing>; 5] =
    [None, Some(Closing::Halted), Some(Closing::Aborted), Some(Closing::Canceled), Some(Closing::RunTimeout)];

/// One around now, or mostly none.
fn moment() -> impl proptest::strategy::Strategy<Value = Option<Millis>> {
    prop_oneof![3 => Just(None), 1 => (98..103i64).prop_map(|at| Some(Millis(at)))]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_opens_while_any_single_gate_is_closed(
        when in prop::sample::select(When::ALL.to_vec()),
        needs_of in prop::option::of((0..2u32, 0..3u32, 0..2u32, 0..2u32)),
        // Mostly open, or random facts would hardly ever reach the keys.
        closing in prop_oneof![6 => Just(None), 1 => prop::sample::select(CLOSINGS.to_vec())],
        condition in prop_oneof![4 => Just(None), 3 => Just(Some(true)), 1 => Just(Some(false))],
        (run_at, not_before) in (moment(), moment()),
        (is_queued, is_paused, has_node) in (prop::bool::weighted(0.1), prop::bool::weighted(0.1), prop::bool::weighted(0.9)),
        (live, max_parallel) in (0..4u32, 1..4u32),
        (is_no_clean_up, is_cleaning_up, is_led, room) in
            (prop::bool::weighted(0.1), prop::bool::ANY, prop::bool::weighted(0.1), prop::option::of((0..3u32, 1..3u32))),
        order in prop::option::of(0..2u32),
        lock in prop::option::of(0..2u32),
        levels in prop::collection::vec(any_level(), 0..4),
    ) {
        let limits: Vec<Limited<'_>> = levels.iter().map(|(level, _)| Limited { name: "x", level: *level }).collect();
        let facts = Facts {
            when,
            counts: needs_of.map(|(a, b, c, d)| counts(a, b, c, d)),
            closing,
            is_cleaning_up,
            is_no_clean_up,
            condition,
            run_at,
            not_before,
            now: NOW,
            live,
            max_parallel,
            is_queued,
            is_paused,
            has_node,
            group: room.map(|(live, max)| Room { live, max }),
            is_led,
            keys: Keys {
                order: order.map(|smaller| Ordered { key: "k", smaller }),
                lock: lock.map(|holders| Locked { key: "k", holders }),
                limits: &limits,
            },
        };
        let gates = [
            ("closing", closing.is_none_or(|closing| closing.lets_start(when, is_cleaning_up) && !is_no_clean_up)),
            ("max_runs", !is_queued),
            ("needs", facts.counts.is_none_or(|counts| needs(when, counts) == Needs::Met)),
            ("if", condition != Some(false)),
            ("run_at", [run_at, not_before].into_iter().flatten().all(|at| at <= NOW)),
            ("paused", !is_paused),
            ("node", has_node),
            ("group", room.is_none_or(|(live, max)| live < max)),
            ("level", !is_led),
            ("max_parallel", live < max_parallel),
            ("order", order.unwrap_or(0) == 0),
            ("lock", lock.unwrap_or(0) == 0),
            ("limit", levels.iter().all(|(level, open)| *open || matches!(level, Level::Rate { .. }))),
            ("rate", levels.iter().all(|(level, open)| *open || matches!(level, Level::Capacity { .. }))),
        ];
        let first_closed = gates.iter().find(|(_, is_open)| !is_open).map(|(gate, _)| *gate);
        match judge(&facts) {
            Verdict::Open => prop_assert_eq!(first_closed, None),
            Verdict::Closed(wait) => {
                prop_assert!(
                    first_closed == Some(wait.gate.as_str()) , "{:?} said, {:?} is first", wait, first_closed
                );
                prop_assert_eq!(wait.key.is_some(), matches!(wait.gate, Gate::Order | Gate::Lock | Gate::Limit | Gate::Rate));
                prop_assert_eq!(wait.until.is_some(), matches!(wait.gate, Gate::RunAt | Gate::Rate));
            }
            Verdict::Skip(Reason::Condition) => prop_assert_eq!(first_closed, Some("if")),
            Verdict::Skip(Reason::Upstream) => prop_assert_eq!(first_closed, Some("needs")),
            Verdict::Skip(_) | Verdict::Cancel(_) => prop_assert_eq!(first_closed, Some("closing")),
        }
    }
}
