//! Tasks in warm containers that want too much memory, told from those that are killed.

use laneway_core::definition::PoolMode;
use laneway_core::pool::{ContainerState, EndReason};
use laneway_engine::process::Outcome;

use crate::support::{Node, pool};

const GREEDY: &str = "exec dd if=/dev/zero of=/dev/null bs=200M count=1";

#[tokio::test]
async fn a_task_that_wants_too_much_memory_is_told_from_one_that_is_killed() {
    let mut node = Node::new();
    let mut pool = pool(1);
    pool.container.memory = Some(24 << 20);
    let (killed, _) = node.run(node.script(&pool, "kill -9 $$")).await;
    assert_eq!(killed.outcome, Outcome::Signaled(9));
    node.told(ContainerState::Dormant).await;
    let (greedy, _) = node.run(node.script(&pool, GREEDY)).await;
    assert_eq!(greedy.outcome, Outcome::OutOfMemory(137));
    let ended = node.told(ContainerState::Terminated).await;
    assert_eq!(ended.why, Some(EndReason::Dirty), "what else was hit in there nobody knows");
    let (killed, _) = node.run(node.script(&pool, "kill -9 $$")).await;
    assert_eq!(killed.outcome, Outcome::Signaled(9), "that was another task");
    node.close().await;
}

#[tokio::test]
async fn a_task_whose_child_wanted_too_much_says_so_if_it_failed_of_that() {
    let mut node = Node::new();
    let mut pool = pool(1);
    pool.container.memory = Some(24 << 20);
    let child = "dd if=/dev/zero of=/dev/null bs=200M count=1";
    let (failed, _) = node.run(node.script(&pool, &format!("{child} || exit 7"))).await;
    assert_eq!(failed.outcome, Outcome::OutOfMemory(7));
    let (unharmed, _) = node.run(node.script(&pool, &format!("{child} || true"))).await;
    assert_eq!(unharmed.outcome, Outcome::Exited(0));
    // Its container has gone with it, so that nobody is blamed for it later.
    let (later, _) = node.run(node.script(&pool, "exit 7")).await;
    assert_eq!(later.outcome, Outcome::Exited(7));
    let dirty = |why: Option<EndReason>| why == Some(EndReason::Dirty);
    node.told(ContainerState::Dormant).await;
    let ends = node.history.iter().filter(|told| dirty(told.why)).count();
    assert_eq!(ends, 2, "{:?}", node.history);
    node.close().await;
}

#[tokio::test]
async fn in_a_shared_container_only_who_was_killed_is_told_so() {
    let mut node = Node::new();
    let mut pool = pool(1);
    pool.mode = PoolMode::Single;
    pool.container.memory = Some(24 << 20);
    let (stop, holder) = (laneway_engine::process::StopSignal::new(), node.script(&pool, "exec sleep 300"));
    let pools = node.pools.clone();
    let asked = stop.clone();
    let held =
        tokio::spawn(async move { laneway_engine::container::pool::execute(&pools, holder, &asked).await });
    node.told(ContainerState::Running).await;
    let (greedy, _) = node.run(node.script(&pool, GREEDY)).await;
    let (killed, _) = node.run(node.script(&pool, "kill -9 $$")).await;
    let (failed, _) = node.run(node.script(&pool, "exit 3")).await;
    assert_eq!(
        [greedy.outcome, killed.outcome, failed.outcome],
        [Outcome::OutOfMemory(137), Outcome::Signaled(9), Outcome::Exited(3)]
    );
    stop.kill_now();
    held.await.expect("it ends");
    node.close().await;
}
