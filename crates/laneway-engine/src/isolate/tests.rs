//! Real directories, by each means that this system has.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

use laneway_core::merge::Entry;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tempfile::TempDir;

use super::*;

const RUN: &str = "0190d5a0-0000-7000-8000-000000000001";

struct Place {
    dir: TempDir,
    isolates: Isolates,
    run: RunId,
}

impl Place {
    /// With a preference; where it is not possible, files are copied.
    fn preferring(means: Means) -> Self {
        let dir = tempfile::tempdir().expect("dir");
        let (base, store_dir) = (dir.path().join("base"), dir.path().join("base/.laneway"));
        std::fs::create_dir_all(&store_dir).expect("made");
        std::fs::write(store_dir.join("laneway.db"), "store").expect("written");
        let isolates = Isolates::new(store_dir.join("isolates/instance"), store_dir);
        isolates.prefer(&base, means);
        Self { dir, isolates, run: RunId::parse(RUN).expect("an id") }
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("base")
    }

    fn write(&self, path: &str, text: &str) {
        put(&self.base(), path, text);
    }

    fn enter(&self, step: &str) -> PathBuf {
        self.isolates.enter(self.run, &cell(step), &self.base()).expect("a copy")
    }

    fn changes(&self, step: &str) -> Vec<String> {
        let changes = self.isolates.changes(self.run, &cell(step), &self.base()).expect("compared");
        let one = |(path, entry): (&PathBuf, &Option<Entry>)| {
            let sign = match entry {
                None => "-",
                Some(Entry::File { .. }) => "+",
                Some(Entry::Symlink { .. }) => "@",
                Some(Entry::Directory { .. }) => "/",
            };
            format!("{sign}{}", path.display())
        };
        changes.expect("it is there").iter().map(one).collect()
    }

    fn merge(&self, steps: &[&str], on_conflict: &OnConflict) -> Merged {
        let source =
            |(index, step): (usize, &&str)| Source { index, cell: cell(step), output: Default::default() };
        let sources: Vec<Source> = steps.iter().enumerate().map(source).collect();
        self.isolates.merge(self.run, "g", &self.base(), &sources, on_conflict).expect("an answer")
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.base().join(path)).unwrap_or_else(|_| "nothing".to_owned())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.isolates.rest(self.run).expect("nothing stays mounted");
    }
}

fn cell(step: &str) -> CellName {
    CellName { step: step.to_owned(), attempt: 1 }
}

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    std::fs::write(path, text).expect("written");
}

const BOTH: [Means; 2] = [Means::Copy, Means::Overlay];

#[test]
fn copy_has_everything_but_the_store_and_nothing_beside_it() {
    for means in BOTH {
        let place = Place::preferring(means);
        place.write("src/a.sh", "a");
        std::fs::set_permissions(place.base().join("src/a.sh"), PermissionsExt::from_mode(0o750))
            .expect("mode");
        symlink("/etc/passwd", place.base().join("out")).expect("a symlink");
        let copy = place.enter("lint");
        assert_eq!(std::fs::read_to_string(copy.join("src/a.sh")).expect("there"), "a", "{means:?}");
        let (was, is) = (place.base().join("src/a.sh"), copy.join("src/a.sh"));
        let (was, is) = (std::fs::metadata(was).expect("there"), std::fs::metadata(is).expect("there"));
        assert_eq!((was.mode(), was.mtime_nsec()), (is.mode(), is.mtime_nsec()));
        assert_eq!(std::fs::read_link(copy.join("out")).expect("a symlink"), Path::new("/etc/passwd"));
        assert!(!copy.join(".laneway").exists(), "{means:?}: the store is no part of it");
        assert!(place.changes("lint").is_empty(), "{means:?}: {:?}", place.changes("lint"));
        // Whoever writes outside by accident hits nothing.
        std::fs::write(copy.join("../x"), "by accident").expect("written");
        assert!(!place.base().join("../x").exists() && !place.base().join(".laneway/x").exists());
        let beside = std::fs::read_dir(copy.parent().expect("a parent")).expect("dir").count();
        assert_eq!(beside, 2, "the copy and what was written by accident");
    }
}

/// A file system in memory shares no blocks: what comes next is tried, and in the end files are copied.
#[test]
fn where_blocks_cannot_be_shared_an_overlay_is_made_and_else_a_copy() {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    for (store, is_hidden) in [("base/.laneway", true), ("base/deep/within/.laneway", false)] {
        let dir = tempfile::tempdir_in(&parent).expect("dir");
        let (base, store_dir) = (dir.path().join("base"), dir.path().join(store));
        std::fs::create_dir_all(&store_dir).expect("made");
        put(&base, "d/file", "as it was");
        let isolates = Isolates::new(store_dir.join("isolates/instance"), store_dir);
        let run = RunId::parse(RUN).expect("an id");
        let copy = isolates.enter(run, &cell("a"), &base).expect("a copy");
        let means = isolates.means_of(&base);
        put(&copy, "d/file", "changed");
        let was = std::fs::read_to_string(base.join("d/file")).expect("there");
        isolates.rest(run).expect("nothing stays mounted");
        assert_eq!(was, "as it was", "{means:?}");
        if !is_hidden {
            assert_eq!(means, None, "an overlay could not hide the store, and was not tried");
        } else if rustix::process::getuid().is_root() {
            assert_eq!(means, Some(Means::Overlay));
        }
    }
}

/// Only who may mount can try it.
#[cfg(target_os = "linux")]
#[test]
fn files_that_are_mounted_below_the_directory_are_copied_and_stay() {
    use rustix::mount::{UnmountFlags, mount_bind, unmount};

    if !rustix::process::getuid().is_root() {
        return;
    }
    let place = Place::preferring(Means::Overlay);
    let elsewhere = tempfile::tempdir().expect("a directory");
    put(elsewhere.path(), "precious", "kept");
    place.write("data/under", "hidden by the mount");
    let data = place.base().join("data");
    mount_bind(elsewhere.path(), &data).expect("root may");
    let copy = place.enter("a");
    let seen = std::fs::read_to_string(copy.join("data/precious")).ok();
    put(&copy, "data/new", "of a member");
    let merged = place.merge(&["a"], &OnConflict::Fail);
    let left = ["precious", "new"].map(|name| place.read(&format!("data/{name}")));
    // Mounted while a member works: nothing is taken for removed.
    unmount(&data, UnmountFlags::DETACH).expect("unmounted");
    put(&place.enter("b"), "data/other", "of another");
    mount_bind(elsewhere.path(), &data).expect("root may");
    let refused = place.isolates.changes(place.run, &cell("b"), &place.base());
    unmount(&data, UnmountFlags::DETACH).expect("unmounted");
    assert_eq!(seen.as_deref(), Some("kept"));
    assert!(matches!(merged, Merged::Applied(_)), "{merged:?}");
    assert_eq!(left, ["kept", "of a member"]);
    assert!(matches!(refused, Err(Error::MountedBelow { .. })), "{refused:?}");
}

#[test]
fn store_that_lies_in_the_directory_itself_is_left_out_by_name() {
    let dir = tempfile::tempdir().expect("dir");
    for name in ["laneway.db", "laneway.db-wal", "admin.token", "logs/x", "mine.txt"] {
        put(dir.path(), name, "x");
    }
    let isolates = Isolates::new(dir.path().join("isolates/instance"), dir.path().to_owned());
    let copy = isolates.enter(RunId::parse(RUN).expect("an id"), &cell("a"), dir.path()).expect("a copy");
    let names: Vec<_> =
        std::fs::read_dir(&copy).expect("dir").map(|entry| entry.expect("one").file_name()).collect();
    isolates.rest(RunId::parse(RUN).expect("an id")).expect("nothing stays mounted");
    assert_eq!(names, ["mine.txt"]);
}

#[test]
fn database_beside_its_directory_is_left_out_as_well() {
    for means in BOTH {
        let dir = tempfile::tempdir().expect("dir");
        for name in ["my.db", "my.db-wal", "my.db.d/logs/x", "mine.txt"] {
            put(dir.path(), name, "x");
        }
        let store_dir = dir.path().join("my.db.d");
        let isolates = Isolates::new(store_dir.join("isolates/instance"), store_dir);
        isolates.prefer(dir.path(), means);
        let run = RunId::parse(RUN).expect("an id");
        let copy = isolates.enter(run, &cell("a"), dir.path()).expect("a copy");
        let names: Vec<_> =
            std::fs::read_dir(&copy).expect("dir").map(|entry| entry.expect("one").file_name()).collect();
        isolates.rest(run).expect("nothing stays mounted");
        assert_eq!(names, ["mine.txt"], "{means:?}");
    }
}

#[test]
fn changes_are_found_by_content() {
    for means in BOTH {
        let place = Place::preferring(means);
        for path in [
            "same",
            "touched",
            "changed",
            "removed",
            "mode",
            "d/gone",
            "d/stays",
            "file_to_dir",
            "dir_to_file/x",
        ] {
            place.write(path, path);
        }
        symlink("same", place.base().join("link")).expect("a symlink");
        let copy = place.enter("a");
        put(&copy, "touched", "touched");
        // As long as before: only the content tells.
        put(&copy, "changed", "CHANGED");
        std::fs::remove_file(copy.join("removed")).expect("removed");
        std::fs::set_permissions(copy.join("mode"), PermissionsExt::from_mode(0o700)).expect("mode");
        std::fs::remove_file(copy.join("d/gone")).expect("removed");
        put(&copy, "new/deep/file", "new");
        std::fs::remove_file(copy.join("link")).expect("removed");
        symlink("touched", copy.join("link")).expect("a symlink");
        std::fs::remove_file(copy.join("file_to_dir")).expect("removed");
        put(&copy, "file_to_dir/inner", "x");
        std::fs::remove_dir_all(copy.join("dir_to_file")).expect("removed");
        put(&copy, "dir_to_file", "x");
        let expected = [
            "+changed",
            "-d/gone",
            "+dir_to_file",
            "-dir_to_file/x",
            "/file_to_dir",
            "+file_to_dir/inner",
            "@link",
            "+mode",
            "/new",
            "/new/deep",
            "+new/deep/file",
            "-removed",
        ];
        assert_eq!(place.changes("a"), expected, "{means:?}");
        let Merged::Applied(_) = place.merge(&["a"], &OnConflict::Fail) else { panic!("no conflict") };
        assert_eq!((place.read("changed"), place.read("removed")), ("CHANGED".into(), "nothing".into()));
        assert_eq!((place.read("file_to_dir/inner"), place.read("dir_to_file")), ("x".into(), "x".into()));
        assert_eq!(std::fs::metadata(place.base().join("mode")).expect("there").mode() & 0o777, 0o700);
        assert_eq!(std::fs::read_link(place.base().join("link")).expect("a symlink"), Path::new("touched"));
        assert!(!place.base().join("d/gone").exists() && place.base().join("d/stays").exists());
        assert_eq!(
            std::fs::read_to_string(place.base().join(".laneway/laneway.db")).expect("there"),
            "store"
        );
    }
}

#[test]
fn conflict_applies_nothing_and_the_one_that_is_kept_decides_it() {
    for means in BOTH {
        let place = Place::preferring(means);
        place.write("shared", "0");
        place.write("only", "0");
        let (a, b) = (place.enter("a"), place.enter("b"));
        put(&a, "shared", "a");
        put(&b, "shared", "b");
        put(&b, "only", "b");
        let Merged::Refused(why) = place.merge(&["a", "b"], &OnConflict::Fail) else { panic!("a conflict") };
        assert!(why.contains("shared (a, b)") && !why.contains("only"), "{why}");
        assert_eq!((place.read("shared"), place.read("only")), ("0".into(), "0".into()), "{means:?}");
        let Merged::Applied(combined) = place.merge(&["a", "b"], &OnConflict::Keep("a".into())) else {
            panic!("decided")
        };
        assert_eq!(combined.conflicts.len(), 1);
        assert_eq!((place.read("shared"), place.read("only")), ("a".into(), "b".into()), "{means:?}");
    }
}

#[test]
fn merge_that_was_interrupted_does_the_same_again() {
    let place = Place::preferring(Means::Copy);
    place.write("file", "base");
    let (a, b) = (place.enter("a"), place.enter("b"));
    // It has the content that it had, and only looking at what it was made of can tell.
    put(&a, "file", "base");
    put(&b, "file", "b");
    put(&b, "later", "b");
    let sources: Vec<Source> = ["a", "b"]
        .into_iter()
        .enumerate()
        .map(|(index, step)| Source { index, cell: cell(step), output: Default::default() })
        .collect();
    let decided =
        place.isolates.decide(place.run, &place.base(), &sources, &BTreeSet::new(), &OnConflict::Fail);
    let decided = decided.expect("compared");
    let combined = decided.expect("no conflict");
    let journal = place.isolates.home.join(RUN).join("g.merge");
    apply::write_down(&journal, &["a.a1".into(), "b.a1".into()], &combined).expect("written");
    // The half of it, and a file under its first name.
    place.write("file", "b");
    place.write(".laneway-merge.tmp", "half");
    let Merged::Applied(again) = place.merge(&["a", "b"], &OnConflict::Fail) else { panic!("no conflict") };
    assert_eq!(again, combined);
    assert_eq!((place.read("file"), place.read("later")), ("b".into(), "b".into()));
    assert!(!place.base().join(".laneway-merge.tmp").exists());
}

#[test]
fn copy_that_is_gone_is_told_unless_it_was_merged_before() {
    let place = Place::preferring(Means::Copy);
    let a = place.enter("a");
    put(&a, "x", "a");
    let source = [Source { index: 0, cell: cell("b"), output: Default::default() }];
    let missing = place.isolates.merge(place.run, "g", &place.base(), &source, &OnConflict::Fail);
    assert_eq!(
        missing.expect_err("there is none").to_string(),
        "the copy in which `b` worked is gone; run it again with `laneway retry RUN --from b`"
    );
    place.merge(&["a"], &OnConflict::Fail);
    place.isolates.remove(place.run).expect("removed");
    assert!(!a.exists());
    std::fs::remove_file(place.isolates.home.join(RUN).join("g.merge")).expect("removed");
    let Merged::Applied(combined) = place.merge(&["a"], &OnConflict::Fail) else { panic!("nothing to do") };
    assert_eq!(combined, Combined::default());
    place.isolates.forget(place.run).expect("removed");
    assert!(place.isolates.runs().is_empty());
}

#[test]
fn merge_that_was_done_leaves_alone_what_was_changed_since() {
    for means in BOTH {
        let place = Place::preferring(means);
        place.write("file", "0");
        let (a, b) = (place.enter("a"), place.enter("b"));
        put(&a, "of_a", "a");
        put(&b, "file", "b");
        let Merged::Applied(first) = place.merge(&["a", "b"], &OnConflict::Fail) else {
            panic!("no conflict")
        };
        place.write("file", "by a step behind it");
        let Merged::Applied(again) = place.merge(&["a", "b"], &OnConflict::Fail) else {
            panic!("it is done")
        };
        assert_eq!((again, place.read("file")), (first.clone(), "by a step behind it".into()), "{means:?}");
        // One of them is run again, and only what that changed is merged.
        let second = CellName { step: "a".into(), attempt: 2 };
        let a = place.isolates.enter(place.run, &second, &place.base()).expect("a copy");
        put(&a, "of_a", "a again");
        let said = serde_json::json!({"files_changed": ["file"]});
        let source = |index, cell, output: &serde_json::Value| Source {
            index,
            cell,
            output: output.as_object().cloned().unwrap_or_default(),
        };
        let sources = [source(0, second, &serde_json::Value::Null), source(1, cell("b"), &said)];
        let merged = place.isolates.merge(place.run, "g", &place.base(), &sources, &OnConflict::Fail);
        let Merged::Applied(combined) = merged.expect("an answer") else { panic!("no conflict") };
        assert_eq!(combined.applies.len(), 1, "{combined:?}");
        assert_eq!(
            (place.read("of_a"), place.read("file")),
            ("a again".into(), "by a step behind it".into())
        );
        // The copies of a run that succeeded are gone.
        place.isolates.remove(place.run).expect("removed");
        let merged = place.isolates.merge(place.run, "g", &place.base(), &sources, &OnConflict::Fail);
        assert!(matches!(merged, Ok(Merged::Applied(again)) if again == combined), "{means:?}");
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").mode() & 0o777
}

#[test]
fn directory_that_one_removes_and_another_adds_to_keeps_its_mode() {
    for means in BOTH {
        let place = Place::preferring(means);
        place.write("d/x", "0");
        std::fs::set_permissions(place.base().join("d"), PermissionsExt::from_mode(0o700)).expect("mode");
        let (a, b) = (place.enter("a"), place.enter("b"));
        std::fs::remove_dir_all(a.join("d")).expect("removed");
        put(&b, "d/y", "b");
        let Merged::Applied(_) = place.merge(&["a", "b"], &OnConflict::Fail) else { panic!("no conflict") };
        assert_eq!((place.read("d/x"), place.read("d/y")), ("nothing".into(), "b".into()), "{means:?}");
        assert_eq!(mode(&place.base().join("d")), 0o700, "{means:?}");
    }
}

#[test]
fn what_stands_in_the_way_is_found_before_anything_is_touched() {
    let place = Place::preferring(Means::Copy);
    place.write("d/x", "0");
    place.write("a", "0");
    let a = place.enter("a");
    std::fs::remove_dir_all(a.join("d")).expect("removed");
    put(&a, "d", "a file");
    put(&a, "a", "changed");
    place.write("d/later", "by somebody else");
    let source = [Source { index: 0, cell: cell("a"), output: Default::default() }];
    let refused = place.isolates.merge(place.run, "g", &place.base(), &source, &OnConflict::Fail);
    assert!(matches!(refused, Err(Error::NotEmpty { .. })), "{refused:?}");
    assert_eq!((place.read("a"), place.read("d/x")), ("0".into(), "0".into()), "nothing was applied");
}

/// Of a node that is not root, which a closed directory stops.
#[cfg(target_os = "linux")]
#[test]
fn directories_that_are_closed_to_writing_are_filled_and_closed_again() {
    let merge = || {
        let place = Place::preferring(Means::Copy);
        place.write("kept/x", "0");
        let close =
            |path: &Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o555)).expect("mode");
        close(&place.base().join("kept"));
        let a = place.enter("a");
        put(&a, "new/deep/file", "a");
        close(&a.join("new/deep"));
        close(&a.join("new"));
        std::fs::set_permissions(a.join("kept"), PermissionsExt::from_mode(0o755)).expect("mode");
        put(&a, "kept/y", "a");
        std::fs::remove_file(a.join("kept/x")).expect("removed");
        close(&a.join("kept"));
        let Merged::Applied(_) = place.merge(&["a"], &OnConflict::Fail) else { panic!("no conflict") };
        assert_eq!((place.read("new/deep/file"), place.read("kept/y")), ("a".into(), "a".into()));
        assert!(!place.base().join("kept/x").exists());
        let closed = ["new", "new/deep", "kept"].map(|path| place.base().join(path));
        assert_eq!(closed.each_ref().map(|path| mode(path)), [0o555; 3]);
        for path in closed.iter().chain(&["new", "new/deep", "kept"].map(|path| a.join(path))) {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("mode");
        }
    };
    let not_root = std::thread::spawn(move || {
        if rustix::process::getuid().is_root() {
            // Of this thread alone, which ends with it.
            let nobody = rustix::process::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
        }
        merge();
    });
    not_root.join().expect("it is merged");
}

#[test]
fn nothing_is_written_through_a_symlink_that_leads_out() {
    let place = Place::preferring(Means::Copy);
    place.write("d/f", "0");
    let a = place.enter("a");
    put(&a, "d/f", "a");
    let outside = place.dir.path().join("outside");
    put(&outside, "f", "outside");
    std::fs::remove_dir_all(place.base().join("d")).expect("removed");
    symlink(&outside, place.base().join("d")).expect("a symlink");
    let source = [Source { index: 0, cell: cell("a"), output: Default::default() }];
    let refused = place.isolates.merge(place.run, "g", &place.base(), &source, &OnConflict::Fail);
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(std::fs::read_to_string(outside.join("f")).expect("there"), "outside");
}

#[test]
fn only_what_was_made_here_is_removed() {
    let place = Place::preferring(Means::Copy);
    let outside = place.dir.path().join("outside");
    put(&outside, "precious", "x");
    let a = place.enter("a");
    symlink(&outside, a.join("way_out")).expect("a symlink");
    let of_run = place.isolates.home.join(RUN);
    // A symlink, and a directory with the very mark of a cell, in the places of cells.
    symlink(&outside, of_run.join("b.a1")).expect("a symlink");
    assert!(matches!(mark::remove(&of_run.join("b.a1")), Err(Error::NotOurs { .. })));
    std::fs::rename(&outside, of_run.join("c.a1")).expect("moved");
    std::fs::copy(of_run.join("a.a1/mark"), of_run.join("c.a1/mark")).expect("copied");
    assert!(matches!(mark::remove(&of_run.join("c.a1")), Err(Error::NotOurs { .. })));
    std::fs::rename(of_run.join("c.a1"), &outside).expect("moved");
    mark::remove(&of_run.join("a.a1")).expect("it is ours");
    assert!(!of_run.join("a.a1").exists() && outside.join("precious").exists());
}

/// P2.
#[test]
fn absolute_symlinks_lead_into_the_copy_and_back_when_it_is_merged() {
    for means in [Means::Copy, Means::Overlay] {
        let place = Place::preferring(means);
        let (base, alias) = (place.base(), place.dir.path().join("alias"));
        symlink(&base, &alias).expect("a symlink");
        place.write("data/file", "one");
        place.write("deep/in/beside", "");
        let closed = std::fs::Permissions::from_mode(0o750);
        std::fs::set_permissions(base.join("deep/in"), closed).expect("set");
        for (target, name) in [
            (base.join("data"), "link"),
            (base.join("data/file"), "deep/in/file"),
            (base.join("deep/../data/nothing"), "deep/nothing"),
            (alias.join("data"), "by_alias"),
            (base.clone(), "self"),
            (base.join("../elsewhere"), "elsewhere"),
            (PathBuf::from("data"), "relative"),
        ] {
            symlink(target, base.join(name)).expect("a symlink");
        }
        std::fs::create_dir(place.dir.path().join("elsewhere")).expect("made");
        let a = place.enter("a");
        let led = |name: &str| a.join(name).canonicalize().expect("it leads somewhere");
        assert_eq!(led("elsewhere"), place.dir.path().join("elsewhere").canonicalize().expect("there"));
        for name in ["link", "by_alias", "self/data", "relative"] {
            assert_eq!(led(name), led("data"), "{means:?} {name}");
            std::fs::write(a.join(name).join("file"), name).expect("written");
            assert_eq!(std::fs::read_to_string(a.join("deep/in/file")).expect("read"), name);
            assert_eq!(place.read("data/file"), "one", "{means:?}: the run's own");
        }
        std::fs::write(a.join("deep/nothing"), "made").expect("written");
        assert_eq!(mode(&a.join("deep/in")), 0o750);
        let mut all: Vec<_> = std::fs::read_dir(a.join("deep/in")).expect("read").flatten().collect();
        all.sort_by_key(std::fs::DirEntry::file_name);
        assert_eq!(all.iter().map(std::fs::DirEntry::file_name).collect::<Vec<_>>(), ["beside", "file"]);
        assert_eq!(place.changes("a"), ["+data/file", "+data/nothing"], "{means:?}: no link has changed");

        // One that it makes, one that it changes, one that it makes anew, as it was, and one that it removes.
        symlink(a.join("data/nothing"), a.join("deep/made")).expect("a symlink");
        for (name, target) in [("link", a.join("deep")), ("by_alias", alias.join("data"))] {
            std::fs::remove_file(a.join(name)).expect("removed");
            symlink(target, a.join(name)).expect("a symlink");
        }
        std::fs::remove_file(a.join("self")).expect("removed");
        let changed = ["+data/file", "+data/nothing", "@deep/made", "@link", "-self"];
        assert_eq!(place.changes("a"), changed, "{means:?}");
        assert!(matches!(place.merge(&["a"], &OnConflict::Fail), Merged::Applied(_)));
        let read_link = |name: &str| std::fs::read_link(base.join(name)).expect("a symlink");
        assert_eq!(read_link("deep/made"), base.join("data/nothing"));
        assert_eq!(read_link("link"), base.join("deep"));
        assert_eq!(read_link("by_alias"), alias.join("data"));
        assert_eq!(read_link("deep/in/file"), base.join("data/file"));
        assert_eq!(
            (place.read("deep/nothing"), place.read("self/data/file")),
            ("made".into(), "nothing".into())
        );
    }
}

#[test]
fn symlink_swapped_in_while_a_tree_is_copied_leads_nobody_out() {
    // In memory where the system has such a place: the disk has no part in it.
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let dir = tempfile::tempdir_in(parent).expect("dir");
    let (base, outside) = (dir.path().join("base"), dir.path().join("outside"));
    put(&outside, "inner", "secret");
    put(&outside, "file", "secret");
    put(&base, "d/inner", "fine");
    put(&base, "f", "fine");
    symlink(&outside, dir.path().join("to_dir")).expect("a symlink");
    symlink(outside.join("file"), dir.path().join("to_file")).expect("a symlink");
    let is_over = AtomicBool::new(false);
    let swap = |one: &Path, other: &Path| {
        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).expect("swapped");
    };
    let mut seen = [false; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                swap(&base.join("d"), &dir.path().join("to_dir"));
                swap(&base.join("f"), &dir.path().join("to_file"));
            }
        });
        let (from, _) = walk::root(&base).expect("there");
        for number in 0..10_000 {
            let into = dir.path().join(format!("into-{number}"));
            std::fs::create_dir(&into).expect("made");
            let (to, _) = walk::root(&into).expect("there");
            // It may be told that something changes under its hands.
            let links = Links::between(&base, &into).expect("there");
            let how = copy::How { hidden: &BTreeSet::new(), can_clone: false, links: &links };
            let _ = copy::tree(&from, &to, &base, &how);
            for path in ["d/inner", "f"] {
                let copied = into.join(path);
                let is_link =
                    |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
                if is_link(&into.join("d")) && path == "d/inner" || is_link(&copied) {
                    seen[1] = true;
                    continue;
                }
                if let Ok(text) = std::fs::read_to_string(&copied) {
                    seen[0] = true;
                    assert_eq!(text, "fine", "try {number}: {path} came from outside");
                }
            }
            std::fs::remove_dir_all(&into).expect("removed");
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(seen, [true, true], "both were met, or nothing was tried");
}
