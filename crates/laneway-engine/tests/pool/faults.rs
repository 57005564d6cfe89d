//! What goes wrong, and that nothing is left of it.

#![expect(clippy::disallowed_methods, reason = "tests make images as a person does")]

use std::time::Duration;

use laneway_core::pool::{ContainerState, EndReason};
use laneway_engine::container::pool::execute;
use laneway_engine::process::{Outcome, StopSignal};

use crate::proxy::Proxy;
use crate::support::{BUSYBOX, Node, ORPHANED, PATIENCE, agents, docker, pool};

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

/// As after an engine that died and came back.
#[tokio::test]
async fn idle_containers_that_died_all_at_once_cost_a_task_nothing_and_go() {
    let mut node = Node::new();
    let pool = pool(6);
    node.pools.warm(&pool, &node.path("work"), 6);
    for _ in 0..6 {
        let dead = node.told(ContainerState::Idle).await.container;
        node.docker.kill(&dead, "KILL").await.expect("killed");
        node.docker.wait(&dead).await.expect("ended");
    }
    let (ending, printed) = node.run(node.script(&pool, "echo well")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "well\n"));
    let others_are_gone = async {
        while node.pools.views()[0].containers.len() > 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, others_are_gone).await.expect("what is dead is not kept");
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

#[tokio::test]
async fn a_timeout_counts_from_the_moment_at_which_a_task_asks_for_a_container() {
    let node = Node::new();
    let mut pool = pool(1);
    pool.health = Some(vec!["false".to_owned()]);
    pool.health_timeout = PATIENCE;
    let mut job = node.script(&pool, "true");
    job.timeout = Some(Duration::from_millis(500));
    assert_eq!(node.end_of(job).await.outcome, Outcome::TimedOut);
    node.close().await;
}

#[tokio::test]
async fn an_engine_that_does_not_start_a_program_is_not_waited_for_longer_than_a_task_may_take() {
    let place = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let mut node = Node::at(proxy.docker(), 49200..=49300);
    let pool = pool(2);
    node.pools.warm(&pool, &node.path("work"), 2);
    for _ in 0..2 {
        node.told(ContainerState::Idle).await;
    }
    proxy.stick_at("/exec");
    let mut job = node.script(&pool, "true");
    job.timeout = Some(Duration::from_millis(300));
    let begun = std::time::Instant::now();
    assert_eq!(node.end_of(job).await.outcome, Outcome::TimedOut);
    let stop = StopSignal::new();
    let stopped = execute(&node.pools, node.script(&pool, "true"), &stop);
    let ask = async {
        while proxy.stuck() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.stop();
    };
    let (ending, ()) = tokio::join!(stopped, ask);
    assert_eq!(ending.outcome, Outcome::Stopped);
    assert!(begun.elapsed() < Duration::from_secs(10), "the engine's own patience is longer");
    node.close().await;
}

#[tokio::test]
async fn a_container_that_was_made_without_a_word_is_not_forgotten() {
    let place = tempfile::tempdir().expect("a directory");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let node = Node::at(proxy.docker(), 49200..=49300);
    proxy.lose_creates(1);
    let Outcome::EngineLost(why) = node.end_of(node.script(&pool(1), "true")).await.outcome else {
        panic!("nobody knows whether it was made")
    };
    assert!(why.contains("the line to the container engine broke"), "{why}");
    let gone = async {
        while !node.pools.views()[0].containers.is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(ORPHANED, gone).await.expect("nothing of it is left");
    assert_eq!((proxy.creates(), node.containers().await), (1, Vec::new()));
    let (ending, _) = node.run(node.script(&pool(1), "true")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "the next one is served");
    node.close().await;
}

#[tokio::test]
async fn a_tag_that_has_moved_begins_another_pool() {
    let node = Node::new();
    let tag = format!("laneway-test/moved:{}", std::process::id());
    let host = node.docker.host().to_owned();
    let sh = |script: &str| {
        let done = std::process::Command::new("sh").args(["-ec", script, &host, &tag, BUSYBOX]).output();
        let done = done.expect("a shell");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    sh("docker --host $0 tag $2 $1");
    let mut pool = pool(1);
    pool.container.image.clone_from(&tag);
    let script = || node.script(&pool, "echo moved=$MOVED");
    assert_eq!(node.run(script()).await.1, "moved=\n");
    sh("d=\"docker --host $0\"; id=$($d create $2 true); $d commit --change 'ENV MOVED=1' $id $1; $d rm $id");
    // What a name means is looked up now and then.
    let moved = async { while node.run(script()).await.1 != "moved=1\n" {} };
    tokio::time::timeout(PATIENCE, moved).await.expect("it is noticed");
    assert_eq!(node.pools.views().len(), 2, "the old ones serve nobody any more");
    node.close().await;
    sh("docker --host $0 rmi --force $1");
}

#[tokio::test]
async fn what_is_being_made_while_its_node_ends_is_not_left() {
    let pool = pool(3);
    let mut ended = Vec::new();
    for _ in 0..5 {
        let mut node = Node::new();
        node.pools.warm(&pool, &node.path("work"), 3);
        node.told(ContainerState::Starting).await;
        node.pools.close().await;
        ended.push(node);
    }
    // Whatever was on its way is there by now: the engine has made another one meanwhile.
    let later = Node::new();
    later.run(later.script(&pool, "true")).await;
    later.close().await;
    for node in ended {
        node.close().await;
    }
}
