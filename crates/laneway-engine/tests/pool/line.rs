//! Who gets which container.

use std::collections::BTreeSet;
use std::time::Duration;

use laneway_core::definition::PoolMode;
use laneway_core::pool::{ContainerState, Counts, EndReason};
use laneway_engine::container::pool::execute;
use laneway_engine::process::{Outcome, StopSignal};

use crate::support::{Node, PATIENCE, pool, run_id};

#[tokio::test]
async fn a_used_container_is_paused_and_woken_for_the_next_task() {
    let mut node = Node::new();
    let pool = pool(2);
    let (ending, printed) = node.run(node.script(&pool, "echo hello; echo n=7 > $LANEWAY_OUTPUT")).await;
    assert_eq!((ending.outcome, printed.as_str()), (Outcome::Exited(0), "hello\n"));
    assert_eq!(ending.output.expect("an output")["n"], "7");
    let dormant = node.told(ContainerState::Dormant).await;
    let state = node.docker.inspect(&dormant.container).await.expect("it is there").state.expect("a state");
    assert_eq!(state.paused, Some(true));
    let (ending, _) = node.run(node.script(&pool, "exit 3")).await;
    assert_eq!(ending.outcome, Outcome::Exited(3));
    node.told(ContainerState::Dormant).await;
    assert_eq!(node.story(), ["starting", "idle", "running", "dormant", "idle", "running", "dormant"]);
    assert_eq!(node.containers().await, [dormant.container]);
    let tally = node.pools.tally().read();
    assert_eq!((tally.hits, tally.misses, tally.starts), (1, 1, 1));
    node.close().await;
}

#[tokio::test]
async fn a_warmed_container_is_taken_before_anything_is_woken_or_started() {
    let mut node = Node::new();
    let pool = pool(2);
    node.run(node.script(&pool, "true")).await;
    let used = node.told(ContainerState::Dormant).await.container;
    node.pools.warm(&pool, &node.path("work"), 2);
    let warmed = node.told(ContainerState::Idle).await.container;
    assert_ne!(used, warmed);
    node.run(node.script(&pool, "true")).await;
    assert_eq!(node.told(ContainerState::Running).await.container, warmed);
    node.pools.warm(&pool, &node.path("work"), 9);
    node.told(ContainerState::Dormant).await;
    assert_eq!(node.containers().await.len(), 2, "no more than `max`");
    node.close().await;
}

#[tokio::test]
async fn a_pool_is_warmed_and_drained_by_any_of_its_names() {
    let mut node = Node::new();
    let pool = pool(3);
    // Another document calls the same containers otherwise.
    let agents = laneway_core::definition::Pool { name: "agents".to_owned(), ..pool.clone() };
    assert_eq!(node.pools.warm_named("agents", 2), 0, "nobody has asked for one yet");
    for pool in [&pool, &agents] {
        assert_eq!(node.run(node.script(pool, "true")).await.0.outcome, Outcome::Exited(0));
        node.told(ContainerState::Dormant).await;
    }
    assert_eq!(node.pools.views().len(), 1);
    assert_eq!(node.pools.warm_named("agents", 3), 1);
    let is_full = |counts: Counts| counts.idle + counts.dormant == 3;
    while !is_full(node.pools.views()[0].counts) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..2 {
        assert_eq!(node.pools.drain("warm"), 1);
        while !node.containers().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    assert_eq!(
        node.run(node.script(&agents, "true")).await.0.outcome,
        Outcome::Exited(0),
        "it is there still"
    );
    let ends = node.story().iter().filter(|word| **word == "terminated").count();
    assert_eq!(ends, 3, "the second time there was nothing to let go of");
    node.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_tasks_share_three_containers_and_none_is_lost() {
    let mut node = Node::new();
    let mut pool = pool(3);
    pool.acquire_timeout = None;
    let tasks: Vec<_> = (0..200)
        .map(|number| {
            let mut job = node.script(&pool, "true");
            job.log = node.path(&format!("log-{number}")).into();
            let pools = node.pools.clone();
            tokio::spawn(async move { execute(&pools, job, &StopSignal::new()).await.outcome })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("it runs"), Outcome::Exited(0));
    }
    let story = node.story();
    let count = |word: &str| story.iter().filter(|told| **told == word).count();
    assert_eq!((count("starting"), count("running")), (3, 200));
    node.close().await;
}

#[tokio::test]
async fn whoever_waits_longer_than_acquire_timeout_is_told_so() {
    let mut node = Node::new();
    let mut pool = pool(1);
    pool.acquire_timeout = Some(Duration::from_millis(300));
    node.pools.warm(&pool, &node.path("work"), 1);
    node.told(ContainerState::Idle).await;
    let stop = StopSignal::new();
    let holder = execute(&node.pools, node.script(&pool, "exec sleep 300"), &stop);
    let waiter = async {
        while node.pools.views()[0].counts.running == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ending = execute(&node.pools, node.script(&pool, "true"), &StopSignal::new()).await;
        stop.kill_now();
        ending
    };
    let (held, waited) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(holder, waiter) }).await.expect("ends");
    assert_eq!(held.outcome, Outcome::Stopped);
    let Outcome::StartFailed(why) = waited.outcome else { panic!("{:?}", waited.outcome) };
    assert!(why.contains("acquire_timeout"), "{why}");
    node.close().await;
}

#[tokio::test]
async fn a_stop_in_the_moment_of_the_hand_over_leaves_no_container() {
    let node = Node::new();
    let pool = pool(1);
    let stop = StopSignal::new();
    let pools = node.pools.clone();
    let mut asked = std::pin::pin!(execute(&pools, node.script(&pool, "true"), &stop));
    while node.pools.views().first().is_none_or(|view| view.counts.starting == 0) {
        tokio::select! {
            ending = &mut asked => panic!("it ended before it had a container: {ending:?}"),
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    }
    // Nobody looks at what it is given.
    while node.pools.views()[0].counts.running == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.stop();
    let ending = tokio::time::timeout(PATIENCE, asked).await.expect("it ends");
    assert_eq!(ending.outcome, Outcome::Stopped);
    assert_eq!(node.containers().await, [""; 0]);
    let (ending, _) = node.run(node.script(&pool, "true")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "its place is free");
    node.close().await;
}

#[tokio::test]
async fn a_dormant_container_is_removed_when_its_time_is_over() {
    let mut node = Node::new();
    let pool = pool(1);
    let mut job = node.script(&pool, "true");
    // Of its group.
    job.dormancy = Some(Duration::from_millis(200));
    node.run(job).await;
    let ended = node.told(ContainerState::Terminated).await;
    assert_eq!(ended.why, Some(EndReason::Expired));
    while !node.containers().await.is_empty() {}
    node.close().await;
}

#[tokio::test]
async fn a_shared_container_serves_tasks_of_several_runs_at_once() {
    let mut node = Node::new();
    let mut pool = pool(4);
    pool.mode = PoolMode::Single;
    std::fs::create_dir(node.path("other")).expect("a directory");
    std::fs::write(node.path("work/mine"), "").expect("a file");
    // Each waits for the other in its own directory, seen from here.
    let script = "ls > out; touch ready; while [ ! -e go ]; do sleep 0.02; done";
    let first = node.script(&pool, script);
    let mut second = node.script(&pool, script);
    (second.run, second.dir, second.log) = (run_id(), node.path("other"), node.path("log-2").into());
    let stop = StopSignal::new();
    let both =
        async { tokio::join!(execute(&node.pools, first, &stop), execute(&node.pools, second, &stop)) };
    let here = async {
        while !(node.path("work/ready").exists() && node.path("other/ready").exists()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(node.containers().await.len(), 1);
        for dir in ["work", "other"] {
            std::fs::write(node.path(dir).join("go"), "").expect("a file");
        }
    };
    let ((one, other), ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(both, here) }).await.expect("ends");
    assert_eq!((one.outcome, other.outcome), (Outcome::Exited(0), Outcome::Exited(0)));
    let seen = |dir: &str| std::fs::read_to_string(node.path(dir).join("out")).expect("a file");
    assert_eq!((seen("work").as_str(), seen("other").as_str()), ("mine\nout\n", "out\n"));
    node.told(ContainerState::Dormant).await;
    assert_eq!(node.story().iter().filter(|word| **word == "starting").count(), 1);
    node.close().await;
}

#[tokio::test]
async fn containers_of_one_directory_go_with_the_last_run_that_has_it() {
    let mut node = Node::that_may_not_mount();
    let pool = pool(1);
    let (first, second) = (node.run, run_id());
    let job = |node: &Node, run| {
        let mut job = node.script(&pool, "echo here > made");
        job.run = run;
        job
    };
    for run in [first, second] {
        let job = job(&node, run);
        assert_eq!(node.end_of(job).await.outcome, Outcome::Exited(0));
        assert!(node.path("work/made").exists());
    }
    node.told(ContainerState::Dormant).await;
    assert_eq!(node.pools.runs(), BTreeSet::from([first, second]));
    node.pools.leave(&BTreeSet::from([first]));
    assert_eq!(node.pools.runs(), BTreeSet::from([second]));
    assert_eq!(node.containers().await.len(), 1, "the other one has it still");
    node.pools.leave(&BTreeSet::from([second]));
    assert_eq!(node.told(ContainerState::Terminated).await.why, Some(EndReason::Drained));
    while !node.pools.views().is_empty() {
        node.pools.leave(&BTreeSet::new());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(node.containers().await, [""; 0]);
    // Whoever retries one of them finds it as it was at first.
    let job = job(&node, first);
    assert_eq!(node.end_of(job).await.outcome, Outcome::Exited(0));
    node.close().await;
}
