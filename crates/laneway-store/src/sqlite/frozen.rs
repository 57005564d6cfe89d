//! Sessions whose process lives and does not run: it was stopped, or its cgroup is frozen. Their lock is held, so
//! nothing proves their death. Such a session is condemned (`lease.rs`): by its own warden, which hears nothing
//! more of its node, or by a reaper that has watched its lease for a whole ttl. It is dead once its warden is gone.

use std::time::Duration;

use laneway_core::id::SessionId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::unrenewed::next_look;
use super::{SqliteStore, write_lock};
use crate::error::Result;
use crate::lease::monotonic_time;
use crate::locks::Life;
use crate::model::{Reaped, StuckSession};

/// How long the end of a killed process is waited for: the kernel takes milliseconds, unless it cannot end it.
const KILL_PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// How often a write that has to wait looks whether the process it waits for runs.
pub(super) const WRITER_LOOK: Duration = Duration::from_millis(250);

/// How long a frozen process may hold the write lock at most: shorter than the time after which those
/// who wait for the lock give up.
const FROZEN_WRITER_MAX: Duration = Duration::from_secs(12);

/// Has the caller look again no later than `pause` from now.
pub(super) fn look_again(reaped: &mut Reaped, pause: Option<Duration>) {
    reaped.next_in = reaped.next_in.into_iter().chain(pause).min();
}

impl SqliteStore {
    /// Looks whether a session lives, and condemns it if its process is frozen and others may have its tasks.
    pub(super) async fn look_for_a_freeze(&self, session: SessionId, reaped: &mut Reaped) -> Result<Life> {
        let locks = &self.shared.locks;
        let life = locks.look_after_its_warden(session).await?;
        // Whoever runs this is not frozen.
        if !matches!(life, Life::Alive) || locks.own_lease(session).is_some() {
            return Ok(life);
        }
        let Some(lease) = locks.lease(session) else { return Ok(life) };
        let now = monotonic_time();
        if now.saturating_sub(lease.renewed) > lease.ttl / 3 {
            look_again(reaped, Some(next_look(lease.ttl)));
        }
        if !self.shared.unrenewed.has_watched(session, lease.renewed, lease.ttl, now) {
            return Ok(life);
        }
        self.end_a_frozen_writer(session).await;
        if lease.expires && locks.condemn(session)? {
            tracing::warn!(%session, "its process has not run for {:?}; its tasks are returned", lease.ttl);
        }
        locks.look_after_its_warden(session).await
    }

    /// Ends the process that holds the write lock if it does not run. Everyone else waits for it, so that this does
    /// not wait for a sweep, nor for all of a long lease.
    pub(super) async fn look_for_a_frozen_writer(&self) {
        let Some(holder) = write_lock::holder(&self.path) else { return };
        let locks = &self.shared.locks;
        for session in locks.list() {
            let Some(lease) = locks.last_lease(session).filter(|it| it.pid_here() == Some(holder)) else {
                continue;
            };
            let (watched, now) = (lease.ttl.min(FROZEN_WRITER_MAX), monotonic_time());
            if self.shared.frozen_writers.has_watched(session, lease.renewed, watched, now) {
                self.end_a_frozen_writer(session).await;
            }
        }
    }

    /// Kills the frozen process of a session if it is inside of a write transaction: nothing can be written before it
    /// ends.
    pub(super) async fn end_a_frozen_writer(&self, session: SessionId) {
        let pid = self.shared.locks.last_lease(session).and_then(|lease| lease.pid_here());
        // This process runs.
        let pid = pid.filter(|pid| *pid != rustix::process::getpid());
        if let Some(pid) = pid.filter(|pid| write_lock::holder(&self.path) == Some(*pid)) {
            tracing::warn!(%session, "its process is frozen inside of a write transaction and is killed");
            self.kill(session, pid).await;
        }
    }

    /// Kills the process of a session that does not renew its lease, and that nobody else may end. Says whether it did.
    pub(super) async fn end_a_stopped_process(&self, session: SessionId) -> bool {
        let lease = self.shared.locks.lease(session).filter(|lease| !lease.expires);
        let stopped = lease.filter(|lease| lease.silence(monotonic_time()).is_some());
        match stopped.and_then(|lease| lease.pid_here()) {
            Some(pid) => self.kill(session, pid).await,
            None => false,
        }
    }

    /// Held by a pidfd, so that its number cannot become another's.
    async fn kill(&self, session: SessionId, pid: Pid) -> bool {
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        // It lived when it was held: as long as the session's lock is not free, the number is its own.
        if !self.shared.locks.is_held(session) {
            return false;
        }
        if let Err(error) = pidfd_send_signal(&process, Signal::KILL) {
            tracing::error!(%session, %error, "the frozen process of a session cannot be killed");
            return false;
        }
        let ended = tokio::task::spawn_blocking(move || {
            let mut process = [PollFd::new(&process, PollFlags::IN)];
            poll(&mut process, Some(&KILL_PATIENCE))
        });
        // Should it not have ended, its lock says so.
        drop(ended.await);
        true
    }

    /// What is known of a condemned session whose warden does not end.
    pub(super) fn stuck(&self, session: SessionId, node: String) -> Option<StuckSession> {
        let locks = &self.shared.locks;
        let is_frozen = locks.is_held(session);
        is_frozen.then(|| StuckSession { session, node, warden: locks.warden_note(session) })
    }
}
