//! A warden that is frozen like its node kills nothing. Its host is this one, so another node can: the warden writes
//! its own pid, or that of its guardian, into the file whose lock both hold. The node that returns the tasks ends what
//! is below that process first.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::{cgroup, leftovers};

/// How long the end of what was killed is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a warden has written of itself.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    mark: String,
    /// The topmost process: the guardian, or a warden without one.
    pid: Pid,
    cgroups: Option<PathBuf>,
}

/// Writes to standard output, which is the warden's lock file.
pub(super) fn leave_note(mark: &str, cgroups: Option<&Path>) {
    let guardian = rustix::process::getppid().filter(|parent| is_warden(*parent, mark));
    let pid = guardian.unwrap_or_else(rustix::process::getpid).as_raw_nonzero();
    let dir = cgroups.map_or("-".into(), Path::to_string_lossy);
    let mut out = std::io::stdout().lock();
    // Without it a frozen warden is not ended by others, and they wait for it.
    let _ = writeln!(out, "{mark} {pid} {dir}").and_then(|()| out.flush());
}

/// Ends a warden that does not end by itself, and everything that it has started. Blocks for seconds at most; whether it
/// is gone is told by its lock.
pub(crate) fn end_stuck(note: &str) {
    let Some(note) = Note::read(note) else { return };
    let Ok(process) = pidfd_open(note.pid, PidfdFlags::empty()) else { return };
    // Held now: its number cannot become another's any more, unless it had before.
    if !is_warden(note.pid, &note.mark) {
        return;
    }
    tracing::warn!(mark = note.mark, "a warden is frozen; what it has started is killed, and it as well");
    // While it lives all orphans of its steps are below it, also those that have cleared their environment.
    let until = Instant::now() + PATIENCE;
    while !leftovers::alive_below(note.pid).is_empty() && Instant::now() < until {
        leftovers::signal(|| leftovers::alive_below(note.pid), &[Signal::KILL]);
        std::thread::sleep(Duration::from_millis(2));
    }
    let _ = pidfd_send_signal(&process, Signal::KILL);
    if let Some(dir) = &note.cgroups {
        cgroup::clear_away(dir);
    }
    leftovers::signal(|| leftovers::marked(&note.mark), &[Signal::KILL]);
}

/// The mark is the argument of one warden and its guardian alone.
fn is_warden(pid: Pid, mark: &str) -> bool {
    let words = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    words.split(|byte| *byte == 0).any(|word| word == mark.as_bytes())
}

impl Note {
    fn read(text: &str) -> Option<Self> {
        let mut words = text.trim_end().splitn(3, ' ');
        let (mark, pid, dir) = (words.next()?, words.next()?, words.next()?);
        let pid = Pid::from_raw(pid.parse().ok()?)?;
        let cgroups = (dir != "-").then(|| PathBuf::from(dir));
        Some(Self { mark: mark.to_owned(), pid, cgroups })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn note_of_a_warden_is_read_back() {
        let note = Note::read("7-19a-0 42 /sys/fs/cgroup/my dir/laneway-7\n").expect("whole");
        assert_eq!(note.cgroups.as_deref(), Some(Path::new("/sys/fs/cgroup/my dir/laneway-7")));
        assert_eq!(Note::read("7-19a-0 42 -\n").expect("whole").cgroups, None);
        assert_eq!(Note::read(""), None, "it had no time to write one");
    }
}
