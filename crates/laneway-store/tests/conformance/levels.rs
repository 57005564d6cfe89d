//! E3 in the store: a level is offered by its first step, taken and started as a whole, and counts as a whole or not at all.

use std::collections::BTreeMap;

use laneway_core::event::{Event, Fact};
use laneway_core::gate::Gate;
use laneway_core::id::RunId;
use laneway_core::run_state::replay;
use laneway_core::state::RunStatus;
use laneway_store::model::{Finished, NewSignal, Outcome, Pausable, Submission};
use laneway_store::{Error, Fate};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::audit;
use crate::harness::{
    Database, Held, Node, Place, block_on, canceled, failed, flow, for_each_database, names, submission,
    succeeded, succeeded_with,
};

for_each_database! {
    level_is_offered_by_its_first_step_and_taken_as_a_whole,
    level_counts_when_all_of_it_has_succeeded,
    failure_cancels_its_level_and_nothing_of_that_counts,
    retried_run_goes_on_at_the_level_that_failed,
    retry_from_an_earlier_level_goes_back_to_its_checkpoint,
    skipped_failure_lets_the_rest_of_its_level_run,
    part_of_a_level_cannot_end,
    stale_holder_of_a_level_can_neither_take_nor_end_it,
    level_that_is_taken_twice_is_the_same_level,
    end_that_is_said_twice_is_told_so,
    lost_level_is_offered_anew_as_a_whole,
    canceled_run_counts_nothing_of_its_level,
    condition_that_is_false_leaves_its_step_out_of_the_level,
    level_of_which_all_is_skipped_counts_at_once,
    step_that_could_run_early_waits_for_its_level,
    what_waits_comes_behind_its_level_and_keeps_no_node,
    advance_does_one_level_and_holds_the_run_up_again,
    advance_is_refused_where_it_makes_no_sense,
    paused_run_gives_the_first_step_back,
    level_waits_for_a_node_and_says_so,
    pause_during_a_level_of_advance_holds_the_run_up_once,
    retry_from_beside_a_failure_opens_that_too,
    canceled_run_gives_its_first_step_no_level,
    end_that_is_said_again_with_that_of_the_next_level_is_known,
    level_that_was_cut_off_is_done_anew,
}

#[test]
fn equal_outcomes_make_equal_histories_in_whatever_order_they_come() {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(40));
    runner
        .run(&cases(), |case| block_on(histories_are_equal(Database::Sqlite, case)))
        .expect("equal histories");
}

#[test]
fn equal_outcomes_make_equal_histories_on_both_databases() {
    let mut runner = TestRunner::new(ProptestConfig::with_cases(6));
    runner
        .run(&cases(), |case| block_on(histories_are_equal(Database::Postgres, case)))
        .expect("equal histories");
}

const LEVELS: &str = "execution: levels";

fn diamond() -> String {
    flow(LEVELS, &[("b", ""), ("a", ""), ("d", "needs: [b]"), ("c", "needs: [a]"), ("e", "needs: [c, d]")])
}

/// Claims the first step of a level, and all of the level with it.
async fn level(node: &Node, run: RunId) -> Vec<Held> {
    let first = node.take(run, 9).await;
    let [first] = first.as_slice() else { panic!("one step is offered: {:?}", names(&first)) };
    taken(node, first).await
}

async fn taken(node: &Node, first: &Held) -> Vec<Held> {
    let claims = node.store.claim_level(first.at).await.expect("a level");
    audit::check(&*node.store, first.at.run).await;
    claims.into_iter().map(Held::of).collect()
}

async fn end(node: &Node, held: &[Held], outcome: impl Fn(&str) -> Outcome) -> Vec<Fate> {
    let took = std::time::Duration::from_millis(7);
    let finished = held.iter().map(|one| Finished::new(one.at, outcome(&one.step), took));
    let fates = node.store.finish(finished.collect(), None).await.expect("an answer").fates;
    audit::check(&*node.store, held[0].at.run).await;
    fates
}

/// What happened, in words, without times and nodes.
fn told(events: &[Event]) -> Vec<String> {
    let told = |event: &Event| {
        let step = event.fact.step().map(|step| format!(" {step}")).unwrap_or_default();
        match &event.fact {
            Fact::TaskFinished(f) => format!("{}{step} {}", event.fact.name(), f.status),
            Fact::LevelCommitted(f) => format!("level {}: {}", f.level, f.steps.join(" ")),
            _ => format!("{}{step}", event.fact.name()),
        }
    };
    events.iter().map(told).collect()
}

async fn level_is_offered_by_its_first_step_and_taken_as_a_whole(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    assert_eq!(node.tasks(run).await, "b pending, a available, d pending, c pending, e pending");
    assert_eq!(node.why(run, "b").await, "its level is taken as a whole, with a");
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["a", "b"]);
    assert_eq!(node.tasks(run).await, "b running, a running, d pending, c pending, e pending");
    let events = node.events(run).await;
    let begun: Vec<String> = told(&events).into_iter().skip(2).collect();
    assert_eq!(begun, ["task_available a", "task_available b", "task_started a", "task_started b"]);
}

async fn level_counts_when_all_of_it_has_succeeded(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let mut held = level(&node, run).await;
    held.reverse();
    assert_eq!(end(&node, &held, |step| succeeded_with(json!({ "of": step }))).await, [Fate::Recorded; 2]);
    let levels = node.state(run).await.levels.expect("a level that counts");
    assert_eq!((levels.count, levels.checkpoint.len()), (1, 64));
    let events = told(&node.events(run).await);
    assert_eq!(
        events[events.len() - 4..],
        ["task_finished a succeeded", "task_finished b succeeded", "level 0: a b", "task_available c"]
    );
    for expected in [vec!["c", "d"], vec!["e"]] {
        let held = level(&node, run).await;
        assert_eq!(names(&held), expected);
        end(&node, &held, |_| succeeded()).await;
    }
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    assert_eq!(node.state(run).await.levels.expect("levels").count, 3);
}

async fn failure_cancels_its_level_and_nothing_of_that_counts(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node
        .submit(&flow(LEVELS, &[("a", ""), ("b", ""), ("c", ""), ("d", "needs: [a], when: always")]))
        .await;
    let held = level(&node, run).await;
    end(&node, &held, |step| if step == "b" { failed(3) } else { succeeded_with(json!({ "x": 1 })) }).await;
    assert_eq!(
        node.tasks(run).await,
        "a canceled (aborted), b failed (exit), c canceled (aborted), d skipped (halted)",
        "nothing cleans up in levels"
    );
    let state = node.state(run).await;
    assert_eq!((state.status, state.levels), (RunStatus::Failed, None));
    assert_eq!(state.reason.as_deref(), Some("b failed: exit code 3"));
    assert!(state.tasks.iter().all(|task| task.output.is_empty()));
}

async fn retried_run_goes_on_at_the_level_that_failed(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    let before = node.state(run).await.levels;
    let held = level(&node, run).await;
    end(&node, &held, |step| if step == "c" { failed(1) } else { succeeded() }).await;
    assert_eq!(node.state(run).await.levels, before, "what counted before still does");
    assert_eq!(node.retry(run, None).await.expect("a run that can be retried"), ["d", "c", "e"]);
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["c", "d"]);
    assert!(held.iter().all(|held| held.at.attempt == 2));
    end(&node, &held, |_| succeeded()).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_an_earlier_level_goes_back_to_its_checkpoint(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let mut checkpoints = Vec::new();
    for _ in 0..3 {
        let held = level(&node, run).await;
        end(&node, &held, |step| succeeded_with(json!({ "of": step }))).await;
        checkpoints.push(node.state(run).await.levels.expect("levels").checkpoint);
    }
    assert_eq!(node.retry(run, Some("c")).await.expect("again"), ["c", "e"]);
    let levels = node.state(run).await.levels.expect("levels");
    assert_eq!((levels.count, &levels.checkpoint), (1, &checkpoints[0]));
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["c"], "d has succeeded, and counts with it");
    end(&node, &held, |step| succeeded_with(json!({ "of": step }))).await;
    assert_eq!(node.state(run).await.levels.expect("levels").checkpoint, checkpoints[1]);
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded_with(json!({ "of": "another" }))).await;
    assert_ne!(node.state(run).await.levels.expect("levels").checkpoint, checkpoints[2]);
}

async fn skipped_failure_lets_the_rest_of_its_level_run(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&flow(LEVELS, &[("a", ""), ("b", ""), ("c", "needs: [a, b]")])).await;
    let held = level(&node, run).await;
    end(&node, &held, |step| if step == "a" { failed(1) } else { succeeded() }).await;
    node.skip(run, "a").await.expect("a failed step");
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["b"]);
    end(&node, &held, |_| succeeded()).await;
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["c"]);
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn part_of_a_level_cannot_end(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let held = level(&node, run).await;
    let took = std::time::Duration::ZERO;
    let part = vec![Finished::new(held[0].at, succeeded(), took)];
    let refused = node.store.finish(part, None).await;
    assert!(matches!(refused, Err(Error::PartOfLevel { .. })), "{refused:?}");
    assert_eq!(end(&node, &held, |_| succeeded()).await, [Fate::Recorded; 2]);
}

async fn stale_holder_of_a_level_can_neither_take_nor_end_it(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let run = dying.share(&diamond()).await;
    let first = dying.take_any(9).await;
    let held = taken(&dying, &first[0]).await;
    let (stale, at) = (dying.store.clone(), held.clone());
    let other = Node::worker(place.open(), "other", &[]).await;
    dying.store.retire(dying.session, crate::harness::left()).await.expect("a session that ends");
    assert!(stale.claim_level(first[0].at).await.expect("an answer").is_empty());
    let took = std::time::Duration::ZERO;
    let finished = at.iter().map(|one| Finished::new(one.at, succeeded(), took)).collect();
    assert_eq!(stale.finish(finished, None).await.expect("an answer").fates, [Fate::ClaimLost; 2]);
    audit::check(&*other.store, run).await;
    let first = other.take_any(9).await;
    let held = taken(&other, &first[0]).await;
    assert_eq!((names(&held), held[0].at.attempt), (vec!["a", "b"], 2));
}

/// On SQLite a session lives as long as its process, which is who would ask.
#[test]
fn session_whose_lease_has_ended_takes_no_level() {
    crate::harness::run(Database::Postgres, |place| async move {
        let dying = Node::worker(place.open(), "dying", &[]).await;
        dying.share(&diamond()).await;
        let (first, stale) = (dying.take_any(9).await, dying.store.clone());
        // Nobody has noticed yet, so that what it holds is still its own.
        drop(dying);
        assert!(stale.claim_level(first[0].at).await.expect("an answer").is_empty());
        let other = Node::worker(place.open(), "other", &[]).await;
        assert_eq!(other.store.reap().await.expect("a reaped session").tasks, 1, "no more than the first");
        let first = other.take_any(9).await;
        assert_eq!(names(&taken(&other, &first[0]).await), ["a", "b"]);
    });
}

async fn level_that_is_taken_twice_is_the_same_level(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let first = node.take(run, 9).await;
    let once = taken(&node, &first[0]).await;
    let events = node.events(run).await.len();
    let twice = taken(&node, &first[0]).await;
    let at = |held: &[Held]| held.iter().map(|held| held.at).collect::<Vec<_>>();
    assert_eq!((at(&once), events), (at(&twice), node.events(run).await.len()));
}

async fn end_that_is_said_twice_is_told_so(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let held = level(&node, run).await;
    assert_eq!(end(&node, &held, |_| succeeded()).await, [Fate::Recorded; 2]);
    let events = node.events(run).await.len();
    assert_eq!(end(&node, &held, |_| succeeded()).await, [Fate::Repeated; 2]);
    assert_eq!(node.events(run).await.len(), events);
}

async fn lost_level_is_offered_anew_as_a_whole(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let run = dying.share(&diamond()).await;
    let first = dying.take_any(9).await;
    taken(&dying, &first[0]).await;
    let other = Node::worker(place.open(), "other", &[]).await;
    assert!(other.take_any(9).await.is_empty(), "it has its owner");
    drop(dying);
    assert_eq!(other.store.reap().await.expect("a reaped session").tasks, 2);
    audit::check(&*other.store, run).await;
    let first = other.take_any(9).await;
    assert_eq!(names(&first), ["a"]);
    let held = taken(&other, &first[0]).await;
    assert_eq!(names(&held), ["a", "b"]);
    end(&other, &held, |_| succeeded()).await;
    assert_eq!(names(&other.take_any(9).await), ["c"]);
}

async fn canceled_run_counts_nothing_of_its_level(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let held = level(&node, run).await;
    node.cancel(run).await;
    let stops: Vec<_> = node.stops().await.into_iter().map(|stop| stop.claim).collect();
    assert_eq!(stops.len(), 2);
    end(&node, &held, |step| {
        if step == "a" { succeeded() } else { canceled(laneway_core::reason::Reason::Canceled) }
    })
    .await;
    assert_eq!(
        node.tasks(run).await,
        "b canceled (canceled), a canceled (canceled), d canceled (canceled), c canceled (canceled), e canceled (canceled)"
    );
    assert_eq!(node.state(run).await.levels, None);
}

async fn condition_that_is_false_leaves_its_step_out_of_the_level(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let steps = [
        ("a", "if: \"${{ 1 > 2 }}\""),
        ("b", ""),
        ("c", "if: \"${{ 1 > 2 }}\""),
        ("d", "needs: [a, b], when: all_done"),
    ];
    let run = node.submit(&flow(LEVELS, &steps)).await;
    assert_eq!(node.tasks(run).await, "a skipped (condition), b available, c skipped (condition), d pending");
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    let events = told(&node.events(run).await);
    assert!(events.contains(&"level 0: a b c".to_owned()), "{events:?}");
    assert_eq!(names(&level(&node, run).await), ["d"]);
}

async fn level_of_which_all_is_skipped_counts_at_once(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let steps = [("a", "if: \"${{ 1 > 2 }}\""), ("b", "needs: [a], when: all_done"), ("c", "needs: [a]")];
    let run = node.submit(&flow(LEVELS, &steps)).await;
    assert_eq!(node.state(run).await.levels.expect("a level that counts").count, 1);
    assert_eq!(node.tasks(run).await, "a skipped (condition), b available, c skipped (upstream)");
    let run = node.submit(&flow(LEVELS, &[("a", "if: \"${{ 1 > 2 }}\"")])).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn step_that_could_run_early_waits_for_its_level(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let steps = [("a", ""), ("b", "needs: [a]"), ("c", "needs: [a, b], when: one_succeeded")];
    let run = node.submit(&flow(LEVELS, &steps)).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b available, c pending");
    let held = level(&node, run).await;
    assert_eq!(names(&held), ["b"]);
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(names(&level(&node, run).await), ["c"]);
}

async fn what_waits_comes_behind_its_level_and_keeps_no_node(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let document = "name: flow\nexecution: levels\nsteps:\n  approve: {wait: {signal: ok}}\n  work: {run: x}\n  after: {run: x, needs: [work]}\n  last: {run: x, needs: [approve]}\n";
    let run = one.share(document).await;
    assert_eq!(one.tasks(run).await, "approve pending, work available, after pending, last pending");
    assert_eq!(one.why(run, "approve").await, "what waits comes behind the other steps of its level: work");
    let first = one.take_any(9).await;
    let held = taken(&one, &first[0]).await;
    assert_eq!(names(&held), ["work"]);
    end(&one, &held, |_| succeeded()).await;
    assert_eq!(one.tasks(run).await, "approve parked, work succeeded, after pending, last pending");
    assert_eq!(one.view(run).await.owner, None, "any node may go on");
    assert_eq!(one.state(run).await.levels, None, "its level is not over");
    let two = Node::worker(place.open(), "two", &[]).await;
    let signal =
        NewSignal { name: "ok".into(), by: "ada".into(), reason: None, payload: serde_json::Map::new() };
    two.store.signal(run, "approve", signal).await.expect("a step that waits");
    audit::check(&*two.store, run).await;
    let first = two.take_any(9).await;
    let held = taken(&two, &first[0]).await;
    assert_eq!(names(&held), ["after", "last"]);
    end(&two, &held, |_| succeeded()).await;
    assert_eq!(two.status(run).await, RunStatus::Succeeded);
}

async fn advance_does_one_level_and_holds_the_run_up_again(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let paused = Submission { is_paused: true, ..submission(&diamond(), json!({}), node.session) };
    let run = node.store.submit(paused).await.expect("a run");
    audit::check(&*node.store, run).await;
    assert!(node.take(run, 9).await.is_empty());
    for expected in [0, 1] {
        assert_eq!(node.store.advance(run, "ada").await.expect("a paused run"), expected);
        audit::check(&*node.store, run).await;
        let held = level(&node, run).await;
        end(&node, &held, |_| succeeded()).await;
        assert!(node.take(run, 9).await.is_empty(), "it is held up again");
        assert!(!node.state(run).await.paused.is_empty());
    }
    node.store.resume(Pausable::Run(run), "ada").await.expect("a paused run");
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn advance_is_refused_where_it_makes_no_sense(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let plain = node.submit(&flow("", &[("a", "")])).await;
    let refused = node.store.advance(plain, "ada").await;
    assert!(matches!(refused, Err(Error::NotLeveled { .. })), "{refused:?}");
    let run = node.submit(&diamond()).await;
    let refused = node.store.advance(run, "ada").await;
    assert!(matches!(refused, Err(Error::GoesOn { .. })), "{refused:?}");
    node.cancel(run).await;
    let refused = node.store.advance(run, "ada").await;
    assert!(matches!(refused, Err(Error::Ended { .. })), "{refused:?}");
}

async fn paused_run_gives_the_first_step_back(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let first = node.take(run, 9).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a run that can be paused");
    assert!(taken(&node, &first[0]).await.is_empty());
    assert_eq!(node.tasks(run).await, "b pending, a pending, d pending, c pending, e pending");
    node.store.resume(Pausable::Run(run), "ada").await.expect("a paused run");
    assert_eq!(names(&level(&node, run).await), ["a", "b"]);
}

async fn level_waits_for_a_node_and_says_so(place: Place) {
    let here = Node::register(place.open(), "here").await;
    let run = here.share(&diamond()).await;
    let cause = here.view(run).await.causes[1].clone().expect("a cause");
    assert_eq!(cause.gate, Gate::Node.as_str());
    let worker = Node::worker(place.open(), "worker", &[]).await;
    let first = worker.take_any(9).await;
    assert_eq!(names(&first), ["a"]);
    assert_eq!(names(&taken(&worker, &first[0]).await), ["a", "b"]);
}

async fn pause_during_a_level_of_advance_holds_the_run_up_once(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let paused = Submission { is_paused: true, ..submission(&diamond(), json!({}), node.session) };
    let run = node.store.submit(paused).await.expect("a run");
    node.store.advance(run, "ada").await.expect("a paused run");
    let held = level(&node, run).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a run that goes on");
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.state(run).await.paused.len(), 1);
    assert_eq!(node.store.advance(run, "ada").await.expect("a paused run"), 1);
    let held = level(&node, run).await;
    node.store.resume(Pausable::Run(run), "ada").await.expect("a run that may go on to its end");
    end(&node, &held, |_| succeeded()).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_beside_a_failure_opens_that_too(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&flow(LEVELS, &[("a", ""), ("x", ""), ("c", "needs: [a]")])).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| succeeded()).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| failed(1)).await;
    assert_eq!(node.retry(run, Some("x")).await.expect("again"), ["x", "c"]);
    for expected in ["x", "c"] {
        let held = level(&node, run).await;
        assert_eq!(names(&held), [expected]);
        end(&node, &held, |_| succeeded()).await;
    }
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn canceled_run_gives_its_first_step_no_level(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let first = node.take(run, 9).await;
    node.cancel(run).await;
    assert!(taken(&node, &first[0]).await.is_empty());
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert!(!told(&node.events(run).await).iter().any(|told| told.starts_with("task_started")));
}

async fn end_that_is_said_again_with_that_of_the_next_level_is_known(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let before = level(&node, run).await;
    end(&node, &before, |_| succeeded()).await;
    let next = level(&node, run).await;
    let both: Vec<Held> = before.into_iter().chain(next).collect();
    let fates = end(&node, &both, |_| succeeded()).await;
    assert_eq!(fates, [Fate::Repeated, Fate::Repeated, Fate::Recorded, Fate::Recorded]);
    assert_eq!(names(&level(&node, run).await), ["e"]);
}

async fn level_that_was_cut_off_is_done_anew(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let run = node.submit(&diamond()).await;
    let held = level(&node, run).await;
    end(&node, &held, |_| canceled(laneway_core::reason::Reason::Canceled)).await;
    let again = level(&node, run).await;
    assert_eq!((names(&again), again[0].at.attempt), (vec!["a", "b"], 2));
}

/// Steps with what they need, how each ends, and an order in which they are said to have ended, twice.
#[derive(Debug, Clone)]
struct Case {
    needs: Vec<Vec<usize>>,
    fails: Option<usize>,
    orders: [u64; 2],
}

fn cases() -> impl Strategy<Value = Case> {
    (1..9_usize).prop_flat_map(|count| {
        let needs = (0..count).map(|step| prop::collection::vec(0..step.max(1), 0..3.min(step + 1)));
        let fails = prop_oneof![3 => Just(None), 1 => (0..count).prop_map(Some)];
        (needs.collect::<Vec<_>>(), fails, any::<[u64; 2]>()).prop_map(|(needs, fails, orders)| {
            let own =
                |(step, needs): (usize, Vec<usize>)| needs.into_iter().filter(|need| *need < step).collect();
            Case { needs: needs.into_iter().enumerate().map(own).collect(), fails, orders }
        })
    })
}

impl Case {
    fn document(&self) -> String {
        let names: Vec<String> = (0..self.needs.len()).map(|step| format!("s{}", 97 * step % 89)).collect();
        let keys: Vec<String> = self
            .needs
            .iter()
            .map(|needs| {
                let mut needs: Vec<&str> = needs.iter().map(|need| names[*need].as_str()).collect();
                needs.dedup();
                needs.sort_unstable();
                needs.dedup();
                format!("needs: [{}]", needs.join(", "))
            })
            .collect();
        let steps: Vec<(&str, &str)> =
            names.iter().map(String::as_str).zip(keys.iter().map(String::as_str)).collect();
        flow(LEVELS, &steps)
    }

    fn outcome(&self, held: &Held) -> Outcome {
        if self.fails == Some(held.at.position as usize) {
            failed(1)
        } else {
            succeeded_with(json!({ "of": held.step }))
        }
    }
}

async fn histories_are_equal(database: Database, case: Case) -> Result<(), TestCaseError> {
    let place = Place::quick(database);
    let node = Node::register(place.open(), "one").await;
    let mut histories = Vec::new();
    for order in case.orders {
        let run = node.submit(&case.document()).await;
        let mut states = BTreeMap::new();
        while node.status(run).await == RunStatus::Running {
            let held = level(&node, run).await;
            let state = node.state(run).await;
            states.insert(state.last_event, state);
            let mut shuffled: Vec<&Held> = held.iter().collect();
            shuffled.sort_by_key(|held| {
                use std::hash::{DefaultHasher, Hash as _, Hasher as _};
                let mut hasher = DefaultHasher::new();
                (order, &held.step).hash(&mut hasher);
                hasher.finish()
            });
            let took = std::time::Duration::from_millis(order % 100);
            let finished = shuffled.iter().map(|held| Finished::new(held.at, case.outcome(held), took));
            node.store.finish(finished.collect(), None).await.expect("an answer");
            let state = node.state(run).await;
            states.insert(state.last_event, state);
        }
        let events = node.events(run).await;
        let plan = node.view(run).await.plan;
        for (seq, state) in states {
            let steps = plan.workflow.steps.iter().map(|step| step.name.as_str());
            let told = replay(steps, &events[..seq as usize]).expect("a history");
            prop_assert_eq!(told, state, "the run as it was after event {}", seq);
        }
        histories.push((events.iter().map(without_times).collect::<Vec<_>>(), node.state(run).await.levels));
    }
    prop_assert_eq!(&histories[0], &histories[1]);
    Ok(())
}

/// An event without what two executions may differ in.
fn without_times(event: &Event) -> Value {
    let mut line = event.to_json();
    for key in ["run", "at", "took_ms"] {
        line.as_object_mut().expect("an object").remove(key);
    }
    line
}
