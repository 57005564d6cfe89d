//! What steps leave behind, and that it is gone: with cgroups and without.

use std::time::{Duration, Instant};

use laneway_engine::process::{Job, Outcome, StopSignal, execute};
use laneway_engine::warden::Warden;

use crate::support::{Bench, gone, is_from_outside, is_gone, until};
use crate::warden::new_warden;

/// Within a second of the grace's end, on a machine that others use too.
const SOON: Duration = Duration::from_secs(1);

/// How a step comes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Exit,
    Timeout,
    Stop,
    Kill,
    /// Nobody waits for the attempt any more.
    Abandoned,
    /// The node lets go of its warden.
    Closed,
}

const ENDS: [End; 6] = [End::Exit, End::Timeout, End::Stop, End::Kill, End::Abandoned, End::Closed];

/// Brings a step to its end once its file `ready` is there. The script is to wait for ever unless it is told to exit.
async fn bring_to(end: End, bench: &Bench, script: &str, use_cgroups: bool) {
    let rest = if end == End::Exit { "exit 0" } else { "while :; do sleep 1; done" };
    let mut job = bench.script(&format!("{script}\nuntil [ -e ready ]; do sleep 0.01; done\n{rest}"));
    job.kill_grace = Duration::from_millis(300);
    if end == End::Timeout {
        job.timeout = Some(Duration::from_secs(2));
    }
    let (warden, stop) = (new_warden(use_cgroups), StopSignal::new());
    let task = tokio::spawn(execute(warden.clone(), job, stop.clone()));
    let ready = bench.path("work/ready");
    until("the step is ready", || ready.exists()).await;
    let expected = match end {
        End::Exit => Outcome::Exited(0),
        End::Timeout => Outcome::TimedOut,
        End::Stop => {
            stop.stop();
            Outcome::Stopped
        }
        End::Kill => {
            stop.kill_now();
            Outcome::Stopped
        }
        End::Abandoned => return task.abort(),
        End::Closed => {
            task.abort();
            return drop(warden);
        }
    };
    assert_eq!(task.await.expect("no panic").outcome, expected);
}

async fn leaves_nothing(script: &str, pids: &[&str]) {
    for use_cgroups in [true, false] {
        for end in ENDS {
            let bench = Bench::new();
            bring_to(end, &bench, script, use_cgroups).await;
            let begun = Instant::now();
            for name in pids {
                let pid = bench.pid(name).await;
                match end {
                    // The attempt has ended, so everything is gone already.
                    End::Exit | End::Timeout | End::Stop | End::Kill => {
                        assert!(is_gone(pid), "{name} after {end:?}, cgroups {use_cgroups}");
                    }
                    End::Abandoned | End::Closed => gone(pid).await,
                }
            }
            assert!(begun.elapsed() < SOON, "{end:?}, cgroups {use_cgroups}");
        }
    }
}

#[tokio::test]
async fn a_daemon_that_left_by_setsid_and_a_second_fork_is_gone() {
    let daemon = "setsid sh -c 'sleep 1000 & echo $! > daemon; exit' ; : > ready";
    leaves_nothing(daemon, &["daemon"]).await;
}

#[tokio::test]
async fn a_daemon_that_ignores_term_is_gone() {
    let daemon =
        "setsid sh -c 'trap \"\" TERM HUP; (echo $$ > outer; exec sleep 1000) & echo $! > daemon; wait' &
until [ -s daemon ]; do sleep 0.01; done; : > ready";
    leaves_nothing(daemon, &["daemon"]).await;
}

#[tokio::test]
async fn a_daemon_with_another_name_and_an_empty_environment_is_gone() {
    // Without the marker, in a session of its own, an orphan: only its descent is left.
    let daemon = "setsid env -i /bin/sh -c 'echo sshd > /proc/$$/comm; cp /bin/sleep ./sshd; ./sshd 1000 & echo $! > daemon';
until [ -s daemon ]; do sleep 0.01; done; : > ready";
    leaves_nothing(daemon, &["daemon"]).await;
}

#[tokio::test]
async fn a_daemon_that_stopped_itself_is_gone() {
    let daemon = "setsid sh -c '(sh -c \"kill -STOP \\$PPID\"; sleep 1000) & echo $! > daemon' ;
until grep -q ') T ' /proc/$(cat daemon)/stat; do sleep 0.01; done; : > ready";
    leaves_nothing(daemon, &["daemon"]).await;
}

#[tokio::test]
async fn two_hundred_daemons_are_gone() {
    for use_cgroups in [true, false] {
        for end in [End::Exit, End::Stop] {
            let bench = Bench::new();
            let flood = "i=0; while [ $i -lt 200 ]; do setsid sleep 1000 & echo $! >> pids; i=$((i + 1)); done; : > ready";
            bring_to(end, &bench, flood, use_cgroups).await;
            let pids = std::fs::read_to_string(bench.path("work/pids")).expect("written");
            let pids: Vec<u32> = pids.lines().map(|pid| pid.parse().expect("a pid")).collect();
            assert_eq!(pids.len(), 200);
            for pid in pids {
                // `setsid` forks if it leads its group, and is itself the sleeper otherwise.
                assert!(is_gone(pid), "{pid} after {end:?}, cgroups {use_cgroups}");
            }
        }
    }
}

/// A step of this warden that runs until it is told to go.
async fn begin_daemon(
    warden: &Warden,
    bench: &Bench,
) -> tokio::task::JoinHandle<laneway_engine::process::Ending> {
    let job: Job = bench.script(
        "setsid sh -c 'sleep 1000 & echo $! > daemon'; until [ -e go ]; do sleep 0.01; done; kill -0 $(cat daemon)",
    );
    let task = tokio::spawn(execute(warden.clone(), job, StopSignal::new()));
    bench.pid("daemon").await;
    task
}

#[tokio::test]
async fn the_end_of_one_step_leaves_the_daemons_of_others_alone() {
    for use_cgroups in [true, false] {
        let (ours, theirs) = (new_warden(use_cgroups), new_warden(use_cgroups));
        let (one, two, other) = (Bench::new(), Bench::new(), Bench::new());
        let first = begin_daemon(&ours, &one).await;
        let second = begin_daemon(&ours, &two).await;
        let third = begin_daemon(&theirs, &other).await;
        for (bench, task) in [(&one, first), (&two, second)] {
            std::fs::write(bench.path("work/go"), "").expect("write");
            // The daemon was alive until the step's own last word.
            assert_eq!(task.await.expect("no panic").outcome, Outcome::Exited(0));
            assert!(is_gone(bench.pid("daemon").await));
        }
        drop(ours);
        std::fs::write(other.path("work/go"), "").expect("write");
        assert_eq!(third.await.expect("no panic").outcome, Outcome::Exited(0), "cgroups {use_cgroups}");
    }
}

#[tokio::test]
async fn a_step_inherits_nothing_but_its_three_streams() {
    let own = std::fs::read_to_string("/proc/thread-self/status").expect("procfs");
    let mask = |status: &str, name: &str| {
        let hex = status.lines().find_map(|line| line.strip_prefix(name)).expect("a mask");
        // The C library has signals of its own above these.
        u64::from_str_radix(hex.trim(), 16).expect("hexadecimal") & 0x7fff_ffff
    };
    for use_cgroups in [true, false] {
        let bench = Bench::new();
        let job = bench.command(&["sh", "-c", "ls -l /proc/$$/fd; echo; exec grep Sig /proc/self/status"]);
        let ending = execute(new_warden(use_cgroups), job, StopSignal::new()).await;
        assert_eq!(ending.outcome, Outcome::Exited(0));
        let (fds, signals) =
            bench.stdout().split_once("\n\n").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two parts");
        let mut targets = Vec::new();
        for line in fds.lines() {
            let Some((number, target)) = line.rsplit_once(" -> ") else { continue };
            let number = number.rsplit(' ').next().expect("a number");
            if !is_from_outside(number) {
                targets.push(target);
            }
        }
        let [null, out, err] = targets[..] else { panic!("{fds}") };
        assert!(null == "/dev/null" && out.starts_with("pipe:") && err.starts_with("pipe:"), "{fds}");
        // What this test itself was started with is passed on; nothing is added, and a broken pipe kills again.
        for name in ["SigBlk:", "SigIgn:"] {
            let added = mask(&signals, name) & !mask(&own, name);
            assert_eq!(added, 0, "{name} {signals}");
        }
        let broken_pipe = 1 << (rustix::process::Signal::PIPE.as_raw() - 1);
        assert_eq!(mask(&signals, "SigIgn:") & broken_pipe, 0);
    }
}
