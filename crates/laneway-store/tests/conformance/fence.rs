//! C2: every write of a worker carries its claim and changes nothing once that is no longer current.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use serde_json::json;

use crate::harness::{
    Held, Node, Place, canceled, failed, flat, flow, for_each_database, left, succeeded, succeeded_with,
};

for_each_database! {
    stale_attempt_changes_nothing,
    nodes_own_older_attempt_changes_nothing,
    claim_of_another_session_changes_nothing,
    repeated_finish_reports_what_was_committed,
    repeated_finish_of_a_retried_attempt_spends_no_second_retry,
    repeated_start_is_told_apart_from_a_lost_one,
    finish_of_a_lost_claim_is_claim_lost,
    finish_of_a_claim_that_was_failed_or_canceled_as_lost_is_claim_lost,
    finish_of_a_claim_that_was_given_back_is_claim_lost,
    started_task_is_not_given_back,
    give_back_spends_no_retry_and_keeps_its_place,
    one_lost_claim_does_not_harm_its_neighbours_in_the_same_finish,
}

/// Start, finish and give-back of a claim that is not current: all refused, no byte of the run changed.
async fn changes_nothing(node: &Node, stale: &Held) {
    let before = (node.state(stale.at.run).await, node.events(stale.at.run).await);
    assert_eq!(node.start(stale).await, Fate::ClaimLost);
    assert_eq!(node.finish(stale, succeeded()).await, Fate::ClaimLost);
    assert_eq!(node.finish(stale, failed(1)).await, Fate::ClaimLost);
    assert_eq!(node.finish(stale, canceled(Reason::Canceled)).await, Fate::ClaimLost);
    assert_eq!(node.give_back(stale).await, Fate::ClaimLost);
    assert_eq!((node.state(stale.at.run).await, node.events(stale.at.run).await), before);
}

async fn stale_attempt_changes_nothing(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&flat(1, 1)).await;
    let stale = dying.begin(run, "s0").await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    changes_nothing(&node, &stale).await;
    let current = node.begin(run, "s0").await;
    changes_nothing(&node, &stale).await;
    node.succeed(&current).await;
    changes_nothing(&node, &stale).await;
}

async fn nodes_own_older_attempt_changes_nothing(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let older = node.take(run, 1).await.remove(0);
    assert_eq!(node.give_back(&older).await, Fate::Recorded);
    let current = node.begin(run, "s0").await;
    assert_eq!((older.at.session, older.at.position), (current.at.session, current.at.position));
    changes_nothing(&node, &older).await;
    node.succeed(&current).await;
}

async fn claim_of_another_session_changes_nothing(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let run = node.submit(&flat(1, 1)).await;
    let mut forged = node.begin(run, "s0").await;
    let own = forged.clone();
    forged.at.session = other.session;
    changes_nothing(&other, &forged).await;
    node.succeed(&own).await;
}

async fn repeated_finish_reports_what_was_committed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let held = node.begin(run, "a").await;
    assert_eq!(node.finish(&held, succeeded_with(json!({"n": 1}))).await, Fate::Recorded);
    let before = (node.state(run).await, node.events(run).await);
    place.advance(Duration::from_secs(1));
    for outcome in [succeeded(), succeeded_with(json!({"n": 2})), failed(1)] {
        assert_eq!(node.finish(&held, outcome).await, Fate::Repeated);
    }
    assert_eq!((node.state(run).await, node.events(run).await), before, "the first answer stands");
    assert_eq!(node.task(run, "a").await.output["n"], 1);
}

async fn repeated_finish_of_a_retried_attempt_spends_no_second_retry(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 2, backoff: 0s}")])).await;
    let first = node.begin(run, "a").await;
    node.fail(&first).await;
    assert_eq!(node.finish(&first, failed(1)).await, Fate::Repeated);
    assert_eq!(node.task(run, "a").await.retries, 1);
    let second = node.begin(run, "a").await;
    assert_eq!(node.finish(&first, succeeded()).await, Fate::Repeated);
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Running);
    node.succeed(&second).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn repeated_start_is_told_apart_from_a_lost_one(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    assert_eq!(node.start(&held).await, Fate::Repeated);
    node.succeed(&held).await;
    assert_eq!(node.start(&held).await, Fate::ClaimLost);
}

async fn finish_of_a_lost_claim_is_claim_lost(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    node.store.retire(node.session, left()).await.expect("a session that can end");
    assert_eq!(node.finish(&held, succeeded()).await, Fate::ClaimLost);
    assert_eq!(node.task(run, "s0").await.status, TaskStatus::Available);
}

async fn finish_of_a_claim_that_was_failed_or_canceled_as_lost_is_claim_lost(place: Place) {
    let node = place.node("one").await;
    let failing = node.submit(&flow("", &[("a", "on_lost: fail")])).await;
    let canceling = node.submit(&flow("", &[("a", "")])).await;
    let held = [node.begin(failing, "a").await, node.begin(canceling, "a").await];
    node.cancel(canceling).await;
    node.store.retire(node.session, left()).await.expect("a session that can end");
    assert_eq!(node.status(failing).await, RunStatus::Failed);
    assert_eq!(node.status(canceling).await, RunStatus::Canceled);
    for held in &held {
        assert_eq!(node.finish(held, succeeded()).await, Fate::ClaimLost, "it did not write that end");
    }
}

async fn finish_of_a_claim_that_was_given_back_is_claim_lost(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(2, 2)).await;
    let held = node.take(run, 2).await;
    assert_eq!(node.give_back(&held[0]).await, Fate::Recorded);
    assert_eq!(node.finish(&held[0], succeeded()).await, Fate::ClaimLost);
    assert_eq!(node.give_back(&held[0]).await, Fate::ClaimLost);
    // Given back to a run that is being canceled, it ends there and then; that end is not the holder's either.
    node.cancel(run).await;
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "s0 canceled (canceled), s1 canceled (canceled)");
    assert_eq!(node.finish(&held[1], succeeded()).await, Fate::ClaimLost);
}

async fn started_task_is_not_given_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let held = node.begin(run, "s0").await;
    assert_eq!(node.give_back(&held).await, Fate::ClaimLost);
    node.succeed(&held).await;
}

async fn give_back_spends_no_retry_and_keeps_its_place(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 0s}"), ("b", ""), ("c", "")];
    let run = node.submit(&flow("max_parallel: 3", &steps)).await;
    for attempt in 1..=5 {
        place.advance(Duration::from_secs(1));
        let held = node.take(run, 1).await.remove(0);
        assert_eq!((held.step.as_str(), held.at.attempt), ("a", attempt), "it is next in line again");
        assert_eq!(node.give_back(&held).await, Fate::Recorded);
    }
    assert_eq!(node.task(run, "a").await.retries, 0);
    let outcomes: Vec<String> = node.attempts(run, "a").await.into_iter().map(|one| one.outcome).collect();
    assert_eq!(outcomes, ["returned"; 5]);
    let sixth = node.begin(run, "a").await;
    node.fail(&sixth).await;
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Available, "its retry was not spent");
}

async fn one_lost_claim_does_not_harm_its_neighbours_in_the_same_finish(place: Place) {
    use laneway_store::model::Finished;
    let node = place.node("one").await;
    let (first, second) = (node.submit(&flat(2, 2)).await, node.submit(&flat(1, 1)).await);
    let mut held = node.take(first, 2).await;
    held.extend(node.take(second, 1).await);
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    let finished = held
        .iter()
        .map(|held| Finished { claim: held.at, outcome: succeeded(), took: std::time::Duration::ZERO })
        .collect();
    let answer = node.store.finish(finished, None).await.expect("an answer");
    assert_eq!(answer.fates, [Fate::Recorded, Fate::ClaimLost, Fate::Recorded]);
    assert_eq!(node.tasks(first).await, "s0 succeeded, s1 available");
    assert_eq!(node.status(second).await, RunStatus::Succeeded);
}
