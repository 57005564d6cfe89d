//! What goes wrong, and that nothing is left of it.

use std::time::Duration;

use laneway_core::pool::{ContainerState, EndReason};
use laneway_engine::process::Outcome;

use crate::support::{Node, agents, pool};

#[tokio::test]
async fn a_container_that_was_removed_behind_our_back_is_replaced() {
    let mut node = Node::new();
    let pool = pool(1);
    node.run(node.script(&pool, "true")).await;
    let gone = node.told(ContainerState::Dormant).await.container;
    node.docker.remove(&gone).await.expect("removed");
    let (ending, printed) = node.run(node.script(&pool, "echo well")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "well\n"));
    let ended = node.told(ContainerState::Terminated).await;
    assert_eq!((ended.container, ended.why), (gone.clone(), Some(EndReason::WakeFailed)));
    assert_ne!(node.told(ContainerState::Running).await.container, gone);
    node.close().await;
}

#[tokio::test]
async fn an_idle_container_that_died_costs_its_task_nothing() {
    let mut node = Node::new();
    let pool = pool(1);
    node.pools.warm(&pool, &node.path("work"), 1);
    let dead = node.told(ContainerState::Idle).await.container;
    node.docker.kill(&dead, "KILL").await.expect("killed");
    node.docker.wait(&dead).await.expect("ended");
    let (ending, printed) = node.run(node.script(&pool, "echo well")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "well\n"));
    node.close().await;
}

#[tokio::test]
async fn a_container_that_never_gets_well_leaves_nothing() {
    let mut node = Node::new();
    let mut pool = agents(2);
    pool.health = Some(vec!["false".to_owned()]);
    pool.health_timeout = Duration::from_millis(300);
    let Outcome::StartFailed(why) = node.end_of(node.script(&pool, "true")).await.outcome else {
        panic!("it started")
    };
    assert!(why.contains("not healthy within 300ms: `false` ended with exit code 1"), "{why}");
    node.told(ContainerState::Terminated).await;
    while !node.pools.views()[0].containers.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(node.containers().await, [""; 0]);
    node.close().await;
}

#[tokio::test]
async fn a_container_that_ends_before_it_is_well_is_told_so_at_once() {
    let node = Node::new();
    let mut pool = pool(1);
    pool.command = vec!["/bin/sh".to_owned(), "-c".to_owned(), "exit 7".to_owned()];
    let Outcome::StartFailed(why) = node.end_of(node.script(&pool, "true")).await.outcome else {
        panic!("it started")
    };
    assert_eq!(why, "its container ended with exit code 7 before it was healthy");
    node.close().await;
}

#[tokio::test]
async fn an_image_that_is_not_there_is_a_clear_error() {
    let node = Node::new();
    let mut pool = pool(1);
    pool.container.image = "laneway-test/none:1".to_owned();
    pool.container.pull = laneway_core::definition::Pull::Never;
    let Outcome::StartFailed(why) = node.end_of(node.script(&pool, "true")).await.outcome else {
        panic!("it started")
    };
    assert!(why.contains("laneway-test/none:1"), "{why}");
    node.close().await;
}
