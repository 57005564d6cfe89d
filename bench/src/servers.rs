//! Servers of others beside ours, while nothing happens: how soon they answer, what they take. Each with a directory of its
//! own, on loopback, started and ended by us.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Serialize;

use crate::install;
use crate::meter::program;
use crate::report::note;
use crate::single::{cpu_s, rss_mb};
use crate::stats::Spread;
use crate::subject::{Peer, Places, Subject, fresh_dir, text};

/// Longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize)]
pub(crate) struct PeerServer {
    pub(crate) name: &'static str,
    pub(crate) ready_ms: Spread,
    pub(crate) idle_rss_mb: f64,
    /// Of one core, with all of its children.
    pub(crate) idle_cpu_percent: f64,
}

/// `window`: for how long it is watched doing nothing.
pub(crate) fn measure(peer: Peer, rounds: usize, window: Duration, places: &Places) -> Result<PeerServer> {
    let name = Subject::Peer(peer).name();
    note(&format!("service: {name}"));
    let mut ready = Vec::new();
    for _ in 0..rounds {
        let (server, took) = Server::start(peer, places)?;
        ready.push(took);
        server.end()?;
    }
    let (server, _) = Server::start(peer, places)?;
    // What the start left to do is not idleness: as long as ours has.
    std::thread::sleep(Duration::from_secs(15));
    let cpu = || -> Result<f64> { server.all()?.into_iter().map(cpu_s).sum() };
    let (before, begun) = (cpu()?, Instant::now());
    std::thread::sleep(window);
    let (used, seconds) = (cpu()? - before, begun.elapsed().as_secs_f64());
    let rss: f64 = server.all()?.into_iter().map(rss_mb).sum::<Result<f64>>()?;
    server.end()?;
    let ready_ms = Spread::of(ready).context("no round was measured")?;
    Ok(PeerServer { name, ready_ms, idle_rss_mb: rss, idle_cpu_percent: 100.0 * used / seconds })
}

pub(crate) struct Server {
    child: Child,
    ports: [u16; 3],
}

impl Server {
    /// With an empty directory; gives the milliseconds until it answered.
    pub(crate) fn start(peer: Peer, places: &Places) -> Result<(Self, f64)> {
        let dir = places.work.join("service").join(Subject::Peer(peer).name());
        fresh_dir(&dir)?;
        let ports = free_ports()?;
        let mut command = match peer {
            Peer::Dagu => dagu(places, &dir, ports[0])?,
            Peer::Restate => restate(places, &dir, ports)?,
            Peer::Make
            | Peer::Xargs
            | Peer::Ninja
            | Peer::Huey
            | Peer::Graphile
            | Peer::Pgboss
            | Peer::Dbos
            | Peer::Procrastinate => bail!("{} has no server", Subject::Peer(peer).name()),
        };
        let health = match peer {
            Peer::Dagu => "/api/v2/dags",
            _ => "/restate/health",
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir(&dir);
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let begun = Instant::now();
        let child = command.spawn().with_context(|| format!("{peer:?} cannot be started"))?;
        let server = Self { child, ports };
        while !answers(ports[0], health) {
            if begun.elapsed() > PATIENCE {
                bail!("{peer:?} does not answer");
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok((server, begun.elapsed().as_secs_f64() * 1_000.0))
    }

    /// It and everything that it has started.
    fn all(&self) -> Result<Vec<u32>> {
        let mut all = vec![self.child.id()];
        let mut next = 0;
        while next < all.len() {
            for thread in
                std::fs::read_dir(format!("/proc/{}/task", all[next])).context("a server is gone")?
            {
                let children = std::fs::read_to_string(thread?.path().join("children"))?;
                all.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
            }
            next += 1;
        }
        Ok(all)
    }

    /// Where it listens: for work first.
    pub(crate) fn ports(&self) -> [u16; 3] {
        self.ports
    }

    pub(crate) fn end(mut self) -> Result<()> {
        kill_process_group(Pid::from_child(&self.child), Signal::TERM).context("it cannot be ended")?;
        self.child.wait().context("it did not end")?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// All of its parts in one process, as ours has them.
fn dagu(places: &Places, dir: &Path, port: u16) -> Result<std::process::Command> {
    let mut command = program(places.tools.join(install::DAGU));
    std::fs::create_dir_all(dir.join("dags"))?;
    command.args(["start-all", "--host", "127.0.0.1", "--port", &port.to_string()]);
    command.args(["--dags", text(&dir.join("dags"))?]);
    command.env_clear().envs([("PATH", "/usr/bin:/bin"), ("TZ", "UTC"), ("LANG", "C.UTF-8")]);
    command.env("HOME", dir).env("DAGU_HOME", dir);
    Ok(command)
}

/// Alone: the services that it calls are programs of their own.
fn restate(places: &Places, dir: &Path, [ingress, admin, node]: [u16; 3]) -> Result<std::process::Command> {
    let mut command = program(places.tools.join(install::RESTATE));
    command.arg("--no-logo").env("RESTATE_BASE_DIR", dir);
    command.envs([
        ("RESTATE_BIND_IP", "127.0.0.1"),
        ("RESTATE_ADVERTISED_HOST", "127.0.0.1"),
        ("RESTATE_LISTEN_MODE", "tcp"),
        ("RESTATE_DISABLE_TELEMETRY", "true"),
        ("DO_NOT_TRACK", "1"),
        ("RESTATE_LOG_FILTER", "warn"),
    ]);
    command.env("RESTATE_INGRESS__BIND_PORT", ingress.to_string());
    command.env("RESTATE_ADMIN__BIND_PORT", admin.to_string());
    command.env("RESTATE_BIND_PORT", node.to_string());
    Ok(command)
}

fn free_ports() -> Result<[u16; 3]> {
    let listeners = [listener()?, listener()?, listener()?];
    let port = |listener: &TcpListener| -> Result<u16> { Ok(listener.local_addr()?.port()) };
    Ok([port(&listeners[0])?, port(&listeners[1])?, port(&listeners[2])?])
}

fn listener() -> Result<TcpListener> {
    TcpListener::bind(("127.0.0.1", 0)).context("there is no free port")
}

fn answers(port: u16, path: &str) -> bool {
    use std::io::{Read as _, Write as _};
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let asked = write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n\r\n");
    let mut head = [0; 12];
    asked.is_ok() && stream.read_exact(&mut head).is_ok() && head.starts_with(b"HTTP/1.1 200")
}
