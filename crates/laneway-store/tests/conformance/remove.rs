//! Limits, triggers and workflows that are removed: what is in use is refused, and what has run
//! stays.

use laneway_core::id::RunId;
use laneway_core::limit::Limit;
use laneway_store::Error;
use laneway_store::model::Application;
use serde_json::json;
use std::sync::Arc;

use crate::harness::{Node, Place, flow, for_each_database, plan, submission};

for_each_database! {
    limit_that_is_needed_is_not_removed,
    removed_limit_is_unknown_to_what_is_submitted_behind,
    run_whose_limit_was_removed_goes_on_once_it_is_there_again,
    removed_triggers_come_back_when_the_workflow_is_applied_again,
    workflow_in_use_is_removed_with_force_alone,
    runs_of_a_removed_workflow_stay_and_none_starts_by_its_name,
}

const SCHEDULED: &str = "name: flow\nschedule: {cron: \"0 2 * * *\"}\nsteps: {a: {run: 'true'}}\n";

async fn set(node: &Node) {
    node.store.set_limit("db", Limit::parse("1").expect("a limit"), "ada").await.expect("it is set");
}

async fn apply(node: &Node, document: &str) -> bool {
    let application = Application {
        plan: Arc::new(plan(document)),
        document: document.to_owned(),
        dir: "/tmp".to_owned(),
        bundle: None,
        by: "ada".to_owned(),
    };
    node.store.apply(application).await.expect("it is applied").was_there
}

async fn submit(node: &Node, document: &str) -> Result<RunId, Error> {
    node.store.submit(submission(document, json!({}), node.session)).await
}

async fn limit_that_is_needed_is_not_removed(place: Place) {
    let node = place.node("one").await;
    assert!(matches!(node.store.remove_limit("db").await, Err(Error::NoSuchLimit { .. })));
    set(&node).await;
    // Its first step needs nothing: the limit is named by what comes behind.
    let run = submit(&node, &flow("", &[("a", ""), ("b", "needs: [a], limits: [db]")])).await.expect("a run");
    let refused = node.store.remove_limit("db").await.expect_err("a run names it");
    assert!(matches!(refused, Error::LimitInUse { held: 0, waiting: 0, run: Some(of), .. } if of == run));
    node.succeed(&node.take(run, 1).await[0]).await;
    let refused = node.store.remove_limit("db").await.expect_err("a task holds it");
    assert!(matches!(refused, Error::LimitInUse { held: 1, .. }), "{refused}");
    node.succeed(&node.take(run, 1).await[0]).await;
    node.store.remove_limit("db").await.expect("nothing needs it");
    assert!(node.store.limits().await.expect("limits").is_empty());
}

async fn removed_limit_is_unknown_to_what_is_submitted_behind(place: Place) {
    let node = place.node("one").await;
    set(&node).await;
    node.store.remove_limit("db").await.expect("nothing needs it");
    let document = flow("", &[("a", "limits: [db]")]);
    assert!(matches!(submit(&node, &document).await, Err(Error::NoSuchLimit { .. })));
    set(&node).await;
    submit(&node, &document).await.expect("it is there again");
}

async fn run_whose_limit_was_removed_goes_on_once_it_is_there_again(place: Place) {
    let node = place.node("one").await;
    set(&node).await;
    let document = flow("", &[("a", ""), ("b", "needs: [a], limits: [db]")]);
    let run = submit(&node, &document).await.expect("a run");
    node.fail(&node.take(run, 1).await[0]).await;
    node.store.remove_limit("db").await.expect("what needs it has ended");
    for refused in [node.retry(run, None).await, node.skip(run, "a").await] {
        let refused = refused.expect_err("the limit is gone");
        assert!(matches!(refused, Error::NotRunnable { .. }), "{refused}");
        assert!(refused.to_string().contains("laneway limit set db"), "{refused}");
    }
    set(&node).await;
    node.retry(run, None).await.expect("the limit is there again");
    node.succeed(&node.take(run, 1).await[0]).await;
    node.succeed(&node.take(run, 1).await[0]).await;
}

async fn removed_triggers_come_back_when_the_workflow_is_applied_again(place: Place) {
    let node = place.node("one").await;
    assert!(matches!(node.store.remove_triggers("flow").await, Err(Error::NoTriggers { .. })));
    apply(&node, SCHEDULED).await;
    assert_eq!(node.store.remove_triggers("flow").await.expect("it has one"), 1);
    assert!(node.store.triggers().await.expect("triggers").is_empty());
    assert!(node.store.latest("flow").await.is_ok(), "the workflow stays");
    assert!(apply(&node, SCHEDULED).await, "it is the same version");
    assert_eq!(node.store.triggers().await.expect("triggers").len(), 1);
}

async fn workflow_in_use_is_removed_with_force_alone(place: Place) {
    let node = place.node("one").await;
    apply(&node, SCHEDULED).await;
    let run = submit(&node, SCHEDULED).await.expect("a run");
    let refused = node.store.remove_workflow("flow", false).await.expect_err("it is in use");
    assert!(matches!(refused, Error::WorkflowInUse { runs: 1, triggers: 1, .. }), "{refused}");
    node.store.remove_workflow("flow", true).await.expect("it is removed");
    assert!(node.store.triggers().await.expect("triggers").is_empty());
    node.succeed(&node.take(run, 1).await[0]).await;
    assert!(node.state(run).await.status.is_final());
}

async fn runs_of_a_removed_workflow_stay_and_none_starts_by_its_name(place: Place) {
    let node = place.node("one").await;
    let document = flow("", &[("a", "")]);
    assert!(matches!(node.store.remove_workflow("flow", false).await, Err(Error::NoSuchWorkflow { .. })));
    apply(&node, &document).await;
    let run = submit(&node, &document).await.expect("a run");
    node.succeed(&node.take(run, 1).await[0]).await;
    node.store.remove_workflow("flow", false).await.expect("nothing needs it");
    assert!(node.state(run).await.status.is_final(), "the run stays");
    assert!(node.store.workflows().await.expect("workflows").is_empty());
    assert!(matches!(node.store.latest("flow").await, Err(Error::NoSuchWorkflow { .. })));
    place.advance(std::time::Duration::from_secs(1));
    submit(&node, &document).await.expect("a run");
    assert!(node.store.latest("flow").await.is_ok(), "what ran since starts by its name");
    assert!(!apply(&node, &document).await, "it is new");
}
