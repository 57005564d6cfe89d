//! G1 to G5, G7: locks, orders, limits and rates hold across runs, nobody is let through twice, and whoever is next goes
//! on in the same transaction in which the key became free.

use std::collections::HashSet;
use std::time::Duration;

use laneway_core::event::Fact;
use laneway_core::gate::Gate;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::Pausable;
use laneway_store::tally::GATES;
use laneway_store::{ClaimRef, Error, Fate};
use serde_json::json;

use crate::harness::{Node, Place, failed, flow, for_each_database, left, names, submission, succeeded};

for_each_database! {
    lock_lets_one_task_through_of_all_runs,
    freed_lock_goes_to_who_waits_longest_in_the_same_call,
    freed_key_is_not_taken_by_who_comes_behind_the_line,
    freed_lock_and_place_go_to_the_same_task,
    lock_is_free_after_failure_retry_cancel_and_loss,
    lost_task_keeps_its_place_in_line,
    lost_task_that_waits_again_goes_before_those_that_came_later,
    task_that_is_given_back_to_a_paused_run_keeps_its_place_in_line,
    task_that_failed_goes_behind_those_that_waited_meanwhile,
    lock_by_parameter_is_one_for_each_value,
    waiter_for_a_lock_takes_no_place_in_its_run,
    limit_counts_tasks_of_all_runs,
    limit_that_a_document_declares_otherwise_is_refused,
    limit_that_nobody_has_made_is_refused,
    task_with_several_keys_takes_all_or_none,
    smaller_version_goes_first_whatever_its_run,
    versions_compare_by_their_numbers,
    order_opens_when_the_smaller_one_has_ended_in_any_way,
    smaller_version_of_another_run_counts_beside_one_that_is_skipped,
    rate_lets_so_many_through_in_a_window,
    rate_wakes_its_waiters_one_after_the_other,
    passage_that_was_not_used_in_time_is_taken_anew,
    fence_grows_with_every_holder_of_a_lock,
    fence_grows_when_a_claim_is_taken_back,
    rate_wakes_the_next_when_the_first_is_canceled_or_paused,
    higher_priority_goes_first_and_none_waits_for_ever,
    cause_names_the_holder_its_run_and_the_place_in_line,
    task_with_a_key_is_never_held_ahead,
    how_long_tasks_waited_is_counted_by_the_gate_that_held_them,
    eight_promoters_at_once_grant_a_limit_no_more_than_it_has,
}

const LOCKED: &str = "lock: db";

async fn lock_lets_one_task_through_of_all_runs(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&flow("", &[("a", LOCKED), ("b", LOCKED)])).await;
    let two = node.submit(&flow("", &[("c", LOCKED), ("d", "lock: other")])).await;
    assert_eq!(node.tasks(one).await, "a available, b pending");
    assert_eq!(node.tasks(two).await, "c pending, d available");
}

async fn freed_lock_goes_to_who_waits_longest_in_the_same_call(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&flow("", &[("a", LOCKED)])).await;
    place.advance(Duration::from_millis(1));
    let two = node.submit(&flow("", &[("b", LOCKED)])).await;
    place.advance(Duration::from_millis(1));
    let three = node.submit(&flow("", &[("c", LOCKED)])).await;
    let held = node.begin(one, "a").await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(two).await, "b available", "without anybody promoting");
    assert_eq!(node.tasks(three).await, "c pending");
    let is_told = |fact: &Fact| matches!(fact, Fact::TaskAvailable(_));
    assert!(node.events(two).await.iter().any(|event| is_told(&event.fact)), "and its own history tells it");
    let held = node.begin(two, "b").await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(three).await, "c available");
}

async fn freed_key_is_not_taken_by_who_comes_behind_the_line(place: Place) {
    let node = place.node("one").await;
    for key in [LOCKED, "limits: [w]"] {
        let chain = [("a", key), ("b", &format!("needs: [a], {key}"))];
        let one = node.submit(&flow("limits: {w: 1}", &chain)).await;
        let two = node.submit(&flow("limits: {w: 1}", &[("c", key)])).await;
        let held = node.begin(one, "a").await;
        place.advance(Duration::from_millis(1));
        node.succeed(&held).await;
        assert_eq!(
            node.tasks(one).await,
            "a succeeded, b pending",
            "{key}: a run does not keep it to itself"
        );
        assert_eq!(node.tasks(two).await, "c available", "{key}");
        node.work(two, |_| succeeded()).await;
        assert_eq!(node.work(one, |_| succeeded()).await, ["b"]);
    }
}

async fn freed_lock_and_place_go_to_the_same_task(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &[("a", LOCKED), ("b", LOCKED), ("c", "")])).await;
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(run).await, "a succeeded, b available, c pending");
}

async fn lock_is_free_after_failure_retry_cancel_and_loss(place: Place) {
    let node = place.node("one").await;
    let retried = node.submit(&flow("", &[("a", "lock: db, retry: {max: 1, backoff: 10s}")])).await;
    let failing = node.submit(&flow("", &[("b", LOCKED)])).await;
    let held = node.begin(retried, "a").await;
    assert_eq!(node.finish(&held, failed(1)).await, laneway_store::Fate::Recorded);
    assert_eq!(node.tasks(failing).await, "b available", "one that waits to be tried again holds nothing");
    let held = node.begin(failing, "b").await;
    node.fail(&held).await;
    let dying = place.node("two").await;
    let lost = dying.submit(&flow("", &[("c", LOCKED)])).await;
    dying.begin(lost, "c").await;
    let last = node.submit(&flow("", &[("d", LOCKED)])).await;
    assert_eq!(node.tasks(last).await, "d pending");
    drop(dying);
    node.store.reap().await.expect("a reaped session");
    // What was lost is as old as ever, and goes first; its run has nobody to run it, so it is canceled.
    node.cancel(lost).await;
    assert_eq!(node.tasks(last).await, "d available");
}

async fn lost_task_keeps_its_place_in_line(place: Place) {
    for key in [LOCKED, "limits: [w]"] {
        let dying = Node::worker(place.open(), "dying", &[]).await;
        let one = dying.share(&flow("limits: {w: 1}", &[("a", key)])).await;
        assert_eq!(names(&dying.take_any(1).await), ["a"], "{key}");
        let node = Node::worker(place.open(), "other", &[]).await;
        place.advance(Duration::from_secs(1));
        let two = node.share(&flow("limits: {w: 1}", &[("b", key)])).await;
        place.advance(Duration::from_secs(20));
        drop(dying);
        node.store.reap().await.expect("a reaped session");
        assert_eq!(node.tasks(one).await, "a available", "{key}");
        assert_eq!(node.tasks(two).await, "b pending", "{key}");
        let held = node.take_any(2).await;
        assert_eq!(names(&held), ["a"], "{key}");
        node.succeed(&held[0]).await;
        assert_eq!(node.tasks(two).await, "b available", "{key}");
        let held = node.take_any(2).await;
        node.succeed(&held[0]).await;
        node.store.retire(node.session, left()).await.expect("a life that ends");
    }
}

async fn lost_task_that_waits_again_goes_before_those_that_came_later(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let node = Node::worker(place.open(), "other", &[]).await;
    let lost = dying.share(&flow("", &[("a", LOCKED)])).await;
    dying.take_any(1).await;
    place.advance(Duration::from_secs(1));
    let later = node.share(&flow("", &[("b", LOCKED)])).await;
    let urgent = node.share(&flow("", &[("c", "lock: db, priority: 9")])).await;
    place.advance(Duration::from_secs(20));
    drop(dying);
    node.store.reap().await.expect("a reaped session");
    for (run, step) in [(urgent, "c"), (lost, "a"), (later, "b")] {
        assert_eq!(node.tasks(run).await, format!("{step} available"));
        let held = node.take_any(3).await;
        assert_eq!(names(&held), [step]);
        node.succeed(&held[0]).await;
    }
    let at = GATES.iter().position(|known| *known == Gate::Lock).expect("a line");
    let waited: u64 = node.store.gate_waits().0[at].counts.iter().sum();
    assert_eq!(waited, 2, "a waited for less than since it was first ready");
}

async fn task_that_is_given_back_to_a_paused_run_keeps_its_place_in_line(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&flow("", &[("a", LOCKED)])).await;
    place.advance(Duration::from_secs(1));
    let two = node.submit(&flow("", &[("b", LOCKED)])).await;
    let held = node.take(one, 1).await;
    node.store.pause(Pausable::Run(one), "ada").await.expect("a pause");
    node.give_back(&held[0]).await;
    assert_eq!(node.tasks(two).await, "b available", "what is paused holds nothing");
    let held = node.begin(two, "b").await;
    place.advance(Duration::from_secs(1));
    let three = node.submit(&flow("", &[("c", LOCKED)])).await;
    node.store.resume(Pausable::Run(one), "ada").await.expect("it goes on");
    node.succeed(&held).await;
    assert_eq!(node.tasks(one).await, "a available");
    assert_eq!(node.tasks(three).await, "c pending");
}

async fn task_that_failed_goes_behind_those_that_waited_meanwhile(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&flow("", &[("a", "lock: db, retry: {max: 1, backoff: 1s}")])).await;
    let two = node.submit(&flow("", &[("b", LOCKED)])).await;
    place.advance(Duration::from_secs(1));
    let three = node.submit(&flow("", &[("c", LOCKED)])).await;
    let held = node.begin(one, "a").await;
    assert_eq!(node.finish(&held, failed(1)).await, laneway_store::Fate::Recorded);
    let held = node.begin(two, "b").await;
    place.advance(Duration::from_secs(10));
    node.promote().await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(three).await, "c available", "a had its turn");
    assert_eq!(node.tasks(one).await, "a pending (exit)");
}

async fn lock_by_parameter_is_one_for_each_value(place: Place) {
    let node = place.node("one").await;
    let document =
        flow("params: {db: {type: string, required: true}}", &[("a", "lock: \"db/${{ params.db }}\"")]);
    let one = node.submit_with(&document, json!({"db": "x"})).await;
    let two = node.submit_with(&document, json!({"db": "y"})).await;
    let three = node.submit_with(&document, json!({"db": "x"})).await;
    let (one, two, three) = (node.tasks(one).await, node.tasks(two).await, node.tasks(three).await);
    assert_eq!([one, two, three], ["a available", "a available", "a pending"]);
}

async fn waiter_for_a_lock_takes_no_place_in_its_run(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", LOCKED), ("b", LOCKED), ("c", LOCKED), ("d", ""), ("e", "")];
    let run = node.submit(&flow("max_parallel: 2", &steps)).await;
    assert_eq!(node.tasks(run).await, "a available, b pending, c pending, d available, e pending");
    let held = node.take(run, 2).await;
    node.succeed(&held[1]).await;
    assert_eq!(
        node.tasks(run).await,
        "a running, b pending, c pending, d succeeded, e available".replace("a running", "a available")
    );
}

async fn limit_counts_tasks_of_all_runs(place: Place) {
    let node = place.node("one").await;
    let document =
        flow("limits: {warehouse: 2}", &[("a", "limits: [warehouse]"), ("b", "limits: [warehouse]")]);
    let one = node.submit(&document).await;
    let two = node.submit(&document).await;
    assert_eq!(node.tasks(one).await, "a available, b available");
    assert_eq!(node.tasks(two).await, "a pending, b pending");
    let held = node.take(one, 2).await;
    node.succeed(&held[0]).await;
    assert_eq!(node.tasks(two).await, "a available, b pending");
    node.succeed(&held[1]).await;
    assert_eq!(node.tasks(two).await, "a available, b available");
}

async fn limit_that_a_document_declares_otherwise_is_refused(place: Place) {
    let node = place.node("one").await;
    node.submit(&flow("limits: {warehouse: 2}", &[("a", "limits: [warehouse]")])).await;
    let other = submission(&flow("limits: {warehouse: 3}", &[("a", "")]), json!({}), node.session);
    let refusal = node.store.submit(other).await.expect_err("it differs from the store's").to_string();
    assert!(refusal.contains("warehouse") && refusal.contains("laneway limit set"), "{refusal}");
}

async fn limit_that_nobody_has_made_is_refused(place: Place) {
    let node = place.node("one").await;
    let unknown = submission(&flow("", &[("a", "limits: [nowhere]")]), json!({}), node.session);
    let refusal = node.store.submit(unknown).await.expect_err("there is no such limit");
    assert!(matches!(&refusal, Error::NoSuchLimit { name } if name == "nowhere"), "{refusal}");
    assert_eq!(
        node.store
            .runs(laneway_store::model::RunFilter { limit: 9, ..Default::default() })
            .await
            .expect("a list")
            .len(),
        0
    );
}

async fn task_with_several_keys_takes_all_or_none(place: Place) {
    let node = place.node("one").await;
    let head = "limits: {x: 1, y: 1}";
    let one = node.submit(&flow(head, &[("a", "limits: [x]")])).await;
    let both = node.submit(&flow(head, &[("b", "limits: [y, x]")])).await;
    let other = node.submit(&flow(head, &[("c", "limits: [y]")])).await;
    assert_eq!(node.tasks(both).await, "b pending");
    assert_eq!(node.tasks(other).await, "c available", "who waits for x does not keep y");
    let a = node.begin(one, "a").await;
    node.succeed(&a).await;
    assert_eq!(node.tasks(both).await, "b pending", "y is taken");
    let c = node.begin(other, "c").await;
    node.succeed(&c).await;
    assert_eq!(node.tasks(both).await, "b available");
}

async fn smaller_version_goes_first_whatever_its_run(place: Place) {
    let node = place.node("one").await;
    let ordered = |version: &str| format!("order: {{key: db, version: \"{version}\"}}");
    let early =
        node.submit(&flow("", &[("first", ""), ("two", &format!("needs: [first], {}", ordered("2")))])).await;
    let late = node.submit(&flow("", &[("three", &ordered("3"))])).await;
    assert_eq!(node.tasks(late).await, "three pending", "a smaller one is pending");
    let equal = node.submit(&flow("", &[("one", &ordered("1")), ("also", &ordered("1"))])).await;
    assert_eq!(node.tasks(equal).await, "one available, also available", "equals do not order each other");
    node.work(equal, |_| succeeded()).await;
    assert_eq!(node.work(early, |_| succeeded()).await, ["first", "two"]);
    assert_eq!(node.tasks(late).await, "three available");
}

async fn versions_compare_by_their_numbers(place: Place) {
    let node = place.node("one").await;
    let ordered = |version: &str| format!("order: {{key: db, version: \"{version}\"}}");
    let steps =
        [("ten", ordered("2.10")), ("nine", ordered("2.9")), ("two", ordered("2")), ("big", ordered("10"))];
    let steps: Vec<(&str, &str)> = steps.iter().map(|(name, keys)| (*name, keys.as_str())).collect();
    let run = node.submit(&flow("", &steps)).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["two", "nine", "ten", "big"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn order_opens_when_the_smaller_one_has_ended_in_any_way(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "order: {key: k, version: \"1\"}"), ("b", "order: {key: k, version: \"2\"}")];
    let run = node.submit(&flow("on_failure: continue", &steps)).await;
    let held = node.begin(run, "a").await;
    node.fail(&held).await;
    assert_eq!(node.tasks(run).await, "a failed (exit), b available");
    node.work(run, |_| succeeded()).await;
    node.retry(run, None).await.expect("a failed step to retry");
    let later = node.submit(&flow("", &[("c", "order: {key: k, version: \"1.5\"}")])).await;
    assert_eq!(node.tasks(later).await, "c pending", "what runs again stands in order again");
    node.cancel(run).await;
    assert_eq!(node.tasks(later).await, "c available");
}

async fn smaller_version_of_another_run_counts_beside_one_that_is_skipped(place: Place) {
    let node = place.node("one").await;
    let ordered = |version: &str| format!("order: {{key: db, version: \"{version}\"}}");
    let early = node.submit(&flow("", &[("one", &ordered("1"))])).await;
    let skipped = format!("if: \"${{{{ false }}}}\", {}", ordered("1"));
    let wanted = format!("if: \"${{{{ true }}}}\", {}", ordered("2"));
    let late = node.submit(&flow("", &[("also", &skipped), ("two", &wanted)])).await;
    assert_eq!(node.tasks(late).await, "also skipped (condition), two pending");
    node.work(early, |_| succeeded()).await;
    assert_eq!(node.work(late, |_| succeeded()).await, ["two"]);
}

async fn rate_lets_so_many_through_in_a_window(place: Place) {
    let node = place.node("one").await;
    let names: Vec<String> = (0..6).map(|step| format!("s{step}")).collect();
    let steps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "limits: [api]")).collect();
    let run = node.submit(&flow("limits: {api: 2/10s}\nmax_parallel: 9", &steps)).await;
    let mut passed = Vec::new();
    for _ in 0..60 {
        node.promote().await;
        let available = node.take(run, 9).await;
        for held in &available {
            node.succeed(held).await;
        }
        passed.push(available.len());
        place.advance(Duration::from_secs(1));
    }
    assert_eq!(passed.iter().sum::<usize>(), 6);
    for window in passed.windows(10) {
        assert!(window.iter().sum::<usize>() <= 2, "{passed:?}");
    }
}

async fn rate_wakes_its_waiters_one_after_the_other(place: Place) {
    let node = place.node("one").await;
    let names: Vec<String> = (0..4).map(|step| format!("s{step}")).collect();
    let steps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "limits: [api]")).collect();
    let run = node.submit(&flow("limits: {api: 1/1s}\nmax_parallel: 9", &steps)).await;
    for through in 1..=4 {
        let live =
            node.state(run).await.tasks.iter().filter(|task| task.status == TaskStatus::Available).count();
        assert_eq!(live, through);
        let next = node.promote().await;
        assert_eq!(next.is_some(), through < 4, "as long as somebody waits there is a moment to wake up at");
        place.advance(Duration::from_millis(1075));
        node.promote().await;
    }
}

/// Tasks promoted while all slots were busy do not start in a burst.
async fn passage_that_was_not_used_in_time_is_taken_anew(place: Place) {
    let node = place.node("one").await;
    let names: Vec<String> = (0..4).map(|step| format!("s{step}")).collect();
    let steps: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "limits: [api]")).collect();
    let run = node.submit(&flow("limits: {api: 1/60s}\nmax_parallel: 9", &steps)).await;
    for _ in 0..3 {
        place.advance(Duration::from_millis(64_500));
        node.promote().await;
    }
    let mut late = node.take(run, 9).await;
    assert_eq!(late.len(), 4, "all of them are through");
    assert!(late[..3].iter().all(|held| held.is_late), "their moment is over");
    assert!(!late[3].is_late, "the last may start now");
    node.succeed(&late.remove(3)).await;
    for held in &late {
        node.give_back(held).await;
    }
    assert_eq!(node.take(run, 9).await.len(), 0, "the last passage was a moment ago");
    for left in [2, 1, 0] {
        place.advance(Duration::from_millis(64_500));
        node.promote().await;
        let [next] = &node.take(run, 9).await[..] else { panic!("one at a time") };
        assert!(!next.is_late && next.at.attempt == 1, "{next:?}");
        node.succeed(next).await;
        let waiting =
            node.state(run).await.tasks.iter().filter(|task| task.status == TaskStatus::Pending).count();
        assert_eq!(waiting, left);
    }
}

/// Also where all of it happens within one moment of the clock.
async fn fence_grows_with_every_holder_of_a_lock(place: Place) {
    let node = place.node("one").await;
    let steps = [("locked", LOCKED), ("free", "when: always")];
    let mut last = 0;
    for _ in 0..3 {
        let run = node.submit(&flow("", &steps)).await;
        let held = node.take(run, 9).await;
        let [locked, free] = &held[..] else { panic!("two can run: {held:?}") };
        let fence = node.store.fence(locked.at).await.expect("an answer").flatten().expect("it has a lock");
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        assert_eq!(node.store.fence(free.at).await.expect("an answer"), Some(None));
        let stale = ClaimRef { generation: locked.at.generation + 1, ..locked.at };
        assert_eq!(node.store.fence(stale).await.expect("an answer"), None, "not this claim");
        node.fail(locked).await;
        node.succeed(free).await;
        // Of a task that runs again it is another one.
        node.retry(run, None).await.expect("it failed");
        let [again] = &node.take(run, 9).await[..] else { panic!("it runs again") };
        let fence = node.store.fence(again.at).await.expect("an answer").flatten().expect("it has a lock");
        assert!(fence > last, "{fence} after {last}");
        last = fence;
        node.succeed(again).await;
    }
}

/// The worker that did not answer may have begun: its token must not be that of the next holder.
async fn fence_grows_when_a_claim_is_taken_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("locked", LOCKED)])).await;
    let [silent] = &node.take(run, 1).await[..] else { panic!("it is available") };
    let first = node.store.fence(silent.at).await.expect("an answer").flatten().expect("it has a lock");
    assert_eq!(node.store.take_back(vec![silent.at]).await.expect("an answer"), [Fate::Recorded]);
    assert_eq!(node.store.fence(silent.at).await.expect("an answer"), None, "its claim is lost");
    let [next] = &node.take(run, 1).await[..] else { panic!("it is available again") };
    let second = node.store.fence(next.at).await.expect("an answer").flatten().expect("it has a lock");
    assert!(second > first, "{second} after {first}");
}

async fn rate_wakes_the_next_when_the_first_is_canceled_or_paused(place: Place) {
    let node = place.node("one").await;
    let document = flow("limits: {api: 1/1s}", &[("a", "limits: [api]")]);
    let mut runs = Vec::new();
    for _ in 0..4 {
        runs.push(node.submit(&document).await);
    }
    assert_eq!(node.tasks(runs[0]).await, "a available");
    node.cancel(runs[1]).await;
    assert!(node.promote().await.is_some(), "somebody is woken for the others");
    node.store.pause(Pausable::Run(runs[2]), "ada").await.expect("a pause");
    place.advance(Duration::from_millis(1075));
    node.promote().await;
    assert_eq!(node.tasks(runs[2]).await, "a pending");
    assert_eq!(node.tasks(runs[3]).await, "a available");
}

async fn higher_priority_goes_first_and_none_waits_for_ever(place: Place) {
    let node = place.node("one").await;
    let steps = [("low", "lock: k, priority: -1"), ("mid", LOCKED), ("high", "lock: k, priority: 9")];
    let blocker = node.submit(&flow("", &[("hold", "lock: k")])).await;
    let run = node.submit(&flow("", &[steps[0], ("mid", "lock: k"), steps[2]])).await;
    let held = node.begin(blocker, "hold").await;
    // Eleven minutes on, a new one of the highest priority is younger than the oldest of the least.
    place.advance(Duration::from_secs(11 * 60));
    let young = node.submit(&flow("", &[("young", "lock: k, priority: 9")])).await;
    node.succeed(&held).await;
    assert_eq!(node.tasks(run).await, "low pending, mid pending, high available");
    assert_eq!(node.work(run, |_| succeeded()).await, ["high", "mid", "low"]);
    assert_eq!(node.tasks(young).await, "young available");
}

async fn cause_names_the_holder_its_run_and_the_place_in_line(place: Place) {
    let node = place.node("one").await;
    let holder = node.submit(&flow("", &[("migrate", LOCKED)])).await;
    let second = node.submit(&flow("", &[("b", LOCKED)])).await;
    place.advance(Duration::from_millis(1));
    let third = node.submit(&flow("", &[("c", LOCKED)])).await;
    node.begin(holder, "migrate").await;
    let why = node.why(third, "c").await;
    for part in ["db", "migrate", &holder.short(), "2 of 2"] {
        assert!(why.contains(part), "{part}: {why}");
    }
    let why = node.why(second, "b").await;
    assert!(why.contains("next of 2"), "{why}");
    let limited = flow("limits: {w: 1}", &[("x", "limits: [w]"), ("y", "limits: [w]")]);
    let run = node.submit(&limited).await;
    assert!(node.why(run, "y").await.contains('w'), "{}", node.why(run, "y").await);
    let ordered = [("one", "order: {key: k, version: \"1\"}"), ("two", "order: {key: k, version: \"2\"}")];
    let run = node.submit(&flow("", &ordered)).await;
    assert!(node.why(run, "two").await.contains("one"), "{}", node.why(run, "two").await);
}

async fn task_with_a_key_is_never_held_ahead(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &[("a", ""), ("b", LOCKED), ("c", "")])).await;
    let held = node.take_ahead(run, 1, 4).await;
    assert_eq!(names(&held), ["a"], "b would keep its key from others without using it");
}

async fn eight_promoters_at_once_grant_a_limit_no_more_than_it_has(place: Place) {
    let document = flow(
        "limits: {w: 3}\nmax_parallel: 9",
        &[("a", "limits: [w]"), ("b", "limits: [w]"), ("c", "limits: [w]")],
    );
    let mut nodes = Vec::new();
    for number in 0..8 {
        nodes.push(place.node(&format!("n{number}")).await);
    }
    let mut all = Vec::new();
    for node in &nodes {
        all.push((node.clone(), node.submit(&document).await));
    }
    let work = all.into_iter().map(|(node, run)| {
        tokio::spawn(async move {
            let mut most = 0;
            while node.status(run).await == RunStatus::Running {
                for held in node.take(run, 9).await {
                    most = most.max(live(&node).await);
                    node.succeed(&held).await;
                }
                tokio::task::yield_now().await;
            }
            most
        })
    });
    let mut seen = HashSet::new();
    for work in work.collect::<Vec<_>>() {
        seen.insert(work.await.expect("no panic"));
    }
    assert!(seen.iter().all(|most| *most <= 3), "{seen:?}");
}

/// Tasks that hold the limit, as of one moment.
async fn live(node: &Node) -> u32 {
    let limits = node.store.limits().await.expect("the limits");
    limits.iter().map(|limit| limit.holders).max().unwrap_or_default()
}

async fn how_long_tasks_waited_is_counted_by_the_gate_that_held_them(place: Place) {
    let node = place.node("one").await;
    let spread = |gate: Gate| {
        let at = GATES.iter().position(|known| *known == gate).expect("a line");
        let spread = node.store.gate_waits().0[at];
        (spread.counts.iter().sum::<u64>(), spread.micros)
    };
    let first = node.submit(&flow("", &[("a", LOCKED), ("free", "")])).await;
    let second = node.submit(&flow("", &[("b", "lock: db, priority: 7")])).await;
    let held = node.begin(first, "a").await;
    place.advance(Duration::from_secs(3));
    node.succeed(&held).await;
    assert_eq!(node.tasks(second).await, "b available");
    assert_eq!(spread(Gate::Lock), (1, 3_000_000), "however urgent it was");
    let narrow = node.submit(&flow("max_parallel: 1", &[("c", ""), ("d", ""), ("e", "needs: [c]")])).await;
    let held = node.begin(narrow, "c").await;
    place.advance(Duration::from_secs(40));
    node.succeed(&held).await;
    assert_eq!(spread(Gate::MaxParallel), (1, 40_000_000), "e has only come");
    assert_eq!(spread(Gate::Lock).0, 1);
    assert_eq!(spread(Gate::Paused).0, 0);
}
