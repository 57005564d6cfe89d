//! Which files an attempt wrote: its view knows, and in a directory that steps share the stamps of
//! files before its start tell. Owns these stamps, and never reads what files hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use laneway_core::artifact::ArtifactName;
use rustix::time::{ClockId, clock_gettime};

/// Longest tick of the clock that stamps files: a kernel with 100 Hz.
const CLOCK_TICK: Duration = Duration::from_millis(10);

/// What tells the files that an attempt wrote from those that were there before.
#[derive(Debug, Clone)]
pub(super) enum Written {
    /// What a view captured, in full paths.
    InView(BTreeSet<PathBuf>),
    /// Files that are not as they were.
    Since(Stamps),
}

/// Files before the start of an attempt, by their names.
#[derive(Debug, Clone, Default)]
pub(super) struct Stamps {
    files: BTreeMap<ArtifactName, Stamp>,
}

/// A file, and what it leads to if it is a symlink.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    own: FileStamp,
    target: Option<FileStamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    /// Nothing but the kernel sets it.
    changed: (i64, i64),
}

impl Written {
    /// Whether the attempt wrote a file, or what it leads to.
    pub(super) fn has(&self, root: &Path, name: &ArtifactName) -> bool {
        let path = root.join(name.as_str());
        match self {
            Self::InView(written) => {
                written.contains(&path) || path.canonicalize().is_ok_and(|real| written.contains(&real))
            }
            Self::Since(before) => match stamp(&path) {
                Some(now) => before.files.get(name) != Some(&now),
                None => true,
            },
        }
    }
}

impl Stamps {
    /// Takes the stamps of files, just before an attempt starts.
    pub(super) fn of(root: &Path, names: Vec<ArtifactName>) -> Self {
        let stamped = |name: ArtifactName| Some((stamp(&root.join(name.as_str()))?, name));
        let files = names.into_iter().filter_map(stamped).map(|(stamp, name)| (name, stamp));
        let stamps = Self { files: files.collect() };
        stamps.outlast_tick();
        stamps
    }

    /// Waits until the clock of files has moved on, so that each write from now on gives another
    /// stamp.
    fn outlast_tick(&self) {
        let both = |stamp: &Stamp| [Some(stamp.own), stamp.target].into_iter().flatten();
        let newest = self.files.values().flat_map(both).map(|stamp| stamp.changed).max();
        let Some((seconds, nanos)) = newest else { return };
        let now = clock_gettime(ClockId::Realtime);
        let age = (i128::from(now.tv_sec) - i128::from(seconds)) * 1_000_000_000
            + (i128::from(now.tv_nsec) - i128::from(nanos));
        // Some file systems and shares know whole seconds only.
        let tick = if nanos == 0 { Duration::from_secs(1) } else { CLOCK_TICK };
        // A time in the future is of a clock that was set back: later writes differ from it.
        if (0..tick.as_nanos() as i128).contains(&age) {
            std::thread::sleep(tick);
        }
    }
}

fn stamp(path: &Path) -> Option<Stamp> {
    let own = fs::symlink_metadata(path).ok()?;
    let target = if own.is_symlink() { fs::metadata(path).ok() } else { None };
    Some(Stamp { own: FileStamp::of(&own), target: target.as_ref().map(FileStamp::of) })
}

impl FileStamp {
    fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            modified: (data.mtime(), data.mtime_nsec()),
            changed: (data.ctime(), data.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_that_is_as_it_was_was_not_written() {
        let dir = tempfile::tempdir().expect("dir");
        let names = ["old", "rewritten", "touched", "moved", "link", "new"];
        let names = names.map(|name| ArtifactName::parse(name).expect("a name"));
        let at = |name: &str| dir.path().join(name);
        for name in ["old", "rewritten", "touched", "moved", "target"] {
            fs::write(at(name), "same").expect("written");
        }
        symlink("target", at("link")).expect("a link");
        let written = Written::Since(Stamps::of(dir.path(), names.to_vec()));
        let has = |written: &Written| {
            let there = names.iter().filter(|name| written.has(dir.path(), name));
            there.map(ToString::to_string).collect::<Vec<_>>()
        };
        fs::write(at("new"), "same").expect("written");
        assert_eq!(has(&written), ["new"]);
        fs::write(at("rewritten"), "same").expect("written");
        let touched = fs::OpenOptions::new().append(true).open(at("touched")).expect("opened");
        touched.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("set");
        fs::write(at("other"), "same").expect("written");
        fs::rename(at("other"), at("moved")).expect("moved");
        fs::write(at("target"), "more").expect("written");
        assert_eq!(has(&written), ["rewritten", "touched", "moved", "link", "new"]);
    }
}
