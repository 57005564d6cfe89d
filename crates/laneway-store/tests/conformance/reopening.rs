//! R7 and R14: an ended run goes on, by a retry of what did not succeed or past a step that a person skips.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::Reopen;
use laneway_store::{Error, Fate};
use serde_json::json;

use crate::harness::{Place, canceled, failed, flow, for_each_database, succeeded, succeeded_with};

for_each_database! {
    retry_runs_what_did_not_succeed_and_keeps_the_rest,
    retry_keeps_outputs_of_what_succeeded,
    retry_runs_clean_up_again,
    retry_from_a_step_runs_it_and_everything_behind_it,
    retry_from_a_step_leaves_no_halted_branch_behind,
    retry_from_a_step_of_a_canceled_run_brings_back_what_was_canceled,
    retry_goes_on_with_the_numbers_of_attempts_and_a_fresh_budget,
    retry_of_a_canceled_run_brings_it_back,
    retry_gives_the_run_its_timeout_anew,
    retry_is_refused_while_the_run_goes_on,
    retry_of_a_run_that_went_on_since_it_was_seen_changes_nothing,
    retry_of_a_run_that_succeeded_throughout_is_refused,
    retry_from_an_unknown_step_names_the_nearest,
    double_retry_makes_one,
    skip_lets_dependents_see_a_success,
    skip_of_the_last_failure_ends_the_run_as_succeeded,
    skip_of_one_of_two_failures_leaves_the_run_failed,
    skip_is_kept_by_a_retry_and_undone_by_a_retry_from_it,
    skip_runs_what_the_runs_timeout_had_ended,
    skip_is_refused_for_what_did_not_fail,
    skip_is_refused_in_a_canceled_run,
}

const CHAIN: [(&str, &str); 4] =
    [("a", ""), ("b", "needs: [a]"), ("c", "needs: [b]"), ("side", "needs: [a]")];

async fn retry_runs_what_did_not_succeed_and_keeps_the_rest(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: continue", &CHAIN)).await;
    node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b failed (exit), c skipped (upstream), side succeeded");
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["b", "c"]);
    assert_eq!(node.status(run).await, RunStatus::Running);
    assert_eq!(node.tasks(run).await, "a succeeded, b available, c pending, side succeeded");
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    assert_eq!(node.state(run).await.reason, None);
}

async fn retry_keeps_outputs_of_what_succeeded(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", "needs: [a], if: \"${{ steps.a.output.go }}\""), ("c", "needs: [b]")];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.finish(&held, succeeded_with(json!({"go": true}))).await;
    node.work(run, |_| failed(1)).await;
    node.retry(run, None).await.expect("a retry");
    assert_eq!(node.task(run, "a").await.output["go"], true);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c"]);
}

async fn retry_runs_clean_up_again(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("clean", "needs: [a], when: always"), ("tell", "needs: [a], when: one_failed")];
    let run = node.submit(&flow("", &steps)).await;
    let order = node.work(run, |step| if step == "a" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["a", "clean", "tell"]);
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["a", "clean", "tell"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["a", "clean"]);
    assert_eq!(node.tasks(run).await, "a succeeded, clean succeeded, tell skipped (upstream)");
}

async fn retry_from_a_step_runs_it_and_everything_behind_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CHAIN)).await;
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.retry(run, Some("b")).await.expect("a retry"), ["b", "c"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c"]);
    assert_eq!(node.task(run, "b").await.attempt, 2);
    assert_eq!(node.task(run, "side").await.attempt, 1);
}

async fn retry_from_a_step_leaves_no_halted_branch_behind(place: Place) {
    let node = place.node("one").await;
    let steps =
        [("bad", ""), ("beside", "needs: [slow]"), ("slow", ""), ("behind", "needs: [beside], when: always")];
    let run = node.submit(&flow("", &steps)).await;
    let (bad, slow) = (node.begin(run, "bad").await, node.begin(run, "slow").await);
    node.fail(&bad).await;
    node.succeed(&slow).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["behind"]);
    let again = node.retry(run, Some("bad")).await.expect("a retry");
    assert_eq!(again, ["bad", "beside", "behind"], "what ran behind the halted branch runs behind it again");
    assert_eq!(node.work(run, |_| succeeded()).await, ["bad", "beside", "behind"]);
}

async fn retry_from_a_step_of_a_canceled_run_brings_back_what_was_canceled(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &[("a", ""), ("b", ""), ("c", "needs: [b]")])).await;
    node.take(run, 1).await;
    let held = node.stops().await;
    assert!(held.is_empty());
    node.cancel(run).await;
    let stop = node.stops().await.remove(0);
    let finished =
        laneway_store::model::Finished::new(stop.claim, canceled(stop.reason), std::time::Duration::ZERO);
    node.store.finish(vec![finished], None).await.expect("an answer");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert_eq!(node.retry(run, Some("a")).await.expect("a retry"), ["a", "b", "c"]);
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b succeeded, c succeeded", "not ended with half undone");
}

async fn retry_goes_on_with_the_numbers_of_attempts_and_a_fresh_budget(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 0s}")])).await;
    assert_eq!(node.work(run, |_| failed(1)).await.len(), 2);
    node.retry(run, None).await.expect("a retry");
    assert_eq!(node.task(run, "a").await.retries, 0);
    assert_eq!(node.work(run, |_| failed(1)).await.len(), 2);
    let numbers: Vec<u32> = node.attempts(run, "a").await.iter().map(|one| one.attempt).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

async fn retry_of_a_canceled_run_brings_it_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &CHAIN)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.succeed(&held).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["b", "c", "side"]);
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_gives_the_run_its_timeout_anew(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("timeout: 10s", &[("a", "")])).await;
    place.advance(Duration::from_secs(10));
    node.promote().await;
    assert_eq!(node.status(run).await, RunStatus::Failed);
    place.advance(Duration::from_secs(60));
    node.retry(run, None).await.expect("a retry");
    let next = node.promote().await.expect("a deadline");
    assert_eq!(next.since(crate::harness::START), Duration::from_secs(80));
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_is_refused_while_the_run_goes_on(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CHAIN)).await;
    for from in [None, Some("a")] {
        let refusal = node.retry(run, from).await.expect_err("it runs");
        assert!(matches!(refusal, Error::NotEnded { status: RunStatus::Running, .. }), "{refusal}");
    }
    let refusal = node.skip(run, "a").await.expect_err("it runs");
    assert!(matches!(refusal, Error::NotEnded { .. }), "{refusal}");
}

/// A double click, of which the second half arrives when the step has failed once more.
async fn retry_of_a_run_that_went_on_since_it_was_seen_changes_nothing(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    node.work(run, |_| failed(1)).await;
    let seen = node.store.run_state(run).await.expect("a run").last_event;
    let again = Reopen { from: None, seen: Some(seen) };
    node.store.retry(run, again, "ada").await.expect("a retry");
    node.work(run, |_| failed(1)).await;
    let refused = node.store.retry(run, again, "ada").await.expect_err("it went on");
    assert!(matches!(refused, Error::WentOn { seen: told, .. } if told == seen), "{refused}");
    let seen = Some(node.store.run_state(run).await.expect("a run").last_event);
    assert_eq!(node.task(run, "a").await.attempt, 2);
    node.store.retry(run, Reopen { from: Some("a"), seen }, "ada").await.expect("a retry");
}

async fn retry_of_a_run_that_succeeded_throughout_is_refused(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CHAIN)).await;
    node.work(run, |_| succeeded()).await;
    let refusal = node.retry(run, None).await.expect_err("nothing is left to do");
    assert!(matches!(refusal, Error::NothingToRetry { .. }), "{refusal}");
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_an_unknown_step_names_the_nearest(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("compile", "")])).await;
    node.work(run, |_| succeeded()).await;
    let refusal = node.retry(run, Some("compiel")).await.expect_err("there is no such step");
    assert_eq!(refusal.hint().as_deref(), Some("did you mean `compile`?"));
    let refusal = node.skip(run, "compiel").await.expect_err("there is no such step");
    assert!(matches!(refusal, Error::NoSuchStep { .. }), "{refusal}");
}

async fn double_retry_makes_one(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    node.work(run, |_| failed(1)).await;
    let (first, second) = tokio::join!(
        node.store.retry(run, Reopen::default(), "ada"),
        node.store.retry(run, Reopen::default(), "ada")
    );
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    assert_eq!(node.take(run, 9).await.len(), 1);
}

async fn skip_lets_dependents_see_a_success(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CHAIN)).await;
    node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await;
    assert_eq!(node.task(run, "c").await.status, TaskStatus::Skipped);
    let now = node.skip(run, "b").await.expect("a skip");
    assert!(now.contains(&"c".to_owned()) && !now.contains(&"b".to_owned()), "{now:?}");
    node.work(run, |_| succeeded()).await;
    let expected = "a succeeded, b skipped (skipped_by_person), c succeeded, side succeeded";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.task(run, "b").await.detail.as_deref(), Some("skipped by ada"));
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn skip_of_the_last_failure_ends_the_run_as_succeeded(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await;
    assert_eq!(node.skip(run, "b").await.expect("a skip"), Vec::<String>::new());
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn skip_of_one_of_two_failures_leaves_the_run_failed(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", "needs: [a, b]")];
    let run = node.submit(&flow("on_failure: continue", &steps)).await;
    node.work(run, |_| failed(1)).await;
    node.skip(run, "a").await.expect("a skip");
    assert_eq!(node.status(run).await, RunStatus::Failed);
    let expected = "a skipped (skipped_by_person), b failed (exit), c skipped (upstream)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.state(run).await.reason.as_deref(), Some("b failed: exit code 1"));
    node.skip(run, "b").await.expect("a skip");
    assert_eq!(node.work(run, |_| succeeded()).await, ["c"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn skip_is_kept_by_a_retry_and_undone_by_a_retry_from_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: continue", &CHAIN)).await;
    node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await;
    node.skip(run, "b").await.expect("a skip");
    node.work(run, |step| if step == "c" { failed(1) } else { succeeded() }).await;
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["c"]);
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.task(run, "b").await.reason, Some(Reason::SkippedByPerson));
    assert_eq!(node.retry(run, Some("b")).await.expect("a retry"), ["b", "c"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c"]);
    assert_eq!(node.tasks(run).await, "a succeeded, b succeeded, c succeeded, side succeeded");
}

async fn skip_runs_what_the_runs_timeout_had_ended(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", "needs: [b]")];
    let run = node.submit(&flow("timeout: 10s\non_failure: continue", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    place.advance(Duration::from_secs(10));
    node.promote().await;
    assert_eq!(node.status(run).await, RunStatus::Failed);
    node.skip(run, "a").await.expect("a skip");
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.tasks(run).await, "a skipped (skipped_by_person), b succeeded, c succeeded");
}

async fn skip_is_refused_for_what_did_not_fail(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CHAIN)).await;
    node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await;
    for step in ["a", "c"] {
        let refusal = node.skip(run, step).await.expect_err("it did not fail");
        assert!(matches!(refusal, Error::NotFailed { .. }), "{refusal}");
    }
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn skip_is_refused_in_a_canceled_run(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: continue", &[("a", ""), ("b", "")])).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    let other = node.begin(run, "b").await;
    node.cancel(run).await;
    assert_eq!(node.finish(&other, canceled(Reason::Canceled)).await, Fate::Recorded);
    let refusal = node.skip(run, "a").await.expect_err("only a retry brings a canceled run back");
    assert!(matches!(refusal, Error::Ended { status: RunStatus::Canceled, .. }), "{refusal}");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}
