//! Floods of output in a process of their own, so that its peak memory can be looked at.

#[path = "support/warden.rs"]
mod warden;

use std::time::Duration;

use laneway_engine::log::{Stream, Tail};
use laneway_engine::process::{InheritEnv, Job, Outcome, Program, StopSignal, execute};

/// The most this process may grow by, whatever the steps print; the log's cap is above it on purpose,
/// so a log that is kept in memory would show.
const GROWTH_KIB: u64 = 24 * 1024;
const CAP: u64 = 48 << 20;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let figure = line.and_then(|line| line.split_whitespace().next());
    figure.expect("VmHWM").parse().expect("a number")
}

async fn flood(script: &str) -> (laneway_engine::process::Ending, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("tempdir");
    let job = Job {
        program: Program::Script {
            text: script.to_owned(),
            name: "flood".to_owned(),
            args: Vec::new(),
            shell: laneway_core::shell::Shell::Sh,
        },
        env: Vec::new(),
        inherit_env: InheritEnv::All,
        workdir: dir.path().to_owned(),
        stdin: None,
        scratch: dir.path().to_owned(),
        output: dir.path().join("output"),
        log: dir.path().join("log").into(),
        log_cap: CAP,
        masks: Default::default(),
        timeout: Some(Duration::from_secs(300)),
        kill_grace: Duration::from_secs(5),
    };
    let before = peak_kib();
    let ending = execute(warden::warden(), job, StopSignal::new()).await;
    let grown = peak_kib() - before;
    assert!(grown < GROWTH_KIB, "grew by {grown} KiB");
    let size = std::fs::metadata(dir.path().join("log")).expect("a log").len();
    assert!(size < CAP + 4096, "the log has {size} bytes");
    (ending, dir)
}

#[tokio::test]
async fn a_flood_of_one_gigabyte_is_capped_and_the_exit_code_stays() {
    const FLOOD: u64 = 1 << 30;
    let (ending, dir) = flood("head -c 1073741824 /dev/zero; echo end >&2; exit 11").await;
    assert_eq!(ending.outcome, Outcome::Exited(11));
    assert_eq!(ending.log.bytes + ending.log.dropped, FLOOD + 4);
    let notes: Vec<_> = Tail::last_lines(&dir.path().join("log"), 2)
        .expect("reads")
        .into_iter()
        .filter(|line| line.stream == Stream::Note)
        .map(|line| line.text().into_owned())
        .collect();
    assert!(notes.contains(&format!("{} bytes dropped", ending.log.dropped)), "{notes:?}");
}

#[tokio::test]
async fn a_line_of_a_hundred_megabytes_is_read_in_pieces() {
    let (ending, dir) = flood("head -c 100000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(ending.log.bytes + ending.log.dropped, 100_000_000);
    let before = peak_kib();
    let lines = Tail::last_lines(&dir.path().join("log"), 10).expect("reads");
    assert!(peak_kib() - before < GROWTH_KIB);
    assert!(lines.iter().any(|line| line.continues));
}

#[tokio::test]
async fn binary_noise_on_both_streams_is_capped() {
    let (ending, _dir) =
        flood("head -c 60000000 /dev/urandom & head -c 60000000 /dev/urandom >&2; wait").await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(ending.log.bytes + ending.log.dropped, 120_000_000);
}
