//! A container engine of one test alone, to be killed, started late, or spoken to in another way.

#![allow(dead_code, reason = "several programs of tests use it, each its part")]
#![allow(clippy::disallowed_methods, reason = "tests start programs as a person does")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use laneway_engine::container::Docker;

/// Long enough for a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An engine of this test alone.
pub(crate) struct Engine {
    dir: tempfile::TempDir,
    process: Child,
}

impl Engine {
    /// With an image of another engine.
    pub(crate) async fn start(other: &Docker, image: &str) -> Self {
        Self::start_at(other, image, None).await
    }

    /// One that listens at another address as well.
    pub(crate) async fn start_at(other: &Docker, image: &str, more: Option<&str>) -> Self {
        let dir = tempfile::Builder::new().prefix("laneway-engine-").tempdir().expect("tempdir");
        let process = Self::spawn(dir.path(), more);
        let engine = Self { dir, process };
        engine.ready().await;
        let (from, to) = (other.host().to_owned(), engine.docker().host().to_owned());
        let copied = Command::new("sh")
            .arg("-c")
            .arg("docker --host \"$0\" save \"$2\" | docker --host \"$1\" load")
            .args([&from, &to, image])
            .stdout(Stdio::null())
            .status();
        assert!(copied.expect("a shell").success(), "the image is copied");
        engine
    }

    fn spawn(dir: &Path, more: Option<&str>) -> Child {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(dir.join("log")).expect("a log");
        let mut command = Command::new("dockerd");
        command.arg("--host").arg(format!("unix://{}", dir.join("docker.sock").display()));
        if let Some(more) = more {
            // Without TLS it waits a while, to be noticed; what is said here is read as a consent.
            command.args(["--host", more, "--tls=false"]);
        }
        for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(option).arg(dir.join(name));
        }
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--log-level=warn"]);
        let errors = log.try_clone().expect("a descriptor");
        command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("an engine starts")
    }

    pub(crate) fn docker(&self) -> Docker {
        Docker::at(&format!("unix://{}", self.dir.path().join("docker.sock").display()))
    }

    async fn ready(&self) {
        let answers = async {
            while self.docker().ping().await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, answers).await.expect("the engine answers");
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("it is ours");
        self.process.wait().expect("it is ours");
        // As a start of the machine would: an engine that finds these tries to speak to a containerd that is dead.
        for name in
            ["pid", "docker.sock", "exec/containerd/containerd.sock", "exec/containerd/containerd.sock.ttrpc"]
        {
            let _ = std::fs::remove_file(self.dir.path().join(name));
        }
    }

    /// As an init would: again, until it stays.
    pub(crate) async fn start_again(&mut self) {
        let containerd = self.dir.path().join("exec/containerd/containerd.pid");
        let pid = std::fs::read_to_string(containerd).unwrap_or_default();
        // It dies with its engine, a moment later; one that is about to die is not to be found and used.
        while Path::new("/proc").join(pid.trim()).join("exe").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.process = Self::spawn(self.dir.path(), None);
        let docker = self.docker();
        let answers = async {
            while docker.ping().await.is_err() {
                if matches!(self.process.try_wait(), Ok(Some(_))) {
                    self.process = Self::spawn(self.dir.path(), None);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, answers).await.expect("the engine answers");
    }
}

impl Engine {
    /// An engine that was killed in the middle may have lost sight of what it started.
    fn end_leftovers(&self) {
        let dir = self.dir.path().to_string_lossy().into_owned();
        let is_ours = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(&dir)
        };
        let pids = std::fs::read_dir("/proc").expect("procfs").flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        for pid in pids.filter(is_ours) {
            let children =
                std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
            let children = children.split_whitespace().filter_map(|child| child.parse::<i32>().ok());
            for pid in children.chain([pid]).filter_map(rustix::process::Pid::from_raw) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        let _ = self.process.wait();
        self.end_leftovers();
        // What a killed engine could not unmount.
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let dir = self.dir.path().to_string_lossy().into_owned();
        let below =
            mounts.lines().filter_map(|line| line.split(' ').nth(1)).filter(|path| path.starts_with(&dir));
        let mut below: Vec<&str> = below.collect();
        below.sort_by_key(|path| std::cmp::Reverse(path.len()));
        for path in below {
            let _ = Command::new("umount").args(["--lazy", path]).status();
        }
    }
}
