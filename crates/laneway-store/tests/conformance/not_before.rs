//! R18: `not_before` of a step, and runs that are submitted for later. Both hold nothing meanwhile, say until when they
//! wait, and go on at their very moment, whoever looks at the clock.

use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::not_before::NotBefore;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::model::{Pausable, Submission};
use serde_json::json;

use crate::audit;
use crate::harness::{Node, Place, START, flat, flow, for_each_database, names, submission, succeeded};

for_each_database! {
    delay_of_a_step_counts_from_the_end_of_what_it_needs,
    delay_of_a_step_without_needs_counts_from_the_start_of_its_run,
    moment_that_is_past_lets_through_at_once,
    step_that_is_held_back_holds_neither_place_nor_lock,
    pause_does_not_stop_the_clock_of_a_step,
    retried_or_lost_step_does_not_wait_again,
    retry_of_a_run_counts_from_what_ends_anew,
    items_of_a_step_that_is_held_back_come_later,
    canceled_run_ends_what_is_held_back,
    bad_moment_of_a_parameter_is_refused_at_submit,
    run_for_later_begins_at_its_moment_whoever_submitted_it,
    run_for_later_counts_for_nothing_until_it_is_due,
    due_run_is_admitted_as_if_it_were_submitted_then,
    run_for_later_can_be_canceled_and_retried,
    timeout_of_a_run_for_later_counts_from_its_beginning,
    paused_run_for_later_stays_paused_when_it_is_due,
}

fn at(millis: i64) -> Millis {
    Millis(START.0 + millis)
}

/// Gate and sentence.
async fn why(node: &Node, run: RunId, step: &str) -> (String, String) {
    let view = node.view(run).await;
    let position = view.plan.position(step).expect("a step of that name");
    let cause = view.causes[position as usize].as_ref().expect("a cause");
    (cause.gate.to_owned(), cause.text.clone())
}

fn later(document: &str, node: &Node, not_before: NotBefore) -> Submission {
    let not_before = Some(not_before);
    Submission { is_shared: true, not_before, ..submission(document, json!({}), node.session) }
}

async fn submit_later(node: &Node, document: &str, seconds: u64) -> RunId {
    let delay = NotBefore::After(Duration::from_secs(seconds));
    let run = node.store.submit(later(document, node, delay)).await.expect("a run");
    audit::check(&*node.store, run).await;
    run
}

async fn delay_of_a_step_counts_from_the_end_of_what_it_needs(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a], not_before: 5m")])).await;
    assert_eq!(why(&node, run, "b").await.0, "needs");
    let held = node.begin(run, "a").await;
    place.advance(Duration::from_secs(1));
    assert_eq!(node.finish_with(&held, succeeded()).await.wake_at, Some(at(301_000)));
    let moment = at(301_000);
    let expected = ("not_before".to_owned(), format!("waits until {moment} (`not_before: 5m`)"));
    assert_eq!(why(&node, run, "b").await, expected);
    place.advance(Duration::from_millis(299_999));
    assert_eq!(node.promote().await, Some(moment));
    assert!(node.take(run, 9).await.is_empty(), "not a millisecond before");
    place.advance(Duration::from_millis(1));
    assert_eq!(node.promote().await, None);
    assert_eq!(node.work(run, |_| succeeded()).await, ["b"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn delay_of_a_step_without_needs_counts_from_the_start_of_its_run(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "not_before: 2s")])).await;
    assert!(node.take(run, 9).await.is_empty());
    assert_eq!(node.store.wake_at().await.expect("an answer"), Some(at(2000)));
    place.advance(Duration::from_secs(2));
    // Another process looks at the clock: nothing of the moment is in anybody's memory.
    let other = place.node("two").await;
    assert_eq!(other.promote().await, None);
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
}

async fn moment_that_is_past_lets_through_at_once(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "not_before: 2001-01-01T00:00:00Z"), ("b", "not_before: 0s")];
    let run = node.submit(&flow("", &steps)).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a", "b"]);
    let document =
        flow("params: {when: {type: string, required: true}}", &[("a", "not_before: '${{ params.when }}'")]);
    let run = node.submit_with(&document, json!({"when": at(1000).to_string()})).await;
    let expected = format!("waits until {} (`not_before: ${{{{ params.when }}}}`)", at(1000));
    assert_eq!(why(&node, run, "a").await, ("not_before".to_owned(), expected));
    place.advance(Duration::from_secs(1));
    node.promote().await;
    assert_eq!(names(&node.take(run, 9).await), ["a"]);
}

async fn step_that_is_held_back_holds_neither_place_nor_lock(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "not_before: 1m, lock: db"), ("b", "lock: db")];
    let run = node.submit(&flow("max_parallel: 1", &steps)).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["b"]);
    let other = node.submit(&flow("", &[("c", "lock: db")])).await;
    let held = node.begin(other, "c").await;
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(why(&node, run, "a").await.0, "lock", "from its moment on it is a step like any other");
    node.succeed(&held).await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
}

async fn pause_does_not_stop_the_clock_of_a_step(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "not_before: 10s")])).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    assert_eq!(why(&node, run, "a").await.0, "not_before");
    place.advance(Duration::from_secs(10));
    node.promote().await;
    assert!(node.take(run, 9).await.is_empty());
    assert_eq!(why(&node, run, "a").await.0, "paused");
    node.store.resume(Pausable::Run(run), "ada").await.expect("it goes on");
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
}

async fn retried_or_lost_step_does_not_wait_again(place: Place) {
    let (node, dying) = (place.node("one").await, place.node("two").await);
    let keys = "not_before: 1m, retry: {max: 1, backoff: 2s}";
    let run = node.submit(&flow("", &[("a", keys)])).await;
    assert!(node.take(run, 9).await.is_empty());
    place.advance(Duration::from_secs(60));
    node.promote().await;
    let held = dying.begin(run, "a").await;
    drop(dying);
    node.store.reap().await.expect("a reaped session");
    let again = node.begin(run, "a").await;
    assert_ne!(again.at, held.at);
    node.fail(&again).await;
    assert_eq!(why(&node, run, "a").await.0, "run_at", "the delay of its retry, and no other");
    assert_eq!(node.task(run, "a").await.run_at, Some(at(62_000)));
    place.advance(Duration::from_secs(2));
    node.promote().await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a"]);
}

async fn retry_of_a_run_counts_from_what_ends_anew(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a], not_before: 1m")])).await;
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    place.advance(Duration::from_secs(60));
    node.promote().await;
    let held = node.begin(run, "b").await;
    node.fail(&held).await;
    // What it needs has not run again: its delay is over.
    node.retry(run, Some("b")).await.expect("an ended run");
    let held = node.begin(run, "b").await;
    node.fail(&held).await;
    place.advance(Duration::from_secs(10));
    node.retry(run, Some("a")).await.expect("an ended run");
    let held = node.begin(run, "a").await;
    node.succeed(&held).await;
    assert!(node.take(run, 9).await.is_empty());
    assert!(why(&node, run, "b").await.1.contains(&at(130_000).to_string()));
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["b"]);
}

async fn items_of_a_step_that_is_held_back_come_later(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "for_each: [1, 2], not_before: 1m"), ("b", "needs: [a]")];
    let run = node.submit(&flow("", &steps)).await;
    assert_eq!(node.state(run).await.tasks.len(), 2, "there are no items yet");
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(node.work(run, |_| succeeded()).await, ["a[0]", "a[1]", "b"]);
}

async fn canceled_run_ends_what_is_held_back(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "not_before: 1m"), ("b", "needs: [a]")])).await;
    assert_eq!(node.cancel(run).await, RunStatus::Canceled);
    assert_eq!(node.tasks(run).await, "a canceled (canceled), b canceled (canceled)");
    assert_eq!(node.promote().await, None, "nobody is woken for it");
    place.advance(Duration::from_secs(10));
    node.retry(run, None).await.expect("a canceled run");
    assert!(why(&node, run, "a").await.1.contains(&at(60_000).to_string()), "it began then");
    node.cancel(run).await;
}

async fn bad_moment_of_a_parameter_is_refused_at_submit(place: Place) {
    let node = place.node("one").await;
    let document = flow("params: {when: {type: string}}", &[("a", "not_before: '${{ params.when }}'")]);
    for (when, told) in [
        (json!("tomorrow"), "`not_before` of step `a` is `tomorrow`, which is neither a moment such as"),
        (json!("2026-12-24T18:00:00"), "add Z for UTC, or an offset such as +01:00"),
        (json!(null), "`not_before` of step `a`: `params.when` is null"),
    ] {
        for is_shared in [false, true] {
            let refused = submission(&document, json!({ "when": when }), node.session);
            let refused = node.store.submit(Submission { is_shared, ..refused }).await;
            let refusal = refused.expect_err("no moment").to_string();
            assert!(refusal.contains(told), "{refusal}");
        }
    }
}

async fn run_for_later_begins_at_its_moment_whoever_submitted_it(place: Place) {
    let submitter = place.node("submitter").await;
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = submit_later(&submitter, &flat(1, 1), 90).await;
    drop(submitter);
    node.store.reap().await.expect("a reaped session");
    assert_eq!(node.status(run).await, RunStatus::Queued);
    let told = format!("its run waits until {}, for which it was submitted", at(90_000));
    assert_eq!(why(&node, run, "s0").await, ("not_before".to_owned(), told));
    let listed = node.store.runs(laneway_store::model::RunFilter { limit: 9, ..Default::default() }).await;
    assert_eq!(listed.expect("a list")[0].not_before, Some(at(90_000)));
    assert_eq!(node.store.wake_at().await.expect("an answer"), Some(at(90_000)));
    place.advance(Duration::from_millis(89_999));
    assert_eq!(node.promote().await, Some(at(90_000)));
    assert_eq!(node.status(run).await, RunStatus::Queued);
    place.advance(Duration::from_millis(1));
    assert_eq!(node.promote().await, None);
    audit::check(&*node.store, run).await;
    let state = node.state(run).await;
    assert_eq!(
        (state.status, state.not_before, state.started_at),
        (RunStatus::Running, None, Some(at(90_000)))
    );
    assert_eq!(node.take_any(9).await.len(), 1);
    assert_eq!(node.promote().await, None, "once");
    let names: Vec<&str> = node.events(run).await.iter().map(|event| event.fact.name()).collect::<Vec<_>>();
    assert_eq!(names, ["run_submitted", "run_due", "run_started", "task_available"]);
    // One of which the moment is past is like any other.
    let past = later(&flat(1, 1), &node, NotBefore::At(at(-1)));
    let run = node.store.submit(past).await.expect("a run");
    assert_eq!(node.status(run).await, RunStatus::Running);
    assert_eq!(node.state(run).await.not_before, None);
}

fn limited(strategy: &str) -> String {
    flow(&format!("max_runs: {{limit: 1, strategy: {strategy}}}"), &[("a", "")])
}

async fn run_for_later_counts_for_nothing_until_it_is_due(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    for strategy in ["queue", "skip", "replace", "fail"] {
        let named = |name: &str| limited(strategy).replace("name: flow", &format!("name: {name}"));
        let document = named(strategy);
        let waiting = submit_later(&node, &document, 60).await;
        let now = node.share(&document).await;
        assert_eq!(node.status(now).await, RunStatus::Running, "{strategy}");
        assert_eq!(node.status(waiting).await, RunStatus::Queued, "{strategy}");
        node.cancel(now).await;
        assert_eq!(node.status(waiting).await, RunStatus::Queued, "a free place is not its turn: {strategy}");
        node.cancel(waiting).await;
    }
    // Without a bound, the end of another run is no reason to begin either.
    let waiting = submit_later(&node, &flat(1, 1), 60).await;
    let now = node.share(&flat(1, 1)).await;
    node.cancel(now).await;
    assert_eq!(node.status(waiting).await, RunStatus::Queued);
}

async fn due_run_is_admitted_as_if_it_were_submitted_then(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    for (strategy, expected) in [
        ("queue", [RunStatus::Running, RunStatus::Queued]),
        ("skip", [RunStatus::Running, RunStatus::Canceled]),
        ("replace", [RunStatus::Canceled, RunStatus::Running]),
        ("fail", [RunStatus::Running, RunStatus::Canceled]),
    ] {
        let document = limited(strategy).replace("name: flow", &format!("name: {strategy}"));
        let waiting = submit_later(&node, &document, 60).await;
        let now = node.share(&document).await;
        place.advance(Duration::from_secs(60));
        assert_eq!(node.promote().await, None, "{strategy}: nothing is left for the clock");
        for run in [now, waiting] {
            audit::check(&*node.store, run).await;
        }
        assert_eq!([node.status(now).await, node.status(waiting).await], expected, "{strategy}");
        let reason = node.state(waiting).await.reason.unwrap_or_default();
        assert_eq!(reason.contains("max_runs"), matches!(strategy, "skip" | "fail"), "{strategy}: {reason}");
        if strategy == "queue" {
            assert!(node.why(waiting, "a").await.contains("max_runs"));
            node.cancel(now).await;
            assert_eq!(node.status(waiting).await, RunStatus::Running);
        }
        for run in [now, waiting] {
            if !node.status(run).await.is_final() {
                node.cancel(run).await;
            }
        }
    }
}

async fn run_for_later_can_be_canceled_and_retried(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = submit_later(&node, &flat(1, 1), 60).await;
    assert_eq!(node.cancel(run).await, RunStatus::Canceled);
    assert_eq!(node.promote().await, None);
    assert_eq!(node.state(run).await.not_before, None);
    place.advance(Duration::from_secs(60));
    node.promote().await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    node.retry(run, None).await.expect("an ended run");
    assert_eq!(node.take_any(9).await.len(), 1, "whoever retries it wants it now");
}

async fn timeout_of_a_run_for_later_counts_from_its_beginning(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = submit_later(&node, &flow("timeout: 30s", &[("a", "")]), 60).await;
    place.advance(Duration::from_secs(60));
    assert_eq!(node.promote().await, Some(at(90_000)));
    assert_eq!(node.status(run).await, RunStatus::Running);
    place.advance(Duration::from_secs(30));
    node.promote().await;
    assert_eq!(node.task(run, "a").await.status, TaskStatus::Canceled);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn paused_run_for_later_stays_paused_when_it_is_due(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = submit_later(&node, &flat(1, 1), 60).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    place.advance(Duration::from_secs(60));
    assert_eq!(node.promote().await, None);
    assert!(node.take_any(9).await.is_empty());
    assert!(node.why(run, "s0").await.contains("paused"));
    node.store.resume(Pausable::Run(run), "ada").await.expect("it goes on");
    assert_eq!(node.take_any(9).await.len(), 1);
}
