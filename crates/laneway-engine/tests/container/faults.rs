//! Answers that are lost, and an engine that dies in the middle.

#![expect(clippy::disallowed_methods, reason = "tests start an engine of their own, to kill it")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use laneway_engine::container::Docker;
use laneway_engine::process::Outcome;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::support::{Bench, IMAGE, docker, until};

/// Stands between the engine and its client, and cuts the line instead of bringing the answers to creates.
struct Proxy {
    socket: PathBuf,
    /// How many answers to creates are lost from here on.
    cuts: Arc<AtomicU32>,
    seen: Arc<AtomicU32>,
}

impl Proxy {
    fn start(dir: &Path, to: &str) -> Self {
        let socket = dir.join("proxy.sock");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (cuts, seen) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (to, all_cuts, all_seen) = (to.to_owned(), Arc::clone(&cuts), Arc::clone(&seen));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (to, cuts, seen) = (to.clone(), Arc::clone(&all_cuts), Arc::clone(&all_seen));
                tokio::spawn(async move {
                    let _ = Self::carry(client, &to, &cuts, &seen).await;
                });
            }
        });
        Self { socket, cuts, seen }
    }

    async fn carry(
        mut client: UnixStream,
        to: &str,
        cuts: &AtomicU32,
        seen: &AtomicU32,
    ) -> std::io::Result<()> {
        let mut engine = UnixStream::connect(to).await?;
        let mut first = vec![0; 64 * 1024];
        let count = client.read(&mut first).await?;
        let is_create = String::from_utf8_lossy(&first[..count]).contains("/containers/create");
        engine.write_all(&first[..count]).await?;
        if is_create {
            seen.fetch_add(1, Ordering::SeqCst);
            let is_cut = cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if is_cut.is_ok() {
                // It is done, and nobody is told.
                let (mut from_client, _) = client.split();
                let (mut from_engine, mut to_engine) = engine.split();
                tokio::select! {
                    _ = tokio::io::copy(&mut from_client, &mut to_engine) => {}
                    _ = from_engine.read(&mut first) => {}
                }
                return Ok(());
            }
        }
        tokio::io::copy_bidirectional(&mut client, &mut engine).await.map(|_| ())
    }
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_found_by_its_name() {
    let place = tempfile::tempdir().expect("tempdir");
    let proxy = Proxy::start(place.path(), docker().socket().expect("a socket"));
    let bench = Bench::at(Docker::at(&format!("unix://{}", proxy.socket.display())));
    proxy.cuts.store(1, Ordering::SeqCst);
    let ending = bench.run(bench.script("echo once >> counted")).await;
    assert_eq!(ending.outcome, Outcome::Exited(0));
    assert_eq!(proxy.seen.load(Ordering::SeqCst), 1, "it was not made twice");
    assert_eq!(std::fs::read_to_string(bench.path("work/counted")).expect("made"), "once\n");
}

/// An engine of this test alone.
struct Engine {
    dir: tempfile::TempDir,
    process: Child,
}

impl Engine {
    async fn start() -> Self {
        let dir = tempfile::Builder::new().prefix("laneway-engine-").tempdir().expect("tempdir");
        let process = Self::spawn(dir.path());
        let engine = Self { dir, process };
        engine.ready().await;
        let (from, to) = (docker().host().to_owned(), engine.docker().host().to_owned());
        let copied = Command::new("sh")
            .arg("-c")
            .arg("docker --host \"$0\" save \"$2\" | docker --host \"$1\" load")
            .args([&from, &to, IMAGE])
            .stdout(Stdio::null())
            .status();
        assert!(copied.expect("a shell").success(), "the image is copied");
        engine
    }

    fn spawn(dir: &Path) -> Child {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(dir.join("log")).expect("a log");
        let mut command = Command::new("dockerd");
        command.arg("--host").arg(format!("unix://{}", dir.join("docker.sock").display()));
        for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
            command.arg(option).arg(dir.join(name));
        }
        command.args(["--bridge=none", "--iptables=false", "--ip6tables=false", "--log-level=warn"]);
        let errors = log.try_clone().expect("a descriptor");
        command.stdin(Stdio::null()).stdout(log).stderr(errors).spawn().expect("an engine starts")
    }

    fn docker(&self) -> Docker {
        Docker::at(&format!("unix://{}", self.dir.path().join("docker.sock").display()))
    }

    async fn ready(&self) {
        until("the engine answers", async || self.docker().ping().await.is_ok()).await;
    }

    fn kill(&mut self) {
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
    async fn start_again(&mut self) {
        let containerd = self.dir.path().join("exec/containerd/containerd.pid");
        let pid = std::fs::read_to_string(containerd).unwrap_or_default();
        // It dies with its engine, a moment later; one that is about to die is not to be found and used.
        until("its containerd is gone", async || !Path::new("/proc").join(pid.trim()).join("exe").exists())
            .await;
        self.process = Self::spawn(self.dir.path());
        let docker = self.docker();
        until("the engine answers", async || {
            if matches!(self.process.try_wait(), Ok(Some(_))) {
                self.process = Self::spawn(self.dir.path());
            }
            docker.ping().await.is_ok()
        })
        .await;
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

#[tokio::test]
async fn an_engine_that_dies_and_comes_back_ends_the_attempt_in_words() {
    let mut engine = Engine::start().await;
    let bench = Bench::at(engine.docker());
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    // The step is quicker than its engine, which has to have written down that it runs.
    let docker = engine.docker();
    until("the engine knows of it", async || {
        docker.find(&name).await.is_ok_and(|found| found.is_some_and(|found| found.state == "running"))
    })
    .await;
    engine.kill();
    engine.start_again().await;
    let Outcome::StartFailed(told) = ending.await.outcome else { panic!("nobody knows how it ended") };
    assert!(told.contains("went away while the step ran"), "{told}");
    until("nothing of it is left", async || {
        engine.docker().find(&name).await.is_ok_and(|found| found.is_none())
    })
    .await;
}

#[tokio::test]
async fn an_engine_that_stays_away_fails_the_attempt_and_is_cleared_up_when_it_is_back() {
    let mut engine = Engine::start().await;
    let bench = Bench::at(engine.docker());
    let job = bench.script(": > begun; sleep 1000");
    let name = job.name.clone();
    let (_, ending) = bench.begin(job);
    bench.made("begun").await;
    // The step is quicker than its engine, which has to have written down that it runs.
    let docker = engine.docker();
    until("the engine knows of it", async || {
        docker.find(&name).await.is_ok_and(|found| found.is_some_and(|found| found.state == "running"))
    })
    .await;
    engine.kill();
    let Outcome::StartFailed(told) = ending.await.outcome else { panic!("nobody knows how it ended") };
    assert!(told.contains("no container engine answers") && told.contains("not known"), "{told}");
    engine.start_again().await;
    until("nothing of it is left", async || {
        engine.docker().find(&name).await.is_ok_and(|found| found.is_none())
    })
    .await;
}
