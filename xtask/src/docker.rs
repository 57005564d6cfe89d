//! A Docker engine of our own: in a temporary directory, on a private socket, with images made of a static busybox, gone
//! with us. Owns how one is brought, started and ended; what the tests do with it is theirs.
//!
//! It shares nothing with another engine on the machine: its data, its containerd and its bridge are its own, and it leaves
//! the firewall alone, so that containers reach each other and the host, and nothing beyond.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getuid, kill_process, test_kill_process};
use tempfile::TempDir;

use crate::shell::program;
use crate::{stage, tools};

/// Where tests look for it: `unix://` and the path of its socket.
pub(crate) const VARIABLE: &str = "LANEWAY_TEST_DOCKER";

/// Names its directories, so that those of a task that was killed can be found. Short: a socket's path has 107 bytes.
const PREFIX: &str = "laneway-docker-";

/// On a machine that does other work as well.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the tests have, and nothing from a registry: a shell with the usual small tools, and the same as a server.
const IMAGES: [(&str, &str); 2] = [
    ("laneway-test/busybox:1", "CMD [\"/bin/sh\"]"),
    ("laneway-test/httpd:1", "CMD [\"/bin/httpd\", \"-f\", \"-p\", \"80\", \"-h\", \"/www\"]"),
];

/// Answers `/cgi-bin/echo` of that server: how it was asked, and with what.
const ECHO: &str = "#!/bin/sh
printf 'Content-Type: application/json\\r\\n\\r\\n{\"method\":\"%s\",\"host\":\"%s\",\"body\":' \"$REQUEST_METHOD\" \"$(hostname)\"
if [ -n \"$CONTENT_LENGTH\" ] && [ \"$CONTENT_LENGTH\" != 0 ]; then head -c \"$CONTENT_LENGTH\"; else printf null; fi
printf '}'
";

/// A running engine. Dropping it ends the engine with all of its containers and removes everything of it.
#[derive(Debug)]
pub(crate) struct Docker {
    server: Child,
    bridge: Bridge,
    dir: TempDir,
    /// Held as long as we live: by it a leftover is told from an engine in use.
    _lock: File,
}

impl Docker {
    /// Starts it and waits until it has its images.
    pub(crate) fn start() -> Result<Self> {
        let started = Self::spawn()?;
        started.ready()
    }

    /// Starts it without waiting. From the thread that stays: it ends with the thread that has started it.
    pub(crate) fn spawn() -> Result<Self> {
        let daemon = bring()?;
        if !getuid().is_root() {
            bail!(
                "a private Docker engine needs root: run it as root, or set {VARIABLE} to one that you may use"
            );
        }
        // One at a time: two that look for a free network would find the same.
        let starting =
            File::create(std::env::temp_dir().join("laneway-docker.lock")).context("no lock file")?;
        starting.lock().context("the lock for starting cannot be had")?;
        sweep();
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir().context("no temporary directory")?;
        let lock = File::create(dir.path().join("lock")).context("no lock file")?;
        lock.try_lock().context("the lock of a new directory is held")?;
        let bridge = Bridge::make()?;
        let server = serve(&daemon, dir.path(), &bridge)?;
        Ok(Self { server, bridge, dir, _lock: lock })
    }

    pub(crate) fn ready(mut self) -> Result<Self> {
        self.wait_until_ready()?;
        make_images(&self.socket(), self.dir.path())?;
        Ok(self)
    }

    /// What tests find it by.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        vec![(VARIABLE, format!("unix://{}", self.socket().display()))]
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("docker.sock")
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            if docker(&self.socket()).arg("version").output().is_ok_and(|output| output.status.success()) {
                return Ok(());
            }
            let has_ended = self.server.try_wait().context("the engine cannot be waited for")?;
            if has_ended.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                bail!("the private Docker engine does not start:\n{}", log.trim_end());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Docker {
    fn drop(&mut self) {
        // Containers first: the engine itself would give each its time to end by itself.
        if matches!(self.server.try_wait(), Ok(None)) {
            let all = docker(&self.socket()).args(["ps", "--all", "--quiet"]).output();
            let all =
                all.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            if !all.trim().is_empty() {
                let mut remove = docker(&self.socket());
                let _ = remove.args(["rm", "--force", "--volumes"]).args(all.split_whitespace()).output();
            }
            end(self.server.id());
        }
        let begun = Instant::now();
        while matches!(self.server.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        clear(self.dir.path());
        self.bridge.remove();
    }
}

/// A network of the engine's own: `docker0` may be another engine's.
#[derive(Debug)]
struct Bridge {
    name: String,
}

impl Bridge {
    fn make() -> Result<Self> {
        let addresses = program("ip").args(["-4", "-o", "address"]).output();
        let addresses = addresses.context("`ip` could not be started; install Debian's package iproute2")?;
        let addresses = String::from_utf8_lossy(&addresses.stdout).into_owned();
        let free = (0..=255).map(|number| format!("10.213.{number}.1/24"));
        let address = free.into_iter().find(|address| !addresses.contains(&format!(" {address} ")));
        let address = address.context("no network is free for a bridge")?;
        let made = Self { name: format!("lnwd{}", std::process::id()) };
        let ip = |words: &[&str]| say(program("ip").args(words));
        ip(&["link", "add", "name", &made.name, "type", "bridge"])?;
        let set_up = ip(&["address", "add", &address, "dev", &made.name])
            .and_then(|()| ip(&["link", "set", &made.name, "up"]));
        if set_up.is_err() {
            made.remove();
        }
        set_up.map(|()| made)
    }

    fn remove(&self) {
        let _ = program("ip").args(["link", "delete", &self.name]).stderr(Stdio::null()).status();
    }
}

fn serve(daemon: &Path, dir: &Path, bridge: &Bridge) -> Result<Child> {
    let log = File::create(dir.join("log")).context("the engine's log cannot be made")?;
    let errors = log.try_clone().context("the engine's log cannot be shared")?;
    // TERM, so that it ends its own children when we are killed.
    let mut command = program("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(daemon);
    command.arg("--host").arg(format!("unix://{}", dir.join("docker.sock").display()));
    for (option, name) in [("--data-root", "data"), ("--exec-root", "exec"), ("--pidfile", "pid")] {
        command.arg(option).arg(dir.join(name));
    }
    command.args(["--bridge", &bridge.name, "--iptables=false", "--ip6tables=false", "--log-level=warn"]);
    // A process group of its own: Ctrl-C at the terminal is for us, and we end it in order.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.current_dir(dir).stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().context("the private Docker engine could not be started")
}

fn make_images(socket: &Path, dir: &Path) -> Result<()> {
    let root = dir.join("root");
    for name in ["bin", "etc", "tmp", "www/cgi-bin"] {
        fs::create_dir_all(root.join(name)).context("the image's files cannot be made")?;
    }
    let busybox = tools::find("busybox").context("busybox is not on the path")?;
    fs::copy(&busybox, root.join("bin/busybox")).context("busybox cannot be copied")?;
    let list = program(&busybox).arg("--list").output().context("busybox cannot be asked for its tools")?;
    for tool in String::from_utf8_lossy(&list.stdout).lines().filter(|tool| *tool != "busybox") {
        std::os::unix::fs::symlink("busybox", root.join("bin").join(tool))
            .context("a link cannot be made")?;
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777))?;
    fs::write(root.join("etc/passwd"), "root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")?;
    fs::write(root.join("etc/group"), "root:x:0:\nnobody:x:65534:\n")?;
    fs::write(root.join("www/health"), "ok\n")?;
    fs::write(root.join("www/cgi-bin/echo"), ECHO)?;
    fs::set_permissions(root.join("www/cgi-bin/echo"), fs::Permissions::from_mode(0o755))?;
    let archive = dir.join("root.tar");
    say(program("tar").arg("-C").arg(&root).arg("-cf").arg(&archive).arg("."))?;
    for (name, change) in IMAGES {
        say(docker(socket).args(["import", "--change", change]).arg(&archive).arg(name))?;
    }
    fs::remove_file(&archive)?;
    fs::remove_dir_all(&root).context("the image's files cannot be removed")
}

fn docker(socket: &Path) -> Command {
    let mut command = program("docker");
    command.arg("--host").arg(format!("unix://{}", socket.display()));
    // No person's settings, and nobody else's engine.
    command.env_remove("DOCKER_HOST").env_remove("DOCKER_CONTEXT").stdin(Stdio::null());
    command
}

/// Asks a process to end.
fn end(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// What an engine that was killed leaves behind: its containerd, what that runs, and mounts.
fn clear(dir: &Path) {
    let dir_text = dir.to_string_lossy().into_owned();
    let ours = |pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&dir_text)
    };
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let mut left: Vec<i32> = pids.filter(|pid| ours(*pid)).collect();
    // What runs in a container does not go with the process that watches over it.
    let mut next = 0;
    while let Some(pid) = left.get(next) {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        left.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
        next += 1;
    }
    let left: Vec<Pid> = left.into_iter().filter_map(Pid::from_raw).collect();
    for pid in &left {
        let _ = kill_process(*pid, Signal::KILL);
    }
    let begun = Instant::now();
    while left.iter().any(|pid| test_kill_process(*pid).is_ok()) && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(10));
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let below = mounts.lines().filter_map(|line| line.split(' ').nth(1));
    let mut below: Vec<&str> = below.filter(|path| path.starts_with(&dir_text)).collect();
    // The innermost first.
    below.sort_by_key(|path| std::cmp::Reverse(path.len()));
    for path in below {
        let _ = program("umount").args(["--lazy", path]).stderr(Stdio::null()).status();
    }
}

/// Removes what was left by tasks that were killed: their engine has ended with them, or is ended here.
fn sweep() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if lock.try_lock().is_ok() {
            clear(&entry.path());
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let links = program("ip").args(["-o", "link", "show", "type", "bridge"]).output();
    let links = links.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    for name in links.lines().filter_map(|line| line.split(": ").nth(1)) {
        let owner = name.strip_prefix("lnwd").and_then(|pid| pid.parse::<i32>().ok()).and_then(Pid::from_raw);
        if owner.is_some_and(|pid| test_kill_process(pid).is_err()) {
            Bridge { name: name.to_owned() }.remove();
        }
    }
}

fn bring() -> Result<PathBuf> {
    for (name, package) in
        [("dockerd", "docker.io"), ("docker", "docker.io"), ("busybox", "busybox-static"), ("ip", "iproute2")]
    {
        if tools::find(name).is_none() {
            stage::note(&format!("{name} is missing; installing Debian's package {package}"));
            tools::install(name, package)?;
        }
    }
    tools::find("dockerd").context("Docker is needed: `apt-get install docker.io`, or your system's package")
}

/// Runs a program to its end; all that it said, if it fails.
fn say(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("`{name}` could not be started; install it"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{name}` ended with {}:\n{}", output.status, said.trim_end());
    }
    Ok(())
}
