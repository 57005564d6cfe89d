//! The process table: everything that a case started carries its mark in the environment, whatever became of it.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The variable that marks a case. The steps inherit it from the node.
pub(super) const MARK: &str = "TORTURE_CASE";

/// Everything alive that carries the mark, with its command line.
pub(super) fn marked(mark: &str) -> Vec<(Pid, String)> {
    with(&[&format!("{MARK}={mark}")])
}

/// Everything alive that has each of these variables in its environment: `NAME=VALUE`, or `NAME=` for any value.
pub(super) fn with(wanted: &[&str]) -> Vec<(Pid, String)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter_map(|pid| {
        let dir = format!("/proc/{}", pid.as_raw_nonzero());
        let environ = fs::read(format!("{dir}/environ")).ok()?;
        let has = |wanted: &str| {
            let is_it = |variable: &[u8]| match wanted.ends_with('=') {
                true => variable.starts_with(wanted.as_bytes()),
                false => variable == wanted.as_bytes(),
            };
            environ.split(|byte| *byte == 0).any(is_it)
        };
        let is_marked = wanted.iter().all(|wanted| has(wanted));
        // A dead process that nobody has waited for has no command line.
        let words = fs::read(format!("{dir}/cmdline")).ok().filter(|words| !words.is_empty())?;
        is_marked
            .then(|| (pid, String::from_utf8_lossy(&words).replace('\0', " ").chars().take(80).collect()))
    })
    .collect()
}

/// Waits until nothing carries the mark. What is left then is killed, and told.
pub(super) fn wait_until_gone(mark: &str, patience: Duration) -> Result<Duration, Vec<String>> {
    let begun = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(begun.elapsed());
        }
        if begun.elapsed() > patience {
            let told =
                left.iter().map(|(pid, words)| format!("{} ({words})", pid.as_raw_nonzero())).collect();
            for (pid, _) in left {
                let _ = kill_process(pid, Signal::KILL);
            }
            return Err(told);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the warden of a node: its child that is one, or the child of that one where it is a guardian.
pub(super) fn warden_of(node: &Child) -> Option<Pid> {
    let above = warden_below(node.id())?;
    Some(warden_below(above.as_raw_nonzero().get().unsigned_abs()).unwrap_or(above))
}

fn warden_below(process: u32) -> Option<Pid> {
    children(process).into_iter().find(|pid| {
        let words = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
        words.split(|byte| *byte == 0).nth(1) == Some(b"warden")
    })
}

/// Some step's leader.
pub(super) fn a_step_of(node: &Child) -> Option<Pid> {
    let warden = warden_of(node)?;
    children(warden.as_raw_nonzero().get().unsigned_abs()).into_iter().next()
}

/// Stops a process, so that it cannot notice what happens next.
pub(super) fn freeze(pid: Pid) -> bool {
    kill_process(pid, Signal::STOP).is_ok()
}

/// Lets it go on, if it is still there.
pub(super) fn thaw(pid: Pid) {
    let _ = kill_process(pid, Signal::CONT);
}

pub(super) fn kill(pid: Pid) -> bool {
    kill_process(pid, Signal::KILL).is_ok()
}

fn children(of: u32) -> Vec<Pid> {
    let text = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}
