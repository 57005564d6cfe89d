//! What one task left is not seen by the next one; what a task is given, and what it gives.

#![expect(clippy::disallowed_methods, reason = "tests make images as a person does")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::Duration;

use laneway_core::definition::PoolMode;
use laneway_core::pool::{ContainerState, EndReason};
use laneway_engine::container::pool::execute;
use laneway_engine::process::{Outcome, StopSignal};

use crate::support::{BUSYBOX, Node, PATIENCE, pool, run_id};

const LEAVE: &str = "echo x > /tmp/left; mkdir -p /tmp/.hidden/deep; echo x > /dev/shm/left
nohup sleep 4242 >/dev/null 2>&1 &
(setsid sleep 4343 >/dev/null 2>&1 &)
echo left";

const LOOK: &str = "ls -A /tmp /dev/shm; ls -A /run/laneway/*; ls /run/laneway | wc -l
ps | grep 'sleep 4[23]4[23]' | grep -v grep || hostname";

#[tokio::test]
async fn files_and_processes_of_one_task_are_gone_for_the_next() {
    let mut node = Node::new();
    let pool = pool(1);
    let (first, _) = node.run(node.script(&pool, LEAVE)).await;
    assert_eq!(first.outcome, Outcome::Exited(0));
    assert!(first.duration < Duration::from_secs(30), "what runs in the background is not waited for");
    let dormant = node.told(ContainerState::Dormant).await;
    let id = node.docker.inspect(&dormant.container).await.expect("it is there").id.expect("an id");
    let (_, seen) = node.run(node.script(&pool, LOOK)).await;
    let host = &id[..12];
    assert_eq!(seen, format!("/dev/shm:\n\n/tmp:\n1\n{host}\n"));
    node.close().await;
}

#[tokio::test]
async fn a_container_in_which_something_stays_is_not_used_again() {
    let mut node = Node::new();
    let pool = pool(1);
    let (ending, _) = node
        .run(node.script(&pool, "if touch /changed 2>/dev/null; then exit 1; fi; echo x > /dev/left"))
        .await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "the image itself cannot be changed");
    assert_eq!(node.told(ContainerState::Terminated).await.why, Some(EndReason::Dirty));
    let (_, seen) = node.run(node.script(&pool, "if [ -e /dev/left ]; then echo left; fi; echo done")).await;
    assert_eq!(seen, "done\n");
    node.close().await;
}

#[tokio::test]
async fn a_device_that_became_something_else_is_found_although_its_name_is_the_same() {
    let mut node = Node::new();
    let pool = pool(1);
    let swapped = "mv /dev/zero /dev/x; mv /dev/null /dev/zero; mv /dev/x /dev/null";
    for left in [swapped, "rm /dev/fd; ln -s /proc/1/fd /dev/fd", "chmod 600 /dev/full"] {
        let (ending, _) = node.run(node.script(&pool, left)).await;
        assert_eq!(ending.outcome, Outcome::Exited(0), "{left}");
        assert_eq!(node.told(ContainerState::Terminated).await.why, Some(EndReason::Dirty), "{left}");
    }
    node.close().await;
}

#[tokio::test]
async fn a_container_with_a_volume_of_its_own_is_used_once() {
    let mut node = Node::new();
    let image = format!("laneway-test/volume:{}", std::process::id());
    let host = node.docker.host().to_owned();
    let docker = |script: &str| {
        let done =
            Command::new("sh").args(["-ec", script, &host, &image, BUSYBOX]).output().expect("a shell");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    docker(
        "d=\"docker --host $0\"; id=$($d create $2 true); $d commit --change 'VOLUME /data' $id $1; $d rm $id",
    );
    let mut pool = pool(1);
    pool.container.image.clone_from(&image);
    for _ in 0..2 {
        let (ending, seen) = node.run(node.script(&pool, "ls -A /data; echo mine > /data/left")).await;
        assert_eq!((ending.outcome, seen.as_str()), (Outcome::Exited(0), ""));
        assert_eq!(node.told(ContainerState::Terminated).await.why, Some(EndReason::Dirty));
    }
    node.close().await;
    docker("docker --host $0 rmi --force $1");
}

/// Those who share a container share its user as well; what the node does on its host is not theirs to steer.
#[tokio::test]
async fn links_that_a_guest_plants_lead_the_node_nowhere() {
    let mut node = Node::new();
    let mut pool = pool(1);
    pool.mode = PoolMode::Single;
    let precious = node.path("precious");
    std::fs::create_dir(&precious).expect("a directory");
    std::fs::set_permissions(&precious, Permissions::from_mode(0o700)).expect("closed");
    std::fs::write(precious.join("out"), "secret=1").expect("a file");
    let plant = format!(
        "for n in 1 2 3 4 5 6 7 8 9; do ln -s {} /run/laneway/$n; done
if touch /workspace/left 2>/dev/null || mkdir /workspace/9 2>/dev/null; then exit 1; fi
own=$(dirname $LANEWAY_OUTPUT); mv $own /run/laneway/moved; ln -s {} $own
: > ready; while [ ! -e go ]; do sleep 0.02; done",
        precious.display(),
        precious.display()
    );
    std::fs::create_dir(node.path("other")).expect("a directory");
    let guest = node.script(&pool, &plant);
    let mut other = node.script(&pool, "#!/bin/sh\necho n=7 > $LANEWAY_OUTPUT");
    (other.run, other.dir, other.log) = (run_id(), node.path("other"), node.path("log-2").into());
    let (stop, pools) = (StopSignal::new(), node.pools.clone());
    let here = async {
        while !node.path("work/ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let ending = execute(&pools, other, &StopSignal::new()).await;
        std::fs::write(node.path("work/go"), "").expect("a file");
        ending
    };
    let both = async { tokio::join!(execute(&pools, guest, &stop), here) };
    let (planted, other) = tokio::time::timeout(PATIENCE, both).await.expect("they end");
    assert_eq!((planted.outcome, other.outcome), (Outcome::Exited(0), Outcome::Exited(0)));
    assert_eq!(other.output.expect("an output")["n"], "7");
    assert!(planted.output.is_err(), "what lies elsewhere is no output: {:?}", planted.output);
    let mode = std::fs::metadata(&precious).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(std::fs::read_to_string(precious.join("out")).expect("it is there"), "secret=1");
    assert_eq!(node.told(ContainerState::Terminated).await.why, Some(EndReason::Dirty));
    node.close().await;
}

#[tokio::test]
async fn a_run_sees_its_own_directory_and_no_other() {
    let mut node = Node::new();
    let pool = pool(1);
    std::fs::write(node.path("work/secret"), "of the first").expect("a file");
    let (_, seen) = node.run(node.script(&pool, "cat /workspace/secret; echo made > made")).await;
    assert_eq!(seen, "of the first");
    assert_eq!(std::fs::read_to_string(node.path("work/made")).expect("a file"), "made\n");
    node.told(ContainerState::Dormant).await;
    std::fs::create_dir(node.path("other")).expect("a directory");
    let mut job = node.script(&pool, "ls -A /workspace; pwd");
    (job.run, job.dir) = (run_id(), node.path("other"));
    let (_, seen) = node.run(job).await;
    assert_eq!(seen, "/workspace\n");
    node.told(ContainerState::Dormant).await;
    assert_eq!(
        node.story().iter().filter(|word| **word == "starting").count(),
        1,
        "it was the same container"
    );
    node.close().await;
    // Nothing of either directory went with the container: `close` has looked.
}

#[tokio::test]
async fn a_timeout_ends_everything_that_the_task_started() {
    let mut node = Node::new();
    let pool = pool(1);
    node.pools.warm(&pool, &node.path("work"), 1);
    node.told(ContainerState::Idle).await;
    let mut job = node.script(&pool, "trap 'echo asked' TERM; sleep 4444 & sleep 4445 & wait; wait");
    (job.timeout, job.kill_grace) = (Some(Duration::from_millis(400)), Duration::from_millis(400));
    let (ending, printed) = node.run(job).await;
    assert_eq!(ending.outcome, Outcome::TimedOut);
    assert!(printed.starts_with("asked"), "{printed}");
    node.told(ContainerState::Dormant).await;
    let (_, seen) = node.run(node.script(&pool, "ps | grep 'sleep 444' | grep -v grep || echo none")).await;
    assert_eq!(seen, "none\n");
    node.close().await;
}

/// With an engine on this host nothing of ours has to be started in there for that.
#[tokio::test]
async fn a_task_is_asked_to_end_by_nobody_inside_of_its_container() {
    let node = Node::new();
    let stop = StopSignal::new();
    let script = "trap 'ps -o args > seen; exit 0' TERM; : > ready; sleep 4444 & wait; wait";
    let asked = execute(&node.pools, node.script(&pool(1), script), &stop);
    let ask = async {
        while !node.path("work/ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.stop();
    };
    let both = async { tokio::join!(asked, ask) };
    let (ending, ()) = tokio::time::timeout(PATIENCE, both).await.expect("it ends");
    assert_eq!(ending.outcome, Outcome::Stopped);
    let seen = std::fs::read_to_string(node.path("work/seen")).expect("it was asked");
    assert!(!seen.contains("/proc/[0-9]"), "{seen}");
    node.close().await;
}

#[tokio::test]
async fn an_abort_leaves_nothing_of_its_run_and_another_run_keeps_its_own() {
    let mut node = Node::new();
    let pool = pool(3);
    let mut other = node.script(&pool, "true");
    other.run = run_id();
    let at_once = StopSignal::new();
    // That of the other run rests first, so that it is not the one that is woken.
    let (one, two) = (node.script(&pool, "while [ ! -e go ]; do sleep 0.02; done"), other);
    let pools = node.pools.clone();
    let both = async { tokio::join!(execute(&pools, one, &at_once), execute(&pools, two, &at_once)) };
    let here = async {
        let rested = node.told(ContainerState::Dormant).await;
        std::fs::write(node.path("work/go"), "").expect("a file");
        [rested, node.told(ContainerState::Dormant).await]
    };
    let (_, resting) = tokio::join!(both, here);
    assert_eq!(node.containers().await.len(), 2, "{resting:?}");
    let stop = StopSignal::new();
    let job = node.script(&pool, "touch ready; exec sleep 300");
    let aborted = execute(&node.pools, job, &stop);
    let abort = async {
        while !node.path("work/ready").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.kill_now();
        stop.stop();
    };
    let (ending, ()) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(aborted, abort) }).await.expect("ends");
    assert_eq!(ending.outcome, Outcome::Stopped);
    while node.pools.views()[0].containers.len() > 1 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(node.containers().await.len(), 1, "that of the other run");
    node.close().await;
}

#[tokio::test]
async fn a_polite_stop_has_removed_everything_of_the_run_when_it_comes_back() {
    let node = Node::new();
    let pool = pool(2);
    let stop = StopSignal::new();
    let job = |number: u8| {
        let mut job = node.script(&pool, &format!("touch ready-{number}; exec sleep 300"));
        job.log = node.path(&format!("log-{number}")).into();
        execute(&node.pools, job, &stop)
    };
    let abort = async {
        while !(node.path("work/ready-1").exists() && node.path("work/ready-2").exists()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.stop();
    };
    let all = async { tokio::join!(job(1), job(2), abort) };
    let (one, other, ()) = tokio::time::timeout(PATIENCE, all).await.expect("ends");
    assert_eq!((one.outcome, other.outcome), (Outcome::Stopped, Outcome::Stopped));
    assert_eq!(node.containers().await, [""; 0]);
    node.close().await;
}
