//! Reads: finding runs, listing them, why a task waits (G5), and its attempts.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::event::{Closing, PauseScope};
use laneway_core::id::RunId;
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_core::time::Millis;
use laneway_store::Error;
use laneway_store::model::{Pausable, Placed, RunFilter, Submission};
use laneway_store::sqlite::Clock;
use serde_json::json;

use crate::harness::{
    Node, Place, START, canceled, failed, flat, flow, for_each_database, submission, succeeded,
};

for_each_database! {
    run_is_found_by_id_by_short_id_and_by_any_unique_beginning,
    run_is_found_as_the_last,
    beginning_of_several_runs_is_refused_with_their_ids,
    unknown_name_of_a_run_is_refused,
    runs_are_listed_newest_first_and_filtered,
    interrupted_run_is_listed_as_such,
    list_says_which_runs_are_paused_and_which_are_being_canceled,
    task_that_waits_for_needs_says_for_which,
    task_that_waits_for_its_retry_says_until_when,
    task_that_waits_for_a_place_says_who_has_it,
    task_that_is_available_says_that_it_waits_for_a_slot,
    task_of_an_interrupted_run_says_that_nobody_runs_it,
    attempts_tell_how_each_try_ended,
    every_change_of_state_has_its_event,
    moments_never_go_back_whosever_clock_is_behind,
}

async fn run_is_found_by_id_by_short_id_and_by_any_unique_beginning(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let id = run.to_string();
    let names = [
        id.clone(),
        id.to_uppercase(),
        run.short(),
        run.tail(),
        run.tail()[..4].to_owned(),
        id[..4].to_owned(),
        id[..13].to_owned(),
    ];
    for name in names {
        assert_eq!(node.store.find_run(&name).await.expect("a run"), run, "{name}");
    }
}

async fn run_is_found_as_the_last(place: Place) {
    let node = place.node("one").await;
    assert!(matches!(node.store.find_run("last").await, Err(Error::NoSuchRun { .. })));
    for _ in 0..3 {
        let run = node.submit(&flat(1, 1)).await;
        assert_eq!(node.store.find_run("last").await.expect("a run"), run);
    }
    let last = node.store.find_run("last").await.expect("a run");
    let with_key = async |key: &str| {
        let key = Some(key.to_owned());
        let submission = Submission { key, ..submission(&flat(1, 1), json!({}), node.session) };
        node.store.submit(submission).await.expect("a run")
    };
    for own in ["schedule 0 2 * * * at 1", "after x at 2", "webhook y z", "hooks of x (3)", "child of x (4)"]
    {
        with_key(own).await;
        assert_eq!(node.store.find_run("last").await.expect("a run"), last, "nobody typed or posted {own}");
    }
    let chosen = with_key("Schedule of mine").await;
    assert_eq!(node.store.find_run("last").await.expect("a run"), chosen);
}

async fn beginning_of_several_runs_is_refused_with_their_ids(place: Place) {
    let node = place.node("one").await;
    let (first, second) = (node.submit(&flat(1, 1)).await, node.submit(&flat(1, 1)).await);
    // Ids begin with the time: the first four digits last for years.
    let beginning = &first.to_string()[..4];
    let refusal = node.store.find_run(beginning).await.expect_err("two runs begin so");
    let Error::AmbiguousRun { candidates, .. } = &refusal else { panic!("{refusal}") };
    let mut expected = [first.to_string(), second.to_string()];
    expected.sort();
    assert_eq!(*candidates, expected);
}

async fn unknown_name_of_a_run_is_refused(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let unknown = RunId::new(uuid::Uuid::now_v7()).to_string();
    for name in ["", "%", "____", "first", "zzzz", "' OR 1=1", &run.tail()[..3], &unknown] {
        let refusal = node.store.find_run(name).await.expect_err("no run has that name");
        assert!(matches!(refusal, Error::NoSuchRun { .. }), "{name}: {refusal}");
    }
    let unknown = RunId::parse(&unknown).expect("an id");
    assert!(matches!(node.store.run(unknown).await, Err(Error::NoSuchRun { .. })));
    assert!(matches!(node.store.status(unknown).await, Err(Error::NoSuchRun { .. })));
    assert!(matches!(node.store.events_since(unknown, 0, 1).await, Err(Error::NoSuchRun { .. })));
    assert!(matches!(node.store.attempts(run, "nope").await, Err(Error::NoSuchStep { .. })));
}

async fn listed(node: &Node, filter: RunFilter) -> Vec<RunId> {
    node.store.runs(filter).await.expect("runs").into_iter().map(|run| run.run).collect()
}

async fn runs_are_listed_newest_first_and_filtered(place: Place) {
    let node = place.node("one").await;
    let good = node.submit(&flat(2, 2)).await;
    node.work(good, |_| succeeded()).await;
    let bad = node.submit(&flow("on_failure: continue", &[("a", ""), ("b", "needs: [a]"), ("c", "")])).await;
    node.work(bad, |step| if step == "a" { failed(1) } else { succeeded() }).await;
    let other = node.submit(&flat(1, 1).replace("name: flow", "name: other")).await;
    let all = || RunFilter { limit: 10, ..RunFilter::default() };
    assert_eq!(listed(&node, all()).await, [other, bad, good]);
    assert_eq!(listed(&node, RunFilter { limit: 2, ..all() }).await, [other, bad]);
    assert_eq!(listed(&node, RunFilter { statuses: vec![RunStatus::Succeeded], ..all() }).await, [good]);
    assert_eq!(listed(&node, RunFilter { workflow: Some("flow".to_owned()), ..all() }).await, [bad, good]);
    let none = RunFilter { workflow: Some("other".to_owned()), statuses: vec![RunStatus::Failed], ..all() };
    assert_eq!(listed(&node, none).await, []);
    let summary = node.store.runs(all()).await.expect("runs").remove(1);
    assert_eq!(
        summary.counts,
        [(TaskStatus::Succeeded, 1), (TaskStatus::Failed, 1), (TaskStatus::Skipped, 1)]
    );
    assert_eq!(summary.reason.as_deref(), Some("a failed: exit code 1"));
    assert_eq!((summary.workflow.as_str(), summary.submitted_by.as_str()), ("flow", "ada"));
    assert!(!summary.is_interrupted);
}

async fn interrupted_run_is_listed_as_such(place: Place) {
    let (owner, node) = (place.node("owner").await, place.node("one").await);
    let run = owner.submit(&flat(1, 1)).await;
    let all = RunFilter { limit: 10, ..RunFilter::default() };
    assert!(!node.store.runs(all.clone()).await.expect("runs")[0].is_interrupted);
    drop(owner);
    assert!(node.store.runs(all.clone()).await.expect("runs")[0].is_interrupted, "before anybody reaped");
    node.store.reap().await.expect("an answer");
    assert!(node.store.runs(all.clone()).await.expect("runs")[0].is_interrupted, "and afterwards");
    node.cancel(run).await;
    assert!(!node.store.runs(all).await.expect("runs")[0].is_interrupted, "what has ended is not");
}

async fn list_says_which_runs_are_paused_and_which_are_being_canceled(place: Place) {
    let node = place.node("one").await;
    let (run, other) = (node.submit(&flat(1, 1)).await, node.submit(&flat(1, 1)).await);
    let held = node.begin(run, "s0").await;
    // Of all runs, and of those of a workflow: each has its own statement.
    let listed = async || {
        let all = RunFilter { limit: 10, ..RunFilter::default() };
        let named = RunFilter { workflow: Some("flow".to_owned()), ..all.clone() };
        let mut told = Vec::new();
        for filter in [all, named] {
            let mut runs = node.store.runs(filter).await.expect("runs");
            let first = runs.pop().expect("two runs");
            let second = runs.pop().expect("two runs");
            assert_eq!((first.run, second.run), (run, other));
            assert_eq!((second.closing, second.paused), (None, Vec::new()), "nothing was done to it");
            told.push((first.status, first.closing, first.paused));
        }
        assert_eq!(told[0], told[1]);
        told.remove(0)
    };
    let running = Some(RunStatus::Running);
    assert_eq!(listed().await, (running, None, vec![]));
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    assert_eq!(listed().await, (running, None, vec![PauseScope::Run]));
    node.store.resume(Pausable::Run(run), "ada").await.expect("it goes on");
    assert_eq!(listed().await, (running, None, vec![]));
    node.cancel(run).await;
    assert_eq!(listed().await, (running, Some(Closing::Canceled), vec![]));
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!(listed().await, (Some(RunStatus::Canceled), None, vec![]), "what has ended is neither");
}

/// The cause of a step, as gate, holders and text.
async fn cause(node: &Node, run: RunId, step: &str) -> Option<(&'static str, Vec<String>, String)> {
    let view = node.view(run).await;
    let position = view.plan.position(step).expect("a step");
    view.causes[position as usize].clone().map(|cause| (cause.gate, cause.holders, cause.text))
}

async fn task_that_waits_for_needs_says_for_which(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", ""), ("c", "needs: [a, b]")])).await;
    node.begin(run, "a").await;
    let (gate, holders, text) = cause(&node, run, "c").await.expect("a cause");
    assert_eq!((gate, holders), ("needs", vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(text, "waits for a (running), b (available)");
    assert_eq!(cause(&node, run, "a").await, None, "what runs has no cause");
}

async fn task_that_waits_for_its_retry_says_until_when(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 90s}")])).await;
    let held = node.begin(run, "a").await;
    node.finish(&held, failed(75)).await;
    let (gate, _, text) = cause(&node, run, "a").await.expect("a cause");
    let moment = Millis(START.0 + 90_000);
    assert_eq!(gate, "run_at");
    let expected = format!("waits until {moment} to be tried again (attempt 1 ended with exit code 75)");
    assert_eq!(text, expected);
}

async fn task_that_waits_for_a_place_says_who_has_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(9, 2)).await;
    let held = node.begin(run, "s0").await;
    let (gate, holders, text) = cause(&node, run, "s8").await.expect("a cause");
    assert_eq!((gate, holders), ("max_parallel", vec!["s0".to_owned(), "s1".to_owned()]));
    assert_eq!(text, "waits for a place: max_parallel is 2 and s0, s1 hold it");
    node.succeed(&held).await;
    let (_, holders, _) = cause(&node, run, "s8").await.expect("a cause");
    assert_eq!(holders, ["s1", "s2"]);
}

async fn task_that_is_available_says_that_it_waits_for_a_slot(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    let (gate, _, text) = cause(&node, run, "s0").await.expect("a cause");
    assert_eq!((gate, text.as_str()), ("slot", "ready, waits for a free slot"));
}

async fn task_of_an_interrupted_run_says_that_nobody_runs_it(place: Place) {
    let (owner, node) = (place.node("owner").await, place.node("one").await);
    let run = owner.submit(&flat(1, 1)).await;
    assert_eq!(node.view(run).await.placed, Placed::Local);
    drop(owner);
    let (_, _, text) = cause(&node, run, "s0").await.expect("a cause");
    assert_eq!(text, "ready, but the process that ran this run is gone");
}

async fn attempts_tell_how_each_try_ended(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("one").await);
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 0s}")])).await;
    dying.begin(run, "a").await;
    drop(dying);
    node.store.reap().await.expect("an answer");
    let returned = node.take(run, 1).await.remove(0);
    assert!(node.attempts(run, "a").await.len() == 1, "a claim that nobody started is no try yet");
    node.give_back(&returned).await;
    let failing = node.begin(run, "a").await;
    place.advance(Duration::from_millis(40));
    node.finish(&failing, failed(3)).await;
    let running = node.begin(run, "a").await;
    let attempts = node.attempts(run, "a").await;
    let told: Vec<_> = attempts.iter().map(|one| (one.attempt, one.outcome.as_str(), one.reason)).collect();
    assert_eq!(
        told,
        [(1, "lost", Some(Reason::Lost)), (2, "failed", Some(Reason::Exit)), (3, "running", None)]
    );
    let second = &attempts[1];
    assert_eq!((second.exit_code, second.detail.as_deref()), (Some(3), Some("exit code 3")));
    assert_eq!((second.started_at, second.finished_at), (Some(START), Some(Millis(START.0 + 40))));
    assert_eq!(second.node.as_deref(), Some("one"));
    let watches: Vec<_> = attempts.iter().map(|one| one.took_ms).collect();
    assert_eq!(watches, [None, Some(7), None], "only a holder that finished it has measured it");
    assert_eq!(attempts[0].node.as_deref(), Some("dying"));
    node.succeed(&running).await;
    let last = node.attempts(run, "a").await.pop().expect("an attempt");
    assert_eq!((last.outcome.as_str(), last.exit_code), ("succeeded", Some(0)));
}

async fn every_change_of_state_has_its_event(place: Place) {
    let node = place.node("one").await;
    let steps = [("a", "retry: {max: 1, backoff: 0s}"), ("b", "needs: [a]"), ("c", "needs: [b]")];
    let run = node.submit(&flow("", &steps)).await;
    let mut seen = node.events(run).await.len();
    let mut told = Vec::new();
    let mut tell = |events: Vec<laneway_core::event::Event>| {
        let new: Vec<String> = events[seen..]
            .iter()
            .map(|event| match event.fact.step() {
                Some(step) => format!("{} {step}", event.fact.name()),
                None => event.fact.name().to_owned(),
            })
            .collect();
        seen = events.len();
        told.push(new.join(", "));
    };
    let held = node.take(run, 1).await.remove(0);
    tell(node.events(run).await);
    node.start(&held).await;
    tell(node.events(run).await);
    node.fail(&held).await;
    tell(node.events(run).await);
    let held = node.begin(run, "a").await;
    tell(node.events(run).await);
    node.succeed(&held).await;
    tell(node.events(run).await);
    let held = node.begin(run, "b").await;
    tell(node.events(run).await);
    node.fail(&held).await;
    tell(node.events(run).await);
    assert_eq!(
        told,
        [
            "",
            "task_started a",
            "task_retrying a, task_available a",
            "task_started a",
            "task_finished a, task_available b",
            "task_started b",
            "task_finished b, run_halted, task_skipped c, run_finished",
        ]
    );
}

async fn moments_never_go_back_whosever_clock_is_behind(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("timeout: 10s", &[("a", ""), ("b", "needs: [a]")])).await;
    let behind = Arc::new(Clock::manual(Millis(START.0 - 3_600_000)));
    let other = Node::register(place.open_by(&behind), "behind").await;
    place.advance(Duration::from_secs(9));
    let held = node.begin(run, "a").await;
    other.promote().await;
    node.succeed(&held).await;
    let held = other.begin(run, "b").await;
    behind.advance(Duration::from_secs(60));
    other.succeed(&held).await;
    let moments: Vec<Millis> = node.events(run).await.iter().map(|event| event.at).collect();
    assert!(moments.is_sorted(), "{moments:?}");
    assert_eq!(moments.last(), Some(&Millis(START.0 + 9_000)));
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}
