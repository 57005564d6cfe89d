//! PgBouncer in front of a private Postgres, handing out its connections by the transaction: for tests of a store that
//! cannot rely on what it sets or prepares. Lives in the server's directory, and ends with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::postgres::{User, free_port};
use crate::shell::program;
use crate::{stage, tools};

/// Where tests look for it. It reaches every database of the server.
pub(crate) const VARIABLE: &str = "LANEWAY_TEST_POOLER";

/// Set for tests that are to go through it which otherwise would not.
pub(crate) const THROUGH: &str = "LANEWAY_TEST_THROUGH_POOLER";

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Pooler {
    process: Child,
    pub(crate) url: String,
}

impl Pooler {
    /// In front of the server whose socket is in `dir`.
    pub(crate) fn start(user: &User, dir: &Path, server: u16) -> Result<Self> {
        let bin = bring()?;
        let port = free_port()?;
        let (settings, users) = (dir.join("pgbouncer.ini"), dir.join("pgbouncer.users"));
        fs::write(&users, "\"laneway\" \"laneway\"\n").context("the pooler's users cannot be written")?;
        let text = format!(
            "[databases]\n\
             * = host={dir} port={server}\n\
             [pgbouncer]\n\
             pool_mode = transaction\n\
             unix_socket_dir = {dir}\n\
             listen_port = {port}\n\
             auth_type = trust\n\
             auth_file = {users}\n\
             max_client_conn = 1000\n\
             default_pool_size = 8\n\
             server_idle_timeout = 2\n",
            dir = dir.display(),
            users = users.display(),
        );
        fs::write(&settings, text).context("the pooler's settings cannot be written")?;
        let log = File::create(dir.join("pgbouncer.log")).context("the pooler's log cannot be made")?;
        let errors = log.try_clone().context("the pooler's log cannot be shared")?;
        let mut command = user.program(&bin, dir);
        command.arg(&settings).stdin(Stdio::null()).stdout(log).stderr(errors);
        let process = command.spawn().context("PgBouncer could not be started")?;
        let socket = dir.to_string_lossy().replace('/', "%2F");
        let url = format!("postgres://laneway:laneway@{socket}:{port}/postgres");
        let mut started = Self { process, url };
        started.wait_until_ready(dir, port)?;
        Ok(started)
    }

    fn wait_until_ready(&mut self, dir: &Path, port: u16) -> Result<()> {
        let begun = Instant::now();
        while !dir.join(format!(".s.PGSQL.{port}")).exists() {
            let has_ended = self.process.try_wait().context("the pooler cannot be waited for")?;
            if has_ended.is_some() || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(dir.join("pgbouncer.log")).unwrap_or_default();
                bail!("PgBouncer does not start:\n{}", log.trim_end());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Debian puts it where only root looks.
fn bring() -> Result<PathBuf> {
    if let Some(bin) = installed() {
        return Ok(bin);
    }
    stage::note("PgBouncer is missing; installing Debian's package pgbouncer");
    tools::install("pgbouncer", "pgbouncer")?;
    installed().context("PgBouncer is needed: `apt-get install pgbouncer`, or your system's package")
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = dirs.map(|dir| dir.join("pgbouncer")).find(|bin| bin.is_file())?;
    program(&found).arg("--version").output().is_ok_and(|output| output.status.success()).then_some(found)
}
