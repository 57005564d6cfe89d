//! R9 in the store: a step with `for_each` becomes one task for each item, a batch at a time, and
//! ends with the last of them.

use std::time::Duration;

use laneway_core::event::Fact;
use laneway_core::growth::MAX_OUTPUTS;
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::{Finished, ItemsAsked, Pausable, TaskView};
use laneway_store::{ClaimRef, Error, Fate};
use serde_json::{Value, json};

use crate::audit;
use crate::harness::{
    Held, Node, Place, canceled, failed, for_each_database, left, names, succeeded, succeeded_with,
};

for_each_database! {
    each_item_is_a_task_and_the_step_ends_with_the_last,
    outputs_are_a_list_in_item_order,
    expressions_of_an_item_see_its_value_and_its_index,
    empty_list_succeeds_at_once,
    what_is_no_list_fails_the_step_in_words,
    list_may_be_what_an_earlier_step_found,
    list_may_be_what_the_items_of_another_step_put_out,
    items_come_in_batches_and_few_are_open_at_any_time,
    run_with_many_places_has_items_for_all_of_them,
    items_keep_to_the_places_of_their_step,
    cancel_ends_items_and_those_that_are_to_come,
    timeout_of_the_run_ends_items,
    halt_ends_the_items_of_other_steps,
    clean_up_may_have_items,
    clean_up_with_an_item_that_was_aborted_is_canceled,
    condition_about_items_is_asked_for_each,
    condition_about_the_step_is_asked_once,
    lock_may_be_that_of_an_item,
    lock_that_is_no_key_fails_the_step,
    items_share_the_limit_of_their_step,
    paused_run_starts_no_item,
    item_of_a_dead_node_comes_back,
    item_that_must_not_run_twice_fails_with_its_node,
    claim_of_an_item_that_is_gone_is_lost,
    workers_share_the_items,
    pinned_run_keeps_its_items_on_one_node,
    queued_run_grows_when_it_begins,
    items_wait_in_words,
    items_are_read_a_page_at_a_time_as_their_run_tells_them,
    doctor_finds_nothing_wrong_with_items,
    run_with_items_is_removed_as_a_whole,
    outputs_that_are_too_large_together_are_refused_in_words,
}

pub(crate) fn doc(head: &str, steps: &[(&str, &str)]) -> String {
    let steps: Vec<String> = steps.iter().map(|(name, keys)| format!("  {name}: {{{keys}}}\n")).collect();
    format!("name: flow\n{head}\nsteps:\n{}", steps.concat())
}

pub(crate) const THREE: (&str, &str) = ("each", "run: x, for_each: [a, b, c]");
pub(crate) const BEHIND: (&str, &str) = ("behind", "run: x, needs: [each]");

/// Ends many at once, as a busy node does, and looks at the run afterwards.
pub(crate) async fn finish_all(node: &Node, run: RunId, held: &[Held]) {
    let ends = held.iter().map(|held| Finished::new(held.at, succeeded(), Duration::from_millis(1)));
    let answer = node.store.finish(ends.collect(), None).await.expect("an answer");
    assert!(answer.fates.iter().all(|fate| *fate == Fate::Recorded), "{:?}", answer.fates);
    audit::check(&*node.store, run).await;
}

async fn each_item_is_a_task_and_the_step_ends_with_the_last(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 2", &[THREE, BEHIND])).await;
    assert_eq!(
        node.tasks(run).await,
        "each parked, behind pending, each[0] available, each[1] available, each[2] pending"
    );
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[0]", "each[1]", "each[2]", "behind"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    let each = node.task(run, "each").await;
    assert_eq!((each.status, each.attempt, each.took_ms), (TaskStatus::Succeeded, 0, Some(0)));
    let item = node.task(run, "each[1]").await;
    assert_eq!(item.item.map(|item| (item.of, item.index, item.value)), Some(("each".into(), 1, json!("b"))));
    assert_eq!(node.attempts(run, "each[1]").await.len(), 1);
    assert!(node.attempts(run, "each").await.is_empty(), "nobody ran the step itself");
    let told: Vec<&str> = node.events(run).await.iter().map(|event| event.fact.name()).take(4).collect();
    assert_eq!(told, ["run_submitted", "run_started", "task_parked", "tasks_added"]);
}

async fn outputs_are_a_list_in_item_order(place: Place) {
    let node = place.node("one").await;
    let behind = "run: x, needs: [each], when: all_done, if: \"${{ steps.each.output[0].n == 8 }}\"";
    let run = node.submit(&doc("on_failure: continue", &[THREE, ("behind", behind)])).await;
    let held = node.take(run, 3).await;
    node.start(&held[1]).await;
    node.finish(&held[1], failed(1)).await;
    node.finish(&held[2], succeeded()).await;
    assert_eq!(node.task(run, "behind").await.status, TaskStatus::Pending);
    // What it reads is written in the same transaction.
    node.finish(&held[0], succeeded_with(json!({ "n": 7 }))).await;
    assert_eq!(node.task(run, "behind").await.reason, Some(Reason::Condition), "it was read, and is not 8");
    let scope = node.store.scope(run, &["each"]).await.expect("a scope");
    assert_eq!(scope["steps"]["each"], json!({ "status": "failed", "output": [{ "n": 7 }, null, {}] }));
}

async fn expressions_of_an_item_see_its_value_and_its_index(place: Place) {
    let node = place.node("one").await;
    let list = "run: x, for_each: [{name: a.csv}, null, 3, \"${{ run.workflow }}\"]";
    let run = node.submit(&doc("", &[("each", list)])).await;
    let seen = |step: &'static str| {
        let store = node.store.clone();
        async move {
            let scope = store.scope(run, &[step]).await.expect("a scope");
            (scope["item"].clone(), scope["index"].clone())
        }
    };
    assert_eq!(seen("each[0]").await, (json!({ "name": "a.csv" }), json!(0)));
    assert_eq!(seen("each[1]").await, (Value::Null, json!(1)));
    assert_eq!(seen("each[3]").await, (json!("flow"), json!(3)));
}

async fn empty_list_succeeds_at_once(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("each", "run: x, for_each: []"), BEHIND])).await;
    assert_eq!(node.tasks(run).await, "each succeeded, behind available");
    let scope = node.store.scope(run, &["each"]).await.expect("a scope");
    assert_eq!(scope["steps"]["each"]["output"], json!([]));
    assert_eq!(node.work(run, |_| succeeded()).await, ["behind"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn what_is_no_list_fails_the_step_in_words(place: Place) {
    let node = place.node("one").await;
    let each = "run: x, needs: [find], for_each: \"${{ steps.find.output.files }}\"";
    let run = node.submit(&doc("", &[("find", "run: x"), ("each", each), BEHIND])).await;
    node.work(run, |_| succeeded_with(json!({ "files": "a.csv" }))).await;
    let task = node.task(run, "each").await;
    assert_eq!((task.status, task.reason), (TaskStatus::Failed, Some(Reason::Expression)));
    assert_eq!(task.detail.as_deref(), Some("`for_each` must be a list, and it is a string"));
    let reason = node.state(run).await.reason;
    assert_eq!(reason.as_deref(), Some("each failed: `for_each` must be a list, and it is a string"));
    // Whoever mends what it is made of retries from there.
    node.retry(run, Some("find")).await.expect("a retry");
    node.work(run, |step| match step {
        "find" => succeeded_with(json!({ "files": ["a", "b"] })),
        _ => succeeded(),
    })
    .await;
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn list_may_be_what_an_earlier_step_found(place: Place) {
    let node = place.node("one").await;
    let each = "run: x, needs: [find], for_each: \"${{ steps.find.output.files }}\"";
    let run = node.submit(&doc("", &[("find", "run: x"), ("each", each)])).await;
    assert_eq!(node.tasks(run).await, "find available, each pending");
    let found = |step: &str| match step {
        "find" => succeeded_with(json!({ "files": ["x", "y"] })),
        _ => succeeded(),
    };
    assert_eq!(node.work(run, found).await, ["find", "each[0]", "each[1]"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn list_may_be_what_the_items_of_another_step_put_out(place: Place) {
    let node = place.node("one").await;
    let more = "run: x, needs: [each], for_each: \"${{ steps.each.output }}\"";
    let run = node.submit(&doc("max_parallel: 9", &[THREE, ("more", more)])).await;
    let order = node.work(run, |step| succeeded_with(json!({ "from": step }))).await;
    assert_eq!(order, ["each[0]", "each[1]", "each[2]", "more[0]", "more[1]", "more[2]"]);
    let scope = node.store.scope(run, &["more[2]"]).await.expect("a scope");
    assert_eq!(scope["item"], json!({ "from": "each[2]" }));
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

pub(crate) const MANY: &str = "run: x, for_each: \"${{ params.n | range }}\"";
pub(crate) const COUNTED: &str = "params: {n: {type: integer, default: 1234}}\nmax_parallel: 100";

async fn items_come_in_batches_and_few_are_open_at_any_time(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc(COUNTED, &[("each", MANY), BEHIND])).await;
    let (mut done, mut most) = (0, 0);
    loop {
        let held = node.take(run, 100).await;
        let state = node.state(run).await;
        most = most.max(state.tasks.iter().filter(|task| !task.status.is_final()).count());
        if held.iter().any(|held| held.step == "behind") {
            break;
        }
        done += held.len();
        finish_all(&node, run, &held).await;
    }
    assert_eq!(done, 1234);
    assert!(most <= 1003, "{most} are open at once");
    let added: Vec<(u32, usize)> = node
        .events(run)
        .await
        .into_iter()
        .filter_map(|event| match event.fact {
            Fact::TasksAdded(f) => Some((f.first, f.items.len())),
            _ => None,
        })
        .collect();
    assert_eq!(added, [(0, 500), (500, 500), (1000, 234)]);
    let last = node.task(run, "each[1233]").await;
    assert_eq!(last.item.map(|item| item.value), Some(json!(1233)));
}

async fn run_with_many_places_has_items_for_all_of_them(place: Place) {
    let node = place.node("one").await;
    let wide = "params: {n: {type: integer, default: 3000}}\nmax_parallel: 1200";
    let run = node.submit(&doc(wide, &[("each", MANY)])).await;
    let mut held = node.take(run, 2000).await;
    assert_eq!(held.len(), 1200);
    // Whatever ends, there is another one for its place.
    for _ in 0..9 {
        let rest = held.split_off(held.len() - 200);
        finish_all(&node, run, &rest).await;
        held.extend(node.take(run, 2000).await);
        assert_eq!(held.len(), 1200);
    }
}

async fn items_keep_to_the_places_of_their_step(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [1, 2, 3, 4, 5], max_parallel: 2");
    let run = node.submit(&doc("max_parallel: 4", &[each, ("beside", "run: x")])).await;
    let held = node.take(run, 9).await;
    assert_eq!(names(&held), ["beside", "each[0]", "each[1]"]);
    node.succeed(&held[0]).await;
    assert_eq!(node.take(run, 9).await.len(), 0, "a place in the run is none in the step");
    // The end of one lets the next in, and no other.
    node.succeed(&held[2]).await;
    let next = node.take(run, 9).await;
    assert_eq!(names(&next), ["each[2]"]);
    assert_eq!(
        node.take_ahead(run, 0, 9).await.len(),
        0,
        "who waits for a place in its step is not held ahead"
    );
    node.fail(&next[0]).await;
    node.succeed(&held[1]).await;
    assert_eq!(names(&node.take(run, 9).await), ["each[3]", "each[4]"]);
}

async fn cancel_ends_items_and_those_that_are_to_come(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc(COUNTED, &[("each", MANY), BEHIND])).await;
    let held = node.take(run, 1).await;
    node.start(&held[0]).await;
    node.cancel(run).await;
    assert_eq!(node.task(run, "each").await.status, TaskStatus::Parked, "one runs");
    assert_eq!(node.task(run, "each[999]").await.status, TaskStatus::Canceled);
    node.finish(&held[0], canceled(Reason::Canceled)).await;
    let state = node.state(run).await;
    assert_eq!(state.status, RunStatus::Canceled);
    assert_eq!(state.tasks.len(), 1002, "the rest of the list has become no tasks");
    assert_eq!(state.tasks[0].reason, Some(Reason::Canceled));
}

async fn timeout_of_the_run_ends_items(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("timeout: 10s", &[THREE])).await;
    place.advance(Duration::from_secs(11));
    node.promote().await;
    audit::check(&*node.store, run).await;
    let expected = "each canceled (run_timeout), each[0] canceled (run_timeout), each[1] canceled (run_timeout), each[2] canceled (run_timeout)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn halt_ends_the_items_of_other_steps(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 2", &[("bad", "run: x"), THREE])).await;
    let held = node.take(run, 2).await;
    assert_eq!(names(&held), ["bad", "each[0]"]);
    node.start(&held[1]).await;
    node.fail(&held[0]).await;
    let expected =
        "bad failed (exit), each parked, each[0] running, each[1] skipped (halted), each[2] skipped (halted)";
    assert_eq!(node.tasks(run).await, expected, "what runs may finish");
    node.succeed(&held[1]).await;
    let expected = "bad failed (exit), each canceled (halted), each[0] succeeded, each[1] skipped (halted), each[2] skipped (halted)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.status(run).await, RunStatus::Failed);
    node.retry(run, None).await.expect("a retry");
    assert_eq!(node.work(run, |_| succeeded()).await, ["bad", "each[1]", "each[2]"]);
}

async fn clean_up_may_have_items(place: Place) {
    let node = place.node("one").await;
    let tidy = ("tidy", "run: x, needs: [bad], when: always, for_each: [a, b]");
    let run = node.submit(&doc("max_parallel: 1", &[("bad", "run: x"), tidy])).await;
    let order = node.work(run, |step| if step == "bad" { failed(1) } else { succeeded() }).await;
    assert_eq!(order, ["bad", "tidy[0]", "tidy[1]"]);
    assert_eq!(node.task(run, "tidy").await.status, TaskStatus::Succeeded);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn clean_up_with_an_item_that_was_aborted_is_canceled(place: Place) {
    let node = place.node("one").await;
    let tidy = ("tidy", "run: x, when: always, for_each: [a, b, c], max_parallel: 1");
    let run = node.submit(&doc("on_failure: abort", &[("bad", "run: x"), tidy])).await;
    let held = node.take(run, 2).await;
    assert_eq!(names(&held), ["bad", "tidy[0]"]);
    node.start(&held[1]).await;
    node.fail(&held[0]).await;
    node.finish(&held[1], canceled(Reason::Aborted)).await;
    node.work(run, |_| succeeded()).await;
    let tasks = node.tasks(run).await;
    assert!(tasks.starts_with("bad failed (exit), tidy canceled (aborted), tidy[0] canceled"), "{tasks}");
    let opened = node.retry(run, None).await.expect("a retry");
    assert!(opened.contains(&"tidy[0]".to_owned()), "it is not taken for done: {opened:?}");
}

async fn condition_about_items_is_asked_for_each(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [1, 2, 3, 4], if: \"${{ item is odd and index < 3 }}\"");
    let run = node.submit(&doc("max_parallel: 1", &[each, BEHIND])).await;
    let expected = "each parked, behind pending, each[0] available, each[1] skipped (condition), each[2] pending, each[3] skipped (condition)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[0]", "each[2]", "behind"]);
    let scope = node.store.scope(run, &["each"]).await.expect("a scope");
    assert_eq!(scope["steps"]["each"]["output"], json!([{}, null, {}, null]));
    let none = ("each", "run: x, for_each: [1, 2], if: \"${{ item > 2 }}\"");
    let run = node.submit(&doc("", &[none, BEHIND])).await;
    assert_eq!(node.task(run, "each").await.status, TaskStatus::Succeeded, "none of them was to run");
}

async fn condition_about_the_step_is_asked_once(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: \"${{ params.list }}\", if: \"${{ params.list is sequence }}\"");
    let run = node.submit(&doc("params: {list: {type: list}}", &[each])).await;
    assert_eq!(node.tasks(run).await, "each skipped (condition)", "nobody asked for its list");
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn lock_may_be_that_of_an_item(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [a, b, a, a], lock: \"file/${{ item }}\"");
    let run = node.submit(&doc("max_parallel: 9", &[each])).await;
    let held = node.take(run, 9).await;
    assert_eq!(names(&held), ["each[0]", "each[1]"]);
    assert!(
        node.why(run, "each[2]").await.starts_with("waits for the lock `file/a`"),
        "{}",
        node.why(run, "each[2]").await
    );
    node.succeed(&held[1]).await;
    assert_eq!(node.take(run, 9).await.len(), 0);
    node.succeed(&held[0]).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[2]", "each[3]"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn lock_that_is_no_key_fails_the_step(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [a, \" \"], lock: \"${{ item }}\"");
    let run = node.submit(&doc("", &[each])).await;
    let task = node.task(run, "each").await;
    assert_eq!((task.status, task.reason), (TaskStatus::Failed, Some(Reason::Expression)));
    assert_eq!(
        task.detail.as_deref(),
        Some("each[1]: `lock` of step `each` is ` `, which cannot be a key: it is empty")
    );
}

async fn items_share_the_limit_of_their_step(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [1, 2, 3], limits: [api]");
    let run = node.submit(&doc("limits: {api: 2}\nmax_parallel: 9", &[each])).await;
    let other = node.submit(&doc("limits: {api: 2}\nmax_parallel: 9", &[each])).await;
    let held = node.take(run, 9).await;
    assert_eq!((names(&held), node.take(other, 9).await.len()), (vec!["each[0]", "each[1]"], 0));
    node.succeed(&held[0]).await;
    node.succeed(&held[1]).await;
    let next = (node.take(run, 9).await.len(), node.take(other, 9).await.len());
    assert_eq!(next, (1, 1), "who waits longer is first, of whatever run");
}

async fn paused_run_starts_no_item(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("max_parallel: 1", &[THREE])).await;
    let held = node.take(run, 1).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("paused");
    node.succeed(&held[0]).await;
    assert_eq!(node.take(run, 9).await.len(), 0);
    node.store.resume(Pausable::Run(run), "ada").await.expect("resumed");
    assert_eq!(node.work(run, |_| succeeded()).await, ["each[1]", "each[2]"]);
}

async fn item_of_a_dead_node_comes_back(place: Place) {
    let (one, two) = (place.node("one").await, place.node("two").await);
    let run = one.submit(&doc("", &[THREE])).await;
    let held = one.take(run, 1).await;
    one.start(&held[0]).await;
    one.store.retire(one.session, left()).await.expect("it leaves");
    audit::check(&*two.store, run).await;
    two.store.adopt(run, two.session).await.expect("adopted");
    assert_eq!(two.work(run, |_| succeeded()).await.len(), 3);
    assert_eq!(two.task(run, "each[0]").await.attempt, 2);
    assert_eq!(two.status(run).await, RunStatus::Succeeded);
}

async fn item_that_must_not_run_twice_fails_with_its_node(place: Place) {
    let (one, two) = (place.node("one").await, place.node("two").await);
    let each = ("each", "run: x, for_each: [a, b], on_lost: fail");
    let run = one.submit(&doc("max_parallel: 1", &[each])).await;
    assert_eq!(one.take_ahead(run, 1, 5).await.len(), 1, "none is held unstarted");
    one.store.retire(one.session, left()).await.expect("it leaves");
    audit::check(&*two.store, run).await;
    two.store.adopt(run, two.session).await.expect("adopted");
    two.work(run, |_| succeeded()).await;
    let task = two.task(run, "each").await;
    assert_eq!(task.detail.as_deref(), Some("1 of 2 items failed, `each[0]` first: its node one died"));
}

async fn claim_of_an_item_that_is_gone_is_lost(place: Place) {
    let node = place.node("one").await;
    let each = "run: x, needs: [find], for_each: \"${{ steps.find.output.files }}\"";
    let run = node.submit(&doc("", &[("find", "run: x"), ("each", each)])).await;
    let find = node.begin(run, "find").await;
    node.finish(&find, succeeded_with(json!({ "files": ["a"] }))).await;
    let held = node.begin(run, "each[0]").await;
    node.succeed(&held).await;
    node.retry(run, Some("find")).await.expect("a retry");
    let other = ClaimRef { generation: 7, ..held.at };
    assert_eq!(node.finish(&Held { at: other, ..held.clone() }, succeeded()).await, Fate::ClaimLost);
    assert_eq!(node.start(&held).await, Fate::ClaimLost);
    assert_eq!(
        node.finish(&held, succeeded()).await,
        Fate::Repeated,
        "it was said before, and that was recorded"
    );
    assert_eq!(node.tasks(run).await, "find available, each pending");
}

async fn workers_share_the_items(place: Place) {
    let store = place.open();
    let (one, two) =
        (Node::worker(store.clone(), "one", &[]).await, Node::worker(store, "two", &["zone=eu"]).await);
    let each = ("each", "run: x, for_each: [1, 2, 3, 4], runs_on: {zone: eu}");
    let run = one
        .share(&doc(
            "max_parallel: 2",
            &[("first", "run: x"), ("each", &format!("{}, needs: [first]", each.1))],
        ))
        .await;
    let held = one.take_any(9).await;
    assert_eq!(names(&held), ["first"]);
    one.succeed(&held[0]).await;
    assert_eq!(one.take_any(9).await.len(), 0, "it has not the label");
    let held = two.take_any(9).await;
    assert_eq!(names(&held), ["each[0]", "each[1]"]);
    for held in &held {
        two.succeed(held).await;
    }
    for held in &two.take_any(9).await {
        two.succeed(held).await;
    }
    assert_eq!(two.status(run).await, RunStatus::Succeeded);
}

async fn pinned_run_keeps_its_items_on_one_node(place: Place) {
    let store = place.open();
    let (one, two) = (Node::worker(store.clone(), "one", &[]).await, Node::worker(store, "two", &[]).await);
    let run = one.share(&doc("placement: pinned\nmax_parallel: 4", &[THREE])).await;
    let held = one.take_any(9).await;
    assert_eq!(names(&held), ["each[0]"], "one is offered until it has a node");
    one.start(&held[0]).await;
    assert_eq!(two.take_any(9).await.len(), 0);
    assert_eq!(names(&one.take_any(9).await), ["each[1]", "each[2]"]);
    assert_eq!(one.status(run).await, RunStatus::Running);
}

async fn queued_run_grows_when_it_begins(place: Place) {
    let node = place.node("one").await;
    let text = doc("max_runs: 1", &[THREE]);
    let first = node.submit(&text).await;
    let second = node.submit(&text).await;
    assert_eq!(node.tasks(second).await, "each pending");
    node.work(first, |_| succeeded()).await;
    audit::check(&*node.store, second).await;
    assert_eq!(node.work(second, |_| succeeded()).await.len(), 3);
}

async fn items_wait_in_words(place: Place) {
    let node = place.node("one").await;
    let each = ("each", "run: x, for_each: [1, 2, 3], max_parallel: 1");
    let run = node.submit(&doc("", &[each, BEHIND])).await;
    let held = node.take(run, 1).await;
    node.start(&held[0]).await;
    assert_eq!(node.why(run, "each").await, "0 of its 3 items have ended");
    assert_eq!(
        node.why(run, "each[1]").await,
        "waits for a place among the items of `each`: max_parallel is 1 and each[0] holds it"
    );
    assert_eq!(node.why(run, "behind").await, "waits for each (parked)");
}

async fn items_are_read_a_page_at_a_time_as_their_run_tells_them(place: Place) {
    let node = place.node("one").await;
    let bounded = ("each", "run: x, for_each: [1, 2, 3, 4, 5, 6, 7], max_parallel: 2");
    let locked = ("lock", "run: x, for_each: [a, a, b], lock: \"file/${{ item }}\"");
    let text = doc("max_parallel: 5", &[("first", "run: x"), bounded, locked, BEHIND]);
    let run = node.submit(&text).await;
    for held in node.take(run, 2).await {
        node.start(&held).await;
    }
    let whole = node.view(run).await;
    let told = whole.state.tasks.into_iter().zip(whole.causes);
    let told: Vec<TaskView> = told.map(|(state, cause)| TaskView { state, cause }).collect();
    for (step, count) in [("each", 7), ("lock", 3), ("first", 0)] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let asked = ItemsAsked { step: step.to_owned(), after, limit: 2 };
            let page = node.store.items(run, asked).await.expect("a page");
            assert!(page.len() <= 2);
            let Some(last) = page.last() else { break };
            after = last.state.item.as_ref().map(|item| item.index);
            found.extend(page);
        }
        let is_of = |view: &&TaskView| view.state.item.as_ref().is_some_and(|item| item.of == step);
        assert_eq!(found, told.iter().filter(is_of).cloned().collect::<Vec<_>>());
        assert_eq!(found.len(), count, "{step}");
    }
    let asked = ItemsAsked { step: "none".to_owned(), after: None, limit: 1 };
    let refused = node.store.items(run, asked).await.expect_err("there is none");
    assert!(matches!(refused, Error::NoSuchStep { .. }), "{refused}");
}

async fn doctor_finds_nothing_wrong_with_items(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc(COUNTED, &[("each", MANY), BEHIND])).await;
    let held = node.take(run, 7).await;
    finish_all(&node, run, &held[..5]).await;
    let found = node.store.examine(10).await.expect("an examination");
    assert!(found.findings.is_empty(), "{found:?}");
    node.cancel(run).await;
    let found = node.store.examine(10).await.expect("an examination");
    assert!(found.findings.is_empty(), "{found:?}");
}

async fn run_with_items_is_removed_as_a_whole(place: Place) {
    let node = place.node("one").await;
    let text = doc(COUNTED, &[THREE, ("more", MANY)]);
    let run = node.submit(&text).await;
    node.cancel(run).await;
    node.submit(&text).await;
    assert!(node.store.prune(run).await.expect("an answer"));
    let found = node.store.examine(10).await.expect("an examination");
    assert!(found.findings.is_empty(), "nothing of it is left: {found:?}");
}

async fn outputs_that_are_too_large_together_are_refused_in_words(place: Place) {
    let node = place.node("one").await;
    let large = json!({ "x": "y".repeat(250_000) });
    let run = node
        .submit(&doc("max_parallel: 100", &[("each", "run: x, for_each: \"${{ 70 | range }}\""), BEHIND]))
        .await;
    const { assert!(70 * 250_000 > MAX_OUTPUTS) };
    for held in node.take(run, 100).await {
        let ends = vec![Finished::new(held.at, succeeded_with(large.clone()), Duration::ZERO)];
        node.store.finish(ends, None).await.expect("an answer");
    }
    let refused = node.store.scope(run, &["each"]).await.expect_err("too much");
    assert_eq!(
        refused.to_string(),
        "the outputs of the items of `each` hold more than 16 MiB together, which is too much to be read as one list"
    );
    assert!(refused.hint().is_some());
    assert_eq!(node.task(run, "behind").await.status, TaskStatus::Available, "who does not read it goes on");
}
