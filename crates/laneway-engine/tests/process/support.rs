//! A job with a directory of its own, and the one way in which these tests wait.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use laneway_engine::log::{Stream, Tail};
use laneway_engine::process::{Ending, InheritEnv, Job, Program, StopSignal, execute};
use tempfile::TempDir;

use crate::warden::warden;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(dir.path().join("scratch")).expect("scratch");
        std::fs::create_dir(dir.path().join("work")).expect("work");
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn script(&self, text: &str) -> Job {
        self.job(Program::Script {
            text: text.to_owned(),
            name: "step".to_owned(),
            args: Vec::new(),
            shell: laneway_core::shell::Shell::Sh,
        })
    }

    pub(crate) fn command(&self, argv: &[&str]) -> Job {
        self.job(Program::Command { argv: argv.iter().map(|&arg| arg.to_owned()).collect() })
    }

    pub(crate) fn job(&self, program: Program) -> Job {
        Job {
            program,
            env: Vec::new(),
            inherit_env: InheritEnv::All,
            workdir: self.path("work"),
            stdin: None,
            scratch: self.path("scratch"),
            output: self.path("output"),
            log: self.path("log").into(),
            log_cap: 1 << 20,
            masks: Default::default(),
            timeout: None,
            kill_grace: Duration::from_secs(20),
        }
    }

    /// What the step printed on stdout, as one text.
    pub(crate) fn stdout(&self) -> String {
        self.printed(Stream::Stdout)
    }

    pub(crate) fn printed(&self, stream: Stream) -> String {
        Tail::last_lines(&self.path("log"), usize::MAX)
            .expect("the log reads")
            .iter()
            .filter(|line| line.stream == stream)
            .map(|line| format!("{}\n", line.text()))
            .collect()
    }

    /// The pid that the step wrote to a file of its working directory, once it is there.
    pub(crate) async fn pid(&self, name: &str) -> u32 {
        let path = self.path("work").join(name);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        until("a pid is written", || read().ends_with('\n')).await;
        read().trim().parse().expect("a pid")
    }
}

pub(crate) async fn run(job: Job) -> Ending {
    tokio::time::timeout(PATIENCE, execute(warden(), job, StopSignal::new())).await.expect("the attempt ends")
}

/// Starts a job; the handle asks it to stop.
pub(crate) fn begin(job: Job) -> (StopSignal, impl Future<Output = Ending>) {
    let stop = StopSignal::new();
    let task = tokio::spawn(execute(warden(), job, stop.clone()));
    let ending =
        async { tokio::time::timeout(PATIENCE, task).await.expect("the attempt ends").expect("no panic") };
    (stop, ending)
}

/// Waits for a condition, and fails the test when it does not come true.
pub(crate) async fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A zombie, which only waits for its parent to look, is gone as far as anybody can see.
pub(crate) fn is_gone(pid: u32) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')),
        Err(_) => true,
    }
}

pub(crate) async fn gone(pid: u32) {
    until("the process is gone", || is_gone(pid)).await;
}

/// Whether whoever started these tests has left a descriptor of this number open for all to inherit.
pub(crate) fn is_from_outside(number: &str) -> bool {
    const CLOEXEC: u32 = 0o2_000_000;
    let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok());
    !["0", "1", "2"].contains(&number) && flags.is_some_and(|flags| flags & CLOEXEC == 0)
}
