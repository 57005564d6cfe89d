//! R6 and R19: after a cancel nothing of the run but its clean-up is claimed, and what was claimed
//! is stopped; clean-up has a clock of its own.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::model::{CancelMode, Pausable};
use laneway_store::{Error, Fate};

use crate::harness::{Place, START, canceled, failed, flat, flow, for_each_database, succeeded};

for_each_database! {
    nothing_is_claimed_after_a_cancel,
    canceled_run_ends_when_its_last_holder_has_stopped,
    result_of_a_task_that_ended_before_it_was_stopped_counts,
    pending_retry_is_canceled,
    failure_after_a_cancel_is_not_retried,
    clean_up_that_runs_goes_on_after_a_cancel_and_only_always_follows_it,
    clean_up_starts_after_a_cancel_when_what_it_needs_has_stopped,
    clean_up_ends_with_its_time_and_no_promise_outlives_it,
    second_cancel_ends_the_clean_up_only_if_it_says_now,
    cancel_now_lets_no_clean_up_start,
    run_timeout_has_the_same_clean_up,
    cancel_of_a_run_that_timed_out_gives_its_clean_up_no_more_time,
    run_in_which_nothing_was_claimed_has_no_clean_up,
    clean_up_may_be_left_out_by_the_document,
    failed_clean_up_is_retried_and_changes_nothing_about_the_end,
    paused_run_cleans_up_all_the_same,
    items_and_waits_clean_up_and_end_with_its_time,
    lost_clean_up_comes_back_under_the_same_clock,
    clean_up_of_a_run_whose_owner_died_keeps_its_clock,
    run_whose_owner_is_gone_cleans_up_nothing,
    clean_up_takes_its_place_under_max_parallel,
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
    let run = node.submit(&flow("", &[("a", "retry: {max: 3, backoff: 0s}, when: all_done")])).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    assert_eq!(node.finish(&held, failed(1)).await, Fate::Recorded);
    assert_eq!(node.tasks(run).await, "a failed (exit)");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn clean_up_that_runs_goes_on_after_a_cancel_and_only_always_follows_it(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("clean", "needs: [a], when: always"),
        ("more", "needs: [clean], when: always"),
        ("done", "needs: [clean], when: all_done"),
        ("good", "needs: [clean]"),
    ];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    let clean = node.begin(run, "clean").await;
    assert_eq!(node.cancel(run).await, RunStatus::Running);
    assert!(node.stops().await.is_empty(), "it cleans up");
    node.succeed(&clean).await;
    let more = node.begin(run, "more").await;
    node.succeed(&more).await;
    assert_eq!(
        node.tasks(run).await,
        "a failed (exit), clean succeeded, more succeeded, done canceled (canceled), good skipped (halted)"
    );
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn clean_up_starts_after_a_cancel_when_what_it_needs_has_stopped(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("b", "needs: [a]"),
        ("clean", "needs: [a, b], when: always"),
        ("free", "needs: [b], when: always, if: 'false'"),
    ];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    let state = node.state(run).await;
    assert_eq!(state.clean_up_until, Some(Millis(START.0 + 60_000)));
    assert!(node.take(run, 9).await.is_empty(), "what it cleans up after still runs");
    node.finish(&held, canceled(Reason::Canceled)).await;
    let clean = node.begin(run, "clean").await;
    assert_eq!(node.status(run).await, RunStatus::Running);
    node.succeed(&clean).await;
    assert_eq!(
        node.tasks(run).await,
        "a canceled (canceled), b canceled (canceled), clean succeeded, free skipped (condition)"
    );
    let state = node.state(run).await;
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Canceled, Some("canceled by ada")));
    assert_eq!(state.clean_up_until, Some(Millis(START.0 + 60_000)), "as hooks are told");
}

const CLEANS: [(&str, &str); 3] =
    [("a", ""), ("clean", "needs: [a], when: always"), ("more", "needs: [clean], when: always")];

async fn clean_up_ends_with_its_time_and_no_promise_outlives_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("cleanup_timeout: 30s", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    let clean = node.begin(run, "clean").await;
    place.advance(Duration::from_millis(29_999));
    assert_eq!(node.promote().await, Some(Millis(START.0 + 30_000)));
    assert!(node.stops().await.is_empty());
    place.advance(Duration::from_millis(1));
    assert_eq!(node.promote().await, None);
    assert_eq!(node.stops().await[0].claim, clean.at);
    node.finish(&clean, canceled(Reason::Canceled)).await;
    assert_eq!(
        node.tasks(run).await,
        "a canceled (canceled), clean canceled (canceled), more canceled (canceled)"
    );
    let state = node.state(run).await;
    let reason = "canceled by ada; its clean-up took longer than 30s";
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Canceled, Some(reason)));
    assert_eq!(state.clean_up_until, None);
}

async fn second_cancel_ends_the_clean_up_only_if_it_says_now(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    let clean = node.begin(run, "clean").await;
    let before = node.events(run).await;
    assert_eq!(node.cancel(run).await, RunStatus::Running);
    assert_eq!(node.events(run).await, before, "a request that is repeated takes no time from it");
    assert_eq!(node.cancel_now(run).await, RunStatus::Running);
    assert_eq!(node.stops().await[0].claim, clean.at);
    let before = node.events(run).await;
    node.cancel_now(run).await;
    assert_eq!(node.events(run).await, before);
    node.finish(&clean, canceled(Reason::Canceled)).await;
    let state = node.state(run).await;
    let reason = "canceled by ada; its clean-up was ended by ada";
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Canceled, Some(reason)));
    assert_eq!(state.tasks[2].status, TaskStatus::Canceled);
}

async fn cancel_now_lets_no_clean_up_start(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    node.cancel_now(run).await;
    assert_eq!(node.state(run).await.clean_up_until, None);
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert!(node.take(run, 9).await.is_empty());
}

async fn run_timeout_has_the_same_clean_up(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("timeout: 10s\ncleanup_timeout: 5s", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    place.advance(Duration::from_secs(10));
    assert_eq!(node.promote().await, Some(Millis(START.0 + 15_000)));
    assert_eq!(node.stops().await[0].reason, Reason::RunTimeout);
    node.finish(&held, canceled(Reason::RunTimeout)).await;
    let clean = node.begin(run, "clean").await;
    node.succeed(&clean).await;
    let more = node.begin(run, "more").await;
    place.advance(Duration::from_secs(5));
    node.promote().await;
    node.finish(&more, canceled(Reason::RunTimeout)).await;
    assert_eq!(
        node.tasks(run).await,
        "a canceled (run_timeout), clean succeeded, more canceled (run_timeout)"
    );
    let state = node.state(run).await;
    let reason = "timeout: the run took longer than 10s; its clean-up took longer than 5s";
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Failed, Some(reason)));
}

async fn cancel_of_a_run_that_timed_out_gives_its_clean_up_no_more_time(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("timeout: 10s\ncleanup_timeout: 5s", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    place.advance(Duration::from_secs(10));
    node.promote().await;
    node.finish(&held, canceled(Reason::RunTimeout)).await;
    place.advance(Duration::from_secs(4));
    node.cancel(run).await;
    let state = node.state(run).await;
    assert_eq!(state.clean_up_until, Some(Millis(START.0 + 15_000)));
    place.advance(Duration::from_secs(1));
    node.promote().await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn run_in_which_nothing_was_claimed_has_no_clean_up(place: Place) {
    let node = place.node("one").await;
    let begun = node.submit(&flow("", &CLEANS)).await;
    assert_eq!(node.cancel(begun).await, RunStatus::Canceled, "it had started, and none of its tasks");
    let free = node.submit(&flow("", &[("a", ""), ("free", "when: always")])).await;
    assert_eq!(node.cancel(free).await, RunStatus::Canceled);
    assert_eq!(node.tasks(free).await, "a canceled (canceled), free canceled (canceled)");
    // One whose first task was claimed may have done something, whether its holder has said so or
    // not.
    let claimed = node.submit(&flow("max_parallel: 1", &[("a", ""), ("free", "when: always")])).await;
    let held = node.take(claimed, 1).await.remove(0);
    assert_eq!(node.cancel(claimed).await, RunStatus::Running);
    node.give_back(&held).await;
    let free = node.begin(claimed, "free").await;
    node.succeed(&free).await;
    assert_eq!(node.tasks(claimed).await, "a canceled (canceled), free succeeded");
}

async fn clean_up_may_be_left_out_by_the_document(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("cleanup_timeout: 0s", &CLEANS)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn failed_clean_up_is_retried_and_changes_nothing_about_the_end(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("clean", "needs: [a], when: always, retry: {max: 1, backoff: 2s}")];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    let clean = node.begin(run, "clean").await;
    node.finish(&clean, failed(1)).await;
    place.advance(Duration::from_secs(2));
    node.promote().await;
    let again = node.begin(run, "clean").await;
    assert_eq!(again.at.attempt, 2);
    node.finish(&again, failed(1)).await;
    assert_eq!(node.tasks(run).await, "a canceled (canceled), clean failed (exit)");
    let state = node.state(run).await;
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Canceled, Some("canceled by ada")));
}

async fn paused_run_cleans_up_all_the_same(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("clean", "needs: [a], when: always"), ("free", "when: always")];
    let run = node.submit(&flow("max_parallel: 2", &steps)).await;
    let held = node.begin(run, "a").await;
    let unstarted = node.take(run, 1).await.remove(0);
    node.store.pause(Pausable::Run(run), "ada").await.expect("paused");
    node.cancel(run).await;
    assert_eq!(node.give_back(&unstarted).await, Fate::Recorded);
    node.finish(&held, canceled(Reason::Canceled)).await;
    for step in ["clean", "free"] {
        let held = node.begin(run, step).await;
        node.store.pause(Pausable::Run(run), "ada").await.expect("paused");
        node.succeed(&held).await;
    }
    assert_eq!(
        node.tasks(run).await,
        "a canceled (canceled), b canceled (canceled), clean succeeded, free succeeded"
    );
}

async fn items_and_waits_clean_up_and_end_with_its_time(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("each", "needs: [a], when: always, for_each: [1, 2, 3, 4, 5]"),
        ("plain", "needs: [a], when: all_done, for_each: [1, 2]"),
    ];
    let text = format!("{}  pause: {{wait: {{signal: go}}, needs: [a], when: always}}\n", flow("", &steps));
    let run = node.submit(&text).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    let first = node.begin(run, "each[0]").await;
    node.succeed(&first).await;
    let second = node.begin(run, "each[1]").await;
    assert_eq!(node.task(run, "pause").await.status, TaskStatus::Parked);
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(node.task(run, "pause").await.status, TaskStatus::Canceled);
    node.finish(&second, canceled(Reason::Canceled)).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert_eq!(node.task(run, "each").await.status, TaskStatus::Canceled);
    assert_eq!(node.task(run, "plain").await.status, TaskStatus::Canceled);
    assert_eq!(node.task(run, "plain").await.items, None, "its list was never made");
}

async fn lost_clean_up_comes_back_under_the_same_clock(place: Place) {
    let (node, dying) = (place.node("one").await, place.node("dying").await);
    let run = node.submit(&flow("", &CLEANS)).await;
    let held = dying.begin(run, "a").await;
    node.cancel(run).await;
    dying.finish(&held, canceled(Reason::Canceled)).await;
    let clean = dying.begin(run, "clean").await;
    drop(dying);
    place.advance(Duration::from_secs(20));
    assert_eq!(node.store.reap().await.expect("reaped").tasks, 1);
    let again = node.take(run, 1).await.remove(0);
    assert_eq!((again.at.position, again.at.attempt), (clean.at.position, 2));
    place.advance(Duration::from_secs(40));
    node.promote().await;
    assert_eq!(node.stops().await[0].claim, again.at, "a minute after the cancel, not after the loss");
    assert_eq!(node.give_back(&again).await, Fate::Recorded);
    assert_eq!(node.status(run).await, RunStatus::Canceled);
}

async fn clean_up_of_a_run_whose_owner_died_keeps_its_clock(place: Place) {
    let owner = place.node("one").await;
    let run = owner.submit(&flow("", &CLEANS)).await;
    let held = owner.begin(run, "a").await;
    owner.cancel(run).await;
    owner.finish(&held, canceled(Reason::Canceled)).await;
    let clean = owner.begin(run, "clean").await;
    drop(owner);
    let next = place.node("two").await;
    next.store.reap().await.expect("reaped");
    place.advance(Duration::from_secs(59));
    next.store.adopt(run, next.session).await.expect("nobody else has it");
    let again = next.begin(run, "clean").await;
    assert_eq!((again.at.position, again.at.attempt), (clean.at.position, 2));
    place.advance(Duration::from_secs(1));
    next.promote().await;
    next.finish(&again, canceled(Reason::Canceled)).await;
    assert_eq!(next.status(run).await, RunStatus::Canceled, "for ever is not what a minute is");
}

async fn run_whose_owner_is_gone_cleans_up_nothing(place: Place) {
    let owner = place.node("one").await;
    let run = owner.submit(&flow("", &CLEANS)).await;
    let held = owner.begin(run, "a").await;
    owner.succeed(&held).await;
    drop(owner);
    let person = place.node("two").await;
    person.store.reap().await.expect("reaped");
    assert_eq!(person.cancel(run).await, RunStatus::Canceled, "no process is there that could clean up");
}

async fn clean_up_takes_its_place_under_max_parallel(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("one", "when: always"), ("two", "when: always")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let held = node.begin(run, "a").await;
    node.cancel(run).await;
    assert!(node.take(run, 9).await.is_empty(), "the place is taken until that has stopped");
    node.finish(&held, canceled(Reason::Canceled)).await;
    let one = node.take(run, 9).await;
    assert_eq!(one.len(), 1);
    node.succeed(&one[0]).await;
    let two = node.take(run, 9).await;
    node.succeed(&two[0]).await;
    assert_eq!(node.tasks(run).await, "a canceled (canceled), one succeeded, two succeeded");
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
    let refusal =
        node.store.cancel(unknown, "ada", CancelMode::CleanUp).await.expect_err("there is no such run");
    assert!(matches!(refusal, Error::NoSuchRun { .. }), "{refusal}");
}
