//! Copies of workspaces whose blocks are shared, on file systems that can: real ones, each in a file of its own that is mounted for the
//! length of the test. That takes root, `mkfs.xfs` and `mkfs.btrfs`.

#![expect(clippy::disallowed_methods, reason = "tests make file systems of their own")]

use std::path::{Path, PathBuf};
use std::process::Command;

use laneway_core::definition::OnConflict;
use laneway_core::id::RunId;
use laneway_engine::isolate::{CellName, Isolates, Means, Merged, Source};
use tempfile::TempDir;

/// What one file of the workspace has: so much that a second one of it would be seen.
const LARGE: usize = 64 << 20;

struct Disk {
    dir: TempDir,
}

impl Disk {
    fn make(mkfs: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (image, at) = (dir.path().join("image"), dir.path().join("at"));
        std::fs::create_dir(&at).expect("made");
        // As little as both of them take.
        std::fs::File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("a file");
        let made = Command::new(mkfs[0]).args(&mkfs[1..]).arg(&image).output();
        let made = made.unwrap_or_else(|error| panic!("{} is needed: {error}", mkfs[0]));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mounted = Command::new("mount").args(["-o", "loop"]).args([&image, &at]).output();
        let mounted = mounted.expect("`mount`");
        assert!(mounted.status.success(), "it takes root: {}", String::from_utf8_lossy(&mounted.stderr));
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("at").join(name)
    }

    /// Bytes that are free, once all that was written is where it belongs.
    fn free(&self) -> u64 {
        let at = self.dir.path().join("at");
        let synced = Command::new("sync").arg("--file-system").arg(&at).status();
        assert!(synced.expect("`sync`").success());
        let found = rustix::fs::statvfs(&at).expect("it is mounted");
        found.f_bfree * found.f_frsize
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.dir.path().join("at")).status();
    }
}

fn cell(step: &str) -> CellName {
    CellName { step: step.to_owned(), attempt: 1 }
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|_| "nothing".to_owned())
}

#[test]
fn blocks_are_shared_where_the_file_system_can_and_members_work_apart() {
    for mkfs in [["mkfs.xfs", "-q", "-mreflink=1"], ["mkfs.btrfs", "-q", "-msingle"]] {
        let disk = Disk::make(&mkfs);
        let (base, store) = (disk.path("base"), disk.path("store"));
        // Nothing at the top that could be tried.
        std::fs::create_dir_all(base.join("src")).expect("made");
        std::fs::create_dir(&store).expect("made");
        let large: Vec<u8> = (0..LARGE).map(|at| (at % 251) as u8).collect();
        std::fs::write(base.join("src/large"), &large).expect("written");
        std::fs::write(base.join("src/small"), "0").expect("written");
        let isolates = Isolates::new(store.join("isolates/instance"), store);
        let run = RunId::parse("0190d5a0-0000-7000-8000-000000000001").expect("an id");
        let before = disk.free();
        let [one, other] =
            ["one", "other"].map(|step| isolates.enter(run, &cell(step), &base).expect("a copy"));
        let used = before.saturating_sub(disk.free());
        assert_eq!(isolates.means_of(&base), Some(Means::Reflink), "{mkfs:?}");
        assert!(used < LARGE as u64 / 4, "{mkfs:?}: two copies of {LARGE} bytes took {used}");
        assert!(std::fs::read(one.join("src/large")).expect("there") == large, "{mkfs:?}");

        std::fs::write(one.join("src/small"), "one").expect("written");
        std::fs::write(other.join("src/new"), "other").expect("written");
        std::fs::OpenOptions::new()
            .write(true)
            .open(other.join("src/large"))
            .and_then(|mut file| std::io::Write::write_all(&mut file, b"changed"))
            .expect("written");
        assert_eq!((read(&base, "src/small"), read(&other, "src/small")), ("0".into(), "0".into()));
        assert!(
            std::fs::read(base.join("src/large")).expect("there") == large,
            "{mkfs:?}: only its own copy"
        );
        let source =
            |(index, step): (usize, &str)| Source { index, cell: cell(step), output: Default::default() };
        let sources: Vec<Source> = ["one", "other"].into_iter().enumerate().map(source).collect();
        let merged = isolates.merge(run, "g", &base, &sources, &OnConflict::Fail).expect("an answer");
        assert!(matches!(merged, Merged::Applied(_)), "{merged:?}");
        assert_eq!((read(&base, "src/small"), read(&base, "src/new")), ("one".into(), "other".into()));
        assert!(std::fs::read(base.join("src/large")).expect("there").starts_with(b"changed"));
        isolates.remove(run).expect("removed");
        assert!(!one.exists() && !other.exists());
    }
}
