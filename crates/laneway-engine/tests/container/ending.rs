//! How an attempt ends, and what it leaves: values, a log, and nothing else.

use std::time::{Duration, Instant};

use laneway_core::definition::Pull;
use laneway_engine::container::Docker;
use laneway_engine::log::Stream;
use laneway_engine::process::{Outcome, Program};

use crate::registry::{Registry, remove, saved};
use crate::support::{Bench, IMAGE};

#[tokio::test]
async fn a_script_runs_in_the_runs_directory_and_hands_values_on() {
    let bench = Bench::new();
    std::fs::write(bench.path("work/input"), "from the host\n").expect("written");
    let mut job =
        bench.script("cat input; echo oops >&2; pwd > where; echo \"a=$A-$1\" > \"$LANEWAY_OUTPUT\"");
    job.env = vec![("A".to_owned(), "it's; $(true)".to_owned())];
    let Program::Script { args, .. } = &mut job.program else { panic!("a script") };
    args.push("one arg".to_owned());
    let ending = bench.run(job).await;
    assert_eq!(ending.outcome, Outcome::Exited(0), "{}", bench.printed(Stream::Note));
    assert_eq!(ending.output.expect("values")["a"], "it's; $(true)-one arg");
    assert_eq!(
        (bench.stdout().as_str(), bench.printed(Stream::Stderr).as_str()),
        ("from the host\n", "oops\n")
    );
    assert_eq!(std::fs::read_to_string(bench.path("work/where")).expect("made"), "/workspace\n");
}

#[tokio::test]
async fn exit_codes_are_those_of_the_program_in_whatever_way_it_is_given() {
    let bench = Bench::new();
    for (job, code) in [
        (bench.script("exit 3"), 3),
        (bench.script("false; exit 9"), 1),
        (bench.script("#!/bin/busybox sh\nexit 4"), 4),
        (bench.command(&["sh", "-c", "exit 5"]), 5),
        (bench.command(&["true"]), 0),
    ] {
        let program = job.program.clone();
        assert_eq!(bench.run(job).await.outcome, Outcome::Exited(code), "{program:?}");
    }
}

#[tokio::test]
async fn a_directory_below_the_runs_own_is_where_it_says() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("work/sub")).expect("made");
    for (workdir, inside) in [("sub", "/workspace/sub\n"), ("/tmp", "/tmp\n")] {
        let mut job = bench.script("pwd");
        job.workdir = Some(workdir.to_owned());
        job.log = bench.path(&format!("log-{}", workdir.len())).into();
        let log = bench.path(&format!("log-{}", workdir.len()));
        assert_eq!(bench.run(job).await.outcome, Outcome::Exited(0));
        let lines = laneway_engine::log::Tail::last_lines(&log, 9).expect("a log");
        assert_eq!(format!("{}\n", lines[0].text()), inside);
    }
}

#[tokio::test]
async fn what_cannot_be_started_says_why_and_is_no_exit() {
    let bench = Bench::new();
    let mut missing = bench.command(&["true"]);
    missing.settings.image = "laneway-test/none:1".to_owned();
    missing.settings.pull = Pull::Never;
    let mut unreachable = bench.command(&["true"]);
    // Nobody listens there, so the answer comes at once.
    unreachable.settings.image = "localhost:1/none:1".to_owned();
    for (job, why) in [
        (bench.command(&["no-such-program"]), "no-such-program"),
        (
            missing,
            "the image laneway-test/none:1 cannot be had: it is not on this node, and `pull` is `never`",
        ),
        (unreachable, "the image localhost:1/none:1 cannot be had"),
    ] {
        let Outcome::StartFailed(told) = bench.run(job).await.outcome else {
            panic!("it cannot start: {why}")
        };
        assert!(told.contains(why), "{told}");
    }
    let nowhere = Bench::at(Docker::at("unix:///nonexistent/docker.sock"));
    let begun = Instant::now();
    let Outcome::EngineLost(told) = nowhere.run(nowhere.command(&["true"])).await.outcome else {
        panic!("there is no engine");
    };
    assert!(told.starts_with("no container engine answers at unix:///nonexistent/docker.sock"), "{told}");
    assert!(told.contains("docker_host"), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(5), "nobody waits for it");
}

#[tokio::test]
async fn a_step_that_wants_too_much_memory_is_told_from_one_that_is_killed() {
    let bench = Bench::new();
    let mut greedy = bench.script("exec dd if=/dev/zero of=/dev/null bs=200M count=1");
    greedy.settings.memory = Some(16 << 20);
    assert_eq!(bench.run(greedy).await.outcome, Outcome::OutOfMemory(137));
    let killed = bench.script("kill -SEGV $$");
    assert_eq!(bench.run(killed).await.outcome, Outcome::Signaled(11));
}

#[tokio::test]
async fn a_step_that_takes_too_long_is_asked_to_end_and_then_killed() {
    let bench = Bench::new();
    let mut polite = bench.script("trap 'echo bye; exit 0' TERM; sleep 1000 & wait");
    polite.timeout = Some(Duration::from_secs(2));
    assert_eq!(bench.run(polite).await.outcome, Outcome::TimedOut);
    assert_eq!(bench.stdout(), "bye\n", "it had its grace");

    let mut stubborn = bench.script("trap '' TERM; while :; do sleep 1; done");
    stubborn.timeout = Some(Duration::from_secs(1));
    stubborn.kill_grace = Duration::from_millis(500);
    let begun = Instant::now();
    assert_eq!(bench.run(stubborn).await.outcome, Outcome::TimedOut);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_step_that_is_stopped_ends_with_everything_that_it_started() {
    let bench = Bench::new();
    let script = "setsid sleep 1000 & : > begun; wait";
    for kill in [false, true] {
        let _ = std::fs::remove_file(bench.path("work/begun"));
        let job = bench.script(script);
        let name = job.name.clone();
        let (stop, ending) = bench.begin(job);
        bench.made("begun").await;
        if kill {
            stop.kill_now()
        } else {
            stop.stop()
        }
        assert_eq!(ending.await.outcome, Outcome::Stopped);
        assert_eq!(bench.docker.find(&name).await.expect("an answer"), None);
    }
}

#[tokio::test]
async fn a_flood_is_cut_and_changes_nothing_about_the_end() {
    let bench = Bench::new();
    let job = bench.script("dd if=/dev/zero bs=1M count=40 2>/dev/null | tr '\\0' x; exit 7");
    let ending = bench.run(job).await;
    assert_eq!(ending.outcome, Outcome::Exited(7));
    assert_eq!(ending.log.bytes + ending.log.dropped, 40 << 20, "all of it was read");
    assert!(ending.log.bytes <= 1 << 20);
    assert!(bench.printed(Stream::Note).contains("cut") || !bench.printed(Stream::Note).is_empty());
}

#[tokio::test]
async fn a_container_goes_with_an_attempt_that_nobody_waits_for() {
    let bench = Bench::new();
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (docker, warden) = (bench.docker.clone(), crate::warden::warden());
    let task = tokio::spawn(async move {
        laneway_engine::container::execute(&docker, &warden, job, Default::default()).await
    });
    bench.made("begun").await;
    task.abort();
    crate::support::until("the container is gone", async || {
        bench.docker.find(&name).await.expect("an answer").is_none()
    })
    .await;
}

#[tokio::test]
async fn an_image_that_is_fetched_shows_in_the_log_of_its_step() {
    let bench = Bench::new();
    let saved_to = tempfile::tempdir().expect("a directory");
    saved(bench.docker.host(), IMAGE, saved_to.path());
    let registry = Registry::serve(saved_to.path(), "laneway/fetched").await;
    let mut job = bench.script("test -s /more");
    job.settings.image.clone_from(&registry.image);
    assert_eq!(bench.run(job).await.outcome, Outcome::Exited(0));
    let notes = bench.printed(Stream::Note);
    assert!(notes.starts_with(&format!("pulling {}: ", registry.image)), "{notes}");
    remove(bench.docker.host(), &registry.image);
}
