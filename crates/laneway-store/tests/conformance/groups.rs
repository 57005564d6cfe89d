//! P1 in the store: what a member's end means for its group, places in a group, and the events of its lane.

use std::collections::BTreeSet;

use laneway_core::event::Fact;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use serde_json::json;

use crate::harness::{
    Node, Place, canceled, failed, flow, for_each_database, names, succeeded, succeeded_with,
};

for_each_database! {
    first_failure_of_a_strict_group_cancels_its_other_members,
    strict_failure_in_a_run_that_goes_on_ends_the_group_and_nothing_else,
    claim_ahead_of_a_group_that_failed_is_canceled_when_it_comes_back,
    member_that_was_asked_to_stop_is_not_tried_again,
    lost_member_of_a_failed_group_is_canceled,
    failure_in_a_lenient_group_neither_halts_nor_fails_the_run,
    lenient_group_whose_members_never_ran_is_not_merged,
    member_left_out_by_its_own_condition_keeps_nobody_from_merging,
    result_that_says_it_failed_is_a_failure_of_the_member,
    output_of_a_step_without_a_group_may_say_what_it_likes,
    halted_run_merges_nothing,
    group_lets_only_so_many_members_at_once,
    place_in_a_group_goes_to_the_next_when_its_taker_has_to_wait_for_a_key,
    members_that_wait_for_their_group_are_never_claimed_ahead,
    retry_runs_the_failed_members_and_the_merge_again,
    whoever_needs_a_member_does_not_wait_for_the_group,
    lane_is_told_once_and_again_when_it_is_run_again,
    result_of_a_group_opens_conditions_behind_it,
    skipped_member_lets_its_group_go_on,
}

const THREE: [(&str, &str); 4] = [("a", ""), ("b", ""), ("c", ""), ("after", "needs: [g]")];

fn grouped(head: &str, steps: &[(&str, &str)], group: &str) -> String {
    format!("{}groups: {{g: {{{group}}}}}\n", flow(head, steps))
}

/// The lanes and merges of a run's history.
async fn told(node: &Node, run: laneway_core::id::RunId) -> Vec<String> {
    let one = |fact: &Fact| match fact {
        Fact::LaneStarted(lane) => Some(format!("{} begins: {}", lane.lane, lane.steps.join(" "))),
        Fact::LaneFinished(lane) => {
            let results = lane.results.iter().map(|result| format!("{} {}", result.step, result.status));
            Some(format!("{} ends: {}", lane.lane, results.collect::<Vec<_>>().join(", ")))
        }
        Fact::MergeFinished(merge) => {
            Some(format!("{} merged: {} {}", merge.group, merge.files, merge.conflicts.join(" ")))
        }
        _ => None,
    };
    node.events(run).await.iter().filter_map(|event| one(&event.fact)).collect()
}

async fn first_failure_of_a_strict_group_cancels_its_other_members(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&grouped("max_parallel: 2", &THREE, "steps: [a, b, c]")).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    let answer = node.finish_with(&a, failed(1)).await;
    assert_eq!(answer.stops.len(), 1, "who runs is asked to stop at once");
    assert_eq!((answer.stops[0].claim, answer.stops[0].reason), (b.at, Reason::Aborted));
    let expected = "a failed (exit), b running, c canceled (aborted), after skipped (halted), \
                    g/merge skipped (halted)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.task(run, "c").await.detail.as_deref(), Some("`a` of its group `g` failed"));
    assert_eq!(node.finish(&b, canceled(Reason::Aborted)).await, Fate::Recorded);
    assert_eq!(node.task(run, "b").await.detail.as_deref(), Some("`a` of its group `g` failed"));
    let state = node.state(run).await;
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Failed, Some("a failed: exit code 1")));
    let lane = ["g begins: a b c", "g ends: a failed, b canceled, c canceled"];
    assert_eq!(told(&node, run).await, lane);
}

async fn strict_failure_in_a_run_that_goes_on_ends_the_group_and_nothing_else(place: Place) {
    let node = place.node("one").await;
    let steps = [THREE.as_slice(), &[("beside", ""), ("clean", "needs: [g], when: all_done")]].concat();
    let run = node.submit(&grouped("on_failure: continue", &steps, "steps: [a, b, c]")).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    node.fail(&a).await;
    assert_eq!(node.task(run, "g/merge").await.status, TaskStatus::Pending, "one of them still runs");
    node.finish(&b, canceled(Reason::Aborted)).await;
    assert_eq!(
        node.task(run, "g/merge").await.detail.as_deref(),
        Some("a failed, b was canceled, c was canceled")
    );
    assert_eq!(node.work(run, |_| succeeded()).await, ["beside", "clean"]);
    let expected = "a failed (exit), b canceled (aborted), c canceled (aborted), after skipped (upstream), \
                    beside succeeded, clean succeeded, g/merge skipped (upstream)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn claim_ahead_of_a_group_that_failed_is_canceled_when_it_comes_back(place: Place) {
    let node = place.node("one").await;
    let run =
        node.submit(&grouped("max_parallel: 4\non_failure: continue", &THREE, "steps: [a, b, c]")).await;
    let a = node.begin(run, "a").await;
    let held = node.take_ahead(run, 0, 1).await;
    assert_eq!(names(&held), ["b"]);
    node.fail(&a).await;
    assert_eq!(node.stops().await.len(), 1);
    assert_eq!(node.give_back(&held[0]).await, Fate::Recorded);
    let b = node.task(run, "b").await;
    assert_eq!((b.status, b.detail.as_deref()), (TaskStatus::Canceled, Some("`a` of its group `g` failed")));
    assert_eq!(node.status(run).await, RunStatus::Failed, "nothing of it can be claimed any more");
}

async fn member_that_was_asked_to_stop_is_not_tried_again(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", "retry: {max: 3, backoff: 0s}")];
    let run = node.submit(&grouped("on_failure: continue", &steps, "steps: [a, b]")).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    node.fail(&a).await;
    node.fail(&b).await;
    assert_eq!(node.tasks(run).await, "a failed (exit), b failed (exit), g/merge skipped (upstream)");
}

async fn lost_member_of_a_failed_group_is_canceled(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let run = node.submit(&grouped("on_failure: continue", &THREE, "steps: [a, b, c]")).await;
    let a = node.begin(run, "a").await;
    dying.begin(run, "b").await;
    node.fail(&a).await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    crate::audit::check(&*node.store, run).await;
    assert_eq!(node.task(run, "b").await.status, TaskStatus::Canceled);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn failure_in_a_lenient_group_neither_halts_nor_fails_the_run(place: Place) {
    for on_failure in ["halt", "abort", "continue"] {
        let node = place.node("one").await;
        let head = format!("on_failure: {on_failure}\nmax_parallel: 1");
        let run = node.submit(&grouped(&head, &THREE, "steps: [a, b, c], failure: lenient")).await;
        let outcome = |step: &str| if step == "a" { failed(1) } else { succeeded() };
        assert_eq!(node.work(run, outcome).await, ["a", "b", "c", "g/merge", "after"]);
        assert_eq!(node.status(run).await, RunStatus::Succeeded, "{on_failure}");
        let lane = told(&node, run).await;
        assert_eq!(lane[1], "g ends: a failed, b succeeded, c succeeded");
        assert_eq!(lane[2], "g merged: 0 ");
    }
    // What is none of its members fails as ever.
    let node = place.node("two").await;
    let run = node.submit(&grouped("", &THREE, "steps: [a, b], failure: lenient")).await;
    node.work(run, |step| if step == "a" || step == "c" { failed(1) } else { succeeded() }).await;
    let state = node.state(run).await;
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Failed, Some("c failed: exit code 1")));
}

async fn lenient_group_whose_members_never_ran_is_not_merged(place: Place) {
    let node = place.node("one").await;
    let steps = [("first", ""), ("a", "needs: [first]"), ("b", "needs: [first]"), ("after", "needs: [g]")];
    let run = node.submit(&grouped("on_failure: continue", &steps, "steps: [a, b], failure: lenient")).await;
    node.work(run, |_| failed(1)).await;
    let expected = "first failed (exit), a skipped (upstream), b skipped (upstream), after skipped (upstream), \
                    g/merge skipped (upstream)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(told(&node, run).await, Vec::<String>::new(), "nothing of the lane has started");
}

async fn member_left_out_by_its_own_condition_keeps_nobody_from_merging(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", "if: 1 > 2"), ("after", "needs: [g]")];
    let run = node.submit(&grouped("", &steps, "steps: [a, b]")).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a", "g/merge", "after"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn result_that_says_it_failed_is_a_failure_of_the_member(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 0s}"), ("b", "")];
    let run = node.submit(&grouped("max_parallel: 1", &steps, "steps: [a, b], failure: lenient")).await;
    let said = |step: &str| match step {
        "a" => succeeded_with(json!({"success": false, "found": 3})),
        _ => succeeded_with(json!({"success": "true"})),
    };
    assert_eq!(node.work(run, said).await, ["a", "b", "a", "g/merge"], "it is tried again like any failure");
    let a = node.task(run, "a").await;
    assert_eq!((a.status, a.reason), (TaskStatus::Failed, Some(Reason::Error)));
    assert_eq!(a.detail.as_deref(), Some("its output says `success: false`"));
    assert_eq!(a.output.get("found"), Some(&json!(3)), "what it put out is there for the merge");
}

async fn output_of_a_step_without_a_group_may_say_what_it_likes(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "")])).await;
    node.work(run, |_| succeeded_with(json!({"success": false}))).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn halted_run_merges_nothing(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("bad", "")];
    let run = node.submit(&grouped("", &steps, "steps: [a, b], failure: lenient")).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    let bad = node.begin(run, "bad").await;
    node.fail(&bad).await;
    node.succeed(&a).await;
    node.succeed(&b).await;
    assert_eq!(
        node.tasks(run).await,
        "a succeeded, b succeeded, bad failed (exit), g/merge skipped (halted)"
    );
}

async fn group_lets_only_so_many_members_at_once(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", ""), ("d", ""), ("free", "")];
    let run = node.submit(&grouped("max_parallel: 4", &steps, "steps: [a, b, c, d], max_parallel: 2")).await;
    let held = node.take(run, 9).await;
    assert_eq!(names(&held), ["a", "b", "free"], "what is none of its members goes past them");
    let why = "waits for a place in its group `g`: max_parallel is 2 and a, b hold it";
    assert_eq!((node.why(run, "c").await, node.why(run, "d").await), (why.into(), why.into()));
    for held in &held {
        assert_eq!(node.start(held).await, Fate::Recorded);
    }
    node.succeed(&held[2]).await;
    assert!(node.take(run, 9).await.is_empty(), "a place in the run is none in the group");
    node.succeed(&held[0]).await;
    let c = node.take(run, 9).await;
    assert_eq!(names(&c), ["c"]);
    node.give_back(&c[0]).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["c", "d"], "b still runs");
    node.succeed(&held[1]).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["g/merge"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn place_in_a_group_goes_to_the_next_when_its_taker_has_to_wait_for_a_key(place: Place) {
    let node = place.node("one").await;
    let holder = node.submit(&flow("", &[("holds", "lock: k")])).await;
    let holds = node.begin(holder, "holds").await;
    let steps = [("a", ""), ("b", "lock: k"), ("c", "")];
    let run = node.submit(&grouped("", &steps, "steps: [a, b, c], max_parallel: 1")).await;
    let a = node.begin(run, "a").await;
    node.succeed(&a).await;
    let c = node.begin(run, "c").await;
    assert!(node.why(run, "b").await.starts_with("waits for the lock `k`"));
    node.succeed(&holds).await;
    assert_eq!(
        node.why(run, "b").await,
        "waits for a place in its group `g`: max_parallel is 1 and c holds it",
        "a key that is free is no place"
    );
    node.succeed(&c).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "g/merge"]);
}

async fn members_that_wait_for_their_group_are_never_claimed_ahead(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("c", "")];
    let run = node.submit(&grouped("max_parallel: 1", &steps, "steps: [a, b, c], max_parallel: 1")).await;
    assert_eq!(names(&node.take_ahead(run, 1, 5).await), ["a"]);
}

async fn retry_runs_the_failed_members_and_the_merge_again(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&grouped("max_parallel: 1", &THREE, "steps: [a, b, c]")).await;
    assert_eq!(node.work(run, |step| if step == "b" { failed(1) } else { succeeded() }).await, ["a", "b"]);
    let again = node.retry(run, None).await.expect("a retry");
    assert_eq!(again, ["b", "c", "after", "g/merge"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c", "g/merge", "after"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    // From a member on: whatever stands behind it, so the merge too.
    assert_eq!(node.retry(run, Some("a")).await.expect("a retry"), ["a", "after", "g/merge"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["a", "g/merge", "after"]);
}

async fn whoever_needs_a_member_does_not_wait_for_the_group(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", ""), ("of_a", "needs: [a]"), ("after", "needs: [g]")];
    let run = node.submit(&grouped("", &steps, "steps: [a, b]")).await;
    let (a, b) = (node.begin(run, "a").await, node.begin(run, "b").await);
    node.succeed(&a).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["of_a"]);
    assert_eq!(node.why(run, "after").await, "waits for g/merge (pending)");
    node.succeed(&b).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["g/merge", "after"]);
}

async fn lane_is_told_once_and_again_when_it_is_run_again(place: Place) {
    let node = place.node("one").await;
    let steps =
        [("first", ""), ("a", "needs: [first], retry: {max: 1, backoff: 0s}"), ("b", "needs: [first]")];
    let run = node.submit(&grouped("max_parallel: 1", &steps, "steps: [b, a]")).await;
    node.succeed(&node.begin(run, "first").await).await;
    node.fail(&node.begin(run, "a").await).await;
    node.work(run, |_| succeeded()).await;
    let once = ["g begins: b a", "g ends: b succeeded, a succeeded", "g merged: 0 "];
    assert_eq!(told(&node, run).await, once);
    node.retry(run, Some("first")).await.expect("a retry");
    node.work(run, |_| succeeded()).await;
    assert_eq!(told(&node, run).await, [once, once].concat());
}

async fn result_of_a_group_opens_conditions_behind_it(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("yes", "needs: [g], if: groups.g.result.n == 2 and groups.g.status == 'succeeded'"),
        ("no", "needs: [g], if: groups.g.result.n == 3"),
    ];
    let run = node.submit(&grouped("", &steps, "steps: [a]")).await;
    let outcome = |step: &str| if step == "g/merge" { succeeded_with(json!({"n": 2})) } else { succeeded() };
    let ran: BTreeSet<String> = node.work(run, outcome).await.into_iter().collect();
    assert_eq!(ran, ["a", "g/merge", "yes"].map(str::to_owned).into());
    assert_eq!(node.task(run, "no").await.reason, Some(Reason::Condition));
}

async fn skipped_member_lets_its_group_go_on(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&grouped("max_parallel: 1", &THREE, "steps: [a, b, c]")).await;
    assert_eq!(node.work(run, |_| failed(1)).await, ["a"]);
    assert_eq!(node.skip(run, "a").await.expect("a skip"), ["b", "c", "after", "g/merge"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b", "c", "g/merge", "after"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}
