//! Runs one command and says what it cost: wall time, CPU time and bytes, of it and of all its descendants.
//! The one place of this program that starts others.
//!
//! The kernel adds what a process used to its parent only when that waits for it. This process is a
//! subreaper, so whatever loses its parent becomes its child, is waited for, and counts: a warden that ends
//! after its node, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::WaitOptions;
use serde::Deserialize;

/// A command that can be measured again and again.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) words: Vec<String>,
    pub(crate) dir: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    /// What an earlier run left and a new one must not find; relative to `dir`.
    pub(crate) leftovers: Vec<String>,
    pub(crate) timed: Timed,
}

/// Whose watch counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Timed {
    /// From its start to its end.
    Outside,
    /// It prints `{"seconds": …}`: its interpreter's start is nobody's work.
    Inside,
}

/// What one run cost.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Sample {
    pub(crate) wall_s: f64,
    pub(crate) cpu_s: f64,
    /// Handed to `write` and the like.
    pub(crate) written: u64,
    /// Pages made dirty on their way to a disk.
    pub(crate) to_disk: u64,
}

#[derive(Debug, Deserialize)]
struct Told {
    seconds: f64,
}

/// Must come before anything is measured.
pub(crate) fn adopt_orphans() -> Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).context("no subreaper here")
}

#[expect(clippy::disallowed_methods, reason = "this is the benchmark's wrapper")]
pub(crate) fn program(name: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(name)
}

impl Job {
    pub(crate) fn new(dir: &Path, words: &[&str]) -> Self {
        Self {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            dir: dir.to_owned(),
            env: Vec::new(),
            leftovers: Vec::new(),
            timed: Timed::Outside,
        }
    }

    /// Runs it to its end, and until nothing that it started is left.
    pub(crate) fn measure(&self) -> Result<Sample> {
        self.clear()?;
        let mut command = self.command(&self.words);
        let before = Usage::now()?;
        let begun = Instant::now();
        let output = command.output().with_context(|| format!("`{}` could not be started", self.name()))?;
        let took = begun.elapsed().as_secs_f64();
        wait_for_orphans()?;
        let used = Usage::now()?.since(before);
        self.expect_success(&output)?;
        let wall_s = match self.timed {
            Timed::Outside => took,
            Timed::Inside => {
                let told: Told = serde_json::from_slice(&output.stdout)
                    .with_context(|| format!("`{}` told no seconds", self.name()))?;
                told.seconds
            }
        };
        Ok(Sample { wall_s, cpu_s: used.cpu_s, written: used.written, to_disk: used.to_disk })
    }

    /// Runs it behind another program, and returns what it said on stderr.
    pub(crate) fn run_behind(&self, wrapper: &[&str]) -> Result<String> {
        self.clear()?;
        let words: Vec<String> =
            wrapper.iter().map(|word| (*word).to_owned()).chain(self.words.iter().cloned()).collect();
        let output =
            self.command(&words).output().with_context(|| format!("`{}` could not be started", words[0]))?;
        wait_for_orphans()?;
        self.expect_success(&output)?;
        Ok(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Runs it and returns what it printed, when nothing that it started is left.
    pub(crate) fn stdout(&self) -> Result<Vec<u8>> {
        let printed = self.stdout_beside_others()?;
        wait_for_orphans()?;
        Ok(printed)
    }

    /// Runs it and returns what it printed, while other children of this program go on.
    pub(crate) fn stdout_beside_others(&self) -> Result<Vec<u8>> {
        self.clear()?;
        let output = self.command(&self.words).output();
        let output = output.with_context(|| format!("`{}` could not be started", self.name()))?;
        self.expect_success(&output)?;
        Ok(output.stdout)
    }

    /// Starts it and goes on; whoever asks for that also ends it.
    pub(crate) fn start(&self) -> Result<Child> {
        self.clear()?;
        let mut command = self.command(&self.words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("`{}` could not be started", self.name()))
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = program(&words[0]);
        command.args(&words[1..]).current_dir(&self.dir).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("LANEWAY_") {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn name(&self) -> String {
        let file = Path::new(&self.words[0]).file_name().unwrap_or_default();
        file.to_string_lossy().into_owned()
    }

    fn clear(&self) -> Result<()> {
        for name in &self.leftovers {
            let path = self.dir.join(name);
            let removed =
                if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("{} cannot be removed", path.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    fn expect_success(&self, output: &std::process::Output) -> Result<()> {
        if output.status.success() {
            return Ok(());
        }
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        bail!("`{}` ended with {}:\n{}", self.words.join(" "), output.status, said.concat().trim_end())
    }
}

/// What the children of this process that were waited for have used so far.
#[derive(Debug, Clone, Copy)]
struct Usage {
    cpu_s: f64,
    written: u64,
    to_disk: u64,
}

impl Usage {
    fn now() -> Result<Self> {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("what children used")?;
        let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
        // Of this process and of all children that it has waited for; its own share is next to nothing.
        let io = std::fs::read_to_string("/proc/self/io").context("/proc/self/io: what was written")?;
        let count = |name: &str| -> Result<u64> {
            let line = io.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
            line.and_then(|number| number.parse().ok())
                .with_context(|| format!("/proc/self/io has no {name}"))
        };
        Ok(Self {
            cpu_s: seconds(usage.user_time()) + seconds(usage.system_time()),
            written: count("wchar")?,
            to_disk: count("write_bytes")?,
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu_s: self.cpu_s - before.cpu_s,
            written: self.written - before.written,
            to_disk: self.to_disk - before.to_disk,
        }
    }
}

/// Waits for what lost its parent. A program that leaves something running for good cannot be measured.
fn wait_for_orphans() -> Result<()> {
    const PATIENCE: Duration = Duration::from_secs(10);
    let begun = Instant::now();
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Err(rustix::io::Errno::CHILD) => return Ok(()),
            Err(error) => return Err(error).context("what was left running"),
            Ok(Some(_)) => {}
            Ok(None) if begun.elapsed() > PATIENCE => bail!("it left a process running"),
            Ok(None) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, PoisonError};

    use super::*;

    /// What is left running is waited for by whoever measures: one at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn an_orphan_is_waited_for_and_counts() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        adopt_orphans().expect("a subreaper");
        let dir = std::env::temp_dir();
        let script = "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done) > /dev/null 2>&1 & exit 0";
        let orphan = Job::new(&dir, &["/bin/sh", "-c", script]).measure().expect("measured");
        let nothing = Job::new(&dir, &["/bin/sh", "-c", "exit 0"]).measure().expect("measured");
        assert!(orphan.cpu_s > nothing.cpu_s + 0.02, "{orphan:?}, {nothing:?}");
    }

    #[test]
    fn a_command_that_fails_is_no_figure() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let error = Job::new(&std::env::temp_dir(), &["/bin/sh", "-c", "echo broken >&2; exit 3"]).stdout();
        let error = error.expect_err("it failed").to_string();
        assert!(error.contains("exit status: 3") && error.contains("broken"), "{error}");
    }
}
