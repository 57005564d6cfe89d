//! An engine that is killed and comes back.

use std::time::Duration;

use laneway_core::pool::ContainerState;
use laneway_engine::container::pool::execute;
use laneway_engine::process::{Outcome, StopSignal};

use crate::engine::Engine;
use crate::support::{BUSYBOX, Node, ORPHANED, PATIENCE, docker, pool};

#[tokio::test]
async fn containers_that_an_engine_took_with_it_are_replaced() {
    let mut engine = Engine::start(&docker(), BUSYBOX).await;
    let mut node = Node::at(engine.docker(), 49200..=49300);
    let pool = pool(1);
    node.run(node.script(&pool, "true")).await;
    let gone = node.told(ContainerState::Dormant).await.container;
    engine.kill();
    engine.start_again().await;
    let (ending, printed) = node.run(node.script(&pool, "echo well")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "well\n"));
    node.told(ContainerState::Running).await;
    let now = node.told(ContainerState::Dormant).await.container;
    assert_ne!(now, gone);
    assert_eq!(node.containers().await, [now]);
    node.close().await;
}

#[tokio::test]
async fn a_task_whose_engine_dies_ends_in_words_and_nothing_of_it_is_left() {
    let mut engine = Engine::start(&docker(), BUSYBOX).await;
    let node = Node::at(engine.docker(), 49200..=49300);
    let job = node.script(&pool(1), ": > begun; exec sleep 1000");
    let stop = StopSignal::new();
    let dies = async {
        while !node.path("work/begun").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        engine.kill();
    };
    let both = async { tokio::join!(execute(&node.pools, job, &stop), dies) };
    let (ending, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it ends");
    assert!(matches!(ending.outcome, Outcome::StartFailed(_)), "{:?}", ending.outcome);
    engine.start_again().await;
    let gone = async {
        while !node.containers().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ORPHANED, gone).await.expect("nothing of it is left");
    node.close().await;
}
