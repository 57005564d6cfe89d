//! C9: `placement: pinned` keeps a run on the node that took its first task, and moves it as a whole when that is lost.
//! C8: `prefers` only orders.

use laneway_core::state::RunStatus;
use laneway_store::model::{Reopen, Whom};

use crate::harness::{Node, Place, failed, flow, for_each_database, left, names};

for_each_database! {
    pinned_run_stays_on_the_node_that_started_its_first_task,
    pinned_run_offers_one_task_until_it_has_a_node,
    first_task_that_ends_at_once_binds_its_run_too,
    pinned_run_moves_as_a_whole_when_its_node_is_lost,
    pinned_run_moves_when_its_node_leaves,
    pinned_run_whose_last_node_died_goes_to_the_next_that_joins,
    pinned_run_that_is_retried_may_go_to_another_node,
    pinned_run_goes_to_a_node_that_can_run_all_of_it,
    pinned_run_of_a_node_that_takes_nothing_more_says_so,
    preferred_label_decides_what_a_node_takes_first_and_keeps_nobody_from_it,
}

const PINNED: &str = "placement: pinned";

async fn pinned_run_stays_on_the_node_that_started_its_first_task(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = two.share(&flow(PINNED, &[("a", ""), ("b", ""), ("c", "needs: [a, b]")])).await;
    let a = one.take_any(9).await;
    assert_eq!(names(&a), ["a"]);
    one.start(&a[0]).await;
    assert!(two.take_any(9).await.is_empty(), "b is for the node that runs a");
    let b = one.take_any(9).await;
    assert_eq!(names(&b), ["b"]);
    one.succeed(&a[0]).await;
    one.succeed(&b[0]).await;
    assert!(two.take_any(9).await.is_empty());
    let c = one.take_any(9).await;
    one.succeed(&c[0]).await;
    assert_eq!(one.status(run).await, RunStatus::Succeeded);
    let next = two.share(&flow(PINNED, &[("d", "")])).await;
    assert_eq!(names(&two.take_any(9).await), ["d"], "another run is another node's");
    assert_eq!(two.status(next).await, RunStatus::Running);
}

async fn pinned_run_offers_one_task_until_it_has_a_node(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow(PINNED, &[("a", ""), ("b", "")])).await;
    assert_eq!(one.tasks(run).await, "a available, b pending");
    let why = one.why(run, "b").await;
    assert!(why.contains("stays on one node") && why.contains("when a has started"), "{why}");
    let a = one.take_any(9).await;
    // It never started: the run is nobody's.
    one.give_back(&a[0]).await;
    let a = two.take_any(9).await;
    two.start(&a[0]).await;
    assert_eq!(two.tasks(run).await, "a running, b available");
    assert!(one.take_any(9).await.is_empty());
    assert_eq!(names(&two.take_any(9).await), ["b"]);
}

async fn first_task_that_ends_at_once_binds_its_run_too(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    one.share(&flow(PINNED, &[("a", ""), ("b", "needs: [a]")])).await;
    let a = one.take_any(1).await;
    one.succeed(&a[0]).await;
    assert!(two.take_any(9).await.is_empty());
    assert_eq!(names(&one.take_any(9).await), ["b"]);
}

async fn pinned_run_moves_as_a_whole_when_its_node_is_lost(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let run = dying.share(&flow(PINNED, &[("a", ""), ("b", ""), ("c", ""), ("d", "")])).await;
    let a = dying.take_any(1).await;
    dying.start(&a[0]).await;
    let b = dying.take_any(1).await;
    dying.succeed(&b[0]).await;
    assert_eq!(dying.tasks(run).await, "a running, b succeeded, c available, d available");
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    drop(dying);
    assert_eq!(one.store.reap().await.expect("a reaped session").tasks, 1);
    let first = two.take_any(9).await;
    assert_eq!(first.len(), 1, "the others wait for the node of the first: {:?}", names(&first));
    two.start(&first[0]).await;
    assert!(one.take_any(9).await.is_empty());
    let rest = two.take_any(9).await;
    assert_eq!(rest.len(), 2, "{:?}", names(&rest));
    for held in first.iter().chain(&rest) {
        two.succeed(held).await;
    }
    assert_eq!(two.status(run).await, RunStatus::Succeeded);
}

async fn pinned_run_moves_when_its_node_leaves(place: Place) {
    let leaving = Node::worker(place.open(), "leaving", &[]).await;
    let other = Node::worker(place.open(), "other", &[]).await;
    let run = other.share(&flow(PINNED, &[("a", ""), ("b", "needs: [a]")])).await;
    let a = leaving.take_any(9).await;
    leaving.succeed(&a[0]).await;
    assert!(other.take_any(9).await.is_empty());
    leaving.store.retire(leaving.session, left()).await.expect("a session that can end");
    assert_eq!(names(&other.take_any(9).await), ["b"]);
    assert_eq!(other.tasks(run).await, "a succeeded, b available");
}

async fn pinned_run_that_is_retried_may_go_to_another_node(place: Place) {
    let one = Node::worker(place.open(), "one", &[]).await;
    let two = Node::worker(place.open(), "two", &[]).await;
    let run = one.share(&flow(PINNED, &[("a", ""), ("b", "needs: [a]")])).await;
    let a = one.take_any(9).await;
    one.finish(&a[0], failed(1)).await;
    assert_eq!(one.status(run).await, RunStatus::Failed);
    two.store.retry(run, Reopen::default(), "ada").await.expect("a run that can be retried");
    let a = two.take_any(9).await;
    two.succeed(&a[0]).await;
    assert!(one.take_any(9).await.is_empty());
    let b = two.take_any(9).await;
    two.succeed(&b[0]).await;
    assert_eq!(two.status(run).await, RunStatus::Succeeded);
}

async fn pinned_run_goes_to_a_node_that_can_run_all_of_it(place: Place) {
    let plain = Node::worker(place.open(), "plain", &[]).await;
    let run = plain.share(&flow(PINNED, &[("a", ""), ("b", "runs_on: {gpu: a100}")])).await;
    assert_eq!(plain.tasks(run).await, "a pending, b pending", "nobody has a gpu, for which b will ask");
    let why = plain.why(run, "a").await;
    assert!(why.contains("has gpu=a100"), "{why}");
    let gpu = Node::worker(place.open(), "gpu", &["gpu=a100"]).await;
    assert!(plain.take_any(9).await.is_empty());
    let a = gpu.take_any(9).await;
    gpu.start(&a[0]).await;
    assert_eq!(names(&gpu.take_any(9).await), ["b"]);
}

async fn pinned_run_of_a_node_that_takes_nothing_more_says_so(place: Place) {
    let drained = Node::worker(place.open(), "drained", &[]).await;
    let other = Node::worker(place.open(), "other", &[]).await;
    let run = other.share(&flow(PINNED, &[("a", ""), ("b", "needs: [a]")])).await;
    let a = drained.take_any(9).await;
    drained.start(&a[0]).await;
    other.store.drain(Whom::Node("drained".into()), left()).await.expect("a node of that name");
    drained.succeed(&a[0]).await;
    assert_eq!(other.tasks(run).await, "a succeeded, b pending");
    let why = other.why(run, "b").await;
    assert!(why.contains("node drained, to which its run is bound"), "{why}");
    drained.store.retire(drained.session, left()).await.expect("a session that can end");
    assert_eq!(names(&other.take_any(9).await), ["b"]);
}

async fn preferred_label_decides_what_a_node_takes_first_and_keeps_nobody_from_it(place: Place) {
    let ssd = Node::worker(place.open(), "ssd", &["disk=ssd"]).await;
    let plain = Node::worker(place.open(), "plain", &[]).await;
    ssd.share(&flow("", &[("fast", "prefers: {disk: ssd}"), ("any", "")])).await;
    assert_eq!(names(&plain.take_any(1).await), ["any"], "though it came second");
    ssd.share(&flow("", &[("other", "")])).await;
    assert_eq!(names(&ssd.take_any(1).await), ["fast"]);
    ssd.share(&flow("", &[("alone", "prefers: {disk: ssd}")])).await;
    assert_eq!(names(&plain.take_any(2).await), ["other", "alone"], "an idle node takes what there is");
}

async fn pinned_run_whose_last_node_died_goes_to_the_next_that_joins(place: Place) {
    let dying = Node::worker(place.open(), "dying", &[]).await;
    let run = dying.share(&flow(PINNED, &[("a", ""), ("b", ""), ("c", "")])).await;
    let a = dying.take_any(1).await;
    dying.start(&a[0]).await;
    drop(dying);
    let person = place.node("person").await;
    person.store.reap().await.expect("a reaped session");
    assert_eq!(person.tasks(run).await, "a pending (lost), b pending, c pending");
    let why = person.why(run, "a").await;
    assert!(why.contains("no node is alive"), "{why}");
    let next = Node::worker(place.open(), "next", &[]).await;
    let first = next.take_any(9).await;
    assert_eq!(first.len(), 1, "{:?}", names(&first));
    next.start(&first[0]).await;
    assert_eq!(next.take_any(9).await.len(), 2);
}
