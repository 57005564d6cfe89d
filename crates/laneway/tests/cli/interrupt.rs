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

#[test]
fn the_second_interrupt_kills_without_waiting_for_the_grace() {
    let place = Place::with(
        "deaf.yaml",
        "steps: {deaf: {run: 'trap \"echo > asked\" TERM; echo > reached; while :; do sleep 60 & wait; done'}}",
    );
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
    let place = Place::with(
        "deaf.yaml",
        "steps: {deaf: {run: 'trap \"echo > asked\" TERM; echo > reached; while :; do sleep 60 & wait; done'}}",
    );
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
