//! A directory with a workflow, a store that may lie elsewhere, a ledger that the steps write, and ways to wait.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) store: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let store = dir.path().join("store/laneway.db");
        Self { dir, store }
    }

    /// With its store on another disk.
    pub(crate) fn with_store(store: PathBuf) -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), store }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    /// Steps that say in the ledger when they start and end, and do something in between.
    pub(crate) fn write_workflow(&self, steps: usize, work: &str) {
        let mut yaml = String::from("name: work\nmax_parallel: 3\nsteps:\n");
        for step in 0..steps {
            let ledger = self.path("ledger").display().to_string();
            yaml.push_str(&format!(
                "  s{step}:\n    run: |\n      echo start s{step} $LANEWAY_ATTEMPT >> {ledger}\n      {work}\n      echo end s{step} $LANEWAY_ATTEMPT >> {ledger}\n"
            ));
        }
        self.write("work.yaml", &yaml);
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_laneway"));
        self.dress(&mut command);
        command.args(args);
        command
    }

    /// In this place, with this store.
    pub(crate) fn dress(&self, command: &mut Command) {
        command
            .current_dir(self.dir.path())
            .env("LANEWAY_STORE", &self.store)
            .env("LANEWAY_KILL_GRACE", "1s");
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let errors = std::fs::File::options().create(true).append(true).open(self.path("stderr"));
        command.stderr(errors.expect("a file for what it says"));
    }

    pub(crate) fn laneway(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("the program starts")
    }

    /// Everything that commands have said here so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        self.start(self.command(args))
    }

    /// What the commands that ran beside the test have printed.
    pub(crate) fn printed(&self) -> String {
        std::fs::read_to_string(self.path("stdout")).unwrap_or_default()
    }

    pub(crate) fn start(&self, mut command: Command) -> Running {
        let printed = std::fs::File::options().create(true).append(true).open(self.path("stdout"));
        command.stdout(printed.expect("a file for what it prints"));
        Running(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; is it installed?")))
    }

    /// How often each step has started and ended.
    pub(crate) fn ledger(&self) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
        let (mut starts, mut ends) = (BTreeMap::new(), BTreeMap::new());
        for line in std::fs::read_to_string(self.path("ledger")).unwrap_or_default().lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let of = match words[..] {
                ["start", ..] => &mut starts,
                ["end", ..] => &mut ends,
                _ => panic!("a torn line: {line}"),
            };
            *of.entry(words[1].to_owned()).or_default() += 1;
        }
        (starts, ends)
    }

    pub(crate) fn started(&self) -> usize {
        self.ledger().0.values().sum()
    }

    /// The run has ended well, and everything that can be said of it agrees.
    pub(crate) fn assert_sound(&self, steps: usize) {
        let show = self.laneway(&["show", "last", "--json"]);
        let run: Value = serde_json::from_slice(&show.stdout).unwrap_or_else(|_| panic!("{}", self.said()));
        assert_eq!(run["status"], "succeeded", "{run:#}");
        let tasks = run["tasks"].as_array().expect("tasks");
        assert_eq!(tasks.len(), steps);
        assert!(tasks.iter().all(|task| task["status"] == "succeeded"));
        let replay = self.laneway(&["replay", "last"]);
        assert_eq!(replay.status.code(), Some(0), "{}", text(&replay));
        let doctor = self.laneway(&["doctor"]);
        assert_eq!(doctor.status.code(), Some(0), "{}", text(&doctor));
    }
}

/// Killed if the test fails on its way.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn wait(mut self) -> Option<i32> {
        self.0.wait().expect("it ends").code()
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it is ours");
        self.0.wait().expect("it is ours");
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.0.try_wait().expect("it is ours").is_some()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The one way in which these tests wait.
pub(crate) fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Everything that runs in a directory, but the program itself.
pub(crate) fn steps_alive(dir: &Path) -> Vec<u32> {
    let dir = std::fs::canonicalize(dir).expect("it is there");
    let entries = std::fs::read_dir("/proc").expect("procfs").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let link = |pid: u32, name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).unwrap_or_default();
    pids.filter(|pid: &u32| {
        link(*pid, "cwd").starts_with(&dir) && link(*pid, "exe") != Path::new(env!("CARGO_BIN_EXE_laneway"))
    })
    .collect()
}

/// A linear congruential generator: random enough, and its seed says it all.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        let seed = std::env::var("LANEWAY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        Self(seed.unwrap_or_else(|| u64::from(std::process::id()) * 2_654_435_761))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }
}
