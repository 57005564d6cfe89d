//! G2, G6: `max_runs` with its four strategies, pauses, and submissions that are made twice.

use laneway_core::state::RunStatus;
use laneway_store::Error;
use laneway_store::model::{Pausable, Submission, Whom};
use serde_json::json;

use crate::harness::{Node, Place, flat, flow, for_each_database, left, names, submission, succeeded};

for_each_database! {
    queue_starts_the_next_run_when_one_ends,
    skip_records_the_run_and_ends_it,
    replace_cancels_the_oldest_and_starts_when_it_has_ended,
    replace_starts_nothing_that_it_replaces,
    fail_refuses_and_leaves_no_run,
    large_run_that_is_refused_leaves_nothing,
    queued_run_of_a_dead_process_is_passed_over_and_starts_when_adopted,
    queued_run_does_not_start_in_the_place_of_one_that_died_with_its_process,
    queued_run_can_be_canceled_and_says_for_what_it_waits,
    runs_of_other_workflows_do_not_count,
    paused_run_starts_nothing_and_goes_on_when_resumed,
    paused_workflow_holds_up_new_runs_too,
    retry_of_a_paused_run_goes_on,
    run_that_has_ended_is_paused_no_more,
    retried_run_is_paused_if_its_workflow_is,
    claim_that_is_given_back_to_a_paused_run_waits,
    retry_that_finds_no_room_is_refused,
    same_key_gives_the_same_run,
    five_submissions_at_once_with_one_key_make_one_run,
}

fn limited(strategy: &str) -> String {
    flow(&format!("max_runs: {{limit: 1, strategy: {strategy}}}"), &[("a", "")])
}

async fn queue_starts_the_next_run_when_one_ends(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("queue")).await;
    let two = node.submit(&limited("queue")).await;
    let three = node.submit(&limited("queue")).await;
    assert_eq!(node.status(two).await, RunStatus::Queued);
    assert!(node.take(two, 9).await.is_empty());
    node.work(one, |_| succeeded()).await;
    assert_eq!([node.status(two).await, node.status(three).await], [RunStatus::Running, RunStatus::Queued]);
    node.cancel(two).await;
    assert_eq!(node.status(three).await, RunStatus::Running, "in the same transaction");
}

async fn skip_records_the_run_and_ends_it(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("skip")).await;
    let two = node.submit(&limited("skip")).await;
    let state = node.state(two).await;
    assert_eq!(state.status, RunStatus::Canceled);
    let reason = state.reason.expect("a reason");
    assert!(reason.contains("max_runs") && reason.contains(&one.short()), "{reason}");
    node.work(one, |_| succeeded()).await;
    assert_eq!(node.status(node.submit(&limited("skip")).await).await, RunStatus::Running);
}

async fn replace_cancels_the_oldest_and_starts_when_it_has_ended(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("replace")).await;
    let held = node.begin(one, "a").await;
    let two = node.submit(&limited("replace")).await;
    assert_eq!(node.status(two).await, RunStatus::Queued, "what runs of the first has not stopped yet");
    let stops = node.stops().await;
    assert_eq!(stops.len(), 1);
    node.finish(&held, crate::harness::canceled(stops[0].reason)).await;
    assert_eq!([node.status(one).await, node.status(two).await], [RunStatus::Canceled, RunStatus::Running]);
    let three = node.submit(&limited("replace")).await;
    let statuses = [node.status(two).await, node.status(three).await];
    assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Running], "nothing of it ran, so that was at once");
}

async fn replace_starts_nothing_that_it_replaces(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("queue")).await;
    let two = node.submit(&limited("queue")).await;
    let three = node.submit(&limited("replace")).await;
    let statuses = [node.status(one).await, node.status(two).await, node.status(three).await];
    assert_eq!(statuses, [RunStatus::Canceled, RunStatus::Canceled, RunStatus::Running]);
    assert_eq!(node.state(two).await.started_at, None, "it never had the place");
}

async fn fail_refuses_and_leaves_no_run(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("fail")).await;
    let refusal = node.store.submit(submission(&limited("fail"), json!({}), node.session)).await;
    let refusal = refusal.expect_err("there is one already").to_string();
    assert!(refusal.contains("max_runs") && refusal.contains(&one.short()), "{refusal}");
    let runs = node.store.runs(laneway_store::model::RunFilter { limit: 9, ..Default::default() });
    assert_eq!(runs.await.expect("a list").len(), 1);
}

async fn large_run_that_is_refused_leaves_nothing(place: Place) {
    let node = place.node("one").await;
    let large = format!("max_runs: {{limit: 1, strategy: fail}}\n{}", flat(2_500, 1));
    let (one, two) =
        (submission(&large, json!({}), node.session), submission(&large, json!({}), node.session));
    let (one, two) = tokio::join!(node.store.submit(one), node.store.submit(two));
    assert!(one.is_ok() != two.is_ok(), "{one:?} {two:?}");
    let examination = node.store.examine(10).await.expect("a look");
    assert_eq!((examination.total, examination.findings), (1, Vec::new()));
}

async fn queued_run_of_a_dead_process_is_passed_over_and_starts_when_adopted(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("queue")).await;
    let dying = place.node("two").await;
    let two = dying.submit(&limited("queue")).await;
    let three = node.submit(&limited("queue")).await;
    drop(dying);
    node.store.reap().await.expect("a reaped session");
    node.work(one, |_| succeeded()).await;
    assert_eq!([node.status(two).await, node.status(three).await], [RunStatus::Queued, RunStatus::Running]);
    node.work(three, |_| succeeded()).await;
    assert_eq!(node.status(two).await, RunStatus::Queued);
    node.store.adopt(two, node.session).await.expect("nobody has it");
    assert_eq!(node.status(two).await, RunStatus::Running);
}

async fn queued_run_does_not_start_in_the_place_of_one_that_died_with_its_process(place: Place) {
    let (node, dying) = (place.node("one").await, place.node("two").await);
    let document = flow("max_runs: {limit: 1, strategy: queue}", &[("a", "on_lost: fail")]);
    let (one, two) = (dying.submit(&document).await, dying.submit(&document).await);
    let three = node.submit(&document).await;
    dying.begin(one, "a").await;
    drop(dying);
    node.store.reap().await.expect("a reaped session");
    let statuses = [node.status(one).await, node.status(two).await, node.status(three).await];
    assert_eq!(statuses, [RunStatus::Failed, RunStatus::Queued, RunStatus::Running]);
}

async fn queued_run_can_be_canceled_and_says_for_what_it_waits(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("queue")).await;
    let two = node.submit(&limited("queue")).await;
    let why = node.why(two, "a").await;
    assert!(why.contains("max_runs") && why.contains(&one.short()), "{why}");
    assert_eq!(node.cancel(two).await, RunStatus::Canceled);
    assert_eq!(node.tasks(two).await, "a canceled (canceled)");
}

async fn runs_of_other_workflows_do_not_count(place: Place) {
    let node = place.node("one").await;
    node.submit(&limited("queue")).await;
    let other = limited("queue").replace("name: flow", "name: other");
    assert_eq!(node.status(node.submit(&other).await).await, RunStatus::Running);
}

async fn paused_run_starts_nothing_and_goes_on_when_resumed(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 2", &[("a", ""), ("b", ""), ("c", "")])).await;
    let held = node.take(run, 1).await;
    assert!(node.store.pause(Pausable::Run(run), "ada").await.expect("a run to pause"));
    assert!(!node.store.pause(Pausable::Run(run), "ada").await.expect("once more does nothing"));
    assert!(node.take_ahead(run, 4, 4).await.is_empty());
    node.succeed(&held[0]).await;
    assert!(node.take(run, 9).await.is_empty(), "a free place is not filled");
    let why = node.why(run, "b").await;
    assert!(why.contains("paused") && why.contains("ada"), "{why}");
    assert!(node.store.resume(Pausable::Run(run), "ada").await.expect("a run to resume"));
    assert!(!node.store.resume(Pausable::Run(run), "ada").await.expect("once more does nothing"));
    assert_eq!(names(&node.take(run, 9).await), ["b", "c"]);
}

async fn paused_workflow_holds_up_new_runs_too(place: Place) {
    let node = place.node("one").await;
    let before = node.submit(&flat(1, 1)).await;
    let workflow = || Pausable::Workflow("flow".to_owned());
    assert!(node.store.pause(workflow(), "ada").await.expect("a pause"));
    assert!(!node.store.pause(workflow(), "ada").await.expect("once more does nothing"));
    let after = node.submit(&flat(1, 1)).await;
    assert!(node.take(before, 9).await.is_empty() && node.take(after, 9).await.is_empty());
    node.store.pause(Pausable::Run(after), "bob").await.expect("a second reason to wait");
    assert!(node.store.resume(workflow(), "ada").await.expect("it goes on"));
    assert!(!node.store.resume(workflow(), "ada").await.expect("once more does nothing"));
    assert_eq!(node.take(before, 9).await.len(), 1);
    assert!(node.take(after, 9).await.is_empty(), "it was paused by itself as well");
    let free = node.submit(&flat(1, 1)).await;
    assert_eq!(node.take(free, 9).await.len(), 1);
}

async fn retry_of_a_paused_run_goes_on(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(2, 1)).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    node.cancel(run).await;
    node.retry(run, None).await.expect("a canceled run");
    assert_eq!(node.take(run, 9).await.len(), 1);
    let refusal = node.store.pause(Pausable::Run(run), "ada").await;
    assert!(matches!(refusal, Ok(true)));
    node.cancel(run).await;
}

async fn run_that_has_ended_is_paused_no_more(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(1, 1)).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    node.cancel(run).await;
    assert!(node.state(run).await.paused.is_empty());
    assert!(!node.store.resume(Pausable::Run(run), "ada").await.expect("there is nothing to resume"));
    crate::audit::check(&*node.store, run).await;
}

async fn retried_run_is_paused_if_its_workflow_is(place: Place) {
    let node = place.node("one").await;
    let workflow = || Pausable::Workflow("flow".to_owned());
    let run = node.submit(&flat(1, 1)).await;
    node.cancel(run).await;
    node.store.pause(workflow(), "ada").await.expect("a pause");
    node.retry(run, None).await.expect("a canceled run");
    assert!(node.take(run, 9).await.is_empty(), "its workflow was paused after it had ended");
    node.cancel(run).await;
    node.store.resume(workflow(), "ada").await.expect("it goes on");
    node.retry(run, None).await.expect("a canceled run");
    let held = node.take(run, 9).await;
    assert_eq!(held.len(), 1, "its workflow was resumed after it had ended");
    node.fail(&held[0]).await;
    node.store.pause(workflow(), "ada").await.expect("a pause");
    node.skip(run, "s0").await.expect("a failed step");
    node.retry(run, Some("s0")).await.expect("an ended run");
    assert!(node.take(run, 9).await.is_empty());
}

async fn claim_that_is_given_back_to_a_paused_run_waits(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "lock: db")])).await;
    let held = node.take(run, 1).await;
    node.store.pause(Pausable::Run(run), "ada").await.expect("a pause");
    node.give_back(&held[0]).await;
    assert!(node.take(run, 9).await.is_empty());
    let other = node.submit(&flow("", &[("b", "lock: db")])).await;
    assert_eq!(node.tasks(other).await, "b available", "it holds no key meanwhile");
    node.work(other, |_| succeeded()).await;
    node.store.resume(Pausable::Run(run), "ada").await.expect("it goes on");
    assert_eq!(names(&node.take(run, 9).await), ["a"]);
}

async fn retry_that_finds_no_room_is_refused(place: Place) {
    let node = place.node("one").await;
    let one = node.submit(&limited("queue")).await;
    node.cancel(one).await;
    let two = node.submit(&limited("queue")).await;
    let refusal = node.retry(one, None).await.expect_err("the other one has the place").to_string();
    assert!(refusal.contains("max_runs") && refusal.contains(&two.short()), "{refusal}");
    node.cancel(two).await;
    node.retry(one, None).await.expect("there is room");
    assert_eq!(node.status(one).await, RunStatus::Running);
}

async fn same_key_gives_the_same_run(place: Place) {
    let node = place.node("one").await;
    let keyed = |key: &str| Submission {
        key: Some(key.to_owned()),
        ..submission(&flat(1, 1), json!({}), node.session)
    };
    let one = node.store.submit(keyed("nightly-1")).await.expect("a run");
    assert_eq!(node.store.submit(keyed("nightly-1")).await.expect("the same"), one);
    assert_ne!(node.store.submit(keyed("nightly-2")).await.expect("another"), one);
    node.work(one, |_| succeeded()).await;
    assert_eq!(node.store.submit(keyed("nightly-1")).await.expect("also after its end"), one);
}

async fn five_submissions_at_once_with_one_key_make_one_run(place: Place) {
    let mut all = Vec::new();
    for number in 0..5 {
        let node: Node = place.node(&format!("n{number}")).await;
        let submission = Submission {
            key: Some("k".to_owned()),
            ..submission(&flow("max_runs: 2", &[("a", "")]), json!({}), node.session)
        };
        all.push(tokio::spawn(async move { (node.store.submit(submission).await, node) }));
    }
    let mut runs = Vec::new();
    for one in all {
        let (run, node) = one.await.expect("no panic");
        runs.push((run.expect("a run"), node));
    }
    assert!(runs.iter().all(|(run, _)| *run == runs[0].0));
    let list = runs[0].1.store.runs(laneway_store::model::RunFilter { limit: 9, ..Default::default() }).await;
    assert_eq!(list.expect("a list").len(), 1);
    assert!(matches!(
        runs[0].1.store.drain(Whom::Node("nobody".into()), left()).await,
        Err(Error::NoSuchNode { .. })
    ));
}
