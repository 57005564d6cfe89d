//! Bringing a run on: retry, skip, resume after a crash, cancel.

use insta::assert_snapshot;
use rustix::process::Signal;
use serde_json::json;

use crate::place::Place;

/// Fails until somebody makes `fixed`; writes a line for each step that ran.
const BUILD: &str = "
steps:
  lint: {run: echo lint >> ran}
  test: {needs: [lint], run: 'echo test >> ran; test -e fixed'}
  package: {needs: [test], run: echo package >> ran}
";

fn failed() -> Place {
    let place = Place::with("build.yaml", BUILD);
    assert_eq!(place.laneway("run build.yaml").code, Some(1));
    place
}

#[test]
fn retry_runs_what_failed_and_what_is_behind_it() {
    let place = failed();
    place.write("fixed", "");
    assert_snapshot!(place.laneway("retry last"), @"");
    assert_eq!(place.read("ran"), "lint\ntest\ntest\npackage\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn retry_from_a_step_runs_it_and_what_is_behind_it_again() {
    let place = failed();
    place.write("fixed", "");
    assert_eq!(place.laneway("retry last --from lint").code, Some(0));
    assert_eq!(place.read("ran"), "lint\ntest\nlint\ntest\npackage\n");
    assert_snapshot!(place.laneway("retry last --from tset"), @"");
}

#[test]
fn a_retry_that_fails_again_exits_with_one() {
    let place = failed();
    assert_eq!(place.laneway("retry last").code, Some(1));
    assert_eq!(place.statuses(), "lint=succeeded test=failed package=skipped");
}

#[test]
fn skip_lets_the_run_go_on_and_stays_marked() {
    let place = failed();
    assert_snapshot!(place.laneway("skip last test"), @"");
    assert_eq!(place.read("ran"), "lint\ntest\npackage\n");
    assert_eq!(place.statuses(), "lint=succeeded test=skipped package=succeeded");
    assert_eq!(place.json("show last --json")["tasks"][1]["reason"], json!("skipped_by_person"));
    assert_eq!(place.laneway("replay last").code, Some(0));
}

/// The first step says that it runs, and waits.
const LONG: &str = "
steps:
  done: {run: echo done >> ran}
  long: {needs: [done], run: 'echo long >> ran; test -e fixed || { echo > reached; sleep 60; }'}
  last: {needs: [long], run: echo last >> ran}
";

fn long() -> (Place, crate::place::Running) {
    let place = Place::with("long.yaml", LONG);
    place.pipe("reached");
    let running = place.spawn("run long.yaml");
    place.read("reached");
    (place, running)
}

#[test]
fn a_killed_run_is_resumed_where_it_was() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    assert_snapshot!(place.laneway("show last"), @"");
    assert!(place.laneway("runs").stdout.contains("interrupted"));
    place.write("fixed", "");
    assert_snapshot!(place.laneway("run --resume last"), @"");
    assert_eq!(place.read("ran"), "done\nlong\nlong\nlast\n", "what was committed did not run again");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_run_whose_owner_lives_cannot_be_resumed_or_retried() {
    let (place, running) = long();
    assert_snapshot!(place.laneway("run --resume last"), @"");
    assert_snapshot!(place.laneway("retry last"), @"");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
}

#[test]
fn cancel_stops_a_run_that_another_process_drives() {
    let (place, running) = long();
    assert_snapshot!(place.laneway("cancel last"), @"");
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(1), "canceled by somebody else: {outcome}");
    assert_eq!(place.statuses(), "done=succeeded long=canceled last=canceled");
    assert_snapshot!(place.laneway("cancel last"), @"");
    assert_eq!(place.json("cancel last --json")["status"], json!("canceled"));
}

#[test]
fn cancel_ends_a_run_whose_process_is_gone_at_once() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    running.wait();
    assert_snapshot!(place.laneway("cancel last"), @"");
    place.write("fixed", "");
    assert_eq!(place.laneway("retry last").code, Some(0), "a retry brings it back");
}

#[test]
fn following_the_logs_of_an_interrupted_run_ends_with_advice() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    running.wait();
    assert_snapshot!(place.laneway("logs last --follow"), @"");
}
