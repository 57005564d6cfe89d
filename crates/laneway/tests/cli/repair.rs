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
    assert_snapshot!(place.laneway("retry last"), @r"
    $ laneway retry last
    exit code 0
    ----- stdout
    [clock] run retried by ada: test, package
    [clock] run [id] taken over by [node]
    [clock] test started, attempt 2
    [clock] test succeeded in [took]
    [clock] package started
    [clock] package succeeded in [took]
    ✓ build [id] succeeded in [took]: 3 succeeded
    ----- stderr
    ");
    assert_eq!(place.read("ran"), "lint\ntest\ntest\npackage\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn retry_from_a_step_runs_it_and_what_is_behind_it_again() {
    let place = failed();
    place.write("fixed", "");
    assert_eq!(place.laneway("retry last --from lint").code, Some(0));
    assert_eq!(place.read("ran"), "lint\ntest\nlint\ntest\npackage\n");
    assert_snapshot!(place.laneway("retry last --from tset"), @r"
    $ laneway retry last --from tset
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has no step `tset`
    hint: did you mean `test`?
    ");
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
    assert_snapshot!(place.laneway("skip last test"), @r"
    $ laneway skip last test
    exit code 0
    ----- stdout
    [clock] run let go on by ada: package
    [clock] test skipped: skipped by ada
    [clock] run [id] taken over by [node]
    [clock] package started
    [clock] package succeeded in [took]
    ✓ build [id] succeeded in [took]: 2 succeeded, 1 skipped
    ----- stderr
    ");
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
    let mut running = place.spawn("run long.yaml");
    place.read("reached");
    // A start may share the commit of a later verb: what is shown depends on whether it is recorded.
    running.wait_for("long started");
    (place, running)
}

#[test]
fn a_killed_run_is_resumed_where_it_was() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    assert_eq!(running.wait().code, None);
    assert_snapshot!(place.laneway("show last"), @r"
    $ laneway show last
    exit code 0
    ----- stdout
    ▶ long [uuid] running
      submitted [date] by ada
      directory [dir]

    STEP  STATUS       ATTEMPT  TOOK WHY
    done  ✓ succeeded  1        [took]
    long  ▶ running    1        since [clock]
    last  · pending                             waits for long (running)

    interrupted: the process that ran it is gone; laneway resume [id] goes on with it
    ----- stderr
    ");
    assert!(place.laneway("runs").stdout.contains("interrupted"));
    place.write("fixed", "");
    assert_snapshot!(place.laneway("run --resume last"), @r"
    $ laneway run --resume last
    exit code 0
    ----- stdout
    [clock] long lost: [node] died
    [clock] run [id] taken over by [node]
    [clock] long started, attempt 2
    [clock] long succeeded in [took]
    [clock] last started
    [clock] last succeeded in [took]
    ✓ long [id] succeeded in [took]: 3 succeeded
    ----- stderr
    ");
    assert_eq!(place.read("ran"), "done\nlong\nlong\nlast\n", "what was committed did not run again");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn a_run_whose_owner_lives_cannot_be_resumed_or_retried() {
    let (place, running) = long();
    assert_snapshot!(place.laneway("resume last"), @r"
    $ laneway resume last
    exit code 1
    ----- stdout
    ----- stderr
    error: run [id] is not paused: it is running on [node]
    hint: `laneway explain [id]` says what its steps wait for
    ");
    assert_snapshot!(place.laneway("run --resume last"), @r"
    $ laneway run --resume last
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] belongs to [node], which is alive
    hint: `laneway cancel [id]` stops it
    ");
    assert_snapshot!(place.laneway("retry last"), @r"
    $ laneway retry last
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has not ended: it is running
    hint: wait for it, or end it with `laneway cancel [id]`
    ");
    running.signal(Signal::INT);
    assert_eq!(running.wait().code, Some(130));
}

#[test]
fn cancel_stops_a_run_that_another_process_drives() {
    let (place, running) = long();
    assert_snapshot!(place.laneway("cancel last"), @r"
    $ laneway cancel last
    exit code 0
    ----- stdout
    run [id] canceled
    ----- stderr
    ");
    let outcome = running.wait();
    assert_eq!(outcome.code, Some(1), "canceled by somebody else: {outcome}");
    assert_eq!(place.statuses(), "done=succeeded long=canceled last=canceled");
    assert_snapshot!(place.laneway("cancel last"), @r"
    $ laneway cancel last
    exit code 0
    ----- stdout
    run [id] had ended before: it is canceled
    ----- stderr
    ");
    assert_eq!(place.json("cancel last --json")["status"], json!("canceled"));
}

#[test]
fn cancel_ends_a_run_whose_process_is_gone_at_once() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    running.wait();
    assert_snapshot!(place.laneway("cancel last"), @r"
    $ laneway cancel last
    exit code 0
    ----- stdout
    run [id] canceled
    ----- stderr
    ");
    place.write("fixed", "");
    assert_eq!(place.laneway("retry last").code, Some(0), "a retry brings it back");
}

#[test]
fn following_the_logs_of_an_interrupted_run_ends_with_advice() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    running.wait();
    assert_snapshot!(place.laneway("logs last --follow"), @r"
    $ laneway logs last --follow
    exit code 0
    ----- stdout
    ----- stderr
    warning: the process that ran it is gone; `laneway resume [id]` goes on with it
    ");
}

#[test]
fn cancel_waits_for_the_clean_up_of_a_submitted_run_and_a_second_one_ends_it() {
    let place = Place::in_place(
        "flow.yaml",
        "
cleanup_timeout: 10m
steps:
  long: {run: 'echo > reached; sleep 60'}
  clean: {needs: [long], when: always, run: 'echo > cleaning; sleep 60'}
",
    );
    place.pipe("reached");
    place.pipe("cleaning");
    let worker = place.spawn("worker --shutdown-grace 1s");
    assert_eq!(place.laneway("submit flow.yaml").code, Some(0));
    place.read("reached");
    let first = place.spawn("cancel last");
    place.read("cleaning");
    for command in ["show last", "explain last"] {
        let shown = place.laneway(command);
        assert!(shown.stdout.contains("canceling: cleaning up, until "), "{shown}");
        assert!(shown.stdout.contains("again ends it"), "{shown}");
    }
    let second = place.laneway("cancel last");
    assert_eq!(second.code, Some(0), "{second}");
    assert!(second.stderr.contains("was canceled before; its clean-up is ended"), "{second}");
    let first = first.wait();
    assert_eq!(first.code, Some(0), "{first}");
    assert!(first.stderr.contains("cleaning up, until "), "{first}");
    assert!(first.stdout.contains(" canceled"), "{first}");
    assert_eq!(place.statuses(), "long=canceled clean=canceled");
    worker.signal(Signal::TERM);
    worker.wait();
}

#[test]
fn cancel_now_leaves_the_clean_up_out() {
    let place = Place::with(
        "flow.yaml",
        "
steps:
  long: {run: 'echo > reached; sleep 60'}
  clean: {needs: [long], when: always, run: 'touch cleaned'}
",
    );
    place.pipe("reached");
    let running = place.spawn("run flow.yaml");
    place.read("reached");
    assert_eq!(place.laneway("cancel last --now").code, Some(0));
    assert_eq!(running.wait().code, Some(1));
    assert_eq!(place.statuses(), "long=canceled clean=canceled");
    assert!(!place.path("cleaned").exists());
}

#[test]
fn resume_goes_on_with_a_killed_run_in_the_foreground() {
    let (place, running) = long();
    running.signal(Signal::KILL);
    running.wait();
    assert_snapshot!(place.laneway("retry last"), @r"
    $ laneway retry last
    exit code 2
    ----- stdout
    ----- stderr
    error: run [id] has not ended: the process that ran it is gone
    hint: `laneway resume [id]` goes on with it, and `laneway cancel [id]` ends it
    ");
    // A pause is lifted along with it.
    assert_eq!(place.laneway("pause last").code, Some(0));
    place.write("fixed", "");
    let resumed = place.laneway("resume last");
    assert_eq!(resumed.code, Some(0), "{resumed}");
    for told in ["long started, attempt 2", "last succeeded", "succeeded in"] {
        assert!(resumed.stdout.contains(told), "{told}: {resumed}");
    }
    assert_eq!(place.read("ran"), "done\nlong\nlong\nlast\n");
    assert_eq!(place.laneway("replay last").code, Some(0));
}

#[test]
fn nothing_is_said_to_go_on_that_was_not_paused_or_has_ended() {
    let place = failed();
    assert_snapshot!(place.laneway("resume last"), @r"
    $ laneway resume last
    exit code 1
    ----- stdout
    ----- stderr
    error: run [id] is not paused: it has ended, failed
    hint: `laneway retry [id]` runs what did not succeed again
    ");
    assert_snapshot!(place.laneway("resume --workflow build"), @r"
    $ laneway resume --workflow build
    exit code 1
    ----- stdout
    ----- stderr
    error: workflow build is not paused
    hint: `laneway runs` lists its runs; `laneway explain RUN` says what one waits for
    ");
    assert!(place.laneway("pause --workflow build").stdout.contains("workflow build is paused"));
    assert_snapshot!(place.laneway("pause --workflow build"), @r"
    $ laneway pause --workflow build
    exit code 0
    ----- stdout
    workflow build was already paused; `laneway resume --workflow build` lets it go on
    ----- stderr
    ");
    assert_eq!(place.laneway("resume --workflow build").code, Some(0));
    assert_eq!(place.laneway("submit build.yaml").code, Some(0));
    let resumed = place.laneway("resume last");
    assert_eq!(resumed.code, Some(1), "{resumed}");
    assert!(resumed.stderr.contains("is not paused: it is queued"), "{resumed}");
}
