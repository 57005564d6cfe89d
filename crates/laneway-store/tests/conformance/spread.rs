//! C8, C9, G2: runs that any node takes, by labels; a step that no live node can run says so.

use laneway_core::state::RunStatus;
use laneway_store::Error;

use crate::harness::{Node, Place, flow, for_each_database, names, succeeded};

for_each_database! {
    shared_run_is_worked_on_by_any_node,
    local_run_is_left_to_its_owner,
    node_takes_only_what_it_has_the_labels_for,
    step_that_no_node_can_run_says_so_and_goes_on_when_one_comes,
    task_of_a_dead_node_goes_to_another,
    shared_run_cannot_be_adopted,
    task_that_nobody_can_run_keeps_no_limit,
}

async fn shared_run_is_worked_on_by_any_node(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow("", &[("a", ""), ("b", ""), ("c", "needs: [a, b]")])).await;
    let (a, b) = (one.take_any(1).await, two.take_any(1).await);
    assert_eq!([names(&a), names(&b)], [["a"], ["b"]]);
    one.succeed(&a[0]).await;
    two.succeed(&b[0]).await;
    let c = two.take_any(9).await;
    assert_eq!(names(&c), ["c"]);
    two.succeed(&c[0]).await;
    assert_eq!(one.status(run).await, RunStatus::Succeeded);
    assert!(!one.view(run).await.is_interrupted);
}

async fn local_run_is_left_to_its_owner(place: Place) {
    let owner = place.node("owner").await;
    let other = Node::worker(place.open(), "other", &[]).await;
    let run = owner.submit(&flow("", &[("a", "")])).await;
    assert!(other.take_any(9).await.is_empty());
    assert_eq!(names(&owner.take(run, 9).await), ["a"]);
}

async fn node_takes_only_what_it_has_the_labels_for(place: Place) {
    let eu = Node::worker(place.open(), "eu", &["zone=eu", "disk=ssd"]).await;
    let us = Node::worker(place.open(), "us", &["zone=us"]).await;
    eu.share(&flow("", &[("here", "runs_on: {zone: eu}"), ("there", "runs_on: {zone: us}"), ("any", "")]))
        .await;
    assert_eq!(names(&us.take_any(9).await), ["there", "any"]);
    assert_eq!(names(&eu.take_any(9).await), ["here"]);
}

async fn step_that_no_node_can_run_says_so_and_goes_on_when_one_comes(place: Place) {
    let eu = Node::worker(place.open(), "eu", &["zone=eu"]).await;
    let run = eu.share(&flow("", &[("a", "runs_on: {zone: mars}"), ("b", "")])).await;
    assert_eq!(eu.tasks(run).await, "a pending, b available");
    let why = eu.why(run, "a").await;
    assert!(why.contains("zone=mars") && why.contains("eu"), "{why}");
    let mars = Node::worker(place.open(), "mars", &["zone=mars"]).await;
    assert_eq!(eu.tasks(run).await, "a available, b available");
    assert_eq!(names(&mars.take_any(1).await), ["a"]);
}

async fn task_of_a_dead_node_goes_to_another(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let other = Node::worker(place.open(), "other", &[]).await;
    let run = other.share(&flow("", &[("a", "")])).await;
    let lost = dying.take_any(1).await;
    drop(dying);
    assert_eq!(other.store.reap().await.expect("a reaped session").tasks, 1);
    let again = other.take_any(1).await;
    assert_eq!(again[0].at.attempt, 2);
    assert_eq!(other.finish(&lost[0], succeeded()).await, laneway_store::Fate::ClaimLost);
    other.succeed(&again[0]).await;
    assert_eq!(other.status(run).await, RunStatus::Succeeded);
}

async fn shared_run_cannot_be_adopted(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let run = node.share(&flow("", &[("a", "")])).await;
    let refusal = node.store.adopt(run, node.session).await.expect_err("it belongs to nobody");
    assert!(matches!(refusal, Error::Shared { .. }), "{refusal}");
}

async fn task_that_nobody_can_run_keeps_no_limit(place: Place) {
    let node = Node::worker(place.open(), "one", &[]).await;
    let document =
        flow("limits: {w: 1}", &[("a", "limits: [w], runs_on: {zone: mars}"), ("b", "limits: [w]")]);
    let run = node.share(&document).await;
    assert_eq!(node.tasks(run).await, "a pending, b available");
}
