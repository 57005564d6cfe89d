//! How attempts end: by themselves, by timeout, by request; and that nothing of the group stays.

use std::time::{Duration, Instant};

use laneway_engine::log::Stream;
use laneway_engine::process::{Outcome, StopSignal, execute};

use crate::support::{Bench, begin, gone, is_gone, run, until};
use crate::warden::warden;

/// A timeout within which a shell has set its traps, also on a loaded machine.
const READY: Duration = Duration::from_millis(1500);

#[tokio::test]
async fn exit_codes_are_reported_as_they_are() {
    let bench = Bench::new();
    for code in [0, 1, 42, 255] {
        let ending = run(bench.script(&format!("exit {code}"))).await;
        assert_eq!(ending.outcome, Outcome::Exited(code));
        assert!(ending.duration < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn a_script_stops_at_its_first_failing_command() {
    let bench = Bench::new();
    let ending = run(bench.script("echo one; false; echo two")).await;
    assert_eq!(ending.outcome, Outcome::Exited(1));
    assert_eq!(bench.stdout(), "one\n");
}

#[tokio::test]
async fn a_signal_that_we_did_not_send_is_told_apart() {
    let bench = Bench::new();
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11)] {
        let ending = run(bench.script(&format!("kill -{name} $$"))).await;
        assert_eq!(ending.outcome, Outcome::Signaled(number));
    }
}

#[tokio::test]
async fn a_timeout_ends_the_step_and_lets_it_clean_up() {
    let bench = Bench::new();
    let mut job = bench.script("trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.01; done");
    job.timeout = Some(READY);
    let begun = Instant::now();
    let ending = run(job).await;
    assert_eq!(ending.outcome, Outcome::TimedOut);
    assert_eq!(bench.stdout(), "ready\ncleaned\n");
    assert!(begun.elapsed() < Duration::from_secs(15), "no need for the whole grace");
}

#[tokio::test]
async fn a_step_that_ignores_term_is_killed_after_the_grace() {
    let bench = Bench::new();
    let mut job = bench.script("trap '' TERM; echo $$ > leader; sleep 1000 & echo $! > child; wait; wait");
    job.timeout = Some(READY);
    job.kill_grace = Duration::from_millis(200);
    let ending = run(job).await;
    assert_eq!(ending.outcome, Outcome::TimedOut);
    assert!(ending.duration >= READY + Duration::from_millis(200));
    assert!(is_gone(bench.pid("leader").await));
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn timeout_that_the_warden_acted_on_is_told_apart_from_a_signal() {
    let bench = Bench::new();
    let mut job = bench.script("echo $$ > leader; exec sleep 1000");
    job.timeout = Some(READY);
    let (_stop, ending) = begin(job);
    let leader = bench.pid("leader").await;
    // Blocks the only thread of this runtime, as a freeze of the process does. The timer and the end of
    // the step are both news then, and the end is looked at first.
    let stat = format!("/proc/{leader}/stat");
    let begun = Instant::now();
    while std::path::Path::new(&stat).exists() {
        assert!(begun.elapsed() < Duration::from_secs(30), "the warden did not act");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    // Without this the timer is often news alone, and the test proves less. It never fails for it.
    std::thread::park_timeout(Duration::from_millis(200));
    assert_eq!(ending.await.outcome, Outcome::TimedOut);
}

#[tokio::test]
async fn a_timeout_that_is_not_reached_changes_nothing() {
    let bench = Bench::new();
    for timeout in [Duration::from_secs(30), Duration::MAX] {
        let mut job = bench.script("exit 5");
        job.timeout = Some(timeout);
        assert_eq!(run(job).await.outcome, Outcome::Exited(5));
    }
}

#[tokio::test]
async fn a_stop_ends_children_and_grandchildren() {
    let bench = Bench::new();
    let job = bench.script("(sleep 1000 & echo $! > grandchild; wait) & echo $! > child; wait");
    let (stop, ending) = begin(job);
    let pids = [bench.pid("child").await, bench.pid("grandchild").await];
    assert!(pids.iter().all(|&pid| !is_gone(pid)));
    stop.stop();
    stop.stop();
    assert_eq!(ending.await.outcome, Outcome::Stopped);
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn the_grace_is_also_for_the_children_of_a_shell_that_died_at_once() {
    let bench = Bench::new();
    let child =
        "trap \"sleep 0.3; echo child cleaned; exit\" TERM; echo $$ > child; while :; do sleep 0.01; done";
    let job = bench.script(&format!("sh -c '{child}'; echo never"));
    let (stop, ending) = begin(job);
    bench.pid("child").await;
    stop.stop();
    let ending = ending.await;
    assert_eq!(ending.outcome, Outcome::Stopped);
    assert_eq!(bench.stdout(), "child cleaned\n");
}

#[tokio::test]
async fn a_child_that_outlives_its_shell_and_the_grace_is_killed() {
    let bench = Bench::new();
    let child = "trap \"\" TERM; echo $$ > child; while :; do sleep 0.01; done";
    let mut job = bench.script(&format!("sh -c '{child}'; echo never"));
    job.kill_grace = Duration::from_millis(200);
    let (stop, ending) = begin(job);
    let child = bench.pid("child").await;
    stop.stop();
    assert_eq!(ending.await.outcome, Outcome::Stopped);
    gone(child).await;
}

#[tokio::test]
async fn kill_now_skips_the_grace_at_once_and_during_it() {
    for is_polite_first in [false, true] {
        let bench = Bench::new();
        let trap = "trap 'echo asked; : > asked' TERM; echo $$ > leader; while :; do sleep 0.01; done";
        let (stop, ending) = begin(bench.script(trap));
        let leader = bench.pid("leader").await;
        if is_polite_first {
            stop.stop();
            let asked = bench.path("work").join("asked");
            until("TERM arrives", || asked.exists()).await;
        }
        let begun = Instant::now();
        stop.kill_now();
        assert_eq!(ending.await.outcome, Outcome::Stopped);
        assert!(begun.elapsed() < Duration::from_secs(15));
        assert!(is_gone(leader));
        assert_eq!(bench.stdout(), if is_polite_first { "asked\n" } else { "" });
    }
}

#[tokio::test]
async fn a_step_that_stopped_itself_dies_of_term() {
    let bench = Bench::new();
    let (stop, ending) = begin(bench.script("echo $$ > leader; kill -STOP $$; echo never"));
    let leader = bench.pid("leader").await;
    let stat = format!("/proc/{leader}/stat");
    until("it is stopped", || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "))).await;
    let begun = Instant::now();
    stop.stop();
    assert_eq!(ending.await.outcome, Outcome::Stopped);
    assert!(begun.elapsed() < Duration::from_secs(15), "by TERM, not after the grace");
    assert_eq!(bench.stdout(), "");
}

#[tokio::test]
async fn what_is_left_after_a_normal_exit_is_killed() {
    let bench = Bench::new();
    let ending = run(bench.script("trap '' TERM; sleep 1000 & echo $! > child")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    gone(bench.pid("child").await).await;
}

#[tokio::test]
async fn a_stranger_that_holds_the_pipe_does_not_hang_the_attempt() {
    let bench = Bench::new();
    let job = bench.script("echo $$ > leader; until [ -e go ]; do sleep 0.01; done; echo done");
    let (_stop, ending) = begin(job);
    let leader = bench.pid("leader").await;
    // The shell's own stdout is that file for a moment.
    let stdout = format!("/proc/{leader}/fd/1");
    let is_pipe =
        || std::fs::read_link(&stdout).is_ok_and(|target| target.to_string_lossy().starts_with("pipe:"));
    until("its stdout is the pipe again", is_pipe).await;
    // This test is no descendant of the step, and nobody's to kill.
    let pipe = std::fs::OpenOptions::new().write(true).open(&stdout);
    let _held = pipe.expect("the pipe can be opened again");
    std::fs::write(bench.path("work/go"), "").expect("write");
    assert_eq!(ending.await.outcome, Outcome::Exited(0));
    assert_eq!(bench.stdout(), "done\n");
    assert!(bench.printed(Stream::Note).contains("still holds its output"));
}

#[tokio::test]
async fn a_step_that_closes_its_pipes_early_is_waited_for() {
    let bench = Bench::new();
    let ending = run(bench.script("exec >&- 2>&-; sleep 0.2; exit 9")).await;
    assert_eq!(ending.outcome, Outcome::Exited(9));
    assert!(ending.duration >= Duration::from_millis(200));
}

#[tokio::test]
async fn a_stop_asked_before_the_start_starts_nothing() {
    let bench = Bench::new();
    let stop = StopSignal::new();
    stop.stop();
    let ending = execute(warden(), bench.script(": > ran"), stop).await;
    assert_eq!(ending.outcome, Outcome::Stopped);
    assert!(!bench.path("work").join("ran").exists());
}

#[tokio::test]
async fn an_abandoned_attempt_leaves_no_process() {
    let bench = Bench::new();
    let job = bench.script("echo $$ > leader; sleep 1000 & echo $! > child; wait");
    let task = tokio::spawn(execute(warden(), job, StopSignal::new()));
    let pids = [bench.pid("leader").await, bench.pid("child").await];
    task.abort();
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn two_hundred_attempts_at_once_keep_their_own_endings() {
    let benches: Vec<Bench> = (0..200).map(|_| Bench::new()).collect();
    let endings: Vec<_> = benches
        .iter()
        .enumerate()
        .map(|(index, bench)| {
            let text = format!("echo out {index}; echo n={index} > $LANEWAY_OUTPUT; exit {index}");
            begin(bench.script(&text)).1
        })
        .collect();
    for (index, (bench, ending)) in benches.iter().zip(endings).enumerate() {
        let ending = ending.await;
        assert_eq!(ending.outcome, Outcome::Exited(i32::try_from(index).expect("small")));
        assert_eq!(ending.output.expect("good")["n"], index.to_string());
        assert_eq!(bench.stdout(), format!("out {index}\n"));
    }
}

#[tokio::test]
async fn a_hundred_stopped_at_once_are_gone_at_once() {
    let benches: Vec<Bench> = (0..100).map(|_| Bench::new()).collect();
    let stop = StopSignal::new();
    let tasks: Vec<_> = benches
        .iter()
        .map(|bench| {
            tokio::spawn(execute(warden(), bench.script("echo $$ > leader; sleep 1000; :"), stop.clone()))
        })
        .collect();
    for bench in &benches {
        bench.pid("leader").await;
    }
    let begun = Instant::now();
    stop.stop();
    for task in tasks {
        assert_eq!(task.await.expect("no panic").outcome, Outcome::Stopped);
    }
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn exit_codes_survive_a_parent_that_ignored_sigchld() {
    // An ignored signal is inherited, and makes the system forget how children ended.
    let mut again = std::process::Command::new("env");
    again.arg("--ignore-signal=CHLD").arg(std::env::current_exe().expect("this test"));
    again.args(["--exact", "ending::exit_codes_are_reported_as_they_are"]);
    let output = tokio::task::spawn_blocking(move || again.output()).await.expect("joins").expect("runs");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}
