//! R5: the rule on predecessors, and conditions.

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use serde_json::json;

use crate::harness::{Node, Place, failed, flow, for_each_database, names, succeeded, succeeded_with};

for_each_database! {
    every_rule_opens_or_skips_as_its_name_says,
    rules_that_can_be_decided_early_are,
    rule_sees_a_skipped_predecessor_as_neither_succeeded_nor_failed,
    step_whose_condition_is_false_is_skipped,
    condition_is_asked_only_after_the_needs_are_met,
    condition_reads_outputs_and_statuses_of_steps,
    condition_that_cannot_be_evaluated_opens_for_its_holder_to_fail,
    dependents_of_a_skipped_step_follow_their_own_rule,
}

/// How a step with this rule stands once `a` and `b` have ended.
async fn ends(node: &Node, when: &str, a_succeeds: bool, b_succeeds: bool) -> TaskStatus {
    let steps = [("a", ""), ("b", ""), ("x", &*format!("needs: [a, b], when: {when}"))];
    let run = node.submit(&flow("on_failure: continue", &steps)).await;
    let outcome = |step: &str| match step {
        "a" if !a_succeeds => failed(1),
        "b" if !b_succeeds => failed(1),
        _ => succeeded(),
    };
    node.work(run, outcome).await;
    node.task(run, "x").await.status
}

async fn every_rule_opens_or_skips_as_its_name_says(place: Place) {
    use TaskStatus::{Skipped, Succeeded};
    let node = place.node("one").await;
    //                      both succeed, one fails, both fail
    let table = [
        ("all_succeeded", [Succeeded, Skipped, Skipped]),
        ("all_done", [Succeeded, Succeeded, Succeeded]),
        ("always", [Succeeded, Succeeded, Succeeded]),
        ("all_failed", [Skipped, Skipped, Succeeded]),
        ("one_succeeded", [Succeeded, Succeeded, Skipped]),
        ("one_failed", [Skipped, Succeeded, Succeeded]),
    ];
    for (when, expected) in table {
        let found = [
            ends(&node, when, true, true).await,
            ends(&node, when, true, false).await,
            ends(&node, when, false, false).await,
        ];
        assert_eq!(found, expected, "{when}");
    }
}

async fn rules_that_can_be_decided_early_are(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("b", ""),
        ("one_ok", "needs: [a, b], when: one_succeeded"),
        ("one_bad", "needs: [a, b], when: one_failed"),
        ("all_ok", "needs: [a, b]"),
        ("all_bad", "needs: [a, b], when: all_failed"),
        ("done", "needs: [a, b], when: all_done"),
    ];
    let document = flow("on_failure: continue\nmax_parallel: 9", &steps);
    let run = node.submit(&document).await;
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    let shown = node.tasks(run).await;
    assert_eq!(
        shown,
        "a succeeded, b available, one_ok available, one_bad pending, all_ok pending, \
         all_bad skipped (upstream), done pending"
    );
    let run = node.submit(&document).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    let shown = node.tasks(run).await;
    assert_eq!(
        shown,
        "a failed (exit), b available, one_ok pending, one_bad available, all_ok skipped (upstream), \
         all_bad pending, done pending"
    );
    assert_eq!(node.task(run, "all_ok").await.detail.as_deref(), Some("a failed"));
}

async fn rule_sees_a_skipped_predecessor_as_neither_succeeded_nor_failed(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", "if: \"${{ false }}\""),
        ("succeeded", "needs: [a]"),
        ("failed", "needs: [a], when: all_failed"),
        ("one_failed", "needs: [a], when: one_failed"),
        ("one_succeeded", "needs: [a], when: one_succeeded"),
        ("done", "needs: [a], when: all_done"),
    ];
    let run = node.submit(&flow("", &steps)).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["done"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn step_whose_condition_is_false_is_skipped(place: Place) {
    let node = place.node("one").await;
    let document = flow(
        "params: {depth: {type: integer, default: 1}}",
        &[("a", "if: \"${{ params.depth > 1 }}\""), ("b", "")],
    );
    let run = node.submit(&document).await;
    assert_eq!(node.tasks(run).await, "a skipped (condition), b available");
    let run = node.submit_with(&document, json!({"depth": 2})).await;
    assert_eq!(node.tasks(run).await, "a available, b available");
}

async fn condition_is_asked_only_after_the_needs_are_met(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", "needs: [a], if: \"${{ false }}\"")];
    let run = node.submit(&flow("on_failure: continue", &steps)).await;
    assert_eq!(node.task(run, "b").await.status, TaskStatus::Pending);
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.task(run, "b").await.reason, Some(Reason::Upstream), "needs come before the condition");
}

async fn condition_reads_outputs_and_statuses_of_steps(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", ""),
        ("more", "needs: [a], if: \"${{ steps.a.output.n > 2 }}\""),
        ("less", "needs: [a], if: \"${{ steps.a.output.n <= 2 }}\""),
        ("ok", "needs: [a], when: always, if: \"${{ steps.a.status == 'succeeded' }}\""),
    ];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.finish(&held, succeeded_with(json!({"n": 3}))).await;
    assert_eq!(node.tasks(run).await, "a succeeded, more available, less skipped (condition), ok available");
    let scope = node.store.scope(run, &["a"]).await.expect("a scope");
    assert_eq!(scope["steps"]["a"], json!({"status": "succeeded", "output": {"n": 3}}));
    assert_eq!(scope["run"]["id"], run.to_string());
}

async fn condition_that_cannot_be_evaluated_opens_for_its_holder_to_fail(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", ""), ("b", "needs: [a], if: \"${{ steps.a.output.missing > 2 }}\"")];
    let run = node.submit(&flow("", &steps)).await;
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    assert_eq!(names(&node.take(run, 1).await), ["b"]);
}

async fn dependents_of_a_skipped_step_follow_their_own_rule(place: Place) {
    let node = place.node("one").await;
    let steps = [
        ("a", "if: \"${{ false }}\""),
        ("b", "needs: [a]"),
        ("c", "needs: [b]"),
        ("d", "needs: [c], when: always"),
        ("e", "needs: [d]"),
    ];
    let run = node.submit(&flow("", &steps)).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["d", "e"]);
    let expected =
        "a skipped (condition), b skipped (upstream), c skipped (upstream), d succeeded, e succeeded";
    assert_eq!(node.tasks(run).await, expected);
}
