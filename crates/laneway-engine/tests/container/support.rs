//! A job with directories of its own, the engine that the tests are lent, and the one way in which these tests wait.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use laneway_core::definition::Container;
use laneway_engine::container::{Docker, HostMounts, Job, execute};
use laneway_engine::log::{Stream, Tail};
use laneway_engine::process::{Ending, Program, StopSignal};
use tempfile::TempDir;

use crate::warden::warden;

pub(crate) const IMAGE: &str = "laneway-test/busybox:1";

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
const PATIENCE: Duration = Duration::from_secs(60);

/// Missing, the tests fail: what they prove needs a real engine.
pub(crate) fn docker() -> Docker {
    let host = std::env::var("LANEWAY_TEST_DOCKER");
    Docker::at(&host.expect("run the tests with `cargo xtask docker cargo nextest run …`"))
}

pub(crate) struct Bench {
    pub(crate) dir: TempDir,
    pub(crate) docker: Docker,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::at(docker())
    }

    pub(crate) fn at(docker: Docker) -> Self {
        let dir = tempfile::tempdir().expect("tempdir");
        std::fs::create_dir(dir.path().join("work")).expect("work");
        Self { dir, docker }
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

    fn job(&self, program: Program) -> Job {
        let name = unique();
        Job {
            labels: HashMap::from([("laneway.test".to_owned(), name.clone())]),
            name,
            settings: Container { image: IMAGE.to_owned(), ..Container::default() },
            program,
            env: Vec::new(),
            dir: self.path("work"),
            workdir: None,
            stage: self.path("stage"),
            secrets: Vec::new(),
            host_mounts: HostMounts::All,
            log: self.path("log").into(),
            log_cap: 1 << 20,
            masks: Default::default(),
            timeout: None,
            kill_grace: Duration::from_secs(20),
            effects: laneway_engine::effect::Effects::default(),
        }
    }

    pub(crate) async fn run(&self, job: Job) -> Ending {
        let name = job.name.clone();
        let warden = warden();
        let ended = execute(&self.docker, &warden, job, StopSignal::new());
        let ending = tokio::time::timeout(PATIENCE, ended).await.expect("the attempt ends");
        assert!(!self.path("stage").exists(), "the attempt's files are gone");
        if self.docker.ping().await.is_ok() {
            assert_eq!(self.docker.find(&name).await.expect("an answer"), None, "nothing of it is left");
        }
        ending
    }

    /// Starts a job; the handle asks it to stop.
    pub(crate) fn begin(&self, job: Job) -> (StopSignal, impl Future<Output = Ending> + use<>) {
        let (stop, docker, warden) = (StopSignal::new(), self.docker.clone(), warden());
        let asked = stop.clone();
        let task = tokio::spawn(async move { execute(&docker, &warden, job, asked).await });
        let ending = async {
            tokio::time::timeout(PATIENCE, task).await.expect("the attempt ends").expect("no panic")
        };
        (stop, ending)
    }

    pub(crate) fn printed(&self, stream: Stream) -> String {
        let lines = Tail::last_lines(&self.path("log"), usize::MAX).expect("the log reads");
        let lines = lines.iter().filter(|line| line.stream == stream);
        lines.map(|line| format!("{}\n", line.text())).collect()
    }

    pub(crate) fn stdout(&self) -> String {
        self.printed(Stream::Stdout)
    }

    /// Once the step has made this file in its directory.
    pub(crate) async fn made(&self, name: &str) {
        until("the step has begun", async || self.path("work").join(name).exists()).await;
    }
}

/// A name like no other: the engine is shared by tests of several processes.
pub(crate) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("laneway-test-{}-{}-a1", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Waits for a condition, and fails the test when it does not come true.
pub(crate) async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition().await {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
