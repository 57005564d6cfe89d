//! R10 in the store: a step that runs another workflow is parked until that run has ended, and ends as it does; cancel, timeouts and
//! outputs pass from one to the other, each in one transaction.

use std::time::Duration;

use laneway_core::event::Fact;
use laneway_core::id::{RunId, SessionId};
use laneway_core::reason::Reason;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Error;
use laneway_store::child::{Resumed, WantedRun, Wanting};
use laneway_store::model::{About, Ask, CancelMode, Reopen, RunFilter, Severity, Submission};
use laneway_store::prune::Keep;
use rusqlite::Connection;
use serde_json::json;

use crate::audit;
use crate::harness::{
    Held, Node, Place, canceled, failed, flow, for_each_database, left, names, submission, succeeded,
    succeeded_with,
};
use crate::server;

for_each_database! {
    step_is_parked_until_its_child_has_ended,
    each_life_of_a_step_starts_one_run,
    child_that_fails_fails_the_step,
    child_that_ends_as_it_is_submitted_ends_the_step,
    run_that_cannot_be_started_fails_the_step,
    cancel_ends_the_child_first,
    canceled_child_cleans_up_within_the_time_of_its_parent,
    clean_up_of_a_parent_waits_for_that_of_its_child,
    cancel_before_the_child_is_there_wants_none,
    timeout_ends_the_child_and_fails_the_step,
    failure_beside_it_ends_the_child,
    retry_goes_on_with_the_child,
    child_is_remembered_until_it_goes_on,
    processes_take_only_their_own_of_a_family,
    wanted_runs_come_in_pages_and_those_of_one_process_alone,
    retry_from_the_step_starts_another,
    children_of_a_local_run_belong_to_its_owner,
    items_start_runs_as_many_as_may_at_once,
    ends_pass_through_every_depth,
    parameters_that_cannot_be_evaluated_fail_the_step,
    child_of_a_run_that_goes_on_is_not_removed,
    level_waits_for_its_children,
    child_that_was_set_aside_while_its_parent_ended_ends_with_its_release,
    child_ends_with_its_parent_in_whatever_order_they_are_released,
    run_is_canceled_and_released_although_nothing_can_be_read_of_its_relative,
    step_whose_child_is_set_aside_ends_with_its_timeout,
    child_that_was_retried_alone_goes_on_after_its_release,
    parent_that_was_set_aside_is_told_of_its_child_with_its_release,
    fail_fast_says_which_item_has_ended_a_child,
    doctor_names_starts_that_nobody_makes,
    run_without_the_cache_starts_runs_without_it,
}

/// Changes rows beneath the verbs, of one run.
async fn beneath(place: &Place, node: &Node, sql: &str, run: RunId) {
    let sql = sql.replace("@R", &format!("(SELECT no FROM runs WHERE id = '{run}')"));
    let changed = match server::beneath(node.store.dir()).await {
        Some(beneath) => beneath.execute(&sql, &[]).await.expect("a statement"),
        None => Connection::open(place.path()).and_then(|file| file.execute(&sql, [])).expect("a statement")
            as u64,
    };
    assert!(changed > 0, "{sql}");
}

async fn set_aside(place: &Place, node: &Node, run: RunId) {
    beneath(place, node, "UPDATE events SET version = 9 WHERE run_no = @R AND seq = 1", run).await;
    assert!(node.store.set_aside(run).await.expect("an answer").is_some());
}

async fn release(place: &Place, node: &Node, run: RunId) {
    beneath(place, node, "UPDATE events SET version = 1 WHERE run_no = @R AND seq = 1", run).await;
    node.store.release(run).await.expect("it is mended");
    audit::check(&*node.store, run).await;
}

const PARENT: &str = "name: parent\nsteps:\n  call: {workflow: flow, with: {n: 3}, timeout: 1h}\n  \
                      behind: {run: x, needs: [call], if: \"${{ steps.call.output.a.n == 3 }}\"}\n";

fn child() -> String {
    flow("params: {n: {type: integer, default: 1}}", &[("a", ""), ("b", "needs: [a]")])
}

async fn wanted(node: &Node) -> Vec<WantedRun> {
    node.store.wanted_runs(Wanting::first(node.session, 100)).await.expect("an answer").runs
}

/// Starts what is wanted, as an engine does.
async fn start(node: &Node, wanted: &WantedRun, document: &str) -> RunId {
    let run = node.store.submit(submission_of(node, wanted, document)).await.expect("a child");
    audit::check(&*node.store, run).await;
    audit::check(&*node.store, wanted.parent.run).await;
    run
}

fn submission_of(node: &Node, wanted: &WantedRun, document: &str) -> Submission {
    Submission {
        is_shared: !wanted.is_local,
        key: Some(wanted.parent.key()),
        no_cache: wanted.no_cache,
        end_by: None,
        not_before: None,
        parent: Some(wanted.parent.clone()),
        ..submission(document, serde_json::Value::Object(wanted.params.clone()), node.session)
    }
}

async fn resume(node: &Node, wanted: &WantedRun, session: Option<SessionId>) -> Resumed {
    let child = wanted.again.expect("one that was there before");
    let resumed = node.store.resume_child(wanted.parent.clone(), child, session).await.expect("an answer");
    audit::check(&*node.store, wanted.parent.run).await;
    audit::check(&*node.store, child).await;
    resumed
}

async fn worker(place: &Place) -> Node {
    Node::worker(place.open(), "one", &[]).await
}

/// A parent whose child is started.
async fn called(node: &Node) -> (RunId, RunId) {
    let parent = node.share(PARENT).await;
    let wanted = wanted(node).await.pop().expect("a child is wanted");
    let params = json!({"n": 3});
    assert_eq!((wanted.parent.run, serde_json::Value::Object(wanted.params.clone())), (parent, params));
    (parent, start(node, &wanted, &child()).await)
}

/// Ends whatever is available, one after the other.
async fn work(node: &Node, outcome: impl Fn(&str) -> laneway_store::model::Outcome) -> Vec<String> {
    let mut order = Vec::new();
    while let Some(held) = node.take_any(1).await.pop() {
        node.start(&held).await;
        node.finish(&held, outcome(&held.step)).await;
        order.push(held.step);
    }
    order
}

async fn step_is_parked_until_its_child_has_ended(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    assert_eq!(node.tasks(parent).await, "call parked, behind pending");
    assert_eq!(
        node.why(parent, "call").await.split(" since").next(),
        Some(&*format!("waits for run {} of `flow`", child.short()))
    );
    assert!(wanted(&node).await.is_empty(), "it is started");
    let state = node.state(child).await;
    let of = state.parent.expect("whose child it is");
    assert_eq!((of.run, of.step.as_str(), of.depth), (parent, "call", 1));
    let order =
        work(&node, |step| if step == "a" { succeeded_with(json!({"n": 3})) } else { succeeded() }).await;
    assert_eq!(order, ["a", "b", "behind"], "its output opens what reads it");
    assert_eq!(
        node.task(parent, "call").await.output,
        json!({"a": {"n": 3}}).as_object().expect("a map").clone()
    );
    assert_eq!(
        (node.status(child).await, node.status(parent).await),
        (RunStatus::Succeeded, RunStatus::Succeeded)
    );
    let told = node.events(parent).await;
    assert!(told.iter().any(|event| matches!(&event.fact, Fact::ChildRunStarted(f) if f.child == child)));
}

async fn each_life_of_a_step_starts_one_run(place: Place) {
    let node = worker(&place).await;
    let parent = node.share(PARENT).await;
    let wanted = wanted(&node).await.pop().expect("a child is wanted");
    let first = start(&node, &wanted, &child()).await;
    // Another node had read that it is wanted.
    let second = start(&node, &wanted, &child()).await;
    assert_eq!(first, second);
    let is_start = |event: &laneway_core::event::Event| matches!(event.fact, Fact::ChildRunStarted(_));
    let started = node.events(parent).await.iter().filter(|event| is_start(event)).count();
    assert_eq!((started, node.status(first).await), (1, RunStatus::Running));
}

async fn child_that_fails_fails_the_step(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    work(&node, |_| failed(3)).await;
    assert_eq!(node.tasks(parent).await, "call failed (child), behind skipped (halted)");
    let detail = node.task(parent, "call").await.detail.expect("why");
    assert_eq!(detail, format!("run {} of `flow` failed: a failed: exit code 3", child.short()));
}

async fn child_that_ends_as_it_is_submitted_ends_the_step(place: Place) {
    let node = worker(&place).await;
    let parent = node.share("name: parent\nsteps:\n  call: {workflow: flow}\n").await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    let nothing = "name: flow\nsteps:\n  a: {wait: {until: 2020-01-01T00:00:00Z}}\n";
    let child = start(&node, &asked, nothing).await;
    assert_eq!(
        (node.status(child).await, node.status(parent).await),
        (RunStatus::Succeeded, RunStatus::Succeeded)
    );
}

async fn run_that_cannot_be_started_fails_the_step(place: Place) {
    let node = worker(&place).await;
    let parent = node.share(PARENT).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    node.store.child_refused(asked.parent.clone(), "there is none").await.expect("it is told");
    audit::check(&*node.store, parent).await;
    let task = node.task(parent, "call").await;
    assert_eq!((task.status, task.reason), (TaskStatus::Failed, Some(Reason::Child)));
    assert_eq!(task.detail.as_deref(), Some("`flow` could not be started: there is none"));
    assert!(wanted(&node).await.is_empty());
    // One who was slower is told nothing else.
    node.store.child_refused(asked.parent, "again").await.expect("nothing to be told");
}

async fn cancel_ends_the_child_first(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    let held = node.take_any(1).await.pop().expect("a");
    node.start(&held).await;
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    audit::check(&*node.store, parent).await;
    audit::check(&*node.store, child).await;
    assert_eq!(node.tasks(parent).await, "call parked, behind canceled (canceled)");
    assert_eq!(node.stops().await.len(), 1, "what runs of the child is stopped");
    assert_eq!(node.status(parent).await, RunStatus::Running, "it ends with its child");
    node.finish(&held, canceled(Reason::Canceled)).await;
    audit::check(&*node.store, parent).await;
    assert_eq!(
        (node.status(child).await, node.status(parent).await),
        (RunStatus::Canceled, RunStatus::Canceled)
    );
    assert_eq!(node.tasks(parent).await, "call canceled (canceled), behind canceled (canceled)");
    assert_eq!(
        node.view(child).await.state.reason.as_deref(),
        Some(&*format!("canceled by run {}", parent.short()))
    );
}

/// A parent with clean-up behind a child with clean-up, and what runs of that.
async fn cleaning(node: &Node) -> (RunId, RunId, Held) {
    let behind = "needs: [call], when: always";
    let text = flow("cleanup_timeout: 30s", &[("behind", behind)]).replace("name: flow", "name: top");
    let parent = node.share(&format!("{text}  call: {{workflow: flow}}\n")).await;
    let asked = wanted(node).await.pop().expect("a child is wanted");
    let child = flow("", &[("a", ""), ("clean", "needs: [a], when: always")]);
    let child = start(node, &asked, &child).await;
    let held = node.take_any(1).await.pop().expect("a");
    node.start(&held).await;
    (parent, child, held)
}

async fn clean_up_of_a_parent_waits_for_that_of_its_child(place: Place) {
    let node = worker(&place).await;
    let (parent, child, held) = cleaning(&node).await;
    node.cancel(parent).await;
    node.finish(&held, canceled(Reason::Canceled)).await;
    let clean = node.take_any(9).await;
    assert_eq!(names(&clean), ["clean"], "that of the parent waits");
    node.succeed(&clean[0]).await;
    assert_eq!(node.status(child).await, RunStatus::Canceled);
    let behind = node.take_any(9).await;
    assert_eq!(names(&behind), ["behind"]);
    node.succeed(&behind[0]).await;
    assert_eq!(node.tasks(parent).await, "behind succeeded, call canceled (canceled)");
    assert_eq!(node.status(parent).await, RunStatus::Canceled);
    audit::check(&*node.store, parent).await;
    audit::check(&*node.store, child).await;
}

async fn canceled_child_cleans_up_within_the_time_of_its_parent(place: Place) {
    for is_late in [true, false] {
        let node = worker(&place).await;
        let (parent, child, held) = cleaning(&node).await;
        node.cancel(parent).await;
        node.finish(&held, canceled(Reason::Canceled)).await;
        let clean = node.take_any(9).await.pop().expect("clean");
        node.start(&clean).await;
        assert!(node.stops().await.is_empty());
        if is_late {
            place.advance(Duration::from_secs(30));
            node.promote().await;
        } else {
            node.cancel_now(parent).await;
        }
        let stops = node.stops().await;
        assert_eq!(stops.iter().map(|stop| stop.claim).collect::<Vec<_>>(), [clean.at], "late: {is_late}");
        node.finish(&clean, canceled(Reason::Canceled)).await;
        assert_eq!(node.tasks(child).await, "a canceled (canceled), clean canceled (canceled)");
        assert_eq!(node.tasks(parent).await, "behind canceled (canceled), call canceled (canceled)");
        assert_eq!(node.status(parent).await, RunStatus::Canceled);
        audit::check(&*node.store, parent).await;
        audit::check(&*node.store, child).await;
        node.store.retire(node.session, left()).await.expect("over");
    }
}

async fn cancel_before_the_child_is_there_wants_none(place: Place) {
    let node = worker(&place).await;
    let parent = node.share(PARENT).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    assert_eq!(node.status(parent).await, RunStatus::Canceled);
    assert!(wanted(&node).await.is_empty());
    let late = node.store.submit(submission_of(&node, &asked, &child())).await;
    assert!(matches!(late, Err(Error::NotWanted { .. })), "{late:?}");
    let runs = node.store.runs(RunFilter { limit: 10, ..RunFilter::default() }).await.expect("runs");
    assert_eq!(runs.len(), 1, "what nobody waits for is not there");
}

async fn timeout_ends_the_child_and_fails_the_step(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    place.advance(Duration::from_secs(3601));
    node.promote().await;
    audit::check(&*node.store, parent).await;
    assert_eq!(node.status(child).await, RunStatus::Canceled);
    let task = node.task(parent, "call").await;
    assert_eq!((task.status, task.reason), (TaskStatus::Failed, Some(Reason::Timeout)));
    assert_eq!(node.status(parent).await, RunStatus::Failed);
    assert_eq!(node.promote().await, None, "it is looked at once");
}

async fn failure_beside_it_ends_the_child(place: Place) {
    let node = worker(&place).await;
    let parent = node.share("name: parent\nsteps:\n  call: {workflow: flow}\n  beside: {run: x}\n").await;
    let beside = node.take_any(1).await.pop().expect("beside");
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    let child = start(&node, &asked, &child()).await;
    node.start(&beside).await;
    node.finish(&beside, failed(1)).await;
    audit::check(&*node.store, child).await;
    assert_eq!(node.status(child).await, RunStatus::Canceled);
    assert_eq!(node.tasks(parent).await, "call canceled (halted), beside failed (exit)");
    assert_eq!(node.status(parent).await, RunStatus::Failed);
}

async fn retry_goes_on_with_the_child(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    work(&node, |step| if step == "b" { failed(1) } else { succeeded_with(json!({"n": 3})) }).await;
    assert_eq!(node.status(parent).await, RunStatus::Failed);
    node.store.retry(parent, Reopen::default(), "ada").await.expect("retried");
    audit::check(&*node.store, parent).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    assert_eq!(asked.again, Some(child), "what has succeeded of it need not run again");
    assert_eq!(resume(&node, &asked, None).await, Resumed::Done);
    assert_eq!(work(&node, |_| succeeded()).await, ["b", "behind"]);
    assert_eq!(node.status(parent).await, RunStatus::Succeeded);
    // Another node had read that it is wanted, and comes when all is over.
    assert_eq!(resume(&node, &asked, None).await, Resumed::Done);
    assert_eq!(node.status(child).await, RunStatus::Succeeded, "it is not begun again");
}

async fn child_is_remembered_until_it_goes_on(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    work(&node, |_| failed(1)).await;
    for _ in 0..2 {
        node.store.retry(parent, Reopen::default(), "ada").await.expect("retried");
        audit::check(&*node.store, parent).await;
        let asked = wanted(&node).await.pop().expect("a child is wanted");
        assert_eq!(asked.again, Some(child));
        node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
        audit::check(&*node.store, parent).await;
    }
    node.store.retry(parent, Reopen::default(), "ada").await.expect("retried");
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    assert_eq!(resume(&node, &asked, None).await, Resumed::Done);
    assert_eq!(work(&node, |_| succeeded_with(json!({"n": 3}))).await, ["a", "b", "behind"]);
}

async fn retry_from_the_step_starts_another(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    work(&node, |_| succeeded_with(json!({"n": 3}))).await;
    assert_eq!(node.status(parent).await, RunStatus::Succeeded);
    node.store.retry(parent, Reopen::now(Some("call")), "ada").await.expect("retried");
    audit::check(&*node.store, parent).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    assert_eq!(asked.again, None);
    let other = start(&node, &asked, &self::child()).await;
    assert_ne!(other, child);
    assert_eq!(work(&node, |_| succeeded_with(json!({"n": 3}))).await, ["a", "b", "behind"]);
}

async fn children_of_a_local_run_belong_to_its_owner(place: Place) {
    let node = place.node("one").await;
    let other = place.node("two").await;
    let parent = node.submit(PARENT).await;
    assert!(wanted(&other).await.is_empty(), "nobody but its owner starts it");
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    assert!(asked.is_local);
    let child = start(&node, &asked, &self::child()).await;
    let held = node.take(parent, 5).await;
    assert_eq!(names(&held), ["a"], "who drives the run is given what it has started");
    assert_eq!(held[0].at.run, child);
    node.store.retire(node.session, left()).await.expect("it leaves");
    audit::check(&*node.store, child).await;
    assert!(node.view(child).await.is_interrupted);
    other.store.adopt(parent, other.session).await.expect("it changes hands");
    audit::check(&*other.store, child).await;
    let mut order = Vec::new();
    while let Some(held) = other.take(parent, 1).await.pop() {
        other.start(&held).await;
        other.finish(&held, succeeded_with(json!({"n": 3}))).await;
        order.push(held.step);
    }
    assert_eq!(order, ["a", "b", "behind"]);
    assert_eq!(other.status(parent).await, RunStatus::Succeeded);
}

async fn wanted_runs_come_in_pages_and_those_of_one_process_alone(place: Place) {
    let node = worker(&place).await;
    let two = "name: parent\nsteps:\n  call: {workflow: flow}\n  other: {workflow: flow}\n";
    let shared = [node.share(two).await, node.share(two).await];
    let own = node.submit(two).await;
    let (mut pages, mut after) = (Vec::new(), None);
    loop {
        let wanting = Wanting { after, ..Wanting::first(node.session, 3) };
        let page = node.store.wanted_runs(wanting).await.expect("an answer");
        pages.push(page.runs.iter().map(|wanted| wanted.parent.run).collect::<Vec<_>>());
        after = page.end;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(pages.concat(), [shared[0], shared[0], shared[1], shared[1], own, own]);
    assert_eq!((pages[0].len(), pages[1].len()), (3, 3));
    let wanting = Wanting { is_own_only: true, ..Wanting::first(node.session, 3) };
    let page = node.store.wanted_runs(wanting).await.expect("an answer");
    assert!(page.runs.iter().all(|wanted| wanted.is_local && wanted.parent.run == own));
    assert_eq!((page.runs.len(), page.end), (2, None));
}

async fn processes_take_only_their_own_of_a_family(place: Place) {
    let node = place.node("one").await;
    let other = place.node("two").await;
    let document =
        "name: parent\non_failure: continue\nsteps:\n  call: {workflow: flow}\n  beside: {run: x}\n";
    let parent = node.submit(document).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    let child = start(&node, &asked, &self::child()).await;
    assert_eq!(node.store.family(parent).await.expect("runs"), [child]);
    let held = node.take(parent, 5).await;
    assert_eq!(held.len(), 2);
    let of_child = held.iter().find(|held| held.step == "a").expect("a task of the child");
    node.start(of_child).await;
    node.finish(of_child, failed(1)).await;
    // The child alone is gone on with elsewhere, while its parent still runs here.
    other.store.retry(child, Reopen::default(), "ada").await.expect("retried");
    other.store.adopt(child, other.session).await.expect("its own");
    assert!(node.take(parent, 5).await.is_empty(), "it is not of this process");
    let taken = other.take(child, 5).await;
    assert_eq!((names(&taken), taken[0].at.run), (vec!["a"], child));
}

async fn items_start_runs_as_many_as_may_at_once(place: Place) {
    let node = worker(&place).await;
    let parent = node
        .share("name: parent\nsteps:\n  call: {workflow: flow, with: {n: \"${{ item }}\"}, for_each: [5, 6, 7], max_parallel: 2}\n")
        .await;
    assert_eq!(node.tasks(parent).await, "call parked, call[0] parked, call[1] parked, call[2] pending");
    let asked = wanted(&node).await;
    assert_eq!(
        asked.iter().map(|wanted| wanted.params["n"].clone()).collect::<Vec<_>>(),
        [json!(5), json!(6)]
    );
    let one = flow("params: {n: {type: integer}}", &[("a", "")]);
    for asked in &asked {
        start(&node, asked, &one).await;
    }
    let held = node.take_any(1).await.pop().expect("a");
    node.start(&held).await;
    node.finish(&held, succeeded_with(json!({"x": 1}))).await;
    audit::check(&*node.store, parent).await;
    let asked = wanted(&node).await.pop().expect("the third");
    assert_eq!((asked.parent.step.as_str(), asked.params["n"].clone()), ("call[2]", json!(7)));
    start(&node, &asked, &one).await;
    work(&node, |_| succeeded_with(json!({"x": 2}))).await;
    audit::check(&*node.store, parent).await;
    assert_eq!(node.status(parent).await, RunStatus::Succeeded);
    let scope = node.store.scope(parent, &["call"]).await.expect("a scope");
    assert_eq!(scope["steps"]["call"]["output"][0], json!({"a": {"x": 1}}));
}

async fn ends_pass_through_every_depth(place: Place) {
    let node = worker(&place).await;
    let top = node.share("name: top\nsteps:\n  down: {workflow: parent}\n").await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    let middle = start(&node, &asked, PARENT).await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    assert_eq!((asked.parent.run, asked.parent.depth), (middle, 2));
    let low = start(&node, &asked, &child()).await;
    let held = node.take_any(1).await.pop().expect("a");
    node.start(&held).await;
    node.store.cancel(top, "ada", CancelMode::CleanUp).await.expect("canceled");
    node.finish(&held, canceled(Reason::Canceled)).await;
    for run in [top, middle, low] {
        audit::check(&*node.store, run).await;
        assert_eq!(node.status(run).await, RunStatus::Canceled);
    }
}

async fn parameters_that_cannot_be_evaluated_fail_the_step(place: Place) {
    let node = worker(&place).await;
    let parent = node
        .share("name: parent\nsteps:\n  first: {run: x}\n  call: {workflow: flow, needs: [first], with: {n: \"${{ steps.first.output.none }}\"}}\n")
        .await;
    work(&node, |_| succeeded()).await;
    assert_eq!(node.tasks(parent).await, "first succeeded, call failed (expression)");
    assert!(wanted(&node).await.is_empty());
}

async fn child_of_a_run_that_goes_on_is_not_removed(place: Place) {
    let node = worker(&place).await;
    let parent =
        node.share("name: parent\nsteps:\n  call: {workflow: flow}\n  gate: {wait: {signal: go}}\n").await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    let first = start(&node, &asked, &child()).await;
    work(&node, |_| succeeded()).await;
    // A newer one of its workflow, so that it is not kept for that.
    node.share(&child()).await;
    let keep = Keep { for_: Some(Duration::ZERO), ..Keep::default() };
    place.advance(Duration::from_secs(60));
    let may_go = node.store.prunable(keep, 10).await.expect("an answer");
    assert!(may_go.iter().all(|prunable| prunable.run != first), "its parent goes on");
    assert!(!node.store.prune(first).await.expect("an answer"));
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    let may_go = node.store.prunable(keep, 10).await.expect("an answer");
    assert!(may_go.iter().any(|prunable| prunable.run == first));
    assert!(node.store.prune(first).await.expect("an answer"));
}

async fn child_that_was_set_aside_while_its_parent_ended_ends_with_its_release(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, child).await;
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    audit::check(&*node.store, parent).await;
    let ended = "call canceled (canceled), behind canceled (canceled)";
    assert_eq!(node.tasks(parent).await, ended, "nobody knows when its child comes back");
    assert_eq!(node.status(parent).await, RunStatus::Canceled);
    release(&place, &node, child).await;
    audit::check(&*node.store, parent).await;
    assert_eq!((node.status(child).await, node.tasks(parent).await), (RunStatus::Canceled, ended.to_owned()));
    // One for which its parent goes on goes on itself.
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, child).await;
    release(&place, &node, child).await;
    assert_eq!(
        (node.status(child).await, node.status(parent).await),
        (RunStatus::Running, RunStatus::Running)
    );
}

async fn child_ends_with_its_parent_in_whatever_order_they_are_released(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, child).await;
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    set_aside(&place, &node, parent).await;
    release(&place, &node, child).await;
    assert_eq!(node.status(child).await, RunStatus::Running, "nobody has told it yet");
    release(&place, &node, parent).await;
    audit::check(&*node.store, child).await;
    assert_eq!(
        (node.status(child).await, node.status(parent).await),
        (RunStatus::Canceled, RunStatus::Canceled)
    );
}

async fn run_is_canceled_and_released_although_nothing_can_be_read_of_its_relative(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, child).await;
    // As another process finds it that has nothing of it on its shelf.
    beneath(&place, &node, "UPDATE runs SET params = 'x' WHERE no = @R", child).await;
    let other = worker(&place).await;
    other.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    set_aside(&place, &other, parent).await;
    release(&place, &other, parent).await;
    assert_eq!(other.tasks(parent).await, "call canceled (canceled), behind canceled (canceled)");
}

async fn step_whose_child_is_set_aside_ends_with_its_timeout(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, child).await;
    place.advance(Duration::from_secs(3_601));
    node.promote().await;
    audit::check(&*node.store, parent).await;
    let call = node.task(parent, "call").await;
    assert_eq!((call.status, call.reason), (TaskStatus::Failed, Some(Reason::Timeout)));
    assert_eq!(node.status(parent).await, RunStatus::Failed);
    release(&place, &node, child).await;
    assert_eq!(node.status(child).await, RunStatus::Canceled);
}

async fn child_that_was_retried_alone_goes_on_after_its_release(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    node.store.cancel(parent, "ada", CancelMode::CleanUp).await.expect("canceled");
    assert_eq!(node.status(child).await, RunStatus::Canceled);
    node.retry(child, None).await.expect("somebody wants it all the same");
    set_aside(&place, &node, child).await;
    release(&place, &node, child).await;
    assert_eq!(node.status(child).await, RunStatus::Running);
    set_aside(&place, &node, parent).await;
    release(&place, &node, parent).await;
    assert_eq!(node.status(child).await, RunStatus::Running);
}

async fn parent_that_was_set_aside_is_told_of_its_child_with_its_release(place: Place) {
    let node = worker(&place).await;
    let (parent, child) = called(&node).await;
    set_aside(&place, &node, parent).await;
    while let Some(held) = node.take_any(1).await.pop() {
        node.start(&held).await;
        node.finish(&held, succeeded()).await;
    }
    assert_eq!(node.status(child).await, RunStatus::Succeeded);
    release(&place, &node, parent).await;
    assert_eq!(node.task(parent, "call").await.status, TaskStatus::Succeeded, "it has its end");
}

async fn fail_fast_says_which_item_has_ended_a_child(place: Place) {
    let node = worker(&place).await;
    let parent = node
        .share("name: parent\nsteps:\n  call: {workflow: flow, for_each: [5, 6, 7], max_parallel: 3, fail_fast: true}\n")
        .await;
    let asked = wanted(&node).await;
    let one = flow("", &[("a", "")]);
    // The third has not been started when the first fails.
    for asked in &asked[..2] {
        start(&node, asked, &one).await;
    }
    let held = node.take_any(1).await.pop().expect("a");
    node.start(&held).await;
    node.finish(&held, failed(1)).await;
    audit::check(&*node.store, parent).await;
    let tasks =
        "call failed (items), call[0] failed (child), call[1] canceled (aborted), call[2] canceled (aborted)";
    assert_eq!(node.tasks(parent).await, tasks);
    for item in ["call[1]", "call[2]"] {
        let detail = node.task(parent, item).await.detail;
        assert_eq!(detail.as_deref(), Some("`call[0]` failed, and `fail_fast` ends the others"), "{item}");
    }
}

async fn doctor_names_starts_that_nobody_makes(place: Place) {
    let node = worker(&place).await;
    let parent = node.share(PARENT).await;
    let found = || async {
        let found = node.store.examine(10).await.expect("an examination").findings;
        let about = found.into_iter().filter(|finding| finding.about == About::Run);
        about.map(|finding| (finding.severity, finding.what, finding.advice)).collect::<Vec<_>>()
    };
    assert_eq!(found().await, [], "nobody is slow yet");
    place.advance(Duration::from_secs(61));
    let told = found().await;
    assert_eq!((told.len(), told[0].0), (1, Severity::Note), "{told:?}");
    assert!(told[0].1.starts_with("`call` waits since 2023-"), "{told:?}");
    assert!(told[0].1.ends_with("for a run of `flow`, and nobody has started it"), "{told:?}");
    assert!(told[0].2.contains("laneway worker"), "{told:?}");
    beneath(&place, &node, "UPDATE wanted_runs SET position = 1 WHERE run_no = @R", parent).await;
    let told = found().await;
    assert_eq!((told.len(), told[0].0), (1, Severity::Problem), "{told:?}");
    assert_eq!(told[0].1, "`flow` is to be started for `behind`, which does not wait for it");
}

async fn run_without_the_cache_starts_runs_without_it(place: Place) {
    let node = worker(&place).await;
    let plain = node.share(PARENT).await;
    let given = submission(PARENT, json!({}), node.session);
    let given = Submission { is_shared: true, no_cache: true, ..given };
    let parent = node.store.submit(given).await.expect("a run");
    audit::check(&*node.store, parent).await;
    for (run, no_cache) in [(plain, false), (parent, true)] {
        // Another process has no head of it on its shelf.
        let head = place.open().head(run).await.expect("a head");
        assert_eq!((head.no_cache, node.state(run).await.no_cache), (no_cache, no_cache));
        let asked = wanted(&node).await.into_iter().find(|wanted| wanted.parent.run == run);
        assert_eq!(asked.expect("a child is wanted").no_cache, no_cache);
    }
    let asked = wanted(&node).await.into_iter().find(|wanted| wanted.parent.run == parent).expect("one");
    let child = start(&node, &asked, &child()).await;
    let other = Node::worker(place.open(), "two", &[]).await;
    let claims = other.store.claim(Ask { session: other.session, run: None, limit: 5, ahead: 0 }).await;
    let claim =
        claims.expect("a claim").into_iter().find(|claim| claim.at.run == child).expect("its first step");
    assert!(claim.head.no_cache, "whoever takes it is told so");
}

async fn level_waits_for_its_children(place: Place) {
    let node = worker(&place).await;
    let parent = node
        .share("name: parent\nexecution: levels\nsteps:\n  call: {workflow: flow}\n  behind: {run: x, needs: [call]}\n")
        .await;
    let asked = wanted(&node).await.pop().expect("a child is wanted");
    start(&node, &asked, &child()).await;
    assert_eq!(work(&node, |_| succeeded()).await, ["a", "b", "behind"]);
    assert_eq!(node.status(parent).await, RunStatus::Succeeded);
}
