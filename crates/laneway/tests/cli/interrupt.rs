//! Ctrl-C and SIGTERM: the first cancels cleanly, the second kills.

use insta::assert_snapshot;
use rustix::process::Signal;

use crate::place::Place;

#[test]
fn the_first_interrupt_cancels_cleanly_and_exits_with_130() {
    for signal in [Signal::INT, Signal::TERM] {
        let place = Place::with(
            "long.yaml",
            "
steps:
  long: {run: 'trap \"echo stopped; exit 1\" TERM; echo > reached; sleep 60 & wait'}
  next: {needs: [long], run: echo never}
",
        );
        place.pipe("reached");
        let running = place.spawn("run long.yaml");
        place.read("reached");
        running.signal(signal);
        let outcome = running.wait();
        assert_eq!(outcome.code, Some(130), "{outcome}");
        assert!(outcome.stderr.contains("canceling… press Ctrl-C again to kill"), "{outcome}");
        assert_eq!(place.statuses(), "long=canceled next=canceled");
        assert_eq!(place.laneway("logs last long").stdout, "stopped\n", "it had its grace");
        assert_eq!(place.laneway("replay last").code, Some(0));
    }
}

#[test]
fn a_canceled_run_says_so_in_its_summary() {
    let place = Place::with("long.yaml", "steps: {long: {run: 'echo > reached; sleep 60'}}");
    place.pipe("reached");
    let running = place.spawn("run long.yaml");
    place.read("reached");
    running.signal(Signal::INT);
    assert_snapshot!(running.wait(), @r"
    $ laneway run long.yaml
    exit code 130
    ----- stdout
    [clock] run [id] of long submitted
    [clock] long started
    [clock] run canceled by ada: stopping what runs
    [clock] long canceled in [took]: the run was canceled
    ■ long [id] canceled in [took]: 1 canceled (canceled by ada)
    ----- stderr
    canceling… press Ctrl-C again to kill
    ");
}

/// Hears the signal that asks it to end and goes on. `sh -e` would end with the `wait` that the signal interrupts.
const DEAF: &str = "steps: {deaf: {run: 'trap \"echo > asked\" TERM; echo > reached; while :; do sleep 60 & wait || :; done'}}";

#[test]
fn the_second_interrupt_kills_without_waiting_for_the_grace() {
    let place = Place::with("deaf.yaml", DEAF);
    place.pipe("reached");
    place.pipe("asked");
    let running = place.spawn("run deaf.yaml --kill-grace 10m");
    place.read("reached");
    running.signal(Signal::INT);
    // The step was asked to end, and does not: only the second signal can end it before ten minutes.
    place.read("asked");
    running.signal(Signal::INT);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    assert!(outcome.stderr.contains("killing what still runs"), "{outcome}");
    assert_eq!(place.statuses(), "deaf=canceled");
}

#[test]
fn a_canceled_run_whose_process_was_killed_is_ended_by_its_resumption() {
    let place = Place::with("deaf.yaml", DEAF);
    place.pipe("reached");
    place.pipe("asked");
    let running = place.spawn("run deaf.yaml --kill-grace 10m");
    place.read("reached");
    running.signal(Signal::INT);
    place.read("asked");
    running.signal(Signal::KILL);
    running.wait();
    assert_eq!(place.statuses(), "deaf=running");
    let outcome = place.laneway("run --resume last");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("canceled by ada"), "{outcome}");
    assert_eq!(place.statuses(), "deaf=canceled");
    let outcome = place.laneway("run --resume last");
    assert_eq!(outcome.code, Some(2), "{outcome}");
    assert!(outcome.stderr.contains("has ended: it is canceled"), "{outcome}");
}

/// What Ctrl-C stops, what cleans up after it, and what would follow.
const CLEANS: &str = "
steps:
  long: {run: 'echo > reached; sleep 60'}
  next: {needs: [long], run: echo never}
  clean: {needs: [long, next], when: always, run: 'echo cleaning; echo > cleaning; test ! -e slow || sleep 60'}
  done: {needs: [clean], when: all_done, run: echo never}
  after: {needs: [clean], when: always, run: echo after}
hooks: {finished: [{run: 'echo $LANEWAY_ENDED_STATUS > told'}]}
";

#[test]
fn a_canceled_run_cleans_up_before_it_ends() {
    let place = Place::with("flow.yaml", CLEANS);
    place.pipe("reached");
    place.pipe("cleaning");
    let running = place.spawn("run flow.yaml");
    place.read("reached");
    running.signal(Signal::INT);
    place.read("cleaning");
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    assert!(outcome.stdout.contains("stopping what runs; clean-up has until "), "{outcome}");
    assert_eq!(
        place.statuses_of("flow"),
        "long=canceled next=canceled clean=succeeded done=canceled after=succeeded"
    );
    assert_eq!(place.read("told"), "canceled\n", "hooks have the rest of the time");
}

#[test]
fn the_second_interrupt_ends_the_clean_up() {
    let place = Place::with("flow.yaml", CLEANS);
    place.write("slow", "");
    place.pipe("reached");
    place.pipe("cleaning");
    let running = place.spawn("run flow.yaml");
    place.read("reached");
    running.signal(Signal::INT);
    place.read("cleaning");
    running.signal(Signal::INT);
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(130), "{outcome}");
    assert!(outcome.stdout.contains("clean-up ended by ada: stopping it"), "{outcome}");
    assert_eq!(place.statuses(), "long=canceled next=canceled clean=canceled done=canceled after=canceled");
    assert!(!place.path("told").exists(), "and so the hooks");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_run_that_times_out_cleans_up_and_no_longer_than_it_may() {
    let document = CLEANS.replace("echo > reached; ", "").replace("echo > cleaning; ", "");
    let place = Place::with("flow.yaml", &format!("timeout: 200ms{document}"));
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(
        place.statuses_of("flow"),
        "long=canceled next=canceled clean=succeeded done=canceled after=succeeded"
    );
    assert_eq!(place.read("told"), "failed\n");
    place.write("slow", "");
    place.write("flow.yaml", &format!("timeout: 200ms\ncleanup_timeout: 300ms{document}"));
    let outcome = place.laneway("run flow.yaml");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert!(outcome.stdout.contains("clean-up took too long: stopping it"), "{outcome}");
    assert_eq!(place.statuses(), "long=canceled next=canceled clean=canceled done=canceled after=canceled");
}

#[test]
fn a_clean_up_whose_process_was_killed_goes_on_with_its_resumption() {
    let place = Place::with("flow.yaml", &CLEANS.replace("test ! -e slow ||", "test -e quick ||"));
    place.pipe("reached");
    place.pipe("cleaning");
    let running = place.spawn("run flow.yaml");
    place.read("reached");
    running.signal(Signal::INT);
    place.read("cleaning");
    running.signal(Signal::KILL);
    running.wait();
    let shown = place.laneway("show last");
    assert!(shown.stdout.contains("canceling: cleaning up, until "), "{shown}");
    place.write("quick", "");
    std::fs::remove_file(place.path("cleaning")).expect("a pipe that none reads any more");
    let outcome = place.laneway("run --resume last");
    assert_eq!(outcome.code, Some(1), "{outcome}");
    assert_eq!(
        place.statuses_of("flow"),
        "long=canceled next=canceled clean=succeeded done=canceled after=succeeded"
    );
}
