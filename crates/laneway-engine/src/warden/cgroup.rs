//! A cgroup for each task, so that whatever it starts can be counted and killed as one. Version 2 only, found
//! through `/proc/self`; no controller is used, nothing but `cgroup.procs` and `cgroup.kill`.
//!
//! A child is born into the cgroup of its parent, so the warden itself moves into a free leaf and starts the
//! task from there: no moment is left in which a quick child could fork outside. A move may take
//! milliseconds when the last one is long ago (the kernel waits for a grace period of its own), so the warden
//! stays where it is as long as it can, and moves ahead of need when it has nothing to do. It never sits in a
//! leaf that is killed. docs/design/warden.md has the figures.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::leftovers::{pids, read_again};

/// The beginning of the names of our directories.
const PREFIX: &str = "laneway-";

/// The leaves of one warden. They are used again, never removed before the end.
#[derive(Debug)]
pub(super) struct Cgroups {
    dir: PathBuf,
    /// Held alone while its owner lives, so that other wardens leave the directory in peace.
    _lock: File,
    /// Where the warden was born.
    base: PathBuf,
    leaves: Vec<Leaf>,
    /// The leaf in which the warden sits.
    at: Option<usize>,
    own: Pid,
}

#[derive(Debug)]
struct Leaf {
    dir: PathBuf,
    /// Read for every task, so they are kept open.
    procs: File,
    stat: File,
    is_free: bool,
    /// Whether its task has made cgroups of its own.
    has_below: bool,
}

impl Cgroups {
    /// Makes a directory of our own below the cgroup of this process, and moves into its first leaf: what
    /// cannot be used shows here. What dead wardens have left there is killed and removed.
    pub(super) fn new(mark: &str) -> io::Result<Self> {
        let base = own_cgroup()?;
        sweep(&base);
        let dir = base.join(format!("{PREFIX}{mark}"));
        let lock = make_and_lock(&dir)?;
        let own = rustix::process::getpid();
        let mut cgroups = Self { dir, _lock: lock, base, leaves: Vec::new(), at: None, own };
        let tried = cgroups.enter_free().and_then(|leaf| {
            let kill = cgroups.leaves[leaf].dir.join("cgroup.kill");
            OpenOptions::new().write(true).open(kill)
        });
        match tried {
            Ok(_) => Ok(cgroups),
            Err(error) => {
                cgroups.close();
                Err(error)
            }
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Sees to it that the warden sits in a leaf without a task, and says which.
    pub(super) fn enter_free(&mut self) -> io::Result<usize> {
        if let Some(at) = self.at
            && self.leaves[at].is_free
        {
            return Ok(at);
        }
        let leaf = match self.leaves.iter().position(|leaf| leaf.is_free) {
            Some(leaf) => leaf,
            None => self.add()?,
        };
        // `0` is whoever writes.
        self.leaves[leaf].procs.write_all(b"0")?;
        self.at = Some(leaf);
        Ok(leaf)
    }

    /// Whether the next task could be started without a move.
    pub(super) fn is_ready(&self) -> bool {
        self.at.is_some_and(|at| self.leaves[at].is_free)
    }

    pub(super) fn take(&mut self, leaf: usize) {
        self.leaves[leaf].is_free = false;
    }

    /// The task is gone. What it made below its leaf goes too.
    pub(super) fn free(&mut self, leaf: usize) {
        let leaf = &mut self.leaves[leaf];
        leaf.is_free = true;
        if std::mem::take(&mut leaf.has_below) {
            remove_below(&leaf.dir);
        }
    }

    /// Whether anybody but the warden is in the leaf, or below.
    pub(super) fn is_populated(&mut self, leaf: usize) -> bool {
        // An error hides members; better to kill nobody than to wait for ever.
        self.members(leaf).is_ok_and(|members| !members.is_empty())
    }

    /// Everybody in the leaf and below, but the warden.
    pub(super) fn members(&mut self, leaf: usize) -> io::Result<Vec<Pid>> {
        let leaf = &mut self.leaves[leaf];
        let mut members = pids(&read_again(&leaf.procs)?).collect();
        // A step may be a Laneway of its own, whose warden made cgroups here.
        if !read_again(&leaf.stat)?.lines().any(|line| line == "nr_descendants 0") {
            leaf.has_below = true;
            members_below(&leaf.dir, &mut members);
        }
        members.retain(|pid| *pid != self.own);
        Ok(members)
    }

    /// Kills everybody in the leaf and below at once. The warden leaves it first.
    pub(super) fn kill(&mut self, leaf: usize) -> io::Result<()> {
        if self.at == Some(leaf) && self.enter_free().is_err() {
            OpenOptions::new().write(true).open(self.base.join("cgroup.procs"))?.write_all(b"0")?;
            self.at = None;
        }
        fs::write(self.leaves[leaf].dir.join("cgroup.kill"), "1")
    }

    /// Whether a process is in one of these cgroups.
    pub(super) fn holds(&self, pid: Pid) -> bool {
        let (Ok(text), Some(name)) =
            (fs::read_to_string(format!("/proc/{}/cgroup", pid.as_raw_nonzero())), self.dir.file_name())
        else {
            return false;
        };
        let path = text.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default();
        Path::new(path).iter().any(|part| part == name)
    }

    /// Goes back where it was born, and removes what it made.
    pub(super) fn close(&mut self) {
        let home = OpenOptions::new().write(true).open(self.base.join("cgroup.procs"));
        // If it may not, whoever comes next sweeps.
        let _ = home.and_then(|mut procs| procs.write_all(b"0"));
        remove_below(&self.dir);
        let _ = fs::remove_dir(&self.dir);
    }

    fn add(&mut self) -> io::Result<usize> {
        let dir = self.dir.join(self.leaves.len().to_string());
        fs::create_dir(&dir)?;
        let procs = OpenOptions::new().read(true).write(true).open(dir.join("cgroup.procs"))?;
        let stat = File::open(dir.join("cgroup.stat"))?;
        self.leaves.push(Leaf { dir, procs, stat, is_free: true, has_below: false });
        Ok(self.leaves.len() - 1)
    }
}

/// Where a warden makes its cgroups if it is born where this process is.
pub(super) fn dir_of(mark: &str) -> io::Result<PathBuf> {
    Ok(own_cgroup()?.join(format!("{PREFIX}{mark}")))
}

/// Kills everything in the cgroups of a warden that is dead, and removes them. Waits for the end of what was
/// killed, but not for ever. Not to be called by somebody who sits in them.
pub(super) fn clear_away(dir: &Path) {
    const PATIENCE: Duration = Duration::from_secs(1);
    let until = Instant::now() + PATIENCE;
    let _ = fs::write(dir.join("cgroup.kill"), "1");
    while fs::read_to_string(dir.join("cgroup.events")).is_ok_and(|events| events.contains("populated 1"))
        && Instant::now() < until
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    remove_below(dir);
    let _ = fs::remove_dir(dir);
}

/// A directory whose lock can be taken belongs to no warden: it and its node were killed together. Shared, so that
/// wardens that sweep at once do not take each other for its owner: each waits until nothing is left.
fn sweep(base: &Path) {
    let Ok(entries) = fs::read_dir(base) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && let Ok(dir) = File::open(entry.path())
            && dir.try_lock_shared().is_ok()
        {
            clear_away(&entry.path());
        }
    }
}

/// Another warden that sweeps may come between the directory and its lock, and take it for that of a dead one. It is
/// waited for, and if it has removed the directory, that is made again.
fn make_and_lock(dir: &Path) -> io::Result<File> {
    loop {
        match fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let lock = match File::open(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        lock.lock()?;
        if dir.try_exists()? {
            return Ok(lock);
        }
    }
}

/// Where the cgroup of this process lies in the file system.
fn own_cgroup() -> io::Result<PathBuf> {
    let missing = |what| io::Error::new(io::ErrorKind::NotFound, what);
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let (root, point) =
        mounts.lines().find_map(mount_of_v2).ok_or_else(|| missing("cgroup v2 is not mounted"))?;
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    let path = path.ok_or_else(|| missing("this process is in no cgroup of version 2"))?;
    let below = Path::new(path)
        .strip_prefix(root)
        .map_err(|_| missing("its cgroup lies outside of what is mounted"))?;
    Ok(Path::new(point).join(below))
}

/// `id parent dev root point options … - type source options`.
fn mount_of_v2(line: &str) -> Option<(&str, &str)> {
    let (before, after) = line.split_once(" - ")?;
    if !after.starts_with("cgroup2 ") {
        return None;
    }
    let mut fields = before.split(' ').skip(3);
    Some((fields.next()?, fields.next()?))
}

fn members_below(dir: &Path, members: &mut Vec<Pid>) {
    for below in directories(dir) {
        let text = fs::read_to_string(below.join("cgroup.procs")).unwrap_or_default();
        members.extend(pids(&text));
        members_below(&below, members);
    }
}

fn remove_below(dir: &Path) {
    for below in directories(dir) {
        remove_below(&below);
        let _ = fs::remove_dir(below);
    }
}

fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_that_comes_between_a_directory_and_its_lock_takes_nothing_away() {
        let base = tempfile::tempdir().expect("a directory");
        let dir = base.path().join("laneway-new");
        fs::create_dir(&dir).expect("made");
        let sweeper = File::open(&dir).expect("it is there");
        sweeper.try_lock_shared().expect("no warden has it");
        let making = std::thread::spawn({
            let dir = dir.clone();
            move || make_and_lock(&dir)
        });
        fs::remove_dir(&dir).expect("removed");
        drop(sweeper);
        let lock = making.join().expect("no panic").expect("made and locked");
        assert!(dir.exists());
        assert!(File::open(&dir).expect("it is there").try_lock().is_err(), "{lock:?} holds it");
    }

    #[test]
    fn wardens_that_sweep_at_once_both_sweep() {
        let base = tempfile::tempdir().expect("a directory");
        let dir = base.path().join("laneway-left");
        fs::create_dir(&dir).expect("made");
        let other = File::open(&dir).expect("it is there");
        other.try_lock_shared().expect("no warden has it");
        sweep(base.path());
        assert!(dir.join("cgroup.kill").exists(), "it did not take the other one for the owner");
    }

    #[test]
    fn the_mount_of_version_two_is_told_from_the_others() {
        let lines = "30 29 0:27 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids\n\
                     42 32 0:28 /slice /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        assert_eq!(lines.lines().find_map(mount_of_v2), Some(("/slice", "/sys/fs/cgroup")));
        assert_eq!(mount_of_v2("x - cgroup2 "), None);
        assert_eq!(mount_of_v2(""), None);
    }
}
