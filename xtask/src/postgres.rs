//! A Postgres of our own: in a temporary directory, on a private socket, gone with us. Owns how one is brought,
//! started and ended; what the tests do with it is theirs.
//!
//! Its directory holds the socket, the certificate for connections over TLS (`server.crt`), the log and the data. For
//! tests there is a pooler in front of it as well (`pooler.rs`).

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, getuid, kill_process};
use tempfile::TempDir;

use crate::pooler::{self, Pooler};
use crate::shell::program;
use crate::{stage, tools};

/// Where tests look for it.
pub(crate) const VARIABLE: &str = "LANEWAY_TEST_POSTGRES";

/// Names its directories, so that those of a task that was killed can be found.
const PREFIX: &str = "laneway-postgres-";

/// On a machine that does other work as well, initdb's last files may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// The oldest that Laneway works with.
const OLDEST: u32 = 15;

/// Whether it keeps what it acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// As it ships: for whoever measures.
    Full,
    /// Tests care for what is committed, not for what a crash of the machine would leave of it.
    None,
}

/// How a running server is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Connections are ended, and everything is written.
    Fast,
    /// At once, as in a crash: the next start recovers from the WAL.
    Immediate,
}

/// A network of our own whose hosts may use the server: its address there, and the network.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    pub(crate) address: String,
    pub(crate) network: String,
}

/// A running server. Dropping it ends the server and removes everything of it.
#[derive(Debug)]
pub(crate) struct Postgres {
    /// Ends before the server does.
    pooler: Option<Pooler>,
    server: Child,
    url: String,
    dir: TempDir,
    bin: PathBuf,
    user: User,
    port: u16,
    durability: Durability,
    reach: Option<Reach>,
    /// Held as long as we live: by it a leftover is told from a server in use.
    _lock: File,
}

impl Postgres {
    pub(crate) fn start(durability: Durability) -> Result<Self> {
        Self::start_within(durability, None)
    }

    /// The same, for hosts of a network as well.
    pub(crate) fn start_within(durability: Durability, reach: Option<Reach>) -> Result<Self> {
        let bin = bring()?;
        sweep();
        let dir = tempfile::Builder::new().prefix(PREFIX).tempdir().context("no temporary directory")?;
        let lock = File::create(dir.path().join("lock")).context("no lock file")?;
        lock.try_lock().context("the lock of a new directory is held")?;
        let user = User::choose()?;
        user.own(dir.path())?;
        make(&bin, &user, dir.path())?;
        if let Some(reach) = &reach {
            let mut hba = OpenOptions::new().append(true).open(dir.path().join("data/pg_hba.conf"))?;
            writeln!(hba, "host all all {} scram-sha-256", reach.network)?;
        }
        let port = free_port()?;
        let server = serve(&bin, &user, dir.path(), port, (durability, reach.as_ref()))?;
        let socket = dir.path().to_string_lossy().replace('/', "%2F");
        let url = format!("postgres://laneway:laneway@{socket}:{port}/postgres");
        let pooler = None;
        let mut started = Self { pooler, server, url, dir, bin, user, port, durability, reach, _lock: lock };
        started.wait_until_ready()?;
        // Whoever measures or breaks things wants nothing else beside the server.
        if started.durability == Durability::None && started.reach.is_none() {
            started.pooler = Some(Pooler::start(&started.user, started.dir.path(), port)?);
        }
        Ok(started)
    }

    /// What tests find it by.
    pub(crate) fn variables(&self) -> Vec<(&'static str, &str)> {
        let pooler = self.pooler.as_ref().map(|pooler| (pooler::VARIABLE, pooler.url.as_str()));
        [(VARIABLE, self.url.as_str())].into_iter().chain(pooler).collect()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends the server; its data stay.
    pub(crate) fn stop(&mut self, stop: Stop) -> Result<()> {
        self.signal(match stop {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        });
        let begun = Instant::now();
        while self.server.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                bail!("the private Postgres does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Starts it again after `stop`, on the same data, and waits until it answers. From the same thread: the server ends with
    /// the thread that has started it.
    pub(crate) fn start_again(&mut self) -> Result<()> {
        let how = (self.durability, self.reach.as_ref());
        self.server = serve(&self.bin, &self.user, self.dir.path(), self.port, how)?;
        self.wait_until_ready()
    }

    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.server.id())
            && let Some(pid) = Pid::from_raw(pid)
        {
            let _ = kill_process(pid, signal);
        }
    }

    /// For `--store`, or for whoever connects otherwise.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// For programs that do not know the socket; without the name of a database.
    pub(crate) fn tcp(&self) -> String {
        format!("postgres://laneway:laneway@localhost:{}", self.port)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begun = Instant::now();
        loop {
            let mut ask = program(self.bin.join("pg_isready"));
            ask.arg("--quiet").arg("--host").arg(self.dir.path()).args(["--port", &self.port.to_string()]);
            if ask.status().context("pg_isready could not be started")?.success() {
                return Ok(());
            }
            let has_ended = self.server.try_wait().context("the server cannot be waited for")?;
            if has_ended.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
                bail!("the private Postgres does not start:\n{}", log.trim_end());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.pooler = None;
        // Fast shutdown: connections are ended. It may have ended by itself, by the terminal's Ctrl-C for one.
        if matches!(self.server.try_wait(), Ok(None)) {
            self.signal(Signal::INT);
        }
        let begun = Instant::now();
        while matches!(self.server.try_wait(), Ok(None)) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Who runs the server: it refuses to be root.
#[derive(Debug)]
pub(crate) struct User(Option<&'static str>);

impl User {
    fn choose() -> Result<Self> {
        if !getuid().is_root() {
            return Ok(Self(None));
        }
        let exists = |name: &&str| {
            program("id").args(["-u", name]).output().is_ok_and(|output| output.status.success())
        };
        let name = ["postgres", "nobody"].into_iter().find(exists);
        Ok(Self(Some(name.context("Postgres does not run as root, and there is no user `postgres`")?)))
    }

    fn own(&self, dir: &Path) -> Result<()> {
        let Some(name) = self.0 else { return Ok(()) };
        say(program("chown").arg("-R").arg(format!("{name}:")).arg(dir))
    }

    /// A program as this user, which ends when we do, however that comes.
    pub(crate) fn program(&self, path: &Path, dir: &Path) -> Command {
        if !cfg!(target_os = "linux") {
            let mut command = program(path);
            command.current_dir(dir);
            return command;
        }
        let mut command = program("setpriv");
        if let Some(name) = self.0 {
            command.args([&format!("--reuid={name}"), &format!("--regid={name}"), "--init-groups"]);
        }
        command.args(["--pdeathsig", "INT"]).arg(path).current_dir(dir);
        command
    }
}

/// A new cluster, with a certificate for `localhost`.
fn make(bin: &Path, user: &User, dir: &Path) -> Result<()> {
    let password = dir.join("password");
    fs::write(&password, "laneway\n").context("the password cannot be written")?;
    say(user
        .program(&bin.join("initdb"), dir)
        .args(["--no-sync", "--encoding=UTF8", "--locale=C", "--username=laneway"])
        .args(["--auth-local=trust", "--auth-host=scram-sha-256"])
        .arg("--pwfile")
        .arg(&password)
        .arg("--pgdata")
        .arg(dir.join("data")))?;
    say(user.program(Path::new("openssl"), dir).args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "30",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        // Trusted for itself: one that may sign others is refused as a server's.
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-keyout",
        "server.key",
        "-out",
        "server.crt",
    ]))
}

fn serve(
    bin: &Path,
    user: &User,
    dir: &Path,
    port: u16,
    (durability, reach): (Durability, Option<&Reach>),
) -> Result<Child> {
    let mut command = user.program(&bin.join("postgres"), dir);
    command.arg("-D").arg(dir.join("data"));
    let settings = [
        format!("unix_socket_directories={}", dir.display()),
        format!("port={port}"),
        reach.map_or("listen_addresses=localhost".to_owned(), |reach| {
            format!("listen_addresses=localhost,{}", reach.address)
        }),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", dir.join("server.crt").display()),
        format!("ssl_key_file={}", dir.join("server.key").display()),
        // Many tests at once, each with nodes that have a pool of their own.
        "max_connections=400".to_owned(),
        "shared_buffers=128MB".to_owned(),
        "max_wal_size=1GB".to_owned(),
        "timezone=UTC".to_owned(),
    ];
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    // Counts statements where a database asks for it, and stands by until then.
    command.args(["-c", "shared_preload_libraries=pg_stat_statements"]);
    command.args(["-c", "pg_stat_statements.track=none"]);
    match durability {
        Durability::Full => {}
        Durability::None => {
            for setting in ["fsync=off", "full_page_writes=off", "synchronous_commit=off"] {
                command.args(["-c", setting]);
            }
        }
    }
    let log = OpenOptions::new().append(true).create(true).open(dir.join("log"));
    let log = log.context("the server's log cannot be made")?;
    let errors = log.try_clone().context("the server's log cannot be shared")?;
    command.stdin(Stdio::null()).stdout(log).stderr(errors);
    command.spawn().context("the private Postgres could not be started")
}

/// Nobody else has it now; if somebody takes it before the server does, its log says so.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port is free")?;
    Ok(listener.local_addr().context("a port has no number")?.port())
}

/// The newest installed one that is new enough; installed where that is possible.
fn bring() -> Result<PathBuf> {
    if let Some(bin) = installed() {
        return Ok(bin);
    }
    stage::note("Postgres is missing; installing Debian's package postgresql");
    tools::install("postgres", "postgresql")?;
    installed().with_context(|| {
        format!(
            "Postgres {OLDEST} or newer is needed: `apt-get install postgresql`, or your system's package"
        )
    })
}

fn installed() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = debian
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin")))
        })
        .filter(|(version, bin)| *version >= OLDEST && bin.join("postgres").is_file())
        .max();
    if let Some((_, bin)) = newest {
        return Some(bin);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&path).find(|dir| dir.join("postgres").is_file())?;
    let said = program(on_path.join("postgres")).arg("--version").output().ok()?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let number = said.split_whitespace().nth(2)?.split('.').next()?.parse::<u32>().ok()?;
    (number >= OLDEST).then_some(on_path)
}

/// Removes what was left by tasks that were killed: their server has ended with them.
fn sweep() {
    for entry in fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with(PREFIX) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if lock.try_lock().is_ok() && !entry.path().join("data/postmaster.pid").exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Runs a program to its end; all that it said, if it fails.
fn say(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("`{name}` could not be started; install it"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{name} {}` ended with {}:\n{}", words.join(" "), output.status, said.trim_end());
    }
    Ok(())
}
