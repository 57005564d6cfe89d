//! C2: every write of a worker carries its claim and changes nothing once that is no longer current.

use std::time::Duration;

use laneway_core::event::Fact;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use laneway_store::model::{LogPiece, Pausable};
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
    claim_that_was_given_back_writes_nothing_though_its_attempt_is_current,
    claim_that_died_with_its_node_unstarted_was_an_attempt,
    claim_that_is_taken_back_in_place_of_its_holder_was_an_attempt,
    give_back_to_a_paused_run_is_told_and_is_no_attempt,
    item_of_a_list_that_is_made_anew_has_a_generation_of_its_own,
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
    let before = (node.state(run).await, node.events(run).await);
    for generation in 1..=5 {
        place.advance(Duration::from_secs(1));
        let held = node.take(run, 1).await.remove(0);
        assert_eq!((held.step.as_str(), held.at.generation), ("a", generation), "it is next in line again");
        assert_eq!(held.at.attempt, 1, "nothing was executed");
        assert_eq!(node.give_back(&held).await, Fate::Recorded);
    }
    assert_eq!((node.state(run).await, node.events(run).await), before, "nothing of it is told");
    assert!(node.attempts(run, "a").await.is_empty());
    let first = node.begin(run, "a").await;
    assert_eq!((first.at.attempt, first.at.generation), (1, 6));
    node.fail(&first).await;
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Available, "its retry was not spent");
    let held = node.take(run, 3).await;
    let second = held.iter().find(|held| held.step == "a").expect("it is available");
    assert_eq!((second.at.attempt, second.at.generation), (2, 7));
    node.succeed(second).await;
    let attempts = node.attempts(run, "a").await;
    let told: Vec<_> = attempts.iter().map(|one| (one.attempt, one.outcome.as_str())).collect();
    assert_eq!(told, [(1, "failed"), (2, "succeeded")]);
}

async fn claim_that_was_given_back_writes_nothing_though_its_attempt_is_current(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let stale = node.take(run, 1).await.remove(0);
    node.give_back(&stale).await;
    let current = node.begin(run, "a").await;
    assert_eq!((current.at.attempt, current.at.session), (stale.at.attempt, stale.at.session));
    let before = (node.state(run).await, node.events(run).await);
    assert_eq!(node.start(&stale).await, Fate::ClaimLost);
    assert_eq!(node.give_back(&stale).await, Fate::ClaimLost);
    assert_eq!(node.finish(&stale, succeeded()).await, Fate::ClaimLost);
    let piece = |held: &Held| LogPiece { claim: held.at, start: 0, bytes: b"x".to_vec() };
    assert_eq!(node.store.keep_logs(vec![piece(&stale)]).await.expect("an answer"), [Fate::ClaimLost]);
    assert_eq!((node.state(run).await, node.events(run).await), before);
    assert_eq!(node.store.keep_logs(vec![piece(&current)]).await.expect("an answer"), [Fate::Recorded]);
    node.succeed(&current).await;
    assert_eq!(node.finish(&stale, succeeded()).await, Fate::ClaimLost, "it did not write that end");
    assert_eq!(node.finish(&current, succeeded()).await, Fate::Repeated);
}

async fn claim_that_died_with_its_node_unstarted_was_an_attempt(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("one").await);
    let run = node.submit(&flow("", &[("a", "")])).await;
    let given_back = dying.take(run, 1).await.remove(0);
    dying.give_back(&given_back).await;
    let lost = dying.take(run, 1).await.remove(0);
    assert_eq!((lost.at.attempt, lost.at.generation), (1, 2));
    drop(dying);
    node.store.reap().await.expect("an answer");
    let next = node.take(run, 1).await.remove(0);
    assert_eq!((next.at.attempt, next.at.generation), (2, 3), "its start may not have been said");
    assert_eq!(node.attempts(run, "a").await[0].outcome, "lost");
}

async fn claim_that_is_taken_back_in_place_of_its_holder_was_an_attempt(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let held = node.take(run, 1).await.remove(0);
    assert_eq!(node.store.take_back(vec![held.at]).await.expect("an answer"), [Fate::Recorded]);
    let told = |fact: &Fact| matches!(fact, Fact::TaskReturned(returned) if returned.attempt == Some(1));
    assert!(node.events(run).await.iter().any(|event| told(&event.fact)));
    let next = node.take(run, 1).await.remove(0);
    assert_eq!((next.at.attempt, next.at.generation), (2, 2));
    assert_eq!(node.attempts(run, "a").await[0].outcome, "returned");
}

async fn give_back_to_a_paused_run_is_told_and_is_no_attempt(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    let held = node.take(run, 1).await.remove(0);
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    assert_eq!(node.tasks(run).await, "a available");
    node.give_back(&held).await;
    assert_eq!(node.tasks(run).await, "a pending");
    let told = |fact: &Fact| matches!(fact, Fact::TaskReturned(returned) if returned.attempt.is_none());
    assert!(node.events(run).await.iter().any(|event| told(&event.fact)));
    assert_eq!(node.task(run, "a").await.attempt, 0);
    node.store.resume(Pausable::Run(run), "ada").await.expect("it goes on");
    let first = node.begin(run, "a").await;
    assert_eq!((first.at.attempt, first.at.generation), (1, 2));
    node.succeed(&first).await;
}

async fn item_of_a_list_that_is_made_anew_has_a_generation_of_its_own(place: Place) {
    let node = place.node("one").await;
    let each = "needs: [find], for_each: \"${{ steps.find.output.files }}\"";
    let run = node.submit(&flow("", &[("find", ""), ("each", each)])).await;
    let find = node.begin(run, "find").await;
    node.finish(&find, succeeded_with(json!({ "files": ["a"] }))).await;
    for generation in 1..=3 {
        let held = node.take(run, 1).await.remove(0);
        assert_eq!((held.at.attempt, held.at.generation), (1, generation));
        node.give_back(&held).await;
    }
    let first = node.begin(run, "each[0]").await;
    node.succeed(&first).await;
    node.retry(run, Some("find")).await.expect("a retry");
    let find = node.begin(run, "find").await;
    node.finish(&find, succeeded_with(json!({ "files": ["b"] }))).await;
    let second = node.begin(run, "each[0]").await;
    assert_eq!((second.at.attempt, second.at.generation), (2, 5));
    node.succeed(&second).await;
}

async fn one_lost_claim_does_not_harm_its_neighbours_in_the_same_finish(place: Place) {
    use laneway_store::model::Finished;
    let node = place.node("one").await;
    let (first, second) = (node.submit(&flat(2, 2)).await, node.submit(&flat(1, 1)).await);
    let mut held = node.take(first, 2).await;
    held.extend(node.take(second, 1).await);
    assert_eq!(node.give_back(&held[1]).await, Fate::Recorded);
    let finished =
        held.iter().map(|held| Finished::new(held.at, succeeded(), std::time::Duration::ZERO)).collect();
    let answer = node.store.finish(finished, None).await.expect("an answer");
    assert_eq!(answer.fates, [Fate::Recorded, Fate::ClaimLost, Fate::Recorded]);
    assert_eq!(node.tasks(first).await, "s0 succeeded, s1 available");
    assert_eq!(node.status(second).await, RunStatus::Succeeded);
}
