//! C1, R1, G1: a claim takes what is available, oldest first, each task once, within the run's limit.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use laneway_core::id::RunId;
use laneway_core::state::{RunStatus, TaskStatus};
use laneway_store::Fate;
use laneway_store::model::Finished;

use crate::harness::{Held, Node, Place, failed, flat, flow, for_each_database, left, names, succeeded};

for_each_database! {
    oldest_task_is_claimed_first,
    claim_takes_no_more_than_it_asks_for,
    every_claim_mints_the_next_attempt,
    session_that_is_over_claims_nothing,
    fifty_tasks_and_ten_claimers_of_one_process_take_each_once,
    fifty_tasks_and_ten_processes_take_each_once,
    never_more_than_max_parallel_are_available_or_running,
    who_waited_for_a_place_comes_before_who_is_new,
    finish_claims_the_next_tasks_in_the_same_call,
    tasks_of_another_run_are_not_claimed,
}

async fn oldest_task_is_claimed_first(place: Place) {
    let node = place.node("one").await;
    let steps =
        [("a", ""), ("b", "needs: [a]"), ("c", ""), ("d", "needs: [c]"), ("e", "needs: [d]"), ("f", "")];
    let run = node.submit(&flow("max_parallel: 3", &steps)).await;
    let first = node.take(run, 2).await;
    assert_eq!(names(&first), ["a", "c"]);
    place.advance(Duration::from_millis(1));
    node.succeed(&first[1]).await;
    place.advance(Duration::from_millis(1));
    node.succeed(&first[0]).await;
    // `f` waits since the beginning; `d` was ready before `b`, though it stands behind it in the document.
    assert_eq!(names(&node.take(run, 9).await), ["f", "d", "b"]);
}

async fn claim_takes_no_more_than_it_asks_for(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(4, 4)).await;
    assert_eq!(node.take(run, 0).await.len(), 0);
    assert_eq!(names(&node.take(run, 3).await), ["s0", "s1", "s2"]);
    assert_eq!(names(&node.take(run, 3).await), ["s3"]);
    assert_eq!(node.take(run, 3).await.len(), 0);
}

async fn every_claim_mints_the_next_attempt(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", "retry: {max: 1, backoff: 0s}")])).await;
    let first = node.begin(run, "a").await;
    assert_eq!(first.at.attempt, 1);
    node.fail(&first).await;
    assert_eq!(node.begin(run, "a").await.at.attempt, 2);
}

async fn session_that_is_over_claims_nothing(place: Place) {
    let (node, gone) = (place.node("one").await, place.node("two").await);
    let run = node.submit(&flat(1, 1)).await;
    gone.store.retire(gone.session, left()).await.expect("a session that can end");
    assert!(gone.take(run, 1).await.is_empty());
    assert_eq!(names(&node.take(run, 1).await), ["s0"]);
}

/// Every claimer takes, starts and finishes until the run has ended.
async fn take_all(node: Node, run: RunId) -> Vec<Held> {
    let mut taken = Vec::new();
    loop {
        let claims = node.store.claim(node.ask(run, 2)).await.expect("a claim");
        if claims.is_empty() {
            if node.status(run).await.is_final() {
                return taken;
            }
            tokio::task::yield_now().await;
            continue;
        }
        let refs: Vec<_> = claims.iter().map(|claim| claim.at).collect();
        for fate in node.store.start(refs.clone()).await.expect("fates") {
            assert_eq!(fate, Fate::Recorded);
        }
        let finished =
            refs.iter().map(|at| Finished::new(*at, succeeded(), std::time::Duration::ZERO)).collect();
        let answer = node.store.finish(finished, None).await.expect("an answer");
        assert!(answer.fates.iter().all(|fate| *fate == Fate::Recorded));
        taken.extend(refs.into_iter().map(|at| Held { at, step: String::new(), is_late: false }));
    }
}

async fn taken_once(place: &Place, nodes: Vec<Node>) {
    let run = nodes[0].submit(&flat(50, 20)).await;
    let claimers: Vec<_> = nodes.iter().map(|node| tokio::spawn(take_all(node.clone(), run))).collect();
    let mut taken = Vec::new();
    for claimer in claimers {
        taken.extend(claimer.await.expect("a claimer that ends"));
    }
    let distinct: HashSet<_> = taken.iter().map(|held| held.at.position).collect();
    assert_eq!((taken.len(), distinct.len()), (50, 50), "each of the fifty was taken exactly once");
    assert!(taken.iter().all(|held| held.at.attempt == 1));
    assert_eq!(nodes[0].status(run).await, RunStatus::Succeeded);
    crate::audit::check(&*place.open(), run).await;
}

async fn fifty_tasks_and_ten_claimers_of_one_process_take_each_once(place: Place) {
    let store = place.open();
    let mut nodes = Vec::new();
    for index in 0..10 {
        nodes.push(Node::register(Arc::clone(&store), &format!("claimer {index}")).await);
    }
    taken_once(&place, nodes).await;
}

async fn fifty_tasks_and_ten_processes_take_each_once(place: Place) {
    let mut nodes = Vec::new();
    for index in 0..10 {
        nodes.push(place.node(&format!("process {index}")).await);
    }
    taken_once(&place, nodes).await;
}

async fn never_more_than_max_parallel_are_available_or_running(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flat(10, 3)).await;
    for left in (0..10_usize).rev() {
        let state = node.state(run).await;
        let live = state.tasks.iter().filter(|task| task.status.is_live()).count();
        assert_eq!(live, 3.min(left + 1));
        let held = node.take(run, 1).await.pop().expect("a task");
        assert_eq!(node.start(&held).await, Fate::Recorded);
        node.succeed(&held).await;
    }
    assert_eq!(node.status(run).await, RunStatus::Succeeded);
}

async fn who_waited_for_a_place_comes_before_who_is_new(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("max_parallel: 1", &[("a", ""), ("next", "needs: [a]"), ("old", "")])).await;
    let first = node.begin(run, "a").await;
    place.advance(Duration::from_millis(5));
    node.succeed(&first).await;
    assert_eq!(node.task(run, "next").await.status, TaskStatus::Pending);
    assert_eq!(node.work(run, |_| succeeded()).await, ["old", "next"]);
}

async fn finish_claims_the_next_tasks_in_the_same_call(place: Place) {
    let node = place.node("one").await;
    let run = node.submit(&flow("", &[("a", ""), ("b", "needs: [a]"), ("c", "needs: [b]")])).await;
    let first = node.begin(run, "a").await;
    let finished = Finished::new(first.at, succeeded(), std::time::Duration::ZERO);
    let answer = node.store.finish(vec![finished], Some(node.ask(run, 4))).await.expect("an answer");
    assert_eq!(answer.fates, [Fate::Recorded]);
    assert_eq!(answer.claims.len(), 1);
    assert_eq!(answer.claims[0].head.plan.step(answer.claims[0].at.position).name, "b");
    assert_eq!(answer.claims[0].head.dir, "/tmp");
    let next = Finished::new(answer.claims[0].at, failed(3), std::time::Duration::ZERO);
    let answer = node.store.finish(vec![next], Some(node.ask(run, 4))).await.expect("an answer");
    assert!(answer.claims.is_empty());
    assert_eq!(node.status(run).await, RunStatus::Failed);
}

async fn tasks_of_another_run_are_not_claimed(place: Place) {
    let node = place.node("one").await;
    let (first, second) = (node.submit(&flat(1, 1)).await, node.submit(&flat(2, 2)).await);
    let taken = node.take(second, 9).await;
    assert_eq!(taken.len(), 2);
    assert!(taken.iter().all(|held| held.at.run == second));
    assert_eq!(node.take(first, 9).await.len(), 1);
}
