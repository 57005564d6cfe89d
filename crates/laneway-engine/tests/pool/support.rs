//! A node's pools with a directory of their own, what they told, and the one way in which these tests wait.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use laneway_core::definition;
use laneway_core::id::{InstanceId, RunId, SessionId};
use laneway_core::pool::{ContainerState, PoolFact, PortsUsedUp};
use laneway_engine::container::pool::{Job, PoolMeans, Pools, Pull, Told, Transition, What, execute};
use laneway_engine::container::{Docker, HostMounts, labels};
use laneway_engine::log::Stream;
use laneway_engine::process::{Ending, Program, StopSignal};
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::warden::warden;

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long a container may outlive what it was for, whatever went wrong.
pub(crate) const ORPHANED: Duration = Duration::from_secs(30);

pub(crate) const BUSYBOX: &str = "laneway-test/busybox:1";
pub(crate) const HTTPD: &str = "laneway-test/httpd:1";

pub(crate) struct Node {
    pub(crate) pools: Pools,
    pub(crate) docker: Docker,
    pub(crate) dir: TempDir,
    pub(crate) run: RunId,
    told: mpsc::UnboundedReceiver<Told>,
    /// Everything that was told so far.
    pub(crate) history: Vec<Transition>,
    /// What was told of images.
    pub(crate) pulls: Vec<Pull>,
    /// What was told last of the ports, if it was not noticed yet.
    ports: Option<PoolFact>,
    labels: HashMap<String, String>,
}

/// An id that no other test has.
fn fresh() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("0199f2a0-0000-7000-8000-{:08x}{count:04x}", std::process::id())
}

pub(crate) fn run_id() -> RunId {
    RunId::parse(&fresh()).expect("an id")
}

impl Node {
    pub(crate) fn new() -> Self {
        Self::with_ports(49200..=49300)
    }

    pub(crate) fn with_ports(ports: RangeInclusive<u16>) -> Self {
        Self::at(docker(), ports)
    }

    pub(crate) fn at(docker: Docker, ports: RangeInclusive<u16>) -> Self {
        Self::made(docker, ports, Pools::new)
    }

    /// As of a node that is not root, which may not mount.
    pub(crate) fn that_may_not_mount() -> Self {
        let without = |means| {
            let made = std::thread::spawn(|| {
                if rustix::process::getuid().is_root() {
                    // Of this thread alone, which ends with it.
                    let nobody = rustix::process::Uid::from_raw(65534);
                    rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
                }
                Pools::new(means)
            });
            made.join().expect("they are made")
        };
        Self::made(docker(), 49200..=49300, without)
    }

    fn made(docker: Docker, ports: RangeInclusive<u16>, make: impl FnOnce(PoolMeans) -> Pools) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["scratch", "work"] {
            std::fs::create_dir(dir.path().join(name)).expect("a directory");
        }
        let session = SessionId::parse(&fresh()).expect("an id");
        let labels = labels::of_node(InstanceId::parse(&fresh()).expect("an id"), session);
        let (tell, told) = mpsc::unbounded_channel();
        let pools = make(PoolMeans {
            docker: docker.clone(),
            warden: warden(),
            host_mounts: HostMounts::All,
            session,
            labels: labels.clone(),
            scratch: dir.path().join("scratch"),
            ports,
            start_concurrency: 10,
            told: Some(tell),
        });
        Self {
            pools,
            docker,
            dir,
            run: run_id(),
            told,
            history: Vec::new(),
            pulls: Vec::new(),
            ports: None,
            labels,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn script(&self, pool: &definition::Pool, text: &str) -> Job {
        let program = Program::Script {
            text: text.to_owned(),
            name: "step".to_owned(),
            args: Vec::new(),
            shell: laneway_core::shell::Shell::Sh,
        };
        self.job(pool, What::Exec { program, env: Vec::new(), workdir: None })
    }

    pub(crate) fn job(&self, pool: &definition::Pool, what: What) -> Job {
        Job {
            pool: pool.clone(),
            dormancy: None,
            run: self.run,
            step: "step".to_owned(),
            attempt: 1,
            dir: self.path("work"),
            what,
            log: self.path("log").into(),
            log_cap: 1 << 20,
            masks: Default::default(),
            timeout: None,
            kill_grace: Duration::from_secs(20),
            effects: laneway_engine::effect::Effects::default(),
        }
    }

    /// To its end, with what it printed on stdout.
    pub(crate) async fn run(&self, job: Job) -> (Ending, String) {
        let _ = std::fs::remove_file(self.path("log"));
        let ending = self.end_of(job).await;
        (ending, self.printed())
    }

    pub(crate) async fn end_of(&self, job: Job) -> Ending {
        let stop = StopSignal::new();
        tokio::time::timeout(PATIENCE, execute(&self.pools, job, &stop)).await.expect("it ends")
    }

    pub(crate) fn printed(&self) -> String {
        let Ok(frames) = laneway_engine::log::read(&self.path("log")) else { return String::new() };
        let frames = frames.map(|frame| frame.expect("a whole frame"));
        let text =
            frames.filter(|frame| frame.stream == Stream::Stdout).flat_map(|frame| frame.bytes).collect();
        String::from_utf8(text).expect("UTF-8")
    }

    /// Waits until a transition to this state is told, and gives the container's name.
    pub(crate) async fn told(&mut self, state: ContainerState) -> Transition {
        loop {
            let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
            let told = told.unwrap_or_else(|_| panic!("{state} was never told: {:?}", self.history));
            let told = told.expect("the pools live");
            self.note(told.clone());
            if let Told::Moved(told) = told
                && told.to == state
            {
                return told;
            }
        }
    }

    /// Waits until so many tasks wait for ports, and gives what is published of the ports then.
    pub(crate) async fn waiting_for_ports(&mut self, count: usize) -> PortsUsedUp {
        loop {
            if let Some(PoolFact::PortsUsedUp(ports)) = &self.ports
                && ports.waiting.len() == count
            {
                return ports.clone();
            }
            let told = tokio::time::timeout(PATIENCE, self.told.recv()).await;
            let told = told.unwrap_or_else(|_| panic!("never {count} waiting: {:?}", self.ports));
            self.note(told.expect("the pools live"));
        }
    }

    fn note(&mut self, told: Told) {
        match told {
            Told::Moved(told) => self.history.push(told),
            Told::Pulling(pull) => self.pulls.push(pull),
            Told::Ports(ports) => self.ports = Some(ports),
            Told::Pool { .. } | Told::Taken(_) => {}
        }
    }

    /// Everything that was told, as words.
    pub(crate) fn story(&mut self) -> Vec<&'static str> {
        while let Ok(told) = self.told.try_recv() {
            self.note(told);
        }
        self.history.iter().map(|told| told.to.as_str()).collect()
    }

    /// Names of the containers that the engine has of this node.
    pub(crate) async fn containers(&self) -> Vec<String> {
        let wanted: Vec<(&str, &str)> =
            self.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let found = self.docker.list(&wanted).await.expect("a list");
        found.into_iter().map(|container| container.name).collect()
    }

    /// Closes the pools, after which nothing may be left.
    pub(crate) async fn close(self) {
        self.pools.close().await;
        self.pools.close().await;
        assert_eq!(self.containers().await, [""; 0], "something is left");
        let warm = self.path("scratch/warm");
        let left: Vec<_> = std::fs::read_dir(warm).into_iter().flatten().flatten().collect();
        assert!(left.is_empty(), "files are left: {left:?}");
    }
}

/// The one that is lent to these tests.
pub(crate) fn docker() -> Docker {
    let host = std::env::var("LANEWAY_TEST_DOCKER");
    Docker::at(&host.expect("these tests need an engine: `cargo xtask docker cargo nextest run …`"))
}

pub(crate) fn pool(max: u32) -> definition::Pool {
    definition::Pool {
        name: "warm".to_owned(),
        container: definition::Container { image: BUSYBOX.to_owned(), ..Default::default() },
        max: NonZeroU32::new(max).expect("some"),
        mode: definition::PoolMode::Multi,
        dormancy: Duration::from_secs(300),
        acquire_timeout: Some(PATIENCE),
        command: Vec::new(),
        endpoint: None,
        health: None,
        health_interval: Duration::from_millis(50),
        health_timeout: Duration::from_secs(30),
    }
}

/// One whose containers answer HTTP.
pub(crate) fn agents(max: u32) -> definition::Pool {
    let mut pool = pool(max);
    pool.container.image = HTTPD.to_owned();
    pool.endpoint = Some(definition::Endpoint { port: 80, health: "/health".to_owned() });
    pool
}
