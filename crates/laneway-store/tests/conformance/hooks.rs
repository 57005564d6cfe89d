//! R12, T2: ends of runs whose workflow has hooks, their plans as they come back from the store,
//! and who listens where.

use std::sync::Arc;
use std::time::Duration;

use laneway_core::class::{Offer, POST};
use laneway_core::hook::{Outcome, Which};
use laneway_core::reason::Reason;
use laneway_core::state::RunStatus;
use laneway_core::time::Millis;
use laneway_store::Error;
use laneway_store::model::{Application, NewSession, Submission};
use laneway_store::trigger::{self, LastFired};
use serde_json::{Map, json};

use crate::harness::{Node, Place, START, canceled, for_each_database, left, plan, submission};

for_each_database! {
    end_of_a_shared_run_with_hooks_is_due_until_it_is_settled,
    end_without_hooks_for_it_owes_nothing,
    hooks_of_a_run_that_belongs_to_its_owner_are_its_owners,
    hooks_of_a_run_whose_owner_is_gone_are_anybodys,
    hooks_of_a_run_that_ends_after_its_owner_are_anybodys,
    run_of_hooks_sees_what_ended_and_has_a_plan_of_its_own,
    run_that_ends_again_owes_its_hooks_again,
    hooks_of_an_end_that_another_one_followed_are_not_made_up_for,
    hooks_of_a_canceled_run_share_the_clock_of_its_clean_up,
    run_without_time_for_clean_up_owes_no_hooks,
    callback_is_sent_by_one_node_that_takes_callbacks_and_again_when_its_time_has_come,
    callback_waits_for_a_node_that_sends_it,
    callback_is_given_up_by_its_retries_and_never_by_losses,
    hooks_that_nobody_has_submitted_are_seen_by_all_who_send,
    end_of_steps_of_hooks_fires_what_comes_after_them_and_that_of_callbacks_fires_nothing,
    path_is_that_of_one_workflow,
    webhook_listens_and_remembers_what_came_of_it,
    paused_webhook_says_so,
}

const HOOKED: &str =
    "name: flow\nhooks: {failed: [{run: page}], finished: [{run: log}]}\nsteps: {a: {run: x}}\n";
const ON_FAILURE: &str = "name: flow\nhooks: {failed: [{run: page}]}\nsteps: {a: {run: x}}\n";

async fn end(node: &Node, document: &str, is_good: bool) -> laneway_core::id::RunId {
    let run = node.share(document).await;
    let held = node.take_any(1).await.remove(0);
    if is_good {
        node.succeed(&held).await
    } else {
        node.fail(&held).await
    }
    run
}

async fn end_of_a_shared_run_with_hooks_is_due_until_it_is_settled(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = end(&node, HOOKED, true).await;
    let due = node.store.due(10).await.expect("what is due");
    assert_eq!(due.firings.len(), 1);
    let firing = &due.firings[0];
    assert!(firing.is_of_hooks());
    assert_eq!((firing.ended.run, firing.ended.status), (run, RunStatus::Succeeded));
    assert_eq!(node.store.hooks_owed(run).await.expect("an answer").as_ref(), Some(firing));
    node.store.settle(firing.end.clone(), None).await.expect("a record");
    assert_eq!(node.store.due(10).await.expect("what is due").firings, []);
    assert_eq!(node.store.hooks_owed(run).await.expect("an answer"), None);
}

async fn end_without_hooks_for_it_owes_nothing(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let good = end(&node, ON_FAILURE, true).await;
    assert_eq!(node.store.hooks_owed(good).await.expect("an answer"), None);
    let bad = end(&node, ON_FAILURE, false).await;
    let due = node.store.due(10).await.expect("what is due");
    assert_eq!(due.firings.iter().map(|firing| firing.ended.run).collect::<Vec<_>>(), [bad]);
}

async fn hooks_of_a_run_that_belongs_to_its_owner_are_its_owners(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(ON_FAILURE).await;
    let held = node.take(run, 1).await.remove(0);
    node.fail(&held).await;
    assert_eq!(node.store.due(10).await.expect("what is due").firings, []);
    let owed = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    assert_eq!((owed.ended.run, owed.ended.status, owed.is_of_hooks()), (run, RunStatus::Failed, true));
}

async fn hooks_of_a_run_whose_owner_is_gone_are_anybodys(place: Place) {
    let (owner, node) = (place.node("one").await, place.node("two").await);
    let due = async || node.store.due(10).await.expect("what is due").firings;
    let run = owner.submit(ON_FAILURE).await;
    let held = owner.take(run, 1).await.remove(0);
    owner.fail(&held).await;
    assert_eq!(due().await, [], "it lives");
    owner.store.retire(owner.session, left()).await.expect("over");
    let owed = due().await;
    assert_eq!(owed.iter().map(|firing| firing.ended.run).collect::<Vec<_>>(), [run]);
    assert!(owed[0].is_of_hooks());
    node.store.settle(owed[0].end.clone(), None).await.expect("a record");
    assert_eq!(due().await, []);
    assert_eq!(node.store.hooks_owed(run).await.expect("an answer"), None);
}

/// Its process died, and somebody else ended what was left of it.
async fn hooks_of_a_run_that_ends_after_its_owner_are_anybodys(place: Place) {
    let (owner, node) = (place.node("one").await, place.node("two").await);
    let canceled = "name: flow\nhooks: {finished: [{run: page}]}\nsteps: {a: {run: x}}\n";
    let run = owner.submit(canceled).await;
    owner.begin(run, "a").await;
    node.cancel(run).await;
    owner.store.retire(owner.session, left()).await.expect("over");
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    let owed = node.store.due(10).await.expect("what is due").firings;
    assert_eq!(owed.iter().map(|firing| firing.ended.run).collect::<Vec<_>>(), [run]);
    // Whoever has seen to them holds it no longer, though it lives.
    let mine = node.submit(ON_FAILURE).await;
    let held = node.take(mine, 1).await.remove(0);
    node.fail(&held).await;
    let firing = node.store.hooks_owed(mine).await.expect("an answer").expect("hooks");
    node.store.settle(firing.end, None).await.expect("a record");
    node.retry(mine, None).await.expect("it goes on");
    let other = place.node("three").await;
    other.store.adopt(mine, other.session).await.expect("nobody has it");
}

async fn hooks_of_a_canceled_run_share_the_clock_of_its_clean_up(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = node.share(HOOKED).await;
    let held = node.take_any(1).await.remove(0);
    place.advance(Duration::from_secs(5));
    node.cancel(run).await;
    place.advance(Duration::from_secs(40));
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!(node.status(run).await, RunStatus::Canceled);
    assert!(node.store.hooks_owed(run).await.expect("an answer").is_some());
    let view = node.view(run).await;
    let end_by = view.state.clean_up_until;
    assert_eq!(end_by, Some(Millis(START.0 + 65_000)), "counted from the cancel");
    let plan = Arc::new(view.plan.hooks_at(RunStatus::Canceled, Which::Steps).expect("hooks"));
    let like = submission(HOOKED, json!({}), node.session);
    let hooks = Submission { plan, end_by, is_shared: true, ..like };
    let hooks = node.store.submit(hooks).await.expect("a run of hooks");
    let held = node.take_any(1).await.remove(0);
    place.advance(Duration::from_secs(20));
    node.promote().await;
    node.finish(&held, canceled(Reason::RunTimeout)).await;
    let state = node.state(hooks).await;
    let reason = "timeout: the time for clean-up of the run whose hooks these are is over";
    assert_eq!((state.status, state.reason.as_deref()), (RunStatus::Failed, Some(reason)));
}

async fn run_without_time_for_clean_up_owes_no_hooks(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let owed = async |run| node.store.hooks_owed(run).await.expect("an answer").is_some();
    let cut = node.share(HOOKED).await;
    let held = node.take_any(1).await.remove(0);
    node.cancel(cut).await;
    node.cancel_now(cut).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!((node.status(cut).await, owed(cut).await), (RunStatus::Canceled, false));
    let late = node.share(HOOKED).await;
    let held = node.take_any(1).await.remove(0);
    node.cancel(late).await;
    place.advance(Duration::from_secs(60));
    node.promote().await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    assert_eq!((node.status(late).await, owed(late).await), (RunStatus::Canceled, false));
    let alone = HOOKED.replace("steps:", "max_runs: 1\nsteps:");
    let first = node.share(&alone).await;
    let queued = node.share(&alone).await;
    assert_eq!(node.cancel(queued).await, RunStatus::Canceled);
    assert!(!owed(queued).await, "it never started");
    assert_eq!(node.cancel(first).await, RunStatus::Canceled);
    assert!(owed(first).await, "it had, though none of its steps");
}

/// The hooks of a run that failed, submitted as whoever looks does.
async fn submit_hooks(node: &Node, of: laneway_core::id::RunId) -> laneway_core::id::RunId {
    let view = node.view(of).await;
    let hooks = view.plan.hooks_at(RunStatus::Failed, Which::Steps).expect("hooks");
    let outcome = Outcome {
        run: of,
        workflow: "flow".to_owned(),
        status: RunStatus::Failed,
        reason: "step `a` failed".to_owned(),
        failed: vec!["a".to_owned()],
    };
    let like = submission(ON_FAILURE, json!({}), node.session);
    let given: Map<_, _> = [("day".to_owned(), json!("monday"))].into_iter().collect();
    let submission =
        Submission { plan: Arc::new(hooks), params: outcome.params(given), is_shared: true, ..like };
    node.store.submit(submission).await.expect("a run of hooks")
}

async fn run_of_hooks_sees_what_ended_and_has_a_plan_of_its_own(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let failed = end(&node, ON_FAILURE, false).await;
    let run = submit_hooks(&node, failed).await;
    // Another process, which has to make the plan from what is stored.
    let other = Node::worker(place.open(), "two", &[]).await;
    let view = other.view(run).await;
    assert_eq!(
        (view.plan.workflow.name.as_str(), view.plan.after),
        ("flow (failed)", Some(RunStatus::Failed))
    );
    let by_name = other.store.latest("flow (failed)").await;
    assert!(
        matches!(by_name, Err(Error::NoSuchWorkflow { .. })),
        "hooks do not start by their name: {by_name:?}"
    );
    let scope = other.store.scope(run, &[]).await.expect("a scope");
    assert_eq!(scope["params"], json!({"day": "monday"}));
    assert_eq!((&scope["ended"]["status"], &scope["ended"]["failed"]), (&json!("failed"), &json!(["a"])));
    let held = other.take_any(1).await.remove(0);
    other.fail(&held).await;
    assert_eq!(other.store.hooks_owed(run).await.expect("an answer"), None, "hooks have no hooks");
}

async fn run_that_ends_again_owes_its_hooks_again(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = end(&node, ON_FAILURE, false).await;
    let first = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    node.store.settle(first.end.clone(), None).await.expect("a record");
    node.retry(run, None).await.expect("a retry");
    let held = node.take_any(1).await.remove(0);
    node.fail(&held).await;
    let second = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    assert!(second.end.seq > first.end.seq);
}

async fn hooks_of_an_end_that_another_one_followed_are_not_made_up_for(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = end(&node, ON_FAILURE, false).await;
    let first = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    // Nobody saw to them before it was opened again.
    node.retry(run, None).await.expect("a retry");
    let held = node.take_any(1).await.remove(0);
    node.fail(&held).await;
    let second = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    assert!(second.end.seq > first.end.seq, "the newer end is told");
    node.store.settle(second.end, None).await.expect("a record");
    assert_eq!(node.store.due(10).await.expect("what is due").firings, []);
    assert_eq!(node.store.hooks_owed(run).await.expect("an answer"), None);
}

async fn apply(node: &Node, name: &str, head: &str) -> laneway_store::Result<()> {
    let text = format!("name: {name}\nsecrets: {{k: {{env: K}}}}\n{head}\nsteps: {{a: {{run: x}}}}\n");
    let plan = Arc::new(plan(&text));
    let application =
        Application { plan, document: text, dir: "/work".to_owned(), bundle: None, by: "ada".to_owned() };
    node.store.apply(application).await.map(drop)
}

const DEPLOY: &str = "webhook: {path: deploy, secret: k}";

async fn path_is_that_of_one_workflow(place: Place) {
    let node = place.node("one").await;
    apply(&node, "first", DEPLOY).await.expect("a workflow");
    apply(&node, "first", "webhook: [{path: deploy, secret: k}, {path: other, secret: k}]")
        .await
        .expect("a workflow");
    let refused = apply(&node, "second", DEPLOY).await;
    assert!(
        matches!(&refused, Err(Error::PathTaken { path, workflow }) if path == "deploy" && workflow == "first"),
        "{refused:?}"
    );
    assert!(
        matches!(node.store.latest("second").await, Err(Error::NoSuchWorkflow { .. })),
        "nothing of it is kept"
    );
    apply(&node, "first", "").await.expect("a workflow");
    apply(&node, "second", DEPLOY).await.expect("the path is free now");
}

async fn webhook_listens_and_remembers_what_came_of_it(place: Place) {
    let node = place.node("one").await;
    assert_eq!(node.store.listening("deploy").await.expect("an answer"), None);
    apply(&node, "flow", DEPLOY).await.expect("a workflow");
    let due = node.store.due(10).await.expect("what is due");
    assert_eq!((due.schedules, due.next), (Vec::new(), None), "nothing about it comes by itself");
    let listening = node.store.listening("deploy").await.expect("an answer").expect("somebody");
    assert_eq!(listening.now, due.now);
    assert_eq!(
        (listening.trigger.at.workflow.as_str(), listening.trigger.at.key.as_str()),
        ("flow", "webhook deploy")
    );
    let last = LastFired { at: Millis(7), outcome: trigger::Outcome::Refused("no".to_owned()) };
    node.store.note_fired(listening.trigger.at, last.clone()).await.expect("a record");
    let listening = node.store.listening("deploy").await.expect("an answer").expect("somebody");
    assert_eq!(listening.trigger.last, Some(last));
}

async fn paused_webhook_says_so(place: Place) {
    let node = place.node("one").await;
    apply(&node, "flow", DEPLOY).await.expect("a workflow");
    node.store.pause_triggers("flow", "ada").await.expect("a pause");
    let paused = node.store.listening("deploy").await.expect("an answer").expect("somebody").trigger.pause;
    assert_eq!(paused.map(|(by, _)| by), Some("ada".to_owned()));
    node.store.resume_triggers("flow").await.expect("triggers that go on");
    let due = node.store.due(10).await.expect("what is due");
    assert_eq!(due.schedules, [], "a webhook has no moment");
}

const CALLING: &str = "name: flow\nhooks: {failed: [{post: 'https://a.example', retry: {max: 1, backoff: 10s, jitter: 0}}]}\n\
    steps: {a: {run: x}}\n";

/// A node that sends callbacks, and does nothing else.
async fn sender(place: &Place, name: &str) -> Node {
    let offer = Offer { node: name.to_owned(), functions: [POST.to_owned()].into(), ..Offer::default() };
    Node::join(place.open(), NewSession { offer: Some(offer), ..NewSession::ephemeral(name, 4) }).await
}

async fn has_callbacks(node: &Node) -> bool {
    node.store.outbox(node.session).await.expect("an answer").has_callbacks
}

/// The callbacks of a run that failed, submitted as whoever looks does.
async fn submit_callbacks(node: &Node) -> laneway_core::id::RunId {
    let of = node.share(CALLING).await;
    let held = node.take_any(1).await.remove(0);
    node.fail(&held).await;
    let view = node.view(of).await;
    let firing = node.store.hooks_owed(of).await.expect("an answer").expect("hooks");
    let plan = Arc::new(view.plan.hooks_at(RunStatus::Failed, Which::Callbacks).expect("callbacks"));
    let like = submission(CALLING, json!({}), node.session);
    let key = Some(format!("hooks of {of} ({}) callbacks", firing.end.seq));
    let submission = Submission { plan, key, is_shared: true, max_parallel: 4, ..like };
    let first = node.store.submit(submission.clone()).await.expect("a run of callbacks");
    let again = node.store.submit(submission).await.expect("the same");
    assert_eq!(first, again, "as often as it is submitted");
    node.store.settle(firing.end, None).await.expect("a record");
    first
}

async fn callback_is_sent_by_one_node_that_takes_callbacks_and_again_when_its_time_has_come(place: Place) {
    let worker = Node::worker(place.open(), "worker", &[]).await;
    let (one, two) = (sender(&place, "one").await, sender(&place, "two").await);
    assert!(!has_callbacks(&one).await);
    let run = submit_callbacks(&worker).await;
    worker.share("name: other\nsteps: {a: {run: x}}\n").await;
    assert!(has_callbacks(&one).await && has_callbacks(&two).await);
    let mut held = one.take_any(9).await;
    assert_eq!(held.len(), 1, "no step of anybody");
    assert_eq!(two.take_any(9).await.len(), 0, "it is being sent");
    assert!(has_callbacks(&one).await && !has_callbacks(&two).await, "by one");
    one.fail(&held.remove(0)).await;
    assert!(!has_callbacks(&one).await, "it waits");
    place.advance(Duration::from_secs(9));
    assert!(!has_callbacks(&two).await);
    place.advance(Duration::from_secs(2));
    assert!(has_callbacks(&two).await, "its time has come, and nobody has looked yet");
    two.promote().await;
    let held = two.take_any(9).await.remove(0);
    two.succeed(&held).await;
    assert!(!has_callbacks(&two).await);
    assert_eq!((two.status(run).await, two.attempts(run, "failed-1").await.len()), (RunStatus::Succeeded, 2));
}

async fn callback_waits_for_a_node_that_sends_it(place: Place) {
    let worker = Node::worker(place.open(), "worker", &[]).await;
    let run = submit_callbacks(&worker).await;
    assert_eq!(worker.take_any(9).await.len(), 0);
    let why = worker.why(run, "failed-1").await;
    assert!(why.contains("sends callbacks"), "{why}");
    assert!(has_callbacks(&worker).await);
    let one = sender(&place, "one").await;
    assert_eq!(one.take_any(9).await.len(), 1);
}

async fn callback_is_given_up_by_its_retries_and_never_by_losses(place: Place) {
    let worker = Node::worker(place.open_for(1), "worker", &[]).await;
    let run = submit_callbacks(&worker).await;
    for name in ["one", "two", "three", "four"] {
        let node = sender(&place, name).await;
        let held = node.take_any(9).await;
        assert_eq!(held.len(), 1, "{name}");
        worker.store.retire(node.session, left()).await.expect("over");
    }
    let node = sender(&place, "last").await;
    for _ in 0..2 {
        let held = node.take_any(9).await.remove(0);
        node.fail(&held).await;
        place.advance(Duration::from_secs(11));
        node.promote().await;
    }
    assert_eq!(node.status(run).await, RunStatus::Failed);
    assert!(!has_callbacks(&node).await);
}

async fn hooks_that_nobody_has_submitted_are_seen_by_all_who_send(place: Place) {
    let (owner, node) = (place.node("one").await, place.node("two").await);
    let owes = async || node.store.outbox(node.session).await.expect("an answer").owes_hooks;
    let run = owner.submit(CALLING).await;
    let held = owner.take(run, 1).await.remove(0);
    owner.fail(&held).await;
    assert!(!owes().await, "its process lives, and does so");
    owner.store.retire(owner.session, left()).await.expect("over");
    assert!(owes().await);
    let firing = node.store.hooks_owed(run).await.expect("an answer").expect("hooks");
    node.store.settle(firing.end, None).await.expect("a record");
    assert!(!owes().await);
}

async fn end_of_steps_of_hooks_fires_what_comes_after_them_and_that_of_callbacks_fires_nothing(place: Place) {
    let worker = Node::worker(place.open(), "worker", &[]).await;
    let one = sender(&place, "one").await;
    apply(&worker, "next", "after: {workflow: flow (failed), when: finished}").await.expect("a workflow");
    let of = end(&worker, ON_FAILURE, false).await;
    let firing = worker.store.hooks_owed(of).await.expect("an answer").expect("hooks");
    worker.store.settle(firing.end, None).await.expect("a record");
    let steps = submit_hooks(&worker, of).await;
    let held = worker.take_any(1).await.remove(0);
    worker.succeed(&held).await;
    let callbacks = submit_callbacks(&worker).await;
    let held = one.take_any(1).await.remove(0);
    one.succeed(&held).await;
    let name = async |run| worker.view(run).await.plan.workflow.name.clone();
    assert_eq!((name(steps).await, name(callbacks).await), ("flow (failed)".into(), "flow (failed)".into()));
    assert_eq!(worker.status(callbacks).await, RunStatus::Succeeded);
    let firings = worker.store.due(10).await.expect("what is due").firings;
    assert_eq!(firings.iter().map(|firing| firing.ended.run).collect::<Vec<_>>(), [steps]);
}
