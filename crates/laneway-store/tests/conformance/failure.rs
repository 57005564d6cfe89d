//! R2: what a failed step does to the rest of its run.

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;

use crate::harness::{Place, canceled, failed, flow, for_each_database, succeeded};

for_each_database! {
    halt_lets_what_runs_finish_and_skips_the_rest,
    halt_still_starts_what_accepts_failure,
    halt_retries_nothing_but_clean_up,
    abort_asks_what_runs_to_stop,
    abort_runs_clean_up_afterwards,
    clean_up_of_an_aborted_run_that_is_lost_comes_back,
    continue_skips_only_what_depends_on_the_failure,
    claim_not_yet_started_of_a_halted_run_can_be_given_back,
    run_says_which_step_failed_and_why,
}

const FAN: [(&str, &str); 5] = [
    ("bad", ""),
    ("busy", ""),
    ("behind", "needs: [bad]"),
    ("beside", "needs: [busy]"),
    ("clean", "needs: [bad, busy], when: all_done"),
];

async fn halt_lets_what_runs_finish_and_skips_the_rest(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: halt", &FAN)).await;
    let (bad, busy) = (node.begin(run, "bad").await, node.begin(run, "busy").await);
    node.fail(&bad).await;
    let expected =
        "bad failed (exit), busy running, behind skipped (halted), beside skipped (halted), clean pending";
    assert_eq!(node.tasks(run).await, expected);
    assert!(node.stops().await.is_empty(), "halt stops nothing");
    node.succeed(&busy).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["clean"]);
    let state = node.state(run).await;
    assert_eq!(state.status, RunStatus::Failed);
    assert_eq!(state.reason.as_deref(), Some("bad failed: exit code 1"));
}

async fn halt_still_starts_what_accepts_failure(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("bad", ""),
        ("free", ""),
        ("free_too", "when: always"),
        ("done", "needs: [bad], when: all_done"),
        ("always", "needs: [bad], when: always"),
        ("one_failed", "needs: [bad, free], when: one_failed"),
        ("all_failed", "needs: [bad], when: all_failed"),
        ("one_ok", "needs: [bad, free], when: one_succeeded"),
        ("after", "needs: [done]"),
        ("after_always", "needs: [after], when: always"),
    ];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    let order = node.work(run, |step| if step == "bad" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["bad", "free_too", "done", "always", "one_failed", "all_failed", "after_always"]);
    for step in ["free", "one_ok", "after"] {
        assert_eq!(node.task(run, step).await.reason, Some(Reason::Halted), "{step}");
    }
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn halt_retries_nothing_but_clean_up(place: Place) {
    let node = place.node("one").await;
    let again = "retry: {max: 1, backoff: 0s}";
    let steps = [
        ("bad", ""),
        ("busy", again),
        ("waiting", again),
        ("clean", &*format!("needs: [bad], when: always, {again}")),
    ];
    let run = node.submit(&flow("", &steps)).await;
    let held =
        [node.begin(run, "bad").await, node.begin(run, "busy").await, node.begin(run, "waiting").await];
    node.fail(&held[2]).await;
    assert_eq!(node.task(run, "waiting").await.status, TaskStatus::Available);
    node.fail(&held[0]).await;
    assert_eq!(node.task(run, "waiting").await.reason, Some(Reason::Halted));
    node.fail(&held[1]).await;
    assert_eq!(node.task(run, "busy").await.status, TaskStatus::Failed);
    assert_eq!(node.work(run, |_| failed(1)).await, ["clean", "clean"]);
}

async fn abort_asks_what_runs_to_stop(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: abort", &FAN)).await;
    let (bad, busy) = (node.begin(run, "bad").await, node.begin(run, "busy").await);
    let answer = node.finish_with(&bad, failed(1)).await;
    assert_eq!(answer.stops.len(), 1, "the answer already says what to stop");
    assert_eq!((answer.stops[0].claim, answer.stops[0].reason), (busy.at, Reason::Aborted));
    assert_eq!(node.stops().await, answer.stops);
    assert_eq!(node.finish(&busy, canceled(Reason::Aborted)).await, Fate::Recorded);
    assert!(node.stops().await.is_empty());
    assert_eq!(node.work(run, |_| succeeded()).await, ["clean"]);
    let expected = "bad failed (exit), busy canceled (aborted), behind skipped (halted), \
                    beside skipped (halted), clean succeeded";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn abort_runs_clean_up_afterwards(place: Place) {
    let node = place.node("one").await;
    let steps = [("bad", ""), ("clean", "needs: [bad], when: always"), ("last", "needs: [clean]")];
    let run = node.submit(&flow("on_failure: abort", &steps)).await;
    let order = node.work(run, |step| if step == "bad" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["bad", "clean"]);
    assert!(node.stops().await.is_empty());
}

async fn clean_up_of_an_aborted_run_that_is_lost_comes_back(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let steps = [("bad", ""), ("busy", ""), ("clean", "needs: [bad], when: always")];
    let run = node.submit(&flow("on_failure: abort", &steps)).await;
    let bad = node.begin(run, "bad").await;
    dying.begin(run, "busy").await;
    node.fail(&bad).await;
    dying.begin(run, "clean").await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    crate::audit::check(&*node.store, run).await;
    // `busy` was to be stopped, and it is; nobody asked `clean` to stop, so it has yet to run.
    assert_eq!(node.tasks(run).await, "bad failed (exit), busy canceled (aborted), clean available");
}

async fn continue_skips_only_what_depends_on_the_failure(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: continue", &FAN)).await;
    let order = node.work(run, |step| if step == "bad" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["bad", "busy", "beside", "clean"]);
    let expected =
        "bad failed (exit), busy succeeded, behind skipped (upstream), beside succeeded, clean succeeded";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn claim_not_yet_started_of_a_halted_run_can_be_given_back(place: Place) {
    let node = place.node("one").await;
    let steps = [("bad", ""), ("busy", ""), ("clean", "needs: [busy], when: always")];
    let run = node.submit(&flow("", &steps)).await;
    let bad = node.begin(run, "bad").await;
    let busy = node.take(run, 1).await.remove(0);
    node.fail(&bad).await;
    assert_eq!(node.give_back(&busy).await, Fate::Recorded);
    let expected = "bad failed (exit), busy skipped (halted), clean available";
    assert_eq!(node.tasks(run).await, expected, "it does not wait for ever");
}

async fn run_says_which_step_failed_and_why(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("on_failure: continue", &[("a", ""), ("b", ""), ("c", "")])).await;
    node.work(run, |step| if step == "a" { succeeded() } else { failed(4) }).await;
    let state = node.state(run).await;
    assert_eq!(state.reason.as_deref(), Some("b failed: exit code 4 (and 1 more failed)"));
}
