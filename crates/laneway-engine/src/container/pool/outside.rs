//! Signals what runs in a container from outside of it, where this node can see it and may: with an engine on this host, as root or as
//! the containers' own user. A program inside does the same everywhere (`inside.rs`), and costs the engine as much as a task does.
//! Whatever is unclear here is left to that.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often it is looked again for what was killed, and how soon.
const ROUNDS: u32 = 200;
const PAUSE: Duration = Duration::from_micros(500);

/// The processes of one container, as this host sees them.
#[derive(Debug, Clone)]
pub(super) struct Outside {
    /// Lists them: of the container's own group.
    procs: PathBuf,
    /// At which place of `NSpid` a process has the number that it has in there.
    depth: usize,
}

/// One of them, known by its number in there and the moment of its start.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    name: String,
    is_zombie: bool,
}

impl Outside {
    /// By the container's first process and its id, which its group is named after. `None`: it is not to be seen from here.
    pub(super) fn find(first: i64, id: &str) -> Option<Self> {
        let first = i32::try_from(first).ok().filter(|pid| *pid > 0 && !id.is_empty())?;
        let groups = std::fs::read_to_string(format!("/proc/{first}/cgroup")).ok()?;
        let procs = candidates(&groups, id).into_iter().find(|procs| pids(procs).contains(&first))?;
        let status = std::fs::read_to_string(format!("/proc/{first}/status")).ok()?;
        // One that is not in a namespace of its own is none that an engine has made.
        let depth = numbers(&status)?.len().checked_sub(1).filter(|depth| *depth > 0)?;
        Some(Self { procs, depth })
    }

    /// Sends a signal (`TERM`, `KILL`) to all but those of `keep`; after KILL none of them is left if it says true. `None`: it may not.
    pub(super) fn signal(&self, keep: &[String], signal: &str) -> Option<bool> {
        let (signal, is_kill) = match signal {
            "TERM" => (Signal::TERM, false),
            "KILL" => (Signal::KILL, true),
            _ => return None,
        };
        for _ in 0..ROUNDS {
            let all = pids(&self.procs);
            // A group that has gone, or cannot be read any more, proves nothing.
            if all.is_empty() {
                return None;
            }
            let mut found = false;
            for pid in all {
                found |= self.send(pid, keep, signal)?;
            }
            if !found || !is_kill {
                return Some(true);
            }
            std::thread::sleep(PAUSE);
        }
        Some(false)
    }

    /// Whether it is one that is meant. Looked at behind its handle: a number may be given to somebody else, a handle never is. One that has
    /// gone since it was listed counts as well: what it started before that is in no list yet, and shows in the next round.
    fn send(&self, pid: i32, keep: &[String], signal: Signal) -> Option<bool> {
        let pid = Pid::from_raw(pid)?;
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(Errno::SRCH) => return Some(true),
            Err(_) => return None,
        };
        if !pids(&self.procs).contains(&pid.as_raw_nonzero().get()) {
            return Some(true);
        }
        let dir = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
        // Gone between two looks.
        let (Some(status), Some(stat)) = (read("status"), read("stat")) else { return Some(true) };
        let process = process(&status, &stat, self.depth)?;
        if process.is_zombie || keep.contains(&process.name) {
            return Some(false);
        }
        match pidfd_send_signal(&handle, signal) {
            Ok(()) | Err(Errno::SRCH) => Some(true),
            Err(_) => None,
        }
    }
}

/// Where the lists of a container's group may be: of the second kind of groups, and of each of the first.
fn candidates(groups: &str, id: &str) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let of_line = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (kinds, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let kind = kinds.split(',').next()?.trim_start_matches("name=");
        path.contains(id).then(|| root.join(kind).join(path).join("cgroup.procs"))
    };
    groups.lines().filter_map(of_line).collect()
}

fn pids(procs: &Path) -> Vec<i32> {
    let listed = std::fs::read_to_string(procs).unwrap_or_default();
    listed.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// The numbers that a process has, from this namespace inwards.
fn numbers(status: &str) -> Option<Vec<&str>> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    Some(line.split_whitespace().collect())
}

/// As `inside.rs` names it: `pid:start`.
fn process(status: &str, stat: &str, depth: usize) -> Option<Process> {
    let number = *numbers(status)?.get(depth)?;
    // What is in brackets may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let (state, start) = (fields.first()?, fields.get(19)?);
    Some(Process { name: format!("{number}:{start}"), is_zombie: matches!(*state, "Z" | "X") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_name_by_which_it_is_known_inside() {
        let status = "Name:\tsleep\nNSpid:\t4242\t17\n";
        let stat = "4242 (a) b) S 4200 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 987654 19 20";
        let process = process(status, stat, 1).expect("a process");
        assert_eq!(process, Process { name: "17:987654".to_owned(), is_zombie: false });
        assert_eq!(super::process(status, stat, 2), None, "it is in no such namespace");
    }

    #[test]
    fn groups_of_both_kinds_are_looked_for_where_they_lie() {
        let groups = "12:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n3:pids:/other\n0::/system.slice/docker-abc.scope\n";
        let found = candidates(groups, "abc");
        let paths: Vec<&str> = found.iter().filter_map(|path| path.to_str()).collect();
        assert_eq!(
            paths,
            [
                "/sys/fs/cgroup/cpu/docker/abc/cgroup.procs",
                "/sys/fs/cgroup/systemd/docker/abc/cgroup.procs",
                "/sys/fs/cgroup/system.slice/docker-abc.scope/cgroup.procs"
            ]
        );
    }

    #[test]
    fn one_that_has_gone_since_it_was_listed_is_followed_by_another_round() {
        let dir = tempfile::tempdir().expect("a directory");
        let outside = Outside { procs: dir.path().join("cgroup.procs"), depth: 1 };
        // Above what a system gives away.
        std::fs::write(&outside.procs, "4194305\n").expect("a list");
        assert_eq!(outside.signal(&[], "KILL"), Some(false), "as long as it is listed, nothing is proven");
        assert_eq!(outside.signal(&[], "TERM"), Some(true));
    }

    #[test]
    fn what_is_in_no_container_is_never_found() {
        assert!(Outside::find(i64::from(std::process::id()), "abc").is_none());
        assert!(Outside::find(0, "abc").is_none() && Outside::find(1, "").is_none());
    }
}
