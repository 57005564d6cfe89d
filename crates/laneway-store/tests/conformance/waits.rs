//! E4 in the store: steps that wait are parked, held by nobody, and ended by the first signal or by
//! the store's clock.

use std::time::Duration;

use laneway_core::event::Fact;
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::model::{NewSignal, Pausable, Signaled};
use laneway_store::{Error, Result, Store};
use serde_json::{Value, json};

use crate::audit;
use crate::harness::{
    Database, Node, Place, START, block_on, flow, for_each_database, names, succeeded, succeeded_with,
};
use crate::{server, statements};

for_each_database! {
    parked_task_holds_no_place_and_no_claim,
    signal_ends_the_step_with_what_it_brings,
    second_signal_changes_nothing_and_says_who_was_first,
    of_many_signals_at_once_one_counts,
    signal_that_comes_early_is_kept_for_the_step,
    signal_must_name_a_step_that_waits_for_it,
    signal_to_a_step_that_has_ended_says_so,
    payload_is_as_large_as_an_output_may_be,
    wait_for_a_while_ends_by_the_clock_of_the_store,
    wait_until_a_moment_that_is_past_ends_at_once,
    moment_may_be_what_an_earlier_step_found,
    moment_that_cannot_be_read_fails_the_step,
    condition_that_cannot_be_evaluated_fails_the_step,
    wait_without_its_signal_fails_when_its_time_is_up,
    signal_after_the_time_is_up_comes_too_late,
    promote_says_when_the_next_moment_comes,
    parked_task_survives_the_death_of_its_owner,
    nobody_reaps_what_is_parked,
    cancel_ends_what_is_parked_at_once,
    timeout_of_the_run_ends_what_is_parked,
    halted_run_waits_for_nobody,
    clean_up_may_wait,
    place_of_what_a_failed_wait_halts_goes_to_the_next,
    retry_waits_anew_and_takes_no_old_signal,
    wait_that_timed_out_can_be_skipped,
    paused_run_parks_nothing_new_and_hears_signals,
    wait_stands_in_the_order_of_its_key,
    wait_of_a_group_brings_its_payload_into_the_result,
    payload_of_a_member_may_say_that_it_failed,
    wait_of_a_pinned_run_binds_nobody,
    queued_run_keeps_its_signal,
    many_due_at_once_all_end,
    run_with_a_parked_task_is_not_removed,
}

mod plans {
    crate::harness::for_each_database! {
        by name:
        due_task_is_found_by_an_index,
    }

    use super::due_task_is_found_by_an_index;
}

fn signal(name: &str, payload: Value) -> NewSignal {
    let Value::Object(payload) = payload else { panic!("a payload is an object") };
    NewSignal {
        name: name.to_owned(),
        by: "grace".to_owned(),
        reason: Some("it is fine".to_owned()),
        payload,
    }
}

async fn send(node: &Node, run: RunId, step: &str, payload: Value) -> Result<Signaled> {
    let sent = node.store.signal(run, step, signal("go", payload)).await;
    audit::check(&*node.store, run).await;
    sent
}

async fn promote(node: &Node, run: RunId) -> Option<Millis> {
    let next = node.promote().await;
    audit::check(&*node.store, run).await;
    next
}

/// A document whose steps say all of their keys.
fn doc(head: &str, steps: &[(&str, &str)]) -> String {
    let steps: Vec<String> = steps.iter().map(|(name, keys)| format!("  {name}: {{{keys}}}\n")).collect();
    format!("name: flow\n{head}\nsteps:\n{}", steps.concat())
}

const GATE: (&str, &str) = ("gate", "wait: {signal: go}");

async fn parked_task_holds_no_place_and_no_claim(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&doc("max_parallel: 1", &[GATE, ("beside", "run: x"), ("behind", "run: x, needs: [gate]")]))
        .await;
    assert_eq!(node.tasks(run).await, "gate parked, beside available, behind pending");
    assert_eq!(names(&node.take(run, 5).await), ["beside"], "a wait never delays its siblings");
    assert_eq!(node.renew().await.expect("a life").held.len(), 1);
    let gate = node.task(run, "gate").await;
    assert_eq!((gate.started_at, gate.attempt, gate.node), (Some(START), 0, None));
    let why = node.why(run, "gate").await;
    let command = format!("`laneway signal {} gate go` sends it", run.short());
    assert_eq!(why, format!("waits for the signal `go` since {START}; {command}"));
    assert_eq!(node.why(run, "behind").await, "waits for gate (parked)");
}

async fn signal_ends_the_step_with_what_it_brings(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&doc(
            "",
            &[GATE, ("next", "run: x, needs: [gate], if: \"${{ steps.gate.output.tag == 'v2' }}\"")],
        ))
        .await;
    place.advance(Duration::from_secs(90));
    assert_eq!(send(&node, run, "gate", json!({ "tag": "v2" })).await.expect("taken"), Signaled::Woken);
    assert_eq!(node.tasks(run).await, "gate succeeded, next available", "promoted in the same transaction");
    let gate = node.task(run, "gate").await;
    assert_eq!(Value::Object(gate.output), json!({ "tag": "v2" }));
    assert_eq!((gate.attempt, gate.took_ms), (0, Some(90_000)));
    let first = gate.wait.and_then(|wait| wait.signal).expect("who it was is kept");
    assert_eq!((first.by.as_str(), first.reason.as_deref()), ("grace", Some("it is fine")));
    assert!(first.payload.is_empty(), "it stands in the output");
    let told: Vec<&str> = node.events(run).await.iter().map(|event| event.fact.name()).collect();
    let expected =
        ["run_submitted", "run_started", "task_parked", "task_signaled", "task_finished", "task_available"];
    assert_eq!(told, expected);
    assert_eq!(node.work(run, |_| succeeded()).await, ["next"]);
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    assert!(node.attempts(run, "gate").await.is_empty(), "nobody tried anything");
}

async fn second_signal_changes_nothing_and_says_who_was_first(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE, ("next", "run: x, needs: [gate]")])).await;
    send(&node, run, "gate", json!({ "n": 1 })).await.expect("taken");
    let before = node.state(run).await;
    place.advance(Duration::from_secs(5));
    let second = NewSignal { by: "eve".to_owned(), ..signal("go", json!({ "n": 2 })) };
    let answer = node.store.signal(run, "gate", second).await.expect("an answer");
    assert_eq!(answer, Signaled::Before { by: "grace".to_owned(), at: START });
    assert_eq!(node.state(run).await, before);
}

async fn of_many_signals_at_once_one_counts(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE])).await;
    let mut senders = tokio::task::JoinSet::new();
    for number in 0..8 {
        let store = place.open();
        senders.spawn(async move { store.signal(run, "gate", signal("go", json!({ "n": number }))).await });
    }
    let answers = senders.join_all().await;
    let woken = answers.iter().filter(|answer| matches!(answer, Ok(Signaled::Woken))).count();
    let later = answers.iter().filter(|answer| matches!(answer, Ok(Signaled::Before { .. }))).count();
    assert_eq!((woken, later), (1, 7), "{answers:?}");
    let signaled = |fact: &Fact| matches!(fact, Fact::TaskSignaled(_));
    assert_eq!(node.events(run).await.iter().filter(|event| signaled(&event.fact)).count(), 1);
    audit::check(&*node.store, run).await;
}

async fn signal_that_comes_early_is_kept_for_the_step(place: Place) {
    let node = place.node("one").await;
    let run =
        node.submit(&doc("", &[("first", "run: x"), ("gate", "wait: {signal: go}, needs: [first]")])).await;
    assert_eq!(send(&node, run, "gate", json!({ "n": 1 })).await.expect("kept"), Signaled::Kept);
    assert_eq!(node.tasks(run).await, "first available, gate pending");
    let again = send(&node, run, "gate", json!({ "n": 2 })).await.expect("an answer");
    assert_eq!(again, Signaled::Before { by: "grace".to_owned(), at: START });
    let first = node.begin(run, "first").await;
    node.succeed(&first).await;
    assert_eq!(node.tasks(run).await, "first succeeded, gate succeeded");
    assert_eq!(Value::Object(node.task(run, "gate").await.output), json!({ "n": 1 }));
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn signal_must_name_a_step_that_waits_for_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE, ("work", "run: x"), ("nap", "wait: {for: 1h}")])).await;
    let before = node.state(run).await;
    let refusal = |step: &'static str, name: &'static str| {
        let node = node.clone();
        async move { node.store.signal(run, step, signal(name, json!({}))).await.expect_err("refused") }
    };
    assert!(matches!(refusal("gate", "stop").await, Error::OtherSignal { expected, .. } if expected == "go"));
    assert!(matches!(refusal("work", "go").await, Error::NoSignal { .. }));
    assert!(matches!(refusal("nap", "go").await, Error::NoSignal { .. }));
    let unknown = refusal("gates", "go").await;
    assert_eq!(unknown.hint().as_deref(), Some("did you mean `gate`?"));
    assert_eq!(node.state(run).await, before, "a refusal changes nothing");
}

async fn signal_to_a_step_that_has_ended_says_so(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE])).await;
    node.cancel(run).await;
    let refusal = send(&node, run, "gate", json!({})).await.expect_err("it waits no more");
    let expected = format!("step `gate` of run {} waits no more: it is canceled (canceled)", run.short());
    assert_eq!(refusal.to_string(), expected);
}

async fn payload_is_as_large_as_an_output_may_be(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE])).await;
    let refusal =
        send(&node, run, "gate", json!({ "x": "y".repeat(300 * 1024) })).await.expect_err("too large");
    assert!(matches!(refusal, Error::BadSignal(_)), "{refusal}");
    assert_eq!(node.tasks(run).await, "gate parked");
    send(&node, run, "gate", json!({ "x": "y".repeat(200 * 1024) })).await.expect("it fits");
}

async fn wait_for_a_while_ends_by_the_clock_of_the_store(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("nap", "wait: {for: 90s}"), ("next", "run: x, needs: [nap]")])).await;
    let over = Millis(START.0 + 90_000);
    assert_eq!(node.store.wake_at().await.expect("an answer"), Some(over));
    assert_eq!(node.why(run, "nap").await, format!("waits until {over}, since {START}"));
    place.advance(Duration::from_millis(89_999));
    assert_eq!(promote(&node, run).await, Some(over), "not yet");
    assert_eq!(node.tasks(run).await, "nap parked, next pending");
    place.advance(Duration::from_millis(1));
    assert_eq!(promote(&node, run).await, None);
    assert_eq!(node.tasks(run).await, "nap succeeded, next available");
}

async fn wait_until_a_moment_that_is_past_ends_at_once(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("nap", "wait: {until: \"2001-01-01T00:00:00Z\"}")])).await;
    assert_eq!(node.tasks(run).await, "nap succeeded");
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    let shared = node.share(&doc("", &[("nap", "wait: {for: 0s}"), ("next", "run: x, needs: [nap]")])).await;
    assert_eq!(node.task(shared, "nap").await.took_ms, Some(0));
}

async fn moment_may_be_what_an_earlier_step_found(place: Place) {
    let node = place.node("one").await;
    let nap = "wait: {until: \"${{ steps.find.output.at }}\"}, needs: [find]";
    let run = node.submit(&doc("", &[("find", "run: x"), ("nap", nap)])).await;
    let at = Millis(START.0 + 5_000);
    let find = node.begin(run, "find").await;
    let answer = node.finish_with(&find, succeeded_with(json!({ "at": at.to_string() }))).await;
    assert_eq!(answer.wake_at, Some(at), "whoever records it knows when to look again");
    place.advance(Duration::from_secs(5));
    promote(&node, run).await;
    assert_eq!(node.tasks(run).await, "find succeeded, nap succeeded");
}

async fn moment_that_cannot_be_read_fails_the_step(place: Place) {
    let node = place.node("one").await;
    let nap = "wait: {for: \"${{ steps.find.output.span }}\"}, needs: [find]";
    let run = node.submit(&doc("", &[("find", "run: x"), ("nap", nap)])).await;
    let find = node.begin(run, "find").await;
    node.finish(&find, succeeded_with(json!({ "span": "soon" }))).await;
    let nap = node.task(run, "nap").await;
    assert_eq!((nap.status, nap.reason), (TaskStatus::Failed, Some(Reason::Expression)));
    assert_eq!(nap.detail.as_deref(), Some("`wait.for` is `soon`, which is no duration such as 5m"));
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn condition_that_cannot_be_evaluated_fails_the_step(place: Place) {
    let node = place.node("one").await;
    let gate = "wait: {signal: go}, needs: [find], if: \"${{ steps.find.output.missing > 1 }}\"";
    let run = node.submit(&doc("", &[("find", "run: x"), ("gate", gate)])).await;
    let find = node.begin(run, "find").await;
    node.succeed(&find).await;
    let gate = node.task(run, "gate").await;
    assert_eq!((gate.status, gate.reason), (TaskStatus::Failed, Some(Reason::Expression)), "{gate:?}");
}

async fn wait_without_its_signal_fails_when_its_time_is_up(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("gate", "wait: {signal: go, timeout: 24h}")])).await;
    let up = Millis(START.0 + 86_400_000);
    let why = node.why(run, "gate").await;
    assert!(why.contains(&format!(", and fails without it at {up}; ")), "{why}");
    place.advance(Duration::from_secs(86_400));
    promote(&node, run).await;
    let gate = node.task(run, "gate").await;
    assert_eq!((gate.status, gate.reason), (TaskStatus::Failed, Some(Reason::Timeout)));
    let detail = "timeout: the signal `go` did not come within 1d";
    assert_eq!(gate.detail.as_deref(), Some(detail));
    assert_eq!(
        node.state(run).await.reason.as_deref(),
        Some("gate failed: timeout: the signal `go` did not come within 1d")
    );
}

async fn signal_after_the_time_is_up_comes_too_late(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[("gate", "wait: {signal: go, timeout: 5s}")])).await;
    place.advance(Duration::from_secs(5));
    // Nobody has looked at the clock yet.
    let refusal = send(&node, run, "gate", json!({})).await.expect_err("too late");
    assert!(matches!(refusal, Error::NotWaiting { why: Some(Reason::Timeout), .. }), "{refusal}");
    promote(&node, run).await;
    assert_eq!(node.tasks(run).await, "gate failed (timeout)");
}

async fn promote_says_when_the_next_moment_comes(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&doc("", &[GATE, ("long", "wait: {for: 10s}"), ("short", "wait: {signal: go, timeout: 4s}")]))
        .await;
    assert_eq!(promote(&node, run).await, Some(Millis(START.0 + 4_000)));
    send(&node, run, "short", json!({})).await.expect("taken");
    assert_eq!(promote(&node, run).await, Some(Millis(START.0 + 10_000)), "its moment went with it");
    place.advance(Duration::from_secs(10));
    assert_eq!(promote(&node, run).await, None, "one that waits for a signal alone has no moment");
}

async fn parked_task_survives_the_death_of_its_owner(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&doc("", &[GATE, ("nap", "wait: {for: 5s}"), ("next", "run: x, needs: [gate, nap]")]))
        .await;
    drop(node);
    let other = place.node("two").await;
    other.store.reap().await.expect("an answer");
    assert_eq!(other.tasks(run).await, "gate parked, nap parked, next pending");
    assert!(other.view(run).await.is_interrupted);
    place.advance(Duration::from_secs(5));
    promote(&other, run).await;
    send(&other, run, "gate", json!({})).await.expect("taken");
    other.store.adopt(run, other.session).await.expect("nobody has it");
    assert_eq!(other.work(run, |_| succeeded()).await, ["next"]);
    assert_eq!(other.status(run).await, RunStatus::Succeeded);
}

async fn nobody_reaps_what_is_parked(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = node.share(&doc("", &[GATE, ("work", "run: x")])).await;
    assert_eq!(names(&node.take_any(5).await), ["work"]);
    drop(node);
    let other = Node::worker(place.open(), "two", &[]).await;
    let reaped = other.store.reap().await.expect("an answer");
    assert_eq!(reaped.tasks, 1, "the one that was held");
    assert_eq!(other.tasks(run).await, "gate parked, work available (lost)".replace(" (lost)", ""));
    let lost = |fact: &Fact| matches!(fact, Fact::TaskLost(lost) if lost.step == "gate");
    assert!(!other.events(run).await.iter().any(|event| lost(&event.fact)));
}

async fn cancel_ends_what_is_parked_at_once(place: Place) {
    let node = place.node("one").await;
    let run =
        node.submit(&doc("", &[GATE, ("nap", "wait: {for: 5s}"), ("next", "run: x, needs: [gate]")])).await;
    assert_eq!(node.cancel(run).await, RunStatus::Canceled);
    let expected = "gate canceled (canceled), nap canceled (canceled), next canceled (canceled)";
    assert_eq!(node.tasks(run).await, expected);
    assert_eq!(promote(&node, run).await, None, "no moment is left behind");
}

async fn timeout_of_the_run_ends_what_is_parked(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("timeout: 5s", &[GATE, ("nap", "wait: {for: 5s}")])).await;
    place.advance(Duration::from_secs(5));
    promote(&node, run).await;
    assert_eq!(node.tasks(run).await, "gate canceled (run_timeout), nap canceled (run_timeout)");
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn halted_run_waits_for_nobody(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE, ("work", "run: x"), ("next", "run: x, needs: [gate]")])).await;
    let work = node.begin(run, "work").await;
    node.fail(&work).await;
    assert_eq!(node.tasks(run).await, "gate canceled (halted), work failed (exit), next skipped (halted)");
    assert_eq!(node.status(run).await, RunStatus::Failed);
    assert_eq!(node.retry(run, None).await.expect("a retry"), ["gate", "work", "next"]);
    assert_eq!(node.tasks(run).await, "gate parked, work available, next pending");
    // Where the rest goes on, so does the wait.
    let run = node.submit(&doc("on_failure: continue", &[GATE, ("work", "run: x")])).await;
    let work = node.begin(run, "work").await;
    node.fail(&work).await;
    assert_eq!(node.tasks(run).await, "gate parked, work failed (exit)");
}

async fn clean_up_may_wait(place: Place) {
    let node = place.node("one").await;
    let clean = "wait: {signal: go}, needs: [work], when: all_done";
    let run = node
        .submit(&doc(
            "",
            &[("work", "run: x"), ("ask", clean), ("after", "run: x, needs: [ask], when: always")],
        ))
        .await;
    let work = node.begin(run, "work").await;
    node.fail(&work).await;
    assert_eq!(node.tasks(run).await, "work failed (exit), ask parked, after pending");
    send(&node, run, "ask", json!({})).await.expect("taken");
    assert_eq!(node.work(run, |_| succeeded()).await, ["after"]);
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

/// Found by the model: the place was free in the middle of a look at the gates, and nobody was
/// told.
async fn place_of_what_a_failed_wait_halts_goes_to_the_next(place: Place) {
    let node = place.node("one").await;
    let steps =
        [("gate", "wait: {signal: go, timeout: 1s}"), ("work", "run: x"), ("clean", "run: x, when: always")];
    let run = node.submit(&doc("max_parallel: 1", &steps)).await;
    assert_eq!(node.tasks(run).await, "gate parked, work available, clean pending");
    place.advance(Duration::from_secs(1));
    promote(&node, run).await;
    assert_eq!(node.tasks(run).await, "gate failed (timeout), work skipped (halted), clean available");
}

async fn retry_waits_anew_and_takes_no_old_signal(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE, ("next", "run: x, needs: [gate]")])).await;
    send(&node, run, "gate", json!({ "n": 1 })).await.expect("taken");
    assert_eq!(node.work(run, |_| succeeded()).await, ["next"]);
    assert_eq!(node.retry(run, Some("gate")).await.expect("a retry"), ["gate", "next"]);
    let gate = node.task(run, "gate").await;
    assert_eq!(
        (gate.status, gate.output.len()),
        (TaskStatus::Parked, 0),
        "whoever approves approves each time"
    );
    assert_eq!(send(&node, run, "gate", json!({ "n": 2 })).await.expect("taken"), Signaled::Woken);
    // A signal that was kept goes with the life of the step for which it was kept.
    let run =
        node.submit(&doc("", &[("first", "run: x"), ("gate", "wait: {signal: go}, needs: [first]")])).await;
    send(&node, run, "gate", json!({ "n": 1 })).await.expect("kept");
    let first = node.begin(run, "first").await;
    node.fail(&first).await;
    assert_eq!(node.tasks(run).await, "first failed (exit), gate skipped (halted)");
    node.retry(run, None).await.expect("a retry");
    node.work(run, |_| succeeded()).await;
    assert_eq!(node.tasks(run).await, "first succeeded, gate parked");
}

async fn wait_that_timed_out_can_be_skipped(place: Place) {
    let node = place.node("one").await;
    let run = node
        .submit(&doc("", &[("gate", "wait: {signal: go, timeout: 5s}"), ("next", "run: x, needs: [gate]")]))
        .await;
    place.advance(Duration::from_secs(5));
    promote(&node, run).await;
    assert_eq!(node.skip(run, "gate").await.expect("skipped"), ["next"]);
    assert_eq!(node.work(run, |_| succeeded()).await, ["next"]);
    assert_eq!(node.tasks(run).await, "gate skipped (skipped_by_person), next succeeded");
}

async fn paused_run_parks_nothing_new_and_hears_signals(place: Place) {
    let node = place.node("one").await;
    let steps = [GATE, ("nap", "wait: {for: 5s}"), ("later", "wait: {signal: go}, needs: [gate]")];
    let run = node.submit(&doc("", &steps)).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("paused");
    send(&node, run, "gate", json!({})).await.expect("what is said is said");
    assert_eq!(node.tasks(run).await, "gate succeeded, nap parked, later pending");
    assert!(node.why(run, "later").await.starts_with("its run is paused"));
    place.advance(Duration::from_secs(5));
    promote(&node, run).await;
    assert_eq!(node.task(run, "nap").await.status, TaskStatus::Succeeded, "time goes on");
    node.store.resume(Pausable::Run(run), "ada").await.expect("resumed");
    assert_eq!(node.task(run, "later").await.status, TaskStatus::Parked);
    // A workflow that is paused parks nothing of a new run either.
    node.store.pause(Pausable::Workflow("flow".to_owned()), "ada").await.expect("paused");
    let run = node.submit(&doc("", &[GATE])).await;
    assert_eq!(node.tasks(run).await, "gate pending");
    node.store.resume(Pausable::Workflow("flow".to_owned()), "ada").await.expect("resumed");
    assert_eq!(node.tasks(run).await, "gate parked");
}

async fn wait_stands_in_the_order_of_its_key(place: Place) {
    let node = place.node("one").await;
    let first =
        node.submit(&doc("", &[("gate", "wait: {signal: go}, order: {key: k, version: \"2\"}")])).await;
    let second = node.submit(&flow("", &[("work", "order: {key: k, version: \"10\"}")])).await;
    assert_eq!(node.tasks(second).await, "work pending");
    assert!(
        node.why(second, "work").await.contains("waiting for a signal"),
        "{}",
        node.why(second, "work").await
    );
    let third =
        node.submit(&doc("", &[("gate", "wait: {signal: go}, order: {key: k, version: \"11\"}")])).await;
    assert_eq!(node.tasks(third).await, "gate pending", "it does not park before its turn");
    send(&node, first, "gate", json!({})).await.expect("taken");
    assert_eq!(node.tasks(second).await, "work available");
    let work = node.begin(second, "work").await;
    node.succeed(&work).await;
    assert_eq!(node.tasks(third).await, "gate parked");
}

fn grouped(group: &str) -> String {
    format!(
        "{}groups: {{g: {{{group}}}}}\n",
        doc("", &[GATE, ("work", "run: x"), ("after", "run: x, needs: [g]")])
    )
}

async fn wait_of_a_group_brings_its_payload_into_the_result(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&grouped("steps: [gate, work], max_parallel: 1")).await;
    assert_eq!(node.tasks(run).await, "gate parked, work available, after pending, g/merge pending");
    let work = node.begin(run, "work").await;
    send(&node, run, "gate", json!({ "tag": "v2" })).await.expect("taken");
    node.succeed(&work).await;
    let told: Vec<&str> = node.events(run).await.iter().map(|event| event.fact.name()).collect();
    assert_eq!(told.iter().filter(|name| **name == "lane_started").count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|name| **name == "lane_finished").count(), 1, "{told:?}");
    assert_eq!(node.work(run, |_| succeeded()).await, ["g/merge", "after"]);
}

async fn payload_of_a_member_may_say_that_it_failed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&grouped("steps: [gate, work]")).await;
    send(&node, run, "gate", json!({ "success": false })).await.expect("taken");
    assert_eq!(
        node.tasks(run).await,
        "gate failed (error), work canceled (aborted), after skipped (halted), g/merge skipped (halted)"
    );
}

async fn wait_of_a_pinned_run_binds_nobody(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = node.share(&doc("placement: pinned", &[GATE, ("work", "run: x, needs: [gate]")])).await;
    assert_eq!(node.tasks(run).await, "gate parked, work pending");
    send(&node, run, "gate", json!({})).await.expect("taken");
    assert_eq!(names(&node.take_any(1).await), ["work"]);
    // Nobody is needed for a run that only waits.
    let run = node.share(&doc("placement: pinned", &[GATE])).await;
    send(&node, run, "gate", json!({})).await.expect("taken");
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn queued_run_keeps_its_signal(place: Place) {
    let node = place.node("one").await;
    let head = "max_runs: 1";
    let first = node.submit(&doc(head, &[GATE])).await;
    let second = node.submit(&doc(head, &[GATE])).await;
    assert_eq!(node.tasks(second).await, "gate pending");
    assert_eq!(send(&node, second, "gate", json!({})).await.expect("kept"), Signaled::Kept);
    send(&node, first, "gate", json!({})).await.expect("taken");
    assert_eq!(node.status(second).await, RunStatus::Succeeded, "it starts, waits, and is over");
}

async fn many_due_at_once_all_end(place: Place) {
    let node = place.node("one").await;
    let steps: Vec<String> = (0..2_500).map(|step| format!("s{step}")).collect();
    let steps: Vec<(&str, &str)> = steps.iter().map(|name| (name.as_str(), "wait: {for: 5s}")).collect();
    let run = node.submit(&doc("", &steps)).await;
    place.advance(Duration::from_secs(5));
    let mut looks = 0;
    while node.promote().await.is_some() {
        looks += 1;
        assert!(looks < 10, "each look ends as many as it may");
    }
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
    audit::check(&*node.store, run).await;
}

async fn run_with_a_parked_task_is_not_removed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&doc("", &[GATE])).await;
    node.submit(&doc("", &[GATE])).await;
    place.advance(Duration::from_secs(400 * 86_400));
    assert!(!node.store.prune(run).await.expect("an answer"), "it is not over");
    assert_eq!(node.tasks(run).await, "gate parked");
    if place.database == Database::Sqlite {
        let copy = place.path().with_extension("copy");
        node.store.backup(&copy).await.expect("a copy");
        let copied = laneway_store::open(copy.to_str().expect("a path"), laneway_store::Open::Existing);
        let copied = copied.expect("a store");
        assert_eq!(copied.run_state(run).await.expect("the run").tasks[0].status, TaskStatus::Parked);
    }
}

/// What a process asks when it starts, and whenever time may have something to say: none of it
/// walks along the tasks.
fn due_task_is_found_by_an_index(database: Database) {
    let place = Place::new(database);
    block_on(async {
        let node = place.node("one").await;
        let steps: Vec<String> = (0..1_000).map(|step| format!("s{step}")).collect();
        let keys = "wait: {signal: go, timeout: 1h}";
        let steps: Vec<(&str, &str)> = steps.iter().map(|name| (name.as_str(), keys)).collect();
        node.submit(&doc("", &steps)).await;
        for (name, plan) in plans(&place, &*node.store).await {
            assert!(!plan.contains("SCAN tasks") || plan.contains("SCAN tasks USING"), "{name}:\n{plan}");
            assert!(!plan.contains("Seq Scan on tasks"), "{name}:\n{plan}");
            assert!(!name.starts_with("promote_") || plan.contains("tasks_due"), "{name}:\n{plan}");
        }
    });
}

/// How the database goes about statements of a start, of a look at the clock, and of a claim.
async fn plans(place: &Place, store: &dyn Store) -> Vec<(&'static str, String)> {
    if let Some(beneath) = server::beneath(store.dir()).await {
        beneath.batch_execute("ANALYZE tasks").await.expect("counted");
        let mut plans = Vec::new();
        for (name, sql) in [
            ("promote_due", statements::postgres::statement!("promote_due")),
            ("promote_next", statements::postgres::statement!("promote_next")),
        ] {
            // What is planned for the case that a run is set aside is not done.
            let sql = format!("EXPLAIN (ANALYZE) {}", sql.replace("$1::bigint", "1::bigint"));
            let rows = beneath.query(&sql, &[]).await.expect("a plan");
            let lines = rows.iter().map(|row| row.get::<_, String>(0));
            let done = lines.filter(|line| !line.contains("never executed"));
            plans.push((name, done.map(|line| line + "\n").collect()));
        }
        return plans;
    }
    let connection = rusqlite::Connection::open(place.path()).expect("the store's file");
    let explained = |(name, sql): (&'static str, &str)| {
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
        let mut rows = statement.raw_query();
        let mut plan = String::new();
        while let Some(row) = rows.next().expect("a row") {
            plan.push_str(&format!("{}\n", row.get::<_, String>(3).expect("text")));
        }
        (name, plan)
    };
    [
        ("promote_due", statements::sqlite::statement!("promote_due")),
        ("promote_next", statements::sqlite::statement!("promote_next")),
        ("claim_available", statements::sqlite::statement!("claim_available")),
        ("reap_runs", statements::sqlite::statement!("reap_runs")),
        ("reap_queued", statements::sqlite::statement!("reap_queued")),
        ("tasks_held", statements::sqlite::statement!("tasks_held")),
        ("stops", statements::sqlite::statement!("stops")),
    ]
    .map(explained)
    .to_vec()
}
