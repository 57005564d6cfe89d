//! The one place that starts processes: `spawn` and the [`Group`] it returns are all that the rest of the
//! engine knows of the system's processes, so the warden can take their place.
//!
//! A group is only ever signaled while its leader is **not reaped**. A zombie keeps its pid, and with it
//! the group's number, out of use; after the reaping both may belong to a stranger. The exit is therefore
//! watched through a pidfd and looked at with `waitid(WNOWAIT)`, what is left of the group is killed, and
//! only then the leader is reaped. tokio's `Child` reaps as soon as it notices, which is too early here.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};
use std::sync::Once;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::SignalKind;

use super::launch::Launch;
use super::members;

/// How a program ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

/// A started program and everything in its process group. Dropped before it is reaped, it is killed.
#[derive(Debug)]
pub(super) struct Group {
    /// None once it is reaped.
    leader: Option<Child>,
    pid: Pid,
    watch: Watch,
    pub(super) stdout: Option<OwnedFd>,
    pub(super) stderr: Option<OwnedFd>,
}

/// Starts the program in a new process group, stdin empty, stdout and stderr piped.
///
/// The command has no `pre_exec` and an absolute program, so std uses `posix_spawn`, which does not copy
/// this process's page tables.
#[expect(clippy::disallowed_methods, reason = "this is the one place that starts processes")]
pub(super) fn spawn(launch: &Launch) -> io::Result<Group> {
    keep_exit_statuses();
    let mut command = Command::new(&launch.program);
    command
        .arg0(&launch.arg0)
        .args(&launch.args)
        .current_dir(&launch.workdir)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(inherited) = &launch.inherited {
        command.env_clear().envs(inherited.iter().map(|(k, v)| (k, v)));
    }
    command.envs(launch.env.iter().map(|(k, v)| (k, v)));
    let mut leader = command.spawn()?;
    let pid = Pid::from_child(&leader);
    let stdout = leader.stdout.take().map(OwnedFd::from);
    let stderr = leader.stderr.take().map(OwnedFd::from);
    // From here on a failure must not leave the child behind, which the drop of `Group` sees to.
    let mut group = Group { leader: Some(leader), pid, watch: Watch::None, stdout, stderr };
    group.watch = Watch::new(pid)?;
    Ok(group)
}

impl Group {
    /// Waits until the leader has exited. It is still there as a zombie afterwards.
    pub(super) async fn exited(&mut self) {
        match &mut self.watch {
            Watch::Pidfd(fd) => loop {
                if fd.readable().await.is_err() {
                    // The runtime is shutting down; it drops this future, and the group with it, next.
                    std::future::pending::<()>().await;
                }
                let looked = fd.try_io(|| match has_exited(self.pid) {
                    true => Ok(()),
                    // Clears the readiness, so that the next one is waited for.
                    false => Err(io::ErrorKind::WouldBlock.into()),
                });
                if looked.is_ok() {
                    return;
                }
            },
            Watch::Signals(signals) => {
                while !has_exited(self.pid) {
                    signals.recv().await;
                }
            }
            Watch::None => std::future::pending().await,
        }
    }

    /// Signals every process of the group. That none is left to be signaled is not an error.
    pub(super) fn signal(&self, signal: Signal) {
        if self.leader.is_some() {
            let _ = rustix::process::kill_process_group(self.pid, signal);
        }
    }

    /// Whether processes other than the leader, which exited at `since`, live on in the group.
    pub(super) fn has_members(&self, since: Instant) -> bool {
        members::has_any(self.pid, since)
    }

    /// Takes the leader's status. Nothing can be signaled afterwards.
    pub(super) fn reap(&mut self) -> io::Result<Exit> {
        let mut leader = self.leader.take().ok_or(io::ErrorKind::NotFound)?;
        let status = leader.wait()?;
        match (status.code(), status.signal()) {
            (Some(code), _) => Ok(Exit::Code(code)),
            (None, Some(signal)) => Ok(Exit::Signal(signal)),
            (None, None) => Err(io::Error::other(format!("unexpected wait status {status}"))),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let Some(mut leader) = self.leader.take() else {
            return;
        };
        if !matches!(leader.try_wait(), Ok(Some(_))) {
            // The attempt was abandoned (a panic, a runtime shut down). A killed process is gone in a
            // moment, but not for certain, and a drop must not block: a thread of this rare case waits.
            let _ = std::thread::Builder::new().name("reap".to_owned()).spawn(move || leader.wait());
        }
    }
}

/// How the exit of a leader is noticed.
#[derive(Debug)]
enum Watch {
    /// The unchecked receiver is tokio's one safe way to await the readiness of any descriptor; nothing
    /// is ever read from this one. It becomes readable when the process exits.
    Pidfd(Receiver),
    /// Where pidfds do not exist: every exit of any child wakes every waiter, which looks at its own.
    Signals(tokio::signal::unix::Signal),
    /// Only while a group is being made.
    None,
}

impl Watch {
    fn new(pid: Pid) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Ok(fd) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            return Receiver::from_owned_fd_unchecked(fd).map(Self::Pidfd);
        }
        Self::by_signals()
    }

    fn by_signals() -> io::Result<Self> {
        tokio::signal::unix::signal(SignalKind::child()).map(Self::Signals)
    }
}

/// Looks without reaping. An error (there is no such child) counts as exited: reaping tells it.
fn has_exited(pid: Pid) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    !matches!(rustix::process::waitid(WaitId::Pid(pid), options), Ok(None))
}

/// A parent may have started us with SIGCHLD ignored, which makes the system throw exit statuses away.
/// Any handler undoes that, and tokio's is the one that can be installed without unsafe code. It stays
/// out of the common case, where it would cost a wake-up for every child.
fn keep_exit_statuses() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if ignored.is_some_and(|mask| (mask >> (Signal::CHILD.as_raw() - 1)) & 1 == 1)
            && let Err(error) = tokio::signal::unix::signal(SignalKind::child())
        {
            tracing::warn!("SIGCHLD is ignored and cannot be handled: {error}");
        }
    });
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shell(script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arg0: "sh".to_owned(),
            args: vec!["-c".to_owned(), script.to_owned()],
            env: Vec::new(),
            inherited: None,
            workdir: "/".into(),
        }
    }

    #[tokio::test]
    async fn an_exit_is_seen_without_being_reaped() {
        let mut group = spawn(&shell("exit 7")).expect("spawns");
        group.exited().await;
        assert!(has_exited(group.pid));
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", group.pid.as_raw_nonzero()));
        assert!(stat.expect("still there").contains(") Z "));
        assert_eq!(group.reap().expect("its status"), Exit::Code(7));
        assert!(group.reap().is_err());
    }

    #[tokio::test]
    async fn an_exit_is_seen_by_signals_where_pidfds_do_not_exist() {
        for script in ["exit 3", "sleep 0.05; exit 3"] {
            let mut group = spawn(&shell(script)).expect("spawns");
            group.watch = Watch::by_signals().expect("a handler");
            group.exited().await;
            assert_eq!(group.reap().expect("its status"), Exit::Code(3));
        }
    }

    #[tokio::test]
    async fn an_abandoned_group_is_killed() {
        let mut group = spawn(&shell("sleep 1000 & wait")).expect("spawns");
        let stdout = group.stdout.take().expect("a pipe");
        drop(group);
        // The pipe ends when the last process of the group is gone.
        let read =
            tokio::task::spawn_blocking(move || io::Read::read(&mut std::fs::File::from(stdout), &mut [0]));
        let read = tokio::time::timeout(Duration::from_secs(30), read).await;
        let read = read.expect("the pipe ends").expect("joins");
        assert_eq!(read.expect("reads"), 0);
    }
}
