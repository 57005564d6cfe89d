//! Ports of the host when their range is used up: who waits, who is evicted, and what is said.

use std::net::TcpListener;
use std::time::Duration;

use laneway_core::definition;
use laneway_core::pool::{ContainerState, EndReason};
use laneway_engine::container::pool::{Job, execute};
use laneway_engine::process::{Ending, Outcome, StopSignal};

use crate::support::{Node, PATIENCE, agents};

/// The first of so many ports in a row that are free.
fn free_ports(count: u16) -> u16 {
    for _ in 0..100 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let first = listener.local_addr().expect("an address").port();
        drop(listener);
        let Some(last) = first.checked_add(count - 1) else { continue };
        if (first..=last).all(|port| TcpListener::bind(("127.0.0.1", port)).is_ok()) {
            return first;
        }
    }
    panic!("no {count} free ports in a row");
}

/// A pool of its own: pools that differ in nothing but their name are one.
fn pool(name: &str) -> definition::Pool {
    let mut pool = agents(2);
    pool.name = name.to_owned();
    pool.health_timeout += Duration::from_secs(u64::from(name.as_bytes()[0]));
    pool
}

/// Runs a task in the background.
fn begin(node: &Node, job: Job, stop: &StopSignal) -> tokio::task::JoinHandle<Ending> {
    let (pools, stop) = (node.pools.clone(), stop.clone());
    tokio::spawn(async move { execute(&pools, job, &stop).await })
}

async fn end(task: tokio::task::JoinHandle<Ending>) -> Outcome {
    tokio::time::timeout(PATIENCE, task).await.expect("it ends").expect("it runs").outcome
}

/// A task that runs until `go` is there, in a container of its pool.
async fn holder(node: &mut Node, pool: &definition::Pool) -> (tokio::task::JoinHandle<Ending>, String) {
    let job = node.script(pool, "until [ -e go ]; do sleep 0.02; done");
    let task = begin(node, job, &StopSignal::new());
    let container = node.told(ContainerState::Running).await.container;
    (task, container)
}

fn go(node: &Node) {
    std::fs::write(node.path("work/go"), "").expect("a file");
}

#[tokio::test]
async fn dormant_container_of_another_pool_is_evicted_least_recently_used_first() {
    let first = free_ports(2);
    let mut node = Node::with_ports(first..=first + 1);
    let mut dormant = Vec::new();
    for name in ["old", "recent"] {
        assert_eq!(node.run(node.script(&pool(name), "true")).await.0.outcome, Outcome::Exited(0));
        dormant.push(node.told(ContainerState::Dormant).await.container);
    }
    // Used once more, the one that started first is not the least recently used any more.
    assert_eq!(node.run(node.script(&pool("old"), "true")).await.0.outcome, Outcome::Exited(0));
    node.told(ContainerState::Dormant).await;
    let (ending, printed) = node.run(node.script(&pool("new"), "echo well")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "well\n"));
    let evicted = node.told(ContainerState::Terminated).await;
    assert_eq!((evicted.container, evicted.why), (dormant[1].clone(), Some(EndReason::Evicted)));
    assert!(node.containers().await.contains(&dormant[0]), "one was enough");
    node.close().await;
}

#[tokio::test]
async fn tasks_wait_for_a_port_in_order_over_all_pools() {
    let port = free_ports(1);
    let mut node = Node::with_ports(port..=port);
    let (held, container) = holder(&mut node, &pool("a")).await;
    let mut waiting = Vec::new();
    for (count, name) in (1..).zip(["c", "b", "d"]) {
        let mut job = node.script(&pool(name), "true");
        (job.step, job.log) = (name.to_owned(), node.path(name).into());
        waiting.push(begin(&node, job, &StopSignal::new()));
        let ports = node.waiting_for_ports(count).await;
        assert_eq!((ports.first, ports.last, ports.holders.len()), (port, port, 1));
        assert_eq!((ports.holders[0].pool.as_str(), &ports.holders[0].container), ("a", &container));
        assert_eq!(ports.waiting[count - 1].step, name);
    }
    assert_eq!(node.containers().await.len(), 1, "nothing is made for who waits");
    go(&node);
    assert_eq!(end(held).await, Outcome::Exited(0));
    for task in waiting {
        assert_eq!(end(task).await, Outcome::Exited(0));
    }
    node.story();
    let served: Vec<&str> = node
        .history
        .iter()
        .filter(|moved| moved.to == ContainerState::Running)
        .map(|moved| moved.pool.as_str())
        .collect();
    assert_eq!(served, ["a", "c", "b", "d"]);
    node.close().await;
}

#[tokio::test]
async fn task_that_waits_too_long_for_a_port_is_told_who_holds_them() {
    let port = free_ports(1);
    let mut node = Node::with_ports(port..=port);
    let (held, container) = holder(&mut node, &pool("a")).await;
    let mut late = pool("b");
    late.acquire_timeout = Some(Duration::from_millis(300));
    let Outcome::StartFailed(why) = node.end_of(node.script(&late, "true")).await.outcome else {
        panic!("it got a port")
    };
    let expected = format!(
        "no host port became free for the pool `b` within `acquire_timeout` (300ms): no port of {port} is \
         free: {port} by {container} of pool `a` (runs step of run {}); widen the setting `ports`, or raise \
         `acquire_timeout` of the pool",
        node.run.short()
    );
    assert_eq!(why, expected);
    go(&node);
    assert_eq!(end(held).await, Outcome::Exited(0));
    let ending = node.end_of(node.script(&pool("b"), "true")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "nothing of the first try is left");
    node.close().await;
}

#[tokio::test]
async fn idle_container_is_never_evicted_and_warming_takes_no_port_from_who_waits() {
    let port = free_ports(1);
    let mut node = Node::with_ports(port..=port);
    node.pools.warm(&pool("a"), &node.path("work"), 1);
    let idle = node.told(ContainerState::Idle).await.container;
    let mut late = pool("b");
    late.acquire_timeout = Some(Duration::from_millis(300));
    let Outcome::StartFailed(why) = node.end_of(node.script(&late, "true")).await.outcome else {
        panic!("it got a port")
    };
    assert!(why.contains(&format!("{port} by {idle} of pool `a` (idle)")), "{why}");
    assert!(why.ends_with("or remove idle containers with `laneway pool drain a`"), "{why}");
    let waiting = begin(&node, node.script(&pool("b"), "true"), &StopSignal::new());
    node.waiting_for_ports(1).await;
    node.pools.warm(&pool("c"), &node.path("work"), 1);
    // A pool answers in order: it has asked for a port, and got none.
    assert_eq!(node.pools.drain("a"), 1);
    assert_eq!(end(waiting).await, Outcome::Exited(0));
    node.story();
    let made = node.history.iter().filter(|moved| moved.to == ContainerState::Starting);
    assert_eq!(made.map(|moved| moved.pool.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    node.close().await;
}

#[tokio::test]
async fn port_of_another_program_is_passed_over_and_taken_when_that_lets_go_of_it() {
    let first = free_ports(2);
    let mut node = Node::with_ports(first..=first + 1);
    let other = TcpListener::bind(("127.0.0.1", first)).expect("the port");
    let (held, _) = holder(&mut node, &pool("a")).await;
    let waiting = begin(&node, node.script(&pool("b"), "true"), &StopSignal::new());
    let ports = node.waiting_for_ports(1).await;
    assert_eq!((ports.held, ports.holders[0].port), (1, first + 1));
    drop(other);
    assert_eq!(end(waiting).await, Outcome::Exited(0), "while the first one runs");
    go(&node);
    assert_eq!(end(held).await, Outcome::Exited(0));
    node.close().await;
}

#[tokio::test]
async fn wait_for_a_port_ends_with_a_stop_and_with_its_node() {
    let port = free_ports(1);
    let mut node = Node::with_ports(port..=port);
    let (held, container) = holder(&mut node, &pool("a")).await;
    let stops = [StopSignal::new(), StopSignal::new()];
    let first = begin(&node, node.script(&pool("b"), "true"), &stops[0]);
    node.waiting_for_ports(1).await;
    let second = begin(&node, node.script(&pool("c"), "true"), &stops[1]);
    node.waiting_for_ports(2).await;
    stops[0].stop();
    assert_eq!(end(first).await, Outcome::Stopped);
    let ports = node.waiting_for_ports(1).await;
    assert_eq!(ports.waiting[0].pool, "c", "the next one moves up");
    let of_pools = node.pools.views().into_iter().flat_map(|view| view.containers);
    assert_eq!(of_pools.map(|(name, _)| name).collect::<Vec<_>>(), [container], "no record of a start");
    node.pools.close().await;
    let Outcome::StartFailed(why) = end(second).await else { panic!("it was served") };
    assert!(why.contains("this node stops"), "{why}");
    drop(end(held).await);
    node.close().await;
}
