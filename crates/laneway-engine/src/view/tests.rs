//! Real directories, as overlays and as copies: what is captured must be equal. Overlays take root.

use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;

use laneway_core::definition::OnConflict;
use laneway_core::layer::{LayerEntry, LayerPosition, MAX_PACKED_BYTES, OrderedLayer, compose};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use laneway_core::hash::ContentHash;

use super::*;

const RUN: &str = "0190d5a0-0000-7000-8000-000000000001";
const MEANS: [Means; 2] = [Means::Overlay, Means::Copy];

/// A time that no file of a test gets by itself.
const OLD: i64 = 1_000_000_000_000_000_000;

struct Node {
    dir: TempDir,
    views: Views,
}

impl Node {
    fn preferring(means: Means) -> Self {
        let dir = tempfile::tempdir().expect("dir");
        std::fs::create_dir(dir.path().join("bundle")).expect("made");
        let views = Views::new(dir.path().join("views"));
        views.prefer(means);
        Self { dir, views }
    }

    fn bundle(&self) -> PathBuf {
        self.dir.path().join("bundle")
    }

    fn enter(&self, layers: &[LayerDir]) -> View {
        self.views.enter(run(), &self.bundle(), layers, &EnterOptions::default()).expect("a view")
    }

    /// Does something in a view, and unpacks what it left as a layer.
    fn layer(&self, name: &str, layers: &[LayerDir], work: impl FnOnce(&Path)) -> LayerDir {
        let view = self.enter(layers);
        work(view.dir());
        let captured = self.views.capture(&view, &[]).expect("captured");
        let layer = self.unpacked(name, &captured);
        self.views.leave(view).expect("left");
        layer
    }

    fn unpacked(&self, name: &str, captured: &Captured) -> LayerDir {
        let packed = pack(captured).expect("packed");
        let fetch = |hash: &ContentHash, to: &Path| {
            let large = packed.large.iter().find(|large| large.hash == *hash).expect("it is listed");
            std::fs::copy(&large.path, to).map(drop)
        };
        unpack(&packed.manifest_and_small, &self.dir.path().join("layers").join(name), fetch)
            .expect("unpacked")
    }

    /// Everything in a new view of these layers, by path.
    fn shown(&self, layers: &[LayerDir]) -> Vec<String> {
        let view = self.enter(layers);
        let shown = listing(view.dir());
        self.views.leave(view).expect("left");
        shown
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Views that a failed test left are not in use any more.
        if let Err(error) = self.views.tidy() {
            eprintln!("a view is left: {error}");
        }
    }
}

fn run() -> RunId {
    RunId::parse(RUN).expect("an id")
}

fn put(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
    std::fs::write(path, text).expect("written");
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("set");
}

/// Gives everything below a directory the same time, deepest first. What has it already is not touched.
fn age(dir: &Path) {
    let time = Timespec { tv_sec: OLD / 1_000_000_000, tv_nsec: 7 };
    let times = Timestamps { last_access: time, last_modification: time };
    for entry in std::fs::read_dir(dir).expect("read").flatten() {
        if entry.file_type().expect("a type").is_dir() {
            age(&entry.path());
        }
        let found = entry.metadata().expect("there");
        if (found.mtime(), found.mtime_nsec()) != (OLD / 1_000_000_000, 7) {
            utimensat(CWD, entry.path(), &times, AtFlags::SYMLINK_NOFOLLOW).expect("set");
        }
    }
}

fn listing(dir: &Path) -> Vec<String> {
    fn list(dir: &Path, top: &Path, all: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("read").flatten() {
            let (path, found) = (entry.path(), entry.path().symlink_metadata().expect("there"));
            let relative = path.strip_prefix(top).expect("below").display().to_string();
            let what = if found.is_dir() {
                "/".to_owned()
            } else if found.is_symlink() {
                format!(" -> {}", std::fs::read_link(&path).expect("a symlink").display())
            } else if !found.is_file() {
                " other".to_owned()
            } else {
                let bytes = std::fs::read(&path).expect("read");
                format!(" {} {}", ContentHash::of(&bytes).short(), bytes.len())
            };
            let time = found.mtime() * 1_000_000_000 + found.mtime_nsec();
            all.push(format!("{relative}{what} {:o} {time} {}", found.mode() & 0o7777, found.uid()));
            if found.is_dir() {
                list(&path, top, all);
            }
        }
    }
    let mut all = Vec::new();
    list(dir, dir, &mut all);
    all.sort();
    all
}

/// `+` a file, `@` a symlink, `/` a directory, `-` removed.
fn told(captured: &Captured) -> String {
    let one = |(path, entry): (&PathBuf, &LayerEntry)| {
        let sign = match entry {
            LayerEntry::Removed => "-",
            LayerEntry::Directory { .. } => "/",
            LayerEntry::Symlink { .. } => "@",
            LayerEntry::File { .. } => "+",
        };
        format!("{sign}{}", path.display())
    };
    captured.manifest().entries.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Mount points below a directory, by the kernel's own list.
fn mounts_below(dir: &Path) -> usize {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("Linux");
    mounts
        .lines()
        .filter(|line| line.split(' ').nth(4).is_some_and(|at| Path::new(at).starts_with(dir)))
        .count()
}

#[test]
fn overlay_and_copy_capture_the_same_changes() {
    let captured = MEANS.map(|means| {
        let node = Node::preferring(means);
        for (path, text) in [
            ("kept", "1"),
            ("edited", "1"),
            ("d/gone", "1"),
            ("d/moved", "1"),
            ("tree/a/b", "1"),
            ("file", "1"),
            ("touched", "1"),
            ("again", "1"),
        ] {
            put(&node.bundle(), path, text);
        }
        put(&node.bundle(), "remade/same", "1");
        put(&node.bundle(), "remade/other", "1");
        age(&node.bundle());
        let first = node.layer("first", &[], |dir| {
            put(dir, "made/by first", "1");
            symlink("/etc/passwd", dir.join("out")).expect("made");
            symlink("kept", dir.join("link")).expect("made");
            put(dir, "big", &"x".repeat(MAX_PACKED_BYTES as usize + 1));
            age(dir);
        });
        let view = node.enter(std::slice::from_ref(&first));
        assert_eq!(view.means(), Some(means));
        let dir = view.dir();
        put(dir, "edited", "2");
        put(dir, "new\nline,with:all\\of it", "2");
        put(dir, "again", "1");
        std::fs::remove_file(dir.join("d/gone")).expect("removed");
        std::fs::rename(dir.join("d/moved"), dir.join("moved")).expect("moved");
        std::fs::remove_dir_all(dir.join("tree")).expect("removed");
        // Directory and file take each other's place.
        std::fs::remove_file(dir.join("file")).expect("removed");
        put(dir, "file/inside", "2");
        std::fs::remove_dir_all(dir.join("made")).expect("removed");
        put(dir, "made", "2");
        std::fs::remove_dir_all(dir.join("remade")).expect("removed");
        put(dir, "remade/same", "1");
        std::fs::File::open(dir.join("touched"))
            .and_then(|file| file.set_modified(std::time::UNIX_EPOCH))
            .expect("set");
        std::fs::create_dir_all(dir.join("empty/deep")).expect("made");
        set_mode(&dir.join("kept"), 0o4700);
        set_mode(&dir.join("empty"), 0o1777);
        std::fs::remove_file(dir.join("link")).expect("removed");
        symlink("edited", dir.join("link")).expect("made");
        std::os::unix::fs::chown(dir.join("edited"), Some(1234), Some(4321)).expect("root");
        mknodat(CWD, dir.join("pipe"), FileType::Fifo, Mode::RUSR, 0).expect("made");
        let _socket = UnixListener::bind(dir.join("socket")).expect("bound");
        age(dir);
        let captured = node.views.capture(&view, &[]).expect("captured");
        let before = listing(view.dir());
        let second = node.unpacked("second", &captured);
        node.views.leave(view).expect("left");
        // A new view of both shows what the step left, but for what no layer keeps.
        let left: Vec<String> = before
            .into_iter()
            .filter(|line| !["pipe ", "socket ", "touched "].iter().any(|name| line.starts_with(name)))
            .map(|line| line.replace(" 4700 ", " 700 "))
            .collect();
        let mut shown = node.shown(&[first, second]);
        shown.retain(|line| !line.starts_with("touched "));
        assert_eq!(shown, left, "{means:?}");
        captured
    });
    assert_eq!(captured[0].manifest(), captured[1].manifest());
    assert_eq!(
        told(&captured[0]),
        "/d -d/gone -d/moved +edited /empty /empty/deep /file +file/inside +kept @link +made +moved \
         +new\nline,with:all\\of it /remade -remade/other -tree"
    );
    let written = captured[0].written();
    assert!(written.contains(Path::new("again")), "also with the content that it had: {written:?}");
    assert_eq!(written, captured[1].written());
    assert!(!written.contains(Path::new("big")) && !written.contains(Path::new("d/gone")));
}

#[test]
fn step_that_leaves_nothing_in_an_empty_workspace_costs_no_mount_and_no_layer() {
    let node = Node::preferring(Means::Overlay);
    let view = node.enter(&[]);
    assert_eq!((view.means(), mounts_below(node.dir.path())), (None, 0));
    assert_eq!(
        view.dir().metadata().expect("there").mode() & 0o777,
        node.bundle().metadata().expect("there").mode() & 0o777
    );
    let captured = node.views.capture(&view, &[]).expect("captured");
    assert!(captured.is_empty() && captured.written().is_empty());
    put(view.dir(), "d/x", "1");
    assert_eq!(told(&node.views.capture(&view, &[]).expect("captured")), "/d +d/x");
    node.views.leave(view).expect("left");
    assert_eq!(std::fs::read_dir(node.dir.path().join("views")).expect("read").count(), 1, "the lock");
}

#[test]
fn twenty_thousand_files_of_a_lower_layer_are_neither_read_nor_copied_to_enter() {
    let node = Node::preferring(Means::Overlay);
    put(&node.bundle(), "run.sh", "");
    let modules = node.layer("modules", &[], |dir| {
        for package in 0..200 {
            let package = dir.join(format!("node_modules/p{package}"));
            std::fs::create_dir_all(&package).expect("made");
            for file in 0..100 {
                std::fs::write(package.join(format!("f{file}.js")), "module").expect("written");
            }
        }
    });
    // Without its manifest: whoever reads that, or makes a copy by it, fails.
    std::fs::rename(modules.path().join("manifest"), modules.path().join("aside")).expect("moved");
    let text = std::fs::read(modules.path().join("aside")).expect("read");
    let head: Vec<u8> = text.iter().copied().take_while(|byte| *byte != b'\n').chain([b'\n']).collect();
    std::fs::write(modules.path().join("manifest"), head).expect("written");
    let modules = LayerDir::open(modules.path()).expect("opened");
    let view = node.enter(&[modules]);
    assert_eq!((view.means(), mounts_below(node.dir.path())), (Some(Means::Overlay), 1));
    assert_eq!(std::fs::read_dir(view.changed_root()).expect("read").count(), 0, "nothing was written");
    assert!(view.dir().join("node_modules/p199/f99.js").exists());
    // And none of them to find that nothing changed.
    assert!(node.views.capture(&view, &[]).expect("captured").is_empty());
    node.views.leave(view).expect("left");
    assert_eq!(mounts_below(node.dir.path()), 0);
}

#[test]
fn views_of_a_run_have_the_lowest_numbers_that_are_free() {
    let node = Node::preferring(Means::Overlay);
    put(&node.bundle(), "x", "1");
    let [one, two, three] = [(); 3].map(|()| node.enter(&[]));
    let number = |view: &View| {
        let path =
            view.dir().strip_prefix(node.dir.path().join("views").join(RUN)).expect("below").to_owned();
        path.display().to_string()
    };
    assert_eq!([&one, &two, &three].map(number), ["1/at/tree", "2/at/tree", "3/at/tree"]);
    std::fs::write(one.dir().join("../x"), "by accident").expect("written");
    assert!(!two.dir().join("../x").exists());
    node.views.leave(two).expect("left");
    let again = node.enter(&[]);
    assert_eq!(number(&again), "2/at/tree");
    for view in [one, again, three] {
        node.views.leave(view).expect("left");
    }
    assert_eq!(number(&node.enter(&[])), "1/at/tree");
}

#[test]
fn placed_files_that_the_step_left_alone_are_no_change() {
    for means in MEANS {
        for is_empty in [false, true] {
            let node = Node::preferring(means);
            if !is_empty {
                put(&node.bundle(), "lower", "1");
                put(&node.bundle(), "in/lower", "1");
            }
            let view = node.enter(&[]);
            let dir = view.dir();
            let paths = ["in/deep/kept", "in/deep/changed", "in/lower", "gone/x", "with/x"];
            paths.iter().for_each(|path| put(dir, path, "placed"));
            let placed = paths.map(|path| view.placed(Path::new(path)).expect("placed"));
            std::fs::write(dir.join("in/deep/changed"), "by step").expect("written");
            std::fs::remove_file(dir.join("gone/x")).expect("removed");
            put(dir, "with/own", "2");
            let captured = node.views.capture(&view, &placed).expect("captured");
            assert_eq!(
                told(&captured),
                "/in /in/deep +in/deep/changed /with +with/own",
                "{means:?} {is_empty}"
            );
            let written: Vec<_> = captured.written().iter().map(|path| path.display().to_string()).collect();
            assert_eq!(written, ["in/deep/changed", "with/own"]);
            node.views.leave(view).expect("left");
        }
    }
}

#[test]
fn conflict_that_was_decided_is_in_the_view_and_in_the_layer_of_its_step() {
    for means in MEANS {
        let node = Node::preferring(means);
        put(&node.bundle(), "x", "0");
        put(&node.bundle(), "d/f", "0");
        let a = node.layer("a", &[], |dir| {
            put(dir, "x", "a");
            std::fs::remove_dir_all(dir.join("d")).expect("removed");
        });
        let b = node.layer("b", &[], |dir| {
            put(dir, "x", "b");
            put(dir, "d/f", "b");
        });
        let layers = [a, b];
        let positions = [0, 1].map(|index| LayerPosition {
            index,
            step: ["a", "b"][index].to_owned(),
            after: BTreeSet::new(),
        });
        let manifests = layers.each_ref().map(|layer| layer.manifest().expect("read"));
        let ordered = [0, 1].map(|at| OrderedLayer { position: &positions[at], manifest: &manifests[at] });
        for (step, shown) in [("a", "d-a x=a"), ("b", "d/f x=b")] {
            assert!(compose(&ordered, &OnConflict::Fail).is_err());
            let composed = compose(&ordered, &OnConflict::Keep(step.to_owned())).expect("decided");
            let options = EnterOptions { decisions: composed.decisions };
            let view = node.views.enter(run(), &node.bundle(), &layers, &options).expect("a view");
            assert_eq!(std::fs::read_to_string(view.dir().join("x")).expect("there"), step, "{shown}");
            let found = std::fs::read_to_string(view.dir().join("d/f")).ok();
            assert_eq!(found.as_deref(), (step == "b").then_some("b"), "{means:?}");
            let captured = node.views.capture(&view, &[]).expect("captured");
            let expected = if step == "a" { "-d +x" } else { "/d +d/f +x" };
            assert_eq!(told(&captured), expected, "{means:?}");
            // A step behind it has no conflict any more.
            let behind = LayerPosition { index: 2, step: "c".into(), after: [0, 1].into() };
            let third = OrderedLayer { position: &behind, manifest: captured.manifest() };
            let all = compose(&[ordered[0], ordered[1], third], &OnConflict::Fail);
            assert_eq!(all.expect("none").decisions.len(), 0);
            node.views.leave(view).expect("left");
        }
    }
}

#[test]
fn hundreds_of_layers_fit_and_are_squashed_once() {
    let node = Node::preferring(Means::Overlay);
    put(&node.bundle(), "base", "0");
    let mut layers = Vec::new();
    for number in 0..300 {
        // Unpacked as they would be: each changes, adds, removes and makes a directory anew.
        let layer_of = |text: String| {
            let view = View {
                cell: Cell::claim(&node.views.root, run()).expect("claimed"),
                dir: node.dir.path().join("unused"),
                means: None,
                bundle: node.bundle(),
                layers: Vec::new(),
                copied: None,
                decided: BTreeSet::new(),
                _squashed: Vec::new(),
            };
            std::fs::create_dir_all(view.cell.tree()).expect("made");
            let view = View { dir: view.cell.tree(), ..view };
            put(view.dir(), "last", &text);
            put(view.dir(), &format!("d/{number}"), &text);
            let mut captured = node.views.capture(&view, &[]).expect("captured");
            if number % 10 == 5 {
                let gone = PathBuf::from(format!("d/{}", number - 1));
                captured.manifest.entries.insert(gone, LayerEntry::Removed);
            }
            let layer = node.unpacked(&number.to_string(), &captured);
            node.views.leave(view).expect("left");
            layer
        };
        layers.push(layer_of(number.to_string()));
    }
    let shown = node.shown(&layers);
    assert_eq!(shown.len(), 2 + 1 + 270, "`base`, `last`, `d` and what is in it");
    let squashed = node.dir.path().join("views/squashed");
    let made = || {
        std::fs::read_dir(&squashed)
            .expect("read")
            .flatten()
            .map(|entry| entry.file_name())
            .collect::<BTreeSet<_>>()
    };
    let first = made();
    assert_eq!(first.len(), 4);
    // A longer chain finds what the shorter one made.
    node.shown(&layers[..299]);
    assert_eq!(made(), first);
    let copies = Views::new(node.dir.path().join("copies"));
    copies.prefer(Means::Copy);
    let view = copies.enter(run(), &node.bundle(), &layers, &EnterOptions::default()).expect("a view");
    assert_eq!(listing(view.dir()), shown);
    copies.leave(view).expect("left");
}

#[test]
fn view_of_a_dead_process_is_removed_and_one_in_use_is_not() {
    let node = Node::preferring(Means::Overlay);
    put(&node.bundle(), "x", "1");
    let (dead, used) = (node.enter(&[]), node.enter(&[]));
    put(dead.dir(), "work", "1");
    let outside = node.dir.path().join("outside");
    put(&outside, "precious", "x");
    // In the places of views: a symlink, and a directory with the mark of another one.
    let of_run = node.dir.path().join("views").join(RUN);
    symlink(&outside, of_run.join("3")).expect("made");
    std::fs::create_dir(of_run.join("4")).expect("made");
    std::fs::copy(of_run.join("1/mark"), of_run.join("4/mark")).expect("copied");
    put(&of_run, "4/precious", "x");
    // The process that held it ends: its lock goes, the mount stays.
    let path = dead.dir().to_owned();
    drop(dead);
    assert_eq!(mounts_below(node.dir.path()), 2);
    Views::new(node.views.root.clone()).tidy().expect("tidied");
    assert!(!path.exists() && used.dir().join("x").exists());
    assert_eq!(mounts_below(node.dir.path()), 1);
    assert!(outside.join("precious").exists() && of_run.join("4/precious").exists());
    node.views.leave(used).expect("left");
    assert_eq!(mounts_below(node.dir.path()), 0);
}

#[test]
fn what_the_node_cannot_read_fails_by_name_and_what_is_its_own_does_not() {
    let node = Node::preferring(Means::Copy);
    set_mode(node.dir.path(), 0o777);
    put(&node.bundle(), "x", "1");
    let (bundle, root) = (node.bundle(), node.dir.path().join("of nobody"));
    let not_root = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        // Of this thread alone, which ends with it.
        if rustix::process::getuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
        }
        let views = Views::new(root);
        let view = views.enter(run(), &bundle, &[], &EnterOptions::default()).expect("a copy");
        assert_eq!(view.means(), Some(Means::Copy), "who may not mount copies");
        put(view.dir(), "closed/in/file", "2");
        set_mode(&view.dir().join("closed/in/file"), 0o000);
        set_mode(&view.dir().join("closed/in"), 0o000);
        set_mode(&view.dir().join("closed"), 0o444);
        let captured = views.capture(&view, &[]).expect("captured");
        let modes: Vec<u32> =
            captured.manifest().entries.values().filter_map(|entry| Some(entry.attributes()?.mode)).collect();
        assert_eq!(
            (told(&captured), modes),
            ("/closed /closed/in +closed/in/file".into(), vec![0o444, 0, 0])
        );
        let packed = pack(&captured).expect("packed");
        let layer = view.dir().join("../layer");
        let layer = unpack(&packed.manifest_and_small, &layer, |_, _| unreachable!()).expect("unpacked");
        assert!(layer.manifest().expect("read").entries.len() == 3);
        (views, view)
    });
    let (views, view) = not_root.join().expect("it works");
    // Root of a container leaves what the node cannot read.
    put(view.dir(), "by root", "3");
    std::os::unix::fs::chown(view.dir().join("by root"), Some(0), Some(0)).expect("root");
    set_mode(&view.dir().join("by root"), 0o600);
    let not_root = std::thread::spawn(move || {
        let nobody = rustix::process::Uid::from_raw(65534);
        if rustix::process::getuid().is_root() {
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
        }
        let error = views.capture(&view, &[]).expect_err("it cannot be read");
        assert!(matches!(&error, Error::Unreadable { path, .. } if path == Path::new("by root")), "{error}");
        views.leave(view).expect("left");
    });
    not_root.join().expect("it works");
}

#[test]
fn hostile_layer_is_rejected_and_nothing_is_left_of_it() {
    let node = Node::preferring(Means::Copy);
    let view = node.enter(&[]);
    put(view.dir(), "a", "content of a");
    put(view.dir(), "big", &"x".repeat(MAX_PACKED_BYTES as usize + 1));
    put(view.dir(), "d/b", "content of b");
    let captured = node.views.capture(&view, &[]).expect("captured");
    let packed = pack(&captured).expect("packed");
    assert_eq!((packed.paths, packed.large.len(), captured.largest(1)[0].0), (3, 1, Path::new("big")));
    let to = node.dir.path().join("layer");
    let good = packed.large[0].path.clone();
    let honest = |_: &ContentHash, to: &Path| std::fs::copy(&good, to).map(drop);
    let bytes = &packed.manifest_and_small;
    for end in 0..bytes.len() {
        let error = unpack(&bytes[..end], &to, honest).expect_err("it is cut off");
        assert!(matches!(error, Error::Rejected { .. }) && !to.exists(), "{end}: {error}");
    }
    let more = [bytes, &[0][..]].concat();
    assert!(matches!(unpack(&more, &to, honest), Err(Error::Rejected { .. })) && !to.exists());
    let lie = |_: &ContentHash, to: &Path| std::fs::write(to, "y".repeat(MAX_PACKED_BYTES as usize + 1));
    assert!(matches!(unpack(bytes, &to, lie), Err(Error::Rejected { .. })) && !to.exists());
    let outside = node.dir.path().join("outside");
    std::fs::write(&outside, "x".repeat(MAX_PACKED_BYTES as usize + 1)).expect("written");
    let link = |_: &ContentHash, to: &Path| symlink(&outside, to);
    assert!(unpack(bytes, &to, link).is_err() && !to.exists());
    // One byte at a time: nothing but what was packed comes out.
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        if let Ok(layer) = unpack(&damaged, &to, honest) {
            let manifest = layer.manifest().expect("read");
            assert_eq!(manifest.entries.len(), captured.manifest().entries.len());
            std::fs::remove_dir_all(&to).expect("removed");
        }
        assert!(!to.exists());
    }
    let layer = unpack(bytes, &to, honest).expect("unpacked");
    assert_eq!(&*LayerDir::open(&to).expect("opened").manifest().expect("read"), captured.manifest());
    assert!(unpack(bytes, &to, honest).is_err(), "it is there");
    assert_eq!(std::fs::read_to_string(layer.tree().join("d/b")).expect("read"), "content of b");
    node.views.leave(view).expect("left");
}

#[test]
fn equal_changes_are_equal_bytes_and_equal_contents_are_packed_once() {
    let packed = MEANS.map(|means| {
        let node = Node::preferring(means);
        put(&node.bundle(), "x", "1");
        let view = node.enter(&[]);
        for name in ["one", "two", "d/three"] {
            put(view.dir(), name, &"content".repeat(10_000));
            put(view.dir(), &format!("{name}.big"), &"x".repeat(MAX_PACKED_BYTES as usize + 1));
        }
        put(view.dir(), "empty", "");
        age(view.dir());
        let captured = node.views.capture(&view, &[]).expect("captured");
        assert_eq!(captured.manifest().packed_bytes(), 70_000);
        let packed = pack(&captured).expect("packed");
        assert_eq!(packed.large.len(), 1);
        let layer = node.unpacked("layer", &captured);
        node.views.leave(view).expect("left");
        let shown = node.shown(&[layer]);
        assert_eq!(shown.len(), 1 + 8, "{shown:?}");
        packed.manifest_and_small
    });
    assert_eq!(packed[0], packed[1]);
    assert!(packed[0].len() < 2_000, "{}", packed[0].len());
}

#[test]
fn squashed_items_show_what_the_items_left() {
    let node = Node::preferring(Means::Overlay);
    put(&node.bundle(), "d/x", "0");
    let one = node.layer("one", &[], |dir| std::fs::remove_dir_all(dir.join("d")).expect("removed"));
    let two = node.layer("two", std::slice::from_ref(&one), |dir| put(dir, "d/y", "2"));
    let both = node.unpacked("both", &squash(&[one.clone(), two.clone()]).expect("squashed"));
    let shown = node.shown(&[one, two]);
    assert_eq!(shown.len(), 2);
    assert_eq!(node.shown(std::slice::from_ref(&both)), shown);
    node.views.prefer(Means::Copy);
    assert_eq!(node.shown(&[both]), shown);
}

#[test]
fn tree_that_is_too_deep_is_told_by_name() {
    for means in MEANS {
        let node = Node::preferring(means);
        put(&node.bundle(), "x", "1");
        let view = node.enter(&[]);
        let deepest = vec!["d"; laneway_core::layer::MAX_DEPTH - 1].join("/");
        put(view.dir(), &format!("{deepest}/file"), "1");
        let captured = node.views.capture(&view, &[]).expect("captured");
        assert_eq!(captured.manifest().paths(), 1);
        node.unpacked("deep", &captured);
        std::fs::create_dir_all(view.dir().join(&deepest).join("d/d")).expect("made");
        let error = node.views.capture(&view, &[]).expect_err("too deep");
        assert!(matches!(error, Error::TooDeep { .. }), "{error}");
        node.views.leave(view).expect("left");
    }
}
