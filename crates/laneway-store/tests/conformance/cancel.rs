//! R6: after a cancel nothing of the run is claimed, and what was claimed is stopped.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::{Error, Fate};

use crate::harness::{Place, canceled, failed, flat, flow, for_each_database, succeeded};

for_each_database! {
    nothing_is_claimed_after_a_cancel,
    canceled_run_ends_when_its_last_holder_has_stopped,
    result_of_a_task_that_ended_before_it_was_stopped_counts,
    pending_retry_is_canceled,
    failure_after_a_cancel_is_not_retried,
    cancel_of_a_halted_run_ends_its_clean_up,
    second_cancel_changes_nothing,
    cancel_of_an_ended_run_changes_nothing,
    cancel_by_another_process_reaches_the_holder,
    cancel_of_an_unknown_run_is_refused,
}

async fn nothing_is_claimed_after_a_cancel(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", "needs: [a]"), ("clean", "needs: [a, b], when: always")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    assert_eq!(node.cancel(run).await, RunStatus::Canceled, "nobody held anything");
    assert!(node.take(run, 9).await.is_empty());
    let state = node.state(run).await;
    assert!(state.tasks.iter().all(|task| task.status == TaskStatus::Canceled && task.attempt == 0));
    assert_eq!(state.reason.as_deref(), Some("canceled by ada"));
}

async fn canceled_run_ends_when_its_last_holder_has_stopped(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(4, 3)).await;
    let started = node.begin(run, "s0").await;
    let claimed = node.take(run, 1).await.remove(0);
    assert_eq!(node.cancel(run).await, RunStatus::Running);
    assert!(node.take(run, 9).await.is_empty());
    let mut stops = node.stops().await;
    stops.sort_by_key(|stop| stop.claim.position);
    assert_eq!(stops.iter().map(|stop| stop.claim).collect::<Vec<_>>(), [started.at, claimed.at]);
    assert!(stops.iter().all(|stop| stop.reason == Reason::Canceled));
    node.finish(&started, canceled(Reason::Canceled)).await;
    assert_eq!(node.status(run).await, RunStatus::Running);
    assert_eq!(node.give_back(&claimed).await, Fate::Recorded);
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert!(node.stops().await.is_empty());
}

async fn result_of_a_task_that_ended_before_it_was_stopped_counts(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b canceled (canceled)");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn pending_retry_is_canceled(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 3, backoff: 1m}")])).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.cancel(run).await, RunStatus::Canceled);
    assert_eq!(node.promote().await, None);
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(node.tasks(run).await, "a canceled (canceled)");
}

async fn failure_after_a_cancel_is_not_retried(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 3, backoff: 0s}, when: always")])).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    assert_eq!(node.finish(&held, failed(1)).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "a failed (exit)");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn cancel_of_a_halted_run_ends_its_clean_up(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("clean", "needs: [a], when: always"), ("more", "needs: [clean], when: always")];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    let clean = node.begin(run, "clean").await;
    assert_eq!(node.cancel(run).await, RunStatus::Running);
    node.finish(&clean, canceled(Reason::Canceled)).await;
    assert_eq!(node.tasks(run).await, "a failed (exit), clean canceled (canceled), more canceled (canceled)");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn second_cancel_changes_nothing(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    node.begin(run, "s0").await;
    node.cancel(run).await;
    let before = node.events(run).await;
    assert_eq!(node.cancel(run).await, RunStatus::Running);
    assert_eq!(node.events(run).await, before);
}

async fn cancel_of_an_ended_run_changes_nothing(place: Place) {
    let node = place.node("one").await;
    let good = node.submit(&flat(1, 1)).await;
    node.work(good, |_| succeeded()).await;
    let bad = node.submit(&flat(1, 1)).await;
    node.work(bad, |_| failed(1)).await;
    for (run, status) in [(good, RunStatus::Succeeded), (bad, RunStatus::Failed)] {
        let before = node.events(run).await;
        assert_eq!(node.cancel(run).await, status);
        assert_eq!(node.events(run).await, before);
    }
}

async fn cancel_by_another_process_reaches_the_holder(place: Place) {
    let (node, person) = (place.node("one").await, place.node("person").await);
    let run = node.submit(&flat(2, 2)).await;
    let held = node.begin(run, "s0").await;
    person.cancel(run).await;
    assert!(node.take(run, 1).await.is_empty());
    assert_eq!(node.stops().await[0].claim, held.at);
    assert!(person.stops().await.is_empty(), "it holds nothing");
}

async fn cancel_of_an_unknown_run_is_refused(place: Place) {
    let node = place.node("one").await;
    let unknown = laneway_core::id::RunId::new(uuid::Uuid::now_v7());
    let refusal = node.store.cancel(unknown, "ada").await.expect_err("there is no such run");
    assert!(matches!(refusal, Error::NoSuchRun { .. }), "{refusal}");
}
