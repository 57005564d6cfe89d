//! An image that is fetched for a pool: once for all who wait for it, and told as it goes.

use laneway_core::definition::Pull;
use laneway_core::pool::ContainerState;
use laneway_engine::process::{Outcome, StopSignal};

use crate::registry::{Registry, remove, saved};
use crate::support::{BUSYBOX, Node, pool};

#[tokio::test]
async fn an_image_is_pulled_once_for_a_lane_and_every_step_of_it_is_told() {
    let mut node = Node::new();
    let dir = tempfile::tempdir().expect("a directory");
    saved(node.docker.host(), BUSYBOX, dir.path());
    let registry = Registry::serve(dir.path(), "laneway/pulled").await;
    registry.hold();
    let mut pool = pool(3);
    pool.container.image.clone_from(&registry.image);
    let tasks: Vec<_> = (0..3)
        .map(|number| {
            let mut job = node.script(&pool, "test -s /more");
            job.log = node.path(&format!("log-{number}")).into();
            let pools = node.pools.clone();
            tokio::spawn(async move {
                laneway_engine::container::pool::execute(&pools, job, &StopSignal::new()).await.outcome
            })
        })
        .collect();
    // As long as nothing comes, all of them wait for one pull.
    while node.pulls.is_empty() {
        node.story();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    registry.go_on();
    for task in tasks {
        assert_eq!(task.await.expect("it runs"), Outcome::Exited(0));
    }
    node.told(ContainerState::Dormant).await;
    let pulls = &node.pulls;
    let named = pulls.iter().all(|pull| pull.pool == "warm" && pull.image == registry.image);
    assert!(named && !pulls.is_empty(), "{pulls:?}");
    assert!(!pulls[0].is_done, "it is said at once that something is pulled: {pulls:?}");
    assert_eq!(pulls.iter().filter(|pull| pull.is_done).count(), 1, "one pull for all of them: {pulls:?}");
    let last = pulls.last().expect("some");
    assert!(last.is_done && last.bytes == last.of, "{pulls:?}");

    // It is there: nothing is pulled, and nothing told of it.
    let count = pulls.len();
    node.run(node.script(&pool, "true")).await;
    node.told(ContainerState::Dormant).await;
    assert_eq!(node.pulls.len(), count);
    let docker = node.docker.clone();
    node.close().await;
    remove(docker.host(), &registry.image);
}

#[tokio::test]
async fn who_pulls_never_does_not_wait_for_the_pull_of_another_and_what_is_closed_meanwhile_stays_so() {
    let mut node = Node::new();
    let dir = tempfile::tempdir().expect("a directory");
    saved(node.docker.host(), BUSYBOX, dir.path());
    let registry = Registry::serve(dir.path(), "laneway/apart").await;
    registry.hold();
    let mut pool = pool(1);
    pool.container.image.clone_from(&registry.image);
    let (pools, job) = (node.pools.clone(), node.script(&pool, "true"));
    let pulling = tokio::spawn(async move {
        laneway_engine::container::pool::execute(&pools, job, &StopSignal::new()).await.outcome
    });
    while node.pulls.is_empty() {
        node.story();
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    pool.container.pull = Pull::Never;
    let (never, _) = node.run(node.script(&pool, "true")).await;
    assert!(matches!(never.outcome, Outcome::StartFailed(_)), "{:?}", never.outcome);
    node.pools.close().await;
    registry.go_on();
    let late = pulling.await.expect("it ends");
    assert!(matches!(late, Outcome::StartFailed(_)), "nobody would close what it starts: {late:?}");
    assert_eq!(node.pools.views().len(), 0);
    let docker = node.docker.clone();
    node.close().await;
    remove(docker.host(), &registry.image);
}

#[tokio::test]
async fn an_image_that_no_registry_has_fails_all_who_wait_for_it_in_words() {
    let node = Node::new();
    let mut pool = pool(2);
    // Nobody listens there, so the answer comes at once.
    pool.container.image = "localhost:1/none:1".to_owned();
    pool.container.pull = Pull::Missing;
    let (one, other) =
        tokio::join!(node.end_of(node.script(&pool, "true")), node.end_of(node.script(&pool, "true")));
    for ending in [one, other] {
        let Outcome::StartFailed(why) = ending.outcome else { panic!("{:?}", ending.outcome) };
        assert!(why.starts_with("the image localhost:1/none:1 cannot be had"), "{why}");
    }
    node.close().await;
}
