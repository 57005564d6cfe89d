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
async fn a_task_that_finds_no_engine_is_told_so_and_not_that_its_pool_is_full() {
    let mut engine = Engine::start(&docker(), BUSYBOX).await;
    let mut node = Node::at(engine.docker(), 49200..=49300);
    let mut pool = pool(2);
    // Long enough for a start, and shorter than what an image's name is remembered for.
    pool.acquire_timeout = Some(Duration::from_secs(3));
    node.pools.warm(&pool, &node.path("work"), 1);
    node.told(ContainerState::Idle).await;
    let (ending, _) = node.run(node.script(&pool, "true")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    node.told(ContainerState::Dormant).await;
    engine.kill();
    // What sleeps is not woken, and another one does not start. Nobody removes either, so they keep their places, and the next task has no room.
    for _ in 0..2 {
        let Outcome::EngineLost(why) = node.end_of(node.script(&pool, "true")).await.outcome else {
            panic!("there is no engine")
        };
        assert!(why.starts_with("no container engine answers at unix://"), "{why}");
    }
    engine.start_again().await;
    nothing_left(node).await;
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
    assert!(matches!(ending.outcome, Outcome::EngineLost(_)), "{:?}", ending.outcome);
    engine.start_again().await;
    nothing_left(node).await;
}

async fn nothing_left(node: Node) {
    let gone = async {
        while !node.containers().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ORPHANED, gone).await.expect("nothing of it is left");
    node.close().await;
}
