//! What a step says: outputs, logs, floods.

use std::path::Path;

use laneway_engine::log::{self, Follower, Stream};
use laneway_engine::process::Outcome;

use crate::support::{Bench, begin, run, until};

fn bytes_of(path: &Path, stream: Stream) -> Vec<u8> {
    log::read(path)
        .expect("opens")
        .map(|frame| frame.expect("a whole frame"))
        .filter(|frame| frame.stream == stream)
        .flat_map(|frame| frame.bytes)
        .collect()
}

#[tokio::test]
async fn outputs_are_read_and_the_file_is_removed() {
    let bench = Bench::new();
    let text = "echo \"files=3\" >> $LANEWAY_OUTPUT; echo \"name=a=b\" >> $LANEWAY_OUTPUT";
    let output = run(bench.script(text)).await.output.expect("good");
    assert_eq!((&output["files"], &output["name"]), (&"3".into(), &"a=b".into()));
    assert!(!bench.path("output").exists());

    let text = "printf '{\"files\": [1, 2]}' > $LANEWAY_OUTPUT; exit 3";
    let ending = run(bench.script(text)).await;
    assert_eq!(ending.outcome, Outcome::Exited(3));
    assert_eq!(ending.output.expect("good")["files"][1], 2);
    assert!(run(bench.script(":")).await.output.expect("none").is_empty());
}

#[tokio::test]
async fn bad_output_names_its_line_and_leaves_the_exit_code() {
    let bench = Bench::new();
    let ending = run(bench.script("printf 'a=1\\noops\\n' > $LANEWAY_OUTPUT")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    let error = ending.output.expect_err("bad");
    assert_eq!(error.line, Some(2));
    assert!(!bench.path("output").exists());
    let ending = run(bench.script("mkfifo $LANEWAY_OUTPUT")).await;
    assert!(ending.output.expect_err("bad").message.contains("not a plain file"));
}

#[tokio::test]
async fn both_streams_are_kept_apart_in_order_and_silence_makes_no_file() {
    let bench = Bench::new();
    assert_eq!(run(bench.script(":")).await.outcome, Outcome::Exited(0));
    assert!(!bench.path("log").exists());
    let ending = run(bench.script("echo out; echo err >&2; printf last")).await;
    assert_eq!((ending.log.bytes, ending.log.dropped), (12, 0));
    assert_eq!(bench.stdout(), "out\nlast\n");
    assert_eq!(bench.printed(Stream::Stderr), "err\n");
}

#[tokio::test]
async fn a_log_is_followed_while_the_step_runs() {
    let bench = Bench::new();
    let text = "echo one; until [ -e go ]; do sleep 0.01; done; echo two";
    let (_stop, ending) = begin(bench.script(text));
    let mut follower = Follower::new(bench.path("log"), 0);
    let mut seen = Vec::new();
    until("the first line is seen", || {
        while let Some(frame) = follower.next_frame().expect("reads") {
            seen.extend(frame.bytes);
        }
        seen == b"one\n"
    })
    .await;
    std::fs::write(bench.path("work/go"), "").expect("write");
    ending.await;
    let last = follower.next_frame().expect("reads").expect("a frame");
    assert_eq!(last.bytes, b"two\n");
}

#[tokio::test]
async fn a_log_that_cannot_be_written_fails_nothing() {
    let bench = Bench::new();
    let mut job = bench.script("echo lost; exit 6");
    std::fs::write(bench.path("file"), "").expect("write");
    job.log = bench.path("file").join("log").into();
    let ending = run(job).await;
    assert_eq!(ending.outcome, Outcome::Exited(6));
    assert_eq!(ending.log.dropped, 5);
    assert!(ending.log.error.is_some());
}

#[tokio::test]
async fn binary_output_is_kept_byte_for_byte() {
    let bench = Bench::new();
    let data: Vec<u8> =
        (0..300_000u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(bench.path("work/data"), &data).expect("write");
    let ending = run(bench.script("cat data; cat data >&2")).await;
    assert_eq!(ending.log.bytes, 2 * data.len() as u64);
    assert!(bytes_of(&bench.path("log"), Stream::Stdout) == data);
    assert!(bytes_of(&bench.path("log"), Stream::Stderr) == data);
}

#[tokio::test]
async fn everything_printed_before_the_exit_is_there() {
    let bench = Bench::new();
    // The last words of a program are still in the pipe when it exits.
    for _ in 0..50 {
        run(bench.command(&["seq", "2000"])).await;
        assert!(bench.stdout().ends_with("\n1999\n2000\n"));
    }
}

#[tokio::test]
async fn a_flood_does_not_hold_up_other_attempts() {
    let flood = Bench::new();
    let (stop, ending) = begin(flood.script("yes & yes >&2"));
    let log = flood.path("log");
    until("the cap is reached", || std::fs::metadata(&log).is_ok_and(|log| log.len() > 1 << 20)).await;
    let bench = Bench::new();
    for _ in 0..20 {
        assert_eq!(run(bench.script("echo hi")).await.outcome, Outcome::Exited(0));
    }
    stop.stop();
    let ending = ending.await;
    assert_eq!(ending.outcome, Outcome::Stopped);
    assert!(ending.log.dropped > 0 && ending.log.bytes < 1 << 20);
}
