//! Claims ahead: a few tasks are held before there is a place for them, so that short tasks follow one another
//! without a commit between. To everybody else they wait as before.

use std::collections::BTreeSet;
use std::time::Duration;

use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;

use crate::harness::{Place, failed, flow, for_each_database, names, succeeded};

for_each_database! {
    claim_ahead_takes_who_is_next_in_line_and_opens_no_gate,
    what_is_held_ahead_starts_in_the_place_of_one_that_ended,
    end_that_comes_before_its_start_was_said_tells_of_both,
    claim_ahead_that_is_given_back_is_next_in_line_again,
    claim_ahead_of_a_dead_node_comes_back,
    history_of_a_dead_node_never_tells_of_more_than_there_are_places,
    nobody_holds_what_must_not_run_twice_nor_passes_it_over,
    retried_step_is_not_passed_over,
    claim_ahead_of_a_canceled_run_ends_when_it_is_given_back,
    claim_ahead_of_a_halted_run_is_skipped_when_it_is_given_back,
    available_task_can_be_held_as_well,
}

const THREE: [(&str, &str); 3] = [("a", ""), ("b", ""), ("c", "")];

async fn claim_ahead_takes_who_is_next_in_line_and_opens_no_gate(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    assert_eq!(names(&held), ["a", "b"]);
    assert_eq!(node.start(&held[0]).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "a running, b pending, c pending");
    let view = node.view(run).await;
    let cause = format!("{:?}", view.causes[1].as_ref().expect("a cause"));
    assert!(cause.contains("MaxParallel") || cause.contains("max_parallel"), "{cause}");
    assert!(other.take_ahead(run, 1, 0).await.is_empty(), "nobody else gets it");
}

async fn what_is_held_ahead_starts_in_the_place_of_one_that_ended(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    node.start(&held[0]).await;
    node.succeed(&held[0]).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b pending, c pending", "the place is kept for b");
    assert_eq!(node.start(&held[1]).await, Fate::Recorded);
    assert_eq!(node.start(&held[1]).await, Fate::Repeated);
    assert_eq!(node.tasks(run).await, "a succeeded, b running, c pending");
    node.succeed(&held[1]).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["c"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn end_that_comes_before_its_start_was_said_tells_of_both(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    node.succeed(&held[0]).await;
    node.succeed(&held[1]).await;
    let events = node.events(run).await;
    let told: Vec<&str> = events.iter().map(|event| event.fact.name()).skip(2).collect();
    let one = ["task_available", "task_started", "task_finished"];
    assert_eq!(told, [one, one, ["task_available"; 3]].concat()[..7]);
    let attempts = node.attempts(run, "b").await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].node.as_deref(), Some("one"));
    assert!(attempts[0].started_at.is_some());
}

async fn claim_ahead_that_is_given_back_is_next_in_line_again(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    assert_eq!(node.give_back(&held[1]).await, Fate::ClaimLost, "it was given back already");
    node.succeed(&held[0]).await;
    let next = node.take(run, 1).await;
    assert_eq!((names(&next), next[0].at.attempt, next[0].at.generation), (vec!["b"], 1, 2));
    assert_eq!(node.start(&held[1]).await, Fate::ClaimLost);
}

async fn claim_ahead_of_a_dead_node_comes_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    node.start(&held[0]).await;
    drop(node);
    let heir = place.node("heir").await;
    assert_eq!(heir.store.reap().await.expect("an answer").tasks, 2);
    heir.store.adopt(run, heir.session).await.expect("a run without an owner");
    let task = heir.task(run, "b").await;
    assert_eq!((task.status, task.attempt, task.lost), (TaskStatus::Pending, 1, 1));
    assert_eq!(
        heir.work(run, |_| succeeded()).await,
        ["a", "b", "c"],
        "who was lost keeps its place in line"
    );
    assert_eq!(heir.status(run).await, RunStatus::Succeeded);
}

async fn history_of_a_dead_node_never_tells_of_more_than_there_are_places(place: Place) {
    let node = place.node("one").await;
    // Who is held ahead stands before who runs.
    let steps = [("a", "needs: [b]"), ("b", ""), ("c", "")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let first = node.take_ahead(run, 1, 0).await;
    node.succeed(&first[0]).await;
    let held = node.take_ahead(run, 1, 1).await;
    assert_eq!(names(&held), ["c", "a"]);
    node.start(&held[0]).await;
    drop(node);
    let heir = place.node("heir").await;
    assert_eq!(heir.store.reap().await.expect("an answer").tasks, 2);
    let mut granted = BTreeSet::new();
    for event in heir.events(run).await {
        match (event.fact.name(), event.fact.step()) {
            ("task_available" | "task_started", Some(step)) => drop(granted.insert(step.to_owned())),
            ("task_finished" | "task_lost", Some(step)) => drop(granted.remove(step)),
            (_, Some(_) | None) => {}
        }
        assert!(granted.len() <= 1, "event {} grants {granted:?}", event.seq);
    }
}

async fn nobody_holds_what_must_not_run_twice_nor_passes_it_over(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("once", "on_lost: fail"), ("c", "")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let held = node.take_ahead(run, 1, 2).await;
    assert_eq!(names(&held), ["a"]);
    node.succeed(&held[0]).await;
    assert_eq!(names(&node.take_ahead(run, 1, 2).await), ["once", "c"]);
}

async fn retried_step_is_not_passed_over(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 1s}"), ("b", ""), ("c", ""), ("d", "")];
    let run = node.submit(&flow("max_parallel: 1\non_failure: continue", &steps)).await;
    let first = node.begin(run, "a").await;
    node.finish(&first, failed(1)).await;
    let b = node.begin(run, "b").await;
    place.advance(Duration::from_secs(2));
    node.promote().await;
    // `c` and `d` were in line before `a` came back to it.
    let held = node.take_ahead(run, 0, 3).await;
    assert_eq!(names(&held), ["c", "d"]);
    for held in [&b, &held[0], &held[1]] {
        node.succeed(held).await;
    }
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn claim_ahead_of_a_canceled_run_ends_when_it_is_given_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    node.start(&held[0]).await;
    node.cancel(run).await;
    let stops = node.stops().await;
    assert_eq!(stops.len(), 2, "its holder is asked to let go: {stops:?}");
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    assert_eq!(node.task(run, "b").await.status, TaskStatus::Canceled);
    assert_eq!(node.status(run).await, RunStatus::Running, "a has yet to stop");
}

async fn claim_ahead_of_a_halted_run_is_skipped_when_it_is_given_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &THREE)).await;
    let held = node.take_ahead(run, 1, 1).await;
    assert!(node.finish_with(&held[0], failed(1)).await.is_closing);
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "a failed (exit), b skipped (halted), c skipped (halted)");
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn available_task_can_be_held_as_well(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 3", &THREE)).await;
    let held = node.take_ahead(run, 1, 5).await;
    assert_eq!(names(&held), ["a", "b", "c"]);
    assert_eq!(node.give_back(&held[2]).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "a available, b available, c available");
}
