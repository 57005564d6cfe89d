//! A submission is seen whole or not at all, however large it is.

use std::time::Duration;

use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::model::{RunFilter, Submission};
use laneway_store::{Error, Store};
use serde_json::{Value, json};

use crate::audit;
use crate::harness::{Node, Place, flat, flow, for_each_database, left, submission, succeeded};
use crate::server;

for_each_database! {
    submitted_run_is_running_with_its_first_tasks_available,
    submission_by_a_session_that_is_over_is_refused_whole,
    pinned_workflow_that_no_node_could_run_is_refused,
    run_without_room_for_a_task_is_refused,
    same_document_is_kept_once_and_found_by_its_name,
    plan_is_made_again_by_a_process_that_never_saw_it,
    key_of_a_run_that_differs_is_refused,
}

// On Postgres a submission is one transaction, however large: nothing of it is there before all of it is.
for_each_database! { sqlite only:
    large_run_is_invisible_until_it_is_complete,
    half_submitted_run_of_a_dead_process_is_discarded,
}

/// More than the store takes in one transaction, several times over.
const LARGE: usize = 10_000;

async fn all(store: &dyn Store) -> usize {
    let filter = RunFilter { limit: usize::MAX, ..RunFilter::default() };
    store.runs(filter).await.expect("runs").len()
}

async fn submitted_run_is_running_with_its_first_tasks_available(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let state = node.state(run).await;
    assert_eq!(state.status, RunStatus::Running);
    assert_eq!((state.submitted_at, state.started_at), (crate::harness::START, Some(crate::harness::START)));
    let events = node.events(run).await;
    let names: Vec<&str> = events.iter().map(|event| event.fact.name()).collect();
    assert_eq!(names, ["run_submitted", "run_started", "task_available"]);
    assert_eq!(node.store.events_since(run, 1, 1).await.expect("events"), events[1..2]);
    assert_eq!(node.view(run).await.owner.as_deref(), Some("one"));
}

async fn large_run_is_invisible_until_it_is_complete(place: Place) {
    let (node, other) = (place.node("one").await, place.node("two").await);
    let submission = submission(&flat(LARGE, 7), json!({}), node.session);
    let store = std::sync::Arc::clone(&node.store);
    let mut commits = node.store.changes();
    commits.mark_unchanged();
    let mut seen = Vec::new();
    let mut submit = tokio::spawn(async move { store.submit(submission).await });
    let run = loop {
        tokio::select! {
            biased;
            run = &mut submit => break run.expect("a task that ends").expect("a run"),
            _ = commits.changed() => seen.push(all(&*other.store).await),
        }
    };
    assert!(seen.len() >= 3, "it came in chunks: {seen:?}");
    // The last look may have come after the last chunk; those before it saw nothing.
    assert!(seen[..seen.len() - 1].iter().all(|runs| *runs == 0), "{seen:?}");
    audit::check(&*other.store, run).await;
    let state = other.state(run).await;
    assert_eq!(state.tasks.len(), LARGE);
    assert_eq!(state.tasks.iter().filter(|task| task.status == TaskStatus::Available).count(), 7);
    assert_eq!(other.store.claim(other.ask(run, 9)).await.expect("claims").len(), 7);
}

async fn half_submitted_run_of_a_dead_process_is_discarded(place: Place) {
    let (dying, node) = (place.node("dying").await, place.node("heir").await);
    let submission = submission(&flat(LARGE, 7), json!({}), dying.session);
    let mut commits = dying.store.changes();
    commits.mark_unchanged();
    // The process dies between two chunks: after the second commit nobody goes on.
    {
        let submit = dying.store.submit(submission);
        tokio::pin!(submit);
        for _ in 0..2 {
            tokio::select! {
                biased;
                changed = commits.changed() => changed.expect("a store that is open"),
                run = &mut submit => panic!("{run:?} was to be interrupted"),
            }
        }
    }
    drop(dying);
    assert!(rows(&node).await > 0, "a part of it was written");
    assert_eq!(all(&*node.store).await, 0);
    assert!(matches!(node.store.find_run("last").await, Err(Error::NoSuchRun { .. })));
    let reaped = node.store.reap().await.expect("an answer");
    assert_eq!(reaped.nodes, ["dying"]);
    assert_eq!(rows(&node).await, 0, "nothing of it is left");
    let run = node.submit(&flat(2, 2)).await;
    assert_eq!(node.work(run, |_| succeeded()).await.len(), 2);
}

/// Rows of tasks, needs sets and runs, whoever may see them.
async fn rows(node: &Node) -> i64 {
    let count = "SELECT (SELECT count(*) FROM tasks) + (SELECT count(*) FROM needs_sets) + (SELECT count(*) FROM runs)";
    if let Some(beneath) = server::beneath(node.store.dir()).await {
        return beneath.query_one(count, &[]).await.expect("a count").get(0);
    }
    let file = node.store.dir().join("laneway.db");
    let connection = rusqlite::Connection::open(file).expect("the store's file");
    connection.query_row(count, [], |row| row.get(0)).expect("a count")
}

async fn submission_by_a_session_that_is_over_is_refused_whole(place: Place) {
    let (gone, node) = (place.node("gone").await, place.node("one").await);
    gone.store.retire(gone.session, left()).await.expect("a session that can end");
    let late = submission(&flat(2, 2), json!({}), gone.session);
    let refusal = gone.store.submit(late).await.expect_err("its session is over");
    assert!(matches!(refusal, Error::SessionOver { .. }), "{refusal}");
    assert_eq!(rows(&node).await, 0);
    let run = node.submit(&flat(2, 2)).await;
    assert_eq!(node.work(run, |_| succeeded()).await.len(), 2);
}

async fn pinned_workflow_that_no_node_could_run_is_refused(place: Place) {
    let node = place.node("one").await;
    let document = flow("placement: pinned", &[("a", "runs_on: {zone: eu}"), ("b", "runs_on: {zone: us}")]);
    let shared = Submission { is_shared: true, ..submission(&document, json!({}), node.session) };
    let refusal = node.store.submit(shared).await.expect_err("it would wait for ever");
    assert!(matches!(refusal, Error::NotRunnable { .. }), "{refusal}");
    assert!(refusal.to_string().contains("steps `a` and `b`"), "{refusal}");
    assert_eq!(rows(&node).await, 0);
}

async fn run_without_room_for_a_task_is_refused(place: Place) {
    let node = place.node("one").await;
    let mut submission = submission(&flat(1, 1), json!({}), node.session);
    submission.max_parallel = 0;
    let refusal = node.store.submit(submission).await.expect_err("nothing could ever run");
    assert!(matches!(refusal, Error::NotRunnable { .. }), "{refusal}");
}

async fn same_document_is_kept_once_and_found_by_its_name(place: Place) {
    let node = place.node("one").await;
    let document = flat(1, 1);
    let first = node.submit(&document).await;
    place.advance(Duration::from_secs(1));
    let second = node.submit(&document).await;
    let version = node.state(first).await.version;
    assert_eq!(node.state(second).await.version, version);
    assert_eq!(node.store.document(&version).await.expect("a document"), document);
    let known = node.store.latest("flow").await.expect("a workflow");
    assert_eq!((known.version, known.dir.as_str()), (version, "/tmp"));
    assert!(matches!(node.store.latest("flaw").await, Err(Error::NoSuchWorkflow { .. })));
}

async fn plan_is_made_again_by_a_process_that_never_saw_it(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]")])).await;
    let other: Node = place.node("two").await;
    let claims = other.store.claim(other.ask(run, 1)).await.expect("a claim");
    assert_eq!(claims[0].head.plan.step(1).needs, ["a"]);
    assert_eq!(other.view(run).await.plan.workflow.steps.len(), 2);
}

/// What Laneway makes of something that happened is the same, whatever it is submitted for.
async fn key_of_a_run_that_differs_is_refused(place: Place) {
    let node = place.node("one").await;
    let submit = |key: &str, name: &str, head: &str, params: Value| {
        let head = format!(
            "params: {{date: {{type: string, required: true}}, zone: {{type: string, default: eu}}}}\n{head}"
        );
        let document = flow(&head, &[("a", "")]).replace("name: flow", &format!("name: {name}"));
        let key = Some(key.to_owned());
        let given = Submission { is_shared: true, key, ..submission(&document, params, node.session) };
        let store = &node.store;
        async move { store.submit(given).await }
    };
    let monday = || json!({"date": "mon"});
    let run = submit("night-7", "one", "", monday()).await.expect("a run");
    let same = json!({"date": "mon", "zone": "eu"});
    assert_eq!(submit("night-7", "one", "", same).await.expect("the default is the same"), run);
    for (name, head, params, expected) in [
        ("other", "", monday(), "workflow `one`, now `other`"),
        ("one", "max_parallel: 2", monday(), "version "),
        ("one", "", json!({"date": "tue"}), "`date` \"mon\", now \"tue\""),
        (
            "one",
            "",
            json!({"date": "tue", "zone": "us"}),
            "`date` \"mon\", now \"tue\"; `zone` \"eu\", now \"us\"",
        ),
    ] {
        let refused = submit("night-7", name, head, params).await.expect_err("it is that of another");
        assert!(
            matches!(&refused, Error::KeyTaken { key, run: of, differs } if key == "night-7" && *of == run && differs.starts_with(expected)),
            "{expected}: {refused}"
        );
    }
    let child = submit("child of x a (3)", "one", "", monday()).await.expect("a run");
    let other = submit("child of x a (3)", "other", "max_parallel: 2", json!({"date": "tue"})).await;
    assert_eq!(other.expect("the same"), child);
    assert_eq!(all(node.store.as_ref()).await, 2);
}
