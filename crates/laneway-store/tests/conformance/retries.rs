//! R4 and R3 of a run: a retry is a gate, not a sleeping slot; time opens gates when `promote` looks at it.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::model::Outcome;

use crate::harness::{Node, Place, START, canceled, failed, flow, for_each_database, succeeded};

for_each_database! {
    failed_attempt_is_tried_again_after_its_delay,
    delays_grow_by_their_factor_up_to_their_cap,
    waiting_retry_leaves_its_place_to_others,
    retry_that_finds_no_place_waits_for_one,
    retries_end_with_their_budget,
    only_what_on_names_is_retried,
    gate_opens_exactly_at_its_moment,
    promote_returns_the_next_moment_of_all_runs,
    run_timeout_stops_what_runs_and_ends_the_rest,
    run_timeout_overrules_a_halt,
    run_that_ends_in_time_is_left_alone,
}

fn at(millis: i64) -> Millis {
    Millis(START.0 + millis)
}

async fn failed_attempt_is_tried_again_after_its_delay(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 2s}"), ("b", "needs: [a]")])).await;
    let held = node.begin(run, "a").await;
    let answer = node.finish_with(&held, failed(7)).await;
    assert_eq!(answer.wake_at, Some(at(2000)));
    let task = node.task(run, "a").await;
    assert_eq!((task.status, task.run_at, task.retries), (TaskStatus::Pending, Some(at(2000)), 1));
    assert_eq!((task.reason, task.exit_code), (Some(Reason::Exit), Some(7)));
    assert!(node.take(run, 9).await.is_empty());
    place.advance(Duration::from_secs(2));
    assert_eq!(node.promote().await, None);
    assert_eq!(node.work(run, |_| succeeded()).await, ["a", "b"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn delays_grow_by_their_factor_up_to_their_cap(place: Place) {
    let node = place.node("one").await;
    let keys = "retry: {max: 4, backoff: 1s, factor: 3, max_backoff: 5s, jitter: 0}";
    let run = node.submit(&flow("", &[("a", keys)])).await;
    let mut now = 0;
    for delay in [1000, 3000, 5000, 5000] {
        let held = node.begin(run, "a").await;
        now += delay;
        assert_eq!(node.finish_with(&held, failed(1)).await.wake_at, Some(at(now)));
        place.advance(Duration::from_millis(u64::try_from(delay).expect("a delay")));
        node.promote().await;
    }
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn waiting_retry_leaves_its_place_to_others(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 1m}"), ("b", "")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["b"]);
    assert_eq!(node.status(run).await, RunStatus::Running);
}

async fn retry_that_finds_no_place_waits_for_one(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 1s}"), ("b", "")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    let other = node.begin(run, "b").await;
    place.advance(Duration::from_secs(1));
    assert_eq!(node.promote().await, None, "time has done what it can");
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Pending);
    node.succeed(&other).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
}

async fn retries_end_with_their_budget(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 2, backoff: 0s}")])).await;
    assert_eq!(node.work(run, |_| failed(9)).await, ["a"; 3]);
    assert_eq!(node.tasks(run).await, "a failed (exit)");
    assert_eq!(node.state(run).await.reason.as_deref(), Some("a failed: exit code 9"));
}

async fn tried(node: &Node, on: &str, outcome: Outcome) -> usize {
    let run = node.submit(&flow("", &[("a", &format!("retry: {{max: 1, backoff: 0s, on: [{on}]}}"))])).await;
    node.work(run, |_| outcome.clone()).await.len()
}

async fn only_what_on_names_is_retried(place: Place) {
    let node = place.node("one").await;
    let timeout =
        Outcome::Failed { reason: Reason::Timeout, detail: "took too long".to_owned(), exit_code: None };
    assert_eq!(tried(&node, "timeout", timeout.clone()).await, 2);
    assert_eq!(tried(&node, "timeout", failed(1)).await, 1);
    assert_eq!(tried(&node, "75", failed(75)).await, 2);
    assert_eq!(tried(&node, "75", failed(76)).await, 1);
    assert_eq!(tried(&node, "75", timeout).await, 1);
}

async fn gate_opens_exactly_at_its_moment(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 10s}")])).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    place.advance(Duration::from_millis(9_999));
    assert_eq!(node.promote().await, Some(at(10_000)));
    assert!(node.take(run, 1).await.is_empty(), "a millisecond early");
    place.advance(Duration::from_millis(1));
    assert_eq!(node.promote().await, None);
    node.begin(run, "a").await;
}

async fn promote_returns_the_next_moment_of_all_runs(place: Place) {
    let node = place.node("one").await;
    assert_eq!(node.promote().await, None);
    let late = node.submit(&flow("timeout: 1m", &[("a", "retry: {max: 1, backoff: 30s}")])).await;
    assert_eq!(node.promote().await, Some(at(60_000)));
    let held = node.begin(late, "a").await;
    node.fail(&held).await;
    assert_eq!(node.promote().await, Some(at(30_000)));
    let early = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 5s}")])).await;
    let held = node.begin(early, "a").await;
    node.fail(&held).await;
    assert_eq!(node.promote().await, Some(at(5_000)));
    place.advance(Duration::from_secs(5));
    assert_eq!(node.promote().await, Some(at(30_000)));
    assert_eq!(node.task(early, "a").await.status, TaskStatus::Available);
    assert_eq!(node.task(late, "a").await.status, TaskStatus::Pending);
}

async fn run_timeout_stops_what_runs_and_ends_the_rest(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", "needs: [a]"), ("done", "needs: [a], when: all_done")];
    let run = node.submit(&flow("timeout: 1m\nmax_parallel: 1", &steps)).await;
    let held = node.begin(run, "a").await;
    place.advance(Duration::from_secs(60));
    assert_eq!(node.promote().await, None);
    let stops = node.stops().await;
    assert_eq!(stops.len(), 1);
    assert_eq!((stops[0].claim, stops[0].reason), (held.at, Reason::RunTimeout));
    assert_eq!(node.status(run).await, RunStatus::Running, "its holder has not said that it stopped");
    node.finish(&held, canceled(Reason::RunTimeout)).await;
    let state = node.state(run).await;
    assert_eq!(state.status, RunStatus::Failed);
    assert!(state.reason.is_some_and(|reason| reason.starts_with("timeout")), "it says why");
    assert!(state.tasks.iter().all(|task| task.reason == Some(Reason::RunTimeout)));
}

async fn run_timeout_overrules_a_halt(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("clean", "needs: [a, b], when: all_done")];
    let run = node.submit(&flow("timeout: 1m", &steps)).await;
    let held = node.begin(run, "a").await;
    let other = node.begin(run, "b").await;
    node.fail(&held).await;
    place.advance(Duration::from_secs(61));
    node.promote().await;
    assert_eq!(node.stops().await.len(), 1);
    node.finish(&other, canceled(Reason::RunTimeout)).await;
    let expected = "a failed (exit), b canceled (run_timeout), clean canceled (run_timeout)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn run_that_ends_in_time_is_left_alone(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("timeout: 1m", &[("a", "")])).await;
    node.work(run, |_| succeeded()).await;
    place.advance(Duration::from_secs(3600));
    assert_eq!(node.promote().await, None);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}
