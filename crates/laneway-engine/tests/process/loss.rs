//! When the warden itself is lost: the node tells, kills what it can find, and goes on with a new one.

use std::os::unix::fs::MetadataExt as _;

use laneway_engine::process::{Outcome, StopSignal, execute};
use laneway_engine::warden::Warden;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Bench, gone, is_from_outside, until};
use crate::warden::{command, new_warden};

/// The parent of a step's leader is its warden.
fn warden_of(leader: u32) -> Pid {
    let status = std::fs::read_to_string(format!("/proc/{leader}/status")).expect("it runs");
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).expect("a parent");
    Pid::from_raw(parent.trim().parse().expect("a number")).expect("a pid")
}

#[tokio::test]
async fn a_warden_that_is_killed_is_told_and_leaves_nothing_behind() {
    for use_cgroups in [true, false] {
        let warden = new_warden(use_cgroups);
        for life in 0..4 {
            let bench = Bench::new();
            let script = "setsid sh -c 'trap \"\" TERM; sleep 1000 & echo $! > daemon'; echo $$ > leader; wait; sleep 1000";
            let task = tokio::spawn(execute(warden.clone(), bench.script(script), StopSignal::new()));
            let (leader, daemon) = (bench.pid("leader").await, bench.pid("daemon").await);
            kill_process(warden_of(leader), Signal::KILL).expect("it is ours");
            match task.await.expect("no panic").outcome {
                Outcome::StartFailed(why) => assert!(why.contains("the warden died"), "{why}"),
                other => panic!("life {life}: {other:?}"),
            }
            gone(leader).await;
            gone(daemon).await;
        }
        // A node does not start wardens for ever.
        let bench = Bench::new();
        match execute(warden, bench.script("exit 0"), StopSignal::new()).await.outcome {
            Outcome::StartFailed(why) => assert!(why.contains("the warden died 4 times"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_warden_outlives_the_signals_of_whoever_stops_a_service() {
    let (warden, bench) = (new_warden(true), Bench::new());
    let script = "echo $$ > leader; until [ -e go ]; do sleep 0.01; done; exit 4";
    let task = tokio::spawn(execute(warden, bench.script(script), StopSignal::new()));
    let pid = warden_of(bench.pid("leader").await);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        kill_process(pid, signal).expect("it is ours");
    }
    std::fs::write(bench.path("work/go"), "").expect("write");
    assert_eq!(task.await.expect("no panic").outcome, Outcome::Exited(4));
}

#[tokio::test]
async fn a_warden_holds_its_lock_and_nothing_else_of_the_node() {
    let bench = Bench::new();
    let lock = bench.path("lock");
    let mut options = command(true);
    options.lock = Some(lock.clone());
    let warden = Warden::start(options.clone()).expect("it starts");
    let script = "echo $$ > leader; until [ -e go ]; do sleep 0.01; done";
    let task = tokio::spawn(execute(warden.clone(), bench.script(script), StopSignal::new()));
    let pid = warden_of(bench.pid("leader").await).as_raw_nonzero();
    let inode = std::fs::metadata(&lock).expect("made").ino();
    let mut held = 0;
    for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).expect("it lives").flatten() {
        if is_from_outside(&fd.file_name().to_string_lossy()) {
            continue;
        }
        // What was closed since the directory was read is no matter.
        let Ok(target) = std::fs::read_link(fd.path()) else { continue };
        let target = target.to_string_lossy().into_owned();
        let is_lock = std::fs::metadata(fd.path()).is_ok_and(|file| file.ino() == inode);
        held += usize::from(is_lock);
        // In `/proc` it reads who its children are, and what became of them.
        let is_its_own = ["/proc/", "socket:", "anon_inode:", "/dev/null", "/sys/fs/cgroup", "pipe:"]
            .iter()
            .any(|own| target.starts_with(own));
        assert!(is_lock || is_its_own, "{target}");
    }
    assert_eq!(held, 1);
    let file = std::fs::OpenOptions::new().write(true).open(&lock).expect("opens");
    assert!(file.try_lock().is_err());
    assert!(Warden::start(options).is_err_and(|error| error.to_string().contains("lock")));
    drop((warden, task.abort()));
    until("the lock is free", || file.try_lock().is_ok()).await;
}
