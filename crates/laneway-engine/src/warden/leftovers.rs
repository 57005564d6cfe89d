//! Who descends from the warden without being held by a cgroup: read from `/proc`, signaled through pidfds.
//!
//! The warden is a subreaper, so a process whose parent died is its child from then on. Which task such an
//! orphan belongs to is told by the marker in its environment, by its process group or session, or, where
//! neither helps, by time: it can only belong to a task that was there before it.

use std::collections::HashSet;
use std::fs;
use std::io;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::MARK;

/// What `/proc/<pid>/stat` says of a process that is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    parent: i32,
    pub(super) group: i32,
    pub(super) session: i32,
    /// In ticks since the machine started.
    pub(super) started: u64,
}

/// `None` for a process that is dead, be it reaped or not.
pub(super) fn stat(pid: Pid) -> Option<Stat> {
    parse(&fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?)
}

/// The children of a process, also those that have died and are not reaped.
pub(super) fn children(of: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", of.as_raw_nonzero())) else {
        return found;
    };
    for thread in threads.flatten() {
        match fs::read_to_string(thread.path().join("children")) {
            Ok(text) => found.extend(pids(&text)),
            // A kernel without these files. The process's own directory may have vanished just as well.
            Err(_) => return scan(of),
        }
    }
    found
}

/// The children of this process, which has one thread and asks often: the file is kept open.
#[derive(Debug)]
pub(super) struct OwnChildren(Option<fs::File>);

impl OwnChildren {
    pub(super) fn new() -> Self {
        let own = rustix::process::getpid().as_raw_nonzero();
        Self(fs::File::open(format!("/proc/{own}/task/{own}/children")).ok())
    }

    pub(super) fn list(&self) -> Vec<Pid> {
        match self.0.as_ref().map(read_again) {
            Some(Ok(text)) => pids(&text).collect(),
            Some(Err(_)) | None => children(rustix::process::getpid()),
        }
    }
}

/// The living processes below one, whatever their groups and sessions.
pub(super) fn descendants(of: Pid) -> Vec<Pid> {
    let mut found = children(of);
    let mut looked = 0;
    while let Some(&pid) = found.get(looked) {
        // A pid may be used again while we look; nobody is counted twice.
        let below: Vec<Pid> = children(pid).into_iter().filter(|pid| !found.contains(pid)).collect();
        found.extend(below);
        looked += 1;
    }
    found
}

/// The processes below one without those that have died: a parent that is frozen does not reap them.
pub(super) fn alive_below(pid: Pid) -> Vec<Pid> {
    descendants(pid).into_iter().filter(|pid| stat(*pid).is_some()).collect()
}

/// The task in the marker of a process, if the marker is of this warden.
pub(super) fn marked_task(pid: Pid, mark: &str) -> Option<u64> {
    let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
    let wanted = format!("{MARK}={mark}.");
    let value =
        environ.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(wanted.as_bytes()))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

/// Every process of this machine that carries the marker of a warden.
pub(super) fn marked(mark: &str) -> Vec<Pid> {
    processes().filter(|pid| marked_task(*pid, mark).is_some()).collect()
}

/// Signals whoever `list` names, and nobody else: a pid can change its owner between the look and the
/// signal, so the process is held by a pidfd first and looked for again.
pub(super) fn signal(list: impl Fn() -> Vec<Pid>, signals: &[Signal]) {
    let held: Vec<_> = list()
        .into_iter()
        .filter_map(|pid| Some((pid, pidfd_open(pid, PidfdFlags::empty()).ok()?)))
        .collect();
    if held.is_empty() {
        return;
    }
    let still: HashSet<Pid> = list().into_iter().collect();
    for (pid, pidfd) in held {
        if still.contains(&pid) {
            for signal in signals {
                // Gone in between is what was wanted.
                let _ = pidfd_send_signal(&pidfd, *signal);
            }
        }
    }
}

/// The whole of a small file of the kernel that is kept open, as it is now: mostly one call to the system.
pub(super) fn read_again(file: &fs::File) -> io::Result<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 512];
    loop {
        let count = rustix::io::pread(file, &mut buffer, text.len() as u64)?;
        text.extend_from_slice(&buffer[..count]);
        // Such a file is read a line at a time: what leaves room for some more lines was the end.
        if count < buffer.len() / 2 {
            return Ok(String::from_utf8_lossy(&text).into_owned());
        }
    }
}

pub(super) fn pids(text: &str) -> impl Iterator<Item = Pid> {
    text.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
}

fn scan(parent: Pid) -> Vec<Pid> {
    let parent = parent.as_raw_nonzero().get();
    processes().filter(|pid| stat(*pid).is_some_and(|stat| stat.parent == parent)).collect()
}

fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
}

/// `pid (name) state parent group session …`; the name may hold anything, so the last bracket ends it.
fn parse(stat: &[u8]) -> Option<Stat> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(&stat[end + 1..]).ok()?.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    Some(Stat { parent, group, session, started: fields.nth(15)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_process_table_is_read_whatever_the_name() {
        let rest = "0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 777 2 3";
        let line = |start: &str| parse(format!("{start} {rest}").as_bytes());
        let expected = Some(Stat { parent: 1, group: 34, session: 35, started: 777 });
        assert_eq!(line("12 (sh) S 1 34 35"), expected);
        assert_eq!(line("12 (a) Z 9 (b)) R 1 34 35"), expected);
        assert_eq!(line("12 (sh) Z 1 34 35"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn we_are_a_child_of_our_parent() {
        let (own, parent) = (rustix::process::getpid(), rustix::process::getppid().expect("a parent"));
        assert!(children(parent).contains(&own));
        assert!(scan(parent).contains(&own));
        assert!(descendants(parent).contains(&own));
        assert_eq!(stat(own).expect("alive").parent, parent.as_raw_nonzero().get());
    }

    #[test]
    fn a_process_without_the_marker_is_nobodys() {
        assert_eq!(marked_task(rustix::process::getpid(), "none"), None);
    }
}
