//! Failed items of `for_each`: `fail_fast`, retries, and steps that a person lets pass.

use std::time::Duration;

use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Error;
use laneway_store::model::{Reopen, RunFilter};
use serde_json::{Value, json};

use crate::harness::{Node, Place, canceled, failed, for_each_database, names, succeeded, succeeded_with};

use crate::growth::{BEHIND, COUNTED, MANY, THREE, doc, finish_all};

for_each_database! {
    failed_item_fails_the_step_when_the_others_have_ended,
    fail_fast_ends_the_others,
    fail_fast_holds_after_a_retry_from_an_item,
    fail_fast_holds_after_a_skip_of_an_item,
    skipped_item_brings_no_others_back_while_another_has_failed,
    retry_from_elsewhere_leaves_what_fail_fast_has_ended,
    step_that_fails_when_it_is_reopened_halts_the_items_of_others,
    item_is_tried_again_as_its_step_says,
    retry_runs_only_the_items_that_did_not_succeed,
    retry_from_the_step_makes_its_list_anew,
    retry_from_before_the_step_takes_a_new_list,
    retry_from_an_item_runs_that_item,
    item_can_be_skipped,
    step_with_failed_items_can_be_skipped,
    items_of_a_step_that_is_let_pass_stay_as_they_are,
    retry_leaves_steps_alone_whose_items_were_skipped,
    retry_after_a_cancel_goes_on_where_the_list_was,
}

const FAST: (&str, &str) = ("each", "run: x, for_each: [a, b, c, d], fail_fast: true");

async fn failed_item_fails_the_step_when_the_others_have_ended(place: Place) {
    let node = place.node("one").await;
    let run =
        node.submit(&doc("", &[THREE, BEHIND, ("beside", "run: x, needs: [each], when: always")])).await;
    let order = node.work(run, |step| if step == "each[0]" { failed(3) } else { succeeded() }).await;
    assert_eq!(order, ["each[0]", "each[1]", "each[2]", "beside"], "the others run all the same");
    let each = node.task(run, "each").await;
    assert_eq!((each.status, each.reason), (TaskStatus::Failed, Some(Reason::Items)));
    assert_eq!(each.detail.as_deref(), Some("1 of 3 items failed, `each[0]` first: exit code 3"));
    let state = node.state(run).await;
    assert_eq!(state.status, RunStatus::Failed);
    assert_eq!(
        state.reason.as_deref(),
        Some("each failed: 1 of 3 items failed, `each[0]` first: exit code 3"),
        "its items are not counted beside it"
    );
    assert_eq!(node.task(run, "behind").await.status, TaskStatus::Skipped);
    let newest = RunFilter { limit: 1, ..RunFilter::default() };
    let listed = node.store.runs(newest).await.expect("a list").remove(0);
    let failures = listed.counts.iter().find(|(status, _)| *status == TaskStatus::Failed);
    assert_eq!(failures, Some(&(TaskStatus::Failed, 1)), "a list counts the failure once");
    assert_eq!(listed.first_task_at, node.view(run).await.first_task_at);
}

async fn fail_fast_ends_the_others(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: \"${{ 1100 | range }}\", fail_fast: true");
    let run = node.submit(&doc("max_parallel: 3\non_failure: continue", &[each, ("beside", "run: x")])).await;
    let held = node.take(run, 3).await;
    assert_eq!(names(&held), ["beside", "each[0]", "each[1]"]);
    node.start(&held[2]).await;
    node.fail(&held[1]).await;
    let stops = node.stops().await;
    assert_eq!(
        stops.iter().map(|stop| (stop.claim, stop.reason)).collect::<Vec<_>>(),
        [(held[2].at, Reason::Aborted)]
    );
    let waiting = node.task(run, "each[2]").await;
    assert_eq!((waiting.status, waiting.reason), (TaskStatus::Canceled, Some(Reason::Aborted)));
    assert_eq!(waiting.detail.as_deref(), Some("`each[0]` failed, and `fail_fast` ends the others"));
    assert_eq!(node.task(run, "each").await.status, TaskStatus::Parked, "one still runs");
    node.finish(&held[2], canceled(Reason::Aborted)).await;
    let each = node.task(run, "each").await;
    assert_eq!((each.status, each.reason), (TaskStatus::Failed, Some(Reason::Items)));
    assert_eq!(each.detail.as_deref(), Some("1 of 1100 items failed, `each[0]` first: exit code 1"));
    // All that did not succeed runs again, and the rest of the list with it.
    node.succeed(&held[0]).await;
    node.retry(run, None).await.expect("a retry");
    let mut ran = 0;
    loop {
        let held = node.take(run, 100).await;
        if held.is_empty() {
            break;
        }
        ran += held.len();
        finish_all(&node, run, &held).await;
    }
    assert_eq!((ran, node.status(run).await), (1100, RunStatus::Succeeded));
}

async fn fail_fast_holds_after_a_retry_from_an_item(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 1", &[FAST])).await;
    assert_eq!(node.work(run, |_| failed(1)).await, ["each[0]"]);
    // What has failed beside it goes with it: none of them would get far otherwise.
    let opened = node.retry(run, Some("each[1]")).await.expect("a retry");
    assert_eq!(opened, ["each", "each[0]", "each[1]", "each[2]", "each[3]"]);
    let order = node.work(run, |step| if step == "each[1]" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["each[0]", "each[1]"]);
    let expected = "each failed (items), each[0] succeeded, each[1] failed (exit), each[2] canceled (aborted), each[3] canceled (aborted)";
    assert_eq!(node.tasks(run).await, expected);
}

async fn fail_fast_holds_after_a_skip_of_an_item(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 1", &[FAST])).await;
    node.work(run, |_| failed(1)).await;
    assert_eq!(node.skip(run, "each[0]").await.expect("a skip"), ["each", "each[1]", "each[2]", "each[3]"]);
    assert_eq!(node.work(run, |_| failed(1)).await, ["each[1]"]);
    let expected = "each failed (items), each[0] skipped (skipped_by_person), each[1] failed (exit), each[2] canceled (aborted), each[3] canceled (aborted)";
    assert_eq!(node.tasks(run).await, expected);
    let detail = node.task(run, "each[2]").await.detail;
    assert_eq!(detail.as_deref(), Some("`each[1]` failed, and `fail_fast` ends the others"));
}

async fn skipped_item_brings_no_others_back_while_another_has_failed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 2", &[FAST])).await;
    for held in node.take(run, 2).await {
        node.start(&held).await;
        node.fail(&held).await;
    }
    assert_eq!(node.skip(run, "each[1]").await.expect("a skip"), ["each"]);
    let each = node.task(run, "each").await;
    assert_eq!(each.detail.as_deref(), Some("1 of 4 items failed, `each[0]` first: exit code 1"));
    assert_eq!(node.task(run, "each[2]").await.status, TaskStatus::Canceled);
    assert_eq!(node.status(run).await, RunStatus::Failed);
    assert_eq!(node.skip(run, "each[0]").await.expect("a skip"), ["each", "each[2]", "each[3]"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[2]", "each[3]"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_elsewhere_leaves_what_fail_fast_has_ended(place: Place) {
    let node = place.node("one").await;
    let text = doc("max_parallel: 1\non_failure: continue", &[FAST, ("beside", "run: x")]);
    let run = node.submit(&text).await;
    node.work(run, |_| failed(1)).await;
    assert_eq!(node.retry(run, Some("beside")).await.expect("a retry"), ["beside"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["beside"]);
    assert_eq!(node.status(run).await, RunStatus::Failed);
    assert_eq!(node.retry(run, None).await.expect("a retry").len(), 5);
}

async fn step_that_fails_when_it_is_reopened_halts_the_items_of_others(place: Place) {
    let node = place.node("one").await;
    let (bad, more) = (("bad", "run: x, for_each: [a, b]"), ("more", "run: x, for_each: [a, b]"));
    let run = node.submit(&doc("max_parallel: 3", &[bad, more])).await;
    let held = node.take(run, 3).await;
    assert_eq!(names(&held), ["bad[0]", "bad[1]", "more[0]"]);
    node.fail(&held[0]).await;
    node.fail(&held[1]).await;
    node.succeed(&held[2]).await;
    let expected = "bad failed (items), more canceled (halted), bad[0] failed (exit), bad[1] failed (exit), more[0] succeeded, more[1] skipped (halted)";
    assert_eq!(node.tasks(run).await, expected);
    node.skip(run, "bad[1]").await.expect("a skip");
    assert_eq!(
        node.tasks(run).await,
        expected.replace("bad[1] failed (exit)", "bad[1] skipped (skipped_by_person)")
    );
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn item_is_tried_again_as_its_step_says(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [a, b], retry: {max: 1, backoff: 1s}");
    let run = node.submit(&doc("", &[each])).await;
    let held = node.take(run, 2).await;
    node.fail(&held[0]).await;
    node.succeed(&held[1]).await;
    assert_eq!(node.tasks(run).await, "each parked, each[0] pending (exit), each[1] succeeded");
    place.advance(Duration::from_secs(2));
    node.promote().await;
    let again = node.take(run, 2).await;
    assert_eq!((names(&again), again[0].at.attempt), (vec!["each[0]"], 2));
    node.fail(&again[0]).await;
    assert_eq!(node.status(run).await, RunStatus::Failed, "once more, and no more");
}

async fn retry_runs_only_the_items_that_did_not_succeed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("first", "run: x"), THREE, BEHIND])).await;
    node.work(run, |step| match step {
        "each[1]" => failed(1),
        _ => succeeded_with(json!({ "of": step })),
    })
    .await;
    assert_eq!(node.status(run).await, RunStatus::Failed);
    let opened = node.retry(run, None).await.expect("a retry");
    assert_eq!(opened, ["each", "behind", "each[1]"]);
    assert_eq!(node.task(run, "each[0]").await.status, TaskStatus::Succeeded);
    let order = node.work(run, |step| succeeded_with(json!({ "again": step }))).await;
    assert_eq!(order, ["each[1]", "behind"]);
    let scope = node.store.scope(run, &["each"]).await.expect("a scope");
    assert_eq!(
        scope["steps"]["each"]["output"],
        json!([{ "of": "each[0]" }, { "again": "each[1]" }, { "of": "each[2]" }])
    );
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_the_step_makes_its_list_anew(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[THREE, BEHIND])).await;
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.retry(run, Some("each")).await.expect("a retry"), ["each", "behind"]);
    assert_eq!(
        node.tasks(run).await,
        "each parked, behind pending, each[0] available, each[1] available, each[2] available"
    );
    let held = node.take(run, 9).await;
    assert_eq!(
        held.iter().map(|held| held.at.attempt).collect::<Vec<_>>(),
        [2, 2, 2],
        "numbers never go back"
    );
    for held in &held {
        node.succeed(held).await;
    }
    assert_eq!(node.work(run, |_| succeeded()).await, ["behind"]);
    assert_eq!(node.attempts(run, "each[2]").await.len(), 2);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_before_the_step_takes_a_new_list(place: Place) {
    let node = place.node("one").await;
    let each = "run: x, needs: [find], for_each: \"${{ steps.find.output.files }}\"";
    let run = node.submit(&doc("", &[("find", "run: x"), ("each", each), BEHIND])).await;
    let files = |files: Value| {
        move |step: &str| match step {
            "find" => succeeded_with(json!({ "files": files.clone() })),
            _ => succeeded(),
        }
    };
    node.work(run, files(json!(["a", "b", "c"]))).await;
    node.retry(run, Some("find")).await.expect("a retry");
    assert_eq!(node.tasks(run).await, "find available, each pending, behind pending", "its items are gone");
    assert_eq!(node.work(run, files(json!(["z"]))).await, ["find", "each[0]", "behind"]);
    let item = node.task(run, "each[0]").await;
    assert_eq!((item.attempt, item.item.map(|item| item.value)), (2, Some(json!("z"))));
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_from_an_item_runs_that_item(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[THREE, BEHIND])).await;
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.retry(run, Some("each[1]")).await.expect("a retry"), ["each", "behind", "each[1]"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[1]", "behind"]);
    let refused =
        node.store.retry(run, Reopen::now(Some("each[3]")), "ada").await.expect_err("there is none");
    assert!(matches!(refused, Error::NoSuchStep { .. }), "{refused}");
}

async fn item_can_be_skipped(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[THREE, BEHIND])).await;
    node.work(run, |step| if step == "each[2]" { succeeded() } else { failed(1) }).await;
    assert_eq!(node.skip(run, "each[0]").await.expect("a skip"), ["each", "behind"]);
    let each = node.task(run, "each").await;
    assert_eq!(each.detail.as_deref(), Some("1 of 3 items failed, `each[1]` first: exit code 1"));
    assert_eq!(node.status(run).await, RunStatus::Failed, "another one has failed");
    node.skip(run, "each[1]").await.expect("a skip");
    assert_eq!(node.task(run, "each").await.status, TaskStatus::Succeeded);
    assert_eq!(node.work(run, |_| succeeded()).await, ["behind"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn step_with_failed_items_can_be_skipped(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[THREE, BEHIND])).await;
    node.work(run, |_| failed(1)).await;
    assert_eq!(node.skip(run, "each").await.expect("a skip"), ["behind"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["behind"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn items_of_a_step_that_is_let_pass_stay_as_they_are(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let each = ("each", "run: x, for_each: [a, b, c], max_parallel: 1, fail_fast: true");
    let run = node.submit(&doc("", &[each, BEHIND])).await;
    let held = node.take(run, 1).await.remove(0);
    node.fail(&held).await;
    assert_eq!(node.skip(run, "each").await.expect("a skip"), ["behind"]);
    let held = node.take(run, 9).await;
    assert_eq!(names(&held), ["behind"], "nothing of what was let pass runs");
    node.succeed(&held[0]).await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn retry_leaves_steps_alone_whose_items_were_skipped(place: Place) {
    let node = Node::register(place.open(), "one").await;
    let each = ("each", "run: x, for_each: [1, 2], if: \"${{ item > 1 }}\"");
    let run = node.submit(&doc("", &[each, BEHIND, ("last", "run: x, needs: [behind]")])).await;
    for _ in 0..2 {
        let held = node.take(run, 1).await.remove(0);
        node.succeed(&held).await;
    }
    let held = node.take(run, 1).await.remove(0);
    node.fail(&held).await;
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["last"]);
}

async fn retry_after_a_cancel_goes_on_where_the_list_was(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc(COUNTED, &[("each", MANY)])).await;
    let held = node.take(run, 100).await;
    finish_all(&node, run, &held).await;
    node.cancel(run).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    node.retry(run, None).await.expect("a retry");
    let mut ran = 0;
    loop {
        let held = node.take(run, 100).await;
        if held.is_empty() {
            break;
        }
        ran += held.len();
        finish_all(&node, run, &held).await;
    }
    assert_eq!((ran, node.status(run).await), (1134, RunStatus::Succeeded));
}
