//! Fifty steps that change files at random, on three nodes that are killed meanwhile. A model of
//! the tree says what each step must see, with modes, symlinks and what was removed; every step
//! compares.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rustix::process::Signal;

use crate::place::{Place, Running, text, until};
use crate::postgres::schema;

const LANES: usize = 5;
const STEPS_OF_LANE: usize = 3;
const PHASES: usize = 3;

/// Behind the last phase come steps one by one.
const STEPS: usize = 50;

/// Prints a tree: each path with its type, mode, target and content.
const LIST: &str = r#"
find . -mindepth 1 ! -path './plan*' ! -name flow.yaml -printf '%P %y %m %l\n' | LC_ALL=C sort | while read -r path type mode target; do
  case $type in f) echo "$path f $mode $(cat "$path")" ;; l) echo "$path l $target" ;; *) echo "$path d $mode" ;; esac
done
"#;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Directory,
    File { mode: u32, content: u32 },
    Symlink { target: String },
}

#[derive(Debug, Clone, Default)]
struct Tree(BTreeMap<String, Entry>);

/// A linear congruential generator: a seed says it all.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }
}

impl Tree {
    fn listed(&self) -> String {
        let mut lines: Vec<String> = self.0.iter().map(|(path, entry)| entry.listed(path)).collect();
        lines.sort();
        lines.into_iter().map(|line| line + "\n").collect()
    }

    fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.0.retain(|other, _| other != path && !other.starts_with(&below));
    }

    /// Changes something below a directory, and returns the command that does the same.
    fn change(&mut self, home: &str, dice: &mut Dice) -> String {
        let inner = dice.below(3);
        let path = format!("{home}/{}{}", ["", "a/", "a/b/"][inner], ["x", "y", "z", "a"][dice.below(4)]);
        let mut command = String::new();
        // The way to it is made of directories.
        let ways = ["", "/a", "/a/b"].iter().take(inner + 1).map(|way| format!("{home}{way}"));
        for way in ways.filter(|way| way.len() < path.len()).collect::<Vec<_>>() {
            if self.0.get(&way) != Some(&Entry::Directory) {
                self.remove(&way);
                self.0.insert(way.clone(), Entry::Directory);
                let _ = write!(command, "rm -rf {way}; mkdir {way}; chmod 755 {way}; ");
            }
        }
        self.remove(&path);
        let _ = write!(command, "rm -rf {path}; ");
        match dice.below(6) {
            0 => {}
            1 => {
                self.0.insert(path.clone(), Entry::Directory);
                let _ = write!(command, "mkdir {path}; chmod 755 {path}");
            }
            2 => {
                let target = ["x", "../nowhere", "a/b"][dice.below(3)].to_owned();
                let _ = write!(command, "ln -s {target} {path}");
                self.0.insert(path, Entry::Symlink { target });
            }
            _ => {
                let (mode, content) = ([0o644, 0o755, 0o600][dice.below(3)], dice.below(1_000) as u32);
                let _ = write!(command, "echo {content} > {path}; chmod {mode:o} {path}");
                self.0.insert(path, Entry::File { mode, content });
            }
        }
        command + "\n"
    }
}

impl Entry {
    fn listed(&self, path: &str) -> String {
        match self {
            Self::Directory => format!("{path} d 755"),
            Self::File { mode, content } => format!("{path} f {mode:o} {content}"),
            Self::Symlink { target } => format!("{path} l {target}"),
        }
    }
}

/// The document, and beside it what each step expects and does.
struct Workload {
    yaml: String,
    dice: Dice,
    steps: usize,
}

impl Workload {
    /// Lanes change files of their own, one beside the other; a step that needs all of them changes
    /// files of each, and the lanes go on from there.
    fn write(place: &Place, seed: u64) {
        std::fs::create_dir(place.path("plan")).expect("made");
        place.write("plan/list", LIST);
        let mut load = Self { yaml: "max_parallel: 6\nsteps:\n".to_owned(), dice: Dice(seed), steps: 0 };
        let (mut tree, mut joined) = (Tree::default(), None);
        for _ in 0..PHASES {
            let mut ends = Vec::new();
            let mut next = tree.clone();
            for lane in 0..LANES {
                let (mut own, mut needs) = (tree.clone(), Vec::from_iter(joined));
                let home = format!("lane{lane}");
                for _ in 0..STEPS_OF_LANE {
                    needs = vec![load.step(place, &needs, &mut own, &[home.as_str()])];
                }
                ends.extend(needs);
                next.remove(&home);
                let changed = own.0.into_iter().filter(|(path, _)| path.starts_with(&home));
                next.0.extend(changed);
            }
            tree = next;
            let homes: Vec<String> = (0..LANES).map(|lane| format!("lane{lane}")).collect();
            let homes: Vec<&str> = homes.iter().map(String::as_str).chain(["shared"]).collect();
            joined = Some(load.step(place, &ends, &mut tree, &homes));
        }
        while load.steps < STEPS {
            joined = Some(load.step(place, &Vec::from_iter(joined), &mut tree, &["shared", "lane0"]));
        }
        place.write("flow.yaml", &load.yaml);
    }

    fn step(&mut self, place: &Place, needs: &[usize], tree: &mut Tree, homes: &[&str]) -> usize {
        let number = self.steps;
        self.steps += 1;
        place.write(&format!("plan/{number}.sees"), &tree.listed());
        let mut does = String::from("set -e\n");
        for home in homes {
            (0..4).for_each(|_| does.push_str(&tree.change(home, &mut self.dice)));
            // So that nodes are killed in the middle of it.
            does.push_str("sleep 0.05\n");
        }
        place.write(&format!("plan/{number}.does"), &does);
        let needs: Vec<String> = needs.iter().map(|need| format!("s{need}")).collect();
        let _ = writeln!(
            self.yaml,
            "  s{number}: {{needs: [{}], run: 'umask 022; sh plan/list | diff - plan/{number}.sees; sh plan/{number}.does'}}",
            needs.join(", ")
        );
        number
    }
}

fn fifty_steps_see_exactly_their_files(store: &str, seed: u64) {
    let user = Place::new();
    Workload::write(&user, seed);
    let nodes = [Place::new(), Place::new(), Place::new()];
    let ask = |line: &str| user.laneway(&format!("{line} --store {store}"));
    let start = |node: usize| -> Running {
        let args = "--slots 2 --shutdown-grace 1s --lease-ttl 2s --heartbeat-interval 500ms";
        nodes[node].spawn(&format!("worker --node-address n{node} {args} --store {store}"))
    };
    let submitted = ask("submit flow.yaml");
    assert_eq!(submitted.code, Some(0), "{submitted}");
    let mut workers: Vec<Running> = (0..nodes.len()).map(start).collect();
    let shown = || user.json(&format!("show last --json --store {store}"));
    let succeeded = |run: &serde_json::Value| {
        let tasks = run["tasks"].as_array().expect("a list of tasks");
        tasks.iter().filter(|task| task["status"] == "succeeded").count()
    };
    for (victim, count) in [(0, 8), (1, 20), (2, 32), (0, 42)] {
        until("some steps", || {
            let run = shown();
            run["status"] == "failed" || succeeded(&run) >= count
        });
        workers[victim].signal(Signal::KILL);
        drop(std::mem::replace(&mut workers[victim], start(victim)).wait());
    }
    let status = || text(&shown()["status"]).to_owned();
    until("the end of the run", || ["succeeded", "failed"].contains(&status().as_str()));
    assert_eq!(status(), "succeeded", "seed {seed}: {}{}", ask("explain last"), ask("logs last"));
    assert_eq!(succeeded(&shown()), STEPS);
    assert_eq!(ask("replay last").code, Some(0));
    for worker in workers {
        worker.signal(Signal::TERM);
        assert_eq!(worker.wait().code, Some(0));
    }
}

#[test]
fn fifty_steps_on_three_nodes_that_are_killed_see_exactly_their_files() {
    fifty_steps_see_exactly_their_files(&schema(), 7);
}

#[test]
fn fifty_steps_of_three_workers_of_one_host_that_are_killed_see_exactly_their_files() {
    let home = Place::new();
    fifty_steps_see_exactly_their_files(&home.path("laneway.db").to_string_lossy(), 11);
}
